"""Fixtures of the tests of identity."""

import importlib
import itertools
import sys
import textwrap

import pytest

from privatize.identity.origin import origin
from tests.identity.projects import FILES


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Return a function that writes a module and imports it; remove the modules after the test."""
    monkeypatch.syspath_prepend(str(tmp_path))
    names = []
    count = itertools.count()

    def load(text, name=None):
        name = name or f"made_for_declared_{next(count)}"
        names.append(name)
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
        sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    load("import types\nSHIFT = 1\ninner = types.ModuleType('inner')\ninner.DEEP = 2\n", "other_of_declared")
    yield load
    for name in names:
        sys.modules.pop(name, None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that writes, imports and fingerprints a project with edits applied."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def build(*edits):
        for name, text in FILES.items():
            text = textwrap.dedent(text)
            for file, before, after in edits:
                if file == name:
                    assert before in text, before
                    text = text.replace(before, after)
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        for module in ("helpers", "pkg", "pkg.sub", "late", "main"):
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        origin.cache_clear()
        return importlib.import_module("main")

    yield build
    for module in ("helpers", "pkg", "pkg.sub", "late", "main"):
        sys.modules.pop(module, None)
    origin.cache_clear()
