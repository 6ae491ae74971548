"""Where ledgers and stores are: from an argument, configure(), the environment or the policy."""

import os
from pathlib import Path
from typing import Any

from privatize.config.policy import configured, policy
from privatize.errors import SettingsError


def ledger_place(given: str | os.PathLike[str] | None, by: str = "Budget(ledger=...)") -> str | None:
    """Return the place of a ledger, or None if none is named."""
    for where, source in (
        (given, by),
        (os.environ.get("PRIVATIZE_LEDGER"), "PRIVATIZE_LEDGER"),
        (policy().ledger, "The ledger of the policy"),
    ):
        if where is not None:
            return checked_place(where, source)
    return None


def checked_place(where: Any, source: str) -> str:
    """Return where a ledger is, as an absolute path or a URL; refuse a value that names no ledger."""
    if not isinstance(where, str | os.PathLike):
        raise SettingsError(f"{source} is a {type(where).__name__}, not a path, a URL, or 'memory'.")
    text = os.fspath(where)
    if not isinstance(text, str) or not text.strip():
        raise SettingsError(f"""{source} is empty, so it does not say where budgets are stored. Name a ledger
            (a path, sqlite:///... or postgresql://...), use 'memory' for this process only, or do not set
            it.""")
    try:
        valid = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        valid = False
    if not valid:  # the value is not shown: it may have a password
        raise SettingsError(f"{source} has characters that no file and no URL can have. Choose another name.")
    # An absolute path stays the same when the process changes its working folder.
    return text if "://" in text or text == "memory" else str(Path(text).expanduser().absolute())


def store_place(given: str | os.PathLike[str] | None) -> str:
    """Return the place of a store; None means memory, "default" what is configured."""
    chosen = configured("store", "default") if given == "default" else given
    if chosen is None:
        return "memory"
    return default_store() if chosen == "default" else os.fspath(chosen)


def default_store() -> str:
    """Return where estimates are stored by default: the environment, the policy, or the cache folder."""
    given = os.environ.get("PRIVATIZE_STORE")
    if given is not None:
        return given or "memory"
    if policy().store:
        return str(policy().store)
    import platformdirs

    return str(Path(platformdirs.user_cache_dir("privatize", appauthor=False)) / "estimates.db")


def without_password(url: str) -> str:
    """Return where a database is, without the user, the password and the options.

    Examples
    --------
    >>> without_password("postgresql://me:secret@host/db?password=secret")
    'postgresql://host/db'
    >>> without_password("a@b.db")
    'a@b.db'
    """
    scheme, sign, rest = url.partition("://")
    return scheme + sign + rest.rpartition("@")[2].partition("?")[0] if sign else url
