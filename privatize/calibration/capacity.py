"""Check whether n records fit into memory before they are drawn: a process that runs out is killed.

How much memory there is decides what is refused and how many processes are used, but never a result.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from privatize.data.persons import Persons
from privatize.errors import CalibrationError, SettingsError
from privatize.samplers import draw

_FEW = 1000  # records that are not checked
_DRAWN = 100  # records whose size is measured
# Two neighbours, twice as much while records are drawn and copied (measured), and the data itself.
_COPIES = 5
_UNKNOWN = 2**46  # 64 TiB, more than any process has: used if no limit is known
_LITTLE = 2**24  # bytes that are not checked: this process has more than that, and looking up limits is slow


def footprint(sampler: Any, n: int, rng: np.random.Generator) -> int:
    """Return about how many bytes n records of P take; 0 if they are so few that it does not matter."""
    if n <= _FEW:
        return 0
    return n * size_of(draw(sampler, _DRAWN, rng)) // _DRAWN


def size_of(data: Any) -> int:
    """Return about how many bytes a dataset takes.

    Examples
    --------
    >>> size_of(np.zeros((10, 3))), size_of((np.zeros(10), np.zeros(10, dtype=np.int8)))
    (240, 90)
    """
    if isinstance(data, tuple):
        return sum(map(size_of, data))
    if type(data) is Persons:
        return size_of(data.rows) + data.counts.nbytes
    if isinstance(data, np.ndarray):
        return data.nbytes + (sum(map(_size_of_item, data.ravel().tolist())) if data.dtype.hasobject else 0)
    if hasattr(data, "memory_usage"):  # pandas
        return int(np.sum(data.memory_usage(deep=True)))
    if hasattr(data, "estimated_size"):  # polars
        return int(data.estimated_size())
    if hasattr(data, "indptr"):  # sparse
        return sum(part.nbytes for part in (data.data, data.indices, data.indptr))
    return int(getattr(data, "nbytes", 0) or _size_of_item(data))


def _size_of_item(item: Any) -> int:
    inside = item.values() if isinstance(item, dict) else item if isinstance(item, list | tuple) else ()
    return sys.getsizeof(item) + sum(map(_size_of_item, inside))


def limit() -> int:
    """Return how many bytes this process may have: the smallest of all known limits."""
    known = [_UNKNOWN, *_machine(), *_group()]
    with contextlib.suppress(ImportError, OSError, ValueError):  # another operating system
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        known += [soft] if soft != resource.RLIM_INFINITY else []
    return min(known)


def _machine() -> list[int]:
    """Return the machine's memory, with its swap space where that is known."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        sizes = dict(line.split()[:2] for line in Path("/proc/meminfo").read_text().splitlines())
        return [1024 * (int(sizes["MemTotal:"]) + int(sizes["SwapTotal:"]))]
    with contextlib.suppress(AttributeError, ValueError, OSError):
        return [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    return []


def _group() -> list[int]:
    """Return the limits of the control groups that the process is in: a container's, or a scheduler's."""
    root, found = Path("/sys/fs/cgroup"), []
    try:
        own = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        own = []
    places = [root / "memory.max", root / "memory" / "memory.limit_in_bytes"]
    for _, controllers, path in (line for line in own if len(line) == 3):
        if not controllers:
            folder = root / path.strip("/")
            places += [each / "memory.max" for each in (folder, *folder.parents) if each.is_relative_to(root)]
        elif "memory" in controllers.split(","):
            places.append(root / "memory" / path.strip("/") / "memory.limit_in_bytes")
    for place in places:
        with contextlib.suppress(OSError, ValueError):  # there is no such file, or it says "max"
            found.append(int(place.read_text()))
    return [size for size in found if size > 0]


def check(what: str, n: int, size: int, copies: int = _COPIES) -> None:
    """Refuse n records if they, of this size in all, cannot fit into memory.

    Raises
    ------
    CalibrationError
        With how much they need and how much there is.
    """
    if copies * size > _LITTLE and copies * size > (have := limit()):
        raise CalibrationError(f"""{what} n={n} records, which take about {_shown(size)}, and
            {_shown(copies * size)} with the copies that are made of them; this process may have
            {_shown(have)}. Take a smaller n, a P with fewer or narrower columns, or more memory. A sum or
            mean over records can be calibrated without such datasets: use additive(...).""")


def fewer(workers: Any, timeout: float | None, size: int) -> Any:
    """Return ``workers=`` for pairs of this size: fewer processes than the default if not all fit.

    Raises
    ------
    SettingsError
        If more processes were asked for than fit.
    """
    count = workers if isinstance(workers, int) else (os.cpu_count() or 1) if workers is None else 1
    needed = _COPIES * size * count
    if count <= 1 or needed <= _LITTLE or needed <= (have := limit()):
        return workers
    fit = max(1, have // (_COPIES * size))
    if workers is None:
        return fit if timeout is not None else "inline"
    raise SettingsError(f"""workers={workers} do not fit into memory: each needs about
        {_shown(_COPIES * size)} for its datasets, and all together may have {_shown(have)}. Take
        workers={fit}, or workers='inline'.""")


def _shown(size: float) -> str:
    return f"{size / 1e9:.3g} GB"
