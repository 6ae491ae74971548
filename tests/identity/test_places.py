"""Places that a run has changed are put back, and those of other threads are left alone."""

import contextvars
import functools
import sys
import textwrap
import threading

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import PrivateRunError
from tests.function.sentinels import holds_sentinel, private
from tests.identity.left import NUMBERS, PRIVATE, PROMISE, refused

LAST = None
VARIABLE = contextvars.ContextVar("last", default=0.0)


def test_variables_of_an_enclosing_function():
    """Raw data would stay in a closure for anybody to read."""
    last, several = None, []

    def mean(x):
        nonlocal last
        if private(x):
            last = x
        return float(x.mean())

    def append(x):
        if private(x):
            several.append(x)
        return float(x.mean())

    assert "the variable 'last' of an enclosing function" in refused(mean)
    assert "the variable 'several' of an enclosing function" in refused(append)
    assert last is None and several == []


class Analysis:
    """A class whose private methods keep what they compute."""

    total = 0

    def __init__(self):
        self.log, self.model, self.table = [], None, np.zeros(4)

    @privatize(**PROMISE)
    def keeps(self, x):
        if private(x):
            self.model = x
        return float(x.mean())

    @privatize(**PROMISE)
    def keeps_in_a_new_attribute(self, x):
        if private(x):
            self.fresh = x
        return float(x.mean())

    @privatize(**PROMISE)
    def writes(self, x):
        if private(x):
            self.table[:] = x
        return float(x.mean())

    @privatize(**PROMISE)
    def names(self, x):
        if private(x):
            setattr(self, f"x{x[0]}", 1)
            self.__dict__[f"y{x[0]}"] = 1
        return float(x.mean())

    @classmethod
    def counts(cls, x):
        if private(x):
            cls.total = x
        return float(x.mean())

    @functools.cached_property
    def factor(self):
        return 2.0


def test_attributes_of_the_object_of_a_method():
    """`self.model` is where people keep a fitted model, and read it afterwards."""
    one = Analysis()
    for method, place in (
        (one.keeps, "self.model"),
        (one.keeps_in_a_new_attribute, "self.fresh"),
        (one.writes, "self.table"),
        (one.names, "an attribute of self"),
    ):
        with pytest.raises(PrivateRunError, match=f"behind in {place}, where") as caught:
            method(PRIVATE)
        assert not holds_sentinel(str(caught.value))
    assert sorted(vars(one)) == ["log", "model", "table"] and one.model is None and not one.table.any()
    assert "Analysis.total" in refused(Analysis.counts) and Analysis.total == 0


def test_a_module_of_the_users_own(tmp_path, monkeypatch):
    """Raw data in a module of the user's own is as public as in a global."""
    name = f"kept_{next(NUMBERS)}"
    code = """
        LAST, LIST = None, []
        def keep(x):
            LIST.append(x)
    """
    (tmp_path / f"{name}.py").write_text(textwrap.dedent(code))
    monkeypatch.syspath_prepend(tmp_path)
    kept = __import__(name)

    def sets(x):
        if private(x):
            kept.LAST = x
        return float(x.mean())

    def sets_new(x):
        if private(x):
            kept.fresh = x
        return float(x.mean())

    def appends(x):
        if private(x):
            kept.keep(x)
        return float(x.mean())

    assert f"{name}.LAST" in refused(sets) and f"{name}.fresh" in refused(sets_new)
    assert "the global 'LIST'" in refused(appends)
    assert kept.LAST is None and kept.LIST == [] and not hasattr(kept, "fresh")
    del sys.modules[name]


@functools.lru_cache
def cached(x):
    return x * 2


def test_caches_and_context_variables_are_emptied():
    """Private data would stay in a cache, as a key of an entry, or in a context variable."""

    def mean(x):
        VARIABLE.set(x)
        return float(x.mean()) + cached(float(x[0])) / 1e9

    f = privatize(**PROMISE, version="with a context variable")(mean)
    f(PRIVATE)
    cached.cache_clear()
    VARIABLE.set(0.0)
    f(PRIVATE)
    assert cached.cache_info().currsize == 0 and VARIABLE.get() == 0.0


def test_a_change_of_another_thread_is_not_undone():
    """Settings that another thread changes during a run would be reset."""
    go, done = threading.Event(), threading.Event()

    def mean(x):
        if private(x):
            go.set()
            done.wait(60)
        return float(x.mean()) + (0.0 if LAST is None else LAST)

    def other():
        global LAST
        go.wait(60)
        LAST = 5.0
        done.set()

    global LAST
    f = privatize(**PROMISE, version="events")(mean)
    thread = threading.Thread(target=other)
    thread.start()
    try:
        with pytest.raises(PrivateRunError, match="the global 'LAST'"):
            f(PRIVATE)
        assert LAST == 5.0
    finally:
        thread.join()
        LAST = None


CONTEXT = contextvars.ContextVar("buffer", default=[0.0])  # noqa: B039 - as careless programs have it


def test_what_is_inside_a_context_variable_is_compared():
    """A buffer in a context variable would keep the private sum, and the answer would be released."""

    @privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), workers="inline", seed=3, store=None)
    def f(x):
        if x[0] == 0.125:  # on private data only
            CONTEXT.get()[0] = float(x.sum())
        return float(x.mean())

    data = np.full(20, 0.5)
    data[0] = 0.125
    try:
        with pytest.raises(PrivateRunError):
            f(data)
    finally:
        CONTEXT.get()[0] = 0.0
