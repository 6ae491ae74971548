"""The questions that a member of a catalogue asks: one for each combination of public argument values."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.budgets.sealed import hidden_in
from privatize.errors import ArgumentError, SettingsError
from privatize.function.binding import Binding
from privatize.function.settings import did_you_mean
from privatize.identity.fingerprint import identity_of

_PLAIN = (bool, int, float, str, type(None), np.generic)
_LONGEST = 60


@dataclass(frozen=True, eq=False)
class Choice:
    """One combination of argument values.

    Attributes
    ----------
    label : str
        The member's name and the arguments, as in ``share_above(limit=20000)``.
    arguments : dict
        The values, by parameter.
    """

    label: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Grid:
    """The declared values of a member's parameters.

    Attributes
    ----------
    name : str
        The member's name.
    values : dict
        For each parameter, its values.
    choices : tuple of Choice
        All combinations, in order.
    defaults : dict
        The function's own default values of these parameters.
    """

    name: str
    values: Mapping[str, list[Any]]
    choices: tuple[Choice, ...]
    defaults: Mapping[str, Any]

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any], binding: Binding) -> Grid:
        """Check the values that were given for each parameter, and combine them."""
        signature = binding.signature
        known = [each for each in signature.parameters if each not in (*binding.names, *binding.coins)]
        keywords = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
        for parameter in given:
            if parameter not in known and not keywords:
                raise SettingsError(f"""add({parameter}=...): {name}{signature} has no other parameter
                    {parameter!r}. It has {", ".join(known) or "none but its dataset"}.""")
        values = {parameter: _listed(name, parameter, each) for parameter, each in given.items()}
        defaults = {each: signature.parameters[each].default for each in values if each in known}
        return cls(name, values, _combined(name, values), defaults)

    def choose(self, given: Mapping[str, Any]) -> Choice:
        """Return the question with these arguments; refuse what was not declared."""
        known = ["epsilon", "delta", *self.values]
        for parameter, value in given.items():
            if parameter not in self.values:
                raise ArgumentError(f"""{self.name}() was asked with {parameter}=, of which no values were
                    declared.{did_you_mean(parameter, known)} {self._declared()}""")
            if not any(same(value, each) for each in self.values[parameter]):
                raise ArgumentError(f"""{self.name}() was asked with {parameter}={_shown(value)}, which was
                    not declared. {self._declared()} For others declare another catalogue, before any
                    answer.""")
        found = self._matching(given)
        if len(found) > 1:  # a parameter that is left out has the function's own default, if it was declared
            found = self._matching({**self.defaults, **given})
        if len(found) != 1:
            left = [parameter for parameter in self.values if parameter not in given]
            raise ArgumentError(f"""{self.name}() was asked without {", ".join(f"{each}=" for each in left)}.
                {self._declared()}""")
        return found[0]

    def _matching(self, given: Mapping[str, Any]) -> list[Choice]:
        return [
            choice
            for choice in self.choices
            if all(same(choice.arguments[parameter], value) for parameter, value in given.items())
        ]

    def _declared(self) -> str:
        """Say which values were declared."""
        if not self.values:
            return "It takes no arguments but epsilon and delta."
        shown = "; ".join(
            f"{parameter} is one of {', '.join(map(_shown, values))}"
            for parameter, values in self.values.items()
        )
        return f"In this catalogue {shown}."


def labelled(name: str, arguments: Mapping[str, Any]) -> str:
    """Return the name of a question.

    Examples
    --------
    >>> labelled("share_above", {"limit": 20000}), labelled("mean", {})
    ('share_above(limit=20000)', 'mean')
    """
    inside = ", ".join(f"{parameter}={_shown(value)}" for parameter, value in arguments.items())
    return f"{name}({inside})" if inside else name


def _combined(name: str, values: Mapping[str, list[Any]]) -> tuple[Choice, ...]:
    """Return all combinations of values; refuse two that would have the same name."""
    every = [dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())]
    labels = [labelled(name, arguments) for arguments in every]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise SettingsError(f"""{twice[0]} would be the name of {labels.count(twice[0])} questions, because
            their values are shown in the same way. Give values with names of their own, such as strings, and
            look the long ones up inside the function.""")
    return tuple(map(Choice, labels, every))


def same(one: Any, other: Any) -> bool:
    """Tell whether two argument values are the same: equal numbers and strings, or equal content."""
    if isinstance(one, _PLAIN) and isinstance(other, _PLAIN):
        return bool(one == other)
    if one is inspect.Parameter.empty or type(one) is not type(other):
        return False
    found = identity_of(one)
    return found is not None and found == identity_of(other)


def _shown(value: Any) -> str:
    """Return a public value as a short string; of what is no number or string, by mistake data, the type."""
    if isinstance(value, list | tuple) and len(value) <= 8 and all(isinstance(v, _PLAIN) for v in value):
        inside = ", ".join(map(_shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if not isinstance(value, _PLAIN):
        name = getattr(value, "__name__", None) if callable(value) else None
        return name if isinstance(name, str) else f"a {type(value).__name__}"
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _listed(name: str, parameter: str, values: Any) -> list[Any]:
    """Return the declared values of a parameter as a list of different, public values."""
    if isinstance(values, np.ndarray) and values.ndim == 1:
        values = values.tolist()
    if not isinstance(values, list | tuple | range):
        raise SettingsError(f"""add({parameter}={_shown(values)}): the values of {parameter!r} that
            {name}() may be asked with are a list, such as {parameter}=[{_shown(values)}]. Each of them is a
            question.""")
    listed = list(values)
    if not listed:
        raise SettingsError(f"""add({parameter}=[]) has no values of {parameter!r}, so there is no question to
            ask. Give one at least, or leave it out.""")
    if hidden_in(listed):
        raise SettingsError(f"""add({parameter}=...) has sealed data among the values of {parameter!r}, and
            arguments are public. Only the dataset is private: catalogue it as people.""")
    for at, value in enumerate(listed):
        if any(same(value, other) for other in listed[:at]):
            raise SettingsError(f"""add({parameter}=...) has {_shown(value)} twice: each value is a question
                of its own. Name it once.""")
    return listed
