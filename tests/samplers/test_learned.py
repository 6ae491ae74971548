"""A learned P draws what its cells and weights say, in the form of the P that it is within."""

import pickle

import numpy as np
import pytest

from privatize import samplers as s
from privatize.data import records
from privatize.errors import SamplerError
from privatize.identity.declared import declare
from privatize.identity.fingerprint import fingerprint
from privatize.samplers.designs import design
from privatize.samplers.learned import _Table, connected
from tests.cases import for_each
from tests.samplers.test_layouts import WITHIN


def rng(seed=0):
    return np.random.default_rng(seed)


def learned(within, n=3000, together=(), data=None, **more):
    """Learn without noise."""
    from privatize.data.parts import columns_of

    made = design(within, n, 20.0, together, more)
    return made.learned(made.counts(list(columns_of(within.draw(n, rng(9)) if data is None else data))))


@for_each("within", WITHIN)
def test_it_draws_what_the_other_p_draws(within):
    """Private data would not fit the learned P, or be clipped in another way."""
    P = learned(within)
    for n in (0, 1, 300):
        drawn, other = P.draw(n, rng(1)), within.draw(n, rng(2))
        assert records.count(drawn) == n
        assert records.describe(drawn) == records.describe(other)
    assert records.alike(drawn, other)
    assert repr(P.support) == repr(within.support)
    assert records.equal(records.convert(drawn, other, P.support), drawn)
    assert records.equal(P.draw(50, rng(3)), P.draw(50, rng(3)))


def table(n=4000, frame="dict"):
    """Draw two columns that depend on each other, a third that depends on the second, and many zeros."""
    x = rng(4).uniform(0, 1, n)
    y = np.clip(x + rng(5).normal(0, 0.05, n), 0, 1)
    z = np.where(y > 0.5, "hi", "lo")
    zero = np.where(rng(6).random(n) < 0.9, 0.0, rng(7).uniform(0, 10, n))
    within = s.table(
        x=s.uniform(0, 1), y=s.uniform(0, 1), z=s.choice(["lo", "hi"]), w=s.uniform(0, 10), frame=frame
    )
    return within, {"x": x, "y": y, "z": z, "w": zero}


@for_each("together", [[("x", "y"), ("y", "z")], [("y", "z"), ("x", "y")], [("y", "x"), ("z", "y")]])
def test_columns_that_are_learned_together_depend_on_each_other(together):
    """A slope or a share by group would be calibrated on columns that have nothing to do with each other."""
    within, data = table()
    drawn = learned(within, 4000, together, data).draw(4000, rng(8))
    assert np.corrcoef(drawn["x"], drawn["y"])[0, 1] > 0.9
    assert (drawn["z"] == np.where(drawn["y"] > 0.5, "hi", "lo")).mean() > 0.9
    assert np.corrcoef(drawn["x"], drawn["z"] == "hi")[0, 1] > 0.7  # through the column in between
    apart = learned(within, 4000, (), data).draw(4000, rng(8))
    assert abs(np.corrcoef(apart["x"], apart["y"])[0, 1]) < 0.06
    for one in (drawn, apart):
        assert abs((one["w"] == 0).mean() - 0.9) < 0.03
        assert abs(one["x"].mean() - 0.5) < 0.03


def test_some_columns_are_drawn_as_all_of_them_are():
    """A function of some columns would be calibrated under another distribution than that of all columns."""
    within, data = table(frame="pandas")
    P = learned(within, 4000, [("x", "y")], data)
    one, both = P["y"].draw(20_000, rng(1)), P[["y", "x"]].draw(20_000, rng(1))
    every = P.draw(20_000, rng(2))
    assert list(both) == ["y", "x"]
    for q in (0.1, 0.5, 0.9):
        assert abs(np.quantile(one, q) - np.quantile(every["y"], q)) < 0.02
    assert both.corr().iloc[0, 1] > 0.9
    X, y = s.labelled(P, "z").draw(10, rng(3))
    assert list(X) == ["x", "y", "w"] and set(y) <= {"lo", "hi"}


def test_nothing_of_the_support_is_impossible():
    """A real neighbour beyond what was seen would have no probability at all under the learned P."""
    P = learned(s.uniform(0, 1), data=rng().uniform(0.2, 0.3, 3000))
    drawn = P.draw(20_000, rng(1))
    assert 0.0005 < (drawn > 0.5).mean() < 0.005


def test_it_compares_by_content():
    """The same learned P would be calibrated and budgeted twice, or another one taken for it."""
    one, same, other = learned(s.uniform(0, 1)), learned(s.uniform(0, 1)), learned(s.uniform(0, 2))
    assert one == same and hash(one) == hash(same)
    assert fingerprint(one) == fingerprint(same) != fingerprint(other)
    assert declare(one).digest == declare(same).digest != declare(other).digest
    assert declare(one).digest.startswith("P1:")
    P = learned(s.uniform(0, 1))
    P.draw(5, rng())
    back = pickle.loads(pickle.dumps(P))
    assert back == one and fingerprint(back) == fingerprint(one) and len(pickle.dumps(P)) < 5000
    assert records.equal(back.draw(9, rng(1)), one.draw(9, rng(1)))
    assert repr(one) == "learned(within=uniform(0, 1), epsilon=20.0, n=3000)"


def test_pairs_that_form_a_circle_are_refused():
    """A column would have to follow two others at once, and one of the tables would be paid for in vain."""
    assert connected([("a", "b"), ("c", "d"), ("b", "c")])["a"] == {"a", "b", "c", "d"}
    with pytest.raises(SamplerError, match="circle"):
        connected([("a", "b"), ("b", "c"), ("c", "a")])


@for_each("within", WITHIN[::4])
def test_it_has_a_family(within):
    """A learned P, which needs a family most of all, would have none, or members that data does not fit."""
    P = learned(within)
    family = P.family()
    assert len(family) > 2
    for member in family:
        drawn = member.draw(100, rng(1))
        assert records.describe(drawn) == records.describe(P.draw(100, rng(1)))
        assert records.equal(records.convert(drawn, drawn, P.support), drawn)


def test_cells_are_drawn_as_often_as_their_weights_say():
    """The learned P would be another one than its file says; with a fixed seed, false alarms below 1e-6."""
    for weights in ([65536], [0, 65536, 0], [1, 65535], [100, 20_000, 0, 45_436], [16384] * 4):
        table = _Table(np.array(weights))
        found = np.bincount(table.alone(100_000, rng(5)), minlength=len(weights)) / 100_000
        share = np.array(weights) / 65536
        assert (
            np.abs(found - share) <= 5 * np.sqrt(share * (1 - share) / 100_000) + 1e-4 * (share > 0)
        ).all()


@for_each("together", [["ab", "bc", "cd"], ["ab", "cd", "bc"], ["dc", "ab", "cb"]])
def test_pairs_in_any_order(together):
    """Columns that were paid for to be learned together would be independent of each other."""
    within = s.table(dict.fromkeys("abcd", s.boolean()), frame="dict")
    one = rng().random(3000) < 0.5
    pairs = list(map(tuple, together))
    drawn = learned(within, together=pairs, data=dict.fromkeys("abcd", one)).draw(400, rng(1))
    for first, second in pairs:
        assert (drawn[first] == drawn[second]).mean() > 0.98
