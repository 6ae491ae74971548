"""The policy of a code base holds for all of it, and `privatize check` finds what breaks it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from privatize import Budget, configure, instrument, privatize, samplers, seal
from privatize.cli.checks import examined, table
from privatize.config import policy as policy_module
from privatize.config.policy import Policy, policy
from privatize.errors import PolicyError, SettingsError
from privatize.storage.places import default_store

UNIT = samplers.uniform(0, 1)
PEOPLE = np.linspace(0, 1, 50)


def average(x):
    return float(np.mean(x))


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


# --- reading ----------------------------------------------------------------------------------


def test_nothing_is_required_without_a_file(rule, tmp_path):
    """A newcomer without a pyproject.toml is asked for nothing."""
    assert policy() == Policy()
    assert 0 < privatize(epsilon=1e4, gamma=0.2, sampler=UNIT)(average)(PEOPLE) < 1
    assert policy().problems(1e5, 0.5, 0.9, budget=False) == []


def test_every_key(rule):
    """Every key that a policy can have is read."""
    folder = rule(
        """
        max-epsilon = 2
        max-delta = 1e-6
        max-gamma = 0.1
        require-budget = true
        require-sealed = true
        ledger = "postgresql://host/ledger"
        store = "sqlite:///estimates.db"
        n = {"app:mean" = [100, 1000]}
        """
    )
    assert policy() == Policy(
        max_epsilon=2,
        max_delta=1e-6,
        max_gamma=0.1,
        require_budget=True,
        require_sealed=True,
        ledger="postgresql://host/ledger",
        store=str(folder / "estimates.db"),
        sizes={"app:mean": [100, 1000]},
        file=folder / "pyproject.toml",
    )


def test_nearest_file(rule, monkeypatch):
    """The nearest policy from the working folder up holds; a file without a policy is ignored."""
    folder = rule("max-epsilon = 2")
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    (folder / "a" / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    monkeypatch.chdir(inner)
    assert policy().max_epsilon == 2
    (inner / "pyproject.toml").write_text("[tool.privatize]\nmax-epsilon = 1\n")
    assert policy().max_epsilon == 2  # read once
    policy_module._read.clear()
    assert policy().max_epsilon == 1
    monkeypatch.chdir(folder / "a")
    assert policy().max_epsilon == 2


def test_read_once(rule):
    """The file is read once for each folder, so that a call does not wait for the disk."""
    folder = rule("max-epsilon = 2")
    first = policy()
    (folder / "pyproject.toml").unlink()
    assert policy() is first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max-epsilom = 2", "'max-epsilom', which is not one of max-epsilon, max-delta"),
        ("max_epsilon = 2", "'max_epsilon', which is not one of"),
        ("[tool.privatize.max]\nepsilon = 2", "'max', which is not one of"),
        ('max-epsilon = "2"', "max-epsilon = '2': it must be a number"),
        ("max-epsilon = true", "max-epsilon = True: it must be a number"),
        ("max-epsilon = -1", "max-epsilon = -1: it must be a number"),
        ("max-epsilon = nan", "max-epsilon = nan: it must be a number"),
        ("max-delta = []", "max-delta = .*: it must be a number"),
        ("max-gamma = 2024-01-01", "max-gamma = .*: it must be a number"),
        ("require-budget = 1", "require-budget = 1: it must be true or false"),
        ('require-sealed = "yes"', "require-sealed = 'yes': it must be true or false"),
        ("ledger = 3", "ledger = 3: it must be a path or a URL"),
        ("store = true", "store = True: it must be a path or a URL"),
        ("n = 100", "it must be a table of lists"),
        ('n = {"a:b" = 100}', "it must be a table of lists"),
        ('n = {"a:b" = [0]}', "it must be a table of lists"),
        ('n = {"a:b" = [true]}', "it must be a table of lists"),
        ('n = {"a:b" = [1.5]}', "it must be a table of lists"),
        ("max-epsilon = ", "cannot be read, so its policy is not known"),
    ],
)
def test_mistakes(rule, text, message):
    """A mistake in the policy is an error: a rule that is not understood must not be ignored."""
    rule(text)
    for act in (policy, lambda: privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)):
        with pytest.raises(PolicyError, match=message):
            act()


@pytest.mark.parametrize(
    "content",
    [
        "tool = 3",
        "[tool]\nprivatize = 3",
        "[[tool.privatize]]\nmax-epsilon = 1",
        "tool = []",
        "\x00",
        "[tool",
    ],
)
def test_broken_files(rule, content):
    """A broken file is one clear error, whatever is broken about it."""
    rule(entire=content)
    with pytest.raises(PolicyError):
        policy()


def test_not_utf8(rule):
    """A file in another encoding is one clear error."""
    folder = rule()
    (folder / "pyproject.toml").write_bytes(b"[tool.privatize]\n# \xff\xfe\nmax-epsilon = 1\n")
    with pytest.raises(PolicyError, match="cannot be read"):
        policy()


def test_unreadable(rule, monkeypatch):
    """A file that cannot be read is an error, not the same as a missing file."""
    rule("max-epsilon = 1")

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(PolicyError, match=r"cannot be read, so its policy is not known: .*Permission"):
        policy()


def test_a_deleted_working_folder(rule, tmp_path, monkeypatch):
    """A private function still answers after the working folder was deleted."""
    private = privatize(epsilon=1e4, gamma=0.2, sampler=UNIT)(average)
    deleted = tmp_path / "deleted"
    deleted.mkdir()
    monkeypatch.chdir(deleted)
    deleted.rmdir()
    assert 0 < private(PEOPLE) < 1


# --- the promise ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("max-epsilon = 2", {"epsilon": 2.1}, "epsilon=2.1 is more than max-epsilon=2"),
        ("max-epsilon = 0", {}, "epsilon=1 is more than max-epsilon=0"),
        ("max-gamma = 0.1", {"gamma": 0.2}, "gamma=0.2 is more than max-gamma=0.1"),
        (
            "max-delta = 1e-6",
            {"mechanism": "gaussian", "delta": 1e-5},
            "delta=1e-05 is more than max-delta=1e-06",
        ),
        ("max-epsilon = 0.5\nmax-gamma = 0.1", {}, "epsilon=1 .*; gamma=0.2 is more"),
    ],
)
def test_limits(rule, text, settings, message):
    """A promise that is too weak is refused where it is made, in all ways of making one."""
    folder = rule(text)
    wrong = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT} | settings
    with pytest.raises(PolicyError, match=message) as caught:
        privatize(**wrong)(average)
    assert "average() breaks the policy in" in str(caught.value) and str(folder) in str(caught.value)
    with pytest.raises(PolicyError, match=message), instrument("statistics:fmean", **wrong):
        pass
    rule()
    private = privatize(epsilon=0.1, gamma=0.05, sampler=UNIT)(average)
    rule(text)
    with pytest.raises(PolicyError, match=message):
        private.replace(**wrong)


def test_limits_are_allowed(rule):
    """What is exactly at the limit is allowed."""
    rule("max-epsilon = 1\nmax-gamma = 0.2\nmax-delta = 0.0")
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    assert private.replace(epsilon=0.5).settings.epsilon == 0.5
    with pytest.raises(PolicyError):
        private.replace(epsilon=1.0000001)


def test_no_gamma_is_within_every_limit(rule):
    """A policy that allows no gamma would refuse answers that are differentially private for all pairs."""
    rule("max-epsilon = 1\nmax-gamma = 0")
    assert policy().problems(1, 0, 0.0, budget=True) == []
    with pytest.raises(PolicyError, match=r"gamma=0\.2 is more than max-gamma=0"):
        privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)


def test_limits_at_the_call(rule, tmp_path, monkeypatch):
    """A function that was decorated where no policy held is refused where one does."""
    private = privatize(epsilon=5, gamma=0.2, sampler=UNIT)(average)
    inner = tmp_path / "strict"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[tool.privatize]\nmax-epsilon = 1\n")
    monkeypatch.chdir(inner)
    with pytest.raises(PolicyError, match="max-epsilon"):
        private(PEOPLE)


def test_policy_errors_are_settings_errors():
    """Code that catches wrong settings also catches what the policy forbids."""
    assert issubclass(PolicyError, SettingsError)


def test_require_budget(rule):
    """Without a budget nothing is answered; each way of giving one is enough."""
    rule("require-budget = true")
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    for act in (lambda: private(PEOPLE), lambda: private.release(PEOPLE)):
        with pytest.raises(PolicyError, match=r"has no budget, and the policy has require-budget. Pass"):
            act()
    with pytest.raises(PolicyError, match="has no budget"):
        private(seal(PEOPLE, name="people"))
    budget = Budget("policy-required", epsilon=100, gamma=100, ledger="memory")
    private.replace(budget=budget)(PEOPLE)
    private(seal(PEOPLE, name="people", budget=budget))
    with budget:
        private(PEOPLE)
    assert budget.spent.epsilon == 3
    with pytest.raises(PolicyError, match="has no budget"):
        private(PEOPLE)
    private.estimate(50)  # it needs no data, and so no budget


def test_require_sealed(rule):
    """Data that is not sealed is refused."""
    rule("require-sealed = true")
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    for data in (PEOPLE, [1.0, 2.0]):
        with pytest.raises(
            PolicyError, match=r"not sealed, and the policy has require-sealed. Seal it: seal"
        ):
            private(data)
    assert isinstance(private(seal(PEOPLE, name="people")), float)
    both = privatize(
        epsilon=1, gamma=0.2, data=("x", "y"), sampler=lambda n, rng: (rng.random(n), rng.random(n))
    )(lambda x, y: float(np.mean(x * y)))
    with pytest.raises(PolicyError, match="not sealed"):
        both(PEOPLE, PEOPLE)
    with pytest.raises((PolicyError, TypeError), match="sealed"):
        both(PEOPLE, seal(PEOPLE, name="people"))
    private.estimate(50)


def test_a_pickled_function_obeys_the_policy(rule):
    """A private function that comes out of a pickle obeys the policy where it is called."""
    import cloudpickle

    private = privatize(epsilon=5, gamma=0.2, sampler=UNIT)(lambda x: float(np.mean(x)))
    pickled = cloudpickle.dumps(private)
    rule("require-budget = true\nrequire-sealed = true")
    with pytest.raises(PolicyError):
        cloudpickle.loads(pickled)(PEOPLE)


# --- places -----------------------------------------------------------------------------------


def test_ledger_place(rule, monkeypatch):
    """Budgets are stored where the policy says, unless the environment or the code says otherwise."""
    folder = rule('ledger = "policy.db"')
    monkeypatch.delenv("PRIVATIZE_LEDGER", raising=False)
    Budget("policy-ledger", epsilon=1, gamma=1)
    assert (folder / "policy.db").is_file()
    monkeypatch.setenv("PRIVATIZE_LEDGER", str(folder / "environment.db"))
    Budget("policy-ledger", epsilon=1, gamma=1)
    assert (folder / "environment.db").is_file()
    Budget("policy-ledger", epsilon=1, gamma=1, ledger=folder / "argument.db")
    assert (folder / "argument.db").is_file()


def test_store_place(rule, monkeypatch):
    """Estimates are stored where the policy says, unless the environment or the code says otherwise."""
    folder = rule('store = "policy.db"')
    monkeypatch.delenv("PRIVATIZE_STORE", raising=False)
    monkeypatch.setattr(policy_module, "_chosen", {})
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    private.estimate(20)
    assert (folder / "policy.db").is_file()
    monkeypatch.setenv("PRIVATIZE_STORE", str(folder / "environment.db"))
    private.estimate(21)
    assert (folder / "environment.db").is_file()
    configure(store=folder / "configured.db")
    private.estimate(22)
    assert (folder / "configured.db").is_file()
    private.replace(store=folder / "argument.db").estimate(23)
    assert (folder / "argument.db").is_file()
    monkeypatch.setenv("PRIVATIZE_STORE", "")
    assert default_store() == "memory"


# --- privatize check --------------------------------------------------------------------------


HEAD = """
import numpy as np
from privatize import privatize, samplers
promise = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1))
"""
MEAN = HEAD + "@promise\ndef mean(x):\n    return float(np.mean(x))\n"

SPEND = (
    HEAD
    + """
from privatize import Budget
with Budget("folders", epsilon=3, gamma=3) as budget:
    promise(np.mean)(np.linspace(0, 1, 50))
print(budget.spent.epsilon)
"""
)


@pytest.fixture
def project(tmp_path):
    """Return a function that writes files, and one that runs `privatize check` among them."""

    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path = path.with_suffix(".toml" if name.endswith("pyproject") else ".py")
            path = path.with_name(path.name.replace("init.py", "__init__.py"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        (tmp_path / "pyproject.toml").touch()

    def run(*targets, command=("-m", "privatize", "check"), folder="."):
        environment = os.environ | {"PRIVATIZE_STORE": str(tmp_path / "estimates.db")}
        environment |= {"PYTHONDONTWRITEBYTECODE": "1"}
        environment.pop("PRIVATIZE_LEDGER", None)
        return subprocess.run(
            [sys.executable, *command, *map(str, targets)],
            capture_output=True,
            text=True,
            cwd=tmp_path / folder,
            env=environment,
        )

    write.run, write.folder = run, tmp_path
    return write


def test_one_ledger_for_all_folders(project):
    """A relative place in the policy is one file for the entire code base: one budget, not one per folder."""
    project(pyproject='[tool.privatize]\nledger = "policy.db"\n', notebooks__empty="")
    spend = ("-c", SPEND)
    assert project.run(command=spend).stdout == "1.0\n"
    assert project.run(command=spend, folder="notebooks").stdout == "2.0\n"
    assert not (project.folder / "notebooks" / "policy.db").exists()


PACKAGE = {
    "app__init": "from .stats import mean\n",
    "app__stats": MEAN
    + """
class Report:
    @promise
    def total(self, x):
        return float(np.sum(x))
""",
    "app__deep__init": "",
    "app__deep__more": "from ..stats import mean, promise\nmedian = promise(lambda x: float(sorted(x)[0]))\n",
}


def listed(done):
    return sorted(line.split()[1] for line in done.stdout.splitlines() if line.startswith(("ok", "FAILS")))


def test_check_targets(project):
    """Modules, files, folders and packages are imported under their own names, and listed once."""
    project(**PACKAGE)
    done = project.run("app", "app.stats", "app/stats.py", "app.deep.more")
    assert done.returncode == 0, done.stderr
    assert listed(done) == ["app.deep.more:median", "app.stats:Report.total", "app.stats:mean"]
    assert done.stdout.splitlines()[-1] == "3 private functions, 0 with problems"
    assert "Laplace, epsilon=1, gamma=0.2" in done.stdout


def test_check_a_file_of_a_package(project):
    """A file inside a package can be checked alone, with its relative imports."""
    project(**PACKAGE)
    done = project.run("app/deep/more.py")
    assert done.returncode == 0 and "median" in done.stdout and done.stderr == ""
    assert project.run("app.deep.more").stdout == done.stdout


def test_check_from_elsewhere(project):
    """A folder that is named from a sibling folder, or by its full path, is not ignored."""
    project(**PACKAGE, other__script="")
    for target in ("../app", project.folder / "app", "../app/stats.py"):
        done = project.run(target, folder="other")
        assert "app.stats:Report.total" in done.stdout, (target, done.stdout, done.stderr)


def test_check_in_a_hidden_place(project):
    """A project below a hidden folder is checked as any other; only its own hidden folders are not."""
    project(**{".place__proj__one": MEAN, ".place__proj__.venv__two": MEAN})
    done = project.run(project.folder / ".place" / "proj")
    assert listed(done) == ["one:mean"], done.stderr


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


def test_check_same_names(project):
    """Two scripts of one name in two folders are both checked."""
    project(one__util=MEAN, two__util=MEAN.replace("mean", "other"))
    done = project.run("one", "two")
    assert done.returncode == 2 or len(listed(done)) == 2, done.stdout


def test_check_all_kinds_of_methods(project):
    """Static, class and inner methods are promises too."""
    project(
        kinds=HEAD
        + """
class Report:
    @staticmethod
    @promise
    def static(x):
        return float(np.mean(x))

    @promise
    @staticmethod
    def static_inside(x):
        return float(np.mean(x))

    @promise
    @classmethod
    def klass(cls, x):
        return float(np.mean(x))

    class Inner:
        @promise
        def deep(self, x):
            return float(np.mean(x))
"""
    )
    done = project.run("kinds")
    for name in ("static", "static_inside", "klass", "Inner.deep"):
        assert f"kinds:Report.{name} " in done.stdout, name


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import there_is_no_such_module", "there_is_no_such_module"),
        ("1 / 0", "division by zero"),
        ("def (", "invalid syntax"),
        ("raise SystemExit(0)", ""),
        ("raise KeyError('some key')", "some key"),
        ("from privatize import privatize\nprivatize(epsilon=-1, gamma=0.1)", "epsilon=-1"),
    ],
)
def test_check_a_module_that_fails(project, text, reason):
    """A module that cannot be imported is exit code 2 and a line with the reason: never a pass."""
    project(fine=MEAN, fails=text)
    for target in ("fails", "fails.py", "."):
        done = project.run(target)
        assert done.returncode == 2, (target, done.stdout, done.stderr)
        assert reason in done.stderr and done.stderr.startswith("privatize: ")
        assert "Traceback" not in done.stderr and "fails" in done.stderr


@pytest.mark.parametrize("target", ["nothing_here", "nothing.py", "nothing/", "app.nothing"])
def test_check_missing_targets(project, target):
    """A misspelt target is an error, not an empty list that passes."""
    project(**PACKAGE)
    done = project.run(target)
    assert done.returncode == 2 and done.stderr.startswith("privatize: ")


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
    """If P comes with sealed data, the table says why the estimate cannot be looked up."""
    project(
        app="import numpy\nfrom privatize import privatize\n"
        "mean = privatize(epsilon=1, gamma=0.2)(numpy.mean)\n",
        pyproject='[tool.privatize]\nn = {"app:mean" = [40]}\n',
    )
    done = project.run("app")
    assert done.returncode == 1 and "has no P" in done.stdout


def test_check_from_python(rule, monkeypatch):
    """Programs can use the same list."""
    folder = rule()
    (folder / "checked_from_python.py").write_text(MEAN)
    monkeypatch.setattr(sys, "path", [*sys.path])
    found = examined([str(folder / "checked_from_python.py")])
    assert [one.function for one in found] == ["checked_from_python:mean"] and found[0].problems == ()
    assert table(found).splitlines()[-1] == "1 private function, 0 with problems"
    assert table([]) == "0 private functions, 0 with problems"
