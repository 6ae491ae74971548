"""What a promise rests on: sampled pairs, the user's own proof, bounds of the function, or blocks."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from privatize.calibration.proven import Answer, Proven, proven_of
from privatize.data.units import Unit
from privatize.errors import SettingsError
from privatize.function.binding import Call
from privatize.function.blocks import Context, check_blocks, run_blocks
from privatize.function.settings import Settings
from privatize.mechanisms import Blocks, Mechanism
from privatize.mechanisms.base import Noise, Vector
from privatize.outputs.structure import Array, Structure

PROVED = "by a bound that its author proved"
GIVEN = "given the sampled answers before it"


@dataclass(frozen=True)
class Strict(Proven):
    """Any function, evaluated on blocks of people, each in a process of its own.

    Attributes
    ----------
    function : callable
        A function of a dataset.
    mechanism : Blocks
        What is released of its values on all blocks.
    settings : Settings
        The promise: with n it determines the number of blocks.
    s0 : int
        The public seed of the random generators that the function may use.
    context : callable
        Makes a context for a block, in which the function's calls to itself run raw.
    """

    words = "whatever the function does"
    function: Callable[..., Any]
    mechanism: Blocks
    settings: Settings
    s0: int = 0
    context: Context = contextlib.nullcontext

    def noise_of(self, mechanism: Mechanism) -> Noise:
        """Return "": no noise is added to the function's own value on all of the data."""
        del mechanism
        return ""

    def for_persons(self, unit: Unit) -> Proven:
        """Return the same: a person with all their rows is in one block."""
        del unit
        return self

    def wrapped(self, wrap: Callable[[Callable[..., Any]], Callable[..., Any]], /) -> Proven:
        """Return the same for a function with other arguments."""
        return replace(self, function=wrap(self.function))

    def structure(self, n: int) -> Structure:
        """Return the structure that the bounds have."""
        del n
        return self.mechanism.structure

    def fits(self, data: Any, /) -> None:
        """Refuse a function that cannot be evaluated in other processes, before it is paid for."""
        check_blocks(*self._asked(), data, version=self.settings.version)

    def _asked(self) -> tuple[Callable[[Any], Any], Structure]:
        """Return the function of a block, and the structure of what it returns."""
        row = functools.partial(_numbers, self.mechanism, self.function)
        return row, Array("<f8", [self.mechanism.structure.size])

    def measure(self, data: Any, n: int) -> NDArray[Any]:
        """Return the function's value on each block; NaN where it failed."""
        return run_blocks(
            *self._asked(),
            data,
            self.mechanism.number(n, self.settings.epsilon),
            coin_seed=self.s0,
            context=self.context,
            version=self.settings.version,
            seconds=self.settings.timeout,
        )

    def release(
        self, measured: NDArray[Any], n: int, mechanism: Mechanism, epsilon: float, delta: float
    ) -> Answer:
        """Return a private median, or mean, of each number over the blocks."""
        del n, mechanism, delta
        scale = self.mechanism.noise_scale(len(measured), epsilon)
        return Answer(self.mechanism.release_blocks(measured, epsilon), scale, 1.0)


def _numbers(mechanism: Blocks, function: Callable[[Any], Any], data: Any) -> Vector:
    """Return the numbers of a function's answer on a block."""
    return mechanism.row(function(data))


def proven_bound(function: Callable[..., Any], settings: Settings, name: str) -> Proven | None:
    """Return what evaluates a function with a bound of its own; None for sampled ones and the user's bounds.

    Settings that say nothing about the sensitivity, or say it twice, are refused.
    """
    blocks, own = settings.mechanism, proven_of(function)
    given = [each for each in ("gamma", "sensitivity") if getattr(settings, each) is not None]
    law = [each for each in ("sampler", "domain") if getattr(settings, each) is not None]
    if isinstance(blocks, Blocks):
        _refuse([*given, *law], f"{blocks!r} promises that")
        blocks.check(settings.epsilon, settings.delta)
        return Strict(function, blocks, settings)
    if own is not None and not (given and own.samplable):
        _refuse([*given, *law], f"{name} promises that by its own bounds")
        own.check(settings.mechanism, settings.epsilon, settings.delta)
        return own.for_persons(settings.record) if isinstance(settings.record, Unit) else own
    if not given:
        raise SettingsError(f"""privatize() needs gamma= for {name}: epsilon, gamma and the sampler are the
            promise, so they have no default. For example privatize(epsilon=1, gamma=0.05,
            sampler=samplers.uniform(0, 100)). If you have proved a bound, pass sensitivity=; for plain
            differential privacy of any function use mechanism=Blocks(low, high).""")
    return None


def _refuse(given: list[str], whose: str) -> None:
    if given:
        raise SettingsError(f"""{given[0]}= has no use here: {whose} for all pairs of neighbours, without
            sampling. Leave {given[0]}= out.""")


def words_of(settings: Settings, proven: Proven | None) -> str:
    """Return why a promise holds for all pairs, in words; empty if it rests on sampled pairs."""
    return proven.words if proven is not None else "" if settings.gamma is not None else PROVED


def mechanism_name(settings: Settings, proven: Proven | None) -> str:
    """Return the name of the mechanism: of a function that has its own, that of its class."""
    own = proven is not None and not isinstance(proven, Strict) and not proven.noise_of(settings.mechanism)
    return type(proven if own else settings.mechanism).__name__


def bound_to(proven: Proven, call: Call, s0: int, context: Context, *, persons: bool = False) -> Proven:
    """Return what evaluates a function with the other arguments of a call, and this public seed."""
    seeded = replace(proven, s0=s0, context=context) if isinstance(proven, Strict) else proven
    if call.bare() and not persons:
        return seeded
    return seeded.wrapped(lambda raw: functools.partial(replace(call, function=raw), s0=s0))
