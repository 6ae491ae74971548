"""A module with private functions, and the command line in a process of its own."""

import subprocess
import sys

MODULE = """
    import sys
    import time

    import numpy as np
    from privatize import Exponential, Laplace, privatize, samplers

    P = samplers.uniform(0, 100)
    promise = dict(epsilon=1, gamma=0.2, sampler=P)


    @privatize(**promise)
    def average_age(ages):
        return ages.mean()


    @privatize(**promise)
    def histogram(ages, bins, how="slowly"):
        print("working", how)
        return np.histogram(ages, bins=bins, range=(0, 100))[0]


    @privatize(**promise)
    def constant(ages):
        return 5.0


    @privatize(**promise)
    def sometimes(ages):
        if len(ages) == 30:
            raise RuntimeError("two\\nlines")
        return ages.mean()


    @privatize(**promise)
    def words(ages):
        return "words"


    @privatize(**promise, mechanism=Exponential(responses=["young", "old"]))
    def choose(ages):
        return [(ages < 50).sum(), (ages >= 50).sum()]


    @privatize(**promise, mechanism=Laplace(scaled="relative"))
    def several(ages):
        return {"mean": ages.mean(), "sum": ages.sum()}


    @privatize(**promise)
    def slow(ages):
        time.sleep(0.05)
        return ages.mean()


    log = open(__file__)


    @privatize(**promise)
    def unmemorable(ages):
        log.tell()
        return ages.mean()


    @privatize(epsilon=1, gamma=0.2)
    def sealed_only(ages):
        return ages.mean()


    def raw(ages):
        return ages.mean()


    class Inner:
        deep = average_age.replace(gamma=0.3)
"""


def started(*words, **settings):
    return subprocess.run(
        [sys.executable, "-m", "privatize", *words], capture_output=True, text=True, timeout=120, **settings
    )
