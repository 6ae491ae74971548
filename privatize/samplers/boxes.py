"""Bounds for the records that a sampler draws, and records drawn between bounds."""

from collections.abc import Callable
from typing import Any

import numpy as np

from privatize.errors import SamplerError
from privatize.samplers.base import Sampler, some
from privatize.samplers.parameters import Box, bounds


def ends_for(inner: Sampler, name: str, low: Any, high: Any) -> Box:
    """Return bounds for the numbers that a sampler draws, or refuse."""
    ends = bounds(name, low, high)
    if ends is None:
        raise SamplerError(f"{name}() needs a bound: {name}(low, high).")
    drawn = some(inner)
    if not isinstance(drawn, np.ndarray) or drawn.dtype.kind not in "iuf":
        raise SamplerError(f"""{name}() is for numbers, and {inner!r} draws something else. Call it on the
            columns of a table.""")
    try:
        np.broadcast_to(ends[0].array, drawn.shape[1:])
    except ValueError:
        raise SamplerError(f"""{name}(): bounds of shape {ends[0].shape} do not fit records of shape
            {drawn.shape[1:]}.""") from None
    return ends


def accepted(draw_some: Callable[[int], Any], ends: Box, n: int, sampler: Any) -> Any:
    """Draw until n records lie between two bounds, or refuse bounds that hardly any record lies between."""
    low, high = (end.array for end in ends)
    found: list[Any] = []
    count = drawn = 0
    size = max(2 * n, 64)
    while count < n or not found:
        x = draw_some(size)
        x = x[((low <= x) & (x <= high)).reshape(len(x), -1).all(axis=1)]
        found.append(x)
        count, drawn = count + len(x), drawn + size
        if count < n and drawn > 2000 * size and count * 1000 < drawn:
            raise SamplerError(f"""{sampler!r}: fewer than one draw in a thousand lies between the bounds.
                Widen them.""")
    return np.concatenate(found)[:n]
