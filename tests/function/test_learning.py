"""P is learned from private data, for a plain charge, and nothing else of the data is shown."""

import gc
import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pytest

from privatize import Budget, learn, learning_error, privatize, samplers, seal
from privatize.data import records
from privatize.errors import (
    BudgetExceeded,
    DataError,
    PolicyError,
    PrivateRunError,
    PrivatizeError,
    SamplerError,
    SettingsError,
)
from privatize.function.learning import _columns
from privatize.identity.fingerprint import fingerprint
from privatize.noise import exact, grid
from privatize.samplers.designs import Design, design
from privatize.samplers.layouts import layout_of
from privatize.samplers.learned import Learned
from tests.cases import for_each
from tests.function.lessons import check_at_once, check_killed
from tests.function.sentinels import PRIVATE, SENTINEL, TEXT, holds_sentinel
from tests.function.test_leaks import assert_clean
from tests.samplers.test_layouts import TABLES, WITHIN

NUMBERS = itertools.count()
AGES = np.clip(np.random.default_rng(0).normal(40, 8, 2000), 0, 120)
UNIT = samplers.uniform(0, 120)


def new_budget(epsilon=1.0, **more):
    return Budget(f"learning {next(NUMBERS)}", epsilon=epsilon, ledger="memory", **more)


# --- what is learned --------------------------------------------------------------------------


@for_each("data", [AGES, list(AGES), pd.Series(AGES), AGES.astype(np.float32), AGES[:, None][:, 0]])
def test_a_learned_p_is_near_the_data(data):
    """The noise would be calibrated on data that looks nothing like that of the user."""
    P = learn(data, within=UNIT, epsilon=1)
    drawn = P.draw(20_000, np.random.default_rng(1))
    assert abs(np.median(drawn) - 40) < 3
    assert 5 < drawn.std() < 18
    assert (P.epsilon, P.n) == (1.0, 2000)


@for_each("within", WITHIN)
def test_data_in_every_container_can_be_learned_from(within):
    """A user of polars, of lists or of (X, y) would have to convert the data first."""
    data = within.draw(600, np.random.default_rng(1))
    before = records.copy(data)
    P = learn(data, within=within, epsilon=8)
    assert records.equal(data, before)
    assert records.describe(P.draw(9, np.random.default_rng(2))) == records.describe(records.head(data, 9))


@for_each("frame", TABLES)
def test_values_outside_the_support_are_converted_first(frame):
    """A record with NaN, an infinite number or an unknown category would be counted nowhere."""
    if frame.frame in ("pyarrow", "records"):
        return
    wild = {"a": np.array([np.nan, np.inf, -np.inf, 1e300, -5.0, 0.5] * 100)}
    wild |= {"i": np.array([-(2**40), 99, 3, 4, 5, 6] * 100), "f": np.array([True, False] * 300)}
    wild |= {"c": np.array(["x", "y", "zzz"] * 200), "t": np.array(["p", "nonsense"] * 300)}
    wild |= {"d": np.array(["1900-01-01", "NaT", "2020-06-01"] * 200, dtype="M8[D]"), "m": np.arange(600.0)}
    data = wild if frame.frame == "dict" else pd.DataFrame(wild)
    if frame.frame == "polars":
        data = pl.DataFrame(wild)
    P = learn(data, within=frame, epsilon=50)
    drawn = {name: column.array() for name, column in P.drawn(4000, np.random.default_rng(0)).items()}
    assert abs((drawn["a"] == 0).mean() - 1 / 3) < 0.05 and abs((drawn["a"] == 1).mean() - 1 / 3) < 0.05
    assert abs((drawn["c"] == "x").mean() - 2 / 3) < 0.05
    assert np.isfinite(drawn["a"]).all()


def test_a_private_function_runs_under_a_learned_p():
    """Learning would be of no use."""
    P = learn(AGES, within=UNIT, epsilon=1)
    mean = privatize(epsilon=1, gamma=0.1, sampler=P)(np.mean)
    wide = privatize(epsilon=1, gamma=0.1, sampler=UNIT)(np.mean)
    assert abs(mean(AGES) - AGES.mean()) < 2
    assert mean.estimate(2000).value < wide.estimate(2000).value


def test_what_is_noise_is_told_before_anything_is_spent():
    """Nobody could choose epsilon without spending it first."""
    found = learning_error(2000, within=UNIT, epsilon=1)
    assert found.noise == learn(AGES, within=UNIT, epsilon=1).noise
    assert learning_error(2000, within=UNIT, epsilon=0.5).smallest > found.smallest
    assert "stands out" in repr(found)
    with pytest.raises(SettingsError, match="integer >= 1"):
        learning_error(0, within=UNIT, epsilon=1)


# --- privacy ----------------------------------------------------------------------------------


def test_outputs_of_neighbours_are_at_most_epsilon_apart():
    """All neighbours of three records, all counts: the exact probabilities are within a factor e^epsilon."""
    within = samplers.table(a=samplers.choice(["x", "y"]), b=samplers.integers(0, 2), frame="dict")
    values = list(itertools.product(["x", "y"], range(3)))
    for together in ((), [("a", "b")]):
        made = design(within, 3, 60.0, together, {})
        rates = []  # log-probability of a count goes down by this with each step of noise
        for group in made.groups:
            _, _, t, shift = grid.laplace_grid(2.0, group.epsilon, 0)
            rates.append(Fraction(2**shift, t))
        counts = {}
        for data in itertools.product(values, repeat=3):
            columns = [np.array(column) for column in zip(*data, strict=True)]
            counts[data] = [tuple(map(int, own)) for own in made.counts(columns)]
        worst = Fraction(0)
        for data, own in counts.items():
            for at, other in itertools.product(range(3), values):
                near = counts[(*data[:at], other, *data[at + 1 :])]
                loss = Fraction(0)
                for rate, one, two in zip(rates, own, near, strict=True):
                    # The log-ratio of the probabilities of any output is at most the distance, at each count.
                    loss += rate * sum(abs(x - y) for x, y in zip(one, two, strict=True))
                worst = max(worst, loss)
        assert Fraction(59) < worst <= Fraction(60)


@for_each("within", WITHIN)
def test_columns_are_counted_under_their_own_names(within):
    """The cells of one column would count the values of another, and P would be far from the data."""
    layout = layout_of(within)
    drawn = layout.columns(30, np.random.default_rng(1), layout.names)
    made = layout.put(drawn)
    cells = [each for _, each in design(within, 10**6, 1.0, (), {}).columns]
    for own, column, (values, missing) in zip(cells, drawn.values(), _columns(made), strict=True):
        assert (own.places(column.array()) == own.places(values, missing)).all()


ODD = [
    (samplers.with_missing(samplers.choice(["a", "a\0"]), 0.1), ["a\0", None]),
    (samplers.with_missing(samplers.choice([2**53, 2**53 + 1]), 0.1), [2**53 + 1, None]),
    (samplers.with_missing(samplers.integers(0, 9), 0.1), [3, None]),
]


@for_each("column, values", ODD, ids=None)
def test_one_record_does_not_change_the_cells_of_others(monkeypatch, column, values):
    """If one value changed how all are compared, all counts would move, and the noise would be too little."""
    found, own = [], Design.counts

    def counts(self, *columns):
        found.append(own(self, *columns))
        return found[-1]

    monkeypatch.setattr(Design, "counts", counts)
    made = {
        None: list,
        "records": lambda own: [{"c": value} for value in own],
        "pandas": lambda own: pd.DataFrame({"c": pd.array(own)}),
        "polars": lambda own: pl.DataFrame({"c": own}),
    }
    for frame, make in made.items():
        within = column if frame is None else samplers.table(c=column, frame=frame)
        for last in values:
            learn(make(values[:1] * 99 + [last]), within=within, epsilon=50)
        assert sum(abs(one - two).sum() for one, two in zip(*found[-2:], strict=True)) == 2


@pytest.mark.slow
def test_learned_weights_of_neighbours_are_hard_to_tell_apart():
    """End to end, false-alarm rate 1e-6 (and fixed seeds): a quarter of the noise would be found out."""
    from tests.statistical.test_privacy import never_exceeds

    within, epsilon, count = samplers.choice(["x", "y", "z"]), 0.8, 1500
    data = np.array(["x"] * 20 + ["y"] * 20 + ["z"] * 20)
    near = np.where(np.arange(60) == 0, "y", data)

    def events(given, spent, seed):
        before = exact.source.set(np.random.Generator(np.random.PCG64(seed)).bytes)
        try:
            shares = np.array([learn(given, within=within, epsilon=spent).groups[0][1] for _ in range(count)])
        finally:
            exact.source.reset(before)
        lead = shares[:, 1] - shares[:, 0]
        return np.column_stack([lead > limit for limit in np.linspace(-20_000, 20_000, 21)])

    one, two = events(data, epsilon, 1), events(near, epsilon, 2)
    assert never_exceeds(one, two, epsilon) and never_exceeds(two, one, epsilon)
    one, two = events(data, 4 * epsilon, 3), events(near, 4 * epsilon, 4)
    assert not never_exceeds(two, one, epsilon)


# --- what it costs ----------------------------------------------------------------------------


def test_it_is_charged_once_as_plain():
    """The people would pay twice for the same P, or somebody would learn for free."""
    budget = new_budget(2, gamma=0.2)
    people = seal(AGES, name="people", version="1", sampler=UNIT, budget=budget)
    first = learn(people, epsilon=0.5)
    assert budget.spent == (0.5, 0, 0)
    row = budget.history().iloc[0]
    assert (row["purpose"], row["strength"], row["n"]) == ("learning", "plain", 2000)
    again = learn(people, epsilon=0.5, within=samplers.uniform(0.0, 120.0))
    assert again == first and again.facts() == first.facts()
    other = learn(seal(AGES, name="people", version="1", budget=budget), within=UNIT, epsilon=0.5)
    assert other == first and budget.spent.epsilon == 0.5
    for number, more in enumerate(
        (
            {"epsilon": 0.25},
            {"atoms": {"value": [65]}},
            {"within": samplers.uniform(0, 130)},
            {"data": seal(AGES, name="people", version="2", budget=budget)},
            {"data": seal(AGES[:1999], name="people", version="1", budget=budget)},
        )
    ):
        asked = {"data": people, "epsilon": 0.25, "within": UNIT} | more
        assert learn(asked.pop("data"), **asked) != first
        assert budget.spent.epsilon == 0.75 + number * 0.25
    budget.verify()


@for_each("within", WITHIN)
def test_a_remembered_p_has_the_fingerprint_of_the_one_that_was_learned(within):
    """A second process would calibrate again, and could not use a catalogue that the first has declared."""
    data = within.draw(600, np.random.default_rng(1))
    people = seal(data, name=f"fingerprints {next(NUMBERS)}", budget=new_budget(9.0))
    first, again = (learn(people, within=within, epsilon=8) for _ in range(2))
    assert fingerprint(first.family()) == fingerprint(again.family())


def test_nothing_is_remembered_of_data_without_a_name():
    """Other people's data would get the P of the first."""
    budget = new_budget(1)
    one, two = (learn(AGES, within=UNIT, epsilon=0.5, budget=budget) for _ in range(2))
    assert one != two and budget.spent.epsilon == 1
    with pytest.raises(BudgetExceeded, match=r"learn.., which asks for epsilon=0.1 of 0 left"):
        learn(AGES, within=UNIT, epsilon=0.1, budget=budget)
    roomy = new_budget(0.3)
    with pytest.raises(BudgetExceeded, match=r"spent. epsilon=0.3 would fit"):
        learn(AGES, within=UNIT, epsilon=0.5, budget=roomy)
    assert roomy.spent.epsilon == 0


def test_every_budget_pays_and_remembers():
    """One of two budgets would not know what was learned about its people."""
    one, two = new_budget(), new_budget(2)
    people = seal(AGES, name="people", budget=one)
    first = learn(people, within=UNIT, epsilon=0.4)
    with two:
        second = learn(people, within=UNIT, epsilon=0.4)
        assert second != first
        assert (one.spent.epsilon, two.spent.epsilon) == (0.8, 0.4)
        assert learn(people, within=UNIT, epsilon=0.4) == second  # now both remember the same
        assert (one.spent.epsilon, two.spent.epsilon) == (0.8, 0.4)
    assert learn(people, within=UNIT, epsilon=0.4) == second
    poor = new_budget(0.1)
    with pytest.raises(BudgetExceeded):
        learn(seal(AGES, name="others", budget=two), within=UNIT, epsilon=0.4, budget=poor)
    assert poor.spent.epsilon == 0 and two.spent.epsilon == 0.4
    part = new_budget().partition("site", ["A", "B"])["A"]
    site = seal(AGES, name="A", budget=part)
    assert learn(site, within=UNIT, epsilon=0.4) == learn(site, within=UNIT, epsilon=0.4)
    assert part.budget.spent.epsilon == 0.4


class Purse:
    """A budget of the user's own."""

    def __init__(self):
        self.charged = []

    def afford(self, charge):
        pass

    def reserve(self, charge):
        self.charged.append(charge)


def test_budgets_of_the_users_own_are_charged():
    """A budget that is not ours would fail after the data was seen."""
    purse = Purse()
    for _ in range(2):
        learn(seal(AGES, name="people"), within=UNIT, epsilon=0.5, budget=purse)
    assert [each.purpose for each in purse.charged] == ["learning"] * 2


def test_a_stored_p_that_was_not_paid_for_is_not_used():
    """Whoever can write to a table could hand out a P for nothing."""
    budget = new_budget()
    people = seal(AGES, name="people", budget=budget)
    learn(people, within=UNIT, epsilon=0.4)
    with budget.ledger.transaction() as run:
        run("UPDATE learned SET number = 7 WHERE budget = ?", budget.name)
    learn(people, within=UNIT, epsilon=0.4)
    assert budget.spent.epsilon == 0.8


def test_learning_obeys_the_policy(rule):
    """An organization that requires budgets would have learning beside them."""
    rule("require-budget = true")
    with pytest.raises(PolicyError, match="require-budget"):
        learn(AGES, within=UNIT, epsilon=0.5)
    rule("require-sealed = true")
    with pytest.raises(PolicyError, match="require-sealed"):
        learn(AGES, within=UNIT, epsilon=0.5)
    rule("max-epsilon = 0.1")
    with pytest.raises(PolicyError, match="epsilon"):
        learn(AGES, within=UNIT, epsilon=0.5)


@pytest.mark.slow
def test_processes_that_learn_at_once_have_paid_for_what_they_have(tmp_path):
    """Two colleagues would have two P for the price of one."""
    check_at_once(tmp_path / "ledger.db", tmp_path, "at once")


@pytest.mark.slow
def test_a_killed_process_leaves_charge_and_p_together(tmp_path):
    """What was paid for would be lost, or a P would be there that nobody has paid for."""
    check_killed(tmp_path / "ledger.db", tmp_path, "killed")


# --- what is refused, and what errors show ----------------------------------------------------

P2 = samplers.table(a=samplers.uniform(0, 1), b=samplers.boolean())


@for_each(
    "data, more, error, words",
    [
        (AGES, {"within": samplers.normal(0, 1)}, SamplerError, "unbounded"),
        (AGES, {}, SettingsError, "has no P"),
        (AGES[:0], {"within": UNIT}, DataError, "empty"),
        (AGES[:5], {"within": UNIT, "epsilon": 0.1}, SamplerError, r"It takes epsilon=[\d.]+, or [\d,]+ rec"),
        (AGES, {"within": P2}, DataError, "is an array"),
        (pd.DataFrame({"a": AGES}), {"within": P2}, DataError, r"lacks the columns \['b'\]"),
        (pd.DataFrame({"a": AGES, "b": True, "c": 1}), {"within": P2}, DataError, r"has the columns \['c'\]"),
        (AGES, {"within": UNIT, "epsilon": -1}, SettingsError, "epsilon=-1"),
        (AGES, {"within": UNIT, "together": [("a", "b")]}, SamplerError, "not a pair of columns"),
        (AGES, {"within": UNIT, "budget": 5}, SettingsError, "budget=5"),
        (AGES, {"within": "uniform"}, SamplerError, "not a public distribution"),
        (7, {"within": UNIT}, DataError, "not supported"),
    ],
)
def test_bad_input_is_refused_before_anything_is_spent(data, more, error, words):
    """A user would pay for nothing, or read an error that does not say what to do."""
    budget = new_budget()
    with pytest.raises(error, match=words), budget:
        learn(data, **({"epsilon": 0.5} | more))
    assert budget.spent.epsilon == 0


class Odd:
    """A value that breaks whatever reads it."""

    def __eq__(self, other):
        raise ValueError(TEXT)

    def __hash__(self):
        raise ValueError(TEXT)

    def __repr__(self):
        return TEXT


@for_each(
    "data", [np.append(PRIVATE, 9.0), [SENTINEL, "x", Odd()], pd.Series([SENTINEL, "x", Odd()], dtype=object)]
)
def test_errors_and_learned_p_hold_nothing_of_the_data(data):
    """A traceback, or the P that a team shares, would show a record."""
    budget = new_budget(100)
    within = samplers.uniform(0, 1) if isinstance(data, np.ndarray) else samplers.choice(["x", "y"])
    for more in (
        {"epsilon": 60},
        {"epsilon": 0.001},
        {"epsilon": "much"},
        {"epsilon": 60, "together": [("a",)]},
    ):
        try:
            P = learn(data, within=within, budget=budget, **more)
        except PrivatizeError as error:
            assert_clean(error)
        else:
            P.draw(5, np.random.default_rng(0))
            assert not holds_sentinel([vars(P), repr(P), str(P.describe())])
    assert not holds_sentinel(budget.history().to_dict())


def test_an_error_that_depends_on_values_comes_after_payment(monkeypatch):
    """Whether a call fails would tell something about a record, for free."""
    budget = new_budget()

    def fails(self, *values):
        raise ValueError(f"{values}")

    monkeypatch.setattr("privatize.samplers.designs.Design.counts", fails)
    with pytest.raises(PrivateRunError) as caught:
        learn(PRIVATE.repeat(50), within=samplers.uniform(0, 1), epsilon=0.5, budget=budget)
    assert_clean(caught.value)
    assert budget.spent.epsilon == 0.5


def test_nothing_of_the_data_is_kept():
    """Private data would stay in memory as long as the P that was learned from it."""
    P = learn(AGES.copy(), within=UNIT, epsilon=1)
    gc.collect()
    held = [each for each in gc.get_referents(P, vars(P)) if isinstance(each, np.ndarray)]
    assert not held and isinstance(P, Learned)
