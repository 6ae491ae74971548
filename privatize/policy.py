"""What holds for a whole program: configure()."""

from __future__ import annotations

import os
from typing import Any

from privatize.errors import SettingsError

__all__ = ["configure", "configured"]

_UNSET: Any = object()
_chosen: dict[str, Any] = {}


def configure(*, store: str | os.PathLike[str] | None = _UNSET) -> None:
    """Set once, for this process, what most private functions have in common.

    Parameters
    ----------
    store : str, Path or None
        Where estimates are remembered: a path or ``sqlite:///...``, ``postgresql://...``, or None for
        this process only. Without it, the environment variable ``PRIVATIZE_STORE`` says so, and
        without that it is a file in the user's cache folder.

    Examples
    --------
    >>> configure(store=None)
    """
    if store is not _UNSET:
        if store is not None and not isinstance(store, str | os.PathLike):
            raise SettingsError(f"store={store!r} is not a path, a URL, or None.")
        _chosen["store"] = store


def configured(name: str, default: Any) -> Any:
    """Return what was configured, or the default."""
    return _chosen.get(name, default)
