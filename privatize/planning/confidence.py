"""Exact binomial confidence: Clopper & Pearson, and a similar bound for one calibration."""


def low_share(count: int, total: int, alpha: float) -> float:
    """Return a lower bound on a share, after `count` of `total` trials; wrong with probability <= `alpha`.

    Examples
    --------
    >>> round(low_share(10, 100, 0.05), 4)
    0.0553
    """
    from scipy.special import betaincinv

    return 0.0 if count == 0 else float(betaincinv(count, total - count + 1, alpha)) * (1 - 1e-12)


def high_share(count: int, total: int, alpha: float) -> float:
    """Return an upper bound on a share, after `count` of `total` trials; wrong with probability <= `alpha`.

    Examples
    --------
    >>> round(high_share(0, 100, 0.05), 4)
    0.0295
    """
    from scipy.special import betaincinv

    if count == total:
        return 1.0
    return min(1.0, float(betaincinv(count + 1, total - count, 1 - alpha)) * (1 + 1e-12))


def clopper_pearson(count: int, total: int, alpha: float) -> tuple[float, float]:
    """Return an interval for a share; the share is outside with probability <= `alpha`."""
    return low_share(count, total, alpha / 2), high_share(count, total, alpha / 2)


def above(count: int, total: int, a: float, b: float) -> float:
    """Return the probability of `count` or more of `total`, where the share has a beta distribution.

    For fresh gaps beyond the k-th smallest of m, with a = m-k+1 and b = k, this is an upper bound.

    Examples
    --------
    >>> round(above(1, 1, 1, 9), 4)
    0.1
    """
    from scipy.stats import betabinom

    return 1.0 if count == 0 else float(betabinom.sf(count - 1, total, a, b))
