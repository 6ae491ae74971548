"""Every missing pair is handed out exactly once, in spans of a useful size."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privatize.execution import span_queue
from privatize.execution.job import SpanResult
from privatize.execution.span_queue import SpanQueue
from privatize.outputs.describe import describe


class TestSpanQueue:
    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(data=st.data())
    def test_every_missing_pair_exactly_once(self, data):
        """No pair is evaluated twice at the same time, none is forgotten, whatever happens to workers."""
        known = data.draw(st.lists(st.booleans(), min_size=1, max_size=400))
        missing, at = [], None
        for i, unknown in enumerate([*known, False]):
            if unknown and at is None:
                at = i
            if not unknown and at is not None:
                missing.append((at, i))
                at = None
        wanted = {i for start, stop in missing for i in range(start, stop)}
        structure = data.draw(st.sampled_from([None, describe(0.0)]))
        work = SpanQueue(
            list(missing), data.draw(st.integers(1, 64)), structure, together=data.draw(st.booleans())
        )
        workers = data.draw(st.integers(1, 5))
        running, ended, done, steps = [], [], set(), 0
        while True:
            while len(running) < workers:
                after = data.draw(st.sampled_from([None, -1, *(stop for _, stop in ended[-3:])]))
                if (span := work.next(workers, len(running), after)) is None:
                    break
                assert span[0] < span[1]
                taken = set(range(*span))
                assert taken <= wanted - done
                assert not any(taken & set(range(*other)) for other in running)
                if work.learned.structure is None:
                    assert len(taken) == 1 and not running
                running.append(span)
            inside = sum(stop - start for start, stop in running)
            assert work.left + inside + len(done) == len(wanted) or work._again
            if not running:
                break
            steps += 1
            span = running.pop(data.draw(st.integers(0, len(running) - 1)))
            ended.append(span)
            fate = data.draw(st.sampled_from(["found", "found", "found", "back", "lost", "again"]))
            if fate == "found" or steps > 300:
                cost = data.draw(st.sampled_from([1e-7, 1e-3, 0.2, 5.0]))
                size = span[1] - span[0]
                works = data.draw(st.booleans()) or steps > 300
                work.learn(SpanResult(span[0], np.zeros(size), cost * size, describe(0.0) if works else None))
                done |= set(range(*span))
            elif fate == "back":
                work.back(*span)
            elif fate == "again":
                work.again(*span)
            else:
                index = data.draw(st.integers(span[0], span[1] - 1))
                work.back(span[0], index)
                work.back(index + 1, span[1])
                done.add(index)
        assert done == wanted and work.left == 0

    def test_sizes_follow_the_cost(self, monkeypatch):
        """Quick pairs come in large tasks, slow ones alone, and tasks shrink at the end to keep all busy."""
        monkeypatch.setattr(span_queue, "_TASK", 0.3)
        quick, slow = (SpanQueue([(0, 10_000)], 256, describe(0.0)) for _ in range(2))
        for work, cost in ((quick, 1e-6), (slow, 1.0)):
            sizes = []
            while (span := work.next(2)) is not None and len(sizes) < 200:
                sizes.append(span[1] - span[0])
                work.learn(SpanResult(span[0], np.zeros(sizes[-1]), cost * sizes[-1], describe(0.0)))
            assert sizes[0] == 1
            assert max(sizes) == 1 if work is slow else max(sizes) >= 1000
            if work is quick:
                assert sizes[-1] < 100 and sum(sizes) == 10_000

    def test_spans_are_short_while_workers_wait_for_their_end(self):
        """Workers that are ready would be idle for a tenth of a second, as often as they are started."""
        sizes = []
        for waiting in (False, True):
            work = SpanQueue([(0, 1000)], 1000, describe(0.0))
            for _ in range(3):
                start, stop = work.next(1)
                work.learn(SpanResult(start, np.zeros(stop - start), 1e-3 * (stop - start)))
            work.waiting = waiting
            start, stop = work.next(1)
            sizes.append(stop - start)
        assert sizes[1] < sizes[0] / 4

    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.integers(1, 5000), st.integers(1, 300), st.floats(1e-8, 1e-2), st.integers(1, 8))
    def test_tasks_end_where_streams_do(self, total, block, cost, workers):
        """A task that reaches the end of a stream stops there, so that no draw is wasted."""
        work = SpanQueue([(0, total)], block, describe(0.0))
        while (span := work.next(workers)) is not None:
            start, stop = span
            assert stop == total or stop % block == 0 or start // block == (stop - 1) // block
            work.learn(SpanResult(start, np.zeros(stop - start), cost * (stop - start), describe(0.0)))

    def test_a_worker_goes_on_with_its_stream(self):
        """Workers would draw the beginning of each other's streams again, which may take longer than f."""
        work = SpanQueue([(0, 1000)], 256, describe(0.0), drawing=1e-3)
        ends, redrawn = {0: -1, 1: -1}, 0
        while work.left:
            for worker, after in ends.items():
                if (span := work.next(2, 1, after)) is None:
                    continue
                start, ends[worker] = span
                redrawn += start % 256 if start != after else 0
                work.learn(
                    SpanResult(start, np.zeros(span[1] - start), 5e-3 * (span[1] - start), describe(0.0))
                )
        assert redrawn < 1000


def test_a_cost_that_is_known_saves_the_first_small_spans(monkeypatch):
    """Each span takes time of its own, so that a stress test would take longer than its pairs do."""
    monkeypatch.setattr(span_queue, "_INLINE", 0.1)
    structure = describe(0.0)
    assert SpanQueue([(0, 61)], block=16, structure=structure, cost=1e-5).next(1) == (0, 61)
    assert SpanQueue([(0, 61)], block=16, structure=structure, cost=1e9).next(1) == (0, 1)
    assert SpanQueue([(0, 61)], block=16, structure=None, cost=1e-5).next(1) == (0, 1)
    assert SpanQueue([(0, 61)], block=16, structure=structure).next(1) == (0, 1)
