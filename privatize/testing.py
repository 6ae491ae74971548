"""For users' own tests."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator

import numpy as np

from privatize import discrete
from privatize.errors import InsecureNoiseWarning

__all__ = ["insecure_noise"]


@contextlib.contextmanager
def insecure_noise(seed: int) -> Iterator[None]:
    """Make noise reproducible within a test. Whoever knows the seed can take the noise off again.

    It always warns, with :class:`~privatize.errors.InsecureNoiseWarning`; nothing else in the
    library takes a seed for noise. It holds in this thread (or task) only: threads that are
    started inside draw real noise.

    Parameters
    ----------
    seed : int
        Any integer >= 0.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from privatize import privatize, samplers
    >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), seed=1)(np.mean)
    >>> with warnings.catch_warnings(action="ignore"), insecure_noise(7):
    ...     first = mean(np.ones(100))
    >>> with warnings.catch_warnings(action="ignore"), insecure_noise(7):
    ...     second = mean(np.ones(100))
    >>> bool(first == second)
    True
    """
    warnings.warn(
        "Noise is seeded inside insecure_noise(): what is released there is not private. For tests only.",
        InsecureNoiseWarning,
        stacklevel=3,
    )
    mark = discrete.source.set(np.random.Generator(np.random.PCG64(seed)).bytes)
    try:
        yield
    finally:
        discrete.source.reset(mark)
