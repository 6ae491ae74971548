"""Member: a function of a catalogue, as users ask it."""

from __future__ import annotations

import functools
from typing import Any, ClassVar, Protocol

from privatize.display.cards import Card, Shown
from privatize.execution.packaging.pickler import packing
from privatize.function.accuracy import error_of
from privatize.function.advice import INTERNAL
from privatize.function.box import Box
from privatize.function.grid import Choice
from privatize.function.inquiry import Inquiry
from privatize.function.opening import attempted
from privatize.function.pipeline import released
from privatize.function.private_function import PrivateFunction
from privatize.function.recursion import active_guards
from privatize.function.release import Release
from privatize.identity.library import Wrapper

# Attributes that a member sets itself. The user has set all others.
_OWN = frozenset({"_host", "inquiry", "name", "__wrapped__", *functools.WRAPPER_ASSIGNMENTS})


class Host(Protocol):
    """What a member needs of its catalogue."""

    def answer(self, inquiry: Inquiry, box: Box, *, entire: bool) -> Any:
        """Return a release or its value, for the arguments in the box."""

    def sensitivity_of(self, inquiry: Inquiry, choice: Choice) -> Any:
        """Return the declared estimate, or the proven bound, of a question."""


class Member(Shown, Wrapper):
    """A function of a catalogue. Made by `privatize.Catalogue.add`; the raw function is ``__wrapped__``.

    Calling it, with ``epsilon=`` and the declared arguments, returns a private answer.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    inquiry : Inquiry
        The function with its options and declared arguments.
    """

    tag: ClassVar[str] = "PrivateFunction"  # in the keys of estimates, which workers compare

    def __init__(self, host: Host, inquiry: Inquiry) -> None:
        self._host, self.inquiry = host, inquiry
        functools.update_wrapper(self, inquiry.function, updated=())
        self.__wrapped__ = inquiry.function
        self.name = self.__name__ = inquiry.name

    @property
    def questions(self) -> tuple[str, ...]:
        """The labels of its questions, one for each combination of argument values."""
        return tuple(choice.label for choice in self.inquiry.choices)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return a private answer: ``member(epsilon=0.1, **arguments)``."""
        try:  # an interrupt in here must not leave the arguments in this frame
            box = Box()
            box.args, box.kwargs = args, kwargs
        finally:
            del args, kwargs
        if active_guards():  # the function calls itself, or is called by another one: one gets a raw answer
            return released(self.inquiry.private, box, entire=False)
        return self._host.answer(self.inquiry, box, entire=False)

    def release(self, /, *args: Any, **kwargs: Any) -> Release:
        """Return a private answer together with what was promised about it."""
        try:  # an interrupt in here must not leave the arguments in this frame
            box = Box()
            box.args, box.kwargs = args, kwargs
        finally:
            del args, kwargs
        found: Release = self._host.answer(self.inquiry, box, entire=True)
        return found

    def estimate(self, **arguments: Any) -> Any:
        """Return the sensitivity that the noise of a question is calibrated to. Needs no private data."""
        box = Box()
        box.kwargs, arguments = arguments, {}  # by mistake they may be the data, as in a call
        choice, failure = attempted(
            lambda: self.inquiry.grid.choose(box.kwargs), box, self.inquiry.definition.advice, INTERNAL
        )
        box.kwargs = None
        if choice is None:
            raise failure or TypeError
        return self._host.sensitivity_of(self.inquiry, choice)

    def error_at(
        self, *, epsilon: float, delta: float = 0.0, confidence: float = 0.95, **arguments: Any
    ) -> Any:
        """Return how far an answer is from the raw one at most, with a given probability.

        See `privatize.PrivateFunction.error_at`. Needs no private data.
        """
        found = self.estimate(**arguments)
        return error_of(self.inquiry.settings_for(epsilon, delta), found, confidence)

    def sample(self, n: int, *, seed: int | None = None) -> Any:
        """Draw a public dataset of n records from P, to try the raw function with."""
        return self.inquiry.private.sample(n, seed=seed)

    def card(self) -> Card:
        """Return what a person sees of it: its questions, and what their promise rests on."""
        rows = [("mechanism", repr(self.inquiry.settings.mechanism)), ("promise", self.inquiry.promise)]
        made = self.inquiry.settings.constraints
        rows += [] if made is None else [("answers are", f"made valid by {made.words}")]
        title = f"{self.name} of the catalogue {self.inquiry.catalogue}"
        return Card(title, [*rows, ("questions", self._shown())])

    def _shown(self) -> str:
        labels = self.questions
        return ", ".join(labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")

    def __repr__(self) -> str:
        return f"<{self.name} of the catalogue {self.inquiry.catalogue!r}: {self._shown()}>"

    def __copy__(self) -> Member:
        return self  # a member belongs to its catalogue

    def __deepcopy__(self, memo: Any) -> Member:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if not packing():
            raise TypeError(f"""{self.name} belongs to the catalogue {self.inquiry.catalogue!r}, and cannot be
                pickled. Import it from the module that makes the catalogue.""")
        # A worker only needs it where a function calls itself, or refers to the raw function of another one.
        return _sent, (self.inquiry.private, self._given())

    def _identity(self) -> Any:
        return self.__wrapped__, self.inquiry.settings, self._attributes()

    def _runs(self) -> list[Any]:
        return [self.__wrapped__, *self._given().values()]

    def _attributes(self) -> dict[str, Any]:
        return self.inquiry.private._attributes() | self._given()

    def _given(self) -> dict[str, Any]:
        """Return the attributes that the user has set."""
        return {name: value for name, value in vars(self).copy().items() if name not in _OWN}


def _sent(private: PrivateFunction[..., Any], attributes: dict[str, Any]) -> PrivateFunction[..., Any]:
    """Return what stands for a member in a worker."""
    vars(private).update(attributes)
    return private
