"""A pool of processes that survives what it runs: crashes, hangs, leaks, interrupts.

Each worker has a pipe, and a slot in shared memory where it writes which pair it is evaluating,
and since when. So the supervisor knows which pair killed its worker or took too long. Only that
pair counts as infinite. The worker is replaced, and the rest of its span is evaluated again.
"""

import atexit
import contextlib
import logging
import marshal
import math
import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privatize.errors import ExecutionError
from privatize.execution.job import Cause, CauseKind, Job, Learned, Refused, Reply, Results, Span, SpanResult
from privatize.execution.packaging.package import Package, pack
from privatize.execution.processes.worker import IDLE, Message, StartMethod, safe_path, work
from privatize.execution.span_queue import SpanQueue

_log = logging.getLogger("privatize.execution")
# A worker that has grown by more than this many bytes and an eighth of the machine's memory is replaced.
_GROWN = 2**30
# So many bytes can be sent to a process that has not begun: they wait in its pipe, which is small elsewhere.
_SMALL = 2**16 if sys.platform == "linux" else 0
_LIKELY = {"SIGKILL": ": out of memory, or somebody killed it", "SIGSEGV": ": a crash in compiled code"}


class Worker:
    """One process, as the supervisor sees it."""

    def __init__(self, method: StartMethod, package: Package) -> None:
        self.method = method
        self.pipe, end = method.context.Pipe()
        self.slot = method.context.RawArray("d", 2)
        self.slot[0] = IDLE
        self.job = ""
        self.begun = self.loading = False
        self.after = -1  # where its last span of the job ended
        self.span: Span | None = None
        self.first = 0  # bytes in memory after its first task
        self.ended = False
        try:
            self.process = method.start(work, (end, self.slot), package)
        except BaseException:
            self.pipe.close()
            raise
        finally:
            end.close()
        if len(package.payload) <= _SMALL:
            self.load(package)

    @property
    def idle(self) -> bool:
        """Whether it waits for something to do."""
        return self.begun and self.span is None and not self.loading

    def load(self, package: Package) -> None:
        """Have it load a job, which it needs before it gets spans."""
        self.loading, self.job, self.after = True, package.name, -1
        self._send(package)

    def give(self, span: Span, learned: Learned) -> None:
        """Send it a span of its job."""
        self.span, self.after = span, span[1]
        self._send((span, learned))

    def _send(self, message: Message) -> None:
        with contextlib.suppress(OSError):  # then it is dead, which `_run` notices
            self.pipe.send_bytes(pickle.dumps(message))

    def drop_job(self) -> None:
        """Have it free the memory of the job, which may be large."""
        if self.job:
            self.job = ""
            with contextlib.suppress(OSError):
                self.pipe.send_bytes(b"")

    def late(self, timeout: float) -> bool:
        """Tell whether it has been evaluating one pair for too long."""
        since = self.slot[1]
        return bool(self.slot[0] != IDLE and time.monotonic() - since > timeout)

    def receive(self) -> tuple[Reply, int] | None:
        """Return what it answered and how many bytes it has in memory, or None if it is dead."""
        with contextlib.suppress(EOFError, OSError):
            if self.pipe.poll():
                facts, resident = marshal.loads(self.pipe.recv_bytes())  # noqa: S302 - from our own worker
                return Reply(*facts), resident
        return None

    def end(self) -> int | None:
        """End it at once, and return its exit code."""
        if self.ended:
            return None
        self.ended = True
        if self.process.pid is None:
            self.pipe.close()
            self.method.abandon(self.process)
            return None
        if self.process.is_alive() and hasattr(os, "killpg"):  # with all processes that it has started
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        code: int | None = self.process.exitcode
        self.process.close()
        self.pipe.close()
        return code


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay interrupts: a process that is only half started would print errors."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover
        yield
        return
    from multiprocess import resource_tracker

    with safe_path():  # first, because starting the tracker unblocks interrupts
        resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Pool:
    """Workers that stay alive between calibrations, and the loop that supervises them."""

    def __init__(self, method: StartMethod | None = None) -> None:
        self.method = method or StartMethod()
        self.workers: list[Worker] = []
        self.closed = False
        self._turn = threading.Lock()
        self._lost = 0  # workers that were lost in a row
        self._unlucky: Counter[Span] = Counter()  # spans whose workers were lost between pairs

    def prepare(self, package: Package, workers: int) -> bool:
        """Have workers start and load a job meanwhile; tell whether one of them is ready for it."""
        if not self._turn.acquire(blocking=False):
            return True  # another thread uses them: `run` waits for its turn
        try:
            self._check_open()
            team = self._team(package, workers)
            for worker in team:
                if not worker.begun or not worker.loading:
                    continue
                if worker.pipe.poll() or not worker.process.is_alive():
                    self._receive(worker, None, 8 + 2 * workers)
            return any(worker.idle and worker.job == package.name for worker in team)
        finally:
            self._turn.release()

    def run(
        self, package: Package, queue: SpanQueue, *, workers: int, timeout: float | None, keep: bool = False
    ) -> Results:
        """Evaluate all spans of the queue, and yield results as they come in.

        With `keep`, workers keep the package for the next time.
        """
        with self._turn:
            # An interrupt may have left workers busy with an earlier job.
            for worker in self._running():
                self._end(worker)
            self._unlucky.clear()
            try:
                yield from self._run(package, queue, workers, timeout)
            finally:  # also if the caller stops early, or an interrupt comes
                self._lost = 0
                for worker in list(self.workers):
                    if worker.span is not None:
                        queue.back(*worker.span)
                        self._end(worker)
                    elif not keep:
                        worker.drop_job()

    def _run(self, package: Package, queue: SpanQueue, workers: int, timeout: float | None) -> Results:
        from multiprocess import connection

        interval = None if timeout is None else max(0.001, min(timeout / 10, 1.0))
        self._lost = 0
        while busy := self._fill(package, queue, workers):
            ends = [worker.pipe for worker in busy] + [worker.process.sentinel for worker in busy]
            ready = set(connection.wait(ends, interval))
            for worker in busy:
                responded = worker.pipe in ready or worker.process.sentinel in ready
                late = timeout is not None and not responded and worker.late(timeout)
                if not worker.begun or not (responded or late):
                    continue
                self._check_open()
                if found := self._receive(worker, queue, 8 + 2 * workers, timeout if late else None):
                    yield found

    def _running(self) -> list[Worker]:
        return [worker for worker in self.workers if worker.span is not None]

    def _check_open(self) -> None:
        if self.closed:
            raise ExecutionError("The program is ending.")

    def _fill(self, package: Package, queue: SpanQueue, workers: int) -> list[Worker]:
        """Give spans to workers that are ready, and return all that are busy, unless there is no work."""
        self._check_open()
        running = len(self._running())
        team = self._team(package, min(workers, running + queue.pairs))
        for worker in team:
            if worker.idle and worker.job == package.name:
                span = queue.next(workers, running, worker.after)
                if span is not None:
                    worker.give(span, queue.learned)
                    running += 1
        return [worker for worker in team if not worker.idle] if running or queue.pairs else []

    def _team(self, package: Package, count: int) -> list[Worker]:
        """Return so many workers, with those first that are running; start missing ones, and load the job."""
        for worker in list(self.workers):
            if worker.ended:
                continue  # with another one that could not begin
            if not worker.begun:
                self._begin(worker)
            elif worker.idle and not worker.process.is_alive():  # it died meanwhile
                self._end(worker)
        while len(self.workers) < count:
            self._start(package)
        ready = sorted(self.workers, key=lambda worker: (worker.span is None, not worker.idle))
        for worker in ready[:count]:
            if worker.begun and worker.idle and worker.job != package.name:
                worker.load(package)
        return ready[:count]

    def _start(self, package: Package) -> None:
        try:
            with _uninterrupted():
                self.workers.append(Worker(self.method, package))
        except (OSError, EOFError) as error:
            raise Refused(f"processes cannot be started here ({error})") from error

    def _begin(self, worker: Worker) -> None:
        """Note whether a worker's process has begun; if none can begin, start again without libraries."""
        try:
            worker.begun = self.method.begun(worker.process, wait=False)
        except (OSError, EOFError) as error:
            for each in list(self.workers):
                if not each.begun:
                    self._end(each)
            if not self.method.without_libraries():
                raise Refused(f"processes cannot be started here ({error})") from error
        except BaseException:  # an interrupt: its process may have begun, or not
            self._end(worker)
            raise

    def _receive(
        self, worker: Worker, queue: SpanQueue | None, most: int, late: float | None = None
    ) -> SpanResult | None:
        """Return a worker's result, or the pair that it was lost with; raise an error that it reports."""
        answer = None if late else worker.receive()
        if answer is None:
            return self._reap(worker, queue, late, most)
        reply, resident = answer
        worker.first = worker.first or resident
        if worker.loading:
            job, worker.loading, worker.job = worker.job, False, ""
            if job:  # it is still wanted
                reply.read()
                worker.job = job
            return None
        [found] = reply.read()
        if queue is None or (found.start, found.start + len(found.gaps)) != worker.span:
            raise ExecutionError("A worker returned gaps of other pairs than it was sent.")  # never seen
        self._lost, worker.span = 0, None
        queue.learn(found)
        if resident - worker.first > max(_GROWN, machine_memory() // 8):
            _log.info("a worker has grown to %d MB and is replaced", resident >> 20)
            self._end(worker)
        return found

    def _reap(
        self, worker: Worker, queue: SpanQueue | None, timeout: float | None, most: int
    ) -> SpanResult | None:
        """End a lost worker. Return the pair that it was lost with, if any, and put its other pairs back."""
        start, stop = worker.span or (0, 0)
        index = int(worker.slot[0])
        kind, what = _fate(self._end(worker), timeout)
        self._lost = 1 if index > start else self._lost + 1  # it had finished some pairs
        if self._lost >= most:
            raise ExecutionError(f"""{self._lost} workers in a row were lost with the pair that they were
                evaluating, and not one pair was finished between them. The last: {what}. Does the function
                crash, run out of memory or hang on public data too? Try it on data from the sampler.""")
        if queue is None or start == stop:
            _log.warning("a worker was lost when it loaded the function (%s)", what)
            return None
        if not start <= index < stop:
            _log.warning("a worker was lost between pairs (%s)", what)
            middle = (start + stop) // 2  # in halves, until the pair at fault is found
            self._unlucky[start, stop] += 1
            if stop - start > 1 or self._unlucky[start, stop] < 3:
                queue.back(start, middle)
                queue.back(middle, stop)
                return None
            index = start
        _log.warning("pair %d counts as infinite: %s", index, what)
        queue.back(start, index)
        queue.back(index + 1, stop)
        return SpanResult(index, np.array([math.inf]), 0.0, cause=Cause(index, kind, what))

    def _end(self, worker: Worker) -> int | None:
        if worker in self.workers:
            self.workers.remove(worker)
        return worker.end()

    def close(self) -> None:
        """End all workers; the next run starts others."""
        for worker in list(self.workers):
            self._end(worker)


def _fate(code: int | None, timeout: float | None) -> tuple[CauseKind, str]:
    """Return why a worker was lost: it was too late, or it ended with an exit code."""
    if timeout is not None:
        return "timed_out", f"the function took more than timeout={timeout:g} seconds"
    if code is None or code >= 0:
        return "crashed", f"the function ended its process (exit code {code})"
    name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
    kind: CauseKind = "killed" if name == "SIGKILL" else "crashed"
    return kind, f"the function's process was killed ({name}{_LIKELY.get(name, '')})"


def machine_memory() -> int:
    """Return how many bytes of memory there are for this process, or 0 if the system does not report it."""
    try:
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # pragma: no cover
        return 0
    with contextlib.suppress(OSError, ValueError):  # there may be no such limit
        found = min(found, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    return found


_pool: Pool | None = None


def pool() -> Pool:
    """Return this process's pool; a forked child gets one of its own."""
    global _pool
    if _pool is None:
        _pool = Pool()
        atexit.register(_close)
    return _pool


def is_warm() -> bool:
    """Tell whether this process's pool has workers already."""
    return _pool is not None and bool(_pool.workers)


def _close() -> None:
    if _pool is not None:
        _pool.closed = True  # a thread that waits for workers then gets an error
        _pool.close()


def _leave() -> None:
    """Close, in a forked child, the pipes that would keep the parent's workers alive after the parent."""
    global _pool
    parents, _pool = _pool, None
    if parents is None:
        return
    ends = [parents.method.server._forkserver_alive_fd] if parents.method.server else []
    running = [worker.process._popen for worker in parents.workers if not worker.ended]
    # The first descriptor is the end of a pipe by which the worker sees whether its parent is alive.
    for end in [*ends, *(popen.finalizer._args[0] for popen in running)]:
        with contextlib.suppress(OSError):
            os.close(end)
    from multiprocess import resource_tracker

    # It is no child of this process, which cannot wait for it at its end, and would print an error.
    resource_tracker._resource_tracker._pid = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)


@dataclass(frozen=True)
class Processes:
    """Evaluates in a pool of processes, which stay alive between calls."""

    count: int
    exact = True

    def run(self, job: Job, queue: SpanQueue, package: Package | None = None) -> Results:
        """Evaluate all spans of the queue; the job may have been packed already."""
        queue.moved = True
        return pool().run(package or pack(job), queue, workers=self.count, timeout=job.timeout)
