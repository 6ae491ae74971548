"""A catalogue that is declared in one process is found, finished and asked by another, also after kill -9."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap

import pytest

from privatize import Budget

_PROGRAM = """
import os, sys, time
import numpy as np
from privatize import Budget, Catalogue, samplers, seal

where, mode = sys.argv[1:]
budget = Budget("survey", epsilon=10, gamma=0.2, ledger=f"sqlite:///{where}/ledger.db")
people = seal(np.linspace(0, 1, 200), name="people", sampler=samplers.uniform(0, 1), budget=budget)
asked = Catalogue("asked", people, gamma=0.2, store=f"{where}/store.db", workers="inline")
FACTOR = 2.0 if mode == "changed" else 1.0

@asked.add
def mean(x):
    return x.mean() * FACTOR

@asked.add(limit=[0.25, 0.5])
def share_above(x, limit):
    return (x > limit).mean()

def hold(where):
    print(where, flush=True)
    time.sleep(600)

from privatize.calibration import run
from privatize.function import catalogue_state
if mode == "after pilot":
    catalogue_state.declare_in_all = lambda *_: hold("pilot done")
if mode == "after declaring":
    catalogue_state.State._take = lambda *_: hold("declared")
if mode == "while calibrating":
    save = catalogue_state.joint.calibrated
    from privatize.storage.estimates import Store
    before = Store.save
    Store.save = lambda *args: (before(*args), hold("saved"))
if mode == "once":
    print("ready", flush=True)
    sys.stdin.readline()
asked.calibrate()
print(repr([asked.mean.estimate().value, asked.share_above.estimate(limit=0.5).value]), flush=True)
if mode == "ask":
    asked.mean(epsilon=0.1)
"""


def started(folder, mode, program=_PROGRAM):
    """Start a process that declares and calibrates."""
    script = folder / "program.py"
    if not script.exists():  # another process may be reading it, and would find an empty file
        script.write_text(textwrap.dedent(program))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, "-W", "ignore", str(script), str(folder), mode]
    return subprocess.Popen(command, **pipes, env=os.environ)


def finished(child):
    """Return what a process printed, and its error."""
    out, error = child.communicate(timeout=240)
    return out.strip(), error


def budget_in(folder):
    """Return the budget, verified."""
    found = Budget("survey", epsilon=10, gamma=0.2, ledger=f"sqlite:///{folder}/ledger.db")
    found.verify()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["after pilot", "after declaring", "while calibrating"])
def test_a_killed_process_is_continued(tmp_path, moment):
    """A crash would cost gamma a second time, or give a second chance for luckier estimates."""
    child = started(tmp_path, moment)
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=60)
    before = budget_in(tmp_path).catalogues()
    assert len(before) == (moment != "after pilot")
    first, error = finished(started(tmp_path, "ask"))
    assert first, error
    again, _ = finished(started(tmp_path, "ask"))
    assert again == first
    own = budget_in(tmp_path)
    (found,) = own.catalogues()
    assert not before or found == before[0]
    assert (float(own.spent.gamma), round(own.spent.epsilon, 9)) == (0.2, 0.2)
    changed, error = finished(started(tmp_path, "changed"))
    assert not changed and "mean is different now" in error


@pytest.mark.slow
def test_two_processes_declare_once(tmp_path):
    """Both would pay, or calibrate with seeds of their own, and the second could look at two estimates."""
    with contextlib.ExitStack() as stack:  # closes all pipes, also if one of them fails
        children = [stack.enter_context(started(tmp_path, "once")) for _ in range(3)]
        for child in children:
            assert child.stdout.readline(), child.stderr.read()
        for child in children:
            child.stdin.write("go\n")
            child.stdin.flush()
        found = [finished(child) for child in children]
    assert all(out for out, _ in found), found
    assert len({out for out, _ in found}) == 1
    own = budget_in(tmp_path)
    assert float(own.spent.gamma) == 0.2 and len(own.catalogues()) == 1
    assert json.loads(own.catalogues()[0].content)["weights"]
