"""Import users' modules, and find what is private in them: one thing by its name, or all of a kind."""

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

from privatize.budgets.sealed import Sealed
from privatize.errors import SettingsError
from privatize.function.catalogue import Catalogue
from privatize.function.private_function import PrivateFunction

# What is looked for, what a person calls it, and what to do if something else is found.
_NOUNS: dict[type, tuple[str, str]] = {
    PrivateFunction: ("private function", "decorate it"),
    Catalogue: ("catalogue", "make one with Catalogue(...)"),
    Sealed: ("sealed dataset", "seal it, seal(data, name=...)"),
}


def find(name: str, kind: type = PrivateFunction) -> tuple[str, Any]:
    """Import a private function, a catalogue or sealed data by ``module:name`` or ``folder/file.py:name``.

    Returns its name, as the policy and `check` call it, and the thing itself.
    """
    noun, remedy = _NOUNS[kind]
    target, sign, path = name.rpartition(":")
    if not sign or not path or not target:
        word = "function" if kind is PrivateFunction else "name"
        example = "average_age" if kind is PrivateFunction else "survey"
        raise SettingsError(f"""{name!r} is not module:{word}, such as app.stats:{example} or
            app/stats.py:{example}.""")
    if Path(target).is_dir() and not exists(target):
        raise SettingsError(f"{target} is a folder: name one of its files, {target}/file.py:{path}.")
    module = _single(target)
    thing = _inside(module, path)
    if thing is None:
        names = ", ".join(name.rpartition(":")[2] for name, _, _ in listed(module, kind))
        known = f"Its {noun}s: {names}." if names else f"It has no {noun}."
        raise SettingsError(f"{target} has no {path!r}. {known}")
    if not isinstance(thing, kind):
        raise SettingsError(f"{name} is a {type(thing).__name__}, not a {noun}: {remedy}.")
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


_Listed = tuple[str, Any, type | None]


def listed(
    module: types.ModuleType, kind: type = PrivateFunction, holder: type | None = None, path: str = ""
) -> Iterator[_Listed]:
    """Yield what a module has of a kind, the names, and the classes that private functions are methods of."""
    for name, value in list(vars(module if holder is None else holder).items()):
        inner = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(inner, kind):
            yield _named(inner, f"{module.__name__}:{path}{name}"), inner, holder
        elif isinstance(value, type) and value.__module__ == module.__name__:
            yield from listed(module, kind, value, f"{path}{name}.")


def _named(thing: Any, found: str) -> str:
    """Return a function's own module and name, if they lead to it, or else where it was found."""
    if not isinstance(thing, PrivateFunction):
        return found
    module, path = thing.__module__, getattr(thing, "__qualname__", thing.__name__)
    return f"{module}:{path}" if _inside(sys.modules.get(module), path) is thing else found
