"""X and y, for learners: features with labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from privatize.data.columns import array_of
from privatize.data.support import OneOf
from privatize.errors import SamplerError
from privatize.samplers.base import (
    Distribution,
    Frozen,
    Rng,
    Sampler,
    box,
    chosen,
    draw,
    even,
    inside,
    loose,
    name_of,
    numbers,
    own_fields,
    plain,
    shares,
    with_coins,
)
from privatize.samplers.foreign import Support, as_sampler
from privatize.samplers.numbers import truncated_normal
from privatize.samplers.tables import split

__all__ = ["blobs", "labelled"]


def labelled(features: Any, labels: Any, support: Any = None) -> Distribution:
    """Draw pairs (X, y) of features and labels.

    Parameters
    ----------
    features : sampler
        What X is drawn from: arrays or a table.
    labels : sampler, callable or str
        What y is drawn from, independently of X; or a function ``(X)`` or ``(X, rng)`` that returns the
        labels of the records of X; or the name of a column of a table, which becomes y, and the others X.
    support : optional
        What the labels that a function returns lie in: a list of them, or a pair of bounds.

    Examples
    --------
    >>> from privatize.samplers import uniform
    >>> def above(X, rng):
    ...     return (X.sum(axis=1) + rng.normal(0, 0.1, len(X)) > 1).astype(int)
    >>> P = labelled(uniform(0, 1, size=2), above, support=[0, 1])
    >>> P
    labelled(uniform(0, 1, size=2), above, support=[0, 1])
    >>> X, y = P.draw(4, np.random.default_rng(1))
    >>> X.shape, y
    ((4, 2), array([1, 1, 0, 1]))

    >>> from privatize.samplers import boolean, table
    >>> labelled(table(age=uniform(18, 90), ill=boolean(0.1)), "ill").support
    ({'age': (18.0, 90.0)}, OneOf((False, True), unknown=False))
    """
    if isinstance(labels, str):
        if support is not None:
            raise SamplerError(f"labelled(P, {labels!r}): the table P has the support of its columns.")
        return split(loose(as_sampler(features)), labels)
    made = _Labelled(
        loose(as_sampler(features)),
        labels if _is_function(labels) else loose(as_sampler(labels)),
        Support.of(support),
    )
    draw(made, 2, np.random.default_rng(0))  # or refused
    return made


def _is_function(labels: Any) -> bool:
    return callable(labels) and not isinstance(labels, Sampler | type) and not hasattr(labels, "rvs")


@dataclass(frozen=True, repr=False)
class _Labelled(Distribution):
    tag: ClassVar[str] = "labelled"
    by_itself: ClassVar[bool] = True
    features: Sampler
    labels: Sampler | Callable[..., Any]
    given: Support | None

    def draw(self, n: int, rng: Rng) -> Any:
        x = self.features.draw(n, rng)
        if isinstance(self.labels, Sampler):
            return x, self.labels.draw(n, rng)
        return x, inside(with_coins(self.labels, x, rng), None if self.given is None else self.given.plain)

    def parts(self) -> Iterator[Any]:
        yield self.features
        yield self.labels

    @property
    def support(self) -> Any:
        own = getattr(self.labels, "support", None) if self.given is None else self.given.plain
        return getattr(self.features, "support", None), own

    def __repr__(self) -> str:
        labels = repr(self.labels) if isinstance(self.labels, Sampler) else name_of(self.labels)
        more = "" if self.given is None else f", support={self.given!r}"
        return f"labelled({self.features!r}, {labels}{more})"


def blobs(
    centers: ArrayLike,
    std: ArrayLike = 1.0,
    *,
    labels: Sequence[Any] | None = None,
    weights: Sequence[float] | None = None,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
) -> Distribution:
    """Draw pairs (X, y): normal clouds, one for each label.

    Parameters
    ----------
    centers : array of shape (k, d)
        The center of each cloud.
    std : float or array of shape (k,)
        Standard deviation in every direction, of all clouds or of each.
    labels : sequence, optional
        Their labels, 0 to k-1 by default.
    weights : sequence of float, optional
        How often each occurs, up to a common factor. Equally often by default.
    low, high : float or array of shape (d,), optional
        X is drawn conditionally on lying between these.

    Examples
    --------
    >>> blobs([[0, 0], [1, 2]], 0.5, labels=[-1, 1])
    blobs([[0, 0], [1, 2]], 0.5, labels=[-1, 1])
    >>> X, y = blobs([[0, 0], [1, 2]]).draw(4, np.random.default_rng(1))
    >>> X.shape, y
    ((4, 2), array([0, 1, 1, 1]))
    """
    places = numbers("centers", centers)
    if places.ndim != 2 or not places.size:
        raise SamplerError(f"blobs(): centers has shape {places.shape}: one row for each cloud is needed.")
    spread = numbers("std", std)
    if spread.shape not in ((), (len(places),)) or not (spread > 0).all():
        raise SamplerError(f"blobs(): std={std!r} must be positive, one for all clouds or one for each.")
    if labels is not None and (isinstance(labels, str) or not np.iterable(labels)):
        raise SamplerError(f"blobs(): labels={labels!r} must be a list of {len(places)}.")
    names = tuple(range(len(places)) if labels is None else labels)
    names = tuple(name.item() if isinstance(name, np.generic) else name for name in names)
    if not all(isinstance(name, str | int | float) for name in names) or (
        len(names) != len(places) or len(set(names)) < len(names) or len({type(n) for n in names}) > 1
    ):
        raise SamplerError(f"blobs(): labels={labels!r} must be {len(places)} different ones of one type.")
    edges = None
    if low is not None or high is not None:
        ends = (-np.inf if low is None else low, np.inf if high is None else high)
        edges = tuple(map(Frozen, box("blobs", *ends, (places.shape[1],))))
        if all(np.isinf(end.array).all() for end in edges):
            edges = None
    share = shares("weights", weights, len(places), "clouds")
    made = _Blobs(Frozen(places), Frozen(spread), names, type(names[0]).__name__, share, edges)
    draw(made, 100, np.random.default_rng(0))  # or refused
    return made


@dataclass(frozen=True, repr=False)
class _Blobs(Distribution):
    tag: ClassVar[str] = "blobs"
    by_itself: ClassVar[bool] = True
    immutable: ClassVar[bool] = True
    centers: Frozen
    std: Frozen
    labels: tuple[Any, ...]
    kind: str
    weights: Frozen | None
    edges: tuple[Any, ...] | None

    def draw(self, n: int, rng: Rng) -> Any:
        which = chosen(self.weights, len(self.labels), n, rng)
        mean = self.centers.array[which]
        std = self.std.array if not self.std.shape else self.std.array[which][:, None]
        if self.edges is None:
            x = mean + std * rng.standard_normal(mean.shape)
        else:
            low, high = (end.array for end in self.edges)
            u = rng.random(mean.shape)
            x = np.clip(truncated_normal((low - mean) / std, (high - mean) / std, u) * std + mean, low, high)
        return x, array_of(self.labels)[which]

    def parameters(self) -> dict[str, Any]:
        return own_fields(self) | {
            "weights": even(len(self.labels)) if self.weights is None else self.weights
        }

    @property
    def support(self) -> Any:
        inside = None if self.edges is None else tuple(end.end for end in self.edges)
        return inside, OneOf(self.labels, self.labels[0])

    def __repr__(self) -> str:
        shown = [repr(self.centers), repr(self.std)]
        if self.labels != tuple(range(len(self.labels))) or self.kind != "int":
            shown.append(f"labels={list(self.labels)!r}")
        if self.weights is not None:
            shown.append(f"weights={self.weights!r}")
        for name, end in zip(("low", "high"), self.edges or (), strict=False):
            if not np.isinf(end.array).all():
                same = np.ptp(end.array) == 0
                shown.append(f"{name}={plain(end.array.flat[0].item()) if same else repr(end)}")
        return f"blobs({', '.join(shown)})"
