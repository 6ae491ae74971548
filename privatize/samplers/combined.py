"""Distributions made of others: mixtures, and the marginals of Bayesian models."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Literal, cast

import numpy as np

from privatize.data import records
from privatize.data import support as domains
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, Sampler, Traits, kind, name_of, some, support_of, with_rng
from privatize.samplers.distribution import Distribution, Supported, loose
from privatize.samplers.foreign import as_sampler
from privatize.samplers.given import Support, inside, show_support
from privatize.samplers.parameters import Frozen, chosen, shares


def mixture(components: Sequence[Any], weights: Sequence[float] | None = None) -> Distribution:
    """Draw each record from one of several distributions, chosen at random.

    Parameters
    ----------
    components : sequence of samplers
        Anything that ``sampler=`` accepts.
    weights : sequence of float, optional
        How often each is chosen, up to a common factor. Equally often by default.

    Examples
    --------
    >>> from privatize.samplers import normal
    >>> mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6])
    mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6])
    """
    try:
        parts = tuple(loose(as_sampler(component)) for component in components)
    except TypeError:
        raise SamplerError(f"mixture({components!r}): the components must be a list of samplers.") from None
    if not parts:
        raise SamplerError("mixture([]) has no components.")
    given = [1.0] * len(parts) if weights is None else weights
    share = shares("weights", given, len(parts), "components")
    drawn = [some(part) for part in parts]
    kinds = [records.alike(drawn[0], each) for each in drawn]
    if not all(kinds):
        raise SamplerError(
            f"mixture(): {parts[0]!r} and {parts[kinds.index(False)]!r} draw different kinds of records: "
            f"containers, columns, dtypes and categories must be the same."
        )
    return _Mixture(parts, cast("Frozen", share), tuple(records.head(each, 0) for each in drawn))


@kind("mixture")
class _Mixture(Distribution):
    components: tuple[Sampler, ...]
    weights: Frozen
    none: tuple[Any, ...] = field(compare=False)

    def draw(self, n: int, rng: Rng) -> Any:
        # Who comes from where, then each component's records, put back into their places.
        origin = chosen(self.weights, len(self.components), n, rng)
        order = np.argsort(origin, kind="stable")
        counts = np.bincount(origin, minlength=len(self.components))
        parts = [c.draw(int(size), rng) for c, size in zip(self.components, counts, strict=True) if size]
        places = np.empty(n, dtype=np.intp)
        places[order] = np.arange(n)
        # No records of every component, so that the dtype does not depend on who was chosen.
        return records.take(records.concat([*self.none, *parts]), places)

    def parts(self) -> Iterator[Any]:
        yield from self.components

    def _support(self) -> Any:
        return domains.join(map(support_of, self.components))

    def __repr__(self) -> str:
        parts = ", ".join(map(repr, self.components))
        return f"mixture([{parts}], weights={self.weights!r})"


def marginal(
    prior: Any,
    likelihood: Callable[..., Any],
    *,
    per: Literal["record", "dataset"] = "record",
    support: Any = None,
) -> Distribution:
    """Draw records whose parameter is drawn too: the marginal of a Bayesian model.

    Parameters
    ----------
    prior : sampler
        What parameters are drawn from.
    likelihood : callable
        ``likelihood(theta, rng)`` returns one record for each parameter; or ``likelihood(theta)`` returns a
        distribution of `scipy.stats` with these parameters. It gets all parameters at once, so records are
        not known to be independent: sums over them (`privatize.additive`) are calibrated on whole datasets.
    per : {"record", "dataset"}
        Whether every record has a parameter of its own, or all records of a dataset share one. With
        "dataset" the records are exchangeable, not independent: the promise is then an average over the
        prior, and for some parameters it may fail more often than gamma.
    support : optional
        What the records lie in; what the likelihood draws outside is converted to it.

    References
    ----------
    Rubinstein & Aldà, ICML 2017, Section 5, on choosing P.

    Examples
    --------
    >>> from scipy import stats
    >>> from privatize.samplers import normal
    >>> def weight(mean):
    ...     return stats.norm(mean, 10)
    >>> marginal(normal(75, 5), weight)
    marginal(normal(75, 5), weight)
    >>> marginal(normal(75, 5), weight).draw(2, np.random.default_rng(1)).round(1)
    array([80. , 66.1])
    """
    if per not in ("record", "dataset"):
        raise SamplerError(f"marginal(per={per!r}): it is 'record' or 'dataset'.")
    if not callable(likelihood):
        raise SamplerError(f"marginal(): likelihood={likelihood!r} is not a function of the parameters.")
    made = _Marginal(as_sampler(prior), likelihood, per, Support.of(support))
    some(made)  # or refused
    return made


@kind("marginal", "prior", iid=False, stable=False)  # the function may change
class _Marginal(Supported):
    prior: Sampler
    likelihood: Callable[..., Any]
    per: str
    given: Support | None

    def draw(self, n: int, rng: Rng) -> Any:
        if self.per == "record":
            theta = self.prior.draw(n, rng)
        else:
            theta = records.take(self.prior.draw(1, rng), np.zeros(n, dtype=np.intp))
        found = with_rng(self.likelihood, theta, rng)
        if hasattr(found, "rvs"):
            found = found.rvs(size=np.shape(found.mean()) or n, random_state=rng)
        return inside(found, self.given)

    def own_traits(self) -> Traits:
        return replace(self.known, independent=self.per == "record")

    def __repr__(self) -> str:
        more = ("" if self.per == "record" else ", per='dataset'") + show_support(self.given)
        return f"marginal({self.prior!r}, {name_of(self.likelihood)}{more})"
