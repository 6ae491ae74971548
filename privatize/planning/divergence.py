"""What a promise that holds under P is worth under another distribution."""

import math

from privatize.errors import SettingsError
from privatize.planning.bounds import bisect
from privatize.planning.numbers import as_float, as_integer
from privatize.planning.plan import check_gamma


def transfer(gamma: float, n: int, kl: float) -> float:
    """Return the confidence that a promise made under P keeps under a distribution Q.

    Take a mechanism that is random differentially private with confidence gamma with respect to P. With
    respect to any Q with ``KL(P || Q) <= kl`` its confidence is the largest q for which the binary
    divergence of gamma from q is at most ``(n+1) * kl``. That is never more than the paper's
    ``gamma + sqrt((n+1) * kl / 2)``, and much less for a small gamma. Proof: ``docs/bounds.md``.

    Parameters
    ----------
    gamma : float
        Confidence under P.
    n : int
        Number of records.
    kl : float
        A bound on the Kullback-Leibler divergence KL(P || Q) of one record, in nats.

    Returns
    -------
    float
        Confidence under Q; 1 if nothing is promised any more.

    References
    ----------
    Rubinstein & Aldà, ICML 2017, Proposition 8, with the data-processing inequality in place of Pinsker's.

    Examples
    --------
    >>> round(transfer(0.05, n=1000, kl=1e-5), 3)
    0.087
    >>> round(transfer(0.001, n=1000, kl=1e-5), 4)
    0.0135
    """
    gamma = check_gamma(gamma)
    count = as_integer(n)
    if count < 1:
        raise SettingsError(f"n={n!r} is not a number of records: it must be an integer >= 1.")
    tau = as_float(kl)
    if not tau >= 0:
        raise SettingsError(f"kl={kl!r} is not a divergence: it must be >= 0.")
    if tau == 0:
        return gamma
    try:
        allowed = (count + 1) * tau * (1 + 1e-15)
    except OverflowError:  # n is larger than every float
        allowed = math.inf
    pinsker = math.nextafter(gamma + math.nextafter(math.sqrt(allowed / 2), math.inf), math.inf)
    added = bisect(0.0, min(pinsker, 1.0) - gamma, lambda more: _diverges(gamma, more, allowed))
    return min(1.0, pinsker, (gamma + added) * (1 + 1e-15))


def _diverges(gamma: float, more: float, allowed: float) -> bool:
    """Tell whether kl(gamma || gamma + more) is at least what is allowed, whatever the rounding."""
    if more >= 1 - gamma:
        return True
    one = -gamma * math.log1p(more / gamma)
    other = -(1 - gamma) * math.log1p(-more / (1 - gamma))
    # Both are off by a few roundings, and by those of the quotient, which matter more as it comes close to 1.
    unsure = 2.0**-50 * (other - one + more / (1 - gamma - more))
    return one + other - unsure >= allowed
