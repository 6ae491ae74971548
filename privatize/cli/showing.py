"""Format what commands print: tables, times, URLs without passwords, and JSON that every parser reads."""

import json
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import numpy as np

from privatize.display.figures import UNITS
from privatize.storage.places import without_password


def as_json(facts: Any) -> str:
    """Return facts as JSON; infinity and NaN, which JSON does not have, become strings.

    Examples
    --------
    >>> as_json({"gap": float("inf")})
    '{"gap": "Infinity"}'
    """
    return json.dumps(_for_json(facts), allow_nan=False, ensure_ascii=False)


def _for_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _for_json(each) for name, each in value.items()}
    if isinstance(value, np.ndarray | np.generic):
        return _for_json(value.tolist())
    if isinstance(value, list | tuple):
        return [_for_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def one_line(error: BaseException | str) -> str:
    r"""Return an error's message, in one line and without passwords.

    Examples
    --------
    >>> one_line(ValueError("no\n  server at postgresql://me:secret@host/db"))
    'no server at postgresql://host/db'
    """
    text = error if isinstance(error, str) else str(error)
    if isinstance(error, KeyError) and error.args:
        text = str(error.args[0])
    return discreet(" ".join(text.split())) or type(error).__name__


_secrets: set[str] = set()


def hide(*urls: str) -> None:
    """Remember the passwords in URLs, so that `discreet` replaces them by stars from now on."""
    for url in urls:
        _, sign, rest = url.partition("://")
        if not sign:
            continue
        word = rest.rpartition("@")[0].partition(":")[2]
        found = [word, *re.split(r"[/:@?#\s]", word), *re.findall(r"pass\w*=([^&\s]+)", rest)]
        _secrets.update(each for one in found for each in (one, unquote(one)) if len(each) > 2)


def discreet(text: str) -> str:
    """Return a text without the user names and passwords in its URLs, and without those that `hide` got."""
    for secret in sorted(_secrets, key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    text = re.sub(r"(\w+://)[^\s'\"]*@", r"\1", text)
    return re.sub(r"(?i)(pass(?:word|wd|file)?=)[^&\s'\"]+", r"\1***", text)


def place(url: str) -> str:
    """Return a database's URL without its password, and hide that from now on."""
    hide(url)
    return without_password(url)


def moment(text: str) -> str:
    """Return a time, as it is in a database (in UTC), in a form that is easy to read."""
    return text.replace("T", " ").removesuffix("Z")


def visible(text: str) -> str:
    r"""Return a string on one line, without terminal control codes: somebody else may have chosen it.

    Examples
    --------
    >>> print(visible("two\nlines"))
    two\nlines
    """
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def columns(rows: Iterable[Sequence[str]], *, right: Iterable[int] = (), indent: str = "") -> str:
    """Return rows, the first of them titles, as aligned columns.

    Examples
    --------
    >>> print(columns([("name", "m"), ("mean", "557"), ("median", "79")], right=[1]))
    name      m
    mean    557
    median   79
    """
    listed = [[visible(str(cell)) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
    signs = [">" if at in set(right) else "<" for at in range(len(widths))]
    cells = [[f"{cell:{s}{w}}" for cell, s, w in zip(row, signs, widths, strict=True)] for row in listed]
    return "\n".join((indent + "  ".join(row)).rstrip() for row in cells)


def labelled(rows: Mapping[str, str | list[str]]) -> str:
    """Return names and values, each on lines of its own; empty values are left out.

    Examples
    --------
    >>> print(labelled({"key": "3f9a", "looks": ["first", "second"], "refused": ""}))
    key        3f9a
    looks      first
               second
    """
    lines = []
    for name, value in rows.items():
        given = [value] if isinstance(value, str) else value
        parts = [part for line in given for part in _WRAPPER.wrap(visible(line))]
        lines += [f"{'' if at else name:10s} {part}" for at, part in enumerate(parts)]
    return "\n".join(lines)


_WRAPPER = textwrap.TextWrapper(96, break_long_words=False, break_on_hyphens=False)


def cost(text: str) -> float:
    """Return the seconds that a text such as 0.5, 500us, 10ms, 2s or 1min stands for.

    Examples
    --------
    >>> [cost(text) for text in ("0.5", "500us", "10ms", "2s", "1min")]
    [0.5, 0.0005, 0.01, 2.0, 60.0]
    """
    units = UNITS | {"": 1.0, "µs": 1e-6, "μs": 1e-6}
    found = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?[0-9]+)?)\s*([a-zµμ]*)\s*", text.lower())
    try:
        seconds = float(found[1]) * units[found[2]] if found else math.nan
    except (KeyError, ValueError):
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise ValueError(f"{text!r} is not a time: pass 0.5, 500us, 10ms, 2s or 1min.")
    return round(seconds, 12)
