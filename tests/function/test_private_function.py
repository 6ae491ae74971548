"""The decorator keeps name and signature, makes answers private, and recalls only what is the same."""

import contextvars
import dataclasses
import functools
import inspect
import itertools
import logging
import os
import pickle
import subprocess
import sys
import textwrap
import threading
import warnings
from collections import namedtuple
from dataclasses import dataclass

import cloudpickle
import numpy as np
import pytest
from scipy import stats

from privatize import (
    Exponential,
    Laplace,
    Plan,
    Release,
    Sensitivity,
    estimate_sensitivity,
    plan,
    privatize,
    samplers,
)
from privatize.errors import (
    ArgumentError,
    DataError,
    InfiniteSensitivityError,
    NotRememberedWarning,
    OutputError,
    PlanError,
    PrivateRunError,
    SettingsError,
    ZeroSensitivityError,
)
from privatize.function import question
from privatize.function.settings import Settings
from privatize.mechanisms import as_mechanism
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
NUMBERS = itertools.count()
PROMISE = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT}


@privatize(**PROMISE)
def importable(values):
    """Average values."""
    return values.mean()


def unseen():
    """Return an object for notes that a fingerprint does not see: of a logger, only the name counts."""
    notes = logging.getLogger(f"notes {next(NUMBERS)}")
    notes.list = []
    return notes


def counted(function):
    """Return a function that counts its runs in `.notes.list`."""
    notes = unseen()

    @functools.wraps(function, updated=())
    def run(*args, **kwargs):
        notes.list.append(1)
        return function(*args, **kwargs)

    run.notes = notes
    return run


def two_columns(n, rng):
    """Draw pairs of numbers."""
    x = rng.random(n)
    return x, x + rng.random(n)


class TestWrapper:
    def test_name_doc_signature(self):
        """Help, documentation tools and callers see the function they know."""
        assert importable.__name__ == "importable"
        assert importable.__doc__ == "Average values."
        assert str(inspect.signature(importable)) == "(values)"
        assert importable.__module__ == __name__
        assert importable.__wrapped__(np.ones(3)) == 1.0

    def test_repr_says_what_is_promised(self):
        """A person at a prompt sees the promise."""
        assert (
            repr(importable) == "<private importable(values): Laplace, epsilon=1, gamma=0.2, P=uniform(0, 1)>"
        )
        gaussian = importable.replace(mechanism="gaussian", delta=1e-6)
        assert "Gaussian, epsilon=1, delta=1e-06" in repr(gaussian)

    def test_plan_and_settings(self):
        """What it will do can be read before it does it."""
        assert importable.plan == plan(0.2) and isinstance(importable.plan, Plan)
        assert importable.settings.epsilon == 1 and importable.settings.mechanism == Laplace()
        with pytest.raises(AttributeError):
            importable.settings.epsilon = 100

    def test_replace(self):
        """Other settings make another function; this one stays."""
        other = importable.replace(epsilon=0.5, samples=500)
        assert (other.settings.epsilon, other.plan.m) == (0.5, 500)
        assert importable.settings.epsilon == 1
        with pytest.raises(SettingsError, match="'colour' is not a setting"):
            importable.replace(colour=1)
        unbounded = importable.replace(sampler=samplers.normal(0, 1))
        assert (importable.settings.domain, unbounded.settings.domain) == ("clip", "as-is")

    def test_pickle_by_reference(self):
        """An importable private function pickles as its name, so that workers get the same one."""
        data = pickle.dumps(importable)
        assert pickle.loads(data) is importable and len(data) < 100
        assert pickle.loads(cloudpickle.dumps(importable)) is importable

    def test_pickle_by_value(self):
        """A local private function is sent by cloudpickle, with its settings."""
        factor = 3
        local = privatize(**PROMISE)(lambda x: factor * x.mean())
        again = pickle.loads(cloudpickle.dumps(local))
        assert again.settings.gamma == 0.2
        assert again.__wrapped__(np.ones(4)) == 3

    def test_pickle_from_main_and_recursion(self):
        """A script's own private function reaches a worker, also if it calls itself."""
        code = """
            import pickle, cloudpickle, numpy as np
            from privatize import privatize, samplers
            @privatize(epsilon=1, gamma=.2, sampler=samplers.uniform(0, 1))
            def halves(x):
                return float(x[0]) if len(x) < 2 else (halves(x[::2]) + halves(x[1::2])) / 2
            assert pickle.loads(pickle.dumps(halves)) is halves
            again = pickle.loads(cloudpickle.dumps(halves))
            assert again is not halves
            assert isinstance(again(np.ones(8) / 2), float) and isinstance(halves(np.ones(8) / 2), float)
        """
        subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


class TestSettings:
    def test_there_is_one_list_of_options(self):
        """An option of privatize() that Settings does not have, or with another default, would be ignored."""
        options = {each.name: each for each in dataclasses.fields(Settings) if each.init}
        given = dict(inspect.signature(privatize).parameters)
        del given["function"], given["unknown"]
        assert set(given) == set(options)
        defaults = {name: each.default for name, each in options.items()}
        defaults |= {"epsilon": inspect.Parameter.empty}
        assert {name: each.default for name, each in given.items()} == defaults
        assert options["mechanism"].default == as_mechanism("laplace")

    @pytest.mark.parametrize("missing", ["epsilon", "gamma"])
    def test_the_promise_has_no_default(self, missing):
        """Nobody gets an epsilon or gamma that they did not write."""
        given = {k: v for k, v in PROMISE.items() if k != missing}
        with pytest.raises(SettingsError, match=f"{missing}="):
            privatize(**given)(np.mean)

    def test_there_is_no_default_p(self):
        """Nobody gets a P that neither they nor the owner of the data wrote."""
        mean = privatize(epsilon=1, gamma=0.1)(np.mean)
        for use in (lambda: mean(np.ones(9)), lambda: mean.estimate(9), lambda: mean.sample(9)):
            with pytest.raises(SettingsError, match="has no P: pass sampler="):
                use()

    @for_each(
        ("change", "message"),
        [
            ({"epsilon": 0}, "epsilon=0"),
            ({"epsilon": -1}, "epsilon=-1"),
            ({"epsilon": float("nan")}, "epsilon=nan"),
            ({"epsilon": float("inf")}, "epsilon=inf"),
            ({"epsilon": "1"}, "epsilon='1'"),
            ({"epsilon": 1e6}, "between 1e-10 and 100000"),
            ({"epsilon": True}, "epsilon=True"),
            ({"gamma": 0}, "gamma=0"),
            ({"gamma": 1}, "gamma=1"),
            ({"gamma": 0.001, "samples": 100}, "gamma=0.001 with samples=100 is out of reach"),
            ({"delta": 1e-6}, "delta=1e-06 has no use"),
            ({"delta": -1}, "delta=-1"),
            ({"mechanism": "gaussian"}, "delta=0"),
            ({"mechanism": "gauss"}, "mechanism='gauss'"),
            ({"mechanism": "exponential"}, "responses"),
            ({"bound": "chernoff"}, "bound='chernoff'"),
            ({"samples": 0}, "m=0"),
            ({"samples": "many"}, "m='many'"),
            ({"sampler": [1, 2, 3]}, "sampler="),
            ({"seed": -1}, "seed=-1"),
            ({"seed": "x"}, "seed='x'"),
            ({"domain": "wild"}, "domain='wild'"),
            ({"domain": "clip", "sampler": stats.norm()}, "needs a bounded P"),
            ({"min_sensitivity": 0}, "min_sensitivity=0"),
            ({"pair": 3}, "pair=3"),
            ({"colour": "red"}, "no argument 'colour'"),
        ],
    )
    def test_wrong_values_are_refused_at_decoration(self, change, message):
        """A mistake shows where it is written, with its value."""
        with pytest.raises(SettingsError, match="(?s)" + message.replace("(", r"\(")):
            privatize(**(PROMISE | change))

    def test_what_is_not_a_budget_is_refused(self):
        """Users would believe that answers are charged to something that is not a budget."""
        with pytest.raises(SettingsError, match="budget=1 is not a Budget"):
            privatize(**PROMISE, budget=1)

    def test_infeasible_plans_carry_their_numbers(self):
        """The error for an impossible gamma says what is possible."""
        with pytest.raises(PlanError) as caught:
            privatize(**(PROMISE | {"gamma": 0.05, "samples": 100}))
        assert caught.value.least_m == 113 and 0.0549 < caught.value.least_gamma < 0.055

    def test_forgotten_parentheses(self):
        """The error for @privatize without settings says what to write."""
        with pytest.raises(SettingsError, match="@privatize"):

            @privatize
            def f(x):
                return x

    def test_data_and_coins_must_name_parameters(self):
        """A misspelt parameter is found at decoration."""
        for wrong in ({"data": "values"}, {"coins": ("rng",)}, {"data": ("x", "y")}, {"data": ()}):
            with pytest.raises(SettingsError):
                privatize(**PROMISE, **wrong)(lambda x: x)


class TestRelease:
    def test_facts(self):
        """A release has the numbers of the promise and of the noise."""
        found = importable.release(np.full(100, 0.5))
        assert isinstance(found, Release)
        estimate = importable.estimate(100)
        assert (found.epsilon, found.delta, found.gamma) == (1, 0, 0.2)
        assert found.sensitivity == found.scale == estimate.value
        assert (found.n, found.m, found.k, found.bound) == (100, 79, 72, "tolerance")
        assert found.mechanism == "Laplace" and "epsilon=1" in repr(found)

    def test_raw_function_runs_once(self):
        """A release costs one evaluation on the private data, not two."""
        raw = counted(np.mean)
        f = privatize(**PROMISE)(raw)
        f.estimate(30)
        before = len(raw.notes.list)
        f(np.ones(30) / 2)
        f.release(np.ones(30) / 2)
        assert len(raw.notes.list) == before + 2

    def test_noise_has_the_promised_scale(self):
        """Answers scatter around the raw one like Laplace noise; false alarm 1e-6, over fresh noise."""
        f = privatize(**PROMISE, seed=1)(np.mean)
        scale = f.estimate(50).value
        answers = np.array([f(np.full(50, 0.25)) for _ in range(300)])
        assert stats.kstest((answers - 0.25) / scale, "laplace").pvalue > 1e-6

    def test_every_type_comes_back_as_itself(self):
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

    def test_dict_order_comes_from_calibration(self):
        """The order of a private dict's keys would give ranks away."""

        def ranked(x):
            return dict(sorted({"a": x[0], "b": x[1], "c": x[2]}.items(), key=lambda item: item[1]))

        f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1)(ranked)
        orders = {tuple(f(np.array(v))) for v in ([0.1, 0.5, 0.9], [0.9, 0.5, 0.1], [0.5, 0.9, 0.1])}
        assert len(orders) == 1

    def test_zero_sensitivity_releases_nothing(self):
        """A constant function is refused: zero noise is no privacy."""
        f = privatize(**PROMISE)(lambda x: 1.0)
        with pytest.raises(ZeroSensitivityError):
            f(np.ones(10) / 2)
        assert f.replace(min_sensitivity=0.1)(np.ones(10) / 2) != 1.0

    def test_failed_calibration_is_remembered(self):
        """Trying again is not a way to a luckier estimate."""
        raw = counted(lambda x: 1 / 0)
        f = privatize(**PROMISE)(raw)
        messages = set()
        for _ in range(3):
            with pytest.raises(InfiniteSensitivityError, match="ZeroDivisionError") as caught:
                f(np.ones(10) / 2)
            messages.add(str(caught.value))
        assert len(messages) == 1 and len(raw.notes.list) == 8

    def test_results_that_cannot_be_made_again(self):
        """Some of SciPy's results are named tuples with more inside: refused at once, with the fix."""
        for function in (stats.linregress, stats.pearsonr):
            f = privatize(epsilon=1, gamma=0.2, sampler=two_columns, data=("x", "y"))(function)
            with pytest.raises(OutputError, match="tuple"):
                f.estimate(30)

    def test_unreleasable_outputs(self):
        """Text, truth values and None are refused with the mechanism that fits."""
        for value, remedy in (
            ("yes", "Exponential"),
            (True, "int"),
            (None, "Return the answer"),
            (1j, "real"),
        ):
            with pytest.raises(OutputError, match=remedy):
                privatize(**PROMISE)(lambda x, value=value: value)(np.ones(10) / 2)


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


class TestMemory:
    def test_recalled_and_not_shared(self):
        """The same question is calibrated once; another n, argument or setting never shares it."""
        raw = counted(lambda x, q=0.5: float(np.quantile(x, q)))
        f = privatize(**PROMISE)(raw)
        first = f.estimate(30)
        assert isinstance(first, Sensitivity)
        runs = len(raw.notes.list)
        assert f.estimate(30) is first and f.estimate(n=30, q=0.5) is first and f.estimate(30, 0.5) is first
        f(np.ones(30) / 2)
        assert len(raw.notes.list) == runs + 1
        different = [f.estimate(31), f.estimate(30, q=0.9), f.replace(gamma=0.3).estimate(30)]
        assert len({id(e) for e in (first, *different)}) == 4

    def test_lists_and_arrays_do_not_share(self):
        """The container is part of an estimate's key."""
        f = privatize(**PROMISE)(lambda x: float(np.mean(x)))
        f(np.ones(10) / 2)
        f([0.5] * 10)
        assert len(f.calibrator.memory) == 2

    def test_changed_globals_closures_and_instances_are_misses(self):
        """A stale estimate would be too little noise, so whatever changes calibrates again."""
        state = {"factor": 1.0}
        closed = privatize(**PROMISE, seed=1)(lambda x: state["factor"] * x.mean())
        small = closed.estimate(20).value
        state["factor"] = 10.0
        assert closed.estimate(20).value == pytest.approx(10 * small)

        module = {"FACTOR": 1.0, "__name__": "__main__"}
        exec("def f(x):\n    return FACTOR * x.mean()", module)
        named = privatize(**PROMISE, seed=1)(module["f"])
        assert named.estimate(20).value == pytest.approx(small)
        module["FACTOR"] = 10.0
        assert named.estimate(20).value == pytest.approx(10 * small)

        scaler = Scaler(1.0)
        assert scaler.mean.estimate(20).value == pytest.approx(small)
        scaler.factor = 10.0
        assert scaler.mean.estimate(20).value == pytest.approx(10 * small)

    def test_what_cannot_be_encoded_is_not_remembered(self):
        """A generator in the closure cannot be encoded, so every call calibrates again, with a warning."""
        numbers = (i for i in range(3))
        raw = counted(lambda x: x.mean() if numbers else 0)
        f = privatize(**PROMISE)(raw)
        for _ in range(2):
            before = len(raw.notes.list)
            with pytest.warns(NotRememberedWarning, match="not be remembered"):
                f(np.ones(10) / 2)
            assert len(raw.notes.list) > before + 79
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(NotRememberedWarning):
                f(np.ones(10) / 2)

    def test_threads_get_one_estimate(self):
        """Concurrent first calls agree on one estimate."""
        f = privatize(**PROMISE)(np.mean)
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(f(np.ones(100) / 2))) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(answers) == len(set(answers)) == 8 and len(f.calibrator.memory) == 1


class Scaler:
    """A class with private methods of every kind."""

    offset = 0.25

    def __init__(self, factor):
        self.factor = factor

    @privatize(**PROMISE, seed=1)
    def mean(self, x):
        """Average, scaled."""
        return self.factor * x.mean()

    @privatize(**PROMISE)
    @staticmethod
    def static_under(x):
        return x.mean()

    @staticmethod
    @privatize(**PROMISE)
    def static_over(x):
        return x.mean()

    @privatize(**PROMISE)
    @classmethod
    def class_under(cls, x):
        return x.mean() + cls.offset

    @classmethod
    @privatize(**PROMISE)
    def class_over(cls, x):
        return x.mean() + cls.offset

    @privatize(**PROMISE)
    def __call__(self, x):
        return self.factor * x.mean()


class TestCallables:
    data = np.full(25, 0.5)

    def test_methods(self):
        """Methods of every kind are private, and know their instance or class."""
        s = Scaler(2.0)
        assert abs(s.mean(self.data) - 1.0) < 5
        assert abs(Scaler.mean(s, self.data) - 1.0) < 5
        assert s.mean.__doc__ == "Average, scaled." and s.mean.estimate(25).value > 0
        for method in (s.static_under, Scaler.static_under, s.static_over, Scaler.static_over):
            assert abs(method(self.data) - 0.5) < 5
        for method in (s.class_under, Scaler.class_under, s.class_over, Scaler.class_over):
            assert abs(method(self.data) - 0.75) < 5
        assert abs(s(self.data) - 1.0) < 5

    def test_third_party_callables(self):
        """numpy functions, builtins, partials and callable objects can be wrapped as they are."""
        for function in (
            np.mean,
            np.median,
            max,
            sum,
            functools.partial(np.quantile, q=0.5),
            functools.partial(np.mean, axis=0),
            Scaler(1.0).mean.__wrapped__,
        ):
            f = privatize(**PROMISE, min_sensitivity=1e-3)(function)
            assert isinstance(float(f(self.data)), float)

    def test_callable_object(self):
        """An object with __call__ keeps its name in messages."""

        class Trimmed:
            def __call__(self, x, cut=0.1):
                return float(np.sort(x)[2:-2].mean())

        f = privatize(**PROMISE)(Trimmed())
        assert f.__name__ == "Trimmed" and isinstance(f(self.data), float)

    def test_arguments(self):
        """The dataset may be any parameter, by position or name, beside every other kind."""

        @privatize(**PROMISE, data="values")
        def f(power, /, values, *more, scale=1.0, **rest):
            return scale * float((values**power).mean()) + sum(more) + rest.get("plus", 0)

        assert isinstance(f(2, self.data), float)
        assert isinstance(f(2, self.data, 1, 2, scale=3.0, plus=1), float)
        assert isinstance(f(2, values=self.data), float)
        assert f.estimate(25, 2, scale=3.0).value == pytest.approx(
            3 * f.replace(seed=1).estimate(25, 2).value, rel=1
        )

    @pytest.mark.parametrize("args", [(), (1, 2, 3), (np.ones(3), 0.5, 7)])
    def test_wrong_arguments(self, args):
        """The error for wrong arguments says which ones fit."""
        f = privatize(**PROMISE)(lambda x, q=1: x.mean() * q)
        with pytest.raises((ArgumentError, DataError)):
            f(*args)
        with pytest.raises(ArgumentError, match="do not fit"):
            f(np.ones(3), wrong=1)
        with pytest.raises(ArgumentError, match="'q'"):
            privatize(**PROMISE)(lambda x, q: x.mean() * q)(np.ones(3))

    def test_lazy_functions_are_refused(self):
        """Generators and coroutines have no answer to add noise to."""

        def generator(x):
            yield x

        async def coroutine(x):
            return x

        async def both(x):
            yield x

        for function in (generator, coroutine, both, functools.partial(coroutine)):
            with pytest.raises(SettingsError, match=r"Return a list|plain function"):
                privatize(**PROMISE)(function)
        with pytest.raises(SettingsError, match="cannot be called"):
            privatize(**PROMISE)(3)

    def test_coins(self):
        """A parameter named in coins= gets the same public generator at every evaluation."""
        seen = unseen()

        @privatize(**PROMISE, coins=("rng",), min_sensitivity=1e-9)
        def f(x, rng):
            seen.list.append(rng.random())
            return float(x[rng.permutation(len(x))[:5]].mean())

        f(self.data)
        assert len(set(seen.list)) == 1 and len(seen.list) > 79
        with pytest.raises(ArgumentError, match="a seeded generator as"):
            f(self.data, rng=np.random.default_rng())

    def test_global_generators_have_the_same_seed_on_private_data(self):
        """The private run would draw other random numbers than calibration, so noise could be too little."""
        seen = unseen()
        f = privatize(**PROMISE)(lambda x: seen.list.append(np.random.random()) or float(x.mean()))
        np.random.seed(1)
        expected = np.random.RandomState(1).random_sample()
        f(self.data)
        assert len(set(seen.list)) == 1
        assert np.random.random() == expected

    def test_a_function_that_calls_itself(self):
        """Recursion runs raw inside, and gets its noise once, outside."""

        @privatize(**PROMISE)
        def halves(x):
            return float(x[0]) if len(x) < 2 else (halves(x[::2]) + halves(x[1::2])) / 2

        assert isinstance(halves(np.ones(16) / 2), float)
        assert halves.estimate(16).value <= 1 / 16

    def test_pair(self):
        """Amortized evaluation goes through the decorator too."""

        def pair(x, position, replacement):
            return x.mean(), x.mean() + (replacement - x[position]) / len(x)

        f = privatize(**PROMISE, pair=pair, seed=1)(np.mean)
        assert np.allclose(f.estimate(30).gaps, f.replace(pair=None).estimate(30).gaps)

    def test_exponential_with_other_arguments(self):
        """The response is the parameter that the call leaves open."""

        @privatize(**PROMISE, mechanism=Exponential(responses=[0.0, 0.5, 1.0]))
        def closeness(x, response, power=2):
            return -(abs(x.mean() - response) ** power)

        assert closeness(self.data) in (0.0, 0.5, 1.0)
        assert closeness(self.data, power=1) in (0.0, 0.5, 1.0)
        assert closeness.estimate(25).value != closeness.estimate(25, power=1).value


def test_private_failure_points_to_public_data():
    """The error of a function that fails on private data tells how to go on."""

    @privatize(**PROMISE, domain="as-is")
    def picky(x):
        if x.max() > 1:
            raise ValueError(x)
        return x.mean()

    with pytest.raises(PrivateRunError, match=r"picky\.__wrapped__\(picky\.sample\(n\)\)"):
        picky(np.array([0.5, 2.0]))


class TestTwice:
    inner = staticmethod(privatize(**(PROMISE | {"epsilon": 100}))(lambda x: x.mean()))

    def test_what_is_private_already_is_refused(self):
        """It would be unclear which of the two promises holds."""
        for outer in (self.inner, functools.partial(self.inner), functools.wraps(self.inner)(lambda x: x[0])):
            with pytest.raises(SettingsError, match="private already"):
                privatize(**PROMISE)(outer)

    def test_attributes_of_a_callable_do_not_replace_ours(self):
        """An object with an attribute of the same name as one of our methods stays harmless."""

        class Odd:
            def __init__(self):
                self.estimate, self._settings, self._memory = 5, "mine", 7

            def __call__(self, x):
                return float(x.mean())

        f = privatize(**PROMISE)(Odd())
        assert f.estimate(10).n == 10 and f.settings.epsilon == 1


class TestRawMode:
    """Inside its own evaluation a function runs raw; nothing may make later calls raw."""

    def test_a_copied_context_does_not_make_calls_raw(self):
        """A context that was copied during an evaluation does not make later calls raw."""
        contexts = unseen()

        @privatize(**PROMISE)
        def f(x):
            contexts.list.append(contextvars.copy_context())
            return float(x.mean())

        data = np.full(20, 0.125)
        f(data)
        assert all(context.run(f, data) != 0.125 for context in contexts.list[-3:])

    def test_an_interrupt_does_not_make_calls_raw(self):
        """Ctrl-C at any moment of a call leaves the function private and the generators restored.

        In a process of its own: an interrupt inside the coverage tracer would leave that stuck.
        """
        code = """
            import random, signal
            import numpy as np
            from privatize import privatize, samplers
            f = privatize(epsilon=1, gamma=.2, sampler=samplers.uniform(0, 1))(lambda x: float(x.sum()))
            data = np.full(20, 0.25)
            f(data)
            bits, state = np.random.mtrand.get_bit_generator(), random.getstate()
            signal.signal(signal.SIGALRM, signal.default_int_handler)
            interrupted = 0
            for i in range(1500):
                try:
                    signal.setitimer(signal.ITIMER_REAL, 1e-5 + 5e-7 * i)
                    f(data)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                except KeyboardInterrupt:
                    interrupted += 1
                signal.setitimer(signal.ITIMER_REAL, 0)
                assert np.random.mtrand.get_bit_generator() is bits
                assert random.getstate() == state
                assert f(data) != 5.0
            print(interrupted)
        """
        done = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            check=True,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert int(done.stdout) > 50

    def test_replace_of_a_function_that_calls_itself(self):
        """With other settings the inner calls are raw as well."""

        @privatize(**PROMISE)
        def halves(x):
            return float(x[0]) if len(x) < 2 else (halves(x[::2]) + halves(x[1::2])) / 2

        assert isinstance(halves.replace(epsilon=2)(np.ones(8) / 2), float)


def test_bound_methods_pickle():
    """A method reaches a worker together with its instance."""
    again = pickle.loads(pickle.dumps(Scaler(3.0).mean))
    assert again.__wrapped__(np.ones(2)) == 3.0 and again.settings == Scaler.mean.settings


def test_a_function_whose_parameter_is_called_n():
    """The number of records comes first; a parameter of the same name is passed by name."""
    f = privatize(**PROMISE)(lambda x, *, n: float(x.mean()) * n)
    assert f.estimate(20, n=3).n == 20
    with pytest.raises(ArgumentError, match="number of records"):
        f.estimate()


def test_clip_where_it_cannot_be_done_is_refused():
    """A support that cannot be clipped to would be ignored."""
    aligned = samplers.from_function(lambda n, rng: (rng.random(n), rng.random(n)), support=(0, 1))
    f = privatize(**(PROMISE | {"sampler": aligned}), data=("x", "y"))(lambda x, y: float(x @ y))
    with pytest.raises(SettingsError, match=r"support=.*one for each part"):
        f(np.ones(3), np.ones(3))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # forking is what is tested
def test_a_child_forked_during_a_calibration_is_not_stuck():
    """The child's lock is its own: the thread that holds the parent's does not exist there."""
    ready, go = threading.Event(), threading.Event()

    def slow(x):
        ready.set()
        go.wait(120)
        return float(x.mean())

    notes = threading.Thread(
        target=lambda: estimate_sensitivity(slow, n=5, sampler=UNIT, norm="l1", plan=plan(0.5, "least"))
    )
    notes.start()
    ready.wait(120)
    child = os.fork()
    if child == 0:
        importable(np.full(7, 0.5))
        os._exit(17)
    go.set()
    notes.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17


class Switching:
    """A sampler that cannot be compared (it has an open generator), and may draw another kind of records."""

    def __init__(self):
        self.dtype, self.open = float, (i for i in range(3))

    def draw(self, n, rng):
        return rng.integers(0, 100, n).astype(self.dtype)


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
def test_a_p_that_cannot_be_compared_is_drawn_from_again():
    """Private data would be converted to what P used to draw, and calibration run on what it draws now."""
    notes = logging.getLogger("switching notes")
    notes.kinds = []

    def mean(x):
        notes.kinds.append(x.dtype.kind)
        return float(x.mean())

    P = Switching()
    f = privatize(epsilon=1, gamma=0.3, sampler=P, workers="inline", store=None)(mean)
    for P.dtype, kind in ((float, "f"), (int, "i")):
        notes.kinds.clear()
        f(np.arange(20.5))
        assert set(notes.kinds) == {kind}


@pytest.mark.parametrize("library", ["numpy", "pandas"])
def test_another_version_of_what_the_function_gets_is_a_miss(library, monkeypatch):
    """A function that only calls a frame's methods would keep its estimate after an update of the library."""
    pytest.importorskip(library)
    P = samplers.table(a=samplers.uniform(0, 1))
    first = privatize(epsilon=1, gamma=0.3, sampler=P, seed=1)(lambda d: float(d.sum().iloc[0]))
    first.estimate(10)
    assert first.remembers(10)
    real = question.origin
    monkeypatch.setattr(question, "origin", lambda name: "another" if name == library else real(name))
    assert not first.remembers(10)


class Moved:
    """A sampler of the user's own, whose support can change."""

    def __init__(self):
        self.support = (0.0, 10.0)

    def draw(self, n, rng):
        return rng.random(n)


@pytest.mark.parametrize("replaced", [False, True])
def test_records_are_clipped_to_the_support_that_p_has_now(replaced):
    """A P that was narrowed would be calibrated, while private records are still clipped to the wide one."""
    sampler = Moved()
    private = privatize(epsilon=1000.0, gamma=0.2, sampler=sampler, seed=1, store=None, workers="inline")(
        _mean_of
    )
    assert private(np.full(50, 100.0)) > 5
    sampler.support = (0.0, 1.0)
    again = private.replace(epsilon=900.0) if replaced else private
    assert again(np.full(50, 100.0)) < 2


def _mean_of(x):
    return float(x.mean())
