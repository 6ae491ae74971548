"""`privatize check`: every private function of some modules, against the policy."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privatize.config.policy import Lenient, lenient, policy
from privatize.errors import PrivatizeError, SettingsError
from privatize.function.private_function import PrivateFunction
from privatize.identity.fingerprint import Unencodable, fingerprint

__all__ = ["Finding", "check", "find", "table"]


@dataclass(frozen=True)
class Finding:
    """A private function, its promise, and what is wrong with it.

    Attributes
    ----------
    name : str
        ``module:function``.
    promise : str
        Mechanism and parameters.
    problems : tuple of str
        What breaks the policy, or is not remembered.
    """

    name: str
    promise: str
    problems: tuple[str, ...]

    @property
    def facts(self) -> dict[str, Any]:
        """The same as plain JSON."""
        return {"function": self.name, "promise": self.promise, "problems": list(self.problems)}


def check(targets: Iterable[str]) -> list[Finding]:
    """Import modules, or files and folders, and look at every private function in them.

    Parameters
    ----------
    targets : iterable of str
        Names of modules, or paths.
    """
    found: list[Finding] = []
    seen: set[int] = set()
    names: set[str] = set()
    listing = Lenient(True)
    before = lenient.set(listing)
    try:
        for target in targets:
            for module in _modules(target):
                names.add(module.__name__)
                for name, function, owner in _functions(module):
                    if id(function) not in seen:
                        seen.add(id(function))
                        found.append(_finding(name, function, owner))
    finally:
        listing.active = False
        lenient.reset(before)
    listed = {finding.name for finding in found}
    for name in policy().sizes:
        module_name = name.partition(":")[0]
        if name not in listed and (module_name in names or not _exists(module_name)):
            found.append(
                Finding(name, "", ("the policy's n names it, and there is no such private function",))
            )
    return found


def find(name: str) -> tuple[str, PrivateFunction[..., Any]]:
    """Import a private function by ``module:function`` or ``folder/file.py:function``.

    Returns its name, as the policy and `check` call it, and the function.
    """
    target, sign, path = name.rpartition(":")
    if not sign or not path or not target:
        raise SettingsError(
            f"{name!r} is not module:function, such as app.stats:average_age or app/stats.py:average_age."
        )
    if Path(target).is_dir() and not _exists(target):
        raise SettingsError(f"{target} is a folder: name one of its files, {target}/file.py:{path}.")
    module = _single(target)
    thing: Any = module
    for part in path.split("."):
        if not hasattr(thing, part):
            raise SettingsError(f"{target} has no {path!r}.{_known(module)}")
        thing = getattr(thing, part)
    if not isinstance(thing, PrivateFunction):
        raise SettingsError(f"{name} is a {type(thing).__name__}, not a private function: decorate it.")
    return _named(thing, f"{module.__name__}:{path}"), thing


def _known(module: types.ModuleType) -> str:
    names = [name.rpartition(":")[2] for name, _, _ in _functions(module)]
    return f" Its private functions: {', '.join(names)}." if names else " It has no private function."


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _modules(target: str) -> Iterator[types.ModuleType]:
    path = Path(target)
    if path.is_dir():
        for file in sorted(path.rglob("*.py")):
            inside = file.relative_to(path).parts
            if not any(part.startswith((".", "__pycache__")) for part in inside):
                yield _guarded(str(file), lambda file=file: _load(file))  # type: ignore[misc]
    else:
        yield _single(target)


def _single(target: str) -> types.ModuleType:
    """Import one module, by its name or its file."""
    path = Path(target)
    if path.suffix == ".py" or path.is_file():
        if not path.is_file():
            raise ImportError(f"{target} cannot be imported: there is no such file.")
        return _guarded(target, lambda: _load(path))
    if "" not in sys.path:
        sys.path.insert(0, "")
    return _guarded(target, lambda: importlib.import_module(target))


def _guarded(target: str, load: Callable[[], types.ModuleType]) -> types.ModuleType:
    try:
        return load()
    except (Exception, SystemExit) as error:  # a module is anybody's code
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
    # Another module has that name: this one gets one of its own.
    # The same in every process, since it is part of the keys of estimates.
    digest = hashlib.sha256(os.fsencode(file)).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(f"{name}__{digest}", file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file.name} is no module.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


_Listed = tuple[str, PrivateFunction[..., Any], type | None]


def _functions(module: types.ModuleType) -> Iterator[_Listed]:
    """Yield the private functions of a module, their names, and the classes that they are methods of."""
    yield from _inside(module.__name__, module, module.__name__, "")


def _inside(module: str, holder: Any, own: str, path: str) -> Iterator[_Listed]:
    for name, value in list(vars(holder).items()):
        plain = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if isinstance(plain, PrivateFunction):
            owner = holder if isinstance(holder, type) else None
            yield _named(plain, f"{module}:{path}{name}"), plain, owner
        elif isinstance(value, type) and value.__module__ == own:
            yield from _inside(module, value, own, f"{path}{name}.")


def _named(function: PrivateFunction[..., Any], found: str) -> str:
    """Return a function's own name, if that leads to it, or else where it was found."""
    module, path = function.__module__, getattr(function, "__qualname__", "")
    thing: Any = sys.modules.get(module)
    for part in path.split("."):
        thing = getattr(thing, part, None)
    return f"{module}:{path}" if thing is function else found


def _finding(name: str, function: PrivateFunction[..., Any], owner: type | None) -> Finding:
    settings, rules = function.settings, policy()
    delta = f", delta={settings.delta:g}" if settings.delta else ""
    budget = "" if settings.budget is None else f", budget {getattr(settings.budget, 'name', 'part')!r}"
    kind = type(settings.mechanism).__name__
    promise = f"{kind}, epsilon={settings.epsilon:g}{delta}, gamma={settings.gamma:g}{budget}"
    problems = rules.problems(settings.epsilon, settings.delta, settings.gamma, budget=True)
    unknown = _unknown(function, owner)
    if unknown:
        problems.append(
            f"its estimates cannot be remembered: it depends on {unknown}, whose content cannot be compared"
        )
    for n in [] if unknown else rules.sizes.get(name, []):
        try:
            fresh = function.remembers(n)
        except PrivatizeError as error:
            problems.append(f"n={n}: {error}")
            continue
        if not fresh:
            problems.append(f"n={n}: no fresh estimate is remembered; call estimate({n})")
    return Finding(name, promise, tuple(problems))


def _unknown(function: PrivateFunction[..., Any], owner: type | None) -> str:
    """Return what keeps a function's estimates from being remembered, also in a method's class, or ""."""
    settings = function.settings
    try:
        fingerprint([function.__wrapped__, settings, owner], version=settings.version)
    except Unencodable as error:
        return str(error)
    except Exception as error:  # whatever somebody's class does when it is looked at
        return f"something that raised {type(error).__name__} when it was inspected"
    return ""


def table(findings: list[Finding]) -> str:
    """Return findings as lines of text."""
    width = max((len(finding.name) for finding in findings), default=0)
    lines = []
    for finding in findings:
        state = "FAILS" if finding.problems else "ok"
        lines.append(f"{state:5s}  {finding.name:<{width}}  {finding.promise}")
        lines += [f"       {'':<{width}}  {problem}" for problem in finding.problems]
    failed = sum(bool(finding.problems) for finding in findings)
    lines.append(f"{len(findings)} private functions, {failed} with problems")
    return "\n".join(lines)
