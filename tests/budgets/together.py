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


DECLARES = """
    import os, signal, sys
    from privatize import Budget
    from privatize.budgets import catalogues, rows
    from privatize.budgets.ledger import Ledger
    from privatize.budgets.paying import declare_in_all
    from tests.budgets.charged import catalogue, declaration

    def killed_at(module, name, *, after):
        # At the first call that writes, before or after it.
        original = getattr(module, name)

        def replaced(*args, **kwargs):
            found = original(*args, **kwargs) if after else None
            if kwargs.get("write", True):
                os.kill(os.getpid(), signal.SIGKILL)
            return found if after else original(*args, **kwargs)

        setattr(module, name, replaced)

    url, other, seed, moment = sys.argv[1:]
    budgets = [Budget(name, epsilon=1, gamma=1, ledger=at) for name, at in (("one", url), ("two", other))]
    if moment == "before the charge":
        killed_at(rows, "write", after=False)
    elif moment == "after the charge":
        killed_at(rows, "write", after=True)
    elif moment == "before the end":
        killed_at(catalogues, "write", after=True)
    elif moment == "between two budgets":
        killed_at(Ledger, "declare", after=True)
    print("ready", flush=True)
    sys.stdin.readline()
    order = budgets if int(seed) % 2 else budgets[::-1]
    print(declare_in_all(order, catalogue(), declaration(seed=int(seed))).key, flush=True)
"""


def declaring(url, other, folder, *moments):
    """Start processes that declare one catalogue in two budgets, each with its own seed."""
    file = folder / "declares.py"
    file.write_text(textwrap.dedent(DECLARES))
    env = os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, str(file), str(url), str(other)]
    children = [
        subprocess.Popen([*command, str(seed), moment], env=env, **pipes)
        for seed, moment in enumerate(moments)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    return go(children)


def _declared_once(url, other, known):
    """Check that both budgets have the same catalogue, and have paid for it once; return its key."""
    budgets = [Budget.begun(name, at) for name, at in (("one", url), ("two", other))]
    (key,) = {each.key for budget in budgets for each in budget.catalogues()}
    for budget in budgets:
        assert budget.verify() == (0, 0, 0.05) and len(budget.history()) == len(budget.catalogues()) == 1
    assert set(known) == {key}


def check_one_declares(url, other, folder):
    """Whoever declares at the same moment gets one catalogue, in both budgets."""
    children = declaring(url, other, folder, *[""] * 4)
    found = [child.communicate(timeout=300) for child in children]
    assert [error for _, error in found] == [""] * 4
    _declared_once(url, other, [text.strip() for text, _ in found])


def check_killed_declaring(url, other, folder, moment):
    """After a process was killed while it declares, the next one completes it, or begins again."""
    (child,) = declaring(url, other, folder, moment)
    child.communicate(timeout=300)
    assert child.returncode == -signal.SIGKILL
    found = [child.communicate(timeout=300)[0].strip() for child in declaring(url, other, folder, "", "")]
    if moment == "between two budgets":
        assert found == ["x:0", "x:0"]  # what the first budget has decides
    _declared_once(url, other, found)


MOMENTS = ("before the charge", "after the charge", "before the end", "between two budgets")
