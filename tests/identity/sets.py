"""Sets that are equal and have other orders."""


def two_orders():
    """Return two equal sets of strings that have other orders in this process."""
    names = [f"column {i}" for i in range(100)]
    for first in names:
        for second in names:
            one, other = {first, second}, {second, first}
            if list(one) != list(other):
                return one, other
    raise AssertionError("There is no collision among 100 names.")
