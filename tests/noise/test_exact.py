"""Noise is exact: the filter's error is proven, ties are decided in integers, nothing wraps or buffers."""

import asyncio
import contextvars
import math
import multiprocessing
import os
import random
import threading
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest

from privatize import Bernstein, Gaussian, Laplace, privatize, samplers
from privatize.errors import InsecureNoiseWarning
from privatize.mechanisms.weighted import Weighted
from privatize.noise import exact as discrete
from privatize.noise import grid as noise
from privatize.testing import insecure_noise
from tests.cases import for_each

getcontext().prec = 80


def exact_exp(num, den):
    """Return exp(-num/den) to 80 digits, by the standard library."""
    return (-Decimal(num) / Decimal(den)).exp()


def fed(*words):
    """Return a stream whose next words are given."""
    stream = discrete.Stream()
    stream._ready = list(reversed(words))
    return stream


def test_filter_error_is_within_its_proof():
    """If exp() were off by more than 2^-48, the filter could decide wrongly without noticing."""
    rng = np.random.default_rng(2)
    x = np.concatenate([rng.random(3000), 63.9 * rng.random(3000), np.arange(0, 64, 1 / 256)])
    found = discrete._exps(x)
    for value, at in zip(found.tolist(), x.tolist(), strict=True):
        assert abs(Decimal(value) - (-Decimal(at)).exp()) < Decimal(2) ** -50
        assert discrete._exp(at) == value  # both paths compute the same


@pytest.mark.parametrize("precision", [1, 10, 63, 128, 200])
def test_exp_bounds_enclose(precision):
    """The integer bounds contain the true value, and closely."""
    rng = random.Random(3)
    for _ in range(200):
        den = rng.randrange(1, 1 << rng.randrange(1, 90))
        num = rng.randrange(0, 40 * den)
        low, high = discrete.exp_bounds(num, den, precision)
        true = exact_exp(num, den) * 2**precision
        assert low <= true <= high
        assert high - low <= 2
    assert discrete.exp_bounds(10**30, 1, precision) == (0, 1)
    assert discrete.exp_bounds(0, 5, precision)[1] >= 2**precision


def test_cuts_are_the_floors():
    """The constants that V and k are read from are right to the last bit."""
    cuts, array = discrete._laplace_cuts()
    assert cuts == [int(exact_exp(j, 1) * 2**63) for j in range(43, 0, -1)] == array.tolist()
    weights = [exact_exp(i * i, 2) for i in range(30)]
    expected = [int(sum(weights[k:]) / sum(weights) * 2**63) for k in range(10, 0, -1)]
    assert discrete._normal_cuts()[0] == expected


def test_ties_are_decided_by_further_bits():
    """When the first bits equal the constant's, the next ones decide, as in an infinite expansion."""
    true = exact_exp(1, 3)
    prefix = int(true * 2**20)
    rest = int((true * 2**20 - prefix) * 2**64)
    for word, below in ((rest - 1, True), (rest + 1, False)):
        assert discrete._below_exp(prefix, 20, 1, 3, fed(word)) is below
    assert discrete._below_exp(prefix - 1, 20, 1, 3, discrete.Stream())
    assert not discrete._below_exp(prefix + 1, 20, 1, 3, discrete.Stream())


def test_geometric_at_and_beyond_the_cuts():
    """V is right at every cut, on both sides of a tie, and past the last cut."""
    cuts, _ = discrete._laplace_cuts()
    for i, cut in enumerate(cuts):
        j = 43 - i
        assert discrete._geometric(cut - 1, discrete.Stream()) >= j
        assert discrete._geometric(cut + 1, discrete.Stream()) == j - 1 or cut + 1 in cuts
    j, cut = 5, cuts[43 - 5]
    rest = int((exact_exp(j, 1) * 2**63 - cut) * 2**64)
    assert discrete._geometric(cut, fed(rest - 1)) == j
    assert discrete._geometric(cut, fed(rest + 1)) == j - 1
    assert discrete._geometric(0, fed(0, 2**63)) == 86  # twice beyond the last cut, then 0


def test_steps_at_the_cuts():
    """k is right at a tie, whichever way the further bits fall."""
    cuts, _ = discrete._normal_cuts()
    weights = [exact_exp(i * i, 2) for i in range(30)]
    for k in (1, 2, 5):
        cut = cuts[10 - k]
        rest = int((sum(weights[k:]) / sum(weights) * 2**63 - cut) * 2**64)
        for word, expected in ((rest - 1, k), (rest + 1, k - 1)):
            assert discrete._steps(cut, fed(word)) == expected
        assert discrete._steps(cut - 1, discrete.Stream()) == k
        assert discrete._steps(cut + 1, discrete.Stream()) == k - 1


def test_rare_multiples_do_not_wrap():
    """A multiple that would overflow int64 is computed in Python's integers."""
    wide = discrete._wide(np.array([3, 200]), 2**55)
    assert wide.tolist() == [3 * 2**55, 200 * 2**55]
    assert discrete._wide(np.array([63]), 2**55).dtype == np.int64


@for_each("t", [1, 2, 3, 2**23 - 1, discrete.coarse(2**40 + 1), 2**55])
def test_vectorized_draws_stay_in_range(t):
    """Draws at the widest vectorized scale have the right size and both signs."""
    for found in (discrete.discrete_laplace(t, 0, 2000), discrete.discrete_gaussian(t, 2000)):
        assert isinstance(found, np.ndarray) and found.dtype == np.int64
        assert 0.5 * t < np.abs(found).astype(float).mean() + 0.5 < 2 * t + 1
        assert (found < 0).any() and (found > 0).any()


@pytest.mark.parametrize("t", [2**24 + 1, 2**40 + 1, 2**60, 2**300 + 7])
def test_other_scales_are_drawn_in_python_integers(t):
    """A scale that the vectorized path cannot take is drawn all the same."""
    for found in (discrete.discrete_laplace(t, 0, 50), discrete.discrete_gaussian(t, 50)):
        assert isinstance(found, list)
        assert 0.2 * t < sum(map(abs, found)) / 50 < 5 * t


def test_coarse_rounds_up_by_little():
    """The scale that is used is never below the one that was asked for."""
    rng = random.Random(4)
    for _ in range(500):
        t = rng.randrange(1, 1 << rng.randrange(1, 100))
        used = discrete.coarse(t)
        assert t <= used <= t * (1 + Fraction(1, 2**22))
        assert discrete._split(used)[0] < 1 << 24


class TestGrid:
    @for_each("sensitivity", [1e-300, 1e-9, 0.3, 1.0, 7.7e11, 1e300])
    @for_each("epsilon", [1e-3, 0.1, 1.0, 50.0])
    @for_each("floats", [0, 1, 1000, 10**6])
    def test_laplace_scale_covers_rounding(self, sensitivity, epsilon, floats):
        """The scale must cover the sensitivity and the rounding to the grid, and be hardly larger."""
        exponent, t, t_integer, shift = noise.laplace_grid(sensitivity, epsilon, floats)
        grid = Fraction(2) ** exponent
        need = Fraction(sensitivity) / Fraction(str(epsilon))
        with_rounding = (Fraction(sensitivity) + floats * grid) / Fraction(str(epsilon))
        for scale in (t * grid, Fraction(t_integer, 2**shift)):
            assert with_rounding <= scale <= need * (1 + Fraction(1, 10**6))
        assert t >= 2**40

    @for_each("size", [1, 100, 10**6])
    @for_each(("epsilon", "delta"), [(0.01, 1e-9), (1.0, 1e-6), (10.0, 1e-3), (50.0, 1e-6)])
    def test_gaussian_sigma_covers_rounding(self, epsilon, delta, size):
        """The same for the Gaussian, where discrete noise must cost less than 2^-20 of delta."""
        scale = Gaussian().scale
        exponent, sigma = noise.gaussian_grid(2.5, epsilon, delta, size, scale)
        grid = Fraction(2) ** exponent
        price = (1 + Fraction(math.exp(epsilon))) * size / (24 * Fraction(sigma) ** 2)
        assert price <= Fraction(delta) / 2**20
        need = scale(2.5 + math.sqrt(size) * float(grid), epsilon, float(Fraction(delta) - price))
        assert Fraction(need) * (1 - Fraction(1, 10**12)) <= sigma * grid
        assert float(sigma * grid) <= scale(2.5, epsilon, delta) * (1 + 1e-6)

    def test_huge_and_tiny_values_are_neither_refused_nor_wrapped(self):
        """A private value's size changes nothing but the answer: neighbours cannot be told apart by it."""
        values = np.array([0.0, 1e-320, -1e-9, 3e15, 2.0**61, -(2.0**80), 1e308, -1.7e308])
        for vector in (values, np.resize(values, 200)):
            whole = np.zeros(len(vector), dtype=bool)
            for found in (
                noise.laplace(vector, 1.0, 1.0, whole),
                noise.gaussian(vector, 1.0, 1.0, 1e-6, whole, Gaussian().scale),
            ):
                assert np.isfinite(found).all()
                assert np.all(np.abs(found - vector) <= 100 + 1e-15 * np.abs(vector))

    @pytest.mark.parametrize("size", [1, 200])
    def test_values_on_and_off_the_grid_are_rounded_to_it(self, size):
        """Every output is a multiple of the public grid, whatever the value."""
        rng = np.random.default_rng(5)
        vector = rng.normal(0, 1000, size)
        found = noise.laplace(vector, 0.1, 1.0, np.zeros(size, dtype=bool))
        exponent = noise.laplace_grid(0.1, 1.0, size)[0]
        units = np.ldexp(found, -exponent)
        assert np.array_equal(units, np.rint(units))

    @for_each("size", [3, 300])
    @for_each("scale", [1e-3, 0.7, 1e6, 1e14])
    def test_integers_get_integers(self, size, scale):
        """Counts stay integers, at every scale."""
        vector = np.arange(size, dtype=float)
        whole = np.ones(size, dtype=bool)
        for found in (
            noise.laplace(vector, scale, 1.0, whole),
            noise.gaussian(vector, scale, 1.0, 1e-6, whole, Gaussian().scale),
        ):
            assert np.array_equal(found, np.rint(found))

    def test_nearest_rounds_halves_to_even_for_any_float(self):
        """The path for single numbers must round like the vectorized one."""
        for value in (0.5, 1.5, 2.5, -0.5, -1.5, 0.49999999999999994, 5e-324, 1e300, 0.0, -7.25):
            for exponent in (-1080, -3, 0, 1, 40):
                exact = Fraction(value) / Fraction(2) ** exponent
                assert noise._nearest(value, exponent) == round(exact)

    def test_the_ends_of_floating_point(self):
        """Noise beyond the largest float saturates, and tiny grids round once, whatever the path."""
        assert (
            noise._noised_one(0.0, 0, 1 << 1030) == -noise._noised_one(0.0, 0, -(1 << 1030)) == noise._LARGEST
        )
        draws = np.arange(-1000, 1000) * 7919
        few = [noise._noised_one(3e-320, -1080, int(x)) for x in draws]
        assert np.array_equal(noise._noised(np.full(2000, 3e-320), -1080, draws), few)
        for sensitivity in (1e-300, 1e300):
            exponent, sigma = noise.gaussian_grid(sensitivity, 1.0, 1e-6, 4, Gaussian().scale)
            least = Fraction(Gaussian().scale(1.0, 1.0, 1e-6)) * Fraction(sensitivity)
            assert least <= sigma * Fraction(2) ** exponent <= least * (1 + Fraction(1, 10**6))

    def test_mixed_outputs(self):
        """A dict of counts and means gets noise of its own kind in each place."""
        whole = np.array([True, False] * 100)
        found = noise.laplace(np.zeros(200), 1.0, 1.0, whole)
        assert np.array_equal(found[whole], np.rint(found[whole]))
        assert not np.array_equal(found[~whole], np.rint(found[~whole]))


def draw_many(connection):
    connection.send(
        (discrete.discrete_laplace(2**40, 0, 5), discrete.discrete_laplace(2**40, 0, 100).tolist())
    )
    connection.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this platform has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")  # forking is what is tested
def test_forked_children_never_share_noise():
    """Two forked workers that release the same answer must not add the same noise."""
    discrete.discrete_laplace(2**40, 0, 3)  # fills whatever buffer there could be before the fork
    context = multiprocessing.get_context("fork")
    seen = []
    for _ in range(2):
        here, there = context.Pipe()
        child = context.Process(target=draw_many, args=(there,))
        child.start()
        seen += [value for part in here.recv() for value in part]
        child.join()
    seen += discrete.discrete_laplace(2**40, 0, 5)
    assert len(set(seen)) == len(seen)


def test_threads_never_share_noise():
    """Two threads that release at the same time must not add the same noise."""
    found = []
    threads = [
        threading.Thread(
            target=lambda: [found.extend(discrete.discrete_gaussian(2**50, 10)) for _ in range(20)]
        )
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == len(found) == 800


class TestInsecureNoise:
    mean = staticmethod(privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), seed=1)(np.mean))

    def test_reproduces_and_always_warns(self):
        """Users' tests can be deterministic, and users cannot overlook that such noise is not private."""
        data = np.ones(50)
        answers = []
        for _ in range(2):
            with pytest.warns(InsecureNoiseWarning, match="not private"), insecure_noise(3):
                answers.append([self.mean(data) for _ in range(3)])
        assert answers[0] == answers[1]
        assert len(set(answers[0])) == 3
        assert self.mean(data) not in answers[0]

    def test_other_threads_draw_real_noise(self):
        """A test's seed does not leak into threads that serve real answers."""
        answers = []
        with pytest.warns(InsecureNoiseWarning), insecure_noise(3):
            first = discrete.discrete_laplace(2**50, 0, 5)
            thread = threading.Thread(target=lambda: answers.extend(discrete.discrete_laplace(2**50, 0, 5)))
            thread.start()
            thread.join()
        assert not set(answers) & set(first)

    @pytest.mark.filterwarnings("ignore::privatize.errors.InsecureNoiseWarning")
    def test_it_ends_with_the_block_for_whatever_was_started_inside(self):
        """A task, thread, callback or generator from a test would go on giving answers without privacy."""

        def real():
            """Tell whether 16 bytes are from the operating system, not from anywhere in the seeded stream."""
            return discrete.source.get()(16) not in stream

        async def later():
            await block_left.wait()
            return real()

        async def answers():
            with insecure_noise(3):
                yield real()
                yield real()

        async def main():
            called = []
            loop = asyncio.get_running_loop()
            with insecure_noise(3):
                tasks = [asyncio.create_task(later()) for _ in range(2)]
                thread = asyncio.create_task(asyncio.to_thread(lambda: in_thread.wait(60) and real()))
                loop.call_later(0.01, lambda: called.append(real()))
                context, suspended = contextvars.copy_context(), (real() for _ in range(2))
                assert not next(suspended)
                await asyncio.sleep(0)  # they have all started
            block_left.set()
            in_thread.set()
            while not called:
                await asyncio.sleep(0.01)
            other = answers()  # one task enters the block, another one leaves it
            assert not await other.__anext__()
            await asyncio.create_task(other.aclose())
            later_on = [await tasks[0], await tasks[1], await thread, *called]
            return [*later_on, context.run(real), next(suspended), real()]

        stream = np.random.Generator(np.random.PCG64(3)).bytes(16 * 1000)
        block_left, in_thread = asyncio.Event(), threading.Event()
        assert asyncio.run(main()) == [True] * 7

    @pytest.mark.filterwarnings("ignore::privatize.errors.InsecureNoiseWarning")
    def test_it_ends_after_an_error_and_in_any_order(self):
        """Generators leave their blocks in any order, and by errors too, and no block may stay in force."""

        def block(seed):
            with insecure_noise(seed):
                yield

        one, other = block(1), block(2)
        next(one)
        next(other)
        one.close()
        with pytest.raises(ValueError, match="mine"):
            other.throw(ValueError("mine"))
        with pytest.raises(ZeroDivisionError), insecure_noise(1):
            1 / 0  # noqa: B018
        streams = [np.random.Generator(np.random.PCG64(seed)).bytes(160) for seed in (1, 2)]
        assert not any(discrete.source.get()(16) in stream for stream in streams)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork")
    @pytest.mark.filterwarnings("ignore::privatize.errors.InsecureNoiseWarning")
    @pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
    def test_a_forked_process_draws_real_noise(self):
        """A worker that is forked inside the block lives on after it, and would serve seeded answers."""
        with insecure_noise(3):
            state = contextvars.copy_context()
            inner, outer = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(outer, state.run(discrete.source.get(), 8))
                os._exit(0)
            mine, theirs = discrete.source.get()(8), os.read(inner, 8)
            os.waitpid(child, 0)
        assert mine != theirs

    def test_nothing_else_takes_a_noise_seed(self):
        """The seed of the decorator is for calibration: two releases under it still differ."""
        assert len({float(self.mean(np.ones(50))) for _ in range(20)}) == 20


SIZES = [1, 2, 28, 29, 1000]
RELEASES = {
    "laplace": lambda v, s, epsilon: Laplace().release(
        v, sensitivity=s, epsilon=epsilon, delta=0.0, whole=np.zeros(len(v), dtype=bool)
    ),
    "gaussian": lambda v, s, epsilon: Gaussian().release(
        v, sensitivity=s, epsilon=epsilon, delta=1e-6, whole=np.zeros(len(v), dtype=bool)
    ),
    "weighted": lambda v, s, epsilon: Weighted(Laplace(), tuple(-(i % 3) for i in range(len(v)))).release(
        v, sensitivity=s, epsilon=epsilon, delta=0.0, whole=np.zeros(len(v), dtype=bool)
    ),
    "bernstein": lambda v, s, epsilon: Bernstein(lattice=max(1, len(v) - 1), norm="sup").release(
        v, sensitivity=s, epsilon=epsilon, delta=0.0, whole=np.zeros(len(v), dtype=bool)
    ),
}


@pytest.mark.filterwarnings("ignore::privatize.errors.InsecureNoiseWarning")
class TestEveryScale:
    """Noise is the same in units of its scale, from the smallest estimate to the largest."""

    @staticmethod
    def released(name, size, sensitivity, epsilon, power):
        values = np.ldexp(np.random.default_rng(size).normal(0, 3, size), power)
        with insecure_noise(size):
            return RELEASES[name](values, sensitivity, epsilon)

    @for_each("size", SIZES)
    @for_each("name", RELEASES)
    def test_units_do_not_matter(self, name, size):
        """At scales above 5e283 answers of more than 28 numbers were all zero."""
        # Normal noise at a large epsilon has a grid of e^(epsilon/2) steps, and takes as many bits.
        for epsilon in (1e-10, 1.0, 30.0 if name == "gaussian" else 1e5):
            standard = self.released(name, size, 0.75, epsilon, 0)
            assert (standard != 0).all()
            for power in [*range(-996, 997, 83), 899, 900, 904, 943, -999 + 40, -900]:
                found = self.released(name, size, math.ldexp(0.75, power), epsilon, power)
                with np.errstate(over="ignore"):
                    scaled = np.ldexp(standard, power)
                # One rounding, where numbers become subnormal; and what is too large is the largest float.
                largest = np.finfo(float).max
                np.testing.assert_allclose(found, np.clip(scaled, -largest, largest), rtol=1e-15, atol=1e-323)

    @pytest.mark.parametrize("power", [-996, 900, 996])
    def test_a_million_numbers(self, power):
        """A long answer at an extreme scale would get no noise, or take forever."""
        size = 1_000_000 if power == 900 else 20_000
        found = np.ldexp(RELEASES["laplace"](np.zeros(size), math.ldexp(0.75, power), 1.0), -power)
        assert abs(np.abs(found).mean() - 0.75) < 0.05  # a mean of 20,000 is off by 0.005 at one sigma

    def test_weights_do_not_change_an_answer_that_is_huge_beside_its_noise(self):
        """A number of 1e245 beside one that moves by 1e290 came out as 6e239."""
        values = np.array([1e290, 1e245, 1e10])
        weighted = Weighted(Laplace(), (0, -200, -200))
        whole = np.zeros(3, dtype=bool)
        for sensitivity in (1e289, 1e-290):
            found = weighted.release(values, sensitivity=sensitivity, epsilon=1.0, delta=0.0, whole=whole)
            np.testing.assert_allclose(found[1], 1e245, rtol=1e-12)

    def test_noise_beyond_every_float_becomes_the_largest_float(self):
        """A scale above the largest float would raise on private data, or give an infinity."""
        for name in RELEASES:
            found = RELEASES[name](np.zeros(40), 1e300, 1e-10)
            assert np.isfinite(found).all()
            assert len(np.unique(found)) > 1
