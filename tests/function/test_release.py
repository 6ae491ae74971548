"""Statements of how far off a private answer may be: they are true, and have the answer's own form.

Statistical tests fail by chance with probability at most FALSE_ALARM each. Where only the noise is random,
its source is seeded, so that the outcome is the same at every run.
"""

import collections
import dataclasses
import math

import numpy as np
import pytest

from privatize import Bernstein, Exponential, Gaussian, Laplace, privatize, samplers
from privatize.errors import SettingsError
from privatize.function.accuracy import least_epsilon
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import Weighted
from privatize.outputs.describe import describe
from tests.cases import for_each
from tests.function.released import FAR, TRIALS, bits, noised, private, release
from tests.statistical.thresholds import FALSE_ALARM, fewest_successes, most_successes

# --- how often an interval is right ------------------------------------------------------------------


@for_each("confidence", [0.5, 0.95, 0.999])
@for_each("integer", [False, True])
@for_each("scale", [0.3, 1.0, 5.0, 300.0])
@for_each("mechanism", [Laplace(), Gaussian()], ids=["laplace", "gaussian"])
def test_the_interval_covers(mechanism, scale, integer, confidence):
    """A user's interval would miss the raw answer more often than it says."""
    found = noised(mechanism, scale, integer, seed=int(scale * 10) + integer)
    low, high = release(found.astype(np.int64) if integer else found, mechanism.noise_name, scale).interval(
        confidence
    )
    covered = int(((low <= FAR) & (high >= FAR)).sum())
    assert covered >= fewest_successes(TRIALS, confidence)
    if not integer:  # and it is as narrow as that allows
        assert covered <= most_successes(TRIALS, confidence + 1e-5)


@pytest.mark.parametrize("mechanism", [Laplace(), Gaussian()], ids=["laplace", "gaussian"])
def test_the_interval_of_a_scaled_answer_covers_each_number(mechanism):
    """A user of scaled noise would get intervals that fit one number of the answer and not another."""
    powers, integer = (0, -4, -1, -6), np.array([False, False, True, True])
    weighted, raw, trials = Weighted(mechanism, Shape("total", powers)), np.array([5, -3.25, 40, 7]), 3000
    delta = 1e-6 if isinstance(mechanism, Gaussian) else 0.0
    scale = weighted.scale(8.0, 1.0, delta)
    covered = np.zeros(4, dtype=int)
    with bits(5):
        for _ in range(trials):
            noisy = weighted.release(raw, sensitivity=8.0, epsilon=1.0, delta=delta, whole=integer)
            value = {"a": noisy[0], "b": noisy[1], "c": int(noisy[2]), "d": int(noisy[3])}
            made = release(value, mechanism.noise_name, dict(zip("abcd", scale.tolist(), strict=True)))
            low, high = dataclasses.replace(made, scaled="total").interval(0.9)
            covered += [low[k] <= x <= high[k] for k, x in zip("abcd", raw.tolist(), strict=True)]
    assert (covered >= fewest_successes(trials, 0.9, FALSE_ALARM / 4)).all()
    assert (covered[:2] <= most_successes(trials, 0.9 + 1e-5, FALSE_ALARM / 4)).all()


def test_the_interval_of_a_private_function_covers():
    """A user's own function, from decoration to interval, would be covered less often than promised."""
    mean = private(lambda x: {"mean": x.mean(), "high": int((x > 0.5).sum())}, epsilon=0.5)
    data = np.linspace(0, 1, 40)
    raw = {"mean": 0.5, "high": 20}
    trials, covered = 2000, collections.Counter()
    with bits(6):
        for _ in range(trials):
            low, high = mean.release(data).interval(0.8)
            covered.update(key for key in raw if low[key] <= raw[key] <= high[key])
    assert min(covered.values()) >= fewest_successes(trials, 0.8, FALSE_ALARM / 2)


def test_integers_without_all_digits_stay_covered():
    """A user's count beyond 2^53 would be outside its interval, since floats have no such numbers."""
    raw = 2**60 + 127
    with bits(7):
        (made,) = Laplace().release(
            np.array([float(raw)]), sensitivity=3.0, epsilon=1.0, delta=0.0, whole=np.array([True])
        )
    low, high = release(int(made), scale=3.0).interval(0.999999)
    assert low <= raw <= high and high - low < 5000


def test_an_infinite_answer_has_a_finite_end():
    """A user's float16 answer that overflowed would be reported as certainly infinite."""
    low, high = release(np.float16(np.inf), scale=10.0).interval()
    assert 65000 < low < 65504 <= high
    low, high = release(-1.7e308, scale=1e307).interval()
    assert low == -math.inf and -1.7e308 < high < -1.3e308


def test_the_exponential_mechanisms_statement_holds():
    """A user's chosen answer would be further below the best one than stated."""
    for prior in (None, [1.0, 1.0, 1.0, 1e-3]):
        mechanism = Exponential(list("abcd"), prior=prior)
        scores = np.array([3.0, 2.0, 0.0, 3.5])
        for epsilon in (0.5, 4.0):
            for confidence in (0.3, 0.9):
                within = mechanism.error(1.0, epsilon, 0.0, confidence)
                with bits(11):
                    chosen = [
                        int(
                            mechanism.release(
                                scores,
                                sensitivity=1.0,
                                epsilon=epsilon,
                                delta=0.0,
                                whole=np.zeros(4, dtype=bool),
                            )[0]
                        )
                        for _ in range(1000)
                    ]
                good = int((scores[chosen] >= scores.max() - within).sum())
                assert good >= fewest_successes(1000, confidence, FALSE_ALARM / 8)


def test_the_exponential_mechanisms_statement_is_proven():
    """A user's chosen answer would be worse than stated for scores that no test has tried."""
    rng = np.random.default_rng(12)
    for _ in range(300):
        size = int(rng.integers(1, 6))
        prior = rng.dirichlet(np.full(size, 0.4)) + 1e-9
        mechanism, epsilon = Exponential(range(size), prior=prior.tolist()), float(rng.exponential(3) + 0.01)
        scores = rng.normal(size=size) * 4 / epsilon
        odds = np.exp(epsilon * (scores - scores.max()) / 2) * prior
        for confidence in (0.1, 0.5, 0.95):
            within = mechanism.error(1.0, epsilon, 0.0, confidence)
            bad = odds[scores < scores.max() - within].sum() / odds.sum()
            assert bad <= (1 - confidence) * (1 + 1e-9)


def test_the_bernstein_mechanisms_statement_holds():
    """A user's curve would be further off on the lattice than stated."""
    for norm in ("l1", "sup"):
        mechanism = Bernstein(lattice=4, norm=norm)
        raw, trials = np.linspace(0, 1, 5), 600
        within = mechanism.error(0.3, 2.0, 0.0, 0.9)
        with bits(13):
            made = np.array(
                [
                    mechanism.release(
                        raw, sensitivity=0.3, epsilon=2.0, delta=0.0, whole=np.zeros(5, dtype=bool)
                    )
                    for _ in range(trials)
                ]
            )
        good = (np.abs(made - raw) <= within).sum(axis=0)
        assert (good >= fewest_successes(trials, 0.9, FALSE_ALARM / 20)).all()
        assert (good <= most_successes(trials, 0.9 + 1e-5, FALSE_ALARM / 20)).all()


# --- the form of an interval -------------------------------------------------------------------------


class Fit(collections.namedtuple("Fit", "slope count")):
    __slots__ = ()


@dataclasses.dataclass(frozen=True)
class Both:
    mean: float
    counts: np.ndarray


def test_the_ends_have_the_answers_own_form():
    """A user could not use the ends of an interval where the answer goes."""
    for value in (
        1.5,
        7,
        np.float64(1.5),
        np.float32(1.5),
        np.int64(7),
        np.uint8(7),
        np.zeros((2, 3)),
        np.arange(4, dtype=np.uint8),
        [1.0, [2, 3.0]],
        (1.0, 2),
        {"a": 1.0, ("b", 2): {"c": np.arange(2)}},
        Fit(1.0, 2),
        Both(1.0, np.array([1, 2])),
        collections.Counter(a=2),
        collections.OrderedDict(z=1.0, a=2.0),
    ):
        low, high = release(value, scale=2.0).interval(0.9)
        assert type(low) is type(high) is type(value)
        assert str(low).count(",") == str(value).count(",")
    low, high = release({"a": 1.0, ("b", 2): {"c": np.arange(2)}}, scale=2.0).interval(0.9)
    assert list(low) == ["a", ("b", 2)] and low["a"] < 1.0 < high["a"]
    assert low["b", 2]["c"].dtype == np.arange(2).dtype
    low, high = release(Both(1.0, np.array([1, 2])), scale=2.0).interval(0.9)
    assert low.mean < 1 < high.mean and (low.counts < high.counts).all()


def test_small_integers_stop_at_their_ends():
    """A user's uint8 would wrap around, so that the lower end is above the upper one."""
    low, high = release(np.array([1, 254], dtype=np.uint8), scale=20.0).interval()
    assert low.dtype == np.uint8 and low[0] == 0 and high[1] == 255 and (low <= high).all()


def test_pandas_keep_labels_and_strings():
    """A user's table of intervals would have lost its index, its columns, or its strings."""
    pd = pytest.importorskip("pandas")
    series = pd.Series([1.0, 2.0], index=pd.Index(["F", "M"], name="sex"), name="weight")
    low, high = release(series, scale=2.0).interval()
    assert low.index.equals(series.index) and low.name == "weight" and (low < series).all()
    assert (high > series).all()
    frame = pd.DataFrame({"site": ["a", "b"], "n": [3, 4], "<mean>": [0.5, 1.5]}, index=["x", "y"])
    frame = frame.astype({"site": "string"})  # pandas 2 has Python objects there, which may be anything
    low, high = release(frame, scale=2.0).interval()
    assert low.columns.equals(frame.columns) and low.index.equals(frame.index)
    assert low["site"].tolist() == ["a", "b"] and (low.dtypes == frame.dtypes).all()
    assert (low[["n", "<mean>"]] < high[["n", "<mean>"]]).all().all()
    assert frame["n"].tolist() == [3, 4]  # the answer itself is not changed


def test_polars_keep_their_columns():
    """A user of polars would get something else back."""
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"site": ["a", "b"], "n": [3, 4], "mean": [0.5, 1.5]})
    low, high = release(frame, scale=2.0).interval()
    assert low.schema == high.schema == frame.schema and low["site"].to_list() == ["a", "b"]
    assert (low["n"] < frame["n"]).all() and (high["mean"] > frame["mean"]).all()
    low, high = release(pl.Series("x", [1.0, 2.0]), scale=2.0).interval()
    assert isinstance(low, pl.Series) and low.name == "x" and (low < high).all()


def test_tensors_stay_tensors():
    """A user of torch would get an array, or an interval that bfloat16 has rounded away."""
    torch = pytest.importorskip("torch", reason="torch is not installed (extra test-all)")
    for dtype in (torch.float32, torch.bfloat16, torch.int64):
        value = torch.tensor([300, 2], dtype=dtype)
        low, high = release(value, scale=0.01 if dtype.is_floating_point else 2.0).interval()
        assert low.dtype == high.dtype == dtype and bool((low < high).all())


def test_a_model_has_no_interval():
    """A user would get a model as the end of an interval, which means nothing."""
    pytest.importorskip("sklearn")
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(1)
    model = LinearRegression().fit(rng.random((20, 2)), rng.random(20))
    for value in (model, {"model": model, "score": 0.5}):
        made = release(value)
        with pytest.raises(SettingsError, match="a model has no interval"):
            made.interval()
        errors = made.expected_error if value is model else made.expected_error["model"]
        assert list(errors) == ["coef_", "intercept_"]
        with pytest.raises(SettingsError, match="a model has no interval"):
            made.plot()


def test_a_key_may_be_called_estimator():
    """A user's number that happens to be called so would be taken for a model."""
    low, high = release({"estimator": 1.0}, scale=2.0).interval()
    assert low["estimator"] < 1.0 < high["estimator"]


def test_mechanisms_that_add_no_noise_to_numbers_have_no_interval():
    """A user of another mechanism would get an interval that means nothing."""
    chosen = private(lambda x: [x.sum(), (1 - x).sum()], mechanism=Exponential([1.0, 2.0]))
    curve = private(
        lambda x, points: np.exp(-((x[:, None] - points) ** 2)).mean(axis=0), mechanism=Bernstein(lattice=3)
    )
    for function in (chosen, curve):
        made = function.release(np.full(30, 0.4))
        for ask in (made.interval, lambda made=made: made.expected_error, made.plot):
            with pytest.raises(SettingsError, match=r"does not add noise to the numbers .*error_at\(n\)"):
                ask()
        assert function.error_at(30) > 0


def test_a_value_that_was_replaced_has_no_interval():
    """A user who put something else in place of the answer would see an error from inside the library."""
    made = dataclasses.replace(release(1.0), value="text")
    with pytest.raises(SettingsError, match="is now a str, which has no numbers"):
        made.interval()


# --- planning ----------------------------------------------------------------------------------------


def several(x):
    return {"mean": x.mean(), "counts": np.histogram(x, bins=[0, 0.3, 1])[0]}


PLANNED = {
    "laplace": (np.mean, {}),
    "integers": (lambda x: int((x > 0.3).sum()), {}),
    "several": (several, {}),
    "gaussian": (np.mean, {"mechanism": "gaussian", "delta": 1e-6}),
    "classic": (np.mean, {"mechanism": Gaussian("classic"), "delta": 1e-6, "epsilon": 0.5}),
    "scaled": (several, {"mechanism": Laplace(scaled="relative")}),
    "exponential": (lambda x: [x.sum(), (1 - x).sum()], {"mechanism": Exponential(["a", "b"])}),
    "bernstein": (lambda x, t: np.outer(t, x).mean(axis=1), {"mechanism": Bernstein(lattice=3)}),
}


def largest(errors):
    """Return the largest number of an answer's errors."""
    return float(describe(errors).flatten(errors).max())


@for_each("case", PLANNED)
def test_epsilon_for_is_the_inverse_of_error_at(case):
    """A user who asked for ±2 would get a larger error, or pay more epsilon than it takes."""
    function, changes = PLANNED[case]
    made = private(function, **changes)
    own = made.error_at(50)
    for times, confidence in ((1, 0.95), (3.0, 0.95), (1.7, 0.5)):
        wanted = largest(own) * times
        epsilon = made.epsilon_for(50, error=wanted, confidence=confidence)
        assert isinstance(epsilon, float)
        assert largest(made.error_at(50, epsilon=epsilon, confidence=confidence)) <= wanted
        assert largest(made.error_at(50, epsilon=epsilon * (1 - 1e-6), confidence=confidence)) > wanted
    # In particular, the function's own epsilon is enough for its own error.
    assert made.epsilon_for(50, error=largest(own)) <= made.settings.epsilon * (1 + 1e-8)


def test_error_at_is_the_interval_of_a_release():
    """A user's answer would be further off than what was planned with."""
    for case in ("laplace", "integers", "gaussian", "classic"):
        function, changes = PLANNED[case]
        made = private(function, **changes)
        low, high = made.release(np.linspace(0, 1, 50)).interval(0.9)
        assert (high - low) / 2 == pytest.approx(made.error_at(50, confidence=0.9), rel=1e-9)
    made = private(several, mechanism=Laplace(scaled="relative"))
    low, high = made.release(np.linspace(0, 1, 50)).interval(0.9)
    errors = made.error_at(50, confidence=0.9)
    assert (high["mean"] - low["mean"]) / 2 == pytest.approx(errors["mean"], rel=1e-9)
    np.testing.assert_allclose((high["counts"] - low["counts"]) / 2, errors["counts"], rtol=1e-9)
    assert errors["mean"] != errors["counts"][0]


def test_error_at_of_mixed_numbers_tells_them_apart():
    """A user of counts and means would get one figure for two different things."""
    errors = private(several, mechanism=Laplace(scaled="none")).error_at(50)
    one, other = errors["counts"].tolist()
    assert one == other == round(one) != errors["mean"]


def test_other_arguments_are_those_of_estimate():
    """A user whose function has other arguments could not plan with them."""
    power = private(lambda x, p, *, times=1: times * (x**p).mean())
    assert power.error_at(50, 2, times=4) == pytest.approx(4 * power.error_at(50, 2), rel=1e-9)
    assert power.epsilon_for(50, p=2, times=4, error=0.1) > power.epsilon_for(50, p=2, error=0.1)


def test_an_error_that_is_out_of_reach_is_refused():
    """A user would wait forever for an epsilon that does not exist, or get one that does not do."""
    classic = private(np.mean, mechanism=Gaussian("classic"), delta=1e-6, epsilon=0.5)
    within = classic.error_at(50, epsilon=0.999)
    assert classic.epsilon_for(50, error=within) == pytest.approx(0.999, rel=1e-8)
    with pytest.raises(SettingsError, match=r"error=1e-06 is out of reach\. .*epsilon < 1") as raised:
        classic.epsilon_for(50, error=1e-6)
    assert str(raised.value).count("out of reach") == 1
    with pytest.raises(SettingsError, match="error=1e-250 is out of reach") as raised:
        private(np.mean).epsilon_for(50, error=1e-250)
    assert str(raised.value).count("out of reach") == 1
    with pytest.raises(SettingsError, match="out of range"):
        classic.error_at(50, epsilon=1.0)


def test_a_huge_error_takes_the_least_epsilon():
    """A user who does not care would get an error in place of the smallest epsilon there is."""
    mean = private(np.mean)
    epsilon = mean.epsilon_for(50, error=1e200)
    assert 0 < epsilon <= 1e-6 and mean.error_at(50, epsilon=epsilon) <= 1e200


@for_each(
    "error", [0, -1, math.inf, math.nan, True, "2", None, [2.0], np.array([2.0]), np.complex64(2)], ids=repr
)
def test_a_wrong_error_is_refused(error):
    """A user's mistake would give an epsilon that means nothing."""
    with pytest.raises(SettingsError, match="is not a distance"):
        least_epsilon(lambda epsilon: 1 / epsilon, error)


@for_each("epsilon", [0, -1, math.inf, math.nan, True, "1", [1.0]], ids=repr)
def test_a_wrong_epsilon_is_refused(epsilon):
    """A user's mistake would give an error that means nothing."""
    with pytest.raises(SettingsError, match="epsilon="):
        private(np.mean, epsilon=2).error_at(50, epsilon=epsilon)


def test_a_mechanism_of_ones_own():
    """A user's own mechanism would be taken for one whose noise is known."""

    @dataclasses.dataclass(frozen=True)
    class Mine:
        def norm(self, gap):
            return float(np.abs(gap).sum())

        def scale(self, sensitivity, epsilon, delta):
            return sensitivity / epsilon

        def release(self, vector, *, sensitivity, epsilon, delta, whole):
            return Laplace().release(
                vector, sensitivity=sensitivity, epsilon=epsilon, delta=delta, whole=whole
            )

    @dataclasses.dataclass(frozen=True)
    class WithError(Mine):
        def error(self, sensitivity, epsilon, delta, confidence):
            return -math.log(1 - confidence) * sensitivity / epsilon

    mine = private(np.mean, mechanism=Mine())
    with pytest.raises(SettingsError, match=r"Give it a method error"):
        mine.error_at(50)
    with pytest.raises(SettingsError, match=r"Give it a method error"):
        mine.epsilon_for(50, error=1.0)
    with pytest.raises(SettingsError, match="no interval"):
        mine.release(np.linspace(0, 1, 50)).interval()
    known = private(np.mean, mechanism=WithError())
    assert known.error_at(50) == pytest.approx(private(np.mean).error_at(50), rel=1e-4)
    assert known.error_at(50, epsilon=known.epsilon_for(50, error=0.7)) <= 0.7


class Doubled(Laplace):
    """A user's own mechanism, derived from one of ours, with another release."""

    def release(self, vector, /, **rest):
        return 2 * super().release(vector, **rest)


def test_a_class_made_of_one_of_ours_has_no_interval():
    """A user would read an interval for noise that their own mechanism does not add."""
    f = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), mechanism=Doubled(), store=None)(
        np.mean
    )
    with pytest.raises(SettingsError, match="no interval"):
        f.release(np.full(20, 0.5)).interval()
    with pytest.raises(SettingsError, match="how far off"):
        f.error_at(20)


def test_what_gamma_is_to_a_group():
    """Whoever reads gamma=0.05 must learn that a group of 5% may bear all of it."""
    release = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1))(np.mean).release(
        np.full(200, 0.5)
    )
    assert release.gamma_for(share=0.5) == 0.1
    assert release.gamma_for(share=0.01) == 1.0
    assert (
        "at most 10 of 200 people in expectation; a group of at most 5% of P may bear"
        in release.card().text()
    )
    with pytest.raises(SettingsError, match="share=2"):
        release.gamma_for(share=2)
    proven = privatize(epsilon=1, sensitivity=1 / 200, sampler=samplers.uniform(0, 1))(np.mean)
    plain = proven.release(np.full(200, 0.5))
    assert plain.gamma_for(share=1e-6) == 0.0
    assert "people in expectation" not in plain.card().text()
