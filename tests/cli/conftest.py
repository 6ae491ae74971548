"""Fixtures of the tests of cli."""

import io
import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from privatize import Budget, privatize, samplers, seal
from privatize.cli.parser import main
from privatize.storage.estimates import open_store
from tests.cli.started import MODULE


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
