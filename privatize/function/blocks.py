"""Cut private data into random blocks, and run a function on each block in a process of its own.

A block's numbers depend on its own records, on the function and on public facts, and on nothing else: no
other block, no order of the records, no state that an evaluation has left behind. So replacing one person's
record changes the numbers of one block.
"""

import contextlib
import io
import math
import os
import pickle
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.global_rng import rng_guard
from privatize.data import records
from privatize.data.persons import Persons
from privatize.errors import ExecutionError, SettingsError
from privatize.execution import threads
from privatize.execution.choose import cores
from privatize.execution.packaging.package import Package, pack
from privatize.execution.processes.forking import Limits
from privatize.execution.processes.pool import machine_memory
from privatize.execution.processes.template import evaluate
from privatize.identity.library import LIBRARY, sources
from privatize.identity.origin import origin, owner_of
from privatize.outputs.describe import describe
from privatize.outputs.structure import Structure, Vector

Context = Callable[[], contextlib.AbstractContextManager[object]]
SECONDS = 600
"""The CPU time that a block may use, in seconds, if no other is set."""


def cut(n: int, b: int) -> list[NDArray[np.intp]]:
    """Return the positions of n records in b blocks, by a fresh, secret and uniform permutation.

    The sizes of blocks differ by one at most.

    Examples
    --------
    >>> blocks = cut(10, 3)
    >>> [len(block) for block in blocks], sorted(int(at) for block in blocks for at in block)
    ([4, 3, 3], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    """
    while True:
        keys = np.frombuffer(os.urandom(8 * n), dtype=np.uint64)
        order = np.argsort(keys)
        ranked = keys[order]
        if not np.any(ranked[1:] == ranked[:-1]):  # with equal keys the order would not be uniform
            return np.array_split(order, b)


def run_blocks(
    function: Callable[[Any], Any],
    structure: Structure,
    data: Any,
    b: int,
    *,
    coin_seed: int | None,
    context: Context = contextlib.nullcontext,
    version: str | None = None,
    seconds: float | None = None,
    memory: int | None = None,
) -> Vector:
    """Cut private data into b random blocks and evaluate a function on each, in a clean process of its own.

    Parameters
    ----------
    function : callable
        A function of a dataset.
    structure : Structure
        The public structure of its output, complete with all classes.
    data : dataset
        The private records.
    b : int
        The number of blocks, chosen without the data's values.
    coin_seed : int or None
        The public seed of the global generators; None if the function sets it itself.
    context : callable
        Makes a context in which each block is evaluated.
    version : str, optional
        Attests what cannot be compared between processes: see `privatize.privatize`.
    seconds : float, optional
        The CPU time that a block may use; `SECONDS` if it is not given.
    memory : int, optional
        How many bytes a block may use; if it is not given, all that run at the same time may use half of the
        machine's memory together.

    Returns
    -------
    array of shape (b, d)
        The numbers of each block's output. The row of a block that failed is NaN, whatever the reason.

    Raises
    ------
    SettingsError
        If processes cannot be forked here.
    ExecutionError
        If the function cannot be sent to another process.
    """
    job, package = _packed(function, structure, data, coin_seed, context, version)
    positions = cut(records.count(data), b)

    def content(number: int) -> bytes:
        return job.pack(data, positions[number])

    return _rows(package, content, b, structure.size, seconds, memory)


def run_public_blocks(
    function: Callable[[Any], Any],
    structure: Structure,
    datasets: Sequence[Any],
    *,
    context: Context,
    version: str | None,
    seconds: float | None,
) -> Vector:
    """Evaluate a function, which sets the generators itself, on public datasets as on blocks; return rows."""
    job, package = _packed(function, structure, datasets[0], None, context, version)

    def content(number: int) -> bytes:
        data = datasets[number]
        return job.pack(data, np.arange(records.count(data)))

    return _rows(package, content, len(datasets), structure.size, seconds, None)


def _rows(
    package: Package,
    content: Callable[[int], bytes],
    b: int,
    d: int,
    seconds: float | None,
    memory: int | None,
) -> Vector:
    """Evaluate b blocks, and return a row of d numbers for each."""
    rows = np.full((b, d), np.nan)
    lanes = min(cores() + 1, b)  # one more, because a core has nothing to do while a block begins or ends
    limits = Limits(
        math.ceil(SECONDS if seconds is None else seconds),
        (machine_memory() or 2**40) // (2 * lanes) if memory is None else memory,
    )
    contents = ((number, content(number)) for number in range(b))
    size = 1 + 8 * d
    with contextlib.closing(evaluate(package, contents, content, size, limits, lanes)) as answers:
        for number, answer in answers:
            found = np.frombuffer(answer) if answer else rows[number]
            if np.isfinite(found).all():  # a function can write an answer itself
                rows[number] = found
    return rows


def check_blocks(
    function: Callable[[Any], Any], structure: Structure, data: Any, *, version: str | None = None
) -> None:
    """Refuse a function that `run_blocks` would refuse, before anybody has paid for it; read no record."""
    empty = records.take(data, np.zeros(0, dtype=np.intp))
    _packed(function, structure, empty, 0, contextlib.nullcontext, version)


def _packed(
    function: Callable[[Any], Any],
    structure: Structure,
    data: Any,
    coin_seed: int | None,
    context: Context,
    version: str | None,
) -> tuple["_Job", Package]:
    """Return what other processes evaluate, and that as bytes; or refuse it.

    Records of classes that cannot be sent fail their own blocks, and no others.
    """
    if not hasattr(os, "fork"):
        raise SettingsError("""Blocks need a system that can fork processes, such as Linux or macOS, because
            each block is evaluated in a clean process of its own. Use another mechanism here.""")
    example = structure.rebuild(np.zeros(structure.size))
    empty = records.isolated(records.take(data, np.zeros(0, dtype=np.intp)))
    job = _Job(function, example, coin_seed, context, (), empty, version)
    try:
        package = pack(job)
    except ExecutionError as error:
        why = str(error).removesuffix(", or use workers='inline'.").removesuffix(".")
        raise ExecutionError(f"{why}. Each block is evaluated in a process of its own.") from None
    for cls in _classes(data):
        with contextlib.suppress(ExecutionError):
            more = replace(job, classes=(*job.classes, cls))
            job, package = more, pack(more)
    # The fork server loads once, for all calls, what evaluates blocks, and the library of their container.
    module = type(function).__module__ if owner_of(type(function)) == LIBRARY else package.module
    container = type(empty).__module__.partition(".")[0]
    return job, replace(package, module=module, libraries=tuple({*package.libraries, container}))


@dataclass
class _Job:
    """A function of a block, as another process evaluates it: see `privatize.execution.processes.forking`."""

    function: Callable[[Any], Any]
    example: Any  # a public output: its structure has classes, which a structure does not take along
    coin_seed: int | None  # None if the function sets it itself
    context: Context
    classes: tuple[type, ...]  # the user's own, in the records
    empty: Any  # a dataset without records: it imports, with the function, what blocks need
    version: str | None

    def identity(self) -> dict[str, Any]:
        """Return what must be the same in both processes."""
        return {
            "version of numpy or of this library": [np.__version__, sources()],
            "function": self.function,
            "output": self.example,
            "records": self.classes,
        }

    def pack(self, data: Any, positions: NDArray[np.intp]) -> bytes:
        """Return some records as bytes, or no bytes if they cannot be pickled: then their block fails."""
        made = io.BytesIO()
        with contextlib.suppress(Exception):  # a record's class may raise anything
            _Pickler(made, self.classes).dump(records.isolated(records.take(data, positions)))
            return made.getvalue()
        return b""

    def prepare(self) -> None:
        """Look up, once for all blocks, what evaluating one needs."""
        self.structure = describe(self.example)
        warnings.simplefilter("ignore")  # as in every private run
        threads.limit([])  # once for all: changing it in a child may start threads there
        seed = self.coin_seed or 0
        with rng_guard(seed) as rng:  # functions may have one inside
            rng.reseed()
        rng_guard(seed).take_over()  # so that children need not make what it uses

    def answer(self, block: bytes) -> bytes:
        """Evaluate the function on a block, and return its numbers as bytes, or raise anything."""
        data = _Unpickler(io.BytesIO(block), self.classes).load()
        with self.context():
            return np.asarray(self._evaluated(data), dtype=np.float64).tobytes()

    def _evaluated(self, data: Any) -> Vector:
        if self.coin_seed is not None:
            rng_guard(self.coin_seed).take_over().reseed()
        return self.structure.flatten(self.function(data))


class _Pickler(pickle.Pickler):
    """Pickles records, with the user's own classes by their place in a list that has gone ahead."""

    def __init__(self, file: Any, classes: tuple[type, ...]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._places = {cls: at for at, cls in enumerate(classes)}

    def persistent_id(self, thing: Any) -> int | None:
        return self._places.get(thing) if isinstance(thing, type) else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: Any, classes: tuple[type, ...]) -> None:
        super().__init__(file)
        self._classes = classes

    def persistent_load(self, place: int) -> type:
        return self._classes[place]


class _Collector(pickle.Pickler):
    """Finds the user's own classes in what it pickles, and writes nothing."""

    def __init__(self) -> None:
        super().__init__(self)
        self.found: set[type] = set()

    def write(self, _: Any) -> None:
        """Do nothing."""

    def persistent_id(self, thing: Any) -> int | None:
        if not isinstance(thing, type) or origin(thing.__module__) is not None:
            return None
        self.found.add(thing)
        return 0


def _classes(data: Any) -> tuple[type, ...]:
    """Return the user's own classes in the records, which another process could not import."""
    data = data.rows if type(data) is Persons else data
    parts = data.values() if type(data) is dict else data if type(data) is tuple else [data]
    collector = _Collector()
    for part in parts:
        if type(part) is list or (type(part) is np.ndarray and part.dtype.hasobject):
            for record in np.ravel(part).tolist() if type(part) is np.ndarray else part:
                try:
                    collector.dump(record)
                except Exception:  # a record's class may raise anything, which must not hide other records
                    collector.clear_memo()
    return tuple(sorted(collector.found, key=lambda cls: (cls.__module__, cls.__qualname__)))
