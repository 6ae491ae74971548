"""The spans of pairs that remain to be evaluated, sized by how long pairs take."""

import math

from privatize.execution.job import Learned, Span, SpanResult
from privatize.outputs.structure import Structure

# Seconds that a span should take: much longer than sending it, and short enough to keep all workers busy.
_INLINE, _TASK = 0.1, 0.3
_WAITING = 0.02  # inline, while others wait for the end of a span
_KNOWN = 16  # pairs of the span that a cost that is known counts as
_PAIRS = 2**16  # at most, however quick they are, so that the gaps of a span need little memory


class SpanQueue:
    """The indices that have no gap yet.

    Until one pair has worked, which shows the structure of the output, spans have one pair and are
    given out one at a time. Then they grow, as fast as pairs are evaluated, and shrink towards the end.

    Parameters
    ----------
    missing : list of (int, int)
        Spans of indices.
    block : int
        How many pairs share a stream. A span that begins inside a stream must draw the earlier pairs too.
    structure : Structure or None
        Structure of the output, if it is known.
    drawing : float
        Seconds that drawing one pair takes, if that is known.
    cost : float
        Seconds that a pair takes, if that is known from other pairs of the same function.
    together : bool
        Whether all pairs of a stream are evaluated at once, so that a part of them costs as much as all.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize.outputs.describe import describe
    >>> queue = SpanQueue([(0, 1000)], block=256, structure=describe(0.0))
    >>> queue.next(1)
    (0, 1)
    >>> queue.learn(SpanResult(0, np.zeros(1), seconds=1e-6, structure=describe(0.0)))
    >>> queue.next(1)
    (1, 17)
    """

    def __init__(
        self,
        missing: list[Span],
        block: int,
        structure: Structure | None,
        drawing: float = 0.0,
        cost: float = math.inf,
        *,
        together: bool = False,
    ) -> None:
        self._spans = missing[::-1]
        self._again: list[Span] = []
        self._block = block
        self.left = sum(stop - start for start, stop in missing)
        self.learned = Learned(structure)
        self.cost = cost  # seconds per pair
        self._drawing, self._together = drawing, together
        self._largest = 0 if cost == math.inf else _KNOWN
        self.moved = False  # whether any pairs are evaluated in other processes
        self.waiting = False  # whether workers are starting, which wait for a span's end when they are ready

    @property
    def pairs(self) -> int:
        """How many pairs wait to be given out."""
        return self.left + sum(stop - start for start, stop in self._again)

    def next(self, workers: int, running: int = 0, after: int | None = None) -> Span | None:
        """Return the next span to be evaluated, if there is one and it need not wait for others.

        `after` is where the last span of a worker ended, or -1 if it had none: it gets what follows, or the
        beginning of a stream, since others would have to draw the stream's earlier pairs again.
        """
        if self.learned.structure is None and running:
            return None
        if self._again:
            return self._again.pop()
        if not self._spans:
            return None
        at = len(self._spans) - 1 if after is None else self._place(after, running)
        if at is None:
            return None
        start, end = self._spans.pop(at)
        stop = min(start + self._size(workers), end)
        if stop < end:
            # Stop at the end of a stream if it is near, so that no draw is wasted.
            last = stop // self._block * self._block
            if last <= start and self._undivided(workers if after is None else 1):
                last = min((start // self._block + 1) * self._block, end)
            stop = last if last > start else stop
            if stop < end:
                self._spans.insert(at, (stop, end))
        self.left -= stop - start
        return start, stop

    def _place(self, after: int, running: int) -> int | None:
        """Return the place of the span for a worker that ended before `after`, or None to leave all alone."""
        spans, block = self._spans, self._block
        for at, (start, _) in enumerate(spans):
            if start == after:
                return at
        for at in reversed(range(len(spans))):
            start, end = spans[at]
            begin = -(-start // block) * block
            if begin < end:
                if begin > start:  # the rest of a stream stays for the worker that has its beginning
                    spans[at : at + 1] = [(begin, end), (start, begin)]
                return at
        if not running or self._largest < 2:
            return len(spans) - 1
        # Half of the longest rest, unless drawing up to there takes longer than it saves.
        at = max(range(len(spans)), key=lambda each: spans[each][1] - spans[each][0])
        start, end = spans[at]
        middle = (start + end + 1) // 2
        if middle == end or middle % block * self._drawing > (end - middle) * self.cost:
            return None
        spans[at : at + 1] = [(middle, end), (start, middle)]
        return at

    def _undivided(self, workers: int) -> bool:
        """Tell whether a stream is better left to one worker: another would draw its beginning again."""
        if self.learned.structure is None or not self._largest:
            return False
        costly = self._drawing > self.cost / 10 and self.left >= workers * self._block
        return self._together or (workers > 1 and costly)

    def _size(self, workers: int) -> int:
        if self.learned.structure is None or not self._largest:
            return 1
        seconds = (_WAITING if self.waiting else _INLINE) if workers == 1 else _TASK
        fits = int(min(seconds / max(self.cost, 1e-9), _PAIRS))
        # A few pairs may not be typical, so spans grow slowly; all workers should be busy until the end.
        share = self.left if workers == 1 else -(-self.left // (2 * workers))
        return max(1, min(fits, 16 * self._largest, share))

    def learn(self, found: SpanResult) -> None:
        """Note how long pairs took, and what they showed about the function."""
        known = self.learned
        used = found.uses_global_rng or known.uses_global_rng
        self.learned = Learned(found.structure or known.structure, used)
        if found.seconds > 0:
            cost = found.seconds / len(found.gaps)
            # The first pair of a function takes longer: it may import modules, and it is checked.
            self.cost = cost if self._largest > 1 else min(self.cost, cost)
            self._largest = max(self._largest, len(found.gaps))

    def again(self, start: int, stop: int) -> None:
        """Put a span back, to be evaluated again undivided."""
        self._again.append((start, stop))

    def back(self, start: int, stop: int) -> None:
        """Put a span back that was not evaluated."""
        if start < stop:
            self._spans.append((start, stop))
            self.left += stop - start
