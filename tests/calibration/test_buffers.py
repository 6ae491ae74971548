"""The memory of neighbours, which pairs share until they are measured again."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize.calibration.buffers import Buffers, Pair, _trim, is_buffered
from tests.cases import for_each


def addresses(arrays):
    return {(id(each), each.__array_interface__["data"][0]) for each in arrays}


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 20), st.sampled_from(["f8", "i4", "U3", "M8[s]", "?"]), st.data())
def test_both_neighbours(n, dtype, data):
    """A neighbour with other records would have another gap."""
    drawn = np.arange(n + 1).astype("i8").astype(dtype)
    position = data.draw(st.integers(0, n - 1))
    both = Buffers().pair(drawn, position, n)
    used_up = Buffers().use_up(Pair(drawn.copy(), position), n)
    expected = drawn[:n].copy()
    for one, other in (both, used_up):
        assert np.array_equal(one, drawn[:n])
        expected[position] = drawn[n]
        assert np.array_equal(other, expected) and one.dtype == other.dtype == drawn.dtype
        assert one.base is None and other.base is None and one.flags.owndata


KINDS = ["f8", ">f8", "M8[s]", "U10"]  # numpy makes a new object for each but the first


@for_each("kind", KINDS)
def test_pairs_share_memory(kind):
    """Getting and freeing memory for every pair takes longer than copying the records."""
    buffers = Buffers()
    first = addresses(buffers.pair(np.zeros(51, dtype=kind), 3, 50))
    assert addresses(buffers.pair(np.ones(51, dtype=np.dtype(kind)), 3, 50)) == first


def test_pairs_of_another_form_have_other_memory():
    """Records would be cut off, or cast."""
    buffers = Buffers()
    buffers.pair(np.zeros(51), 3, 50)
    assert buffers.pair(np.ones(21), 3, 20)[0].shape == (20,)
    assert buffers.pair(np.ones(21, dtype="i4"), 3, 20)[0].dtype == "i4"


@for_each("kind", KINDS)
def test_pairs_that_are_measured_again_have_memory_of_their_own(kind):
    """Two of them in the same memory could have the same answer from a cache, and would seem to agree."""
    buffers, drawn = Buffers(), np.arange(51).astype(kind)
    seen = addresses(buffers.pair(drawn, 3, 50))
    for left in range(4, 0, -1):
        buffers.move(left)
        found = addresses(buffers.pair(drawn.astype(np.dtype(kind)), 3, 50))
        for part in range(2):
            assert not {each[part] for each in found} & {each[part] for each in seen}
        seen |= found


def test_the_first_dataset_once_more():
    """In the memory of the first neighbour it would seem to be the same object to a cache."""
    buffers, drawn = Buffers(), np.arange(51.0)
    one, _ = buffers.pair(drawn, 3, 50)
    one[:] = 0  # as a function may do
    again = buffers.again(drawn, 50)
    assert again is not one and np.array_equal(again, drawn[:50]) and again.base is None


def test_what_is_buffered():
    """An object in an array could be changed by the function, also in the drawn records."""
    assert is_buffered(np.zeros(3)) and is_buffered(np.array(["a"]))
    assert not is_buffered(np.array([[]], dtype=object)) and not is_buffered([1.0])


def test_records_that_are_used_up_are_not_copied():
    """Three datasets may not fit where two do."""
    pair = Pair(np.zeros((101, 3)), 5)
    pair.records[100] = [1.0, 2.0, 3.0]
    address = pair.records.__array_interface__["data"][0]
    one, other = Buffers().use_up(pair, 100)
    assert pair.records is None and one.__array_interface__["data"][0] == address
    assert one.shape == other.shape == (100, 3) and other[5].tolist() == [1.0, 2.0, 3.0]


@for_each(
    "part",
    [lambda x: x.T, lambda x: x[:, :2], lambda x: x[1:], lambda x: x],
    ids=["F", "cut", "later", "kept"],
)
def test_records_of_somebody_else_are_copied(part):
    """A sampler that draws from an array of its own would find other records in it."""
    theirs = np.arange(30.0).reshape(6, 5)
    drawn, before = part(theirs), theirs.copy()
    n = len(drawn) - 1
    one, other = Buffers().use_up(Pair(drawn, 0), n)
    assert np.array_equal(one, drawn[:n]) and np.array_equal(other[0], drawn[n])
    one[:] = other[:] = -1.0
    assert np.array_equal(theirs, before) and one.flags.c_contiguous == other.flags.c_contiguous


@for_each("rows, columns", [(50, 1), (600_000, 1), (600_000, 2), (5_000_000, 1)])
def test_large_pairs_that_are_measured_again_have_memory_of_their_own(rows, columns):
    """A cache would know one of the neighbours, or both in the other order, and seem to agree."""
    buffers, rng, seen = Buffers(), np.random.default_rng(1), set()
    for left in [0] * 6 + [3, 2, 1]:
        if left:
            buffers.move(left)
        pair = Pair(rng.random((rows + 1, columns)), 3)
        expected, last = pair.records[:5].copy(), pair.records[-1].copy()
        both = buffers.use_up(pair, rows)
        found = addresses(both)
        if left:
            for part in range(2):
                assert not {each[part] for each in found} & {each[part] for each in seen}
        seen |= found
        assert np.array_equal(both[0][:5], expected) and np.array_equal(both[1][3], last)
        assert pair.records is None and all(each.flags.owndata for each in both)
        del both


def test_a_large_dataset_once_more_is_in_memory_of_its_own():
    """A cache would know it, and a function would seem to repeat itself."""
    buffers, rng, seen = Buffers(), np.random.default_rng(1), set()
    for _ in range(6):
        seen |= addresses(buffers.use_up(Pair(rng.random(2001), 3), 2000))
    found = addresses([buffers.drawn_again(lambda: Pair(rng.random(2001), 3), 2000)])
    for part in range(2):
        assert not {each[part] for each in found} & {each[part] for each in seen}


@for_each("what", ["shape", "dtype", "writeable"])
@for_each("large", [False, True])
def test_what_a_function_does_to_the_array_itself_stays_with_its_pair(what, large):
    """Every later pair would fail, or have numbers of another kind."""
    buffers, drawn = Buffers(), np.arange(51.0)
    for _ in range(3):
        both = buffers.use_up(Pair(drawn.copy(), 3), 50) if large else buffers.pair(drawn, 3, 50)
        assert both[0].tolist() == drawn[:50].tolist() and both[1][3] == 50
        for each in both:
            if what == "writeable":
                each.flags.writeable = False
            else:
                setattr(each, what, (25, 2) if what == "shape" else "i8")


def test_memory_that_is_not_numpys_is_copied():
    """Arrays of compiled code cannot be resized, and each large dataset would count as a failure."""
    drawn = np.arange(51.0)
    ctypes.c_void_p.from_address(id(drawn) + 88).value = None  # as if it had no memory handler of numpy's
    try:
        with pytest.raises(RuntimeError, match="no memory handler"):
            drawn.resize(50)
    except ValueError:
        pytest.skip("another layout of arrays than that of this version of numpy")
    one, _ = Buffers().use_up(Pair(drawn, 3), 50)
    assert one.tolist() == [*range(50)]


PEAK = """
import re
from pathlib import Path

import numpy as np

from privatize import estimate_sensitivity, plan, samplers


def peak():
    return int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text())[1])


def estimate(n):
    few, law = plan(m=5, bound="marginal"), samplers.uniform(0, 1)
    estimate_sensitivity(np.mean, n=n, sampler=law, norm="l1", plan=few, seed=1, workers="inline")


estimate(10)
before = peak()
estimate(2 * 10**6)
print((peak() - before) * 1024 / (8 * 2 * 10**6))
"""


@pytest.mark.skipif(_trim is None, reason="the C library cannot give memory back to the system")
def test_two_large_datasets_are_in_memory():
    """Blocks of up to 32 MB, which the C library keeps when they are free, would be five datasets."""
    found = subprocess.run([sys.executable, "-c", PEAK], capture_output=True, text=True, check=True)
    assert 1 < float(found.stdout) < 2.5
