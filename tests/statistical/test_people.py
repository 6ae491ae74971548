"""Persons with several rows: the order is uniform, private rows have P's law, and the promise holds."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privatize import privatize, samplers
from privatize.data.grouping import group
from privatize.data.units import Unit

s = samplers
FALSE_ALARM = 1e-6
P = s.people(
    s.table(cost=s.uniform(0, 100)),
    unit="id",
    rows=s.integers(1, 5),
    person=s.table(old=s.boolean(0.3)),
    shared=0.4,
)


def keys(count, seed):
    """Return keys that are the same in every run."""
    rng = np.random.default_rng(seed)
    return [rng.bytes(32) for _ in range(count)]


def as_private(drawn, ids):
    """Return persons that P drew as a file has them: with identifiers, and rows in the file's order."""
    frame = drawn.frame
    frame["id"] = np.asarray(ids)[frame["id"]]
    return frame.sort_values("cost", ignore_index=True)


@pytest.mark.slow
def test_slots_are_uniform():
    """Some people would be first more often than others. Chi-square, false alarm 1e-6."""
    data = pd.DataFrame({"id": np.arange(8), "x": np.arange(8.0)})
    seen = np.array([group(data, Unit("id"), key).frame["x"].to_numpy() for key in keys(4000, 1)])
    for slot in (0, 3, 7):
        counts = np.bincount(seen[:, slot].astype(int), minlength=8)
        assert stats.chisquare(counts).pvalue > FALSE_ALARM
    # Also of two people: who is before whom.
    before = np.argmax(seen == 2, axis=1) < np.argmax(seen == 5, axis=1)
    assert stats.binomtest(int(before.sum()), 4000).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_the_order_of_rows_is_uniform():
    """A function that reads the first row would see others than under P. Chi-square, false alarm 1e-6."""
    data = pd.DataFrame({"id": [1, 1, 1, 2, 2, 2], "x": [5, 6, 7, 5, 6, 7]})
    seen = [group(data, Unit("id"), key).frame["x"].to_list() for key in keys(3000, 2)]
    orders = {(5, 6, 7): 0, (5, 7, 6): 1, (6, 5, 7): 2, (6, 7, 5): 3, (7, 5, 6): 4, (7, 6, 5): 5}
    # The orders of two people with the same rows are independent of each other, too.
    joint = np.array([6 * orders[tuple(one[:3])] + orders[tuple(one[3:])] for one in seen])
    assert stats.chisquare(np.bincount(joint, minlength=36)).pvalue > FALSE_ALARM


@pytest.mark.slow
def test_private_persons_have_the_law_that_is_calibrated():
    """What is calibrated would not be what is released. Kolmogorov-Smirnov, false alarm 1e-6."""

    def of_order(d):
        weights = np.arange(len(d)) % 7
        return float((d["cost"] * weights).sum() + d["id"].iloc[-1] * d["cost"].iloc[0])

    direct, private = [], []
    for at, key in enumerate(keys(600, 3)):
        direct.append(of_order(P.draw(12, np.random.default_rng(2 * at)).frame))
        drawn = P.draw(12, np.random.default_rng(2 * at + 1))
        frame = group(as_private(drawn, [f"n{7 * who % 12}" for who in range(12)]), P.unit, key).frame
        private.append(of_order(frame))
    assert stats.ks_2samp(direct, private).pvalue > FALSE_ALARM


QUESTIONS = {
    "mean": lambda d: d["cost"].mean(),
    "rows": lambda d: len(d) / 40,
    "costly": lambda d: (d.groupby("id")["cost"].max() > 80).mean(),
    "by group": lambda d: d.groupby("old")["cost"].mean().reindex([False, True]).fillna(0).to_numpy(),
    "first half": lambda d: d["cost"][d["id"] < 20].sum(),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", QUESTIONS)
def test_replacing_a_person_is_within_the_estimate(name):
    """The noise would be too small for more than a share gamma of the people.

    1,000 pairs of private files, in which a person with all rows is replaced and keeps the identifier. The
    share beyond is at most gamma with confidence; binomial test, false alarm 1e-6.
    """
    f = privatize(epsilon=1, gamma=0.1, sampler=P, seed=5)(QUESTIONS[name])
    estimate = f.estimate(n=40).value
    beyond, ids = 0, [f"n{17 * who % 40}" for who in range(40)]
    for at, key in enumerate(keys(1000, 4)):
        drawn = P.draw(41, np.random.default_rng(at))
        frame = as_private(drawn, [*ids, "new"])
        who = ids[at % 40]
        other = pd.concat(
            [frame[~frame["id"].isin([who, "new"])], frame[frame["id"] == "new"].assign(id=who)]
        )
        one, two = (group(each, P.unit, key).frame for each in (frame[frame["id"] != "new"], other))
        beyond += np.abs(np.subtract(f.__wrapped__(one), f.__wrapped__(two))).sum() > estimate
    assert stats.binomtest(beyond, 1000, 0.1, alternative="greater").pvalue > FALSE_ALARM
