"""Records that are taken from a dataset show nothing of the other records."""

import datetime as dt
import io
import pickle

import numpy as np
import pytest

from privatize.data import records
from tests.cases import for_each

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
pl = pytest.importorskip("polars", reason="polars is not installed (extra test)")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra test)")
sparse = pytest.importorskip("scipy.sparse")

N = 40
LONG = "a name that nobody else has" * 3


def columns(extreme):
    """Return columns in which the first record is like others, or like no other."""
    strings, numbers = [f"a{i % 3}" for i in range(N)], np.arange(float(N))
    optional: list = [None if i == 5 else i for i in range(N)]
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(days=i) for i in range(N)]
    if extreme:
        strings[0], numbers[0], days[0] = LONG, 1e300, dt.datetime(1700, 1, 1)
        optional[0] = None if extreme == 1 else 2**60
    return strings, numbers, optional, days


def pandas_frame(strings, numbers, optional, days):
    arrow = {"text": pa.string(), "category": pa.dictionary(pa.int32(), pa.string())}
    frame = pd.DataFrame(
        {
            "text": strings,
            "sorted": pd.Categorical(strings),
            "ordered": pd.Categorical(strings, categories=sorted(set(strings))[::-1], ordered=True),
            "by appearance": pd.Categorical(strings, categories=list(dict.fromkeys(strings))),
            "number": numbers,
            "day": days,
            "optional": pd.array(optional, dtype="Int64"),
            "string": pd.array(strings, dtype="string"),
            "arrow optional": pd.array(optional, dtype=pd.ArrowDtype(pa.int64())),
            **{f"arrow {name}": pd.array(strings, dtype=pd.ArrowDtype(kind)) for name, kind in arrow.items()},
        }
    )
    frame.attrs["first"] = strings[0]
    return frame


def polars_frame(strings, numbers, optional, days):
    frame = pl.DataFrame(
        {
            "text": strings,
            "number": numbers,
            "day": days,
            "optional": optional,
            "list": [[each, each] for each in strings],
            "struct": [{"a": each} for each in strings],
        }
    )
    kinds = {"category": pl.Categorical, "enum": pl.Enum(sorted(set(strings))), "bytes": pl.Binary}
    return frame.with_columns(pl.col("text").cast(kind).alias(name) for name, kind in kinds.items())


def datasets(extreme):
    strings, numbers, optional, days = given = columns(extreme)
    text, wide, frame = np.array(strings), np.column_stack([numbers, numbers]), pandas_frame(*given)
    fields = list(zip(strings, numbers, strict=True))
    table = pa.table(
        {
            "text": strings,
            "number": numbers,
            "optional": optional,
            "category": pa.array(strings).dictionary_encode(),
            "day": days,
            "struct": [{"a": each} for each in strings],
        }
    )
    found = {
        "strings": text,
        "bytes": text.astype("S"),
        "fields": np.array(fields, dtype=[("name", text.dtype), ("value", "f8")]),
        "numbers": numbers,
        "columns": np.asfortranarray(wide),
        "view": wide[:, 0],
        "objects": text.astype(object),
        "list": strings,
        "dicts": [{"name": name, "value": value} for name, value in fields],
        "arrays": list(wide),
        "arrays of strings": list(text[:, None]),
        "tuple": (numbers, text),
        "dict": {"a": text, "b": strings},
        "frame": frame,
        "series": frame["sorted"],
        "filtered": frame[frame["number"] >= 0],
        "index of strings": frame.set_index("text"),
        "index of days": frame.set_index("day"),
        "index of categories": frame.set_index("sorted"),
        "two levels": frame.set_index(["sorted", "text"]),
        "polars": polars_frame(*given),
        "polars series": polars_frame(*given)["category"],
        "arrow": table,
        "arrow in chunks": pa.concat_tables([table.slice(0, 7), table.slice(7)]),
    }
    forms = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
    return found | {form: sparse.csr_array(np.diag(numbers)).asformat(form) for form in forms}


CASES = [datasets(extreme) for extreme in (0, 1, 2)]


def _bytes(data):
    """Return data as bytes in which equal strings are equal, whether they are one object or several."""
    made = io.BytesIO()
    pickler = pickle.Pickler(made)
    pickler.fast = True
    pickler.dump(data)
    return made.getvalue()


@for_each("name", CASES[0])
def test_one_records_extreme_values_change_nothing_in_other_blocks(name):
    """One person's long name, new category or missing value would change all blocks, and not only one."""
    for positions in ([9, 3, 5, 22, 17, 4], [9, 3, 22, 17], []):
        taken = [records.take(data[name], np.array(positions, dtype=np.intp)) for data in CASES]
        made = {_bytes(records.isolated(each)) for each in taken}
        assert len(made) == 1
        assert LONG.encode() not in made.pop()


@for_each("name", CASES[0])
def test_the_records_themselves_stay(name):
    """The function would get other values, names or dtypes than the user has."""
    data = records.take(CASES[0][name], np.arange(N))
    made = records.isolated(data)
    assert records.equal(made, data)
    assert records.describe(made) == records.describe(data)


def test_parts_of_one_tensor():
    """Torch pickles the entire memory that a part belongs to, with all other records."""
    torch = pytest.importorskip("torch")
    numbers = torch.arange(1000.0)
    for data in (numbers, list(numbers), [{"a": each} for each in numbers]):
        made = records.isolated(records.take(data, np.array([3, 1])))
        assert len(pickle.dumps(made)) < 2500
        first = made[0]["a"] if isinstance(made[0], dict) else made[0]
        assert float(first) == 3


def test_nanoseconds_stay():
    """Moments would be rounded on their way to a block."""
    moments = np.array([1, 2**60 + 7, 3], dtype="M8[ns]")
    frame = pl.DataFrame({"at": moments, "for": moments - moments[0], "time": [dt.time(1, 2, 3)] * 3})
    frame = frame.with_columns(pl.col("at").dt.replace_time_zone("Europe/Berlin").alias("zoned"))
    assert records.isolated(frame).equals(frame)
    assert records.isolated(frame.to_arrow()).equals(frame.to_arrow())


def test_enums_inside_of_lists_and_structs():
    """One person's category would be seen in all blocks, as a part of a nested dtype."""
    for values, nest in (
        ([["u"], ["v"]], pl.List),
        ([["u"], ["v"]], lambda kind: pl.Array(kind, 1)),
        ([{"a": "u"}, {"a": "v"}], lambda kind: pl.Struct({"a": kind})),
    ):
        column = pl.Series("name", values, nest(pl.Enum(["u", "v", LONG])))
        made = records.isolated(records.take(column, np.array([1])))
        assert made.to_list() == values[1:] and LONG not in str(made.dtype)
