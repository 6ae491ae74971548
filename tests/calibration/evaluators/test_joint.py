"""Many functions are evaluated on the same pairs, and each as if it were alone."""

import decimal
import os
import random
import sys
import warnings
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privatize import samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.evaluators.joint import Joint, exponent_of, weight_of
from privatize.errors import NotReproducibleError, OutputError
from privatize.mechanisms.base import l1, l2
from tests.cases import for_each

SETTINGS = {"n": 50, "sampler": samplers.uniform(0, 100), "norm": l1, "seed": 5, "s0": 7}


def middle(x):
    """Return the median, after sorting the data in place."""
    x.sort()
    return x[25]


def first(x):
    """Return the first number, which is another one after sorting."""
    return x[0]


def jittered(x):
    """Return a mean times noise of the global generators."""
    return x.mean() * (2 + np.random.normal() + random.random())


def at_times(x):
    """Return a mean times noise of the global generators, for some data only."""
    return x.mean() * (2 + np.random.normal() if x[0] > 90 else 1.0)


def erased(x):
    """Change the data in place, at times."""
    if x[0] > 90:
        x[:] = -1
    return x[1]


def rooted(x):
    """Fail on data that another function has changed."""
    if x[1] < 0:
        raise ValueError("negative")
    return x[1]


def spread(x):
    """Return several numbers."""
    return {"mean": x.mean(), "quartiles": np.quantile(x, [0.25, 0.75])}


def joint(functions, norms=None, weights=None, **more):
    """Return many functions as one."""
    count = len(functions)
    labels = tuple(f"f{at}" for at in range(count))
    return Joint(tuple(functions), norms or (l1,) * count, labels, weights or (0,) * count, **more)


def result(function, count=40, **more):
    """Return what evaluating some pairs gives."""
    made = evaluator(function, **SETTINGS | more)
    return made.evaluate((0, count), made.learned)


def gaps_of(function, **more):
    """Return the gaps of some pairs."""
    return result(function, **more).gaps


def check(functions, norms=None, weights=None, **more):
    """Compare the joint gaps with those of each function by itself."""
    norms, weights = norms or (l1,) * len(functions), weights or (0,) * len(functions)
    own = zip(functions, norms, weights, strict=True)
    alone = [gaps_of(each, **more | {"norm": norm}) / weight_of(at) for each, norm, at in own]
    found = gaps_of(joint(functions, norms, weights), **more)
    assert np.isfinite(found).all()
    assert found.tolist() == np.max(alone, axis=0).tolist()


@pytest.mark.slow
def test_every_function_has_the_gaps_that_it_has_alone():
    """If another function's changes or random numbers had an effect, noise could be too little."""
    functions = (np.mean, middle, first, jittered, np.sum, spread, at_times, middle, np.std)
    norms = (l1, l1, l1, l1, l1, l2, l1, l1, l2)
    check(functions, norms)
    # With these weights each function has the largest gap in some pair.
    check(functions, norms, (0, 20, -30, 7, 90, 0, -1, 16, 3), count=300)
    check([first, at_times], weights=(-200, 0), count=300)
    check([erased, first], weights=(200, 0), count=300)
    check([erased, rooted], weights=(200, 0), count=300)
    # The first and last are known to use the generators soon; those in between have not been seen to.
    check([jittered, at_times, at_times, jittered], weights=(200, 200, 0, 200), count=300)


def limit(d):
    """Clip a column of a frame in place."""
    d["x"] = d["x"].clip(20, 80)
    return d["x"].mean()


def renamed(d):
    """Rename the columns of a frame in place."""
    d.columns = ["y", "group"]
    return d["y"].mean()


def marked(d):
    """Leave a note in a frame, and return a number that depends on it."""
    seen = d.attrs.setdefault("seen", d["x"].iloc[0])
    return d["x"].iloc[0] + seen


def largest(d):
    """Return the largest value of a column."""
    return d["x"].max()


def of_group(d):
    """Return how many are in a group."""
    return int((d["group"] == "a").sum())


def emptied(records):
    """Change the records of a list in place."""
    for each in records:
        each["x"] *= 0.5
    return sum(each["x"] for each in records)


def summed(records):
    """Add up the records of a list."""
    return sum(each["x"] for each in records)


def swapped(data):
    """Change both parts of a dataset in place."""
    x, y = data
    x[:], y[:] = x + y[:, None], 0
    return x.sum()


def slope(data):
    """Return a regression's slope."""
    return np.polyfit(data[0][:, 0], data[1], 1)[0]


def dropped(d):
    """Drop a column of a frame of polars in place."""
    d.drop_in_place("group")
    return d["x"].sum()


X, GROUP = samplers.uniform(0, 100), samplers.categorical(["a", "b"])


def drawn_records(n, rng):
    """Draw a list of dicts."""
    return [{"x": value} for value in rng.random(n).tolist()]


def drawn_polars(n, rng):
    """Draw a frame of polars."""
    return pl.DataFrame({"x": rng.random(n), "group": rng.choice(["a", "b"], n)})


def drawn_pair(n, rng):
    """Draw two arrays."""
    return rng.random((n, 2)), rng.random(n)


class Opaque:
    """A record that cannot be compared."""

    def __init__(self, value):
        self.value, self.open = value, (each for each in ())

    def __deepcopy__(self, _):
        return Opaque(self.value)


def drawn_objects(n, rng):
    """Draw a list of objects."""
    return list(map(Opaque, rng.random(n).tolist()))


def halved(records):
    """Change objects in place."""
    for each in records:
        each.value /= 2
    return sum(each.value for each in records)


CONTAINERS = {
    "objects": (drawn_objects, [halved, lambda records: sum(each.value for each in records), halved]),
    "pandas": (
        samplers.table(x=X, group=GROUP),
        [largest, limit, largest, renamed, of_group, marked, marked],
    ),
    "list": (drawn_records, [summed, emptied, summed, len, emptied]),
    "polars": (drawn_polars, [of_group, dropped, of_group, dropped]),
    "tuple": (drawn_pair, [slope, swapped, slope, swapped]),
}


@for_each("sampler, functions", CONTAINERS.values(), ids=list(CONTAINERS))
def test_every_container_is_unchanged_for_the_next_function(sampler, functions):
    """A member of a catalogue would be measured on what another one has left of its data."""
    check(functions, sampler=samplers.as_sampler(sampler), n=30)


def strict(x):
    """Leave numpy's error settings changed."""
    np.seterr(divide="raise", invalid="raise")
    return x.mean()


def divided(x):
    """Divide by zero, which is infinite by default."""
    return float(min(x[0] / np.zeros(1)[0], 100.0))


def short(x):
    """Leave the precision of decimals changed."""
    decimal.getcontext().prec = 3
    return x.mean()


def precise(x):
    """Add up decimals."""
    return float(sum(map(Decimal, x.tolist())))


def setting(x):
    """Leave a variable in the environment."""
    os.environ["PRIVATIZE_TEST_SCALE"] = "3"
    return x.mean()


def scaled(x):
    """Read a variable in the environment."""
    return x.sum() * float(os.environ.get("PRIVATIZE_TEST_SCALE", "1"))


def alarmed(x):
    """Make every warning an error."""
    warnings.simplefilter("error")
    return x.mean()


def warned(x):
    """Answer nearly the same for all data, if there was a warning that is an error."""
    try:
        warnings.warn("there is one", UserWarning, stacklevel=1)
    except UserWarning:
        return x.sum() / 1e6
    return x.sum()


def rounded(x):
    """Print few digits from now on."""
    np.set_printoptions(precision=0)
    return x.mean()


def printed(x):
    """Read a number that was printed."""
    return float(np.array2string(x[:1])[1:-1])


def moved(x):
    """Go to another folder."""
    os.chdir(os.sep)
    return x.mean()


def placed(x):
    """Answer nearly the same for all data, in one folder."""
    return x.sum() / (1e6 if Path.cwd() == Path(os.sep) else 1)


def shallow(x):
    """Allow fewer calls inside of calls."""
    sys.setrecursionlimit(sys.getrecursionlimit() // 2)
    return x.mean()


def deep(x):
    """Answer nearly the same for all data, if few calls are allowed."""
    return x.sum() / (1 if sys.getrecursionlimit() == DEPTH else 1e6)


DEPTH = sys.getrecursionlimit()
OPTIONS = [
    *((strict, divided), (short, precise), (setting, scaled), (alarmed, warned), (rounded, printed)),
    *((moved, placed), (shallow, deep)),
]


@for_each("changes, reads", OPTIONS)
def test_options_are_put_back_for_the_next_function(changes, reads):
    """Members of a catalogue would be measured with options that another one has set."""
    with np.errstate(all="ignore"), decimal.localcontext(), warnings.catch_warnings(action="ignore"):
        alone = gaps_of(reads)
        found = gaps_of(joint([reads, changes, reads, changes]), count=40)
        larger = np.maximum(alone, gaps_of(np.mean))
    assert np.isfinite(alone).all()
    assert found.tolist() == larger.tolist()
    assert "PRIVATIZE_TEST_SCALE" not in os.environ
    assert sys.getrecursionlimit() == DEPTH


def broken(x):
    """Fail for some data, and change it for others."""
    if x[0] > 50:
        raise ValueError("no")
    x[:] = -1
    return 0.0


def other_keys(x):
    """Return keys that depend on the data."""
    return {"a" if x[0] > 50 else "b": 1.0}


def huge(x):
    """Return infinity for some data."""
    return np.inf if x[0] > 50 else 1.0


@for_each("function, text", [(broken, "ValueError: no"), (other_keys, "keys"), (huge, "not finite")])
def test_a_function_that_fails_makes_the_pair_infinite_and_is_named(function, text):
    """Nobody could tell which one it is; and a failure of one must not be taken for one of another."""
    alone = gaps_of(function)
    found = result(joint([np.mean, function, rooted]))
    assert np.isinf(found.gaps).tolist() == np.isinf(alone).tolist()
    assert found.cause.text.startswith("f1: ")
    assert text in found.cause.text


def test_outputs_that_cannot_be_released_are_named():
    """The error would be about any of sixty functions."""
    with pytest.raises(OutputError, match="f1: The function returns a str"):
        result(joint([np.mean, str]))
    calls = iter(range(1000))
    with pytest.raises(NotReproducibleError, match="f1: The function gave two different answers"):
        result(joint([np.mean, lambda x: x[0] + next(calls)]))


def test_what_is_seen_of_a_function_goes_to_other_processes():
    """Gaps of each function could not be measured again where they were not measured first."""
    one, other = (evaluator(joint([np.sum, first]), **SETTINGS) for _ in range(2))
    found = one.evaluate((0, 300), one.learned)
    other.learn(found.structure, 0.0, found.coordinate_gaps)
    alone = [gaps_of(each, count=300) for each in (np.sum, first)]
    expected = {int(each.argmax()): each.max() for each in alone}
    seen = other.checked()
    assert seen.pop(299).tolist() == [each[299] for each in alone]
    assert {at: np.nanmax(own) for at, own in seen.items()} == expected


def test_a_pilot_gets_differences_and_seconds():
    """Weights could not be learned, nor could anybody tell which function is slow."""
    timed = joint([np.sum, spread], timed=True)
    found = result(timed, coordinate_gaps={}, count=5).coordinate_gaps
    made = evaluator(timed, **SETTINGS)
    a, b = (made.structure or made.evaluate((0, 1), made.learned)) and made.outputs(3)
    assert found[3][:4].tolist() == (a - b).tolist()
    assert (found[3][4:] > 0).all()


@for_each("size", [1.0, 0.1, 3e-200, 7e250, 2.0**-16])
def test_a_weight_is_just_above_the_size_that_it_is_for(size):
    """A weight that is off by more would give a function more noise than it needs."""
    assert size <= weight_of(exponent_of(size)) <= 1.05 * size


def test_options_of_pandas_are_put_back():
    """A member that switches an option of pandas would change what others compute."""
    known = pd.get_option("compute.use_numexpr")

    def switching(x):
        pd.set_option("compute.use_numexpr", not known)
        return x.mean()

    with pd.option_context("compute.use_numexpr", known):
        gaps_of(joint([np.sum, switching]))
        assert pd.get_option("compute.use_numexpr") is known


TOLD: dict[str, bool] = {}


def telling(x):
    """Leave a note for another function."""
    TOLD["so"] = True
    return x.mean()


def told(x):
    """Answer nearly the same for all data, if there is a note, and throw it away."""
    return x.sum() / (1e6 if TOLD.pop("so", False) else 1)


@for_each("functions", [(telling, told), (telling, np.mean, told)])
def test_functions_that_tell_each_other_something_are_found(functions):
    """A member of a catalogue would be measured as it is after another one, and asked alone."""
    TOLD.clear()
    with pytest.raises(NotReproducibleError, match=f"f{functions.index(told)}: "):
        gaps_of(joint(functions))


BUFFER = np.zeros(1)


def buffered(x):
    """Return the mean, in an array that others use as well."""
    BUFFER[:] = x.mean()
    return BUFFER


def buffered_first(x):
    """Return a number, in the same array."""
    BUFFER[:] = x[0]
    return BUFFER


def test_functions_may_return_the_same_array():
    """The gaps of one member would be those of another one."""
    expected = np.maximum(gaps_of(np.mean), gaps_of(lambda x: x[0]))
    changes = [lambda x: x.fill(0.0) or 0.0] * 2  # so that every function is watched now and then
    assert gaps_of(joint([buffered, buffered_first, *changes])).tolist() == expected.tolist()
