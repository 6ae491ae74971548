"""The code of tables and columns, and whether values lie in their support."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy

from privatize import samplers
from privatize.data.persons import Persons
from privatize.samplers import (
    Maybe,
    OneOf,
    boolean,
    categorical,
    choice,
    dates,
    integers,
    uniform,
)

FRAMES = ("pandas", "polars", "pyarrow", "dict", "records")


def earned(columns, generator):
    """Make a column from another one, with randomness."""
    return generator.normal(500 * columns["age"], 9000)


def doubled(columns):
    """Make a column from another one, without randomness."""
    return 2 * columns["age"]


def dice(n, generator):
    """Draw with a function of one's own."""
    return generator.integers(1, 7, n)


FUNCTIONS = (earned, doubled, dice)
NAMES = {
    **{name: getattr(samplers, name) for name in samplers.__all__},
    **{function.__name__: function for function in FUNCTIONS},
    "inf": math.inf,
    "math": math,
    "np": np,
    "numpy": np,
    "scipy": scipy,
}

# The code of samplers, so that another process can make them too.
WITHOUT_FUNCTIONS = [
    "people(table(x=uniform(0, 1), day=integers(1, 9)), unit='id', rows=integers(1, 3), order='day')",
    "people(table(x=uniform(0, 1), frame='dict'), unit='id', rows=2, person=table(old=boolean(0.3)))",
    *(
        "table(age=integers(0, 120), sex=categorical(['F', 'M']), pay=with_missing(uniform(0, 9), 0.2), "
        f"frame={frame!r}).changed(Change(spread=[('age', 2, 60, True)], swapped=[('sex', ['F'], ['M'], "
        "[1])], added=[('pay', 'missing', 0.25)]))"
        for frame in FRAMES
    ),
    "categorical(['F', 'M'])",
    "categorical(['F', 'M'], p=[0.6, 0.4])",
    "categorical(['low', 'mid', 'high'], p=[1, 2, 3], ordered=True, unknown='mid')",
    "categorical([3, 1, 2])",
    "categorical([0.5, 1.5])",
    "categorical([True, False])",
    "categorical(['only'])",
    "choice(['red', 'green'], unknown='green')",
    "choice([1, 2, 3], p=[0.1, 0.2, 0.7])",
    "choice([1, 2.5])",
    "choice([False, True])",
    "choice([False, True], p=[0.25, 0.75], unknown=True)",
    "choice(['', ' ', \"it's\", 'a \"quote\"', 'a\\nline', 'é', '<b>'])",
    "choice([-inf, 1.0, inf])",
    "boolean()",
    "boolean(0.3)",
    "boolean(0)",
    "boolean(1)",
    "dates('2020-01-01', '2024-12-31')",
    "dates('2024-02-28', '2024-02-29', times=True)",
    "dates('2020-01-01T12:00:05', '2020-01-01T12:00:09', times=True)",
    "dates('2024-03-30', '2024-04-01', tz='Europe/Berlin')",
    "dates('2024-10-27 02:30', '2024-10-27 12:00', tz='Europe/Berlin')",
    "dates('1066-10-14', '1066-10-20')",
    "with_missing(uniform(0, 1), 0.25)",
    "with_missing(integers(0, 9), 0.5)",
    "with_missing(categorical(['a', 'b'], p=[1, 3]), 0.5)",
    "with_missing(choice(['a', 'b']), 0.5)",
    "with_missing(boolean(0.9), 0.5)",
    "with_missing(dates('2020-01-01', '2020-01-31'), 0.5)",
    "with_missing(dates('2020-01-01', '2020-01-31', tz='Asia/Tokyo'), 0.5)",
    "with_missing(with_missing(uniform(0, 1), 0.5), 0.5)",
    "with_missing(scipy.stats.norm(0, 1), 0.5)",
    "table(age=integers(0, 120))",
    "table(age=scipy.stats.gamma(2, scale=20), frame='dict')",
    "table({'age in years': integers(0, 120), 'frame': uniform(0, 1), '': boolean()}, frame='dict')",
    "table({'class': integers(0, 3), 'from': uniform(0, 1)}, frame='dict')",
    "table({'it\\'s': integers(0, 3), 'é': uniform(0, 1)}, frame='dict')",
    "table(columns=integers(0, 3), self=uniform(0, 1), frame='dict')",
    *(
        "table(age=with_missing(integers(0, 120), 0.2), income=normal(3e4, 1e4).truncated(0, 1e5), "
        "sex=categorical(['F', 'M'], p=[0.6, 0.4]), joined=dates('2020-01-01', '2024-12-31'), "
        f"seen=dates('2020-01-01', '2024-12-31', tz='Europe/Berlin'), member=boolean(0.3), frame={frame!r})"
        for frame in FRAMES
    ),
    "table(age=integers(0, 120), sex=categorical(['F', 'M']))['age']",
    "table(age=integers(0, 120), sex=categorical(['F', 'M']))['sex']",
    "table(age=integers(0, 120), sex=categorical(['F', 'M']))[['sex']]",
    "table(age=integers(0, 120), sex=categorical(['F', 'M']), b=boolean())[['sex', 'age']]",
    *(
        f"table(age=integers(0, 120), sex=choice(['F', 'M']), b=boolean(), frame={frame!r})[{wanted}]"
        for frame in FRAMES[1:]
        for wanted in ("'sex'", "['b', 'sex']")
    ),
    "table(age=integers(0, 120), sex=choice(['F', 'M']), frame='dict')[['sex', 'age']]['age']",
]
WITH_FUNCTIONS = [
    "table(age=integers(18, 70), income=dependent(earned))",
    "table(age=integers(18, 70), income=dependent(earned, support=(0, 100000)), frame='dict')",
    "table(age=integers(18, 70), income=dependent(doubled, support=(36, 140)), frame='polars')",
    "table(age=integers(18, 70), income=dependent(doubled), frame='pyarrow')['income']",
    "table(age=integers(18, 70), income=dependent(earned), frame='dict')[['income']]",
    "table(x=from_function(dice, support=[1, 2, 3, 4, 5, 6]), frame='records')",
]
CODES = WITHOUT_FUNCTIONS + WITH_FUNCTIONS


def is_missing(value):
    """Tell whether a value is missing."""
    return value is None or value is pd.NA or value != value or bool(pd.isna(value))


def comparable(value):
    """Return moments as datetime64 in UTC, and other values as they are."""
    if isinstance(value, dt.datetime):
        value = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
        return np.datetime64(value.replace(nanosecond=0) if isinstance(value, pd.Timestamp) else value)
    return np.datetime64(value) if isinstance(value, dt.date) else value


def lies_in(values, support):
    """Tell whether all values of a column lie in a support, and have its types."""
    if support is None:
        return True
    if isinstance(support, Maybe):
        return lies_in([value for value in values if not is_missing(value)], support.inner)
    if any(map(is_missing, values)):
        return False
    if isinstance(support, OneOf):
        known = {(type(value), value) for value in support.values}
        return all((type(value), value) in known for value in values)
    low, high = support
    return all(low <= comparable(value) <= high for value in values)


def columns_of(drawn):
    """Return what a table draws as lists of Python values by column; a single column has the key None."""
    if isinstance(drawn, Persons):
        return columns_of(drawn.rows)
    if isinstance(drawn, dict):
        return {name: values.tolist() for name, values in drawn.items()}
    if isinstance(drawn, pl.DataFrame):
        return drawn.to_dict(as_series=False)
    if isinstance(drawn, pa.Table):
        return drawn.to_pydict()
    if isinstance(drawn, pd.DataFrame):
        return {name: drawn[name].tolist() for name in drawn.columns}
    if isinstance(drawn, list):
        if drawn and isinstance(drawn[0], dict):
            return {name: [record[name] for record in drawn] for name in drawn[0]}
        return {None: drawn}
    return {None: drawn.to_list() if isinstance(drawn, pl.Series) else drawn.tolist()}


def schema_of(drawn):
    """Return the columns' names and dtypes."""
    if isinstance(drawn, Persons):
        return schema_of(drawn.rows)
    if isinstance(drawn, dict):
        return {name: values.dtype for name, values in drawn.items()}
    if isinstance(drawn, pl.DataFrame | pa.Table):
        return drawn.schema
    if isinstance(drawn, pd.DataFrame):
        return dict(drawn.dtypes)
    return None if isinstance(drawn, list) else drawn.dtype


EVERYTHING = {
    "i": integers(0, 9),
    "f": uniform(0, 1),
    "b": boolean(),
    "s": choice(["x", "yy"]),
    "c": categorical(["lo", "hi"], ordered=True),
    "k": categorical([10, 20]),
    "d": dates("2020-01-01", "2020-12-31"),
    "t": dates("2020-01-01", "2020-12-31", times=True),
    "z": dates("2020-01-01", "2020-12-31", tz="Europe/Berlin"),
}
