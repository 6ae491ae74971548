"""Public coins: the streams that pairs are drawn from, and the seeds that functions see.

All randomness here is public and reproducible; noise lives in `privatize.noise.grid` and is
neither. The scheme is versioned because remembered gaps depend on it: pair ``i`` belongs to
block ``i // block_size(n)``, and the pairs of a block draw one after the other from the block's
own generators, one for records and one for positions.
"""

from __future__ import annotations

import functools
import hashlib
import operator
import os
import secrets
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import mtrand

from privatize.calibration import global_rng as generators
from privatize.errors import SettingsError
from privatize.execution import threads

__all__ = [
    "SCHEME",
    "block_size",
    "check_seed",
    "coin_seed",
    "fresh_seed",
    "level",
    "public_coins",
    "stream",
    "unwind",
]

SCHEME = 2
"""Version of the streams, the coins, and how datasets are laid out for functions; part of every key."""

RECORDS, POSITIONS, COINS, PILOT, AUDIT, CHECK = range(6)
"""Tags that keep the streams of one seed apart."""

# The global generators are process-wide, so evaluations that depend on them take turns.
_turn = threading.RLock()
# What stands in for the callers' bit generators, one for each level of nesting; making one takes 0.1 ms.
_stand_ins: list[generators.StandIn] = []
_depth = 0


def _renew() -> None:
    """Give a forked child a lock of its own: the parent's may be held by a thread that it has not."""
    global _turn, _depth
    _turn, _depth = threading.RLock(), 0
    _entered.clear()
    _stand_ins.clear()  # one of them may be in the place of a generator right now


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


@functools.cache
def sources() -> str:
    """Return a digest of this library's own code: two processes that share work must have the same."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def block_size(n: int) -> int:
    """Return how many pairs of n records share a stream.

    Examples
    --------
    >>> block_size(100), block_size(10_000), block_size(10**7)
    (256, 26, 1)
    """
    return max(1, min(256, 2**18 // (n + 1)))


def stream(seed: int, tag: int, block: int = 0) -> np.random.Generator:
    """Return the generator of one block of one purpose.

    Examples
    --------
    >>> stream(1, RECORDS, 0).random() == stream(1, RECORDS, 0).random()
    True
    >>> stream(1, RECORDS, 0).random() == stream(1, POSITIONS, 0).random()
    False
    """
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(tag, block))))


def fresh_seed() -> int:
    """Return a calibration seed that nobody chose."""
    return secrets.randbits(64)


def check_seed(seed: Any) -> int | None:
    """Return the seed as an int, or None; refuse everything else."""
    if seed is None:
        return None
    try:
        value = -1 if isinstance(seed, bool) else operator.index(seed)
    except TypeError:
        value = -1
    if value < 0:
        raise SettingsError(
            f"seed={seed!r} is not a seed: it must be an integer >= 0, or None for a fresh one. "
            f"It seeds calibration only; noise is never seeded."
        )
    return value


def coin_seed(seed: int) -> int:
    """Return the public coin seed s0 of an estimate: 32 bits, as ``numpy.random.seed`` takes.

    Examples
    --------
    >>> coin_seed(7) == coin_seed(7) != coin_seed(8)
    True
    """
    return int(np.random.SeedSequence(seed, spawn_key=(COINS,)).generate_state(1)[0])


class Coins:
    """The global random generators, set to the public coins; made by `public_coins`."""

    def __init__(self, s0: int, stand_in: Any) -> None:
        self._s0, self._stand_in = s0, stand_in
        self._start: tuple[Any, ...] | None = None  # where the generators are after a toss

    def toss(self) -> None:
        """Put every global generator at the start of the public coins."""
        own, numpys = generators.start_of(self._s0)
        generators.go(own)
        self._stand_in.go(numpys)
        torch = sys.modules.get("torch")
        if torch is not None:
            torch.manual_seed(self._s0)

    def moved(self) -> bool:
        """Tell whether any of them has been used since the last toss.

        Torch has generators on every device: where it is there, they count as used.
        """
        found = self.state()
        self.toss()
        return found != self.state() or "torch" in sys.modules

    def used(self) -> bool:
        """Tell the same, with a look at torch's generators too, where it is there."""
        found = (self.state(), _torch_state())
        if self._start is None:
            self.toss()
            self._start = (self.state(), _torch_state())
        return found != self._start

    def state(self) -> tuple[Any, ...]:
        """Return where the global generators of `random` and numpy stand."""
        bits = mtrand.get_bit_generator()
        # A function may have put another one in its place.
        numpys = self._stand_in.where() if bits is self._stand_in.bits else None
        return generators.where(), numpys, generators.normal_kept()


def _torch_state() -> list[bytes]:
    """Return where torch's generators stand, if it is there."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        return []
    states = [torch.random.get_rng_state()]
    if torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    if torch.backends.mps.is_available():
        states.append(torch.mps.get_rng_state())
    return [state.cpu().numpy().tobytes() for state in states]


class public_coins:  # noqa: N801 - it is used like a function
    """Give the global generators public coins for a while, and leave the caller's untouched.

    Within it, ``toss()`` before every evaluation makes a function that uses `random`,
    `numpy.random` or torch's default generator a deterministic one. BLAS and OpenMP have one
    thread meanwhile.

    Examples
    --------
    >>> import random
    >>> with public_coins(7) as coins:
    ...     coins.toss(); a = random.random()
    ...     coins.toss(); b = random.random()
    >>> a == b
    True
    """

    # Not a generator: an interrupt just before it goes on would leave it where it is. If one comes before
    # __exit__ has begun, `unwind` puts things back.

    def __init__(self, s0: int) -> None:
        self._s0 = s0
        self._undo: list[Callable[[], object]] = []
        self._owner, self._held = 0, False

    def __enter__(self) -> Coins:
        global _depth
        self._owner = threading.get_ident()
        self._undo.append(functools.partial(self._release, _turn))
        self._held = _turn.acquire()
        _entered.append(self)
        # Of numpy's the bit generator is swapped, which forgets a cached normal deviate, if there is one.
        bits, legacy = mtrand.get_bit_generator(), generators.with_normal()
        if _depth == len(_stand_ins):
            _stand_ins.append(generators.StandIn())
        stand_in = _stand_ins[_depth]
        self._undo.append(functools.partial(_put_back, generators.where(), bits, legacy, _depth))
        _depth += 1
        mtrand.set_bit_generator(stand_in.bits)
        limited: list[Any] = []
        self._undo.append(functools.partial(threads.restore, limited))
        threads.limit(limited)
        torch = sys.modules.get("torch")
        if torch is not None:
            context = torch.random.fork_rng()
            context.__enter__()
            self._undo.append(functools.partial(context.__exit__, None, None, None))
        return Coins(self._s0, stand_in)

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _restore(self) -> None:
        interrupted = False
        while self._undo:
            try:
                self._undo[-1]()
            except KeyboardInterrupt:  # it may have come before anything was done: once more
                interrupted = True
                self._undo[-1]()
            self._undo.pop()
        if self in _entered:
            _entered.remove(self)
        if interrupted:
            raise KeyboardInterrupt

    def _release(self, turn: Any) -> None:
        if self._held:  # what is done twice, after an interrupt, must be done once
            self._held = False
            turn.release()


_entered: list[public_coins] = []  # by the thread whose turn it is


def level() -> int:
    """Return how many of this thread's contexts are open, for `unwind`."""
    return sum(context._owner == threading.get_ident() for context in _entered) if _entered else 0


def unwind(to: int) -> None:
    """Leave the contexts of this thread that an interrupt kept from being left."""
    if not _entered:
        return
    mine = [context for context in _entered if context._owner == threading.get_ident()]
    for context in reversed(mine[to:]):
        context._restore()


def _put_back(own: Any, bits: Any, legacy: Any, depth: int) -> None:
    global _depth
    generators.go(own)
    mtrand.set_bit_generator(bits)
    if legacy is not None:
        np.random.set_state(legacy)  # noqa: NPY002
    _depth = depth
