"""Calibrator: makes and recalls the estimates of one function, however it is bound and set.

A private function shares its calibrator by reference with its methods, its replacements, itself under the P
of sealed data, and models that are trained by the same function: each finds what another has recalled.
"""

import contextlib
import functools
import sys
import time
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatize import errors
from privatize.calibration import streams
from privatize.calibration.sensitivity import Sensitivity
from privatize.function.advice import REACHABLE, UNSTEADY
from privatize.function.box import Box
from privatize.function.question import Definition, Question
from privatize.function.settings import Settings
from privatize.function.template import Template
from privatize.identity.change_guard import ChangeGuard, guard
from privatize.identity.encoder import PrivateReachable
from privatize.identity.fingerprint import identity_of, token, warn_changed
from privatize.identity.leftovers import Snapshot
from privatize.identity.reachable import Private
from privatize.planning.plan import Plan
from privatize.storage.database import DatabaseError
from privatize.storage.estimates import Store, open_store, warn
from privatize.storage.places import store_place

_MOST = 256  # estimates, templates and settings that are held in memory
_UNAVAILABLE = "Estimates cannot be remembered in {}, only in this process: {}."


@dataclass(frozen=True, eq=False)
class Estimate:
    """A sensitivity, the key that it is remembered under, and whether it still holds.

    Attributes
    ----------
    sensitivity : Sensitivity
        What the noise is calibrated to.
    key : str or None
        Its key in the store, if it has one.
    holds : callable
        Tells whether what it depends on is still what it was.
    guard : ChangeGuard or None
        What tells that quickly, where the function can change nothing but what the guard sees.
    """

    sensitivity: Sensitivity
    key: str | None
    holds: Callable[[], bool]
    guard: ChangeGuard | None = None

    def snapshot(self, asked: Question) -> Snapshot | ChangeGuard:
        """Return what the function could change, taken before a private run."""
        if self.guard is not None and self.guard.same():
            return self.guard
        return Snapshot(asked.call.function, asked.call.shared())


class Calibrator:
    """The estimates of one function: templates of P, guards, and a memory in front of the store."""

    def __init__(self) -> None:
        # By key, plan and floor, and by where it is stored: whoever names another store expects it there too.
        self.memory: dict[tuple[str, Plan, float | None, Any], Sensitivity] = {}
        # By short names, with the questions whose ids are in them. With None where there is no guard: nothing
        # is kept alive, and whatever gets such an id later has no guard either.
        self.guarded: dict[tuple[Any, ...], tuple[Question, Estimate] | tuple[None, None]] = {}
        self._met: dict[tuple[Any, ...], weakref.ref[Any]] = {}  # functions and objects, by short names
        # By ids of settings and samplers, which are kept with what they name.
        self._templates: dict[tuple[int, str | None], Template] = {}
        self._under: dict[tuple[int, int], tuple[Settings, Any, Settings]] = {}

    def clear(self) -> None:
        """Forget the estimates in memory."""
        self.memory.clear()
        self.guarded.clear()

    def template(self, definition: Definition) -> Template:
        """Return the template of P, or refuse a function that has none."""
        settings = definition.settings
        if settings.sampler is None:
            raise errors.SettingsError(
                f"{definition.name}() has no P: pass sampler= to privatize(), or call it with sealed data "
                f"that has one, seal(data, name=..., sampler=...)."
            )
        at = id(settings.sampler), settings.domain
        found = self._templates.get(at)
        return _put(self._templates, at, Template(settings)) if found is None else found

    def under(self, definition: Definition, sampler: Any) -> Definition:
        """Return a definition under the P of sealed data."""
        settings = definition.settings
        at = id(settings), id(sampler)
        found = self._under.get(at)
        if found is None:
            found = _put(self._under, at, (settings, sampler, replace(settings, sampler=sampler)))
        return replace(definition, settings=found[2])

    def recall(self, asked: Question, box: Box | None = None) -> Estimate:
        """Return the estimate for a question, or make it; in the box is data that must not be part of it."""
        short = asked.short()
        _, known = self.guarded.get(short, (None, None)) if short else (None, None)
        if known is not None and known.holds():
            return known
        estimate, held = self._made(asked, short, box)
        if held:
            return estimate
        if box is None:
            warn_changed(asked.definition.name)
            return Estimate(estimate.sensitivity, None, lambda: False)
        # Once more: something may have been loaded when it was first used.
        estimate, held = self._made(asked, short, box)
        if held:
            return estimate
        # It would leave something of its private run behind as well: so it is not run, and nothing is spent.
        places = asked.left_by_a_public_run(estimate.sensitivity.coin_seed)
        raise errors.PrivateRunError(asked.definition.advice.about(UNSTEADY, places))

    def _made(self, asked: Question, short: tuple[Any, ...] | None, box: Box | None) -> tuple[Estimate, bool]:
        """Return the estimate from memory, from the store, or anew; and whether it held to the end."""
        settings = asked.settings
        guardable = short is not None and self._met_again(short, asked.call.function)
        watching = guard(asked.call.function, asked.template.libraries) if guardable else None
        facts = asked.facts()
        key, seen = _key(asked, facts, watching, box)
        if key is None:
            # What cannot be encoded counts by its type here: it has no key, but the rest can be compared.
            version = settings.version or ""
            holds = functools.partial(_holds, facts, version, identity_of(facts, version=version))
            return Estimate(asked.calibrate(_seed(settings), None), None, holds), holds()
        holds = functools.partial(_holds, facts, settings.version, key)
        at = key, settings.plan, settings.min_sensitivity, settings.store
        known = self.memory.get(at)
        if known is not None:
            estimate = Estimate(known, key, holds)
            if guardable and seen and (watching is None or watching.same()):
                if watching is not None:
                    estimate = Estimate(known, key, watching.same, watching if watching.simple else None)
                _put(self.guarded, short, (None, None) if watching is None else (asked, estimate))
            return estimate, True
        known, store = _remembered(asked, key)
        held = holds()
        if held:
            _put(self.memory, at, known)
        else:
            _Writer(store)(store.forget, key)
        return Estimate(known, key, holds), held

    def _met_again(self, short: tuple[Any, ...], function: Any) -> bool:
        """Tell whether a guard is worth its time: many an object is asked just once."""
        if short in self.guarded:
            return self.guarded[short][1] is not None
        target = function.__self__ if type(function) is types.MethodType else function
        met = self._met.get(short)
        if met is not None and met() is target:
            return True
        with contextlib.suppress(TypeError):  # what has no weak references has no guard either
            _put(self._met, short, weakref.ref(target))
        return False


def _put(held: dict[Any, Any], at: Any, value: Any) -> Any:
    if len(held) >= _MOST:
        held.clear()
    held[at] = value
    return value


# --- what an estimate depends on --------------------------------------------------------------


def apart(name: str, value: Any, box: Box) -> None:
    """Refuse what the private data can be reached from."""
    try:
        identity_of(value, version="", private=Private(box.data))
    except PrivateReachable as error:
        raise errors.DataError(REACHABLE.format(name, error)) from None


def _key(
    asked: Question, facts: list[Any], watching: ChangeGuard | None, box: Box | None
) -> tuple[str | None, bool]:
    """Return the key of an estimate, if it has one, and whether it is of what the guard watches."""
    # In a frame of its own: those that calibrate must not hold the data, nor all that a function can reach.
    read: dict[tuple[int, str], Any] | None = None if watching is None else {}
    private, name = None if box is None else Private(box.data), asked.definition.name
    try:
        key = token(facts, name, version=asked.settings.version, private=private, read=read)
    except PrivateReachable as error:
        raise errors.DataError(REACHABLE.format(name, error)) from None
    return key, watching is None or read is None or watching.saw(read)


def _holds(facts: list[Any], version: str | None, digest: str | None) -> bool:
    """Tell whether what an estimate depends on is still what it was."""
    return identity_of(facts, version=version) == digest


# --- the store --------------------------------------------------------------------------------


class _Writer:
    """Writes to a store for as long as that works, and warns once when it no longer does."""

    def __init__(self, store: Store) -> None:
        self.store, self.works = store, True

    def __call__(self, act: Callable[..., object], *args: Any, **facts: Any) -> None:
        if self.works:
            try:
                act(*args, **facts)
            except DatabaseError as error:
                self.works = False
                warn(_UNAVAILABLE.format(self.store.url, error))


def store_of(settings: Settings) -> Store:
    """Return where estimates are remembered."""
    return open_store(store_place(settings.store))


def _seed(settings: Settings) -> int:
    return streams.fresh_seed() if settings.seed is None else settings.seed


def _remembered(asked: Question, key: str) -> tuple[Sensitivity, Store]:
    """Return the estimate that is remembered under a key, or make it and remember it; and the store."""
    store = store_of(asked.settings)
    try:
        return _completed(store, asked, key), store
    except DatabaseError as error:
        warn(_UNAVAILABLE.format(store.url, error))
        store = open_store("memory")
        return _completed(store, asked, key), store


def _completed(store: Store, asked: Question, key: str) -> Sensitivity:
    """Read the estimate from what is remembered, and evaluate what is missing."""
    settings, plan, name = asked.settings, asked.settings.plan, asked.definition.name
    about = {
        "function": asked.definition.label,
        "sampler": repr(settings.sampler),
        "mechanism": repr(settings.mechanism),
        "versions": {"python": sys.version.partition(" ")[0], "numpy": np.__version__},
    }
    entry = store.open(key, seed=_seed(settings), label=name, n=asked.n, facts=about)
    mine = repr((plan, settings.min_sensitivity))
    for which in ("*", mine):
        if which in entry.failure:
            raise errors.restore(entry.failure[which])
    entry.looks = store.look(key, plan)  # before anything is seen
    if "marginal" in {look.bound for look in entry.looks} and len(entry.looks) > 1:
        raise errors.PlanError(
            f"bound='marginal' holds for one look at the gaps only, and {name}() has been calibrated for "
            f"n={asked.n} with another plan. Call {name}.forget() to begin anew.",
            gamma=plan.gamma,
            m=plan.m,
            bound=plan.bound,
        )
    write = _Writer(store)
    entry.save = functools.partial(write, store.save, key, entry.seed)
    entry.note = functools.partial(write, store.look, key)
    entry.agree = functools.partial(store.agree, key, entry.seed)
    start = time.perf_counter()
    try:
        found = asked.calibrate(entry.seed, entry)
    except errors.CalibrationError as error:
        # Remembered too: trying again must not be a way to a luckier estimate.
        shared = isinstance(error, errors.NotReproducibleError | errors.PairError)
        write(store.fail, key, entry.seed, "*" if shared else mine, error.plain().facts())
        raise
    if entry.checked < plan.m:
        took = round(time.perf_counter() - start, 3)
        facts = {"checked": plan.m, "failed": found.failed, "seconds": took, "norm": found.norm}
        facts |= {"jitter": found.jitter} if found.jitter else {}
        facts |= {"cause": found.cause} if found.cause else {}
        write(store.describe, key, entry.seed, **facts)
    return found
