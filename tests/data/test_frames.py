"""Frames are converted to P's dtypes and support row by row, and errors name only their schema."""

import contextlib
import datetime as dt
import decimal

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from privatize import audit, estimate_sensitivity, plan, privatize, samplers
from privatize.data import clipping, columns, frames, records
from privatize.data.support import Maybe, OneOf
from privatize.errors import DataError, PrivatizeError, SettingsError
from privatize.identity.reachable import is_private
from tests.cases import for_each
from tests.data.drawn_frames import (
    CASES,
    COLUMNS,
    DAYS,
    DTYPES,
    FULL,
    KINDS,
    LAYOUTS,
    LIBRARIES,
    OWN,
    OWNED,
    PEOPLE,
    POOLS,
    RNG,
    TEXT,
    ZONE,
    column,
    dtype_of,
    framed,
    inf,
    nan,
    pa,
    pd,
    pl,
    private,
)

NUMBER = 918273.6450912
FLOATS = [0.5, 1.5, -3.0, NUMBER, 1e300, inf, -inf, nan]


def kind_of(name):
    """Return the kind of a column of the table."""
    return next(kind for kind, called in KINDS.items() if name in called)


def pool(library, name, dtype):
    """Return values that a private column of a dtype may have."""
    kind, text = kind_of(name), str(dtype).lower()
    values = POOLS[kind]
    if "float" in text:
        values = values + FLOATS
    if library == "pandas" and text in ("int64", "uint8", "bool"):
        values = [v for v in values if v is not None]
    if "bool" in text:
        values = [v if v is None else bool(v) for v in values if v in (0, 1, None)]
    return values


def values_of(frame, at=0):
    """Return a column of a frame as Python's values."""
    return columns.narwhals(frames.columns(frame)[at]).to_list()


def fine(value, support):
    """Tell whether one value lies in a support."""
    if isinstance(support, Maybe):
        return clipping.is_missing(value) or fine(value, support.inner)
    if clipping.is_missing(value):
        return False
    if isinstance(support, OneOf):
        return value in support.values
    low, high = support
    if isinstance(low, np.datetime64):
        moment = pd.Timestamp(value)
        moment = moment if moment.tz is None else moment.tz_convert("UTC").tz_localize(None)
        return pd.Timestamp(low) <= moment <= pd.Timestamp(high)
    return low <= value <= high


def drawn_by(sampler, seed=0):
    """Return two records that a sampler draws."""
    return sampler.draw(2, np.random.default_rng(seed))


def converted(data, sampler, seed=0):
    """Convert data to a sampler's dtypes and support."""
    return records.convert(data, drawn_by(sampler, seed), sampler.support)


# --- row by row -------------------------------------------------------------------------------


@for_each(("library", "name", "dtype"), CASES, ids=str)
def test_every_row_is_converted_as_it_would_be_alone(library, name, dtype):
    """A row that changed another would make neighbours differ in more than one record."""
    P = samplers.table({name: COLUMNS[name]}, frame=library)
    drawn = drawn_by(P)
    data = framed(library, name, column(library, pool(library, name, dtype), dtype))
    records.match(drawn, records.describe(data), P.support)
    with np.errstate(all="ignore"):
        made = records.convert(data, drawn, P.support)
        each = [
            records.convert(records.take(data, np.array([at])), drawn, P.support)
            for at in range(records.count(data))
        ]
    assert {str(dtype_of(one)) for one in [made, *each]} == {str(dtype_of(drawn))}
    assert all(dtype_of(one) == dtype_of(drawn) for one in [made, *each])
    assert records.describe(made) == records.describe(drawn)
    assert repr(values_of(made)) == repr([value for one in each for value in values_of(one)])
    assert all(fine(value, P.support[name]) for value in values_of(made))


@for_each(("library", "name", "dtype"), CASES, ids=str)
def test_without_a_support_rows_are_converted_alone_too(library, name, dtype):
    """domain="as-is" casts to P's dtypes, and a cast may not depend on the other rows either."""
    P = samplers.table({name: COLUMNS[name]}, frame=library)
    drawn = drawn_by(P)
    data = framed(library, name, column(library, pool(library, name, dtype), dtype))
    with np.errstate(all="ignore"):
        made = records.convert(data, drawn, None)
        each = [
            values_of(records.convert(records.take(data, np.array([at])), drawn, None))
            for at in range(records.count(data))
        ]
    assert dtype_of(made) == dtype_of(drawn)
    assert repr(values_of(made)) == repr([value for one in each for value in one])


@pytest.mark.parametrize("library", LIBRARIES)
@given(data=st.data(), n=st.integers(1, 5), position=st.integers(0, 4))
# Without shrinking: a smaller example of frames this wide takes minutes to find.
@settings(max_examples=12, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
def test_neighbours_stay_neighbours(library, data, n, position):
    """Two frames that differ in one row differ in that row alone afterwards, whatever is in it."""
    P = samplers.table(COLUMNS, frame=library)
    made = {}
    for name in COLUMNS:
        dtype = data.draw(
            st.sampled_from(DTYPES["polars" if library == "pyarrow" else library, kind_of(name)])
        )
        values = data.draw(
            st.lists(st.sampled_from(pool(library, name, dtype)), min_size=n + 1, max_size=n + 1)
        )
        made[name] = column(library, values, dtype)
    if library == "pandas":
        frame = pd.DataFrame(made)
    else:
        frame = pl.DataFrame(made) if library == "polars" else pl.DataFrame(made).to_arrow()
    drawn = drawn_by(P)
    position %= n
    with np.errstate(all="ignore"):
        one = records.convert(records.head(frame, n), drawn, P.support)
        other = records.convert(records.neighbour(frame, position, n), drawn, P.support)
    assert records.describe(one) == records.describe(other) == records.describe(drawn)
    for at, name in enumerate(COLUMNS):
        assert dtype_of(one, at) == dtype_of(other, at) == dtype_of(drawn, at)
        for row, (a, b) in enumerate(zip(values_of(one, at), values_of(other, at), strict=True)):
            assert repr(a) == repr(b) or row == position
            assert fine(a, P.support[name]) and fine(b, P.support[name])


@pytest.mark.parametrize("other", [1, None, 2.5, "x", True], ids=repr)
def test_categories_that_are_taken_from_the_data_do_not_affect_other_rows(other):
    """One odd number makes floats of all categories: every other row would become unknown."""
    P = samplers.table(c=samplers.categorical([1, 2, 3]))
    for dtype in ("category", object):
        made = converted(pd.DataFrame({"c": pd.Series([2, 3, other], dtype=dtype)}), P)
        assert made["c"].tolist()[:2] == [2, 3]


@pytest.mark.parametrize("other", [1.5, 7, None], ids=repr)
def test_integers_among_categories_match_floats(other):
    """If no category has a fraction, pandas makes integers of all: 2 must still be P's 2.0."""
    P = samplers.table(c=samplers.categorical([1.5, 2.0]))
    made = converted(pd.DataFrame({"c": pd.Series([2, 2, other], dtype="category")}), P)
    assert made["c"].tolist()[:2] == [2.0, 2.0]


@for_each("library", LIBRARIES)
@for_each("other", [5, None])
def test_a_large_integer_does_not_depend_on_a_missing_one(library, other):
    """A null makes floats of integers, which would round every other row."""
    P = samplers.table(
        x=samplers.from_function(lambda n, rng: rng.integers(0, 2**60, n)),
        y=samplers.uniform(0, 1),
        frame=library,
    )
    series = (
        pd.array([2**53 + 1, other], dtype="Int64") if library == "pandas" else pl.Series([2**53 + 1, other])
    )
    frame = {"x": series, "y": [0.5, 0.5]}
    data = pd.DataFrame(frame) if library == "pandas" else pl.DataFrame(frame)
    data = data.to_arrow() if library == "pyarrow" else data
    for support in (P.support, {"x": (0, 2.0**62)}):
        assert values_of(records.convert(data, drawn_by(P), support))[0] == 2**53 + 1


def test_one_missing_value_changes_no_integer():
    """pandas turns integers to floats at the first missing value; the function must not notice."""
    P = samplers.table(age=samplers.integers(0, 120))
    full, partial = (pd.DataFrame({"age": [30, 40, other]}) for other in (50, None))
    assert full["age"].dtype != partial["age"].dtype
    assert converted(full, P).equals(converted(partial.fillna(50), P))
    assert converted(partial, P)["age"].tolist() == [30, 40, 60]


ODD = [
    "F",
    TEXT,
    None,
    pd.NA,
    pd.NaT,
    nan,
    1,
    True,
    np.str_("M"),
    decimal.Decimal("1"),
    decimal.Decimal("sNaN"),
    [1],
    {},
    {2},
    b"F",
    10**400,
    1j,
    dt.date(2020, 1, 1),
    pd.Timestamp("2020-01-01", tz="UTC"),
    np.array([1, 2]),
    pd.Series([1]),
]


@for_each("clip", [True, False])
@for_each(
    "sampler",
    [
        samplers.categorical(["F", "M"]),
        samplers.choice(["F", "M"]),
        samplers.with_missing(samplers.choice(["F", "M"]), 0.5),
    ],
    ids=str,
)
def test_any_object_in_a_column_is_mapped(sampler, clip):
    """An odd object in one row must neither raise an error, which reveals it, nor change another row."""
    P = samplers.table(c=sampler)
    drawn = drawn_by(P)
    for odd in ODD:
        cells = np.empty(2, dtype=object)
        cells[:] = ["M", None]
        cells[1] = odd
        data = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
        made = records.convert(data, drawn, P.support if clip else None)
        assert made["c"].dtype == drawn["c"].dtype
        assert made["c"][0] == "M"


# --- supports and dtypes ----------------------------------------------------------------------


@pytest.mark.parametrize(("start", "end"), [("2020-01-01", "9999-12-31"), ("0001-01-01", "9999-12-31")])
def test_dates_beyond_nanoseconds(start, end):
    """Bounds that overflow nanoseconds would turn every private date into the same wrong day."""
    P = samplers.table(d=samplers.dates(start, end))
    days = pd.to_datetime(["2021-01-01", "2022-03-04"])
    made = converted(pd.DataFrame({"d": days.astype("datetime64[ns]")}), P)
    assert made["d"].tolist() == days.tolist()


def test_far_private_dates_are_clipped():
    """A date that nanoseconds cannot hold must not wrap around."""
    data = pd.DataFrame({"d": np.array(["9999-01-01", "0001-01-01", "NaT"], dtype="M8[s]")})
    made = converted(data, samplers.table(d=DAYS))["d"].dt.date.tolist()
    assert made == [dt.date(2024, 12, 31), dt.date(2020, 1, 1), dt.date(2022, 7, 2)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_missing_boolean_becomes_unknown(library):
    """unknown= is a public promise about what happens to a missing value."""
    P = samplers.table(b=samplers.choice([False, True], unknown=True), frame=library)
    series = pd.array([None, False], dtype="boolean") if library == "pandas" else pl.Series([None, False])
    assert values_of(converted(framed(library, "b", series), P)) == [True, False]


def test_a_boolean_that_p_does_not_draw_is_mapped():
    """A record outside the support is one that calibration has never seen."""
    P = samplers.table(b=samplers.choice([True]))
    assert converted(pd.DataFrame({"b": [False, True]}), P)["b"].tolist() == [True, True]


@for_each("seed", range(6))
def test_a_missing_string_does_not_become_a_string(seed):
    """None would become "None", or "N", if two drawn strings happen not to be missing."""
    P = samplers.table(c=samplers.with_missing(samplers.choice(["aa", "b"]), 0.3))["c"]
    assert list(converted(np.array(["aa", None, "zz"], dtype=object), P, seed)) == ["aa", None, "aa"]


def test_arrow_days_in_pandas():
    """What is accepted by its schema must not fail on the private values."""
    P = samplers.table(d=DAYS)
    days = pd.Series([dt.date(2021, 1, 1), None], dtype=pd.ArrowDtype(pa.date32()))
    data = pd.DataFrame({"d": days})
    records.match(drawn_by(P), records.describe(data), P.support)
    assert converted(data, P)["d"].dt.date.tolist() == [dt.date(2021, 1, 1), dt.date(2022, 7, 2)]


def test_arrow_moments_with_a_zone_in_pandas():
    """The same instants in the same zone fit, whichever library stores them."""
    P = samplers.table(d=COLUMNS["seen"])
    moments = pd.Series(pd.to_datetime(["2021-01-01"]).tz_localize(ZONE))
    data = pd.DataFrame({"d": moments.astype(pd.ArrowDtype(pa.timestamp("us", tz=ZONE)))})
    records.match(drawn_by(P), records.describe(data), P.support)
    assert converted(data, P)["d"].tolist() == moments.tolist()


CONVERT = {"pandas": lambda d: d, "polars": pl.from_pandas, "pyarrow": lambda d: pa.table(d)}


@for_each("clip", [True, False])
@for_each("name", FULL.columns)
@for_each("library", LIBRARIES)
def test_data_of_ps_own_kind_is_not_changed(library, name, clip):
    """Dtypes, categories, time zones and missing values survive."""
    data = CONVERT[library](FULL[[name]])
    P = samplers.bootstrap(data)
    made = records.convert(data, drawn_by(P), P.support if clip else None)
    assert records.equal(made, data)
    assert dtype_of(made) == dtype_of(data)
    assert made.equals(data)


# --- what leaks -------------------------------------------------------------------------------


BAD = {
    "strings for numbers": lambda: pd.DataFrame({"age": [TEXT, "1"], "sex": ["F", "M"]}),
    "object for numbers": lambda: pd.DataFrame({"age": pd.Series([NUMBER, TEXT], dtype=object), "sex": "F"}),
    "categories": lambda: pd.DataFrame({"age": pd.Categorical([NUMBER, 1.0]), "sex": "F"}),
    "numbers for strings": lambda: pd.DataFrame({"age": [1, 2], "sex": [NUMBER, 1.0]}),
    "index": lambda: pd.DataFrame({"age": [1, 2], "sex": "F"}, index=[TEXT, "b"]),
    "category index": lambda: pd.DataFrame(
        {"age": [1, 2], "sex": "F"}, index=pd.CategoricalIndex([TEXT, "b"])
    ),
    "interval": lambda: pd.DataFrame({"age": pd.interval_range(NUMBER, periods=2), "sex": "F"}),
    "structs": lambda: pl.DataFrame({"age": [{"v": TEXT}], "sex": "F"}),
    "enum": lambda: pl.DataFrame({"age": pl.Series([TEXT], dtype=pl.Enum([TEXT])), "sex": "F"}),
    "dictionary": lambda: pa.table({"age": pa.array([TEXT]).dictionary_encode(), "sex": ["F"]}),
    "fewer": lambda: pd.DataFrame({"age": [NUMBER]}),
    "unhashable": lambda: pd.DataFrame({"age": [1, 2], "sex": pd.Series([[TEXT], {TEXT}], dtype=object)}),
    "huge": lambda: pd.DataFrame({"age": [NUMBER, 1e300], "sex": [TEXT, "M"]}),
}


@for_each("library", LIBRARIES)
@for_each("name", BAD)
@for_each("domain", ["clip", "as-is"])
def test_no_error_shows_a_cell(name, library, domain):
    """Conversions quote what they cannot convert: a person's value would appear in a log."""
    P = samplers.table(age=samplers.integers(0, 120), sex=samplers.categorical(["F", "M"]), frame=library)
    f = private(P, lambda d: float(len(d)), domain=domain)
    error = None
    try:
        f(BAD[name]())
    except PrivatizeError as found:
        error = found
    if error is not None:
        shown = f"{error!s} {error!r} {vars(error)!r}"
        assert TEXT not in shown and "918273" not in shown
        assert error.__cause__ is None and error.__context__ is None


# --- bootstrap(private) -----------------------------------------------------------------------


@for_each("name", OWNED)
def test_the_private_frame_is_recognized(name):
    """P would be made of the very records that the answer is to hide."""
    assert is_private(samplers.bootstrap(OWN), OWNED[name])


@pytest.mark.parametrize("columns", ["pay", ["pay"], ["sex", "pay"], ["age", "pay"]], ids=str)
def test_a_projection_of_the_private_frame_is_recognized(columns):
    """P["pay"] of a bootstrap draws the private incomes if the frame was private."""
    P = samplers.bootstrap(OWN)[columns]
    assert is_private(P, OWN[columns].copy())
    with pytest.raises(DataError, match="bootstraps"):
        private(P)(OWN[columns].copy())


def test_a_column_of_the_private_frame_is_recognized():
    """One private column is as private as all of them."""
    P = samplers.bootstrap(OWN["pay"])
    assert is_private(P, OWN["pay"].tolist())
    assert is_private(P, OWN)
    assert is_private(P, OWN["pay"].sample(frac=1, random_state=1).to_numpy())
    assert is_private(samplers.table(pay=P, z=samplers.uniform(0, 1)), OWN[["pay"]].assign(z=0.5))


@pytest.mark.parametrize(
    "data",
    [
        OWN.assign(pay=OWN["pay"] + 1),
        OWN.assign(pay=RNG.normal(3e4, 1e4, 60)),
        OWN.assign(age=RNG.permutation(OWN["age"].to_numpy()), pay=0.0),
    ],
)
def test_a_frame_of_the_same_people_is_recognized(data):
    """Whoever has the same age, sex and day, record by record, is the same person with another income."""
    assert is_private(samplers.bootstrap(OWN), data)


@pytest.mark.parametrize(
    "data",
    [
        pd.DataFrame({"age": RNG.integers(18, 90, 60), "pay": RNG.normal(3e4, 1e4, 60)}),
        OWN[["sex"]].sample(frac=1, random_state=1).assign(pay=RNG.normal(3e4, 1e4, 60)),
        OWN[["age"]] // 10 * 10,
    ],
)
def test_other_frames_are_not_refused(data):
    """Public data of the same kind is what bootstrap is for."""
    assert not is_private(samplers.bootstrap(OWN), data)


def test_few_categories_are_no_evidence():
    """Two binary columns have the same counts by accident."""
    public = pd.DataFrame({"a": [True, False] * 30, "b": ["x", "y", "y"] * 20})
    assert not is_private(samplers.bootstrap(public), public.sample(frac=1, random_state=5))
    assert not is_private(samplers.bootstrap(public)["a"], pd.Series(RNG.permutation([True, False] * 30)))


def test_row_numbers_are_no_evidence():
    """Everybody's rows are numbered, and the values of few categories all occur in other data."""
    public = pd.DataFrame({"id": range(60), "sex": RNG.choice(["F", "M"], 60), "ok": RNG.random(60) < 0.5})
    other = pd.DataFrame({"id": range(60), "sex": RNG.choice(["F", "M"], 60), "ok": RNG.random(60) < 0.5})
    assert not is_private(samplers.bootstrap(public), other)


# --- wrong usage ------------------------------------------------------------------------------


TWO = samplers.table(a=samplers.uniform(0, 1), b=samplers.uniform(0, 1))
GOOD = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [0.5, 0.5, 0.5]})


def test_one_record_is_enough():
    """A dataset of one record is a dataset."""
    assert private(TWO, lambda d: d["a"].mean()).release(GOOD.head(1)).n == 1


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_fixed_size_of_a_frame(library):
    """The same rows are used whatever is in them."""
    P = samplers.table(COLUMNS, frame=library).fixed(size=4)
    data = P.draw(9, np.random.default_rng(4))
    taken = records.take(data, P.positions(9))
    assert records.count(taken) == 4
    assert records.equal(records.record(taken, 0), records.record(data, int(P.positions(9)[0])))
    with pytest.raises(DataError, match="3 records"):
        private(P, lambda d: 1.0)(records.head(data, 3))


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_large_frame_is_converted(library):
    """Python code for each row, except for one lookup per string, would take minutes for a million."""
    P = samplers.table(COLUMNS, frame=library)
    data = P.draw(100_000, np.random.default_rng(0))
    made = converted(data, P)
    assert records.equal(records.head(made, 50), records.head(data, 50))


def test_an_audit_of_a_function_of_frames():
    """A function of frames that are made from P's arrays could be calibrated, but not audited."""
    frame = pd.DataFrame(RNG.random((30, 2)), columns=["a", "b"])
    means = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1, size=2), seed=1, store=None)(
        lambda d: d["a"].mean()
    )
    found = audit(means, 30, like=frame.head(0), pairs=100, releases=100, seed=1)
    assert found.sensitivity == means.release(frame).sensitivity
    with pytest.raises(SettingsError, match="without records"):
        audit(means, 30, like=frame)


@pytest.mark.parametrize(
    "function",
    [
        lambda d: pd.crosstab(d["a"], d["b"], dropna=False),
        lambda d: pd.cut(d["x"], [0, 0.3, 0.6, 1.0]).value_counts(sort=False),
        lambda d: np.polyfit(d["x"], d["y"], 1),
        lambda d: d[["x", "y"]].corr(),
        lambda d: d["x"].quantile([0.25, 0.5]),
    ],
    ids=["crosstab", "cut", "polyfit", "corr", "quantile"],
)
def test_what_the_docs_say_works_as_it_is(function):
    """A recipe of the docs would be refused, or give something else back."""
    ab = samplers.categorical(["u", "v"])
    P = samplers.table(x=samplers.uniform(0, 1), y=samplers.uniform(0, 1), a=ab, b=ab)
    data = P.draw(60, np.random.default_rng(5))
    found = privatize(epsilon=1e5, gamma=0.2, sampler=P, store=None, seed=1)(function)(data)
    raw = function(data)
    assert type(found) is type(raw) and np.allclose(
        np.asarray(found, float), np.asarray(raw, float), atol=1.5
    )
    if hasattr(raw, "index"):
        assert found.index.equals(raw.index)


# --- functions that change their frame --------------------------------------------------------------


def assigns(people):
    found = float(people["age"].mean())
    people["age"] = 0
    people["more"] = 1
    return found


def drops(people):
    found = float(people["age"].mean())
    del people["age"]
    people.pop("sex")
    return found


def locates(people):
    found = float(people["age"].mean())
    people.loc[:, "age"] = -1
    people.iloc[0, 0] = -5
    return found


def renumbers(people):
    found = float(people["age"].mean())
    people.index = range(100, 100 + len(people))
    people.columns = [f"{name}!" for name in people.columns]
    return found


def inserts(people):
    found = float(people["age"].mean())
    people.insert(0, "first", 1)
    people.loc[len(people)] = people.loc[0]
    return found


def writes_through(people):
    found = float(people["age"].mean())
    for values in (people["age"].to_numpy(), people.to_numpy(), people["age"].values):
        with contextlib.suppress(ValueError, TypeError):
            values.flags.writeable = True
        with contextlib.suppress(ValueError, TypeError, IndexError):
            values[:] = 0
    return found


@for_each("function", [assigns, drops, locates, renumbers, inserts, writes_through])
def test_what_a_function_does_to_its_frame_stays_there(function):
    """The neighbour is made of the same drawn rows, and must not see what was done to the first."""
    made = {"n": 30, "sampler": PEOPLE, "norm": "l1", "plan": plan(0.2), "seed": 1, "workers": "inline"}
    expected = estimate_sensitivity(lambda people: float(people["age"].mean()), **made)
    assert np.array_equal(estimate_sensitivity(function, **made).gaps, expected.gaps)


def test_categories_of_equal_values_and_other_types_are_not_the_same():
    """1, 1.0 and True are equal, and a dtype that is cached for one must not be used for another."""
    for values in ([1, 2], [1.0, 2.0], [True, False], ["1", "2"], [2, 1]):
        drawn = samplers.table(frame="pandas", c=samplers.categorical(values)).draw(
            50, np.random.default_rng(1)
        )
        assert drawn["c"].cat.categories.tolist() == values
        assert {type(value) for value in drawn["c"].cat.categories.tolist()} == {type(values[0])}


def test_frames_that_differ_in_more_than_numbers_are_not_alike():
    """What is published as it is must be what calibration saw."""
    seen = pd.DataFrame({"a": [1.0, 2.0], "t": ["x", "y"]}, index=pd.Index(["p", "q"], name="who"))
    numbers = seen.copy()
    numbers["a"] = [5.0, 6.0]
    assert frames.digest(numbers) == frames.digest(seen)
    assert [values.tolist() for values in frames.numbers(numbers)] == [[5.0, 6.0]]
    others = [
        seen.rename(columns={"a": "b"}),
        seen.rename(index={"p": "z"}),
        seen.rename_axis("whom"),
        seen.assign(t=["x", "z"]),
        seen.assign(t=pd.Categorical(["x", "y"])),
        seen.iloc[:1],
        seen[["t", "a"]],
        seen["a"],
        seen.assign(a=["1", "2"]),
        seen.reset_index(drop=True),
        seen.rename_axis("columns", axis="columns"),
    ]
    for other in others:
        assert frames.digest(other) != frames.digest(seen), other


# --- shortcuts --------------------------------------------------------------------------------------


@for_each("support", ["none", "bounds"])
@for_each("layout", [name for name in LAYOUTS if name not in ("twice", "strings")])
def test_what_the_function_sees_is_not_the_private_data_itself(layout, support):
    """A function that writes into its data must not change what the user passes to the next one."""
    data = LAYOUTS[layout]()
    before = data.copy()
    ends = None if support == "none" else dict.fromkeys(frames.names(data), (-1.0, 2.5))
    made = records.convert(data, records.head(data, 2), ends)
    for at in range(made.shape[1]):
        own, private = made.iloc[:, at], data.iloc[:, at]
        if isinstance(own.dtype, np.dtype):
            assert not np.shares_memory(own.to_numpy(), private.to_numpy())
    made.columns.name = "mine"
    if len(made):
        made.iloc[0, 0] = made.iloc[-1, 0]
    pd.testing.assert_frame_equal(data, before)


def test_names_that_a_function_gives_stay_its_own():
    """Drawn frames share the names of their columns: one that is renamed must not rename the next."""
    P = samplers.table(a=samplers.uniform(0, 1), b=samplers.uniform(0, 1), c=samplers.integers(0, 9))
    for part in (P, P[["a", "b"]]):
        first = part.draw(3, np.random.default_rng(1))
        first.columns.name = "renamed"
        with contextlib.suppress(ValueError):  # pandas 3 refuses
            first.columns.values[0] = "z"
        again = part.draw(3, np.random.default_rng(1))
        assert again.columns.name is None
        assert list(again.columns) == (["a", "b", "c"] if part is P else ["a", "b"])
        assert again.columns.identical(pd.DataFrame({name: [0] for name in again.columns}).columns)


def test_drawn_frames_share_nothing_with_the_sampler():
    """A sampler that keeps what it drew must not find it changed by the function."""
    values = np.array([1.0, 2.0, 3.0])
    drawn = frames.make("pandas", {"a": columns.Column(values), "b": columns.Column(values)})
    drawn.iloc[0, 0] = 99.0
    assert values.tolist() == [1.0, 2.0, 3.0]
    assert drawn["b"].tolist() == [1.0, 2.0, 3.0]
