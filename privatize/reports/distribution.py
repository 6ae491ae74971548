"""The part of a page about P: every column, its distribution and its range; P as code; what P draws."""

import html
from typing import Any

from privatize.display.cards import grid
from privatize.samplers.families import Family
from privatize.samplers.outline import HEADS, outline


def section(sampler: Any) -> str:
    """Return a small table of P, or of each member of a family, and what can be unfolded below it."""
    family = isinstance(sampler, Family)
    shown = grid(("member", *HEADS), _members(sampler)) if family else grid(HEADS, outline(sampler))
    code = f"<p><code>{html.escape(repr(sampler))}</code></p>"
    return (
        f"<h3>P, the distribution of one record</h3>{shown}"
        f"<details><summary>P as code</summary>{code}</details>{_drawn(sampler)}"
    )


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
