"""One thread for BLAS and OpenMP, so that a result does not depend on where it is computed.

With several threads, sums are added in another order, and so in other last digits, on machines
with another number of cores; and workers would fight over the cores. Limited alike inline, in
workers, and on the private data.
"""

import sys
from typing import Any

# What was found among the loaded libraries, and how many modules there were then.
_known: tuple[int, list[Any]] = (-1, [])


def _libraries() -> list[Any]:
    """Return the controls of the libraries that are loaded by now; looking for them takes milliseconds."""
    global _known
    count, found = _known
    if count != len(sys.modules):
        import threadpoolctl

        found = threadpoolctl.ThreadpoolController().lib_controllers
        _known = (len(sys.modules), found)
    return found


def limit(limited: list[Any]) -> None:
    """Give BLAS and OpenMP one thread each, and note in a list how many they had.

    BLAS is limited for the whole process, OpenMP for the thread that asks.

    Examples
    --------
    >>> limited = []
    >>> limit(limited)
    >>> restore(limited)
    """
    for library in _libraries():
        before = library.get_num_threads()
        if before is not None and before > 1:
            limited.append((library, before))
            library.set_num_threads(1)


def restore(limited: list[Any]) -> None:
    """Give back the threads that were noted."""
    for library, before in limited:
        library.set_num_threads(before)
