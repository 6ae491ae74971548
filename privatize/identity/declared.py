"""The declared identity of P: the name of a public distribution in ledgers, whatever version is installed.

A fingerprint answers "could a stored estimate be stale?", so it has versions and every detail in it that code
can read. A ledger asks something else: "is this the P that the earlier answers were about?" The answer must
be the same for an entire team, on every Python and after every update. So a declared identity contains only
the distribution (its "law"): a fixed tag for each kind of sampler, its parameters in exact form, and the
version of its law, which is raised if a fix changes the distribution. Functions of the user's own are known
by the syntax tree of their source and the values that they use. What cannot be compared equals only itself.
"""

import contextlib
import hashlib
import json
import secrets
import weakref
from dataclasses import dataclass
from typing import Any

from privatize.errors import SettingsError
from privatize.identity.canonical import Encoder
from privatize.samplers.base import origin_of, traits_of
from privatize.samplers.families import Family
from privatize.samplers.foreign import as_sampler


@dataclass(frozen=True)
class Declared:
    """The identity and description of a public distribution in ledgers.

    Attributes
    ----------
    digest : str
        The identity: "P1:" and 64 hexadecimal digits, the same for the same P in every process and version.
        With "P1-bytecode:" it is the same on one minor version of Python only, since a function has no
        source; with "P1-object:" for this object only, since its content cannot be compared.
    description : str
        The sampler as code, for people.
    lossless : bool
        Whether the description determines the law: it has all parameters, and no function or data is part of
        the law. Two samplers with the same lossless description are the same P.
    """

    digest: str
    description: str
    lossless: bool


def declare(sampler: Any) -> Declared:
    """Return the declared identity of a public distribution.

    Columns ``P[...]`` of a table P, ``labelled(P, "y")`` and ``P.fixed(size=...)`` have the identity of P.

    Examples
    --------
    >>> from privatize import samplers
    >>> declare(samplers.uniform(0, 1)) == declare(samplers.uniform(0.0, 1.0))
    True
    >>> declare(samplers.uniform(0, 1)).digest[:11]
    'P1:884ab1e3'
    """
    law = origin_of(as_sampler(sampler))
    if isinstance(law, Family):
        raise SettingsError(f"""{law!r} is a family of P, which has no name in ledgers: each of its members
            has one. Name one P.""")
    if id(law) in _declared:
        return _declared[id(law)][1]
    encoder = Encoder(_token_of)
    try:
        content = json.dumps(encoder.encode(law), ensure_ascii=True, separators=(",", ":"))
    except Exception:  # a user's class may raise anything when it is inspected, and nesting may be endless
        content, encoder.lossless = json.dumps(encoder.only(law)), False
    digest = f"P1{encoder.reach}:{hashlib.sha256(content.encode('ascii')).hexdigest()}"
    found = Declared(digest, repr(law), encoder.lossless)
    if traits_of(law).stable:  # it never changes, so it is encoded once
        _remember(_declared, law, found)
    return found


# By the id of an object, with a reference to it.
_declared: dict[int, tuple[Any, Declared]] = {}
_tokens: dict[int, tuple[Any, str]] = {}


def _remember(known: dict[int, tuple[Any, Any]], value: Any, what: Any) -> None:
    """Remember something about an object, for as long as the object lives."""
    key, reference = id(value), value
    with contextlib.suppress(TypeError):  # an object without weak references is kept alive
        reference = weakref.ref(value, lambda _: known.pop(key, None))
    known[key] = reference, what


def _token_of(value: Any) -> str:
    """Return a random string that stands for this very object in this process."""
    if id(value) not in _tokens:
        _remember(_tokens, value, secrets.token_hex(16))
    return _tokens[id(value)][1]
