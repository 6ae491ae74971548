"""A function that uses torch's default generator gets the same random numbers at every evaluation."""

import logging

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.evaluators.joint import Joint, weight_of
from privatize.calibration.norms import NORMS

torch = pytest.importorskip("torch", reason="torch is not installed (extra test-all)")


def test_dropout_draws_the_same_numbers_every_time():
    """Random initial weights and dropout cancel in the gaps, and the caller's generator is untouched."""
    seen = logging.getLogger("what torch drew")
    seen.list = []

    @privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), seed=1)
    def dropped(x):
        mask = torch.rand(len(x)) < 0.5
        seen.list.append(float(mask.double().mean()))
        return float((torch.from_numpy(x) * mask).sum()) / len(x)

    torch.manual_seed(5)
    expected = torch.Generator().manual_seed(5)
    dropped(np.full(30, 0.5))
    assert len(set(seen.list)) == 1 and len(seen.list) > 79
    assert torch.equal(torch.rand(3), torch.rand(3, generator=expected))
    assert dropped.estimate(30).value <= 1 / 30


def test_many_functions_draw_the_same_numbers_as_each_alone():
    """Members of a catalogue would find torch's generator as the one before them has left it."""

    def masked(x):
        return float((torch.from_numpy(x) * torch.rand(len(x))).sum())

    def at_times(x):
        return masked(x) if x[0] > 0.9 else 0.0

    def moved(x):
        np.random.shuffle(x)
        torch.from_numpy(x).mul_(torch.rand(1).item())
        return float(x[0])

    functions, settings = (masked, at_times, moved, masked), {"n": 30, "sampler": samplers.uniform(0, 1)}
    settings |= {"norm": NORMS["l1"], "seed": 3, "s0": 5}

    def gaps(function):
        made = evaluator(function, **settings)
        return made.evaluate((0, 300), made.learned).gaps

    alone = [gaps(each) for each in functions]
    for at, own in enumerate(alone):  # each of them has the largest gap once
        weights = tuple(0 if other == at else 300 for other in range(4))
        found = gaps(Joint(functions, (NORMS["l1"],) * 4, tuple("abcd"), weights))
        scaled = [each / weight_of(weight) for each, weight in zip(alone, weights, strict=True)]
        assert found.tolist() == np.max(scaled, axis=0).tolist()
        assert (found == own).any()
