"""What a budget was opened with does not change, and tight budgets never allow too much."""

import contextlib
import json

import pytest

from privatize import Budget, Gaussian
from privatize.errors import (
    BudgetExceeded,
    SettingsError,
)
from tests.budgets.charged import answer, catalogue, charge, declaration, new_budget, new_name, plain


def test_tight_budgets_allow_more_and_never_too_much():
    """Many small answers cost less together than their sum; δ is then spent, and the cap still holds."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    budget = new_budget(epsilon=1, delta=1e-5, composition="tight")
    kind, count = Gaussian().composition_kind(0.2, 1e-6), 0
    with contextlib.suppress(BudgetExceeded):
        while count < 100:
            budget.reserve(charge(0.2, 1e-6, kind=kind))
            count += 1
    assert 5 < count < 100
    spent = budget.verify()
    assert 0.5 < spent.epsilon <= 1 and spent.delta == 1e-5
    (total,) = budget.ledger.totals(budget.name).values()
    assert total.counts == {kind: count} == json.loads(json.dumps(total.counts))


@pytest.mark.parametrize("kind", ["dp 1.0 0.001", Gaussian().composition_kind(1, 1e-3)])
def test_tight_budgets_do_not_ignore_a_larger_delta(kind):
    """A release with a larger δ than the budget's costs more ε at the budget's δ, or is refused."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    budget = new_budget(epsilon=1, delta=1e-12, composition="tight")
    with pytest.raises(BudgetExceeded):
        budget.reserve(charge(1, 1e-3, kind=kind))
    assert budget.verify() == (0, 0, 0)


@pytest.mark.parametrize(
    "caps",
    [
        {"epsilon": 2},
        {"gamma": 2},
        {"delta": 1e-6},
        {"composition": "tight", "delta": 1e-5},
    ],
)
def test_caps_cannot_be_changed(caps):
    """Somebody who names a larger cap could spend more."""
    first = {"epsilon": 1, "gamma": 1, "delta": 1e-5}
    budget = Budget(new_name(), **first, ledger="memory")
    if "composition" in caps:
        pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    with pytest.raises(SettingsError, match="was opened with epsilon=1"):
        Budget(budget.name, **(first | caps), ledger="memory")
    assert budget.remaining == (1, 1e-5, 1)


def tight(**caps):
    """Return a tight budget with a catalogue about people of its own, who are returned as well."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    budget = new_budget(**({"epsilon": 1, "delta": 1e-5, "composition": "tight"} | caps))
    about = {"dataset": f"'{budget.name}'", "people": (f"'{budget.name}'",)}
    return budget, about


class TestTightCatalogue:
    def test_gaussian_answers(self):
        """Answers that are chosen as you go would cost their sum, or less than they do together."""
        budget, about = tight()
        budget.declare(catalogue(**about), declaration(dataset=about["dataset"]))
        asked = answer(0.1, delta=1e-6, kind=Gaussian().composition_kind(0.1, 1e-6), **about)
        count = 0
        with contextlib.suppress(BudgetExceeded):
            while count < 100:
                budget.reserve(asked)
                count += 1
        assert 10 < count < 100
        fixed = new_budget(epsilon=1, delta=1e-5, composition="tight")
        for _ in range(count):
            fixed.reserve(asked)
        spent = budget.verify()
        assert spent.delta == 1e-5 and fixed.spent.epsilon <= spent.epsilon < fixed.spent.epsilon * 1.01

    def test_it_is_not_the_smaller_of_two(self):
        """Whoever knows the answers could go on by whichever of two rules allows more."""
        budget, about = tight()
        budget.declare(catalogue(**about), declaration(dataset=about["dataset"]))
        # One answer costs 0.9 at its own delta, which is larger than that of the budget.
        kind = Gaussian().composition_kind(0.9, 1e-5)
        budget.reserve(answer(0.9, delta=1e-5, kind=kind, **about))
        assert 0.9 < budget.spent.epsilon < 0.9 * 1.001  # a part of delta is for the grid of the noise

    def test_nothing_else(self):
        """Noise that does not add up as Gaussian noise does would be added up like it."""
        budget, about = tight()
        budget.reserve(plain(0.2, purpose="learning", **about))
        budget.declare(catalogue(**about), declaration(dataset=about["dataset"]))
        before = budget.spent
        for asked in (answer(**about), plain(**about), plain(dataset="'others'")):
            for charged in (budget.reserve, budget.afford):
                with pytest.raises(
                    SettingsError, match=r"only answers with Gaussian noise.*composition=\"sum"
                ):
                    charged(asked)
        assert budget.verify() == before == (0.2, 0, 0.05)
        kind = Gaussian().composition_kind(0.5, 1e-6)
        budget.reserve(answer(0.5, delta=1e-6, kind=kind, **about))
        assert 0.6 < budget.spent.epsilon < 0.7  # what came before is added

    def test_what_does_not_fit_as_a_sum(self):
        """A catalogue would begin in a budget that has less than nothing left for it."""
        budget, about = tight()
        for _ in range(30):
            budget.reserve(plain(0.05, dataset="'others'"))
        assert budget.spent.epsilon < 1
        with pytest.raises(BudgetExceeded):
            budget.declare(catalogue(**about), declaration(dataset=about["dataset"]))

    def test_parts(self):
        """The parts of a partition would be added up, or only one of them be counted."""
        budget, about = tight()
        others = {"dataset": f"{about['dataset']} 2", "people": (f"{about['dataset']} 2",)}
        sites = budget.partition("site", ["Paris", "Rome"])
        kind = Gaussian().composition_kind(0.5, 1e-6)
        spent = []
        for name, each in (("Paris", about), ("Rome", others)):
            found = declaration(name, dataset=each["dataset"])
            sites[name].declare(catalogue(**each), found)
            sites[name].reserve(answer(0.5, delta=1e-6, kind=kind, of=found.key, **each))
            spent.append(budget.verify().epsilon)
        assert spent[0] == spent[1] > 0.4
