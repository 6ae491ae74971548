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

from privatize import Exponential, Gaussian, Laplace, estimate_sensitivity, plan, privatize, samplers
from privatize.calibration.checks import check_trusted, largest, of_all_blocks
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.neighbours import stack_of
from privatize.calibration.norms import NORMS as OURS
from privatize.calibration.norms import Norm
from privatize.errors import InfiniteSensitivityError, PairError, SettingsError
from privatize.identity.fingerprint import fingerprint
from privatize.outputs.describe import describe

UNIT = samplers.uniform(0, 1)
PLANE = samplers.uniform([0.0, -1.0, 5.0], [1.0, 1.0, 9.0])
Both = namedtuple("Both", "low high")


@dataclasses.dataclass
class Moments:
    mean: float
    row: np.ndarray


def estimate(function, batch=False, n=40, sampler=UNIT, norm="l1", gamma=0.1, seed=1, **rest):
    made = rest.pop("plan", None) or plan(gamma)
    rest = {"workers": "inline", "min_sensitivity": 1e-12} | rest
    return estimate_sensitivity(
        function, n=n, sampler=sampler, norm=norm, plan=made, seed=seed, batch=batch, **rest
    )


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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_form_of_answer_has_the_gaps_of_plain_evaluation(name):
    """An answer that is stacked in another way would be calibrated to somebody else's gaps."""
    sampler, function = FUNCTIONS[name]
    plain = estimate(function, sampler=sampler)
    stacked = estimate(function, batch=True, sampler=sampler)
    close(plain, stacked)
    assert stacked.structure == plain.structure
    assert plain.value <= stacked.value <= plain.value * (1 + 2**-15)


@pytest.mark.parametrize("name", ["integer", "integers", "median", "list", "named tuple", "32 bits"])
def test_exact_functions_have_exactly_the_same_gaps(name):
    """Where nothing is rounded, a batch changes no bit and needs no room."""
    sampler, function = FUNCTIONS[name]
    plain, stacked = estimate(function, sampler=sampler), estimate(function, batch=True, sampler=sampler)
    assert np.array_equal(plain.gaps, stacked.gaps)
    assert stacked.jitter == 0.0 and stacked.value == plain.value


@pytest.mark.parametrize("n", [1, 2, 3, 40, 1000])
def test_any_number_of_records(n):
    """Datasets of one record, and blocks that are cut by n, come out the same."""
    plain, stacked = (
        estimate(lambda x: x.max(axis=-1) + x.min(axis=-1), batch, n=n) for batch in (False, True)
    )
    assert np.array_equal(plain.gaps, stacked.gaps)


@pytest.mark.parametrize(
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
    """Samplers that cannot be asked for many datasets at once draw the same ones in a stack."""
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
    """batch=True works for f(X, y) as it is called."""
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
    """A mechanism of a user's, which measures the last number twice."""

    def norm(self, gap):
        return float(np.abs(gap).sum() + abs(gap[-1]))

    def scale(self, sensitivity, epsilon, delta):
        return sensitivity / epsilon

    def release(self, vector, *, sensitivity, epsilon, delta, whole):
        return vector


class Doubled(Laplace):
    """A mechanism made of one of ours, with a norm of its own."""

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


@pytest.mark.parametrize("name", NORMS)
def test_every_norm_of_a_stack_is_that_of_its_pairs(name):
    """A gap that is measured in another norm than the noise is made for would be no promise at all."""
    plain, stacked = (
        estimate(lambda x: np.median(x, axis=-2), batch, sampler=PLANE, norm=NORMS[name])
        for batch in (False, True)
    )
    assert np.allclose(plain.gaps, stacked.gaps, rtol=1e-15, atol=0)


@pytest.mark.parametrize("scaled", ["total", "relative"])
@pytest.mark.parametrize("kind", [Laplace, Gaussian])
def test_learned_weights_count_in_stacks(kind, scaled):
    """Gaps without the weights that the noise has would be too small."""
    mechanism = kind(scaled=scaled)
    rest = {"norm": mechanism.norm, "scaled": mechanism, "sampler": samplers.uniform([0, 0], [1, 100])}
    plain, stacked = (estimate(lambda x: np.median(x, axis=-2), batch, **rest) for batch in (False, True))
    assert plain.weights == stacked.weights and min(plain.weights) < 0
    assert np.allclose(plain.gaps, stacked.gaps, rtol=1e-15, atol=0)


def test_norms_of_many_are_those_of_each():
    """Tiny, huge and broken gaps are measured alike, one by one and all at once."""
    steps = np.array(
        [[0, 0], [1e-200, 1e-200], [-3, 4], [1e200, 1e200], [np.inf, 1], [np.nan, 1], [5e-324, 0]]
    )
    for norm in ("l1", "l2", "sup"):
        measured = Norm(OURS[norm])
        for some in (steps, steps[:, :1], -steps[:, :1]):
            each = [measured.gap(step, np.zeros(some.shape[1])) for step in some]
            assert measured.gaps(some).tolist() == each, norm


SPANS = st.lists(st.integers(0, 300), min_size=1, max_size=6, unique=True)


@settings(max_examples=25, deadline=None)
@given(SPANS, st.sampled_from(["uniform", "mixture", "tuple"]), st.booleans())
def test_blocks_may_be_cut_anywhere(cuts, kind, backwards):
    """Which process evaluates which pairs, and in which order, must not show in a gap."""
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
    """Workers evaluate stacks too, and find the same."""
    _, function = FUNCTIONS["median"]
    here = estimate(function, batch=True, plan=plan(0.05))
    assert np.array_equal(here.gaps, estimate(function, batch=True, plan=plan(0.05), workers=2).gaps)


# --- wrong ones -------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_batch_is_refused(name):
    """A batch that gives smaller gaps than the function would leave people without their noise."""
    with pytest.raises(PairError, match="batch= disagrees with plain evaluation"):
        estimate(mean, batch=WRONG[name], n=20)


@pytest.mark.parametrize("seed", range(20))
def test_a_batch_that_is_wrong_for_half_of_the_pairs_is_found_with_any_seed(seed):
    """One in 2^8 such batches would get through eight random looks; the largest gaps are looked at too."""
    with pytest.raises(PairError):
        estimate(mean, batch=clipped, n=20, seed=seed)


SHAPES = {
    "over the wrong axis": lambda s: s.mean(axis=0),
    "one number": lambda s: s.mean(),
    "a column": lambda s: s.mean(axis=1, keepdims=True),
    "truth values": lambda s: s.mean(axis=1) > 0.5,
    "complex numbers": lambda s: s.mean(axis=1) + 0j,
    "texts": lambda s: np.array(["a"] * len(s)),
    "a dict": lambda s: {"mean": s.mean(axis=1)},
    "nothing": lambda s: None,
    "one too few": lambda s: s.mean(axis=1)[1:],
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_batch_that_returns_no_stack_is_refused(name):
    """Somebody who asked for a batch must not get plain evaluation in silence, nor a guess."""
    with pytest.raises(PairError, match="batch= returns something else than a stack"):
        estimate(mean, batch=SHAPES[name])


def test_a_batch_that_raises_where_the_function_works_is_refused_with_its_reason():
    """The message says what the batch raised, and the traceback is there."""

    def broken(stack):
        raise KeyError("mean")

    with pytest.raises(PairError, match="batch= raises KeyError: 'mean'") as caught:
        estimate(mean, batch=broken)
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(PairError, match="batch= raises KeyError: 'mean'"):
        estimate(mean, batch=broken, workers=2)


def test_a_stack_that_does_not_fit_into_memory_is_evaluated_plainly():
    """Too little memory for a stack is no reason to refuse a function that works."""

    def hungry(stack):
        raise MemoryError

    assert np.array_equal(estimate(mean, batch=hungry).gaps, estimate(mean).gaps)


def test_missing_and_additional_keys_are_refused():
    """Numbers under other names are other numbers."""

    def both(x):
        return {"low": float(x.min()), "high": float(x.max())}

    def turned(s):
        return {"high": s.max(axis=1), "low": s.min(axis=1)}

    assert np.array_equal(estimate(both, batch=turned).gaps, estimate(both).gaps)  # by name, in any order
    for wrong in (
        lambda s: {"low": s.min(axis=1)},
        lambda s: {**turned(s), "more": s.min(axis=1)},
        lambda s: {"low": s.min(axis=1), "top": s.max(axis=1)},
        lambda s: (s.min(axis=1), s.max(axis=1)),
    ):
        with pytest.raises(PairError, match="returns something else"):
            estimate(both, batch=wrong)
    with pytest.raises(PairError, match="disagrees"):
        estimate(both, batch=lambda s: {"low": s.max(axis=1), "high": s.max(axis=1)}, norm="l1")


# --- functions that do as they please ---------------------------------------------------------


def overwriting(stack):
    found = stack.max(axis=-1)
    stack[...] = 7.0
    return found


def test_what_a_batch_does_to_its_stack_changes_nothing_else():
    """A function that sorts or overwrites its data in place must not spoil the neighbours."""
    expected = estimate(lambda x: x.max(axis=-1)).gaps
    assert np.array_equal(estimate(overwriting, batch=True).gaps, expected)

    def sorting(stack):
        stack.sort(axis=-1)
        return stack[..., -1]  # and a view of it

    assert np.array_equal(estimate(sorting, batch=True).gaps, expected)


def test_a_batch_that_writes_for_some_data_only_is_measured_alike():
    """Whenever a function writes to its stack, nothing of that shows."""

    def rarely(stack):
        found = stack.max(axis=-1)
        if stack[..., 0].max() > 0.998:
            stack[...] = 0.0
        return found

    for n in (3, 40, 20_000):
        expected = estimate(lambda x: x.max(axis=-1), n=n).gaps
        assert np.array_equal(estimate(lambda x: x.max(axis=-1), batch=rarely, n=n).gaps, expected)


def test_a_batch_that_keeps_its_stacks_is_measured_alike():
    """Who holds on to what was drawn gets no gap wrong."""
    kept = []

    def keeping(stack):
        kept.append(stack)
        return stack.max(axis=-1)

    def comparing(stack):
        kept.append(stack)
        return stack.max(axis=-1) + 0.0 * kept[0].max()

    expected = estimate(lambda x: float(x.max()), n=2000).gaps
    for batch in (keeping, comparing):
        assert np.array_equal(estimate(lambda x: float(x.max()), batch=batch, n=2000).gaps, expected)
        kept.clear()


def by_address(stack):
    """Return an array in the same memory that can be written to, whatever anybody says."""
    span = sum((length - 1) * step for length, step in zip(stack.shape, stack.strides, strict=True))
    memory = (ctypes.c_double * (span // 8 + 1)).from_address(stack.ctypes.data)
    return np.ndarray(stack.shape, np.float64, memory, strides=stack.strides)


def test_a_batch_that_writes_by_address_is_measured_alike():
    """Code in C writes whatever flags say, and must not spoil the neighbours."""

    def centred(stack):
        found = stack.max(axis=-1)
        by_address(stack)[...] -= 0.5
        return found

    expected = estimate(lambda x: float(x.max())).gaps
    assert np.array_equal(estimate(lambda x: float(x.max()), batch=centred).gaps, expected)
    assert np.array_equal(estimate(lambda x: float(x.max()), batch=centred, workers=2).gaps, expected)


def test_one_buffer_for_all_answers():
    """A function that returns the same array every time has other numbers in it each time."""
    buffer = np.zeros(1000)

    def reused(stack):
        found = buffer[: len(stack)] if stack.ndim > 1 else buffer[:1].reshape(())
        np.max(stack, axis=-1, out=found)
        return found

    # By a batch alone: a buffer among the globals of the function would be seen as one that changes.
    assert np.array_equal(
        estimate(lambda x: float(x.max()), batch=reused).gaps, estimate(lambda x: float(x.max())).gaps
    )


@pytest.mark.parametrize("workers", ["inline", 2])
def test_randomness_is_refused(workers):
    """In one call every dataset would see other coins than by itself."""

    def noisy(x):
        return x.mean(axis=-1) + np.random.rand(*x.shape[:-1])

    with pytest.raises(PairError, match="global random generators"):
        estimate(noisy, batch=True, workers=workers)
    with pytest.raises(PairError, match="global random generators"):
        estimate(mean, batch=noisy, workers=workers)


def test_randomness_on_the_first_neighbours_only_is_refused():
    """A look at the generators after both calls sees what either used."""
    calls = []

    def first(stack):
        calls.append(1)
        if len(calls) % 2:
            np.random.rand()
        return stack.mean(axis=1)

    with pytest.raises(PairError, match="global random generators"):
        estimate(mean, batch=first)


def test_randomness_in_one_of_many_blocks_is_refused():
    """The look at the generators after all blocks of a task sees what any of them used."""
    calls = []

    def once(stack):
        calls.append(1)
        if len(calls) == 15:
            np.random.rand()
        return stack.mean(axis=1)

    with pytest.raises(PairError, match="global random generators"):
        estimate(mean, batch=once, n=20_000)


def test_torch_by_itself_is_no_randomness(monkeypatch):
    """Where torch has been imported, a batch must still be possible, with data that it may write to."""
    if "torch" in sys.modules:
        pytest.skip("torch is there anyway")

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


@pytest.mark.parametrize(
    ("m", "block"), [(7, 256), (32, 256), (256, 256), (257, 256), (557, 256), (5000, 256), (300, 26), (40, 1)]
)
@pytest.mark.parametrize("most", [8, 32])
def test_pairs_of_all_blocks_are_compared_at_random(m, block, most):
    """A `batch=` that is wrong for some stacks only would pass, or too few pairs be compared."""
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


def test_the_pairs_that_are_compared_are_seen(monkeypatch):
    """Those at random, the smallest gaps and the largest ones are evaluated plainly."""
    made = evaluator(mean, n=40, sampler=UNIT, norm=np.sum, seed=3, batch=lambda s: s.mean(axis=1))
    made.evaluate((0, 1), made.learned)
    found, draw = made.evaluate((0, 557), made.learned).gaps, made.pairs.pair_at
    seen = set()
    monkeypatch.setattr(made.pairs, "pair_at", lambda index: seen.add(index) or draw(index))
    check_trusted(made, found, 1.0)
    apart = {*largest(found, 8), *largest(-found, 2)}
    assert apart <= seen and len(seen - apart) >= 32 - len(apart)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.sampled_from([0.0, 1.0, 2.0, 2.5, 7.0, math.inf]), max_size=60),
    st.integers(1, 9),
)
def test_the_largest_are_those_of_a_sort(values, count):
    """Equal gaps are told apart by their places, so that every run looks at the same ones."""
    gaps = np.array(values)
    places = np.flatnonzero(np.isfinite(gaps))
    assert largest(gaps, count) == places[np.argsort(gaps[places], kind="stable")[-count:]][::-1].tolist()


# --- datasets that fail -----------------------------------------------------------------------


def picky(x):
    found = x.max(axis=-1)
    if np.any(found > 0.999):
        raise ValueError("too large")
    return found


def test_a_dataset_that_fails_fails_alone():
    """One dataset in a stack that raises must count, and must not take the others with it."""
    plain = estimate(picky, n=30, plan=plan(0.2, 300), seed=2)
    stacked = estimate(picky, batch=True, n=30, plan=plan(0.2, 300), seed=2)
    assert plain.failed > 0
    assert np.array_equal(plain.gaps, stacked.gaps)
    assert (stacked.failed, stacked.cause) == (plain.failed, plain.cause) and "too large" in stacked.cause


def test_numbers_that_are_not_finite_are_infinite_gaps():
    """NaN and infinity in a stack are failures of their own pairs."""

    def odd(x):
        found = x.max(axis=-1)
        return np.where(found > 0.999, np.nan, np.where(found < 0.85, np.inf, found))[()]

    plain = estimate(odd, n=30, plan=plan(0.2, 300), seed=2)
    stacked = estimate(odd, batch=True, n=30, plan=plan(0.2, 300), seed=2)
    assert 0 < plain.failed == stacked.failed
    assert np.array_equal(plain.gaps, stacked.gaps)
    assert stacked.cause == plain.cause and "not finite" in stacked.cause


def test_too_many_failures_are_refused_with_the_first_cause():
    """The reason must be the function's own, not that of a stack."""

    def failing(x):
        if np.any(x[..., 0] > 0.3):
            raise ValueError("no such thing")
        return x.mean(axis=-1)

    for workers in ("inline", 2):
        with pytest.raises(InfiniteSensitivityError, match="ValueError: no such thing"):
            estimate(failing, batch=True, workers=workers)


def test_a_batch_that_hides_failures_is_refused():
    """The function fails on some datasets, for which its batch makes numbers up."""

    def failing(x):
        if x[0] > 0.8:
            raise ValueError
        return float(x.mean())

    with pytest.raises(PairError, match="the function fails on sampled pair"):
        estimate(failing, batch=lambda s: s.mean(axis=1))


# --- what does not go together ----------------------------------------------------------------


def test_settings_that_do_not_go_with_a_batch_are_refused():
    """A setting that would be ignored is refused when the function is decorated."""
    made = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "batch": True}
    for name, value in (("pair", lambda d, i, r: (0, 0)), ("coins", ("rng",)), ("timeout", 3.0)):
        with pytest.raises(SettingsError, match=f"batch= and {name}= do not go together"):
            privatize(**made, **{name: value})(lambda x, rng=None: x.mean())
    with pytest.raises(SettingsError, match="batch=True is for functions whose numbers get noise"):
        privatize(**made, mechanism=Exponential(responses=[0, 1]))(lambda x, r: -abs(x.mean() - r))
    for value in (3, "yes", None, [np.mean]):
        with pytest.raises(SettingsError, match="is not True, False, or a function"):
            privatize(**{**made, "batch": value})(np.mean)


def test_the_same_is_refused_without_a_decorator():
    """A timeout is for one pair, and pair= goes pair by pair, wherever they are given."""
    for name, value in (("pair", lambda d, i, r: (0.0, 0.0)), ("timeout", 3.0)):
        with pytest.raises(SettingsError, match=f"batch= and {name}= do not go together"):
            estimate(mean, batch=True, workers=1, **{name: value})
    with pytest.raises(SettingsError, match="is not True, False, or a function"):
        estimate(mean, batch=7)


def test_scores_may_be_stacked_by_a_function():
    """The exponential mechanism takes a batch that returns all scores of every dataset."""
    responses = [0.25, 0.5, 0.75]

    def score(x, r):
        return -abs(float(np.median(x)) - r)

    def scores(stack):
        return -np.abs(np.median(stack, axis=1)[:, None] - responses)

    made = {
        "epsilon": 1,
        "gamma": 0.1,
        "sampler": UNIT,
        "mechanism": Exponential(responses=responses),
        "seed": 1,
    }
    plain, stacked = privatize(**made)(score), privatize(**made, batch=scores)(score)
    assert np.array_equal(plain.estimate(40).gaps, stacked.estimate(40).gaps)
    assert stacked(np.full(40, 0.5)) in responses


@pytest.mark.parametrize("frame", ["dict", "pandas", "polars"])
def test_tables_have_no_stacks(frame):
    """Frames and dicts of columns have no further axis: the message says so."""
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


def test_arrays_that_are_not_alike_are_not_made_alike():
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
    """The private run is the plain function, on the dataset as it is; a batch never sees it."""
    notes = logging.getLogger("notes of stacks")  # whose attributes are what nobody compares
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
    """Gaps of another batch, or of none, are not recalled."""
    made = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "seed": 1}

    def f(x):
        return x.mean(axis=-1)

    kinds = [False, True, lambda s: s.mean(axis=1), lambda s: s.mean(axis=1) + 0]
    keys = {fingerprint(privatize(**made, batch=kind)(f).settings.key) for kind in kinds}
    assert len(keys) == 4


def test_a_global_that_a_batch_reads_is_part_of_the_key():
    """When what a batch reads changes, the estimate is made anew."""
    scope = {"factor": 1.0}
    exec("def batch(s): return s.mean(axis=1) * factor", scope)
    f = privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, batch=scope["batch"])(mean)
    before = f.estimate(40).value
    assert f.estimate(40).value == before
    scope["factor"] = 0.5
    with pytest.raises(PairError, match="disagrees"):
        f.estimate(40)


def test_other_arguments_reach_the_function_in_a_batch():
    """batch=True stacks the dataset; public arguments are what they were."""

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


def test_rounding_is_noted_and_makes_room():
    """Sums in another order are fine, and the estimate grows by what that may matter."""

    def backwards(stack):
        return np.add.reduce(stack[:, ::-1].T, axis=0) / stack.shape[1]

    plain, stacked = estimate(mean, n=500), estimate(mean, batch=backwards, n=500)
    assert stacked.jitter > 0 and not np.array_equal(plain.gaps, stacked.gaps)
    assert plain.value < stacked.value <= plain.value * (1 + 2**-15)


def test_jax_functions_are_mapped_over_stacks():
    """jax.vmap makes a batch of any jax function."""
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)

    def smooth(x):
        return jax.numpy.log(jax.numpy.exp(5 * x).mean()) / 5

    batch = jax.jit(jax.vmap(smooth))
    plain = estimate(lambda x: float(smooth(x)), gamma=0.2)
    stacked = estimate(lambda x: float(smooth(x)), batch=lambda s: np.asarray(batch(s)), gamma=0.2)
    close(plain, stacked)


def test_infinite_gaps_do_not_hide_a_wrong_batch():
    """Where everything fails, nothing is compared, and the estimate is refused."""
    with pytest.raises(InfiniteSensitivityError):
        estimate(lambda x: math.nan, batch=lambda s: np.full(len(s), np.nan))
