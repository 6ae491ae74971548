"""Public distributions P that the neighbouring datasets are drawn from.

A sampler is anything with ``draw(n, rng) -> dataset of n records``, independent of each other
and drawn with nothing but `rng`. P is public and part of the promise: the privacy is random
differential privacy *with respect to P*. Take bounds and categories from public knowledge, and let
`privatize.learn` learn the rest from the data.
"""

from privatize.data.support import Maybe, OneOf
from privatize.samplers.base import Sampler, draw
from privatize.samplers.change import Change
from privatize.samplers.combined import blobs, labelled, marginal, mixture
from privatize.samplers.distribution import Distribution
from privatize.samplers.families import Family
from privatize.samplers.foreign import any_of, as_sampler, from_function
from privatize.samplers.loading import load
from privatize.samplers.numbers import integers, normal, uniform
from privatize.samplers.people import people
from privatize.samplers.public import bootstrap
from privatize.samplers.tables import dependent, table
from privatize.samplers.values import boolean, categorical, choice, dates, with_missing

__all__ = ["Change", "Distribution", "Family", "Sampler", "any_of", "as_sampler", "bootstrap", "draw"]
__all__ += ["from_function", "load"]
__all__ += ["Maybe", "OneOf", "boolean", "categorical", "choice", "dates", "with_missing"]
__all__ += ["integers", "normal", "uniform"]
__all__ += ["blobs", "dependent", "labelled", "marginal", "mixture", "people", "table"]
