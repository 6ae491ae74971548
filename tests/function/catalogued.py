"""Catalogues about sealed numbers, with names that no other test has."""

import itertools

import numpy as np

from privatize import Budget, Catalogue, samplers, seal

NUMBERS = itertools.count()
UNIT = samplers.uniform(0, 1)
ONES = np.linspace(0, 1, 200)


def mean(x):
    """Return the mean."""
    return x.mean()


def share_above(x, limit):
    """Return the share above a limit."""
    return (x > limit).mean()


def fresh(prefix="catalogue"):
    """Return a name that nobody has."""
    return f"{prefix} {next(NUMBERS)}"


def budget(**more):
    """Return a budget in the memory of this process, or in a ledger."""
    return Budget(fresh("budget of a catalogue"), **{"epsilon": 10, "gamma": 0.5, "ledger": "memory"} | more)


def sealed(data=ONES, **more):
    """Return sealed data with a P and a budget."""
    given = {"name": fresh("people"), "sampler": UNIT} | more
    return seal(data, **given if "budget" in given else given | {"budget": budget()})


def catalogue(people=None, name=None, **more):
    """Return a catalogue without members, which calibrates quickly."""
    given = {"gamma": 0.2, "store": "memory", "workers": "inline"} | more
    return Catalogue(name or fresh(), sealed() if people is None else people, **given)


def declared(people=None, **more):
    """Return a catalogue with three questions that is declared."""
    made = catalogue(people, **more)
    made.add(mean)
    made.add(share_above, limit=[0.25, 0.5])
    made.calibrate()
    return made
