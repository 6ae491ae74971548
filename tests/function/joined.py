"""Questions that are calibrated together, for several test files; a script calibrates them in a process."""

import sys
import time

import numpy as np

from privatize import privatize, samplers
from privatize.function.asking import questions
from privatize.function.calibrator import Calibrator
from privatize.function.joint import calibrated, joint, pilot

PROMISE = {"epsilon": 1, "gamma": 0.1, "sampler": samplers.uniform(0, 100), "store": "memory"}


def part(function, n=50, arguments=None, **more):
    """Return one question."""
    made = privatize(**PROMISE | more)(function)
    return questions(made.definition, made.calibrator, "estimate", [(n,), arguments or {}])[0][0]


def together(functions, n=50, options=None, **more):
    """Return a joint question about some functions, by label."""
    own = {name: more | (options or {}).get(name, {}) for name in functions}
    parts = [part(function, n, **own[name]) for name, function in functions.items()]
    return joint("test", parts[0].settings, parts, list(functions))


def found(asked, seed=7, weights=None):
    """Return the shares of all questions."""
    return calibrated(Calibrator(), asked, pilot(asked, 3).weights if weights is None else weights, seed)


def values(asked, seed=7, weights=None):
    """Return the estimates of all questions."""
    return [each.value for each in found(asked, seed, weights)]


def slow_mean(x):
    """Return a mean, after a while."""
    time.sleep(0.005)
    return x.mean()


def spread(x):
    """Return several numbers."""
    return {"mean": x.mean(), "quartiles": np.quantile(x, [0.25, 0.75])}


def middle(x):
    """Return the median, after sorting the data in place."""
    x.sort()
    return x[len(x) // 2]


def noisy(x):
    """Return a mean with a random number of the global generators."""
    return x.mean() + np.random.normal()


MEMBERS = {"mean": np.mean, "spread": spread, "middle": middle, "noisy": noisy, "total": np.sum}

if __name__ == "__main__":
    slow = together({"slow": slow_mean, "total": np.sum}, gamma=0.05, store=sys.argv[1], workers="inline")
    print(values(slow, weights=((0,), (90,))))
