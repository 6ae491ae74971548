"""The decorator keeps name and signature, makes answers private, and recalls only what is the same."""

import contextvars
import functools
import inspect
import pickle
import subprocess
import sys
import textwrap

import cloudpickle
import numpy as np
import pytest

from privatize import (
    Exponential,
    Laplace,
    Plan,
    Release,
    plan,
    privatize,
    samplers,
)
from privatize.errors import (
    ArgumentError,
    DataError,
    SettingsError,
)
from tests.function.privatized import PROMISE, Scaler, importable, unseen


class TestWrapper:
    def test_name_doc_signature(self):
        """Help, documentation tools and callers see the function they know."""
        assert importable.__name__ == "importable"
        assert importable.__doc__ == "Average values."
        assert str(inspect.signature(importable)) == "(values)"
        assert importable.__module__ == importable.__wrapped__.__module__ == "tests.function.privatized"
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
