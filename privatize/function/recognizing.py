"""Recognize what functions compute, by their answers about a few public datasets.

A fingerprint shows what a function is, and not all that decides what it computes: the order of a set of
strings differs between processes, and so do hashes, ids, environment variables and machines. So what was
found out about a function in one process is used in another one only if it gives the same answers there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from privatize.calibration import streams
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import NeighbourSampler
from privatize.calibration.user_warnings import collected_warnings
from privatize.data import records
from privatize.errors import NotReproducibleError
from privatize.function.question import Question
from privatize.outputs.describe import describe
from privatize.samplers.families import members_of

Answers = tuple[float | None, ...]
"""The sizes of a function's answers about public datasets; None where it fails."""
_MOST = 1000  # records of a public dataset
_FEWEST, _DATASETS = 2, 8  # how many: with few records, answers of two functions may be the same by chance
_SEED = 0  # the same for everybody: answers are compared
_CLOSE = 1e-6  # by how much answers may differ on another machine, relative to the largest
_OTHER = (
    "{}() gives other answers about identical public data than in the process that {}. The order of a set of "
    "strings differs between processes (use sorted(...)), and so do hashes, ids, environment variables and "
    "machines. Keep that out of the function."
)


def answers_of(asked: Question, n: int | None = None) -> Answers:
    """Return the sizes of a question's answers about public datasets of n records, or of at most 1,000.

    They are about as quick as measuring one pair again.
    """
    size = asked.template.used(min(asked.n, _MOST) if n is None else n)[0]
    sampler = members_of(asked.settings.sampler)[0]
    pairs = NeighbourSampler(sampler, size, streams.derived_seed(_SEED, streams.CHECK, 1), asked.schema)
    count = max(_FEWEST, min(_DATASETS, _FEWEST * _MOST // size))
    return tuple(_size_of(asked, pairs, at) for at in range(count))


def _size_of(asked: Question, pairs: NeighbourSampler, at: int) -> float | None:
    seed = streams.coin_seed(_SEED)
    data = records.pair(pairs.pair_at(at).records, 0, pairs.n)[0]
    with rng_guard(seed) as rng, collected_warnings(set()), np.errstate(all="ignore"):
        rng.reseed()
        try:
            value = asked.guard().run(asked.function(seed), data)
            # The same for every order of the numbers: keys of a dict may come in another one.
            size = float(np.linalg.norm(describe(value).flatten(value)))
        except KeyboardInterrupt:
            raise
        except BaseException:  # sys.exit() as well
            return None
    return size if np.isfinite(size) else None


def mark_of(answers: Answers) -> str:
    """Return a short digest of answers, without what may be rounding.

    Examples
    --------
    >>> mark_of((1.0, None)) == mark_of((1.0 + 1e-9, None)) != mark_of((1.1, None))
    True
    """
    shown = ",".join("" if each is None else f"{each:.6e}" for each in answers)
    return hashlib.sha256(shown.encode()).hexdigest()[:16]


def recognize(asked: Question, known: Sequence[float | None], n: int | None, what: str) -> None:
    """Refuse a function whose answers are not those that are known from the process that did something."""
    if not same(known, answers_of(asked, n)):
        raise NotReproducibleError(_OTHER.format(asked.definition.name, what))


def same(known: Sequence[float | None], now: Sequence[float | None]) -> bool:
    """Tell whether answers are the same but for rounding.

    Examples
    --------
    >>> same([1.0, None], [1.0 + 1e-9, None]), same([1.0, None], [1.1, None]), same([1.0], [None])
    (True, False, False)
    """
    slack = _CLOSE * max((each for each in known if each is not None), default=0.0)
    return len(known) == len(now) and all(
        before == after or (before is not None and after is not None and abs(before - after) <= slack)
        for before, after in zip(known, now, strict=True)
    )
