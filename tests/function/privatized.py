"""A promise, and functions that are made private with it."""

import functools
import itertools
import logging

from privatize import (
    privatize,
    samplers,
)

UNIT = samplers.uniform(0, 1)
NUMBERS = itertools.count()
PROMISE = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT}


@privatize(**PROMISE)
def importable(values):
    """Average values."""
    return values.mean()


def unseen():
    """Return an object for notes that a fingerprint does not see: of a logger, only the name counts."""
    notes = logging.getLogger(f"notes {next(NUMBERS)}")
    notes.list = []
    return notes


def counted(function):
    """Return a function that counts its runs in `.notes.list`."""
    notes = unseen()

    @functools.wraps(function, updated=())
    def run(*args, **kwargs):
        notes.list.append(1)
        return function(*args, **kwargs)

    run.notes = notes
    return run


class Scaler:
    """A class with private methods of every kind."""

    offset = 0.25

    def __init__(self, factor):
        self.factor = factor

    @privatize(**PROMISE, seed=1)
    def mean(self, x):
        """Average, scaled."""
        return self.factor * x.mean()

    @privatize(**PROMISE)
    @staticmethod
    def static_under(x):
        return x.mean()

    @staticmethod
    @privatize(**PROMISE)
    def static_over(x):
        return x.mean()

    @privatize(**PROMISE)
    @classmethod
    def class_under(cls, x):
        return x.mean() + cls.offset

    @classmethod
    @privatize(**PROMISE)
    def class_over(cls, x):
        return x.mean() + cls.offset

    @privatize(**PROMISE)
    def __call__(self, x):
        return self.factor * x.mean()
