"""Choose how noise is divided among the numbers of an answer, from the pairs of a pilot alone (T8).

The gaps of the pilot say how far each number moves, and its answers how far each is spread over datasets
from P. A shape is good if the noise of each number is small beside that spread, which has no unit. Only the
shape that was chosen is calibrated, on other pairs, so the choice costs no privacy.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.errors import SettingsError
from privatize.mechanisms.base import Chosen, Scaled, Vector, complete, sizes
from privatize.mechanisms.shapes import BITS, MOST_NUMBERS, Shape, factored, lower_of, powers_of

Matrix = NDArray[np.float64]
_WAYS = ("auto", "none", "total", "relative")
_DIAGONAL: tuple[Chosen, ...] = ("none", "total", "relative")
_ASSUMED = 2  # pairs that are assumed of each number
_FAR = 0.5  # an error of less than this share is that of numbers in different units
_CLEARLY = 0.95  # what is chosen must have at most this share of the error of "total"
_LARGEST_GAPS = 16  # one in so many gaps decides how much noise is needed, two at least
_ROUNDING = 1e-9  # relative differences that may come from rounding
_WHOLE = 1e-6  # what differs from an integer by less is one
_SHRUNK = 0.05  # correlations lose this share at least


def check_scaled(scaled: Any, *more: str) -> None:
    """Refuse an unknown way to divide noise."""
    ways = (*_WAYS, *more)
    if not isinstance(scaled, str) or scaled not in ways:
        raise SettingsError(f"scaled={scaled!r} is not {', '.join(map(repr, ways[:-1]))} or {ways[-1]!r}.")


def check_metric(error: Any, scaled: str) -> tuple[tuple[float, ...], ...]:
    """Return the matrix that says what error is as tuples, or refuse it."""
    if scaled not in ("auto", "matrix"):
        raise SettingsError(
            f"error= has no use with scaled={scaled!r}. Use scaled='matrix', or leave it out."
        )
    given = np.array(error)
    found = given.astype(np.float64) if given.dtype.kind in "iuf" else np.zeros(0)
    square = found.ndim == 2 and len(found) == found.shape[1] > 0 and np.isfinite(found).all()
    found = found / largest if square and (largest := np.abs(found).max()) > 0 else np.zeros(0)
    if (
        found.ndim != 2
        or not np.allclose(found, found.T)
        or np.linalg.eigvalsh(found)[0] < -1e-9 * found.max()
    ):
        raise SettingsError("""error= is not a symmetric matrix without negative eigenvalues, with a row for
            each number of the answer: for predictions of a linear model it is the mean of x xᵀ.""")
    return tuple(map(tuple, ((found + found.T) / 2).tolist()))


@dataclass(frozen=True)
class PilotPairs:
    """What the pairs of a pilot have shown of an answer with several numbers.

    Attributes
    ----------
    steps : array of shape (pairs, numbers)
        By how much each number differs between neighbours, with its sign.
    answers : array of shape (datasets, numbers)
        The answers on the first neighbours. For a family of P those of each member are centered.
    metric : array of shape (numbers, numbers) or None
        What error is: noise of covariance Σ costs tr(metric Σ). See `error_metric` for the default.
    floor : float or None
        The least that one record moves the answer (``min_sensitivity``): no number moves by less.
    structure : Structure or None
        The structure of the answer; None if numbers are in another order under the members of a family.
    apart : bool
        Whether two answers differ by entire steps. They do not if they are only spread as answers are.
    rounding_noise : float
        The largest difference by rounding that was seen between two evaluations of the same dataset.
    """

    steps: Matrix
    answers: Matrix
    metric: Matrix | None = None
    floor: float | None = None
    structure: Any = None
    apart: bool = True
    rounding_noise: float = 0.0

    def rescaled(self) -> "PilotPairs":
        """Return the same in another unit for all numbers, so that no square under- or overflows."""
        largest = max(float(np.abs(each).max(initial=0.0)) for each in (self.steps, self.answers))
        power = -math.frexp(largest)[1] if 0 < largest < math.inf else 0
        floor = None if self.floor is None else math.ldexp(self.floor, power)
        steps, answers = (np.ldexp(each, power) for each in (self.steps, self.answers))
        return replace(self, steps=steps, answers=answers, floor=floor)

    def measured_by(self, metric: Matrix) -> "PilotPairs":
        """Return the same with another metric."""
        made = replace(self, metric=metric)
        vars(made).update(sizes=self.sizes)  # which do not depend on it
        return made

    def half(self, which: int) -> "PilotPairs":
        """Return every second pair, from this one on."""
        return replace(self, steps=self.steps[which::2], answers=self.answers[which::2])

    @property
    def still(self) -> set[int]:
        """Numbers that no pair has moved, but for rounding."""
        size = _ROUNDING * np.abs(self.answers).max(axis=0, initial=0.0)
        return set(np.flatnonzero((np.abs(self.steps) <= size).all(axis=0)).tolist())

    @property
    def rare(self) -> set[int]:
        """Numbers that differ from dataset to dataset, but that no pair has moved: few people decide them.

        Numbers that are counted, and shares of a count, are left out: it is known how far they move.
        """
        if not len(self.answers):
            return set()
        differs = np.ptp(self.answers, axis=0) > _ROUNDING * np.abs(self.answers).max(axis=0)
        step = _smallest_difference(self.answers)
        with np.errstate(all="ignore"):
            places = (self.answers - self.answers.min(axis=0)) / step
            counted = (np.abs(places - np.rint(places)) < _WHOLE).all(axis=0)
        return self.still & set(np.flatnonzero(differs & ~counted).tolist())

    @cached_property
    def sizes(self) -> tuple[Vector, Vector]:
        """How far each number moves when it moves, and how far it is spread over datasets from P.

        A number that rarely moves must get enough noise for when it does, so the mean square is over the
        pairs in which it moves. Two more pairs are assumed in which it moves as far, relative to its spread,
        as the other numbers do: without them a number that happens to have moved little, or never, would get
        far too little noise. It moves at least by the smallest difference of two answers, which is the step
        of a number that is counted. A number that is the same for all datasets moves by its own size, or by
        the largest step of all.
        """
        steps, answers, count = self.steps, self.answers, len(self.steps)
        largest = np.abs(answers).max(axis=0)
        unit = np.maximum(np.abs(steps).max(axis=0, initial=0.0), np.ptp(answers, axis=0))
        unit = np.where((unit > 0) & np.isfinite(unit), unit, 1.0)  # so that squares do not underflow
        # What differs by rounding alone does not move.
        steps = np.where(np.abs(steps) > _ROUNDING * largest, steps, 0.0)
        moved = (steps != 0).sum(axis=0)
        square = np.square(steps / unit).mean(axis=0)
        spread = (answers / unit).std(axis=0, ddof=1)
        differs = spread > _ROUNDING * (largest / unit)
        both = differs & (moved > 0)
        usual = float(np.median(square[both] / np.square(spread[both]))) if both.any() else 1.0
        assumed = np.where(differs, usual * np.square(spread), square)
        size = np.sqrt((moved * square + _ASSUMED * assumed) / (moved + _ASSUMED))
        size = unit * np.where(moved > 0, size / np.sqrt(np.maximum(moved, 1) / count), size * count**0.5)
        if self.apart:
            size = np.maximum(size, np.where(differs, _smallest_difference(answers), 0.0))
        return self._filled(size, unit * np.where(differs, spread, 0.0))

    def _filled(self, size: Vector, spread: Vector) -> tuple[Vector, Vector]:
        """Return both with values for numbers of which the pilot has seen none."""
        known = np.isfinite(size) & (size > 0)
        if not known.all():
            largest = float(size[known].max(initial=0.0)) or 1.0
            own = np.abs(np.median(self.answers, axis=0))
            size = np.where(known, size, np.where(own > 0, np.minimum(own, largest), largest))
        if self.floor is not None:
            size = np.maximum(size, self.floor)
        differs = np.isfinite(spread) & (spread > 0)
        if differs.all():
            return size, spread
        usual = float(np.median(spread[differs] / size[differs])) if differs.any() else 1.0
        return size, np.where(differs, spread, usual * size)


def _smallest_difference(answers: Matrix) -> Vector:
    """Return the smallest difference of two answers that differ, for each number; 0 if there are none."""
    gaps = np.diff(np.sort(answers, axis=0), axis=0)
    apart = gaps > _ROUNDING * np.abs(answers).max(axis=0, initial=0.0)
    found = np.where(apart, gaps, np.inf).min(axis=0, initial=np.inf)
    return np.asarray(np.where(np.isfinite(found), found, 0.0))


def error_metric(spread: Vector) -> Matrix:
    """Return what error is by default: the sum of two mean squared errors, both without a unit.

    One is that of each number relative to its own spread, averaged: no number drowns beside a larger one. The
    other is that of all numbers together relative to the spread of all: the largest do not pay for it.

    Examples
    --------
    >>> error_metric(np.array([1.0, 100.0])).round(6).tolist()
    [[0.5001, 0.0], [0.0, 0.00015]]
    """
    unit = spread.max()
    relative = np.maximum(spread / unit, 1e-100)
    found = (1 / (len(spread) * np.square(relative)) + 1 / np.square(relative).sum()) / unit / unit
    return np.diag(found)


# --- the shapes -------------------------------------------------------------------------------


def choose(mechanism: Any, seen: PilotPairs) -> Shape:
    """Return how a mechanism divides its noise among the numbers of an answer.

    With ``scaled="auto"`` every candidate is made from one half of the pairs and judged by the other, and
    then the same with the halves exchanged: judged by the pairs that it was made from, a matrix would look
    better than it is. It is judged by the error that the largest gaps would make necessary. Another one than
    "total" must be clearly better.
    """
    way, d = complete(mechanism).scaled, seen.steps.shape[1]
    if d == 1 or way == "none":
        return Shape()
    with np.errstate(all="ignore"):
        return _chosen(mechanism, way, seen.rescaled(), d)


def _chosen(mechanism: Any, way: Scaled, seen: PilotPairs, d: int) -> Shape:
    given = getattr(mechanism, "error", None)
    if isinstance(given, tuple):
        seen = replace(seen, metric=_fitting(np.array(given), d))
    norm = str(mechanism.norm_name)
    if way != "auto":
        return _made(way, seen)
    # A class of the user's own may add any noise, and weights belong to numbers by their place.
    if not complete(mechanism).noise or len(seen.steps) < 4 or seen.structure is None:
        return Shape()
    known = seen.metric is not None
    seen = seen if known else seen.measured_by(error_metric(seen.sizes[1]))
    ways = ("none", "total", "relative", "matrix") if norm == "l2" and d <= MOST_NUMBERS else _DIAGONAL
    return _made(_best(ways, seen, norm, known), seen, auto=True)


def _best(ways: tuple[Chosen, ...], seen: PilotPairs, norm: str, known: bool) -> Chosen:
    """Return "total", or a way that is clearly better; `known` says that the user has given the error."""
    halves = tuple(seen.half(at) for at in (0, 1))
    scores = {each: _score(each, halves, norm) for each in ways}
    usual = scores["total"]
    # Where numbers are in about the same unit, the error of all together must not grow either.
    fair = [each for each in ways if scores[each][1] <= usual[1] or scores[each][0] < _FAR * usual[0]]
    best = min(ways if known else fair or ways, key=lambda each: scores[each][0])
    return best if scores[best][0] < _CLEARLY * usual[0] else "total"


def _score(way: Chosen, halves: tuple[PilotPairs, ...], norm: str) -> tuple[float, float]:
    """Return estimates, from halves of the pairs, of the error that a way to divide noise makes.

    The second one is that of all numbers together in their own units.
    """
    errors = []
    for fitted, other in (halves, halves[::-1]):
        candidate = _candidate(way, fitted, auto=True)
        gaps = np.asarray(sizes(norm, candidate.moved(other.steps)))
        if fitted.floor:
            gaps = np.maximum(gaps, candidate.shape().floor(fitted.floor))
        errors.append(np.outer(gaps, candidate.costs(np.asarray(fitted.metric))))
    pooled = np.sort(np.concatenate(errors), axis=0)
    own, together = pooled[-max(2, len(pooled) // _LARGEST_GAPS) :].mean(axis=0).tolist()
    return own, together


@dataclass(frozen=True)
class _Candidate:
    """A shape as arrays, which are quicker to judge.

    Attributes
    ----------
    kind, powers
        Those of the shape.
    entries : array or None
        B, in units of 2^-14; None if it is not a matrix.
    """

    kind: Chosen
    powers: NDArray[np.int64]
    entries: Matrix | None = None

    def shape(self) -> Shape:
        """Return the shape."""
        if self.kind == "none":
            return Shape()
        powers = tuple(self.powers.tolist())
        if self.entries is None:
            return Shape(self.kind, powers)
        return Shape(self.kind, powers, lower_of(self.entries))

    def moved(self, steps: Matrix) -> Matrix:
        """Return gaps, one in each row, as the shape measures them."""
        moved = np.ldexp(steps, -self.powers)
        return moved if self.entries is None else moved @ np.ldexp(self.entries.T, -BITS)

    def costs(self, metric: Matrix) -> Vector:
        """Return the errors that noise of scale 1 makes: by a metric, and of all numbers together."""
        if self.entries is None:
            squares = np.ldexp(1.0, 2 * self.powers)
            return np.sqrt([np.diag(metric) @ squares, squares.sum()])
        back = np.ldexp(np.linalg.inv(np.ldexp(self.entries, -BITS)), self.powers[:, None])
        return np.sqrt([np.sum(metric @ back * back), np.square(back).sum()])


def _made(way: Chosen, seen: PilotPairs, *, auto: bool = False) -> Shape:
    """Return the shape of one kind."""
    return _candidate(way, seen, auto=auto).shape()


def _candidate(way: Chosen, seen: PilotPairs, *, auto: bool = False) -> _Candidate:
    if way == "none":
        return _Candidate("none", np.zeros(seen.steps.shape[1], dtype=np.int64))
    size = seen.sizes[0]
    if way == "matrix":
        if len(size) > MOST_NUMBERS:
            raise SettingsError(f"""scaled='matrix' is for at most {MOST_NUMBERS} numbers, and the answer has
                {len(size)}. Use scaled='total', or ask for fewer.""")
        try:
            return _Candidate("matrix", *factored(_covariance(seen, size)))
        except (ValueError, np.linalg.LinAlgError):  # nearly singular
            way = "total"
    if way == "relative" and auto and seen.metric is not None:
        # The least error of all weights: Σ Wⱼⱼ wⱼ² Σ aⱼ²/wⱼ² is least for wⱼ² = aⱼ/√Wⱼⱼ, as in L1.
        size = size / np.sqrt(np.maximum(np.diag(seen.metric), 1e-300))
    return _Candidate(way, powers_of(size if way == "relative" and not auto else np.sqrt(size)))


def _covariance(seen: PilotPairs, size: Vector) -> Matrix:
    """Return the covariance of noise that makes the error least (T8), for gaps that are correlated as seen.

    It is the geometric mean of the gaps' second moments C and the inverse of the metric W, so in units in
    which each number moves by 1 it is that of their correlations and (D W D)⁻¹, with D the sizes.
    """
    d, steps = len(size), seen.steps
    lengths = np.sqrt(np.square(steps / size).sum(axis=0))
    shares = steps / size / np.where(lengths > 0, lengths, 1.0)
    correlations = shares.T @ shares
    np.fill_diagonal(correlations, 1.0)
    correlations = _shrunk(correlations, len(steps))
    metric = (np.eye(d) if seen.metric is None else seen.metric) * np.outer(
        size / size.max(), size / size.max()
    )
    own = np.diag(metric)
    if np.array_equal(metric, np.diag(own)):  # the default: the same without products of matrices
        roots = np.sqrt(np.maximum(own, 1e-8 * own.max()))
        middle = _root(roots[:, None] * correlations * roots)
        return np.asarray((1 / roots)[:, None] * middle * (1 / roots) * np.outer(size, size))
    values, vectors = np.linalg.eigh(metric)
    values = np.maximum(values, 1e-8 * values.max())
    root, inverse = ((vectors * each) @ vectors.T for each in (np.sqrt(values), 1 / np.sqrt(values)))
    return np.asarray(inverse @ _root(root @ correlations @ root) @ inverse * np.outer(size, size))


def _root(matrix: Matrix) -> Matrix:
    """Return the square root of a symmetric matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _shrunk(correlations: Matrix, count: int) -> Matrix:
    """Return correlations that are moved towards 0 by as much as so few pairs make necessary.

    References
    ----------
    Chen, Wiesel, Eldar & Hero, "Shrinkage algorithms for MMSE covariance estimation", IEEE Trans. Signal
    Process. 2010 (the estimate OAS).
    """
    d, total = len(correlations), float(np.square(correlations).sum())
    by = ((1 - 2 / d) * total + d * d) / ((count + 1 - 2 / d) * max(total - d, 1e-9))
    by = min(max(by, _SHRUNK), 1.0)
    return (1 - by) * correlations + by * np.eye(d)


def _fitting(metric: Matrix, size: int) -> Matrix:
    """Return the user's metric, or refuse one of another size."""
    if len(metric) != size:
        raise SettingsError(f"""error= has {len(metric)} rows, and the answer has {size} numbers. It needs one
            for each.""")
    return metric
