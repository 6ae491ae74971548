"""What the library hands out can be pickled, copied and sent to other processes, without private data."""

import copy
import functools
import multiprocessing
import pickle
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import pytest

from privatize import (
    Bernstein,
    BernsteinPolynomial,
    Exponential,
    Gaussian,
    Laplace,
    Settings,
    audit,
    errors,
    estimate_sensitivity,
    plan,
    privatize,
    report,
    samplers,
)
from privatize.errors import PlanError, PrivatizeError, SettingsError
from tests.cases import for_each

SECRET = 0.7182818284590452  # appears in the private data only
UNIT = samplers.uniform(0, 1)


class Summary(NamedTuple):
    mean: float
    largest: float


def summary(x):
    return Summary(float(x.mean()), float(x.max()))


def framed(x):
    import pandas as pd

    class Local(NamedTuple):  # a class that no pickle can name
        mean: float

    return {"frame": pd.DataFrame({"mean": [x.mean()], "sum": [x.sum()]}), "local": 0.0 * len(Local._fields)}


def fitted(x):
    from sklearn.linear_model import Ridge

    return Ridge().fit(x[:, None], x)


def made(function=summary, **settings):
    facts = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "seed": 1, "workers": "inline", "store": None}
    return privatize(**(facts | settings))(function)


private = made()
_unit_table = samplers.table(age=samplers.integers(0, 99), sex=samplers.categorical(["F", "M"]))


@functools.cache
def values():
    """Return one of everything that the library hands out."""
    data = np.full(30, SECRET)
    found = {
        "estimate": private.estimate(30),
        "weighted estimate": made(mechanism=Laplace(scaled="relative")).estimate(30),
        "estimate without a function": estimate_sensitivity(
            np.mean, n=5, sampler=UNIT, norm="l1", plan=plan(0.2), seed=1, workers="inline"
        ),
        "remembered estimate": made(store="memory").estimate(30),
        "release": private.release(data),
        "plan": plan(0.1),
        "audit": audit(private, 30, pairs=50, releases=200, workers="inline"),
        "report": report(private, 30),
        "settings": private.settings,
        "private function": private,
        "polynomial": BernsteinPolynomial.through(np.ones(3)),
    }
    if find_spec("pandas") is not None:
        found["estimate of a frame"] = made(framed).estimate(30)
    if find_spec("sklearn") is not None:
        found["estimate of a model"] = made(fitted).estimate(30)
        found["release of a model"] = made(fitted).release(data)
    mechanisms = [
        Laplace(), Laplace(scaled="total"), Gaussian(calibration="classic"), Gaussian(scaled="relative"),
        Exponential(["a", 1, None], prior=[1, 2, 3]), Bernstein(4, 2, 2, "sup"),
    ]  # fmt: skip
    some = [
        UNIT, samplers.normal([0, 1], [1, 2]), samplers.integers(0, 9), samplers.boolean(0.3), _unit_table,
        _unit_table["age"], samplers.categorical(["a", "b"], [1, 2]), samplers.with_missing(UNIT, 0.1),
        samplers.choice([1, 2]), samplers.dates("2020-01-01", "2020-12-31"),
        samplers.bootstrap(np.arange(9.0)),
        samplers.mixture([UNIT, samplers.normal(0, 1)]), samplers.blobs([[0, 0], [1, 1]]),
        samplers.normal(0, 1).truncated(-1, 1),
    ]  # fmt: skip
    return found | {repr(x): x for x in (*mechanisms, *some)}


def shown(value):
    """Return a value's repr, or the reprs of settings; without what is not sent: `workers`, and ids."""
    if isinstance(value, Settings):
        return {name: repr(each) for name, each in vars(value).items() if name not in ("workers", "short")}
    return repr(value)


def echo(connection):
    """Receive values in another process, and send back what `shown` returns there, and the values."""
    while (received := connection.recv()) is not None:
        connection.send((shown(received), received))


@pytest.mark.parametrize("how", ["pickle", "copy", "deepcopy"])
def test_everything_pickles_and_copies(how):
    """A user could not send an estimate to a worker, cache it, or keep it beside a model."""
    ways = {"pickle": lambda v: pickle.loads(pickle.dumps(v)), "copy": copy.copy, "deepcopy": copy.deepcopy}
    for name, value in values().items():
        assert shown(ways[how](value)) == shown(value), name


def test_through_a_process_of_its_own():
    """A user's newly started worker could not read what it is sent, or send it back."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    worker = context.Process(target=echo, args=(there,))
    worker.start()
    try:
        for name, value in values().items():
            here.send(value)
            seen, back = here.recv()
            assert seen == shown(value) == shown(back), name
    finally:
        here.send(None)
        worker.join()


def test_nothing_private_is_in_it():
    """A user's pickles, which are passed on as public, would hold records."""
    raw = np.float64(SECRET).tobytes()
    for name, value in values().items():
        blob = pickle.dumps(value)
        assert raw not in blob and raw[::-1] not in blob and repr(SECRET).encode() not in blob, name


class TestPickledEstimates:
    """An estimate that was pickled says the same, and is read-only."""

    def test_it_says_the_same(self):
        """A user would compute with other numbers in another process."""
        found = private.estimate(30)
        again = pickle.loads(pickle.dumps(found))
        for name in (
            "value",
            "n",
            "plan",
            "gamma",
            "average_gamma",
            "rho",
            "norm",
            "seed",
            "coin_seed",
            "failed",
        ):
            assert getattr(again, name) == getattr(found, name)
        np.testing.assert_array_equal(again.gaps, found.gaps)
        assert again.whole.tolist() == found.whole.tolist()
        assert not again.gaps.flags.writeable
        assert again._repr_html_() == found._repr_html_()

    def test_a_further_look_is_refused(self):
        """A user could look at many plans in a copy, and use the best with the gamma of one look."""
        found = made(seed=5).estimate(30)
        again = pickle.loads(pickle.dumps(found))
        assert again.at(0.2).value == found.value  # the plan that was read before is no further look
        with pytest.raises(PlanError, match="was unpickled"):
            again.at(0.5)
        assert again.gamma == 0.2

    def test_copies_share_their_looks(self):
        """A user could look at many plans in a copy, and use the best with the gamma of one look."""
        found = made(seed=6).estimate(30)
        copy.deepcopy(found).at(0.5)
        copy.copy(found).at(0.4)
        assert found.looks == 3
        assert found.gamma > 0.2


@for_each(
    "kind",
    [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, PrivatizeError | errors.PrivatizeWarning)
    ],
)
def test_errors_copy(kind):
    """A user's framework that copies errors would raise another one."""
    error = kind("a message")
    for again in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(again) is kind and again.args == error.args


def test_a_pickled_settings_error_has_its_message():
    """A user would see an error without its remedy from a worker."""
    with pytest.raises(SettingsError) as caught:
        plan(2.0)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
