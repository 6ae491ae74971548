"""Compute the fingerprint of a function, a sampler or an argument.

A fingerprint is the SHA-256 of a canonical encoding, with types, of everything that could change what a
function computes. It is the same in every process, for every hash seed, and on every machine with the same
versions. It differs whenever anything changes that is encoded. The user's own functions, classes and modules
are encoded by content, recursively; installed code by name and version; values by content. What cannot be
encoded raises `Unencodable`. Then nothing is remembered, because a stale estimate would cost privacy. The
order of a set of strings differs between processes. It is not encoded, but noted: see `orders`.

Not encoded are: installed code that was patched where the user's code does not name it, state inside compiled
code, settings of most libraries, environment variables with computed names, files, databases, the network,
the clock.
"""

import functools
import importlib.util
import sys
import warnings
from typing import Any, NamedTuple

from privatize.errors import NotRememberedWarning
from privatize.identity import objects  # importing it registers how all types are encoded
from privatize.identity.completion import complete, wanted_from
from privatize.identity.encoder import Encoder, PrivateReachable, Read, Unencodable
from privatize.identity.library import LIBRARY, outside
from privatize.identity.origin import name_of
from privatize.identity.reachable import Private
from privatize.identity.settings import pandas_options

VERSION = 5
"""Version of the encoding; part of every fingerprint."""

del objects


@functools.cache
def _header() -> bytes:
    # The magic number changes with the bytecode, so patch versions need not count.
    magic = importlib.util.MAGIC_NUMBER.hex()
    name = "CPython" if sys.implementation.name == "cpython" else sys.implementation.name
    python = f"{name} {sys.version_info[:2]} {magic} {sys.byteorder}"
    return f"{LIBRARY} fingerprint {VERSION}, {python}".encode()


def _encode(encoder: Encoder, value: Any) -> str:
    encoder.add(_header())
    encoder.encode(encoder.version)
    encoder.encode(value)
    complete(encoder)
    encoder.encode(pandas_options())
    return encoder.digest()


def fingerprint(
    value: Any,
    *,
    version: str | None = None,
    private: Private | None = None,
    read: Read | None = None,
    orders: set[str] | None = None,
) -> str:
    """Return the identity of a value: 64 hexadecimal digits.

    Parameters
    ----------
    value : object
        A function, or any nesting of functions, arguments and containers.
    version : str, optional
        Attests what cannot be encoded, which then counts by its type.
    private : Private, optional
        Data that must not be reachable from the value.
    read : dict, optional
        Is filled with the value in every place that was read, by the id of its owner and its name.
    orders : set of str, optional
        Is filled with the orders of sets, where they may be others in another process. Two values with the
        same fingerprint and other orders are the same only if nothing depends on the orders.

    Raises
    ------
    Unencodable
        If something has no content that can be encoded, and no version attests it.
    PrivateReachable
        If some of the private data can be reached from the value.

    Examples
    --------
    >>> def scaled(factor): return lambda x: factor * x
    >>> fingerprint(scaled(1)) == fingerprint(scaled(1)) != fingerprint(scaled(2))
    True
    """
    encoder = Encoder(version, private, read=read)
    found = _encode(encoder, value)
    if orders is not None:
        orders |= encoder.met.orders
    return found


class Reach(NamedTuple):
    """What another process needs in order to use a value.

    Attributes
    ----------
    digest : str
        A fingerprint.
    modules : dict
        The user's own modules that are used, and the attributes that code reads from them.
    owners : set of str
        The user's own modules whose functions and classes are used.
    lookups : set of str
        Names in the code that look things up at run time (``globals``, ``vars``, ``eval``), so that it is
        not known what they find.
    opaque : set of str
        Classes of the budgets, ledgers, catalogues and sealed data that it can reach.
    libraries : set of str
        The installed libraries that code names.
    """

    digest: str
    modules: dict[str, set[str]]
    owners: set[str]
    lookups: set[str]
    opaque: set[str]
    libraries: set[str]


def reach(value: Any, *, version: str | None = None) -> Reach:
    """Return what another process needs in order to use a value.

    Unlike `fingerprint`, which takes every attribute that is named anywhere from every module
    that is used, this takes an attribute only from the module that it is read from.

    Examples
    --------
    >>> reach(abs).modules
    {}
    """
    encoder = Encoder(version, narrow=True)
    digest, met = _encode(encoder, value), encoder.met
    wanted = {name_of(module): wanted_from(encoder, module) for module in met.modules.values()}
    return Reach(digest, wanted, met.owners, met.lookups, met.opaque, met.libraries)


def token(value: Any, label: str, *, private: Private | None = None, **options: Any) -> str | None:
    """Return the fingerprint of a value; if it has none, warn and return None.

    Examples
    --------
    >>> token([1, "a"], "f") == token([1, "a"], "f") != token([2, "a"], "f")
    True
    """
    found, what = attempt(value, private=private, **options)
    if found is not None:
        return found
    if private is not None:  # the walk ended early: search the rest for private data
        identity_of(value, version="", private=private)
    warnings.warn(
        f"The estimate for {label}() will not be remembered, so every call calibrates again: it depends on "
        f"{what}, whose content cannot be compared. Keep open files, connections, generators and the "
        f"like out of its arguments, closure and globals, or describe them with version=.",
        NotRememberedWarning,
        stacklevel=outside(),
    )
    return None


def identity_of(value: Any, **options: Any) -> str | None:
    """Return the fingerprint of a value, or None if it has no content that could be compared.

    Raise `PrivateReachable` if private data is met; ``version=""`` goes on after what cannot be compared.
    """
    return attempt(value, **options)[0]


def attempt(value: Any, **options: Any) -> tuple[str | None, str]:
    """Return the fingerprint of a value, or None and what cannot be compared."""
    try:
        return fingerprint(value, **options), ""
    except PrivateReachable:
        raise
    except Unencodable as error:
        return None, str(error)
    except Exception as error:  # a user's class may raise anything when it is inspected
        return None, f"something that raised {type(error).__name__} when it was inspected"


def warn_changed(label: str) -> None:
    """Warn that what a function depends on changed while it ran, so its estimate has no key."""
    warnings.warn(
        f"The estimate for {label}() is not remembered: what it depends on (a global, an attribute, a "
        f"closure) changed while it ran. A call with private data calibrates again, and is refused if "
        f"something changes again. Keep counters, caches and logs out of what it refers to.",
        NotRememberedWarning,
        stacklevel=outside(),
    )
