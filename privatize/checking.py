"""`privatize check`: every private function of some modules, against the policy."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privatize.decorator import PrivateFunction
from privatize.errors import PrivatizeError
from privatize.policy import lenient, policy

__all__ = ["Finding", "check", "table"]


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
    mark = lenient.set(True)
    try:
        for target in targets:
            for module in _modules(target):
                names.add(module.__name__)
                for name, function in _functions(module):
                    if id(function) not in seen:
                        seen.add(id(function))
                        found.append(_finding(name, function))
    finally:
        lenient.reset(mark)
    listed = {finding.name for finding in found}
    for name in policy().sizes:
        module_name = name.partition(":")[0]
        if name not in listed and (module_name in names or not _exists(module_name)):
            found.append(
                Finding(name, "", ("the policy's n names it, and there is no such private function",))
            )
    return found


def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def _modules(target: str) -> Iterator[types.ModuleType]:
    path = Path(target)
    if path.is_dir():
        for file in sorted(path.rglob("*.py")):
            if not any(part.startswith((".", "__pycache__")) for part in file.parts):
                yield _load(file)
    elif path.suffix == ".py" or path.is_file():
        yield _load(path)
    else:
        if "" not in sys.path:
            sys.path.insert(0, "")
        yield importlib.import_module(target)


def _load(file: Path) -> types.ModuleType:
    """Import a file under the name that it has inside its package."""
    folder, parts = file.resolve().parent, [file.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    name = ".".join(parts).removesuffix(".__init__")
    return importlib.import_module(name)


def _functions(module: types.ModuleType) -> Iterator[tuple[str, PrivateFunction[..., Any]]]:
    for name, value in list(vars(module).items()):
        if isinstance(value, PrivateFunction):
            yield f"{module.__name__}:{name}", value
        elif isinstance(value, type) and value.__module__ == module.__name__:
            for inner, method in list(vars(value).items()):
                if isinstance(method, PrivateFunction):
                    yield f"{module.__name__}:{name}.{inner}", method


def _finding(name: str, function: PrivateFunction[..., Any]) -> Finding:
    settings, rules = function.settings, policy()
    delta = f", delta={settings.delta:g}" if settings.delta else ""
    budget = "" if settings.budget is None else f", budget {getattr(settings.budget, 'name', 'part')!r}"
    kind = type(settings.mechanism).__name__
    promise = f"{kind}, epsilon={settings.epsilon:g}{delta}, gamma={settings.gamma:g}{budget}"
    problems = rules.problems(settings.epsilon, settings.delta, settings.gamma, budget=True)
    for n in rules.sizes.get(name, []):
        try:
            fresh = function.remembers(n)
        except PrivatizeError as error:
            problems.append(f"n={n}: {error}")
            continue
        if not fresh:
            problems.append(f"n={n}: no fresh estimate is remembered; call estimate({n})")
    return Finding(name, promise, tuple(problems))


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
