"""Distributions made of others: mixtures, marginals of Bayesian models, features with labels for learners."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike

from privatize.data import frames, records
from privatize.data import support as domains
from privatize.data.columns import Column, array_of
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, Sampler, Traits, kind, name_of, some, support_of, with_rng
from privatize.samplers.change import support_for
from privatize.samplers.distribution import Distribution, Supported, as_part, names_of
from privatize.samplers.families import Family
from privatize.samplers.foreign import as_sampler, is_function
from privatize.samplers.given import Support, inside, show_support
from privatize.samplers.numbers import between
from privatize.samplers.parameters import Box, Frozen, bounds, chosen, even, numbers, scalars, shares, show


def mixture(components: Sequence[Any], weights: Sequence[float] | None = None) -> Distribution:
    """Draw each record from one of several distributions, chosen at random.

    Parameters
    ----------
    components : sequence of samplers
        Anything that ``sampler=`` accepts.
    weights : sequence of float, optional
        How often each is chosen, up to a common factor. Equally often by default.

    Examples
    --------
    >>> from privatize.samplers import normal
    >>> mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6])
    mixture([normal(0.5, 0.1), normal(0.75, 0.05)], weights=[0.4, 0.6])
    """
    try:
        parts = tuple(as_part(as_sampler(component)) for component in components)
    except TypeError:
        raise SamplerError(f"mixture({components!r}): the components must be a list of samplers.") from None
    if not parts:
        raise SamplerError("mixture([]) has no components.")
    given = [1.0] * len(parts) if weights is None else weights
    share = shares("weights", given, len(parts), "components")
    drawn = [some(part) for part in parts]
    kinds = [records.alike(drawn[0], each) for each in drawn]
    if not all(kinds):
        raise SamplerError(f"""mixture(): {parts[0]!r} and {parts[kinds.index(False)]!r} draw different kinds
            of records: containers, columns, dtypes and categories must be the same.""")
    return _Mixture(parts, cast("Frozen", share), tuple(records.head(each, 0) for each in drawn))


@kind("mixture")
class _Mixture(Distribution):
    components: tuple[Sampler, ...]
    weights: Frozen
    empty: tuple[Any, ...] = field(compare=False)

    def draw(self, n: int, rng: Rng) -> Any:
        # Choose a component for each record, draw each component's records, and put them into their places.
        origin = chosen(self.weights, len(self.components), n, rng)
        order = np.argsort(origin, kind="stable")
        counts = np.bincount(origin, minlength=len(self.components))
        parts = [c.draw(int(size), rng) for c, size in zip(self.components, counts, strict=True) if size]
        places = np.empty(n, dtype=np.intp)
        places[order] = np.arange(n)
        # Empty draws of all components come first, so that the dtype does not depend on which were chosen.
        return records.take(records.concat([*self.empty, *parts]), places)

    def parts(self) -> Iterator[Any]:
        yield from self.components

    def _support(self) -> Any:
        return domains.join(map(support_of, self.components))

    def __repr__(self) -> str:
        parts = ", ".join(map(repr, self.components))
        return f"mixture([{parts}], weights={self.weights!r})"


def marginal(
    prior: Any,
    likelihood: Callable[..., Any],
    *,
    per: Literal["record", "dataset"] = "record",
    support: Any = None,
) -> Distribution:
    """Draw records whose parameter is drawn too: the marginal of a Bayesian model.

    Parameters
    ----------
    prior : sampler
        What parameters are drawn from.
    likelihood : callable
        ``likelihood(theta, rng)`` returns one record for each parameter; or ``likelihood(theta)`` returns a
        distribution of `scipy.stats` with these parameters. It gets all parameters at once, so records are
        not known to be independent: sums over them (`privatize.additive`) are calibrated on entire datasets.
    per : {"record", "dataset"}
        Whether every record has a parameter of its own, or all records of a dataset share one. With
        "dataset" the records are exchangeable, not independent: the promise is then an average over the
        prior, and for some parameters it may fail more often than gamma.
    support : optional
        What the records lie in. Records that the likelihood draws outside are converted to it.

    References
    ----------
    Rubinstein & Aldà, ICML 2017, Section 5, on choosing P.

    Examples
    --------
    >>> from scipy import stats
    >>> from privatize.samplers import normal
    >>> def weight(mean):
    ...     return stats.norm(mean, 10)
    >>> marginal(normal(75, 5), weight)
    marginal(normal(75, 5), weight)
    >>> marginal(normal(75, 5), weight).draw(2, np.random.default_rng(1)).round(1)
    array([80. , 66.1])
    """
    if per not in ("record", "dataset"):
        raise SamplerError(f"marginal(per={per!r}): per must be 'record' or 'dataset'.")
    if not callable(likelihood):
        raise SamplerError(f"marginal(): likelihood={likelihood!r} is not a function of the parameters.")
    made = _Marginal(as_sampler(prior), likelihood, per, Support.of(support))
    some(made)  # raises if nothing can be drawn
    return made


@kind("marginal", "prior", iid=False, stable=False)  # the function may change
class _Marginal(Supported):
    prior: Sampler
    likelihood: Callable[..., Any]
    per: str
    given: Support | None

    def draw(self, n: int, rng: Rng) -> Any:
        if self.per == "record":
            theta = self.prior.draw(n, rng)
        else:
            theta = records.take(self.prior.draw(1, rng), np.zeros(n, dtype=np.intp))
        found = with_rng(self.likelihood, theta, rng)
        if hasattr(found, "rvs"):
            found = found.rvs(size=np.shape(found.mean()) or n, random_state=rng)
        return inside(found, self.given)

    def own_traits(self) -> Traits:
        return replace(self.known, independent=self.per == "record")

    def __repr__(self) -> str:
        more = ("" if self.per == "record" else ", per='dataset'") + show_support(self.given)
        return f"marginal({self.prior!r}, {name_of(self.likelihood)}{more})"


# --- X and y ----------------------------------------------------------------------------------


def labelled(features: Any, labels: Any, support: Any = None) -> Distribution:
    """Draw pairs (X, y) of features and labels.

    Parameters
    ----------
    features : sampler
        What X is drawn from: arrays or a table. Of a family the result is a family.
    labels : sampler, callable or str
        What y is drawn from, independently of X; or a function ``(X)`` or ``(X, rng)`` that returns the
        labels of the records of X; or the name of a column of a table: it becomes y, and the others become X.
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
    if isinstance(features, Family):
        return cast("Distribution", features.each(lambda each: labelled(each, labels, support)))
    if isinstance(labels, str):
        if support is not None:
            raise SamplerError(f"labelled(P, {labels!r}): P has the support of its columns, leave out yours.")
        return _split(as_part(as_sampler(features)), labels)
    made = _Labelled(
        as_part(as_sampler(features)),
        labels if is_function(labels) else as_part(as_sampler(labels)),
        Support.of(support),
    )
    some(made)  # raises if nothing can be drawn
    return made


@kind("labelled", "features", "labels")
class _Labelled(Distribution):
    features: Sampler
    labels: Sampler | Callable[..., Any]
    given: Support | None

    def draw(self, n: int, rng: Rng) -> Any:
        x = self.features.draw(n, rng)
        return x, self.labels_of(x, n, rng)

    def labels_of(self, x: Any, n: int, rng: Rng) -> Any:
        """Draw the labels of n records."""
        if isinstance(self.labels, Sampler):
            return self.labels.draw(n, rng)
        return inside(with_rng(self.labels, x, rng), self.given)

    def _support(self) -> Any:
        return support_of(self.features), support_of(self.labels) if self.given is None else self.given.value

    def __repr__(self) -> str:
        labels = repr(self.labels) if isinstance(self.labels, Sampler) else name_of(self.labels)
        return f"labelled({self.features!r}, {labels}{show_support(self.given)})"


def _split(parent: Distribution, label: str) -> Distribution:
    """Make the distribution of pairs (X, y): one column of a table is y, and the others are X."""
    one = parent[label]  # raises if there is no such column
    others = [name for name in names_of(parent) or () if name != label]
    if not others:
        raise SamplerError(f"labelled({parent!r}, {label!r}): there is no other column to learn from.")
    return _Split(parent, label, tuple(others), (parent[others].support, one.support))


@kind("labelled column", "parent", view=True)
class _Split(Distribution):
    parent: Distribution
    label: str
    others: tuple[str, ...] = field(compare=False)
    own: Any = field(compare=False)

    def draw(self, n: int, rng: Rng) -> Any:
        return self.split(self.parent.draw(n, rng))

    def split(self, drawn: Any) -> Any:
        """Return records of the table as (X, y)."""
        if (frames.kind(drawn) or ("", ""))[1] == "pyarrow":
            y = drawn.column(self.label).to_numpy()
        else:
            y = frames.select(drawn, self.label)
        return frames.select(drawn, list(self.others)), y

    def drawn(self, n: int, rng: Rng, wanted: tuple[str, ...] | None = None) -> Any:
        return cast("Any", self.parent).drawn(n, rng, wanted)

    def assemble(self, columns: dict[str, Column]) -> Any:
        return self.split(cast("Any", self.parent).assemble(columns))

    @property
    def supports(self) -> Any:
        return support_for(self.parent)

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
        raise SamplerError(f"blobs(): labels={labels!r} must be a list of {len(places)} labels.")
    names, kinds = scalars(range(len(places)) if labels is None else labels)
    one_type = len(kinds) == 1 and all(issubclass(each, str | int | float) for each in kinds)
    if not one_type or len(names) != len(places) or len(set(names)) < len(names):
        raise SamplerError(f"blobs(): labels={labels!r} must be {len(places)} different labels of one type.")
    edges = bounds("blobs", low, high, places.shape[1])
    share = shares("weights", weights, len(places), "clouds")
    made = _Blobs(Frozen(places), Frozen(spread), names, type(names[0]).__name__, share, edges)
    some(made, 100)  # raises if nothing can be drawn
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
        centers = self.centers.array
        std = self.std.array if not self.std.shape else self.std.array[:, None]
        if self.edges is None:
            own = std[which] if std.ndim else std
            x = centers[which] + own * rng.standard_normal((n, *centers.shape[1:]))
        else:
            x = between(centers, std, self.edges, rng.random((n, *centers.shape[1:])), which)
        return x, array_of(self.labels)[which]

    def skip(self, n: int, rng: Rng) -> None:
        """Use a generator as `draw` does."""
        chosen(self.weights, len(self.labels), n, rng)
        numbers = rng.standard_normal if self.edges is None else rng.random
        numbers((n, *self.centers.shape[1:]))

    def parameters(self) -> dict[str, Any]:
        return super().parameters() | {"weights": self.weights or even(len(self.labels))}

    def _support(self) -> Any:
        inside = None if self.edges is None else tuple(end.end for end in self.edges)
        return inside, domains.OneOf(self.labels, self.labels[0])

    def __repr__(self) -> str:
        shown = [repr(self.centers), repr(self.std)]
        if self.labels != tuple(range(len(self.labels))) or self.kind != "int":
            shown.append(f"labels={list(self.labels)!r}")
        if self.weights is not None:
            shown.append(f"weights={self.weights!r}")
        return f"blobs({', '.join([*shown, *show(self.edges)])})"
