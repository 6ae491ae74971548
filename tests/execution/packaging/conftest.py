"""Fixtures of the tests of packaging."""

import importlib
import sys
import textwrap

import pytest

from privatize.calibration.run import Run
from privatize.identity.origin import origin


@pytest.fixture
def unchecked(monkeypatch):
    """Skip the check of two pairs at the end, which cannot find differences on rare data."""
    monkeypatch.setattr(Run, "check_again", lambda *_, **__: None)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that writes modules (`box__lid` is box/lid.py, `box__` its init) and imports one."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)

    def build(wanted="user", **files):
        for name, text in files.items():
            parts = name.split("__")
            for known in [known for known in sys.modules if known.partition(".")[0] == parts[0]]:
                if origin(known) is None:
                    sys.modules.pop(known)  # another test's
            path = tmp_path.joinpath(*parts[:-1], f"{parts[-1] or '__init__'}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        importlib.invalidate_caches()
        origin.cache_clear()
        return importlib.import_module(wanted)

    yield build
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            sys.modules.pop(name)
    origin.cache_clear()
