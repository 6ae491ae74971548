"""Private data is converted to what P draws: its dtypes, its layout and, if wanted, its support."""

from typing import Any

from privatize.data.container import find, of


def convert(data: Any, drawn: Any, support: Any = None) -> Any:
    """Return a copy of private records as P would draw them: in its dtypes and, if given, inside its support.

    Each record is changed by itself, so neighbouring datasets stay neighbours. Numbers are clipped; missing
    values and values that P does not draw become one that it does (see `privatize.data.clipping`). Nothing
    but the values is left of the given container (see `Container.fresh`).

    Parameters
    ----------
    data : dataset
        The private records, whose schema fits.
    drawn : dataset
        Some records that P has drawn, as it drew them.
    support : object
        P's support, or None to leave values as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize.data.records import convert
    >>> convert(np.array([-1, 50, 200]), np.zeros(2), (0.0, 100.0))
    array([  0.,  50., 100.])
    >>> convert([-1, 50, 200], np.zeros(2), (0.0, 100.0))
    [0.0, 50.0, 100.0]
    """
    own, wanted = of(data), of(drawn)
    if own is wanted:
        return own.convert(data, drawn, support)
    # Otherwise P's records are cast to the container of the private data, by way of an array.
    values = wanted.to_array(drawn)
    if own is find(values):
        return own.convert(data, values, support)
    made = own.convert_to_array(data, values, support)
    return own.fresh(own.from_array(made, own.describe(data)))
