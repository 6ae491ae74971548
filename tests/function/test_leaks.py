"""Nothing that leaves a call carries private data: a sentinel planted in it appears nowhere.

The search goes through every exception's message, arguments, attributes, cause, context, notes and
traceback frames of ours, and whatever these refer to; through reprs, logs and warnings.
"""

import contextlib
import functools
import gc
import logging
import pickle
import re
import sys
import threading
import traceback
import types
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import privatize as package
from privatize import Exponential, Laplace, privatize, samplers
from privatize.errors import InfiniteSensitivityError, PrivateRunError, PrivatizeError, SettingsError
from privatize.function import silence
from tests.cases import for_each

SENTINEL = 31415926.5358979
TEXT = "SENTINEL-NAME"
PRIVATE = np.array([SENTINEL, 0.25, 0.75, 0.5])
OURS = str(Path(package.__file__).parent)
PROMISE = {"epsilon": 1, "gamma": 0.2, "sampler": samplers.uniform(0, 1), "domain": "as-is"}


def holds_sentinel(value, depth=8, seen=None):
    """Tell whether a value is, shows or refers to the sentinel."""
    seen = set() if seen is None else seen
    if id(value) in seen or depth < 0:
        return False
    seen.add(id(value))
    if isinstance(value, float | np.floating):
        return float(value) == SENTINEL
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode("latin-1")
        return TEXT in text or "31415926" in text or "3.14159265" in text
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return any(holds_sentinel(v, depth - 1, seen) for v in value.ravel().tolist())
        return value.dtype.kind == "f" and bool((value == SENTINEL).any())
    if isinstance(value, types.ModuleType | types.CodeType | type | int | None.__class__):
        return False
    if isinstance(value, types.FrameType | types.FunctionType):
        return False  # the caller's own frames and functions hold what is theirs
    if isinstance(value, dict):
        items = [*value.keys(), *value.values()]
    elif isinstance(value, list | tuple | set | frozenset):
        items = list(value)
    else:
        items = [v for v in gc.get_referents(value) if not isinstance(v, types.ModuleType | type)]
    return any(holds_sentinel(item, depth - 1, seen) for item in items)


def frames_of(error):
    """Yield every frame of ours that can be reached from an exception, callers' frames included."""
    chain, seen = [error], set()
    while chain:
        current = chain.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        chain += [current.__cause__, current.__context__]
        step = current.__traceback__
        while step is not None:
            frame = step.tb_frame
            while frame is not None:
                if frame.f_code.co_filename.startswith(OURS):
                    yield frame
                frame = frame.f_back
            step = step.tb_next


def assert_clean(error):
    """Fail if anything that can be reached from the exception through us holds the sentinel."""
    chain = [error, error.__cause__, error.__context__]
    for part in chain:
        assert not holds_sentinel(
            [str(part), repr(part), getattr(part, "args", ()), getattr(part, "__dict__", {})]
        )
        assert not holds_sentinel(getattr(part, "__notes__", []))
    assert not holds_sentinel("".join(traceback.format_exception(error)).split("PRIVATE")[-1:])
    for frame in frames_of(error):
        for name, value in frame.f_locals.items():
            assert not holds_sentinel(value), f"{frame.f_code.co_qualname} holds the data in {name!r}"


def fails(function, data=PRIVATE, **settings):
    """Return the exception that a private call ends in."""
    f = privatize(**(PROMISE | settings))(function)
    try:
        f(data)
    except BaseException as error:
        return error
    raise AssertionError("the call did not fail")


def private(x):
    """Tell private data from sampled data, which is all below 1."""
    return np.max(x) > 1


class Loud(Exception):
    """An exception that carries its data wherever it can."""

    def __init__(self, data):
        super().__init__(f"bad data {data}")
        self.data = data
        self.add_note(f"{data}")


def raises(x):
    if private(x):
        raise Loud(x)
    return x.mean()


def chained(x):
    if private(x):
        try:
            raise Loud(x)
        except Loud as error:
            raise ValueError(f"{x}") from error
    return x.mean()


def leaves(x):
    return sys.exit(f"{x}") if private(x) else x.mean()


class Base(BaseException):
    pass


def raises_base(x):
    if private(x):
        raise Base(x)
    return x.mean()


def interrupts(x):
    if private(x):
        raise KeyboardInterrupt(x)
    return x.mean()


def recursion(x):
    return recursion(x) if private(x) else x.mean()


def not_a_number(x):
    return x.mean() if not private(x) else np.nan


def infinite(x):
    return x.mean() if not private(x) else np.inf * x[0]


def other_structure(x):
    return x.mean() if not private(x) else {"value": x[0]}


def other_shape(x):
    return np.array([x.mean()]) if not private(x) else x


def text(x):
    return x.mean() if not private(x) else f"{x}"


class Hostile:
    """An output whose every method raises with the data in it."""

    def __init__(self, data):
        self.data = data

    def __getattr__(self, name):
        raise Loud(self.__dict__.get("data"))

    def __eq__(self, other):
        raise Loud(self.__dict__["data"])

    __hash__ = None

    def __len__(self):
        raise Loud(self.__dict__["data"])


def hostile(x):
    return x.mean() if not private(x) else Hostile(x)


def prompts_warning(x):
    if private(x):
        warnings.warn(f"{x}", stacklevel=1)
    return x.mean()


@for_each(
    "function",
    [
        raises,
        chained,
        leaves,
        raises_base,
        recursion,
        not_a_number,
        infinite,
        other_structure,
        other_shape,
        text,
        hostile,
    ],
)
def test_failures_on_private_data(function):
    """However a function fails on private data, the error says so and nothing else."""
    error = fails(function)
    assert type(error) is PrivateRunError
    assert error.__cause__ is None and error.__context__ is None
    assert vars(error) == {} and len(error.args) == 1
    assert_clean(error)


def test_warnings_about_private_data_are_not_shown():
    """A warning is printed where anybody may read it, with whatever is in it."""
    function = privatize(**PROMISE)(prompts_warning)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        function(PRIVATE)
        prompts_warning(np.array([2.0]))  # outside a private run they are
    assert [str(each.message) for each in seen] == ["[2.]"]


def test_interrupts_are_interrupts_without_data():
    """Ctrl-C still stops the program, and carries nothing."""
    error = fails(interrupts)
    assert type(error) is KeyboardInterrupt and error.args == ()
    assert_clean(error)


def test_failures_share_one_message():
    """An error that differed with the data would be an answer without noise."""
    assert len({str(fails(f)).replace(f.__name__, "f") for f in (raises, leaves, recursion)}) == 1
    assert len({str(fails(f)).replace(f.__name__, "f") for f in (not_a_number, other_structure, text)}) == 1


@for_each(
    ("function", "data", "settings"),
    [
        (np.mean, np.array([[SENTINEL]]), {}),
        (np.mean, np.array([TEXT, "b"]), {}),
        (np.mean, [TEXT, SENTINEL], {}),
        (np.mean, {TEXT: SENTINEL}, {}),
        (np.mean, (SENTINEL, 2.0), {}),
        (np.mean, SENTINEL, {}),
        (np.mean, TEXT, {}),
        (lambda x: 1 / 0, PRIVATE, {}),
        (lambda x: 1.0, PRIVATE, {}),
        (lambda x: "text", PRIVATE, {}),
        (lambda x: x.mean() + np.random.default_rng().random(), PRIVATE, {}),
        (np.mean, PRIVATE, {"sampler": samplers.from_function(lambda n, rng: rng.random(n + 1))}),
        (np.mean, PRIVATE, {"sampler": samplers.from_function(lambda n, rng: 1 / 0)}),
        (np.mean, PRIVATE, {"sampler": samplers.from_function(lambda n, rng: np.random.rand(n))}),
        (lambda x: x.mean(), PRIVATE, {"pair": lambda x, i, r: (x.mean(), x.mean() + 1e-9)}),
        (lambda x: x[:1], PRIVATE, {"mechanism": Exponential(responses=[1, 2])}),
        (lambda x, q: x.mean(), PRIVATE, {}),
    ],
)
def test_every_other_error_of_a_call(function, data, settings):
    """Errors about wrong data, failed calibrations and bad samplers carry no private data either."""
    error = fails(function, data, **settings)
    assert isinstance(error, PrivatizeError)
    assert_clean(error)


def test_wrong_arguments_are_not_repeated():
    """An argument in the wrong place is not quoted in the error."""
    f = privatize(**PROMISE)(lambda x: x.mean())
    for args, kwargs in (
        ((PRIVATE, TEXT), {}),
        ((PRIVATE,), {TEXT: SENTINEL}),
        ((), {"x": PRIVATE, "y": TEXT}),
    ):
        with pytest.raises(PrivatizeError) as caught:
            f(*args, **kwargs)
        assert_clean(caught.value)


def test_a_custom_mechanism_that_fails():
    """A user's own mechanism sees the raw vector; its exception does not get out with it."""

    class Broken:
        def norm(self, gap):
            return float(np.abs(gap).sum())

        def scale(self, sensitivity, epsilon, delta):
            return 1.0

        def release(self, vector, **rest):
            raise Loud(vector)

    error = fails(lambda x: x.mean() if not private(x) else SENTINEL, mechanism=Broken())
    assert type(error) is PrivateRunError
    assert_clean(error)


def test_a_custom_mechanism_that_raises_one_of_our_errors():
    """Once the private run has started, all errors have fixed messages, whoever raises them."""

    class Sly(Laplace):
        def release(self, vector, **rest):
            raise SettingsError(f"bad {vector}") from Loud(vector)

    error = fails(lambda x: x.mean() if not private(x) else SENTINEL, mechanism=Sly())
    assert type(error) is PrivateRunError
    assert_clean(error)


def test_data_where_a_number_is_expected():
    """Passing the dataset to estimate() or sample(), or as the sampler, does not print it."""
    f = privatize(**PROMISE)(np.mean)
    for slip in (
        lambda: f.estimate(PRIVATE),
        lambda: f.sample(PRIVATE),
        lambda: privatize(**(PROMISE | {"sampler": PRIVATE})),
    ):
        with pytest.raises(SettingsError) as caught:
            slip()
        assert not holds_sentinel([str(caught.value), caught.value.args, vars(caught.value)])


def test_a_remembered_failure_keeps_nothing_of_its_first_caller():
    """The next caller would be shown data of the first one, or memory would keep it alive."""
    f = privatize(**PROMISE)(lambda x: 1 / 0)

    def first():
        secret = PRIVATE.copy()
        try:
            raise Loud(secret)
        except Loud:
            try:
                f(secret)
            except PrivatizeError as error:
                error.add_note(TEXT)
                return weakref.ref(secret)

    reference = first()
    gc.collect()
    assert reference() is None
    with pytest.raises(PrivatizeError) as caught:
        f.estimate(4)
    assert_clean(caught.value)
    assert "ZeroDivisionError" in "".join(caught.value.__notes__)  # the first cause is still shown


def test_classes_made_during_the_private_run_do_not_carry_it():
    """A class that the function defines again at each call could hold anything, so it is refused."""

    def local(x):
        @dataclass
        class Result:
            mean: float
            top: ClassVar = float(x.max())

        return Result(float(x.mean()))

    assert isinstance(fails(local), InfiniteSensitivityError)

    def sneaky(x):
        return local(x) if private(x) else Known(float(x.mean()))

    Known.__qualname__ = local(np.ones(2)).__class__.__qualname__
    try:
        assert type(fails(sneaky)) is PrivateRunError
    finally:
        Known.__qualname__ = "Known"


@dataclass
class Known:
    mean: float


def test_the_width_of_strings_is_not_shown():
    """The length of the longest private string is private, too."""
    error = fails(np.mean, np.array([TEXT * 8]))
    assert "text" in str(error) and not re.search(r"str\d|U\d", str(error))


def test_reprs_logs_and_warnings(caplog, recwarn, capsys):
    """Successful calls leave nothing behind either: objects, logs, warnings, output, memory."""
    f = privatize(**(PROMISE | {"domain": "clip"}))(np.mean)
    with caplog.at_level(logging.DEBUG):
        release = f.release(PRIVATE)
        f([SENTINEL, 0.5, 0.25])
    out = capsys.readouterr()
    assert not holds_sentinel([repr(f), repr(release), repr(f.estimate(4)), caplog.text, out.out, out.err])
    assert not holds_sentinel([vars(release), f.calibrator.memory, vars(f.estimate(4)), f.settings])
    assert not recwarn.list


def test_nothing_keeps_the_data_alive():
    """After a call, failed or not, the data is referred to by its owner alone."""
    for function in (np.mean, raises, other_structure):
        f = privatize(**PROMISE)(function)
        data = PRIVATE.copy()
        before = sys.getrefcount(data)
        try:
            f(data)
        except PrivateRunError as error:
            kept = error  # as a logger or a test runner would
        gc.collect()
        assert sys.getrefcount(data) == before
    assert kept is not None


def test_the_search_finds_a_sentinel():
    """The search used above finds a sentinel where there is one."""
    assert holds_sentinel({"a": [Loud(PRIVATE)]}) and holds_sentinel(f"{SENTINEL}")
    assert not holds_sentinel({"a": [1.5, "text", np.zeros(3)]})


@for_each("data", [PRIVATE, PRIVATE.tolist(), tuple(PRIVATE.tolist()), SENTINEL, TEXT])
@for_each("what", ["estimate", "forget", "sample", "audit", "error_at", "epsilon_for", "report"])
def test_data_in_place_of_its_number_of_records(what, data):
    """The mistake of estimate(ages) for estimate(len(ages)) shows no record, not even one of a list."""
    f = privatize(**PROMISE)(private)
    above = {"audit": package.audit, "report": package.report}
    act = functools.partial(above[what], f) if what in above else getattr(f, what)
    if what == "epsilon_for":
        act = functools.partial(act, error=1.0)
    with pytest.raises(PrivatizeError) as caught:
        act(data)
    assert_clean(caught.value)


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
