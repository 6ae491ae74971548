"""`privatize estimate` calibrates ahead of time, and its exit code says how it went."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from tests.cli.started import started


def test_estimate_calibrates_and_remembers(app, run, facts):
    """What was calibrated ahead would be calibrated again by the program that needs it."""
    out, err = run("estimate", "shop.figures:average_age", "-n", "40", "-n", "50", "-n", "40")
    assert out.count(" took ") == 2 and err == "" and "± with 95%" in out
    out, _ = run("estimate", "shop/figures.py:average_age", "-n", "40", "-n", "50")
    assert out.count("remembered") == 2
    from shop.figures import average_age

    assert average_age.remembers(40) and average_age.remembers(50)
    found = facts("estimate", "shop.figures:average_age", "-n", "40")
    (row,) = found["rows"]
    made = average_age.estimate(40)
    assert found["function"] == "shop.figures:average_age" and row["remembered"] and row["kept"]
    assert (row["sensitivity"], row["m"], row["k"], row["gamma"]) == (made.value, made.m, made.k, made.gamma)
    assert row["scale"] == made.value and row["error95"] == average_age.error_at(40)


def test_estimate_takes_its_sizes_from_the_policy(app, facts, wrong):
    """A build would repeat in its script what the policy says."""
    assert [row["n"] for row in facts("estimate", "shop/figures.py:average_age")["rows"]] == [40, 50]
    assert "Pass -n 1000" in wrong("estimate", "shop.figures:choose")


def test_estimate_of_other_mechanisms(app, facts, run):
    """A mechanism without noise, or with several scales, would not fit into the table."""
    assert "below best" in run("estimate", "shop.figures:choose", "-n", "30")[0]
    assert len(facts("estimate", "shop.figures:several", "-n", "30")["rows"][0]["scale"]) == 2
    assert " to " in run("estimate", "shop.figures:several", "-n", "30")[0]
    assert facts("estimate", "shop.figures:Inner.deep", "-n", "30")["rows"][0]["gamma"] == 0.3


def test_a_refused_calibration_is_code_1(app, run, facts):
    """A build could not tell a function that cannot be private from a typing error."""
    out, err = run("estimate", "shop.figures:constant", "-n", "30", code=1)
    assert "refused" in out and err.startswith("privatize: n=30: ") and err.count("\n") == 1
    found = facts("estimate", "shop.figures:sometimes", "-n", "30", "-n", "31", code=1)
    assert found["rows"][0]["kind"] == "InfiniteSensitivityError" and found["rows"][1]["kept"]
    _, err = run("estimate", "shop.figures:constant", "-n", "30", "--report", "r.html", code=1)
    assert "no report was written" in err and not (app / "r.html").exists()


def test_an_estimate_that_is_not_remembered_is_code_2(app, run, monkeypatch):
    """A build that calibrates ahead would be green, and the next program would calibrate again."""
    out, err = run("estimate", "shop.figures:unmemorable", "-n", "30", code=2)
    assert "NOT REMEMBERED" in out and err.count("privatize: warning: ") == 1 and err.count("\n") == 2
    monkeypatch.setenv("PRIVATIZE_STORE", str(app / "shop"))  # a folder
    out, err = run("estimate", "shop.figures:average_age", "-n", "30", code=2)
    assert "NOT REMEMBERED" in out and "warning: Estimates cannot be remembered in" in err
    monkeypatch.setenv("PRIVATIZE_STORE", "")
    assert "memory" in run("estimate", "shop.figures:average_age", "-n", "30")[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["shop.figures"], "is not module:function"),
        (["shop.figures:"], "is not module:function"),
        ([":f"], "is not module:function"),
        (["shop.figures:nothing"], "has no 'nothing'. Its private functions: average_age"),
        (["shop.figures:raw"], "decorate it"),
        (["shop.figures:P"], "not a private function"),
        (["shop:f"], "It has no private function"),
        (["no_such_module:f"], "No module named 'no_such_module'"),
        (["no/such/file.py:f"], "there is no such file"),
        (["shop/:f"], "is a folder"),
        (["shop.raising:f"], "shop.raising cannot be imported: RuntimeError: two lines"),
        (["shop.leaving:f"], "SystemExit: bye"),
        (["shop/wrong.py:f"], "SyntaxError"),
        (["shop.figures:words"], "returns a str"),
        (["shop.figures:sealed_only"], "has no P"),
        (["shop.figures:histogram"], "Given: nothing but the number of records"),
        (["shop.figures:average_age", "--set", "nope=1"], "Given: --set nope=1"),
        (["shop.figures:average_age", "--set", "nope"], "is not name=value"),
        (["shop.figures:average_age", "--set", "1x=2"], "is not name=value"),
        (["shop.figures:average_age", "--set", "a=1", "--set", "a=2"], "given twice"),
        (["shop.figures:average_age", "--set", "known=1", "--report", "a.html"], "is ambiguous"),
        (["shop.figures:average_age", "-n", "0"], "-n 0 is not a number of records"),
        (["shop.figures:average_age", "-n", "-5"], "-n -5 is not a number of records"),
        (["shop.figures:average_age", "--workers", "many"], "workers='many'"),
        (["shop.figures:average_age", "--workers", "0"], "workers=0"),
    ],
)
def test_estimates_that_cannot_be_made(app, wrong, words, message):
    """Whoever mistypes would have to read a traceback of somebody else's code."""
    assert message in wrong("estimate", "-n", "30", *words)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are not the same there")
@pytest.mark.parametrize("workers", ["inline", "2"])
def test_an_interrupted_estimate_is_continued_next_time(app, workers):
    """Ctrl-C would leave a traceback or running workers, or lose the pairs that were done."""
    words = [
        sys.executable,
        "-m",
        "privatize",
        "estimate",
        "shop.figures:slow",
        "-n",
        "25",
        "--workers",
        workers,
    ]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell's background jobs ignore Ctrl-C, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        store = app / "estimates.db"
        until = time.monotonic() + 60
        while not (store.exists() and store.stat().st_size) and time.monotonic() < until:
            time.sleep(0.05)
        time.sleep(2)  # some pairs are done by now, or none: either is fine
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == 130 and out == ""
    assert err.startswith("privatize: interrupted") and err.count("\n") == 1
    entries = json.loads(started("store", "list", "--json").stdout)["estimates"]
    assert [entry["finished"] for entry in entries] in ([], [0])
    seeds = [entry["seed"] for entry in entries]
    again = json.loads(started(*words[3:], "--json").stdout)["rows"][0]
    assert seeds in ([], [again["seed"]]) and again["kept"]
