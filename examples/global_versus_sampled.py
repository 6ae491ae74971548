"""Sampled sensitivity beside what analysis gives: two experiments of the paper, as tables.

First the paper's Example: the mean of exponential variables has no global sensitivity at all, and
its (1-γ)-quantile log(1/γ)/n is known. Then the appendix: the mean over [0, 1]^d, whose global
sensitivity is d/n.
"""

import argparse

import numpy as np
import scipy.stats

from privatize import estimate_sensitivity, plan, samplers


def main(quick: bool) -> None:
    """Print both tables."""
    repeats = 3 if quick else 50
    n = 100
    exponential = samplers.as_sampler(scipy.stats.expon())
    print(f"mean of {n} Exp(1) variables, {repeats} calibrations each")
    print(f"{'gamma':>6} {'analytic':>9} {'tolerance':>18} {'dkw':>18}")
    for gamma in (0.05, 0.1, 0.2):
        row = f"{gamma:6g} {np.log(1 / gamma) / n:9.4f}"
        for bound in ("tolerance", "dkw"):
            made = plan(gamma, bound=bound)
            values = [
                estimate_sensitivity(np.mean, n=n, sampler=exponential, norm="l1", plan=made, seed=i).value
                for i in range(repeats)
            ]
            row += f" {np.mean(values):8.4f} (m={made.m:5d})"
        print(row)

    n = 500
    print(f"\nmean of {n} points of the unit cube, in L1")
    print(f"{'d':>4} {'global':>9} {'gamma=0.2':>10} {'gamma=0.1':>10} {'gamma=0.05':>10}")
    for d in (1, 4) if quick else (1, 2, 4, 8, 16, 32, 64):
        row = f"{d:4d} {d / n:9.5f}"
        for gamma in (0.2, 0.1, 0.05):
            found = estimate_sensitivity(
                lambda x: x.mean(axis=0),
                n=n,
                sampler=samplers.uniform(0, 1, size=d),
                norm="l1",
                plan=plan(gamma),
                seed=1,
            )
            row += f" {found.value:10.5f}"
        print(row)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and dimensions")
    main(parser.parse_args().quick)
