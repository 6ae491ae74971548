"""Recognize what functions compute, by how their answers differ between a few public datasets.

A fingerprint shows what a function is, and not all that decides what it computes: the order of a set of
strings differs between processes, and so do hashes, ids, environment variables and machines. So what was
found out about a function in one process is used in another one only if its answers differ there as they did.

Differences, and not the answers themselves: these would show a constant that was computed from private data.
Gaps, which are remembered anyway, do not show it either.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np

from privatize.calibration import streams
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import NeighbourSampler
from privatize.calibration.norms import SLACK, Vector
from privatize.calibration.user_warnings import collected_warnings
from privatize.data import records
from privatize.errors import NotReproducibleError
from privatize.function.question import Question
from privatize.outputs.describe import describe
from privatize.samplers.families import members_of

Signature = tuple[float, ...]
"""How answers about public datasets differ, number by number; empty if the function fails, or may not end."""
_DATASETS, _TRIED = 4, 16  # datasets that are compared; if a function fails on some, others are tried
_MOST = 10**6  # records: sums are calibrated without datasets, for any n
_NUMBERS = 32  # of an answer: longer ones are added up in so many sums
_SEED = 0  # the same for everybody
_CLOSE = 1e-6  # by how much a difference may be another one on another machine, relative to the largest
_OTHER = (
    "{}() gives other answers about identical public data than in the process that {}. The order of a set of "
    "strings differs between processes (use sorted(...)), and so do hashes, ids, environment variables and "
    "machines. Keep that out of the function."
)


def signature(asked: Question, n: int | None = None) -> Signature:
    """Return how a question's answers about public datasets differ, of n records or of its own number."""
    if asked.settings.timeout is not None:  # it is evaluated here, where nothing ends it
        return ()
    sampler, seed = members_of(asked.settings.sampler)[0], streams.derived_seed(_SEED, streams.CHECK, 1)
    size = min(asked.n if n is None else n, _MOST)
    pairs = NeighbourSampler(sampler, size, seed, asked.schema)
    found: list[Vector] = []
    for at in range(_TRIED):
        numbers = _numbers(asked, pairs, at)
        found += [] if numbers is None else [numbers]
        if len(found) == _DATASETS:
            break
    if len(found) < _DATASETS or len({each.size for each in found}) > 1:
        return ()
    first, *others = found
    return tuple(step for other in others for step in _few(_difference(first, other)))


def _numbers(asked: Question, pairs: NeighbourSampler, at: int) -> Vector | None:
    """Return the numbers of an answer about a public dataset, ordered by their names; None if it fails."""
    seed = streams.coin_seed(_SEED)
    data = records.pair(pairs.pair_at(at).records, 0, pairs.n)[0]
    with rng_guard(seed) as rng, collected_warnings(set()), np.errstate(all="ignore"):
        rng.reseed()
        try:
            value = asked.guard().run(asked.function(seed), data)
            structure = describe(value)
            numbers = np.array(structure.flatten(value))
        except KeyboardInterrupt:
            raise
        except BaseException:  # sys.exit() as well
            return None
    names = structure.names()
    ordered = numbers[sorted(range(len(names)), key=names.__getitem__)]  # keys may come in any order
    return ordered if np.isfinite(ordered).all() else None


def _difference(a: Vector, b: Vector) -> Vector:
    """Return a difference, in which rounding is zero."""
    step = b - a
    return np.where(np.abs(step) <= 2**6 * SLACK * (np.abs(a) + np.abs(b)), 0.0, step)


def _few(step: Vector) -> list[float]:
    """Return the numbers of a difference, or sums of them if there are many, each with another weight."""
    places = np.arange(step.size)
    weights = 1 + places * 0.6180339887498949 % 1  # all different
    found: Any = step
    if step.size > _NUMBERS:
        found = np.bincount(places % _NUMBERS, step * weights, _NUMBERS)
    return list(map(float, found))


def same(known: Sequence[float], now: Sequence[float]) -> bool:
    """Tell whether answers differ alike, but for rounding.

    Examples
    --------
    >>> same([1.0, 2.0, 3.0], [1.0 + 1e-9, 2.0, 3.0]), same([1.0, 2.0, 3.0], [1.0, 2.0, 3.1])
    (True, False)
    """
    if len(known) != len(now):
        return False
    before, after = (np.array(each, dtype=np.float64).reshape(_DATASETS - 1, -1) for each in (known, now))
    return bool((np.abs(before - after) <= _CLOSE * np.abs(before).max(axis=0, initial=0.0)).all())


def mark_of(signature: Signature) -> str:
    """Return a short digest of a signature without what may be rounding; of none another one each time.

    Examples
    --------
    >>> mark_of((1.0, 0.5)) == mark_of((1.0 + 1e-9, 0.5)) != mark_of((1.1, 0.5))
    True
    >>> mark_of(()) == mark_of(())
    False
    """
    shown = ",".join(f"{each:.5e}" for each in signature) or secrets.token_hex(8)
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def recognize(asked: Question, known: Sequence[float], n: int | None, what: str) -> None:
    """Refuse a function whose answers differ otherwise than in the process that did something.

    One that has a time limit is not evaluated, and so not recognized.
    """
    if asked.settings.timeout is None and not same(known, signature(asked, n)):
        raise NotReproducibleError(_OTHER.format(asked.definition.name, what))
