"""The module that the fork server imports does nothing anywhere else."""

import importlib
import json
import os
import sys

from privatize.execution.processes import libraries, preload


def test_nothing_happens_without_the_variable(monkeypatch):
    """Whoever imports it would load libraries, or end."""
    monkeypatch.setattr(libraries, "load", lambda _: 1 / 0)
    importlib.reload(preload)


def test_the_variable_is_used_up(monkeypatch):
    """Programs that a function starts would inherit the variable."""
    given, found = json.dumps([sys.path, [], ["zipapp"]]), []
    monkeypatch.setattr(libraries, "load", found.append)
    monkeypatch.setenv(libraries.VARIABLE, given)
    importlib.reload(preload)
    assert found == [given] and libraries.VARIABLE not in os.environ
