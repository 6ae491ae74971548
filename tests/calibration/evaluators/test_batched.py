"""Stacks of datasets give the gaps of plain evaluation, or are refused."""

import ctypes
import dataclasses
import itertools
import logging
import math
import sys
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize import Exponential, Gaussian, Laplace, plan, privatize, samplers
from privatize.calibration.checks import of_all_blocks
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.neighbours import stack_of
from privatize.errors import InfiniteSensitivityError, PairError, SettingsError
from privatize.identity.fingerprint import fingerprint
from privatize.outputs.describe import describe
from tests.calibration.batches import UNIT, estimate
from tests.cases import for_each

PLANE = samplers.uniform([0.0, -1.0, 5.0], [1.0, 1.0, 9.0])
Both = namedtuple("Both", "low high")


@dataclasses.dataclass
class Moments:
    mean: float
    row: np.ndarray


def close(one, other):
    """Compare gaps of values of size one or so: sums in another order round differently."""
    assert one.m == other.m
    assert np.allclose(one.gaps, other.gaps, rtol=1e-9, atol=1e-13)


# Functions of one dataset, or of a stack of them: the records are on axis -1, or on axis -2 of records.
FUNCTIONS = {
    "float": (UNIT, lambda x: x.mean(axis=-1)),
    "median": (UNIT, lambda x: np.median(x, axis=-1)),
    "integer": (UNIT, lambda x: (x > 0.5).sum(axis=-1)),
    "integers": (samplers.integers(0, 9), lambda x: (x[..., None] == np.arange(10)).sum(axis=-2)),
    "vector": (PLANE, lambda x: x.mean(axis=-2)),
    "matrix": (PLANE, lambda x: np.swapaxes(x, -1, -2) @ x / x.shape[-2]),
    "32 bits": (PLANE, lambda x: np.median(x, axis=-2).astype(np.float32)),
    "dict": (PLANE, lambda x: {"b": x.max(axis=(-1, -2)), "a": x.mean(axis=-2)}),
    "tuple": (PLANE, lambda x: (x.mean(axis=(-1, -2)), x.max(axis=-2))),
    "list": (UNIT, lambda x: [x.min(axis=-1), (x > 0.3).sum(axis=-1)]),
    "named tuple": (UNIT, lambda x: Both(x.min(axis=-1), x.max(axis=-1))),
    "dataclass": (PLANE, lambda x: Moments(x.mean(axis=(-1, -2)), x.mean(axis=-2))),
    "nested": (UNIT, lambda x: {"a": [x.min(axis=-1), {"b": x.max(axis=-1)}], "c": (x.mean(axis=-1),)}),
}


@for_each("name", FUNCTIONS)
def test_every_kind_of_output_has_the_gaps_of_plain_evaluation(name):
    """Outputs that are stacked in another way would be given the gaps of other numbers."""
    sampler, function = FUNCTIONS[name]
    plain = estimate(function, sampler=sampler)
    stacked = estimate(function, batch=True, sampler=sampler)
    close(plain, stacked)
    assert stacked.structure == plain.structure
    assert plain.value <= stacked.value <= plain.value * (1 + 2**-15)


@for_each("name", ["integer", "integers", "median", "list", "named tuple", "32 bits"])
def test_exact_functions_have_exactly_the_same_gaps(name):
    """If nothing is rounded, a batch would still change gaps, or widen the estimate."""
    sampler, function = FUNCTIONS[name]
    plain, stacked = estimate(function, sampler=sampler), estimate(function, batch=True, sampler=sampler)
    assert np.array_equal(plain.gaps, stacked.gaps)
    assert stacked.jitter == 0.0 and stacked.value == plain.value


@pytest.mark.parametrize("n", [1, 2, 3, 40, 1000])
def test_any_number_of_records(n):
    """Datasets of one record, or short blocks of large datasets, would have other gaps in a stack."""
    plain, stacked = (
        estimate(lambda x: x.max(axis=-1) + x.min(axis=-1), batch, n=n) for batch in (False, True)
    )
    assert np.array_equal(plain.gaps, stacked.gaps)


@for_each(
    "sampler",
    [
        UNIT,
        samplers.integers(-5, 5),
        samplers.normal(0, 3),
        samplers.normal(0, 1).clip(-1, 1),
        samplers.mixture([samplers.uniform(0, 1), samplers.normal(5, 1)]),
        samplers.from_function(lambda n, rng: np.sort(rng.random(n))),
        samplers.boolean(0.3),
    ],
    ids=repr,
)
def test_every_sampler_of_arrays(sampler):
    """Samplers that draw one dataset at a time would draw others for a stack."""
    plain, stacked = (
        estimate(lambda x: x.max(axis=-1) - 2.0 * x[..., 0], batch, sampler=sampler)
        for batch in (False, True)
    )
    assert np.array_equal(plain.gaps, stacked.gaps)


def labelled():
    return samplers.labelled(
        samplers.uniform([0.0] * 2, [1.0] * 2), lambda X, rng: X @ [1, -1] + rng.normal(size=len(X))
    )


def moments(data):
    X, y = data
    return (X * y[..., None]).mean(axis=-2)


def test_aligned_data_is_a_tuple_of_stacks():
    """Data in several arrays is stacked array by array, and the same record is replaced in all."""
    plain, stacked = (estimate(moments, batch, sampler=labelled()) for batch in (False, True))
    close(plain, stacked)


def test_aligned_arguments_are_stacked_for_the_function_itself():
    """batch=True would not work for functions of several aligned arguments, such as f(X, y)."""
    made = {"epsilon": 1, "gamma": 0.1, "sampler": labelled(), "data": ("X", "y"), "seed": 1}

    def f(X, y, power=1):
        return ((X * y[..., None]) ** power).mean(axis=-2)

    plain, stacked = privatize(**made)(f), privatize(**made, batch=True)(f)
    close(plain.estimate(40, power=2), stacked.estimate(40, power=2))


def test_a_tuple_of_one_array_is_a_tuple_for_a_batch_too():
    """Otherwise the first dataset of the stack would be taken for all of them."""
    alone = samplers.from_function(lambda n, rng: (rng.random(n),))
    plain, stacked = (
        estimate(lambda data: data[0].max(axis=-1), batch, sampler=alone) for batch in (False, True)
    )
    assert np.array_equal(plain.gaps, stacked.gaps)


@dataclasses.dataclass(frozen=True)
class Last:
    """A user's mechanism, which counts the last number twice."""

    def norm(self, gap):
        return float(np.abs(gap).sum() + abs(gap[-1]))

    def scale(self, sensitivity, epsilon, delta):
        return sensitivity / epsilon

    def release(self, vector, *, sensitivity, epsilon, delta, whole):
        return vector


class Doubled(Laplace):
    """A subclass of our mechanism, with a norm of its own."""

    def norm(self, gap):
        return 2 * float(np.abs(gap).sum())


NORMS = {
    "l1": "l1",
    "l2": "l2",
    "sup": "sup",
    "laplace": Laplace().norm,
    "gaussian": Gaussian().norm,
    "range": Exponential(responses=["a", "b", "c"]).norm,
    "user's": Last().norm,
    "made of ours": Doubled().norm,
    "function": lambda gap: float(np.sqrt(np.abs(gap)).sum()),
}


@for_each("name", NORMS)
def test_every_norm_of_a_stack_is_that_of_its_pairs(name):
    """A gap in another norm than that of the noise would not protect anybody."""
    plain, stacked = (
        estimate(lambda x: np.median(x, axis=-2), batch, sampler=PLANE, norm=NORMS[name])
        for batch in (False, True)
    )
    assert np.allclose(plain.gaps, stacked.gaps, rtol=1e-15, atol=0)


@pytest.mark.parametrize("scaled", ["total", "relative"])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_learned_weights_are_used_in_stacks(kind, scaled):
    """Gaps without the weights that the noise has would be too small."""
    mechanism = kind(scaled=scaled)
    rest = {"norm": mechanism.norm, "scaled": mechanism, "sampler": samplers.uniform([0, 0], [1, 100])}
    plain, stacked = (estimate(lambda x: np.median(x, axis=-2), batch, **rest) for batch in (False, True))
    assert plain.shape == stacked.shape and min(plain.shape.powers) < 0
    assert np.allclose(plain.gaps, stacked.gaps, rtol=1e-15, atol=0)


SPANS = st.lists(st.integers(0, 300), min_size=1, max_size=6, unique=True)


@settings(max_examples=25, deadline=None)
@given(SPANS, st.sampled_from(["uniform", "mixture", "tuple"]), st.booleans())
def test_any_division_into_spans(cuts, kind, backwards):
    """Gaps would depend on which process evaluates which pairs, and in which order."""
    sampler, function = {
        "uniform": (UNIT, lambda x: x.max(axis=-1)),
        "mixture": (samplers.mixture([UNIT, samplers.normal(0, 1)]), lambda x: x.max(axis=-1)),
        "tuple": (labelled(), lambda d: d[0].max(axis=(-1, -2)) + d[1].max(axis=-1)),
    }[kind]
    ends = sorted({0, 301, *cuts})
    spans = list(itertools.pairwise(ends))[:: -1 if backwards else 1]
    made = {"n": 5, "sampler": sampler, "norm": np.abs, "seed": 3}
    plain, stacked = (
        evaluator(function, **{**made, "norm": lambda g: float(abs(g[0]))}, batch=b) for b in (False, True)
    )
    found = np.full(301, np.nan)
    expected = plain.evaluate((0, 301), plain.learned).gaps
    stacked.evaluate((0, 1), stacked.learned)  # the structure
    for start, stop in spans:
        found[start:stop] = stacked.evaluate((start, stop), stacked.learned).gaps
    assert np.array_equal(found, expected)


def test_wide_records_are_stacked_a_few_at_a_time():
    """A block of many wide datasets at once would not fit into memory."""
    seen = []

    def largest(x):
        seen.append(x.nbytes)
        return x.max(axis=(-1, -2))

    wide = samplers.uniform(0, 1, size=2000)
    stacked = estimate(largest, batch=True, n=50, sampler=wide, gamma=0.2)
    assert max(seen) < 2**22
    assert np.array_equal(stacked.gaps, estimate(largest, n=50, sampler=wide, gamma=0.2).gaps)


def test_in_two_processes():
    """Workers would measure other gaps in stacks, or evaluate no stacks."""
    _, function = FUNCTIONS["median"]
    here = estimate(function, batch=True, plan=plan(0.05))
    assert np.array_equal(here.gaps, estimate(function, batch=True, plan=plan(0.05), workers=2).gaps)


# --- wrong batches ----------------------------------------------------------------------------


def mean(x):
    return float(x.mean())


def half(stack):
    made = stack.mean(axis=1)
    made[len(made) // 2 :] = 0.0
    return made


def mixed(stack):
    return np.roll(stack.mean(axis=1), 1)


def clipped(stack):
    return np.clip(stack.mean(axis=1), 0.49, 0.51)


def by_number(stack):
    return stack.sum(axis=1) / len(stack)


def smaller_where_large(stack):
    made = stack.mean(axis=1)
    return np.where(made > 0.5, 0.5 + (made - 0.5) / 2, made)


WRONG = {
    "half of it": lambda s: s.mean(axis=1) / 2,
    "a little less": lambda s: s.mean(axis=1) * (1 - 1e-5),
    "constant": lambda s: np.ones(len(s)),
    "ignores half of the stack": half,
    "mixes datasets": mixed,
    "mixes all datasets": lambda s: s.mean(axis=1) - s.mean(),
    "by the number of datasets": by_number,
    "wrong on large values": smaller_where_large,
    "clipped": clipped,
    "the first record": lambda s: s[:, 0],
    "rounded": lambda s: s.mean(axis=1).round(3),
}


@for_each("name", WRONG)
def test_a_wrong_batch_is_refused(name):
    """A batch that gives smaller gaps than the function would mean too little noise."""
    with pytest.raises(PairError, match="batch= disagrees with plain evaluation"):
        estimate(mean, batch=WRONG[name], n=20)


@for_each("seed", range(20))
def test_a_batch_that_is_wrong_for_half_of_the_pairs(seed):
    """With eight random pairs one in 2^8 such batches would pass; the largest gaps are compared too."""
    with pytest.raises(PairError):
        estimate(mean, batch=clipped, n=20, seed=seed)


SHAPES = {
    "over the wrong axis": lambda s: s.mean(axis=0),
    "one number": lambda s: s.mean(),
    "a column": lambda s: s.mean(axis=1, keepdims=True),
    "booleans": lambda s: s.mean(axis=1) > 0.5,
    "complex numbers": lambda s: s.mean(axis=1) + 0j,
    "strings": lambda s: np.array(["a"] * len(s)),
    "a dict": lambda s: {"mean": s.mean(axis=1)},
    "nothing": lambda s: None,
    "one too few": lambda s: s.mean(axis=1)[1:],
}


@for_each("name", SHAPES)
def test_a_batch_that_returns_no_stack_is_refused(name):
    """A batch that does not work would be replaced by plain evaluation without a word, or misread."""
    with pytest.raises(PairError, match="batch= returns something else than a stack"):
        estimate(mean, batch=SHAPES[name])


def test_a_batch_that_raises_where_the_function_works():
    """The error would not say what the batch raised, or not have its traceback."""

    def broken(stack):
        raise KeyError("mean")

    with pytest.raises(PairError, match="batch= raises KeyError: 'mean'") as caught:
        estimate(mean, batch=broken)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(PairError, match="batch= raises KeyError: 'mean'"):
        estimate(mean, batch=broken, workers=2)


def test_a_stack_that_does_not_fit_into_memory_is_evaluated_plainly():
    """A function that works would be refused because a stack does not fit into memory."""

    def hungry(stack):
        raise MemoryError

    assert np.array_equal(estimate(mean, batch=hungry).gaps, estimate(mean).gaps)


def test_missing_and_additional_keys_are_refused():
    """Numbers under one name would be compared with numbers under another."""

    def both(x):
        return {"low": float(x.min()), "high": float(x.max())}

    def reordered(s):
        return {"high": s.max(axis=1), "low": s.min(axis=1)}

    assert np.array_equal(estimate(both, batch=reordered).gaps, estimate(both).gaps)  # by name, in any order
    for wrong in (
        lambda s: {"low": s.min(axis=1)},
        lambda s: {**reordered(s), "more": s.min(axis=1)},
        lambda s: {"low": s.min(axis=1), "top": s.max(axis=1)},
        lambda s: (s.min(axis=1), s.max(axis=1)),
    ):
        with pytest.raises(PairError, match="returns something else"):
            estimate(both, batch=wrong)
    with pytest.raises(PairError, match="disagrees"):
        estimate(both, batch=lambda s: {"low": s.max(axis=1), "high": s.max(axis=1)}, norm="l1")


# --- functions that write to their data, or use randomness ------------------------------------


def overwriting(stack):
    found = stack.max(axis=-1)
    stack[...] = 7.0
    return found


def test_a_batch_that_overwrites_its_stack():
    """A function that sorts or overwrites its data in place would change the neighbours."""
    expected = estimate(lambda x: x.max(axis=-1)).gaps
    assert np.array_equal(estimate(overwriting, batch=True).gaps, expected)

    def sorting(stack):
        stack.sort(axis=-1)
        return stack[..., -1]  # and a view of it

    assert np.array_equal(estimate(sorting, batch=True).gaps, expected)


def test_a_batch_that_writes_for_some_data_only():
    """A function that rarely writes to its stack would have other gaps."""

    def rarely(stack):
        found = stack.max(axis=-1)
        if stack[..., 0].max() > 0.998:
            stack[...] = 0.0
        return found

    for n in (3, 40, 20_000):
        expected = estimate(lambda x: x.max(axis=-1), n=n).gaps
        assert np.array_equal(estimate(lambda x: x.max(axis=-1), batch=rarely, n=n).gaps, expected)


def test_a_batch_that_stores_its_stacks():
    """A function that stores references to its data would have other gaps."""
    stored = []

    def storing(stack):
        stored.append(stack)
        return stack.max(axis=-1)

    def comparing(stack):
        stored.append(stack)
        return stack.max(axis=-1) + 0.0 * stored[0].max()

    expected = estimate(lambda x: float(x.max()), n=2000).gaps
    for batch in (storing, comparing):
        assert np.array_equal(estimate(lambda x: float(x.max()), batch=batch, n=2000).gaps, expected)
        stored.clear()


def by_address(stack):
    """Return an array in the same memory that can be written to, even if the stack is read-only."""
    span = sum((length - 1) * step for length, step in zip(stack.shape, stack.strides, strict=True))
    memory = (ctypes.c_double * (span // 8 + 1)).from_address(stack.ctypes.data)
    return np.ndarray(stack.shape, np.float64, memory, strides=stack.strides)


def test_a_batch_that_writes_by_address():
    """Code in C can write to read-only arrays, which would change the neighbours."""

    def centred(stack):
        found = stack.max(axis=-1)
        by_address(stack)[...] -= 0.5
        return found

    expected = estimate(lambda x: float(x.max())).gaps
    assert np.array_equal(estimate(lambda x: float(x.max()), batch=centred).gaps, expected)
    assert np.array_equal(estimate(lambda x: float(x.max()), batch=centred, workers=2).gaps, expected)


def test_one_buffer_for_all_outputs():
    """A function that returns the same array every time would overwrite its first output."""
    buffer = np.zeros(1000)

    def reused(stack):
        found = buffer[: len(stack)] if stack.ndim > 1 else buffer[:1].reshape(())
        np.max(stack, axis=-1, out=found)
        return found

    # Only in the batch: the check for changes would refuse the buffer in the function itself.
    assert np.array_equal(
        estimate(lambda x: float(x.max()), batch=reused).gaps, estimate(lambda x: float(x.max())).gaps
    )


@pytest.mark.parametrize("workers", ["inline", 2])
def test_randomness_is_refused(workers):
    """In one call every dataset would get other random numbers than by itself."""

    def noisy(x):
        return x.mean(axis=-1) + np.random.rand(*x.shape[:-1])

    with pytest.raises(PairError, match="global random generators"):
        estimate(noisy, batch=True, workers=workers)
    with pytest.raises(PairError, match="global random generators"):
        estimate(mean, batch=noisy, workers=workers)


def test_randomness_on_the_first_neighbours_only_is_refused():
    """Randomness that only the first of two calls uses would go unnoticed."""
    calls = []

    def first(stack):
        calls.append(1)
        if len(calls) % 2:
            np.random.rand()
        return stack.mean(axis=1)

    with pytest.raises(PairError, match="global random generators"):
        estimate(mean, batch=first)


def test_randomness_in_one_of_many_blocks_is_refused():
    """Randomness that only one of many blocks uses would go unnoticed."""
    calls = []

    def once(stack):
        calls.append(1)
        if len(calls) == 15:
            np.random.rand()
        return stack.mean(axis=1)

    with pytest.raises(PairError, match="global random generators"):
        estimate(mean, batch=once, n=20_000)


def test_importing_torch_is_no_randomness(monkeypatch):
    """If torch has been imported, every batch would be refused, or data would be read-only."""
    if "torch" in sys.modules:
        pytest.skip("torch is loaded")

    class State:
        def cpu(self):
            return self

        def numpy(self):
            return np.arange(3)

    class Fake:
        manual_seed = staticmethod(lambda s0: None)

        class random:
            get_rng_state = State

            class fork_rng:
                __enter__ = __exit__ = lambda *_: None

        class cuda:
            is_initialized = staticmethod(lambda: False)

        class backends:
            class mps:
                is_available = staticmethod(lambda: False)

    def writing(stack):
        found = stack.mean(axis=1)
        by_address(stack)[...] = 0.0
        return found

    monkeypatch.setitem(sys.modules, "torch", Fake)
    for batch in (lambda s: s.mean(axis=1), writing):
        close(estimate(mean), estimate(mean, batch=batch))


# --- what is compared with plain evaluation ---------------------------------------------------


@for_each(
    ("m", "block"), [(7, 256), (32, 256), (256, 256), (257, 256), (557, 256), (5000, 256), (300, 26), (40, 1)]
)
@for_each("most", [8, 32])
def test_pairs_of_all_blocks_are_compared_at_random(m, block, most):
    """A `batch=` that is wrong for some stacks only would pass, or too few pairs would be compared."""
    gaps, seen = np.ones(m), set()
    for seed in range(200):
        found = of_all_blocks(gaps, block, np.random.default_rng(seed), most)
        assert min(m, most) <= len(found) <= most + 2 and min(found) >= 0 and max(found) < m
        seen |= {index // block for index in found}
        assert (m - 1) // block in {index // block for index in found}
    assert seen == set(range((m - 1) // block + 1))
    gaps[::2] = np.inf
    found = of_all_blocks(gaps, block, np.random.default_rng(1), most)
    assert np.isfinite(gaps[sorted(found)]).all()


# --- datasets that fail -----------------------------------------------------------------------


def picky(x):
    found = x.max(axis=-1)
    if np.any(found > 0.999):
        raise ValueError("too large")
    return found


def test_a_dataset_that_fails():
    """A dataset that fails in a stack would not count as a failure, or all others would."""
    plain = estimate(picky, n=30, plan=plan(0.2, 300), seed=2)
    stacked = estimate(picky, batch=True, n=30, plan=plan(0.2, 300), seed=2)
    assert plain.failed > 0
    assert np.array_equal(plain.gaps, stacked.gaps)
    assert (stacked.failed, stacked.cause) == (plain.failed, plain.cause) and "too large" in stacked.cause


def test_numbers_that_are_not_finite_are_infinite_gaps():
    """NaN or infinity in a stack would not count as a failure, or for other pairs too."""

    def odd(x):
        found = x.max(axis=-1)
        return np.where(found > 0.999, np.nan, np.where(found < 0.85, np.inf, found))[()]

    plain = estimate(odd, n=30, plan=plan(0.2, 300), seed=2)
    stacked = estimate(odd, batch=True, n=30, plan=plan(0.2, 300), seed=2)
    assert 0 < plain.failed == stacked.failed
    assert np.array_equal(plain.gaps, stacked.gaps)
    assert stacked.cause == plain.cause and "not finite" in stacked.cause


def test_too_many_failures_are_refused_with_the_first_cause():
    """The error would give the cause for a stack, and not that of the function."""

    def failing(x):
        if np.any(x[..., 0] > 0.3):
            raise ValueError("no such thing")
        return x.mean(axis=-1)

    for workers in ("inline", 2):
        with pytest.raises(InfiniteSensitivityError, match="ValueError: no such thing"):
            estimate(failing, batch=True, workers=workers)


def test_a_batch_that_hides_failures_is_refused():
    """A batch that returns numbers where the function fails would hide the failures."""

    def failing(x):
        if x[0] > 0.8:
            raise ValueError
        return float(x.mean())

    with pytest.raises(PairError, match="the function fails on sampled pair"):
        estimate(failing, batch=lambda s: s.mean(axis=1))


# --- what does not go together ----------------------------------------------------------------


@pytest.mark.parametrize("frame", ["dict", "pandas", "polars"])
def test_tables_have_no_stacks(frame):
    """Frames and dicts of columns cannot be stacked; the error would not say so."""
    if frame != "dict":
        pytest.importorskip(frame)
    table = samplers.table(frame=frame, age=samplers.integers(18, 90))
    with pytest.raises(SettingsError, match="must be numpy arrays of numbers, and here they are"):
        estimate(lambda people: float(people["age"].mean()), batch=True, sampler=table)


def test_lists_and_objects_have_no_stacks():
    """Lists and arrays of objects would be stacked into something else."""
    lists = samplers.from_function(lambda n, rng: rng.random(n).tolist())
    with pytest.raises(SettingsError, match="here they are list"):
        estimate(lambda x: sum(x), batch=True, sampler=lists)
    objects = samplers.from_function(lambda n, rng: rng.random(n).astype(object))
    with pytest.raises(SettingsError, match="arrays of objects"):
        estimate(lambda x: float(sum(x)), batch=True, sampler=objects)


def test_arrays_of_different_dtypes_are_refused():
    """Stacking would turn integers into floats, and masked values into numbers."""
    one, other = np.zeros(3), np.zeros(3, dtype=int)
    for odd in (other, np.zeros(4), one.astype(np.float32)):
        with pytest.raises(SettingsError, match="different dtypes or shapes"):
            stack_of([one, odd])
    with pytest.raises(SettingsError, match="must be numpy arrays"):
        stack_of([one, np.ma.masked_array(one, one == 0)])
    assert [part.shape for part in stack_of([(one, other), (one, other)])] == [(2, 3), (2, 3)]


def test_rows_of_a_stack_are_copies():
    """A row that is a view would change with the function's buffer."""
    buffer = np.ones(3)
    rows = describe(0.0).rows(buffer, 3)
    buffer[:] = 5
    assert rows.tolist() == [[1], [1], [1]]


# --- the private run --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The estimate for spied")
def test_private_data_is_never_stacked():
    """A batch would get private data, which only the function itself may get, and not in a stack."""
    notes = logging.getLogger("notes of stacks")  # the fingerprint does not read its attributes
    notes.shapes, notes.batches = [], []

    def spied(x):
        if (x == 0.123).any():
            notes.shapes.append(x.shape)
        return np.median(x, axis=-1)

    def batch(stack):
        notes.batches.append(bool((stack == 0.123).any()))
        return np.median(stack, axis=-1)

    for kind in (True, batch):
        f = privatize(epsilon=1, gamma=0.1, sampler=UNIT, batch=kind, seed=1)(spied)
        f(np.full(40, 0.123))
        assert notes.shapes == [(40,)] and not any(notes.batches)
        notes.shapes.clear()
    assert notes.batches


def test_a_batch_is_part_of_the_key():
    """Gaps of another batch, or of none, would be used."""
    made = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "seed": 1}

    def f(x):
        return x.mean(axis=-1)

    kinds = [False, True, lambda s: s.mean(axis=1), lambda s: s.mean(axis=1) + 0]
    keys = {fingerprint(privatize(**made, batch=kind)(f).settings.key) for kind in kinds}
    assert len(keys) == 4


def test_a_global_that_a_batch_reads_is_part_of_the_key():
    """After a change of a global that the batch reads, the old estimate would be used."""
    scope = {"factor": 1.0}
    exec("def batch(s): return s.mean(axis=1) * factor", scope)
    f = privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, batch=scope["batch"])(mean)
    before = f.estimate(40).value
    assert f.estimate(40).value == before
    scope["factor"] = 0.5
    with pytest.raises(PairError, match="disagrees"):
        f.estimate(40)


def test_other_arguments_of_a_batch():
    """With batch=True the function would not get its public arguments, or get stacks of them."""

    def above(x, limit, scale=1.0):
        return scale * (x > limit).mean(axis=-1)

    made = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "seed": 1}
    plain, stacked = privatize(**made)(above), privatize(**made, batch=True)(above)
    close(plain.estimate(40, 0.3, scale=2.0), stacked.estimate(40, 0.3, scale=2.0))


def test_rounding_that_is_too_coarse_is_refused():
    """A batch in single precision that is off by more than a millionth of a gap is another function."""
    single = samplers.uniform(1000, 1001)
    with pytest.raises(PairError, match="disagrees"):
        estimate(mean, batch=lambda s: s.astype(np.float32).mean(axis=1), sampler=single)


def test_rounding_widens_the_estimate():
    """A batch that sums in another order would be refused, or the estimate would ignore its rounding."""

    def backwards(stack):
        return np.add.reduce(stack[:, ::-1].T, axis=0) / stack.shape[1]

    plain, stacked = estimate(mean, n=500), estimate(mean, batch=backwards, n=500)
    assert stacked.jitter > 0 and not np.array_equal(plain.gaps, stacked.gaps)
    assert plain.value < stacked.value <= plain.value * (1 + 2**-15)


def test_jax_functions_are_mapped_over_stacks():
    """A jax function could not be used as a batch with jax.vmap."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def smooth(x):
        return jax.numpy.log(jax.numpy.exp(5 * x).mean()) / 5

    batch = jax.jit(jax.vmap(smooth))
    plain = estimate(lambda x: float(smooth(x)), gamma=0.2)
    stacked = estimate(lambda x: float(smooth(x)), batch=lambda s: np.asarray(batch(s)), gamma=0.2)
    close(plain, stacked)


def test_infinite_gaps_do_not_hide_a_wrong_batch():
    """If all pairs fail, nothing can be compared, and a wrong batch would pass."""
    with pytest.raises(InfiniteSensitivityError):
        estimate(lambda x: math.nan, batch=lambda s: np.full(len(s), np.nan))
