"""A function that uses torch's default generator gets the same random numbers at every evaluation."""

import logging

import numpy as np
import pytest

from privatize import privatize, samplers

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
