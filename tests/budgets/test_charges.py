"""Charges add up exactly, under one P for the same people, and no mechanism sets its own price."""

import contextlib
import decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import privatize as package
from privatize import Budget, Laplace, privatize, samplers, seal
from privatize.errors import (
    BudgetExceeded,
    SettingsError,
)
from tests.budgets.charged import charge, everything, new_budget, new_name
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
DATA = np.linspace(0.1, 0.9, 50)


def mean(x):
    return float(x.mean())


def made(raw=mean, **changes):
    """Return a private function that is calibrated in this process only."""
    return privatize(**({"epsilon": 0.3, "gamma": 0.2, "sampler": UNIT, "store": None} | changes))(raw)


def two_columns(n, rng):
    return rng.random(n), rng.random(n)


class TestSums:
    def test_a_hundred_hundredths_are_one(self):
        """Floating-point sums would refuse the last one, or let one more pass."""
        budget = new_budget()
        for _ in range(100):
            budget.reserve(charge(0.01))
        assert budget.remaining == (0, 0, 1) and budget.spent == (1, 0, 0)
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(0.01))
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(1e-15))
        assert budget.verify() == (1, 0, 0)

    def test_every_component_counts(self):
        """A budget that has ε left but no δ or γ is used up."""
        for cap, request in [
            ({"epsilon": 0.1, "delta": 1e-6}, charge(0.2, 1e-6, 0.1)),
            ({"epsilon": 1, "delta": 1e-7}, charge(0.2, 1e-6, 0.1)),
            ({"epsilon": 1, "delta": 1e-6, "gamma": 0.05}, charge(0.2, 1e-6, 0.1)),
        ]:
            with pytest.raises(BudgetExceeded):
                new_budget(**cap).reserve(request)

    def test_the_users_decimal_context_changes_nothing(self):
        """A program that rounds its own decimals to three digits could spend without end."""
        budget = new_budget()
        with decimal.localcontext(decimal.Context(prec=3)):
            budget.reserve(charge(0.999))
            for _ in range(10):
                budget.reserve(charge(0.0001))
            with pytest.raises(BudgetExceeded):
                budget.reserve(charge(0.0001))
        assert budget.verify().epsilon == 1

    def test_the_smallest_amounts_count(self):
        """Amounts that disappear in rounding could be spent without end."""
        budget = new_budget(delta=1)
        budget.reserve(charge(1, 0.5))
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(1e-40))
        budget.reserve(charge(0, 1e-40))
        with pytest.raises(BudgetExceeded):
            budget.reserve(charge(0, 0.5))

    def test_through_a_private_function(self):
        """What is charged is exactly what the decorator promises."""
        budget = new_budget(delta=1e-5, gamma=0.5)
        f = made(mechanism="gaussian", delta=1e-6, budget=budget)
        release = f.release(DATA)
        assert budget.spent == (0.3, 1e-6, pytest.approx(release.gamma))
        assert len(budget.history()) == 1


class TestGamma:
    def test_once_for_an_estimate_and_a_declared_dataset(self):
        """The same Δ̂ on the same data fails on the same pairs: paying twice would halve what can be asked."""
        budget = new_budget(epsilon=10)
        data = seal(DATA, name="people", version="1")
        f = made(budget=budget)
        for _ in range(4):
            gamma = f.release(data).gamma
        assert budget.spent == (1.2, 0, pytest.approx(gamma))
        f.replace(epsilon=0.1)(data)
        assert budget.spent.gamma == pytest.approx(gamma)
        assert budget.verify() == budget.spent

    def test_every_release_about_undeclared_data(self):
        """Without a name nobody knows whether it is the same data."""
        budget = new_budget(epsilon=10)
        f = made(budget=budget)
        for _ in range(3):
            gamma = f.release(DATA).gamma
        assert budget.spent.gamma == pytest.approx(3 * gamma)

    def test_the_largest_of_one_estimate(self):
        """Promises with several γ about one estimate fail on the same pairs, so only the largest γ counts."""
        budget = new_budget()
        for gamma, total in [(0.1, 0.1), (0.3, 0.3), (0.2, 0.3), (0.3, 0.3), (0.4, 0.4)]:
            budget.reserve(charge(gamma=gamma, dataset="d", key="k"))
            assert budget.spent.gamma == total
        assert list(budget.history()["charged"]) == pytest.approx([0.1, 0.2, 0, 0, 0.1])
        budget.verify()

    def test_gammas_of_different_estimates_or_datasets_add_up(self):
        """Another estimate, dataset, version or n fails on other pairs, so its γ is added."""
        budget = new_budget(epsilon=10, gamma=10)
        f = made(budget=budget)
        for data in (
            seal(DATA, name="a"),
            seal(DATA, name="a", version="2"),
            seal(DATA, name="b"),
            seal(DATA[:40], name="a"),
        ):
            f(data)
        made(np.median, budget=budget)(seal(DATA, name="a"))
        assert budget.spent.gamma == pytest.approx(sum(budget.history()["gamma"]))
        assert len(budget.history()) == 5

    def test_a_name_is_not_confused_with_a_name_and_a_version(self):
        """Two datasets whose names look alike would share one γ and one answer."""
        budget = new_budget(epsilon=10, gamma=10)
        f = made(budget=budget)
        first = f(seal(DATA, name="a@1"))
        assert f(seal(DATA / 2, name="a", version="1")) != first
        assert len(budget.history()) == 2
        assert budget.spent.gamma == pytest.approx(sum(budget.history()["gamma"]))

    def test_forgetting_makes_a_new_estimate(self):
        """A luckier calibration is paid for: it fails on other pairs."""
        budget = new_budget()
        data = seal(DATA, name="people")
        f = made(budget=budget)
        first = f.release(data)
        f(data)
        f.forget()
        second = f.release(data)
        assert budget.spent.gamma == pytest.approx(first.gamma + second.gamma)

    def test_further_plans_from_the_same_gaps(self):
        """Plans that are chosen after others were seen cost more, and the history adds up to the total."""
        budget = new_budget(epsilon=10, gamma=10)
        data = seal(DATA, name="people")
        f = made(lambda x: float(x.mean()) - 0.5, budget=budget)
        found = [
            f.replace(gamma=gamma).release(each).gamma
            for gamma in (0.2, 0.1, 0.2, 0.3)
            for each in (data, DATA)
        ]
        assert list(budget.history()["gamma"]) == pytest.approx(found)
        assert budget.verify().gamma >= max(found) + sum(found[1::2]) - 1e-9

    def test_what_is_not_remembered_is_charged_each_time(self):
        """Without a key nobody knows whether it is the same estimate."""
        budget = new_budget()
        for _ in range(3):
            budget.reserve(charge(gamma=0.1, dataset="d"))
        assert budget.spent.gamma == 0.3


class TestOneSampler:
    TABLE = samplers.table(age=samplers.uniform(0, 100), height=samplers.uniform(1, 2))

    def test_columns_are_the_same_distribution(self):
        """Answers about columns of one P add up with those about all of it."""
        budget = new_budget()
        f = made(sampler=self.TABLE["age"], budget=budget)
        g = made(sampler=self.TABLE["height"], budget=budget)
        f(seal(DATA * 100, name="people"))
        g(seal(DATA + 1, name="people"))
        assert budget.verify().epsilon == 0.6

    def test_another_p_is_refused(self):
        """Promises under two P do not add up, so the second is refused; the message names both."""
        budget = new_budget()
        made(budget=budget)(seal(DATA, name="people"))
        other = made(sampler=samplers.uniform(0, 2), budget=budget)
        before = everything(budget)
        with pytest.raises(SettingsError, match=r"uniform\(0, 1\).*uniform\(0, 2\)"):
            other(seal(DATA, name="people"))
        assert everything(budget) == before
        other(seal(DATA, name="others"))
        other(DATA)

    def test_another_p_with_the_same_words_is_refused(self):
        """Two P that were learned within the same bounds would be refused as "P, and this one has P"."""
        budget, about = new_budget(), {"dataset": "'people'", "people": ("'people'",)}
        budget.reserve(charge(**about))
        words = r"P=P, and .* P=P \(another one with the same words\).* would hide what they lose together"
        with pytest.raises(SettingsError, match=words):
            budget.reserve(charge(declared=("P1:Q",), **about))


def test_repeating_a_question_is_another_release():
    """Each repetition has fresh noise and is paid for, also about the same named data."""
    budget = new_budget()
    data = seal(DATA, name="people", budget=budget)
    f = made()
    assert f(data) != f(data)
    assert budget.spent.epsilon == 0.6


SMALL = st.builds(
    lambda digits, power: float(f"{digits}e-{power}"), st.integers(1, 10**17), st.integers(18, 60)
)
AMOUNTS = st.one_of(st.sampled_from([0.01, 0.1, 0.25, 0.3]), st.floats(1e-15, 0.6), SMALL)
REQUESTS = st.lists(
    st.tuples(
        AMOUNTS,
        st.one_of(st.just(0.0), st.floats(1e-30, 0.5), SMALL),
        AMOUNTS,
        st.sampled_from(["", "a", "b", "c"]),
        st.sampled_from(["", "k", "l"]),
        st.sampled_from(["", "A", "B"]),
    ),
    max_size=25,
)


class Model:
    """A budget in fractions, recomputed from scratch for every request."""

    def __init__(self, caps):
        self.caps, self.accepted = tuple(map(Fraction, map(repr, caps))), []

    def total(self, requests):
        """Return what requests cost together."""
        sums, largest = {}, {}
        for epsilon, delta, gamma, dataset, key, part in requests:
            gamma = Fraction(repr(gamma))
            due = gamma
            if dataset and key:
                due = max(gamma - largest.get((dataset, key), 0), 0)
                largest[dataset, key] = max(gamma, largest.get((dataset, key), 0))
            cost = (Fraction(repr(epsilon)), Fraction(repr(delta)), due)
            sums[part] = tuple(map(sum, zip(sums.get(part, (0, 0, 0)), cost, strict=True)))
        parts = [cost for part, cost in sums.items() if part] or [(0, 0, 0)]
        return tuple(
            o + max(each) for o, each in zip(sums.get("", (0, 0, 0)), zip(*parts, strict=True), strict=True)
        )

    def ask(self, request):
        """Tell whether a request must be accepted; if so, remember it."""
        *_, dataset, _, part = request
        parts = {r[5] for r in self.accepted if dataset and r[3] == dataset}
        allowed = (dataset or not part) and parts <= {part}
        fits = all(
            spent <= cap for spent, cap in zip(self.total([*self.accepted, request]), self.caps, strict=True)
        )
        if allowed and fits:
            self.accepted.append(request)
        return bool(allowed and fits)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(REQUESTS, st.tuples(st.floats(0.1, 2), st.floats(0, 1), st.floats(0.1, 2)))
def test_any_sequence_of_requests(requests, caps):
    """Totals are what a sum in fractions says, never above the caps, and refusals leave no trace."""
    budget = Budget(new_name(), epsilon=caps[0], delta=caps[1], gamma=caps[2], ledger="memory")
    sites = budget.partition("site", parts=["A", "B"])
    model = Model(caps)
    for request in requests:
        epsilon, delta, gamma, dataset, key, part = request
        before = everything(budget)
        place = sites[part] if part else budget
        try:
            place.reserve(charge(epsilon, delta, gamma, dataset=dataset, key=key))
            accepted = True
        except (BudgetExceeded, SettingsError):
            accepted = False
            assert everything(budget) == before
        assert accepted == model.ask(request)
        cost = budget.terms.cost(budget.ledger.totals(budget.name))
        found = tuple(map(Fraction, (cost.epsilon, cost.delta, cost.gamma)))
        assert found == model.total(model.accepted)
        assert all(spent <= cap for spent, cap in zip(found, model.caps, strict=True))
    assert budget.verify() == tuple(map(float, model.total(model.accepted)))
    assert len(budget.history()) == len(model.accepted)


class Opaque:
    """A sampler that cannot be compared with another one."""

    def __init__(self, high):
        self.high, self.open = high, (i for i in range(3))

    def __repr__(self):
        return "Opaque()"

    def draw(self, n, rng):
        return rng.uniform(0, self.high, n)


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_samplers_that_cannot_be_compared_count_as_different():
    """Two P would be taken for one, and their gammas would be added."""
    budget, people = new_budget(epsilon=9), seal(DATA, name=new_name(), budget=None)
    first = privatize(epsilon=0.1, gamma=0.3, sampler=Opaque(1), budget=budget, store=None)(mean)
    first(people)
    first(people)  # the very same object
    with pytest.raises(SettingsError, match="one P"):
        first.replace(sampler=Opaque(2))(people)


class TestPeople:
    """Promises about the same people add up under one P only, however the data is cut, named or versioned."""

    TABLE = samplers.table(age=samplers.uniform(0, 1), site=samplers.categorical(["A", "B"]), frame="dict")
    OTHER = samplers.uniform(0, 2)

    def test_another_version_is_the_same_people(self):
        """An answer about version 2 under another P would be added to one about version 1."""
        budget = new_budget()
        made(budget=budget)(seal(DATA, name="people", version="1"))
        for version in ("2", None, ""):
            with pytest.raises(SettingsError, match="one P"):
                made(sampler=self.OTHER, budget=budget)(seal(DATA, name="people", version=version))
            made(epsilon=0.01, budget=budget)(seal(DATA, name="people", version=version))
        assert budget.verify().epsilon == pytest.approx(0.33)

    def test_one_of_several_columns_that_were_used_together(self):
        """An answer about X alone, under another P, would be added to one about (X, y)."""
        budget = new_budget(epsilon=9, gamma=9)
        X, y, z = (seal(DATA, name=name) for name in "Xyz")
        both = made(
            lambda x, y: float((x * y).mean()),
            data=("x", "y"),
            sampler=samplers.from_function(two_columns),
            budget=budget,
        )
        both(X, y)
        for one in (X, y):
            with pytest.raises(SettingsError, match="one P"):
                made(budget=budget)(one)
        made(budget=budget)(z)
        with pytest.raises(SettingsError, match="one P"):
            both(X, z)
        assert len(budget.history()) == 2

    def test_columns_of_one_p_count_as_that_p(self):
        """A table that is sealed column by column could not be used."""
        budget = new_budget(epsilon=9, gamma=9)
        made(sampler=self.TABLE["age"], budget=budget)(seal(DATA, name="people", version="1"))
        both = samplers.table(x=UNIT, y=UNIT, frame="dict")
        labelled = samplers.labelled(both, "y")
        fits = made(lambda X, y: float((X["x"] * y).mean()), data=("X", "y"), sampler=labelled, budget=budget)
        fits(seal({"x": DATA}, name="X"), seal(DATA, name="y"))
        made(sampler=both["x"], budget=budget)(seal(DATA, name="X"))
        made(sampler=both["y"], budget=budget)(seal(DATA, name="y", version="3"))
        with pytest.raises(SettingsError, match="one P"):
            made(budget=budget)(seal(DATA, name="X"))
        assert len(budget.history()) == 4 and budget.verify() == budget.spent

    def test_the_p_of_all_answers_are_intersected(self):
        """If each answer holds under several P, the total holds under those that all answers share."""
        budget = new_budget()
        budget.reserve(charge(dataset="d", declared=("P1:a", "P1:b")))
        budget.reserve(charge(dataset="d", declared=("P1:b", "P1:c")))
        for declared in (("P1:a",), ("P1:c",), ("P1:a", "P1:c")):
            with pytest.raises(SettingsError, match="one P"):
                budget.reserve(charge(dataset="d", declared=declared))
        budget.reserve(charge(dataset="d", declared=("P1:b",)))
        assert budget.verify().epsilon == pytest.approx(0.3)

    def test_plain_answers_have_no_p(self):
        """An answer that holds for all pairs would be refused because it has no P, or need one."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        plain = {"strength": "plain", "declared": (), "described": ""}
        sites["A"].reserve(charge(dataset="A", **plain))
        budget.reserve(charge(dataset="d", **plain))
        budget.reserve(charge(dataset="d"))
        budget.reserve(charge(dataset="d", **plain))
        budget.reserve(charge(**plain))
        assert budget.verify().epsilon == 0.5 and budget.spent.note == ""
        for wrong in ({"gamma": 0.1}, {"looks": ((0.1, 0.1),)}, {"declared": ("P1:P",)}):
            with pytest.raises(SettingsError, match="plain"):
                charge(**(plain | wrong))
        with pytest.raises(SettingsError, match="no P"):
            budget.reserve(charge(declared=()))

    def test_the_total_says_what_cannot_be_checked(self):
        """A total over unsealed data under two P would look like a promise."""
        budget = new_budget(epsilon=9, gamma=9)
        f = made(budget=budget)
        f(DATA)
        assert "unsealed" not in repr(budget)  # all under one P, whoever they are
        assert (
            "1 sampled answer was about unsealed data, and all sampled answers are under one P"
            in budget.statement
        )
        made(sampler=self.OTHER, budget=budget)(seal(DATA, name="others"))
        words = (
            "1 sampled answer was about unsealed data: it cannot be checked that all answers about the same"
        )
        for shown in (repr(budget), budget.statement, repr(budget.verify()), repr(budget.spent)):
            assert words in shown
        f(DATA)
        assert "2 sampled answers were about unsealed data" in budget._repr_html_()
        sealed = new_budget(epsilon=9, gamma=9)
        for name, sampler in (("a", UNIT), ("b", self.OTHER)):
            made(sampler=sampler, budget=sealed)(seal(DATA, name=name))
        assert "unsealed" not in repr(sealed) + sealed.statement + repr(sealed.verify())

    def test_the_total_in_words(self):
        """Three numbers alone would not tell a user what the total promises."""
        budget = new_budget(delta=1e-5)
        made(budget=budget)(seal(DATA, name="people"))
        m, k = (made().estimate(50).m, made().estimate(50).k)
        average = 1 - k / (m + 1)
        assert budget.average_gamma == pytest.approx(average) and average < 0.2
        assert budget.statement == (
            f"epsilon=0.3, delta=0 for all pairs of neighbours but a share 0.2 of those under P "
            f"(on average {average:.3g}), if these questions were fixed beforehand"
        )


class TestAverage:
    def test_another_store_without_the_first_plan(self, tmp_path):
        """With two stores and one seed, the second plan from the same gaps would count as the first one."""
        budget = new_budget(epsilon=9, gamma=9)
        people = seal(DATA, name="people")
        first, second = (
            made(gamma=gamma, seed=1, store=str(tmp_path / f"{gamma}.db"), budget=budget)
            for gamma in (0.1, 0.3)
        )
        first(people)
        assert budget.average_gamma < 0.1
        for f in (second, first, second):
            f(people)
            assert budget.average_gamma == budget.spent.gamma == 0.3
        assert budget.verify() == budget.spent

    def test_once_for_an_estimate_and_a_dataset(self):
        """The average share of failures would be counted again for every repetition."""
        budget = new_budget()
        for average, total in [(0.05, 0.05), (0.04, 0.05), (0.08, 0.08), (None, 0.1)]:
            budget.reserve(charge(0.01, gamma=0.1, dataset="d", key="k", average_gamma=average))
            assert budget.average_gamma == pytest.approx(total)
        budget.reserve(charge(0.01, gamma=0.1, average_gamma=0.05))
        budget.reserve(charge(0.01, gamma=0.1))
        assert budget.average_gamma == pytest.approx(0.25) and budget.verify().gamma == pytest.approx(0.3)
        with pytest.raises(SettingsError, match="average"):
            charge(gamma=0.1, average_gamma=0.2)

    def test_a_further_plan_counts_in_full(self):
        """The average holds for plans that were fixed before the gaps were seen, and for no other plans."""
        budget = new_budget(epsilon=10, gamma=10)
        data = seal(DATA, name="people")
        f = made(lambda x: float(x.mean()) - 0.25, budget=budget)
        f(data)
        assert budget.average_gamma < 0.9 * budget.spent.gamma
        f.replace(gamma=0.1)(data)
        assert budget.average_gamma == budget.spent.gamma
        assert budget.verify() == budget.spent

    def test_parts_count_by_the_largest(self):
        """The average of a partition is that of its largest part."""
        budget = new_budget()
        sites = budget.partition("site", parts=["A", "B"])
        for part, average in (("A", 0.05), ("B", 0.02), ("B", 0.02)):
            sites[part].reserve(charge(gamma=0.1, dataset=part, average_gamma=average))
        budget.reserve(charge(gamma=0.1, dataset="all", average_gamma=0.03))
        assert budget.average_gamma == pytest.approx(0.08)


STRANGE = ["\ud800", "a\0b", "x" * 300, "", None, 3, b"a"]


class TestNames:
    """Every string that reaches the database can be stored there, or is refused with the reason."""

    @for_each("name", STRANGE)
    def test_names_that_no_database_can_store(self, name):
        """A user would get a UnicodeEncodeError that says neither what is wrong nor what to do."""
        budget = new_budget()
        for act in (
            lambda: Budget(name, epsilon=1, gamma=1, ledger="memory"),
            lambda: seal(DATA, name=name),
            lambda: package.private_source(name=name),
            lambda: budget.partition("site", parts=["A", name]),
            lambda: budget.partition(name, parts=["A"]),
            lambda: budget.declare_again(name, UNIT),
        ):
            with pytest.raises(SettingsError) as caught:
                act()
            str(caught.value).encode()
            assert len(str(caught.value)) < 500
        for act in (lambda: seal(DATA, name="a", version=name or 3),):
            with pytest.raises(SettingsError):
                act()

    @pytest.mark.parametrize(
        "name", ["zwei\nZeilen", "名前", "a'b\"c", "'a' version '1'", "\x1b[31m", "💥" * 60]
    )
    def test_unusual_names(self, path, name):
        """Names with line breaks, quotes or symbols are accepted, not confused, and shown escaped."""
        budget = Budget(name, epsilon=1, gamma=9, ledger=path)
        part = budget.partition(name, parts=[name])[name]
        made(budget=part, epsilon=0.1)(seal(DATA, name=name, version=name))
        assert budget.verify().epsilon == 0.1 and budget.history()["part"][0] == name
        with pytest.raises(BudgetExceeded) as caught:
            made(budget=part, epsilon=5)(seal(DATA, name=name))
        assert "\n" not in str(caught.value) and "\x1b" not in str(caught.value)

    @pytest.mark.parametrize("text", ["\ud800", "a\0b"])
    def test_names_of_functions(self, text, path):
        """A function's name is only shown, so it is stored with escapes and does not prevent an answer."""
        budget = Budget("b", epsilon=1, gamma=9, ledger=path)

        def f(x):
            return float(x.mean())

        f.__name__ = text
        made(f, budget=budget)(DATA)
        assert budget.history()["function"][0] in ("\\ud800", "a\\x00b")
        for field in ("key", "dataset", "partition", "part"):
            with pytest.raises(SettingsError, match="cannot be written"):
                budget.reserve(charge(**{"dataset": "d", field: text}))
        budget.reserve(charge(who=text, mechanism=text, described=text))
        assert budget.verify().epsilon == pytest.approx(0.4)


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_a_p_that_cannot_be_compared_is_declared_again():
    """A service whose P cannot be compared would be refused answers after a restart."""
    budget = new_budget(epsilon=9, gamma=9)
    people = seal(DATA, name="people")
    first = made(sampler=Opaque(1), budget=budget)
    first(people)
    law = Opaque(1)  # as after a restart
    again = first.replace(sampler=law)
    with pytest.raises(SettingsError, match=r"budget\.declare_again\('people', P\)"):
        again(people)
    budget.declare_again("people", again.settings.sampler)
    again(people)
    assert list(budget.history()["purpose"]) == ["answer", "declaration", "answer"]
    with pytest.raises(SettingsError, match="one P"):
        first(people)
    assert budget.verify().epsilon == 0.6


class Cheap(Laplace):
    """A mechanism of the user's own that claims to cost almost nothing."""

    def composition_kind(self, epsilon, delta):
        return "dp 1e-06 0.0"


def test_a_mechanism_of_the_users_own_does_not_set_its_price():
    """A user's class that is derived from one of ours could spend a tight budget many times over."""
    pytest.importorskip("dp_accounting")
    budget = Budget("cheap", epsilon=3, delta=1e-4, gamma=90, ledger="memory", composition="tight")
    private = privatize(
        epsilon=1,
        gamma=0.2,
        sampler=samplers.uniform(0, 1),
        mechanism=Cheap(),
        budget=budget,
        workers="inline",
        store=None,
    )(np.mean)
    answers = []
    with contextlib.suppress(BudgetExceeded):
        while len(answers) < 20:
            answers.append(private(np.full(80, 0.5)))
    assert len(answers) < 10 and budget.verify().epsilon > 2
