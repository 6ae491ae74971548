"""Every name that code can read is found, and names that are put together at run time are a doubt."""

import importlib
import sys
import types

import pytest

from privatize.identity.fingerprint import Unencodable, fingerprint
from tests.identity.projects import write


def test_packages_of_modules_imported_inside(tmp_path, monkeypatch):
    """`import box.lid` in a function reads box too, and `from box import lid` reads lid: both may change."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    found = []
    for limit in (1, 1000):
        user = "def f(x):\n    import box.lid\n    return x * box.LIMIT"
        write(tmp_path, box__lid="DEPTH = 1", user=user)
        (tmp_path / "box" / "__init__.py").write_text(f"LIMIT = {limit}")
        found.append(fingerprint(importlib.import_module("user").f))
    assert found[0] != found[1]
    found = []
    for depth in (1, 2):
        user = "def f(x):\n    from box import lid\n    return x * lid.DEPTH"
        write(tmp_path, user=user, box__lid=f"DEPTH = {depth}")
        function = importlib.import_module("user").f
        found += [fingerprint(function), fingerprint(function)]  # the first one imports it
    assert found[0] == found[1] != found[2] == found[3]


@pytest.mark.parametrize(
    "body",
    [
        'importlib.import_module("box.lid").DEPTH',
        'sys.modules["box.lid"].DEPTH',
        "sys.modules[__name__].DEPTH",
    ],
)
def test_modules_that_are_named_by_a_string(body, tmp_path, monkeypatch):
    """If a module that is looked up by a literal or `__name__` changed, answers would get the old noise."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    user = f"import importlib, sys\nimport box.lid\nDEPTH = 1\ndef f(x):\n    return x * {body}"
    write(tmp_path, box__lid="DEPTH = 1", box____init__="", user=user)
    function = importlib.import_module("user").f
    before = fingerprint(function)
    assert fingerprint(function) == before
    sys.modules["box.lid"].DEPTH = sys.modules["user"].DEPTH = 2
    assert fingerprint(function) != before


@pytest.mark.parametrize(
    "lookup",
    [
        'getattr(helpers, "LI" + END)',
        'getattr(helpers, "LI%s" % END)',
        'getattr(helpers, "LIMIT!"[:5])',
        'globals()["LI" + END]',
        'eval("LI" + END)',
    ],
)
def test_names_that_are_put_together_count_as_computed(lookup):
    """An attribute that no literal names would change without a new calibration."""
    keys = set()
    for limit in (1, 100):
        helpers = types.ModuleType("helpers")
        helpers.LIMIT = limit
        program = {"__name__": "__main__", "helpers": helpers, "END": "MIT", "LIMIT": limit}
        exec(f"def f(x): return x.mean() * {lookup}", program)
        try:
            keys.add(fingerprint(program["f"]))
        except Unencodable:
            keys.add(limit)
    assert len(keys) == 2
