"""A private function's calls to itself run raw; whatever merely interrupts it gets no raw answer."""

import asyncio
import contextvars
import functools
import gc
import itertools
import logging
import signal
import sys
import threading
import weakref

import numpy as np
import pytest

from privatize import Budget, privatize, samplers
from privatize.errors import PrivateRunError, SettingsError
from tests.cases import for_each

PROMISE = {"epsilon": 1, "gamma": 0.3, "sampler": samplers.uniform(0, 1), "workers": "inline"}
DATA = 16
RAW = 0.123456789
NUMBERS = itertools.count()


def by_signal(act):
    before = signal.signal(signal.SIGUSR1, lambda *_: act())
    try:
        signal.raise_signal(signal.SIGUSR1)
    finally:
        signal.signal(signal.SIGUSR1, before)


def by_finalizer(act):
    class Left:
        def __del__(self):
            act()

    Left()


def by_weak_reference(act):
    class Left: ...

    left = Left()
    weakref.finalize(left, act)
    del left


def by_garbage_collection(act):
    def callback(phase, info):
        if phase == "start":
            act()

    gc.callbacks.append(callback)
    try:
        gc.collect()
    finally:
        gc.callbacks.remove(callback)


def by_trace(act):
    def trace(frame, event, arg):
        sys.settrace(None)
        act()

    before = sys.gettrace()
    sys.settrace(trace)
    (lambda: None)()
    sys.settrace(before)


def by_profile(act):
    def profile(frame, event, arg):
        sys.setprofile(None)
        act()

    sys.setprofile(profile)
    (lambda: None)()
    sys.setprofile(None)


def by_log(act):
    class Handler(logging.Handler):
        def emit(self, record):
            act()

    logger = logging.getLogger("a log that asks")
    logger.addHandler(handler := Handler())
    logger.error("now")
    logger.removeHandler(handler)


def by_event_loop(act):
    async def main():
        asyncio.get_running_loop().call_soon(act)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(main())


def by_thread_with_this_context(act):
    thread = threading.Thread(target=contextvars.copy_context().run, args=(act,))
    thread.start()
    thread.join()


def by_installed_code(act):
    functools.reduce(lambda *_: act(), [1, 2])


@for_each(
    "interrupt",
    [
        lambda act: act(),  # a callback of a window
        *(by_signal, by_finalizer, by_weak_reference, by_garbage_collection, by_trace, by_profile, by_log),
        *(by_event_loop, by_thread_with_this_context, by_installed_code),
    ],
)
@for_each("calibrating", [False, True])
def test_what_interrupts_an_evaluation_gets_no_raw_answer(interrupt, calibrating):
    """A handler that asks at the wrong moment would get the raw answer, and nothing would be charged."""
    data, answers = np.full(DATA, RAW), []
    window = logging.getLogger(f"a window {next(NUMBERS)}")  # a fingerprint does not look inside
    budget = Budget(f"a budget {next(NUMBERS)}", epsilon=100, gamma=1, ledger="memory")

    @privatize(**PROMISE, budget=budget)
    def mean(x):
        window.update()
        return float(x.mean())

    def ask():
        window.update = lambda: None  # once
        try:
            answers.append(mean(data))
        except SettingsError as error:
            answers.append(str(error))

    window.update = lambda: None
    if not calibrating:
        mean.estimate(DATA)
    window.update = lambda: interrupt(ask)
    answer = mean(data)
    assert len(answers) == 1 and "while it was being evaluated" in answers[0] and str(RAW) not in answers[0]
    assert answer != RAW and budget.spent.epsilon == 1


def test_a_handler_that_goes_through_a_helper_of_the_function_gets_no_raw_answer():
    """A handler would get a raw answer by a call through a helper that belongs to the function."""
    data, answers = np.full(DATA, RAW), []
    window = logging.getLogger(f"a window {next(NUMBERS)}")
    window.update = lambda: None

    @privatize(**PROMISE)
    def mean(x):
        window.update()
        return float(x[0]) if len(x) < 2 else halves(x)

    def halves(x):
        return (mean(x[::2]) + mean(x[1::2])) / 2

    mean.estimate(DATA)
    window.update = lambda: answers.append(halves(data))
    with pytest.raises(PrivateRunError):
        mean(data)
    assert answers == []


class Tree:
    """A class whose private method calls itself through another method."""

    @privatize(**PROMISE)
    def mean(self, x):
        return float(x[0]) if len(x) < 2 else self.halves(x)

    def halves(self, x):
        return float(np.mean([self.mean(half) for half in (x[::2], x[1::2])]))


def noted(function):
    @functools.wraps(function)
    def run(x):
        return function(x)

    return run


@privatize(**PROMISE)
@noted
def decorated(x):
    return float(x[0]) if len(x) < 2 else (decorated(x[::2]) + decorated(x[1::2])) / 2


@privatize(**PROMISE)
def mutual(x):
    return float(x[0]) if len(x) < 2 else other(x)


def other(x):
    return sum(mutual(half) for half in (x[::2], x[1::2])) / 2


@privatize(**PROMISE)
def through_numpy(x):
    return (
        float(x[0]) if len(x) < 2 else float(np.apply_along_axis(through_numpy, 1, x.reshape(2, -1)).mean())
    )


class Callable:
    def __call__(self, x):
        return float(x[0]) if len(x) < 2 else (called(x[::2]) + called(x[1::2])) / 2


called = privatize(**PROMISE)(Callable())


@for_each("workers", ["inline", 1])
@for_each("function", [Tree().mean, decorated, mutual, through_numpy, called])
def test_calls_to_itself_stay_raw(function, workers):
    """Recursion by methods, decorators, helpers and callbacks would be refused, here or in a worker."""
    f = function.replace(workers=workers, epsilon=1e5)
    assert f(np.full(DATA, RAW)) == pytest.approx(RAW, abs=1e-3)
    assert f.estimate(DATA).value <= 1 / DATA


def test_recursion_through_a_table_of_functions_is_refused_with_a_remedy():
    """Users whose function calls itself through a table would not learn what to write instead."""
    table = {}

    @privatize(**PROMISE)
    def mean(x):
        return float(x[0]) if len(x) < 2 else table["halves"](x)

    table["halves"] = lambda x: (mean(x[::2]) + mean(x[1::2])) / 2
    with pytest.raises(Exception, match=r"call mean.__wrapped__\(...\) there"):
        mean.estimate(DATA)
    table["halves"] = lambda x: (mean.__wrapped__(x[::2]) + mean.__wrapped__(x[1::2])) / 2
    assert mean.replace(seed=1).estimate(DATA).value <= 1 / DATA
