"""What code can read in modules and patched libraries counts, also if it changes at run time."""

import functools
import sys
import types

import numpy as np

from privatize.identity import origin as origins
from privatize.identity.fingerprint import fingerprint
from privatize.identity.origin import origin


def test_changes_at_run_time_are_seen(project):
    """A global, attribute or element that changes while the program runs would get the old noise."""
    main = project()
    seen = [fingerprint(main.f)]

    def take():
        seen.append(fingerprint(main.f))

    main.WEIGHTS[0] = 9.0
    take()
    main.OPTIONS["depth"].append(3)
    take()
    main.helpers.LIMIT = 7
    take()
    sys.modules["pkg.sub"].FACTOR = 4.0
    take()
    main.Child.factor = 5.0
    take()
    main.second.__defaults__ = (0.7,)
    take()
    main.f.note = 1
    take()
    main.second = lambda x: 0.0
    take()
    main.helpers.clip = np.sqrt
    take()
    assert len(set(seen)) == len(seen)


class Lazy(types.ModuleType):
    """A module that raises when a missing attribute is read."""

    def __getattr__(self, name):
        raise RuntimeError("not today")


def test_modules_that_raise_when_they_are_read(monkeypatch):
    """One broken module of another package would make every calibration fail."""
    lazy = Lazy("lazy_and_broken")
    monkeypatch.setitem(sys.modules, "lazy_and_broken", lazy)
    origin.cache_clear()
    assert origin("lazy_and_broken") is None
    assert "lazy_and_broken" in origins.own_modules()

    def inner(x):
        return x

    inner.__module__ = "lazy_and_broken"
    before = fingerprint(lambda x: inner(x))
    assert before == fingerprint(lambda x: inner(x))
    odd = types.ModuleType("odd")
    odd.__path__ = 5
    monkeypatch.setitem(sys.modules, "odd", odd)
    assert origin("odd") is None


def test_wrapped_or_compiled_functions_count_if_they_patch_a_library(monkeypatch):
    """A library's function that the user replaced would be taken for the library's own."""
    before = fingerprint(lambda x: np.mean(x))
    monkeypatch.setattr(np, "mean", functools.lru_cache(lambda x: 100 * x[0]))
    assert fingerprint(lambda x: np.mean(x)) != before
