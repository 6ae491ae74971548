"""Code is the user's own, an installed package's, Python's or this library's, with the right version."""

import os
import sys
from importlib import metadata
from unittest import mock

import numpy as np
import pytest

from privatize.identity import fingerprint as fingerprinting
from privatize.identity import origin as origins
from privatize.identity.fingerprint import fingerprint
from privatize.identity.origin import origin


def test_versions_count(monkeypatch):
    """Another Python, or another version of a library, may compute something else."""
    before = fingerprint(np.mean), fingerprint(len)
    monkeypatch.setattr(sys, "version_info", (3, 99, 0, "final", 0))
    fingerprinting._header.cache_clear()
    assert fingerprint(len) != before[1]
    monkeypatch.undo()
    fingerprinting._header.cache_clear()
    origin.cache_clear()
    monkeypatch.setattr(origins, "_version", lambda top: "99.0")
    assert fingerprint(np.mean) != before[0]
    monkeypatch.undo()
    origin.cache_clear()
    assert (fingerprint(np.mean), fingerprint(len)) == before


def test_whose_code_it_is():
    """Installed code counts by version and the user's own by content; otherwise changes would be missed."""
    assert origin("numpy") == f"numpy {np.__version__}"
    assert origin("json") == origin("builtins") == "python"
    assert origin("__main__") is None and origin(__name__) is None


@pytest.mark.parametrize("top", ["numpy", "scipy", "pandas", "sklearn"])
def test_versions_in_packages_are_the_installed_versions(top):
    """A key must not depend on whether a package that the function uses was imported before."""
    pytest.importorskip(top)
    version = origins._version.__wrapped__(top)
    assert version == metadata.version(origins._SELF_DESCRIBED[top])
    with mock.patch.dict(sys.modules):
        del sys.modules[top]
        assert origins._version.__wrapped__(top) == version


def test_a_package_that_is_installed_meanwhile_has_a_version(tmp_path, monkeypatch):
    """In a notebook, code of a package that was just installed would be encoded as the user's own."""
    monkeypatch.syspath_prepend(tmp_path)
    assert origins._version.__wrapped__("just_installed") == "?"
    (tmp_path / "Just.Installed.Now-1.5.dist-info").mkdir()
    for name, text in (
        ("METADATA", "Name: just.installed.now\nVersion: 1.5\n"),
        ("top_level.txt", "just_installed\n"),
    ):
        (tmp_path / "Just.Installed.Now-1.5.dist-info" / name).write_text(text)
    os.utime(tmp_path, (1, 1))
    assert origins._version.__wrapped__("just_installed") == "just.installed.now 1.5"
