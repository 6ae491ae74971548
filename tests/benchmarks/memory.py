"""How much memory a calibration takes, against m and against n, each in a process of its own."""

import sys

from .measuring import Result, fresh, missing, result

SCRIPT = """
import sys, time
from pathlib import Path
import numpy as np
from privatize import privatize, samplers, sums

def peak():
    # Of this process alone: the peak that getrusage reports includes the parent's.
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024

n, m, function = int(sys.argv[1]), int(sys.argv[2]), sums.means() if sys.argv[3] == "additive" else np.mean
make = privatize(epsilon=1, gamma=0.5, sampler=samplers.uniform(0, 1), seed=1, store=None, workers="inline")
make(function).replace(samples=2000).estimate(10)  # so that all imports are done
before, start = peak(), time.perf_counter()
make(function).replace(samples=m).estimate(n)
print(peak() - before, time.perf_counter() - start)
"""
# Bytes for every gap (itself, in the store, and a copy to select from), and megabytes for all else.
PER_GAP, BESIDE, SMALL = 24, 32, 8


def run(quick: bool) -> list[Result]:
    """Measure the growth of the peak beyond a small calibration."""
    if sys.platform != "linux":
        return [missing("memory", "the peak", "can be read on Linux only")]
    found = []
    for m in (10**3, 10**4, 10**5, 10**6) if quick else (10**3, 10**4, 10**5, 10**6, 10**7):
        grown, seconds = fresh(SCRIPT, 1000, m, "additive")
        gaps = m * 8 / 2**20
        allowed = BESIDE + m * PER_GAP / 2**20
        found.append(
            result("memory", f"additive, n=1,000, m={m:,}", grown, "MB", most=round(allowed),
                   note=f"{seconds:.2g} s; the gaps themselves are {gaps:.3g} MB; the goal is {BESIDE} MB, "
                   f"and {PER_GAP} bytes a gap", series="against m (additive, n=1,000)", x=m)
        )  # fmt: skip
    for n in (10**3, 10**4, 10**5) if quick else (10**3, 10**4, 10**5, 10**6, 10**7):
        m = min(100, 2 * 10**8 // n)
        grown, seconds = fresh(SCRIPT, n, m, "plain")
        data = n * 8 / 2**20
        found.append(
            result("memory", f"plain, n={n:,}, m={m}", grown, "MB", most=round(SMALL + 2 * data, 1),
                   note=f"{seconds:.2g} s; a dataset is {data:.3g} MB; the goal is {SMALL} MB and 2 of them",
                   series="against n (plain)", x=n)
        )  # fmt: skip
    return found
