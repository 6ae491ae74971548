"""The command line does its job in the first minute, in scripts, and when things go wrong."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from privatize import __version__
from privatize.cli import doctor
from privatize.cli.parser import _COMMANDS, _parser, main
from tests.cli.started import started

# --- demo, help and errors -------------------------------------------------------------------------


def test_help_and_version(capsys):
    """Without a command, help is shown."""
    assert main([]) == 2
    assert "demo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0 and __version__ in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["nonsense"],
        ["store", "nonsense"],
        ["demo", "--nonsense"],
        ["demo", "--eps", "1"],  # no abbreviations, which a later option would break
        ["demo", "--epsilon", "much"],
        ["audit", "shop.figures:average_age"],
        ["store", "show"],
        ["ledger", "export", "--format", "xml"],
        ["plan", "--m", "some"],
        ["plan", "--gamma", "0.05", "--bound", "chernoff"],
        ["plan", "--gamma", "0.05", "--cost", "quick"],
        ["plan", "--gamma", "0.05", "--workers", "0"],
        ["plan"],
        ["plan", "--m", "least"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line(words, wrong, facts):
    """A script's log would be full of usage, and the reason somewhere in it."""
    message = wrong(*words)
    document = facts(*words, code=2)
    assert document["error"] == message.strip() and document["code"] == 2


def test_as_a_module():
    """`python -m privatize` is the same program."""
    done = started("demo")
    assert done.returncode == 0
    assert "private classifier is right" in done.stdout and done.stderr == ""


def test_json_and_debug_go_anywhere(capsys, app):
    """An option that is put before the command would be refused as unknown."""
    for words in (["--json", "plan", "--m", "50"], ["plan", "--json", "--m", "50"]):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["m"] == 50
    for words in (["--json", "store", "list"], ["store", "--json", "list"], ["store", "list", "--json"]):
        assert main(words) == 0
        assert json.loads(capsys.readouterr().out)["estimates"] == []
    for words in (["--debug", "plan"], ["plan", "--debug"]):
        assert main(words) == 2
        lines = capsys.readouterr().err.splitlines()
        assert lines[0].startswith("Traceback") and lines[-1].startswith("privatize: plan needs")


def test_a_closed_pipe_is_no_error():
    """`privatize ... | head` would end in a traceback."""
    code = (
        f"{sys.executable} -m privatize demo | head -1; {sys.executable} -m privatize plan --gamma 0.1 | true"
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, timeout=120)
    assert (
        done.stderr == "" and done.stdout.startswith("1000 made-up people") and done.stdout.count("\n") == 1
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_one_line():
    """A cron job whose disk is full would report success, or a traceback."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "privatize", "plan", "--gamma", "0.1"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=300,
        )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "cannot be written" in done.stderr


def test_a_terminal_that_knows_ascii_only(app):
    """On a terminal that has only ASCII, ± would be an error."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    done = started("estimate", "shop.figures:average_age", "-n", "20", env=environment)
    assert done.returncode == 0 and "? with 95%" in done.stdout and done.stderr == ""


def test_an_unforeseen_error_is_one_line_too(monkeypatch, wrong):
    """A bug would print a page of traceback, not one line that says how to see it."""

    def fails(*_):
        raise ZeroDivisionError("division\nby zero")

    monkeypatch.setattr(doctor, "_dependencies", fails)
    assert wrong("doctor") == "ZeroDivisionError: division by zero (--debug shows where)\n"


# --- the page ---------------------------------------------------------------------------------------


def test_the_page_in_the_docs_is_true():
    """A command that is copied from the docs would fail."""
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text(encoding="utf-8")
    blocks = "\n".join(page.split("```\n")[1::2])
    lines = [line.removeprefix("privatize ") for line in blocks.splitlines() if line.startswith("privatize ")]
    lines += [line for line in re.findall(r"`([^`\n]+)`", page) if re.match(r"(plan|demo) --", line)]
    assert len(lines) >= 14 + 2
    for line in lines:
        given, rest = _parser().parse_known_args(shlex.split(line))
        assert not rest and callable(given.run), line
    commands = set(re.findall(r"^\| `([a-z]+)` \|", page, re.MULTILINE))
    assert commands == {command.name for command in _COMMANDS}


# --- completion ------------------------------------------------------------------------------------


def test_completion():
    """Whoever installs the extra would get no completion."""
    pytest.importorskip("argcomplete", reason="argcomplete is not installed (extra completion)")
    line = "privatize store "
    environment = os.environ | {"_ARGCOMPLETE": "1", "COMP_LINE": line, "COMP_POINT": str(len(line))}
    environment |= {"_ARGCOMPLETE_IFS": " ", "COMP_TYPE": "9"}
    code = f"{sys.executable} -m privatize 8>&1 9>/dev/null 1>/dev/null"
    done = subprocess.run(
        ["bash", "-c", code], capture_output=True, text=True, env=environment, timeout=60, check=False
    )
    assert {"list", "show", "forget", "export", "import"} <= set(done.stdout.split())
