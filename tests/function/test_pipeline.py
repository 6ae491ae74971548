"""Private data is converted to P's kind, seen by the function once, and released with the promised noise."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from privatize import (
    privatize,
    samplers,
)
from privatize.errors import (
    DataError,
    OutputError,
    SettingsError,
)
from tests.cases import for_each
from tests.function.privatized import PROMISE, UNIT, counted, importable, unseen


def two_columns(n, rng):
    """Draw pairs of numbers."""
    x = rng.random(n)
    return x, x + rng.random(n)


class TestData:
    def test_clipping_to_the_support(self):
        """Records outside P's support are clipped to it, each by itself; domain="as-is" leaves them."""
        seen = unseen()

        def spy(x):
            seen.list.append(x.copy())
            return x.mean()

        f = privatize(**PROMISE)(spy)
        f(np.array([-5.0, 0.5, 7.0, np.nan]))
        assert np.array_equal(seen.list[-1], [0.0, 0.5, 1.0, 0.5])
        f.replace(domain="as-is")(np.array([-5.0, 0.5, 7.0, 0.1]))
        assert np.array_equal(seen.list[-1], [-5.0, 0.5, 7.0, 0.1])

    def test_private_data_is_not_changed(self):
        """A function that sorts in place sorts a copy."""

        def in_place(x):
            x.sort()
            x[0] = 0.5
            return x.mean()

        data = np.array([0.9, 0.1, 0.5])
        privatize(**PROMISE)(in_place)(data)
        privatize(**PROMISE, domain="as-is")(in_place)(data)
        assert np.array_equal(data, [0.9, 0.1, 0.5])
        records = [0.9, 0.1, 0.5]
        privatize(**PROMISE)(lambda xs: xs.sort() or xs[1])(records)
        assert records == [0.9, 0.1, 0.5]

    def test_integers_for_a_float_sampler_and_back(self):
        """Ages are integers and P may be continuous: the data is cast to what P draws."""
        seen = unseen()
        spy = lambda x: seen.list.append(x.dtype) or float(x.mean())  # noqa: E731
        privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 100))(spy)(np.arange(50))
        assert set(seen.list) == {np.dtype(float)}
        seen.list.clear()
        privatize(epsilon=1, gamma=0.2, sampler=stats.randint(0, 100))(spy)(np.linspace(0, 99, 50))
        assert set(seen.list) == {np.dtype(np.int64)}

    def test_lists_are_calibrated_as_lists(self):
        """A function of lists runs on lists in calibration too."""
        seen = unseen()

        def total(values):
            seen.list.append((type(values), type(values[0])))
            return sum(values) / len(values)

        assert isinstance(privatize(**PROMISE)(total)([0.1, 0.9, 1]), float)
        assert set(seen.list) == {(list, float)}

    def test_aligned_arguments(self):
        """X and y are one dataset, by position or by name, in any order."""

        def xy(n, rng):
            return rng.random((n, 2)), rng.integers(0, 2, n)

        @privatize(epsilon=1, gamma=0.2, sampler=xy, data=("X", "y"))
        def f(scale, y, X):
            assert X.shape == (len(y), 2)
            return scale * float(X[y == 1].sum()) / len(y)

        X, y = xy(40, np.random.default_rng(1))
        assert isinstance(f(2.0, y, X), float)
        assert isinstance(f(X=X, y=y, scale=2.0), float)
        assert f.estimate(40, 2.0).n == 40
        with pytest.raises(DataError, match="records"):
            f(2.0, y[:-1], X)

    @for_each(
        "wrong",
        [
            np.zeros((5, 2)),
            np.array(["a", "b"]),
            np.array(3.0),
            "text",
            {"a": 1},
            5,
            None,
            (1, 2),
            {1, 2},
            [],
        ],
    )
    def test_data_that_P_cannot_draw(self, wrong):
        """A dataset of another kind is refused before anything is run."""
        raw = counted(lambda x: 0.0)
        with pytest.raises(DataError):
            privatize(**PROMISE)(raw)(wrong)
        assert len(raw.notes.list) == 0

    def test_sample_is_public_data(self):
        """A failure can be reproduced on data that may be looked at."""
        assert importable.sample(20).shape == (20,)
        assert np.array_equal(importable.sample(20, seed=3), importable.sample(20, seed=3))
        assert 0 < importable.__wrapped__(importable.sample(20)) < 1


def test_clip_where_it_cannot_be_done_is_refused():
    """A support that cannot be clipped to would be ignored."""
    aligned = samplers.from_function(lambda n, rng: (rng.random(n), rng.random(n)), support=(0, 1))
    f = privatize(**(PROMISE | {"sampler": aligned}), data=("x", "y"))(lambda x, y: float(x @ y))
    with pytest.raises(SettingsError, match=r"support=.*one for each part"):
        f(np.ones(3), np.ones(3))


def test_raw_function_runs_once():
    """A release costs one evaluation on the private data, not two."""
    raw = counted(np.mean)
    f = privatize(**PROMISE)(raw)
    f.estimate(30)
    before = len(raw.notes.list)
    f(np.ones(30) / 2)
    f.release(np.ones(30) / 2)
    assert len(raw.notes.list) == before + 2


def test_noise_has_the_promised_scale():
    """Answers scatter around the raw one like Laplace noise; false alarm 1e-6, over fresh noise."""
    f = privatize(**PROMISE, seed=1)(np.mean)
    scale = f.estimate(50).value
    answers = np.array([f(np.full(50, 0.25)) for _ in range(300)])
    assert stats.kstest((answers - 0.25) / scale, "laplace").pvalue > 1e-6


def test_every_type_comes_back_as_itself():
    """Callers need not know that their function became private."""
    Point = namedtuple("Point", "x y")

    @dataclass
    class Summary:
        mean: float
        counts: np.ndarray

    cases = {
        "float": lambda x: float(x.mean()),
        "int": lambda x: int((x > 0.5).sum()),
        "float32": lambda x: np.float32(x.mean()),
        "array": lambda x: np.histogram(x, [0, 0.5, 1])[0],
        "matrix": lambda x: np.outer([1.0, 2.0], [x.mean(), x.std()]),
        "dict": lambda x: {"mean": x.mean(), "n": int((x > 0.5).sum())},
        "list": lambda x: [x.min(), [x.max()]],
        "tuple": lambda x: (x.min(), x.max()),
        "namedtuple": lambda x: Point(x.min(), x.max()),
        "dataclass": lambda x: Summary(float(x.mean()), np.histogram(x, [0, 0.5, 1])[0]),
    }
    data = np.random.default_rng(1).random(60)
    for name, function in cases.items():
        raw, found = function(data), privatize(**PROMISE, min_sensitivity=1e-3)(function)(data)
        assert type(found) is type(raw), name
        if isinstance(raw, np.ndarray):
            assert found.dtype == raw.dtype and found.shape == raw.shape
    assert isinstance(found.counts, np.ndarray) and found.counts.dtype == np.int64


def test_dict_order_comes_from_calibration():
    """The order of a private dict's keys would give ranks away."""

    def ranked(x):
        return dict(sorted({"a": x[0], "b": x[1], "c": x[2]}.items(), key=lambda item: item[1]))

    f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1)(ranked)
    orders = {tuple(f(np.array(v))) for v in ([0.1, 0.5, 0.9], [0.9, 0.5, 0.1], [0.5, 0.9, 0.1])}
    assert len(orders) == 1


def test_results_that_cannot_be_made_again():
    """Some of SciPy's results are named tuples with more inside: refused at once, with the fix."""
    for function in (stats.linregress, stats.pearsonr):
        f = privatize(epsilon=1, gamma=0.2, sampler=two_columns, data=("x", "y"))(function)
        with pytest.raises(OutputError, match="tuple"):
            f.estimate(30)


def test_unreleasable_outputs():
    """Text, truth values and None are refused with the mechanism that fits."""
    for value, remedy in (
        ("yes", "Exponential"),
        (True, "int"),
        (None, "Return the answer"),
        (1j, "real"),
    ):
        with pytest.raises(OutputError, match=remedy):
            privatize(**PROMISE)(lambda x, value=value: value)(np.ones(10) / 2)
