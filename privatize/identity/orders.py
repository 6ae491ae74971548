"""Find what may depend on the order of a set, which is another one in other processes.

The hashes of strings differ from process to process, unless PYTHONHASHSEED is set, and the hashes of most
objects follow from where they are in memory. In case of doubt an order counts: then some pairs are measured
again in each process, which takes little time.
"""

import dis
import fractions
from decimal import Decimal
from typing import Any

import numpy as np

_FIXED = (int, float, bool, complex, Decimal, fractions.Fraction)
MAKERS = frozenset({"set", "frozenset", "hash", "__hash__", "id", "WeakSet"})
"""Names of what makes sets, or shows hashes or addresses."""
_METHODS = {"union", "intersection", "difference", "symmetric_difference"}
_METHODS |= {f"__{in_place}{name}__" for in_place in ("", "r", "i") for name in ("or", "and", "xor", "sub")}
_NAMES = MAKERS | _METHODS
_BY_STRING = {"getattr", "attrgetter", "methodcaller", "eval", "exec", "globals", "vars", "__builtins__"}
_VIEWS = {"keys", "items"}  # operators on these make sets
_OPERATORS = {"&", "|", "^", "-", "&=", "|=", "^=", "-="}
_OPERATORS |= {"or_", "and_", "xor", "sub", "ior", "iand", "ixor", "isub"}  # in the module operator


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

    Looking something up in a set that is made for it alone, ``x in {"a", "b"}``, does not.
    """
    named = {each.argval for each in found if isinstance(each.argval, str) and not _is_constant(each)}
    if named & _BY_STRING:
        named |= {each.argval for each in found if isinstance(each.argval, str)}
    if named & _NAMES:
        return True
    operators = named.union(each.argrepr for each in found) & _OPERATORS
    return bool(named & _VIEWS and operators) or any(_makes_set(found, at) for at in range(len(found)))


def _is_constant(instruction: dis.Instruction) -> bool:
    return instruction.opcode in dis.hasconst


def _makes_set(found: list[dis.Instruction], at: int) -> bool:
    """Tell whether an instruction makes a set whose order may be another one elsewhere, or that may grow."""
    this, following = found[at], found[at + 1].opname if at + 1 < len(found) else ""
    if following == "CONTAINS_OP":
        return False
    if isinstance(this.argval, frozenset):  # a constant, which cannot grow
        return not all(map(is_fixed, this.argval)) and following != "SET_UPDATE"  # BUILD_SET counts there
    return this.opname == "BUILD_SET"
