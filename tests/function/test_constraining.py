"""Answers are made valid after their noise: for free, in their own form, and no paid answer is lost."""

import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

from privatize import Bernstein, Blocks, Budget, Exponential, privatize, samplers, sums
from privatize.errors import CalibrationError, ConstraintWarning, DataError, SettingsError
from privatize.function.box import Box
from tests.cases import for_each
from tests.function.catalogued import ONES, budget, catalogue, sealed
from tests.function.privatized import counted, unseen
from tests.function.released import bits
from tests.function.sentinels import PRIVATE, holds_sentinel

UNIT = samplers.uniform(0, 1)
TABLE = samplers.table({"a": UNIT, "b": UNIT, "c": UNIT}, frame="pandas")
QUICK = {"epsilon": 0.1, "gamma": 0.2, "store": None, "workers": "inline", "seed": 1}
EDGES = [0, 0.25, 0.5, 0.75, 1]
NUMBERS = np.linspace(0, 1, 40)


def numbers(function, constraints=None, **more):
    """Return a private function of numbers, with much noise."""
    return privatize(**(QUICK | {"sampler": UNIT, "constraints": constraints} | more))(function)


def histogram(x):
    return np.histogram(x, EDGES)[0]


def alive(x):
    return np.array([(x > limit).mean() for limit in (0.2, 0.4, 0.6, 0.8)])


# --- what answers are ------------------------------------------------------------------------------


def test_a_matrix_of_correlations_as_a_frame():
    """A user's matrix could not be decomposed, or would have lost its labels."""
    private = privatize(**QUICK, sampler=TABLE, constraints="correlations")(lambda d: d.corr())
    data = TABLE.draw(100, np.random.default_rng(0))
    with bits(1):
        release = private.release(data)
    found = release.value
    assert list(found.columns) == list(found.index) == ["a", "b", "c"]
    assert (np.diag(found) == 1).all() and np.allclose(found, found.T)
    assert np.linalg.eigvalsh(found).min() > -1e-9
    raw = release.unconstrained
    assert isinstance(raw, pd.DataFrame) and not np.allclose(raw, found) and not np.allclose(raw, raw.T)


def test_a_survival_curve():
    """A curve would rise, or leave [0, 1]."""
    with bits(2):
        release = numbers(alive, "survival").release(NUMBERS)
    found = release.value
    assert (np.diff(found) <= 0).all() and found.min() >= 0 and found.max() <= 1
    assert not np.array_equal(found, release.unconstrained)


def test_parts_of_a_dict():
    """Standard errors would be negative, or coefficients would be cut as well."""

    def fit(x):
        return {"coef": np.array([x.mean(), -x.mean()]), "se": np.array([0.0, x.std()])}

    with bits(3):
        release = numbers(fit, {"se": "positive"}).release(NUMBERS)
    assert release.value["coef"] is not None and (release.value["se"] >= 0).all()
    assert np.array_equal(release.value["coef"], release.unconstrained["coef"])
    assert (release.unconstrained["se"] < 0).any() and list(release.value) == ["coef", "se"]


@for_each(
    "private",
    [
        numbers(histogram, "positive"),
        privatize(epsilon=0.05, constraints="positive")(sums.histogram(EDGES)),
        numbers(histogram, "positive", gamma=None, sensitivity=2.0),
    ],
)
def test_counts(private):
    """A histogram would have negative counts, or fractions, with a sampled or with a proven bound."""
    with bits(4):
        release = private.release(NUMBERS[:4])
    assert release.value.dtype.kind == "i" and release.value.min() == 0 > release.unconstrained.min()
    assert np.array_equal(release.value, np.maximum(release.unconstrained, 0))


def test_blocks():
    """The answer of a function on blocks would not be made valid."""
    private = privatize(epsilon=1, mechanism=Blocks([0.0] * 4, [1.0] * 4), constraints={0: lambda x: 7.0})
    found = private(lambda x: [0.1, 0.2, 0.3, 0.4]).release(NUMBERS)
    assert found.value[0] == 7 and found.value[1:] == found.unconstrained[1:]


def test_members_of_a_catalogue():
    """A question of a catalogue would have other answers than the same function alone."""
    made = catalogue()
    made.add(histogram, constraints="positive")
    made.add(sums.histogram(EDGES), name="plain", constraints="positive")
    made.calibrate()
    assert "made valid by positive" in made.histogram.card().text()
    with bits(5):
        for member in (made.histogram, made.plain):
            release = member.release(epsilon=0.0005)
            assert release.value.min() == 0 > release.unconstrained.min() and release.catalogue == made.name
        assert made.histogram(epsilon=0.0005).min() >= 0


def test_nothing_by_default():
    """Somebody who needs unbiased answers would get answers that were moved."""
    with bits(4):
        release = numbers(histogram).release(NUMBERS[:4])
    assert release.value.min() < 0 and release.unconstrained is None and release.constraints == ""


# --- what is said about them -----------------------------------------------------------------------


def test_intervals_are_around_the_answer_before():
    """An interval around numbers that were moved would miss the raw answer too often."""
    with bits(4):
        moved = numbers(histogram, "positive").release(NUMBERS[:4])
    with bits(4):
        plain = numbers(histogram).release(NUMBERS[:4])
    assert np.array_equal(moved.unconstrained, plain.value)
    for mine, other in zip(moved.interval(0.9), plain.interval(0.9), strict=True):
        assert np.array_equal(mine, other)
    assert np.array_equal(moved.expected_error, plain.expected_error)
    assert moved._chart() == plain._chart()


def test_it_is_said():
    """A reader of an answer would not know that it was moved."""
    private = numbers(histogram, "positive")
    release = private.release(NUMBERS)
    assert "made valid by positive" in repr(release) and "positive, after the noise" in release.card().text()
    assert "made valid by positive" in private._repr_html_()
    assert pickle.loads(pickle.dumps(release)).constraints == "positive"


# --- what it costs ---------------------------------------------------------------------------------


def test_the_same_estimate_serves():
    """Other constraints would cost another calibration, and another gamma."""
    function = counted(alive)
    private = numbers(function, "survival", store="memory")
    private.estimate(40)
    runs = len(function.notes.list)
    for changed in (private.replace(constraints=None), private.replace(constraints=lambda curve: curve)):
        assert changed.remembers(40) and changed.estimate(40) == private.estimate(40)
    again = numbers(function, store="memory")
    assert again.remembers(40) and len(function.notes.list) == runs


def test_it_can_be_pickled():
    """A private function in another process would give other answers."""
    private = pickle.loads(pickle.dumps(privatize(**QUICK, sampler=UNIT, constraints="positive")(np.mean)))
    assert private.settings.constraints.words == "positive"


def test_inner_calls_are_raw():
    """A function that calls itself would be made valid inside, and calibrated to that."""
    seen = unseen()

    def halved(x):
        return x.mean() if len(x) < 30 else private(x[:20]) / 2

    def noted(answer):
        seen.list.append(answer)
        return 3.0

    private = numbers(halved, noted)
    assert private.release(NUMBERS).value == 3
    assert len(seen.list) == 2  # on made-up numbers, and on the answer


def test_workers_do_not_need_it():
    """A constraint that cannot be sent would make calibration in other processes impossible."""
    numbered = (each for each in range(9))  # a generator cannot be pickled

    def mean(x):
        return x.mean() if len(x) < 30 else private(x[:20]) / 2

    private = numbers(mean, lambda answer: abs(answer) + next(numbered), workers=2)
    assert private.release(NUMBERS).value >= 1


# --- mistakes --------------------------------------------------------------------------------------

WRONG = ["correlations", {"a": "positive"}, lambda h: h[:2], lambda h: 1 / 0]


@for_each("constraints", WRONG)
@for_each("proven", [False, True])
def test_mistakes_cost_nothing(constraints, proven):
    """A mistake would be found when the answer is paid for."""
    own = Budget("constraints", epsilon=1, gamma=0.5, ledger="memory")
    if proven:
        private = privatize(epsilon=0.1, constraints=constraints, budget=own)(sums.histogram(EDGES))
    else:
        private = numbers(histogram, constraints, budget=own)
    for use in (lambda: private.estimate(40), lambda: private(NUMBERS)):
        with pytest.raises(SettingsError, match="constraints= does not fit"):
            use()
    assert own.spent.epsilon == 0


@for_each("mechanism", [Exponential(responses=[1, 2]), Bernstein()])
def test_answers_without_noise_on_numbers(mechanism):
    """A constraint for numbers would get a response, or a polynomial."""
    with pytest.raises(SettingsError, match="releases something else"):
        privatize(**QUICK, sampler=UNIT, mechanism=mechanism, constraints="positive")


def test_mistakes_in_a_catalogue():
    """A question would be declared for good, and then never be answered."""
    own = budget()
    made = catalogue(sealed(budget=own))
    made.add(histogram, name="sampled", constraints="correlations")
    made.add(sums.histogram(EDGES), name="plain", constraints={"a": "positive"})
    with pytest.raises(CalibrationError, match=r"sampled: constraints= .* plain: constraints="):
        made.calibrate()
    assert own.spent.gamma == 0
    with pytest.raises(SettingsError, match="option of add"):
        catalogue().add(lambda x, constraints: x.mean(), name="f")


def test_a_paid_answer_is_not_lost():
    """A function that fails on some numbers would cost the answer that was paid for."""

    def fragile(counts):
        if counts.min() < 0:
            raise ValueError(f"negative: {counts.min()}")
        return counts

    private = numbers(histogram, fragile)
    with bits(4), pytest.warns(ConstraintWarning, match="ValueError: negative: -") as caught:
        release = private.release(NUMBERS[:4])
    assert release.value.min() < 0 and release.unconstrained is None and release.constraints == ""
    assert caught[0].filename == __file__
    with bits(4), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConstraintWarning) as raised:
            private(NUMBERS[:4])
    assert np.array_equal(raised.value.answer, release.value)


def test_it_must_not_see_the_data():
    """The raw answer, or a bound of the private data, would be published without noise."""
    for private in (
        numbers(histogram, lambda counts: np.minimum(counts, histogram(ONES).max())),
        privatize(epsilon=1, constraints=lambda counts: counts + len(ONES))(sums.histogram(EDGES)),
    ):
        with pytest.raises(DataError, match="can be reached"):
            private(ONES)
        private(NUMBERS)


def test_nothing_private_is_left_when_it_runs():
    """A function that logs where it was called from would log the data, or the raw answer."""
    seen = unseen()

    def noted(answer):
        seen.list.clear()  # the last answer is the private one
        frame = sys._getframe(1)
        while frame is not None:
            if frame.f_globals.get("__name__", "").startswith("privatize."):
                seen.list += [(frame.f_code.co_qualname, value) for value in frame.f_locals.values()]
            frame = frame.f_back
        return answer

    numbers(lambda x: np.clip(x, 0, 1).mean(), noted, domain="as-is").release(PRIVATE)
    assert {"made_valid", "released", "PrivateFunction.release"} <= {name for name, _ in seen.list}
    for _, value in seen.list:
        parts = [getattr(value, slot) for slot in Box.__slots__] if isinstance(value, Box) else [value]
        assert not any(map(holds_sentinel, parts))
