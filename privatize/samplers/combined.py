"""Mixtures of several distributions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, cast

import numpy as np

from privatize.data import records
from privatize.data import support as domains
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, Sampler, kind, some, support_of
from privatize.samplers.distribution import Distribution, loose
from privatize.samplers.foreign import as_sampler
from privatize.samplers.parameters import Frozen, chosen, shares

__all__ = ["mixture"]


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
        parts = tuple(loose(as_sampler(component)) for component in components)
    except TypeError:
        raise SamplerError(f"mixture({components!r}): the components must be a list of samplers.") from None
    if not parts:
        raise SamplerError("mixture([]) has no components.")
    given = [1.0] * len(parts) if weights is None else weights
    share = shares("weights", given, len(parts), "components")
    drawn = [some(part) for part in parts]
    kinds = [records.alike(drawn[0], each) for each in drawn]
    if not all(kinds):
        raise SamplerError(
            f"mixture(): {parts[0]!r} and {parts[kinds.index(False)]!r} draw different kinds of records: "
            f"containers, columns, dtypes and categories must be the same."
        )
    return _Mixture(parts, cast("Frozen", share), tuple(records.head(each, 0) for each in drawn))


@kind("mixture")
class _Mixture(Distribution):
    components: tuple[Sampler, ...]
    weights: Frozen
    none: tuple[Any, ...] = field(compare=False)

    def draw(self, n: int, rng: Rng) -> Any:
        # Who comes from where, then each component's records, put back into their places.
        origin = chosen(self.weights, len(self.components), n, rng)
        order = np.argsort(origin, kind="stable")
        counts = np.bincount(origin, minlength=len(self.components))
        parts = [c.draw(int(size), rng) for c, size in zip(self.components, counts, strict=True) if size]
        places = np.empty(n, dtype=np.intp)
        places[order] = np.arange(n)
        # No records of every component, so that the dtype does not depend on who was chosen.
        return records.take(records.concat([*self.none, *parts]), places)

    def parts(self) -> Iterator[Any]:
        yield from self.components

    def _identity(self) -> Any:
        return self.components, self.weights

    @property
    def support(self) -> Any:
        return domains.join(map(support_of, self.components))

    def __repr__(self) -> str:
        parts = ", ".join(map(repr, self.components))
        return f"mixture([{parts}], weights={self.weights!r})"
