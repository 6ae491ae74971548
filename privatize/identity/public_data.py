"""Whether P draws from the private data itself, which is then not public."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.data.parts import columns_of, comparable
from privatize.identity.reachable import Private
from privatize.samplers.public import bootstraps

Array = NDArray[Any]


def draws_public(sampler: Any) -> bool:
    """Tell whether a sampler draws from public records."""
    return next(bootstraps(sampler), None) is not None


def is_private(sampler: Any, data: Any) -> bool:
    """Tell whether a sampler draws from the private data itself, or from some of it.

    It does if `identity.reachable` recognizes the public records. Content is also compared column by column,
    in single precision, without columns that are constant. It is equal if the public columns (or those of the
    projection that is drawn) are found among the private ones, or the other way round: record by record; or,
    where a column's values are mostly different from each other, record by record once both are in its order,
    up to a tenth of the records.
    """
    public = list(bootstraps(sampler))
    if not public:
        return False
    found = Private(data, memory=False, lists=False)  # what is drawn from is a copy
    if any(found.reaches(each.origin) or found.reaches(each.public) for each, _ in public):
        return True
    private = _informative(data)
    for each, wanted in public:
        own = _informative(each.public if wanted is None else frames.select(each.public, wanted))
        if own and private and (_found_in(own, private) or _found_in(private, own)):
            return True
    return False


def _informative(data: Any) -> list[Array]:
    """Return the columns that tell something, such that equal values are equal whatever they came in."""
    found = [comparable(values) for values in columns_of(data)]
    return [values for values in found if len(values) and (values != values[0]).any()]


def _found_in(some: list[Array], others: list[Array]) -> bool:
    """Tell whether all of some columns are found among others, record by record."""
    n, size = len(some[0]), len(others[0])
    enough = n == size and (n >= _FEW or any(_distinct(values) for values in some))
    if enough and all(any(_agree(own, other) == 1 for other in others) for own in some):
        return True
    if min(n, size) < max(20, 0.8 * max(n, size)):
        return False
    return any(
        _ordered_alike(own, other, some, others)
        for own in filter(_distinct, some)
        for other in others
        if own.dtype.kind == other.dtype.kind and np.isin(own, other).mean() >= 0.9
    )


def _ordered_alike(own: Array, other: Array, some: list[Array], others: list[Array]) -> bool:
    """Tell whether all of some columns are found among others, once both are in the order of one of each."""
    order = np.argsort(other, kind="stable")
    places = order[np.clip(np.searchsorted(other[order], own), 0, len(other) - 1)]
    return all(any(_agree(one, each[places]) >= 0.8 for each in others) for one in some)


_FEW = 5  # below, equal content may well be chance


def _distinct(values: Array) -> bool:
    return len(np.unique(values)) >= 0.9 * len(values)


def _agree(one: Array, other: Array) -> float:
    """Return the share of records in which two columns are the same; missing values are."""
    if one.dtype.kind != other.dtype.kind:
        return 0.0
    same = (one == other) | ((one != one) & (other != other))
    return float(same.mean())
