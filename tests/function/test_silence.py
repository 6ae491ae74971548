"""Python's own reports quote values, and none of the private run is shown, recorded or logged."""

import contextlib
import logging
import pickle
import re
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from privatize import Laplace, privatize
from privatize.errors import PrivateRunError, UninformativeWarning
from privatize.function import silence
from tests.function.sentinels import PRIVATE, PROMISE, Loud, holds_sentinel, private


def prompts_warning(x):
    if private(x):
        warnings.warn(f"{x}", stacklevel=1)
    return x.mean()


def test_warnings_about_private_data_are_not_shown():
    """A warning is printed where anybody may read it, with whatever is in it."""
    function = privatize(**PROMISE)(prompts_warning)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function(PRIVATE)
        prompts_warning(np.array([2.0]))  # outside a private run they are
    others = [each for each in seen if each.category is not UninformativeWarning]
    assert [str(each.message) for each in others] == ["[2.]"]


MEANWHILE = logging.getLogger("what happens meanwhile")  # a fingerprint does not look inside
MEANWHILE.pool = ThreadPoolExecutor(1)


def warned(x):
    """Let other threads act, and warn."""
    if private(x):
        MEANWHILE.act()
    warnings.warn(f"odd: {x}", stacklevel=1)
    return float(x.mean())


def warned_by_c_code(x):
    if private(x):
        MEANWHILE.act()
        re.compile(f"[[{x[0]}]")  # a FutureWarning, which the standard library raises
        eval(f"{x[0]} is 1")  # a SyntaxWarning, which C code raises
    return float(x.mean())


def failed_in_a_thread(x):
    def work():
        warned(x)
        raise Loud(x)

    thread = threading.Thread(target=work)
    if private(x):
        thread.start()
        thread.join()
    return float(x.mean())


class Failing:
    """An object whose finalizer fails, with the data in the message."""

    def __init__(self, data):
        self.data = data

    def __repr__(self):
        return f"{self.data}"

    def __del__(self):
        raise Loud(self.data)


def failed_in_a_finalizer(x):
    if private(x):
        MEANWHILE.act()
        Failing(x)
    return float(x.mean())


def with_filters_of_its_own(x):
    if private(x):
        warnings.simplefilter("always")
        warned(x)
        warnings.resetwarnings()
        warned(x + 0)
    return float(x.mean())


def in_a_pool(x):
    if private(x):
        MEANWHILE.pool.submit(warned, x).result()
    return float(x.mean())


def leaves_filters(go, done, end, seen):
    with warnings.catch_warnings():
        go.wait(60)
    done.set()


def records_all(go, done, end, seen):
    with warnings.catch_warnings(record=True) as log:
        go.wait(60)
        warnings.simplefilter("always")
        done.set()
        end.wait(60)
        seen += [str(each.message) for each in log]


def raises_errors(go, done, end, seen):
    with warnings.catch_warnings():
        go.wait(60)
        warnings.simplefilter("error")
        done.set()
        end.wait(60)


def resets(go, done, end, seen):
    with warnings.catch_warnings():
        go.wait(60)
        warnings.resetwarnings()
        done.set()
        end.wait(60)


class TestReportsOfThePrivateRun:
    """Python's own reports quote values, and are printed, recorded or logged where anybody may read them."""

    @pytest.mark.parametrize("other", [leaves_filters, records_all, raises_errors, resets])
    @pytest.mark.parametrize(
        "function",
        [
            warned,
            warned_by_c_code,
            failed_in_a_thread,
            failed_in_a_finalizer,
            with_filters_of_its_own,
            in_a_pool,
        ],
    )
    def test_other_threads_do_not_show_them(self, function, other, capfd):
        """A thread that leaves catch_warnings, or sets filters, would have the data printed on stderr."""
        go, done, end, seen = threading.Event(), threading.Event(), threading.Event(), []
        # The fingerprint cannot see what eval() reads. With version= the estimate is remembered all the same.
        f = privatize(**PROMISE, workers="inline", version="1")(function)
        MEANWHILE.pool.submit(int).result()
        with warnings.catch_warnings(action="ignore"):
            f.estimate(4)
        MEANWHILE.act = lambda: (go.set(), done.wait(60))
        hooks = sys.unraisablehook, threading.excepthook
        thread = threading.Thread(target=other, args=(go, done, end, seen))
        before = list(warnings.filters)
        thread.start()
        with contextlib.suppress(PrivateRunError):  # a warning is an error in the pool
            f(PRIVATE)
        end.set()
        thread.join()
        noted = [globals().get("__warningregistry__"), warnings.onceregistry]
        shown = capfd.readouterr()
        assert not holds_sentinel([shown.out, shown.err, seen, noted])
        assert warnings.filters == before and (sys.unraisablehook, threading.excepthook) == hooks

    def test_a_function_may_record_its_own(self):
        """A function that counts warnings would get another answer on private data than in calibration."""

        def counts(x):
            with warnings.catch_warnings(record=True) as log:
                warnings.simplefilter("always")
                for each in x:
                    if each < 0.5:
                        warnings.warn("low", stacklevel=1)
            with warnings.catch_warnings():
                warnings.simplefilter("error", RuntimeWarning)
                try:
                    warnings.warn("low", RuntimeWarning, stacklevel=1)
                except RuntimeWarning:
                    return float(len(log))
            return -1000.0

        f = privatize(**(PROMISE | {"epsilon": 1e5}), workers="inline")(counts)
        assert f(np.array([0.1, 0.2, 0.3, 0.9])) == pytest.approx(3, abs=0.01)

    def test_others_hear_warnings_before_and_after(self):
        """Whoever uses warnings in the same process, pickles the module or reloads it, notices nothing."""
        f = privatize(**PROMISE, workers="inline")(np.mean)
        f(np.full(4, 0.5))
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            warnings.warn("first", stacklevel=1)
            f(np.full(4, 0.5))
            warnings.warn("second", stacklevel=1)
        assert [str(each.message) for each in log] == ["first", "second"]
        assert pickle.loads(pickle.dumps(warnings)) is warnings
        with pytest.raises(UserWarning, match="third"), warnings.catch_warnings(action="error"):
            warnings.warn("third", stacklevel=1)

    def test_a_thread_that_outlives_the_run_leaves_no_filters_behind(self):
        """Filters that a thread restores after the run would silence the entire process."""
        go, started, threads = threading.Event(), threading.Event(), []

        def work():
            with warnings.catch_warnings(record=True):
                started.set()
                go.wait(60)

        def start():
            threads.append(threading.Thread(target=work))
            threads[0].start()
            started.wait(60)

        MEANWHILE.act = start
        before = list(warnings.filters), warnings.showwarning
        privatize(**PROMISE, workers="inline")(failed_in_a_finalizer)(PRIVATE)
        go.set()
        threads[0].join()
        assert (list(warnings.filters), warnings.showwarning) == before
        with pytest.warns(UserWarning, match="heard"):
            warnings.warn("heard", stacklevel=1)

    def test_a_run_that_waits_its_turn_does_not_disturb_others(self):
        """A function that another thread calibrates, and that counts its own warnings, would count none."""
        counted = []

        def other():
            with warnings.catch_warnings(record=True) as log:
                warnings.simplefilter("always")
                warnings.warn("one", stacklevel=1)
            counted.append(len(log))

        thread = threading.Thread(target=other)
        with silence.quiet():
            thread.start()
            thread.join()
        assert counted == [1]

    def test_warnings_of_mechanisms_are_hidden_too(self):
        """A user's own mechanism could quote the raw answer in a warning."""

        class Chatty(Laplace):
            def release(self, vector, **more):
                warnings.warn(f"odd: {vector}", stacklevel=1)
                return super().release(vector, **more)

        Chatty.__module__ = __name__
        with warnings.catch_warnings(record=True) as log:
            warnings.simplefilter("always")
            privatize(**PROMISE, workers="inline", mechanism=Chatty())(lambda x: float(x.max()))(PRIVATE)
        assert not holds_sentinel([str(each.message) for each in log])
