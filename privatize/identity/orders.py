"""Find what may depend on the order of a set, which is another one in other processes.

The hashes of strings differ from process to process, unless PYTHONHASHSEED is set, and the hashes of most
objects follow from where they are in memory.
"""

import dis
import fractions
from decimal import Decimal
from typing import Any

import numpy as np

_FIXED = (int, float, bool, complex, Decimal, fractions.Fraction)
_MAKERS = {"set", "frozenset", "hash", "__hash__"}
_VIEWS = {"keys", "items"}  # operators on these make sets
_OPERATORS = {"&", "|", "^", "-", "&=", "|=", "^=", "-="}


def is_fixed(item: Any) -> bool:
    """Tell whether the hash of an item is the same in every process.

    Examples
    --------
    >>> is_fixed((1, 2.5)), is_fixed("a"), is_fixed(None)
    (True, False, False)
    """
    kind = type(item)
    if kind is tuple:
        return all(map(is_fixed, item))
    return kind in _FIXED or (kind.__module__ == "numpy" and isinstance(item, np.number | np.bool_))


def uses_order(found: list[dis.Instruction]) -> bool:
    """Tell whether code, without what does nothing, may depend on the order of a set or on a hash.

    Looking something up in a constant set, ``x in {"a", "b"}``, does not.
    """
    names = {each.argval for each in found if isinstance(each.argval, str)}
    if names & _MAKERS:
        return True
    views = bool(names & _VIEWS)
    return any(
        _makes_set(found, at) or (views and found[at].argrepr in _OPERATORS) for at in range(len(found))
    )


def _makes_set(found: list[dis.Instruction], at: int) -> bool:
    """Tell whether an instruction makes a set, or loads one, whose order may be another one elsewhere."""
    this = found[at]
    if isinstance(this.argval, frozenset):  # a constant
        following = found[at + 1].opname if at + 1 < len(found) else ""
        return not all(map(is_fixed, this.argval)) and following != "CONTAINS_OP"
    if this.opname == "BUILD_SET":
        items = found[max(0, at - (this.arg or 0)) : at]
        loaded = (each.opcode in dis.hasconst or each.opname == "LOAD_SMALL_INT" for each in items)
        return not (all(loaded) and all(is_fixed(each.argval) for each in items))
    if this.opname == "SET_UPDATE":  # with a constant, which was looked at by itself
        return not isinstance(found[at - 1].argval, frozenset)
    return this.opname == "SET_ADD"
