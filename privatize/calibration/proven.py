"""Find the proven bound that a function brings."""

import functools
import types
from typing import Any

from privatize.calibration.opendp import Transformed, is_transformation
from privatize.calibration.proof import Answer, Proven

__all__ = ["Answer", "Proven", "proven_of"]


def proven_of(function: Any, *args: Any, **kwargs: Any) -> Proven | None:
    """Return the proven bound that a function brings, with its other arguments; None if it brings none.

    A function that brings one has a method ``__privatize_proven__(proven_of)``, which returns it. So has a
    callable that passes its dataset on to another function: it calls ``proven_of(other)``, and the method
    `wrapped` of what it gets. A transformation of OpenDP is one, too.

    Examples
    --------
    >>> proven_of(sum) is None
    True
    """
    if args or kwargs:
        function = functools.partial(function, *args, **kwargs)
    if isinstance(function, types.MethodType):
        function = functools.partial(function.__func__, function.__self__)
    if is_transformation(function):
        return Transformed(function)
    if hasattr(type(function), "__privatize_proven__"):
        found: Proven | None = function.__privatize_proven__(proven_of)
        return found
    if not isinstance(function, functools.partial) or (inner := proven_of(function.func)) is None:
        return None
    outer = function
    return inner.wrapped(lambda raw: functools.partial(raw, *outer.args, **outer.keywords))
