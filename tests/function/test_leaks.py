"""Nothing that leaves a call carries private data: a sentinel planted in it appears nowhere.

The search goes through every exception's message, arguments, attributes, cause, context, notes and
traceback frames of ours, and whatever these refer to; through reprs, logs and warnings.
"""

import functools
import gc
import logging
import re
import sys
import traceback
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import privatize as package
from privatize import Exponential, Laplace, privatize, samplers
from privatize.errors import (
    InfiniteSensitivityError,
    PrivateRunError,
    PrivatizeError,
    SettingsError,
    UninformativeWarning,
)
from tests.cases import for_each
from tests.frames import variables
from tests.function.sentinels import (
    PRIVATE,
    PROMISE,
    SENTINEL,
    TEXT,
    Loud,
    fails,
    holds_sentinel,
    private,
    raises,
    text,
)

OURS = str(Path(package.__file__).parent)


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
        for name, value in variables(frame).items():
            assert not holds_sentinel(value), f"{frame.f_code.co_qualname} holds the data in {name!r}"


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


def test_interrupts_are_interrupts_without_data():
    """Ctrl-C still stops the program, and carries nothing."""
    error = fails(interrupts)
    assert type(error) is KeyboardInterrupt and error.args == ()
    assert_clean(error)


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
    assert {each.category for each in recwarn.list} <= {UninformativeWarning}
    assert not holds_sentinel([str(each.message) for each in recwarn.list])


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
