"""The command line: ``privatize``, also ``python -m privatize``."""
# PYTHON_ARGCOMPLETE_OK

import argparse
import contextlib
import importlib
import inspect
import os
import sqlite3
import sys
import textwrap
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from privatize import __version__
from privatize.cli import audits, catalogues, checks, demonstration, doctor, estimates, ledgers, plans, stores
from privatize.cli.command import Command
from privatize.cli.showing import as_json, discreet, hide, one_line
from privatize.errors import CalibrationError, PrivatizeError, PrivatizeWarning
from privatize.storage.database import DatabaseError

FINE, FAILS, WRONG, INTERRUPTED = 0, 1, 2, 130

_COMMANDS: tuple[Command, ...] = (demonstration.demo, plans.plans, estimates.estimate, audits.audit)
_COMMANDS += (catalogues.GROUP, checks.check, stores.GROUP, ledgers.GROUP, doctor.doctor)


class _Usage(Exception):  # noqa: N818 - a signal to main
    """The command line was not understood."""


# Errors whose messages are written for users; for all others, the type is shown as well.
_OURS = (_Usage, PrivatizeError, DatabaseError)
_FORESEEN = (*_OURS, sqlite3.Error, ValueError, ImportError, OSError)


class _Parser(argparse.ArgumentParser):
    """A parser of a command, which says in one line what is wrong."""

    def __init__(self, command: Command, prog: str, **settings: Any) -> None:
        about, _, rest = command.about.partition("\n\n")
        examples, _, more = rest.partition("\n\n")
        epilog = f"example:\n{textwrap.indent(examples, '  ')}\n\n{more}"
        settings |= {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        super().__init__(prog=prog, description=about, epilog=epilog, **settings)
        # Without a default, because a command's default would override `privatize --json command`.
        for name, about in (("--json", "print one JSON document"), ("--debug", "show where an error arose")):
            self.add_argument(name, action="store_true", default=argparse.SUPPRESS, help=about)
        for argument in command.arguments:
            self.add_argument(*argument.names, **argument.settings)
        self.set_defaults(run=command.run, parser=self, interrupted=command.interrupted)
        if command.actions:
            kind = "action" if " " in prog else "command"
            group = self.add_subparsers(dest=kind, metavar=kind, parser_class=_Parser)
            for action in command.actions:
                about = action.about.partition(".\n")[0].removesuffix(".")
                group.add_parser(action.name, help=about[0].lower() + about[1:], command=action)

    def error(self, message: str) -> NoReturn:
        raise _Usage(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(Command("privatize", inspect.getdoc(main) or "", actions=_COMMANDS), "privatize")
    parser.add_argument("--version", action="version", version=f"privatize {__version__}")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Random differentially private answers from any function of a dataset.

    privatize demo

    exit codes:
      0    done, and nothing is wrong
      1    something is wrong: an audit fails, a check finds problems, a ledger or an estimate is damaged,
           doctor finds something broken, or a function cannot be calibrated
      2    wrong usage, or the command could not be carried out
      130  interrupted
    """
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    with contextlib.suppress(ImportError):
        importlib.import_module("argcomplete").autocomplete(parser)
    # Read from the words themselves, because these also matter when parsing fails.
    as_facts, debug, hint = "--json" in words, "--debug" in words, ""
    hide(*words, *(os.environ.get(name, "") for name in ("PRIVATIZE_STORE", "PRIVATIZE_LEDGER")))
    try:
        given, rest = parser.parse_known_args(words)
        if rest:
            given.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        if given.run is None:
            if as_facts:
                raise _Usage("a command is missing (see privatize --help)")
            return _print(given.parser.format_help(), WRONG)
        hint = given.interrupted
        with _only_json(as_facts), _warned():
            found = given.run(given)
    except KeyboardInterrupt:
        return _failed(f"interrupted{hint}", INTERRUPTED, debug, as_facts)
    except BrokenPipeError:
        return _closed()
    except Exception as error:
        return _failed(error, FAILS if isinstance(error, CalibrationError) else WRONG, debug, as_facts)
    for problem in found.problems:
        print(f"privatize: {one_line(problem)}", file=sys.stderr)
    return _print(as_json(found.facts) if as_facts else found.text, found.code)


def _print(text: str, code: int = FINE) -> int:
    """Print to stdout; replace characters that it cannot encode, and ignore a closed pipe."""
    coding = sys.stdout.encoding or "utf-8"
    try:
        print(text.encode(coding, "replace").decode(coding), flush=True)
    except BrokenPipeError:
        _closed()
    except OSError as error:  # a full disk
        _closed()
        print(f"privatize: the output cannot be written: {one_line(error)}", file=sys.stderr)
        return WRONG
    return code


def _closed() -> int:
    """Redirect stdout to the null device: its reader has closed it, and Python's last flush would fail."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FINE


def _failed(error: Exception | str, code: int, debug: bool, as_facts: bool) -> int:
    """Print in one line what went wrong, after the traceback if --debug is given; return the code."""
    message = one_line(error)
    kind = "KeyboardInterrupt" if isinstance(error, str) else type(error).__name__.lstrip("_")
    if not isinstance(error, (str, *_FORESEEN)):
        message = f"{kind}: {message} (--debug shows where)"
    if debug:
        print(discreet(traceback.format_exc().rstrip()), file=sys.stderr)
    print(f"privatize: {message}", file=sys.stderr)
    if as_facts:
        _print(as_json({"error": message, "kind": kind, "code": code}))
    return code


@contextlib.contextmanager
def _only_json(wanted: bool) -> Iterator[None]:
    """Keep stdout for the JSON document: what modules and workers print goes to stderr."""
    if not wanted:
        yield
        return
    saved = None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        if sys.stdout.fileno() == 1:
            saved = os.dup(1)
            os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)


@contextlib.contextmanager
def _warned() -> Iterator[None]:
    """Show the library's warnings as lines of their own, each once."""
    seen: set[str] = set()
    with warnings.catch_warnings():
        warnings.simplefilter("always", PrivatizeWarning)
        before = warnings.showwarning

        def show(message: Any, category: Any, *rest: Any, **more: Any) -> None:
            if not issubclass(category, PrivatizeWarning):
                before(message, category, *rest, **more)
            elif str(message) not in seen:
                seen.add(str(message))
                print(f"privatize: warning: {one_line(str(message))}", file=sys.stderr)

        warnings.showwarning = show
        yield
