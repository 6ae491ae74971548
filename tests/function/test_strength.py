"""What a promise rests on: every strength says which it is, and refuses what contradicts it."""

import math
import pickle
from decimal import Decimal

import cloudpickle
import numpy as np
import pytest

from privatize import (
    Blocks,
    Budget,
    Exponential,
    Gaussian,
    Laplace,
    additive,
    privatize,
    samplers,
    seal,
    sums,
)
from privatize.calibration.refuting import refute
from privatize.errors import ArgumentError, BoundError, DataError, ExecutionError, OutputError, SettingsError
from privatize.function import question
from privatize.function.strength import GIVEN, PROVED
from tests.cases import for_each

P = samplers.uniform(0, 100)
PROVEN = {"epsilon": 1, "sensitivity": lambda n: 100 / n, "sampler": P, "seed": 1}


@privatize(**PROVEN)
def proven_mean(ages):
    """Average ages."""
    return ages.mean()


class TestUsersBound:
    def test_holds_for_all_neighbours_and_says_so(self):
        """A review board would not learn that an answer is plainly differentially private."""
        release = proven_mean.release(np.full(1000, 50.0))
        assert release.gamma == release.average_gamma == 0
        assert release.proven == PROVED == "by a bound that its author proved"
        assert math.isclose(release.sensitivity, 0.1, rel_tol=1e-9) and release.sensitivity >= 0.1
        for text in (repr(release), repr(proven_mean), release.card().html(), proven_mean._repr_html_()):
            assert "differentially private" in text and PROVED in text and "gamma=" not in text

    def test_noise_is_calibrated_to_the_bound(self):
        """Answers would be noisier than the proof allows, or too accurate to be private."""
        errors = [proven_mean(np.full(100, 50.0)) - 50 for _ in range(2000)]
        # The mean of 2,000 |Laplace(1)| has a standard deviation of 0.0224: 6 of them, false alarm 2e-9.
        assert abs(np.abs(errors).mean() - 1) < 6 * 0.0224

    def test_records_are_clipped_into_the_domain_of_the_bound(self):
        """One person with an impossible age would move the answer further than the bound allows."""
        answer = proven_mean(np.array([1e9] * 100))
        assert abs(answer - 100) < 60

    def test_a_gap_beyond_the_bound_is_an_error_that_costs_nothing(self):
        """A wrong proof would be trusted, or would spend the budget."""
        budget = Budget("refuted", epsilon=1, ledger="memory")
        wrong = proven_mean.replace(sensitivity=lambda n: 70 / n, budget=budget)
        with pytest.raises(BoundError, match="is not a bound for proven_mean"):
            wrong(np.full(100, 50.0))
        assert budget.spent.epsilon == 0

    def test_is_tried_once(self, tmp_path, monkeypatch):
        """Every process would evaluate hundreds of pairs again."""
        tried = []
        monkeypatch.setattr(question, "refute", lambda *a, **k: tried.append(1) or refute(*a, **k))
        options = PROVEN | {"store": tmp_path / "estimates.db"}
        for _ in range(2):  # a new calibrator each time, as in another process
            function = privatize(**options)(np.mean)
            found = function.estimate(50)
            assert function.remembers(50) and found.value >= 2 and found.tried > 200
        assert len(tried) == 1
        smaller = function.replace(sensitivity=lambda n: 99 / n)
        assert not smaller.remembers(50)
        with pytest.raises(BoundError):
            smaller.estimate(50)

    def test_estimates_and_errors_are_those_of_the_bound(self):
        """Nobody could plan an answer before it is asked."""
        found = proven_mean.estimate([100, 1000])
        assert [each.gamma for each in found] == [0, 0]
        assert found[1].value < found[0].value
        assert math.isclose(proven_mean.error_at(100), math.log(20), rel_tol=1e-3)
        assert math.isclose(proven_mean.epsilon_for(100, error=math.log(20)), 1, rel_tol=1e-3)
        with pytest.raises(SettingsError, match="has no plan"):
            _ = proven_mean.plan

    @for_each(
        "mechanism, delta, bound, function",
        [
            (Gaussian(), 1e-6, 1.0, lambda x: np.array([(x < 50).sum(), (x >= 50).sum()]) / math.sqrt(2)),
            (Exponential(["low", "high"]), 0.0, 1.0, lambda x: [(x < 50).sum(), (x >= 50).sum()]),
            (Laplace(), 0.0, 2.0, lambda x: np.array([(x < 50).sum(), (x >= 50).sum()])),
        ],
    )
    def test_is_in_the_norm_of_the_mechanism(self, mechanism, delta, bound, function):
        """A bound in one norm would be used as one in another, with too little noise."""
        options = PROVEN | {"mechanism": mechanism, "delta": delta}
        privatize(**(options | {"sensitivity": bound}))(function).release(np.full(50, 10.0))
        with pytest.raises(BoundError):
            privatize(**(options | {"sensitivity": 0.7 * bound}))(function)(np.full(50, 10.0))

    @for_each(
        "changes, message",
        [
            ({"gamma": 0.05}, "Pass one of"),
            ({"sensitivity": 0}, "finite number > 0"),
            ({"sensitivity": -1.0}, "finite number > 0"),
            ({"sensitivity": math.nan}, "finite number > 0"),
            ({"sensitivity": math.inf}, "finite number > 0"),
            ({"sensitivity": "1"}, "finite number > 0"),
            ({"sensitivity": True}, "finite number > 0"),
            ({"sensitivity": Decimal("2.5")}, "finite number > 0"),
            ({"sensitivity": np.array(2.5)}, "finite number > 0"),
            ({"sampler": samplers.normal(0, 1)}, "no finite bounds"),
            ({"sampler": samplers.bootstrap(np.arange(100.0))}, "draws from records"),
            ({"samples": 1000}, "estimated by sampling"),
            ({"bound": "dkw"}, "estimated by sampling"),
            ({"min_sensitivity": 1.0}, "estimated by sampling"),
            ({"batch": True}, "estimated by sampling"),
            ({"pair": lambda d, i, r: (0, 0)}, "estimated by sampling"),
            ({"mechanism": Laplace(scaled="total")}, "Leave scaled= out"),
        ],
    )
    def test_refuses_what_contradicts_it(self, changes, message):
        """A mistake in the settings would be ignored, or found only on private data."""
        with pytest.raises(SettingsError, match=message):
            privatize(**(PROVEN | changes))(np.mean)

    @for_each("bound", [lambda n: 0, lambda n: -1, lambda n: math.nan, lambda n: "1", lambda n: 1 / (n - 50)])
    def test_refuses_a_function_of_n_that_gives_no_bound(self, bound):
        """Noise would be calibrated to nonsense."""
        with pytest.raises(SettingsError):
            privatize(**(PROVEN | {"sensitivity": bound}))(np.mean)(np.full(50, 1.0))

    def test_no_error_before_the_charge_depends_on_values(self):
        """Guesses of the private column in a global would be compared with it, for nothing."""
        private, guess = np.arange(50.0) * 1.7, np.arange(50.0) * 1.7
        function = privatize(**PROVEN)(lambda ages: ages.mean() if len(guess) else 0.0)
        assert function.release(private).gamma == 0
        with pytest.raises(DataError, match="can be reached"):
            function(guess)  # the very object

    def test_takes_values_as_they_are_if_the_bound_does_not_depend_on_them(self):
        """A count on data without bounds could not be proven."""
        count = privatize(
            **(PROVEN | {"sensitivity": 1, "sampler": samplers.normal(0, 1), "domain": "as-is"})
        )
        release = count(lambda x: int((x > 1e6).sum())).release(np.array([1e7] * 30))
        assert release.sensitivity == 1.0

    def test_uses_the_p_of_sealed_data_as_its_domain(self):
        """Owners who seal data with its bounds would have to repeat them in every function."""
        data = seal(np.full(100, 50.0), name="ages of somebody", sampler=P)
        assert privatize(epsilon=1, sensitivity=1.0)(np.mean).release(data).gamma == 0


class TestLedger:
    def test_a_proven_answer_is_plain_and_names_no_p(self):
        """A budget for plain differential privacy would refuse it, or would count a gamma."""
        budget = Budget("plain answers", epsilon=3, ledger="memory")
        data = seal(np.full(1000, 50.0), name="plain people", budget=budget)
        other = privatize(epsilon=1, sensitivity=1.0, sampler=samplers.uniform(0, 99))(np.mean)
        for function in (proven_mean, other, privatize(epsilon=1)(sums.quantiles(0.5, 0, 100))):
            assert GIVEN not in function.release(data).proven
        history = budget.history().to_dict("records")
        assert [row["strength"] for row in history] == ["plain"] * 3
        assert budget.spent.gamma == 0 and budget.spent.epsilon == 3

    def test_after_a_sampled_answer_it_holds_given_that_answer(self):
        """The promise would be stronger than what holds if the question was chosen by a sampled answer."""
        budget = Budget("mixed answers", epsilon=3, gamma=0.1, ledger="memory")
        data = seal(np.full(1000, 50.0), name="mixed people", budget=budget)
        assert proven_mean.release(data).proven == PROVED
        privatize(epsilon=1, gamma=0.05, sampler=P)(np.mean)(data)
        assert proven_mean.release(data).proven == f"{PROVED}, {GIVEN}"


BUDGET = Budget("nothing is spent", epsilon=1, ledger="memory")
PEOPLE = np.random.default_rng(5).normal(size=200)


class TestOwnBound:
    def test_a_function_that_cannot_run_in_blocks_costs_nothing(self):
        """Somebody would pay for an error that does not even say what is wrong."""
        held = (each for each in "a generator cannot be sent")
        function = privatize(epsilon=1, mechanism=Blocks(-1.0, 1.0), budget=BUDGET)
        with pytest.raises(ExecutionError, match="Each block is evaluated"):
            function(lambda people: float(next(held)))(PEOPLE)
        assert BUDGET.spent.epsilon == 0

    def test_quantiles_need_no_p_and_no_gamma(self):
        """The median age of 30,000 people would not be exact at epsilon=1, as other libraries give it."""
        ages = np.random.default_rng(0).integers(18, 90, size=30_000)
        median = privatize(epsilon=1)(sums.quantiles([0.5], 0, 120))
        assert all(median(ages) == np.median(ages) for _ in range(20))
        release = pickle.loads(cloudpickle.dumps(median)).release(ages)
        assert release.gamma == 0 and release.mechanism == "Quantiles"
        assert "differentially private" in repr(release) and "Laplace" not in repr(median)
        assert median.remembers(30_000)

    @for_each(
        "options, message",
        [
            ({"mechanism": "laplace"}, "brings its own"),
            ({"mechanism": Gaussian(), "delta": 1e-6}, "brings its own"),
            ({"gamma": 0.05, "sampler": P}, "gamma= has no use"),
            ({"sensitivity": 1.0, "sampler": P}, "sensitivity= has no use"),
        ],
    )
    def test_quantiles_refuse_another_mechanism(self, options, message):
        """Somebody would believe in a mechanism that is not used."""
        with pytest.raises(SettingsError, match=message):
            privatize(epsilon=1, **options)(sums.quantiles([0.5], 0, 120))

    def test_functions_without_a_bound_need_gamma(self):
        """Somebody would get a promise that they did not write."""
        with pytest.raises(SettingsError, match="needs gamma="):
            privatize(epsilon=1, sampler=P)(np.mean)

    def test_answers_can_be_planned_where_noise_is_added(self):
        """Nobody could see how far off an answer will be before it is paid for."""
        mean = privatize(epsilon=1)(sums.means(bounds=(0, 120)))
        assert mean.error_at(1000) < mean.error_at(100) < 4
        assert math.isclose(mean.epsilon_for(100, error=mean.error_at(100)), 1, rel_tol=1e-6)
        assert [found.value for found in mean.estimate([100, 1000])] == pytest.approx([1.2, 0.12])
        with pytest.raises(SettingsError, match="No noise is added"):
            privatize(epsilon=1)(sums.quantiles(0.5, 0, 120)).estimate(100)
        with pytest.raises(SettingsError, match="number of records n"):
            mean.error_at(np.full(100, 0.123456))

    def test_a_number_in_place_of_rows_is_refused(self):
        """Every record would count as the lower bound, and nobody would notice."""
        budget = Budget("no rows", epsilon=1, ledger="memory")
        share = privatize(epsilon=1, budget=budget)(additive(lambda ages: ages.mean(), bounds=(0, 1)))
        with pytest.raises(OutputError, match="one number, or one row"):
            share(np.full(100, 0.5))
        assert budget.spent.epsilon == 0

    def test_sums_with_bounds_and_other_arguments(self):
        """A mapper with options could not be used, or would get too little noise."""
        share = privatize(epsilon=50)(additive(lambda ages, limit=65: ages >= limit, bounds=(0, 1)))
        release = share.release(np.arange(100.0), limit=20)
        assert abs(release.value - 0.8) < 0.02 and release.scale == pytest.approx(0.01 / 50)


def scaled_mean(data, factor, shift=0.0):
    """Average data in other units."""
    return float(data.mean() * factor + shift)


class Study:
    """An object with private methods."""

    def __init__(self, factor):
        self.factor = factor

    @privatize(epsilon=5, mechanism=Blocks(0.0, 100.0))
    def by_blocks(self, data):
        """Return a mean by blocks."""
        return float(data.mean() * self.factor)

    @privatize(**PROVEN)
    def by_proof(self, data):
        """Return a mean with a proof."""
        return float(data.mean() * self.factor)


class TestBlocks:
    def test_any_function_with_other_arguments(self):
        """Functions with options could not be used with blocks."""
        function = privatize(epsilon=5, mechanism=Blocks(0.0, 100.0))(scaled_mean)
        release = function.release(np.full(400, 10.0), 2.0, shift=1.0)
        assert abs(release.value - 21) < 1e-6
        assert release.gamma == 0 and release.bound == "proven" and "whatever the function" in repr(release)
        with pytest.raises(ArgumentError, match="factor"):
            function(np.full(400, 10.0))

    def test_methods(self):
        """A class could not have methods with a bound for all pairs."""
        study = Study(0.5)
        assert abs(study.by_blocks(np.full(400, 40.0)) - 20) < 1e-6
        assert abs(study.by_proof(np.full(400, 40.0)) - 20) < 10

    def test_state_does_not_go_from_block_to_block(self):
        """A running maximum would let one person move all blocks."""
        function = privatize(epsilon=100, mechanism=Blocks(0, 10_000))(running_count)
        assert function(np.arange(400.0)) == 1
        assert not SEEN

    def test_all_blocks_fail(self):
        """An error that depends on the data would be an answer without noise."""

        def fails(data):
            raise ValueError(f"private: {data}")

        release = privatize(epsilon=1, mechanism=Blocks(0.0, 1.0))(fails).release(np.full(100, 0.123456789))
        assert 0 <= release.value <= 1 and "0.12345" not in repr(release)

    @for_each(
        "options",
        [{"gamma": 0.05}, {"sensitivity": 1.0}, {"sampler": P}, {"delta": 1e-6}, {"domain": "clip"}],
    )
    def test_refuses_what_it_does_not_need(self, options):
        """Somebody would believe that P or gamma matter here."""
        with pytest.raises(SettingsError, match="no use here"):
            privatize(epsilon=1, mechanism=Blocks(0.0, 1.0), **options)(np.mean)


class TestReachable:
    @for_each("way", ["global", "view", "argument", "record by record"])
    def test_the_private_data_in_reach_is_refused_before_it_costs(self, way):
        """A function that reads the dataset from a global would release the raw answer of all people."""
        people = np.arange(400.0)
        part, budget = people[:50], Budget(f"reach {way}", epsilon=1, ledger="memory")
        blocks = privatize(epsilon=1, mechanism=Blocks(0.0, 1e3), budget=budget)
        if way == "argument":
            private, others = blocks(lambda data, other: float(other.mean())), (people,)
        elif way == "record by record":
            rows = additive(lambda data: people[: len(data)], bounds=(0, 400))
            private, others = privatize(epsilon=1, budget=budget)(rows), ()
        else:
            private, others = blocks(lambda data: float((people if way == "global" else part).mean())), ()
        with pytest.raises(DataError, match="can be reached from"):
            private(people, *others)
        assert budget.spent.epsilon == 0

    def test_equal_values_are_not_refused(self):
        """An error that depends on values would tell them without noise."""
        public = np.arange(400.0)
        private = privatize(epsilon=9)(additive(lambda data: np.isin(data, public), bounds=(0, 1)))
        assert abs(private(np.arange(400.0)) - 1) < 1


SEEN: list[int] = []


def running_count(data):
    """Count how often it was called."""
    SEEN.append(len(data))
    return len(SEEN)
