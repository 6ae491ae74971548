"""Which changes are tried decides what a family covers and what a stress test can find."""

import subprocess
import sys

import numpy as np

from privatize import learn
from privatize.samplers import (
    blobs,
    boolean,
    categorical,
    choice,
    integers,
    labelled,
    normal,
    table,
    uniform,
    with_missing,
)
from privatize.samplers.changes import _median, _medians, _rounded, family_changes, stress_changes
from tests.cases import for_each

PEOPLE = table(
    age=integers(0, 120),
    sex=categorical(["F", "M", "X"], p=[0.5, 0.4, 0.1]),
    ill=boolean(0.1),
    income=with_missing(uniform(0, 9), 0.2),
)


def words(changes):
    """Return the words of changes."""
    return [change.words for change in changes]


def test_the_family_of_a_table():
    """A member that the docs promise would be missing."""
    assert words(family_changes(PEOPLE)) == [
        "`age` and `income` are half as spread out",
        "`age` and `income` are twice as spread out",
        "'F' of `sex` and False of `ill` are half as frequent",
        "'M' of `sex` and True of `ill` are half as frequent",
        "'X' of `sex` is half as frequent",
        "zeros and missing values are more frequent",
    ]


def test_at_most_eleven_changes_whatever_p_is():
    """A calibration under a column of 100 categories would take a hundred times as long."""
    many = [f"c{at}" for at in range(100)]
    P = table(a=categorical(many), b=choice(["u", "v"]), x=uniform(0, 1))
    found = list(family_changes(P))
    assert len(found) == 11
    halved = [
        value for change in found for name, values, *_ in change.swapped if name == "a" for value in values
    ]
    assert sorted(halved) == sorted(many)  # each of them in one member


def test_stress_changes_are_specific_if_columns_are_few():
    """A warning would name all columns at once, and nobody would know which matters."""
    assert words(stress_changes(PEOPLE)) == [
        "`age` is half as spread out",
        "`income` is half as spread out",
        "'F', 'X' of `sex` are half as frequent",
        "'M' of `sex` and True of `ill` are half as frequent",
        "zeros and missing values are more frequent",
    ]
    assert words(stress_changes(uniform(-1, 1, size=2)))[:2] == [
        "`value[0]` is half as spread out",
        "`value[1]` is half as spread out",
    ]
    many = table({f"x{at}": uniform(1, 2) for at in range(9)} | {f"c{at}": boolean() for at in range(9)})
    found = stress_changes(many)
    assert len(found) == 6
    assert set().union(*(change.columns for change in found)) == set(many.names())


def test_few_changes_are_possible_too():
    """A stress test with less time would try as much as one with more."""
    for most in (1, 2, 3, 4, 5):
        assert 1 <= len(stress_changes(PEOPLE, most)) <= most


def test_flags_and_columns_of_few_integers_are_groups():
    """A group coded as 0 and 1, or 1 to 3, would never be made smaller."""
    found = words(family_changes(table(flag=integers(0, 1), pclass=integers(1, 3), x=uniform(1, 2))))
    assert found == [
        "`x` is half as spread out",
        "`x` is twice as spread out",
        "0 of `flag` and 1 of `pclass` are half as frequent",
        "1 of `flag` and 2 of `pclass` are half as frequent",
        "3 of `pclass` is half as frequent",
    ]


def test_thinning_never_keeps_hardly_any_record():
    """A member with many columns that depend on each other would never be drawn."""
    X = table({f"c{at}": boolean(0.4) for at in range(20)} | {"y": lambda c: c["c0"]}, frame="dict")
    found = list(family_changes(X))
    assert any(change.thinned and change.swapped for change in found)
    for change in found:
        drawn = X.changed(change).draw(100, np.random.default_rng(1))
        assert len(drawn["c1"]) == 100


def test_constants_have_no_changes():
    """A P that cannot be changed would have members that are P itself, and cost as much as others."""
    assert not list(family_changes(categorical(["only"])))
    assert not stress_changes(boolean(0))


def test_labelled_data_and_unbounded_numbers():
    """P for models, or P without bounds, would have no family."""
    P = labelled(normal(0, 1), choice([0, 1]))
    assert words(family_changes(P)) == [
        "`X` is half as spread out",
        "`X` is twice as spread out",
        "0 of `y` is half as frequent",
        "1 of `y` is half as frequent",
    ]


def test_labels_without_bounds_are_groups():
    """Labels 0 and 1 would become 0.25 and 0.75, or -0.5 and 1.5, which no model is trained on."""
    found = [change.words for change in family_changes(blobs([[0, 0], [2, 2]]))]
    assert found == [
        *("`X` is half as spread out", "`X` is twice as spread out"),
        *("0 of `y` is half as frequent", "1 of `y` is half as frequent"),
    ]


def test_a_learned_p_is_not_tried_at_twice_its_spread():
    """It is about as spread out as the data, so nearly every mean would warn."""
    x = np.random.default_rng(1).normal(50, 5, 2000)
    P = learn(x, within=uniform(0, 100), epsilon=5)
    assert any("twice" in change.words for change in stress_changes(normal(50, 5, low=0, high=100)))
    assert not any("twice" in change.words for change in stress_changes(P))


@for_each("shape", [(1,), (4,), (5,), (6, 3)])
def test_medians_are_those_of_numpy(shape):
    """A stress test would change P around another center than the one that it reports."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = rng.normal(size=shape).round(1)
        values[1:][rng.random(values[1:].shape) < 0.3] = np.nan
        assert np.array_equal(_medians(values), np.nanmedian(values, axis=0))


@for_each("size", [1, 2, 3, 4, 5, 101, 2048])
def test_a_median_is_that_of_numpy(size):
    """A stress test of a column of numbers would change P around another center than its median."""
    rng = np.random.default_rng(1)
    for values in (rng.normal(size=size), rng.normal(size=size).round(), np.full(size, 1e300)):
        assert _median(values) == np.median(values)


def test_the_center_of_a_column_leaves_missing_values_out():
    """A column with missing values would be spread around another center than its median, or around none."""
    P = with_missing(normal(50, 5), 0.4)
    half = next(change for change in stress_changes(P) if change.spread)
    drawn = P.draw(2048, np.random.default_rng(0))
    assert half.spread[0][2].array == float(f"{np.nanmedian(drawn):.4g}")


def test_rounded_numbers_have_four_digits_and_their_shape():
    """Changes would name centers with sixteen digits, or centers of coordinates in another shape."""
    assert _rounded(1 / 3) == 0.3333 and _rounded(1 / 3).shape == ()
    assert np.array_equal(_rounded(np.array([[123456.0], [-0.00012344]])), [[123500.0], [-0.0001234]])


def test_a_first_answer_does_not_load_masked_arrays():
    """The first answer would take a fifth longer, for a part of numpy that is not used."""
    code = """import sys, numpy as np
loaded = "numpy.ma" in sys.modules  # by earlier versions of numpy themselves
from privatize import privatize, samplers
privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1), store=None)(np.mean)(np.zeros(100) + 0.5)
assert not {"scipy", "pandas", *([] if loaded else ["numpy.ma"])} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
