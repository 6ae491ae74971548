"""What an evaluation depends on besides its arguments: warnings, floating point, folder, environment."""

from __future__ import annotations

import contextlib
import decimal
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Environment variables that limit the threads of libraries when they are loaded."""


@dataclass(frozen=True)
class Surroundings:
    """What the sender's process is like."""

    filters: tuple[Any, ...]
    floating: dict[str, Any]
    decimals: decimal.Context
    recursion: int
    folder: str | None
    environment: dict[str, str] | None

    @classmethod
    def here(cls, *, local: bool) -> Surroundings:
        """Return what this process is like; with its folder and environment only if that is `local`."""
        folder = None
        with contextlib.suppress(OSError):  # it may have been deleted
            folder = os.getcwd()  # noqa: PTH109 - a string
        return cls(
            tuple(warnings.filters),
            {**np.geterr(), "call": np.geterrcall()},
            decimal.getcontext().copy(),
            sys.getrecursionlimit(),
            folder if local else None,
            dict(os.environ) if local else None,
        )

    def settle(self) -> None:
        """Make this process like the sender's, for good."""
        sys.setrecursionlimit(self.recursion)
        warnings.filters[:] = self.filters  # type: ignore[index]
        warnings._filters_mutated()  # type: ignore[attr-defined]
        if self.folder is not None:
            with contextlib.suppress(OSError):  # it may be missing
                os.chdir(self.folder)
        if self.environment is not None:
            own = {name: os.environ[name] for name in THREADS if name in os.environ}
            os.environ.clear()
            os.environ.update(self.environment | own)

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """Treat floating-point errors and decimals as the sender does."""
        with np.errstate(**self.floating), decimal.localcontext(self.decimals):
            yield
