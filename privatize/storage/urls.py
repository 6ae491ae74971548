"""URLs of databases as they may be shown."""


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
