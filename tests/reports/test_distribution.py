"""The page shows P as a table, and as code, and what it draws."""

import xml.etree.ElementTree as ET

from privatize import samplers
from privatize.reports.distribution import section

P = samplers.table(age=samplers.integers(18, 90), income=samplers.uniform(0, 200_000))


def cells(source):
    """Return the cells of the first table."""
    tree = ET.fromstring(f"<div>{source}</div>")
    return [[cell.text or "" for cell in line] for line in next(tree.iter("table")).iter("tr")]


def test_p_is_a_small_table():
    """Whoever compares P with reality would have to read code."""
    made = section(P)
    assert cells(made) == [
        ["column", "distribution", "range"],
        ["age", "integers(18, 90)", "[18, 90]"],
        ["income", "uniform(0, 200000)", "[0, 200000]"],
    ]
    assert f"<code>{P!r}</code>" in made and "What P draws" in made


def test_every_member_of_a_family_is_in_the_table():
    """A member for which the promise holds, too, would be missing."""
    family = samplers.any_of(samplers.uniform(0, 1), wide=samplers.uniform(-5, 5))
    assert cells(section(family)) == [
        ["member", "column", "distribution", "range"],
        ["uniform(0, 1)", "value", "uniform(0, 1)", "[0, 1]"],
        ["wide", "value", "uniform(-5, 5)", "[-5, 5]"],
    ]
    shown = cells(section(P.family()))
    assert shown[1][:2] == ["P", "age"] and shown[2][:2] == ["", "income"]
    assert [row[0] for row in shown[3:]] == list(P.family().names[1:])


def test_names_are_escaped():
    """A column's name could run code in a reader's browser."""
    made = section(samplers.table({"<script>": samplers.choice(["<b>", "&"])}))
    assert "<script" not in made and "&lt;script&gt;" in made
