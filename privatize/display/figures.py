"""Write numbers as people do."""

from decimal import ROUND_CEILING, Decimal
from typing import Any

import numpy as np

UNITS = {"years": 31557600.0, "days": 86400.0, "h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6}


def figure(value: float, digits: int = 4) -> str:
    """Return a number in a few digits, with an exponent only if it is very large or very small.

    Examples
    --------
    >>> figure(2222.2, 3), figure(0.00012345), figure(1.5e9)
    ('2,220', '0.0001234', '1.5e+09')
    """
    text = f"{value:.{digits}g}"
    return f"{float(text):,.0f}" if "e" in text and 1 <= abs(value) < 1e7 else text


def amount(value: Any, digits: int = 4) -> str:
    """Return a number, or the least and the largest of several, in a few digits.

    Examples
    --------
    >>> amount(0.123456), amount(np.array([1.0, 8.0]))
    ('0.1235', '1 to 8')
    """
    ends = (float(np.min(value)), float(np.max(value)))
    return " to ".join(dict.fromkeys(figure(end, digits) for end in ends))


def duration(seconds: float) -> str:
    """Return a time in a suitable unit.

    Examples
    --------
    >>> duration(0.0042), duration(11.14), duration(5 * 3600)
    ('4.2 ms', '11 s', '5 h')
    """
    for unit, size in UNITS.items():
        if seconds >= size * (1.5 if size > 1 else 1):
            amount = seconds / size
            return f"{amount:.2g} {unit}" if amount < 100 else f"{amount:,.0f} {unit}"
    return "0 s" if seconds == 0 else f"{seconds / 1e-6:.1g} us"


def counted(count: int, noun: str) -> str:
    """Return how many there are of something.

    Examples
    --------
    >>> counted(1, "answer"), counted(1200, "answer")
    ('1 answer', '1,200 answers')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def ended(text: str) -> str:
    """Return a cause as a sentence: with one full stop, or with the dots that show that it is cut.

    Examples
    --------
    >>> ended("no such column"), ended("a dict without keys 'a', 'b', ...")
    ('no such column.', "a dict without keys 'a', 'b', ...")
    """
    return text if text.endswith("...") else f"{text.rstrip('.')}."


def round_up(gamma: float) -> str:
    """Print gamma with four decimals, or three digits if that is more, rounded up."""
    exact = Decimal(repr(float(gamma)))  # as its user would write it
    places = max(4, 2 - exact.adjusted())
    if exact < 1:
        places = max(places, 2 - (1 - exact).adjusted())  # never round a feasible gamma up to 1
    return str(exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING))


def promise(epsilon: float, delta: float, gamma: float, words: str = "") -> str:
    """Return the promise in a line; `words` say why it holds for all neighbours, if it does."""
    shown = f"epsilon={epsilon:g}, delta={delta:g}" if delta else f"epsilon={epsilon:g}"
    if words:
        return f"{shown} on all neighbours: differentially private, {words}"
    return f"{shown} on all but gamma={gamma:.4g} of neighbours"
