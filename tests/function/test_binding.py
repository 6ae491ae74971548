"""The dataset must be found in any call of any callable, and the rest must reach the function as it was."""

import functools
import inspect
import math

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import ArgumentError, PrivatizeError, SettingsError
from privatize.function.binding import Binding, Call
from tests.cases import for_each

DATA = [3.0, 1.0, 2.0]
SENTINEL = "sentinel-8675309"


def plain(ages):
    """Take nothing but a dataset."""
    return ("plain", ages)


def with_default(ages, limit=65, *, scale=1.0):
    """Take other arguments that have defaults."""
    return ("with_default", ages, limit, scale)


def required(ages, limit):
    """Take a required argument."""
    return ("required", ages, limit)


def last(limit, scale, ages):
    """Take the dataset last."""
    return ("last", limit, scale, ages)


def variadic(*args, **options):
    """Take anything."""
    return ("variadic", args, options)


def rest(ages, *more, key=None, **options):
    """Take a dataset and anything."""
    return ("rest", ages, more, key, options)


def keyword_only(*, ages, limit=3):
    """Take keywords only."""
    return ("keyword_only", ages, limit)


def positional_only(ages, limit=3, /, scale=2):
    """Take positions only."""
    return ("positional_only", ages, limit, scale)


def optional_data(ages=None, limit=3):
    """Take a dataset that has a default."""
    return ("optional_data", ages, limit)


def aligned(X, y, C=1.0):
    """Take two aligned datasets."""
    return ("aligned", X, y, C)


def with_rng(ages, rng, limit=3):
    """Take a generator."""
    return ("with_rng", ages, rng.random(), limit)


class Clinic:
    """Methods of all kinds."""

    def method(self, ages, limit=3):
        return (self, ages, limit)

    @classmethod
    def of_class(cls, ages, limit=3):
        return (cls, ages, limit)

    @staticmethod
    def static(ages, limit=3):
        return ("static", ages, limit)

    def __call__(self, ages, limit=3):
        return ("called", ages, limit)


CLINIC = Clinic()


def bound(function, *args, data=None, coins=(), **kwargs):
    """Bind a call, and return the dataset and the call."""
    return Binding.of(function, data, coins).bind(args, kwargs)


# --- calls ---


@for_each(
    ("function", "data", "args", "kwargs"),
    [
        (plain, None, (DATA,), {}),
        (plain, None, (), {"ages": DATA}),
        (plain, "ages", (DATA,), {}),
        (with_default, None, (DATA,), {}),
        (with_default, None, (DATA, 70), {}),
        (with_default, None, (DATA,), {"limit": 70, "scale": 3}),
        (with_default, None, (), {"scale": 3, "ages": DATA, "limit": 70}),
        (required, None, (DATA, 70), {}),
        (required, None, (), {"limit": 70, "ages": DATA}),
        (last, "ages", (70, 2, DATA), {}),
        (last, "ages", (70,), {"ages": DATA, "scale": 2}),
        (last, "ages", (), {"ages": DATA, "scale": 2, "limit": 70}),
        (variadic, None, (DATA,), {}),
        (variadic, None, (DATA, 1, 2), {"key": 3}),
        (rest, None, (DATA,), {}),
        (rest, None, (DATA, 1, 2), {"key": 3, "other": 4}),
        (rest, None, (), {"ages": DATA, "other": 4}),
        (keyword_only, None, (), {"ages": DATA}),
        (keyword_only, None, (), {"limit": 5, "ages": DATA}),
        (positional_only, None, (DATA,), {}),
        (positional_only, None, (DATA, 5), {"scale": 7}),
        (optional_data, None, (DATA,), {}),
        (optional_data, None, (), {"limit": 5, "ages": DATA}),
        (Clinic.method, None, (CLINIC, DATA), {}),
        (Clinic.method, None, (CLINIC,), {"ages": DATA, "limit": 5}),
        (CLINIC.method, None, (DATA, 5), {}),
        (Clinic.of_class, None, (DATA, 5), {}),
        (CLINIC.of_class, None, (DATA,), {"limit": 5}),
        (Clinic.static, None, (DATA, 5), {}),
        (CLINIC.static, None, (), {"ages": DATA}),
        (staticmethod(plain), None, (DATA,), {}),
        (CLINIC, None, (DATA, 5), {}),
        (CLINIC, None, (), {"ages": DATA}),
        (CLINIC.__call__, None, (DATA,), {}),
        (lambda ages: ages, None, (DATA,), {}),
        (functools.partial(required, limit=70), None, (DATA,), {}),
        (functools.partial(required, limit=70), None, (), {"ages": DATA}),
        (functools.partial(with_default, scale=9), None, (DATA, 5), {}),
        (functools.partial(with_default, scale=9), None, (DATA,), {"scale": 8}),
        (functools.partial(last, 70, 2), None, (DATA,), {}),
        (functools.partial(last, 70), "ages", (2, DATA), {}),
        (functools.partial(functools.partial(last, 70), 2), None, (DATA,), {}),
        (functools.partial(CLINIC.method, limit=5), None, (DATA,), {}),
        (functools.partial(CLINIC, limit=5), None, (DATA,), {}),
        (np.mean, None, (DATA,), {}),
        (np.mean, None, (), {"a": DATA, "keepdims": True}),
        (np.quantile, None, (DATA, 0.5), {}),
        (np.linalg.norm, None, (DATA,), {"ord": 1}),
        (np.add.reduce, None, (DATA,), {}),
        (np.sqrt, None, (DATA,), {}),
        (math.fsum, None, (DATA,), {}),
        (max, None, (DATA,), {}),
        (max, None, (DATA,), {"key": abs, "default": 0}),
        (sum, None, (DATA,), {}),
        (sum, None, (DATA, 10), {}),
        (sorted, None, (DATA,), {"reverse": True}),
        (len, None, (DATA,), {}),
    ],
)
def test_a_bound_call_returns_what_the_raw_call_returns(function, data, args, kwargs):
    """The private function would compute something else than the raw one, or not find its dataset."""
    found, call = bound(function, *args, data=data, **kwargs)
    assert found is DATA
    assert call.open is None
    assert np.array_equal(call(DATA, 7), function(*args, **kwargs)) or call(DATA, 7) == function(
        *args, **kwargs
    )
    other = [9.0, 8.0, 7.0]
    swapped = tuple(other if value is DATA else value for value in args)
    named = {name: other if value is DATA else value for name, value in kwargs.items()}
    expected, got = function(*swapped, **named), call(other, 7)
    assert type(got) is type(expected)
    assert np.array_equal(got, expected) or got == expected


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [(([1], [2]), {}), (([1], [2], 5.0), {}), (([1],), {"y": [2]}), ((), {"C": 3, "y": [2], "X": [1]})],
)
def test_aligned_datasets(args, kwargs):
    """Features and labels would swap places, or one of them stay public."""
    found, call = bound(aligned, *args, data=("X", "y"), **kwargs)
    assert found == ([1], [2])
    assert call((["x"], ["y"]), 7) == (
        "aligned",
        ["x"],
        ["y"],
        kwargs.get("C", args[2] if len(args) > 2 else 1.0),
    )


def test_aligned_datasets_come_in_the_order_of_data():
    """A sampler of (y, X) would have its parts swapped."""
    found, call = bound(aligned, [1], [2], data=("y", "X"))
    assert found == ([2], [1])
    assert call((["y"], ["x"]), 7)[1:3] == (["x"], ["y"])


def test_one_name_in_a_tuple_is_a_tuple_of_one():
    """data=("X",) would be taken for data="X": the sampler draws another container."""
    found, call = bound(plain, [1], data=("ages",))
    assert found == ([1],)
    assert call(([5],), 7) == ("plain", [5])


def test_a_list_of_names():
    """data=["X", "y"] would need to be a tuple."""
    assert Binding.of(aligned, ["X", "y"]).names == ("X", "y")


@for_each(
    ("function", "name"),
    [
        (plain, "ages"),
        (Clinic.method, "ages"),
        (CLINIC.method, "ages"),
        (Clinic.of_class, "ages"),
        (Clinic.of_class.__func__, "ages"),
        (Clinic.static, "ages"),
        (CLINIC, "ages"),
        (keyword_only, "ages"),
        (variadic, "args"),
        (lambda self: self, "self"),
        (lambda cls, data: data, "data"),
        (functools.partial(last, 1), "scale"),
        (functools.partial(last, 1, 2), "ages"),
        (np.mean, "a"),
    ],
)
def test_the_dataset_is_the_first_parameter(function, name):
    """Another argument than the dataset would be protected."""
    assert Binding.of(function).names == (name,)


def test_a_parameter_that_a_partial_has_filled_is_not_the_dataset():
    """partial(f, limit=3) of f(limit, ages) would protect the limit and publish the ages."""
    binding = Binding.of(functools.partial(last, limit=70, scale=2))
    assert binding.names == ("ages",)
    found, call = binding.bind((), {"ages": DATA})
    assert found is DATA
    assert call([5], 7) == ("last", 70, 2, [5])


def test_a_partial_that_has_filled_the_dataset_by_name_can_be_overruled():
    """A default dataset given by partial would be released instead of the one passed."""
    found, call = bound(functools.partial(plain, ages=[0]), ages=DATA, data="ages")
    assert found is DATA
    assert call([5], 7) == ("plain", [5])


def test_the_call_holds_no_dataset():
    """The call that calibration gets would hold the private data."""
    for function, data in ((plain, None), (aligned, ("X", "y")), (variadic, None), (max, None)):
        args = ([1], [2]) if data else (DATA,)
        call = bound(function, *args, data=data)[1]
        assert isinstance(call, Call)
        shown = repr(call.args) + repr(dict(call.kwargs)) + repr(call.others())
        assert "3.0, 1.0, 2.0" not in shown
        assert not any(value is part for value in call.args for part in (*args, DATA))


def test_a_call_can_be_made_again():
    """The second evaluation would get arguments that the first one has changed."""
    call = bound(with_default, DATA, 70)[1]
    assert [call([i], 7) for i in range(3)] == [("with_default", [i], 70, 1.0) for i in range(3)]


@for_each(
    ("function", "data", "args", "kwargs", "bare"),
    [
        (plain, None, (DATA,), {}, True),
        (plain, None, (), {"ages": DATA}, True),
        (max, None, (DATA,), {}, True),
        (keyword_only, None, (), {"ages": DATA}, False),
        (required, None, (DATA, 3), {}, False),
        (aligned, ("X", "y"), ([1], [2]), {}, False),
        (last, "ages", (np.arange(3.0), 2, DATA), {}, False),
        (lambda weights, ages: 0, "ages", (np.arange(3.0), DATA), {}, False),
        (Clinic.method, None, (np.arange(3.0), DATA), {}, False),
    ],
)
def test_a_bare_call_has_the_dataset_only(function, data, args, kwargs, bare):
    """The shortcut for bare calls would drop arguments, or fail on public arrays before the dataset."""
    assert bound(function, *args, data=data, **kwargs)[1].bare() is bare


@for_each("function", [plain, with_default, rest, optional_data, variadic, np.mean, np.sqrt])
def test_the_shortcut_for_bare_calls_changes_nothing(function):
    """A function called on its dataset alone would answer something else than through its binding."""
    call = bound(function, DATA)[1]
    through = call.function(DATA) if call.bare() else call(DATA, 7)
    assert np.array_equal(through, function(DATA)) or through == function(DATA)


def test_a_tuple_of_one_is_not_bare():
    """The function would be handed the tuple instead of its part."""
    assert not bound(plain, [1], data=("ages",))[1].bare()


def test_others_tell_calls_apart():
    """Two calls with different public arguments would share one estimate."""
    calls = [
        bound(with_default, DATA, limit, scale=scale)[1].others() for limit in (1, 2) for scale in (1, 2)
    ]
    assert all(a != b for i, a in enumerate(calls) for b in calls[:i])
    assert bound(with_default, DATA, 5)[1].others() == bound(with_default, limit=5, ages=[0])[1].others()
    assert bound(with_default, DATA)[1].others() == bound(with_default, DATA, 65, scale=1.0)[1].others()
    assert bound(rest, DATA, a=1, b=2)[1].others() == bound(rest, DATA, b=2, a=1)[1].others()
    swapped = bound(aligned, [1], [2], data=("y", "X"))[1]
    assert swapped.others() != bound(aligned, [1], [2], data=("X", "y"))[1].others()


# --- coins ---


def test_coins_are_fresh_and_seeded():
    """A function with a generator parameter would differ at every evaluation."""
    found, call = bound(with_rng, DATA, coins=("rng",))
    assert found is DATA
    expected = np.random.default_rng(7).random()
    assert call(DATA, 7) == call(DATA, 7) == ("with_rng", DATA, expected, 3)
    assert call(DATA, 8) != call(DATA, 7)


def test_coins_by_one_name_and_with_a_default():
    """coins="rng" would be read letter by letter, or rng=None be left as it is."""

    def noisy(ages, limit=3, rng=None):
        return ages, limit, rng.random()

    assert Binding.of(noisy, coins="rng").coins == ("rng",)
    call = bound(noisy, DATA, coins="rng", limit=5)[1]
    assert call(DATA, 7) == (DATA, 5, np.random.default_rng(7).random())


def test_two_coins_are_two_generators():
    """One parameter's draws would move the other's."""

    def noisy(ages, a, *, b):
        assert a is not b
        return a.random(3).tolist(), b.random(3).tolist()

    one, other = bound(noisy, DATA, coins=("a", "b"))[1](DATA, 7)
    assert one == other == np.random.default_rng(7).random(3).tolist()


def test_the_dataset_is_not_a_coin():
    """With the generator first, the dataset would be taken for it."""
    assert Binding.of(lambda rng, ages: 0, coins=("rng",)).names == ("ages",)


@pytest.mark.parametrize(("args", "kwargs"), [((DATA, 5), {}), ((DATA,), {"rng": 5})])
def test_coins_cannot_be_passed(args, kwargs):
    """A caller's generator would replace the seeded one, or be silently dropped."""
    with pytest.raises(ArgumentError, match=r"with_rng.* gets a seeded generator as 'rng'.* Leave it out"):
        bound(with_rng, *args, coins=("rng",), **kwargs)


# --- open parameters ---


def test_one_parameter_may_be_left_open():
    """The exponential mechanism could not score one response after the other."""
    found, call = bound(required, DATA)
    assert found is DATA
    assert call.open == "limit"
    assert call(DATA, 7, "point") == ("required", DATA, "point")
    assert not call.bare()


def test_an_open_keyword_parameter():
    """A score function with a keyword-only response could not be used."""

    def score(ages, *, response):
        return ages, response

    call = bound(score, DATA)[1]
    assert call.open == "response"
    assert call(DATA, 7, 3) == (DATA, 3)


def test_an_open_parameter_before_the_dataset():
    """score(response, data) would get its arguments the wrong way round."""
    call = bound(lambda response, ages: (response, ages), ages=DATA, data="ages")[1]
    assert call.open == "response"
    assert call(DATA, 7, 3) == (3, DATA)


def test_two_open_parameters_are_refused():
    """A forgotten argument would be filled with a response."""
    with pytest.raises(ArgumentError, match=r"last.* was called without 'limit', 'scale'"):
        bound(last, ages=DATA, data="ages")


# --- without the dataset ---


@for_each(
    ("function", "data", "coins", "args", "kwargs", "expected"),
    [
        (plain, None, (), (), {}, ("plain", DATA)),
        (with_default, None, (), (), {}, ("with_default", DATA, 65, 1.0)),
        (with_default, None, (), (70,), {}, ("with_default", DATA, 70, 1.0)),
        (with_default, None, (), (), {"limit": 70, "scale": 2}, ("with_default", DATA, 70, 2)),
        (with_default, None, (), (70,), {"scale": 2}, ("with_default", DATA, 70, 2)),
        (required, None, (), (70,), {}, ("required", DATA, 70)),
        (last, "ages", (), (70, 2), {}, ("last", 70, 2, DATA)),
        (last, "ages", (), (70,), {"scale": 2}, ("last", 70, 2, DATA)),
        (last, "ages", (), (), {"scale": 2, "limit": 70}, ("last", 70, 2, DATA)),
        (last, "scale", (), (70, 2), {}, ("last", 70, DATA, 2)),
        (last, "scale", (), (70,), {"ages": 2}, ("last", 70, DATA, 2)),
        (variadic, None, (), (), {}, ("variadic", (DATA,), {})),
        (variadic, None, (), (1, 2), {"key": 3}, ("variadic", (DATA, 1, 2), {"key": 3})),
        (rest, None, (), (1, 2), {"key": 3, "x": 4}, ("rest", DATA, (1, 2), 3, {"x": 4})),
        (keyword_only, None, (), (), {}, ("keyword_only", DATA, 3)),
        (keyword_only, None, (), (), {"limit": 5}, ("keyword_only", DATA, 5)),
        (positional_only, None, (), (), {}, ("positional_only", DATA, 3, 2)),
        (positional_only, None, (), (5,), {"scale": 7}, ("positional_only", DATA, 5, 7)),
        (optional_data, None, (), (), {}, ("optional_data", DATA, 3)),
        (optional_data, None, (), (5,), {}, ("optional_data", DATA, 5)),
        (CLINIC.method, None, (), (5,), {}, (CLINIC, DATA, 5)),
        (Clinic.method, None, (), (CLINIC, 5), {}, (CLINIC, DATA, 5)),
        (Clinic.method, None, (), (CLINIC,), {"limit": 5}, (CLINIC, DATA, 5)),
        (Clinic.of_class, None, (), (5,), {}, (Clinic, DATA, 5)),
        (CLINIC, None, (), (), {"limit": 5}, ("called", DATA, 5)),
        (functools.partial(required, limit=70), None, (), (), {}, ("required", DATA, 70)),
        (functools.partial(last, 70), "ages", (), (2,), {}, ("last", 70, 2, DATA)),
        (with_rng, None, ("rng",), (), {}, ("with_rng", DATA, np.random.default_rng(7).random(), 3)),
        (
            with_rng,
            None,
            ("rng",),
            (),
            {"limit": 5},
            ("with_rng", DATA, np.random.default_rng(7).random(), 5),
        ),
        (np.quantile, None, (), (0.5,), {}, 2.0),
        (np.mean, None, (), (), {}, 2.0),
        (max, None, (), (), {}, 3.0),
        (max, None, (), (), {"default": 0}, 3.0),
        (sum, None, (), (10,), {}, 16.0),
    ],
)
def test_binding_without_the_dataset(function, data, coins, args, kwargs, expected):
    """estimate(n, ...) would calibrate another function than the call that follows it."""
    binding = Binding.of(function, data, coins)
    call = binding.bind_public(args, kwargs)
    assert call(DATA, 7) == expected
    assert call.open is None


@for_each(
    ("args", "kwargs"), [((), {}), ((5.0,), {}), ((), {"C": 5.0})], ids=["none", "positional", "keyword"]
)
@for_each("data", [("X", "y"), ("y", "X"), ("y",), "y"])
def test_binding_aligned_datasets_without_them(args, kwargs, data):
    """estimate(n, C) of train(X, y, C) would take C for y."""
    others = {} if len(data) == 2 else {"X": ["x"]}
    if args and others:
        args, others = (["x"], *args), {}
    call = Binding.of(aligned, data).bind_public(args, kwargs | others)
    drawn = {"X": ["x"], "y": ["y"]}
    dataset = drawn["y"] if data == "y" else tuple(drawn[name] for name in data)
    assert call(dataset, 7) == ("aligned", ["x"], ["y"], 5.0 if args[-1:] == (5.0,) or kwargs else 1.0)


def test_both_ways_of_binding_give_the_same_others():
    """estimate() ahead of time would not be recalled by the call."""
    for function, data, public, args in (
        (with_default, None, (70,), (DATA, 70)),
        (last, "ages", (70, 2), (70, 2, DATA)),
        (aligned, ("X", "y"), (2.0,), ([1], [2], 2.0)),
        (variadic, None, (1, 2), (DATA, 1, 2)),
        (max, None, (), (DATA,)),
    ):
        binding = Binding.of(function, data)
        assert binding.bind_public(public, {}).others() == binding.bind(args, {})[1].others()


def test_an_open_parameter_without_the_dataset():
    """estimate(n) of an exponential mechanism's score function would ask for the response."""
    call = Binding.of(required).bind_public((), {})
    assert call.open == "limit"
    assert call(DATA, 7, 3) == ("required", DATA, 3)


def test_too_many_arguments_without_the_dataset():
    """A mistake in the arguments of estimate() would calibrate something else."""
    with pytest.raises(ArgumentError, match="do not fit required"):
        Binding.of(required).bind_public((1, 2), {})


# --- what is refused ---


def generator(ages):
    """Yield."""
    yield ages


async def coroutine(ages):
    """Wait."""
    return ages


async def async_generator(ages):
    """Wait and yield."""
    yield ages


class Lazy:
    """Lazy methods of all kinds."""

    def method(self, ages):
        yield ages

    @classmethod
    def of_class(cls, ages):
        yield ages

    @staticmethod
    def static(ages):
        yield ages

    async def wait(self, ages):
        return ages

    def __call__(self, ages):
        yield ages


class Waiting:
    """A callable that has to be awaited."""

    async def __call__(self, ages):
        return ages


@for_each(
    ("function", "message"),
    [
        (generator, "generator is a generator.*Return a list"),
        (coroutine, "coroutine is a coroutine.*plain function"),
        (async_generator, "async_generator is a coroutine.*plain function"),
        (Lazy.method, "method is a generator"),
        (Lazy().method, "method is a generator"),
        (Lazy.of_class, "of_class is a generator"),
        (Lazy.static, "static is a generator"),
        (Lazy().wait, "wait is a coroutine"),
        (Lazy(), "Lazy is a generator"),
        (Waiting(), "Waiting is a coroutine"),
        (functools.partial(generator), "generator is a generator"),
        (functools.partial(functools.partial(coroutine)), "coroutine is a coroutine"),
        (functools.partial(Lazy()), "Lazy is a generator"),
        (staticmethod(generator), "generator is a generator"),
        (staticmethod(coroutine), "coroutine is a coroutine"),
        (functools.partial(staticmethod(generator)), "generator is a generator"),
    ],
)
def test_lazy_functions_are_refused_by_name(function, message):
    """The raw function would run after the noise was added, on data that is still private."""
    with pytest.raises(SettingsError, match=message):
        Binding.of(function)


@for_each("value", [3, "mean", None, [plain], classmethod(plain), property(plain)])
def test_what_cannot_be_called_is_refused(value):
    """privatize(...)(3) would fail at the first call only."""
    with pytest.raises(SettingsError, match=f"a {type(value).__name__}, which cannot be called"):
        Binding.of(value)


@for_each(
    ("function", "data", "coins", "message"),
    [
        (plain, "age", (), r"plain\(ages\) has no parameter 'age'. Its parameters are ages"),
        (aligned, ("X", "z"), (), "no parameter 'z'. Its parameters are X, y, C"),
        (plain, None, ("rng",), "no parameter 'rng'"),
        (rest, "more", (), "no parameter 'more'"),
        (rest, "options", (), "no parameter 'options'"),
        (lambda: 0, None, (), "takes no argument that could be a dataset"),
        (lambda **options: 0, None, (), "takes no argument that could be a dataset"),
        (lambda rng: 0, None, ("rng",), "takes no argument that could be a dataset"),
        (aligned, ("X", "X"), (), "must name different parameters"),
        (aligned, (), (), "must name"),
        (with_rng, "rng", ("rng",), "must name different parameters"),
        (max, "x", (), r"max\(\) has no signature.*lambda"),
        (max, None, ("rng",), r"max\(\) has no signature"),
    ],
)
def test_names_that_do_not_fit(function, data, coins, message):
    """A misspelt name would surface at the first call only, or protect nothing."""
    with pytest.raises(SettingsError, match=message):
        Binding.of(function, data, coins)


@for_each(
    ("function", "data", "args", "kwargs", "message"),
    [
        (plain, None, (), {}, r"plain\(ages\) was called without its dataset 'ages'. Pass it"),
        (optional_data, None, (), {}, "called without its dataset 'ages'"),
        (optional_data, None, (), {"limit": SENTINEL}, "called without its dataset 'ages'"),
        (variadic, None, (), {"key": SENTINEL}, "called without its dataset 'args'"),
        (keyword_only, None, (), {"limit": SENTINEL}, "called without its dataset 'ages'"),
        (keyword_only, None, (SENTINEL,), {}, "arguments do not fit keyword_only"),
        (plain, None, (SENTINEL, SENTINEL), {}, r"The arguments do not fit plain\(ages\)"),
        (plain, None, (SENTINEL,), {"limit": SENTINEL}, "do not fit plain"),
        (plain, None, (SENTINEL,), {"ages": SENTINEL}, "do not fit plain"),
        (aligned, ("X", "y"), (SENTINEL,), {}, "called without its dataset 'y'"),
        (last, "ages", (SENTINEL, SENTINEL), {}, "called without its dataset 'ages'"),
        (last, "ages", (), {"ages": SENTINEL}, "called without 'limit', 'scale'"),
        (max, None, (), {"default": SENTINEL}, r"max.* was called without its dataset 'first_argument'"),
        (functools.partial(required, SENTINEL[:0]), None, (SENTINEL, SENTINEL), {}, "do not fit required"),
        (CLINIC.method, None, (SENTINEL, SENTINEL, SENTINEL), {}, "do not fit method"),
        (CLINIC, None, (SENTINEL, SENTINEL, SENTINEL), {}, "do not fit Clinic"),
    ],
)
def test_calls_that_do_not_fit_show_no_value(function, data, args, kwargs, message):
    """The error of a call that does not fit would print the private data that was passed."""
    with pytest.raises(ArgumentError, match=message) as caught:
        bound(function, *args, data=data, **kwargs)
    error = caught.value
    assert isinstance(error, TypeError)
    assert isinstance(error, PrivatizeError)
    while error is not None:
        assert SENTINEL not in str(error) + repr(error.args) + repr(vars(error))
        error = error.__cause__ or error.__context__


def test_the_label():
    """An error would name a partial or an object, not the function."""
    for function, label in (
        (plain, "plain"),
        (functools.partial(functools.partial(plain)), "plain"),
        (CLINIC, "Clinic"),
        (CLINIC.method, "method"),
        (max, "max"),
        (np.mean, "mean"),
        (lambda ages: 0, "<lambda>"),
    ):
        assert Binding.of(function).label == label


def test_the_signature_is_read_once():
    """A function with a slow or changing signature would be bound differently at every call."""
    binding = Binding.of(with_default)
    assert binding.signature == inspect.signature(with_default)


def test_a_method_whose_object_is_the_dataset_says_so():
    """`privatize(...)(DataFrame.corr)` is natural to write, and the error must say what is missing."""

    def corr(self, method="pearson"):
        return 0.0

    with pytest.raises(ArgumentError, match="pass data='self'"):
        Binding.of(corr, None, ()).bind(([1.0],), {})


# --- the shortcut for calls with nothing but the dataset --------------------------------------


def without_shortcut(binding):
    """Return a binding without its shortcut for calls that have nothing but the dataset."""
    vars(binding)["_alone"] = None
    return binding


@pytest.mark.parametrize("function", [plain, with_default, positional_only, optional_data, rest])
def test_a_call_with_nothing_but_the_dataset_is_the_same_each_time(function):
    """The shortcut would bind something else than the long way, or hold the data."""
    made = Binding.of(function)
    data = np.arange(3.0)
    for _ in range(2):
        found, call = made.bind((data,), {})
        other, slow = without_shortcut(Binding.of(function)).bind((data,), {})
        assert found is other is data
        assert (call.args, dict(call.kwargs), call.open) == (slow.args, dict(slow.kwargs), slow.open)
        assert call.others() == slow.others() and call.bare() == slow.bare()
        assert not any(value is data for value in (*call.args, *call.kwargs.values()))


def test_calls_with_other_arguments_do_not_use_the_shortcut():
    """A call with other arguments would be taken for one without, and share its estimate."""
    made = Binding.of(with_default)
    alone = made.bind((1,), {})[1].others()
    assert made.bind((1, 65), {})[1].others() == alone  # the default itself
    assert made.bind((1, 66), {})[1].others() != alone
    assert made.bind((1,), {"scale": 2.0})[1].others() != alone
    assert made.bind((), {"ages": 1})[1].others() == alone
    assert made.bind((1,), {})[1].others() == alone


def test_a_default_that_changes_is_seen():
    """A list among the defaults would count as the same argument after it has changed."""
    limits = [1]

    def within(ages, limits=limits):
        return len(limits)

    made = Binding.of(within)
    before = repr(made.bind((0,), {})[1].others())
    limits.append(2)
    assert repr(made.bind((0,), {})[1].others()) != before


@pytest.mark.parametrize(
    ("function", "options"),
    [(aligned, {"data": ("X", "y")}), (last, {"data": "ages"}), (keyword_only, {}), (variadic, {})],
)
def test_no_shortcut_where_the_first_argument_is_not_the_dataset(function, options):
    """A public argument, or one of several datasets, would be taken for the dataset."""
    assert Binding.of(function, **options)._alone is None


def test_the_shortcut_does_not_hide_required_arguments():
    """A required argument would not be left open, or its absence would not be reported."""
    assert Binding.of(required).bind((1,), {})[1].open == "limit"
    with pytest.raises(ArgumentError, match="without 'a', 'b'"):
        Binding.of(lambda ages, a, b: 0).bind((1,), {})
    coined = Binding.of(with_rng, coins=("rng",))
    assert coined.bind((1,), {})[1].args == without_shortcut(coined).bind((1,), {})[1].args


def test_a_bound_method_that_is_an_attribute_of_another_class_stays_bound():
    """A method that was read from one object would take another object for its own, or its data for self."""

    class Limited:
        def __init__(self, limit):
            self.limit = limit

        @privatize(epsilon=1e4, gamma=0.2, sampler=samplers.uniform(0, 1), store=None, seed=1)
        def share(self, x, scale=1.0):
            return float((x < self.limit).mean()) * scale

    low, high, data = Limited(0.25), Limited(0.75), np.linspace(0, 1, 100)
    other = type("Other", (), {"share": low.share})()
    assert other.share(data) == pytest.approx(0.25, abs=0.05)
    assert high.share(data) == pytest.approx(0.75, abs=0.05)
    assert low.share(data, scale=2.0) == pytest.approx(0.5, abs=0.05)
