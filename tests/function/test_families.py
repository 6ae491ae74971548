"""A function is calibrated under every member of a family, in one norm, and each is remembered."""

import contextlib
import logging
import pickle
import warnings
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from privatize import Budget, Laplace, audit, estimate_sensitivity, privatize, report, samplers, seal
from privatize.calibration.pilot import Member
from privatize.errors import (
    BoundError,
    DataError,
    InfiniteSensitivityError,
    NotRememberedWarning,
    SamplerError,
    SettingsError,
)
from privatize.function.settings import Settings
from privatize.function.template import Template
from privatize.samplers import any_of, uniform
from privatize.storage.estimates import open_store

SMALL, LARGE, OTHER = uniform(0, 1), uniform(0, 3), uniform(0, 2)
PROMISE = {"epsilon": 1, "gamma": 0.1, "store": "memory"}


def mean(x):
    """Return the mean."""
    return x.mean()


def private(function=mean, sampler=(SMALL, LARGE), **more):
    """Return a private function for a family."""
    return privatize(**PROMISE | {"sampler": list(sampler)} | more)(function)


def test_the_largest_member_sets_the_noise():
    """With the estimate for the first P alone, the promise would fail under the second."""
    found = private().estimate(50)
    assert [name for name, _ in found.members] == ["uniform(0, 1)", "uniform(0, 3)"]
    assert found.value == found.members[1][1].value > 2 * found.members[0][1].value
    release = private().release(np.ones(50))
    assert (release.sensitivity, release.gamma, release.m) == (found.value, found.gamma, found.m)


def tails(x):
    """Return two numbers, one of which varies under the first P and the other under the second."""
    return [np.sum(x < 0) * 1.0 * x.min(), np.sum(x > 0) * 1.0 * x.max()]


def sided(sign):
    """Return a P with large values on one side of zero, and small ones on the other."""

    def draw(n, rng):
        return sign * np.where(rng.random(n) < 0.5, -100 * rng.random(n), 0.01 * rng.random(n))

    return samplers.from_function(draw)


LEFT, RIGHT = sided(1), sided(-1)


def test_weights_are_those_of_all_members_together():
    """T3a: with weights of its own each, most pairs under the second P are beyond the largest estimate.

    The shares are far from their limits: a false alarm has probability below 1e-6.
    """
    mechanism = Laplace(scaled="relative")
    found = private(tails, (LEFT, RIGHT), mechanism=mechanism).estimate(50)
    assert {each.shape for _, each in found.members} == {found.shape}

    def beyond(sampler, shape, value):
        fresh = estimate_sensitivity(
            tails,
            n=50,
            sampler=sampler,
            norm="l1",
            plan=found.plan,
            seed=99,
            scaled=mechanism,
            member=Member(found.coin_seed, shape, ""),
        )
        return float(np.mean(fresh.gaps > value))

    assert max(beyond(sampler, found.shape, found.value) for sampler in (LEFT, RIGHT)) < 0.1
    own = {"mechanism": mechanism, **PROMISE}
    alone = [privatize(**own, sampler=sampler)(tails).estimate(50) for sampler in (LEFT, RIGHT)]
    largest = max(alone, key=lambda each: each.value)
    assert max(beyond(sampler, largest.shape, largest.value) for sampler in (LEFT, RIGHT)) > 0.5


def drawn(x):
    """Return something that depends on the global generator."""
    return x.mean() * np.random.random()


def test_one_coin_seed():
    """A release reseeds the generators once, so an estimate with other coins would be of another function."""
    first, second = private(drawn).estimate(50), private(drawn, (LARGE, OTHER)).estimate(50)
    seeds = {each.coin_seed for found in (first, second) for _, each in found.members}
    assert seeds == {first.coin_seed}
    coin = np.random.RandomState(first.coin_seed).random()
    assert first.value == pytest.approx(3 * 0.785 * coin / 50, rel=0.3)  # seven standard deviations
    assert private(drawn).estimate(51).coin_seed != first.coin_seed


def test_pairs_of_every_member_are_its_own():
    """A P chosen after gaps of another were seen must be measured on pairs that nobody has seen."""
    found = private().estimate(50)
    assert len({each.seed for _, each in found.members}) == 2
    fixed = private(seed=5).estimate(50)
    assert {each.seed for _, each in fixed.members} == {5}
    assert private(seed=5).estimate(50).value == fixed.value


def test_members_are_remembered():
    """Adding a member to a family would cost a calibration of all of them."""
    found, pairs = private().estimate(50), pairs_stored()
    larger = private(sampler=(LARGE, OTHER, SMALL)).estimate(50)
    assert dict(larger.members)["uniform(0, 3)"].seed == dict(found.members)["uniform(0, 3)"].seed
    assert pairs_stored() == pairs + found.m
    assert private().estimate(50).members[0][1].seed == found.members[0][1].seed
    assert pairs_stored() == pairs + found.m


def pairs_stored():
    """Return how many gaps are remembered."""
    return sum(entry["pairs"] for entry in open_store("memory").entries())


def test_looks_are_those_of_each_member():
    """Another family's look at the gaps of a common member makes its gamma larger here."""
    first = private(sampler=(SMALL, LARGE)).estimate(60)
    private(sampler=(LARGE, OTHER), gamma=0.2, samples=first.m).estimate(60)
    assert dict(first.members)["uniform(0, 3)"].looks == 2
    assert dict(first.members)["uniform(0, 1)"].looks == 1
    assert first.gamma > 0.1


def test_remembered_forgotten_and_made_again():
    """forget() must forget the members too, or the next call would not calibrate again."""
    f = private()
    assert not f.remembers(70)
    found = f.estimate(70)
    assert f.remembers(70) and not f.remembers(71)
    assert f.forget(70) == 3
    assert not f.remembers(70)
    assert f.estimate(70).seed != found.seed


def test_weights_are_remembered():
    """Another process would learn other weights, and calibrate all members again."""
    options = {"function": tails, "sampler": (LEFT, RIGHT), "mechanism": Laplace(scaled="total")}
    found = private(**options).estimate(40)
    again = private(**options).estimate(40)
    assert again is not found and again.shape == found.shape and again.seed == found.seed


def test_a_warm_call_takes_no_fingerprint():
    """The memory and the guard work for families, so later calls are as fast as with one P."""
    f = private()
    for _ in range(3):
        f(np.ones(50))
    ((_, estimate),) = f.calibrator.guarded.values()
    assert estimate.guard is not None and estimate.holds()
    assert len(f.calibrator.memory) == 1


def picky(x):
    """Fail on large values."""
    return 1 / 0 if x.max() > 2 else x.mean()


def test_an_infinite_member_is_named():
    """Among twelve members a user must know under which the function fails, now and from the store."""
    for _ in range(2):
        with pytest.raises(InfiniteSensitivityError, match=r"member 'uniform\(0, 3\)' of the family"):
            private(picky).estimate(50)


def capped(x):
    """Return a number that changes under one P only."""
    return np.maximum(x, 1.5).mean(axis=-1)


def test_a_member_without_any_change():
    """A member under which the answer never changes does not stand in the way of the others."""
    found = private(capped).estimate(50)
    assert [each.value > 0 for _, each in found.members] == [False, True]
    assert private(capped).estimate(50).value == found.value
    stacked = private(capped, batch=True).estimate(50)
    assert [each.value > 0 for _, each in stacked.members] == [False, True]


def test_what_cannot_be_remembered():
    """A function with an open file in reach is calibrated under every member, too, each time."""
    with Path(__file__).open() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotRememberedWarning)
        f = private(lambda x: x.mean() + 0 * file.fileno())
        found = f.estimate(50)
        assert len({each.seed for _, each in found.members}) == 2
        assert len({each.coin_seed for _, each in found.members}) == 1
        scaled = private(lambda x: [x.mean(), file.fileno() * x.sum()], mechanism=Laplace(scaled="total"))
        assert len({each.shape for _, each in scaled.estimate(50).members}) == 1


class Changing:
    """An object that a calibration changes."""

    factor = 1.0


def test_a_function_that_changes_leaves_no_member_behind():
    """Gaps of a function that changed while it was measured must not be remembered for the first one."""
    state = Changing()

    def changing(x):
        state.factor += 1.0
        return state.factor * x.mean()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(Exception):
            private(changing).estimate(50)
    assert pairs_stored() == 0


def test_the_cost_is_said(caplog):
    """A family of twelve costs twelve calibrations, which a user must see before waiting for them."""
    with caplog.at_level(logging.INFO, "privatize.families"):
        private().estimate(80)
    assert "a family of 2 P, each with a calibration of 219 pairs" in caplog.text
    assert "2 calibrations of m=219 pairs" in private()._repr_html_()


def test_private_records_are_clipped_to_the_outermost_bounds():
    """Records of every member stay as they are, and nothing else is allowed."""
    f = private(epsilon=1e5)
    assert f(np.full(50, 9.0)) == pytest.approx(3, abs=0.1)
    assert f(np.full(50, 2.5)) == pytest.approx(2.5, abs=0.1)


def test_kinds_that_turn_out_to_differ():
    """A P of the user's own may draw something else later: private data has one kind of records."""
    kinds = {"dtype": float}
    turning = samplers.from_function(lambda n, rng: rng.random(n).astype(kinds["dtype"]), support=(0, 1))
    f = private(sampler=[SMALL, turning])
    kinds["dtype"] = np.float32
    with pytest.raises(SamplerError, match="different kinds"):
        f.estimate(50)


def test_missing_values_are_no_difference_of_kind():
    """Families of tables with missing values would be refused whenever the first two records have some."""
    column = samplers.with_missing(samplers.uniform(0, 1), 0.5)
    for frame in ("pandas", "polars", "pyarrow", "dict", "records"):
        shares = (samplers.with_missing(samplers.uniform(0, 1), share) for share in (0.01, 0.5, 0.99))
        family = samplers.any_of(*(samplers.table(a=each, b=column, frame=frame) for each in shares))
        Template(Settings(epsilon=1, gamma=0.1, sampler=family)).records()


def test_categories_in_another_order():
    """Code can read the order of categories, so members must have the same."""
    pd = pytest.importorskip("pandas")

    def people(order):
        def draw(n, rng):
            return pd.DataFrame({"sex": pd.Categorical(rng.choice(["F", "M"], n), categories=order)})

        return samplers.from_function(draw)

    with pytest.raises(SamplerError, match="different kinds"):
        private(lambda d: float(d.sex.cat.codes.sum()), [people(["F", "M"]), people(["M", "F"])]).estimate(50)


def test_a_proven_bound_is_tried_under_every_member():
    """The bound must hold for all data within the outermost bounds; a wrong one is found under any member."""
    proven = {"gamma": None, "epsilon": 1, "store": "memory", "sampler": [SMALL, LARGE]}
    right = privatize(**proven, sensitivity=lambda n: 3 / n)(mean).estimate(50)
    alone = privatize(**proven | {"sampler": SMALL}, sensitivity=lambda n: 1 / n)(mean).estimate(50)
    assert right.value == pytest.approx(3 / 50) and right.tried > 1.5 * alone.tried
    with pytest.raises(BoundError, match="not a bound"):
        privatize(**proven, sensitivity=lambda n: 1 / n)(mean).estimate(50)


def test_keys_of_one_p_are_as_they_were():
    """Estimates that were stored before there were families must still be found."""
    f = privatize(**PROMISE, sampler=SMALL)(mean)
    from privatize.function.asking import questions

    ((asked,), _) = questions(f.definition, f.calibrator, "estimate", [(50,), {}])
    assert len(asked.facts()) == 7 and asked.member is None
    single = privatize(**PROMISE, sampler=any_of(SMALL))(mean)
    assert single.settings.sampler is SMALL


# --- end to end -------------------------------------------------------------------------------


def budget(name):
    """Return a new budget in memory."""
    return Budget(f"families-{name}", epsilon=100, gamma=50, ledger="memory")


def test_the_ledger_keeps_what_all_families_have_in_common():
    """Gamma of several answers can be claimed only under a P that every one of them was calibrated for."""
    spent = budget("common")
    people = seal(np.ones(50), name="people")
    for sampler in ([SMALL, LARGE], [LARGE, OTHER], LARGE, [SMALL, LARGE]):
        private(sampler=[LARGE], budget=spent).replace(sampler=sampler)(people)
    for sampler in (SMALL, [SMALL, OTHER], uniform(0, 5)):
        with pytest.raises(SettingsError, match="one P"):
            private(sampler=[LARGE], budget=spent).replace(sampler=sampler)(people)
    with pytest.raises(SettingsError, match="in all of them"):
        private(sampler=(SMALL, OTHER), budget=spent)(people)
    assert len(spent.history()) == 4 and spent.verify() == spent.spent


def test_one_p_first_and_its_family_afterwards():
    """A P that was used alone is a member of its family, so both add up; a family without it does not."""
    spent = budget("first")
    people = seal(np.ones(50), name="people", sampler=SMALL)
    privatize(epsilon=1, gamma=0.1, store="memory", budget=spent)(mean)(people)
    private(budget=spent)(people)
    with pytest.raises(SettingsError, match="one P"):
        private(sampler=(LARGE, OTHER), budget=spent)(people)
    with pytest.raises(SettingsError, match="one P"):
        privatize(epsilon=1, gamma=0.1, store="memory", sampler=LARGE, budget=spent)(mean)(people)
    assert "any_of" not in spent.ledger.history(spent.name)[0]["described"]


def test_columns_of_a_family_are_that_family():
    """Answers about several columns of a table must add up."""
    spent, table = budget("columns"), samplers.table(a=SMALL, b=SMALL, frame="dict")
    wide = samplers.table(a=LARGE, b=SMALL, frame="dict")
    family = any_of(table, wide)
    private(sampler=family["a"], budget=spent)(seal(np.ones(50), name="people"))
    private(sampler=family["b"], budget=spent)(seal(np.ones(50), name="people"))
    private(sampler=[table["a"]], budget=spent)(seal(np.ones(50), name="people"))
    with pytest.raises(SettingsError, match="one P"):
        private(sampler=[wide["a"]], budget=spent)(seal(np.ones(50), name="people"))


def test_data_without_a_name():
    """Nobody knows whether two datasets without a name are the same people, so the total says what it is."""
    spent = budget("unnamed")
    private(budget=spent)(np.ones(50))
    private(sampler=(LARGE, OTHER), budget=spent)(np.ones(50))
    assert spent.ledger.unsealed(spent.name) == (2, True)
    private(sampler=(SMALL, OTHER), budget=spent)(np.ones(50))
    assert spent.ledger.unsealed(spent.name) == (3, False)
    assert spent.verify() == spent.spent


def test_sealed_data_carries_a_family():
    """What is true of P is declared once, where the data is sealed."""
    people = seal(np.ones(50), name="people", sampler=[SMALL, LARGE])
    release = privatize(epsilon=1, gamma=0.1, store="memory")(mean).release(people)
    assert release.sensitivity > 2 / 50


def test_parts_that_a_member_has_as_values():
    """Under a P with a column for the site a replaced record may leave its part, whichever member it is."""
    spent = budget("parts")
    sites = [
        samplers.table(x=SMALL, site=samplers.categorical(["Berlin", "Paris"], p=p), frame="dict")
        for p in ([0.5, 0.5], [0.1, 0.9])
    ]
    parts = spent.partition("place", parts=["Berlin", "Paris"])
    options = {"epsilon": 1, "sensitivity": 0.02, "sampler": SMALL, "store": "memory"}
    for part in ("Berlin", "Paris"):
        privatize(**options, budget=parts[part])(mean)(seal(np.ones(50), name=part))
    people = seal({"x": np.ones(50), "site": np.array(["Berlin"] * 50)}, name="all")
    with pytest.raises(SettingsError, match="parts of 'place'"):
        private(lambda d: float(d["x"].mean()), sites, budget=spent)(people)


def test_an_audit_measures_every_member():
    """An audit of the first member alone would not see that the promise fails under another."""
    found = audit(private(seed=1), 50, pairs=1000, releases=0, seed=1)
    assert found.holds and found.members == 2 and "uniform(0, 3)" in found.coverage.sampler
    assert "worst of 2 members" in str(found)
    small = private(sampler=[SMALL], seed=1, domain="as-is")
    broken = audit(small, 50, pairs=1000, releases=0, seed=1, sampler=[SMALL, LARGE])
    assert not broken.holds and "under uniform(0, 3) the promise is broken" in str(broken)
    under = audit(private(seed=1), 50, pairs=200, releases=200, seed=1, under=[[OTHER, uniform(0, 6)]]).under
    assert [each.divergence for each in under] == pytest.approx([np.log(2), np.log(2)])


def test_a_report_has_a_row_for_every_member():
    """Whoever reads the promise must see under which P it holds, and which of them sets the noise."""
    page = report(any_of_named(), 50).html
    assert "under each public distribution P" in page
    assert page.count("under usual") == 1 and page.count("under wide") == 1
    assert "seed of wide" in page and "replace(seed" not in page


def any_of_named():
    """Return a private function for a family whose members have names."""
    return privatize(**PROMISE, sampler=any_of(usual=SMALL, wide=LARGE))(mean)


def test_accuracy_and_samples():
    """What a user is told about an answer is for the noise that is added."""
    f, alone = private(seed=1), privatize(**PROMISE, sampler=LARGE, seed=1)(mean)
    assert f.error_at(50) == pytest.approx(alone.error_at(50))
    assert f.epsilon_for(50, error=0.1) == pytest.approx(alone.epsilon_for(50, error=0.1))
    assert f.sample(10, seed=1).max() <= 1
    assert [each.n for each in f.estimate([20, 30])] == [20, 30]


def test_it_is_pickled():
    """A private function with a family runs in another process, under the same settings."""
    f = pickle.loads(cloudpickle.dumps(private()))
    assert f.settings.sampler == any_of(SMALL, LARGE) and f.estimate(50).members


def test_a_fixed_number_of_records():
    """Data that grows is calibrated once, for a family too."""
    f = private(sampler=any_of(SMALL, LARGE).fixed(size=20))
    assert f.release(np.ones(50)).n == 20
    assert f.estimate().n == 20
    with pytest.raises(DataError, match="fixed"):
        f(np.ones(10))


def test_workers_measure_the_same():
    """The estimate must not depend on where it is made."""
    here, there = (private(seed=1, workers=each, store=None) for each in ("inline", 2))
    assert here.estimate(40).value == there.estimate(40).value


def test_a_public_copy_of_the_data_in_any_member():
    """P must be known without the private data, whichever member it is."""
    data = np.random.default_rng(0).random(50)
    with pytest.raises(DataError, match="public"):
        private(sampler=[SMALL, samplers.bootstrap(data)])(data)


def test_a_model():
    """Models are trained privately for a family as functions are."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    from privatize.sklearn import PrivateEstimator

    wide, narrow = (samplers.blobs([[0, 0], [3, 3]], std, low=-4, high=7) for std in (1.0, 0.5))
    options = {"epsilon": 50, "gamma": 0.2, "store": "memory", "seed": 1}
    members = [narrow, wide]
    model = PrivateEstimator(linear_model.LogisticRegression(C=0.1), **options, sampler=members)
    X, y = wide.draw(200, np.random.default_rng(1))
    assert model.fit(X, y).estimator_.score(X, y) > 0.9
    found = model.estimate(200)
    assert len(found.members) == 2
    members.pop()  # the user changes the list, and so the family
    assert not model.estimate(200).members
