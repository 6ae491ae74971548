"""Samplers of persons: they draw what they say, in every container, or refuse."""

import math
from dataclasses import replace

import numpy as np
import pytest

from privatize import configure, privatize, samplers
from privatize.data import records
from privatize.data.grouping import group
from privatize.data.persons import Persons
from privatize.data.units import UNDECLARED, Unit
from privatize.errors import FragileEstimateWarning, SamplerError, SettingsError
from privatize.samplers.people import declared_unit, unit_of
from tests.cases import for_each

s = samplers
VISIT = s.table(cost=s.uniform(0, 100), day=s.integers(1, 365))
PERSON = s.table(sex=s.categorical(["F", "M"]), born=s.integers(1930, 2010))


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def walk(person, rng):
    """Return a trajectory that depends on the person."""
    steps = rng.integers(2, 5)
    start = 10 if person["sex"] == "F" else -10
    return {"time": np.arange(steps), "place": start + np.cumsum(rng.uniform(-1, 1, steps))}


CASES = [
    "s.people(VISIT, unit='id', rows=s.integers(1, 12))",
    "s.people(VISIT, unit='id', rows=s.integers(0, 3), person=PERSON)",
    "s.people(VISIT, unit='id', rows=s.choice([1, 2, 8]), person=PERSON, shared=0.5, order='day')",
    "s.people(VISIT, unit='id', rows=s.integers(1, 12), most=5)",
    "s.people(s.table(cost=s.uniform(0, 100), frame='polars'), unit='id', rows=s.integers(1, 2))",
    "s.people(VISIT, unit='id', rows=2, frame='dict')",
    "s.people(walk, unit='id', person=PERSON, support={'place': (-20, 20)}, most=4, order='time')",
]


@for_each("code", CASES)
def test_they_draw_persons(code):
    """A dataset of n persons would have another number of them, or rows that belong to nobody."""
    P = eval(code)
    drawn = P.draw(50, rng())
    assert type(drawn) is Persons and len(drawn) == 50
    assert drawn.counts.min() >= (0 if drawn.unit.empty else 1)
    assert drawn.unit.most is None or drawn.counts.max() <= drawn.unit.most
    assert records.equal(drawn, P.draw(50, rng())) and not records.equal(drawn, P.draw(50, rng(1)))
    frame = drawn.frame
    assert np.array_equal(np.asarray(frame["id"]), drawn.slots)
    if drawn.unit.once:
        assert frame.groupby("id")["born"].nunique().max() == 1
    if drawn.unit.order:
        assert frame.groupby("id")[drawn.unit.order].is_monotonic_increasing.all()
    converted = records.convert(drawn, P.draw(2, rng()), P.support)
    assert records.equal(converted, drawn)
    assert eval(code) == P and hash(P) == hash(eval(code))


def test_the_repr_is_code():
    """A ledger would show a P that nobody can make again."""
    for code in CASES[:-1]:
        P = eval(code)
        again = eval(repr(P), {name: getattr(s, name) for name in s.__all__})
        assert again == P and repr(again) == repr(P)


def test_they_are_saved_and_loaded(tmp_path):
    """Whoever calibrates somewhere else would need the code."""
    P = eval(CASES[2])
    P.save(tmp_path / "P.json")
    assert s.load(tmp_path / "P.json") == P
    with pytest.raises(SamplerError, match="cannot be saved"):
        eval(CASES[-1]).save(tmp_path / "Q.json")


def test_rows_depend_on_what_a_person_has_once():
    """Rows would be independent of the person."""

    def cost(columns, rng):
        return np.where(columns["sex"] == "F", 1.0, 2.0)

    P = s.people({"cost": cost}, unit="id", rows=s.integers(1, 5), person=PERSON)
    frame = P.draw(100, rng()).frame
    assert frame.groupby("sex", observed=True)["cost"].unique().map(list).tolist() == [[1.0], [2.0]]
    trajectories = eval(CASES[-1]).draw(100, rng()).frame
    assert (trajectories[trajectories["sex"] == "F"]["place"] > 0).all()


def test_shared_is_the_correlation_of_two_rows():
    """A person whose rows are alike moves answers further than one whose rows are not.

    The correlation of 20,000 pairs is within 0.04 of the truth: five standard errors, so false alarms have
    a probability below 1e-6.
    """
    for shared in (0.0, 0.3, 1.0):
        P = s.people(VISIT, unit="id", rows=2, shared=shared, frame="dict")
        cost = P.draw(20_000, rng(3)).frame["cost"].reshape(-1, 2)
        assert abs(np.corrcoef(cost.T)[0, 1] - shared) < 0.04
        # The distribution of a single row stays as it is.
        assert abs(cost[:, 0].mean() - 50) < 1.2 and abs(cost[:, 0].std() - 100 / math.sqrt(12)) < 1


def test_the_order_of_a_trajectory_is_random_unless_it_has_one():
    """A function could read the order in which rows were made, which private rows do not have."""
    P = s.people(walk, unit="id", person=PERSON)
    frame = P.draw(300, rng()).frame
    assert 0.2 < frame.groupby("id")["time"].is_monotonic_increasing.mean() < 0.5
    places = frame.sort_values(["id", "time"]).groupby("id")["place"].diff().abs().max()
    assert places <= 1  # rows are complete: columns are not shuffled one by one


def test_lists_of_dicts_are_rows_too():
    """A function that makes one row after the other would be refused."""
    P = s.people(lambda person, rng: [{"x": rng.random()} for _ in range(3)], unit="id", frame="dict")
    assert P.draw(4, rng()).counts.tolist() == [3, 3, 3, 3]


def test_a_family_has_other_numbers_of_rows():
    """A person with more rows than P expects would be covered by no member."""
    P = eval(CASES[2])
    family = P.family()
    words = "\n".join(family.names)
    assert "all rows of a person are alike" in words and "`born`" in words and "half as frequent" in words
    assert "rows of a person are independent" in words and "of the number of rows" in words
    wide = s.people(VISIT, unit="id", rows=s.integers(1, 40)).family()
    assert "the number of rows is half as spread out" in "\n".join(wide.names)
    for member in (*family, *wide):
        drawn = member.draw(40, rng())
        assert drawn.unit in (P.unit, Unit("id", most=40)) and len(drawn) == 40
        if drawn.unit.once:
            assert drawn.frame.groupby("id")["born"].nunique().max() == 1


def test_rows_are_ordered_as_private_ones_are():
    """What is calibrated would have its rows in another order than what is released."""
    laws = [s.categorical([1, 2, 10]), s.choice([10, 2, 1]), s.choice(["b", "a"]), s.uniform(-1, 1)]
    laws += [s.dates("2025-01-01", "2025-02-01"), s.with_missing(s.integers(0, 20), 0.3), s.boolean()]
    for law in laws:
        for frame in ("pandas", "dict"):
            visit = s.table(at=law, x=s.uniform(0, 1), frame=frame)
            drawn = s.people(visit, unit="id", rows=s.integers(1, 5), order="at").draw(60, rng())
            made = group(drawn.frame, drawn.unit, bytes(32))
            assert sorted(map(tuple, by_person(made))) == sorted(map(tuple, by_person(drawn)))


@for_each("rows", ["s.choice([8])", "s.integers(1, 15)", "s.integers(0, 3)", "s.integers(2, 2000)"])
@for_each("span", [2, 300, 2**17, 2**40, 2**53])
def test_the_order_of_rows_does_not_depend_on_how_they_are_sorted(rows, span):
    """A faster way of sorting would draw other datasets than those that estimates are remembered for."""
    check_order(s.integers(0, span), eval(rows), 40)


@for_each("n", [217, 434, 435, 1000])  # 217 persons with numbers of 301 fit into 16 bits
@for_each("rows", ["s.integers(0, 15)", "s.integers(5, 30)"])
def test_many_persons_are_sorted_as_few_are(rows, n):
    """Rows of one person would be those of another where the persons that are sorted together end."""
    check_order(s.integers(-150, 150), eval(rows), n)
    check_order(s.dates("2025-01-01", "2025-10-28"), eval(rows), n)
    check_order(s.choice([150, -150]), eval(rows), n)  # many are equal, and stay in the order of drawing


def check_order(at, rows, n):
    """Compare the rows of n persons with those in the order of numpy's slowest, but simplest way."""
    visit = s.table(at=at, x=s.uniform(0, 1), frame="dict")
    law = s.people(visit, unit="id", rows=rows, order="at", person=s.table(y=s.uniform(0, 1)))
    drawn, found = law.drawn(n, rng()), law.draw(n, rng()).frame
    slots = np.repeat(np.arange(n), drawn["rows of a person"].values)
    order = np.lexsort((drawn["at"].array(), slots))
    assert (found["id"] == slots).all() and (found["y"] == drawn["y"].values[slots]).all()
    assert all((found[name] == drawn[name].array()[order]).all() for name in ("at", "x"))
    assert all(found[name].flags.owndata and found[name].flags.c_contiguous for name in found)


def test_negative_numbers_of_rows_are_refused():
    """The rows of others would be taken for those of a person."""
    rows = s.from_function(lambda n, rng: np.where(np.arange(n) > 100, -1, 2), support=None)
    law = s.people(VISIT, unit="id", rows=s.integers(1, 2))
    with pytest.raises(SamplerError, match="negative number of rows"):
        replace(law, rows=rows).draw(200, rng())


def by_person(persons):
    """Return what each person's rows are ordered by, as strings."""
    column = [str(value) for value in np.asarray(persons.frame["at"]).tolist()]
    ends = np.cumsum(persons.counts)
    return [column[start:stop] for start, stop in zip(ends - persons.counts, ends, strict=True)]


def test_persons_are_changed_by_their_parts():
    """A change would take rows from people, or give one person two sexes."""
    P = eval(CASES[1])
    for change in (
        s.Change(spread=[("rows of a person", 2, 3, True)]),
        s.Change(thinned=[("sex", ["F"], 0.5)]),
    ):
        with pytest.raises(SamplerError, match="of persons"):
            P.changed(change)
    both = s.mixture([P, P])
    with pytest.raises(SamplerError, match="Change the samplers that it is made of"):
        both.changed(s.Change(swapped=[("sex", ["F"], ["M"], [1])]))
    with pytest.raises(SamplerError, match="Pass a list of samplers"):
        both.family()


def test_a_stress_test_tries_persons_whose_rows_are_alike():
    """Independent rows average out: more than half of real people were beyond, and nothing said so."""
    P = s.people(s.table(cost=s.uniform(0, 100), frame="dict"), unit="id", rows=8)
    f = privatize(epsilon=1, gamma=0.05, sampler=P, seed=1)(lambda d: float(d["cost"].mean()))
    configure(stress=True)
    with pytest.warns(FragileEstimateWarning, match="all rows of a person are alike"):
        f.estimate(n=60)


def test_they_are_described():
    """Nobody would see how many rows P draws."""
    text = str(eval(CASES[0]).describe(500))
    assert "rows of a person" in text and "cost" in text


@for_each(
    ("make", "message"),
    [
        (lambda: s.people(s.uniform(0, 1), unit="id", rows=s.integers(1, 2)), "not those of a table"),
        (lambda: s.people(VISIT, unit="id"), "needs rows="),
        (lambda: s.people(VISIT, unit="id", rows=s.uniform(1, 2)), "draws no numbers of rows"),
        (lambda: s.people(VISIT, unit="id", rows=s.integers(-1, 2)), "draws no numbers of rows"),
        (lambda: s.people(VISIT, unit="id", rows=0), "draws no numbers of rows"),
        (lambda: s.people(VISIT, unit="id", rows=s.normal(5, 1)), "draws no numbers of rows"),
        (lambda: s.people(VISIT, unit="cost", rows=s.integers(1, 2)), "'cost' is there twice"),
        (lambda: s.people(VISIT, unit="id", rows=s.integers(1, 2), person=VISIT), "is there twice"),
        (lambda: s.people(VISIT, unit="id", rows=s.integers(1, 2), person=s.uniform(0, 1)), "not a table"),
        (lambda: s.people(VISIT, unit="id", rows=s.integers(1, 2), shared=2), "shared=2"),
        (lambda: s.people(VISIT, unit="id", rows=s.integers(1, 2), order="when"), "no such column"),
        (lambda: s.people(VISIT, unit="id", rows=s.integers(1, 2), most=0), "most=0"),
        (lambda: s.people(VISIT, unit=5, rows=s.integers(1, 2)), "unit=5"),
        (lambda: s.people(VISIT, unit="id", rows=s.integers(1, 2), frame="records"), "frame='records'"),
        (lambda: s.people(walk, unit="id", rows=s.integers(1, 2)), "has no use here"),
        (lambda: s.people(lambda person, rng: 5, unit="id"), "returned a int"),
        (lambda: s.people(lambda person, rng: {"a": []}, unit="id"), "returned no rows"),
        (lambda: s.people(lambda person, rng: {"id": [1]}, unit="id"), "'id' is there twice"),
        (lambda: s.people(VISIT, unit="id", rows=(1, 40)), "a number or a sampler of integers"),
        (lambda: s.people(VISIT, unit="id", rows=3, person={"a": 1}), "is not a table"),
        (lambda: s.people(VISIT, unit=Unit("id", most=3), rows=3), "pass the name, unit='id'"),
        (lambda: s.people({"rows of a person": s.uniform(0, 1)}, unit="id", rows=3), "there twice"),
        (lambda: s.people(lambda person, rng: {"a": [1], "b": [1, 2]}, unit="id"), "different lengths"),
        (lambda: eval(CASES[0]).map(np.exp), "Change the distribution of a row"),
        (lambda: eval(CASES[0])["cost"], "Change the distribution of a row"),
        (lambda: eval(CASES[0]).clip(0, 1), "Change the distribution of a row"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    """The error must say what is wrong, and what to do."""
    with pytest.raises(SamplerError, match=message):
        make()


def test_other_columns_for_other_persons_are_refused():
    """A frame cannot be made of them."""

    def changing(person, rng):
        return {"a" if rng.random() < 0.5 else "b": [1.0]}

    with pytest.raises(SamplerError, match="other columns for other persons"):
        s.people(changing, unit="id")


def test_two_units_that_differ_are_refused():
    """One of them would be ignored, without a word."""
    P = eval(CASES[0])
    assert unit_of(P) == unit_of(P.family()) == unit_of(P.fixed(size=9)) == P.unit
    assert unit_of(s.mixture([P, P])) == P.unit and unit_of(VISIT) is None and unit_of(None) is None
    assert declared_unit(UNDECLARED, P, "f") == declared_unit("id", P, "f") == P.unit
    assert declared_unit(None, VISIT, "f") is None and declared_unit(UNDECLARED, VISIT, "f") is UNDECLARED
    for unit, law in (("id", VISIT), ("other", P), (None, P), (Unit("id", most=5), P)):
        with pytest.raises(SettingsError, match="unit="):
            privatize(epsilon=1, gamma=0.1, sampler=law, unit=unit)


def test_options_that_need_one_row_for_each_record_are_refused():
    """They would see persons where they expect rows."""
    P = eval(CASES[0])
    for more in ({"pair": lambda *args: (0, 0)}, {"batch": True}, {"data": ("a", "b")}):
        with pytest.raises(SettingsError, match="several rows each"):
            privatize(epsilon=1, gamma=0.1, sampler=P, **more)
