"""`privatize audit` says whether the promise held, to people and to programs."""

import subprocess
import sys
import textwrap

import pytest

from privatize.cli.parser import main
from privatize.storage.estimates import Store

MODULE = """
    import numpy as np
    from pathlib import Path
    from privatize import privatize, samplers

    class Secret:
        def __getattr__(self, name):
            Path("touched").write_text(name)

    data = Secret()  # nothing may read it

    @privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), seed=1, store=None)
    def kept(x):
        return x.mean()

    broken = kept.replace(seed=2)
    class _Forged:
        def template(self, definition):
            return kept.calibrator.template(definition)

        def remembers(self, asked):
            return kept.calibrator.remembers(asked)

        def recall(self, asked):
            import dataclasses
            found = kept.calibrator.recall(asked)
            forged = dataclasses.replace(found.sensitivity, value=1e-6)
            return dataclasses.replace(found, sensitivity=forged)

    broken.calibrator = _Forged()

    def raw(x):
        return x.mean()

    class inner:
        deep = kept.replace(gamma=0.2)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "audited.py").write_text(textwrap.dedent(MODULE))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    yield tmp_path
    sys.modules.pop("audited", None)


def test_command_line(module, capsys):
    """A user's build could not tell a promise that is kept from one that is not."""
    few = ["-n", "20", "--pairs", "100", "--releases", "200", "--seed", "2"]
    assert main(["audit", "audited:kept", *few]) == 0
    assert "nothing that was measured contradicts" in capsys.readouterr().out
    assert main(["audit", "audited:broken", *few, "--report", "page.html"]) == 1
    assert "promise is broken" in capsys.readouterr().out
    assert "promise is broken" in (module / "page.html").read_text(encoding="utf-8")
    assert main(["audit", "audited:inner.deep", *few]) == 0
    assert not (module / "touched").exists()


@pytest.mark.parametrize(
    "given",
    [
        ["audited:raw"],
        ["audited:nothing"],
        ["audited"],
        ["audited:"],
        ["no_such_module:f"],
        ["audited:kept", "--pairs", "0"],
        ["audited:kept", "--releases", "-1"],
        ["audited:kept", "--confidence", "2"],
        ["audited:kept", "--seed", "-1"],
        ["audited:kept", "-n", "0"],
        ["audited:kept", "--pairs", "20", "--releases", "0", "--report", "no/such/folder.html"],
    ],
)
def test_command_line_errors_are_one_line(module, capsys, given):
    """A user's typing error would look like a broken promise (code 1), or like a crash."""
    assert main(["audit", "-n", "20", *given]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("privatize: ") and shown.count("\n") == 1


def test_command_line_in_a_process_of_its_own(module):
    """A user could not run it from a folder with a module in it, as the help says."""
    command = [sys.executable, "-m", "privatize", "audit", "audited:kept", "-n", "100"]
    done = subprocess.run(
        [*command, "--pairs", "100", "--releases", "200"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and done.stderr == "" and "audit of kept, n=100" in done.stdout


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
    facts_of = {"checked": 79, "norm": "l1", "signature": entry.signature}
    forged.open(key, seed=entry.seed, label="average_age", n=20, facts=facts_of)
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
