"""The declared identity of P: what a ledger calls a public distribution, whatever version is installed.

A fingerprint answers "could a stored estimate be stale?", so it holds versions and every detail that code can
read. A ledger asks something else: "is this the P that the earlier answers were about?" The answer must be
the same for a whole team, on every Python and after every update. So a declared identity holds nothing but
the law: a fixed tag for each kind of sampler, its parameters in exact form, and the version of its law, which
is raised if a fix changes the distribution. Functions of the user's own count by the syntax tree of their
source and by the values that they use. What cannot be compared is the same only as this very object.
"""

import functools
import hashlib
import json
import operator
import secrets
import weakref
from dataclasses import dataclass
from typing import Any

from privatize.identity.canonical import Encoder
from privatize.samplers.base import origin_of, traits_of
from privatize.samplers.foreign import as_sampler


@dataclass(frozen=True)
class Declared:
    """What a ledger knows a public distribution by.

    Attributes
    ----------
    digest : str
        The identity: "P1:" and 64 hexadecimal digits, the same for the same P in every process and version.
        With "P1-bytecode:" it is so for one minor version of Python, since a function has no source; with
        "P1-object:" for this very object only, since it has no content that could be compared.
    description : str
        The sampler as code, for people.
    lossless : bool
        Whether the description determines the law: all parameters are in it, and it is made of no function
        and no data. Two samplers with the same lossless description are the same P.
    """

    digest: str
    description: str
    lossless: bool


def declare(sampler: Any) -> Declared:
    """Return the declared identity of a public distribution.

    Columns ``P[...]`` of a table P, its ``labelled(P, "y")`` and its ``.fixed(size=...)`` are P itself.

    Examples
    --------
    >>> from privatize import samplers
    >>> declare(samplers.uniform(0, 1)) == declare(samplers.uniform(0.0, 1.0))
    True
    >>> declare(samplers.uniform(0, 1)).digest[:11]
    'P1:884ab1e3'
    """
    whole = origin_of(as_sampler(sampler))
    found: Declared | None = _declared.get(whole)
    if found is not None:
        return found
    encoder = Encoder(_token_of)
    try:
        content = json.dumps(encoder.encode(whole), ensure_ascii=True, separators=(",", ":"))
    except Exception:  # whatever somebody's class does when it is looked at, and nesting without an end
        content, encoder.lossless = json.dumps(encoder.only(whole)), False
    digest = f"P1{encoder.reach}:{hashlib.sha256(content.encode('ascii')).hexdigest()}"
    found = Declared(digest, repr(whole), encoder.lossless)
    if traits_of(whole).stable:  # it never changes, so it is read once
        _declared.keep(whole, found)
    return found


class _PerObject:
    """What is known of objects, each by itself, as long as they live."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Any]] = {}  # by id, with a reference to the object

    def get(self, value: Any) -> Any:
        """Return what is known of an object, or None."""
        reference, known = self._known.get(id(value), (None, None))
        return known if reference is not None and reference() is value else None

    def keep(self, value: Any, known: Any) -> None:
        """Note what is known of an object."""
        for key in [key for key, (reference, _) in list(self._known.items()) if reference() is None]:
            self._known.pop(key, None)
        try:
            reference: Any = weakref.ref(value)
        except TypeError:
            reference = functools.partial(operator.getitem, [value], 0)  # kept alive: its id stays its own
        self._known[id(value)] = reference, known


_declared, _tokens = _PerObject(), _PerObject()


def _token_of(value: Any) -> str:
    """Return a token that this very object has in this process, and no other one."""
    if _tokens.get(value) is None:
        _tokens.keep(value, secrets.token_hex(16))
    return str(_tokens.get(value))
