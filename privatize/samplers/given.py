"""A support that a user gave for what a function of theirs draws."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.data import records
from privatize.data import support as domains
from privatize.errors import SamplerError
from privatize.samplers.parameters import Frozen, box


@dataclass(frozen=True, repr=False)
class Support:
    """A support that a user gave, checked, and comparable by content."""

    kind: str
    inside: tuple[Any, ...]

    @classmethod
    def of(cls, given: Any) -> "Support | None":
        """Read what a user wrote; None means that there is no support."""
        if given is None or isinstance(given, Support):
            return given
        if isinstance(given, domains.Maybe):
            return cls("maybe", (cls.of(given.inner),))
        if isinstance(given, domains.OneOf):
            if given.unknown not in given.values:
                raise SamplerError(f"support={given!r}: unknown= must be one of the values.")
            # 1 == True == 1.0, but they are different values: their types are compared too.
            return cls("values", (given, *(type(value).__name__ for value in (*given.values, given.unknown))))
        if isinstance(given, dict):
            return cls("columns", tuple((name, cls.of(inner)) for name, inner in given.items()))
        if isinstance(given, list):
            if not given or len(set(map(repr, given))) < len(given):
                what = "they must be different" if given else "there are no values"
                raise SamplerError(f"support={given!r}: {what}.")
            return cls.of(domains.OneOf(tuple(given), given[0]))
        return cls._of_two(given)

    @classmethod
    def _of_two(cls, given: Any) -> "Support":
        """Read a pair of bounds, or the supports of two aligned parts."""
        try:
            low, high = given
        except (TypeError, ValueError):
            raise SamplerError(f"""support={given!r} is not a pair (low, high), a list of values, or a dict of
                these.""") from None
        nested = (tuple, list, dict, domains.OneOf, domains.Maybe, type(None))
        both_lists = isinstance(low, list) and isinstance(high, list)
        if isinstance(low, nested) and isinstance(high, nested) and not both_lists:
            return cls("parts", (cls.of(low), cls.of(high)))
        if isinstance(low, np.datetime64) and isinstance(high, np.datetime64):
            if not low < high:
                raise SamplerError(f"""support: the lower bound {low!r} must be below the upper bound
                    {high!r}.""")
            return cls("moments", (low, high))
        return cls("bounds", tuple(map(Frozen, box("support", low, high, None))))

    @property
    def value(self) -> Any:
        """The support in the form that samplers have: tuples, dicts, `OneOf` and `Maybe`."""
        if self.kind == "bounds":
            return tuple(end.end for end in self.inside)
        if self.kind == "columns":
            return {name: value_of(inner) for name, inner in self.inside}
        if self.kind == "parts":
            return tuple(map(value_of, self.inside))
        if self.kind == "maybe":
            return domains.Maybe(value_of(self.inside[0]))
        return self.inside[0] if self.kind == "values" else self.inside

    def __repr__(self) -> str:
        if self.kind == "bounds":
            ends = (repr(end) if end.shape or np.isfinite(end.array) else str(end.end) for end in self.inside)
            return f"({', '.join(ends)})"
        if self.kind == "columns":
            return f"{{{', '.join(f'{name!r}: {inner!r}' for name, inner in self.inside)}}}"
        if self.kind == "maybe":
            return f"Maybe({self.inside[0]!r})"
        if self.kind == "values":
            found = self.inside[0]
            return repr(list(found.values)) if found.unknown == found.values[0] else repr(found)
        return repr(self.inside)


def value_of(given: Support | None) -> Any:
    """Return a support in the form that samplers have, or None."""
    return None if given is None else given.value


def show_support(given: Support | None) -> str:
    """Return a support as one more argument, in code."""
    return "" if given is None else f", support={given!r}"


def inside(drawn: Any, given: Support | None) -> Any:
    """Return drawn records converted to the support that a user gave, so that P lies in it."""
    if given is None:
        return drawn
    support = given.value
    try:
        return records.convert(drawn, drawn, support)
    except (ValueError, TypeError) as error:
        raise SamplerError(f"The support={support!r} does not fit what is drawn: {error}.") from None
