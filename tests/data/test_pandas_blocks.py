"""Labels of pandas' frames, and blocks of their columns."""

import numpy as np
import pytest

from privatize import samplers

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")

from privatize.data import pandas_blocks  # noqa: E402 - it needs pandas


def drawn():
    """Return a drawn frame of numbers, dates and categories."""
    table = samplers.table(
        age=samplers.integers(18, 90),
        pay=samplers.uniform(0, 100),
        sex=samplers.categorical(["F", "M"]),
        day=samplers.dates("2020-01-01", "2020-12-31"),
        ok=samplers.boolean(0.5),
    )
    return table.draw(9, np.random.default_rng(1))


def test_neighbours_are_made_block_by_block_only_from_frames_with_the_layout_of_private_data():
    """A frame in another layout would be passed on as it is, and a function may round differently on it."""
    assert pandas_blocks.is_laid_out(drawn())
    named, marked = drawn().rename_axis("row"), drawn()
    marked.attrs = {"secret": 1}
    by_rows = pd.DataFrame(np.ones((9, 2)), copy=False)
    in_two_blocks = pd.DataFrame({"a": np.ones(9)})
    in_two_blocks["b"] = 2.0
    for odd in (named, marked, by_rows, in_two_blocks, drawn().iloc[::2], drawn()["pay"]):
        assert not pandas_blocks.is_laid_out(odd)
    assert not pandas_blocks.is_laid_out(drawn().set_flags(allows_duplicate_labels=False))


def test_names_of_columns_are_not_shared():
    """A function that renames the columns of one neighbour would rename those of the other."""
    data = drawn()
    names = pandas_blocks.names_for(data)
    names.name = "renamed"
    assert list(names) == list(data) and data.columns.name is None
    assert pandas_blocks.names_for(data["pay"]) == ["pay"]
