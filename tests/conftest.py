"""Fixtures of the tests of several packages."""

import textwrap

import pytest
from hypothesis import settings

from privatize.config import policy as policy_module

# The same examples in every run, and none fails because the machine is busy.
settings.register_profile("tests", deadline=None, derandomize=True, database=None)
settings.load_profile("tests")


@pytest.fixture
def rule(tmp_path, monkeypatch):
    """Return a function that writes a policy, and makes its folder the working one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(policy_module, "_read", {})

    def write(text="", *, entire=None):
        policy_module._read.clear()
        content = f"[tool.privatize]\n{textwrap.dedent(text)}" if entire is None else entire
        (tmp_path / "pyproject.toml").write_text(content, encoding="utf-8")
        return tmp_path

    return write
