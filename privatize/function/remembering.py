"""Estimates in a store: read there, completed by evaluating what is missing, and written down."""

from __future__ import annotations

import functools
import os
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import errors
from privatize.calibration import streams
from privatize.calibration.sensitivity import Memory, Sensitivity
from privatize.config.policy import configured
from privatize.errors import CalibrationError, NotReproducibleError, PairError, PlanError
from privatize.function.question import Question
from privatize.function.settings import Settings
from privatize.storage.estimates import Store, StoreUnavailable, default_url, open_store, warn

__all__ = ["Writer", "fresh_seed", "recalled", "store_of"]


class Writer:
    """Writes to a store for as long as that works, and warns once when it no longer does."""

    def __init__(self, store: Store) -> None:
        self.store, self.works = store, True

    def __call__(self, act: Callable[..., object], *args: Any, **facts: Any) -> None:
        """Let the store do something."""
        if self.works:
            try:
                act(*args, **facts)
            except StoreUnavailable as error:
                self.works = False
                warn(_UNAVAILABLE.format(self.store.url, error))


_UNAVAILABLE = "Estimates cannot be remembered in {}, only in this process: {}."


def store_of(settings: Settings) -> Store:
    """Return where estimates are remembered."""
    chosen = settings.store
    if chosen == "default":
        chosen = configured("store", "default")
    if chosen == "default":
        chosen = default_url()
    return open_store("memory" if chosen is None else os.fspath(chosen))


def fresh_seed(settings: Settings) -> int:
    """Return the seed of a calibration that nothing is remembered of."""
    return streams.fresh_seed() if settings.seed is None else settings.seed


def recalled(asked: Question, key: str) -> tuple[Sensitivity, Store]:
    """Return the estimate that is remembered under a key, or make it and remember it; and the store."""
    store = store_of(asked.settings)
    try:
        return _read(store, asked, key), store
    except StoreUnavailable as error:
        warn(_UNAVAILABLE.format(store.url, error))
        store = open_store("memory")
        return _read(store, asked, key), store


def _read(store: Store, asked: Question, key: str) -> Sensitivity:
    """Read the estimate from what is remembered, and evaluate what is missing."""
    settings, plan = asked.settings, asked.settings.plan
    about = {
        "function": asked.label,
        "sampler": repr(settings.sampler),
        "mechanism": repr(settings.mechanism),
        "versions": {"python": sys.version.partition(" ")[0], "numpy": np.__version__},
    }
    entry = store.open(key, seed=fresh_seed(settings), label=asked.name, n=asked.n, facts=about)
    mine = repr((plan, settings.min_sensitivity))
    for which in ("*", mine):
        if which in entry.failure:
            raise errors.restore(entry.failure[which])
    looks = store.look(key, plan)  # before anything is seen
    if "marginal" in {look.bound for look in looks} and len(looks) > 1:
        raise PlanError(
            f"bound='marginal' holds for one look at the gaps only, and {asked.name}() has been calibrated "
            f"for n={asked.n} with another plan. Call {asked.name}.forget() to begin anew.",
            gamma=plan.gamma,
            m=plan.m,
            bound=plan.bound,
        )
    write = Writer(store)
    memory = Memory(
        gaps=entry.gaps,
        structure=entry.structure,
        looks=looks,
        save=functools.partial(write, store.save, key, entry.seed),
        note=functools.partial(write, store.look, key),
        checked=entry.checked,
        jitter=entry.jitter,
        weights=entry.weights,
        agree=functools.partial(store.agree, key, entry.seed),
        cause=entry.cause,
    )
    start = time.perf_counter()
    try:
        found = asked.calibrate(entry.seed, memory)
    except CalibrationError as error:
        # Remembered too: trying again must not be a way to a luckier estimate.
        shared = isinstance(error, NotReproducibleError | PairError)
        write(store.fail, key, entry.seed, "*" if shared else mine, error.plain().facts())
        raise
    if entry.checked < plan.m == len(found.gaps):  # of very many nothing is stored
        took = round(time.perf_counter() - start, 3)
        facts = {"checked": plan.m, "failed": found.failed, "seconds": took, "norm": found.norm}
        facts |= {"jitter": found.jitter} if found.jitter else {}
        facts |= {"cause": found.cause} if found.cause else {}
        write(store.describe, key, entry.seed, **facts)
    return found
