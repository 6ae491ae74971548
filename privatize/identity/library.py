"""What identity knows of this library itself: its digest, its callers, how its own classes are encoded."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

__all__ = ["LIBRARY", "Opaque", "Traits", "Wrapper", "outside", "sources", "tag_of", "traits_of"]

LIBRARY = __name__.partition(".")[0]
_ROOT = Path(__file__).parents[1]


class Opaque:
    """What no answer depends on: as a base or a mark of budgets, ledgers, sealed data and what loads it."""

    __slots__ = ()
    opaque: ClassVar[bool] = True


class Wrapper:
    """A base of our own objects that run functions of the user's."""

    __slots__ = ()

    def _runs(self) -> list[Any]:
        """Return what a run of it calls."""
        raise NotImplementedError

    def _attributes(self) -> dict[str, Any]:
        """Return the attributes that the user has set."""
        raise NotImplementedError


class Traits(NamedTuple):
    """How fingerprints encode one of our own classes.

    Attributes
    ----------
    name : str
        What it is called in keys.
    immutable : bool
        Whether its objects never change.
    opaque : bool
        Whether no answer depends on its objects.
    identity : callable, optional
        Returns what an estimate depends on, of an object.
    declares : bool
        Whether its objects hold values that P was declared with.
    """

    name: str
    immutable: bool
    opaque: bool
    identity: Callable[[Any], Any] | None
    declares: bool


def traits_of(kind: type) -> Traits:
    """Return how fingerprints encode one of our own classes."""
    return Traits(
        tag_of(kind),
        bool(getattr(kind, "immutable", False)),
        bool(getattr(kind, "opaque", False)),
        getattr(kind, "_identity", None),
        hasattr(kind, "draw_version"),
    )


def tag_of(kind: type) -> str:
    """Return the name of one of our own classes in keys, which stays when its module moves.

    Samplers and mechanisms have a tag, and a version of what they draw or measure.
    """
    tag = vars(kind).get("tag")
    if not isinstance(tag, str):
        return kind.__qualname__
    version = getattr(kind, "draw_version", None) or getattr(kind, "gap_version", None)
    return tag if version is None else f"{tag} {version}"


@functools.cache
def sources() -> str:
    """Return a digest of this library's own code: two processes that share work must have the same."""
    digest = hashlib.sha256()
    for file in sorted(_ROOT.rglob("*.py")):
        digest.update(file.relative_to(_ROOT).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def outside() -> int:
    """Return the stack level of the first caller outside this library, for warnings."""
    here, frame, level = f"{_ROOT}{os.sep}", sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    return level
