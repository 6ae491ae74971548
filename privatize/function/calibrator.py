"""Calibrator: makes and recalls the estimates of one function, for all its methods and settings.

A private function shares its calibrator with its bound methods, with what `replace` returns, with itself
under the P of sealed data, and with models that are trained by the same function. Each of them finds the
estimates that another has made.
"""

import contextlib
import functools
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from privatize import errors
from privatize.calibration import streams
from privatize.calibration.refuting import ProvenBound
from privatize.calibration.sensitivity import Sensitivity
from privatize.function import families
from privatize.function.advice import REACHABLE, UNSTEADY
from privatize.function.box import Box
from privatize.function.question import Definition, Question
from privatize.function.recognizing import mark_of, recognize, signature
from privatize.function.remembering import UNAVAILABLE, Writer, completed, seed_of, store_of
from privatize.function.settings import Settings
from privatize.function.signal import warn_uninformative
from privatize.function.template import Template
from privatize.identity.change_guard import ChangeGuard, guard
from privatize.identity.encoder import PrivateReachable
from privatize.identity.fingerprint import identity_of, token, warn_changed
from privatize.identity.leftovers import Snapshot
from privatize.identity.model_guard import model_guard
from privatize.identity.reachable import Private
from privatize.outputs.structure import Structure
from privatize.planning.plan import Plan
from privatize.storage.database import DatabaseError
from privatize.storage.estimates import Store, open_store, warn

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
        Tells whether everything that it depends on is unchanged.
    guard : ChangeGuard or None
        A quicker check of the same, for functions that can change only what the guard sees.
    """

    sensitivity: Sensitivity | ProvenBound
    key: str | None
    holds: Callable[[], bool]
    guard: ChangeGuard | None = None

    def snapshot(self, asked: Question) -> Snapshot | ChangeGuard:
        """Record what the function could change, before a private run."""
        if self.guard is not None:  # it has been compared when the estimate was recalled
            return self.guard
        return Snapshot(asked.call.function, asked.call.shared())


class Calibrator:
    """The estimates of one function: templates of P, guards, and a memory in front of the store."""

    def __init__(self) -> None:
        # By key, plan, floor and store: whoever names another store expects the estimate there, too.
        self.memory: dict[tuple[Identity, Plan | float, float | None, Any], Sensitivity | ProvenBound] = {}
        # By short names, which contain ids: the question keeps those objects alive. Without a guard
        # there is None: nothing is kept alive, and an object that gets the same id later has no guard either.
        self.guarded: dict[tuple[Any, ...], tuple[Question, Estimate] | tuple[None, None]] = {}
        self._met: dict[tuple[Any, ...], weakref.ref[Any]] = {}  # functions and objects, by short names
        # By ids of settings and samplers. The values refer to these objects, so that no id is used again.
        self._templates: dict[tuple[int, str | None], Template] = {}
        self._told: dict[tuple[int, int], Any] = {}
        self._widened: dict[tuple[int, int], tuple[Sensitivity, Any, Sensitivity]] = {}
        self._marks: dict[int, tuple[Sensitivity, str]] = {}
        self._constrained: dict[tuple[int, int], tuple[Structure, Any]] = {}
        self._under: dict[tuple[int, int], tuple[Settings, Any, Settings]] = {}

    def clear(self) -> None:
        """Forget the estimates in memory."""
        self.memory.clear()
        self.guarded.clear()

    def remembers(self, asked: Question) -> bool:
        """Tell whether the estimate for a question is in the store."""
        settings, plan = asked.settings, asked.settings.plan
        key = token(asked.facts(), asked.definition.name, version=settings.version)
        try:
            entry = store_of(settings).read(key or "")
            return entry.proven.get("given") == asked.bound if plan is None else entry.checked >= plan.m
        except (KeyError, ValueError, DatabaseError):  # there is no entry, or it cannot be read
            return False

    def forget(self, definition: Definition, asked: Question | None) -> int:
        """Forget the estimate for a question, or all of functions of this name; return how many."""
        settings, store = definition.settings, store_of(definition.settings)
        self.clear()
        try:
            if asked is not None:
                return store.forget(token(asked.facts(), definition.name, version=settings.version) or "")
            found = (entry for entry in store.entries() if entry["facts"].get("function") == definition.label)
            return sum(map(store.forget, [entry["key"] for entry in found]))
        except DatabaseError as error:
            warn(f"Nothing was forgotten in {store.url}, which cannot be written: {error}.")
            return 0

    def template(self, definition: Definition) -> Template:
        """Return the template of P, or refuse a function that has none."""
        settings = definition.settings
        if definition.proven is not None:
            raise errors.SettingsError(f"""{definition.name}() has no P, and needs none: it is private for all
                pairs of neighbours. To try it, make up data yourself.""")
        if settings.sampler is None:
            raise errors.SettingsError(f"""{definition.name}() has no P: pass sampler= to privatize(), or call
                it with sealed data that has one, seal(data, name=..., sampler=...).""")
        at = id(settings.sampler), settings.domain
        found = self._templates.get(at)
        return put(self._templates, at, Template(settings)) if found is None else found

    def under(self, definition: Definition, sampler: Any) -> Definition:
        """Return the definition with the P of sealed data."""
        settings = definition.settings
        at = id(settings), id(sampler)
        found = self._under.get(at)
        if found is None:
            found = put(self._under, at, (settings, sampler, replace(settings, sampler=sampler)))
        return replace(definition, settings=found[2])

    def recall(self, asked: Question, box: Box | None = None) -> Estimate:
        """Return the estimate for a question, or make it. It must not depend on the data in the box."""
        estimate, settings = self._fitted(asked, self._recalled(asked, box)), asked.settings
        at = id(estimate.sensitivity), id(settings)  # of objects that the values keep alive
        if at not in self._told:  # once for each promise
            put(self._told, at, (estimate.sensitivity, settings))
            warn_uninformative(asked.definition.name, settings, estimate.sensitivity)
        return estimate

    def recall_quietly(self, asked: Question) -> Estimate:
        """Return the estimate for a question that nobody asks as it is: how much noise it has is no news."""
        return self._fitted(asked, self._recalled(asked, None))

    def _fitted(self, asked: Question, estimate: Estimate) -> Estimate:
        """Return an estimate as a check of P has widened it, if there was one."""
        found, fit = estimate.sensitivity, asked.settings.fit
        if asked.settings.constraints is not None:
            self._check_constraints(asked, found.structure)
        if fit is None or not isinstance(found, Sensitivity):
            return estimate
        # By ids, of objects that the values keep alive. It is found as long as the function is unchanged.
        at = id(found), id(fit)
        known = self._widened.get(at)
        if known is None:
            name, identity = asked.definition.name, asked.identity()
            if identity not in fit.about:
                raise errors.SettingsError(f"""fit= is about {", ".join(fit.functions)} with another function,
                    P, mechanism or gamma than {name}() has. Check this one: check_fit({name}, people,
                    epsilon=...).""")
            for each, before in zip(fit.about, fit.signatures, strict=False):
                if each == identity:
                    recognize(asked, before, fit.main.size, "has checked it")
            known = put(self._widened, at, (found, fit, fit.widen(found)))
        key = f"{estimate.key}:{fit.factor:.6g}" if estimate.key else None
        return replace(estimate, sensitivity=known[2], key=key)

    def _check_constraints(self, asked: Question, structure: Structure) -> None:
        """Refuse constraints that do not fit the answers, before anything is spent."""
        constraints = asked.settings.constraints
        at = id(structure), id(constraints)  # of objects that the values keep alive
        if at not in self._constrained:
            constraints.check(structure, asked.definition.name)
            put(self._constrained, at, (structure, constraints))

    def _recalled(self, asked: Question, box: Box | None) -> Estimate:
        short = asked.short()
        _, known = self.guarded.get(short, (None, None)) if short else (None, None)
        if known is not None and known.holds():
            return known
        estimate, unchanged = self._made(asked, short, box)
        if unchanged:
            return estimate
        if box is None:
            warn_changed(asked.definition.name)
            return Estimate(estimate.sensitivity, None, lambda: False)
        # Once more: something may have been loaded on first use.
        estimate, unchanged = self._made(asked, short, box)
        if unchanged:
            return estimate
        # A private run would leave something behind, too. So the function is not run, and nothing is spent.
        places = asked.left_by_a_public_run(estimate.sensitivity.coin_seed)
        raise errors.PrivateRunError(asked.definition.advice.about(UNSTEADY, places))

    def _made(self, asked: Question, short: tuple[Any, ...] | None, box: Box | None) -> tuple[Estimate, bool]:
        """Return the estimate, remembered or new, and whether what it depends on is unchanged."""
        settings = asked.settings
        guardable = short is not None and self._met_again(short, asked.call.function)
        changes = _guard(asked) if guardable else None
        facts = asked.facts()
        identity, seen = _identified(asked, facts, changes, box)
        key = identity.key
        if key is None:
            return self._keyless(asked, facts)
        holds = functools.partial(_holds, facts, settings.version, identity)
        at = identity, settings.plan or asked.bound, settings.min_sensitivity, settings.store
        charged = self._charged(asked, key)
        known = self.memory.get(at)
        if known is not None:
            estimate = Estimate(known, charged, holds)
            if guardable and seen and (changes is None or changes.same()):
                if changes is not None:
                    estimate = Estimate(known, charged, changes.same, changes if changes.simple else None)
                put(self.guarded, short, (None, None) if changes is None else (asked, estimate))
            return estimate, True
        known, store = self._remembered(asked, key, identity.orders)
        unchanged = holds()
        if unchanged:
            put(self.memory, at, known)
            asked.warn_fragile(known)  # once in a process, as long as it is in memory
        elif store is not None:
            Writer(store)(store.forget, key)
        return Estimate(known, charged, holds), unchanged

    def _keyless(self, asked: Question, facts: Any) -> tuple[Estimate, bool]:
        # There is no key, but a digest to compare, in which what cannot be encoded counts by its type.
        version = asked.settings.version or ""
        holds = functools.partial(_holds, facts, version, _identity(facts, version=version))
        found = self._unremembered(asked)
        asked.warn_fragile(found)
        return Estimate(found, None, holds), holds()

    # The estimates of a catalogue are made all at once: its calibrators replace these three.

    def _unremembered(self, asked: Question) -> Sensitivity | ProvenBound:
        """Make an estimate that has no key."""
        seed = seed_of(asked.settings)
        if asked.settings.plan is None:
            return asked.attack(seed)
        if not families.is_family(asked):
            return asked.calibrate(seed, None)
        coins = streams.coin_seed(seed)
        each = families.members(asked, coins, families.pooled_shape(asked, coins, seed))
        # Every member has pairs of its own, unless the user has set their seed.
        return families.estimated(asked, each, lambda member: member.calibrate(seed_of(asked.settings), None))

    def _remembered(
        self, asked: Question, key: str, orders: frozenset[str]
    ) -> tuple[Sensitivity | ProvenBound, Store | None]:
        """Return the estimate that is remembered under a key, or make it; and the store that has it now."""
        store = store_of(asked.settings)
        try:
            return completed(store, asked, key, orders), store
        except DatabaseError as error:
            warn(UNAVAILABLE.format(store.url, error))
            store = open_store("memory")
            return completed(store, asked, key, orders), store

    def mark(self, asked: Question, found: Sensitivity | ProvenBound) -> str:
        """Return what tells an estimate from those of other functions with the same code and the same pairs.

        Only the user's own seed gives two processes the same pairs, if they do not share a store.
        """
        if asked.settings.seed is None or isinstance(found, ProvenBound):
            return ""
        known = self._marks.get(id(found))  # of an object that the value keeps alive
        return (known or put(self._marks, id(found), (found, mark_of(signature(asked)))))[1]

    def _charged(self, asked: Question, key: str) -> str:
        """Return the key that answers are charged under: gamma is charged once for each."""
        del asked
        return key

    def _met_again(self, short: tuple[Any, ...], function: Any) -> bool:
        """Tell whether a guard is worth its time: many objects are used just once."""
        if short in self.guarded:
            return self.guarded[short][1] is not None
        target = function.__self__ if type(function) is types.MethodType else function
        met = self._met.get(short)
        if met is not None and met() is target:
            return True
        with contextlib.suppress(TypeError):  # an object without weak references gets no guard
            put(self._met, short, weakref.ref(target))
        return False


def put(cache: dict[Any, Any], at: Any, value: Any) -> Any:
    """Hold a value in memory, and return it."""
    if len(cache) >= _MOST:
        cache.clear()
    cache[at] = value
    return value


# --- what an estimate depends on --------------------------------------------------------------


def refuse_reachable(name: str, value: Any, box: Box, *, copies: bool = True) -> None:
    """Refuse a value from which the private data can be reached, or copies of it."""
    try:
        identity_of(value, version="", private=Private(box.passed, copies=copies))
    except PrivateReachable as error:
        raise errors.DataError(REACHABLE.format(name, error)) from None


def _guard(asked: Question) -> ChangeGuard | None:
    """Return a guard over what the function of a question computes, if it can have one."""
    function, models = asked.call.function, asked.call.models()
    return model_guard(function, models) if models else guard(function, asked.template.libraries)


class Identity(NamedTuple):
    """What identifies everything that an estimate depends on.

    Attributes
    ----------
    key : str or None
        The fingerprint, which is the same in every process; None if there is none.
    orders : frozenset of str
        The orders of sets, where they may be others in another process.
    """

    key: str | None
    orders: frozenset[str]


def _identity(facts: list[Any], version: str | None) -> Identity:
    orders: set[str] = set()
    return Identity(identity_of(facts, version=version, orders=orders), frozenset(orders))


def _identified(
    asked: Question, facts: list[Any], changes: ChangeGuard | None, box: Box | None
) -> tuple[Identity, bool]:
    """Return what identifies an estimate, and whether the guard saw the same values."""
    # A frame of its own: frames that calibrate must hold neither the data nor all that a function can reach.
    read: dict[tuple[int, str], Any] | None = None if changes is None else {}
    # A promise for all pairs allows no error that depends on values, before anybody has paid.
    copies, name = asked.settings.plan is not None, asked.definition.name
    private = None if box is None else Private(box.passed, copies=copies)
    orders: set[str] = set()
    try:
        key = token(facts, name, version=asked.settings.version, private=private, read=read, orders=orders)
    except PrivateReachable as error:
        raise errors.DataError(REACHABLE.format(name, error)) from None
    return Identity(key, frozenset(orders)), changes is None or read is None or changes.saw(read)


def _holds(facts: list[Any], version: str | None, identity: Identity) -> bool:
    """Tell whether everything that an estimate depends on is unchanged."""
    return _identity(facts, version) == identity
