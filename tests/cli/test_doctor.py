"""`privatize doctor` finds what is missing, too old or broken."""

import json

import numpy as np
import pytest

from privatize.cli import doctor


def test_doctor(app, run, facts):
    """A bug report would lack the facts that are needed first."""
    out, err = run("doctor")
    assert "everything works" in out and err == "" and max(map(len, out.splitlines())) <= 110
    found = facts("doctor")
    assert found["broken"] == [] and found["dependencies"]["numpy"]["version"] == np.__version__
    assert found["cores"]["used"] >= 1 and found["start_method"] in ("forkserver", "spawn")
    assert found["policy"]["file"] == str(app / "pyproject.toml")
    assert set(found["extras"]) >= {
        "plot",
        "postgres",
        "dask",
        "ray",
        "accounting",
        "sklearn",
        "completion",
        "opendp",
    }
    missing = [each for each in found["extras"].values() if not each["present"]]
    assert all(each["install"].startswith("pip install 'privatize-dp[") for each in missing)


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


def test_doctor_finds_a_stranger_of_the_same_name(monkeypatch, facts):
    """Somebody who installed `privatize` from the package index would have another project's files."""
    true = doctor._version
    monkeypatch.setattr(doctor, "_version", lambda name: "0.0.30" if name == "privatize" else true(name))
    (message,) = facts("doctor", code=1)["broken"]
    assert message.endswith("pip uninstall -y privatize privatize-dp && pip install privatize-dp")


def test_doctor_with_a_policy_that_cannot_be_read(app, run, monkeypatch):
    """The command that should find a wrong policy would fail because of it."""
    (app / "pyproject.toml").write_text("[tool.privatize]\nmax-epsilon = 'much'\n", encoding="utf-8")
    monkeypatch.delenv("PRIVATIZE_STORE")
    monkeypatch.setattr("privatize.config.policy._read", {})
    out, _ = run("doctor", code=1)
    assert "max-epsilon" in out and "broken" in out
