"""Helpers for users' own tests."""

import contextlib
import os
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from privatize.auditing.auditor import audit
from privatize.auditing.findings import Audit
from privatize.errors import InsecureNoiseWarning
from privatize.function.private_function import PrivateFunction
from privatize.noise.exact import source

__all__ = ["assert_private", "insecure_noise"]


def assert_private(
    function: PrivateFunction[..., Any],
    n: int,
    *args: Any,
    pairs: int = 500,
    releases: int = 4000,
    seed: int = 0,
    **kwargs: Any,
) -> Audit:
    """Audit a private function in a test: quick, and with the same outcome at every run.

    The fresh pairs and, during the audit, the noise are seeded, so that a suite that passes today
    passes tomorrow, unless the function changes. (For a calibration that
    is the same at every run too, give the function a ``seed=``.) Raise `pairs` and `releases` for
    more power: by default a share of neighbours beyond the estimate of about twice a gamma of 0.05,
    or noise that is too small by a quarter, does not pass.

    Parameters
    ----------
    function : PrivateFunction
        Made by `privatize`.
    n : int
        Number of records.
    *args, **kwargs
        The function's other arguments, and those of `privatize.audit`.
    pairs, releases, seed : int
        As for `privatize.audit`.

    Returns
    -------
    Audit

    Raises
    ------
    AuditError
        An AssertionError, if the promise is broken.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize import privatize, samplers
    >>> mean = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1), seed=1)(np.mean)
    >>> assert_private(mean, n=100).holds
    True
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InsecureNoiseWarning)  # its noise is used in the audit only
        with insecure_noise(seed):
            found = audit(function, n, *args, pairs=pairs, releases=releases, seed=seed, **kwargs)
    found.assert_holds()
    return found


class _SeededBytes:
    """Gives seeded bytes inside a block of `insecure_noise`, and the operating system's afterwards."""

    # Tasks, threads, callbacks and forked processes that were started inside the block keep this object in
    # their copy of the context, so the object itself is switched off.
    def __init__(self, seed: int) -> None:
        self._generator, self._process = np.random.Generator(np.random.PCG64(seed)), os.getpid()
        self._ready, self._at, self._lock = b"", 0, threading.RLock()
        self.active, self._busy = True, False

    def __call__(self, size: int) -> bytes:
        if not self.active or os.getpid() != self._process:
            return os.urandom(size)
        # Many at once, because the generator takes long for a few. It makes four at a time.
        with self._lock:
            if self._busy:  # the handler of a signal draws in the middle of this
                return os.urandom(size)
            self._busy = True
            try:
                start = self._at
                self._at += -(-size // 4) * 4
                if self._at > len(self._ready):
                    more = self._generator.bytes(self._at - len(self._ready) + 2**14)
                    self._ready = self._ready[start:] + more
                    self._at -= start
                    start = 0
                return self._ready[start : start + size]
            finally:
                self._busy = False


@contextlib.contextmanager
def insecure_noise(seed: int) -> Iterator[None]:
    """Make noise reproducible within a test. Whoever knows the seed can subtract the noise.

    It always warns, with `privatize.errors.InsecureNoiseWarning`; nothing else in the
    library takes a seed for noise. It applies to this thread (or task) and to what is started there with
    a copy of its context (other tasks, ``asyncio.to_thread``), and only until the block ends: whatever
    still runs then draws real noise, as other threads and processes always do.

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
    seeded = _SeededBytes(seed)
    before = source.set(seeded)
    try:
        yield
    finally:
        seeded.active = False
        with contextlib.suppress(ValueError):  # a generator may be closed in another context than its own
            source.reset(before)
