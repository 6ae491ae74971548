"""People with several rows: a promise is about a person with all their rows, in every way of asking."""

import logging
import math
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privatize import (
    Blocks,
    Budget,
    Catalogue,
    Gaussian,
    People,
    Unit,
    additive,
    audit,
    check_fit,
    privatize,
    report,
    samplers,
    seal,
    sums,
)
from privatize.calibration.proven import proven_of
from privatize.data.grouping import group
from privatize.errors import (
    BoundError,
    DataError,
    PrivatizeError,
    SealedError,
    SettingsError,
    UnitWarning,
)
from privatize.function.persons import unit_for
from tests.cases import for_each

s = samplers
VISIT = s.table(cost=s.uniform(0, 100), day=s.integers(1, 30))
PERSON = s.table(sex=s.categorical(["F", "M"]))
P = s.people(VISIT, unit="id", rows=s.integers(1, 6), person=PERSON)
OPTIONS = {"epsilon": 1, "gamma": 0.2, "seed": 1}
SENTINEL = "Sentinelsohn"


def visits(n=100, seed=0, most=9):
    """Return rows of n persons in no order, with a sentinel in every identifier."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(1, most, n)
    ids = np.repeat([f"{SENTINEL}-{at}" for at in range(n)], rows)
    size = len(ids)
    data = {"id": ids, "sex": np.repeat(rng.choice(["F", "M"], n), rows)}
    data |= {"cost": rng.uniform(-50, 150, size), "day": rng.integers(1, 40, size)}
    return pd.DataFrame(data).sample(frac=1, random_state=seed)


def per_visit(d):
    """Return the mean cost of a row."""
    return float(np.mean(np.asarray(d["cost"])))


def in_frame(frame):
    """Return the same people in a container, and a P that draws it."""
    data = visits()
    made = {
        "pandas": lambda: data,
        "polars": lambda: pl.from_pandas(data),
        "pyarrow": lambda: pa.Table.from_pandas(data, preserve_index=False),
        "dict": lambda: {name: column.to_numpy() for name, column in data.items()},
    }[frame]()
    return made, s.people(VISIT, unit="id", rows=s.integers(1, 6), person=PERSON, frame=frame)


@for_each("frame", ["pandas", "polars", "pyarrow", "dict"])
def test_n_is_the_number_of_persons(frame):
    """The number of rows is private, and noise that depends on it would tell it."""
    data, law = in_frame(frame)
    release = privatize(**OPTIONS, sampler=law)(per_visit).release(data)
    assert release.n == 100 and 0 < release.value < 100
    assert release.sensitivity == privatize(**OPTIONS, sampler=law)(per_visit).estimate(n=100).value


def test_a_person_counts_and_not_a_row():
    """A count of costly visits would get the noise of one visit, although a patient moves it by six."""

    def costly(d):
        return int((d["cost"] > 10).sum())

    rows = privatize(**OPTIONS, sampler=VISIT)(costly).estimate(n=100).value
    assert rows == 1
    assert privatize(**OPTIONS, sampler=P)(costly).estimate(n=100).value >= 3


def test_the_function_sees_no_identifier_and_no_order():
    """Somebody who sorts the file by name would publish the order of names."""

    @privatize(**OPTIONS, sampler=P)
    def spied(d):
        slots = d["id"].is_monotonic_increasing and d["id"].max() == d["id"].nunique() - 1
        return per_visit(d) if slots and isinstance(d.index, pd.RangeIndex) else math.nan

    data = visits()
    assert math.isfinite(spied(data)) and math.isfinite(spied(data.sort_values("id")))


def test_private_rows_are_clipped_cut_and_completed():
    """Something would reach the function that P never draws."""

    @privatize(**OPTIONS, sampler=P)
    def legal(d):
        sizes, sexes = d.groupby("id").size(), d.groupby("id")["sex"].nunique()
        fine = sizes.max() <= 6 and sexes.max() == 1 and d["day"].between(1, 30).all()
        return per_visit(d) if fine else math.nan

    data = visits()
    data.loc[data.index[:30], "sex"] = "unknown"
    assert math.isfinite(legal(data))


def test_the_order_of_columns_does_not_matter():
    """A file whose columns are in another order would be refused."""
    f = privatize(**OPTIONS, sampler=P)(per_visit)
    assert math.isfinite(f(visits()[["day", "cost", "id", "sex"]]))
    with pytest.raises(DataError, match="lacks the columns"):
        f(visits().drop(columns="day"))
    with pytest.raises(DataError, match=r"data\[\['id', 'sex', 'cost', 'day'\]\]"):
        f(visits().assign(more=1))


def test_answers_depend_on_the_multiset_of_a_persons_rows(monkeypatch):
    """The order of the file would be a way to ask for another answer."""
    from privatize.function import persons

    monkeypatch.setattr(persons, "_of_process", lambda: bytes(32))

    @privatize(epsilon=1e5, gamma=0.2, seed=1, sampler=P)
    def ordered(d):
        return float((d["cost"] * np.arange(len(d))).sum() / len(d))

    data = visits()
    found = [ordered(each) for each in (data, data.iloc[::-1], data.sort_values("cost"))]
    assert max(found) - min(found) < 0.1


def test_public_samples_are_what_the_function_gets():
    """A failure could not be reproduced."""
    f = privatize(**OPTIONS, sampler=P)(per_visit)
    sample = f.sample(20, seed=1)
    assert list(sample) == ["id", "sex", "cost", "day"] and sample["id"].nunique() == 20
    assert 0 < f.__wrapped__(sample) < 100
    like = visits().head(0)
    assert f.estimate(n=100, like=like).value == f.estimate(n=100).value


# --- for all pairs ----------------------------------------------------------------------------


def test_blocks_have_entire_persons():
    """A person in two blocks would move two of them."""

    def whole(d):
        return float(d.groupby("id")["day"].nunique().mean())

    data = pd.concat([visits(400).assign(day=day) for day in (1, 2, 3)])
    f = privatize(epsilon=5, mechanism=Blocks(0.0, 9.0), unit="id")(whole)
    release = f.release(data)
    assert release.n == 400 and abs(release.value - 3) < 0.1  # 1 if rows were cut


NORMS = {"l1": lambda moved: np.abs(moved).sum(), "l2": lambda moved: math.sqrt(np.square(moved).sum())}
PROVEN = [
    (additive(lambda d: d["cost"], average=False, bounds=(0, 100)), ["cost"]),
    (additive(lambda d: d["cost"], bounds=(-20.5, 60.25)), ["cost"]),
    (additive(lambda d: d["cost"], average=False, bounds=(20, 60)), ["cost"]),
    (additive(lambda d: d[["cost", "day"]], bounds=([-5, 0], [5, 30])), ["cost", "day"]),
    (additive(lambda d: d[["cost", "day"]] / 10, bounds=sums.ball(3, 2)), ["cost", "day"]),
    (
        additive(lambda d: d[["cost", "day"]] / 10, average=False, bounds=sums.ball(3, 2, "l1")),
        ["cost", "day"],
    ),
    (sums.counts([1, 2, 3, 4]), ["day"]),
    (sums.histogram([0, 50, 100]), ["cost"]),
    (sums.means(bounds=({"cost": 0}, {"cost": 100})), ["cost", "day"]),
    (sums.second_moments(bounds=([0, 0], [9, 9])), ["cost", "day"]),
    (sums.kde([0.0, 50.0], bandwidth=10), ["cost"]),
]


@pytest.mark.slow
@for_each(("function", "names"), PROVEN)
def test_bounds_of_a_row_are_multiplied_by_the_number_of_rows(function, names):
    """The noise would hide one row, and not one person. By force: every neighbour stays within the bound."""
    unit, n = Unit("id", most=4), 12
    data = visits(n, most=8)[["id", *names]]
    own = proven_of(function).for_persons(unit)

    def answer(rows):
        wrapped = own if own.columns else own.wrapped(lambda f: lambda d: f(d.frame))
        measured = wrapped.measure(group(rows, unit, bytes(32)), n)
        return own.finish(own.total(measured, n), n)

    before = answer(data)
    extreme = [
        pd.DataFrame({"id": "new", **dict.fromkeys(names, value)}, index=range(size))
        for value in (-1e9, 0, 1, 2, 50, 100, 1e9, math.nan)
        for size in (1, 4, 9)
    ]
    moved = [
        answer(pd.concat([data[data["id"] != who], rows])) - before
        for who in data["id"].unique()[:3]
        for rows in extreme
    ]
    for mechanism, norm in ((None, "l1"), (Gaussian(), "l2")):
        used = mechanism or privatize(epsilon=1, unit=unit)(function).settings.mechanism
        bound = own.bound_at(n, used)
        assert 0 < max(map(NORMS[norm], moved)) <= bound * (1 + 1e-12)
        assert bound >= 4 * proven_of(function).bound_at(n, used) * (1 - 1e-9)


def test_sums_over_rows_are_divided_by_persons():
    """A mean over rows would divide by their number, which is private."""
    data = visits(300)
    unit = Unit("id", most=20)
    per_person = privatize(epsilon=1e4, unit=unit)(additive(lambda d: np.ones(len(d)), bounds=(0, 1)))
    assert abs(per_person(data) - len(data) / 300) < 0.01
    total = privatize(epsilon=1e4, unit=unit)(additive(lambda d: d["day"], average=False, bounds=(-40, 40)))
    assert abs(total(data) - data["day"].sum()) < 5
    assert per_person.estimate(300).value == pytest.approx(20 / 300)


def test_quantiles_of_rows():
    """Each person would move the score of a point by one, and has many rows."""
    unit = Unit("id", most=5)
    median = privatize(epsilon=200, unit=unit)(sums.quantiles(0.5, 0, 40))
    data = visits(400, most=5)[["id", "day"]]
    assert abs(median(data) - data["day"].median()) <= 1
    assert proven_of(sums.quantiles(0.5, 0, 40)).for_persons(unit).most == 5
    with pytest.raises(DataError, match="one number for each record"):
        median(visits(400)[["id", "sex"]])
    with pytest.raises(DataError, match="takes one number"):
        median(visits(400))


def test_a_bound_of_ones_own_is_tried_on_persons():
    """A bound for one row would be taken for one of a person."""

    def total(d):
        return float(d["cost"].sum())

    with pytest.raises(BoundError, match="rows of a person=6"):
        privatize(epsilon=1, sensitivity=100, sampler=P)(total)(visits())
    release = privatize(epsilon=1, sensitivity=600, sampler=P)(total).release(visits())
    assert release.n == 100 and release.gamma == 0


@for_each("function", [sums.quantiles(0.5, 0, 1), additive(np.positive, bounds=(0, 1)), sums.counts([1])])
def test_a_bound_needs_a_number_of_rows(function):
    """A person could move the sum by anything."""
    with pytest.raises(SettingsError, match="most=12"):
        privatize(epsilon=1, unit="id")(function)


# --- what a record is -------------------------------------------------------------------------


def test_two_that_differ_are_refused():
    """The promise would be about something else than the data's owner declared."""
    f, rows = privatize(**OPTIONS, sampler=P)(per_visit), privatize(**OPTIONS, sampler=VISIT)(per_visit)
    with pytest.raises(SealedError, match="Seal it with unit='id'"):
        f(seal(visits(), name="a", unit=None))
    with pytest.raises(SettingsError, match="takes every row as another person"):
        rows(seal(visits()[["id", "cost", "day"]], name="a", unit="id"))
    with pytest.raises(SettingsError, match="sealed with unit='id'"):
        privatize(epsilon=1, mechanism=Blocks(0.0, 1.0), unit="day")(per_visit)(
            seal(visits(), name="a", unit="id")
        )
    with pytest.raises(SettingsError, match="unit="):
        seal(visits(), name="a", unit="day", sampler=P)
    sealed = seal(visits(), name="a", unit=Unit("id", most=3))
    assert unit_for("f", Unit("id"), None, sealed).most == 3
    assert unit_for("f", Unit("id", most=2), None, sealed).most == 2


def test_persons_without_rows_must_be_listed():
    """Whether somebody has rows would decide the number of people."""
    law = s.people(VISIT, unit="id", rows=s.integers(0, 6), person=PERSON)
    f = privatize(**OPTIONS, sampler=law)(lambda d: len(d) / 100)
    with pytest.raises(DataError, match="persons="):
        f(visits())
    with pytest.raises(SettingsError, match="persons="):
        seal(visits(), name="a", sampler=law)
    with pytest.raises(SettingsError, match="unit="):
        seal(visits(), name="a", unit=None, persons=["x"])
    everybody = [f"{SENTINEL}-{at}" for at in range(150)]
    assert f.release(seal(visits(), name="a", sampler=law, persons=everybody)).n == 150
    with pytest.raises(SettingsError, match="rows=samplers"):
        seal(visits(), name="a", sampler=P, persons=everybody)
    with pytest.raises(DataError, match="rows=samplers"):
        privatize(**OPTIONS, sampler=P)(per_visit)(seal(visits(), name="a", unit="id", persons=everybody))
    for wrong, message in ((range(5), "persons= has numbers"), (visits(), "a list of"), ([], "a list of")):
        with pytest.raises(SettingsError, match=message):
            seal(visits(), name="a", unit="id", persons=wrong)
    # Without a P they may be listed, too: who has no rows adds nothing.
    total = privatize(epsilon=1e4, unit=Unit("id", most=9))(
        additive(lambda d: d["day"], average=False, bounds=(0, 40))
    )
    listed = seal(visits(), name="b", unit=Unit("id", most=9), persons=everybody)
    assert abs(total(listed) - visits()["day"].sum()) < 5 and total.release(listed).n == 150


def test_a_part_of_a_budget_is_refused():
    """A person may have rows in several parts."""
    budget = Budget("parts of visits", epsilon=5, gamma=0.5, ledger="memory")
    part = budget.partition("site", ["A", "B"])["A"]
    with pytest.raises(SettingsError, match="rows in several parts"):
        seal(visits(), name="a", unit="id", budget=part)


def test_aligned_datasets_are_refused():
    """Rows of two tables would be taken for persons."""
    budget = Budget("aligned visits", epsilon=9, gamma=0.5, ledger="memory")
    parts = [seal(visits()[["id", name]], name=name, unit="id", budget=budget) for name in ("cost", "day")]
    law = s.labelled(s.table(id=s.integers(0, 9), cost=s.uniform(0, 1)), s.integers(0, 3))
    for made in (
        privatize(epsilon=1, data=("a", "b"), mechanism=Blocks(0.0, 1.0)),
        privatize(**OPTIONS, data=("a", "b"), sampler=law, unit=None),
    ):
        with pytest.raises(SettingsError, match="aligned record by record"):
            made(lambda a, b: per_visit(a))(*parts)
    with pytest.raises(SettingsError, match="aligned record by record"):
        Catalogue("aligned", tuple(parts), gamma=0.1)
    assert budget.spent.epsilon == 0


def test_persons_as_p_draws_them_are_no_data():
    """Nobody would have cut their rows."""
    with pytest.raises(DataError, match=r"data\.frame"):
        privatize(**OPTIONS, sampler=P)(per_visit)(P.draw(9, np.random.default_rng(0)))


def test_a_function_of_persons_may_return_one_number_for_each():
    """What everybody writes for a share of people counted those with one row only: 15 of 281."""
    unit, data = Unit("id", most=9), visits()
    costly = privatize(epsilon=1e4, unit=unit)(
        additive(lambda d: d.groupby("id")["cost"].max() > 100, average=False, bounds=(0, 1))
    )
    assert abs(costly(data) - (data.groupby("id")["cost"].max() > 100).sum()) <= 1


def test_a_warning_that_is_an_error_is_shown():
    """Whoever runs with -W error would be told that the data cannot be read."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UnitWarning, match="pass unit='id'"):
            seal(visits(), name="a")


def test_columns_of_different_lengths_are_refused():
    """A value that belongs to nobody would be left out, without a word."""
    for rows in (2, 5):
        data = {"id": np.arange(3), "cost": np.zeros(rows)}
        with pytest.raises(DataError, match="aligned"):
            seal(data, name="a", unit="id")
        with pytest.raises(DataError, match="aligned"):
            privatize(epsilon=1, mechanism=Blocks(0.0, 1.0), unit="id")(per_visit)(data)


def test_messages_lead_to_the_unit():
    """Whoever drops the identifier, as told, would protect rows only."""
    with pytest.raises(DataError, match=r"keep it, and use samplers\.people"):
        privatize(**OPTIONS, sampler=VISIT)(per_visit)(visits()[["id", "cost", "day"]])
    f = privatize(**OPTIONS, sampler=P)(per_visit)
    with pytest.raises(DataError, match="It is the index"):
        f(visits().set_index("id"))
    with pytest.raises(DataError, match=r"people\(\.\.\., frame='polars'\)"):
        f(pl.from_pandas(visits()))


def test_sealing_shows_nothing_if_it_fails():
    """An identifier would be in a traceback."""

    class Loud(str):
        def __hash__(self):
            raise ValueError(SENTINEL)

    data = visits()
    everybody = data["id"].tolist()
    for given, persons in ((data, 5), (data, SENTINEL), (data, [object()]), (data, [Loud(SENTINEL), None])):
        with pytest.raises(PrivatizeError) as caught:
            seal(given, name="a", unit="id", persons=persons)
        assert SENTINEL not in str(caught.value) and caught.value.__context__ is None
    assert seal(data, name="a", unit="id", persons=[*everybody, "nobody"]).n == 101


def test_ready_made_sums_leave_out_the_column_of_the_unit():
    """The mean of slots would be an answer about nobody."""
    law = s.people(s.table(cost=s.uniform(0, 100)), unit="id", rows=s.integers(1, 6))
    data = visits()[["id", "cost"]]
    assert np.ndim(privatize(**OPTIONS, sampler=law)(sums.means())(data)) == 0
    assert len(privatize(**OPTIONS, sampler=law)(sums.histogram([0, 50, 100]))(data)) == 2


def test_names_like_identifiers_ask_what_a_record_is():
    """A person with several rows would get the protection of one row, without a word."""
    law = s.table(patient_id=s.integers(0, 9), cost=s.uniform(0, 100))
    data = pd.DataFrame({"patient_id": [1, 1, 2], "cost": [1.0, 2.0, 3.0]})
    with pytest.warns(UnitWarning, match="'patient_id' looks as if"):
        privatize(**OPTIONS, sampler=law)
    with pytest.warns(UnitWarning, match="unit=None"):
        seal(data, name="a")
    with pytest.warns(UnitWarning, match="patient_id"):
        privatize(epsilon=1, mechanism=Blocks(0.0, 100.0))(per_visit)(pd.concat([data] * 30))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        privatize(**OPTIONS, sampler=law, unit=None)
        seal(data, name="a", unit=None)
        seal(data, name="a", unit="patient_id")
        privatize(epsilon=1, mechanism=Blocks(0.0, 100.0), unit=None)(per_visit)(pd.concat([data] * 30))
        privatize(**OPTIONS, sampler=law["cost"])


# --- everything else that opens data -----------------------------------------------------------


def test_a_catalogue_is_about_persons(tmp_path):
    """Its members would be calibrated on rows."""
    budget = Budget("of visits", epsilon=50, gamma=0.5, ledger=tmp_path / "ledger.db")
    people = seal(visits(), name="visits", sampler=P, budget=budget)
    facts = Catalogue("questions", People("visits", 100), gamma=0.2, sampler=P, budget=budget, seed=1)
    here = Catalogue("questions", people, gamma=0.2, seed=1)
    for catalogue in (facts, here):
        catalogue.add(per_visit)
        catalogue.add(lambda d: d["cost"].median(), name="middle", mechanism=Blocks(0.0, 100.0))
    assert "worked on" in str(here.pilot())
    facts.calibrate()
    here.calibrate()
    assert 0 < here.per_visit(epsilon=5) < 100 and 0 < facts.per_visit(people, epsilon=5) < 100
    assert 0 <= here.middle(epsilon=1) <= 100
    assert budget.spent.gamma == 0.2 and budget.verify() == budget.spent
    with pytest.raises(SettingsError, match="unit"):
        Catalogue("others", people, gamma=0.2, unit="day", sampler=None)


def test_a_check_of_p_replaces_persons():
    """The check would say that P is right because single rows move little."""
    f = privatize(epsilon=1, gamma=0.2, seed=1, sampler=P)(per_visit)
    fit = check_fit(f, visits(1500), epsilon=4)
    assert fit.n == 1500
    assert f.replace(fit=fit).estimate(1500).value >= f.estimate(1500).value


def test_changed_counts_persons():
    """One person may be in every count."""
    data = visits(500)
    changed = privatize(**OPTIONS, sampler=P)(per_visit).changed(data, epsilon=50)
    assert changed.n == 500 and changed.sensitivity == 6
    clipped = next(each for each in changed.counts if (each.column, each.kind) == ("cost", "clipped"))
    assert abs(clipped.count - data[~data["cost"].between(0, 100)]["id"].nunique()) < 5


def test_audit_and_report_work():
    """Nobody could check the promise about persons."""
    f = privatize(**OPTIONS, sampler=P)(per_visit)
    audit(f, n=50, pairs=1000, seed=1).assert_holds()
    page = report(f, 50)
    assert "a person with all their rows, by" in page.html and "a person with all" in f._repr_html_()


# --- nothing private leaves ---------------------------------------------------------------------


def test_identifiers_and_numbers_of_rows_appear_nowhere(tmp_path, capsys, caplog):
    """A name in an error, or the number of visits in a ledger, is what nobody has paid for."""
    caplog.set_level(logging.DEBUG)
    data = visits(97, most=30)
    size = str(len(data))
    budget = Budget("of sentinels", epsilon=100, gamma=0.9, ledger=tmp_path / "ledger.db")
    people = seal(data, name="people", sampler=P, budget=budget)
    texts = [repr(people), str(people.schema), str(people.n)]

    @privatize(**OPTIONS, sampler=P, store=tmp_path / "store.db", progress=True)
    def fails(d):
        if len(d) > 700:
            raise ValueError(f"{d['id'].iloc[0]} {len(d)}")
        return per_visit(d)

    works = privatize(**OPTIONS, sampler=P, store=tmp_path / "store.db", progress=True)(per_visit)
    wrong = privatize(**OPTIONS, sampler=s.people(s.table(cost=s.uniform(0, 1)), unit="id", rows=2))(
        per_visit
    )
    for use in (
        lambda: fails(people),
        lambda: works.release(people),
        lambda: works.changed(people, epsilon=1),
        lambda: wrong(people),
        lambda: wrong(data),
        lambda: works(data.drop(columns="id")),
        lambda: privatize(epsilon=1, mechanism=Blocks(0.0, 1.0), unit="id")(per_visit).release(people),
        lambda: works(data.set_index("id")),
    ):
        try:
            texts.append(repr(use()))
        except PrivatizeError as error:
            texts += [str(error), repr(vars(error)), repr(error.__context__), repr(error.__cause__)]
    texts += [str(budget), budget.history().to_json(), budget._repr_html_()]
    texts += [(tmp_path / name).read_bytes().decode("latin-1") for name in ("ledger.db", "store.db")]
    printed = capsys.readouterr()
    for text in (*texts, printed.out, printed.err, caplog.text):
        assert SENTINEL not in text
    for text in (*texts[:-2], printed.out, printed.err, caplog.text):
        assert size not in text.replace(people.name, "")
