"""A function is calibrated under every member of a family, in one norm, and each is remembered."""

import contextlib
import logging
import warnings
from pathlib import Path

import numpy as np
import pytest

from privatize import Laplace, estimate_sensitivity, privatize, samplers
from privatize.calibration.weights import Member
from privatize.errors import BoundError, InfiniteSensitivityError, NotRememberedWarning, SamplerError
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
    assert {each.weights for _, each in found.members} == {found.weights}

    def beyond(sampler, weights, value):
        fresh = estimate_sensitivity(
            tails,
            n=50,
            sampler=sampler,
            norm="l1",
            plan=found.plan,
            seed=99,
            scaled=mechanism,
            member=Member(found.coin_seed, weights, ""),
        )
        return float(np.mean(fresh.gaps > value))

    assert max(beyond(sampler, found.weights, found.value) for sampler in (LEFT, RIGHT)) < 0.1
    own = {"mechanism": mechanism, **PROMISE}
    alone = [privatize(**own, sampler=sampler)(tails).estimate(50) for sampler in (LEFT, RIGHT)]
    largest = max(alone, key=lambda each: each.value)
    assert max(beyond(sampler, largest.weights, largest.value) for sampler in (LEFT, RIGHT)) > 0.5


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
    assert again is not found and again.weights == found.weights and again.seed == found.seed


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
    return np.maximum(x, 1.5).mean()


def test_a_member_without_any_change():
    """A member under which the answer never changes does not stand in the way of the others."""
    found = private(capped).estimate(50)
    assert [each.value > 0 for _, each in found.members] == [False, True]
    assert private(capped).estimate(50).value == found.value


def test_what_cannot_be_remembered():
    """A function with an open file in reach is calibrated under every member, too, each time."""
    with Path(__file__).open() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore", NotRememberedWarning)
        f = private(lambda x: x.mean() + 0 * file.fileno())
        found = f.estimate(50)
        assert len({each.seed for _, each in found.members}) == 2
        assert len({each.coin_seed for _, each in found.members}) == 1
        scaled = private(lambda x: [x.mean(), file.fileno() * x.sum()], mechanism=Laplace(scaled="total"))
        assert len({each.weights for _, each in scaled.estimate(50).members}) == 1


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
