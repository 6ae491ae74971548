"""Calibrator: makes and recalls the estimates of one function, however it is bound and set.

A private function shares its calibrator by reference with its methods, its replacements, itself under the P
of sealed data, and models that are trained by the same function: each finds what another has recalled.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from privatize.calibration.sensitivity import Sensitivity
from privatize.errors import DataError, PrivateRunError, SettingsError
from privatize.function.advice import REACHABLE, UNSTEADY
from privatize.function.box import Box
from privatize.function.question import Question
from privatize.function.remembering import Writer, fresh_seed, recalled
from privatize.function.settings import Settings
from privatize.function.template import Template
from privatize.identity.change_guard import Watch, watch
from privatize.identity.fingerprint import PrivateReachable, fingerprint, seek, token, warn_changed
from privatize.identity.leftovers import Snapshot, WatchedNames, is_simple
from privatize.identity.reachable import Private
from privatize.planning.plan import Plan

__all__ = ["Calibrator", "Estimate", "apart"]

_MOST = 256  # estimates, templates and settings that are held in memory


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
    guard : Watch or None
        What tells that quickly, where something can.
    """

    sensitivity: Sensitivity
    key: str | None
    holds: Callable[[], bool]
    guard: Watch | None = None

    def snapshot(self, asked: Question) -> Snapshot | WatchedNames:
        """Return what the function could change, taken before a private run."""
        if self.guard is not None and is_simple(self.guard) and self.guard.same():
            return WatchedNames(self.guard)
        return Snapshot(asked.call.function, asked.call.shared())


@dataclass(frozen=True, eq=False)
class _Guarded:
    """What was recalled for a question, if a guard can tell that it still holds."""

    asked: Question  # whose settings and function have their ids in its short name
    estimate: Estimate | None


class Calibrator:
    """The estimates of one function: templates of P, guards, and a memory in front of the store."""

    def __init__(self) -> None:
        self.memory: OrderedDict[tuple[str, Plan, float | None], Sensitivity] = OrderedDict()
        self.guarded: dict[tuple[Any, ...], _Guarded] = {}
        # By ids of settings and samplers, which are kept with what they name.
        self._templates: dict[tuple[int, str | None], Template] = {}
        self._under: dict[tuple[int, int], tuple[Settings, Any, Settings]] = {}

    def clear(self) -> None:
        """Forget the estimates in memory."""
        self.memory.clear()
        self.guarded.clear()

    def template(self, name: str, settings: Settings) -> Template:
        """Return the template of P, or refuse settings of a function of this name that have none."""
        sampler: Any = settings.sampler
        if sampler is None:
            raise SettingsError(
                f"{name}() has no P: pass sampler= to privatize(), or call it with sealed data that has one, "
                f"seal(data, name=..., sampler=...)."
            )
        at = id(sampler), settings.domain
        found = self._templates.get(at)
        if found is None:
            found = Template(settings)
            _put(self._templates, at, found)
        return found

    def under(self, settings: Settings, sampler: Any) -> Settings:
        """Return the settings with the P of sealed data."""
        at = id(settings), id(sampler)
        found = self._under.get(at)
        if found is None:
            found = settings, sampler, replace(settings, sampler=sampler)
            _put(self._under, at, found)
        return found[2]

    def recall(self, asked: Question, box: Box | None = None) -> Estimate:
        """Return the estimate for a question, or make it; in the box is data that must not be part of it."""
        short = asked.short()
        found = None if short is None else self.guarded.get(short)
        if found is not None and found.estimate is not None and found.estimate.holds():
            return found.estimate
        guardable = short is not None and (found is None or found.estimate is not None)
        estimate, held = self._made(asked, short, guardable, box)
        if held:
            return estimate
        if box is None:
            warn_changed(asked.name)
            return Estimate(estimate.sensitivity, None, lambda: False)
        # Something may have been loaded when it was first used.
        estimate, held = self._made(asked, short, guardable, box)
        if held:
            return estimate
        # It would leave something of its private run behind as well: so it is not run, and nothing is spent.
        places = asked.left_by_a_public_run(estimate.sensitivity.coin_seed)
        raise PrivateRunError(asked.advice.about(UNSTEADY, places))

    def _made(
        self, asked: Question, short: tuple[Any, ...] | None, guardable: bool, box: Box | None
    ) -> tuple[Estimate, bool]:
        """Return the estimate from memory, from the store, or anew; and whether it held to the end."""
        settings = asked.settings
        guard = watch(asked.call.function, asked.template.libraries) if guardable else None
        facts = asked.facts()
        key, seen = _key(asked, facts, guard, box)
        # What cannot be encoded counts by its type here: it has no key, but the rest can be compared.
        version = settings.version if key is not None else settings.version or ""
        if key is None:
            holds = functools.partial(_holds, facts, version, _digest(facts, version))
            estimate = Estimate(asked.calibrate(fresh_seed(settings), None), None, holds)
            return estimate, holds()
        holds = functools.partial(_holds, facts, version, key)
        at = key, settings.plan, settings.min_sensitivity
        known = self.memory.get(at)
        if known is not None:
            estimate = Estimate(known, key, holds)
            if short is not None and seen and (guard is None or guard.same()):
                guarded = None if guard is None else Estimate(known, key, guard.same, guard)
                _put(self.guarded, short, _Guarded(asked, guarded))
                estimate = guarded or estimate
            return estimate, True
        known, store = recalled(asked, key)
        held = holds()
        if held:
            self.memory[at] = known
            while len(self.memory) > _MOST:
                self.memory.popitem(last=False)
        else:
            Writer(store)(store.forget, key)
        return Estimate(known, key, holds), held


def apart(name: str, value: Any, box: Box) -> None:
    """Refuse what the private data can be reached from."""
    try:
        seek(value, Private(box.data))
    except PrivateReachable as error:
        raise DataError(REACHABLE.format(name, error)) from None


def _key(asked: Question, facts: list[Any], guard: Watch | None, box: Box | None) -> tuple[str | None, bool]:
    """Return the key of an estimate, if it has one, and whether it is of what the guard watches."""
    # In a frame of its own: those that calibrate must not hold the data, nor all that a function can reach.
    read: dict[tuple[int, str], Any] | None = None if guard is None else {}
    private = None if box is None else Private(box.data)
    try:
        key = token(facts, asked.name, version=asked.settings.version, private=private, read=read)
    except PrivateReachable as error:
        raise DataError(REACHABLE.format(asked.name, error)) from None
    return key, guard is None or read is None or guard.saw(read)


def _digest(facts: list[Any], version: str | None) -> str:
    try:
        return fingerprint(facts, version=version)
    except Exception:  # whatever somebody's class does when it is looked at, or it cannot be encoded any more
        return ""


def _holds(facts: list[Any], version: str | None, digest: str) -> bool:
    """Tell whether what an estimate depends on is still what it was."""
    return _digest(facts, version) == digest


def _put(held: dict[Any, Any], at: Any, value: Any) -> None:
    if len(held) >= _MOST:
        held.clear()
    held[at] = value
