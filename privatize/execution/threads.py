"""One thread for BLAS and OpenMP, so that a result does not depend on where it is computed.

With several threads, the order in which numbers are added depends on the number of cores, and so do the
last digits of a sum. Workers would also compete for the cores. The limit is the same inline, in workers,
and on the private data.
"""

import sys
from typing import Any

# How many modules were loaded at the last search, and the controls of libraries that it found.
_known: tuple[int, list[Any]] = (-1, [])


def _libraries() -> list[Any]:
    """Return the controls of the loaded libraries; search (milliseconds) only after modules were loaded."""
    global _known
    count, found = _known
    if count != len(sys.modules):
        import threadpoolctl

        found = threadpoolctl.ThreadpoolController().lib_controllers
        _known = (len(sys.modules), found)
    return found


def limit(limited: list[Any]) -> None:
    """Give BLAS and OpenMP one thread each, and note in a list how many they had.

    BLAS is limited for the entire process, OpenMP for the calling thread.

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
    """Restore the numbers of threads that `limit` has noted."""
    for library, before in limited:
        library.set_num_threads(before)
