"""Private functions are found in the modules that are named, and in no others."""

import sys

import pytest

from privatize.config import policy as policy_module
from privatize.storage.estimates import open_store
from tests.cli.projects import HEAD, MEAN, PACKAGE


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
    ("target", "text", "reason"),
    [
        ("fails", "import there_is_no_such_module", "there_is_no_such_module"),
        ("fails", "def (", "invalid syntax"),
        (".", "def (", "invalid syntax"),
        ("fails.py", "1 / 0", "division by zero"),
        ("fails", "raise SystemExit(0)", ""),
        (".", "raise SystemExit(0)", ""),
        (".", "raise KeyError('some key')", "some key"),
        ("fails.py", "from privatize import privatize\nprivatize(epsilon=-1, gamma=0.1)", "epsilon=-1"),
    ],
)
def test_check_a_module_that_fails(project, target, text, reason):
    """A module that cannot be imported is exit code 2 and a line with the reason: never a pass."""
    project(fine=MEAN, fails=text)
    done = project.run(target)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert reason in done.stderr and done.stderr.startswith("privatize: ")
    assert "Traceback" not in done.stderr and "fails" in done.stderr


@pytest.mark.parametrize("target", ["nothing_here", "nothing.py", "nothing/", "app.nothing"])
def test_check_missing_targets(project, target):
    """A misspelt target is an error, not an empty list that passes."""
    project(**PACKAGE)
    done = project.run(target)
    assert done.returncode == 2 and done.stderr.startswith("privatize: ")


# --- methods -----------------------------------------------------------------------------------

METHODS = (
    HEAD
    + """
class Report:
    def __init__(self, times=1):
        self.times = times

    @promise
    def total(self, x):
        return float(np.sum(x)) * self.times

    @staticmethod
    @promise
    def static(x):
        return float(np.mean(x))

    @promise
    @staticmethod
    def static_inside(x):
        return float(np.mean(x))

    @classmethod
    @promise
    def klass(cls, x):
        return float(np.mean(x))

    @promise
    @classmethod
    def klass_inside(cls, x):
        return float(np.mean(x))

    class Inner:
        @promise
        def deep(self, x):
            return float(np.mean(x))

class Short(Report):
    pass

class Needy(Report):
    def __init__(self, times, *more, **others):
        super().__init__(times)

class Alone(Needy):
    pass

class Raising(Report):
    def __init__(self):
        raise OSError("no such file")

three, needy = Report(3), Needy(2)

@promise
def mean(x):
    return float(np.mean(x))

class Listed:
    one = mean
"""
)


@pytest.fixture
def methods(tmp_path, monkeypatch):
    """Write a module with methods, and make its folder the working one."""
    (tmp_path / "methods.py").write_text(METHODS, encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setenv("PRIVATIZE_STORE", str(tmp_path / "estimates.db"))
    yield tmp_path
    sys.modules.pop("methods", None)
    open_store(str(tmp_path / "estimates.db")).database.close()


FOUND = {
    **{f"Report.{name}": f"Report.{name}" for name in ("total", "static", "static_inside", "klass")},
    "Report.klass_inside": "Report.klass_inside",
    "Report.Inner.deep": "Report.Inner.deep",
    "three.total": "three.total",
    "three.static": "Report.static",
    "needy.total": "needy.total",
    "Short.total": "Short.total",
    "Short.static": "Report.static",
    "Listed.one": "mean",
}


@pytest.mark.parametrize("path", FOUND)
def test_methods_are_found_by_dotted_names(methods, facts, path):
    """Methods could not be audited, or only those of objects that somebody made in the module."""
    found = facts("audit", f"methods:{path}", "-n", "20", "--pairs", "50", "--releases", "0")
    assert found["function"] == f"methods:{FOUND[path]}" and found["n"] == 20
    (row,) = facts("estimate", f"methods.py:{path}", "-n", "20")["rows"]
    assert row["remembered"]


def test_a_method_has_the_object_that_is_named(methods, facts):
    """The estimate would be that of another object."""

    def rows(path):
        return facts("estimate", f"methods:{path}", "-n", "20")["rows"]

    ((one,), (three,), (two,)) = map(rows, ("Report.total", "three.total", "needy.total"))
    assert len({one["seed"], three["seed"], two["seed"]}) == 3
    assert three["sensitivity"] > 1.5 * one["sensitivity"]
    module = sys.modules["methods"]
    assert module.Report().total.remembers(20) and module.Report(3).total.remembers(20)


def test_a_method_that_needs_an_object(methods, wrong):
    """Nobody would know from "called without 'self'" what to pass."""
    message = wrong("audit", "methods:Needy.total", "-n", "20")
    assert "methods:Needy.total is a method, so it needs an object" in message
    assert "Needy(times) cannot be made without its arguments" in message
    assert message.endswith("Name one that the module has: methods:needy.total.\n")
    message = wrong("estimate", "methods:Alone.total", "-n", "20")
    assert message.endswith("Make one in the module, thing = Alone(...), and pass methods:thing.total.\n")
    assert "Raising() raised OSError: no such file. Make one" in wrong(
        "audit", "methods:Raising.total", "-n", "9"
    )


def test_sizes_of_methods(methods, run):
    """Numbers of records could be in the policy for functions only."""
    names = (
        "Report.total",
        "Report.klass",
        "Report.klass_inside",
        "Report.static",
        "three.total",
        "needy.total",
    )
    sizes = ", ".join(f'"methods:{name}" = [20]' for name in names)
    (methods / "pyproject.toml").write_text(f"[tool.privatize]\nn = {{{sizes}}}\n", encoding="utf-8")
    policy_module._read.clear()
    out, _ = run("check", "methods", code=1)
    assert out.count("n=20: no fresh estimate is remembered") == 6
    for name in names:
        run("estimate", f"methods:{name}")
    out, _ = run("check", "methods")
    assert "0 with problems" in out and "methods:three.total" in out
    (methods / "pyproject.toml").write_text('[tool.privatize]\nn = {"methods:Needy.total" = [20]}\n')
    policy_module._read.clear()
    assert "Name one that the module has: methods:needy.total" in run("check", "methods", code=1)[0]
