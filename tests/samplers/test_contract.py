"""What every sampler must do, whoever wrote it: the cases are the code of samplers of every kind.

The cases are listed where their kinds are tested, as code, so that another process can make them too.
"""

import dataclasses
import inspect
import json
import os
import pickle
import random
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import cloudpickle
import numpy as np
import pytest

from privatize import samplers
from privatize.data import records
from privatize.errors import PrivatizeError
from privatize.identity.declared import declare
from privatize.identity.fingerprint import fingerprint
from privatize.samplers import as_sampler
from privatize.samplers.base import skip, traits_of
from tests.cases import for_each
from tests.samplers import columns as tables
from tests.samplers import combinations as combined

NUMBERS = [
    "uniform()",
    "uniform(0, [1, 2, 3], size=(2, 3))",
    "normal(40, 12)",
    "normal([0, 5], [1, 2])",
    "normal([0, 0], cov=[[1, 0.5], [0.5, 1]])",
    "normal(40, 12, low=10, high=120)",
]
NAMES = combined.NAMES | tables.NAMES
FUNCTIONS = {function.__name__: function for function in combined.FUNCTIONS + tables.FUNCTIONS}
# These need no function of a user, so their fingerprint is the same in every process.
PORTABLE = [*NUMBERS, *combined.WITHOUT_FUNCTIONS, *tables.WITHOUT_FUNCTIONS, *combined.BOOTSTRAPS]
OTHERS = [*combined.WITH_FUNCTIONS, *combined.SCIPY, *tables.WITH_FUNCTIONS]
# A bootstrap's repr does not have its data.
WRITTEN = [code for code in PORTABLE + OTHERS if code not in combined.BOOTSTRAPS]
CONSTANT = ["categorical(['only'])", "boolean(0)", "boolean(1)"]


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def make(code):
    """Make a sampler from its code."""
    return eval(code, dict(NAMES))


@for_each("code", NUMBERS + combined.CODES)
def test_the_support_holds_everything_drawn(code):
    """``domain="clip"`` would move private records to where P never draws, and the promise is about P."""
    sampler = make(code)
    assert combined.inside(sampler.draw(400, rng(1)), sampler.support)


@for_each("code", tables.CODES)
def test_the_support_of_tables_holds_everything_drawn(code):
    """``domain="clip"`` would move private records to where P never draws, and the promise is about P."""
    sampler = make(code)
    support, drawn = sampler.support, tables.columns_of(sampler.draw(300, rng(1)))
    if isinstance(support, dict):
        assert list(drawn) == list(support)
    for name, values in drawn.items():
        assert tables.lies_in(values, support[name] if isinstance(support, dict) else support)


@for_each("code", WRITTEN)
def test_a_repr_is_the_code_that_makes_it(code):
    """What a report prints as P could not be put back into the code."""
    sampler = make(code)
    again = as_sampler(make(repr(sampler)))
    assert again == sampler
    assert repr(again) == repr(sampler)
    assert records.equal(again.draw(9, rng(2)), sampler.draw(9, rng(2)))
    assert repr(again.support) == repr(sampler.support)


@for_each("code", PORTABLE + OTHERS)
def test_equal_samplers_have_equal_hashes_and_fingerprints(code):
    """The same P, made twice, would be calibrated twice and budgeted twice."""
    one, other = make(code), make(code)
    assert one == other
    assert hash(one) == hash(other)
    assert fingerprint(one) == fingerprint(other)


@for_each("code", PORTABLE + OTHERS)
def test_the_same_numbers_make_the_same_sampler(code):
    """A colleague who writes 1.0 for 1 would have another P in the ledger, and be refused."""
    one = make(code)
    try:
        other = make(re.sub(r"(?<![\w.'])(\d+)(?![\w.'])", r"\1.0", code))
    except (PrivatizeError, TypeError):
        return  # integers are needed here
    if one == other:  # fixed values and arguments of functions may also differ by their type
        assert fingerprint(one) == fingerprint(other)
        assert declare(one).digest == declare(other).digest


@for_each("code", PORTABLE + OTHERS)
def test_a_streamable_sampler_draws_number_by_number(code):
    """Pairs would have other records if they are drawn together, and an estimate could not be repeated."""
    sampler = make(code)
    if traits_of(sampler).streamable:
        one, other = rng(7), rng(7)
        parts = [sampler.draw(n, other) for n in (1, 12, 17)]
        assert records.equal(sampler.draw(30, one), records.concat(parts))
        assert one.random() == other.random()


def test_different_samplers_are_not_equal():
    """A guarantee for one P would be taken for a guarantee for another."""
    made = [make(code) for code in PORTABLE + OTHERS]
    for at, one in enumerate(made):
        for other in made[at + 1 :]:
            assert one != other
    assert len(set(made)) == len(made)
    assert len({fingerprint(one) for one in made}) == len(made)


@for_each("code", PORTABLE + OTHERS)
def test_samplers_pickle(code):
    """A sampler could not be sent to a worker."""
    sampler = make(code)
    for library in (pickle, cloudpickle):
        back = pickle.loads(library.dumps(sampler))
        assert back == sampler
        assert fingerprint(back) == fingerprint(sampler)
        assert records.equal(back.draw(5, rng(3)), sampler.draw(5, rng(3)))


def in_another_process(hash_seed):
    """Return the fingerprints that a fresh process finds."""
    code = "\n".join(
        [
            "import json, math, numpy, numpy as np, scipy, scipy.stats, sys",
            "from math import inf",
            "from numpy import exp, rint",
            "from privatize.samplers import *",
            "from privatize.identity.fingerprint import fingerprint",
            *(textwrap.dedent(inspect.getsource(function)) for function in FUNCTIONS.values()),
            "json.dump([fingerprint(eval(code)) for code in json.load(sys.stdin)], sys.stdout)",
        ]
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps(PORTABLE + OTHERS),
        capture_output=True,
        text=True,
        timeout=300,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_fingerprints_are_the_same_in_every_process():
    """Every new process would calibrate again what the last one has stored."""
    one, other = in_another_process("1"), in_another_process("2")
    assert one == other
    assert one[: len(PORTABLE)] == [fingerprint(make(code)) for code in PORTABLE]


@for_each("code", PORTABLE + OTHERS)
def test_a_draw_is_a_function_of_the_generator(code):
    """An estimate could not be computed again, since hidden randomness does not depend on its seed."""
    sampler = make(code)
    before = np.random.get_state()[1].tobytes(), random.getstate()
    one, other = sampler.draw(40, rng(4)), sampler.draw(40, rng(4))
    assert records.equal(one, other)
    assert (np.random.get_state()[1].tobytes(), random.getstate()) == before
    if code not in CONSTANT:
        assert not records.equal(one, sampler.draw(40, rng(5)))


@for_each("code", PORTABLE + OTHERS)
def test_skipping_uses_a_generator_as_drawing_does(code):
    """A pair that is measured again, or by another worker, would be another pair."""
    sampler, drawing, skipping = make(code), rng(4), rng(4)
    for n in (40, 1, 7):
        sampler.draw(n, drawing)
        skip(sampler, n, skipping)
        assert drawing.bit_generator.state == skipping.bit_generator.state


def test_derived_samplers_are_drawn_from_to_skip():
    """A derived class may use more random numbers than its base knows of."""
    base = samplers.table(a=samplers.uniform(0, 1), frame="dict")

    class Longer(type(base)):
        def draw(self, n, rng):
            rng.random(5)
            return super().draw(n, rng)

    derived, drawing, skipping = Longer(base.columns, base.frame), rng(4), rng(4)
    derived.draw(3, drawing)
    skip(derived, 3, skipping)
    assert drawing.bit_generator.state == skipping.bit_generator.state


@for_each("code", PORTABLE + OTHERS)
def test_very_small_draws(code):
    """One record, or none, would have another schema than many."""
    sampler = make(code)
    many = sampler.draw(50, rng(6))
    for n in (0, 1):
        drawn = sampler.draw(n, rng(6))
        assert type(drawn) is type(many)
        assert records.count(drawn) == n
        assert records.describe(drawn) == records.describe(many)
        if code in tables.CODES:
            assert tables.schema_of(drawn) == tables.schema_of(many)


@for_each("code", PORTABLE + OTHERS)
def test_samplers_are_frozen(code):
    """P could be changed after calibration, by hand or through the support that it returns."""
    sampler = make(code)
    for field in dataclasses.fields(sampler):
        with pytest.raises(AttributeError):
            setattr(sampler, field.name, None)
    before, support = repr(sampler.support), sampler.support
    if isinstance(support, dict):
        support.clear()
    for end in support if isinstance(support, tuple) else ():
        if isinstance(end, np.ndarray) and end.ndim and end.flags.writeable:
            end[:] = 99
    assert repr(sampler.support) == before
