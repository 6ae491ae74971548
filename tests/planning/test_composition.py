"""What several answers cost together is never understated, and close to the true cost."""

import itertools
import math
import sys
import tracemalloc

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import comb, gammaln
from scipy.stats import norm

from privatize import Bernstein, Budget, Exponential, Gaussian, Laplace
from privatize.budgets.charges import Charge
from privatize.errors import SettingsError
from privatize.mechanisms.base import complete
from privatize.noise import grid as noise
from privatize.planning.composition import NOTHING, Chosen, Cost, _as_one_gaussian, _response, tight
from tests.cases import for_each

NUMBERS = itertools.count()


@pytest.fixture
def accounting():
    """Skip where the extra is not installed."""
    return pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")


class TestCost:
    def test_fits_component_by_component(self):
        """More of one does not make up for too much of another."""
        cap = Cost.of(1, 1e-6, 0.1)
        assert cap.fits(cap) and NOTHING.fits(cap)
        for other in (Cost.of(1.1, 0, 0), Cost.of(0, 2e-6, 0), Cost.of(0, 0, 0.2)):
            assert not other.fits(cap)
        assert Cost.of(1, 0, 0.3).larger(Cost.of(0.5, 1e-6, 0.1)) == Cost.of(1, 1e-6, 0.3)
        assert (cap + cap) - cap == cap


def kind_of(mechanism, epsilon, delta):
    """Return what composition knows about a release of any mechanism."""
    return complete(mechanism).composition_kind(epsilon, delta)


class TestKind:
    def test_the_gaussian_counts_by_its_noise(self):
        """The ratio σ/Δ is all that matters, and the mechanism's own σ is what is counted."""
        name, ratio, apart = kind_of(Gaussian(), 0.5, 1e-6).split()
        assert name == "gaussian" and float(ratio) == Gaussian().scale(1.0, 0.5, 1e-6)
        assert 0 < float(apart) < 2**-84

    @pytest.mark.parametrize("mechanism", [Laplace(), Exponential(["a", "b"]), Bernstein(lattice=3)])
    def test_the_others_count_by_their_promise(self, mechanism):
        """Only ε and δ are known for sure, whatever the noise is."""
        assert kind_of(mechanism, 0.5, 0.0) == "dp 0.5 0.0"

    def test_a_users_own_gaussian_is_not_ours(self):
        """A mechanism of that name may add any noise: only its promise counts."""
        other = type("Gaussian", (), {"__module__": "mine", "scale": lambda *args: 100.0})()
        assert kind_of(other, 1, 1e-6) == "dp 1.0 1e-06"
        subclass = type("Gaussian", (Gaussian,), {"__module__": "mine"})()
        assert kind_of(subclass, 1, 1e-6) == "dp 1.0 1e-06"

    def test_it_can_be_read_back(self, accounting):
        """What is written in the ledger is a number to the last digit."""
        for epsilon in (1e-3, 0.1, 1 / 3, 2.5):
            for mechanism, delta in ((Laplace(), 0.0), (Gaussian(), 1e-7)):
                assert math.isfinite(tight({kind_of(mechanism, epsilon, delta): 1}, 1e-5))


def gaussian_delta(epsilon, sigma, k):
    """Return δ of k releases with noise σ: they are one with noise σ/√k."""
    mu = math.sqrt(k) / sigma
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))


def response_delta(epsilon, each):
    """Return δ of the worst ε-private releases, by going through all outcomes of randomized responses."""
    total = 0.0
    for signs in itertools.product((1, -1), repeat=len(each)):
        loss = sum(sign * e for sign, e in zip(signs, each, strict=True))
        chance = math.prod(1 / (1 + math.exp(-sign * e)) for sign, e in zip(signs, each, strict=True))
        total += chance * max(0.0, 1 - math.exp(epsilon - loss))
    return total


def kairouz(i, k, epsilon):
    """Return Theorem 3.3 of Kairouz, Oh & Viswanath: ((k-2i)ε, δᵢ) is optimal for k releases."""
    terms = (
        comb(k, j, exact=True) * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon))
        for j in range(i)
    )
    return sum(terms) / (1 + math.exp(epsilon)) ** k


@pytest.mark.usefixtures("accounting")
class TestTight:
    @for_each("k", [1, 2, 10, 100, 10_000])
    @for_each("sigma", [1.0, 4.2, 50.0])
    @for_each("delta", [1e-9, 1e-5])
    def test_gaussians(self, k, sigma, delta):
        """k answers with noise σ are one with σ/√k, whose δ is known: the bound covers it, and is near."""
        found = tight({f"gaussian {sigma!r}": k}, delta)
        assert gaussian_delta(found, sigma, k) <= delta
        mu = math.sqrt(k) / sigma
        best = brentq(lambda e: gaussian_delta(e, sigma, k) - delta, 0, 10 * mu * (mu + 8))
        assert best <= found <= 1.3 * best + 0.01

    @for_each("k", [1, 2, 5, 10])
    @for_each("epsilon", [0.05, 0.5, 1.0])
    @for_each("delta", [1e-9, 1e-6, 1e-2])
    def test_pure_releases(self, k, epsilon, delta):
        """The bound is never below the optimum of Kairouz, Oh & Viswanath, hardly above it or the sum."""
        found = tight({f"dp {epsilon!r} 0.0": k}, delta)
        assert response_delta(found, [epsilon] * k) <= delta
        below = found * (1 - 2e-3) - 1e-3 * math.sqrt(k)
        assert below <= 0 or response_delta(below, [epsilon] * k) > delta
        assert found <= k * epsilon * (1 + 1e-3)

    @for_each("epsilon", [0.003, 0.02, 0.1])
    @for_each("delta", [1e-14, 1e-12, 1e-9, 1e-5])
    def test_a_thousand_pure_releases(self, epsilon, delta):
        """Rounding errors of a thousand convolutions are covered as well, also where δ is tiny."""
        k, flipped = 1000, np.arange(1001)
        yes, no = -math.log1p(math.exp(-epsilon)), -epsilon - math.log1p(math.exp(-epsilon))
        ways = gammaln(k + 1) - gammaln(flipped + 1) - gammaln(k - flipped + 1)
        chances = np.exp(ways + (k - flipped) * yes + flipped * no)
        losses = (k - 2 * flipped) * epsilon
        found = tight({f"dp {epsilon!r} 0.0": k}, delta)
        over = losses > found
        assert (chances[over] * -np.expm1(found - losses[over])).sum() <= delta * (1 + 1e-9)

    def test_against_the_published_formula(self):
        """The same optimum, written as in the theorem, at its own points."""
        for k, epsilon in ((3, 0.5), (6, 0.3), (10, 0.2)):
            for i in range(1, k // 2):
                delta = kairouz(i, k, epsilon)
                assert delta == pytest.approx(response_delta((k - 2 * i) * epsilon, [epsilon] * k))
                found = tight({f"dp {epsilon!r} 0.0": k}, delta)
                assert (k - 2 * i) * epsilon * (1 - 1e-9) <= found <= (k - 2 * i) * epsilon + 2e-3 * k

    @pytest.mark.parametrize(
        "each", [[0.1, 0.2, 0.3], [0.01] * 4 + [1.0], [0.5, 0.5, 0.37, 0.11], [2.0, 0.003]]
    )
    def test_different_releases(self, each):
        """The bound must hold, too, if every release has an ε of its own."""
        counts = {f"dp {epsilon!r} 0.0": each.count(epsilon) for epsilon in set(each)}
        for delta in (1e-6, 1e-3):
            found = tight(counts, delta)
            assert response_delta(found, each) <= delta and found <= sum(each) * (1 + 1e-3)

    def test_a_delta_of_its_own_is_spent_first(self):
        """(ε, δ)-private releases can fail outright: only the rest of δ can be used for a smaller ε."""
        assert tight({"dp 0.5 1e-06": 1}, 1e-7) == math.inf
        assert tight({"dp 0.5 1e-06": 3}, 2e-6) == math.inf
        found = tight({"dp 0.5 1e-06": 2}, 1e-3)
        fails = 1 - (1 - 1e-6) ** 2
        assert fails + (1 - fails) * response_delta(found, [0.5] * 2) <= 1e-3
        assert found >= tight({"dp 0.5 0.0": 2}, 1e-3) * (1 - 1e-6)

    def test_mixtures(self):
        """A Gaussian and pure releases: at least as much as each alone, at most the sum of both."""
        gaussian, pure = {"gaussian 5.0": 10}, {"dp 0.1 0.0": 10}
        both = tight(gaussian | pure, 1e-5)
        assert both >= max(tight(gaussian, 1e-5), tight(pure, 1e-5)) * (1 - 1e-6)
        assert both <= tight(gaussian, 1e-5) + 1.0

    @pytest.mark.parametrize("kind", ["gaussian 3.0", "dp 0.2 0.0", "dp 0.2 1e-09"])
    def test_more_releases_cost_more(self, kind):
        """One more answer is never a way to have spent less."""
        counts = [1, 2, 3, 5, 10, 30, 100]
        costs = [tight({kind: count}, 1e-5) for count in counts]
        assert costs == sorted(costs)
        deltas = [tight({kind: 10}, delta) for delta in (1e-8, 1e-6, 1e-4, 1e-2)]
        assert deltas == sorted(deltas, reverse=True)
        assert tight({kind: 10, "dp 0.01 0.0": 1}, 1e-5) >= costs[4] * (1 - 1e-6)

    def test_nothing_costs_nothing(self):
        """Without releases there is no ε; without δ there is no tight bound."""
        assert tight({}, 1e-5) == 0
        assert tight({"dp 0.1 0.0": 1}, 0) == math.inf

    def test_many_answers_do_not_take_all_memory(self):
        """The ledger is locked meanwhile: a long history must not need an array as long as its ε."""
        tracemalloc.start()
        try:
            found = tight({"dp 1.0 0.0": 1000}, 1e-6)
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert 400 < found <= 1000 and most < 64e6

    @pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
    def test_renyi_divergence_of_randomized_response(self, epsilon):
        """The Rényi bound of a pure release is that of its worst case, computed by hand."""
        yes, no = math.exp(epsilon) / (1 + math.exp(epsilon)), 1 / (1 + math.exp(epsilon))
        for order in (1.5, 2.0, 8.0):
            direct = math.log(yes**order * no ** (1 - order) + no**order * yes ** (1 - order)) / (order - 1)
            assert _response(epsilon, np.array([order]))[0] == pytest.approx(direct)
            assert direct <= epsilon


@pytest.mark.usefixtures("accounting")
class TestBudgets:
    def charged(self, epsilon, count):
        """Return what so many answers spent of a tight budget, and the sum of their ε."""
        budget = Budget(
            f"tight {next(NUMBERS)}", epsilon=1, delta=1e-5, gamma=0, composition="tight", ledger="memory"
        )
        facts = {
            "function": "f",
            "key": "",
            "dataset": "",
            "n": 1,
            "mechanism": "m",
            "delta": 0.0,
            "gamma": 0.0,
            "strength": "plain",
        }
        for _ in range(count):
            budget.reserve(Charge(epsilon=epsilon, kind=f"dp {epsilon!r} 0.0", **facts))
        return budget.verify(), count * epsilon

    def test_never_above_the_sum(self):
        """Asking for tight composition is never a way to pay more."""
        for count in (1, 5, 10):
            spent, total = self.charged(0.1, count)
            assert spent.epsilon <= total + 1e-12 and spent.epsilon <= 1
        spent, total = self.charged(0.01, 150)
        assert spent.epsilon < 1 < total and spent.delta == 1e-5

    def test_the_sum_while_it_fits(self):
        """As long as the sum fits, no δ is spent for a tighter bound."""
        spent, total = self.charged(0.1, 8)
        assert spent.epsilon == pytest.approx(total) and spent.delta == 0

    def test_needs_a_delta(self):
        """With δ=0 no bound is tighter than the sum, so a tight budget must be refused."""
        with pytest.raises(SettingsError, match="needs a delta"):
            Budget(f"tight {next(NUMBERS)}", epsilon=1, gamma=1, composition="tight", ledger="memory")


def test_without_dp_accounting(monkeypatch):
    """A missing library must be named at once, with a remedy, and before a budget is opened."""
    for name in ("dp_accounting", "dp_accounting.pld", "dp_accounting.rdp"):
        monkeypatch.setitem(sys.modules, name, None)
    name = f"tight {next(NUMBERS)}"
    with pytest.raises(SettingsError, match=r"pip install 'privatize-dp\[accounting\]'"):
        Budget(name, epsilon=1, delta=1e-6, gamma=1, composition="tight", ledger="memory")
    assert Budget(name, epsilon=1, delta=1e-6, gamma=1, ledger="memory").spent == (0, 0, 0)


class TestGaussiansTogether:
    """Gaussian releases together are exactly one release, with the distance of discrete noise added."""

    @for_each("k", [1, 2, 10, 100, 1000])
    @for_each(("epsilon", "each"), [(0.1, 1e-6), (0.5, 1e-7), (1.0, 1e-9)])
    @for_each("delta", [1e-9, 1e-6, 1e-3])
    def test_it_is_exact(self, k, epsilon, each, delta):
        """A user would be charged for a looser bound, or for less than what the answers reveal."""
        kind = kind_of(Gaussian(), epsilon, each)
        found = _as_one_gaussian({kind: k}, delta)
        sigma, apart = map(float, kind.split()[1:])
        if found == math.inf:  # e^ε times the distance is more than δ
            pytest.importorskip("dp_accounting")  # then it is counted by the Rényi divergence
            assert tight({kind: k}, delta) > math.log(delta / k / 2**-84) - 5
            return
        assert tight({kind: k}, delta) == found
        slack = k * apart * (1 + math.exp(found))
        assert gaussian_delta(found, sigma, k) + slack <= delta * (1 + 1e-7)
        if found > 0 and slack < delta / 100:  # and it is the least one
            assert gaussian_delta(found * (1 - 1e-4), sigma, k) > delta * (1 - 1e-9) - 1.01 * slack

    def test_one_release_costs_what_it_promised(self):
        """A user's single answer would cost more, or less, than its own ε at its own δ."""
        for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-5), (5.0, 1e-9)):
            found = tight({kind_of(Gaussian(), epsilon, delta): 1}, delta)
            assert epsilon * (1 - 1e-6) <= found <= epsilon * (1 + 1e-4)

    def test_it_needs_no_accounting(self, monkeypatch):
        """A user without the extra could not add up Gaussian answers alone."""
        monkeypatch.setitem(sys.modules, "dp_accounting.pld", None)
        monkeypatch.setitem(sys.modules, "dp_accounting.rdp", None)
        assert 0.5 < tight({kind_of(Gaussian(), 0.5, 1e-6): 4}, 1e-5) < 2

    def test_it_is_never_above_renyi(self, accounting):
        """A user's budget would allow fewer answers than before."""
        for epsilon, delta in ((0.1, 1e-6), (0.5, 1e-7)):
            kind = kind_of(Gaussian(), epsilon, delta)
            old = " ".join(kind.split()[:2])  # as earlier ledgers wrote it: no distance, so Rényi
            for k in (1, 10, 100):
                assert tight({kind: k}, 1e-5) < tight({old: k}, 1e-5)
                assert tight({kind: k, old: 1}, 1e-5) >= tight({kind: k}, 1e-5)

    def test_against_the_privacy_loss_distribution(self, accounting):
        """Somebody else's numerical composition must come to the same, from the same noise."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        counts = {kind_of(Gaussian(), 0.3, 1e-6): 3, kind_of(Gaussian(), 0.1, 1e-7): 20}
        joint = None
        for kind, count in counts.items():
            one = pld.from_gaussian_mechanism(float(kind.split()[1]), value_discretization_interval=1e-4)
            many = one.self_compose(count)
            joint = many if joint is None else joint.compose(many)
        for delta in (1e-8, 1e-5, 1e-3):
            assert tight(counts, delta) == pytest.approx(joint.get_epsilon_for_delta(delta), rel=2e-3)

    def test_where_the_distances_take_all_of_delta(self, accounting):
        """A user's total at a δ far below that of each answer would be too small."""
        kind = kind_of(Gaussian(), 5.0, 1e-3)
        assert _as_one_gaussian({kind: 10}, 1e-12) == math.inf
        assert tight({kind: 10}, 1e-12) == tight({" ".join(kind.split()[:2]): 10}, 1e-12)  # by Rényi

    def test_the_distance_is_what_the_noise_has(self):
        """A user's total would leave out what discrete noise adds: the grid must be as fine as claimed."""
        for epsilon, delta in ((0.1, 1e-6), (2.0, 1e-9), (30.0, 1e-3)):
            claimed = float(kind_of(Gaussian(), epsilon, delta).split()[2])
            for size in (1, 1000, 10**6):
                exponent, sigma = noise.gaussian_grid(1.0, epsilon, delta, size, Gaussian().scale)
                assert size / (24 * sigma**2) <= claimed
                # And the noise is at least as wide as the ratio that is counted, with a margin for rounding.
                used = sigma * 2.0**exponent
                rounded = 1 + math.sqrt(size) * 2.0**exponent
                assert used / rounded >= Gaussian().scale(1.0, epsilon, delta)


class TestChosenAsYouGo:
    """Releases whose parameters depend on earlier answers: Σ(Δ/σ)² against a limit that was fixed before."""

    def test_it_costs_what_fixed_releases_cost(self):
        """Whoever asks as they go would pay more than needed, or less than one Gaussian release costs."""
        counts = {kind_of(Gaussian(), 0.1, 1e-6): 40, kind_of(Gaussian(), 0.3, 1e-7): 2}
        fixed = tight(counts, 1e-5)
        chosen = Chosen.of(counts).epsilon_at(Cost.of(5, 1e-5, 0))
        assert fixed <= chosen < fixed * 1.001

    def test_what_is_not_gaussian_is_added(self):
        """A tight bound would be used for noise that it is not proven for."""
        cap = Cost.of(2, 1e-5, 0)
        assert Chosen.of({"dp 0.25 1e-06": 2, "catalogue abc": 1}).epsilon_at(cap) == 0.5
        gaussian = kind_of(Gaussian(), 0.5, 1e-6)
        alone = Chosen.of({gaussian: 1}).epsilon_at(Cost.of(1.5, 8e-6, 0))
        both = Chosen.of({gaussian: 1, "dp 0.25 1e-06": 2}).epsilon_at(cap)
        assert both == pytest.approx(0.5 + alone)

    def test_what_does_not_fit_at_all(self):
        """Distances that nobody wrote down, or that take more of δ than is set aside, would count as none."""
        for kind, cap in (
            ("gaussian 4.0", Cost.of(2, 1e-5, 0)),  # from an earlier ledger
            ("gaussian 4.0 2e-9", Cost.of(2, 1e-5, 0)),  # (1 + e²) 2e-9 is more than 1e-5 / 1024
            ("gaussian 4.0 1e-26", Cost.of(50, 1e-5, 0)),
            ("dp 3.0 0.0", Cost.of(2, 1e-5, 0)),
            ("dp 1.0 1e-05", Cost.of(2, 1e-5, 0)),
        ):
            counts = {kind_of(Gaussian(), 0.1, 1e-6): 1, kind: 1}
            assert Chosen.of(counts).epsilon_at(cap) == math.inf

    def test_an_analyst_who_stops_when_it_pays(self):
        """Whoever chooses σ from the answers so far would see more than δ of a pair at ε.

        Two neighbours with a gap of 1. The analyst spends a fourth of R, and then all the rest at once only
        where the answers favour one neighbour; elsewhere nothing. 400,000 transcripts, seed 0: the share
        beyond ε is at most δ; one false alarm in 30,000 (4 standard errors).
        """
        epsilon, delta, runs = 1.0, 0.05, 400_000
        sigma = brentq(
            lambda s: (
                norm.cdf(0.5 / s - epsilon * s) - np.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s) - delta
            ),
            0.1,
            10,
        )
        rng, limit = np.random.default_rng(0), 1 / sigma**2

        def loss(ratio, size):
            return rng.normal(ratio / 2, np.sqrt(ratio), size)

        for threshold in (-0.5, 0.0, 0.3, 0.6):
            total = loss(limit / 4, runs)
            on = total < threshold
            total[on] += loss(limit * 3 / 4, on.sum())
            beyond = np.maximum(0, 1 - np.exp(epsilon - total))
            assert beyond.mean() <= delta + 4 * beyond.std() / np.sqrt(runs)
