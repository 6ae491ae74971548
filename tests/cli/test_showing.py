"""What commands print can be read by people and parsed by programs, and shows no password."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from privatize import Budget
from privatize.cli.showing import as_json, columns, cost, discreet, hide, one_line, place
from privatize.display.figures import duration
from tests.cases import for_each


def test_json_has_no_bare_infinities():
    """Parsers other than Python's would fail on Infinity and NaN."""
    value = {"a": math.inf, "b": [-math.inf, math.nan], 3: np.float64(1.5), "c": np.arange(2), "d": Path("x")}
    text = as_json(value)
    assert json.loads(text) == {"a": "Infinity", "b": ["-Infinity", "NaN"], "3": 1.5, "c": [0, 1], "d": "x"}


@for_each(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (2.5e-7, "0.2 us"),
        (3e-5, "30 us"),
        (0.0123, "12 ms"),
        (0.38, "380 ms"),
        (59, "59 s"),
        (89, "89 s"),
        (120, "2 min"),
        (6000, "1.7 h"),
        (2e5, "2.3 days"),
        (4e7, "463 days"),
        (1e10, "317 years"),
    ],
)
def test_times_are_readable(seconds, shown):
    """A plan that takes 463 days would say 39999999 s."""
    assert duration(seconds) == shown


@for_each("text", ["", "0", "-1", "x", "1 week", "1..2", "nan", "inf", "ms", "1e999"])
def test_wrong_times_are_refused(text):
    """A typing error in --cost would plan with nonsense."""
    with pytest.raises(ValueError, match="is not a time"):
        cost(text)


def test_columns_are_aligned():
    """Numbers that are not aligned are hard to compare."""
    assert columns([("a", "m"), ("bb", "10"), ("c", "5")], right=[1]) == "a    m\nbb  10\nc    5"


@for_each(
    "url",
    [
        "postgresql://me:hush-hush@host/db",
        "postgresql://me:hush-hush@with@signs@host/db",
        "postgresql://me:hush hush@host/db",
        "postgresql://me:hush%20hush%zz@host/db",
        "postgresql://me:hush/hush@host/db",
        "postgresql://host/db?user=me&password=hush-hush",
        "postgresql://hush:postgres@host/db",  # the password is a part of the scheme's name
    ],
)
def test_passwords_are_never_shown(url):
    """A log of this command would contain the database's password."""
    hide(url)
    inside = url.rpartition("password=")[2].rpartition("me:")[2].partition("@host")[0]
    strings = [url, f"invalid token {inside!r}", f"at {url}: no server", inside]
    for text in (place(url), *map(discreet, strings), *map(one_line, strings)):
        assert "hush" not in text, text
    assert place(url) == "postgresql://host/db"
    assert place("folder/a.db") == "folder/a.db"


def test_names_cannot_control_a_terminal(app, run):
    """A name that somebody has chosen in a shared ledger would clear the screen, or forge a line."""
    Budget("a\nok  b\x1b[2J", epsilon=1, gamma=1, ledger=app / "ledger.db")
    for words in (["show"], ["verify"], ["show", "a\nok  b\x1b[2J"]):
        out, _ = run("ledger", *words, "--ledger", "ledger.db")
        assert "\x1b" not in out and "a\\nok" in out
