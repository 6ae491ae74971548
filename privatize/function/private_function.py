"""privatize() and PrivateFunction: the only room that keeps hold of private data.

The rule that everything here follows: private arguments live in one `_Box`, which is emptied
before any error is raised. Errors are raised by frames that have let go of arguments and
values, without cause, context or traceback of anything that has seen private data.
"""

from __future__ import annotations

import contextlib
import contextvars
import copy
import functools
import inspect
import math
import operator
import os
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Generic, Literal, ParamSpec, TypeVar, cast

import numpy as np

from privatize import errors
from privatize.budgets.budget import Budget, distinct
from privatize.budgets.charges import Charge
from privatize.budgets.entered import current
from privatize.budgets.partition import Part
from privatize.budgets.sealed import carried, declared, hidden_in, is_sealed, opened, people
from privatize.calibration import capacity, streams
from privatize.calibration.evaluators.batched import Batch
from privatize.calibration.global_rng import level, rng_guard, unwind
from privatize.calibration.sensitivity import Memory, PairFunction, Sensitivity, estimate_sensitivity
from privatize.config.policy import Policy, configured, lenient, policy
from privatize.data import records
from privatize.data import support as domains
from privatize.errors import (
    ArgumentError,
    CalibrationError,
    DataError,
    NotReproducibleError,
    PairError,
    PlanError,
    PolicyError,
    PrivateRunError,
    PrivatizeError,
    PrivatizeWarning,
    SamplerError,
    SealedError,
    SettingsError,
)
from privatize.execution.packaging.pickler import by_value as packed_by_value
from privatize.function import silence
from privatize.function.binding import Binding, Call, label_of
from privatize.function.card import function_card
from privatize.function.recursion import Evaluation
from privatize.function.release import Release, error_of, least_epsilon
from privatize.function.settings import Settings
from privatize.identity.change_guard import ChangeGuard, guard
from privatize.identity.declared import declare
from privatize.identity.fingerprint import (
    PrivateReachable,
    fingerprint,
    identity_of,
    seek,
    token,
    warn_changed,
)
from privatize.identity.leftovers import GuardedNames, Snapshot
from privatize.identity.library import Wrapper
from privatize.identity.origin import origin
from privatize.identity.public_data import draws_public, is_private
from privatize.identity.reachable import Private
from privatize.mechanisms import Mechanism, as_mechanism
from privatize.mechanisms.base import complete
from privatize.mechanisms.weighted import weighted
from privatize.planning.plan import Bound, Plan
from privatize.samplers import draw
from privatize.samplers.base import traits_of
from privatize.samplers.tables import columns_of, values_of
from privatize.storage.estimates import Entry, Store, StoreUnavailable, default_url, open_store, warn

__all__ = ["PrivateFunction", "Release", "evaluating", "privatize"]

P = ParamSpec("P")
R = TypeVar("R")


class _Required:
    """Stands where an argument must be given."""

    def __repr__(self) -> str:
        return "<required>"


_REQUIRED: Any = _Required()


class _Box:
    """The one place that holds private arguments during a call."""

    # Filled and emptied by plain stores, not by methods: an interrupt cannot come in between.
    __slots__ = ("args", "data", "kwargs", "started", "value")
    args: Any
    kwargs: Any
    data: Any
    value: Any
    started: bool

    def __repr__(self) -> str:
        return "<private>"


@dataclass(frozen=True)
class _Asked:
    """Settings that cannot change, as one value for the fingerprint."""

    values: tuple[Any, ...]
    immutable: ClassVar[bool] = True


class _Quiet:
    """Writes to a store for as long as that works, and warns once when it no longer does."""

    def __init__(self, store: Store) -> None:
        self.store, self.works = store, True

    def __call__(self, act: Callable[..., object], *args: Any, **facts: Any) -> None:
        if self.works:
            try:
                act(*args, **facts)
            except StoreUnavailable as error:
                self.works = False
                warn(f"Estimates cannot be remembered in {self.store.url}, only in this process: {error}.")


_running: contextvars.ContextVar[tuple[Evaluation, ...]] = contextvars.ContextVar("running", default=())


def evaluating() -> bool:
    """Tell whether the caller is a private function that is being evaluated: its answer gets noise later."""
    return any(mark.active and mark.calls() for mark in _running.get())


@dataclass(frozen=True)
class _Marking:
    """Makes a context in which a private function's calls to itself run raw; also in other processes."""

    root: Any

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        # In another process the function may have come without what makes it private.
        private = isinstance(self.root, PrivateFunction)
        mark = self.root._evaluation() if private else Evaluation(self.root, self.root)
        before = _running.get()
        try:
            _running.set((*before, mark))
            yield
        finally:
            mark.active = False
            _running.set(before)


@dataclass(frozen=True)
class _Brought:
    """A function of data that P did not draw: it sees what private data would be made into."""

    function: Callable[[Any], Any]
    drawn: Any
    support: Any

    def __call__(self, data: Any) -> Any:
        with np.errstate(all="ignore"):
            brought = records.bring_into(data, self.drawn, self.support)
        return self.function(brought)


def _first(own: Any, common: Any) -> Any:
    return common if own is None else own


class PrivateFunction(Wrapper, Generic[P, R]):
    """A function of a dataset that gives random differentially private answers.

    Made by `privatize`. Calling it returns a private answer; the first call for a number
    of records calibrates, later ones recall. The raw function is ``__wrapped__``.

    Examples
    --------
    >>> from privatize import privatize, samplers
    >>> @privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100))
    ... def average_age(ages):
    ...     return ages.mean()
    >>> average_age
    <private average_age(ages): Laplace, epsilon=1, gamma=0.05, P=uniform(0, 100)>
    """

    __wrapped__: Callable[P, R]

    def __init__(self, function: Callable[P, R], settings: Settings, *, unfinished: bool = False) -> None:
        original: Any = function
        raw = original.__func__ if isinstance(original, classmethod) else original
        _refuse_private(raw)
        self._settings = settings
        # Shared with what __get__ makes: what was last recalled, so that the store is not asked again.
        self._memory: OrderedDict[tuple[Any, ...], Sensitivity] = OrderedDict()
        self._root: PrivateFunction[Any, Any] = self
        self._original = original
        self._schema: tuple[Any, Any, Any] | None = None  # a sampler, its state, and two records of its
        self._alike: tuple[Any, ...] | None = None  # such records, settings, a schema, and what `_like` found
        # Shared too: what was recalled for plain arguments, and a watch over the function.
        self._watched: dict[tuple[Any, ...], tuple[Settings, ChangeGuard | None, Any, Any]] = {}
        self._target: Any = None  # what it is bound to, as a method
        self._samplers: dict[int, Any] = {}  # the same function under the P of sealed data
        self._answers: dict[Any, Release] = {}  # what was released, for reuse=True
        # Name, documentation and module, but not attributes: they could be anything, ours included.
        functools.update_wrapper(cast("Any", self), raw, updated=())
        self.__wrapped__ = cast("Callable[P, R]", raw)
        self.__name__: str = label_of(raw)
        if not unfinished:
            _ = self._binding  # or refused

    @functools.cached_property
    def _binding(self) -> Binding:
        return Binding.of(self.__wrapped__, self._settings.data, self._settings.coins)

    # -- what a user reads --

    @property
    def settings(self) -> Settings:
        """What it was told, checked."""
        return self._settings

    @property
    def plan(self) -> Plan:
        """How many pairs are sampled, and which order statistic is taken."""
        return self._settings.plan

    def _repr_html_(self) -> str:
        names = ", ".join(self._binding.names)
        return function_card(f"{self.__name__}({names})", self._settings).html()

    def __repr__(self) -> str:
        s = self._settings
        delta = f", delta={s.delta:g}" if s.delta else ""
        names = ", ".join(self._binding.names)
        return (
            f"<private {self.__name__}({names}): {type(s.mechanism).__name__}, epsilon={s.epsilon:g}{delta}, "
            f"gamma={s.gamma:g}, P={'that of sealed data' if s.sampler is None else repr(s.sampler)}>"
        )

    # -- what a user calls --

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return a private answer for the dataset among the arguments."""
        box = _Box()
        try:
            box.args, box.kwargs = args, kwargs
        finally:
            del args, kwargs
        return cast("R", self._released(box, whole=False))

    def release(self, /, *args: P.args, **kwargs: P.kwargs) -> Release:
        """Return a private answer together with what was promised about it."""
        box = _Box()
        try:
            box.args, box.kwargs = args, kwargs
        finally:
            del args, kwargs
        return cast("Release", self._released(box, whole=True))

    def estimate(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calibrate ahead of time, or recall: the sensitivity for n records. Needs no private data.

        ``estimate(n, ...)`` takes the number of records first, or as ``n=``; a list of them gives a list
        of estimates. The function's other arguments, those that are not the dataset, follow. ``like=`` is a
        dataset without records whose container, column names and dtypes are the private data's, where P
        draws something that is made into it (an array for a data frame, say).
        """
        given = [args, kwargs]
        del args, kwargs  # they may be the data, by a slip, which no frame of an error may hold
        return self._estimates("estimate", given)

    def _estimates(self, name: str, given: list[Any]) -> Any:
        """Return the estimates for what a method of this name was given."""
        args, kwargs = given
        given.clear()
        like = kwargs.pop("like", None)
        sampler: Any = self._settings.sampler
        if args:
            n, *args = args
        elif "n" in kwargs:
            n = kwargs.pop("n")
        elif traits_of(sampler).size is not None:
            n = traits_of(sampler).size
        else:
            raise ArgumentError(f"{self.__name__}.{name}(n, ...) needs the number of records n.")
        wrong = miscounted(name, n) or _not_empty(like)
        if wrong is not None:
            del n, args, kwargs, like  # it may be the data
            raise wrong
        call = self._binding.bind_public(tuple(args), kwargs)
        schema = None if like is None else self._like(self._drawn(), records.describe(like))
        found = [
            self._sensitivity(self._used(operator.index(each)), call, schema)
            for each in (n if isinstance(n, list | tuple) else [n])
        ]
        return found if isinstance(n, list | tuple) else found[0]

    def error_at(
        self, /, *args: Any, epsilon: float | None = None, confidence: float = 0.95, **kwargs: Any
    ) -> Any:
        """Return how far an answer is from the raw one at most, with a given probability.

        ``error_at(n, ...)`` takes what `estimate` takes, and calibrates if that has not been done.
        Needs no private data.

        Parameters
        ----------
        *args, **kwargs
            The number of records n, and the function's other arguments.
        epsilon : float, optional
            The privacy loss; the function's own by default.
        confidence : float
            The probability, for each number of the answer by itself.

        Returns
        -------
        float or array
            The half-width of the interval around each number; one number if it is the same for all. For
            the exponential mechanism, by how much the chosen response's score is below the best one at
            most; for the Bernstein mechanism, that of the values on the lattice.

        Examples
        --------
        >>> from privatize import privatize, samplers
        >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 100), seed=1)(np.mean)
        >>> round(mean.error_at(1000), 3)  # within ± this, with 95% probability
        0.231
        >>> round(mean.error_at(1000, epsilon=0.1), 2)
        2.31
        """
        given = [args, kwargs]
        del args, kwargs
        found = self._estimates("error_at", given)
        chosen = self._settings.epsilon if epsilon is None else epsilon
        several = [error_of(self._at(chosen), each, confidence) for each in _each(found)]
        return several if isinstance(found, list) else several[0]

    def epsilon_for(self, /, *args: Any, error: float, confidence: float = 0.95, **kwargs: Any) -> Any:
        """Return the least epsilon at which an answer is that close to the raw one, with a probability.

        ``epsilon_for(n, ..., error=2)`` takes what `estimate` takes, and calibrates if that has not
        been done. Needs no private data.

        Parameters
        ----------
        *args, **kwargs
            The number of records n, and the function's other arguments.
        error : float
            The largest distance of any number of the answer from the raw one.
        confidence : float
            The probability, for each number of the answer by itself.

        Returns
        -------
        float

        Examples
        --------
        >>> from privatize import privatize, samplers
        >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 100), seed=1)(np.mean)
        >>> round(mean.epsilon_for(1000, error=2), 3)
        0.115
        """
        given = [args, kwargs]
        del args, kwargs
        found = self._estimates("epsilon_for", given)
        several = [
            least_epsilon(lambda epsilon, at=each: error_of(self._at(epsilon), at, confidence), error)  # type: ignore[misc]
            for each in _each(found)
        ]
        return several if isinstance(found, list) else several[0]

    def _at(self, epsilon: float) -> Settings:
        """Return the settings with another epsilon, checked."""
        return replace(self._settings, epsilon=epsilon)

    def _used(self, n: int) -> int:
        """Return how many of n records are used."""
        positions = self._positions(n)
        return n if positions is None else len(positions)

    def remembers(self, /, n: int, *args: Any, **kwargs: Any) -> bool:
        """Tell whether the estimate for n records is remembered, and fresh: calling would not calibrate.

        Takes what `estimate` takes. Nothing is evaluated.
        """
        like = kwargs.pop("like", None)
        wrong = miscounted("remembers", n, several=False) or _not_empty(like)
        if wrong is not None:
            del n, args, kwargs, like
            raise wrong
        if self._settings.sampler is None:
            self._under(None)  # which refuses
        call = self._binding.bind_public(args, kwargs)
        schema = None if like is None else self._like(self._drawn(), records.describe(like))
        facts = self._facts(self._used(operator.index(n)), call, schema)
        key = token(facts, self.__name__, version=self._settings.version)
        try:
            return any(
                entry["key"] == key and int(entry["facts"].get("checked", 0)) >= self._settings.plan.m
                for entry in self._store().entries()
            )
        except StoreUnavailable:
            return False

    def forget(self, /, *args: Any, **kwargs: Any) -> int:
        """Forget estimates, so that the next call calibrates anew. Returns how many there were.

        ``forget(n, ...)`` takes what `estimate` takes. Without arguments, everything that is
        remembered for functions of this name goes.
        """
        store = self._store()
        self._memory.clear()
        self._watched.clear()
        if not args and not kwargs:
            label = self._label()
            try:
                entries = store.entries()
            except StoreUnavailable:
                entries = []
            keys = [entry["key"] for entry in entries if entry["facts"].get("function") == label]
        elif not args and "n" not in kwargs:
            raise ArgumentError(f"{self.__name__}.forget(n, ...) needs the number of records n.")
        else:
            like = kwargs.pop("like", None)
            n, *rest = args if args else (kwargs.pop("n"),)
            wrong = miscounted("forget", n, several=False) or _not_empty(like)
            if wrong is not None:
                del n, args, kwargs, rest, like
                raise wrong
            call = self._binding.bind_public(tuple(rest), kwargs)
            schema = None if like is None else self._like(self._drawn(), records.describe(like))
            facts = self._facts(self._used(operator.index(n)), call, schema)
            keys = [token(facts, self.__name__, version=self._settings.version) or ""]
        try:
            return sum(map(store.forget, keys))
        except StoreUnavailable as error:
            warn(f"Nothing was forgotten in {store.url}, which cannot be written: {error}.")
            return 0

    def sample(self, n: int, *, seed: int | None = None) -> Any:
        """Draw a public dataset of n records from P, such as calibration runs on.

        Use it to reproduce a failure on private data with data that may be looked at.
        """
        wrong = miscounted("sample", n, several=False)
        if wrong is not None:
            del n
            raise wrong
        count, chosen = operator.index(n), streams.check_seed(seed)
        rng = streams.stream(streams.fresh_seed() if chosen is None else chosen, streams.PILOT)
        if self._settings.sampler is None:
            self._under(None)  # which refuses
        size = capacity.footprint(self._settings.sampler, count, streams.stream(0, streams.PILOT))
        capacity.check("sample() draws", count, size, 2)
        return draw(self._settings.sampler, count, rng)

    def replace(self, **changes: Any) -> PrivateFunction[P, R]:
        """Return the same function with other settings.

        Examples
        --------
        >>> from privatize import privatize, samplers
        >>> mean = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1))(np.mean)
        >>> mean.replace(epsilon=0.1)
        <private mean(a): Laplace, epsilon=0.1, gamma=0.05, P=uniform(0, 1)>
        """
        known = {f.name for f in fields(Settings) if f.init}
        if unknown := sorted(set(changes) - known):
            raise SettingsError(
                f"{unknown[0]!r} is not a setting. The settings are {', '.join(sorted(known))}."
            )
        if "sampler" in changes and "domain" not in changes:
            changes["domain"] = None
        chosen = replace(self._settings, **changes)
        _obey(self.__name__, chosen, policy())
        other: PrivateFunction[P, R] = PrivateFunction(self._original, chosen)
        other._root = self._root  # a function that calls itself calls this one
        return other

    def _identity(self) -> Any:
        own = (
            "_binding",
            "_asked",
            "_fixed",
            "_libraries",
            "_draws_public",
            "_settings",
            "_memory",
            "_root",
            "_original",
            "_target",
            "_schema",
            "_alike",
            "_watched",
            "_samplers",
            "_answers",
            "__wrapped__",
        )
        return self.__wrapped__, self._settings, {k: v for k, v in vars(self).items() if k not in own}

    def _runs(self) -> list[Any]:
        return [self.__wrapped__, self._settings.pair, self._settings.batch, *self._attributes().values()]

    def _attributes(self) -> dict[str, Any]:
        return dict(self._identity()[2])

    # -- methods, pickling --

    def __get__(self, instance: Any, owner: type | None = None) -> PrivateFunction[..., R]:
        """Bind like a function: a method's instance is one more public argument."""
        if isinstance(self._original, classmethod):
            target = owner if owner is not None else type(instance)
        elif isinstance(self._original, staticmethod) or instance is None:
            return self
        else:
            target = instance
        getter = getattr(type(self.__wrapped__), "__get__", None)
        if getter is None:
            return self
        bound: PrivateFunction[..., R] = PrivateFunction(
            getter(self.__wrapped__, target, type(target)), self._settings
        )
        bound._memory, bound._root, bound._target = self._memory, self._root, target
        return bound

    def __copy__(self) -> PrivateFunction[P, R]:
        return self  # as functions do: its calls to itself go to this one

    def __deepcopy__(self, memo: dict[int, Any]) -> PrivateFunction[P, R]:
        return self

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._target is not None:
            return getattr, (self._target, self.__name__)
        module, name = self.__module__, getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        # cloudpickle ships __main__ by value, since workers have another one.
        caller = sys._getframe(1).f_globals.get("__name__", "")
        by_value = module == "__main__" and caller.startswith("cloudpickle")
        if found is self and not by_value and not packed_by_value(module):
            return str(name)
        attributes = self._identity()[2]
        root = None if self._root is self else self._root
        state = {"_original": self._original, "_settings": self._settings, "_root": root}
        return _blank, (), state | {"attributes": attributes}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # If it calls itself, the function is being made at this moment, and has no defaults yet.
        PrivateFunction.__init__(self, state["_original"], state["_settings"], unfinished=True)
        self._root = state["_root"] or self
        vars(self).update(state["attributes"])

    # -- the one way through the rooms --

    def _released(self, box: _Box, *, whole: bool) -> Any:
        """Return a release or its value, or raise from a frame that holds nothing private."""
        try:
            inside = [mark for mark in _running.get() if mark.active]
            own = [mark for mark in inside if mark.root is self._root]
            if not whole and any(mark.calls(self.__wrapped__) for mark in own):
                return self.__wrapped__(*box.args, **box.kwargs)  # it calls itself: its noise comes later
            outcome, failure = (None, self._nested(inside[-1].root)) if inside else self._attempt(box, whole)
        finally:  # also if an interrupt comes before or after what follows could see to it
            box.args = box.kwargs = box.data = box.value = None
        if failure is not None:
            raise failure
        return outcome

    def _evaluation(self) -> Evaluation:
        """Return what marks an evaluation of this function."""
        return Evaluation(self._root, self.__wrapped__, self._settings.pair, self._settings.batch)

    def _nested(self, outer: Any) -> SettingsError:
        """Return the error for a private function that is called while one is being evaluated."""
        name = self.__name__
        if outer is self._root:
            return SettingsError(
                f"{name}() was called while it was being evaluated, by something that its own code does not "
                f"name, such as a signal handler, a callback or a finalizer. That caller would get an answer "
                f"without noise. Call {name}() afterwards; if this is how it calls itself, call "
                f"{name}.__wrapped__(...) there."
            )
        return SettingsError(
            f"{name}() is private, and is called inside {outer.__name__}(), which is private too: noise "
            f"would be added twice, and calibrated to noise. Call {name}.__wrapped__(...) there, or ask both "
            f"separately."
        )

    def _attempt(self, box: _Box, whole: bool) -> tuple[Any, BaseException | None]:
        """Return a release or its value, and the error to raise. Never raises; always empties the box."""
        box.data = box.value = None
        box.started = False
        failure: BaseException
        try:
            return self._run(box, whole), None
        except BaseException as error:  # all of them leave through the same door
            failure = error
        finally:
            started = box.started
            box.args = box.kwargs = box.data = box.value = None
        bare = _bare(failure, self._advice(_INTERNAL), started)
        del failure  # its traceback leads to this frame
        return None, bare

    def _run(self, box: _Box, whole: bool) -> Any:
        settings, rules = self._settings, policy()
        _obey(self.__name__, settings, rules)
        box.data, call = self._binding.bind(box.args, box.kwargs)
        box.args = box.kwargs = None
        about, sampler, budgets = self._unsealed(box, call, rules)
        if settings.sampler is None:
            return self._under(sampler)._release(box, call, about, budgets, whole)
        return self._release(box, call, about, budgets, whole)

    def _unsealed(
        self, box: _Box, call: Call, rules: Policy
    ) -> tuple[tuple[str, tuple[str, ...]], Any, list[Any]]:
        """Open sealed data in the box; return its declared name, its sampler, and all budgets that apply."""
        if call.plain() is None and hidden_in(call.others()):
            raise SealedError(
                f"{self.__name__}() was given sealed data as an argument that is not its dataset. Only the "
                f"dataset is opened: pass it as {', '.join(self._binding.names)}."
            )
        parts = box.data if self._binding.aligned else (box.data,)
        sealed = [is_sealed(part) for part in parts]
        if any(sealed) and not all(sealed):
            raise SealedError(f"Only some of {', '.join(self._binding.names)} are sealed. Seal all or none.")
        if rules.require_sealed and not all(sealed):
            raise PolicyError(
                f"{self.__name__}() was called with data that is not sealed, and the policy has "
                f"require-sealed. Seal it: seal(data, name=...)."
            )
        budgets = [self._settings.budget, *current()]
        name, sampler = "", None
        who: tuple[str, ...] = ()
        if all(sealed):
            name = " and ".join(dict.fromkeys(map(declared, parts)))
            who = tuple(dict.fromkeys(map(people, parts)))
            carry = [carried(part) for part in parts]
            budgets += [budget for _, budget in carry]
            known = [found for found, _ in carry if found is not None]
            sampler = known[0] if known else None
            if self._settings.sampler is None and any(other != sampler for other in known):
                raise SettingsError(
                    f"The parts of the dataset are sealed with different P: {known!r}. Pass one for all of "
                    f"them together, privatize(sampler=...)."
                )
            box.data = tuple(map(opened, parts)) if self._binding.aligned else opened(box.data)
        del parts
        unique = distinct(budgets)
        if rules.require_budget and not unique:
            raise PolicyError(
                f"{self.__name__}() has no budget, and the policy has require-budget. Pass "
                f"budget=Budget(...), call it in `with budget:`, or seal the data with one."
            )
        return (name, who), sampler, unique

    def _under(self, sampler: Any) -> PrivateFunction[P, R]:
        """Return the same function under the P of sealed data."""
        if sampler is None:
            raise SettingsError(
                f"{self.__name__}() has no P: pass sampler= to privatize(), or call it with sealed data that "
                f"has one, seal(data, name=..., sampler=...)."
            )
        # Of this very function: another one's settings, or instance, are another's.
        known = self._samplers.get(id(sampler))
        if known is None or known[0] is not sampler:
            made = self.replace(sampler=sampler, domain=self._settings.domain)
            made._memory, made._watched, made._target = self._memory, self._watched, self._target
            known = self._samplers[id(sampler)] = (sampler, made)
        found: PrivateFunction[P, R] = known[1]
        return found

    def _release(
        self, box: _Box, call: Call, about: tuple[str, tuple[str, ...]], budgets: list[Any], whole: bool
    ) -> Any:
        dataset = about[0]
        settings, mechanism = self._settings, self._settings.mechanism
        n = records.count(box.data)
        if n == 0:
            raise DataError("The dataset is empty: there is nobody to answer about, and nothing to answer.")
        if not self._fixed:  # P may be made of the data, and say so in an error
            self._apart(settings.sampler, box)
        drawn = self._drawn()
        like = None if records.just_like(box.data, drawn) else self._like(drawn, records.describe(box.data))
        if self._draws_public and is_private(settings.sampler, box.data):
            raise DataError(_BOOTSTRAPPED)
        positions = self._positions(n)
        n = n if positions is None else len(positions)
        if budgets and not settings.reuse:  # before the work of calibrating: there may be nothing left
            self._spend("afford", budgets, about, drawn, "", n, 0.0 if dataset else settings.gamma)
        sensitivity, key, unchanged = self._recalled(n, call, like, box)
        again = self._answered(dataset, key, sensitivity)
        if again is not None and again in self._root._answers:
            given = copy.deepcopy(self._root._answers[again])
            return given if whole else given.value
        function = self._function(call, sensitivity.coin_seed)
        support = settings.support if settings.domain == "clip" else None
        box.value = domains.bring_usual(box.data, drawn, support) if positions is None else None
        if box.value is not None:
            box.data, box.value = box.value, None
        else:
            with np.errstate(all="ignore"), silence.quiet():  # a warning would tell of a private number
                if positions is not None:
                    box.data = records.take(box.data, positions)
                box.data = records.bring_into(box.data, drawn, support)
        if budgets:  # data that does not fit has cost nothing; from here on it is spent, whatever happens
            which = f"{key}:{sensitivity.seed}" if key else ""
            looks = sensitivity.certified()
            average = sensitivity.average_gamma
            if len(budgets) > 1:
                self._spend("afford", budgets, about, drawn, which, n, sensitivity.gamma, looks, average)
            self._spend("reserve", budgets, about, drawn, which, n, sensitivity.gamma, looks, average)
        before = self._before(n, call, like)
        box.started = True  # from here on nothing but fixed texts leaves, and names that the code has
        left: list[str] = []
        try:
            returned = self._evaluate(box, function, sensitivity)
        finally:
            left = before.put_back()
        if not returned:
            raise PrivateRunError(self._advice(_FAILED))
        if left:
            raise PrivateRunError(_LEFT.format(self.__name__, " and ".join(left[:5])))
        if not unchanged():  # the noise is for what it was
            raise PrivateRunError(self._advice(_CHANGED))
        if box.value is None:
            raise PrivateRunError(self._advice(_UNFIT))
        used = weighted(mechanism, sensitivity.weights)
        ours = type(mechanism).__module__.startswith("privatize.")
        with contextlib.nullcontext() if ours else silence.quiet():  # the user's own may warn of what it gets
            noised = used.release(
                box.value,
                sensitivity=sensitivity.value,
                epsilon=settings.epsilon,
                delta=settings.delta,
                whole=sensitivity.whole,
            )
        box.data = box.value = None
        wrap = complete(mechanism).wrap
        value = wrap(noised) if wrap else sensitivity.structure.rebuild(noised)
        if again is None and not whole:
            return value
        made = Release(
            value=value,
            epsilon=settings.epsilon,
            delta=settings.delta,
            gamma=sensitivity.gamma,
            average_gamma=sensitivity.average_gamma,
            sensitivity=sensitivity.value,
            scale=used.scale(sensitivity.value, settings.epsilon, settings.delta),
            mechanism=type(mechanism).__name__,
            noise=complete(mechanism).noise,
            n=n,
            m=sensitivity.m,
            k=sensitivity.k,
            bound=sensitivity.bound,
        )
        if again is not None:
            self._root._answers[again] = copy.deepcopy(made)
        return made if whole else value

    def _before(self, n: int, call: Call, like: Any) -> Snapshot | GuardedNames:
        """Return a snapshot of everything that the function could change, taken before the run."""
        short = self._short(n, call, like)
        found = None if short is None else self._watched.get(short)
        watched = None if found is None else found[1]
        if watched is not None and watched.simple and watched.same():
            return GuardedNames(watched)
        return Snapshot(self.__wrapped__, call.shared())

    def _spend(
        self,
        act: str,
        budgets: list[Any],
        about: tuple[str, tuple[str, ...]],
        drawn: Any,
        key: str,
        n: int,
        gamma: float,
        looks: tuple[tuple[float, float], ...] = (),
        average: float | None = None,
    ) -> None:
        """Ask every budget whether it can afford a release, or reserve it."""
        s = self._settings
        law = declare(s.sampler)
        charge = Charge(
            function=self.__name__,
            key=key,
            dataset=about[0],
            people=about[1],
            n=n,
            mechanism=type(s.mechanism).__name__,
            kind=complete(s.mechanism).composition_kind(s.epsilon, s.delta),
            epsilon=s.epsilon,
            delta=s.delta,
            gamma=gamma,
            average_gamma=None if average is None else min(average, gamma),
            looks=looks,
            declared=(law.digest,),
            described=law.description,
            lossless=law.lossless,
            columns=columns_of(s.sampler, drawn),
            values=values_of(s.sampler),
        )
        for budget in budgets:
            getattr(budget, act)(charge)

    def _answered(self, dataset: str, key: str | None, sensitivity: Sensitivity) -> Any:
        """Return what names the very same release, if it may be given again."""
        s = self._settings
        if not s.reuse or not dataset or key is None:
            return None
        return (
            dataset,
            key,
            sensitivity.seed,
            s.plan,
            s.epsilon,
            s.delta,
            repr(s.mechanism),
            s.min_sensitivity,
        )

    def _evaluate(self, box: _Box, function: Any, sensitivity: Sensitivity) -> bool:
        """Run the raw function once on the private data; tell whether it returned.

        What it returned is in the box: the flat vector, or None if that cannot be released.
        """
        hush = silence.quiet()
        try:  # plainly: an interrupt could come between entering and what a `with` would protect
            hush.__enter__()
            return self._evaluate_quietly(box, function, sensitivity, hush)
        finally:
            hush.__exit__()

    def _evaluate_quietly(self, box: _Box, function: Any, sensitivity: Sensitivity, hush: Any) -> bool:
        interrupted, opened = False, level()
        mark, before = self._evaluation(), _running.get()
        try:
            _running.set((*before, mark))
            with rng_guard(sensitivity.coin_seed) as rng, hush.everywhere():
                rng.reseed()
                # In a context of its own: what it sets in context variables ends with it.
                box.value = contextvars.copy_context().run(function, box.data)
        except KeyboardInterrupt:
            interrupted = True
        except BaseException:  # sys.exit(data) would leak as well
            return False
        finally:
            mark.active = False  # first, and a plain store: nothing can come in between
            _running.set(before)
            unwind(opened)
        if interrupted:
            raise KeyboardInterrupt
        try:
            flat = sensitivity.structure.flatten(box.value)
            finite = math.isfinite(flat[0]) if len(flat) == 1 else np.isfinite(flat).all()
            box.value = flat if finite else None
        except KeyboardInterrupt:
            interrupted = True
        except BaseException:  # an output's own methods are user code as well
            box.value = None
        if interrupted:
            raise KeyboardInterrupt
        return True

    def _function(self, call: Call, s0: int) -> Callable[[Any], Any]:
        """Return the function of the dataset alone that is calibrated and released."""
        evaluate = complete(self._settings.mechanism).evaluate
        if evaluate is not None:
            return functools.partial(evaluate(call, call.open is not None), s0=s0)
        if call.open is not None:
            raise ArgumentError(f"{self.__name__}{self._binding.signature} was called without {call.open!r}.")
        return call.function if call.bare() else functools.partial(call, s0=s0)

    def _drawn(self) -> Any:
        """Return two records that the sampler draws: container, names, dtypes, shapes."""
        sampler, domain = self._settings.sampler, self._settings.domain
        if sampler is None:
            self._under(None)  # which refuses
        # What is made of functions may draw something else later.
        known = "settled" if self._fixed or traits_of(sampler).stable else identity_of(sampler)
        key = None if known is None else (domain, known)  # without one, every doubt is a new look
        cached = self._root._schema
        if key is not None and cached is not None and cached[0] is sampler and cached[1] == key:
            return cached[2]
        many = draw(sampler, _TEMPLATE, streams.stream(0, streams.PILOT))
        few = draw(sampler, 2, streams.stream(0, streams.PILOT, 1))
        # Of a list all: the first two may have nothing but missing values.
        drawn = many if type(many) is list else records.head(many, 2)
        if not records.alike(drawn, few) or _code(drawn) != _code(few):
            raise SamplerError(
                f"{sampler!r} draws records of different kinds: once {_code(drawn)}, once {_code(few)}. "
                f"Have it draw the same container, columns, dtypes and categories each time, whatever the "
                f"values."
            )
        if domain == "clip":
            support = self._settings.support
            problem = records.fits(drawn, support)
            if problem is not None:
                raise SettingsError(
                    f"domain='clip' brings private records into P's support, which {sampler!r} does not "
                    f"allow: {problem}. Or use domain='as-is', and clip inside the function."
                )
            with np.errstate(all="ignore"):
                brought = records.bring_into(many, drawn, support)
            if not records.equal(brought, many):
                raise SamplerError(
                    f"{sampler!r} draws records outside its own support {support!r}, so private data would "
                    f"be brought into something else than what is calibrated. Widen the support, or clip "
                    f"what is drawn."
                )
        self._root._schema = (sampler, key, drawn)
        return drawn

    def _like(self, drawn: Any, schema: Any) -> Any:
        """Return the schema that drawn records are brought into to be like the private data, or None."""
        known = self._root._alike
        if known is not None and known[0] is drawn and known[1] is self._settings and known[2] == schema:
            return known[3]
        support = self._settings.support if self._settings.domain == "clip" else None
        adopted = records.liken(drawn, schema, support)
        made = None if adopted is drawn else records.describe(adopted)
        like = None if made is None or made == records.describe(drawn) else made
        self._root._alike = (drawn, self._settings, schema, like)
        return like

    def _positions(self, n: int) -> Any:
        """Return which records are used, if P is made for a fixed number of them, or None."""
        sampler: Any = self._settings.sampler
        return None if traits_of(sampler).size is None else sampler.positions(n)

    def _sensitivity(self, n: int, call: Call, like: Any) -> Sensitivity:
        """Recall the estimate for n records and these other arguments, or make it."""
        return self._recalled(n, call, like, None)[0]

    def _recalled(
        self, n: int, call: Call, like: Any, box: _Box | None, last: bool = False
    ) -> tuple[Sensitivity, str | None, Callable[[], bool]]:
        """Return the estimate, its key in the store, if any, and a function that tells if it still holds."""
        settings = self._settings
        if settings.sampler is None:
            self._under(None)  # which refuses
        short = self._short(n, call, like)
        found = None if short is None else self._watched.get(short)
        if found is not None and found[1] is not None and found[1].same():
            return found[2], found[3], found[1].same
        watchable = short is not None and (found is None or found[1] is not None)
        watched = guard(self.__wrapped__, self._libraries) if watchable else None
        facts = self._facts(n, call, like)
        read: dict[tuple[int, str], Any] | None = None if watched is None else {}
        private = None if box is None else Private(box.data)
        try:
            key = token(facts, self.__name__, version=settings.version, private=private, read=read)
            sure = watched is None or read is None or watched.saw(read)  # the key is of what is watched
        except PrivateReachable as error:
            raise DataError(_REACHABLE.format(self.__name__, error)) from None
        finally:
            del private  # the frames of an error must not hold it
            if read is not None:
                read.clear()  # it may hold anything that the function can reach
        recall = (key, settings.plan, settings.min_sensitivity)
        known = None if key is None else self._memory.get(recall)
        if key is not None and known is not None:
            if short is not None and sure and (watched is None or watched.same()):
                if len(self._watched) >= _RECALLED:
                    self._watched.clear()
                self._watched[short] = (settings, watched, known, key)  # with the settings, whose id is in it
                if watched is not None:
                    return known, key, watched.same
            return known, key, functools.partial(self._holds, facts, key, key)
        # What cannot be encoded counts by its type here: it has no key, but the rest can be compared.
        digest = self._digest(facts) if key is None else key
        if key is None:
            seed = streams.fresh_seed() if settings.seed is None else settings.seed
            known = self._calibrate(n, call, like, seed, None)
        else:
            store = self._store()
            try:
                known = self._remembered(store, self._open(store, key, n), n, call, like)
            except StoreUnavailable as error:
                warn(f"Estimates cannot be remembered in {store.url}, only in this process: {error}.")
                store = open_store("memory")
                known = self._remembered(store, self._open(store, key, n), n, call, like)
        holds = functools.partial(self._holds, facts, key, digest)
        if holds():
            if key is not None:
                self._memory[recall] = known
                while len(self._memory) > _RECALLED:
                    self._memory.popitem(last=False)
            return known, key, holds
        if key is not None:
            _Quiet(store)(store.forget, key)
        if box is None:
            warn_changed(self.__name__)
            return known, None, lambda: False
        if not last:  # something may have been loaded when it was first used
            return self._recalled(n, call, like, box, last=True)
        # It would leave something of its private run behind as well: so it is not run, and nothing is spent.
        places = self._left_by_a_public_run(n, call, like, known.coin_seed)
        raise PrivateRunError(_UNSTEADY.format(self.__name__, " and ".join(places[:5])))

    def _digest(self, facts: list[Any]) -> str:
        try:
            return fingerprint(facts, version=self._settings.version or "")
        except Exception:  # whatever somebody's class does when it is looked at
            return ""

    def _holds(self, facts: list[Any], key: str | None, digest: str) -> bool:
        """Tell whether what an estimate depends on is still what it was."""
        if key is None:
            return self._digest(facts) == digest
        try:
            return fingerprint(facts, version=self._settings.version) == digest
        except Exception:  # it cannot be encoded any more
            return False

    def _left_by_a_public_run(self, n: int, call: Call, like: Any, s0: int) -> list[str]:
        """Evaluate the function on public data; put back what it left behind, and return the places."""
        before = Snapshot(self.__wrapped__, call.shared())
        with contextlib.suppress(Exception):
            drawn = draw(self._settings.sampler, n, streams.stream(s0, streams.PILOT, 2))
            data = drawn if like is None else records.adopt(drawn, like)
            with rng_guard(s0) as rng:
                rng.reseed()
                self._marked(functools.partial(self._function(call, s0), data))
        return before.put_back() or ["something that it refers to"]

    def _apart(self, value: Any, box: _Box) -> None:
        """Refuse what the private data can be reached from."""
        try:
            seek(value, Private(box.data))
        except PrivateReachable as error:
            raise DataError(_REACHABLE.format(self.__name__, error)) from None

    def _short(self, n: int, call: Call, like: Any) -> tuple[Any, ...] | None:
        """Return what names an estimate as long as the function is the same; None if there is more to it."""
        plain = call.plain()
        settled = like is None and plain is not None and type(self._asked) is _Asked
        return (n, id(self._settings), plain) if settled else None

    def _label(self) -> str:
        return f"{self.__module__}.{getattr(self, '__qualname__', self.__name__)}"

    def _facts(self, n: int, call: Call, like: Any) -> list[Any]:
        """Return everything that the gaps depend on: the estimate's key."""
        made = like and like.to_json()
        return [n, self.__wrapped__, call.others(), made, self._asked, self._versions(like), np.geterr()]

    def _versions(self, like: Any) -> list[str | None]:
        """Return the versions of the libraries whose objects, and so whose methods, the function gets."""
        names = self._libraries if like is None else self._libraries | like.libraries
        return [origin(name) for name in sorted(names)]

    @functools.cached_property
    def _libraries(self) -> frozenset[str]:
        """The packages that what P draws is from."""
        try:
            return records.describe(self._drawn()).libraries
        except Exception:  # calibration says what is wrong with P
            return frozenset({"numpy"})

    @functools.cached_property
    def _asked(self) -> Any:
        """What the gaps depend on of the settings; encoded once if none of it can change."""
        s = self._settings
        asked = [streams.SCHEME, s.mechanism, s.sampler, s.pair, s.batch, s.coins, s.domain, s.seed]
        asked.append(s.timeout)
        never = _never_changes(s.mechanism) and _never_changes(s.sampler)
        return _Asked(tuple(asked)) if never and s.pair is None and not callable(s.batch) else asked

    @functools.cached_property
    def _fixed(self) -> bool:
        """Whether P is one of ours, which never change, and made of no function of the user's."""
        sampler = self._settings.sampler
        return traits_of(sampler).immutable and traits_of(sampler).stable

    @functools.cached_property
    def _draws_public(self) -> bool:
        """Whether P may draw from public records, which must not be the private ones."""
        return not self._fixed or draws_public(self._settings.sampler)

    def _store(self) -> Store:
        """Return where estimates are remembered."""
        chosen = self._settings.store
        if chosen == "default":
            chosen = configured("store", "default")
        if chosen == "default":
            chosen = default_url()
        return open_store("memory" if chosen is None else os.fspath(chosen))

    def _open(self, store: Store, key: str, n: int) -> Entry:
        settings = self._settings
        seed = streams.fresh_seed() if settings.seed is None else settings.seed
        about = {
            "function": self._label(),
            "sampler": repr(settings.sampler),
            "mechanism": repr(settings.mechanism),
            "versions": {"python": sys.version.partition(" ")[0], "numpy": np.__version__},
        }
        return store.open(key, seed=seed, label=self.__name__, n=n, facts=about)

    def _remembered(self, store: Store, entry: Entry, n: int, call: Call, like: Any) -> Sensitivity:
        """Read the estimate from what is remembered, and evaluate what is missing."""
        plan = self._settings.plan
        mine = repr((plan, self._settings.min_sensitivity))
        for which in ("*", mine):
            if which in entry.failure:
                raise errors.restore(entry.failure[which])
        looks = store.look(entry.key, plan)  # before anything is seen
        if "marginal" in {look.bound for look in looks} and len(looks) > 1:
            raise PlanError(
                f"bound='marginal' holds for one look at the gaps only, and {self.__name__}() has been "
                f"calibrated for n={n} with another plan. Call {self.__name__}.forget() to begin anew.",
                gamma=plan.gamma,
                m=plan.m,
                bound=plan.bound,
            )
        quiet = _Quiet(store)
        memory = Memory(
            gaps=entry.gaps,
            structure=entry.structure,
            looks=looks,
            save=functools.partial(quiet, store.save, entry.key, entry.seed),
            note=functools.partial(quiet, store.look, entry.key),
            checked=entry.checked,
            jitter=entry.jitter,
            weights=entry.weights,
            agree=functools.partial(store.agree, entry.key, entry.seed),
            cause=entry.cause,
        )
        start = time.perf_counter()
        try:
            found = self._calibrate(n, call, like, entry.seed, memory)
        except CalibrationError as error:
            # Remembered too: trying again must not be a way to a luckier estimate.
            shared = isinstance(error, NotReproducibleError | PairError)
            quiet(store.fail, entry.key, entry.seed, "*" if shared else mine, error.plain().facts())
            raise
        if entry.checked < plan.m == len(found.gaps):  # of very many nothing is stored
            took = round(time.perf_counter() - start, 3)
            facts = {"checked": plan.m, "failed": found.failed, "seconds": took, "norm": found.norm}
            facts |= {"jitter": found.jitter} if found.jitter else {}
            facts |= {"cause": found.cause} if found.cause else {}
            quiet(store.describe, entry.key, entry.seed, **facts)
        return found

    def _described(
        self, n: int, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Sensitivity, str | None, str]:
        """Return the estimate for n records, the key that it is remembered under, and where, for a report."""
        like = kwargs.pop("like", None)
        wrong = miscounted("report", n, several=False) or _not_empty(like)
        if wrong is not None:
            del n, args, kwargs, like
            raise wrong
        call = self._binding.bind_public(args, kwargs)
        schema = None if like is None else self._like(self._drawn(), records.describe(like))
        found, key, _ = self._recalled(self._used(operator.index(n)), call, schema, None)
        return found, key, self._store().url

    def _audited(
        self, n: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Sensitivity, _Brought, Any, _Marking]:
        """Return the estimate, the function that it is of, and what data is made like, for an audit."""
        like = kwargs.pop("like", None)
        wrong = _not_empty(like)
        if wrong is not None:
            del args, kwargs, like
            raise wrong
        call = self._binding.bind_public(args, kwargs)
        drawn = self._drawn()
        schema = None if like is None else self._like(drawn, records.describe(like))
        sensitivity = self._sensitivity(self._used(operator.index(n)), call, schema)
        support = self._settings.support if self._settings.domain == "clip" else None
        function = self._function(call, sensitivity.coin_seed)
        return sensitivity, _Brought(function, drawn, support), schema, _Marking(self._root)

    def _marked(self, act: Callable[[], object]) -> None:
        """Do something while this function's calls to itself run raw."""
        mark, before = self._evaluation(), _running.get()
        try:
            _running.set((*before, mark))
            act()
        finally:
            mark.active = False
            _running.set(before)

    def _workers(self, given: Any = None) -> Any:
        """Return where pairs are evaluated: what was given, or set, or configured."""
        return _first(given, _first(self._settings.workers, configured("workers", None)))

    def _calibrate(self, n: int, call: Call, like: Any, seed: int, memory: Memory | None) -> Sensitivity:
        settings, around = self._settings, _Marking(self._root)
        mark, before = self._evaluation(), _running.get()
        try:  # plainly: an interrupt in a context manager could leave the mark, and answers raw
            _running.set((*before, mark))
            # In a context of its own, as on private data: what it sets in context variables ends with it.
            return contextvars.copy_context().run(
                estimate_sensitivity,
                self._function(call, streams.coin_seed(seed)),
                n=n,
                sampler=settings.sampler,
                norm=settings.mechanism.norm,
                plan=settings.plan,
                seed=seed,
                pair=settings.pair,
                batch=settings.batch,
                min_sensitivity=settings.min_sensitivity,
                timeout=settings.timeout,
                workers=self._workers(),
                progress=_first(settings.progress, configured("progress", None)),
                version=settings.version,
                like=like,
                memory=memory,
                label=self.__name__,
                scaled=settings.mechanism if complete(settings.mechanism).scaled else None,
                around=around,
            )
        finally:
            mark.active = False  # first, and a plain store: nothing can come in between
            _running.set(before)

    def _advice(self, text: str) -> str:
        """Return a fixed text with the function's name and the way to public data in it."""
        name = self.__name__ if self.__name__.isidentifier() else "f"
        star = "*" if self._binding.aligned else ""
        return text.format(self.__name__, f"{name}.__wrapped__({star}{name}.sample(n))")


_FAILED = (
    "{0}() failed on the private data. What went wrong is not shown, since it could give the data away. "
    "Try {1} (with the same other arguments), which runs the raw function on public data from P."
)
_LEFT = (
    "{0}() left something of its private run behind in {1}, where it could be read without noise, so nothing "
    "was released, and what was charged stays charged. What was there before was put back where that is "
    "possible. Keep what the function computes in its own variables and return it: work on copies "
    "(copy.deepcopy, sklearn.base.clone), and keep counters, caches, logs and buffers out of what it refers "
    "to."
)
_UNFIT = (
    "{0}() returned, on the private data, something that is not finite or not of the structure that "
    "calibration saw, so nothing was released. Usual causes: a group or category that may be absent "
    "(observed=False, reindex(...), fillna(...)), rows that are dropped. Try {1}, which runs the raw "
    "function on public data from P."
)
_INTERNAL = (
    "{0}() could not bring the private data into the form that P draws, or handle its answer. What went "
    "wrong is not shown, since it could give the data away. Try {1}, which runs the raw function on public "
    "data from P, and compare the two datasets."
)


_REACHABLE = (
    "The private data can be reached from {0}() itself, through {1}, so it would take part in the "
    "calibration. Pass the data as an argument only. If what is there is public and only has the values of "
    "a private column, leave that column out of it, or sort it and round its numbers to fewer digits: a mere "
    "copy has the same values."
)
_BOOTSTRAPPED = (
    "The dataset is the one that the sampler bootstraps, so P is not public: it would be made of the very "
    "records that the answer is to hide. Bootstrap from public data, or name P without looking at any."
)
_CHANGED = (
    "What {0}() depends on (a global, an attribute, a closure, a method of a library) changed while it ran "
    "on the private data, so the noise that was calibrated may be too little. Nothing was released, and what "
    "was charged stays charged. Change such things between calls, not in other threads during a call, and "
    "keep counters, caches and fitted models out of what it refers to."
)
_UNSTEADY = (
    "{0}() changes what it depends on whenever it runs: {1}. Something of a private run would be left behind "
    "there, where it could be read without noise, so it was not run on the private data, and nothing was "
    "spent. Keep what the function computes in its own variables and return it: work on copies "
    "(copy.deepcopy, sklearn.base.clone), and keep counters, caches, logs and buffers out of what it refers "
    "to. If another thread made the change, make it between calls."
)
_TEMPLATE = 1000  # records that are drawn to see what P draws
_RECALLED = 256  # estimates that are held in memory in front of the store


def _bare(error: BaseException, internal: str, started: bool) -> BaseException:
    """Return an error that holds nothing of the frames it passed through."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    if not isinstance(error, PrivatizeError | PrivatizeWarning) or (
        started and type(error) is not PrivateRunError
    ):
        return PrivateRunError(internal)
    error.__traceback__ = None
    error.__context__ = None
    # A cause stays only where it arose on sampled, public data.
    if not isinstance(error, CalibrationError | SettingsError):
        error.__cause__ = None
    return error


def _refuse_private(function: Any) -> None:
    """Refuse to make private what is private already, under another promise."""
    inner, seen = function, 0
    while inner is not None and seen < 100:
        if isinstance(inner, PrivateFunction):
            raise SettingsError(
                f"{inner.__name__} is private already. Use {inner.__name__}.replace(...) for other settings, "
                f"or decorate {inner.__name__}.__wrapped__."
            )
        follow = inner.func if isinstance(inner, functools.partial) else getattr(inner, "__wrapped__", None)
        inner, seen = follow, seen + 1


def miscounted(name: str, n: Any, *, several: bool = True) -> SettingsError | None:
    """Return the error for what is no number of records, or None if it is one, or several.

    It says nothing about what was passed instead but its type: it may be the data.
    """
    for each in n if several and isinstance(n, list | tuple) else [n]:
        try:
            count = -1 if isinstance(each, bool) else operator.index(each)
        except TypeError:
            count = -1
        if not 1 <= count < 2**53:
            shown = repr(n) if type(n) is int else f"a {type(n).__name__}"
            return SettingsError(
                f"{name}() takes the number of records n, an integer from 1 to 2^53, not {shown}. It needs "
                f"no private data."
            )
    return None


def _each(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


def _code(drawn: Any) -> Any:
    """Return the schema of drawn records, without how long their texts happen to be."""
    schema = records.describe(drawn).to_json()
    return "an array of text" if schema[0] == "array" and str(schema[1])[1:2] in ("U", "S") else schema


def _never_changes(value: Any) -> bool:
    """Tell whether a mechanism or sampler is one of ours that never change."""
    kind = type(value)
    ours = kind.__module__.startswith("privatize.") and bool(getattr(kind, "immutable", False))
    return ours or traits_of(value).immutable


def _obey(name: str, settings: Settings, rules: Policy) -> None:
    """Refuse what the policy does not allow."""
    if rules.file is None:  # there is no policy
        return
    problems = rules.problems(settings.epsilon, settings.delta, settings.gamma, budget=True)
    if problems and not lenient.get().active:
        raise PolicyError(f"{name}() breaks the policy in {rules.file}: {'; '.join(problems)}.")


def _not_empty(like: Any) -> SettingsError | None:
    """Return the error for a `like=` that has records, or is no dataset; None if it is empty or absent."""
    try:
        size = 0 if like is None else records.count(like)
    except PrivatizeError:
        return SettingsError(f"like= takes a dataset without records, not a {type(like).__name__}.")
    if size:
        return SettingsError(
            f"like= takes a dataset without records, such as data.head(0) or data[:0], and this one has "
            f"{size}: it needs no private data."
        )
    return None


def _blank() -> PrivateFunction[..., Any]:
    return PrivateFunction.__new__(PrivateFunction)


def privatize(
    function: None = None,
    /,
    *,
    epsilon: float = _REQUIRED,
    gamma: float = _REQUIRED,
    sampler: Any = None,
    mechanism: str | Mechanism = "laplace",
    delta: float = 0.0,
    data: str | Sequence[str] | None = None,
    bound: Bound = "tolerance",
    samples: int | Literal["least", "balanced"] = "balanced",
    pair: PairFunction | None = None,
    batch: Batch = False,
    coins: Sequence[str] = (),
    domain: Literal["clip", "as-is"] | None = None,
    min_sensitivity: float | None = None,
    timeout: float | None = None,
    seed: int | None = None,
    version: str | None = None,
    workers: Any = None,
    store: str | os.PathLike[str] | None = "default",
    progress: bool | None = None,
    budget: Budget | Part | None = None,
    reuse: bool = False,
    **unknown: Any,
) -> Callable[[Callable[P, R]], PrivateFunction[P, R]]:
    """Make a function of a dataset random differentially private.

    Parameters
    ----------
    epsilon : float
        The privacy loss: smaller is more private and noisier.
    gamma : float
        The promise may fail on this share of random neighbouring pairs of datasets.
    sampler : Sampler, scipy.stats distribution or callable
        The public distribution P of a record (see `privatize.samplers`). The promise is
        made with respect to it. Without one, that of the sealed data which it is called with.
    mechanism : {"laplace", "gaussian", "exponential", "bernstein"} or Mechanism
        How the answer is released.
    delta : float
        Needed by the Gaussian mechanism, 1e-6 say.
    data : str or sequence of str, optional
        The dataset's parameter, or several that are aligned record by record. By default the
        first parameter, after ``self``.
    bound : {"tolerance", "dkw", "marginal"}
        How m and k follow from gamma (see `privatize.plan`).
    samples : int or {"balanced", "least"}
        m, the number of sampled pairs.
    pair : callable, optional
        ``pair(data, position, replacement) -> (value, neighbour_value)``: evaluates both
        neighbours at once where that is cheaper. Trusted, and checked on some pairs. It sees the
        dataset alone, so it fits functions whose other arguments do not change.
    batch : bool or callable
        Whether the function also accepts a stack of datasets, an array with one more axis in front
        (``x.mean(axis=-1)``), and returns a stack of answers; or another function that does, such as
        ``jax.vmap`` of it. Hundreds of pairs are then one call. Trusted, and checked on some pairs.
    coins : sequence of str
        Parameters that receive a seeded `numpy.random.Generator` at every evaluation.
    domain : {"clip", "as-is"}, optional
        Whether private records are brought into P's support before the function sees them. By
        default they are if P is bounded.
    min_sensitivity : float, optional
        A floor for the estimate. Without one an estimate of zero is refused.
    timeout : float, optional
        Seconds for one sampled pair. One that takes longer is ended and counts as infinite.
    seed : int, optional
        Seed of the calibration, for reproducible estimates. Noise is never seeded.
    version : str, optional
        Vouches for what the function's fingerprint cannot see or encode (files, a connection):
        change it when that changes. Otherwise such an estimate is not remembered.
    workers : int, "inline", "ray", Dask client, executor, or object with map, optional
        Where the sampled pairs are evaluated: a number of processes, in this one, or a cluster. By
        default what `privatize.configure` says, or else it decides by itself. The private
        data is only ever evaluated in this process.
    store : str, Path or None
        Where estimates are remembered: a path or URL, or None for this process only. By default
        what `privatize.configure` says.
    progress : bool, optional
        Whether calibration shows a bar. By default if it takes more than a second and somebody is
        watching.
    budget : Budget, optional
        What every answer is charged to, beside the budgets of ``with`` blocks and of sealed data.
    reuse : bool
        Whether the very same release about the same declared (sealed) data, by name and version, gives the
        first answer again, in this process, and spends nothing.

    Returns
    -------
    callable
        A decorator; it returns a `PrivateFunction`.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize import privatize, samplers
    >>> @privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100))
    ... def average_age(ages):
    ...     return ages.mean()
    >>> ages = np.random.default_rng(0).integers(18, 90, size=1000)
    >>> answer = average_age(ages)
    >>> bool(abs(answer - ages.mean()) < 5)
    True
    """
    for wrong in sorted(unknown):
        import difflib  # only here: it takes 2 ms

        known = sorted(
            name for name in inspect.signature(privatize).parameters if name not in ("function", "unknown")
        )
        close = difflib.get_close_matches(wrong, known, 1, 0.3)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise SettingsError(f"privatize() has no argument {wrong!r}.{hint} It has {', '.join(known)}.")
    if function is not None:
        raise SettingsError(
            "privatize() takes its settings by keyword, and the function afterwards: write "
            "@privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100)) above it."
        )
    for name, value in (("epsilon", epsilon), ("gamma", gamma)):
        if value is _REQUIRED:
            raise SettingsError(
                f"privatize() needs {name}=: epsilon, gamma and the sampler are the promise, so they have "
                f"no default. For example privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100))."
            )
    settings = Settings(
        mechanism=as_mechanism(mechanism),
        epsilon=epsilon,
        delta=delta,
        gamma=gamma,
        sampler=sampler,
        data=tuple(data) if isinstance(data, list) else data,  # type: ignore[arg-type] # or refused
        bound=bound,
        samples=samples,
        pair=pair,
        batch=batch,
        coins=(coins,) if isinstance(coins, str) else tuple(coins) if isinstance(coins, list) else coins,  # type: ignore[arg-type]
        domain=domain,
        min_sensitivity=min_sensitivity,
        timeout=timeout,
        seed=seed,
        version=version,
        workers=workers,
        store=store,
        progress=progress,
        budget=budget,
        reuse=reuse,
    )

    def decorate(function: Callable[P, R]) -> PrivateFunction[P, R]:
        _obey(label_of(function), settings, policy())
        return PrivateFunction(function, settings)

    return decorate
