"""Where a ledger is: from an argument, the environment or the policy."""

import os
from pathlib import Path
from typing import Any

from privatize.config.policy import policy
from privatize.errors import SettingsError


def ledger_place(given: str | os.PathLike[str] | None) -> str | None:
    """Return the place of a ledger, or None if nobody names one."""
    for where, source in (
        (given, "Budget(ledger=...)"),
        (os.environ.get("PRIVATIZE_LEDGER"), "PRIVATIZE_LEDGER"),
        (policy().ledger, "The ledger of the policy"),
    ):
        if where is not None:
            return checked_place(where, source)
    return None


def checked_place(where: Any, source: str) -> str:
    """Return where a ledger is, as an absolute path or a URL; refuse what names no ledger."""
    if not isinstance(where, str | os.PathLike):
        raise SettingsError(f"{source} is a {type(where).__name__}, not a path, a URL, or 'memory'.")
    text = os.fspath(where)
    if not isinstance(text, str) or not text.strip():
        raise SettingsError(
            f"{source} is empty, so it does not say where budgets are kept. Name a ledger (a path, "
            f"sqlite:///... or postgresql://...), use 'memory' for this process only, or do not set it."
        )
    try:
        fine = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        fine = False
    if not fine:  # not shown: it may hold a password
        raise SettingsError(f"{source} has characters that no file and no URL can have. Choose another name.")
    # From the root, so that it is the same wherever the process goes.
    return text if "://" in text or text == "memory" else str(Path(text).expanduser().absolute())
