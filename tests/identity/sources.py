"""Samplers of every kind, and the source of a function that counts in their identity."""

import datetime as dt
import json

from hypothesis import strategies as st

from privatize import samplers
from tests import golden

CASES = golden.sampler_cases()
_rows = json.loads(golden.DECLARED.read_text(encoding="utf-8"))
KNOWN = {name: _rows[f"{case.tag} {case.law_version}"][name] for name, case in CASES.items()}
s = samplers
ends = st.tuples(st.floats(-1e9, 1e9), st.floats(1e-9, 1e9)).map(
    lambda pair: (pair[0], pair[0] + pair[1] + 1e-3)
)
shares = st.lists(st.floats(0.001, 1), min_size=2, max_size=2)
leaves = st.one_of(
    ends.map(lambda pair: s.uniform(*pair)),
    st.integers(-(2**50), 2**50).map(lambda low: s.integers(low, low + 7)),
    st.tuples(st.floats(-9, 9), st.floats(0.1, 9)).map(lambda pair: s.normal(*pair)),
    st.tuples(st.floats(-1, 1), st.floats(0.1, 9)).map(lambda pair: s.normal(*pair, low=-3.3, high=3.1)),
    st.tuples(st.lists(st.text(max_size=3), min_size=2, max_size=2, unique=True), shares).map(
        lambda x: s.choice(*x)
    ),
    st.tuples(st.lists(st.integers(), min_size=2, max_size=2, unique=True), shares).map(
        lambda x: s.choice(*x)
    ),
    st.floats(0, 1).map(s.boolean),
    st.dates(max_value=dt.date(9000, 1, 1)).map(lambda day: s.dates(str(day), "9999-01-01")),
)


@st.composite
def made(draw):
    """Return a sampler that is made of others."""
    parts = [draw(leaves) for _ in range(2)]
    low, high = draw(ends)
    return draw(
        st.sampled_from(
            [
                s.table({"a b": parts[0], draw(st.text(min_size=1, max_size=3)): parts[1]}, frame="dict"),
                s.table(x=s.with_missing(parts[0], draw(st.floats(0.01, 0.99))), y=parts[1]),
                s.mixture([s.uniform(low, high), s.uniform(low, high + 1)], weights=draw(shares)),
                s.uniform(low, high).clip(low / 3),
                s.labelled(s.uniform(low, high, size=2), s.boolean(draw(st.floats(0, 1)))),
                s.blobs([[low, high], [1, 2]], draw(st.floats(0.1, 9)), weights=draw(shares)),
                s.normal([low, high], [1, draw(st.floats(0.1, 2))]),
            ]
        )
    )


FUNCTION = """
import numpy as np
import other_of_declared as other
FACTOR = 3

def helper(x):
    return x * FACTOR + other.SHIFT + other.inner.DEEP

def draw(n, rng, low=1, *, high=2):
    "Draw some records."
    return helper(rng.uniform(low, high, n)) + sum(i for i in range(3))
"""
