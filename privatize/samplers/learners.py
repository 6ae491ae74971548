"""X and y, for learners: features with labels."""

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from privatize.data import frames
from privatize.data.columns import array_of
from privatize.data.support import OneOf
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, Sampler, kind, name_of, some, support_of, with_rng
from privatize.samplers.distribution import Distribution, loose, names_of
from privatize.samplers.foreign import as_sampler, is_function
from privatize.samplers.given import Support, inside, show_support
from privatize.samplers.numbers import between
from privatize.samplers.parameters import Box, Frozen, bounds, chosen, even, numbers, scalars, shares, show


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
        return _split(loose(as_sampler(features)), labels)
    made = _Labelled(
        loose(as_sampler(features)),
        labels if is_function(labels) else loose(as_sampler(labels)),
        Support.of(support),
    )
    some(made)  # or refused
    return made


@kind("labelled", "features", "labels")
class _Labelled(Distribution):
    features: Sampler
    labels: Sampler | Callable[..., Any]
    given: Support | None

    def draw(self, n: int, rng: Rng) -> Any:
        x = self.features.draw(n, rng)
        if isinstance(self.labels, Sampler):
            return x, self.labels.draw(n, rng)
        return x, inside(with_rng(self.labels, x, rng), self.given)

    def _support(self) -> Any:
        return support_of(self.features), support_of(self.labels) if self.given is None else self.given.plain

    def __repr__(self) -> str:
        labels = repr(self.labels) if isinstance(self.labels, Sampler) else name_of(self.labels)
        return f"labelled({self.features!r}, {labels}{show_support(self.given)})"


def _split(parent: Distribution, label: str) -> Distribution:
    """Make the distribution of pairs of the other columns of a table and one of them."""
    one = parent[label]  # or refused
    others = [name for name in names_of(parent) or () if name != label]
    if not others:
        raise SamplerError(f"labelled({parent!r}, {label!r}): there is no other column, to learn from.")
    return _Split(parent, label, tuple(others), (parent[others].support, one.support))


@kind("labelled column", "parent", view=True)
class _Split(Distribution):
    parent: Distribution
    label: str
    others: tuple[str, ...] = field(compare=False)
    own: Any = field(compare=False)

    def draw(self, n: int, rng: Rng) -> Any:
        drawn = self.parent.draw(n, rng)
        if (frames.kind(drawn) or ("", ""))[1] == "pyarrow":
            y = drawn.column(self.label).to_numpy()
        else:
            y = frames.select(drawn, self.label)
        return frames.select(drawn, list(self.others)), y

    def _support(self) -> Any:
        return self.own

    def __repr__(self) -> str:
        return f"labelled({self.parent!r}, {self.label!r})"


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
    names, kinds = scalars(range(len(places)) if labels is None else labels)
    one_type = len(kinds) == 1 and all(issubclass(each, str | int | float) for each in kinds)
    if not one_type or len(names) != len(places) or len(set(names)) < len(names):
        raise SamplerError(f"blobs(): labels={labels!r} must be {len(places)} different ones of one type.")
    edges = bounds("blobs", low, high, places.shape[1])
    share = shares("weights", weights, len(places), "clouds")
    made = _Blobs(Frozen(places), Frozen(spread), names, type(names[0]).__name__, share, edges)
    some(made, 100)  # or refused
    return made


@kind("blobs", immutable=True)
class _Blobs(Distribution):
    centers: Frozen
    std: Frozen
    labels: tuple[Any, ...]
    kind: str
    weights: Frozen | None
    edges: Box | None

    def draw(self, n: int, rng: Rng) -> Any:
        which = chosen(self.weights, len(self.labels), n, rng)
        mean = self.centers.array[which]
        std = self.std.array if not self.std.shape else self.std.array[which][:, None]
        if self.edges is None:
            x = mean + std * rng.standard_normal(mean.shape)
        else:
            x = between(mean, std, self.edges, rng.random(mean.shape))
        return x, array_of(self.labels)[which]

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"weights": self.weights or even(len(self.labels))}

    def _support(self) -> Any:
        inside = None if self.edges is None else tuple(end.end for end in self.edges)
        return inside, OneOf(self.labels, self.labels[0])

    def __repr__(self) -> str:
        shown = [repr(self.centers), repr(self.std)]
        if self.labels != tuple(range(len(self.labels))) or self.kind != "int":
            shown.append(f"labels={list(self.labels)!r}")
        if self.weights is not None:
            shown.append(f"weights={self.weights!r}")
        return f"blobs({', '.join([*shown, *show(self.edges)])})"
