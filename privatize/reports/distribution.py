"""The part of a page about P: every column, its distribution and its range; P as code; what P draws."""

import html
import itertools
from collections.abc import Iterator
from typing import Any

from privatize.display.cards import grid
from privatize.samplers.families import Family
from privatize.samplers.learned import Learned
from privatize.samplers.outline import HEADS, outline
from privatize.samplers.people import PeopleDistribution

_NEAR = "Gamma holds for people drawn from that P; for people who are only near it, that is not proven."


def section(sampler: Any, same: bool = False) -> str:
    """Return a small table of P, or of each member of a family, and what can be unfolded below it.

    `same` tells whether a learned P is known to be from the people that the page is about.
    """
    family = isinstance(sampler, Family)
    shown = grid(("member", *HEADS), _members(sampler)) if family else grid(HEADS, outline(sampler))
    code = f"<p><code>{html.escape(repr(sampler))}</code></p>"
    source = "the same people" if same else "private data"
    near = f"<p class='note'>P was learned from {source}. {_NEAR}</p>" if learned(sampler) else ""
    return (
        f"<h3>P, the distribution of one record</h3>{near}{shown}"
        f"<details><summary>P as code</summary>{code}</details>{_drawn(sampler)}"
    )


def learned(sampler: Any) -> str:
    """Say with which epsilon P, or a part of it, was learned; empty if none was."""
    found = {id(each): f"epsilon={each.epsilon:g}" for each in _lessons(sampler)}
    return " and ".join(found.values())


def _lessons(sampler: Any) -> Iterator[Learned]:
    """Yield everything in P that was learned; of a P of persons, with parts learned at once, the first."""
    if isinstance(sampler, Learned):
        yield sampler
    parts = getattr(sampler, "parts", None)
    found = (each for part in (parts() if callable(parts) else ()) for each in _lessons(part))
    yield from itertools.islice(found, 1) if isinstance(sampler, PeopleDistribution) else found


def _members(family: Family) -> list[list[str]]:
    """Return a row for each column of each member; of one that is P, changed, what is changed."""
    rows = []
    for name, member in family.items():
        if hasattr(member, "change"):
            rows.append([name, "", "as in the first member, with this change", ""])
            continue
        rows += [["" if at else name, *row] for at, row in enumerate(outline(member))]
    return rows


def _drawn(sampler: Any) -> str:
    describe = getattr(sampler, "describe", None)
    if describe is None:
        return ""
    return (
        f"<details><summary>What P draws</summary><div class='scroll'><div style='min-width:36rem'>"
        f"{describe(1000, seed=0)._repr_html_()}</div></div></details>"
    )
