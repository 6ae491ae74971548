"""Orders are evaluated in processes of our own, whatever the threads there are."""

import dataclasses
import os
import threading
from pathlib import Path

import numpy as np

from privatize.execution.clusters import orders
from privatize.execution.clusters.executors import Mapped
from tests.execution.evaluated import OddPool, estimate


def mean(x):
    return float(x.mean())


def test_threads_of_other_processes_are_not_used(monkeypatch, tmp_path):
    """A cluster's worker with several threads evaluates in a separate process, which has one thread."""
    folder = str(tmp_path)

    def named(x):
        thread, main = threading.current_thread(), threading.main_thread()
        Path(folder, f"{thread is main} {os.getpid()}").touch()
        return float(x.mean())

    # As if the orders came from another process.
    submit, sender = Mapped.submit, ("another process", 0)
    monkeypatch.setattr(
        Mapped, "submit", lambda self, order: submit(self, dataclasses.replace(order, sender=sender))
    )
    try:
        found = estimate(named, OddPool())
    finally:
        while orders._pools:
            orders._pools.pop().close()
    assert np.array_equal(found.gaps, estimate(mean).gaps)
    seen = {path.name for path in Path(folder).iterdir()}
    # Some pairs are evaluated again in the caller's thread of this process.
    assert all(name.startswith("True") for name in seen) and len(seen) == 2
