"""Blocks: bounds that have the structure of the answer, the number of blocks, and two ways to aggregate."""

import copy
import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privatize import Blocks
from privatize.errors import SettingsError
from privatize.identity.fingerprint import fingerprint
from privatize.mechanisms import as_mechanism, blocks
from privatize.noise import exact, grid
from tests.cases import for_each
from tests.noise.test_quantile import log_odds
from tests.statistical.test_privacy import never_exceeds
from tests.statistical.thresholds import chi2_limit

FRAME = pd.DataFrame({"x": [0.0, 0.0], "n": [0, 0]})
CASES = {
    "float": Blocks(0.0, 1.0),
    "integer": Blocks(0, 120, blocks=50),
    "mixed": Blocks(0, 1.0, aggregate="mean"),
    "array": Blocks(np.zeros(3), np.ones(3), weights=[1, 2, 3]),
    "dict": Blocks({"a": 0, "b": np.zeros((2, 2))}, {"a": 9, "b": np.ones((2, 2))}, weights={"a": 1, "b": 3}),
    "list": Blocks([0.0, (1, 2)], [1.0, (2, 3)]),
    "frame": Blocks(FRAME, FRAME + 5),
    "series": Blocks(pd.Series([0.0, 0.0], index=["a", "b"]), pd.Series([1.0, 1.0], index=["a", "b"])),
}


def releases(mechanism, values, epsilon, count, seed):
    """Return many releases of the answers on blocks, with a fixed seed."""
    before = exact.source.set(np.random.Generator(np.random.PCG64(seed)).bytes)
    try:
        return np.array([mechanism.release_blocks(values, epsilon) for _ in range(count)])
    finally:
        exact.source.reset(before)


@for_each("name", CASES)
def test_it_is_a_frozen_public_value(name):
    """Bounds could be changed after a budget was spent on them, or be others in another process."""
    mechanism = CASES[name]
    assert as_mechanism(mechanism) is mechanism
    with pytest.raises(AttributeError):
        mechanism.blocks = 3
    for again in (copy.deepcopy(mechanism), pickle.loads(pickle.dumps(mechanism))):
        assert again == mechanism and hash(again) == hash(mechanism) and repr(again) == repr(mechanism)
        assert fingerprint(again) == fingerprint(mechanism)
        assert again.row(mechanism.high).tolist() == list(mechanism.highs)
    assert all(other == mechanism for key, other in CASES.items() if key == name)
    assert not any(other == mechanism for key, other in CASES.items() if key != name)


def test_bounds_are_copied():
    """Bounds that change with an array of the user would be clamped to other numbers than were promised."""
    low, high = np.zeros(2), np.ones(2)
    mechanism = Blocks(low, high)
    high[:] = 1e9
    mechanism.high[:] = 1e9
    assert mechanism.high.tolist() == [1.0, 1.0]


@for_each("name", CASES)
def test_the_answer_has_the_structure_of_the_bounds(name):
    """A dict, a frame or an integer would come back as something else."""
    mechanism = CASES[name]
    answers = np.tile(mechanism.row(mechanism.high), (200, 1))
    released = mechanism.structure.rebuild(mechanism.release_blocks(answers, 400.0))
    assert type(released) is type(mechanism.high)
    assert np.allclose(mechanism.row(released), mechanism.highs, atol=0.5)


def test_reprs():
    """A report could not tell which bounds were used."""
    assert repr(Blocks(0, 120)) == "Blocks(0, 120)"
    assert repr(Blocks(0, 1.0, blocks=9, aggregate="mean")) == "Blocks(0.0, 1.0, blocks=9, aggregate='mean')"
    assert repr(Blocks([0, 0], [1, 1], weights=[1, 2])) == "Blocks([0, 0], [1, 1], weights=[1.0, 2.0])"
    assert repr(Blocks(np.zeros(100), np.ones(100))) == "Blocks(<100 numbers>, <100 numbers>)"


def test_an_answer_that_does_not_fit_is_missing():
    """An answer of another shape would stop a release because of one person, which tells about them."""

    class Liar(dict):
        def __len__(self):
            raise RuntimeError("private")

    mechanism = Blocks({"a": 0, "b": np.zeros(2)}, {"a": 9, "b": np.ones(2)})
    fits = {"b": np.array([1, 2]), "a": 2.5}
    assert mechanism.row(fits).tolist() == [2.5, 1.0, 2.0]  # floats for integers, and the reverse
    assert np.isnan(mechanism.row({"a": np.nan, "b": np.zeros(2)})).tolist() == [True, False, False]
    for output in (
        None,
        "text",
        3,
        [1, 2, 3],
        {"a": 1},
        {"a": 1, "b": np.zeros(3)},
        {"a": True, "b": 0},
        Liar(),
    ):
        assert np.isnan(mechanism.row(output)).tolist() == [True] * 3
    assert Blocks(0.0, 1.0).row(10**400).tolist() == [np.inf]


@for_each(
    ("low", "high", "words"),
    [
        (2, 1, "low=2.0 and high=1.0"),
        ({"a": 0.0, "b": 1.0}, {"a": 1.0, "b": 0.5}, "of 'b'"),
        (np.nan, 1.0, "finite"),
        (0.0, np.inf, "finite"),
        (0, 10**400, "finite"),
        ({"a": 0}, {"b": 1}, "differ in structure"),
        (np.zeros(2), np.ones(3), "differ in structure"),
        ([0, [1]], [0, 1], "differ in structure"),
        ("a", "b", "no bounds"),
        (None, 1, "no bounds"),
        ([], [], "no numbers"),
        (False, True, "no bounds"),
    ],
)
def test_bounds_that_are_refused(low, high, words):
    """A typing mistake would clamp all answers to nonsense."""
    with pytest.raises(SettingsError, match=words):
        Blocks(low, high)


@for_each(
    ("options", "words"),
    [
        ({"blocks": 0}, "blocks=0"),
        ({"blocks": 2.5}, "blocks=2.5"),
        ({"blocks": True}, "blocks=True"),
        ({"blocks": "many"}, "blocks='many'"),
        ({"aggregate": "max"}, "aggregate='max'"),
        ({"weights": [1, -1]}, "out of range"),
        ({"weights": [1, np.nan]}, "out of range"),
        ({"weights": [5e-324, 1e308]}, "out of range"),
        ({"weights": [1, 2, 3]}, "do not fit"),
        ({"weights": "ab"}, "do not fit"),
        ({"weights": {"a": 1}}, "do not fit"),
    ],
)
def test_options_that_are_refused(options, words):
    """ε would be divided in another way than the user meant, or not at all."""
    with pytest.raises(SettingsError, match=words):
        Blocks([0.0, 0.0], [1.0, 1.0], **options)


def test_weights_of_parts_and_of_numbers():
    """A dict's key would get another share of ε than the user gave it."""
    low, high = {"a": 0, "b": np.zeros((2, 2))}, {"a": 9, "b": np.ones((2, 2))}
    for weights, expected in (
        (None, [1, 1, 1, 1, 1]),
        ({"b": 3, "a": 1}, [1, 0.75, 0.75, 0.75, 0.75]),
        ({"a": 1, "b": np.array([[1, 2], [3, 4]])}, [1, 1, 2, 3, 4]),
        ([5, 1, 2, 3, 4], [5, 1, 2, 3, 4]),
        ([1, 3], [1, 0.75, 0.75, 0.75, 0.75]),
    ):
        assert Blocks(low, high, weights=weights).weights == tuple(map(float, expected))


def test_the_number_of_blocks_follows_from_n_and_epsilon():
    """A number of blocks that depends on data would reveal something; too few make the answer useless."""
    one, two = Blocks(0.0, 1.0), Blocks([0.0, 0.0], [1.0, 1.0], weights=[3, 1])
    assert [one.number(20_000, epsilon) for epsilon in (0.1, 1.0, 10.0, 1e9)] == [800, 80, 20, 20]
    assert [one.number(n, 1.0) for n in (1, 3, 100, 2000)] == [1, 1, 25, 80]
    assert two.number(20_000, 1.0) == 320  # the smallest share of ε is 1/4
    assert one.number(2**40, 5e-324) == 2**20
    assert [Blocks(0.0, 1.0, blocks=50).number(n, 1.0) for n in (0, 20, 2000)] == [1, 20, 50]


def test_it_measures_no_gaps():
    """A sensitivity could be estimated for it, and noise be added that protects nobody."""
    mechanism = Blocks(0.0, 1.0)
    for call in (
        lambda: mechanism.norm(np.zeros(1)),
        lambda: mechanism.scale(1.0, 1.0),
        lambda: mechanism.release(np.zeros(1), sensitivity=1.0, epsilon=1.0, whole=np.zeros(1, dtype=bool)),
    ):
        with pytest.raises(SettingsError, match="measures no gaps"):
            call()
    with pytest.raises(SettingsError, match="how far off"):
        mechanism.error(1.0, 1.0, 0.0, 0.95)
    with pytest.raises(SettingsError, match="delta"):
        mechanism.check(1.0, 1e-6)


def test_failing_blocks_do_not_count_for_the_median():
    """A tenth of blocks that fail would move the answer towards a bound."""
    values = np.full((100, 1), 0.75)
    values[:40] = np.nan
    assert (releases(Blocks(0.0, 1.0), values, 2.0, 50, 1) == 0.75).all()
    nothing = releases(Blocks(0, 9), np.full((100, 1), np.nan), 1.0, 300, 2)
    assert set(nothing.ravel().tolist()) == set(range(10))  # once in 10 * 0.9**300 seeds one is missing


def test_failing_blocks_are_the_middle_for_the_mean():
    """A block that fails would move the mean by the entire range."""
    mechanism = Blocks(-10.0, 30.0, aggregate="mean")
    values = np.array([[np.nan], [-np.inf], [1e300], [0.0]])
    assert releases(mechanism, values, 1e9, 1, 3).item() == pytest.approx((10 - 10 + 30 + 0) / 4, abs=1e-6)
    assert mechanism.noise_scale(4, 2.0).tolist() == [5.0] and Blocks(0.0, 1.0).noise_scale(4, 2.0) == 0.0


@for_each(
    ("low", "high"), [(0.0, 0.0), (-1.7e308, 1.7e308), (0.0, 5e-324), (-(2**63), 2**63 - 1), (0.1, 0.3)]
)
def test_answers_stay_between_extreme_bounds(low, high):
    """Bounds that overflow would make infinite answers, or a warning that quotes a private number."""
    values = np.array([[-np.inf], [np.inf], [np.nan], [0.2], [low], [high]] * 5)
    for aggregate in ("median", "mean"):
        found = releases(Blocks(low, high, aggregate=aggregate), values, 1.0, 20, 4)
        assert ((found >= float(low)) & (found <= float(high))).all()


def test_the_noise_of_the_mean_is_exact():
    """If all of one block's range is not in the noise, one person is worth more than ε."""
    for epsilon in (0.1, 1.0, 1 / 3, 7.0):
        _, _, t, shift = grid.laplace_grid(float(blocks._UNITS), epsilon, 0)
        assert Fraction(blocks._UNITS * 2**shift, t) <= Fraction(epsilon)
    assert blocks._UNITS * blocks._MOST <= 2**53


@pytest.mark.slow
def test_the_median_is_drawn_by_the_law_that_is_private():
    """Another law than the one of tests/noise/test_quantile.py would have another loss.

    The false-alarm rate is 1e-6. A loss that is 30% too large is found.
    """
    values = np.array([[0.0], [5.0], [5.2], [9.0], [np.nan], [7.0]] * 2)
    odds = np.exp(log_odds([0, 5, 5, 7, 9] * 2, 10, 0.5, 1.0))
    for epsilon, right in ((1.0, True), (1.3, False)):
        found = releases(Blocks(0, 9), values, epsilon, 4000, 5)
        counts = np.bincount(found.ravel().astype(int), minlength=10)
        assert (stats.chisquare(counts, 4000 * odds).statistic < chi2_limit(9)) == right


@pytest.mark.slow
def test_one_block_changes_the_mean_by_epsilon_at_most():
    """The promise itself, through the release, when one of five blocks moves from one bound to the other.

    The false-alarm rate is 1e-6. A loss that is 30% too large is found.
    """
    one, other = np.array([[0.0], *[[0.5]] * 4]), np.array([[1.0], *[[0.5]] * 4])
    mechanism, edges = Blocks(0.0, 1.0, aggregate="mean"), np.linspace(0.3, 0.7, 9)

    def events(values, epsilon, seed):
        found = releases(mechanism, values, epsilon, 6000, seed)
        return np.concatenate([found < edges, found > edges], axis=1)

    assert never_exceeds(events(one, 1.0, 5), events(other, 1.0, 6), 1.0)
    assert never_exceeds(events(other, 1.0, 7), events(one, 1.0, 8), 1.0)
    assert not never_exceeds(events(one, 1.3, 9), events(other, 1.3, 10), 1.0)


def test_several_numbers_share_epsilon():
    """An answer of d numbers would cost d times what was paid."""
    mechanism = Blocks([0.0, 0.0], [1.0, 1.0], aggregate="mean", weights=[1, 3])
    found = releases(mechanism, np.full((1000, 2), 0.5), 1.0, 4000, 11)
    scales = np.abs(found - 0.5).mean(axis=0)  # of Laplace noise: the mean of 4,000 is within 7%
    assert scales == pytest.approx(mechanism.noise_scale(1000, 1.0), rel=0.07)
    assert mechanism.noise_scale(1000, 1.0) == pytest.approx([0.004, 0.004 / 3])
    assert math.isclose(sum(1 / (1000 * scale) for scale in mechanism.noise_scale(1000, 1.0)), 1.0)
