"""P is checked on the people themselves, for a plain charge; estimates are widened; nothing else is told."""

import itertools
import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest

from privatize import Blocks, Budget, People, check_fit, learn, privatize, samplers, seal
from privatize.calibration import factor_scan
from privatize.errors import (
    ArgumentError,
    BudgetExceeded,
    CalibrationError,
    DataError,
    PolicyError,
    PrivateRunError,
    PrivatizeError,
    SealedError,
    SettingsError,
    UninformativeWarning,
)
from tests.cases import for_each
from tests.function.catalogued import catalogue, sealed
from tests.function.sentinels import SENTINEL, holds_sentinel
from tests.function.test_leaks import assert_clean

NUMBERS = itertools.count()
P = samplers.uniform(0, 1)
N = 300  # with gamma=0.2 and epsilon=1, 25 blocks of 12 people
WIDE = np.random.default_rng(0).integers(0, 2, N) * 1.0  # as far apart as P allows
RIGHT = np.random.default_rng(0).uniform(0, 1, N)


def mean(x):
    return float(np.mean(x))


def private(function=mean, **more):
    return privatize(**{"epsilon": 1, "gamma": 0.2, "sampler": P, "seed": 1, "store": None} | more)(function)


def new_budget(epsilon=5.0, **more):
    return Budget(f"fits {next(NUMBERS)}", epsilon=epsilon, gamma=0.9, ledger="memory", **more)


def quarter(x):
    """Depend on the people far more than P lets them: P draws no zeros."""
    return float(np.mean(x) + 50 * np.mean(x == 0))


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    """Leave the noise out, by which a test would fail now and then, and note what it was asked for."""
    asked = []

    def none(epsilon):
        asked.append(epsilon)
        return 0

    monkeypatch.setattr(factor_scan, "_noise", none)
    return asked


class TestFactor:
    def test_small_blocks_are_not_warned_about(self):
        """A user who asks about many people would read that the answer is noise with a dozen of them."""
        f = private(epsilon=0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("error", UninformativeWarning)
            fit = check_fit(f, RIGHT, epsilon=1)
        with pytest.warns(UninformativeWarning):  # what is asked is warned about as before
            f.estimate(fit.main.size)

    def test_a_wrong_p_is_found_and_repaired(self):
        """Real people would be beyond the estimate far more often than gamma says."""
        f = private(quarter)
        fit = check_fit(f, WIDE, epsilon=1)
        assert fit.factor > 4
        assert fit.share.share > 0.1
        assert f.replace(fit=fit).estimate(N).value > 4 * f.estimate(N).value
        assert check_fit(private(), RIGHT, epsilon=1).factor <= 2

    def test_noise_is_for_what_was_paid(self, quiet):
        """The count and the scan would be less private than the ledger says."""
        check_fit(private(), np.resize(RIGHT, 2 * N), epsilon=0.8, budget=(budget := new_budget()))
        assert quiet[0] == 0.2  # the count
        assert set(quiet[1:]) == {0.8 * 0.75 * (1 - 2.0**-50) * 0.5}
        (charge,) = budget.history().to_dict("records")
        wanted = {
            "epsilon": 0.8,
            "gamma": 0,
            "purpose": "check",
            "strength": "plain",
            "function": "check_fit",
        }
        assert {name: charge[name] for name in wanted} == wanted

    def test_several_functions_have_one_factor(self):
        """Each function would be checked for an epsilon of its own."""
        fit = check_fit([private(), private(quarter)], WIDE, epsilon=1, budget=(budget := new_budget()))
        assert fit.factor > 4
        assert fit.functions == ("mean", "quarter")
        assert budget.spent.epsilon == 1
        for function in (mean, quarter):
            f = private(function)
            assert f.replace(fit=fit).estimate(N).fit == fit

    def test_a_second_size_has_other_people(self, monkeypatch):
        """A person would be in two blocks, and be paid for once."""
        seen = []
        monkeypatch.setattr(factor_scan, "_ENOUGH", 1.0)
        from privatize.function import block_gaps

        def rows(function, structure, data, b, **_):
            seen.append((b, data.copy()))
            return np.zeros((b, structure.size))

        monkeypatch.setattr(block_gaps, "run_blocks", rows)
        monkeypatch.setattr(block_gaps.Gauge, "check", lambda _: None)
        fit = check_fit(private(), np.arange(1000) / 1000, epsilon=1)
        assert [b for b, _ in seen] == [fit.main.number, fit.smaller.number]
        assert len(np.unique(np.concatenate([data for _, data in seen]))) == 1000
        assert fit.smaller_factor == 1 and not fit.grows

    def test_a_p_that_does_not_hold_at_all_is_an_error(self):
        """The largest factor would be used, as if it were enough; it is paid for all the same."""

        def fails(x):
            return mean(x) if np.min(x) > 0 else [1.0][1]

        budget = new_budget()
        with pytest.raises(PrivateRunError, match="no factor up to 256"):
            check_fit(private(fails), WIDE, epsilon=1, budget=budget)
        assert budget.spent.epsilon == 1


class TestUse:
    def test_answers_are_widened_and_say_so(self):
        """Answers would have too little noise, or nobody would know that it was repaired."""
        people, budget = seal(WIDE, name="wide", sampler=P), new_budget()
        f = private(quarter, sampler=None, budget=budget)
        fit = check_fit(f, people, epsilon=1)
        release = f.replace(fit=fit).release(people)
        plain = f.release(people)
        assert release.fit == fit and plain.fit is None
        assert release.sensitivity == math.nextafter(plain.sensitivity * fit.factor, math.inf)
        assert release.scale == pytest.approx(plain.scale * fit.factor)
        for shown in (repr(release), release.card().text(), f.replace(fit=fit)._repr_html_()):
            assert f"widened {fit.factor:.3g} times" in shown
        keys = [row["key"] for row in budget.history().to_dict("records")]
        digest, seed, mark = keys[2].split(":")
        assert keys[1] == f"{digest}:{fit.factor:.6g}:{seed}:{mark}"
        assert f.replace(fit=fit)(people) is not None  # the second call recalls

    def test_a_family_is_widened_for_each_member(self):
        """One member's estimate would stay as small as it was."""
        f = private(quarter, sampler=samplers.any_of(P, samplers.uniform(0.2, 0.6)), domain="as-is")
        fit = check_fit(f, WIDE, epsilon=1)
        wider, found = f.replace(fit=fit).estimate(N), f.estimate(N)
        assert wider.value > 4 * found.value
        pairs = zip(wider.members, found.members, strict=True)
        assert all(one.value > 4 * other.value for (_, one), (_, other) in pairs)

    @for_each(
        "change",
        [
            {"gamma": 0.3},
            {"sampler": samplers.uniform(0, 2)},
            {"mechanism": "gaussian", "delta": 1e-6},
            {"domain": "as-is"},
        ],
    )
    def test_a_fit_of_something_else_is_refused(self, change):
        """A factor would be used that says nothing about this function."""
        f = private()
        fit = check_fit(f, RIGHT, epsilon=1)
        with pytest.raises(SettingsError, match="fit= is about mean"):
            f.replace(fit=fit, **change).estimate(N)
        with pytest.raises(SettingsError, match="fit= is about mean"):
            private(quarter, fit=fit)(RIGHT)
        assert f.replace(fit=fit, epsilon=0.1, samples="least").estimate(N).fit == fit

    def test_only_a_fit_is_a_fit(self):
        """A factor of 0.5, or a typing mistake, would make the noise too small."""
        for wrong in (2.0, "fit", {"factor": 2}):
            with pytest.raises(SettingsError, match="made by check_fit"):
                private(fit=wrong)
        fit = check_fit(private(), RIGHT, epsilon=1)
        with pytest.raises(SettingsError, match="fit="):
            privatize(epsilon=1, sensitivity=0.1, sampler=P, fit=fit)(mean)


class TestLedger:
    def test_the_same_check_is_free_the_second_time(self):
        """The same question would be paid for twice, and could be asked until its noise is lucky."""
        budget = new_budget()
        people = seal(RIGHT, name="people", version="1", sampler=P, budget=budget)
        first = check_fit(private(sampler=None), people, epsilon=1)
        assert check_fit(private(sampler=None), people, epsilon=1) == first
        assert budget.spent.epsilon == 1
        check_fit(private(sampler=None), people, epsilon=1.5)
        check_fit(private(quarter, sampler=None), people, epsilon=1)
        assert budget.spent.epsilon == 3.5
        budget.verify()
        assert json.loads(json.dumps(first.facts()))["n"] == N

    def test_it_is_refused_before_anything_is_evaluated_if_it_cannot_be_paid(self, monkeypatch):
        """People would be looked at for an answer that nobody gets."""
        seen = []
        monkeypatch.setattr("privatize.function.fit._measured", lambda *_: seen.append(1))
        budget = new_budget(0.5)
        with pytest.raises(BudgetExceeded):
            check_fit(private(budget=budget), RIGHT, epsilon=1)
        assert budget.spent.epsilon == 0 == len(seen)

    def test_it_obeys_the_policy(self, tmp_path, monkeypatch):
        """A check would be a way around what the policy requires."""
        f = private()
        (tmp_path / "pyproject.toml").write_text("[tool.privatize]\nrequire-budget = true\n")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(PolicyError, match="require-budget"):
            check_fit(f, RIGHT, epsilon=1)


class TestRefused:
    @for_each(
        ("functions", "message"),
        [
            (mean, "takes a private function"),
            ([], "takes a private function"),
            ([private(), mean], "takes a private function"),
            (privatize(epsilon=1, mechanism=Blocks(0.0, 1.0))(mean), "does not rest on sampled pairs"),
            (privatize(epsilon=1, sensitivity=0.1, sampler=P)(mean), "does not rest on sampled pairs"),
            ([private(), private(gamma=0.1)], "differ in gamma="),
            ([private(), private(sampler=samplers.uniform(0, 2))], "differ in sampler="),
            (private(sampler=P.fixed(size=100)), "without size="),
            (private(sampler=None), "has no P"),
        ],
    )
    def test_what_cannot_be_checked_is_refused(self, functions, message):
        """A check would be paid for that says nothing."""
        with pytest.raises(SettingsError, match=message):
            check_fit(functions, RIGHT, epsilon=1)

    def test_too_few_people_and_missing_arguments_cost_nothing(self):
        """Nobody would know what to change, after having paid."""
        budget = new_budget()
        with pytest.raises(SettingsError, match="too few to check P"):
            check_fit(private(budget=budget), RIGHT[:100], epsilon=1)
        with pytest.raises(ArgumentError, match="limit"):
            check_fit(private(lambda x, limit: mean(x) * limit, budget=budget), RIGHT, epsilon=1)
        with pytest.raises(CalibrationError, match="In datasets of 11 people from P"):
            check_fit(private(lambda x: 1.0, budget=budget), RIGHT, epsilon=1)
        with pytest.raises(DataError):
            check_fit(private(budget=budget), pd.DataFrame({"x": ["a"] * N}), epsilon=1)
        assert budget.spent.epsilon == 0

    def test_private_data_in_reach_of_the_function_is_refused(self):
        """Every block would see all people, so that one of them could move all blocks."""
        with pytest.raises(DataError, match="can be reached"):
            check_fit(private(lambda x: mean(x) + mean(RIGHT)), RIGHT, epsilon=1)


# --- nothing private is shown -----------------------------------------------------------------

UNKNOWN = {"sampler": P, "domain": "as-is"}
PLANTED = np.r_[RIGHT[:-1], SENTINEL]


def raises(x):
    if np.max(x) > 1:
        raise ValueError(f"{x}")
    return mean(x)


def fails_alone(x):
    return [1.0] if np.max(x) > 1 else mean(x)


@pytest.mark.parametrize("function", [mean, raises, fails_alone])
def test_no_value_is_in_what_is_returned_or_charged(function, caplog, capfd):
    """A record could be read in the clear: in a fit, a ledger, a log, or what the function prints."""
    budget = new_budget()
    people = seal(PLANTED, name="planted", budget=budget)
    with caplog.at_level(0):
        fit = check_fit(private(function, **UNKNOWN), people, epsilon=1)
    shown = [fit.facts(), repr(fit), fit._repr_html_(), caplog.text, *capfd.readouterr()]
    assert not holds_sentinel([*shown, budget.history().to_dict()])


@pytest.mark.parametrize("where", ["convert", "run_blocks", "fit_of", "beyond"])
def test_no_value_is_in_an_error(where, monkeypatch):
    """An error of ours, wherever it comes, would hold private records in its frames."""
    from privatize.function import block_gaps, opening
    from privatize.function import fit as module

    def fails(*args, **_):
        raise ValueError(f"{args}")

    owner = {"convert": opening.records, "run_blocks": block_gaps}.get(where, module)
    monkeypatch.setattr(owner, where if where != "beyond" else "fit_of", fails if where != "beyond" else no)
    monkeypatch.setattr(block_gaps.Gauge, "check", lambda _: None)  # it evaluates public data alone
    budget, holder = new_budget(), [PLANTED.copy()]
    f = private(budget=budget, **UNKNOWN)
    with pytest.raises(PrivatizeError) as caught:
        check_fit(f, holder.pop(), epsilon=1)
    assert type(caught.value) is PrivateRunError
    assert_clean(caught.value)
    assert budget.spent.epsilon == 1


def test_data_in_the_place_of_the_function_is_in_no_error():
    """Whoever takes the order of the arguments wrong would have private records in a traceback."""
    for given in ((PLANTED, private()), ([private(), PLANTED], PLANTED), ((), PLANTED)):
        with pytest.raises(SettingsError, match="takes a private function") as caught:
            check_fit(*given, epsilon=1)
        assert_clean(caught.value)


def no(*_, **__):
    """Find no factor."""


def test_a_check_inside_a_private_function_is_refused():
    """Its blocks would be evaluated on the data of the outer call, uncharged."""
    f = private()

    def nosy(x):
        check_fit(f, np.resize(x, N), epsilon=1)
        return mean(x)

    with pytest.raises(PrivatizeError):
        private(nosy)(RIGHT)


def test_a_learned_p_is_checked_like_any_other():
    """What was learned from the people could not be checked on them."""
    budget = new_budget()
    people = seal(RIGHT, name="learned", sampler=P, budget=budget)
    learned = learn(people, epsilon=1)
    f = private(sampler=learned.family())
    fit = check_fit(f, people, epsilon=1)
    assert f.replace(fit=fit).release(people).fit is fit


def zeros(x, limit=0.0):
    """Depend on the people far more than P lets them: P draws no zeros."""
    return float(np.mean(x) + 50 * np.mean(x <= limit))


class TestCatalogue:
    def test_one_check_widens_all_sampled_questions(self):
        """A catalogue would cost an epsilon for each question, or answer with P's own estimates."""
        people = sealed(WIDE)
        plain, checked = (catalogue(people, gamma=0.2, seed=1) for _ in range(2))
        for made in (plain, checked):
            made.add(mean)
            made.add(zeros, limit=[0.0, -1.0])
            made.add(mean, name="bounded", sensitivity=1 / N)
        fit = checked.check_fit(epsilon=1)
        assert fit.functions == ("mean", "zeros(limit=0.0)", "zeros(limit=-1.0)")
        assert fit.factor > 4
        with pytest.raises(SettingsError, match="No question can be added"):
            checked.add(mean, name="another")
        with pytest.raises(SettingsError, match="once, before calibrate"):
            checked.check_fit(epsilon=1)
        checked.calibrate()
        estimate = checked["mean"].estimate()
        release = checked.zeros.release(limit=0.0, epsilon=0.5)
        assert release.fit == estimate.fit == fit
        assert f"widened {fit.factor:.3g} times" in repr(release)
        assert checked.facts()["fit"]["factor"] == fit.factor
        assert f"widened {fit.factor:.3g} times" in checked.card().text()
        assert checked.bounded.release(epsilon=0.5).fit is None
        (budget,) = checked._state.payers
        purposes = [row["purpose"] for row in budget.history().to_dict("records")]
        assert purposes[:2] == ["check", "catalogue"]
        assert budget.spent.gamma == pytest.approx(0.2)  # once, for all answers
        budget.verify()

    def test_another_process_finds_the_declared_check(self, monkeypatch):
        """The second run of a script would pay again, or use estimates without the factor."""
        people = sealed(WIDE)

        def made(name):
            found = catalogue(people, name=name)
            found.add(zeros)
            return found

        first = made("found again")
        fit = first.check_fit(epsilon=1)
        first.calibrate()
        value, spent = first["zeros"].estimate().value, first._state.payers[0].spent.epsilon
        monkeypatch.setattr("privatize.function.fit._measured", None)
        again, without = made("found again"), made("found again")
        assert again.check_fit(epsilon=1) == fit
        for each in (again, without):
            each.calibrate()
            assert each["zeros"].estimate().value == value
            assert each["zeros"].estimate().fit == fit
        assert first._state.payers[0].spent.epsilon == spent

    def test_what_was_declared_without_a_check_stays_so(self):
        """Answers that were seen would decide whether estimates are widened."""
        people = sealed(WIDE)
        first, second = (catalogue(people, name="unchecked") for _ in range(2))
        for made in (first, second):
            made.add(mean)
        first.calibrate()
        with pytest.raises(SettingsError, match="declared without a check"):
            second.check_fit(epsilon=1)
        third = catalogue(people)
        third.add(mean, sensitivity=1 / N)
        with pytest.raises(SettingsError, match="no sampled question"):
            third.check_fit(epsilon=1)

    def test_facts_of_people_need_the_sealed_data(self):
        """A catalogue that is made where the data is not could not be checked, or on other people."""
        budget, right = new_budget(), seal(RIGHT, name="facts", sampler=P)
        made = catalogue(People("facts", N), sampler=P, budget=budget)
        made.add(mean)
        for wrong in (None, RIGHT, seal(RIGHT[:-1], name="facts")):
            with pytest.raises(SealedError):
                made.check_fit(wrong, epsilon=1)
        fit = made.check_fit(right, epsilon=1)
        made.calibrate()
        assert made["mean"].release(right, epsilon=0.1).fit == fit
        assert budget.spent.epsilon == pytest.approx(1.1)
