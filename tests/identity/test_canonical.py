"""Values have the same exact JSON everywhere, and two values never share one."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privatize
from privatize.identity.declared import declare
from tests import golden
from tests.identity.sources import CASES, FUNCTION, KNOWN, s

PACKAGE = str(Path(privatize.__file__).parents[1])


def digest(sampler):
    return declare(sampler).digest


numbers = st.floats(-1e300, 1e300) | st.integers(-(10**6), 10**6)


@settings(max_examples=200, deadline=None)
@given(numbers, numbers, numbers, numbers)
def test_digests_are_equal_exactly_if_parameters_are(a, b, c, d):
    """A digit that the encoding lost would make one P of two laws."""
    if not (a < b and c < d):
        return
    same = (float(a), float(b)) == (float(c), float(d))
    assert (digest(s.uniform(a, b)) == digest(s.uniform(c, d))) == same
    assert (repr(s.uniform(a, b)) == repr(s.uniform(c, d))) == same


values = st.lists(st.text(max_size=5), min_size=1, max_size=4, unique=True)


@settings(max_examples=100, deadline=None)
@given(values, values)
def test_digests_of_strings_are_equal_exactly_if_they_are(one, other):
    """A string with quotes, brackets or lone surrogates must not be taken for another one."""
    assert (digest(s.choice(one)) == digest(s.choice(other))) == (one == other)
    assert declare(s.choice(one)).lossless


class TestVersions:
    """What may change without making another P, and what may not."""

    def test_names_and_modules_of_classes(self):
        """Moving or renaming a class of this package would lock people out of their ledgers."""
        P = s.table(a=s.uniform(0, 1), b=s.uniform(0, 1).map(np.exp))
        before, kinds = digest(P), [type(P), type(s.uniform(0, 1))]
        places = [(kind.__module__, kind.__qualname__, kind.__name__) for kind in kinds]
        try:
            for at, kind in enumerate(kinds):
                kind.__name__ = kind.__qualname__ = f"Renamed{at}"
                kind.__module__ = "privatize.moved"
            assert digest(s.table(a=s.uniform(0, 1), b=s.uniform(0, 1).map(np.exp))) == before
        finally:
            for kind, (module, qualname, name) in zip(kinds, places, strict=True):
                kind.__module__, kind.__qualname__, kind.__name__ = module, qualname, name

    def test_draws_and_laws(self, monkeypatch):
        """A fix that changes the distribution is another P; one that changes only the draws is not."""
        kind = type(s.uniform(0, 1))

        def draw(n, rng):
            return s.uniform(0, 1).draw(n, rng)

        before = digest(s.table(a=s.uniform(0, 1))), digest(draw)
        monkeypatch.setattr(kind, "draw_version", 2)
        assert (digest(s.table(a=s.uniform(0, 1))), digest(draw)) == before
        monkeypatch.setattr(kind, "law_version", 2)
        assert digest(s.table(a=s.uniform(0, 1))) != before[0]
        assert digest(draw) != before[1]

    def test_versions_of_python_and_of_libraries(self, monkeypatch):
        """A team on Python 3.11.8 and 3.11.9 would be refused, with two identical P printed."""
        before = {name: digest(case) for name, case in CASES.items()}
        monkeypatch.setattr(sys, "version_info", (3, 99, 9, "final", 0))
        for library in (np, pd):
            monkeypatch.setattr(library, "__version__", "99.0")
        assert {name: digest(case) for name, case in golden.sampler_cases().items()} == before


class TestOnlyThisObject:
    """An object that cannot be compared equals only itself."""

    def test_open_files_and_generators(self):
        """Two P that cannot be compared would share a budget."""
        with open(os.devnull) as one, open(os.devnull) as other:  # noqa: PTH123

            def maker(state):
                def draw(n, rng):
                    return rng.random(n) + bool(state)

                return draw

            def numbers():
                yield 1

            states = [one, other, numbers(), numbers(), threading.local()]
            found = [declare(maker(state)) for state in states]
            assert len({each.digest for each in found}) == len(found)
            assert not any(each.lossless for each in found)
            assert all(each.digest.startswith("P1-object:") for each in found)
            assert declare(maker({numbers()})).digest.startswith("P1-object:")
            assert declare(maker(one)).digest == found[0].digest
            assert one.read() == ""  # the file is still open

    def test_code_that_looks_things_up(self):
        """No syntax tree shows what eval or globals() finds: two laws would be taken for one P."""

        def evaluated(n, rng):
            return eval("rng.random(n)")

        def looked_up(n, rng):
            return rng.random(n) * globals()["FACTOR"]

        def in_a_module(n, rng):
            return rng.random(n) * sys.modules["other_of_declared"].SHIFT

        for function in (evaluated, looked_up, in_a_module):
            copy = type(function)(function.__code__, function.__globals__, function.__name__)
            assert digest(function) == digest(function) != digest(copy)

    def test_objects_that_raise_when_they_are_inspected(self):
        """An object that raises would crash the ledger, or two such objects would be one P."""

        class Odd:
            def __reduce_ex__(self, protocol):
                raise RuntimeError("no")

            def __getattr__(self, name):
                raise RuntimeError(name)

        class Own:
            __slots__ = ("file",)

            def draw(self, n, rng):
                return rng.random(n)

        odd = Odd()

        def draw(n, rng):
            return rng.random(n) + (odd is None)

        assert digest(draw) == digest(draw)
        assert digest(Own()) == digest(Own())
        nested = []
        for _ in range(5000):
            nested = [nested]

        def deep(n, rng):
            return rng.random(n) + len(nested)

        P = s.from_function(deep)
        assert digest(P) == digest(P) != digest(s.from_function(deep))


SCRIPT = """
import json, sys
sys.path[:0] = [{package!r}, {folder!r}]
{text}
from privatize import samplers
from privatize.identity.declared import declare
from tests import golden
found = {{name: declare(case).digest for name, case in golden.sampler_cases().items()}}
found["draw"] = declare(draw).digest
print(json.dumps(found))
"""


@pytest.mark.parametrize("imported", [True, False])
def test_other_processes_agree(load, tmp_path, imported):
    """A ledger that a script has opened first could not be used from a notebook, or by anybody else."""
    text = FUNCTION.replace("range(3)", "{1, 2, 'x'} and range(3)")
    made = load(text, "shared_for_declared")
    text = "from shared_for_declared import draw" if imported else text
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(package=PACKAGE, folder=str(tmp_path), text=text), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": "12345", "PYTHONPATH": PACKAGE},
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found.pop("draw") == digest(made.draw)
    assert found == KNOWN
