"""Private functions that count how often they are evaluated."""

import logging

from privatize import privatize, samplers

UNIT = samplers.uniform(0, 1)


def counted():
    """Return a mean that counts its runs where the fingerprint does not look."""
    notes = logging.getLogger("notes of a test")
    notes.runs = 0

    def mean(x):
        notes.runs += 1
        return float(x.mean())

    mean.notes = notes
    return mean


def made(raw, path, **settings):
    """Return a private function that remembers at the path."""
    promise = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "store": path} | settings
    return privatize(**promise)(raw)
