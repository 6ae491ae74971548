"""What several answers cost together: sums, and tighter bounds where they are proven. Pure arithmetic."""

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from privatize.errors import SettingsError
from privatize.planning.bounds import exact
from privatize.planning.gaussian import least_epsilon, log2_1p_exp


@dataclass(frozen=True)
class Cost:
    """An amount of ε, δ and γ, and of the average of γ over calibrations, which has no cap.

    Examples
    --------
    >>> Cost.of(0.1, 0, 0.05) + Cost.of(0.2, 1e-6, 0.05)
    Cost(epsilon=0.3, delta=1e-06, gamma=0.1)
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    gamma: Fraction = Fraction(0)
    average: Fraction = Fraction(0)

    @classmethod
    def of(cls, epsilon: float, delta: float, gamma: float) -> "Cost":
        """Return floating-point numbers as a cost."""
        return cls(exact(epsilon), exact(delta), exact(gamma))

    @property
    def numbers(self) -> tuple[Fraction, ...]:
        """All of them, in the order of the fields."""
        return self.epsilon, self.delta, self.gamma, self.average

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(*map(operator.add, self.numbers, other.numbers))

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(*map(operator.sub, self.numbers, other.numbers))

    def fits(self, cap: "Cost") -> bool:
        """Tell whether no component is above the cap's."""
        return self.epsilon <= cap.epsilon and self.delta <= cap.delta and self.gamma <= cap.gamma

    def larger(self, other: "Cost") -> "Cost":
        """Return the larger of each component."""
        return Cost(*map(max, self.numbers, other.numbers))

    def __repr__(self) -> str:
        return (
            f"Cost(epsilon={float(self.epsilon):g}, delta={float(self.delta):g}, gamma={float(self.gamma):g})"
        )


NOTHING = Cost()


def tight(counts: Mapping[str, int], delta: float) -> float:
    """Return an ε that holds at δ for all of the counted releases together.

    If all are Gaussian, with parameters that were fixed beforehand, they are exactly one Gaussian release
    with Δ/σ = √Σ(Δᵢ/σᵢ)², up to their total-variation distances from it. Otherwise dp-accounting computes two
    bounds, and the smaller one is returned: their Rényi divergences added up and converted, and, if all are
    known by ε and δ alone, the exact composition of their dominating pairs. The discrete Gaussian has the
    Rényi divergence α·Δ²/(2σ²) of the continuous one. A pure ε has at most that of randomized response:
    every ε-private mechanism is a post-processing of it.

    References
    ----------
    Balle & Wang, ICML 2018, Theorem 8. Canonne, Kamath & Steinke, NeurIPS 2020, Theorem 4. Kairouz, Oh &
    Viswanath, ICML 2015, Theorem 2.1. Mironov, CSF 2017.
    """
    if delta <= 0 or not counts:
        return 0.0 if not counts else math.inf
    together = _as_one_gaussian(counts, delta)
    if together < math.inf:
        return together
    try:
        from dp_accounting.pld import common, privacy_loss_distribution
        from dp_accounting.rdp import rdp_privacy_accountant as rdp
    except ImportError:
        raise SettingsError("""composition='tight' needs dp-accounting: pip install
            'privatize-dp[accounting]'. Or leave it out: the sum of all epsilons holds as well.""") from None
    orders = np.array(rdp.DEFAULT_RDP_ORDERS, dtype=float)
    total, spent = np.zeros(len(orders)), 0.0
    pure = []
    for kind, count in counts.items():
        name, *numbers = kind.split()
        if name == "gaussian":
            total += count * orders / (2 * float(numbers[0]) ** 2)
            continue
        epsilon, own_delta = map(float, numbers)
        pure.append((epsilon, own_delta, count))
        total += count * _response(epsilon, orders)
        spent += count * own_delta
    found = [math.inf]
    if spent < delta:
        found.append(float(rdp.compute_epsilon(orders, total, delta - spent)[0]))
    slack = 1e-11 + 1e-16 * sum(counts.values())  # how much of δ the convolutions may round away
    if len(pure) == len(counts) and delta > 2 * slack:
        joint: Any = None
        # The grid is fine, but not so fine that memory grows with the history.
        span = sum(epsilon * count for epsilon, _, count in pure)
        step = max(min(1e-4, min(epsilon for epsilon, _, _ in pure) / 20), span / 2e5)
        for epsilon, own_delta, count in pure:
            one = privacy_loss_distribution.from_privacy_parameters(
                common.DifferentialPrivacyParameters(epsilon, own_delta), value_discretization_interval=step
            )
            many = one.self_compose(count)
            joint = many if joint is None else joint.compose(many)
        found.append(float(joint.get_epsilon_for_delta(delta - slack)))
    return max(0.0, min(found)) * (1 + 1e-9)  # a margin for the rounding of all of this


@dataclass(frozen=True)
class Chosen:
    """What releases cost together whose ε and δ may depend on earlier answers, with tight bounds.

    Gaussian releases are dominated by one Gaussian release with (Δ/σ)² = R as long as Σ(Δᵢ/σᵢ)² stays below
    an R that was fixed beforehand. Everything else is added up. The smaller of two such bounds is none: who
    knows the answers so far could steer towards whichever is more favourable to them.

    Attributes
    ----------
    epsilon, delta : Fraction
        The sums of everything that is not Gaussian.
    ratio : float
        Σ(Δᵢ/σᵢ)² of what is Gaussian.
    distance : float
        The sum of the total-variation distances of discrete Gaussian noise from the continuous one.

    References
    ----------
    Smith & Thakurta 2022, arXiv 2210.17520, "Fully adaptive composition for Gaussian differential privacy".
    """

    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    ratio: float = 0.0
    distance: float = 0.0

    @classmethod
    def of(cls, counts: Mapping[str, int]) -> "Chosen":
        """Return what the counted releases are together."""
        found = cls()
        for kind, count in counts.items():
            name, *numbers = kind.split()
            if name == "dp":
                epsilon, delta = (count * exact(float(number)) for number in numbers)
                found += cls(epsilon, delta)
            elif name != "catalogue":  # earlier ledgers did not write the distance down
                sigma, distance = (*map(float, numbers), math.inf)[:2]
                found += cls(ratio=count / sigma**2, distance=count * distance)
        return found

    def __add__(self, other: "Chosen") -> "Chosen":
        return Chosen(*map(operator.add, self._numbers, other._numbers))

    def larger(self, other: "Chosen") -> "Chosen":
        """Return the larger of each component."""
        return Chosen(*map(max, self._numbers, other._numbers))

    @property
    def _numbers(self) -> tuple[Any, ...]:
        return self.epsilon, self.delta, self.ratio, self.distance

    @property
    def sigma(self) -> float:
        """σ/Δ of the one Gaussian release that all Gaussian ones are together, rounded down."""
        return 1 / (math.sqrt(self.ratio) * (1 + 1e-12))

    def epsilon_at(self, cap: Cost) -> float:
        """Return the ε of all of them at the δ of a cap; infinity if they do not fit for another reason.

        What is not Gaussian was released before, so what it leaves of the caps is fixed. Of δ, 2⁻¹⁰ of what
        is left is for distances: two limits, each fixed beforehand, and not a sum of two amounts.
        """
        if not self.ratio:
            return float(self.epsilon)
        epsilon, delta = float(cap.epsilon - self.epsilon), float(cap.delta - self.delta)
        if epsilon < 0 or delta <= 0 or self.distance == math.inf:
            return math.inf
        if math.log2(self.distance or 1e-300) + log2_1p_exp(epsilon) > math.log2(delta) - 10:
            return math.inf
        return float(self.epsilon) + least_epsilon(self.sigma, delta * (1 - 2**-10)) * (1 + 1e-9)


def _as_one_gaussian(counts: Mapping[str, int], delta: float) -> float:
    """Return the ε of Gaussian releases together, exactly; infinity if that is not known.

    With rounded continuous noise they are (ε, δ₀)-private for the δ₀ of one Gaussian release. With discrete
    noise their distribution, on each of two neighbours, is off by at most the sum τ of all total-variation
    distances, so they are (ε, δ₀ + (1 + e^ε) τ)-private.
    """
    if not all(kind.startswith("gaussian ") for kind in counts):
        return math.inf
    found = Chosen.of(counts)
    taken = 0.0  # how much of δ the distances take
    while taken < delta and found.distance < math.inf:
        epsilon = least_epsilon(found.sigma, delta - taken)
        if epsilon > 600:  # e^ε τ takes all of δ
            return math.inf
        needed = (1 + math.exp(epsilon)) * found.distance * (1 + 1e-12)
        if needed <= taken:
            return epsilon
        taken = 1.001 * needed
    return math.inf


def _response(epsilon: float, orders: Any) -> Any:
    """Return the Rényi divergences of randomized response, the worst of all ε-private mechanisms."""
    yes, no = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
    one = orders * yes + (1 - orders) * no
    other = orders * no + (1 - orders) * yes
    return np.logaddexp(one, other) / (orders - 1)
