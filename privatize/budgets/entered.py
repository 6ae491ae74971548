"""What is charged: by name, or by a ``with`` block around the caller."""

import contextvars
from typing import Any, ClassVar, Protocol, Self

from privatize.budgets.charges import Charge


class Chargeable(Protocol):
    """What a release can be charged to."""

    def reserve(self, charge: Charge) -> None:
        """Spend what a release asks for, or raise."""

    def afford(self, charge: Charge) -> None:
        """Raise if there is not enough left; spend nothing."""


_entered: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("budgets", default=())


def current() -> tuple[Any, ...]:
    """Return the budgets of the ``with`` blocks that surround the caller."""
    return _entered.get()


class Entered:
    """What a budget and a part of one have in common: ``with``, and that no answer depends on them."""

    opaque: ClassVar[bool] = True  # to fingerprints

    def __enter__(self) -> Self:
        _entered.set((*_entered.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        inside = list(_entered.get())
        at = max((i for i, one in enumerate(inside) if one is self), default=None)
        if at is not None:
            del inside[at]
        _entered.set(tuple(inside))

    def __copy__(self) -> Self:
        return self  # a copy would be another purse, and spent twice

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
