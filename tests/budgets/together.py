"""Programs that spend from one ledger, or migrate it, at the same moment, wherever that ledger is."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import privatize as package
from privatize import Budget

ROOT = str(Path(package.__file__).parents[1])
HAMMER = """
    import os, sys, threading, time
    import numpy as np
    from privatize import Budget, privatize, samplers
    from privatize.errors import BudgetExceeded

    _, url, name, store, notes, kind, *go = sys.argv

    def f(x):
        # At most as many as the test allows at the moment, so that no process ends before it is killed.
        paced = kind == "paced" and x[0] == 0.5
        while paced and open(notes).read().count("\\n") >= int(open(notes + ".most").read()):
            time.sleep(0.005)
        return float(x.mean())

    budget = Budget(name, epsilon=1, delta=1e-5, gamma=1000, ledger=url)
    promise = {"epsilon": 0.01, "gamma": 0.2, "sampler": samplers.uniform(0, 1)}
    f = privatize(**promise, store=store, budget=budget, version="1")(f)
    f.estimate(50)
    if not go:
        sys.exit()
    file = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def task():
        while True:
            try:
                f(np.full(50, 0.5))
            except BudgetExceeded:
                return
            except BaseException as error:
                os.write(file, f"{type(error).__name__} {error}\\n".encode())
                raise
            os.write(file, b"released\\n")

    print("ready", flush=True)
    sys.stdin.readline()
    threads = [threading.Thread(target=task) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def allow(notes, most):
    """Allow this many releases, or a few more."""
    (notes.parent / "new").write_text(str(most))
    (notes.parent / "new").rename(f"{notes}.most")


def hammered(url, folder, name, kind):
    """Start eight processes of eight threads, with an estimate that is already remembered."""
    file, notes = folder / "program.py", folder / "notes"
    allow(notes, 5)
    file.write_text(textwrap.dedent(HAMMER))
    command = [sys.executable, str(file), str(url), name, str(folder / "store.db"), str(notes), kind]
    env = os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    subprocess.run(command, env=env, check=True, timeout=300, capture_output=True)
    children = [subprocess.Popen([*command, "go"], env=env, **pipes) for _ in range(8)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    return go(children), notes


def check_exactly_a_hundred(url, folder, name):
    """64 threads in 8 processes, as on 8 machines, get all that the budget allows, and no more."""
    children, notes = hammered(url, folder, name, "free")
    for child in children:
        child.communicate(timeout=300)
    assert notes.read_text().splitlines() == ["released"] * 100
    budget = Budget(name, epsilon=1, delta=1e-5, gamma=1000, ledger=url)
    assert budget.verify().epsilon == 1 and len(budget.history()) == 100


def check_never_more_when_killed(url, folder, name):
    """Killing processes at any moment loses answers, and never allows more than the budget."""
    children, notes = hammered(url, folder, name, "paced")
    choice = random.Random(5)
    doomed = choice.sample(children, 4)
    # With those under way, one for each of 64 threads, fewer than a hundred: no process has ended.
    for count, child in zip((5, 12, 19, 26), doomed, strict=True):
        allow(notes, count)
        deadline = time.monotonic() + 300
        while time.monotonic() < deadline and len(notes.read_text().split()) < count:
            time.sleep(choice.uniform(0, 0.01))
        child.send_signal(signal.SIGKILL)
    allow(notes, 1000)
    for child in children:
        child.communicate(timeout=300)
    assert [child.returncode for child in doomed] == [-signal.SIGKILL] * 4
    released = notes.read_text().splitlines()
    assert set(released) == {"released"} and 50 <= len(released) <= 100
    budget = Budget(name, epsilon=1, delta=1e-5, gamma=1000, ledger=url)
    assert budget.verify().epsilon == 1 and len(budget.history()) == 100  # the others took the rest


MIGRATES = """
    import sys
    import numpy as np
    from privatize import Budget, privatize, samplers
    from privatize.errors import BudgetExceeded

    def mean(x):
        return float(x.mean())

    print("ready", flush=True)
    sys.stdin.readline()
    budget = Budget("survey", epsilon=2, delta=1e-5, gamma=3, ledger=sys.argv[1])
    f = privatize(epsilon=0.1, gamma=0.2, sampler=samplers.uniform(0, 1), budget=budget, store=None)(mean)
    count = 0
    try:
        while True:
            f(np.full(50, 0.5))
            budget.verify()
            count += 1
    except BudgetExceeded:
        print(count, flush=True)
"""


def started(url, folder, count):
    """Start processes that wait for a line before they open a ledger."""
    file = folder / "migrates.py"
    file.write_text(textwrap.dedent(MIGRATES))
    env = os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    children = [
        subprocess.Popen([sys.executable, str(file), str(url)], env=env, **pipes) for _ in range(count)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    return children


def go(children):
    """Let processes that wait begin, all at once."""
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    return children
