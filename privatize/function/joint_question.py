"""JointQuestion: many questions as one, evaluated on one sample of pairs (T1 in docs/catalogue.md)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from privatize.calibration.evaluators.joint import Joint
from privatize.calibration.joint import Weights
from privatize.display.figures import counted
from privatize.errors import SettingsError
from privatize.function.binding import Placeholder
from privatize.function.question import UNKNOWN, Question
from privatize.function.recursion import RecursionGuard
from privatize.function.settings import Settings
from privatize.mechanisms import Laplace
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import weighted

R = TypeVar("R")
_DATA = Placeholder("data")


@dataclass(frozen=True, eq=False)
class JointQuestion(Question):
    """The question how far one record can move the answers of many questions, each in its own unit.

    Attributes
    ----------
    parts : tuple of Question
        The questions. They have P, n and the schema in common.
    labels : tuple of str
        What each is called.
    weights : tuple of tuple of int or None
        The weights of the parts, from a pilot; None before it.
    """

    parts: tuple[Question, ...] = ()
    labels: tuple[str, ...] = ()
    weights: Weights | None = None
    timed: bool = False

    def short(self) -> None:
        """Return no quick key: there are many functions to compare."""

    def facts(self) -> list[Any]:
        """Return everything that the joint gaps depend on: the facts of all parts, and the weights."""
        shared = () if self.member is None else ("family", self.member.coin_seed)
        own = ["joint", self.definition.name, self.n, self.labels, self.weights, self.settings.key]
        return [*own, [part.facts() for part in self.parts], *shared]

    def function(self, s0: int) -> Joint:
        """Return all functions of the dataset alone, as one."""
        given = self.weights or ((0,),) * len(self.parts)
        mechanisms = (part.settings.mechanism for part in self.parts)
        norms = (weighted(each, Shape.of(own[1:])).norm for each, own in zip(mechanisms, given, strict=True))
        functions = tuple(_straight(part, s0) for part in self.parts)
        return Joint(functions, tuple(norms), self.labels, tuple(own[0] for own in given), self.timed)

    def guard(self) -> JointGuard:  # type: ignore[override]
        """Return the guards of all parts."""
        return self.worker_context()()

    def worker_context(self) -> Callable[[], JointGuard]:  # type: ignore[override]
        """Return a function that makes the guards of all parts, for other processes."""
        # Questions of one function with different arguments have one guard.
        each = {(id(part.definition.root), id(part.call.function)): part for part in self.parts}
        return functools.partial(JointGuard, [part.worker_context() for part in each.values()])

    @property
    def stress(self) -> bool:
        """Whether there is a stress test: no, `check_fit` tests P on the people themselves."""
        return False

    def _options(self, seed: int) -> dict[str, Any]:
        given, count, timeout = super()._options(seed), len(self.parts), self.settings.timeout
        label = f"{given['label']}, {counted(count, 'question')}"
        return given | {"timeout": timeout and timeout * count, "label": label}

    def left_by_a_public_run(self, s0: int) -> list[str]:
        """Evaluate each part on public data; put back what it left behind, and return the places."""
        each = zip(self.labels, self.parts, strict=True)
        found = [(label, part.left_by_a_public_run(s0)) for label, part in each]
        return [f"{label}: {', '.join(places)}" for label, places in found if places != UNKNOWN] or UNKNOWN


def _straight(part: Question, s0: int) -> Callable[[Any], Any]:
    """Return a part's function of the dataset; its arguments are filled in once if that can be done."""
    function, call = part.function(s0), part.call
    others = (*call.args[1:], *call.kwargs.values())
    usual = type(function) is functools.partial and function.func is call and call.args[:1] == (_DATA,)
    fixed = call.comparable() is not None and not call.models()
    if not usual or not fixed or any(type(each) is Placeholder for each in others):
        return function
    if len(call.args) == 1:
        return functools.partial(call.function, **call.kwargs)
    return functools.partial(_filled, call.function, call.args[1:], call.kwargs)


def _filled(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], data: Any) -> Any:
    return function(data, *args, **kwargs)


class JointGuard:
    """The guards of several functions, which are active together."""

    def __init__(self, contexts: Sequence[Callable[[], RecursionGuard]]) -> None:
        self._guards, self._entered = [make() for make in contexts], contextlib.ExitStack()

    def run(self, act: Callable[..., R], *args: Any, **kwargs: Any) -> R:
        """Call a function while all guards are active."""
        for guard in self._guards:
            act = functools.partial(guard.run, act)
        return act(*args, **kwargs)

    def __enter__(self) -> None:
        for guard in self._guards:
            self._entered.enter_context(guard)

    def __exit__(self, *_: object) -> None:
        self._entered.close()


def joint(name: str, settings: Settings, parts: Sequence[Question], labels: Sequence[str]) -> JointQuestion:
    """Return many questions as one, which has one estimate for all of them.

    Parameters
    ----------
    name : str
        What the questions are called together: it is in the key of their estimate.
    settings : Settings
        P, gamma, bound, samples, timeout, workers, store and progress; its mechanism does not matter, since
        each part has its own.
    parts : sequence of Question
        The questions, which must have n, schema and P in common.
    labels : sequence of str
        What each is called in messages; all different.
    """
    first = parts[0]
    if len(set(labels)) < len(parts) or len(labels) != len(parts):
        raise SettingsError("The questions of a joint calibration need labels that are all different.")
    if any((part.n, part.schema) != (first.n, first.schema) for part in parts):
        raise SettingsError("The questions of a joint calibration must be about the same n and container.")
    versions = {label: part.settings.version for label, part in zip(labels, parts, strict=True)}
    given = {each: version for each, version in versions.items() if version is not None}
    plain: dict[str, Any] = {"mechanism": Laplace(scaled="none"), "delta": 0.0, "coins": (), "data": None}
    plain |= {"pair": None, "batch": False, "min_sensitivity": None}
    plain["version"] = repr(given) if given else None
    own = replace(settings, **plain)
    definition = replace(first.definition, name=name, label=f"catalogue {name}", settings=own, root=None)
    return JointQuestion(
        definition, first.template, first.call, first.n, first.schema, None, tuple(parts), tuple(labels)
    )
