"""The command line does its job in the first minute, in scripts, and when things go wrong."""

import contextlib
import csv
import io
import json
import math
import os
import shlex
import signal
import sqlite3
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from privatize import Budget, __version__, plan, privatize, samplers, seal
from privatize.budgets.charges import Charge
from privatize.budgets.ledger import Ledger
from privatize.cli import doctor
from privatize.cli.calls import settings_of
from privatize.cli.parser import _parser, main
from privatize.cli.showing import as_json, columns, cost, discreet, duration, hide, one_line, place
from privatize.errors import LedgerError
from privatize.outputs.describe import describe
from privatize.storage.estimates import Store, open_store
from tests.cases import for_each

MODULE = """
    import sys
    import time

    import numpy as np
    from privatize import Exponential, Laplace, privatize, samplers

    P = samplers.uniform(0, 100)
    promise = dict(epsilon=1, gamma=0.2, sampler=P)


    @privatize(**promise)
    def average_age(ages):
        return ages.mean()


    @privatize(**promise)
    def histogram(ages, bins, how="slowly"):
        print("working", how)
        return np.histogram(ages, bins=bins, range=(0, 100))[0]


    @privatize(**promise)
    def constant(ages):
        return 5.0


    @privatize(**promise)
    def sometimes(ages):
        if len(ages) == 30:
            raise RuntimeError("two\\nlines")
        return ages.mean()


    @privatize(**promise)
    def words(ages):
        return "words"


    @privatize(**promise, mechanism=Exponential(responses=["young", "old"]))
    def choose(ages):
        return [(ages < 50).sum(), (ages >= 50).sum()]


    @privatize(**promise, mechanism=Laplace(scaled="relative"))
    def several(ages):
        return {"mean": ages.mean(), "sum": ages.sum()}


    @privatize(**promise)
    def slow(ages):
        time.sleep(0.05)
        return ages.mean()


    log = open(__file__)


    @privatize(**promise)
    def unmemorable(ages):
        log.tell()
        return ages.mean()


    @privatize(epsilon=1, gamma=0.2)
    def sealed_only(ages):
        return ages.mean()


    def raw(ages):
        return ages.mean()


    class Inner:
        deep = average_age.replace(gamma=0.3)
"""


@pytest.fixture
def app(tmp_path, monkeypatch):
    """Write a package with private functions, and a store and a ledger of its own."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text("")
    (tmp_path / "shop" / "figures.py").write_text(textwrap.dedent(MODULE))
    (tmp_path / "shop" / "raising.py").write_text("raise RuntimeError('two\\nlines')\n")
    (tmp_path / "shop" / "leaving.py").write_text("import sys\nsys.exit('bye')\n")
    (tmp_path / "shop" / "wrong.py").write_text("def f(:\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.privatize]\nn = {"shop.figures:average_age" = [40, 50]}\n', encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setenv("PRIVATIZE_STORE", str(tmp_path / "estimates.db"))
    monkeypatch.delenv("PRIVATIZE_LEDGER", raising=False)
    yield tmp_path
    for url in (tmp_path / "estimates.db",):
        open_store(str(url)).database.close()
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "shop":
            getattr(module, "log", io.StringIO()).close()
            del sys.modules[name]


@pytest.fixture
def run(capsys):
    """Run a command; return its code, stdout and stderr."""

    def running(*words, code=0):
        capsys.readouterr()
        found = main([str(word) for word in words])
        shown = capsys.readouterr()
        assert found == code, shown.out + shown.err
        assert "Traceback" not in shown.err
        return shown.out, shown.err

    return running


@pytest.fixture
def facts(run):
    """Run a command with --json; return the document."""

    def asked(*words, code=0):
        out, _ = run(*words, "--json", code=code)
        assert out.count("\n") == 1

        def refuse(token):
            raise AssertionError(token)

        return json.loads(out, parse_constant=refuse)

    return asked


@pytest.fixture
def wrong(run):
    """Run a command that cannot be done; return the one line that says so."""

    def refused(*words, code=2):
        out, err = run(*words, code=code)
        assert out == "" and err.startswith("privatize: ") and err.count("\n") == 1 and err.endswith("\n")
        return err.removeprefix("privatize: ")

    return refused


def started(*words, **settings):
    return subprocess.run(
        [sys.executable, "-m", "privatize", *words], capture_output=True, text=True, timeout=120, **settings
    )


# --- demo, help and errors -------------------------------------------------------------------------


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
    """Another promise can be tried, and a wrong one gets one line."""
    assert main(["demo", "--epsilon", "0.1", "--gamma", "0.2"]) == 0
    assert "k=72 of m=79" in capsys.readouterr().out
    assert main(["demo", "--gamma", "2"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("privatize: gamma=2.0") and shown.err.count("\n") == 1


def test_demo_for_programs(facts):
    """A script that shows the demo elsewhere would have to parse text."""
    found = facts("demo", "--gamma", "0.2")
    assert [each["function"] for each in found["functions"]] == ["average_age", "age_groups", "train"]
    assert len(found["functions"][1]["private"]) == 5 and found["functions"][2]["global"] is None
    assert 0.5 < found["right"]["raw"] <= 1


def test_help_and_version(capsys):
    """Without a command, help is shown."""
    assert main([]) == 2
    assert "demo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0 and __version__ in capsys.readouterr().out


COMMANDS = [
    *(["demo"], ["plan"], ["estimate"], ["audit"], ["check"], ["doctor"], ["store"], ["ledger"]),
    *(["store", action] for action in ("list", "show", "forget", "export", "import")),
    *(["ledger", action] for action in ("show", "verify", "export")),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(command, capsys):
    """Whoever forgets how a command is used has to leave the terminal."""
    with pytest.raises(SystemExit) as caught:
        main([*command, "--help"])
    shown = capsys.readouterr().out
    assert caught.value.code == 0
    assert f"example:\n  privatize {' '.join(command)}" in shown
    assert "--json" in shown and "--debug" in shown
    assert max(map(len, shown.splitlines())) <= 110


@pytest.mark.parametrize("group", ["store", "ledger"])
def test_a_group_without_an_action_shows_its_help(group, run):
    """A half-typed command would look as if it had done something."""
    assert f"usage: privatize {group}" in run(group, code=2)[0]


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


# --- what is shown ---------------------------------------------------------------------------------


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


# --- plan ------------------------------------------------------------------------------------------


def test_plan_shows_all_bounds_side_by_side(run, facts):
    """Whoever chooses a bound would have to run each of them by hand."""
    out, _ = run("plan", "--gamma", "0.05")
    assert out.splitlines()[2].split()[:4] == ["tolerance", "balanced", "557", "544"]
    assert max(map(len, out.splitlines())) <= 110
    found = facts("plan", "--gamma", "0.05", "--cost", "2s", "--workers", "4")
    assert len(found["rows"]) == 6
    for row in found["rows"]:
        made = plan(0.05, row["mode"], bound=row["bound"])
        assert (row["m"], row["k"], row["rho"], row["gamma"]) == (made.m, made.k, made.rho, 0.05)
        assert row["evaluations"] == 2 * made.m
        assert row["seconds"] == 2 * math.ceil(made.m / 4) * 2


def test_plan_for_a_number_of_pairs(facts, run):
    """Whoever has time for 1000 pairs would not learn which gamma they support."""
    found = facts("plan", "--m", "1000")
    gammas = {row["bound"]: row["gamma"] for row in found["rows"]}
    assert gammas == {bound: plan(m=1000, bound=bound).gamma for bound in ("tolerance", "dkw", "marginal")}
    assert "0.007884" in run("plan", "--m", "1000")[0]


def test_a_plan_out_of_reach_says_so_in_its_row(run, facts, wrong):
    """One bound that is out of reach would hide the two that are not."""
    out, err = run("plan", "--gamma", "0.05", "--m", "557")
    assert "out of reach" in out and "gamma >= 0.0738" in out and err == ""
    rows = facts("plan", "--gamma", "0.05", "--m", "557")["rows"]
    assert [("problem" in row) for row in rows] == [False, True, False] and rows[1]["least_m"] == 1305
    message = wrong("plan", "--gamma", "0.001", "--m", "100")
    assert "tolerance 10,229" in message and "marginal 999" in message
    assert "support gamma >= 0.0550" in wrong("plan", "--gamma", ".001", "--m", "100", "--bound", "tolerance")
    assert "gamma=2.0 is not a share" in wrong("plan", "--gamma", "2")


# --- estimate --------------------------------------------------------------------------------------


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


def test_estimate_with_other_arguments(app, facts, run):
    """A function with parameters could not be calibrated ahead; and its prints would spoil the document."""
    words = ["estimate", "shop.figures:histogram", "-n", "30", "--set", "bins=4", "--set", "how=fast"]
    found = facts(*words)
    assert found["arguments"] == {"bins": "4", "how": "'fast'"}
    from shop.figures import histogram

    assert histogram.remembers(30, bins=4, how="fast") and not histogram.remembers(30, bins=5, how="fast")
    done = started(*words[:3], "31", *words[4:], "--json", "--workers", "2")
    assert json.loads(done.stdout)["rows"][0]["n"] == 31 and "working fast" in done.stderr


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


def test_estimate_writes_a_report(app, run, wrong):
    """A report that cannot be written would be noticed after hours of calibration."""
    out, _ = run("estimate", "shop.figures:average_age", "-n", "40", "-n", "50", "--report", "page.html")
    assert "average_age" in (app / "page.html").read_text(encoding="utf-8") and "page.html" in out
    slow = ("estimate", "shop.figures:slow", "-n", "40", "--report")
    assert "no folder" in wrong(*slow, "no/such/page.html")
    assert "that is a folder" in wrong(*slow, "shop")


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
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
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


# --- audit and check -------------------------------------------------------------------------------


def test_audit_for_programs(app, facts, run):
    """A dashboard would have to parse the text of an audit."""
    few = ["-n", "20", "--pairs", "100", "--releases", "200", "--seed", "2"]
    found = facts("audit", "shop.figures:average_age", *few)
    assert found["holds"] is True and found["coverage"]["pairs"] == 100 and found["seed"] == 2
    assert found["function"] == "shop.figures:average_age" and found["n"] == 20
    out, _ = run("audit", "shop.figures:histogram", *few, "--set", "bins=3", "--report", "audit.html")
    assert "nothing that was measured contradicts" in out
    assert "contradicts the promise" in (app / "audit.html").read_text(encoding="utf-8")


def test_an_audit_that_fails_is_code_1(app, facts, monkeypatch):
    """A build could not tell a broken promise from one that is kept."""
    few = ["-n", "20", "--pairs", "200", "--releases", "0", "--seed", "2"]
    from shop.figures import average_age

    average_age.estimate(20)
    url = app / "estimates.db"
    key = Store(url).entries()[0]["key"]
    entry = Store(url).read(key)
    forged = Store(url)
    forged.forget(key)
    forged.open(key, seed=entry.seed, label="average_age", n=20, facts={"checked": 79, "norm": "l1"})
    forged.save(key, entry.seed, 0, entry.gaps / 1e6, entry.structure)
    average_age.calibrator.memory.clear()
    found = facts("audit", "shop.figures:average_age", *few, "--report", "audit.html", code=1)
    assert found["holds"] is False and "broken" in found["verdict"]
    assert "promise is broken" in (app / "audit.html").read_text(encoding="utf-8")


def test_an_audit_is_shown_even_if_its_report_fails(app, run, monkeypatch):
    """An hour of measuring would be lost because the disk is full."""

    def full(*_, **__):
        raise OSError("No space left on device")

    few = ["-n", "20", "--pairs", "100", "--releases", "0", "--report", "audit.html"]
    out, _ = run("audit", "shop.figures:unmemorable", *few)  # its page is about the estimate that was audited
    assert "report " in out and (app / "audit.html").exists()
    monkeypatch.setattr("privatize.cli.calls.report", full)
    out, err = run("audit", "shop.figures:average_age", *few, code=2)
    assert "nothing that was measured contradicts" in out
    assert err == "privatize: no report was written: No space left on device\n"
    _, err = run("estimate", "shop.figures:average_age", "-n", "20", "--report", "a.html", code=2)
    assert "no report was written" in err


@pytest.mark.parametrize("name", ["seed=1", "pairs=5", "audit=1", "sampler=2"])
def test_arguments_that_an_audit_has_itself(app, wrong, name):
    """A function's parameter would be taken for the audit's own."""
    message = wrong("audit", "shop.figures:average_age", "-n", "20", "--set", name)
    assert "is ambiguous" in message


def test_check_for_programs(app, facts, run, wrong):
    """An editor or a bot would have to parse the table."""
    found = facts("check", "shop/figures.py", code=1)
    problems = {each["function"]: each["problems"] for each in found["functions"]}
    assert found["policy"] == str(app / "pyproject.toml") and found["problems"] == 2
    assert len(problems["shop.figures:average_age"]) == 2 and problems["shop.figures:choose"] == []
    assert "cannot be remembered" in problems["shop.figures:unmemorable"][0]
    run("estimate", "shop.figures:average_age")
    assert facts("check", "shop.figures", code=1)["problems"] == 1
    assert "cannot be imported" in wrong("check", "shop")


# --- store -----------------------------------------------------------------------------------------


@pytest.fixture
def store(app):
    """Fill a store with three estimates and a refusal."""
    url = app / "estimates.db"

    def mean(x):
        return float(x.mean())

    def constant(x):
        return 1.0

    promise = {"epsilon": 1, "gamma": 0.2, "sampler": samplers.uniform(0, 1), "store": url}
    f = privatize(**promise)(mean)
    f.estimate([20, 21, 22])
    with pytest.raises(Exception, match="did not change"):
        privatize(**promise)(constant).estimate(20)
    found = open_store(str(url))
    yield found
    found.database.close()


def test_store_list(store, run, facts):
    """Nobody would know what is remembered."""
    out, _ = run("store", "list")
    assert out.count("ready") == 3 and out.count("refused") == 1 and "4 estimates in" in out
    assert max(map(len, out.splitlines())) <= 110 + 60  # the names of functions may be long
    found = facts("store", "list")["estimates"]
    assert {entry["key"] for entry in found} == {entry["key"] for entry in store.entries()}
    assert sorted(entry["n"] for entry in found) == [20, 20, 21, 22]
    assert [entry["pairs"] for entry in found] == [79] * 4


def test_store_show(store, run, facts, wrong):
    """What an estimate is about, and which plans were read from it, could not be seen."""
    keys = {entry["n"]: entry["key"] for entry in store.entries() if not entry["failure"]}
    out, _ = run("store", "show", keys[21])
    assert keys[21] in out and "uniform(0, 1)" in out and "gamma=0.2, m=79, k=72" in out
    found = facts("store", "show", keys[21][:12])
    gaps = np.sort(store.read(keys[21]).gaps)
    assert found["n"] == 21 and found["plans"][0]["gap"] == gaps[71]
    (refused,) = [entry["key"] for entry in store.entries() if entry["failure"]]
    assert "ZeroSensitivityError" in run("store", "show", refused)[0]
    assert "There is no estimate 'zz'" in wrong("store", "show", "zz")
    assert "There is no estimate ''" in wrong("store", "show", "")


def test_the_beginning_of_a_key_must_be_unique(tmp_path, run, wrong, facts):
    """The wrong estimate would be forgotten."""
    url = tmp_path / "a.db"
    made = Store(url)
    for key in ("abcdefghijklm1", "abcdefghijklm2", "abc"):
        made.open(key, seed=1, label="f", n=5, facts={"function": "m.f"})
    made.database.close()
    assert "the beginning of 2 keys (abcdefghijklm1, abcdefghijklm2)" in wrong(
        "store", "forget", "abcd", "--store", url
    )
    assert facts("store", "forget", "abc", "--store", url)["forgotten"] == ["abc"]
    assert "abcdefghijklm1" in run("store", "list", "--store", url)[0]


def test_store_forget(store, run, facts, wrong):
    """A wrong estimate could never be removed, or others would be removed with it."""
    keys = {entry["n"]: entry["key"] for entry in store.entries() if not entry["failure"]}
    assert "What to forget?" in wrong("store", "forget")
    assert "What to forget?" in wrong("store", "forget", keys[20], "--all")
    assert "no estimate 'zz'" in wrong("store", "forget", keys[20], "zz")
    assert len(store.entries()) == 4
    assert facts("store", "forget", keys[20][:12], keys[20])["forgotten"] == [keys[20]]
    assert "Nothing is remembered of 'nobody'" in wrong("store", "forget", "--function", "nobody")
    label = store.entries()[0]["facts"]["function"]
    assert len(facts("store", "forget", "--function", "mean")["forgotten"]) == 2
    assert "constant" in label or len(store.entries()) == 1
    assert "forgot 1 estimate" in run("store", "forget", "--all")[0]
    assert "nothing is remembered" in run("store", "forget", "--all")[0]


def test_reading_creates_nothing(tmp_path, monkeypatch, run, facts, wrong):
    """A command that only reads would create an empty database, or tables in somebody else's."""
    monkeypatch.setenv("PRIVATIZE_STORE", str(tmp_path / "no" / "store.db"))
    monkeypatch.chdir(tmp_path)
    assert run("store", "list")[0] == f"nothing is remembered in {tmp_path / 'no' / 'store.db'}\n"
    assert facts("store", "list")["estimates"] == []
    wrong("store", "show", "a")
    wrong("store", "export", "out.db")
    wrong("store", "forget", "a")
    run("store", "forget", "--all")
    run("ledger", "show", "--ledger", "ledger.db")
    wrong("ledger", "verify", "--ledger", "ledger.db")
    wrong("ledger", "export", "--ledger", "ledger.db")
    run("doctor")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("PRIVATIZE_STORE", "")
    assert "PRIVATIZE_STORE is empty" in run("store", "list")[0]
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE cakes (x)")
    connection.close()
    before = other.read_bytes()
    assert "but not a store" in wrong("store", "list", "--store", other)
    assert "but not a ledger" in wrong("ledger", "show", "--ledger", other)
    assert other.read_bytes() == before and list(tmp_path.iterdir()) == [other]


@pytest.mark.parametrize("what", ["text", "folder", "garbage", "empty"])
@pytest.mark.parametrize(
    "words",
    [
        ["store", "list", "--store"],
        ["store", "export", "new.db", "--store"],
        ["store", "import"],
        ["ledger", "show", "--ledger"],
        ["ledger", "verify", "--ledger"],
        ["ledger", "export", "--ledger"],
    ],
    ids=" ".join,
)
def test_files_that_are_not_databases(app, run, what, words):
    """A file at a wrong path would be overwritten, or cause a traceback."""
    bad = app / "bad.db"
    if what == "folder":
        bad.mkdir()
    else:
        contents = {
            "text": b"just text\n" * 50,
            "garbage": b"SQLite format 3\x00" + b"\xff" * 5000,
            "empty": b"",
        }
        bad.write_bytes(contents[what])
    before = None if what == "folder" else bad.read_bytes()
    shows = what == "empty" and words[1] == "list"  # an empty ledger has lost its content
    out, err = run(*words, bad, code=0 if shows else 2)
    if not shows:
        assert out == "" and err.startswith("privatize: ") and err.count("\n") == 1
    assert before is None or bad.read_bytes() == before
    assert not (app / "new.db").exists() and not (app / "estimates.db").exists()


def test_export_and_import(store, app, run, facts, wrong):
    """Estimates could not be copied to a machine without a network."""
    run("store", "export", "exported.db")
    assert sorted(file.name for file in app.glob("exported*")) == ["exported.db"]
    assert not list(app.glob(".privatize*"))
    assert "not overwritten" in wrong("store", "export", "exported.db")
    assert "no folder" in wrong("store", "export", "no/such.db")
    assert "is not a file" in wrong("store", "export", "postgresql://me:hush@host/db")
    found = facts("store", "import", "exported.db", "--store", "other.db")
    assert (found["copied"], found["there"]) == (4, 0)
    again = facts("store", "import", "exported.db", "--store", "other.db")
    assert (again["copied"], again["there"]) == (0, 4)
    there = Store(app / "other.db")
    for entry in store.entries():
        mine, theirs = store.read(entry["key"]), there.read(entry["key"])
        assert np.array_equal(mine.gaps, theirs.gaps) and mine.looks == theirs.looks
        assert (mine.seed, mine.structure, mine.failure) == (theirs.seed, theirs.structure, theirs.failure)
        assert mine.checked == theirs.checked
    assert there.entries() == store.entries()
    there.database.close()
    keys = [entry["key"] for entry in store.entries()][:2]
    assert facts("store", "export", "two.db", keys[0][:10], keys[1])["copied"] == 2
    # The exported file is a store itself.
    assert len(facts("store", "list", "--store", "sqlite:///two.db")["estimates"]) == 2
    assert "no such file" in wrong("store", "import", "nothing.db")
    assert "cannot be written" in wrong("store", "import", "exported.db", "--store", app / "shop")


def test_an_exported_store_is_recalled_from(app, run, facts):
    """An exported estimate would be made again on the machine that needs it."""
    run("estimate", "shop.figures:average_age", "-n", "40")
    run("store", "export", "exported.db")
    environment = os.environ | {"PRIVATIZE_STORE": "exported.db"}
    done = started("estimate", "shop.figures:average_age", "-n", "40", "--json", env=environment)
    assert json.loads(done.stdout)["rows"][0]["remembered"] is True


def test_damaged_estimates_are_skipped_and_reported(store, app, run, facts):
    """Damaged estimates would be exported, or would keep sound ones from being exported."""
    keys = sorted(entry["key"] for entry in store.entries())
    with store.database.transaction() as execute:
        execute("UPDATE gaps SET checksum = 'x' WHERE key = ?", keys[0])
        execute("UPDATE estimates SET facts = '{' WHERE key = ?", keys[1])
    out, err = run("store", "list", code=1)
    assert out.count("  damaged\n") == 1 and len(out.splitlines()) == 6
    out, err = run("store", "show", keys[0], code=1)
    assert "checksum" in err and keys[0] in out
    assert "damaged" in facts("store", "show", keys[1], code=1)
    found = facts("store", "export", "sound.db", code=1)
    assert sorted(found["damaged"]) == keys[:2] and found["copied"] == 2
    assert {entry["key"] for entry in Store(app / "sound.db").entries()} == set(keys[2:])
    with store.database.transaction() as execute:
        execute("UPDATE estimates SET version = 99")
    found = facts("store", "export", "none.db", code=1)
    assert len(found["damaged"]) == 4 and not (app / "none.db").exists()
    assert not list(app.glob(".privatize*"))


class TestCopying:
    """Copying from one store to another never overwrites anything."""

    PLANS = (plan(0.2), plan(0.3), plan(0.1))

    def made(self, url, seed=7, gaps=None, looks=(), failure=None, **facts):
        found = Store(url)
        found.open("key", seed=seed, label="f", n=5, facts={"function": "m.f"} | facts)
        for start, piece in (gaps or {}).items():
            found.save("key", seed, start, np.array(piece, dtype=float), describe(0.0), facts.get("weights"))
        for look in looks:
            found.look("key", look)
        if failure:
            found.fail(
                "key", seed, failure, {"kind": "PairError", "message": "no", "numbers": {}, "notes": []}
            )
        return found

    def test_an_estimate_with_another_seed_is_not_overwritten(self, tmp_path):
        """The gaps of one seed would be read with the plans of another."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2]}, self.PLANS[:1])
        two = self.made(tmp_path / "b.db", 8, {0: [3, 4]}, self.PLANS[1:2])
        before = two.read("key")
        assert one.copy_to(two, "key") == "other"
        assert two.read("key").seed == 8 and two.read("key").looks == before.looks
        assert two.read("key").gaps.tolist() == [3, 4]

    def test_an_estimate_that_is_there_stays_as_it_is(self, tmp_path):
        """Copying an estimate would damage a sound store."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2, 3]}, self.PLANS[:1], "*", checked=3)
        for name, gaps, weights in (("b.db", {0: [1]}, {}), ("c.db", {0: [9]}, {"weights": [2]})):
            two = self.made(tmp_path / name, 7, gaps, self.PLANS[1:2], "plan", checked=1, **weights)
            before = two.entries()
            assert one.copy_to(two, "key") == "there" and two.entries() == before
            found = two.read("key")
            assert found.gaps.tolist() == gaps[0] and found.looks == [self.PLANS[1]]
            assert list(found.failure) == ["plan"] and found.checked == 1

    def test_everything_is_copied(self, tmp_path):
        """Without the plans that were read, gamma would be too small; a failure would be tried again."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2, 3], 8: [9]}, self.PLANS[:2], "*", weights=[1])
        two = Store(tmp_path / "b.db")
        assert one.copy_to(two, "key") == "copied" and two.entries() == one.entries()
        assert two.read("key").looks == [*self.PLANS[:2]] and list(two.read("key").failure) == ["*"]
        assert two.read("key").weights == [1]
        assert np.array_equal(two.read("key").gaps, one.read("key").gaps, equal_nan=True)

    def test_a_damaged_estimate_is_not_overwritten(self, tmp_path):
        """The damage in the other store would be hidden."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2]})
        two = self.made(tmp_path / "b.db", 7, {0: [1]})
        with two.database.transaction() as execute:
            execute("UPDATE gaps SET checksum = 'x'")
        with pytest.raises(ValueError, match="damaged there"):
            one.copy_to(two, "key")
        with pytest.raises(KeyError):
            one.copy_to(two, "other key")

    def test_a_copy_that_would_be_damaged_is_undone(self, tmp_path):
        """Half of an estimate would be left behind."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2]})
        two = Store(tmp_path / "b.db")
        with two.database.transaction() as execute:  # left over from something else
            execute("INSERT INTO gaps VALUES ('key', 5, ?, 'x')", b"\0" * 8)
        with pytest.raises(ValueError, match="damaged there"):
            one.copy_to(two, "key")
        assert two.entries() == []


# --- ledger ----------------------------------------------------------------------------------------


@pytest.fixture
def ledger(app, monkeypatch):
    """Fill a ledger with two budgets and four charges."""
    url = app / "ledger.db"
    sites = Budget("sites, all", epsilon=2, gamma=0.9, ledger=url)
    survey = Budget("survey", epsilon=1, gamma=0.9, delta=1e-6, ledger=url)
    f = privatize(epsilon=0.25, gamma=0.2, sampler=samplers.uniform(0, 1), budget=survey, store=None)(np.mean)
    data = np.full(30, 0.5)
    answers = [f(data), f(data), f(seal(data, name="staff"))]
    part = sites.partition("site", parts=["Berlin", "Paris"])["Paris"]
    answers.append(f.replace(budget=part)(seal(data, name="paris", version="2026")))
    assert len(answers) == 4
    monkeypatch.setenv("PRIVATIZE_LEDGER", str(url))
    yield survey.ledger
    survey.ledger.database.close()


def test_ledger_show(ledger, run, facts, wrong):
    """Nobody would know what is left without writing a program."""
    out, _ = run("ledger", "show")
    assert "0.75 of 1, 0.25 left" in out and "2 budgets" in out
    found = {each["name"]: each for each in facts("ledger", "show")["budgets"]}
    assert found["survey"]["spent"] == {"epsilon": 0.75, "delta": 0.0, "gamma": pytest.approx(0.6)}
    assert found["survey"]["left"]["epsilon"] == 0.25 and found["survey"]["charges"] == 3
    assert found["sites, all"]["cap"] == {"epsilon": 2.0, "delta": 0.0, "gamma": 0.9}
    out, _ = run("ledger", "show", "sites, all")
    assert "site: Paris" in out and "'paris' version '2026'" in out and " delta" not in out
    one = facts("ledger", "show", "survey")
    assert [row["number"] for row in one["history"]] == [1, 2, 3] and one["left"]["epsilon"] == 0.25
    assert "There are: 'sites, all', 'survey'" in wrong("ledger", "show", "nobody")


def test_ledger_verify(ledger, run, facts, wrong):
    """A ledger that somebody has changed would be believed."""
    out, err = run("ledger", "verify")
    assert out.count("ok") == 2 and "epsilon=0.75" in out and err == ""
    assert facts("ledger", "verify", "survey")["holds"] is True
    assert "no budget 'nobody'" in wrong("ledger", "verify", "survey", "nobody")
    with ledger.database.transaction() as execute:
        execute("UPDATE spent SET epsilon = '0' WHERE budget = 'survey'")
    out, err = run("ledger", "verify", code=1)
    assert "DAMAGED" in out and "ok" in out and "survey" in err and err.count("\n") == 1
    found = facts("ledger", "verify", code=1)
    assert found["holds"] is False and ["problem" in each for each in found["budgets"]] == [False, True]
    with ledger.database.transaction() as execute:
        execute("UPDATE budgets SET epsilon = 'much' WHERE name = 'survey'")
    assert "is not a number" in wrong("ledger", "show")


def test_ledger_says_what_the_total_promises(ledger, run, facts):
    """Nobody would see that a total over unsealed data under two P cannot be checked."""
    out, _ = run("ledger", "show", "survey")
    assert "in all epsilon=0.75, delta=0 for all pairs of neighbours but a share 0.6 of those under P" in out
    assert "2 sampled answers were about unsealed data, and all sampled answers are under one P" in out
    survey = Budget.begun("survey")
    wide = samplers.uniform(0, 2)
    f = privatize(epsilon=0.1, gamma=0.2, sampler=wide, budget=survey, store=None)(np.mean)
    f(np.full(30, 0.5))
    for words in (["show"], ["verify"]):
        assert "survey: 3 sampled answers were about unsealed data: it cannot" in run("ledger", *words)[0]
    one = facts("ledger", "show", "survey")
    assert "3 sampled answers were about unsealed data: it cannot" in one["statement"]
    assert 0 < one["average_gamma"] < one["spent"]["gamma"]
    (row, *_) = one["history"]
    assert (row["strength"], row["purpose"], row["unit"]) == ("sampled", "answer", "record")
    assert row["neighbours"] == "replace" and row["declared"][0].startswith("P1:")
    rows = list(csv.DictReader(io.StringIO(run("ledger", "export", "survey")[0])))
    assert rows[2]["declared"].startswith("P1:") and rows[2]["described"] == "uniform(0, 1)"


def test_ledger_says_which_answers_are_differentially_private(app, run, facts):
    """A review board would not see which answers hold for all pairs, and which only given others."""
    url = app / "ledger.db"
    plain = {"strength": "plain", "key": "", "dataset": "", "n": 9, "mechanism": "Laplace", "delta": 0.0}
    asked = Charge(function="count", kind="dp 0.25 0.0", epsilon=0.25, gamma=0.0, **plain)
    only, both = Budget("only", epsilon=1, ledger=url), Budget("both", epsilon=1, gamma=0.5, ledger=url)
    only.reserve(asked)
    out, _ = run("ledger", "show", "--ledger", url)
    assert "gamma" in out  # of the other budget
    out, _ = run("ledger", "show", "only", "--ledger", url)
    assert "in all epsilon=0.25 for all pairs of neighbours: plain differential privacy\n" in out
    assert "gamma" not in out and out.rstrip().endswith("differentially private")
    f = privatize(epsilon=0.25, gamma=0.2, sampler=samplers.uniform(0, 1), budget=both, store=None)(np.mean)
    both.reserve(asked)
    f(np.full(30, 0.5))
    both.reserve(asked)
    out, _ = run("ledger", "show", "both", "--ledger", url)
    assert "if the sampled questions were fixed beforehand. Of this, epsilon=0.5 is for 2 answers" in out
    lines = [line.split("  ")[-1] for line in out.splitlines()[-3:]]
    words = ["differentially private", "random differentially private"]
    assert lines == [*words, "differentially private given the sampled answers before it"]
    one = facts("ledger", "show", "both", "--ledger", url)
    assert [row["promise"] for row in one["history"]] == lines
    assert one["plain"] == {"epsilon": 0.5, "delta": 0.0, "gamma": 0.0}
    rows = list(csv.DictReader(io.StringIO(run("ledger", "export", "both", "--ledger", url)[0])))
    assert [row["promise"] for row in rows] == lines
    out, _ = run("ledger", "verify", "only", "--ledger", url)
    assert "add up to epsilon=0.25\n" in out


def test_names_cannot_control_a_terminal(app, run):
    """A name that somebody has chosen in a shared ledger would clear the screen, or forge a line."""
    Budget("a\nok  b\x1b[2J", epsilon=1, gamma=1, ledger=app / "ledger.db")
    for words in (["show"], ["verify"], ["show", "a\nok  b\x1b[2J"]):
        out, _ = run("ledger", *words, "--ledger", "ledger.db")
        assert "\x1b" not in out and "a\\nok" in out


def test_ledgers_of_other_layouts(app, run, facts, wrong, monkeypatch):
    """An earlier ledger would be changed by looking at it, and a later one misread."""
    old = Path(__file__).parents[1] / "fixtures" / "ledger_layout_1.sql"
    with contextlib.closing(sqlite3.connect(app / "old.db")) as connection:
        connection.executescript(old.read_text(encoding="utf-8"))
    before = (app / "old.db").read_bytes()
    assert run("ledger", "verify", "--ledger", "old.db")[0].count("ok") == 5
    assert facts("ledger", "show", "mixed", "--ledger", "old.db")["spent"]["epsilon"] == 0.3
    assert (app / "old.db").read_bytes() == before
    Ledger(app / "old.db").budgets()
    with contextlib.closing(sqlite3.connect(app / "old.db")) as connection:
        connection.execute("UPDATE ledger_layout SET version = 99")
        connection.commit()
    assert "pip install --upgrade privatize" in wrong("ledger", "show", "--ledger", "old.db")
    monkeypatch.setenv("PRIVATIZE_LEDGER", str(app / "old.db"))
    assert "layout 99" in run("doctor", code=1)[1]
    monkeypatch.setenv("PRIVATIZE_LEDGER", "")
    assert "PRIVATIZE_LEDGER is empty" in wrong("ledger", "show")
    assert "PRIVATIZE_LEDGER is empty" in run("doctor", code=1)[1]


def test_ledger_export(ledger, app, run, facts, wrong):
    """An auditor with a spreadsheet could not look at the charges."""
    out, _ = run("ledger", "export")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len(rows) == 4 and {row["budget"] for row in rows} == {"survey", "sites, all"}
    assert sum(float(row["epsilon"]) for row in rows if row["budget"] == "survey") == 0.75
    out, _ = run("ledger", "export", "survey", "--format", "json")
    assert [len(each["history"]) for each in json.loads(out)["budgets"]] == [3]
    assert facts("ledger", "export", "survey") == json.loads(out)
    assert "3 charges of 1 budget" in run("ledger", "export", "survey", "-o", "a.csv")[0]
    assert len((app / "a.csv").read_text(encoding="utf-8").splitlines()) == 4
    assert facts("ledger", "export", "--format", "json", "-o", "a.json")["charges"] == 4
    assert len(json.loads((app / "a.json").read_text(encoding="utf-8"))["budgets"]) == 2
    assert "no/such" in wrong("ledger", "export", "-o", "no/such/file.csv")


def test_no_ledger_is_named(app, wrong):
    """A command without a ledger would show an empty table."""
    for words in (["show"], ["verify"], ["export"]):
        assert "No ledger is named" in wrong("ledger", *words)


def test_reading_a_ledger_changes_nothing(ledger, app, run):
    """Showing a ledger would change it."""
    before = (app / "ledger.db").read_bytes()
    for words in (["show"], ["show", "survey"], ["verify"], ["export"]):
        run("ledger", *words)
    assert (app / "ledger.db").read_bytes() == before
    with pytest.raises(LedgerError, match="There are: 'sites, all', 'survey'"):
        Budget.begun("nobody", app / "ledger.db")
    assert len(Ledger(app / "ledger.db").budgets()) == 2
    again = Budget.begun("survey")
    assert again.remaining == Budget("survey", epsilon=1, gamma=0.9, delta=1e-6).remaining
    assert again.verify().epsilon == 0.75


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everything")
def test_a_folder_that_is_read_only(ledger, store, app, run):
    """An auditor without write permission could not read a ledger."""
    ledger.database.close()
    store.database.close()
    folder = app / "closed"
    folder.mkdir()
    for name in ("ledger.db", "estimates.db"):
        (folder / name).write_bytes((app / name).read_bytes())
        (folder / name).chmod(stat.S_IRUSR)
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert "ok" in run("ledger", "verify", "--ledger", folder / "ledger.db")[0]
        assert "4 estimates" in run("store", "list", "--store", folder / "estimates.db")[0]
        run("store", "forget", "--all", "--store", folder / "estimates.db", code=2)
        run("store", "import", app / "estimates.db", "--store", folder / "estimates.db", code=2)
        run("store", "export", folder / "new.db", code=2)
    finally:
        folder.chmod(stat.S_IRWXU)


# --- doctor ----------------------------------------------------------------------------------------


def test_doctor(app, run, facts):
    """A bug report would lack the facts that are needed first."""
    out, err = run("doctor")
    assert "everything works" in out and err == "" and max(map(len, out.splitlines())) <= 110
    found = facts("doctor")
    assert found["broken"] == [] and found["dependencies"]["numpy"]["version"] == np.__version__
    assert found["cores"]["used"] >= 1 and found["start_method"] in ("forkserver", "spawn")
    assert found["policy"]["file"] == str(app / "pyproject.toml")
    assert set(found["extras"]) >= {"plot", "postgres", "dask", "ray", "accounting", "sklearn", "completion"}
    missing = [each for each in found["extras"].values() if not each["present"]]
    assert all(each["install"].startswith("pip install 'privatize[") for each in missing)


@pytest.mark.parametrize("kind", ["store", "ledger"])
def test_doctor_finds_what_is_broken(app, run, facts, monkeypatch, kind):
    """A store that cannot be written would be noticed after the calibration."""
    variable = f"PRIVATIZE_{kind.upper()}"
    (app / "folder").mkdir()
    (app / "text").write_text("just text\n" * 100)
    for where, message in (
        ("folder", "is a folder, not a"),
        ("text", "not a database"),
        ("text/inside.db", "cannot be written"),
        ("postgresql://me:hush-hush@127.0.0.1:1/db", ""),
        ("mysql://me:hush-hush@127.0.0.1/db", "mysql:// is not known"),
    ):
        monkeypatch.setenv(variable, where)
        out, err = run("doctor", code=1)
        lines = " ".join(out.split())  # long lines are wrapped
        assert "BROKEN" in out and message in lines and "1 thing is broken" in out and err.count("\n") == 1
        found = facts("doctor", code=1)
        assert found[kind]["works"] is False and len(found["broken"]) == 1
        assert "hush" not in out + err + json.dumps(found)


def test_doctor_knows_what_is_too_old(monkeypatch, facts, run):
    """An old library would fail somewhere deep inside."""
    versions = {"numpy": "1.25.9", "scipy": None, "tqdm": "4.60"}
    true = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name, true(name)))
    monkeypatch.setattr(
        doctor.metadata, "requires", lambda name: ["numpy>=1.26", "scipy>=1.11", "tqdm>=4.60.0", "x; extra"]
    )
    found = facts("doctor", code=1)
    assert [each["fine"] for each in map(found["dependencies"].get, versions)] == [False, False, True]
    assert found["broken"] == [
        "numpy 1.25.9 is too old: pip install 'numpy>=1.26'",
        "scipy is not installed: pip install 'scipy>=1.11'",
    ]
    assert "numpy 1.25.9 TOO OLD (>= 1.26)" in run("doctor", code=1)[0]


def test_doctor_with_a_policy_that_cannot_be_read(app, run, monkeypatch):
    """The command that should find a wrong policy would fail because of it."""
    (app / "pyproject.toml").write_text("[tool.privatize]\nmax-epsilon = 'much'\n", encoding="utf-8")
    monkeypatch.delenv("PRIVATIZE_STORE")
    monkeypatch.setattr("privatize.config.policy._read", {})
    out, _ = run("doctor", code=1)
    assert "max-epsilon" in out and "broken" in out


# --- the page ---------------------------------------------------------------------------------------


def test_the_page_in_the_docs_is_true(run, capsys):
    """A command that is copied from the docs would fail."""
    page = Path(__file__).parents[2] / "docs" / "command_line.md"
    blocks = page.read_text(encoding="utf-8").split("```\n")[1::2]
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("privatize ")]
    assert len(commands) > 12
    for words in commands:
        given, rest = _parser().parse_known_args(words)
        assert not rest and callable(given.run), words
    out, _ = run("plan", "--gamma", "0.05")
    assert f"$ privatize plan --gamma 0.05\n{out}" in blocks


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
