"""A command: its name, its arguments, the function that it runs, and the outcome."""

import argparse
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What a command has found, and its exit code.

    Attributes
    ----------
    text : str
        For people.
    facts : object
        For programs: values that JSON has, and numpy's numbers.
    code : int
        The exit code.
    problems : tuple of str
        Lines for stderr.
    """

    text: str
    facts: Any
    code: int = 0
    problems: tuple[str, ...] = ()


Run = Callable[[argparse.Namespace], Outcome]


class Argument:
    """An argument of a command: what `argparse.ArgumentParser.add_argument` takes."""

    def __init__(self, *names: str, **settings: Any) -> None:
        self.names, self.settings = names, settings


@dataclass(frozen=True)
class Command:
    """A command, or a group of them.

    Attributes
    ----------
    name : str
        The word on the command line.
    about : str
        What it does, as a sentence; after an empty line, how it is used.
    run : callable, optional
        The function to run; a group has none.
    arguments : tuple of Argument
        Its arguments.
    actions : tuple of Command
        The commands of a group.
    interrupted : str
        Added to the message if it is interrupted.
    """

    name: str
    about: str
    run: Run | None = None
    arguments: tuple[Argument, ...] = ()
    actions: "tuple[Command, ...]" = ()
    interrupted: str = ""


def command(name: str, *arguments: Argument, interrupted: str = "") -> Callable[[Run], Command]:
    """Make a command of a function, whose docstring says what it does and how it is used."""
    return lambda run: Command(name, inspect.getdoc(run) or name, run, arguments, (), interrupted)
