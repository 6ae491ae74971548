"""Counts with labels."""

import collections

import pytest

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
LETTERS = list("ABCDE")


def _counts(x, how):
    """Return how often each letter occurs, most frequent first, in one of many forms."""
    counts = pd.Series(pd.Categorical.from_codes(x.astype(int), LETTERS)).value_counts()
    counts.index = counts.index.astype(object)
    counts = counts.reindex(counts.index if how == "value_counts" else LETTERS[::-1])
    return {
        "value_counts": lambda: counts,
        "series": lambda: counts,
        "dict": lambda: counts.to_dict(),
        "counter": lambda: collections.Counter(counts.to_dict()),
        "floats": lambda: counts.astype(float),
        "named tuple": lambda: collections.namedtuple("Scores", LETTERS[::-1])(*counts),
        "list": lambda: counts.reindex(LETTERS).tolist(),
        "no labels": lambda: counts.reindex(LETTERS).reset_index(drop=True),
    }[how]()
