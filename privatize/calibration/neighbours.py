"""Draw the pairs of neighbours: n + 1 records from P, and which of the first n the last one replaces.

Pair ``i`` is the same wherever and whenever it is drawn: its records and its position follow from the seed
and ``i`` alone.
"""

import copy
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import capacity, streams
from privatize.calibration.buffers import LARGE, Buffers, Pair, is_buffered
from privatize.data import records
from privatize.data.schema import Schema
from privatize.errors import NotReproducibleError, SettingsError
from privatize.samplers import Sampler, draw
from privatize.samplers.base import skip, skips, traits_of

Heartbeat = Callable[[int], object]
Stack = tuple[NDArray[Any], ...]  # datasets, or columns of them, with one more axis in front
TURN = 4  # pairs of a block, if several P take turns
_AT_ONCE, _TOGETHER = 16, 2**14  # if there is only one of them; records that are drawn at once then
CHUNK = 2**18  # numbers that are drawn at once
_PIECE = 64  # pairs that are drawn at once, if they are not stacked
_EVERY, _MARKS = 4, 2**12  # whose places in streams are remembered, to draw again from there, and how many
_AHEAD = 16  # blocks whose streams are made together, which takes half the time of making each when needed
_LARGEST_DATASET = 10**6  # records of the datasets that a sum over records is compared on, at most


class NeighbourSampler:
    """Draws pairs by their index.

    Attributes
    ----------
    n, size : int
        Number of records that the estimate is for, and number of records of a dataset that is drawn.
    block : int
        How many pairs share a stream.
    turns : sequence of Sampler
        If there are some, each block is drawn from another one of them, in turns, and not from P.
    buffers : Buffers
        The memory of neighbours that are arrays.
    schema, bytes, seconds
        What `check` has seen: the schema of a dataset, about how many bytes it takes, and how long it takes
        to pass over one, to get to the next.

    Examples
    --------
    >>> from privatize import samplers
    >>> pairs = NeighbourSampler(samplers.uniform(0, 1), n=2, seed=1)
    >>> pairs.neighbours(np.array([0.1, 0.2, 0.3]), 1)
    (array([0.1, 0.2]), array([0.1, 0.3]))
    """

    uses_up: ClassVar[bool] = True
    """Whether the first neighbour is the first n records, and so can have their memory."""

    def __init__(
        self,
        sampler: Sampler,
        n: int,
        seed: int,
        target: Schema | None = None,
        turns: Sequence[Sampler] = (),
    ) -> None:
        self.sampler, self.n, self.size, self.seed, self.target = sampler, n, n, seed, target
        self.turns, self._drawn_from = turns, sampler
        self._rest: Iterator[Any] | None = None
        self.block = streams.block_size(n)
        if turns:
            self.block = TURN if len(turns) > 1 else min(self.block, _AT_ONCE)
        self.schema: Schema | None = None
        self.bytes, self.seconds = 0, 0.0
        # Whether the datasets of a block can be drawn at once, as the same numbers.
        self.streamable = target is None and traits_of(sampler).streamable
        self.width = 0  # how many numbers a pair of a stack has, once that is known
        self.aligned = False  # whether a dataset is a tuple of aligned arrays
        self.buffers = Buffers()
        self._next: tuple[int, np.random.Generator, NDArray[np.int64]] | None = None
        self._prepared: dict[int, tuple[np.random.Generator, NDArray[np.int64]]] = {}
        self._marks: dict[int, Any] = {}  # by the index of a pair: the state of its generator before it

    def __getstate__(self) -> dict[str, Any]:
        # A copy, for example in another process, must have streams and memory of its own.
        own = {"_next": None, "_rest": None, "buffers": Buffers()}
        return vars(self) | own | {"_prepared": {}, "_marks": {}}

    # -- records --

    def draw(self, rng: np.random.Generator, count: int | None = None) -> Any:
        """Draw the records of one pair, or as many as are asked for, in the container of the data."""
        drawn = draw(self._drawn_from, self.size + 1 if count is None else count, rng)
        return drawn if self.target is None else records.cast(drawn, self.target)

    def check(self, checked: "NeighbourSampler | None" = None) -> None:
        """Draw twice from the same stream: a sampler must be a pure function of its generator.

        If other pairs of the same P were checked, such as those of a pilot, note what that has shown.
        """
        if checked is not None:
            self.schema, self.bytes, self.seconds = checked.schema, checked.bytes, checked.seconds
            return
        first = streams.stream(self.seed, streams.CHECK)
        self.bytes = capacity.footprint(self.sampler, self.size + 1, first)
        capacity.check("A calibration draws datasets of", self.n, self.bytes)
        one = self.draw(streams.stream(self.seed, streams.RECORDS))
        began = time.perf_counter()
        other = self.draw(streams.stream(self.seed, streams.RECORDS))
        self.seconds = time.perf_counter() - began  # the first draw may take longer, for imports
        if skips(self.sampler) and not self.streamable:
            rng, began = streams.stream(self.seed, streams.RECORDS), time.perf_counter()
            skip(self.sampler, self.size + 1, rng)
            self.seconds = time.perf_counter() - began
        self.schema = records.describe(one)
        if not records.equal(one, other):
            raise NotReproducibleError(f"""The sampler {self.sampler!r} drew different records from generators
                with the same seed. It must use no randomness but the generator that it is given: draw(n,
                rng).""")
        del one, other  # four datasets may not fit where two do
        size = max(self.size + 1, 1000)  # so many that they cannot be the same by chance
        one, other = (draw(self.sampler, size, streams.stream(self.seed, streams.CHECK, i)) for i in range(2))
        if records.equal(one, other):
            raise NotReproducibleError(f"""The sampler {self.sampler!r} drew the same {size} records from two
                different generators. Its randomness must come from the generator that it is given: draw(n,
                rng).""")

    # -- streams --

    def positions(self, block: int) -> NDArray[np.int64]:
        """Return the positions that are replaced in the pairs of a block."""
        return streams.stream(self.seed, streams.POSITIONS, block).integers(self.n, size=self.block)

    def _streams(self, block: int) -> tuple[np.random.Generator, NDArray[np.int64]]:
        return streams.stream(self.seed, streams.RECORDS, block), self.positions(block)

    def prepare(self, block: int, stop: int) -> None:
        """Make the streams of a few blocks up to an index, unless that has been done."""
        if block not in self._prepared:
            last = min(block + _AHEAD, -(-stop // self.block))
            self._prepared = {each: self._streams(each) for each in range(block, last)}

    def _turn(self, block: int) -> None:
        """Begin a block, and draw it from the P whose turn it is."""
        if self.turns:
            self._drawn_from = self.turns[block % len(self.turns)]
            self._rest = None

    def _seek(self, index: int) -> tuple[np.random.Generator, NDArray[np.int64]]:
        """Return the generator of a pair's records, and the positions from it to its block's end."""
        block, offset = divmod(index, self.block)
        before, self._next = self._next, None
        if before is not None and before[0] <= index < before[0] + len(before[2]):
            at, rng, positions = before  # go on from where the last ones ended
        else:
            at = index - offset
            self._turn(block)
            rng, positions = self._prepared.pop(block) if block in self._prepared else self._streams(block)
        near = next((mark for mark in range(index, at, -1) if mark in self._marks), None)
        if near is not None:
            at, rng.bit_generator.state = near, self._marks[near]
        if self.turns or self.streamable:
            for _ in self._datasets(rng, at, index - at):  # the pairs in between are drawn and dropped
                pass
        else:
            self._skip(rng, at, index)
        return rng, positions[offset - self.block :]

    def _mark(self, at: int, rng: np.random.Generator) -> None:
        """Remember the state of a generator before a pair; a sampler that spawns others has more state."""
        bits: Any = rng.bit_generator
        if len(self._marks) < _MARKS and not self.turns and not bits.seed_seq.n_children_spawned:
            self._marks[at] = bits.state

    def _datasets(self, rng: np.random.Generator, at: int, count: int) -> Iterator[Any]:
        """Return the records of pairs, one after the other; no two pairs share memory."""
        if self.turns and self.streamable and self.block * (self.n + 1) <= _TOGETHER:
            # All of a block at once, since a changed P need not be streamable.
            if self._rest is None:
                drawn = self.draw(rng, self.block * (self.n + 1))
                self._rest = iter(drawn.reshape(self.block, self.n + 1, *drawn.shape[1:]))
            return itertools.islice(self._rest, count)
        if self.turns or not self.streamable or count == 1 or self.bytes >= LARGE:
            return self._each(rng, at, count)
        return itertools.chain.from_iterable(self._chunks(rng, at, count))

    def _skip(self, rng: np.random.Generator, at: int, stop: int) -> None:
        """Pass over the pairs up to an index."""
        for index in range(at, stop):
            if index % _EVERY == 0:
                self._mark(index, rng)
            skip(self._drawn_from, self.size + 1, rng)

    def _each(self, rng: np.random.Generator, at: int, count: int) -> Iterator[Any]:
        """Draw the records of pairs, one after the other."""
        for index in range(at, at + count):
            if index % _EVERY == 0:
                self._mark(index, rng)
            yield self.draw(rng)

    def _chunks(self, rng: np.random.Generator, at: int, count: int) -> Iterator[Any]:
        """Draw the records of many pairs at once, but no more than a few megabytes."""
        size, stop = 1, at + count
        while at < stop:
            size = min(size, stop - at)
            self._mark(at, rng)
            drawn = self.draw(rng, size * (self.n + 1))
            at += size
            yield drawn.reshape(size, self.n + 1, *drawn.shape[1:])
            size = max(1, min(_PIECE, CHUNK * size // drawn.size))

    # -- pairs --

    def span(self, start: int, stop: int, heartbeat: Heartbeat | None = None) -> Iterator[Pair]:
        """Draw the pairs of a part of one block, one after the other.

        At the end it notes where in the stream it stopped, for a span that begins there.
        """
        rng, positions = self._seek(start)
        datasets = self._datasets(rng, start, stop - start)
        for index, position in zip(range(start, stop), positions.tolist(), strict=False):
            if heartbeat is not None:
                heartbeat(index)
            yield Pair(next(datasets), position)  # without a reference here: it is freed before the next
        self._next = (stop, rng, positions[stop - start :])

    def pair_at(self, index: int) -> Pair:
        """Draw one pair by its index."""
        drawing = self.span(index, index + 1)
        found = next(drawing)
        next(drawing, None)
        return found

    def stacks(
        self, start: int, stop: int, heartbeat: Heartbeat | None = None
    ) -> Iterator[tuple[int, Stack, NDArray[np.int64]]]:
        """Draw the pairs of a part of one block as stacks of a few megabytes, with their positions."""
        rng, positions = self._seek(start)
        at = start
        while at < stop:
            if heartbeat is not None:
                heartbeat(at)
            count = min(max(1, CHUNK // self.width) if self.width else 1, stop - at)
            stack = self._stack(rng, at, count)
            self.width = sum(part[0].size for part in stack)
            yield at, stack, positions[at - start : at - start + count]
            at += count
        self._next = (stop, rng, positions[stop - start :])

    def _stack(self, rng: np.random.Generator, at: int, count: int) -> Stack:
        if self.streamable and not self.turns:
            self._mark(at, rng)
            drawn = self.draw(rng, count * (self.n + 1))
            return (drawn.reshape(count, self.n + 1, *drawn.shape[1:]),)
        datasets = [*self._datasets(rng, at, count)]
        self.aligned = isinstance(datasets[0], tuple)
        return stack_of(datasets)

    def neighbours(self, drawn: Any, position: int) -> tuple[Any, Any]:
        """Return both datasets of a pair; arrays are valid until the next pair, which reuses their memory."""
        if not is_buffered(drawn):
            return records.pair(drawn, position, self.size)
        return self.buffers.pair(drawn, position, self.size)  # the same, faster

    def use_up(self, pair: Pair) -> tuple[Any, Any]:
        """Return both datasets of a pair whose records nobody needs afterwards: their memory may be used."""
        if _is_large(self, pair.records):
            return self.buffers.use_up(pair, self.size)
        return self.neighbours(pair.records, pair.position)


class RecordSampler(NeighbourSampler):
    """Draws the two records of each pair that a sum over records needs, and entire datasets with them."""

    def __init__(
        self,
        sampler: Sampler,
        n: int,
        seed: int,
        target: Schema | None = None,
        turns: Sequence[Sampler] = (),
    ) -> None:
        super().__init__(sampler, n, seed, target, turns)
        self.size = min(n, _LARGEST_DATASET)
        self.block = self.block if turns else streams.block_size(1)

    def records(self, block: int) -> Any:
        """Draw the records of a block: pair i has those at 2i and 2i + 1."""
        self._turn(block)
        return self.draw(streams.stream(self.seed, streams.RECORDS, block), 2 * self.block)

    def both(self, drawn: Any, offset: int) -> Any:
        """Return the two records of one pair of a block."""
        return records.take(drawn, np.array([2 * offset, 2 * offset + 1]))

    def pair_at(self, index: int) -> Pair:
        """Draw an entire dataset that has the two records of a pair, in the form of `draw`."""
        block, offset = divmod(index, self.block)
        position = int(self.positions(block)[offset]) % self.size
        both = self.both(self.records(block), offset)
        if self.n == 1:
            return Pair(both, 0)
        others = self.draw(streams.stream(self.seed, streams.CHECK, 3 + index), self.size - 1)
        order = np.arange(2, self.size + 1)
        order = np.concatenate([order[:position], [0], order[position:], [1]])
        return Pair(records.take(records.concat([both, others]), order), position)


def stack_of(datasets: list[Any]) -> Stack:
    """Return datasets, arrays or tuples of aligned ones, with one more axis in front."""
    columns = list(zip(*(each if isinstance(each, tuple) else (each,) for each in datasets), strict=True))
    if any(type(part) is not np.ndarray or part.dtype.hasobject for parts in columns for part in parts):
        kind = type(datasets[0][0] if isinstance(datasets[0], tuple) else datasets[0])
        raise SettingsError(f"""batch= stacks datasets, which must be numpy arrays of numbers, and here they
            are {"arrays of objects" if kind is np.ndarray else kind.__name__}. Leave it out, or pass
            arrays.""")
    for parts in columns:
        if len({(part.shape, part.dtype) for part in parts}) > 1:  # np.stack would convert them
            raise SettingsError("""batch= stacks datasets, and here they are arrays of different dtypes or
                shapes. Leave it out, or draw arrays of one dtype and shape.""")
    return tuple(map(np.stack, columns))


def repeater(pairs: NeighbourSampler, index: int, drawn: Any) -> Callable[[], Any]:
    """Return what makes the first dataset of a pair once more, after the function has had it."""
    if _is_large(pairs, drawn):
        # By a copy, because these pairs are being drawn.
        return lambda: pairs.buffers.drawn_again(lambda: copy.copy(pairs).pair_at(index), pairs.size)
    if is_buffered(drawn):
        return lambda: pairs.buffers.again(drawn, pairs.size)
    copied = records.fresh(records.copy(records.head(drawn, pairs.size)))
    return lambda: copied


def _is_large(pairs: NeighbourSampler, drawn: Any) -> bool:
    """Tell whether neighbours are arrays of which three would take noticeably more memory than two."""
    return pairs.uses_up and pairs.bytes >= LARGE and is_buffered(drawn)
