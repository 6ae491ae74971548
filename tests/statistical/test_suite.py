"""The bounds keep their claims on real functions; see suite.py for how that is measured and tested.

Every function is run on one law of data here, each on the next law in turn. PRIVATIZE_FULL=1 runs all
of them on all laws, as `python tests/statistical/suite.py` does: ten minutes and more.
"""

from __future__ import annotations

import functools
import os
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from tests.statistical import suite
from tests.statistical.thresholds import FALSE_ALARM

pytestmark = pytest.mark.slow

FULL = os.environ.get("PRIVATIZE_FULL") == "1"
CELLS = suite.all_cells() if FULL else suite.quick_cells()
PAIRS = suite.FULL if FULL else 20 * 79
PLANS = pytest.mark.parametrize("plan", suite.PLANS.values(), ids=suite.PLANS)


@functools.cache
def measured(name: str, law: str) -> suite.Cell:
    return suite.measure(name, law, PAIRS)


@pytest.mark.parametrize(("name", "law"), CELLS)
def test_claims(name, law):
    """A user of this function would have more pairs beyond the estimate than promised (false alarm 5e-6)."""
    outcomes = {bound: suite.judge([measured(name, law)], p) for bound, p in suite.PLANS.items()}
    assert {bound: o for bound, o in outcomes.items() if not o.holds} == {}


@pytest.mark.parametrize(("name", "law"), CELLS)
def test_gaps_are_those_of_random_neighbours(name, law):
    """A user's answers would get more or less noise than the function needs (false alarm 1e-6)."""
    cell = measured(name, law)
    failed = [np.isinf(gaps).sum() for gaps in (cell.gaps, cell.fresh)]
    finite = [np.where(np.isinf(gaps), 1e308, gaps) for gaps in (cell.gaps, cell.fresh)]
    # If gaps repeat, the statistic is smaller than for continuous gaps, which the p-value is for.
    assert stats.ks_2samp(*finite, method="asymp").pvalue > FALSE_ALARM, failed


@PLANS
def test_claims_on_all_together(plan):
    """Users would lose a little coverage everywhere, too little to show in one case (false alarm 1e-6)."""
    outcome = suite.judge([measured(*cell) for cell in CELLS], plan)
    assert outcome.holds, outcome


# The suite must be able to fail: here it is given what a broken library would produce. If a test gives no
# argument, the result is so far beyond the threshold that chance plays no part.


LAW = "exponential"
SMOOTH = ["mean", "median", "variance", "Gini coefficient", "lag-1 and lag-2 products (list)"]
PLENTY = 30 * 79


@functools.cache
def plenty(name: str) -> suite.Cell:
    return suite.measure(name, LAW, PLENTY)


@pytest.mark.parametrize(
    ("bound", "lower"),
    [("tolerance", 12), ("tolerance, least m", 3), ("dkw", 14), ("marginal", 5), ("marginal, least m", 1)],
)
def test_ranks_too_low_are_noticed(bound, lower):
    """A user could not trust the suite, if estimates far below the plan's rank passed (false alarm 2e-6)."""
    # The ranks are the first that pass by chance with probability below 1e-6: gaps are continuous here,
    # so the share beyond is Beta(m - k + 1, k), and the fresh gap of rank r covers Beta(r, N - r + 1).
    # Plan refuses a lower k, as it should, so the suite gets an object with the same attributes.
    p = suite.PLANS[bound]
    low = SimpleNamespace(gamma=p.gamma, rho=p.rho, m=p.m, k=p.k - lower)
    cells = [plenty(name) for name in SMOOTH]
    assert suite.judge(cells, p).holds
    assert not suite.judge(cells, low, against=p).holds


def test_replacing_the_last_record_only_is_noticed():
    """A user whose function depends on order would be promised too much (false alarm 5e-6)."""
    name = "mean with weights 1, 1/2, 1/3, ... (order)"
    cell = plenty(name)
    wrong = cell._replace(gaps=suite.fresh_gaps(name, LAW, PLENTY, 0, seed=1, last=True))
    assert all(suite.judge([cell], p).holds for p in suite.PLANS.values())
    assert not any(suite.judge([wrong], suite.PLANS[b]).holds for b in ("marginal", "tolerance, least m"))


def test_dropping_failed_pairs_is_noticed():
    """A user's failing pairs would not count, and the suite would not notice (false alarm 5e-6)."""
    name = "mean of outliers, raises without any"
    cell = suite.measure(name, "uniform", PLENTY)
    wrong = cell._replace(gaps=cell.gaps[np.isfinite(cell.gaps)])
    assert all(suite.judge([cell], p).holds for p in suite.PLANS.values())
    assert not any(suite.judge([wrong], suite.PLANS[b]).holds for b in ("marginal", "tolerance, least m"))


def test_threshold_of_sums():
    """A user could not trust the average's test, if its threshold were not that of the exact distribution."""
    # One beta-binomial, and the sum of two by convolution.
    pmf = stats.betabinom.pmf(np.arange(31), 30, 4, 9)
    for groups, law in (([(1, 30)], pmf), ([(1, 30), (1, 30)], np.convolve(pmf, pmf))):
        most = suite.most_beyond(groups, 4, 9, 1e-3)
        assert law[most + 1 :].sum() <= 1e-3 < law[most:].sum()


def test_the_page_has_figures_a_picture_and_no_code_to_run(tmp_path):
    """A reader would see a page without its figures, or one that the documentation's tests try to execute."""
    cells = [plenty(name) for name in SMOOTH]
    suite.write(cells, PLENTY, suite.SEED, tmp_path / "page.md")
    text, figures, drawn = (
        (tmp_path / f"page.{end}").read_text(encoding="utf-8") for end in ("md", "csv", "svg")
    )
    assert "```" not in text and "0 of 25 tests" in text
    assert [line.partition(",")[0] for line in figures.splitlines()[1:]] == [*SMOOTH, LAW]
    assert drawn.count("<circle") == 2 * 2 * len(SMOOTH)  # two plans, all laws together and the worst of them
