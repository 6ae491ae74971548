"""Definition and Question: a function under a promise, and what an estimate of it depends on."""

from __future__ import annotations

import contextlib
import functools
import types
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from privatize.calibration import streams
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.global_rng import level, rng_guard, unwind
from privatize.calibration.pilot import Member, divides, pilot_evaluator, pilot_pairs
from privatize.calibration.proven import Proven
from privatize.calibration.refuting import ProvenBound, check_bound, refute
from privatize.calibration.run import Collector, Memory
from privatize.calibration.sensitivity import Sensitivity, estimate_sensitivity
from privatize.calibration.stress import warn_fragile
from privatize.config.policy import configured
from privatize.data import records
from privatize.data.persons import Persons
from privatize.display.signatures import signature_of
from privatize.errors import ArgumentError
from privatize.function.advice import Advice
from privatize.function.binding import Binding, Call
from privatize.function.recursion import RecursionGuard
from privatize.function.settings import Settings
from privatize.function.strength import proven_bound
from privatize.function.template import Template
from privatize.identity.fingerprint import identity_of
from privatize.identity.graph import ATOMS
from privatize.identity.leftovers import Snapshot
from privatize.identity.origin import attribute_of, origin
from privatize.mechanisms.base import complete
from privatize.mechanisms.choosing import PilotPairs
from privatize.samplers import draw
from privatize.samplers.families import members_of

UNKNOWN = ["something that it refers to"]
"""What a function changes if it is not known which place it is."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A raw function with its parameters, and a promise.

    Attributes
    ----------
    name, label : str
        The function's name, and that with its module.
    advice : Advice
        Messages for a private run that ends without an answer.
    binding : Binding
        The raw function, and which of its parameters are the dataset.
    settings : Settings
        The options of `privatize`.
    root : object
        The private function that the function calls when it calls itself.
    proven : Proven or None
        What evaluates it, if it has a bound of its own and needs no P.
    charged : str
        Its name in ledgers, if that is another one.
    catalogue : str
        The catalogue that the function is a member of.
    """

    name: str
    label: str
    advice: Advice
    binding: Binding
    settings: Settings
    root: Any
    proven: Proven | None = None
    charged: str = ""
    catalogue: str = ""

    @functools.cached_property
    def _method(self) -> Binding:
        """The parameters of the function as a method of any object."""
        return self._of(types.MethodType(self.binding.function, self))

    def _of(self, method: Any) -> Binding:
        return Binding.of(method, self.settings.data, self.settings.coins)

    def bound(self, method: Any) -> Definition:
        """Return the same definition for a method of an object."""
        usual = type(method) is types.MethodType
        proven = self.proven and proven_bound(method, self.settings, self.name)
        made, binding = object.__new__(Definition), self._method.bound(method) if usual else self._of(method)
        vars(made).update(vars(self), binding=binding, proven=proven)  # quicker than `replace`
        return made


@dataclass(frozen=True)
class Converted:
    """A function of data that P did not draw, which is converted first, as private data is."""

    function: Callable[[Any], Any]
    drawn: Any
    support: Any

    def __call__(self, data: Any) -> Any:
        """Convert the data as private data is, and evaluate the function."""
        with np.errstate(all="ignore"):
            converted = records.convert(data, self.drawn, self.support)
        return self.function(converted)


@dataclass(frozen=True, eq=False)
class Question:
    """The question how far one record can move a function's answer about n of them.

    Attributes
    ----------
    definition : Definition
        The function and the promise.
    template : Template
        What P draws.
    call : Call
        The function with its other arguments.
    n : int
        Number of records.
    schema : Schema or None
        What drawn records are cast to, to match the private data; None if they match already.
    member : Member or None
        If P is a member of a family, what all its members have in common.
    """

    definition: Definition
    template: Template
    call: Call
    n: int
    schema: Any
    member: Member | None = None

    @property
    def settings(self) -> Settings:
        """The promise."""
        return self.definition.settings

    def short(self) -> tuple[Any, ...] | None:
        """Return a quick key, valid as long as the function is unchanged; None if the estimate needs more."""
        others, function, settings = self.call.comparable(), self.call.function, self.settings.short
        if self.schema is not None or others is None or settings is None:
            return None
        bound = self.bound if self.settings.plan is None else None  # by a function that may have changed
        shared = self.n, bound, settings, others
        if type(function) is not types.MethodType:
            return *shared, id(function)
        # A method is a new object whenever it is read. Only objects that hold nothing but atoms have a guard.
        state = attribute_of(function.__self__, "__dict__")
        if type(state) is not dict or any(type(value) not in ATOMS for value in state.copy().values()):
            return None
        return *shared, id(function.__func__), id(function.__self__)

    def facts(self) -> list[Any]:
        """Return everything that the gaps depend on: the estimate's key."""
        call, schema = self.call, self.schema
        # The libraries whose objects, and so whose methods, the function gets.
        names = self.template.libraries | (set() if schema is None else schema.libraries)
        versions, made = [origin(name) for name in sorted(names)], schema and schema.to_json()
        shared = () if self.member is None else ("family", self.member.coin_seed, _encoded(self.member))
        return [self.n, call.function, call.others(), made, self.settings.key, versions, np.geterr(), *shared]

    def under(self, **changes: Any) -> Self:
        """Return the same question with other settings."""
        settings = replace(self.settings, **changes)
        return replace(self, definition=replace(self.definition, settings=settings))

    def identity(self) -> str:
        """Return a digest of what a check of P is about: function, arguments, P and gamma, whatever n is."""
        call, own = self.call, self.settings
        facts = [call.function, call.others(), own.mechanism, own.sampler, own.coins, own.domain, own.gamma]
        return identity_of(facts, version=own.version or "") or ""

    def function(self, s0: int) -> Callable[[Any], Any]:
        """Return the function of the dataset alone that is calibrated and released."""
        call = self.call
        evaluate = complete(self.settings.mechanism).evaluate
        if evaluate is not None:
            return functools.partial(evaluate(call, call.open is not None), s0=s0)
        if call.open is not None:
            signature = signature_of(call.function)
            raise ArgumentError(f"{self.definition.name}{signature} was called without {call.open!r}.")
        return call.function if call.bare() and not self.persons else functools.partial(call, s0=s0)

    @property
    def persons(self) -> bool:
        """Whether P draws persons, whose rows the function gets as one flat frame."""
        return type(self.template.records()) is Persons

    def converted(self, s0: int) -> Converted:
        """Return the function of data that P did not draw."""
        return Converted(self.function(s0), self.template.records(), self.template.support)

    def guard(self) -> RecursionGuard:
        """Return the guard that lets the function's calls to itself run raw while it is evaluated."""
        return self.worker_context()()

    def worker_context(self) -> Callable[[], RecursionGuard]:
        """Return a function that makes such a guard, for other processes."""
        functions = self.call.function, self.settings.pair, self.settings.batch
        return functools.partial(RecursionGuard, self.definition.root, *functions)

    def workers(self, given: Any = None) -> Any:
        """Return where pairs are evaluated: what was given, or set, or configured."""
        return _first(given, _first(self.settings.workers, configured("workers", None)))

    @functools.cached_property
    def bound(self) -> float:
        """The user's bound at n."""
        return check_bound(self.settings.sensitivity, self.n)

    def calibrate(self, seed: int, memory: Memory | None) -> Sensitivity:
        """Evaluate the pairs that are not remembered, and return the estimate."""
        settings = self.settings
        if settings.plan is None:
            raise TypeError("Only a sampled estimate is calibrated.")
        found: Sensitivity = self.guard().run(
            estimate_sensitivity,
            self.function(streams.coin_seed(seed) if self.member is None else self.member.coin_seed),
            plan=settings.plan,
            member=self.member,
            pair=settings.pair,
            batch=settings.batch,
            min_sensitivity=settings.min_sensitivity,
            memory=memory,
            scaled=settings.mechanism if divides(settings.mechanism) else None,
            stress=self.stress,
            **self._options(seed),
        )
        return found

    @property
    def stress(self) -> bool:
        """Whether the estimate gets a stress test. A member of a family of P does not."""
        return self.member is None and bool(configured("stress", True))

    def warn_fragile(self, found: Sensitivity | ProvenBound) -> None:
        """Warn if a stress test has shown that an estimate hangs on an assumption of P."""
        if self.stress and isinstance(found, Sensitivity):
            warn_fragile(self.definition.name, found.n, found.stress)

    def pilot(self, seed: int, s0: int, count: int) -> PilotPairs | None:
        """Return what some pairs have shown that decide how noise is divided; None for one number."""
        settings, options = self.settings, self._options(seed)
        shared = {name: options[name] for name in ("n", "sampler", "version", "timeout")}
        shared |= {"pair": settings.pair, "batch": settings.batch, "s0": s0, "target": self.schema}
        make = functools.partial(evaluator, self.function(s0), worker_context=self.worker_context(), **shared)
        collector = Collector(options["workers"], options["progress"], options["label"])
        opened, guard = level(), self.guard()
        try:
            pilot = guard.run(pilot_evaluator, make, settings.mechanism, seed, count)
            given = (collector, count, settings.min_sensitivity)
            return guard.run(pilot_pairs, pilot, settings.mechanism, *given)
        finally:
            unwind(opened)

    def attack(self, seed: int) -> ProvenBound:
        """Try to refute the user's bound under each P, and return it; raise if it is refuted."""
        attack = functools.partial(
            refute,
            self.function(streams.coin_seed(seed)),
            sensitivity=self.bound,
            support=self.template.support,
            domain="as-is" if self.settings.domain == "as-is" else "clip",
        )
        options, guard = self._options(seed), self.guard()
        every = (options | {"sampler": member} for member in members_of(self.settings.sampler))
        tried = [guard.run(functools.partial(attack, **each)) for each in every]
        worst = max(tried, key=lambda found: (found.value, found.largest))
        return replace(worst, tried=sum(found.tried for found in tried))

    def _options(self, seed: int) -> dict[str, Any]:
        """Return what decides which pairs are evaluated, and where."""
        settings = self.settings
        return {
            "n": self.n,
            "sampler": settings.sampler,
            "norm": settings.mechanism.norm,
            "seed": seed,
            "timeout": settings.timeout,
            "workers": self.workers(),
            "progress": _first(settings.progress, configured("progress", None)),
            "version": settings.version,
            "like": self.schema,
            "label": self.definition.name if self.member is None else self.member.label,
            "around": self.worker_context(),
        }

    def left_by_a_public_run(self, s0: int) -> list[str]:
        """Evaluate the function on public data; put back what it left behind, and return the places."""
        before = Snapshot(self.call.function, self.call.shared())
        with contextlib.suppress(Exception):
            drawn = draw(members_of(self.settings.sampler)[0], self.n, streams.stream(s0, streams.PILOT, 2))
            data = drawn if self.schema is None else records.cast(drawn, self.schema)
            with rng_guard(s0) as rng:
                rng.reseed()
                self.guard().run(self.function(s0), data)
        return before.put_back() or UNKNOWN


def _encoded(member: Member) -> tuple[int, ...] | None:
    """Return the shape of a family's noise as it is in keys; None if it is not divided among numbers."""
    return None if member.shape is None else member.shape.encoded


def _first(own: Any, common: Any) -> Any:
    return common if own is None else own
