"""Charging budgets, and declaring a catalogue in all of those that pay for its answers."""

import pytest

from privatize import Budget
from privatize.budgets.paying import declare_in_all
from privatize.errors import PrivatizeError, SettingsError
from tests.budgets.charged import catalogue, declaration, everything
from tests.budgets.together import MOMENTS, check_killed_declaring, check_one_declares


@pytest.fixture
def two(path):
    """Return two budgets of one ledger."""
    return [Budget(name, epsilon=2, gamma=0.5, ledger=path) for name in ("one", "two")]


@pytest.fixture
def apart(path):
    """Return two budgets of two ledgers."""
    return [
        Budget(name, epsilon=2, gamma=0.5, ledger=path.with_name(f"{name}.db")) for name in ("one", "two")
    ]


class TestInAll:
    def test_all_get_what_the_first_has(self, two, apart):
        """One budget would have paid for seeds that the other does not know."""
        for budgets in (two, apart):
            first, second = budgets
            assert declare_in_all(budgets, catalogue(), declaration(seed=1)) == declaration(seed=1)
            before = [everything(each) for each in budgets]
            assert declare_in_all([second, first], catalogue(), declaration(seed=2)) == declaration(seed=1)
            assert [everything(each) for each in budgets] == before
            assert first.catalogues() == second.catalogues() == [declaration(seed=1)]

    def test_an_interrupted_one_goes_on(self, two, apart):
        """After a crash between two budgets, nothing could be asked of the catalogue any more."""
        for budgets in (two, apart):
            for done in budgets:
                name = f"after {done.name}"
                done.declare(catalogue(), declaration(name, seed=1))
                assert declare_in_all(budgets, catalogue(), declaration(name, seed=2)) == declaration(name)
                assert [each.declared(name) for each in budgets] == [declaration(name, seed=1)] * 2

    def test_one_refuses_for_all(self, two, apart):
        """A budget would have paid for a catalogue that can never be asked."""
        for budgets in (two, apart):
            budgets[1].declare(catalogue(0.48), declaration("large"))
            before = [everything(each) for each in budgets]
            with pytest.raises(PrivatizeError, match="'two' has not enough left for x"):
                declare_in_all(budgets, catalogue(), declaration())
            assert [everything(each) for each in budgets] == before

    def test_declared_in_each_alone(self, apart):
        """Answers would be charged to a budget that has recorded another calibration."""
        for seed, each in enumerate(apart):
            each.declare(catalogue(), declaration(seed=seed))
        with pytest.raises(SettingsError, match=r"has other seeds.*in the budget 'two' than in 'one'"):
            declare_in_all(apart, catalogue(), declaration(seed=5))

    def test_what_has_no_ledger(self):
        """Nothing would say what was declared."""
        with pytest.raises(SettingsError, match="cannot be declared in a int, which has no ledger"):
            declare_in_all([3], catalogue(), declaration())


class TestProcesses:
    @pytest.mark.slow
    def test_several_at_once(self, tmp_path):
        """Two dashboards that start together would each have their own seeds, in one ledger or in two."""
        for name, other in (("one", "one"), ("first", "second")):
            check_one_declares(tmp_path / f"{name}.db", tmp_path / f"{other}.db", tmp_path)

    @pytest.mark.slow
    @pytest.mark.parametrize("moment", MOMENTS)
    def test_killed_at_any_moment(self, tmp_path, moment):
        """A catalogue would be half declared for ever, or gamma be paid for nothing, or twice."""
        for name, other in (("one", "one"), ("first", "second")):
            check_killed_declaring(tmp_path / f"{name}.db", tmp_path / f"{other}.db", tmp_path, moment)
