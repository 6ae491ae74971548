"""Programs that calibrate, and the processes that they leave."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

import privatize as package
from privatize import estimate_sensitivity, plan, samplers
from privatize.execution.processes import pool as processes
from privatize.storage.estimates import Store

UNIT = samplers.uniform(0, 1)
ROOT = str(Path(package.__file__).parents[1])
ENVIRONMENT = os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""}


def estimate(function, workers=2, n=20, gamma=0.1, seed=1, norm="l1", **rest):
    made = rest.pop("plan", None) or plan(gamma)
    return estimate_sensitivity(
        function, n=n, sampler=UNIT, norm=norm, plan=made, seed=seed, workers=workers, **rest
    )


def mean(x):
    return float(x.mean())


def until(condition, seconds=120.0):
    """Wait for something, but not forever."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return bool(condition())


def servers():
    """Return this process's fork servers."""
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if "multiprocess.forkserver" in " ".join(child.cmdline()):
                found.append(child)
    return found


def below_servers():
    """Return the processes that the fork servers started and that still run."""
    found = set()
    for server in servers():
        with contextlib.suppress(psutil.Error):
            for child in server.children(recursive=True):
                with contextlib.suppress(psutil.Error):
                    if child.status() != psutil.STATUS_ZOMBIE:
                        found.add(child.pid)
    return found


def workers():
    """Return the process ids of the pool's workers."""
    return {worker.process.pid for worker in processes.pool().workers}


PROGRAM = """
import os, sys, time
import numpy as np
from privatize import privatize, samplers
from privatize.calibration import run

notes = sys.argv[2]
run._SAVED_EVERY = 0  # at once

def slow(x):
    time.sleep(0.005)
    with open(notes, "ab", buffering=0) as file:
        file.write(b".")
    while os.path.exists(notes + ".hold") and os.path.getsize(notes) > 200:  # so that it does not end before
        time.sleep(0.01)
    return float(x.mean())

f = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), store=sys.argv[1], seed=3,
              workers=2)(slow)
private = np.full(20, 0.87654321)
f(private)
np.save(sys.argv[3], f.estimate(20).gaps)
"""


class Program:
    """A program that calibrates for a while, in a session of its own."""

    def __init__(self, folder):
        self.file, self.store = folder / "program.py", folder / "estimates.db"
        self.notes, self.gaps, self.hold = folder / "notes", folder / "gaps.npy", folder / "notes.hold"
        self.file.write_text(PROGRAM)
        self.notes.touch()
        self.hold.touch()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, self.file, self.store, self.notes, self.gaps],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=ENVIRONMENT,
            # A shell's background jobs ignore Ctrl-C, and so would what they start.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        return self.process

    def known(self):
        """Return how many pairs are stored by now."""
        try:
            return sum(entry["pairs"] for entry in Store(self.store).entries())
        except Exception:  # the file is missing or incomplete
            return 0

    def alive(self):
        """Return the processes of the session that still run."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) == self.process.pid and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
        return found

    def runs(self):
        return self.notes.stat().st_size
