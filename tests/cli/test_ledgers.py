"""`privatize ledger` shows what was spent, and whether it adds up."""

import contextlib
import csv
import io
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from privatize import Budget, privatize, samplers, seal
from privatize.budgets.charges import Charge
from privatize.budgets.ledger import Ledger


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


def test_an_answer_is_charged_and_a_total_is_spent(ledger, run, facts):
    """The gamma of a line would be taken for that of the answer, of which nothing more was charged."""
    survey, data = Budget.begun("survey"), seal(np.full(20, 0.5), name="staff")
    f = privatize(epsilon=0.05, gamma=0.2, sampler=samplers.uniform(0, 1), budget=survey, seed=1)(np.mean)
    assert len([f(data), f(data)]) == 2
    head, *_, first, second = run("ledger", "show", "survey")[0].splitlines()[-6:]
    heads = [f"{name} charged" for name in ("epsilon", "delta", "gamma")]
    assert " ".join(head.split()).endswith("mechanism " + " ".join(heads))
    assert (first.split()[-1], second.split()[-1]) == ("0.2", "0")  # the second is of the same estimate
    rows = facts("ledger", "show", "survey")["history"]
    assert [(row["gamma"], row["charged"]) for row in rows[-2:]] == [(0.2, 0.2), (0.2, 0)]
    assert "epsilon spent" in run("ledger", "show")[0]


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
    assert "pip install --upgrade privatize-dp" in wrong("ledger", "show", "--ledger", "old.db")
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
