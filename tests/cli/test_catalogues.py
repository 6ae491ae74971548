"""`privatize catalogue` declares what a module has, asks it, and shows no more than private answers."""

import sys

import pytest

from privatize.cli.parser import main

SURVEY = """
import numpy as np
from privatize import Blocks, Budget, Catalogue, People, samplers

budget = Budget("dashboard", epsilon=2, gamma=0.4, ledger="ledger.db")
questions = Catalogue(
    "incomes", People("survey", 60), gamma=0.2, sampler=samplers.uniform(0, 10), budget=budget
)
questions.add(np.median, name="blocked", mechanism=Blocks(0, 10))


@questions.add
def mean_income(x):
    return x.mean()


@questions.add(limit=[2, 4.5])
def share_above(x, limit):
    return (x > limit).mean()
"""
PEOPLE = """
import numpy as np
from privatize import seal

raw = np.full(60, 7.654321)
survey = seal(raw, name="survey")
other = seal(raw[:50], name="survey")
"""
NAME = "shop.survey:questions"
ASK = ("catalogue", "ask", NAME, "share_above", "--set", "limit=4.5", "--epsilon", "0.25")
DATA = ("--data", "shop.people:survey")


@pytest.fixture
def survey(app, monkeypatch):
    """Write a module with a catalogue; return a function that makes it new, as another process does."""
    (app / "shop" / "people.py").write_text(PEOPLE)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def fresh(text=SURVEY):
        if "shop.survey" in sys.modules:
            sys.modules.pop("shop.survey").budget.ledger.database.close()
        (app / "shop" / "survey.py").write_text(text)

    fresh()
    yield fresh
    fresh()


def test_declare_and_ask(survey, app, run, facts, wrong):
    """Nobody could declare a dashboard's questions in a build, and ask one of them in a terminal."""
    assert "is not declared" in wrong(*ASK, *DATA) and f"catalogue calibrate {NAME}" in wrong(*ASK, *DATA)
    out, _ = run("catalogue", "show", NAME)
    assert "not declared yet" in out and "epsilon=2 of 2, gamma=0.4 of 0.4 in dashboard" in out
    first = facts("catalogue", "calibrate", NAME)
    assert first["new"] and first["declared"] and first["remembered"] and not first["late"]
    survey()
    again = facts("catalogue", "calibrate", NAME)
    assert not again["new"] and again["budgets"][0]["left"]["gamma"] == pytest.approx(0.2)
    sensitivities = [[each["sensitivity"] for each in found["questions"]] for found in (first, again)]
    assert sensitivities[0] == sensitivities[1] and sum(each is not None for each in sensitivities[0]) == 3
    survey()
    found = facts(*ASK, *DATA)
    assert (found["question"], found["epsilon"], found["name"]) == ("share_above(limit=4.5)", 0.25, "incomes")
    assert abs(found["value"] - 1) < 2 and found["budgets"][0]["left"]["epsilon"] == 1.75
    survey()
    out, _ = run(*ASK, *DATA)
    assert out.startswith("share_above(limit=4.5)\n") and "epsilon=1.5 of 2" in out and "7.65" not in out
    out, _ = run("catalogue", "ask", NAME, "blocked", "--epsilon", "0.5", *DATA)
    assert "whatever the function does" in out
    survey()
    out, _ = run("catalogue", "show", NAME, "--report", "page.html")
    rows = {line.split()[0]: line.split()[2] for line in out.splitlines() if line.endswith("pairs")}
    assert rows.pop("share_above(limit=4.5)") == "2"
    assert rows == {"blocked": "1", "mean_income": "0", "share_above(limit=2)": "0"}
    assert "share_above(limit=4.5)" in (app / "page.html").read_text(encoding="utf-8")


def test_what_cannot_be_asked(survey, run, wrong):
    """A mistake in a command would spend, or show a traceback with data in it."""
    run("catalogue", "calibrate", NAME)
    assert "limit is one of 2, 4.5" in wrong(*(word.replace("4.5", "3") for word in ASK), *DATA)
    assert "has no member 'nothing'" in wrong("catalogue", "ask", NAME, "nothing", "--epsilon", "1")
    assert "was asked without them" in wrong(*ASK)
    assert "is a ndarray, not a sealed dataset" in wrong(*ASK, "--data", "shop.people:raw")
    assert "Its sealed datasets: survey, other." in wrong(*ASK, "--data", "shop.people:nobody")
    assert "was asked about 'survey' with n=50" in wrong(*ASK, "--data", "shop.people:other")
    assert "pass it as an option" in wrong(*ASK, *DATA, "--set", "delta=1")
    assert "not a catalogue" in wrong("catalogue", "show", "shop.survey:budget")
    assert "Its catalogues: questions." in wrong("catalogue", "show", "shop.survey:nothing")
    assert "no folder" in wrong("catalogue", "show", NAME, "--report", "no/such/page.html")
    assert "epsilon" in wrong("catalogue", "ask", NAME, "mean_income", *DATA)
    out, _ = run("catalogue", "show", NAME)
    assert "epsilon=2 of 2" in out


def test_a_catalogue_that_has_changed(survey, run, facts, wrong):
    """A question with other code would be answered under the promise of the declared one."""
    run("catalogue", "calibrate", NAME)
    survey(SURVEY.replace("x.mean()", "x.mean() * 2"))
    out, err = run("catalogue", "show", NAME, code=1)
    assert "mean_income is different now" in err and "- " in out
    assert facts("catalogue", "show", NAME, code=1)["problem"]
    assert "mean_income is different now" in wrong(*ASK, *DATA)
    assert "mean_income is different now" in wrong("catalogue", "calibrate", NAME)


def test_late_and_impossible_ones(survey, run, facts, wrong):
    """A catalogue that follows answers, or that cannot be calibrated, would look like any other."""
    survey(SURVEY.replace("x.mean()", "3.0"))
    assert "mean_income: No pair of the pilot moved it" in wrong("catalogue", "calibrate", NAME, code=1)
    survey()
    run("catalogue", "calibrate", NAME)
    run(*ASK, *DATA)
    survey(SURVEY.replace('"incomes"', '"later"'))
    assert "late" in wrong("catalogue", "calibrate", NAME)
    found = facts("catalogue", "calibrate", NAME, "--late")
    assert found["late"] and found["new"]
    assert "after answers, so it is not in the total" in run("catalogue", "show", NAME)[0]


def test_estimates_that_are_not_remembered(survey, run):
    """Every process would calibrate again, and nobody would know why it takes so long."""
    survey(SURVEY.replace("gamma=0.2,", "gamma=0.2, store=None,"))
    out, err = run("catalogue", "calibrate", NAME, code=2)
    assert "not remembered" in err and "declared now" in out
    survey(SURVEY.replace("gamma=0.2,", "gamma=0.2, store=None,"))
    assert "NOT remembered" in run("catalogue", "show", NAME)[0]
    run(*ASK, *DATA)


ALIGNED = """
import numpy as np
from privatize import Budget, Catalogue, People, samplers, seal

budget = Budget("pairs", epsilon=2, delta=0.01, gamma=0.4, ledger="pairs.db")
x, y = (seal(np.linspace(0, 1, 60), name=name) for name in "xy")
unit = samplers.uniform(0, 1)
P = samplers.labelled(unit, unit)
questions = Catalogue(
    "pairs", (People("x", 60), People("y", 60)), gamma=0.2, sampler=P, budget=budget, mechanism="gaussian"
)


@questions.add(data=("x", "y"))
def product(x, y):
    return {"product": (x * y).mean(), "both": (x + y).mean()}
"""


def test_aligned_parts_and_delta(survey, run, facts, wrong):
    """A question about two columns that are sealed apart, or with Gaussian noise, could not be asked."""
    survey(ALIGNED)
    run("catalogue", "calibrate", NAME)
    words = ("catalogue", "ask", NAME, "product", "--epsilon", "0.5", "--data", "shop.survey:x")
    assert "delta" in wrong(*words, "--data", "shop.survey:y")
    found = facts(*words, "--data", "shop.survey:y", "--delta", "0.001")
    assert set(found["value"]) == {"product", "both"} and found["budgets"][0]["left"]["delta"] == 0.009
    assert "was asked about 'x' with n=60" in wrong(*words, "--delta", "0.001")


def test_a_question_that_fails_on_the_people(survey, capsys):
    """A failure on private data would print a record, in the error or in the traceback of --debug."""
    survey(SURVEY.replace("return x.mean()", "return x.mean() if np.ptp(x) else float(str(x))"))
    assert main(["catalogue", "calibrate", NAME]) == 0
    assert main(["catalogue", "ask", NAME, "mean_income", "--epsilon", "1", *DATA, "--debug"]) != 0
    shown = capsys.readouterr()
    assert "mean_income" in shown.err and "7.65" not in shown.err + shown.out


def test_questions_of_other_modules(survey, app, run):
    """A catalogue whose questions are added by several modules would be judged before all are there."""
    survey(SURVEY.partition("\n\n@questions.add\n")[0] + "\n")
    (app / "shop" / "tables.py").write_text("from shop.survey import questions\nquestions.add(max)\n")
    out, _ = run("check", "shop/survey.py", "shop/tables.py")
    assert out.count("catalogue 'incomes', 2 questions") == 1


def test_check_and_ledger_list_catalogues(survey, app, run, facts):
    """A review of a code base would not see what was declared, and what no longer holds."""
    out, _ = run("check", "shop.survey")
    assert "catalogue 'incomes', 4 questions, gamma=0.2, not declared yet" in out
    assert out.splitlines()[-1] == "0 private functions and 1 catalogue, 0 with problems"
    run("catalogue", "calibrate", NAME)
    (found,) = facts("check", "shop.survey")["catalogues"]
    assert (found["catalogue"], found["name"], found["gamma"]) == (NAME, "incomes", 0.2)
    assert found["declared"] and found["remembered"] and len(found["questions"]) == 4
    line = "catalogue 'incomes': 4 questions about 'survey', n=60\n"
    assert line in run("ledger", "show", "dashboard", "--ledger", "ledger.db")[0]
    (listed,) = facts("ledger", "show", "dashboard", "--ledger", "ledger.db")["catalogues"]
    assert listed["questions"][1] == "mean_income" and listed["gamma"] == 0.2 and listed["late"] is False
    run(*ASK, *DATA)
    survey(SURVEY.replace('"incomes"', '"later"'))
    run("catalogue", "calibrate", NAME, "--late")
    out, _ = run("ledger", "show", "dashboard", "--ledger", "ledger.db")
    assert "catalogue 'later': 4 questions about 'survey', n=60, declared after answers: not in" in out
    survey(SURVEY.replace("x.mean()", "x.mean() * 2"))
    out, _ = run("check", "shop/survey.py", code=1)
    assert "FAILS" in out and "mean_income is different now" in out


def test_check_requires_catalogues(survey, app, run, facts):
    """A sampled function outside of a catalogue would be found when it is first asked, not in the build."""
    rules = "[tool.privatize]\nrequire-catalogue = true\nmax-gamma = 0.1\n"
    text = SURVEY + (
        "from privatize import privatize\n"
        "alone = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1))(np.mean)\n"
        "plain = privatize(epsilon=1, mechanism=Blocks(0, 1))(np.median)\n"
    )
    (app / "inside").mkdir()
    (app / "inside" / "pyproject.toml").write_text(rules)
    (app / "inside" / "asking.py").write_text(text)
    found = _in_folder(app / "inside", facts, "check", "asking.py", code=1)
    problems = {each["function"]: each["problems"] for each in found["functions"]}
    assert problems["asking:alone"] == ["it is sampled and in no catalogue, and require-catalogue is set"]
    assert problems["asking:plain"] == []
    (listed,) = found["catalogues"]
    assert listed["problems"] == ["gamma=0.2 is more than max-gamma=0.1"]


def _in_folder(folder, call, *words, **more):
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        try:
            return call(*words, **more)
        finally:
            sys.modules.pop("asking").budget.ledger.database.close()
