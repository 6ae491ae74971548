"""The arguments that commands are given reach the private function as their user meant them."""

import json
import math

import pytest

from privatize.cli.calls import settings_of
from tests.cases import for_each
from tests.cli.started import started


def test_estimate_with_other_arguments(app, facts, run):
    """A function with parameters could not be calibrated ahead; and its prints would spoil the document."""
    words = ["estimate", "shop.figures:histogram", "-n", "30", "--set", "bins=4", "--set", "how=fast"]
    found = facts(*words)
    assert found["arguments"] == {"bins": "4", "how": "'fast'"}
    from shop.figures import histogram

    assert histogram.remembers(30, bins=4, how="fast") and not histogram.remembers(30, bins=5, how="fast")
    done = started(*words[:3], "31", *words[4:], "--json", "--workers", "2")
    assert json.loads(done.stdout)["rows"][0]["n"] == 31 and "working fast" in done.stderr


def test_estimate_writes_a_report(app, run, wrong):
    """A report that cannot be written would be noticed after hours of calibration."""
    out, _ = run("estimate", "shop.figures:average_age", "-n", "40", "-n", "50", "--report", "page.html")
    assert "average_age" in (app / "page.html").read_text(encoding="utf-8") and "page.html" in out
    slow = ("estimate", "shop.figures:slow", "-n", "40", "--report")
    assert "no folder" in wrong(*slow, "no/such/page.html")
    assert "that is a folder" in wrong(*slow, "shop")


@for_each(
    ("text", "value"),
    [
        ("x=1", 1),
        ("x= [1, 2] ", [1, 2]),
        ("x='1'", "1"),
        ("x=None", None),
        ("x=", ""),
        ("x=a=b", "a=b"),
        ("x={'a': 1", "{'a': 1"),
        ("x=__import__('os')", "__import__('os')"),
        ("x=" + "[" * 300, "[" * 300),
        ("x=1e400", math.inf),
        ("x=\x00", "\x00"),
    ],
)
def test_values_of_set_are_literals_or_strings(text, value):
    """A value that looks like code would be run, or one that is no literal would be refused."""
    assert settings_of([text]) == {"x": value}


@pytest.mark.parametrize("name", ["seed=1", "pairs=5", "audit=1", "sampler=2"])
def test_arguments_that_an_audit_has_itself(app, wrong, name):
    """A function's parameter would be taken for the audit's own."""
    message = wrong("audit", "shop.figures:average_age", "-n", "20", "--set", name)
    assert "is ambiguous" in message


# --- P that comes with sealed data --------------------------------------------------------------

OPEN = """
import numpy as np
from privatize import privatize, samplers, seal, sums

P = samplers.uniform(0, 1)
staff = seal(np.full(40, 0.5), name="staff", sampler=P)
bare = seal(np.full(40, 0.5), name="bare")


@privatize(epsilon=1, gamma=0.2)
def mean(x):
    return float(x.mean())


own = mean.replace(sampler=P)
total = privatize(epsilon=1, unit=None)(sums.means(bounds=(0, 1)))
"""


@pytest.fixture
def without_p(app):
    """Write a module with a function that has no P."""
    (app / "shop" / "open.py").write_text(OPEN, encoding="utf-8")
    return app


@pytest.mark.parametrize("command", ["estimate", "audit"])
def test_the_p_of_sealed_data(without_p, facts, wrong, command):
    """A function without a P of its own could not be calibrated ahead, nor audited."""
    few = () if command == "estimate" else ("--pairs", "50", "--releases", "0")
    found = facts(command, "shop.open:mean", "--data", "shop.open:staff", *few)
    assert found["function"] == "shop.open:mean"
    assert (found["rows"][0]["n"] if command == "estimate" else found["n"]) == 40
    found = facts(command, "shop.open:mean", "--data", "shop.open:staff", "-n", "20", *few)
    assert (found["rows"][0]["n"] if command == "estimate" else found["n"]) == 20
    message = wrong(command, "shop.open:mean", "-n", "20", *few)
    assert message == (
        "shop.open:mean has no P of its own: its P comes with sealed data. Name that data: "
        "--data shop.open:staff.\n"
    )
    assert "--data shop.open:bare has no P" in wrong(command, "shop.open:mean", "--data", "shop.open:bare")
    message = wrong(command, "shop.open:own", "--data", "shop.open:staff")
    assert message.endswith(
        "has a P of its own, so the data is not needed. Leave --data shop.open:staff out.\n"
    )
    message = wrong(command, "shop.open:total", "--data", "shop.open:staff")
    assert (
        message
        == "shop.open:total needs no P, so the data is not needed. Leave --data shop.open:staff out.\n"
    )
    assert "is a PrivateFunction, not a sealed" in wrong(command, "shop.open:mean", "--data", "shop.open:own")


def test_how_many_records(without_p, wrong):
    """The numbers of records are asked for, and a wrong one is refused before anything runs."""
    assert wrong("audit", "shop.open:own") == "How many records? Pass -n 1000, or --data with sealed data.\n"
    for command in ("audit", "estimate"):
        assert wrong(command, "shop.open:own", "-n", "0").startswith("-n 0 is not a number of records")
