"""Each mechanism measures gaps in its norm, scales its noise to them, and releases nothing else."""

import functools
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from privatize import Bernstein, Exponential, Gaussian, Laplace, privatize, samplers
from privatize.errors import SettingsError
from privatize.mechanisms import Mechanism, as_mechanism
from privatize.mechanisms.base import inflate
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)


def test_names_and_instances():
    """A mechanism is found by its name, and an unknown name lists the known ones."""
    assert as_mechanism("laplace") == Laplace() and as_mechanism("gaussian") == Gaussian()
    assert as_mechanism("bernstein") == Bernstein()
    chosen = Exponential(responses=[1, 2])
    assert as_mechanism(chosen) is chosen
    for wrong in ("cauchy", None, 3, Laplace, "Laplace"):
        with pytest.raises(SettingsError, match="laplace, gaussian, exponential and bernstein"):
            as_mechanism(wrong)
    with pytest.raises(SettingsError, match="responses"):
        as_mechanism("exponential")


@pytest.mark.parametrize("made", [Laplace(), Gaussian(), Exponential([1, 2]), Bernstein(3)])
def test_mechanisms_are_frozen_values(made):
    """A mechanism cannot be changed after the promise was made, and equals its copies."""
    assert isinstance(made, Mechanism)
    assert pickle.loads(pickle.dumps(made)) == made
    assert hash(made) == hash(pickle.loads(pickle.dumps(made)))
    with pytest.raises(AttributeError):
        made.anything = 1
    assert type(made).__name__ in repr(made)


def test_norms():
    """The paper's norms, and half the range for the exponential mechanism."""
    gap = np.array([3.0, -4.0, 1.0])
    assert Laplace().norm(gap) == 8
    assert Gaussian().norm(gap) == pytest.approx(math.sqrt(26))
    assert Exponential([1, 2, 3]).norm(gap) == pytest.approx(3.5, rel=1e-14)
    assert Exponential([1, 2, 3], norm="sup").norm(gap) == 4
    assert Exponential([1, 2, 3]).norm(gap + 1e6) == pytest.approx(3.5)  # a common shift is harmless
    assert Bernstein(2).norm(gap) == 8 and Bernstein(2, norm="sup").norm(gap) == 4


def test_scales():
    """Noise grows with the sensitivity and shrinks with epsilon, as the corollaries say."""
    assert Laplace().scale(2.0, 0.5) == 4.0
    assert Exponential([1, 2]).scale(2.0, 0.5) == 8.0
    assert Bernstein(4).scale(2.0, 0.5) == 4.0
    assert Bernstein(4, dimension=2, norm="sup").scale(2.0, 0.5) == 4.0 * 25


def test_a_user_can_add_a_mechanism():
    """Three methods are enough: a norm, a scale and a release."""

    class Rounded:
        def norm(self, gap):
            return float(np.abs(gap).max())

        def scale(self, sensitivity, epsilon, delta):
            return sensitivity / epsilon

        def release(self, vector, *, sensitivity, epsilon, delta, whole):
            return np.rint(vector)

    f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Rounded())(lambda x: [x.mean(), x.max()])
    assert f(np.full(20, 0.4)) == [0.0, 0.0]
    assert f.estimate(20).norm == "test_a_user_can_add_a_mechanism.<locals>.Rounded.norm"


def test_the_sensitivity_covers_the_rounding_of_gaps():
    """The sensitivity that noise is scaled to must be a little above the measured one."""
    assert inflate(1.0, 1) > 1.0 and inflate(1.0, 10**6) < 1 + 1e-9
    assert inflate(5e-324, 1) > 5e-324  # also where a relative margin rounds to nothing


def test_the_norm_covers_rounding_under_a_common_shift():
    """Scores that differ by less than the rounding of a common shift would count as equal."""
    scores, other = np.array([0.0, 1.4 * 2.0**-53]), np.array([1.0, 1.0])
    true = (Fraction(scores[1]) - Fraction(scores[0])) / 2
    assert Exponential([1, 2]).norm(scores - other) >= true


@pytest.mark.parametrize("delta", [0.0, 5e-324, 1e-301, 1.0, math.nan])
def test_other_deltas_are_refused_where_they_are_set(delta):
    """A user would learn only at the first call, after the charge, that a delta does not work."""
    with pytest.raises(SettingsError, match=r"1e-300 at least|not in \[0, 1\)"):
        privatize(epsilon=1, delta=delta, gamma=0.1, mechanism="gaussian", sampler=samplers.uniform(0, 1))


@pytest.mark.slow
@for_each("mechanism", ["laplace", "gaussian"])
@for_each("epsilon", [1e-10, 1e5])
@for_each("factor", [1e-299, 1.0, 1e299])
def test_the_corners_of_what_is_allowed_work(mechanism, epsilon, factor):
    """A user whose settings pass all checks would get an error, or an answer without noise."""
    private = privatize(
        epsilon=epsilon,
        delta=1e-300 if mechanism == "gaussian" else 0.0,
        gamma=0.5,
        mechanism=mechanism,
        sampler=samplers.uniform(0, 1),
        seed=1,
        store=None,
        workers="inline",
    )(functools.partial(_first_two, factor))
    # Noise of 1e309 saturates: an answer is one of four corners, and 32 are alike with probability 4^-31.
    answers = np.array([private(np.ones(5)) for _ in range(32)])
    assert np.isfinite(answers).all() and (answers != answers[0]).any() and answers.any()


def _first_two(factor, x):
    return factor * x[:2]


@for_each("epsilon", [1e-300, 9e-11, 1.1e5, 1e9, math.inf, 0.0])
def test_other_epsilons_are_refused_where_they_are_set(epsilon):
    """A user would learn only at the first call, after the charge, that an epsilon does not work."""
    with pytest.raises(SettingsError, match="between 1e-10 and 100000"):
        privatize(epsilon=epsilon, gamma=0.1, sampler=samplers.uniform(0, 1))
