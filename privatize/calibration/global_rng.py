"""Guard the global random generators: functions get a public seed, and callers find their states unchanged.

The bit generator of numpy's global generator is exchanged. That is quick but loses a cached normal deviate,
so that is looked for first. `random` has no such exchange, so its state is read and put back.
"""

import functools
import os
import random
import sys
import threading
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.random import mtrand

from privatize.execution import threads

# The global generators are process-wide, so evaluations that depend on them take turns.
_turn = threading.RLock()
# These replace the callers' bit generators, one for each level of nesting; making one takes 0.1 ms.
_stand_ins: list[np.random.MT19937] = []
_for_good: list[np.random.MT19937] = []  # the one of a process that ends after its evaluation


_NO_STATE = np.random.MT19937(0).state


class _Stateless(np.random.MT19937):
    """A bit generator whose state, which is of no interest, is read in no time."""

    state = property(lambda _: {**_NO_STATE}, np.random.MT19937.state.__set__)  # type: ignore[attr-defined]


_stateless = _Stateless(0)


def _has_cached_normal() -> bool:
    """Tell whether numpy's global generator has cached a normal deviate."""
    # Only `get_state` tells, and it first reads the state of the bit generator, which takes 35 µs. Numbers
    # are drawn without the attribute that is exchanged here.
    generator: Any = mtrand._rand
    bits = getattr(generator, "_bit_generator", None)
    if bits is None:  # in another version of numpy
        return bool(np.random.get_state(legacy=False)["has_gauss"])  # noqa: NPY002
    try:
        generator._bit_generator = _stateless
        return bool(generator.get_state(legacy=False)["has_gauss"])
    finally:
        generator._bit_generator = bits


def _renew() -> None:
    """Give a forked child a lock of its own: the parent's may be held by a thread that the child lacks."""
    global _turn
    _turn = threading.RLock()
    if _entered:
        _entered.clear()
        _stand_ins.clear()  # one of them is in use


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@functools.lru_cache(maxsize=64)
def _start(seed: int) -> tuple[Any, ...]:
    """Return the state of `random` that a seed leads to."""
    return random.Random(seed).getstate()  # noqa: S311 - a public seed


class rng_guard:  # noqa: N801 - it is used like a function
    """Give the global generators a public seed in this context, and restore the caller's states after it.

    Within it, ``reseed()`` before every evaluation makes a function that uses `random`,
    `numpy.random` or torch's default generator a deterministic one. BLAS and OpenMP have one
    thread meanwhile.

    Examples
    --------
    >>> with rng_guard(7) as rng:
    ...     rng.reseed(); a = random.random()
    ...     rng.reseed(); b = random.random()
    ...     rng.used()
    True
    >>> a == b
    True
    """

    # Not written as a generator: an interrupt between its steps would leave the seed there. If an interrupt
    # comes before __exit__ has begun, `unwind` restores the states.

    def __init__(self, s0: int) -> None:
        self._s0, self._start = s0, _start(s0)
        self._undo: list[Callable[[], object]] = []
        self.owner, self._locked = 0, False
        self._bits: Any = None
        self._first: tuple[Any, ...] = ()  # what `_peek` finds after a reseeding

    def __enter__(self) -> Self:
        self.owner = threading.get_ident()
        self._undo.append(functools.partial(self._release, _turn))
        self._locked = _turn.acquire()
        _entered.append(self)
        if len(_stand_ins) < len(_entered):
            _stand_ins.append(np.random.MT19937(0))
        self._bits = _stand_ins[len(_entered) - 1]
        bits = mtrand.get_bit_generator()
        cached = np.random.get_state(legacy=False) if _has_cached_normal() else None  # noqa: NPY002
        self._undo.append(functools.partial(_put_back, random.getstate(), bits, cached))
        mtrand.set_bit_generator(self._bits)
        limited: list[Any] = []
        self._undo.append(functools.partial(threads.restore, limited))
        threads.limit(limited)
        torch = sys.modules.get("torch")
        if torch is not None:
            context = torch.random.fork_rng()
            context.__enter__()
            self._undo.append(functools.partial(context.__exit__, None, None, None))
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def take_over(self) -> Self:
        """Do as entering does, for good: in a process that evaluates one block and ends, which saves time."""
        if not _for_good:  # not one of the above, which the guards inside a function use
            _for_good.append(np.random.MT19937(0))
        self._bits = _for_good[0]
        return self

    def reseed(self) -> None:
        """Seed every global generator with the public seed."""
        random.setstate(self._start)
        mtrand.set_bit_generator(self._bits)  # a function may have put another one in its place
        np.random.seed(self._s0)  # noqa: NPY002 - the global generator is what users' code uses
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.manual_seed(self._s0)

    def used(self) -> bool:
        """Tell whether any of them has been used since the last reseeding, and reseed them."""
        found = self._peek()
        self.reseed()
        if not self._first:
            self._first = self._peek()
            self.reseed()
        return found != self._first

    def may_be_used(self) -> bool:
        """Tell whether any may have been used: if torch, which has one on each device, is loaded, always."""
        return "torch" in sys.modules or self.used()

    def _peek(self) -> tuple[Any, ...]:
        """Return what the generators would draw next, which this uses up: their states are slow to read.

        A normal deviate comes first, because both of Python's and numpy's generators may have one cached.
        """
        exchanged = mtrand.get_bit_generator() is not self._bits
        bits = None if exchanged else (np.random.standard_normal(), self._bits.random_raw(4).tolist())  # noqa: NPY002
        return random.gauss(0.0, 1.0), random.getrandbits(128), bits, _torch_state()

    def restore(self) -> None:
        """Put back what was there before; once, however often it is called."""
        interrupted = False
        while self._undo:
            try:
                self._undo[-1]()
            except KeyboardInterrupt:  # it may have come before this step was done: do it again
                interrupted = True
                self._undo[-1]()
            self._undo.pop()
        if interrupted:
            raise KeyboardInterrupt

    def _release(self, turn: Any) -> None:
        if self in _entered:  # before the lock is released: the next thread counts entries
            _entered.remove(self)
        if self._locked:  # after an interrupt it may be called again
            self._locked = False
            turn.release()


_entered: list[rng_guard] = []  # by the thread that has the lock


def _torch_state() -> list[bytes]:
    """Return the states of torch's generators, if it is loaded."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    states = [torch.random.get_rng_state()]
    if torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        states.append(torch.mps.get_rng_state())
    return [state.cpu().numpy().tobytes() for state in states]


def _mine() -> list[rng_guard]:
    """Return the guards that this thread has entered."""
    return [guard for guard in _entered if guard.owner == threading.get_ident()]


def level() -> int:
    """Return how many of this thread's guards are entered, for `unwind`."""
    return len(_mine())


def unwind(to: int) -> None:
    """Leave the guards of this thread that are still entered because of an interrupt."""
    for guard in _mine()[to:][::-1]:
        guard.restore()


def _put_back(state: Any, bits: Any, cached: Any) -> None:
    random.setstate(state)
    mtrand.set_bit_generator(bits)
    if cached is not None:
        np.random.set_state(cached)  # noqa: NPY002
