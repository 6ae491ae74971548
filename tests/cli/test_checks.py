"""`privatize check` finds every private function that breaks the policy."""

import sys

from privatize.cli.checks import examined, table
from tests.cli.projects import HEAD, MEAN, PACKAGE


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


SPEND = (
    HEAD
    + """
from privatize import Budget
with Budget("folders", epsilon=3, gamma=3) as budget:
    promise(np.mean)(np.linspace(0, 1, 50))
print(budget.spent.epsilon)
"""
)


def test_one_ledger_for_all_folders(project):
    """A relative place in the policy is one file for the entire code base: one budget, not one per folder."""
    project(pyproject='[tool.privatize]\nledger = "policy.db"\n', notebooks__empty="")
    spend = ("-c", SPEND)
    assert project.run(command=spend).stdout == "1.0\n"
    assert project.run(command=spend, folder="notebooks").stdout == "2.0\n"
    assert not (project.folder / "notebooks" / "policy.db").exists()


def test_check_what_cannot_be_remembered(project):
    """A function that is calibrated at every call costs γ and time each time; check finds it beforehand."""
    text = """
import sqlite3
CONNECTION = sqlite3.connect(":memory:")

class Report:
    def rows(self):
        return CONNECTION.execute("select 1")

    @promise
    def total(self, x):
        return float(np.mean(x))

@promise
def direct(x):
    return float(np.mean(x)) + CONNECTION.total_changes

@promise
def fine(x):
    return float(np.mean(x))
"""
    project(app=HEAD + text)
    done = project.run("app")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "its estimates cannot be remembered: it depends on a sqlite3.Connection" in done.stdout
    assert (
        "(reached by CONNECTION)" in done.stdout and "(reached by Report.rows -> CONNECTION)" in done.stdout
    )
    assert done.stdout.splitlines()[-1] == "3 private functions, 2 with problems"


def test_check_limits(project):
    """Functions that break the policy are listed with the reason, beside those that do not."""
    project(
        app=MEAN
        + "loose = promise(np.median)\n@privatize(epsilon=3, gamma=0.2, sampler=samplers.uniform(0, 1))\n"
        "def weak(x):\n    return float(np.mean(x))\n",
        pyproject="[tool.privatize]\nmax-epsilon = 2\n",
    )
    done = project.run("app")
    assert done.returncode == 1, done.stderr
    assert "epsilon=3 is more than max-epsilon=2" in done.stdout and "weak" in done.stdout
    assert "app:mean" in done.stdout


def test_nothing_is_answered_while_a_module_is_imported(project):
    """A check in CI would spend the team's budget, and publish answers that break the policy."""
    asks = """
from privatize import Budget
budget = Budget("team", epsilon=3, gamma=3)
with budget:
    print("ANSWER", mean(np.linspace(0, 1, 50)))
"""
    project(app=MEAN + asks, pyproject='[tool.privatize]\nmax-epsilon = 0.5\nledger = "policy.db"\n')
    done = project.run("app")
    assert done.returncode == 2 and "ANSWER" not in done.stdout
    assert (
        "mean() was asked while a command imported app" in done.stderr and "nothing was spent" in done.stderr
    )
    project(app=MEAN + 'if __name__ == "__main__":\n    print(mean(np.linspace(0, 1, 50)))\n')
    assert project.run("app").returncode == 1  # it is listed, because of its epsilon


def test_check_a_broken_policy(project):
    """A policy that is not understood is exit code 2."""
    project(app=MEAN, pyproject="[tool.privatize]\nmax-epsilom = 2\n")
    done = project.run("app")
    assert done.returncode == 2 and "max-epsilom" in done.stderr


def test_check_sizes(project):
    """CI fails while an estimate that the policy names is missing, and again after the code changed."""
    project(app=MEAN, pyproject='[tool.privatize]\nn = {"app:mean" = [40, 50]}\n')
    done = project.run("app")
    assert done.returncode == 1 and done.stdout.count("no fresh estimate is remembered") == 2
    estimate = ("-c", "import app; app.mean.estimate([40, 50])")
    made = project.run(command=estimate)
    assert made.returncode == 0, made.stderr
    for target in ("app", "app.py", "."):
        assert project.run(target).returncode == 0
    project(app=MEAN.replace("np.mean(x)", "2 * np.mean(x)"))
    done = project.run("app")
    assert done.returncode == 1 and "n=40: no fresh estimate is remembered; call estimate(40)" in done.stdout
    project(app=MEAN.replace("gamma=0.2", "gamma=0.02"))
    assert project.run("app").returncode == 1


def test_check_sizes_of_imported_functions(project):
    """A size in the policy is checked even if a module that imports the function is found first."""
    project(**PACKAGE, pyproject='[tool.privatize]\nn = {"app.stats:mean" = [40]}\n')
    done = project.run("app")
    assert done.returncode == 1 and "no fresh estimate" in done.stdout, done.stdout


def test_check_sizes_of_a_missing_function(project):
    """A size for a function that does not exist is reported, not ignored."""
    project(app=MEAN, pyproject='[tool.privatize]\nn = {"app:maen" = [40]}\n')
    done = project.run("app")
    assert done.returncode != 0 and "app:maen" in done.stdout + done.stderr


def test_check_sizes_without_p(project):
    """If P comes with sealed data that is somewhere else, that is said, and is no problem."""
    project(
        app="import numpy\nfrom privatize import privatize\n"
        "mean = privatize(epsilon=1, gamma=0.2)(numpy.mean)\n",
        pyproject='[tool.privatize]\nn = {"app:mean" = [40]}\n',
    )
    done = project.run("app")
    assert done.returncode == 0 and "0 with problems" in done.stdout
    assert "gamma=0.2, P of the sealed data" in done.stdout
    assert "n=40: not checked, because P comes with the sealed data" in done.stdout


SEALED = """
import numpy as np
from privatize import privatize, samplers, seal
import app

staff = seal(np.full(40, 0.5), name="staff", sampler=samplers.uniform(0, 1))
table = seal(np.full((40, 2), 0.5), name="table", sampler=samplers.uniform([0, 0], [1, 1]))
others = seal(np.full(30, 0.5), name="others")
"""


def test_check_sizes_with_sealed_data(project):
    """A function whose P comes with the data would never be checked, or fail for want of a P."""
    project(
        app="from privatize import privatize\n@privatize(epsilon=1, gamma=0.2)\n"
        "def mean(x):\n    return float(x.mean())\n",
        people=SEALED,
        pyproject='[tool.privatize]\nn = {"app:mean" = [30, 40]}\n',
    )
    done = project.run("app", "people")
    assert done.returncode == 1 and "1 with problems" in done.stdout
    remedy = "estimate app:mean --data people:staff"
    assert f"under the P of people:staff or people:table; run privatize {remedy}" in done.stdout
    assert "n=30: not checked" in done.stdout
    made = project.run(command=("-m", "privatize", *remedy.split(), "-n", "40"))
    assert made.returncode == 0, made.stderr
    done = project.run("app", "people")
    assert done.returncode == 0 and "n=40" not in done.stdout and "n=30: not checked" in done.stdout


def test_a_call_with_sealed_data_is_what_check_looks_for(project):
    """The command line would look under another key than calls do."""
    project(
        app="from privatize import privatize\n@privatize(epsilon=1, gamma=0.2)\n"
        "def mean(x):\n    return float(x.mean())\n",
        people=SEALED,
        pyproject='[tool.privatize]\nn = {"app:mean" = [40]}\n',
    )
    done = project.run(command=("-c", "import app, people; app.mean(people.staff)"))
    assert done.returncode == 0, done.stderr
    assert project.run("app", "people").returncode == 0


def test_check_from_python(rule, monkeypatch):
    """Programs can use the same list."""
    folder = rule()
    (folder / "checked_from_python.py").write_text(MEAN)
    monkeypatch.setattr(sys, "path", [*sys.path])
    found = examined([str(folder / "checked_from_python.py")])
    assert [one.function for one in found] == ["checked_from_python:mean"] and found[0].problems == ()
    assert table(found).splitlines()[-1] == "1 private function, 0 with problems"
    assert table([]) == "0 private functions, 0 with problems"
