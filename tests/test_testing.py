"""The helpers for users' own tests: audits as assertions, and noise that can be reproduced in tests only."""

import asyncio
import contextvars
import os
import threading
from decimal import getcontext

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import InsecureNoiseWarning
from privatize.noise import exact as discrete
from privatize.testing import assert_private, insecure_noise
from tests.auditing.audited import forged, private


def test_assert_private_is_deterministic():
    """A user's suite would fail on some days only."""
    mean = private()
    one, again = (assert_private(mean, 20, pairs=100, releases=400) for _ in range(2))
    assert str(one) == str(again) and one.told == again.told
    other = assert_private(mean, 20, pairs=100, releases=400, seed=1)
    assert str(other) != str(one)
    with pytest.raises(AssertionError, match="broken"):
        assert_private(forged(mean, 1e-6), 20, pairs=100, releases=400)


def test_assert_private_leaves_noise_unseeded_afterwards():
    """A user's releases after a test would be predictable."""
    mean = private()
    answers = []
    for _ in range(2):
        assert_private(mean, 20, pairs=20, releases=0)
        answers.append(mean(np.ones(20)))
    assert answers[0] != answers[1]


getcontext().prec = 80


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


def test_seeded_bytes_are_those_of_the_generator():
    """Seeded answers in users' tests would change if bytes that are made in advance were others."""
    sizes = np.random.default_rng(1).choice([64, 64, 8, 1, 3, 5, 24, 800, 16_384, 40_001], 2000).tolist()
    expected = np.random.Generator(np.random.PCG64(3))
    with pytest.warns(InsecureNoiseWarning), insecure_noise(3):
        seeded = discrete.source.get()
        for size in sizes:
            assert seeded(size) == expected.bytes(size)


def test_a_signal_while_seeded_bytes_are_made():
    """A handler that draws noise would wait for itself, forever."""
    with pytest.warns(InsecureNoiseWarning), insecure_noise(3):
        seeded = discrete.source.get()
        inner = []

        class Interrupting:
            def bytes(self, size):
                inner.append(seeded(8))  # as a signal's handler would, which runs between two steps
                return bytes(size)

        seeded._generator = Interrupting()
        assert len(seeded(5)) == 5 and [len(each) for each in inner] == [8]
