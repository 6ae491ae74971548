"""How many pairs to sample, and which order statistic of their gaps to take.

Notation, as in the paper (Rubinstein & Aldà, ICML 2017) and everywhere in this library:

``n``
    the number of records in the dataset (public);
``m``
    the number of sampled pairs of neighbouring datasets;
``k``
    the index of the order statistic: the sensitivity is the k-th smallest of the m gaps;
``gamma``
    the confidence of random differential privacy: the promise may fail on this share of
    random neighbouring pairs;
``rho``
    the confidence of the sampling: with probability at least ``1 - rho`` over the
    calibration, the estimate covers a share ``1 - gamma + rho`` of all pairs.

Pure arithmetic: nothing here draws, runs or remembers anything. The proofs are in
``docs/bounds.md``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NoReturn, get_args

from privatize.display.cards import Card, Rows
from privatize.display.charts import Chart, Color, Layer, onto
from privatize.display.figures import round_up
from privatize.errors import PlanError, SettingsError

__all__ = ["Bound", "Plan", "plan", "transfer"]

Bound = Literal["tolerance", "dkw", "marginal"]
BOUNDS: tuple[str, ...] = get_args(Bound)

# A computed tail must be below rho by this relative margin, which covers its rounding.
_MARGIN = 1e-12
# Below these the tail is summed term by term with `math` alone (see `_tail`).
_TERMS = 500
_EXPONENT = 600.0
# Beyond these, more pairs are needed than anybody can run, and floats run out of digits.
_LEAST_GAMMA = 1e-15
_MOST_PAIRS = 10**18


@dataclass(frozen=True, slots=True)
class Plan:
    """An operating point: sample m pairs, take the k-th smallest gap, and gamma holds.

    A plan is checked when it is made, so one that breaks its own bound cannot exist.

    Attributes
    ----------
    gamma : float
        Confidence of random differential privacy.
    m : int
        Number of sampled pairs.
    k : int
        Index of the order statistic, ``1 <= k <= m``.
    rho : float or None
        Sampling confidence; ``None`` for the marginal bound, which has none.
    bound : {"tolerance", "dkw", "marginal"}
        The inequality that ties them together.

    Examples
    --------
    >>> Plan(gamma=0.05, m=19, k=19, rho=None, bound="marginal")
    Plan(gamma=0.05, m=19, k=19, rho=None, bound='marginal')
    >>> Plan(gamma=0.05, m=19, k=18, rho=None, bound="marginal")
    Traceback (most recent call last):
        ...
    privatize.errors.PlanError: k=18 of m=19 gaps does not support gamma=0.05 by the bound ...
    """

    gamma: float
    m: int
    k: int
    rho: float | None
    bound: Bound

    def __post_init__(self) -> None:
        _check_bound(self.bound)
        object.__setattr__(self, "gamma", _check_gamma(self.gamma))
        object.__setattr__(self, "m", _check_count(self.m))
        if isinstance(self.k, bool) or not hasattr(self.k, "__index__") or not 1 <= self.k <= self.m:
            raise PlanError(f"k={self.k!r} is not an index from 1 to m={self.m}.")
        object.__setattr__(self, "k", int(self.k))
        if self.bound == "marginal":
            if self.rho is not None:
                _refuse_rho()
            holds = self.k >= (1 - _exact(self.gamma)) * (self.m + 1)
        else:
            if self.rho is None:
                raise PlanError(f"bound={self.bound!r} needs a rho.")
            object.__setattr__(self, "rho", _check_rho(self.rho, self.gamma, self.bound))
            if self.bound == "tolerance":
                holds = _covers(self.m, self.m - self.k + 1, self.gamma, self.rho)
            else:
                # The paper's two conditions. DKW is never attained by the binomial tail it
                # stands for, so a relative 1e-12 for the rounding of both sides is harmless.
                need = self.m * (1 - self.gamma + _dkw_error(self.m, self.rho))
                holds = self.k >= need * (1 - 1e-12) and (
                    _dkw_error(self.m, self.rho) <= self.gamma * (1 + 1e-12)
                )
        if not holds:
            raise PlanError(
                f"k={self.k} of m={self.m} gaps does not support gamma={self.gamma} by the "
                f"bound {self.bound!r} with rho={self.rho}. Let plan(gamma={self.gamma}, "
                f"m={self.m}, bound={self.bound!r}) choose k.",
                gamma=self.gamma,
                m=self.m,
                bound=self.bound,
            )

    def plot(self, ax: Any = None) -> Any:
        """Plot how many pairs each bound needs for which gamma, with this plan among them.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default. Needs matplotlib (the extra ``plot``).

        Returns
        -------
        matplotlib axes
        """
        return onto(self._chart(), ax)

    def rows(self) -> Rows:
        """Return the plan as names and values, for a person to read."""
        rows = [
            ("evaluations", f"{2 * self.m:,}: the function on both of m={self.m:,} pairs of neighbours"),
            ("takes", f"gap k={self.k:,} of {self.m:,}, the smallest first, as the sensitivity"),
            ("the promise may fail on", f"a share gamma={self.gamma:.4g} of neighbours"),
        ]
        if self.rho is not None:
            rows.append(("of which for an unlucky calibration", f"rho={self.rho:.3g}"))
        return [*rows, ("bound", self.bound)]

    def _chart(self) -> Chart:
        low, high = max(self.gamma / 10, _LEAST_GAMMA), min(self.gamma * 10, 0.9)
        gammas = [low * (high / low) ** (i / 20) for i in range(21)]
        colors: dict[str, Color] = {"dkw": "orange", "tolerance": "blue", "marginal": "green"}
        layers = [
            Layer(
                "line",
                gammas,
                [_PLANNERS[name].least(g, None) for g in gammas],
                (),
                f"{name}, the least m",
                color,
            )
            for name, color in colors.items()
        ]
        here = Layer("point", [self.gamma], [self.m], (), f"this plan: m={self.m:,}", "red")
        across = "gamma: share of neighbours on which the promise may fail"
        return Chart("pairs that each bound needs", across, "pairs m", (*layers, here), log="xy")

    def _repr_html_(self) -> str:
        return Card("plan", self.rows(), self._chart()).html()


def plan(
    gamma: float | None = None,
    m: int | Literal["least", "balanced"] | None = None,
    rho: float | None = None,
    *,
    bound: Bound = "tolerance",
) -> Plan:
    """Choose m, k and rho (or gamma) for a promise, at the paper's operating points or better.

    Parameters
    ----------
    gamma : float, optional
        Confidence of random differential privacy, in (0, 1). Without it, `m` must be given
        and the smallest gamma that m pairs support is found (then k = m).
    m : int or {"least", "balanced"}, optional
        Number of sampled pairs. ``"least"`` is the smallest feasible one (k is then m, the
        largest gap: cheap, but a noisy and large estimate); ``"balanced"`` the smallest that
        leaves at least half of gamma to the data, ``1 - k/(m+1) >= gamma/2``. With gamma
        alone: balanced, except for ``"dkw"``, where it is the first row of the paper's Table,
        which is the least.
    rho : float, optional
        The free parameter of the Theorem, ``0 < rho < gamma``. Optimized when left out.
    bound : {"tolerance", "dkw", "marginal"}
        ``"dkw"`` is the paper's Theorem to the digit. ``"tolerance"`` is the same statement
        with the exact binomial tail in place of the Dvoretzky-Kiefer-Wolfowitz inequality,
        and needs far fewer pairs. ``"marginal"`` needs the fewest and holds on average over
        calibrations, not for a single remembered one.

    Returns
    -------
    Plan
        It satisfies its own inequality.

    Raises
    ------
    PlanError
        Where the request is infeasible; it names the least feasible gamma and m.

    References
    ----------
    Rubinstein & Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling",
    ICML 2017, Theorem 15 and Table 1.

    Examples
    --------
    >>> p = plan(gamma=0.05)
    >>> p.m, p.k
    (557, 544)
    >>> plan(gamma=0.05, m="least").m
    113
    >>> plan(gamma=0.05, bound="dkw").m
    1305
    >>> plan(gamma=0.001, m=100)
    Traceback (most recent call last):
        ...
    privatize.errors.PlanError: gamma=0.001 with samples=100 is out of reach: 100 samples \
support gamma >= 0.0550. Raise samples to 10229 or more, or leave it out.
    """
    _check_bound(bound)
    gamma = None if gamma is None else _check_gamma(gamma)
    if isinstance(m, str):
        if m not in ("least", "balanced"):
            raise PlanError(f"m={m!r} is not a number of pairs, 'least' or 'balanced'.")
    elif m is not None:
        m = _check_count(m)
    if rho is not None:
        if bound == "marginal":
            _refuse_rho()
        rho = _check_rho(rho, 1.0 if gamma is None else gamma, bound)

    if gamma is None:
        if not isinstance(m, int):
            raise PlanError("A plan needs gamma, m, or both. Pass gamma=0.05, for example.")
        return _PLANNERS[bound].of_m(m, rho)
    if m is None:
        m = "least" if bound == "dkw" else "balanced"
    least = _PLANNERS[bound].least(gamma, rho) if isinstance(m, str) else 0
    if least > _MOST_PAIRS // 10:  # so that what is balanced is within reach too
        _refuse_gamma(gamma, least, bound)
    if m == "least":
        m = least
    elif m == "balanced":
        if rho is not None and 2 * _exact(rho) >= _exact(gamma):
            raise PlanError(
                f"rho={rho} leaves less than half of gamma={gamma} to the data, so no m is balanced. "
                f"Lower rho below {gamma / 2}, leave it out, or pass m='least'.",
                gamma=gamma,
                bound=bound,
            )
        m = _PLANNERS[bound].balanced(gamma, rho)
    made = _PLANNERS[bound].of_both(gamma, m, rho)
    if made is None:
        _refuse(gamma, m, rho, bound)
    return made


def transfer(gamma: float, n: int, kl: float) -> float:
    """Return the confidence that a promise made under P keeps under a distribution Q.

    A mechanism that is random differentially private with confidence gamma with respect to P is so, with
    respect to any Q with ``KL(P || Q) <= kl``, with the largest confidence q for which the binary
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
        Confidence under Q; 1 where nothing is promised any more.

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
    gamma = _check_gamma(gamma)
    if isinstance(n, bool) or not hasattr(n, "__index__") or n < 1:
        raise SettingsError(f"n={n!r} is not a number of records: it must be an integer >= 1.")
    try:
        tau = float(kl)
    except (TypeError, ValueError):
        tau = math.nan
    if not tau >= 0:
        raise SettingsError(f"kl={kl!r} is not a divergence: it must be >= 0.")
    if tau == 0:
        return gamma
    try:
        allowed = (int(n) + 1) * tau * (1 + 1e-15)
    except OverflowError:  # an n beyond every float
        allowed = math.inf
    pinsker = math.nextafter(gamma + math.nextafter(math.sqrt(allowed / 2), math.inf), math.inf)
    low, high = 0.0, min(pinsker, 1.0) - gamma  # how much is added
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if _diverges(gamma, middle, allowed) else (middle, high)
    return min(1.0, pinsker, (gamma + high) * (1 + 1e-15))


def _diverges(gamma: float, more: float, allowed: float) -> bool:
    """Tell whether kl(gamma || gamma + more) is at least what is allowed, whatever the rounding."""
    if more >= 1 - gamma:
        return True
    one = -gamma * math.log1p(more / gamma)
    other = -(1 - gamma) * math.log1p(-more / (1 - gamma))
    # Both are off by a few roundings, and by as many of the quotient close to 1.
    unsure = 2.0**-50 * (other - one + more / (1 - gamma - more))
    return one + other - unsure >= allowed


# --- checks ---------------------------------------------------------------------------------


def _check_bound(bound: str) -> None:
    if bound not in BOUNDS:
        raise PlanError(f"bound={bound!r} is not known. The bounds are {', '.join(BOUNDS)}.")


def _check_gamma(gamma: Any) -> float:
    try:
        value = math.nan if isinstance(gamma, bool | str) else float(gamma)
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not _LEAST_GAMMA <= value < 1:
        raise PlanError(
            f"gamma={gamma!r} is not a share of pairs: it must lie strictly between 0 and 1 (from 1e-15). "
            f"It is the share of neighbouring pairs on which the promise may fail, 0.05 say."
        )
    return value


def _check_count(m: Any) -> int:
    try:
        count = 0 if isinstance(m, bool) else operator.index(m)
    except TypeError:
        count = 0
    if not 1 <= count <= _MOST_PAIRS:
        raise PlanError(
            f"m={m!r} is not a number of pairs: it must be an integer from 1 to 10^18, 'least' or 'balanced'."
        )
    return count


def _check_rho(rho: Any, gamma: float, bound: str) -> float:
    limit = min(gamma, 0.5) if bound == "dkw" else gamma
    try:
        value = float(rho)
    except (TypeError, ValueError):
        value = math.nan
    if not 0 < value < limit:
        raise PlanError(
            f"rho={rho!r} is out of range: bound={bound!r} needs 0 < rho < {limit}. "
            f"Leave it out to have it optimized."
        )
    return value


def _refuse_rho() -> NoReturn:
    raise PlanError("bound='marginal' has no rho: it holds on average. Leave rho out.")


def _exact(gamma: float) -> Fraction:
    # What the user wrote (0.3 is three tenths), not the nearest binary fraction.
    return Fraction(repr(gamma))


def _refuse(gamma: float, m: int, rho: float | None, bound: Bound) -> NoReturn:
    least_m = _PLANNERS[bound].least(gamma, rho)
    given = "" if rho is None else f" (at rho={rho})"
    try:
        least_gamma = _PLANNERS[bound].of_m(m, rho).gamma
        reach = f"{m} samples support gamma >= {round_up(least_gamma)}{given}"
    except PlanError:
        least_gamma = None
        reach = f"{m} samples support no gamma below 1{given}"
    raise PlanError(
        f"gamma={gamma} with samples={m} is out of reach: {reach}. "
        f"Raise samples to {least_m} or more, or leave it out.",
        gamma=gamma,
        m=m,
        bound=bound,
        least_gamma=least_gamma,
        least_m=least_m,
    )


def _refuse_gamma(gamma: float, least: int, bound: Bound) -> NoReturn:
    other = " or use bound='tolerance', which needs far fewer" if bound == "dkw" else ""
    raise PlanError(
        f"gamma={gamma} needs at least {least:.3g} pairs with bound={bound!r}, and nobody can evaluate more "
        f"than 10^17. Raise gamma{other}.",
        gamma=gamma,
        bound=bound,
        least_m=least,
    )


# --- tolerance: the exact binomial tail -----------------------------------------------------
#
# With q = gamma - rho and j = m - k + 1, the estimate fails to cover 1 - q of the pairs only if
# at most j - 1 of m gaps fall into the upper q of the distribution: P(Bin(m, q) <= j - 1).


def _tail(m: int, j: int, q: float) -> float:
    """P(Bin(m, q) <= j - 1), to a relative 1e-12."""
    if j <= _TERMS and -m * math.log1p(-q) <= _EXPONENT:
        # exp's argument is at most 600 and carries two roundings, each term three more:
        # 600 * 2^-52 + 3 * 500 * 2^-53 < 4e-13 in all.
        term = total = math.exp(m * math.log1p(-q))
        odds = q / (1 - q)
        for i in range(1, j):
            term *= (m - i + 1) / i * odds
            total += term
        return total
    # Binomial cdf routines err on the unsafe side at large m; this one does not.
    from scipy.special import betaincc

    return float(betaincc(j, m - j + 1, q))


def _covers(m: int, j: int, gamma: float, rho: float) -> bool:
    # One ulp off gamma - rho, since its rounding weighs as much as sqrt(m) roundings of the tail.
    q = math.nextafter(gamma - rho, 0)
    return 0 < q < 1 and _tail(m, j, q) <= rho * (1 - _MARGIN)


def _best_rho(m: int, j: int, gamma: float) -> float | None:
    """Return a rho at which `_covers`, or None if there is none.

    h(rho) = tail - rho has derivative Beta(k, j)-density(1 - gamma + rho) - 1. Up to the mode of
    that density h is convex, beyond it concave with h(gamma) = 1 - gamma > 0. So the feasible
    rho form one interval, and if there are any, the minimum of the convex part is one.
    """
    k = m - j + 1
    if k < 2:
        return None
    constant = _log_factorials(m, k) - math.lgamma(j)

    def log_density(q: float) -> float:
        return constant + (k - 1) * math.log1p(-q) + ((j - 1) * math.log(q) if j > 1 else 0.0)

    mode = (j - 1) / (m - 1)
    if mode >= gamma or log_density(gamma) >= 0:
        return None
    # log_density is concave and decreasing right of the mode: Newton from the right is monotone.
    q = gamma
    for _ in range(60):
        slope = -(k - 1) / (1 - q) + (j - 1) / q
        step = log_density(q) / slope if slope < 0 else 0.0
        if not q - step > mode:
            return None  # the density stays below one: no minimum inside
        q -= step
        if step <= 1e-12 * q:
            break
    rho = gamma - q
    return rho if rho > 0 and _covers(m, j, gamma, rho) else None


def _log_factorials(m: int, k: int) -> float:
    """Return log(m! / (k-1)!), which the difference of two lgamma loses at large m."""
    if k < 1000:
        return math.lgamma(m + 1) - math.lgamma(k)
    j = m - k + 1  # Stirling's formula, with what cancels taken out; off by less than 1 / (360 k^3)
    return j * math.log(k) + (m + 0.5) * math.log1p(j / k) - j + 1 / (12 * (m + 1)) - 1 / (12 * k)


def _smallest_rho(m: int, j: int, gamma: float) -> float:
    """Return the safe end of a bisection for the least rho that covers."""
    good = _best_rho(m, j, gamma)
    assert good is not None
    bad = 0.0
    while good - bad > 1e-10 * good:
        middle = (good + bad) / 2
        good, bad = (middle, bad) if _covers(m, j, gamma, middle) else (good, middle)
    return good


def _first(start: int, feasible: Callable[[int], bool]) -> int:
    """Return the least integer >= 1 at which a monotone condition holds, sought near start."""
    high, step = max(1, start), 1
    if feasible(high):
        low = high
        while low > 0 and feasible(low):
            high, low, step = low, max(0, low - step), 2 * step
    else:
        low = high
        while not feasible(high):
            low, high, step = high, high + step, 2 * step
    while high - low > 1:
        middle = (high + low) // 2
        low, high = (low, middle) if feasible(middle) else (middle, high)
    return high


class _Tolerance:
    @staticmethod
    def _feasible(m: int, j: int, gamma: float, rho: float | None) -> bool:
        if j > m:
            return False
        if rho is None:
            return _best_rho(m, j, gamma) is not None
        return _covers(m, j, gamma, rho)

    def _least(self, j: int, gamma: float, rho: float | None, start: int) -> int:
        # For fixed j the tail falls as m grows, so feasibility is monotone in m.
        return _first(start, lambda m: self._feasible(m, j, gamma, rho))

    def least(self, gamma: float, rho: float | None) -> int:
        start = math.log(1 / (rho or gamma / 10)) / gamma
        return self._least(1, gamma, rho, int(start))

    def balanced(self, gamma: float, rho: float | None) -> int:
        exact = _exact(gamma)
        m, j = self.least(gamma, rho), 1
        while 2 * j < exact * (m + 1):
            # The least m never falls as j grows, so no j below gamma (m+1) / 2 can do.
            before, j = j, math.ceil(exact * (m + 1) / 2)
            m = self._least(j, gamma, rho, m + int((j - before) / gamma))
        return m

    def of_both(self, gamma: float, m: int, rho: float | None) -> Plan | None:
        if not self._feasible(m, 1, gamma, rho):
            return None
        low, high = 1, m + 1  # feasibility is monotone in j as well
        guess = int(gamma * m) + 2
        if guess < high:  # more than gamma*m of m gaps may not lie beyond: the density's mode
            high = guess if not self._feasible(m, guess, gamma, rho) else high
        while high - low > 1:
            middle = (low + high) // 2
            if self._feasible(m, middle, gamma, rho):
                low = middle
            else:
                high = middle
        chosen = _smallest_rho(m, low, gamma) if rho is None else rho
        return Plan(gamma, m, m - low + 1, chosen, "tolerance")

    def of_m(self, m: int, rho: float | None) -> Plan:
        if m == 1 and rho is None:
            raise PlanError("One pair supports no gamma below 1. Raise m to 2 or more.", m=m)
        # k = m: (1 - gamma + rho)^m = rho, so gamma = 1 + rho - rho^(1/m), least where rho is
        # m^(-m/(m-1)). Asking for half the margin more makes the float gamma feasible.
        free = math.exp(-m / (m - 1) * math.log(m)) if rho is None else rho
        gamma = max(free - math.expm1((math.log(free) + math.log1p(-2 * _MARGIN)) / m), _LEAST_GAMMA)
        while gamma < 1 and not _covers(m, 1, gamma, free):
            gamma = math.nextafter(gamma, 1) + 1e-15 * gamma
        if not gamma < 1:
            raise PlanError(f"m={m} supports no gamma below 1 at rho={rho}. Raise m to 2 or more.", m=m)
        return Plan(gamma, m, m, free, "tolerance")


# --- dkw: the paper's Theorem and Table -----------------------------------------------------


def _lambert_lower(x: float) -> float:
    """W_{-1}(x) for -1/e < x < 0, by Halley's iteration (math alone, to the last digit or two)."""
    u = -1 - math.log(-x)  # x = -exp(-u - 1)
    w = -1 - math.sqrt(2 * u) - 5 * u / 6  # between the bounds of Chatzigeorgiou (2013)
    for _ in range(50):
        # Solve w + log(-w) = log(-x), which does not underflow.
        f = w + math.log(w / x)
        new = w - f * w / (1 + w) if abs(1 + w) > 1e-8 else w
        if abs(new - w) <= 2e-16 * abs(w):
            return new
        w = new
    return w


def _dkw_error(m: int, rho: float) -> float:
    return rho + math.sqrt(math.log(1 / rho) / (2 * m))


def band(m: int) -> tuple[float, float]:
    """Return (rho, error): with probability 1 - rho, Φ(G₍ₖ₎) >= k/m - error for all k at once.

    The Dvoretzky-Kiefer-Wolfowitz inequality with the rho that makes rho + error least.
    """
    rho = _DKW._rho(m)
    return rho, math.sqrt(math.log(1 / rho) / (2 * m))


def running_band(m: int, rho: float) -> float:
    """Return the error of a band that holds for all k and all m at once, with probability 1 - rho.

    The same inequality at every m, with rho / (m (m + 1)) of the risk each, which sums to rho.
    """
    return math.sqrt((math.log(1 / rho) + math.log(m) + math.log(m + 1)) / (2 * m))


def _dkw_least(gamma: float, rho: float) -> float:
    return math.log(1 / rho) / (2 * (gamma - rho) ** 2)


class _DKW:
    @staticmethod
    def _rho(m: int) -> float:
        return math.exp(_lambert_lower(-1 / (4 * m)) / 2)

    def least(self, gamma: float, rho: float | None) -> int:
        if rho is None:
            rho = math.exp(_lambert_lower(-gamma / (2 * math.sqrt(math.e))) + 0.5)
        return math.ceil(_dkw_least(gamma, rho))

    def balanced(self, gamma: float, rho: float | None) -> int:
        exact = _exact(gamma)
        least = self.least(gamma, rho)

        def room(m: int) -> float:
            return m * (gamma - _dkw_error(m, self._rho(m) if rho is None else rho))

        # j = floor(room) + 1 gaps may lie beyond; a balanced m has room + 1 >= gamma (m+1) / 2.
        # That difference is convex in m, so past the least m it changes sign once.
        def possible(m: int) -> bool:
            return m >= least and room(m) + 1 >= gamma * (m + 1) / 2 * (1 - 1e-9)

        def reaches(j: int, m: int) -> bool:
            return m >= least and room(m) >= j

        m = least if possible(least) else _first(4 * least, possible)
        while True:
            j = math.floor(room(m)) + 1
            if 2 * j >= exact * (m + 1):
                return m
            m = _first(m + 1, functools.partial(reaches, j))  # one more gap may lie beyond

    def of_both(self, gamma: float, m: int, rho: float | None) -> Plan | None:
        if m < self.least(gamma, rho):
            return None
        if rho is None:
            # Row 2 of the Table; at the least m of row 1 its own rho is needed.
            rho = self._rho(m)
            if not (rho < min(gamma, 0.5) and _dkw_error(m, rho) <= gamma) or m == self.least(gamma, None):
                rho = math.exp(_lambert_lower(-gamma / (2 * math.sqrt(math.e))) + 0.5)
        k = min(m, math.ceil(m * (1 - gamma + _dkw_error(m, rho))))
        return Plan(gamma, m, max(k, 1), rho, "dkw")

    def of_m(self, m: int, rho: float | None) -> Plan:
        rho = self._rho(m) if rho is None else rho
        gamma = _dkw_error(m, rho)
        if not gamma < 1:
            raise PlanError(
                f"m={m} supports no gamma below 1 by the bound 'dkw': it would be "
                f"{round_up(gamma)}. Raise m to {math.floor(_dkw_least(1.0, rho)) + 1} or more.",
                m=m,
                bound="dkw",
            )
        return Plan(gamma, m, m, rho, "dkw")


# --- marginal: exchangeability alone --------------------------------------------------------


class _Marginal:  # rho is always None here
    def least(self, gamma: float, _: float | None) -> int:
        return max(1, math.ceil(1 / _exact(gamma) - 1))

    def balanced(self, gamma: float, _: float | None) -> int:
        # Every feasible m is balanced here: take the one at which the estimate is as steady
        # as the tolerance bound's.
        return _Tolerance().balanced(gamma, None)

    def of_both(self, gamma: float, m: int, _: float | None) -> Plan | None:
        k = math.ceil((1 - _exact(gamma)) * (m + 1))
        return Plan(gamma, m, k, None, "marginal") if k <= m else None

    def of_m(self, m: int, _: float | None) -> Plan:
        gamma = max(1 / (m + 1), _LEAST_GAMMA)
        while _exact(gamma) * (m + 1) < 1:
            gamma = math.nextafter(gamma, 1)
        return Plan(gamma, m, m, None, "marginal")


_PLANNERS: dict[str, _Tolerance | _DKW | _Marginal] = {
    "tolerance": _Tolerance(),
    "dkw": _DKW(),
    "marginal": _Marginal(),
}
