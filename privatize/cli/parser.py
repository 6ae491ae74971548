"""The command line: ``privatize``, also ``python -m privatize``."""
# PYTHON_ARGCOMPLETE_OK

from __future__ import annotations

import argparse
import contextlib
import importlib
import os
import sqlite3
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from privatize import __version__
from privatize.cli import doctor, functions, ledgers, plans, stores
from privatize.cli.demonstration import demo
from privatize.cli.showing import Told, as_json, discreet, hide, one_line
from privatize.errors import CalibrationError, PrivatizeError, PrivatizeWarning
from privatize.planning.plan import BOUNDS
from privatize.storage.database import DatabaseError
from privatize.storage.estimates import StoreUnavailable

__all__ = ["main"]

FINE, FAILS, WRONG, INTERRUPTED = 0, 1, 2, 130

_EXIT = """
exit codes:
  0    done, and what was looked at holds
  1    it does not: an audit fails, a check finds problems, a ledger or an estimate is damaged, doctor
       finds something broken, or a function cannot be calibrated
  2    wrong usage, or it could not be done
  130  interrupted
"""


class _Usage(Exception):  # noqa: N818 - a signal to main
    """The command line was not understood."""


class _Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line."""

    def __init__(self, *given: Any, **settings: Any) -> None:
        settings |= {"formatter_class": argparse.RawDescriptionHelpFormatter, "allow_abbrev": False}
        super().__init__(*given, **settings)

    def error(self, message: str) -> NoReturn:
        raise _Usage(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = _parser()
    with contextlib.suppress(ImportError):
        importlib.import_module("argcomplete").autocomplete(parser)
    # Also where the command line was not understood.
    as_facts, debug = "--json" in words, "--debug" in words
    kept = ""
    hide(*words, *(os.environ.get(name, "") for name in ("PRIVATIZE_STORE", "PRIVATIZE_LEDGER")))
    try:
        given, rest = parser.parse_known_args(words)
        if rest:
            given.parser.error(f"unrecognized arguments: {' '.join(rest)}")
        if getattr(given, "run", None) is None:
            if as_facts:
                raise _Usage("a command is missing (see privatize --help)")
            _print(given.parser.format_help())
            return WRONG
        if given.command == "estimate":
            kept = "; where estimates are remembered, the same command goes on from here"
        with _alone(as_facts), _warned():
            told = given.run(given)
    except KeyboardInterrupt:
        return _failed(f"interrupted{kept}", INTERRUPTED, debug, as_facts)
    except BrokenPipeError:
        return _closed()
    except CalibrationError as error:
        return _failed(error, FAILS, debug, as_facts)
    except Exception as error:
        return _failed(error, WRONG, debug, as_facts)
    for problem in told.problems:
        print(f"privatize: {one_line(problem)}", file=sys.stderr)
    text = as_json(told.facts) if as_facts else told.text
    return _print(text, told.code) if text else told.code


def _print(text: str, code: int = FINE) -> int:
    """Print to stdout, whatever it can show, and to nobody if nobody reads it."""
    try:
        try:
            print(text, flush=True)
        except UnicodeEncodeError:
            coding = sys.stdout.encoding or "ascii"
            print(text.encode(coding, "replace").decode(coding), flush=True)
    except BrokenPipeError:
        _closed()
    except OSError as error:  # a full disk
        _closed()
        print(f"privatize: what was found cannot be written: {one_line(error)}", file=sys.stderr)
        return WRONG
    return code


def _closed() -> int:
    """Let the interpreter flush into nothing at its end: whoever was reading has seen enough."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FINE


_SAID = (
    _Usage,
    PrivatizeError,
    DatabaseError,
    StoreUnavailable,
    ValueError,
    ImportError,
    OSError,
    sqlite3.Error,
)


def _failed(error: BaseException | str, code: int, debug: bool, as_facts: bool) -> int:
    """Say in one line what went wrong; before it, where, if that is wanted."""
    said = one_line(error)
    kind = "KeyboardInterrupt" if isinstance(error, str) else type(error).__name__.lstrip("_")
    if not isinstance(error, str) and not isinstance(error, _SAID):
        said = f"{kind}: {said} (--debug shows where)"
    if debug:
        print(discreet(traceback.format_exc().rstrip()), file=sys.stderr)
    print(f"privatize: {said}", file=sys.stderr)
    if as_facts:
        _print(as_json({"error": said, "kind": kind, "code": code}))
    return code


@contextlib.contextmanager
def _alone(wanted: bool) -> Iterator[None]:
    """Keep stdout for the one document: what modules and workers print goes to stderr meanwhile."""
    if not wanted:
        yield
        return
    kept = None
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stdout.flush()
        if sys.stdout.fileno() == 1:
            kept = os.dup(1)
            os.dup2(2, 1)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)


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


# --- what there is ---------------------------------------------------------------------------------


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    hidden: Any = argparse.SUPPRESS  # no default, or that of a command would win over what was said before it
    common.add_argument("--json", action="store_true", default=hidden, help="print one JSON document")
    common.add_argument("--debug", action="store_true", default=hidden, help="show where an error arose")
    parser = _Parser(
        prog="privatize",
        description="Random differentially private answers from any function of a dataset.",
        epilog="example:\n  privatize demo\n" + _EXIT,
        parents=[common],
    )
    parser.add_argument("--version", action="version", version=f"privatize {__version__}")
    parser.set_defaults(run=None, parser=parser)
    commands = parser.add_subparsers(dest="command", metavar="command", parser_class=_Parser)

    def add(to: Any, name: str, run: Callable[[Any], Told] | None, about: str, example: str) -> Any:
        made = to.add_parser(
            name,
            help=about,
            description=about[0].upper() + about[1:] + ".",
            epilog="example:\n" + "\n".join(f"  {line}" for line in example.splitlines()),
            parents=[common],
        )
        made.set_defaults(run=run, parser=made)
        return made

    _demo(add, commands)
    _plan(add, commands)
    _estimate(add, commands)
    _audit(add, commands)
    _check(add, commands)
    _store(add, commands)
    _ledger(add, commands)
    add(
        commands,
        "doctor",
        lambda _: doctor.examined(),
        "look at versions, cores, threads, store, ledger, policy and extras, and say what is broken",
        "privatize doctor\nprivatize doctor --json | jq .broken",
    )
    return parser


def _demo(add: Any, commands: Any) -> None:
    def run(given: argparse.Namespace) -> Told:
        quiet = getattr(given, "json", False)
        say: Callable[[str], object] = str if quiet else lambda text: print(text, flush=True)
        return Told("", demo(given.epsilon, given.gamma, say))

    about = "privatize three functions of made-up people, and explain the numbers"
    made = add(commands, "demo", run, about, "privatize demo --epsilon 0.1")
    made.add_argument("--epsilon", type=float, default=1.0, help="privacy loss (default: 1)")
    made.add_argument("--gamma", type=float, default=0.05, help="confidence of random DP (default: 0.05)")


def _plan(add: Any, commands: Any) -> None:
    made = add(
        commands,
        "plan",
        plans.planned,
        "tell how many pairs of neighbours each bound needs, and how long that takes",
        "privatize plan --gamma 0.05\n"
        "privatize plan --gamma 0.01 --bound tolerance --cost 2s --workers 8\n"
        "privatize plan --m 1000              # which gamma do 1000 pairs support?",
    )
    made.add_argument(
        "--gamma", type=float, help="confidence of random DP: the promise may fail on this share"
    )
    made.add_argument(
        "--m", type=_pairs, metavar="N|least|balanced", help="number of pairs (default: both words)"
    )
    made.add_argument("--bound", choices=BOUNDS, help="one bound only")
    made.add_argument(
        "--cost",
        default="10ms",
        help="time of one run of the function: 0.5, 500us, 10ms, 2s, 1min (default: 10ms)",
    )
    made.add_argument("--workers", type=int, default=1, metavar="W", help="number of cores (default: 1)")


def _pairs(text: str) -> int | str:
    if text in ("least", "balanced"):
        return text
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number of pairs, 'least' or 'balanced'"
        ) from None


def _workers(text: str) -> int | str:
    return int(text) if text.lstrip("-").isdigit() else text


_NAMED = "a private function: app.stats:mean, or app/stats.py:mean"


def _of_a_function(made: Any) -> None:
    named = made.add_argument("function", metavar="module:function", help=_NAMED)
    named.completer = lambda **_: []
    made.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="another argument of the function; a Python literal, or else text (may be given again)",
    )
    made.add_argument(
        "--workers",
        type=_workers,
        metavar="W",
        help="number of processes, 'inline' or 'ray' (default: it decides)",
    )
    made.add_argument("--report", metavar="FILE", help="write a page (HTML) as well")


def _estimate(add: Any, commands: Any) -> None:
    made = add(
        commands,
        "estimate",
        functions.estimated,
        "calibrate a private function ahead of time, and remember it",
        "privatize estimate app.stats:average_age -n 1000 -n 5000\n"
        "privatize estimate app/stats.py:histogram -n 1000 --set bins=10 --report histogram.html",
    )
    _of_a_function(made)
    made.add_argument(
        "-n",
        type=int,
        action="append",
        metavar="N",
        help="number of records (may be given again; default: what the policy names for this function)",
    )


def _audit(add: Any, commands: Any) -> None:
    made = add(
        commands,
        "audit",
        functions.audited,
        "measure whether a private function keeps its promise",
        "privatize audit app.stats:average_age -n 1000 --report audit.html",
    )
    _of_a_function(made)
    made.add_argument("-n", type=int, required=True, metavar="N", help="number of records")
    made.add_argument(
        "--pairs", type=int, help="fresh pairs of neighbours (default: 20/gamma, at least 1000)"
    )
    made.add_argument(
        "--releases", type=int, default=20_000, help="releases on each neighbour (default: 20000)"
    )
    made.add_argument("--confidence", type=float, default=0.99, help="of the verdict (default: 0.99)")
    made.add_argument("--seed", type=int, help="seed of the fresh pairs")


def _check(add: Any, commands: Any) -> None:
    made = add(
        commands,
        "check",
        functions.checked,
        "list private functions, and check them against [tool.privatize] in pyproject.toml",
        "privatize check app/ notebooks/report.py\nprivatize check app.stats",
    )
    made.add_argument("targets", nargs="+", metavar="module-or-path", help="modules, files or folders")


def _group(add: Any, commands: Any, name: str, about: str, example: str) -> Any:
    group = add(commands, name, None, about, example)
    return group.add_subparsers(dest="action", metavar="action", parser_class=_Parser)


def _store(add: Any, commands: Any) -> None:
    group = _group(
        add, commands, "store", "list, show, forget and carry remembered estimates", "privatize store list"
    )

    def act(name: str, run: Any, about: str, example: str) -> Any:
        made = add(group, name, run, about, example)
        made.add_argument(
            "--store",
            metavar="URL",
            help="a path, sqlite:///... or postgresql://... (default: where private functions look)",
        )
        return made

    key = {"metavar": "KEY", "help": "a key, or the beginning of one, as `store list` shows"}
    act("list", stores.listed, "list what is remembered, the newest first", "privatize store list")
    act("show", stores.shown, "show one estimate", "privatize store show 3f9a").add_argument("key", **key)
    forget = act(
        "forget",
        stores.forgot,
        "forget estimates, so that they are made anew",
        "privatize store forget 3f9a 77c1\nprivatize store forget --function app.stats:average_age",
    )
    forget.add_argument("keys", nargs="*", **key)
    forget.add_argument("--function", metavar="NAME", help="all of a function: its name, or module:function")
    forget.add_argument("--all", action="store_true", help="everything in this store")
    made = act(
        "export",
        stores.exported,
        "write estimates to a new file, which is itself a store",
        "privatize store export estimates.db\n"
        "privatize store export --store postgresql://host/db team.db 3f9a",
    )
    made.add_argument("file", metavar="FILE", help="a new file")
    made.add_argument("keys", nargs="*", **(key | {"help": "these only (default: all)"}))
    made = act(
        "import",
        stores.imported,
        "copy estimates from a file; what is there already stays",
        "privatize store import estimates.db",
    )
    made.add_argument("file", metavar="FILE", help="a store, as `store export` writes it")


def _ledger(add: Any, commands: Any) -> None:
    group = _group(
        add, commands, "ledger", "show, verify and export budgets and what was spent", "privatize ledger show"
    )

    def act(name: str, run: Any, about: str, example: str) -> Any:
        made = add(group, name, run, about, example)
        made.add_argument(
            "--ledger",
            metavar="URL",
            help="a path, sqlite:///... or postgresql://... (default: PRIVATIZE_LEDGER, or the policy's)",
        )
        return made

    made = act(
        "show",
        ledgers.shown,
        "show all budgets, or the history of one",
        "privatize ledger show\nprivatize ledger show survey-2026 --ledger ledger.db",
    )
    made.add_argument("name", nargs="?", metavar="NAME", help="a budget")
    made = act(
        "verify",
        ledgers.verified,
        "compute from every charge what was spent, and compare it with what the ledger says",
        "privatize ledger verify --ledger ledger.db",
    )
    made.add_argument("names", nargs="*", metavar="NAME", help="budgets (default: all)")
    made = act(
        "export",
        ledgers.exported,
        "write every charge as CSV or JSON",
        "privatize ledger export --format csv -o charges.csv",
    )
    made.add_argument("name", nargs="?", metavar="NAME", help="a budget (default: all)")
    made.add_argument("--format", choices=("csv", "json"), default="csv", help="of the file (default: csv)")
    made.add_argument("-o", "--output", metavar="FILE", help="a file (default: stdout)")
