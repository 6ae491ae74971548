"""The qualified names of classes and functions, and what is found under a name."""

import sys
from typing import Any


def name_of(thing: Any) -> str:
    """Return where a class or function was defined.

    Examples
    --------
    >>> import collections
    >>> name_of(collections.Counter)
    'collections:Counter'
    """
    return f"{thing.__module__}:{thing.__qualname__}"


def find(module: str | None, name: str) -> Any:
    """Return what a module that is loaded has under a dotted name, or None.

    Examples
    --------
    >>> import collections
    >>> find("collections", "Counter.most_common") is collections.Counter.most_common
    True
    >>> find("collections", "Adder.sum") is None
    True
    """
    found: Any = sys.modules.get(module or "")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found
