"""What a budget was opened with does not change, and tight budgets never allow too much."""

import contextlib
import json

import pytest

from privatize import Budget, Gaussian
from privatize.errors import (
    BudgetExceeded,
    SettingsError,
)
from tests.budgets.charged import charge, new_budget, new_name


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
