"""Weights come from a pilot of their own, or are those of all members of a family."""

import itertools
import warnings
from dataclasses import replace

import numpy as np
import pytest

from privatize import Gaussian, Laplace, configure, estimate_sensitivity, plan, privatize, samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.pilot import Member, metric_of, pilot_size, pooled_pairs
from privatize.errors import FragileEstimateWarning, NotReproducibleError, SettingsError
from privatize.mechanisms.choosing import PilotPairs
from privatize.mechanisms.shapes import NONE, Shape
from privatize.outputs.describe import describe

P = samplers.uniform(0, 1)


def both(x):
    """Return two numbers of different size."""
    return [x.mean(), 1000 * x.mean()]


def estimate(**more):
    """Estimate the sensitivity of both numbers."""
    options = {"n": 20, "sampler": P, "norm": "l1", "plan": plan(0.2), "scaled": Laplace(scaled="total")}
    return estimate_sensitivity(both, **options | {"seed": 1} | more)


def test_learned_or_given():
    """A member with weights of its own would be measured in another norm than the others."""
    assert len(set(estimate().shape.powers)) == 2
    given = estimate(member=Member(7, Shape("total", (0, 0)), ""))
    assert given.shape == Shape("total", (0, 0)) and given.coin_seed == 7
    assert np.allclose(given.gaps, estimate(scaled=None).gaps)
    assert estimate(scaled=None, member=Member(7, None, "")).shape == NONE


def test_one_number_needs_no_pilot():
    """A user of a slow function of one number would pay for a pilot that decides nothing."""
    calls = []

    def mean(x):
        calls.append(1)
        return float(x.mean())

    estimate_sensitivity(mean, n=20, sampler=P, norm="l1", plan=plan(0.2), seed=1, workers="inline")
    alone = len(calls)
    calls.clear()
    options = {"n": 20, "sampler": P, "norm": "l1", "plan": plan(0.2), "seed": 1, "workers": "inline"}
    found = estimate_sensitivity(mean, **options, scaled=Laplace())
    assert found.shape == NONE and len(calls) <= alone + 3  # one pair, and its first dataset again


def test_a_pilot_checks_P_for_its_calibration():
    """A user would wait for P twice; or a P that is not reproducible would no longer be found."""

    def drawn(scaled):
        draws = []

        def numbers(n, rng):
            draws.append(n)
            return rng.random(n)

        sampler = samplers.from_function(numbers)
        options = {"n": 20, "norm": "l1", "plan": plan(0.2), "seed": 1, "workers": "inline"}
        estimate_sensitivity(np.mean, **options, sampler=sampler, scaled=scaled)
        return len(draws)

    assert drawn(Laplace()) == drawn(None) + 1  # one pair shows that there is one number
    turns = itertools.count()
    wrong = samplers.from_function(lambda n, rng: rng.random(n) + next(turns))
    for scaled in (None, Laplace()):
        with pytest.raises(NotReproducibleError, match="different records"):
            estimate(sampler=wrong, scaled=scaled)


def test_a_pilot_is_small_beside_its_calibration():
    """A user would wait longer for the choice than for what was chosen. Whose pairs it has: see test_run."""
    assert all(pilot_size(m) <= m / 10 for m in (219, 557, 1000, 10**6)) and pilot_size(40) == 16


def test_pooled_answers_are_centered():
    """Members of a family that are far apart would make every number look informative."""
    rng = np.random.default_rng(0)
    steps = rng.normal(size=(20, 2))
    seen = [
        PilotPairs(steps, rng.normal(size=(20, 2)) + at, structure=describe([1.0, 2.0])) for at in (0, 1e6)
    ]
    pooled = pooled_pairs(seen)
    assert pooled.answers.std(axis=0).max() < 2 and len(pooled.steps) == 40
    assert pooled.structure is not None
    turned = [replace(seen[0], structure=describe({"a": 1.0, "b": 2.0})), seen[1]]
    assert pooled_pairs(turned).structure is None


def test_linear_models_are_made_for_predictions():
    """Coefficients of correlated features would get noise that makes predictions worse than need be."""
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed (extra test)")
    sklearn = pytest.importorskip("privatize.sklearn")
    mixed = np.random.default_rng(1).normal(size=(2, 6))

    def draw(n, rng):
        x = np.clip(rng.normal(size=(n, 2)), -3, 3) @ mixed + 0.1 * np.clip(rng.normal(size=(n, 6)), -3, 3)
        return x, x.sum(axis=1) + np.clip(rng.normal(size=n), -3, 3)

    def fit(x, y):
        return linear.Ridge(alpha=1.0).fit(x, y)

    options = {"epsilon": 1, "delta": 1e-6, "gamma": 0.2, "data": ("x", "y"), "store": None, "seed": 2}
    P = samplers.from_function(draw)
    x = np.column_stack([draw(5000, np.random.default_rng(0))[0], np.ones(5000)])
    moments = x.T @ x / 5000
    errors = {}
    for way in ("auto", "total", "none"):
        made = privatize(**options, sampler=P, mechanism=Gaussian(scaled=way))(fit)
        found = made.estimate(200)
        noise = found.shape.covariance if found.shape.powers else np.eye(7)
        errors[way] = found.value * np.sqrt(np.sum(moments * noise))
    assert errors["auto"] < 0.8 * min(errors["total"], errors["none"])
    own = sklearn.PrivateEstimator(
        linear.Ridge(), sampler=P, mechanism="gaussian", epsilon=1, delta=1e-6, gamma=0.2
    )
    assert own.estimate(200).shape.kind == "matrix"
    metric = metric_of(found.structure, evaluator_of(fit, P), 0)
    assert metric is not None and metric.shape == (7, 7)
    assert metric[:6, :6] == pytest.approx(moments[:6, :6], abs=1.5) and metric[6, 6] == 1


def evaluator_of(function, sampler):
    """Return an evaluator of pairs of labelled data."""
    return evaluator(lambda data: function(*data), n=200, sampler=sampler, norm=Gaussian().norm, seed=1)


def test_other_models_have_no_metric():
    """A matrix for other numbers would be taken for that of predictions."""
    cluster = pytest.importorskip("sklearn.cluster", reason="scikit-learn is not installed (extra test)")
    sampler = samplers.uniform([0, 0], [1, 1])
    data = sampler.draw(50, np.random.default_rng(0))
    found = describe(cluster.KMeans(2, n_init=1, random_state=0).fit(data))
    pairs = evaluator(lambda d: d, n=50, sampler=sampler, norm=Gaussian().norm, seed=1)
    assert metric_of(found, pairs, 0) is None and metric_of(describe([1.0, 2.0]), pairs, 0) is None


def test_features_that_the_function_makes_itself_have_no_metric():
    """y would be taken for a feature: a regression on x and x² got 500 times too much noise."""
    linear = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed (extra test)")

    def draw(n, rng):
        x = rng.uniform(-1, 1, (n, 2))
        return x, x[:, 0] + rng.uniform(-1, 1, n)

    P = samplers.from_function(draw)
    for fit, known in ((lambda x, y: linear.Ridge().fit(x, y), True), (_squares, False)):
        pairs = evaluator_of(fit, P)
        pairs.evaluate((0, 1), pairs.learned)
        assert (metric_of(pairs.known_structure, pairs, 0) is not None) == known


def _squares(x, y):
    from sklearn.linear_model import Ridge

    return Ridge().fit(x**2, y)


@pytest.mark.parametrize("seed", range(4))
def test_keys_that_come_in_any_order_keep_their_weights(seed):
    """The weight of a count would be that of a mean, and its noise a million times too large."""

    def facts(x):
        found = {"count": 100.0 * (x > 0.5).sum(), "mean": float(x.mean())}
        return found if x[0] < 0.5 else dict(reversed(found.items()))

    mechanism = Laplace(scaled="relative")
    found = privatize(epsilon=1, gamma=0.2, sampler=P, mechanism=mechanism, seed=seed, store=None)(facts)
    scale = found.release(np.linspace(0, 1, 50)).scale
    assert scale["count"] > 1000 * scale["mean"]


def test_long_answers():
    """Explicit weights would silently be none."""
    with pytest.raises(SettingsError, match="at most 10,000"):
        estimate_sensitivity(
            lambda x: np.full(10_001, x[0]),
            n=5,
            sampler=P,
            norm="l1",
            plan=plan(0.5),
            scaled=Laplace(scaled="total"),
        )


def test_rounding_noise_still_widens_the_estimate():
    """A function that rounds differently from run to run would get noise for one of its runs only."""
    turns = itertools.count()

    def rounded(x):
        return [float(x.mean()) + 1e-15 * (next(turns) % 3), float(x.max())]

    found = estimate_sensitivity(
        rounded, n=20, sampler=P, norm="l1", plan=plan(0.2), seed=1, workers="inline", scaled=Laplace()
    )
    assert found.jitter > 0


# --- numbers that few people decide ---------------------------------------------------------


def extremes(data):
    return {"lowest": data.min(), "mean": data.mean(), "highest": data.max()}


def ordinary(data):
    counts = np.histogram(data, np.linspace(0, 1, 30))[0]
    shares = np.histogram(data, [0, 0.001, 0.5, 1])[0] / len(data)
    return {
        "mean": data.mean(),
        "constant": 1.0,
        "counts": counts,
        "shares": shares,
        "median": np.median(data),
    }


def fragile(function, sampler, **options):
    """Return what is said about numbers that few people decide."""
    configure(stress=True)
    try:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            private = privatize(epsilon=1, gamma=0.1, sampler=sampler, seed=1, store=None, **options)(
                function
            )
            private.estimate(500)
    finally:
        configure(stress=False)
    texts = [str(each.message) for each in seen if each.category is FragileEstimateWarning]
    return [text for text in texts if "few people decide" in text]


def test_numbers_that_few_people_decide_are_named():
    """A minimum is refused by itself. Beside a mean it would be published almost raw, without a word."""
    unit = samplers.uniform(0, 1)
    for sampler in (unit, [unit, samplers.uniform(0.2, 0.7)]):
        (text,) = fragile(extremes, sampler)
        assert "has moved lowest, highest," in text and "quantile" in text
    assert fragile(ordinary, unit) == []  # counts, shares of a rare kind, and a constant


def test_they_can_be_switched_off():
    """Somebody who knows it, and has a bound, would see the warning in every log."""
    assert fragile(extremes, samplers.uniform(0, 1), mechanism=Laplace(scaled="none")) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error", FragileEstimateWarning)
        configure(stress=False)
        privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), store=None)(extremes).estimate(500)
