"""The demonstration shows a private answer in the first minute, with any promise."""

import re
import shlex
import subprocess
import sys

import pytest

from privatize.cli.parser import main
from privatize.config.policy import _KNOWN

POLICIES = {
    "max-epsilon": "0",
    "max-delta": "0",
    "max-gamma": "0.001",
    "require-budget": "true",
    "require-sealed": "true",
    "require-catalogue": "true",
    "ledger": '"no/such/folder/ledger.db"',
    "store": '"postgresql://nowhere.invalid/store"',
    "n": '{"app:mean" = [10]}',
}


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


def test_every_policy_key_is_tried():
    """A new key of the policy could break the demo, and nobody would notice."""
    assert set(POLICIES) == set(_KNOWN)


@pytest.mark.parametrize("key", POLICIES)
def test_demo_under_every_policy(key, rule, run, facts, monkeypatch):
    """The first minute in a company's code base, which has a policy, would end with an error."""
    monkeypatch.delenv("PRIVATIZE_STORE", raising=False)
    folder = rule(f"{key} = {POLICIES[key]}")
    out, err = run("demo", "--gamma", "0.2")
    assert out.count("private answer") == 3 and err == ""
    assert f"The policy in {folder / 'pyproject.toml'} is about private data" in out
    assert sorted(path.name for path in folder.iterdir()) == ["pyproject.toml"]
    assert "private data" in facts("demo", "--gamma", "0.2")["policy"]


@pytest.mark.parametrize("variable", ["PRIVATIZE_STORE", "PRIVATIZE_LEDGER"])
def test_demo_with_a_store_or_ledger_in_the_environment(variable, rule, run, monkeypatch):
    """A server that cannot be reached has nothing to do with made-up people."""
    folder = rule("require-budget = true")
    monkeypatch.setenv(variable, "postgresql://nowhere.invalid/db")
    out, err = run("demo", "--gamma", "0.2")
    assert out.count("private answer") == 3 and err == ""
    assert len(list(folder.iterdir())) == 1


def test_demo_with_a_wrong_policy(rule, run):
    """The demo works, and says what will not."""
    rule("nonsense = 1")
    out, err = run("demo", "--gamma", "0.2")
    assert out.count("private answer") == 3 and err == ""
    assert "it cannot be used: [tool.privatize] has 'nonsense'" in out


def test_demo_names_only_what_a_wheel_has(run, tmp_path, monkeypatch):
    """Somebody who has installed the wheel would look for a file that is not there."""
    monkeypatch.chdir(tmp_path)
    out, _ = run("demo", "--gamma", "0.2")
    assert "docs/" not in out and ".md" not in out
    lines = re.findall(r"^  (python -\S.*?)(?:  .*)?$", out, re.MULTILINE)
    assert len(lines) == 3
    for line in lines:
        words = shlex.split(line)
        done = subprocess.run([sys.executable, *words[1:]], capture_output=True, text=True)
        assert done.returncode == 0 and done.stdout and done.stderr == "", line
    assert (tmp_path / "mean.py").exists()


def test_script(run, wrong, rule, monkeypatch):
    """The script to start from runs as it is, also where budgets and sealed data are required."""
    folder = rule("require-budget = true\nrequire-sealed = true\nmax-epsilon = 0.5")
    monkeypatch.setenv("PRIVATIZE_STORE", "")
    assert run("demo", "--script", "mean.py", "--epsilon", "0.5", "--gamma", "0.2")[0].startswith(
        "wrote mean.py"
    )
    command = [sys.executable, "-W", "error", "mean.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0 and done.stderr == ""
    assert "epsilon=0.5, gamma=0.2" in done.stdout and "with 95% probability" in done.stdout
    assert wrong("demo", "--script", "mean.py").endswith("not overwritten. Name a new file.\n")
    assert "there is no folder none" in wrong("demo", "--script", "none/mean.py")
    assert wrong("demo", "--script", "other.py", "--gamma", "2").startswith("gamma=2.0")
    assert sorted(path.name for path in folder.iterdir()) == ["mean.py", "pyproject.toml"]
