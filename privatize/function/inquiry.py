"""Inquiry: a function of a catalogue with its declared arguments, and what is asked and calibrated of it."""

from __future__ import annotations

import functools
import keyword
import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from privatize.calibration.proven import proven_of
from privatize.data.units import Unit
from privatize.errors import ArgumentError, SettingsError
from privatize.function.advice import Advice
from privatize.function.box import Box
from privatize.function.calibrator import put
from privatize.function.declared_calibrator import DeclaredCalibrator
from privatize.function.grid import Choice, Grid
from privatize.function.people import Whom
from privatize.function.private_function import PrivateFunction
from privatize.function.question import Definition, Question
from privatize.function.settings import TRIAL, Settings, did_you_mean
from privatize.function.strength import PROVED, proven_bound
from privatize.mechanisms import Blocks, Mechanism, as_mechanism
from privatize.mechanisms.base import complete

_OPTIONS = ("name", "mechanism", "sensitivity", "data", "coins", "min_sensitivity", "version", "constraints")
_COMMON = ("gamma", "sampler", "budget", "bound", "samples", "domain", "seed", "timeout", "workers", "store")


class Inquiry:
    """A function with the questions that can be asked of it.

    Parameters
    ----------
    catalogue, name : str
        The names of the catalogue, and of the member in it.
    private : PrivateFunction
        The function with its options; epsilon and delta are placeholders.
    grid : Grid
        Its declared arguments.
    """

    def __init__(self, catalogue: str, name: str, private: PrivateFunction[..., Any], grid: Grid) -> None:
        self.catalogue, self.name, self.private, self.grid = catalogue, name, private, grid
        self.function: Any = private.__wrapped__
        self._settings: dict[tuple[Any, Any], Settings] = {}

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Its combinations of argument values."""
        return self.grid.choices

    @property
    def settings(self) -> Settings:
        """Its options."""
        return self.private.settings

    @property
    def calibrator(self) -> DeclaredCalibrator:
        """What has its estimates."""
        return self.private.calibrator  # type: ignore[return-value]

    @property
    def sampled(self) -> bool:
        """Whether its promise rests on sampled pairs, and so on the catalogue's gamma."""
        return self.settings.plan is not None and self.definition.proven is None

    @property
    def promise(self) -> str:
        """What its promise rests on, in words."""
        if self.sampled:
            return "random differentially private: one gamma for all sampled questions of the catalogue"
        words = PROVED if self.definition.proven is None else self.definition.proven.words
        return f"differentially private for all pairs of neighbours, {words}"

    @property
    def in_words(self) -> dict[str, Any]:
        """What is said about each of its questions, in declarations and reports."""
        mechanism = repr(self.settings.mechanism)
        return {"mechanism": mechanism, "promise": self.promise, "sampled": self.sampled}

    @functools.cached_property
    def definition(self) -> Definition:
        """The raw function, its parameters and the promise, under the member's name."""
        own = self.private.definition
        star = "*" if own.binding.aligned else ""
        trial = f"{self.name}.__wrapped__({star}{self.name}.sample(n))"
        return replace(own, name=self.name, advice=Advice(self.name, trial), catalogue=self.catalogue)

    def read(self, box: Box) -> tuple[Choice, float, float]:
        """Return the question, epsilon and delta of a call; the dataset, if it was passed, is in the box."""
        kwargs, args = box.kwargs, box.args
        box.args = box.kwargs = None
        box.data = args[0] if args else None
        many = len(args) > 1
        del args
        if many:
            raise ArgumentError(f"""{self.name}() takes its arguments by name, after the sealed data if the
                catalogue has only its facts: {self.name}(epsilon=0.1, ...).""")
        if "epsilon" not in kwargs:
            known = ["epsilon", "delta", *self.grid.values]
            for unknown in (each for each in kwargs if each not in known):
                raise ArgumentError(f"""{self.name}() has no argument
                    {unknown!r}.{did_you_mean(unknown, known)} It has {", ".join(known)}.""")
            raise ArgumentError(f"""{self.name}() was asked without epsilon=. Every answer is charged an
                epsilon of its own: {self.name}(epsilon=0.1, ...).""")
        epsilon, delta = kwargs.pop("epsilon"), kwargs.pop("delta", 0.0)
        for symbol, value, example in (("epsilon", epsilon, "0.1"), ("delta", delta, "1e-6")):
            if not isinstance(value, numbers.Real):  # by mistake it may be the data
                raise SettingsError(f"""{self.name}() was asked with {symbol}=a {type(value).__name__}, which
                    is no number. Pass what is charged for this answer, {symbol}={example} say.""")
        return self.grid.choose(kwargs), epsilon, delta

    def settings_for(self, epsilon: Any, delta: Any) -> Settings:
        """Return its options with an epsilon and a delta, checked."""
        made, at = functools.partial(replace, self.settings, epsilon=epsilon, delta=delta), (epsilon, delta)
        if not {type(epsilon), type(delta)} <= {int, float}:
            return made()
        found: Settings = self._settings.get(at) or put(self._settings, at, made())
        return found

    def asked(self, choice: Choice, epsilon: Any, delta: Any) -> Definition:
        """Return the definition under which a question is asked."""
        own, settings = self.definition, self.settings_for(epsilon, delta)
        proven = own.proven and proven_bound(self.function, settings, self.name)
        charged = f"{self.catalogue}.{choice.label}"
        return replace(own, settings=settings, proven=proven, charged=charged)

    def question(self, choice: Choice, whom: Whom) -> Question:
        """Return the question for the sensitivity of one combination of arguments."""
        definition, template = self.definition, self.calibrator.template(self.definition)
        call = definition.binding.bind_public((), dict(choice.arguments))
        used, _ = template.used(whom.n)
        return Question(definition, template, call, used, whom.schema(template))

    def passed(self, parts: tuple[Any, ...], choice: Choice) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments of a call with the dataset and one combination of values."""
        binding = self.definition.binding
        if tuple(binding.signature.parameters)[: len(parts)] == binding.names:
            return parts, dict(choice.arguments)
        return (), dict(zip(binding.names, parts, strict=True)) | dict(choice.arguments)

    def facts(self, choice: Choice) -> list[Any]:
        """Return what a question without an estimate depends on."""
        s = self.settings
        unit = [s.record] if isinstance(s.record, Unit) else []
        own = [s.mechanism, s.data, s.coins, s.timeout, *unit]
        return [self.function, sorted(choice.arguments.items()), *own]


# --- adding one -----------------------------------------------------------------------------


def settings_of(function: Any, common: Settings, options: Mapping[str, Any]) -> Settings:
    """Return the options of a new member, from those of the catalogue and its own.

    A member with a bound for all pairs has no gamma, and takes no part in the calibration.
    """
    given = {name: value for name, value in options.items() if value is not None}
    mechanism: Mechanism = given.pop("mechanism", common.mechanism)
    named = ("epsilon", "timeout", "workers", "store", "progress", "budget")
    chosen = {name: getattr(common, name) for name in named} | {"unit": common.record} | given
    own = proven_of(function)
    if not isinstance(mechanism, Blocks) and (own is None or "sensitivity" in given):
        chosen |= {"sampler": common.sampler, "domain": common.domain}
        if "sensitivity" not in given:
            chosen |= {name: getattr(common, name) for name in ("gamma", "bound", "samples")}
    return with_delta(mechanism, chosen)


def with_delta(mechanism: Any, chosen: dict[str, Any]) -> Settings:
    """Return settings with a delta if the mechanism needs one."""
    made = as_mechanism(mechanism)
    try:
        complete(made).check(TRIAL["epsilon"], 0.0)
        delta = 0.0
    except SettingsError:
        delta = TRIAL["delta"]
    return Settings(**chosen, mechanism=made, delta=delta)


def check_name(name: Any, function: Any, taken: Mapping[str, Any], reserved: set[str]) -> str:
    """Return the name of a new member, or refuse it."""
    found = getattr(function, "__name__", type(function).__name__) if name is None else name
    if not isinstance(found, str) or not found.isidentifier() or keyword.iskeyword(found):
        raise SettingsError(f"""{found!r} cannot be the name of a member: it is asked as an attribute of the
            catalogue, so its name is a Python identifier. Pass add(..., name="median"), say.""")
    if found.startswith("_") or found in reserved:
        raise SettingsError(f"""{found!r} is an attribute of every catalogue, so a member of that name could
            not be asked as one. Pass another, add(..., name="{found.strip("_") or "question"}_of_all").""")
    if found in taken:
        raise SettingsError(f"""The catalogue has a member {found!r} already. Pass another name=, or remove
            that one first: drop({found!r}).""")
    return found


def check_options(name: str, given: Mapping[str, Any], definition: Definition) -> None:
    """Refuse what is no parameter of the function, but an option of a call or of the catalogue."""
    known = definition.binding.signature.parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return
    for option in sorted(set(given) - set(known)):
        if option in TRIAL:
            raise SettingsError(f"""add({option}=...): every answer is charged {option} of its own, so it is
                given when {name} is asked: {name}(epsilon=0.1). The cap of all answers is
                Catalogue(epsilon=...), or that of the budget.""")
        if option in _COMMON:
            raise SettingsError(f"""add({option}=...): {option} is the same for all questions. Pass it to the
                catalogue: Catalogue(..., {option}=...).""")


def check_parameters(name: str, definition: Definition, whom: Whom) -> None:
    """Refuse a function whose parameters collide with what `add` or a call takes, or whose data differs."""
    binding = definition.binding
    known = [each for each in binding.signature.parameters if each not in binding.names]
    for parameter in ("epsilon", "delta"):
        if parameter in binding.signature.parameters:
            raise SettingsError(f"""{name}{binding.signature} has a parameter {parameter!r}, which every call
                of a member has: {name}(epsilon=0.1). Rename it, or wrap the function.""")
    for parameter in known:
        if parameter in _OPTIONS and parameter not in binding.coins:
            raise SettingsError(f"""{name}{binding.signature} has a parameter {parameter!r}, which is an
                option of add(), so no values could be declared for it. Rename it, or wrap the function.""")
    count = len(whom.parts)
    if binding.aligned != whom.aligned or len(binding.names) != count:
        first = tuple(binding.signature.parameters)[:count]
        fits = f"add(data={first!r})" if whom.aligned else f"add(data={first[0]!r}), or leave data= out"
        raise SettingsError(f"""{name}{binding.signature} takes {", ".join(binding.names)} as its dataset, and
            the people of this catalogue are {f"{count} aligned parts" if whom.aligned else "one dataset"}.
            Pass {fits}.""")


def check_choices(grid: Grid, definition: Definition) -> None:
    """Refuse a question whose arguments do not fit the function."""
    for choice in grid.choices:
        call = definition.binding.bind_public((), dict(choice.arguments))
        fills = complete(definition.settings.mechanism).evaluate is not None
        if call.open is not None and not fills:
            raise SettingsError(f"""{grid.name}{definition.binding.signature} cannot be asked without
                {call.open!r}. Declare its values, add({call.open}=[...]): each is a question.""")
