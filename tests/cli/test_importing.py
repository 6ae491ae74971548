"""Private functions are found in the modules that are named, and in no others."""

import pytest

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
