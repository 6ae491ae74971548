"""The estimate for a family is the worst of its members' in every respect."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from privatize import estimate_sensitivity, plan, samplers
from privatize.calibration.family_estimate import FamilySensitivity
from privatize.calibration.order_statistic import widened
from privatize.calibration.pilot import Member
from privatize.errors import CalibrationError, NotReproducibleError, PlanError, ZeroSensitivityError

PLAN = plan(0.1)


def estimate(function=np.mean, high=1.0, seed=1, **more):
    """Estimate a sensitivity as that of a member of a family."""
    options = {"n": 20, "norm": "l1", "plan": PLAN, "member": Member(7, None, "")}
    return estimate_sensitivity(function, sampler=samplers.uniform(0, high), seed=seed, **options | more)


def family(*members):
    """Return the estimate for a family whose members are called a, b, c."""
    return FamilySensitivity.of(list(zip("abc", members, strict=False)))


def failing(x):
    """Fail on few datasets."""
    return x.mean() if x[0] > 0.01 else 1 / 0


def test_the_largest():
    """With any smaller estimate the promise would fail under some member."""
    small, large = estimate(), estimate(high=3)
    found = family(small, large)
    assert found.value == large.value > small.value
    assert found.gaps is large.gaps
    assert found.members == (("a", small), ("b", large))
    assert "members=2" in repr(found)
    rows = dict(found.card().rows)
    assert rows["under a"] == f"{small.value:.6g}" and "b" in rows["family"]
    assert found.unlucky == pytest.approx(2 * PLAN.rho)


def test_rounding_noise_of_one_member_widens_the_estimate():
    """A function that rounds differently under one P does so under all: there would be too little noise."""
    small, large = estimate(), estimate(high=3)
    noisy = replace(small, jitter=large.value * 1e-9)
    found = family(noisy, large)
    assert found.value == widened(large.value, noisy.jitter) > large.value and found.jitter == noisy.jitter
    assert "that of b" in dict(found.card().rows)["family"]
    twice = family(noisy, replace(large, value=found.value, jitter=1e-12))
    assert twice.value == found.value


def test_failures_are_the_worst():
    """The largest member may be one on which nothing fails."""
    first, second = estimate(failing, seed=3), estimate(high=3)
    assert first.failed and family(first, second).failed == first.failed
    assert family(first, second).cause == first.cause


def test_looks_of_every_member():
    """A member may have been read with further plans, as part of another family: its gamma is larger then."""
    shared, other = estimate(), estimate(high=3)
    before = family(shared, other)
    assert before.gamma == PLAN.gamma and before.certified() == ((PLAN.gamma, PLAN.gamma),)
    family(shared).at(0.2)
    assert before.looks == 2
    assert before.gamma > PLAN.gamma and before.gamma == shared.gamma > other.gamma
    assert before.average_gamma == shared.average_gamma > other.average_gamma
    assert {asked for asked, _ in before.certified()} == {PLAN.gamma, 0.2}
    assert dict(before.certified())[PLAN.gamma] == before.gamma


def test_at_reads_all_members():
    """Reading the largest alone could give less than another member's estimate at that gamma."""
    found = family(estimate(), estimate(high=3)).at(0.3)
    assert len(found.members) == 2
    assert found.value == max(each.value for _, each in found.members)
    assert {each.plan for _, each in found.members} == {found.plan}
    again = pickle.loads(pickle.dumps(found))
    assert again.gamma == found.gamma and len(again.members) == 2
    with pytest.raises(PlanError, match="unpickled"):
        again.at(0.25)


def constant(x):
    """Return what no record changes."""
    return np.float64(len(x))


def test_zero_under_one_member():
    """A member under which nothing changes needs no noise; if that is so under all, none would be added."""
    zero, positive = estimate(constant), estimate()
    assert zero.value == 0
    assert family(zero, positive).value == positive.value
    assert family(zero, positive).at(0.2).value > 0
    with pytest.raises(ZeroSensitivityError, match="member 'a' of the family"):
        family(zero, zero)
    with pytest.raises(ZeroSensitivityError, match="min_sensitivity"):
        zero.at(0.2)


def test_rounding_of_one_member():
    """Rounding noise seen under one member must be small beside the noise that is added."""
    vars(noisy := estimate(constant))["jitter"] = 1.0
    with pytest.raises(NotReproducibleError):
        family(noisy, estimate())


def keyed(x):
    """Return a dict whose order depends on the data."""
    found = {"low": x.min(), "high": x.max()}
    return found if x[0] < x.mean() else dict(reversed(found.items()))


def test_structures():
    """What is published beside the numbers must be the same under every member; the order of keys is not."""
    with pytest.raises(CalibrationError, match=r"different structure.*'a' and 'b'"):
        family(estimate(), estimate(lambda x: [x.mean()]))
    with pytest.raises(CalibrationError, match="different structure"):
        family(estimate(lambda x: {"a": x.mean()}), estimate(lambda x: {"b": x.mean()}))
    nested = (lambda x: [[x.mean()], x.mean()]), (lambda x: [[x.mean(), x.mean()]])
    with pytest.raises(CalibrationError, match="different structure"):
        family(*map(estimate, nested))
    orders = [estimate(keyed, seed=seed) for seed in range(8)]
    assert len({tuple(each.structure.keys) for each in orders}) == 2
    assert all(family(orders[0], each).value for each in orders)


def test_one_norm_and_one_coin_seed():
    """Numbers in two norms, or of two functions, cannot be compared."""
    with pytest.raises(ValueError, match="another norm"):
        family(estimate(), estimate(norm="l2"))
    with pytest.raises(ValueError, match="other coins"):
        family(estimate(), estimate(member=Member(8, None, "")))
