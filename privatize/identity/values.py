"""Encode numbers, strings, containers and arrays."""

import fractions
import hashlib
import marshal
from collections.abc import Collection
from decimal import Decimal
from typing import Any

import numpy as np

from privatize.identity.bytecode import words
from privatize.identity.completion import complete
from privatize.identity.copies import FEW
from privatize.identity.encoder import Encoder, encodes
from privatize.identity.graph import ATOMS

_FLAGS = words("flags writeable setflags __array_interface__")
_FIXED = (int, float, bool, complex, Decimal, fractions.Fraction)


@encodes(type(None), bool, type(...), int, float, complex)
def _atom(encoder: Encoder, value: Any) -> None:
    encoder.parts.append(b"m" + marshal.dumps(value, 2))  # with the type, and every bit of a float


encodes(str)(Encoder.string)


@encodes(bytes)
def _bytes(encoder: Encoder, value: bytes) -> None:
    encoder.parts.append(b"b")
    encoder.add(value)
    if len(value) >= FEW:
        encoder.compare(value)


@encodes(tuple)
def sequence(encoder: Encoder, value: tuple[Any, ...]) -> None:
    """Encode a tuple."""
    encoder.parts.append(b"(%d;" % len(value))
    if len(value) >= FEW:
        encoder.compare(value)
    for item in value:
        encoder.encode(item)


@encodes(list)
def _list(encoder: Encoder, value: list[Any]) -> None:
    if not encoder.seen_before(value):
        encoder.parts.append(b"[%d;" % len(value))
        for item in value:
            encoder.encode(item)


@encodes(dict)
def mapping(encoder: Encoder, value: dict[Any, Any]) -> None:
    """Encode a dict in its order, which a function that walks over it sees."""
    if not encoder.seen_before(value):
        encoder.parts.append(b"{%d;" % len(value))
        for key, item in value.items():
            encoder.encode(key)
            if isinstance(key, str):
                encoder.named(f"[{key!r}]", item)
            else:
                encoder.encode(item)


def _walk_inside(encoder: Encoder) -> Encoder:
    return Encoder(encoder.version, encoder.private, encoder.narrow, compared=encoder.compared)


def _meets_nothing(item: Any) -> bool:
    """Tell whether an item is an atom that cannot name anything; a string with an "@" may."""
    return type(item) in ATOMS and not (type(item) is str and "@" in item)


def unordered(encoder: Encoder, value: Collection[Any]) -> list[str]:
    """Encode a collection whose order does not count; return the digests of its items in its order."""
    encoder.compare(value)
    digests, shared, ending = [], None, []
    for item in value:
        if not _meets_nothing(item):
            inner = _walk_inside(encoder)
            inner.encode(item)
            complete(inner)
            encoder.met.merge(inner.met)
        else:
            if shared is None:  # what completes one such walk completes all of them
                shared = _walk_inside(encoder)
                complete(shared)
                ending = shared.parts
            inner = shared
            inner.parts = []
            inner.encode(item)
            inner.parts += ending
        digests.append(inner.digest())
    encoder.text(type(value).__name__)
    encoder.text("".join(sorted(digests)))
    return digests


def is_fixed(item: Any) -> bool:
    """Tell whether the hash of an item is the same in every process.

    The hashes of strings are not, and those of most objects follow from where they are in memory.

    Examples
    --------
    >>> is_fixed((1, 2.5)), is_fixed("a"), is_fixed(None)
    (True, False, False)
    """
    kind = type(item)
    if kind is tuple:
        return all(map(is_fixed, item))
    return kind in _FIXED or (kind.__module__ == "numpy" and isinstance(item, np.number | np.bool_))


@encodes(set, frozenset)
def _set(encoder: Encoder, value: Collection[Any]) -> None:
    digests = unordered(encoder, value)
    if all(map(is_fixed, value)):  # their order is the same in every process
        sequence(encoder, tuple(value))
    elif len(digests) > 1:
        encoder.met.orders.add(hashlib.sha256("".join(digests).encode()).hexdigest())


@encodes(np.ndarray)
def array(encoder: Encoder, value: Any) -> None:
    """Encode an array: its content, and its order in memory, which decides the order of summation."""
    encoder.compare(value)
    if not encoder.narrow:  # a copy in another process has flags of its own
        encoder.met.later.add((_FLAGS, lambda: f"writeable={value.flags.writeable}"))
    if value.dtype.hasobject:
        if not encoder.seen_before(value):
            encoder.text(f"array {value.dtype!r} {value.shape}")
            for item in value.ravel().tolist():
                encoder.encode(item)
        return
    layout = "C" if value.flags.c_contiguous else "F" if value.flags.f_contiguous else "?"
    if value.dtype.metadata:
        encoder.encode(dict(value.dtype.metadata))
    encoder.text(f"array {value.dtype!r} {value.dtype.str} {value.shape} {layout}")
    encoder.add(value.tobytes())


def scalar(encoder: Encoder, value: Any) -> None:
    """Encode a numpy scalar."""
    encoder.text("scalar")
    array(encoder, np.asarray(value))
