"""Import users' modules, and find private functions in them: one by its name, or all."""

import hashlib
import importlib
import importlib.util
import operator
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privatize.errors import SettingsError
from privatize.function.private_function import PrivateFunction


def find(name: str) -> tuple[str, PrivateFunction[..., Any]]:
    """Import a private function by ``module:function`` or ``folder/file.py:function``.

    Returns its name, as the policy and `check` call it, and the function.
    """
    target, sign, path = name.rpartition(":")
    if not sign or not path or not target:
        raise SettingsError(f"""{name!r} is not module:function, such as app.stats:average_age or
            app/stats.py:average_age.""")
    if Path(target).is_dir() and not exists(target):
        raise SettingsError(f"{target} is a folder: name one of its files, {target}/file.py:{path}.")
    module = _single(target)
    thing = _inside(module, path)
    if thing is None:
        names = ", ".join(name.rpartition(":")[2] for name, _, _ in functions(module))
        known = f"Its private functions: {names}." if names else "It has no private function."
        raise SettingsError(f"{target} has no {path!r}. {known}")
    if not isinstance(thing, PrivateFunction):
        raise SettingsError(f"{name} is a {type(thing).__name__}, not a private function: decorate it.")
    return _named(thing, f"{module.__name__}:{path}"), thing


def _inside(module: types.ModuleType | None, path: str) -> Any:
    """Return what a module has under a dotted path, or None."""
    try:
        return operator.attrgetter(path)(module)
    except AttributeError:
        return None


def exists(module: str) -> bool:
    """Tell whether there is a module of this name."""
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def modules(target: str) -> Iterator[types.ModuleType]:
    """Yield a module, by its name or its file, or all modules in a folder."""
    path = Path(target)
    if not path.is_dir():
        yield _single(target)
        return
    for file in sorted(path.rglob("*.py")):
        inside = file.relative_to(path).parts
        if not any(part.startswith((".", "__pycache__")) for part in inside):
            yield _single(str(file))


def _single(target: str) -> types.ModuleType:
    """Import one module, by its name or its file."""
    path = Path(target)
    if path.suffix == ".py" and not path.is_file():
        raise ImportError(f"{target} cannot be imported: there is no such file.")
    try:
        if path.is_file():
            return _load(path)
        if "" not in sys.path:
            sys.path.insert(0, "")
        return importlib.import_module(target)
    except (Exception, SystemExit) as error:  # a user's module may raise anything
        raise ImportError(f"{target} cannot be imported: {type(error).__name__}: {error}") from error


def _load(file: Path) -> types.ModuleType:
    """Import a file under the name that it has inside its package."""
    file = file.resolve()
    folder, parts = file.parent, [file.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    name = ".".join(parts).removesuffix(".__init__")
    module = importlib.import_module(name)
    if Path(getattr(module, "__file__", None) or "").resolve() == file:
        return module
    # Another module has that name, so this one gets a name of its own. It must be
    # the same in every process, since it is part of the keys of estimates.
    digest = hashlib.sha256(os.fsencode(file)).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(f"{name}__{digest}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is not a Python module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_Listed = tuple[str, PrivateFunction[..., Any], type | None]


def functions(module: types.ModuleType, holder: type | None = None, path: str = "") -> Iterator[_Listed]:
    """Yield the private functions of a module, their names, and the classes that they are methods of."""
    for name, value in list(vars(module if holder is None else holder).items()):
        inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(inner, PrivateFunction):
            yield _named(inner, f"{module.__name__}:{path}{name}"), inner, holder
        elif isinstance(value, type) and value.__module__ == module.__name__:
            yield from functions(module, value, f"{path}{name}.")


def _named(function: PrivateFunction[..., Any], found: str) -> str:
    """Return a function's own module and name, if they lead to it, or else where it was found."""
    module, path = function.__module__, getattr(function, "__qualname__", function.__name__)
    return f"{module}:{path}" if _inside(sys.modules.get(module), path) is function else found
