"""What was spent stays spent; what was refused spends nothing; nothing private is recorded."""

import functools
import os
import pickle
import sys

import numpy as np
import pytest

from privatize import Budget, Gaussian, privatize, samplers, seal
from privatize.budgets.ledger import open_ledger
from privatize.calibration.evaluators.choose import evaluator
from privatize.errors import (
    BudgetExceeded,
    LedgerError,
    SettingsError,
)
from privatize.execution.packaging.package import pack
from privatize.function.recursion import RecursionGuard
from privatize.mechanisms.base import l1
from tests.budgets.charged import charge, everything, new_budget, new_name
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
DATA = np.linspace(0.1, 0.9, 50)


def mean(x):
    return float(x.mean())


def made(raw=mean, **changes):
    """Return a private function that is calibrated in this process only."""
    return privatize(**({"epsilon": 0.3, "gamma": 0.2, "sampler": UNIT, "store": None} | changes))(raw)


class TestRefused:
    def test_a_refused_request_changes_nothing(self):
        """One refused query uses up OpenDP's odometer: here a refused request leaves no trace."""
        budget = new_budget(gamma=0.5)
        budget.reserve(charge(0.5, gamma=0.1, dataset="d", key="k"))
        before = everything(budget)
        for request in [
            charge(0.6, gamma=0.1, dataset="d", key="k"),
            charge(0.1, gamma=0.7, dataset="d", key="k"),
            charge(0.6, gamma=0.1, dataset="new", key="new"),
            charge(0.1, gamma=0.1, dataset="d", key="k", declared=("P1:another",)),
            charge(0.1, 0.1, dataset="new"),
        ]:
            with pytest.raises((BudgetExceeded, SettingsError)):
                budget.reserve(request)
            with pytest.raises((BudgetExceeded, SettingsError)):
                budget.afford(request)
            assert everything(budget) == before
        budget.afford(charge(0.5, dataset="other"))
        assert everything(budget) == before
        budget.reserve(charge(0.5, gamma=0.1, dataset="new", key="new", declared=("P1:any",)))
        assert budget.verify() == (1, 0, 0.2)

    def test_nothing_is_evaluated(self):
        """If there is not enough left, the function runs neither on private data nor for a calibration."""
        runs = []
        budget = new_budget(epsilon=0.2)
        f = made(lambda x: runs.append(1) or 1.0 * x.sum(), version="1", budget=budget)
        with pytest.raises(BudgetExceeded):
            f(DATA)
        assert runs == [] and budget.spent == (0, 0, 0)

    def test_what_the_error_says(self):
        """A user learns what was asked, what is left, and what would fit; also from a worker process."""
        budget = new_budget(delta=1e-6, gamma=0.5)
        f = made(budget=budget, epsilon=0.7)
        f(DATA)
        with pytest.raises(BudgetExceeded) as caught:
            f(DATA)
        error = caught.value
        facts = {
            "epsilon": 0.7,
            "epsilon_left": 0.3,
            "epsilon_cap": 1,
            "delta": 0,
            "delta_left": 1e-6,
            "delta_cap": 1e-6,
            "gamma_left": pytest.approx(0.3),
            "gamma_cap": 0.5,
        }
        for again in (error, pickle.loads(pickle.dumps(error))):
            assert {name: getattr(again, name) for name in facts} == facts
            for text in (budget.name, "epsilon=0.7 of 0.3 left (cap 1)", "Nothing was spent"):
                assert text in str(again)
        assert "mean.replace(epsilon=0.3) would fit" in str(error)
        f.replace(epsilon=0.3)(DATA)
        with pytest.raises(BudgetExceeded, match="Nothing more fits"):
            f(DATA)

    @pytest.mark.parametrize(("cap", "which"), [(0.1, ""), (0.15, " with this gamma")])
    def test_what_fits_without_gamma(self, cap, which):
        """A user would stop asking, though plain answers can still be paid."""
        budget = new_budget(epsilon=10, gamma=cap)
        f = made(budget=budget, gamma=0.1, epsilon=1)
        f(DATA)
        with pytest.raises(BudgetExceeded) as caught:
            f(DATA)
        assert f"No sampled answer{which} fits. Answers with proven bounds or Blocks" in str(caught.value)
        assert "Nothing more fits" not in str(caught.value)

    @pytest.mark.parametrize("cap", [2 / 3, 1.99999999, 0.1 + 0.2])
    def test_the_suggested_epsilon_fits(self, cap):
        """If the message rounded its suggestion up, a user who follows it would be refused again."""
        budget = new_budget(epsilon=cap)
        with pytest.raises(BudgetExceeded) as caught:
            budget.reserve(charge(3))
        text = str(caught.value).partition("replace(epsilon=")[2].partition(")")[0]
        budget.reserve(charge(float(text)))
        assert budget.spent.epsilon == pytest.approx(cap, rel=1e-5)

    def test_a_suggested_gamma_fits(self):
        """Another gamma is another plan that is read from the same gaps, which costs more than that gamma."""
        budget = new_budget(epsilon=10, gamma=0.3)
        f = made(lambda x: float(x.mean()) + 0.5, gamma=0.2, budget=budget)
        f(DATA)
        with pytest.raises(BudgetExceeded) as caught:
            f(DATA)
        if "replace(gamma=" in str(caught.value):
            f.replace(gamma=caught.value.gamma_left)(DATA)
            assert budget.verify().gamma <= 0.3


class TestOpening:
    def test_all_who_name_a_budget_share_it(self, path):
        """Two programs that name the same budget have one, not two."""
        Budget("b", epsilon=1, gamma=1, ledger=path).reserve(charge(0.6))
        open_ledger.cache_clear()
        again = Budget("b", epsilon=1, gamma=1, ledger=f"sqlite:///{path}")
        assert again.spent.epsilon == 0.6
        with pytest.raises(BudgetExceeded):
            again.reserve(charge(0.6))
        assert Budget("other", epsilon=1, gamma=1, ledger=path).spent == (0, 0, 0)

    def test_the_environment_names_the_ledger(self, path, monkeypatch):
        """A team sets one variable to share a ledger."""
        monkeypatch.setenv("PRIVATIZE_LEDGER", str(path))
        Budget("b", epsilon=1, gamma=1).reserve(charge())
        assert Budget("b", epsilon=1, gamma=1, ledger=path).spent.epsilon == 0.1

    @for_each(
        ("changes", "text"),
        [
            ({"name": ""}, "name"),
            ({"name": 3}, "name"),
            ({"epsilon": -1}, "epsilon"),
            ({"epsilon": "1"}, "epsilon"),
            ({"epsilon": True}, "epsilon"),
            ({"epsilon": float("nan")}, "epsilon"),
            ({"epsilon": float("inf")}, "epsilon"),
            ({"delta": 1.5}, "delta"),
            ({"gamma": None}, "gamma"),
            ({"composition": "best"}, "composition"),
            ({"composition": "tight"}, "delta"),
        ],
    )
    def test_wrong_arguments(self, changes, text):
        """The error names the mistake, and no budget is created."""
        right = {"name": new_name(), "epsilon": 1, "gamma": 1, "ledger": "memory"}
        with pytest.raises(SettingsError, match=text):
            Budget(**(right | changes))

    @pytest.mark.parametrize("wrong", ["budget", 3, object(), Budget])
    def test_objects_that_are_not_budgets(self, wrong):
        """A name in place of a budget would charge nothing, so it is refused."""
        with pytest.raises(SettingsError, match="budget"):
            made(budget=wrong)
        with pytest.raises(SettingsError, match="budget"):
            seal(DATA, name="x", budget=wrong)

    def test_pickling(self, path):
        """A budget with a ledger works in every process; one in memory cannot be spent in another process."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path, who=True)
        budget.reserve(charge())
        again = pickle.loads(pickle.dumps(budget))
        assert again.spent.epsilon == 0.1 and again.cap == budget.cap
        assert again.who
        for act in ("reserve", "afford"):
            with pytest.raises(LedgerError, match="ledger="):
                getattr(pickle.loads(pickle.dumps(new_budget())), act)(charge())

    def test_workers_do_not_get_the_ledgers_url(self, path):
        """A password in the URL would be sent to every worker of a cluster."""
        budget = Budget("b", epsilon=1, gamma=1, ledger=path)
        f = privatize(epsilon=0.1, gamma=0.1, sampler=UNIT, budget=budget)(lambda x: float(x.mean()))
        context = functools.partial(RecursionGuard, f, f.__wrapped__)
        job = evaluator(f.__wrapped__, n=5, sampler=UNIT, norm=l1, seed=1, worker_context=context)
        payload = pack(job).payload
        assert b"RemoteBudget" in payload and str(path).encode() not in payload
        assert str(path).encode() in pickle.dumps(budget)

    def test_a_forked_process_cannot_spend_from_memory(self):
        """A forked child with a copy of the budget could spend the same ε a second time."""
        budget = new_budget()
        reading, writing = os.pipe()
        child = os.fork()
        if not child:  # pragma: no cover
            try:
                budget.reserve(charge(1))
                os.write(writing, b"spent")
            except LedgerError:
                os.write(writing, b"refused")
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(writing)
        with os.fdopen(reading) as file:
            assert file.read() == "refused"
        budget.reserve(charge(1))

    def test_opening_many_ledgers_keeps_the_one_in_memory(self, tmp_path):
        """A budget in memory would be forgotten, and could be spent again, after others were opened."""
        budget = new_budget()
        budget.reserve(charge(1))
        for i in range(70):
            open_ledger(str(tmp_path / f"{i}.db"))
        assert Budget(budget.name, epsilon=1, gamma=1, ledger="memory").spent.epsilon == 1
        open_ledger.cache_clear()


class TestDisplay:
    def test_history(self):
        """The history is a table of who asked what, when, and for how much, without the answers."""
        budget = new_budget(epsilon=10, delta=1e-3, gamma=2, who=True)
        made(budget=budget)(seal(DATA, name="people", version="3"))
        made(np.median, mechanism=Gaussian(), delta=1e-6, budget=budget)(DATA)
        table = budget.history()
        assert type(table).__module__.startswith("pandas")
        assert list(table["number"]) == [1, 2] and list(table["function"]) == ["mean", "median"]
        assert list(table["n"]) == [50, 50] and list(table["mechanism"]) == ["Laplace", "Gaussian"]
        assert list(table["epsilon"]) == [0.3, 0.3] and list(table["delta"]) == [0, 1e-6]
        assert "people" in table["dataset"][0] and "3" in table["dataset"][0] and table["dataset"][1] == ""
        assert table["at"][0].endswith("Z") and "@" in table["who"][0] and len(table["key"][0]) > 20
        assert "value" not in table and "answer" not in table
        assert new_budget().history().empty

    def test_history_without_pandas(self, monkeypatch):
        """Users without pandas get the history as a list."""
        budget = new_budget()
        budget.reserve(charge())
        monkeypatch.setitem(sys.modules, "pandas", None)
        (row,) = budget.history()
        assert row["epsilon"] == 0.1 and row["who"] == ""

    def test_repr_and_html(self):
        """A user sees what is left, and a name with HTML in it cannot break the page."""
        budget = Budget(f"<b>{new_name()}", epsilon=1, delta=1e-6, gamma=0.5, ledger="memory")
        budget.reserve(charge(0.25, gamma=0.1))
        assert repr(budget).endswith(
            "epsilon=1, delta=1e-06, gamma=0.5: left epsilon=0.75, delta=1e-06, gamma=0.4; spent "
            "epsilon=0.25, delta=0 for all pairs of neighbours but a share 0.1 of those under P (on average "
            "0.1), if these questions were fixed beforehand)"
        )
        page = budget._repr_html_()
        assert "&lt;b&gt;" in page and "<b><b>" not in page
        assert "75% left" in page and "80% left" in page and "100% left" in page
        assert "delta" not in repr(new_budget())
        assert new_budget(epsilon=0, gamma=0)._repr_html_()
