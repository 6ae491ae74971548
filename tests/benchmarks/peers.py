"""The same work with other libraries: Laplace noise, and a private mean from data to answer.

`python -m tests.benchmarks.peers` prints the results as JSON, for the libraries that are installed.
"""

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import Laplace, privatize, samplers

from .measuring import ROOT, Result, as_json, compare, counted, missing, result

GROUP = "peers"
SHERPA = (
    "not measured: its framework (shfl), the other implementation of sensitivity sampling, cannot be "
    "installed with pip; its setup.py also asks for TensorFlow, torch and emnist"
)
Works = dict[str, Callable[[], Any]]


def opendp(d: int, data: Any) -> Works:
    """Return OpenDP's noise on d numbers, and its private mean."""
    import opendp.prelude as dp

    dp.enable_features("contrib", "idealized-numerics")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=d), dp.l1_distance(T=float)
    noise = dp.m.make_laplace(*space, scale=1.0, k=-40)
    zeros = [0.0] * d
    mean = (
        (dp.vector_domain(dp.atom_domain(bounds=(0.0, 1.0)), size=len(data)), dp.symmetric_distance())
        >> dp.t.then_mean()
        >> dp.m.then_laplace(scale=1.0 / len(data))
    )

    def private_mean() -> Any:
        return mean(np.clip(data, 0.0, 1.0).tolist())

    return {"noise": lambda: noise(zeros), "mean": private_mean}


def diffprivlib(d: int, data: Any) -> Works:
    """Return diffprivlib's noise on d numbers, and its private mean."""
    from diffprivlib import mechanisms, tools

    single = mechanisms.Laplace(epsilon=1.0, sensitivity=1.0)
    return {
        "noise": lambda: [single.randomise(0.0) for _ in range(d)],
        "mean": lambda: tools.mean(data, epsilon=1.0, bounds=(0.0, 1.0)),
    }


PEERS: dict[str, Callable[[int, Any], Works]] = {"opendp": opendp, "diffprivlib": diffprivlib}


def against(peer: str, quick: bool) -> list[Result]:
    """Compare with one peer."""
    found = []
    label = f"{peer} {importlib.metadata.version(peer)}"
    mean = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1), store=None)(np.mean)
    for d in (1, 10**3, 10**5):
        vector, whole = np.zeros(d), np.zeros(d, dtype=bool)
        theirs = PEERS[peer](d, vector[:1])["noise"]
        ours, other, ratio, _ = compare(
            lambda v=vector, w=whole: Laplace().release(v, sensitivity=1.0, epsilon=1.0, delta=0.0, whole=w),
            theirs,
            1 if quick and d > 1000 else 5,
            100 if d == 1 else 1,
        )
        found.append(
            result(GROUP, f"Laplace noise, {counted(d)}", ours * 1e6, "µs", against=label,
                   theirs=other * 1e6, ratio=1 / ratio, faster=True, least=1,
                   note="" if peer == "opendp" else "its floats give away what they hide: docs/noise.md")
        )  # fmt: skip
    for n in (1000, 100_000):
        data = np.random.default_rng(1).random(n)
        mean.estimate(n)
        theirs = PEERS[peer](1, data)["mean"]
        ours, other, ratio, _ = compare(lambda x=data: mean(x), theirs, 5, 20 if n == 1000 else 3)
        found.append(
            result(GROUP, f"private mean of {n:,} numbers", ours * 1e6, "µs", against=label,
                   theirs=other * 1e6, ratio=1 / ratio, faster=True,
                   note="calibrated before; theirs knows the mean's sensitivity, ours any function's")
        )  # fmt: skip
    return found


def measured(quick: bool) -> list[Result]:
    """Compare with the peers that are installed here."""
    return [each for peer in PEERS if importlib.util.find_spec(peer) for each in against(peer, quick)]


def run(quick: bool, python: str | None = None) -> list[Result]:
    """Compare with the peers that are installed here, or for another interpreter."""
    if python is None:
        found = measured(quick)
    else:
        command = [python, "-m", "tests.benchmarks.peers", *(["--quick"] if quick else [])]
        there = os.environ | {"PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, cwd=ROOT, env=there, stdout=subprocess.PIPE, text=True, check=True)
        found = [Result(**each) for each in json.loads(done.stdout)]
    shown = {each.against.partition(" ")[0] for each in found}
    found += [
        missing(GROUP, peer, "is not installed here; --peer names another interpreter")
        for peer in PEERS
        if peer not in shown
    ]
    return [*found, missing(GROUP, "Sherpa.ai", SHERPA)]


if __name__ == "__main__":
    print(as_json(measured("--quick" in sys.argv)))
