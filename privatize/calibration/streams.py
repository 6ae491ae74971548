"""Public streams and seeds: the generators that pairs are drawn from, and the seeds that functions see.

All randomness here is public and reproducible; noise comes from `privatize.noise.grid` and is
neither. The scheme is versioned because remembered gaps depend on it: pair ``i`` belongs to
block ``i // block_size(n)``, and the pairs of a block draw one after the other from the block's
own generators, one for records and one for positions.
"""

import secrets
from typing import Any

import numpy as np

from privatize.errors import SettingsError
from privatize.planning.numbers import as_integer

SCHEME = 2
"""Version of the streams, of the seeds for functions, and of datasets' memory layout; part of every key."""

RECORDS, POSITIONS, COINS, PILOT, AUDIT, CHECK, STRESS, CATALOGUE = range(8)
"""Tags of the streams of one seed, one for each purpose."""


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
    """Return a random seed for a calibration."""
    return secrets.randbits(64)


def check_seed(seed: Any) -> int | None:
    """Return the seed as an int, or None; refuse everything else."""
    if seed is None:
        return None
    value = as_integer(seed)
    if value < 0:
        raise SettingsError(f"""seed={seed!r} is not a seed: it must be an integer >= 0, or None for a fresh
            one. It seeds calibration only; noise is never seeded.""")
    return value


def seed_or_fresh(seed: Any) -> int:
    """Return the seed as an int, or a fresh one if there is none."""
    checked = check_seed(seed)
    return fresh_seed() if checked is None else checked


def coin_seed(seed: int) -> int:
    """Return the public seed s0 of the global generators: 32 bits, as ``numpy.random.seed`` takes.

    Examples
    --------
    >>> coin_seed(7) == coin_seed(7) != coin_seed(8)
    True
    """
    return int(np.random.SeedSequence(seed, spawn_key=(COINS,)).generate_state(1)[0])


def derived_seed(seed: int, tag: int, number: int) -> int:
    """Return a seed that follows from another: for the pairs of a pilot, or of an audit."""
    return int(np.random.SeedSequence(seed, spawn_key=(tag, number)).generate_state(1, np.uint64)[0])
