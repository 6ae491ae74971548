"""Read the parameters of a callable, in every version of Python."""

import inspect
import sys
from typing import Any


def signature_of(function: Any) -> inspect.Signature:
    """Return a callable's signature, also if names in its annotations are known to a type checker only.

    Examples
    --------
    >>> signature_of(lambda x, scale=1: x)
    <Signature (x, scale=1)>
    """
    if sys.version_info >= (3, 14):  # where annotations are computed when they are read
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(function)
