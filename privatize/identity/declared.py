"""The declared identity of P: what a ledger calls a public distribution, whatever version is installed.

A fingerprint answers "could a stored estimate be stale?", so it holds versions and every detail that code can
read. A ledger asks something else: "is this the P that the earlier answers were about?" The answer must be
the same for a whole team, on every Python and after every update. So a declared identity holds nothing but
the law: a fixed tag for each kind of sampler, its parameters in exact form, and the version of its law, which
is raised if a fix changes the distribution. Functions of the user's own count by the syntax tree of their
source and by the values that they use. What cannot be compared is the same only as this very object.
"""

import contextlib
import hashlib
import json
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
    if id(whole) in _declared:
        return _declared[id(whole)][1]
    encoder = Encoder(_token_of)
    try:
        content = json.dumps(encoder.encode(whole), ensure_ascii=True, separators=(",", ":"))
    except Exception:  # whatever somebody's class does when it is looked at, and nesting without an end
        content, encoder.lossless = json.dumps(encoder.only(whole)), False
    digest = f"P1{encoder.reach}:{hashlib.sha256(content.encode('ascii')).hexdigest()}"
    found = Declared(digest, repr(whole), encoder.lossless)
    if traits_of(whole).stable:  # it never changes, so it is read once
        _keep(_declared, whole, found)
    return found


# By the id of an object, with a reference to it.
_declared: dict[int, tuple[Any, Declared]] = {}
_tokens: dict[int, tuple[Any, str]] = {}


def _keep(known: dict[int, tuple[Any, Any]], value: Any, what: Any) -> None:
    """Note what is known of an object, for as long as it lives."""
    key, reference = id(value), value
    with contextlib.suppress(TypeError):  # what has no weak references is kept alive: its id stays its own
        reference = weakref.ref(value, lambda _: known.pop(key, None))
    known[key] = reference, what


def _token_of(value: Any) -> str:
    """Return a token that this very object has in this process, and no other one."""
    if id(value) not in _tokens:
        _keep(_tokens, value, secrets.token_hex(16))
    return _tokens[id(value)][1]
