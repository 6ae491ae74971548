"""What holds for a whole program: configure()."""

from __future__ import annotations

import os
from typing import Any

from privatize.errors import SettingsError
from privatize.execution import check_workers

__all__ = ["configure", "configured"]

_UNSET: Any = object()
_chosen: dict[str, Any] = {}


def configure(
    *,
    store: str | os.PathLike[str] | None = _UNSET,
    workers: Any = _UNSET,
    progress: bool | None = _UNSET,
) -> None:
    """Set once, for this process, what most private functions have in common.

    Parameters
    ----------
    store : str, Path or None
        Where estimates are remembered: a path or ``sqlite:///...``, ``postgresql://...``, or None for
        this process only. Without it, the environment variable ``PRIVATIZE_STORE`` says so, and
        without that it is a file in the user's cache folder.
    workers : int, "inline", "ray", Dask client, executor, or object with map
        Where sampled pairs are evaluated. None decides by itself: here, or on all cores if that is
        much quicker.
    progress : bool or None
        Whether calibration shows a bar. None: if it takes more than a second and somebody is watching.

    Examples
    --------
    >>> configure(store=None)
    """
    if store is not _UNSET:
        if store is not None and not isinstance(store, str | os.PathLike):
            raise SettingsError(f"store={store!r} is not a path, a URL, or None.")
        _chosen["store"] = store
    if workers is not _UNSET:
        _chosen["workers"] = check_workers(workers)
    if progress is not _UNSET:
        if not isinstance(progress, bool | None):
            raise SettingsError(f"progress={progress!r} is not True, False or None.")
        _chosen["progress"] = progress


def configured(name: str, default: Any) -> Any:
    """Return what was configured, or the default."""
    return _chosen.get(name, default)
