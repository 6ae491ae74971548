"""Import users' modules, and find what is private in them: one thing by its name, or all of a kind."""

import hashlib
import importlib
import importlib.util
import inspect
import operator
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privatize.budgets.sealed import Sealed
from privatize.config.policy import answering_nothing
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

    Returns its name, as the policy and `check` call it, and the thing itself. A method that is named by its
    class, ``module:Class.method``, is that of an object, which the class makes without arguments.
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
    found, owner = f"{module.__name__}:{path}", _owner(module, path, thing)
    if owner is None:
        return _named(thing, found), thing
    last = path.rpartition(".")[2]
    known = _named(thing, found) if last in vars(owner) else found  # an inherited one is another function
    return known, getattr(_object(owner, name, module), last)


def _owner(module: types.ModuleType, path: str, thing: Any) -> type | None:
    """Return the class of a private method that is bound to no object; None for everything else."""
    head, _, last = path.rpartition(".")
    owner = _inside(module, head) if head else None
    if not isinstance(owner, type) or not isinstance(thing, PrivateFunction):
        return None
    plain = inspect.getattr_static(owner, last, None) is thing  # neither @staticmethod nor @classmethod
    place = getattr(thing, "__qualname__", "").rpartition(".")[0]
    defined = place in (each.__qualname__ for each in owner.__mro__)  # a class may only list functions
    return owner if plain and defined and thing.__get__(object(), owner) is not thing else None


def _object(owner: type, name: str, module: types.ModuleType) -> Any:
    """Make an object of a class, or say what is needed instead."""
    target, _, path = name.rpartition(":")
    last = path.rpartition(".")[2]
    there = [each for each, value in vars(module).items() if isinstance(value, owner)]
    how = f"Make one in the module, thing = {owner.__name__}(...), and pass {target}:thing.{last}."
    if there:
        how = f"Name one that the module has: {' or '.join(f'{target}:{each}.{last}' for each in there)}."
    try:
        parameters = inspect.signature(owner).parameters.values()
    except (TypeError, ValueError):  # a class that does not tell
        parameters = {}.values()
    needed = [
        each.name
        for each in parameters
        if each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if needed:
        raise SettingsError(f"""{name} is a method, so it needs an object, and
            {owner.__name__}({", ".join(needed)}) cannot be made without its arguments. {how}""")
    try:
        return owner()
    except Exception as error:  # a user's class may raise anything
        raise SettingsError(f"""{name} is a method, so it needs an object, and {owner.__name__}() raised
            {type(error).__name__}: {error}. {how}""") from error


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
        with answering_nothing(target):
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
