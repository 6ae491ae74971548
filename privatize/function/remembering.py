"""Read estimates from the store, and evaluate what is missing there."""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import errors
from privatize.calibration import streams
from privatize.calibration.refuting import ProvenBound
from privatize.calibration.run import REMEMBERED
from privatize.calibration.sensitivity import Sensitivity
from privatize.function import families
from privatize.function.question import Question
from privatize.function.recognizing import Signature, same, signature
from privatize.function.settings import Settings
from privatize.identity.fingerprint import token
from privatize.mechanisms.shapes import Shape
from privatize.storage.database import DatabaseError
from privatize.storage.estimates import Entry, Store, open_store, warn
from privatize.storage.places import store_place

_PROVEN = ("value", "given", "norm", "tried", "largest", "jitter")  # what is remembered of a proven bound
UNAVAILABLE = "Estimates cannot be remembered in {}, only in this process: {}."
"""A warning: the store's URL, and why."""


class Writer:
    """Writes to a store for as long as that works, and warns once when it no longer does."""

    def __init__(self, store: Store) -> None:
        self.store, self.works = store, True

    def __call__(self, act: Callable[..., object], *args: Any, **facts: Any) -> None:
        """Do something with the store, if that has worked so far."""
        if self.works:
            try:
                act(*args, **facts)
            except DatabaseError as error:
                self.works = False
                warn(UNAVAILABLE.format(self.store.url, error))


def store_of(settings: Settings) -> Store:
    """Return the store in which estimates are remembered."""
    return open_store(store_place(settings.store))


def seed_of(settings: Settings) -> int:
    """Return the user's seed, or a fresh one."""
    return streams.fresh_seed() if settings.seed is None else settings.seed


def _tried(store: Store, asked: Question, key: str) -> ProvenBound:
    """Return the user's bound if it was tried before, or try it; raise if it is refuted."""
    entry = _opened(store, asked, key)
    about, seed = entry.proven, entry.seed
    if about.get("given") == asked.bound and entry.structure is not None and entry.structure.complete:
        about = about | {"seed": seed, "coin_seed": streams.coin_seed(seed), "n": asked.n}
        return ProvenBound(structure=entry.structure, schema=asked.schema, **about)
    write = Writer(store)
    try:
        found = asked.attack(seed)
    except errors.CalibrationError as error:  # for `privatize store`: the next call tries it again
        write(store.fail, entry.key, seed, f"bound {asked.bound!r}", error.plain().facts())
        raise
    write(store.save, entry.key, seed, 0, np.array([found.largest]), found.structure)
    facts = {name: getattr(found, name) for name in _PROVEN}
    write(store.describe, entry.key, seed, checked=1, norm=found.norm, proven=facts)
    return found


def _opened(store: Store, asked: Question, key: str) -> Entry:
    """Return what is remembered under a key, or start an entry."""
    settings = asked.settings
    about = {
        "function": asked.definition.label,
        "sampler": repr(settings.sampler),
        "mechanism": repr(settings.mechanism),
        "versions": {"python": sys.version.partition(" ")[0], "numpy": np.__version__},
    }
    return store.open(key, seed=seed_of(settings), label=asked.definition.name, n=asked.n, facts=about)


def _completed_family(store: Store, asked: Question, key: str, orders: frozenset[str]) -> Sensitivity:
    """Read the estimate of every member from what is remembered, and evaluate what is missing."""
    entry, coins, write = _opened(store, asked, key), families.shared_coins(asked), Writer(store)
    shape = None if entry.weights is None else Shape.of(entry.weights)
    if shape is None:
        shape = families.pooled_shape(asked, coins, entry.seed)
    if shape is not None:  # before any member is calibrated
        shape = Shape.of(store.agree(key, entry.seed, list(shape.encoded)))
    each = families.members(asked, coins, shape)
    keys = [token(member.facts(), "", version=asked.settings.version) or "" for member in each]
    write(store.describe, key, entry.seed, members=keys)  # they are forgotten together
    known = dict(zip(map(id, each), keys, strict=True))
    try:
        measured = functools.partial(_measured, store, orders=orders)
        found = families.estimated(asked, each, lambda member: measured(member, known[id(member)]))
    except errors.CalibrationError as error:  # for `privatize store`: the next call reads the members again
        plan = repr((asked.settings.plan, asked.settings.min_sensitivity))
        write(store.fail, key, entry.seed, plan, error.plain().facts())
        raise
    if entry.checked < found.m:
        write(store.describe, key, entry.seed, checked=found.m, failed=found.failed, norm=found.norm)
    return found


def completed(store: Store, asked: Question, key: str, orders: frozenset[str]) -> Sensitivity | ProvenBound:
    """Read the estimate from what is remembered, and evaluate what is missing."""
    if families.is_family(asked):
        return _completed_family(store, asked, key, orders)
    return _tried(store, asked, key) if asked.settings.plan is None else _measured(store, asked, key, orders)


def _measured(store: Store, asked: Question, key: str, orders: frozenset[str]) -> Sensitivity:
    """Read a sampled estimate for one P from what is remembered, and evaluate what is missing.

    If another process has measured it, the function must be recognized: it may compute something else here,
    for example because the order of a set of strings is another one. Where that process was stopped before it
    had noted how, some pairs are measured again.
    """
    settings, plan, name = asked.settings, asked.settings.plan, asked.definition.name
    entry = _opened(store, asked, key)
    if plan is None:
        raise TypeError("Only a sampled estimate is calibrated.")
    mine = repr((plan, settings.min_sensitivity))
    for which in ("*", mine):
        if which in entry.failure:
            raise errors.restore(entry.failure[which])
    entry.looks = store.look(key, plan)  # before any gap is seen
    if "marginal" in {look.bound for look in entry.looks} and len(entry.looks) > 1:
        raise errors.PlanError(
            f"bound='marginal' holds for one look at the gaps only, and {name}() has been calibrated for "
            f"n={asked.n} with another plan. Call {name}.forget() to start again.",
            gamma=plan.gamma,
            m=plan.m,
            bound=plan.bound,
        )
    here = key, entry.seed, orders
    entry.elsewhere = not store.measured_here(here, entry.gaps[: plan.m])
    theirs = entry.elsewhere and entry.checked >= plan.m
    if entry.elsewhere and entry.signature:
        if not same(entry.signature, signature(asked)):
            raise errors.NotReproducibleError(REMEMBERED.format(name=name, n=asked.n))
        entry.elsewhere = False
    write = Writer(store)
    entry.save = functools.partial(write, store.save, key, entry.seed)
    entry.note = functools.partial(write, store.look, key)
    entry.agree = functools.partial(store.agree, key, entry.seed)
    start = time.perf_counter()
    try:
        found = asked.calibrate(entry.seed, entry)
    except errors.CalibrationError as error:
        _remember_failure(write, entry, asked, error, theirs)
        raise
    store.note_measured(here, found.gaps)
    if entry.checked < plan.m:
        own = _signature(store, asked, found, entry)
        write(store.describe, key, entry.seed, **_facts(found, entry, own, time.perf_counter() - start))
    return found


def _signature(store: Store, asked: Question, found: Sensitivity, entry: Entry) -> Signature:
    """Return what tells other processes what a function computes, if there is any need for it.

    There is none for estimates in memory. A function that has failed might end this process. A catalogue has
    the signatures of its questions in its declaration.
    """
    return () if store.url == "memory" or found.failed or entry.largest else signature(asked)


def _remember_failure(
    write: Writer, entry: Entry, asked: Question, error: errors.CalibrationError, theirs: bool
) -> None:
    """Remember a failure, too: trying again must not be a way to a luckier estimate.

    But not if another process has measured and checked all of it: that one is right to use it.
    """
    shared = isinstance(error, errors.NotReproducibleError | errors.PairError)
    if not ((theirs and shared) or getattr(error, "remembered", False)):
        which = "*" if shared else repr((asked.settings.plan, asked.settings.min_sensitivity))
        write(write.store.fail, entry.key, entry.seed, which, error.plain().facts())


def _facts(found: Sensitivity, entry: Entry, own: Signature, seconds: float) -> dict[str, Any]:
    """Return the public facts about a calibration that are remembered with its gaps."""
    given: dict[str, Any] = {
        "jitter": found.jitter,
        "cause": found.cause,
        "largest": entry.largest,
        "signature": own,
        "spread": found.spread and found.spread.to_json(),
        "stress": found.stress and found.stress.tried.to_json(),
    }
    facts = {"checked": found.m, "failed": found.failed, "seconds": round(seconds, 3), "norm": found.norm}
    return facts | {name: value for name, value in given.items() if value}
