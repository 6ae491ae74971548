"""Other objects count by what they hold, and are never confused with what was at their address before."""

import gc
import logging
import pickle
import random
import re
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

from privatize import Budget, Laplace, learn, private_source, privatize, samplers
from privatize.identity import objects
from privatize.identity.fingerprint import fingerprint


def test_locks_loggers_paths_and_patterns_can_be_encoded():
    """A lock or logger that no answer depends on would keep an estimate from being remembered."""
    for value in (threading.Lock(), threading.RLock(), logging.getLogger("x"), Path("a"), re.compile("a")):
        assert fingerprint([value]) == fingerprint([value])


def test_global_generators_count_by_name():
    """The state of the global generators is no part of a function: they are reseeded with public seeds."""
    for function in (random.gauss, random.random, np.random.normal, lambda x: random.random()):
        before = fingerprint(function)
        random.random()
        np.random.random()
        assert fingerprint(function) == before


def test_values_at_the_same_address_are_not_taken_for_each_other(monkeypatch):
    """A new value at the address of an old one would get the fingerprint of the old one."""
    monkeypatch.setattr(objects, "_MOST", 256)
    objects._encoded.clear()
    seen = {}
    for i in range(800):  # more than are cached
        for made in (samplers.uniform(0, i + 1), samplers.integers(0, i + 1), samplers.normal(0, i + 1)):
            found = fingerprint(made)
            assert seen.setdefault(found, repr(made)) == repr(made)
        del made
        if not i % 150:
            gc.collect()
    assert len(seen) == 2400
    assert fingerprint(samplers.uniform(0, 7)) == next(
        k for k, text in seen.items() if text == "uniform(0, 7)"
    )
    assert len(objects._encoded) <= objects._MOST


def test_cached_encodings_equal_fresh_ones():
    """A key that depended on whether an encoding was cached would not be found again."""
    values = [
        Laplace(),
        Laplace(scaled="total"),
        samplers.uniform([0, 0], [1, 2]),
        samplers.categorical(["a", "b"]),
    ]
    cached = [fingerprint([value, value, 1]) for value in values]
    objects._encoded.clear()
    assert [fingerprint([value, value, 1]) for value in values] == cached
    assert len(set(cached)) == len(cached)


class Service:
    """A typical program: a source of data with a budget, and private methods."""

    def load(self):
        return self.source()

    def mean(self, x):
        return float(x.mean()) * self.factor


def test_budgets_and_sources_can_be_encoded(tmp_path):
    """If another method of the class loads data, nothing would be remembered, and γ charged at every call."""
    import sqlite3

    connection = sqlite3.connect(":memory:")
    budget = Budget("service", epsilon=10, gamma=1, ledger=tmp_path / "ledger.db")
    parts = budget.partition("years", parts=["2025", "2026"])

    @private_source(name="people", budget=budget)
    def load():
        connection.execute("select 1")
        return np.linspace(0, 1, 20)

    class Program(Service):
        factor = 2.0
        books = (budget, parts, parts["2025"], budget.ledger)

        def source(self):
            return load()

        total = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), budget=budget)(Service.mean)

    program = Program()
    program.sealed = program.load()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            program.total(program.load())
    assert budget.remaining.gamma == pytest.approx(0.9)
    connection.close()


def test_what_a_sampler_keeps_is_no_part_of_it():
    """Workers would refuse a learned P that has been drawn from, and its estimates would be made again."""
    rng = np.random.default_rng(1)
    P = learn(rng.random(100), within=samplers.uniform(0, 1), epsilon=1)
    fresh = pickle.loads(pickle.dumps(P))
    P.draw(3, rng)
    assert fingerprint(P) == fingerprint(fresh)
