"""Identify this library itself: its digest, its callers, and the names of its classes in keys."""

import functools
import hashlib
import inspect
import os
from pathlib import Path
from typing import Any, ClassVar

LIBRARY = __name__.partition(".")[0]
DISTRIBUTION = "privatize-dp"  # the package index has another project under the name of our package
_ROOT = Path(__file__).parents[1]


class Opaque:
    """Base or marker of objects that no answer depends on: budgets, ledgers, sealed data and its loaders."""

    __slots__ = ()
    opaque: ClassVar[bool] = True


class Wrapper:
    """Base of our own objects that run functions of the user."""

    __slots__ = ()

    def _runs(self) -> list[Any]:
        """Return the functions that a call of this object runs."""
        raise NotImplementedError

    def _attributes(self) -> dict[str, Any]:
        """Return the attributes that the user has set."""
        raise NotImplementedError


def tag_of(kind: type) -> str:
    """Return the name of one of our own classes in keys, which stays when the class moves to a new module.

    Samplers and mechanisms have a tag, and a version of what they draw or measure.
    """
    tag = vars(kind).get("tag")
    if not isinstance(tag, str):
        return kind.__qualname__
    version = getattr(kind, "draw_version", None) or getattr(kind, "gap_version", None)
    return tag if version is None else f"{tag} {version}"


def spelled(value: Any, owner: str) -> str:
    """Return the name of installed code; for this library's, without the module, which may change."""
    if owner == LIBRARY:
        return tag_of(value) if isinstance(value, type) else str(value.__qualname__)
    return f"{value.__module__}.{value.__qualname__}"


@functools.cache
def sources() -> str:
    """Return a digest of this library's own code: two processes that share work must have the same."""
    digest = hashlib.sha256()
    for file in sorted(_ROOT.rglob("*.py")):
        digest.update(file.relative_to(_ROOT).as_posix().encode() + file.read_bytes())
    return digest.hexdigest()


def outside() -> int:
    """Return the stack level of the first caller outside this library, for warnings."""
    here, frame, level = f"{_ROOT}{os.sep}", inspect.currentframe(), 0
    while frame is not None and frame.f_back and frame.f_code.co_filename.startswith(here):
        frame, level = frame.f_back, level + 1
    return level
