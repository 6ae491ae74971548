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
    random neighbouring pairs, so for up to gamma n of n people, in expectation;
``rho``
    the confidence of the sampling: with probability at least ``1 - rho`` over the
    calibration, the estimate covers a share ``1 - gamma + rho`` of all pairs.

Pure arithmetic: nothing here draws or runs anything. The proofs are in
``docs/bounds.md``.
"""

import functools
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, get_args

from privatize.display.cards import Card, Rows
from privatize.display.charts import Chart, Color, Layer, onto
from privatize.display.figures import round_up
from privatize.errors import PlanError
from privatize.planning.bounds import LEAST_GAMMA, Bounding, Point, exact
from privatize.planning.dkw import DKW
from privatize.planning.groups import gamma_within
from privatize.planning.marginal import Marginal
from privatize.planning.numbers import as_float, as_integer
from privatize.planning.tolerance import Tolerance

Bound = Literal["tolerance", "dkw", "marginal"]
BOUNDS: tuple[str, ...] = get_args(Bound)
_BOUNDS: dict[str, Bounding] = {"tolerance": Tolerance(), "dkw": DKW(), "marginal": Marginal()}
_MOST_PAIRS = 10**18  # beyond this, floats run out of digits


@dataclass(frozen=True, slots=True)
class Plan:
    """An operating point: sample m pairs, take the k-th smallest gap, and gamma holds.

    A plan is checked when it is made, so one that breaks its own bound cannot exist.

    Attributes
    ----------
    gamma : float
        The share of random neighbouring pairs on which the promise may fail.
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
        object.__setattr__(self, "gamma", check_gamma(self.gamma))
        object.__setattr__(self, "m", _check_count(self.m))
        if not 1 <= as_integer(self.k) <= self.m:
            raise PlanError(f"k={self.k!r} is not an index from 1 to m={self.m}.")
        object.__setattr__(self, "k", as_integer(self.k))
        object.__setattr__(self, "rho", _check_rho(self.rho, self.gamma, self.bound))
        if not _BOUNDS[self.bound].holds(Point(self.gamma, self.m, self.k, self.rho)):
            message = (
                f"k={self.k} of m={self.m} gaps does not support gamma={self.gamma} by the bound "
                f"{self.bound!r} with rho={self.rho}. Let plan(gamma={self.gamma}, m={self.m}, "
                f"bound={self.bound!r}) choose k."
            )
            raise PlanError(message, gamma=self.gamma, m=self.m, bound=self.bound)

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
        low, high = max(self.gamma / 10, LEAST_GAMMA), min(self.gamma * 10, 0.9)
        gammas = [low * (high / low) ** (i / 20) for i in range(21)]
        colors: dict[str, Color] = {"dkw": "orange", "tolerance": "blue", "marginal": "green"}
        counts = {name: [_BOUNDS[name].least(g, None) for g in gammas] for name in colors}
        layers = [
            Layer("line", gammas, counts[name], (), f"{name}, the least m", color)
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
    share: float | None = None,
) -> Plan:
    """Choose m, k and rho (or gamma) for a promise, at the paper's operating points or better.

    Parameters
    ----------
    gamma : float, optional
        The share of random neighbouring pairs on which the promise may fail, in (0, 1). Without it, `m` must
        be given and the smallest gamma that m pairs support is found (then k = m).
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
    share : float, optional
        The share of P of a group, down to which gamma is promised to a group by itself: the promise may fail
        on a share gamma of the pairs in which one of its people is replaced. The plan's own gamma, for
        everybody, is then ``share * gamma``.

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
    >>> plan(gamma=0.05, share=0.1).gamma  # for everybody, and so 0.05 for each tenth of the people
    0.005
    >>> plan(gamma=0.001, m=100)
    Traceback (most recent call last):
        ...
    privatize.errors.PlanError: gamma=0.001 with samples=100 is out of reach: 100 samples \
support gamma >= 0.0550. Raise samples to 10229 or more, or leave it out.
    """
    _check_bound(bound)
    gamma = None if gamma is None else check_gamma(gamma)
    if share is not None:
        if gamma is None:
            raise PlanError(f"""share={share!r} is about a gamma that is promised to a group: pass gamma, too.
                For what a plan is worth to a group, divide its gamma by the share.""")
        gamma = check_gamma(gamma_within(gamma, share))
    if isinstance(m, str):
        if m not in ("least", "balanced"):
            raise PlanError(f"m={m!r} is not a number of pairs, 'least' or 'balanced'.")
    elif m is not None:
        m = _check_count(m)
    if rho is not None:
        rho = _check_rho(rho, 1.0 if gamma is None else gamma, bound)
    return _planned(gamma, m, rho, bound)


# The search takes a millisecond, and `replace` rarely changes its arguments.
@functools.lru_cache(maxsize=256)
def _planned(gamma: float | None, m: int | str | None, rho: float | None, bound: Bound) -> Plan:
    """Return the plan for arguments that were checked."""
    inequality = _BOUNDS[bound]
    if gamma is None:
        if not isinstance(m, int):
            raise PlanError("A plan needs gamma, m, or both. Pass gamma=0.05, for example.")
        return Plan(*inequality.of_m(m, rho), bound)
    pairs = m if isinstance(m, int) else _number_of_pairs(m, gamma, rho, bound)
    point = inequality.of_both(gamma, pairs, rho)
    if point is None:
        _refuse(gamma, pairs, rho, bound)
    return Plan(*point, bound)


def _number_of_pairs(which: str | None, gamma: float, rho: float | None, bound: Bound) -> int:
    """Return the least or the balanced number of pairs, whichever was asked for or is the default."""
    least = _BOUNDS[bound].least(gamma, rho)
    facts: dict[str, Any] = {"gamma": gamma, "bound": bound}
    if least > _MOST_PAIRS // 10:  # so that the balanced number is within reach too
        other = " or use bound='tolerance', which needs far fewer" if bound == "dkw" else ""
        message = (
            f"gamma={gamma} needs at least {least:.3g} pairs with bound={bound!r}, and nobody can evaluate "
        )
        raise PlanError(f"{message}more than 10^17. Raise gamma{other}.", **facts, least_m=least)
    if which == "least" or (which is None and bound == "dkw"):
        return least
    if rho is not None and 2 * exact(rho) >= exact(gamma):
        message = (
            f"rho={rho} leaves less than half of gamma={gamma} to the data, so no m is balanced. Lower rho"
        )
        raise PlanError(f"{message} below {gamma / 2}, leave it out, or pass m='least'.", **facts)
    return _BOUNDS[bound].balanced(gamma, rho)


# --- checks ---------------------------------------------------------------------------------


def _check_bound(bound: str) -> None:
    if bound not in BOUNDS:
        raise PlanError(f"bound={bound!r} is not known. The bounds are {', '.join(BOUNDS)}.")


def check_gamma(gamma: Any) -> float:
    """Return a share of pairs as a float, or refuse it."""
    value = as_float(gamma)
    if not LEAST_GAMMA <= value < 1:
        raise PlanError(f"""gamma={gamma!r} is not a share of pairs: it must lie strictly between 0 and 1
            (from 1e-15). It is the share of neighbouring pairs on which the promise may fail, 0.05 say.""")
    return value


def _check_count(m: Any) -> int:
    count = as_integer(m)
    if not 1 <= count <= _MOST_PAIRS:
        raise PlanError(f"""m={m!r} is not a number of pairs: it must be an integer from 1 to 10^18, 'least'
            or 'balanced'.""")
    return count


def _check_rho(rho: Any, gamma: float, bound: str) -> float | None:
    limit = _BOUNDS[bound].largest_rho(gamma)
    if not limit:
        if rho is not None:
            raise PlanError(f"bound={bound!r} has no rho: it holds on average. Leave rho out.")
        return None
    if rho is None:
        raise PlanError(f"bound={bound!r} needs a rho.")
    value = as_float(rho)
    if not 0 < value < limit:
        raise PlanError(f"""rho={rho!r} is out of range: bound={bound!r} needs 0 < rho < {limit}. Leave it out
            to have it optimized.""")
    return value


def _refuse(gamma: float, m: int, rho: float | None, bound: Bound) -> NoReturn:
    least_m = _BOUNDS[bound].least(gamma, rho)
    given = "" if rho is None else f" (at rho={rho})"
    try:
        least_gamma = _BOUNDS[bound].of_m(m, rho).gamma
        reach = f"{m} samples support gamma >= {round_up(least_gamma)}{given}"
    except PlanError:
        least_gamma = None
        reach = f"{m} samples support no gamma below 1{given}"
    message = (
        f"gamma={gamma} with samples={m} is out of reach: {reach}. Raise samples to {least_m} or more, or"
    )
    facts = {"gamma": gamma, "m": m, "bound": bound, "least_gamma": least_gamma, "least_m": least_m}
    raise PlanError(f"{message} leave it out.", **facts)
