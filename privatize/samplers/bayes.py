"""The paper's Bayesian choice of P: a parameter from a prior, a record from its likelihood."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from privatize.data import records
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, Sampler, kind, name_of, some, with_rng
from privatize.samplers.distribution import Distribution
from privatize.samplers.foreign import as_sampler
from privatize.samplers.given import Support, inside, plain_of, show_support

__all__ = ["marginal"]


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
class _Marginal(Distribution):
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

    @property
    def independent(self) -> bool:
        return self.per == "record" and super().independent

    @property
    def support(self) -> Any:
        return plain_of(self.given)

    def __repr__(self) -> str:
        more = ("" if self.per == "record" else ", per='dataset'") + show_support(self.given)
        return f"marginal({self.prior!r}, {name_of(self.likelihood)}{more})"
