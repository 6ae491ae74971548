"""The Bernstein mechanism: release a function on the unit cube."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privatize.errors import OutputError, SettingsError
from privatize.mechanisms.accuracy import half_widths
from privatize.mechanisms.base import BaseMechanism, Mask, Vector, inflate, l1, labels, sup
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import Weighted
from privatize.noise import grid


@dataclass(frozen=True)
class Bernstein(BaseMechanism):
    """Release a function of points in [0, 1]^ℓ as a polynomial.

    The decorated function returns the values on the lattice {0, 1/k, ..., 1}^ℓ (flat, or of
    shape ``(k+1,)*ℓ``), or a vectorized callable of points, or takes the points as one more
    parameter that the call leaves open: ``density(data, points)``, where `points` has shape
    (N,) for ℓ = 1 and (N, ℓ) otherwise. Laplace noise is added on the lattice; the polynomial
    through it is post-processing and can be evaluated any number of times.

    Parameters
    ----------
    lattice : int
        k, the number of steps of the lattice along each axis.
    order : int
        h, the order of the iterated Bernstein operator: a higher one follows smooth functions more closely.
    dimension : int
        ℓ, the dimension of the points.
    norm : {"l1", "sup"}
        How gaps are measured. ``"l1"`` over the lattice, with scale Δ/ε, never adds more noise
        than ``"sup"``, the paper's, with scale Δ (k+1)^ℓ / ε.

    References
    ----------
    Aldà & Rubinstein, "The Bernstein mechanism", AAAI 2017; Rubinstein & Aldà, ICML 2017,
    Corollary 14.

    Examples
    --------
    >>> Bernstein(lattice=4).points()
    array([0.  , 0.25, 0.5 , 0.75, 1.  ])
    """

    tag: ClassVar[str] = "bernstein"
    lattice: int
    order: int
    dimension: int
    norm_name: Literal["l1", "sup"]

    def __init__(
        self, lattice: int = 10, order: int = 1, dimension: int = 1, norm: Literal["l1", "sup"] = "l1"
    ) -> None:
        for name, value in (("lattice", lattice), ("order", order), ("dimension", dimension)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingsError(f"{name}={value!r} is out of range: it must be an integer >= 1.")
        if norm not in ("l1", "sup"):
            raise SettingsError(f"norm={norm!r} is not 'l1' or 'sup'.")
        vars(self).update(lattice=lattice, order=order, dimension=dimension, norm_name=norm)  # it is frozen

    def __repr__(self) -> str:
        return (
            f"Bernstein(lattice={self.lattice}, order={self.order}, dimension={self.dimension}, "
            f"norm={self.norm_name!r})"
        )

    @property
    def size(self) -> int:
        """The number of lattice points."""
        return int((self.lattice + 1) ** self.dimension)

    @property
    def _times(self) -> int:
        """The factor by which the norm of a gap on the lattice may be below the L1 norm."""
        return self.size if self.norm_name == "sup" else 1

    def points(self) -> NDArray[np.float64]:
        """Return the lattice, the last coordinate running fastest."""
        axis = np.arange(self.lattice + 1) / self.lattice
        if self.dimension == 1:
            return axis
        axes = np.meshgrid(*[axis] * self.dimension, indexing="ij")
        return np.stack([each.ravel() for each in axes], axis=1)

    def norm(self, gap: Vector, /) -> float:
        """Return the L1 norm over the lattice, or the largest absolute value."""
        return l1(gap) if self.norm_name == "l1" else sup(gap)

    def scale(self, sensitivity: float, epsilon: float, delta: float = 0.0, /) -> float:
        """Return the scale of the Laplace noise on the lattice."""
        return sensitivity / epsilon * self._times

    def error(self, sensitivity: float, epsilon: float, delta: float, confidence: float) -> float:
        """Return how far the values on the lattice are from the raw ones at most, each by itself."""
        scale = self.scale(sensitivity, epsilon, delta)
        return float(half_widths("laplace", scale, confidence, np.zeros(1, dtype=np.bool_))[0])

    def evaluate(self, call: Callable[..., Any], opened: bool) -> Callable[..., Any]:
        """Return the function of the dataset whose output is the values on the lattice."""
        return _OnLattice(call, opened, self.points())

    def release(
        self, vector: Vector, /, *, sensitivity: float, epsilon: float, delta: float = 0.0, whole: Mask
    ) -> Vector:
        """Return the lattice values with noise added."""
        enlarged = inflate(sensitivity, len(vector)) * self._times
        if enlarged == math.inf:  # `Weighted` uses units in which it is finite
            return Weighted(self, Shape("total", (0,) * len(vector))).release(
                vector, sensitivity=sensitivity, epsilon=epsilon, delta=delta, whole=whole
            )
        return grid.laplace(vector, enlarged, epsilon, np.zeros(len(vector), dtype=np.bool_))

    def wrap(self, vector: Vector) -> "BernsteinPolynomial":
        """Return the polynomial through the noised values."""
        return BernsteinPolynomial.through(vector.reshape((self.lattice + 1,) * self.dimension), self.order)


@dataclass(frozen=True, eq=False)
class BernsteinPolynomial:
    """A released function on the unit cube: coefficients, and nothing else.

    Call it with points, of any shape for ℓ = 1 and of shape (..., ℓ) otherwise.

    Examples
    --------
    >>> line = BernsteinPolynomial.through(np.array([0.0, 0.5, 1.0]))
    >>> line(0.25)
    0.25
    >>> line([0.0, 0.5])
    array([0. , 0.5])
    """

    coefficients: NDArray[np.float64]

    @classmethod
    def through(cls, values: NDArray[np.float64], order: int = 1) -> "BernsteinPolynomial":
        """Return the Bernstein approximation, of iterated order, of values on a lattice.

        With B the Bernstein operator, order h is I - (I - B)^h, that is, the sum over i = 1..h
        of C(h, i) (-1)^(i-1) B^i; B^i only needs the values of B^(i-1) on the lattice.
        """
        values = np.asarray(values, dtype=np.float64)
        coefficients = order * values
        steps = [_basis(np.arange(size) / (size - 1), size - 1) for size in values.shape if order > 1]
        for i in range(2, order + 1):
            for axis, step in enumerate(steps):
                values = np.moveaxis(np.tensordot(step, values, axes=(1, axis)), 0, axis)
            coefficients = coefficients + math.comb(order, i) * (-1) ** (i - 1) * values
        return cls(coefficients)

    @property
    def dimension(self) -> int:
        """The dimension ℓ of the points."""
        return self.coefficients.ndim

    def __call__(self, points: ArrayLike) -> Any:
        """Evaluate the polynomial at points of the unit cube."""
        at = np.asarray(points, dtype=np.float64)
        if self.dimension == 1:
            at = at[..., None]
        elif at.shape[-1:] != (self.dimension,):
            raise ValueError(
                f"The points have shape {at.shape}: their last axis must have {self.dimension} coordinates."
            )
        if not ((at >= 0) & (at <= 1)).all():
            raise ValueError(
                "Some points lie outside [0, 1]: the polynomial is released for the unit cube only."
            )
        flat = at.reshape(-1, self.dimension)
        # Contract the last axis first, keeping one leading axis of points.
        result = np.broadcast_to(self.coefficients, (len(flat), *self.coefficients.shape))
        for axis in reversed(range(self.dimension)):
            basis = _basis(flat[:, axis], self.coefficients.shape[axis] - 1)
            result = np.einsum("p...i,pi->p...", result, basis)
        result = result.reshape(at.shape[:-1])
        return result.item() if result.ndim == 0 else result

    def __repr__(self) -> str:
        return f"BernsteinPolynomial(dimension={self.dimension}, lattice={self.coefficients.shape[0] - 1})"


def _basis(x: NDArray[np.float64], k: int) -> NDArray[np.float64]:
    """Return the k+1 Bernstein basis polynomials at x, by the stable recursion."""
    basis = np.zeros((len(x), k + 1))
    basis[:, 0] = 1.0
    for degree in range(1, k + 1):
        lower = x[:, None] * basis[:, :degree]
        basis[:, 1 : degree + 1] = (1 - x)[:, None] * basis[:, 1 : degree + 1] + lower
        basis[:, 0] *= 1 - x
    return basis


@dataclass(frozen=True, eq=False)
class _OnLattice:
    """A function of the dataset whose output is the values on the lattice."""

    call: Callable[..., Any]
    opened: bool
    points: NDArray[np.float64]

    def __call__(self, data: Any, s0: int) -> Any:
        points = self.points
        # A copy each time: the function may change its points in place.
        found = self.call(data, s0, points.copy()) if self.opened else self.call(data, s0)
        if callable(found):
            found = found(points.copy())
        own = labels(found)
        if own is not None and not np.array_equal(np.array(own, dtype=object), points.astype(object)):
            raise OutputError("""The values for the Bernstein mechanism have labels that are not its lattice
                points in their order. Return an array of the values in the order of the points: for a Series
                values.reindex(points).to_numpy().""")
        array = np.asarray(found)
        if array.size != len(points) or array.dtype.kind not in "iuf":
            raise OutputError(f"""The Bernstein mechanism needs one value for each of its {len(points)}
                lattice points, but got values of shape {array.shape} and type {array.dtype}.""")
        return array.astype(np.float64).ravel()

    def __privatize_rows__(self, rows_of: Callable[[Any], Any], /) -> Any:
        """Return the rows of the call that returns the values, if it is a sum over records."""
        return rows_of(functools.partial(self.call, point=self.points) if self.opened else self.call)
