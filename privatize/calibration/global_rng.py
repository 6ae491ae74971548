"""The global generators of `random` and numpy: where they stand, and putting them elsewhere.

By copying their memory. Through Python the state of `random` is 625 integers, and to read and set both
generators takes a quarter of a private call. Where a state lies is found by looking, and where it is not as
expected, the slow way is taken.
"""

from __future__ import annotations

import ctypes
import functools
import random
import sys
from typing import Any

import numpy as np
from numpy.random import mtrand

__all__ = ["StandIn", "go", "normal_kept", "start_of", "where", "with_normal"]

_WORDS = 624  # of the Mersenne Twister, with which both are made; and a position
_global: Any = getattr(random, "_inst", None)
_setstate = random.setstate


def _packed(words: Any, position: int) -> tuple[bytes, bytes]:
    return np.asarray(words, dtype=np.uint32).tobytes(), int(position).to_bytes(4, sys.byteorder)


def _seen(address: int, size: int) -> memoryview:
    return memoryview((ctypes.c_char * size).from_address(address)).cast("B")


# --- random ---------------------------------------------------------------------------------


def _memory(generator: Any) -> memoryview | None:
    """Return the memory of a generator of `random` that is its state, position first, or None."""
    if sys.implementation.name != "cpython" or type(generator) is not random.Random:
        return None
    head = object.__basicsize__
    body = _seen(id(generator) + head, random.Random.__base__.__basicsize__ - head)  # type: ignore[union-attr]
    *words, position = generator.getstate()[1]
    state, place = _packed(words, position)
    at = bytes(body).find(state)
    return body[at - 4 : at + len(state)] if at >= 4 and bytes(body[at - 4 : at]) == place else None


@functools.cache
def _own() -> memoryview | None:
    """Return the memory of the global generator, if that is where it is for others as well."""
    others = [random.Random(seed) for seed in (1, 2, 3)]  # noqa: S311 - to look at
    for steps, generator in enumerate(others):
        for _ in range(7 * steps + 1):
            generator.random()
    return _memory(_global) if all(_memory(generator) is not None for generator in others) else None


def _usual() -> bool:
    """Tell whether the global generator is the one that it was, and not another in its place."""
    return random.setstate is _setstate


def where() -> Any:
    """Return where the global generator of `random` stands."""
    memory = _own() if _usual() else None
    return random.getstate() if memory is None else (bytes(memory), _global.gauss_next)


def go(place: Any) -> None:
    """Put the global generator of `random` there."""
    memory = _own()
    if memory is None or type(place[0]) is not bytes:
        random.setstate(place)
    else:
        memory[:], _global.gauss_next = place


# --- numpy ----------------------------------------------------------------------------------


class StandIn:
    """A bit generator that takes the place of numpy's global one for a while."""

    def __init__(self) -> None:
        self.bits: Any = np.random.MT19937(0)
        state, position = self._state()
        memory = _seen(self.bits.ctypes.state_address, len(state) + len(position))
        self._memory = memory if bytes(memory) == state + position else None

    def _state(self) -> tuple[bytes, bytes]:
        state = self.bits.state["state"]
        return _packed(state["key"], state["pos"])

    def where(self) -> bytes:
        """Return where it stands."""
        return b"".join(self._state()) if self._memory is None else bytes(self._memory)

    def go(self, place: bytes) -> None:
        """Put it there, and have it be the global one, without a normal deviate kept for later."""
        if self._memory is None:
            position = int.from_bytes(place[4 * _WORDS :], sys.byteorder)
            state = {"key": np.frombuffer(place, np.uint32, _WORDS), "pos": position}
            self.bits.state = {"bit_generator": "MT19937", "state": state}
        else:
            self._memory[:] = place
        mtrand.set_bit_generator(self.bits)


def start_of(seed: int) -> tuple[Any, bytes]:
    """Return where a seed puts both: what `go` takes, and what `StandIn.go` takes."""
    return _start(seed, _usual())


@functools.lru_cache(maxsize=64)
def _start(seed: int, usual: bool) -> tuple[Any, bytes]:
    state: Any = np.random.RandomState(seed).get_state(legacy=False)
    numpys = b"".join(_packed(state["state"]["key"], state["state"]["pos"]))
    own = random.Random(seed)  # noqa: S311 - public coins
    memory = _memory(own) if usual and _own() is not None else None
    return own.getstate() if memory is None else (bytes(memory), None), numpys


def with_normal() -> Any:
    """Return the state of numpy's global generator if it keeps a normal deviate for later, or None."""
    if not normal_kept():
        return None
    return np.random.get_state(legacy=False)  # noqa: NPY002 - the global generator is what users' code uses


def normal_kept() -> bool:
    """Tell whether numpy's global generator keeps a normal deviate for later."""
    flag = _flag(mtrand._rand)
    if flag is not None:
        return bool(flag[0])
    legacy: Any = np.random.get_state(legacy=False)  # noqa: NPY002
    return bool(legacy["has_gauss"])


@functools.lru_cache(maxsize=1)
def _flag(generator: Any) -> Any:
    """Return the number that says so, as it is in a generator's memory, or None."""
    at = _flag_at()
    return None if at is None else (ctypes.c_int * 1).from_address(id(generator) + at)


@functools.cache
def _flag_at() -> int | None:
    """Return where a legacy generator says that it keeps a normal deviate, or None if there is no telling.

    By trying: the one number in its memory that follows the flag.
    """
    kind: Any = np.random.RandomState
    if sys.implementation.name != "cpython" or type(mtrand._rand) is not kind:
        return None
    tried = kind(1)
    count = kind.__basicsize__ // ctypes.sizeof(ctypes.c_int)
    places = set(range(count))
    for flag in (0, 1, 0, 1, 1, 0):
        tried.set_state(tried.get_state(legacy=False) | {"has_gauss": flag, "gauss": 0.5})
        numbers = (ctypes.c_int * count).from_address(id(tried))
        places = {at for at in places if numbers[at] == flag}
    return places.pop() * ctypes.sizeof(ctypes.c_int) if len(places) == 1 else None
