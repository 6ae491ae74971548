"""The private function that a command is about: find it by name, read its arguments, write a report on it."""

import argparse
import ast
import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from privatize.budgets.sealed import Sealed, carried
from privatize.cli.command import Argument
from privatize.cli.importing import find, listed
from privatize.cli.showing import one_line
from privatize.errors import ArgumentError, PrivatizeError, SettingsError
from privatize.function.private_function import PrivateFunction
from privatize.reports.page import report


def _workers(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


_NAMED = "a private function: app.stats:mean, app/stats.py:mean, or a method, app.stats:Report.mean"
_DATA = "sealed data whose P and number of records are used, for a function that has no P of its own"
_SET = "another argument of the function; a Python literal, or else a string (may be repeated)"
_WORKERS = "number of processes, 'inline' or 'ray' (default: decided by speed)"
SET = Argument("--set", action="append", default=[], metavar="NAME=VALUE", help=_SET)
REPORT = Argument("--report", metavar="FILE", help="write a page (HTML) as well")
ARGUMENTS = (
    Argument("function", metavar="module:function", help=_NAMED),
    Argument("--data", metavar="module:data", help=_DATA),
    SET,
    Argument("--workers", type=_workers, metavar="W", help=_WORKERS),
    REPORT,
)
_REPORTING = ("audit", "budget", "known")


@dataclass(frozen=True)
class Call:
    """A private function, its name, its other arguments, the file for a report on it, and the data's n."""

    name: str
    function: PrivateFunction[..., Any]
    arguments: dict[str, Any]
    file: str | None
    n: int | None = None

    @classmethod
    def of(cls, given: argparse.Namespace, own: Sequence[str] = ()) -> Self:
        """Find the function; refuse a wrong report file, and arguments that the command has itself."""
        arguments = settings_of(given.set)
        check_file(given.report)
        for name in arguments:
            if name in own or (given.report and name in _REPORTING):
                raise SettingsError(f"""--set {name}=... is ambiguous, because this command has a {name} of
                    its own: set it in Python, with functools.partial.""")
        name, function = find(given.function)
        data = None if given.data is None else find(given.data, Sealed)[1]
        function = _with_p(name, function, given.data, data)
        return cls(name, function, arguments, given.report, None if data is None else data.n)

    def sizes(self, given: Sequence[int]) -> list[int]:
        """Return the numbers of records: those given, or else the data's; refuse wrong ones."""
        for n in given:
            if n < 1:
                raise SettingsError(f"-n {n} is not a number of records: it must be 1 or more.")
        return list(dict.fromkeys(given)) or ([] if self.n is None else [self.n])

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Add the arguments to an error about them; the library leaves them out, for privacy."""
        try:
            yield
        except ArgumentError as error:
            given = ", ".join(f"--set {name}={value!r}" for name, value in self.arguments.items())
            raise ArgumentError(f"""{error} Given:
                {given or "nothing but the number of records (see --set)"}.""") from error

    def write(self, function: PrivateFunction[..., Any], n: Any, facts: Any, **more: Any) -> tuple[str, ...]:
        """Write the report, if one was asked for; return problems, so that results are shown anyway."""
        if self.file is None:
            return ()
        try:
            report(function, n, **more, **self.arguments).save(self.file)
        except (PrivatizeError, OSError) as error:
            return (f"no report was written: {one_line(error)}",)
        facts["report"] = self.file
        return ()


def _with_p(
    name: str, function: PrivateFunction[..., Any], where: str | None, data: Any
) -> PrivateFunction[..., Any]:
    """Return a function with the P of sealed data, if it has none of its own."""
    needs = function.definition.proven is None and function.settings.sampler is None
    if data is None:
        if not needs:
            return function
        module = sys.modules.get(name.partition(":")[0])
        known = [] if module is None else listed(module, Sealed)
        there = [each for each, sealed, _ in known if carried(sealed)[0] is not None]
        raise SettingsError(f"""{name} has no P of its own: its P comes with sealed data. Name that data:
            --data {" or --data ".join(there) or "module:data"}.""")
    if not needs:
        why = "has a P of its own" if function.definition.proven is None else "needs no P"
        raise SettingsError(f"{name} {why}, so the data is not needed. Leave --data {where} out.")
    sampler = carried(data)[0]
    if sampler is None:
        raise SettingsError(f"""--data {where} has no P, and neither has {name}. Seal it with one,
            seal(..., sampler=P), or pass sampler= to privatize().""")
    return function.replace(sampler=sampler)


def settings_of(strings: list[str]) -> dict[str, Any]:
    """Return arguments from strings like ``bins=10``: a value is a Python literal, or else a string.

    Examples
    --------
    >>> settings_of(["bins=10", "edges=[0, 0.5, 1]", "how=fast", "title='10'"])
    {'bins': 10, 'edges': [0, 0.5, 1], 'how': 'fast', 'title': '10'}
    """
    found: dict[str, Any] = {}
    for text in strings:
        name, sign, value = text.partition("=")
        name = name.strip()
        if not sign or not name.isidentifier():
            raise SettingsError(f"--set {text!r} is not name=value, such as --set bins=10.")
        if name in found:
            raise SettingsError(f"--set {name}=... is given twice.")
        try:
            found[name] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            found[name] = value
    return found


def check_file(file: str | None) -> None:
    """Raise, before the work begins, if a report cannot be written to this file."""
    path = Path(file or "report.html")
    if path.is_dir():
        better = path / "report.html"
        raise SettingsError(f"--report {file}: that is a folder. Name a file, such as {better}.")
    if not path.absolute().parent.is_dir():
        raise SettingsError(f"--report {file}: there is no folder {path.parent}.")
