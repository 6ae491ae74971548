"""The command line does its job in a newcomer's first minute."""

import subprocess
import sys

import pytest

from privatize import __version__
from privatize.cli import main


def test_demo(capsys):
    """The demo shows three private answers and what they cost."""
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    for title in ("the average age", "age group", "linear classifier"):
        assert title in out
    for fact in ("raw answer", "private answer", "k=544 of m=557", "global bound", "scale", "none known"):
        assert fact in out
    assert out.count("private answer") == 3


def test_demo_with_other_promises(capsys):
    """A newcomer can try another promise, and a wrong one gets one line."""
    assert main(["demo", "--epsilon", "0.1", "--gamma", "0.2"]) == 0
    assert "k=72 of m=79" in capsys.readouterr().out
    assert main(["demo", "--gamma", "2"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("privatize: gamma=2.0") and shown.err.count("\n") == 1


def test_help_and_version(capsys):
    """Without a command, help is shown."""
    assert main([]) == 2
    assert "demo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0 and __version__ in capsys.readouterr().out


def test_as_a_module():
    """`python -m privatize` is the same program."""
    done = subprocess.run(
        [sys.executable, "-m", "privatize", "demo"], capture_output=True, text=True, check=True
    )
    assert "private classifier is right" in done.stdout and done.stderr == ""
