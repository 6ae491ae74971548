"""Find whose code something is: the user's own, an installed package's, Python's, or this library's."""

import builtins
import contextlib
import functools
import importlib.util
import os
import sys
import sysconfig
import types
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

from privatize.identity.library import LIBRARY

_HEAP_TYPE = 1 << 9
_BUILTINS = dict(vars(builtins))
# Packages whose __version__ is that of their distribution.
_SELF_DESCRIBED = {"numpy": "numpy", "scipy": "scipy", "pandas": "pandas", "sklearn": "scikit-learn"}


@functools.cache
def _installed_paths() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def is_installed(file: str) -> bool:
    """Tell whether a file is a package's or the standard library's."""
    # A folder of packages inside the standard library's folder is found in both ways.
    return file.startswith(_installed_paths()) or "site-packages" in file or "dist-packages" in file


@functools.lru_cache(maxsize=4096)
def origin(module: str | None) -> str | None:
    """Return whose code a module is: a name and version, or None for the user's own."""
    if not isinstance(module, str) or not module or module == "__main__":
        return None
    top = module.partition(".")[0]
    if top == LIBRARY:
        return LIBRARY  # the parts of it that matter have their own versions in the estimate's key
    file = _file(sys.modules.get(module))
    if file is None and module not in sys.modules:
        with contextlib.suppress(Exception):  # a module's finder may raise anything
            file = getattr(importlib.util.find_spec(top), "origin", None)
    # The file comes first, because a user's module may have the name of a standard one. An editable install
    # is not in an installed folder. It changes without its version changing, so it is the user's own.
    if isinstance(file, str) and Path(file).is_absolute() and not is_installed(file):
        return None
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return "python"
    version = "?" if file is None else _version(top)
    return None if version == "?" else f"{top} {version}"  # code without a version is encoded by content


def owner_of(thing: Any) -> str | None:
    """Return whose code a function or class is, by the module that it gives."""
    return origin(module_of(thing))


@functools.lru_cache(maxsize=1024)
def _version(top: str) -> str:
    described = attribute_of(sys.modules.get(top), "__version__")
    if top in _SELF_DESCRIBED and isinstance(described, str):
        return described
    from importlib import metadata  # not above, because it takes 30 ms

    try:
        return metadata.version(_SELF_DESCRIBED.get(top, top))  # half a second faster than the mapping below
    except metadata.PackageNotFoundError:
        names = _distributions(tuple((path, _changed(path)) for path in sys.path)).get(top, [])
        return ", ".join(f"{name} {metadata.version(name)}" for name in sorted(set(names))) or "?"


@functools.lru_cache(maxsize=1)
def _distributions(_folders: tuple[tuple[str, float], ...]) -> Mapping[str, list[str]]:
    """Return which distributions have which packages, for these folders as they are: it takes a while."""
    from importlib import metadata

    return metadata.packages_distributions()


def _changed(path: str) -> float:
    with contextlib.suppress(OSError):
        return Path(path).stat().st_mtime
    return 0.0


def _file(module: Any) -> str | None:
    """Return the file of a module; for a package without an ``__init__``, its folder."""
    file = attribute_of(module, "__file__")
    if file is None:
        with contextlib.suppress(Exception):  # a path may be anything
            file = next(iter(attribute_of(module, "__path__") or ()), None)
    return file if isinstance(file, str) else None


def attribute_of(value: Any, name: str) -> Any:
    """Return an attribute, or None if there is none or reading it fails, as in a broken lazy module."""
    try:
        return getattr(value, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException:  # also SystemExit, and whatever test runners raise to skip a test
        return None


def module_of(value: Any) -> str | None:
    """Return the ``__module__`` of a function or class, or None if that is not a string."""
    found = attribute_of(value, "__module__")
    return found if isinstance(found, str) else None


def name_of(module: types.ModuleType) -> str:
    """Return a module's name, even if the module was changed."""
    found = vars(module).get("__name__")
    return found if isinstance(found, str) else "?"


def own_modules() -> dict[str, types.ModuleType]:
    """Return the user's own modules that have been imported, without ``__main__``."""
    found = {}
    for name, module in list(sys.modules.items()):
        # Not isinstance(), which asks the object itself for its class.
        if name in ("__main__", "__mp_main__") or not issubclass(type(module), types.ModuleType):
            continue
        file = _file(module)
        # The file is checked first: `origin` may need a version, which takes long to find.
        if (file is None or not is_installed(file)) and origin(name) is None:
            found[name] = module
    return found


def is_named(thing: Any, module: str | None, qualname: str) -> bool:
    """Tell whether an object is found under its own name, so that the name identifies it."""
    found: Any = sys.modules.get(module or "")
    for part in qualname.split("."):
        found = attribute_of(found, part)
    return found is thing


def is_builtin(name: str) -> bool:
    """Tell whether a name is a builtin of Python's that nobody has replaced."""
    return name in _BUILTINS and vars(builtins).get(name) is _BUILTINS[name]


def is_static(kind: type) -> bool:
    """Tell whether a class was made in C code, so that Python code cannot have made it."""
    return not kind.__flags__ & _HEAP_TYPE


def is_compiled(kind: type) -> bool:
    """Tell whether a class was not written in Python."""
    return is_static(kind) or extension_of(module_of(kind)) is not None


def extension_of(module: str | None) -> str | None:
    """Return the file of a compiled module, or None if the module is not compiled."""
    file = _file(sys.modules.get(module or ""))
    return file if file is not None and file.endswith(tuple(EXTENSION_SUFFIXES)) else None
