"""A user's modules, and the gaps of their functions here and in workers."""

import functools

import numpy as np

from privatize import estimate_sensitivity, plan, samplers
from privatize.errors import ExecutionError, InfiniteSensitivityError

UNIT = samplers.uniform(0, 1)


def gaps(function, workers, sampler=UNIT, norm="l1", **rest):
    found = estimate_sensitivity(
        function, n=50, sampler=sampler, norm=norm, plan=plan(gamma=0.2), seed=1, workers=workers, **rest
    )
    return found.gaps.tolist()


def refused_or(function):
    """Return the gaps from workers, or from this process if they refuse or fail."""
    try:
        return gaps(function, 2)
    except (ExecutionError, InfiniteSensitivityError):
        return gaps(function, "inline")


HELPERS = """
    import enum
    SCALE = 1.0
    TABLE = {"a": [1.0, 2.0]}
    class Level(enum.Enum):
        LOW = 1.0
    class Base:
        factor = 2.0
    class Child(Base):
        def go(self, x):
            return getattr(self, "extra", 1.0) * self.factor * scaled(x) * TABLE["a"][0]
    def scaled(x, k=1.0):
        return SCALE * k * x.mean()
"""
USER = """
    import helpers
    from helpers import Child as Short
    def f(x):
        return helpers.Child().go(x) + Short().go(x) * helpers.TABLE["a"][1]
    def late(x):
        from helpers import Child
        return Child().go(x)
"""


@functools.singledispatch
def kind(x):
    return 1.0


@kind.register(np.ndarray)
def _(x):
    return 2.0


def counted():
    n = 1

    def more():
        nonlocal n
        n += 4

    more()
    return lambda x: n * x.mean()
