"""Calibrator: makes and recalls the estimates of one function, for all its methods and settings.

A private function shares its calibrator with its bound methods, with what `replace` returns, with itself
under the P of sealed data, and with models that are trained by the same function. Each of them finds the
estimates that another has made.
"""

import contextlib
import functools
import sys
import time
import types
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from privatize import errors
from privatize.calibration import streams
from privatize.calibration.refuting import ProvenBound
from privatize.calibration.sensitivity import Sensitivity
from privatize.function import families
from privatize.function.advice import REACHABLE, UNSTEADY
from privatize.function.box import Box
from privatize.function.question import Definition, Question
from privatize.function.settings import Settings
from privatize.function.signal import warn_uninformative
from privatize.function.template import Template
from privatize.identity.change_guard import ChangeGuard, guard
from privatize.identity.encoder import PrivateReachable
from privatize.identity.fingerprint import identity_of, token, warn_changed
from privatize.identity.leftovers import Snapshot
from privatize.identity.model_guard import model_guard
from privatize.identity.reachable import Private
from privatize.mechanisms.shapes import Shape
from privatize.outputs.structure import Structure
from privatize.planning.plan import Plan
from privatize.storage.database import DatabaseError
from privatize.storage.estimates import Entry, Store, open_store, warn
from privatize.storage.places import store_place

_MOST = 256  # estimates, templates and settings that are held in memory
_PROVEN = ("value", "given", "norm", "tried", "largest", "jitter")  # what is remembered of a proven bound
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
            name = asked.definition.name
            if asked.identity() not in fit.about:
                raise errors.SettingsError(f"""fit= is about {", ".join(fit.functions)} with another function,
                    P, mechanism or gamma than {name}() has. Check this one: check_fit({name}, people,
                    epsilon=...).""")
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
            _Writer(store)(store.forget, key)
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
        seed = _seed(asked.settings)
        if asked.settings.plan is None:
            return asked.attack(seed)
        if not families.is_family(asked):
            return asked.calibrate(seed, None)
        coins = streams.coin_seed(seed)
        each = families.members(asked, coins, families.pooled_shape(asked, coins, seed))
        # Every member has pairs of its own, unless the user has set their seed.
        return families.estimated(asked, each, lambda member: member.calibrate(_seed(asked.settings), None))

    def _remembered(
        self, asked: Question, key: str, orders: frozenset[str]
    ) -> tuple[Sensitivity | ProvenBound, Store | None]:
        """Return the estimate that is remembered under a key, or make it; and the store that has it now."""
        store = store_of(asked.settings)
        try:
            return _completed(store, asked, key, orders), store
        except DatabaseError as error:
            warn(_UNAVAILABLE.format(store.url, error))
            store = open_store("memory")
            return _completed(store, asked, key, orders), store

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
    """Return the store in which estimates are remembered."""
    return open_store(store_place(settings.store))


def _seed(settings: Settings) -> int:
    return streams.fresh_seed() if settings.seed is None else settings.seed


def _tried(store: Store, asked: Question, key: str) -> ProvenBound:
    """Return the user's bound if it was tried before, or try it; raise if it is refuted."""
    entry = _opened(store, asked, key)
    about, seed = entry.proven, entry.seed
    if about.get("given") == asked.bound and entry.structure is not None and entry.structure.complete:
        about = about | {"seed": seed, "coin_seed": streams.coin_seed(seed), "n": asked.n}
        return ProvenBound(structure=entry.structure, schema=asked.schema, **about)
    write = _Writer(store)
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
    return store.open(key, seed=_seed(settings), label=asked.definition.name, n=asked.n, facts=about)


def _completed_family(store: Store, asked: Question, key: str, orders: frozenset[str]) -> Sensitivity:
    """Read the estimate of every member from what is remembered, and evaluate what is missing."""
    entry, coins, write = _opened(store, asked, key), families.shared_coins(asked), _Writer(store)
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


def _completed(store: Store, asked: Question, key: str, orders: frozenset[str]) -> Sensitivity | ProvenBound:
    """Read the estimate from what is remembered, and evaluate what is missing."""
    if families.is_family(asked):
        return _completed_family(store, asked, key, orders)
    return _tried(store, asked, key) if asked.settings.plan is None else _measured(store, asked, key, orders)


def _measured(store: Store, asked: Question, key: str, orders: frozenset[str]) -> Sensitivity:
    """Read a sampled estimate for one P from what is remembered, and evaluate what is missing.

    If another process has measured it, one pair is measured again: the function may compute something else
    here, for example because the order of a set of strings is another one.
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
    write = _Writer(store)
    entry.save = functools.partial(write, store.save, key, entry.seed)
    entry.note = functools.partial(write, store.look, key)
    entry.agree = functools.partial(store.agree, key, entry.seed)
    start = time.perf_counter()
    try:
        found = asked.calibrate(entry.seed, entry)
    except errors.CalibrationError as error:
        # A failure is remembered, too: trying again must not be a way to a luckier estimate.
        shared = isinstance(error, errors.NotReproducibleError | errors.PairError)
        if not getattr(error, "remembered", False):  # else other processes are right to use it
            write(store.fail, key, entry.seed, "*" if shared else mine, error.plain().facts())
        raise
    store.note_measured(here, found.gaps)
    if entry.checked < plan.m:
        took = round(time.perf_counter() - start, 3)
        facts = {"checked": plan.m, "failed": found.failed, "seconds": took, "norm": found.norm}
        facts |= {"jitter": found.jitter} if found.jitter else {}
        facts |= {"cause": found.cause} if found.cause else {}
        facts |= {"spread": found.spread.to_json()} if found.spread else {}
        facts |= {"stress": found.stress.tried.to_json()} if found.stress else {}
        write(store.describe, key, entry.seed, **facts)
    return found
