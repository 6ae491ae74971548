"""Whether a function makes each record from one record alone, so that records stay independent."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize.data import records
from privatize.errors import DataError, SamplerError
from privatize.samplers.base import Sampler, name_of, some


def check_alone(inner: Sampler, function: Callable[[Any], Any]) -> None:
    """Refuse a function that does not make each record from one record alone."""
    drawn = some(inner, 16)
    halves = np.array([13, 2, 7, 15, 0, 9, 4, 11]), np.array([3, 14, 1, 10, 5, 12, 8, 6])
    try:
        made = function(records.copy(drawn))
        alone = records.count(made) == 16 and all(
            records.equal(records.take(made, at), function(records.take(drawn, at))) for at in halves
        )
    except DataError:
        alone = False
    except Exception as error:
        raise SamplerError(f"""map({name_of(function)}) raised {type(error).__name__} on drawn records:
            {error}. It gets n records, in the container that {inner!r} draws, and returns n.""") from error
    if not alone:
        raise SamplerError(f"""map({name_of(function)}) does not make each record from one record alone: 8 of
            16 records come out differently without the other 8. Records must stay independent.""")


def number_by_number(function: Any) -> bool:
    """Tell whether a function is one of numpy's or SciPy's own that treats each number by itself."""
    if not isinstance(function, np.ufunc) or (function.nin, function.nout) != (1, 1) or function.signature:
        return False
    return any(
        getattr(sys.modules.get(module), function.__name__, None) is function
        for module in ("numpy", "scipy.special")
    )
