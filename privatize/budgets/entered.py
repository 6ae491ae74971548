"""What can be charged, and which budgets the caller has entered by ``with`` blocks."""

import contextvars
from typing import Any, ClassVar, Protocol, Self

from privatize.budgets.charges import Charge


class Chargeable(Protocol):
    """What a release can be charged to."""

    def reserve(self, charge: Charge) -> bool | None:
        """Spend what a release asks for, or raise; tell whether sampled answers came before, if known."""

    def afford(self, charge: Charge) -> None:
        """Raise if there is not enough left; spend nothing."""


_entered: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("budgets", default=())


def current() -> tuple[Any, ...]:
    """Return the budgets of the ``with`` blocks that surround the caller."""
    return _entered.get()


class Entered:
    """The base of budgets and their parts: ``with`` enters them, and no answer depends on them."""

    opaque: ClassVar[bool] = True  # fingerprints do not look inside

    def __enter__(self) -> Self:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        entered = list(_entered.get())
        at = max((i for i, one in enumerate(entered) if one is self), default=None)
        if at is not None:
            del entered[at]
        _entered.set(tuple(entered))

    def __copy__(self) -> Self:
        return self  # from a copy, everything could be spent a second time

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
