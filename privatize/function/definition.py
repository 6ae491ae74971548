"""Definition: what a private function is made of, as one value for those that calibrate and release."""

from __future__ import annotations

import functools
import types
from dataclasses import dataclass, replace
from typing import Any

from privatize.function.advice import Advice
from privatize.function.binding import Binding, Call
from privatize.function.calibrator import Calibrator
from privatize.function.question import Question
from privatize.function.settings import Settings
from privatize.function.template import Template

__all__ = ["Definition"]


@dataclass(frozen=True, eq=False)
class Definition:
    """A raw function with its parameters, a promise, and what calibrates it.

    Attributes
    ----------
    name, label : str
        The function's name, and that with its module.
    advice : Advice
        What is said where a private run ends without an answer.
    binding : Binding
        The raw function, and which of its parameters are the dataset.
    settings : Settings
        What `privatize` was told.
    root : object
        The private function that calls of the function to itself go to.
    calibrator : Calibrator
        Shared with others of the same function.
    """

    name: str
    label: str
    advice: Advice
    binding: Binding
    settings: Settings
    root: Any
    calibrator: Calibrator

    @functools.cached_property
    def template(self) -> Template:
        """What P draws; refused where there is no P."""
        return self.calibrator.template(self.name, self.settings)

    def under(self, sampler: Any) -> Definition:
        """Return the same under the P of sealed data."""
        if sampler is None:
            return self
        return replace(self, settings=self.calibrator.under(self.settings, sampler))

    @functools.cached_property
    def _method(self) -> Binding:
        """The parameters of the function as a method, of whichever object."""
        return Binding.of(types.MethodType(self.binding.function, self), *self._named())

    def _named(self) -> tuple[Any, Any]:
        return self.settings.data, self.settings.coins

    def bound(self, method: Any) -> Definition:
        """Return the same as a method of some object."""
        plain = type(method) is types.MethodType
        binding = self._method.bound(method) if plain else Binding.of(method, *self._named())
        return replace(self, binding=binding)

    def question(self, call: Call, n: int, schema: Any) -> Question:
        """Return the question for the sensitivity on n records."""
        return Question(
            self.name, self.label, self.advice, self.root, self.settings, self.template, call, n, schema
        )
