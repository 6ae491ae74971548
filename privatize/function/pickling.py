"""How private functions are pickled: by name where that finds them, otherwise by value."""

from __future__ import annotations

import sys
from typing import Any

from privatize.execution.packaging.pickler import by_value

__all__ = ["name_of"]


def name_of(function: Any, pickler: str) -> str | None:
    """Return the name that a private function can be pickled by, for the pickler in a module; or None."""
    module, name = function.__module__, getattr(function, "__qualname__", "")
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    # cloudpickle ships __main__ by value, since workers have another one.
    shipped = (module == "__main__" and pickler.startswith("cloudpickle")) or by_value(module)
    return str(name) if found is function and not shipped else None
