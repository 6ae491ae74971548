"""The variables of a frame that an error refers to, where Python can show them."""

import inspect
import sys
import types
from collections.abc import Mapping
from typing import Any

# A frame that outlives its generator reads freed memory there, and may crash (gh-125723 of CPython).
_UNSAFE = (3, 13) <= sys.version_info < (3, 13, 6)


def variables(frame: types.FrameType) -> Mapping[str, Any]:
    """Return a frame's variables; none for a generator's frame in the versions of Python that crash there.

    Examples
    --------
    >>> variables(inspect.currentframe())["__name__"]
    'tests.frames'
    """
    return {} if _UNSAFE and frame.f_code.co_flags & inspect.CO_GENERATOR else frame.f_locals
