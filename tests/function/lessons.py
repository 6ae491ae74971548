"""Programs that learn from one ledger at the same moment, or are killed while they learn."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

from privatize import Budget
from tests.budgets.together import ROOT, go

PROGRAM = """
    import sys
    import numpy as np
    from privatize import Budget, learn, samplers, seal

    _, url, name, kind = sys.argv
    budget = Budget(name, epsilon=1000, ledger=url)
    people = seal(np.linspace(0, 1, 500) ** 4, name="people", budget=budget)
    print("ready", flush=True)
    sys.stdin.readline()
    if kind == "once":
        P = learn(people, within=samplers.uniform(0, 1), epsilon=1)
        print(P.facts()["groups"], flush=True)
    number = 0
    while kind == "forever":
        number += 1
        learn(people, within=samplers.uniform(0, 1), epsilon=0.5 + number / 1000)
        print(number, flush=True)
"""


def _started(url, folder, name, kind, count):
    file = folder / "learns.py"
    file.write_text(textwrap.dedent(PROGRAM))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [sys.executable, str(file), str(url), name, kind]
    children = [
        subprocess.Popen(command, env=os.environ | {"PYTHONPATH": ROOT}, **pipes) for _ in range(count)
    ]
    for child in children:
        assert child.stdout.readline() == "ready\n", child.communicate()[1]
    return children


def _learned(budget):
    """Return what a ledger has learned, with the epsilon of the charge that paid for it."""
    with budget.ledger.transaction(write=False) as run:
        return run(
            "SELECT l.content, c.epsilon FROM learned AS l, charges AS c WHERE l.budget = ? AND "
            "c.budget = l.budget AND c.number = l.number AND c.purpose = 'learning' ORDER BY c.number",
            budget.name,
        )


def check_at_once(url, folder, name):
    """Check that processes which learn the same at once have the same P, or have each paid for theirs."""
    children = go(_started(url, folder, name, "once", 3))
    found = [child.communicate(timeout=120)[0] for child in children]
    assert all(found)
    budget = Budget(name, epsilon=1000, ledger=url)
    assert len(set(found)) <= len(budget.history()) == budget.verify().epsilon <= 3
    assert len(_learned(budget)) == 1  # and one of them is what everybody gets from now on
    (later,) = go(_started(url, folder, name, "once", 1))
    assert later.communicate(timeout=120)[0] in found
    assert budget.verify().epsilon <= 3


def check_killed(url, folder, name):
    """Check that a process which is killed leaves a charge and what was learned for it, or neither."""
    choice = random.Random(3)
    for _ in range(4):
        (child,) = go(_started(url, folder, name, "forever", 1))
        for _ in range(choice.randrange(1, 6)):
            child.stdout.readline()
        time.sleep(choice.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=120)
    budget = Budget(name, epsilon=1000, ledger=url)
    budget.verify()
    stored = _learned(budget)
    assert len(stored) == len(budget.history()) >= 4
    for content, epsilon in stored:
        facts = json.loads(content)
        top, _, bottom = epsilon.partition("/")
        assert facts["epsilon"] == int(top) / int(bottom or 1)
