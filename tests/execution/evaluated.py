"""Estimates wherever pairs are evaluated, and executors that do odd things."""

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np

import privatize as package
from privatize import estimate_sensitivity, plan, samplers
from privatize.calibration.run import Memory

UNIT = samplers.uniform(0, 1)
ROOT = str(Path(package.__file__).parents[1])


def estimate(function, workers="inline", n=20, gamma=0.1, seed=1, **rest):
    made = rest.pop("plan", None) or plan(gamma)
    return estimate_sensitivity(
        function,
        n=n,
        sampler=UNIT,
        norm=rest.pop("norm", "l1"),
        plan=made,
        seed=seed,
        workers=workers,
        **rest,
    )


def script(code, *args, stdin=None, **rest):
    """Run some code in a fresh process, and return what it printed."""
    done = subprocess.run(
        [sys.executable, *args, *([] if stdin is not None else ["-c", textwrap.dedent(code)])],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""},
        **rest,
    )
    assert done.returncode == 0, done.stderr
    return done


def failing(x):
    if x[0] > 0.96:
        raise ValueError("too large")
    return float(np.median(x))


class Mapper:
    """Has a map and nothing else, and evaluates the last order first."""

    def map(self, function, items):
        return [function(item) for item in list(items)[::-1]][::-1]


class OddPool:
    """Has a map that evaluates in a thread of this process, and a name that does not say so."""

    def map(self, function, items):
        found = []
        for item in items:
            thread = threading.Thread(target=lambda item=item: found.append(function(item)))
            thread.start()
            thread.join()
        return found


def memory(gaps, structure, saved):
    return Memory(
        gaps=gaps,
        structure=structure,
        looks=[plan(0.1)],
        save=lambda start, found, kind: saved.append((start, found.copy())),
        note=lambda _: None,
    )
