"""P as a small table: for each column its distribution and its range."""

from typing import Any

from privatize.data.persons import COUNTS
from privatize.errors import SamplerError
from privatize.samplers.base import Sampler, name_of, support_of
from privatize.samplers.combined import _Labelled, _Split
from privatize.samplers.describing import describe, shown_support
from privatize.samplers.distribution import Fixed, Perturbed, Projection
from privatize.samplers.learned import Learned
from privatize.samplers.people import PeopleDistribution
from privatize.samplers.tables import _Table

HEADS = ("column", "distribution", "range")
_LONGEST = 120  # characters of a distribution
_MOST = 40  # columns


def outline(sampler: Any) -> list[tuple[str, str, str]]:
    """Return column, distribution and range of everything that P draws; a long list is cut.

    Examples
    --------
    >>> from privatize import samplers
    >>> outline(samplers.uniform(0, 100))
    [('value', 'uniform(0, 100)', '[0, 100]')]
    >>> P = samplers.table(age=samplers.integers(18, 90), sex=samplers.choice(["f", "m"]))
    >>> for row in outline(P):
    ...     print(row)
    ('age', 'integers(18, 90)', '[18, 90]')
    ('sex', "choice(['f', 'm'])", '{f, m}')
    """
    laws = _laws(sampler)
    try:
        drawn = [(row.name, row.support) for row in describe(sampler, 100, 0).rows]
    except SamplerError:  # it cannot draw that many, say
        drawn = [("value", shown_support(support_of(sampler)))]
    rows = []
    before = ""
    for name, inside in drawn[:_MOST]:
        law = laws.get(name.partition("[")[0], laws.get(name, _short(repr(sampler))))
        rows.append((name, "the same" if law == before and name not in laws else law, inside))
        before = law
    more = len(drawn) - len(rows)
    return [*rows, ("...", f"and {more:,} more", "")] if more > 0 else rows


def _laws(sampler: Any) -> dict[str, str]:
    """Return the distributions of columns, by name, as far as a sampler is made of them."""
    match sampler:
        case _Table():
            return {name: _short(repr(part)) for name, part in sampler.columns}
        case PeopleDistribution():
            counts = {} if sampler.rows is None else {COUNTS: _short(repr(sampler.rows))}
            return _laws(sampler.person) | counts | _laws(sampler.visit)
        case Learned():
            within = _laws(sampler.within)
            by = f"learned with epsilon={sampler.epsilon:g}, within"
            other = _short(repr(sampler.within))
            return {name: f"{by} {within.get(name, other)}" for name, _ in sampler.columns}
        case Perturbed():
            inner, changed = _laws(sampler.inner), sampler.change.columns
            return {name: f"{law}, changed" if name in changed else law for name, law in inner.items()}
        case Fixed():
            return _laws(sampler.inner)
        case Projection() | _Split():
            return _laws(sampler.parent)
        case _Labelled():
            drawn = isinstance(sampler.labels, Sampler)
            labels = repr(sampler.labels) if drawn else f"computed by {name_of(sampler.labels)}"
            features = _laws(sampler.features) or {"X": _short(repr(sampler.features))}
            return features | {"y": _short(labels)}
    return {}


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
