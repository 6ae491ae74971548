"""Move a noisy answer to where it is valid. Post-processing is free: it costs no privacy.

Each function returns the nearest valid answer, in the Euclidean sense unless it says otherwise.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatize.errors import SettingsError

Array = NDArray[np.float64]

_MOST = float(np.finfo(np.float64).max)
_LEAST = -_MOST


def probabilities(values: ArrayLike, axis: int = -1) -> Array:
    """Return the nearest probabilities: none is negative, and they sum to 1 along an axis.

    Examples
    --------
    >>> probabilities([0.7, 0.5, -0.2])
    array([0.6, 0.4, 0. ])
    """
    rows = np.moveaxis(_numbers("probabilities", values), axis, -1)
    if not rows.shape[-1]:
        raise SettingsError("probabilities() was given no values, which cannot sum to 1.")
    with np.errstate(over="ignore"):  # a common shift does not matter, nor how far below the top
        rows = np.maximum(rows - rows.max(axis=-1, keepdims=True), -2.0)
    # The projection onto the simplex subtracts one number from all values, and makes negative ones 0. The k
    # largest then sum to at most 1, whatever k is, and to 1 if k is the number of positive ones.
    falling = -np.sort(-rows, axis=-1)
    excess = (falling.cumsum(axis=-1) - 1) / np.arange(1, rows.shape[-1] + 1)
    found = np.maximum(rows - excess.max(axis=-1, keepdims=True), 0.0)
    return np.moveaxis(found / found.sum(axis=-1, keepdims=True), -1, axis)


def positive(values: ArrayLike, floor: ArrayLike = 0.0) -> Array:
    """Return values that are at least a floor, which must not come from private data.

    Examples
    --------
    >>> positive([2.0, -0.5], 0.01)
    array([2.  , 0.01])
    """
    return np.maximum(_numbers("positive", values), floor)


def between(values: ArrayLike, low: ArrayLike, high: ArrayLike) -> Array:
    """Return values that are at least low and at most high, which must not come from private data.

    Examples
    --------
    >>> between([1.2, 0.4, -0.1], 0, 1)
    array([1. , 0.4, 0. ])
    """
    least, most = _numbers("between", low), _numbers("between", high)
    if (least > most).any():
        raise SettingsError(f"between() takes low <= high, not low={low!r} and high={high!r}.")
    return np.asarray(np.clip(_numbers("between", values), least, most))


def increasing(
    values: ArrayLike, low: float | None = None, high: float | None = None, axis: int = -1
) -> Array:
    """Return the nearest values of which none is less than the one before it, along an axis.

    Cumulative shares and tables of quantiles are such. With `low` and `high`, which must not come from
    private data, the values are also at least and at most that.

    References
    ----------
    Barlow, Bartholomew, Bremner and Brunk, "Statistical inference under order restrictions", 1972.

    Examples
    --------
    >>> increasing([0.1, 0.5, 0.3, 1.25], low=0, high=1)
    array([0.1, 0.4, 0.4, 1. ])
    """
    found = np.apply_along_axis(_pooled, axis, _curve("increasing", values))
    return between(
        found, *(side if bound is None else bound for bound, side in ((low, _LEAST), (high, _MOST)))
    )


def survival(values: ArrayLike, axis: int = -1) -> Array:
    """Return the nearest survival curve: values in [0, 1], of which none is more than the one before it.

    Examples
    --------
    >>> survival([1.1, 0.5, 0.7, -0.1])
    array([1. , 0.6, 0.6, 0. ])
    """
    fallen = -np.apply_along_axis(_pooled, axis, -_curve("survival", values))
    return np.clip(fallen, 0.0, 1.0) + 0.0  # no zero is negative


def _pooled(values: Array) -> Array:
    """Return the nearest values that do not decrease, by pooling adjacent violators."""
    means: list[float] = []
    counts: list[int] = []
    for value in values.tolist():
        mean, count = value, 1
        while means and means[-1] > mean:
            other, more = means.pop(), counts.pop()
            mean, count = other * (more / (more + count)) + mean * (count / (more + count)), more + count
        means.append(mean)
        counts.append(count)
    return np.repeat(means, counts)


def semidefinite(matrix: ArrayLike) -> Array:
    """Return the nearest symmetric matrix without negative eigenvalues, such as a covariance matrix is.

    Several matrices may be stacked along the first axes.

    Examples
    --------
    >>> semidefinite([[1.0, 2.0], [2.0, 1.0]])
    array([[1.5, 1.5],
           [1.5, 1.5]])
    """
    square = _square("semidefinite", matrix)
    values, vectors = np.linalg.eigh((square + square.swapaxes(-1, -2)) / 2)
    found = (vectors * np.maximum(values, 0.0)[..., None, :]) @ vectors.swapaxes(-1, -2)
    return np.asarray((found + found.swapaxes(-1, -2)) / 2)


def correlations(matrix: ArrayLike, rounds: int = 100) -> Array:
    """Return the nearest correlation matrix: semidefinite, with ones on the diagonal.

    References
    ----------
    Higham, "Computing the nearest correlation matrix", IMA J. Numer. Anal. 2002.

    Examples
    --------
    >>> correlations([[1.1, 1.3], [1.3, 0.9]]).round(6)
    array([[1., 1.],
           [1., 1.]])
    """
    square = _square("correlations", matrix)
    if square.ndim != 2:
        raise SettingsError("correlations() takes one matrix.")
    found = (square + square.T) / 2
    change = np.zeros_like(found)
    for _ in range(rounds):  # Dykstra's alternating projections
        inside = semidefinite(found - change)
        change = inside - (found - change)
        last, found = found, inside.copy()
        np.fill_diagonal(found, 1.0)
        if np.abs(found - last).max(initial=0.0) < 1e-12:
            break
    inside = semidefinite(found)
    size = np.sqrt(np.maximum(np.diag(inside), 1e-300))
    scaled: Array = np.clip(inside / np.outer(size, size), -1.0, 1.0)
    np.fill_diagonal(scaled, 1.0)
    return scaled


def orthonormal(rows: ArrayLike) -> Array:
    """Return the nearest matrix whose rows are orthogonal and of length 1, as principal components are.

    Examples
    --------
    >>> orthonormal([[2.0, 0.0], [0.0, 0.5]])
    array([[1., 0.],
           [0., 1.]])
    """
    matrix = _numbers("orthonormal", rows)
    if matrix.ndim != 2 or matrix.shape[0] > matrix.shape[1]:
        raise SettingsError(f"""orthonormal() takes a matrix with no more rows than columns, not shape
            {matrix.shape}.""")
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(left @ right)


def _numbers(name: str, values: ArrayLike) -> Array:
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.array(np.nan)
    if not np.isfinite(found).all():
        raise SettingsError(f"{name}() takes finite numbers.")
    return found


def _curve(name: str, values: ArrayLike) -> Array:
    found = _numbers(name, values)
    if not found.size or not found.ndim:
        raise SettingsError(f"{name}() takes one value or more along an axis, not shape {found.shape}.")
    return found


def _square(name: str, matrix: ArrayLike) -> Array:
    found = _numbers(name, matrix)
    if found.ndim < 2 or found.shape[-1] != found.shape[-2]:
        raise SettingsError(f"{name}() takes a square matrix, not shape {found.shape}.")
    return found
