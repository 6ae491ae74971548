"""Tables of pyarrow are laid out in private data as in P's draws."""

import contextlib

import numpy as np
import pytest

from privatize import samplers
from privatize.data import columns, records
from tests.data.layouts import OF_EVERY_KIND, check

N = 12
with contextlib.suppress(ImportError):
    pass
with contextlib.suppress(ImportError):
    pass
with contextlib.suppress(ImportError):
    import pyarrow as pa


def of_arrow(d):
    return (
        [(f.name, str(f.type), f.nullable, f.metadata) for f in d.schema],
        d.schema.metadata,
        [(c.num_chunks, c.chunk(0).offset, len(c.chunk(0))) for c in d.columns],
    )


@pytest.mark.skipif("pa" not in globals(), reason="pyarrow is not installed")
class TestArrow:
    @pytest.mark.parametrize("columns", ["x", "xyksct"])
    def test_tables(self, columns, tmp_path):
        """Chunks, offsets, metadata and what may be null are not the private table's."""
        sampler = samplers.table({name: OF_EVERY_KIND[name] for name in columns}, frame="pyarrow")
        rng = np.random.default_rng(1)
        data = pa.concat_tables([sampler.draw(N, rng), sampler.draw(N, rng)]).slice(3, N)
        data = data.replace_schema_metadata({"secret": "1"})
        fields = [field.with_nullable(False).with_metadata({"secret": "2"}) for field in data.schema]
        data = data.cast(pa.schema(fields, metadata={"secret": "1"}))
        check(sampler, data, of_arrow, tmp_path)


def test_rows_are_the_same_whatever_the_chunks_of_a_table():
    """Calibration would show a function how draws were put together, unlike private data."""
    table = pa.table({"x": [1.5, 2.5, None], "s": ["a", "b", "a"]}).replace_schema_metadata({"secret": "1"})
    table = table.set_column(1, "s", table["s"].dictionary_encode())
    split = pa.concat_tables([table[:1], table[1:]])
    for one, other in zip(records.pair(table, 0, 2), records.pair(split, 0, 2), strict=True):
        assert one.equals(other)
        assert one.schema.metadata is None is other.schema.metadata
        assert [column.num_chunks for column in (*one.columns, *other.columns)] == [1] * 4
    assert records.pair(table, 0, 2)[1].to_pylist() == [{"x": None, "s": "a"}, {"x": 2.5, "s": "b"}]


def test_values_of_categories_are_those_that_their_codes_stand_for():
    """Private categories would be read as others, or missing ones as present."""
    for values in (["b", None, "a", "b"], [3, 1, None, 3], [None, None]):
        plain = pa.array(values)
        for column in (
            plain.dictionary_encode(),
            pa.array(values + values).dictionary_encode()[: len(values)],
        ):
            listed, missing = columns.values_of(pa.chunked_array([column]))
            assert listed.tolist() == values
            assert missing is None
