"""A pool of processes that survives what it runs: crashes, hangs, leaks, interrupts.

One pipe per worker, and a slot in shared memory in which a worker notes the pair that it is
evaluating, and since when. So the supervisor knows which pair killed its worker or took too long:
that pair alone counts as infinite, the worker is replaced, and the rest of its span is done again.
Workers come from a fork server of our own, which has no threads and never runs the user's script.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import ctypes
import io
import itertools
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
from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from privatize.calibration.pairs import TIMED_OUT, Pairs
from privatize.calibration.streams import public_coins
from privatize.errors import ExecutionError, PrivatizeError, restore
from privatize.execution.job import Cause, Refused, SpanResult
from privatize.execution.packaging import THREADS, Package, refusing, surroundings, unpack
from privatize.execution.span_queue import Work
from privatize.outputs.describe import from_json

__all__ = ["evaluate", "pool"]

_log = logging.getLogger("privatize.execution")
_IDLE = -1.0
_SAFE = "PYTHONSAFEPATH"
# A worker that has grown by this many bytes, one in eight of the machine's but at least 1 GB, is replaced.
_GROWN = 2**30


# --- in the worker ----------------------------------------------------------------------------


def evaluate(
    pairs: Pairs, around: Any, start: int, stop: int, learned: Any, watch: Any, *, settled: bool = False
) -> SpanResult:
    """Evaluate some pairs of a job that came from another process."""
    if pairs.structure != learned[0]:
        pairs.structure = copy.deepcopy(learned[0])  # a copy has no classes yet: here they are others
    pairs.tossing = learned[1] or pairs.tossing
    with pairs.around(), public_coins(pairs.s0) as flips, surroundings(around, settled=settled), refusing():
        return pairs.gaps(start, stop, flips, watch)


def _work(pipe: Any, slot: Any, safe: bool) -> None:
    """Evaluate what comes through a pipe, for as long as the parent lives."""
    if not safe:  # it was for the fork server: programs that a function starts must not inherit it
        os.environ.pop(_SAFE, None)
    # The parent decides. Handlers, not SIG_IGN, which the programs that a function starts would inherit.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), _deaf)
    if hasattr(os, "setpgid"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.setpgid(0, 0)  # so that what the function starts can be ended with it
    for name in THREADS:  # for libraries that are loaded later
        os.environ[name] = "1"
    _end_with_parent()
    me = os.getpid()

    def watch(index: int) -> None:
        if os.getpid() != me:  # a child that the function forked, and that came back here
            os._exit(0)
        slot[1] = time.monotonic()
        slot[0] = index

    jobs: list[Any] = []
    while True:
        try:
            message = pipe.recv_bytes()
        except EOFError:
            return
        if not message:  # the job is over
            jobs.clear()
            continue
        reply = _reply(jobs, message, watch)
        if os.getpid() != me:
            os._exit(0)
        # Plain values, which need nothing that the function may have spoilt.
        answer = marshal.dumps((*reply, _resident()))
        slot[0] = _IDLE
        pipe.send_bytes(answer)


def _reply(jobs: list[Any], message: bytes, watch: Any) -> tuple[int, str, Any]:
    """Do what a message asks for, and return what to say to the parent."""
    number, package, start, stop, learned = pickle.loads(message)  # noqa: S301 - the parent's
    try:
        if package is not None:
            jobs[:] = [unpack(package, exclusive=True)]
        pairs, around = jobs[0]
        found = evaluate(pairs, around, start, stop, learned, watch, settled=True)
        cause = None if found.cause is None else _facts(found.cause)
        gaps = found.gaps.tobytes()
        learned = (found.structure and found.structure.to_json(), found.tossing)
        kept = {index: sizes.tobytes() for index, sizes in found.kept.items()}
        return number, "found", (found.start, gaps, found.seconds, *learned, cause, found.jitter, kept)
    except PrivatizeError as error:
        return number, "error", error.plain().facts()
    except Refused as error:
        return number, "refused", str(error)
    except BaseException as error:  # of the sampler, say: whatever it is, the parent says so
        return number, "raised", _facts(Cause.of(start, error))


def _deaf(*_: object) -> None:
    """Do nothing about a signal."""


def _facts(cause: Cause) -> tuple[int, str, str]:
    plain = cause.plain()
    return plain.index, plain.text, plain.trace


def _end_with_parent() -> None:
    """See to it that this process ends when its parent does, however that ends."""
    from multiprocess import connection, process

    if sys.platform == "linux":  # also in the midst of C code: the fork server ends with the parent
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    parent = process.parent_process()

    def watch() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name="privatize: end with the parent").start()


def _resident() -> int:
    """Return how many bytes this process has in memory, or 0 where that is not told."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - read after every task
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0


# --- starting workers ---------------------------------------------------------------------------


class _Worker:
    """One process, as the supervisor sees it."""

    def __init__(self, processes: _Processes) -> None:
        from multiprocess import process

        context = processes.context
        self.pipe, end = context.Pipe()
        self.slot = context.RawArray("d", 2)
        self.slot[0] = _IDLE
        self.process = processes.kind(target=_work, args=(end, self.slot, _SAFE in os.environ), daemon=True)
        self.job = ""
        self.span: tuple[int, int] | None = None
        self.first = 0  # bytes after its first task
        self.ended = False
        try:
            self.process.start()
        except BaseException:
            self.pipe.close()
            raise
        finally:
            end.close()
        # At its exit, a child that the user's program forks would end the processes in this list.
        process._children.discard(self.process)

    def give(self, number: int, package: Package, span: tuple[int, int], learned: Any) -> None:
        """Hand a span to it; the job as well, if it has not got it."""
        new = package if self.job != package.name else None
        self.span = span
        self.job = package.name
        with contextlib.suppress(OSError):  # then it is dead, which will be seen
            self.pipe.send_bytes(pickle.dumps((number, new, *span, learned)))

    def rest(self) -> None:
        """Let go of the job, which may be large."""
        if not self.job:
            return
        self.job = ""
        with contextlib.suppress(OSError):
            self.pipe.send_bytes(b"")

    def late(self, timeout: float) -> bool:
        """Tell whether it has been at one pair for too long."""
        since = self.slot[1]
        return bool(self.slot[0] != _IDLE and time.monotonic() - since > timeout)

    def end(self) -> int | None:
        """End it at once, and return its exit code."""
        if self.ended:
            return None
        self.ended = True
        if self.process.is_alive() and hasattr(os, "killpg"):  # with whatever it has started
            with contextlib.suppress(OSError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        code: int | None = self.process.exitcode
        self.process.close()
        self.pipe.close()
        return code


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Put off an interrupt: a process that is half made would complain."""
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Processes:
    """Starts processes without running the user's ``__main__`` in them."""

    def __init__(self) -> None:
        import multiprocess

        self.context: Any = multiprocess.get_context("spawn")
        self.server: Any = None
        self.kind: Any
        if sys.platform == "win32":  # pragma: no cover
            self.kind = self._spawning()
        else:
            self.context = multiprocess.get_context("forkserver")
            self.kind = self._forking()

    def _forking(self) -> Any:
        """Return a kind of process that a fork server of our own makes."""
        from multiprocess import context, forkserver, popen_forkserver, util
        from multiprocess.context import reduction, set_spawning_popen

        server = self.server = forkserver.ForkServer()
        server.set_forkserver_preload(
            ["numpy", "privatize.execution.processes", "cloudpickle", "threadpoolctl"]
        )

        class Popen(popen_forkserver.Popen):  # type: ignore[misc]
            def _launch(self, process: Any) -> None:
                buffer = io.BytesIO()
                set_spawning_popen(self)
                try:
                    reduction.dump(_preparation(process), buffer)
                    reduction.dump(process, buffer)
                finally:
                    set_spawning_popen(None)
                with _safe_path():
                    self.sentinel, data = server.connect_to_new_process(self._fds)
                # The other end is the parent's sentinel in the child.
                self.parent_end = os.dup(data)
                self.finalizer = util.Finalize(self, util.close_fds, (self.parent_end, self.sentinel))
                with open(data, "wb") as file:  # noqa: PTH123 - a descriptor
                    file.write(buffer.getbuffer())
                self.pid = forkserver.read_signed(self.sentinel)

        class Process(context.ForkServerProcess):  # type: ignore[misc]
            @staticmethod
            def _Popen(process: Any) -> Any:  # noqa: N802 - the library's name
                return Popen(process)

        return Process

    def _spawning(self) -> Any:  # pragma: no cover
        from multiprocess import context, popen_spawn_win32, spawn

        class Process(context.SpawnProcess):  # type: ignore[misc]
            @staticmethod
            def _Popen(process: Any) -> Any:  # noqa: N802 - the library's name
                before = spawn.get_preparation_data
                spawn.get_preparation_data = lambda _: _preparation(process)
                try:
                    return popen_spawn_win32.Popen(process)
                finally:
                    spawn.get_preparation_data = before

        return Process


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Have the fork server import nothing from the working folder, which this program may not look into.

    It is started as ``python -c``, which looks there first. Workers get this program's own folders.
    """
    before = os.environ.get(_SAFE)
    os.environ[_SAFE] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(_SAFE, None)
        else:
            os.environ[_SAFE] = before


def _preparation(process: Any) -> dict[str, Any]:
    """Return what a worker begins with: the parent's folders, but not its script."""
    facts = {
        "name": process._name,
        "authkey": process.authkey,
        "sys_path": list(sys.path),
        "sys_argv": list(sys.argv),
    }
    with contextlib.suppress(OSError):  # the folder may be gone
        facts["dir"] = os.getcwd()  # noqa: PTH109 - a text
    return facts


# --- the supervisor ------------------------------------------------------------------------------


class Pool:
    """Workers that are kept between calibrations, and the loop that watches over them."""

    def __init__(self, processes: _Processes | None = None) -> None:
        self.processes = processes or _Processes()
        self._closed = False
        self._workers: list[_Worker] = []
        self._numbers = itertools.count()
        self._turn = threading.Lock()
        self._unlucky: Counter[tuple[int, int]] = Counter()  # spans whose workers were lost between pairs

    @property
    def warm(self) -> bool:
        """Whether workers are there already."""
        return bool(self._workers)

    def run(
        self, package: Package, work: Work, *, workers: int, timeout: float | None, keep: bool = False
    ) -> Generator[SpanResult, None, None]:
        """Evaluate all that there is to do, and yield what was found as it comes.

        With `keep`, workers keep the package for the next time.
        """
        with self._turn:
            # Those that an interrupt, or two, left in the midst of something else.
            for worker in list(self._workers):
                if worker.span is not None:
                    self._end(worker)
            self._unlucky.clear()
            try:
                yield from self._run(next(self._numbers), package, work, workers, timeout)
            finally:  # also if nobody wants the rest, or an interrupt came
                for worker in list(self._workers):
                    if worker.span is not None:
                        work.back(*worker.span)
                        self._end(worker)
                    elif not keep:
                        worker.rest()

    def _run(
        self, number: int, package: Package, work: Work, workers: int, timeout: float | None
    ) -> Generator[SpanResult, None, None]:
        from multiprocess import connection

        lost = 0  # how many in a row
        while True:
            busy = [worker for worker in self._workers if worker.span is not None]
            if self._closed:
                raise ExecutionError("The program is ending.")
            idle = self._idle() if len(busy) < workers else []
            while len(busy) < workers and (span := work.next(workers, len(busy))) is not None:
                try:
                    worker = idle.pop() if idle else self._start()
                except BaseException:
                    work.back(*span)
                    raise
                worker.give(number, package, span, work.learned)
                busy.append(worker)
            if not busy:
                return
            until = None if timeout is None else max(0.001, min(timeout / 10, 1.0))
            ends = [worker.pipe for worker in busy] + [worker.process.sentinel for worker in busy]
            ready = set(connection.wait(ends, until))
            for worker in busy:
                spoke = worker.pipe in ready or worker.process.sentinel in ready
                late = timeout is not None and not spoke and worker.late(timeout)
                if not spoke and not late:
                    continue
                reply = self._receive(worker) if spoke else None
                if self._closed:
                    raise ExecutionError("The program is ending.")
                if reply is not None:
                    lost = 0
                    yield self._read(worker, work, number, *reply)
                    continue
                begun = (worker.span or (0, 0))[0]
                lost = 1 if worker.slot[0] > begun else lost + 1  # it had finished some
                found = self._bury(worker, work, timeout if late else None)
                if lost >= 8 + 2 * workers:
                    what = found.cause.text if found is not None and found.cause else "it died between pairs"
                    raise ExecutionError(
                        f"{lost} workers in a row were lost with the pair that they were evaluating, and not "
                        f"one pair was finished between them. The last: {what}. Does the function crash, run "
                        f"out of memory or hang on public data too? Try it on data from the sampler."
                    )
                if found is not None:
                    yield found

    def _idle(self) -> list[_Worker]:
        """Return the workers that have nothing to do, without those that died meanwhile."""
        found = []
        for worker in [worker for worker in self._workers if worker.span is None]:
            if worker.process.is_alive():
                found.append(worker)
            else:
                self._end(worker)
        return found

    def _start(self) -> _Worker:
        try:
            with _undisturbed():
                worker = _Worker(self.processes)
        except (OSError, EOFError) as error:
            raise Refused(f"processes cannot be started here ({error})") from error
        self._workers.append(worker)
        return worker

    def _receive(self, worker: _Worker) -> Any:
        """Return what a worker sent, or None if it is dead."""
        try:
            # From a process of our own.
            return marshal.loads(worker.pipe.recv_bytes()) if worker.pipe.poll() else None  # noqa: S302
        except (EOFError, OSError):
            return None

    def _read(
        self, worker: _Worker, work: Work, number: int, told: int, kind: str, content: Any, resident: int
    ) -> SpanResult:
        """Return what a worker found, or raise what it says."""
        if told != number:
            raise ExecutionError("A worker answered another question than it was asked.")  # never seen
        if kind == "error":
            raise restore(content)
        if kind == "refused":
            raise Refused(content)
        if kind == "raised":
            raised = _cause(content)
            raise ExecutionError(
                f"Drawing the pairs failed in a worker: {raised.text}."
            ) from raised.exception()
        start, gaps, seconds, structure, tossing, cause, jitter, sizes = content
        cause, structure = cause and _cause(cause), structure and from_json(structure)
        kept = {index: np.frombuffer(each) for index, each in sizes.items()}
        found = SpanResult(start, np.frombuffer(gaps), seconds, structure, tossing, cause, jitter, kept)
        if (start, start + len(found.gaps)) != worker.span:
            raise ExecutionError("A worker answered another question than it was asked.")  # never seen
        worker.span = None
        work.learn(found)
        worker.first = worker.first or resident
        if resident - worker.first > max(_GROWN, _memory() // 8):
            _log.info("a worker has grown to %d MB and is replaced", resident >> 20)
            self._end(worker)
        return found

    def _bury(self, worker: _Worker, work: Work, timeout: float | None) -> SpanResult | None:
        """End a lost worker; return the pair that it was lost with, and put the rest back to be done."""
        start, stop = worker.span or (0, 0)
        index = int(worker.slot[0])
        code = self._end(worker)
        if timeout is not None:
            what = f"{TIMED_OUT}{timeout:g} seconds"
        elif code is not None and code < 0:
            name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
            what = f"the function's process was killed ({name}{_LIKELY.get(name, '')})"
        else:
            what = f"the function ended its process (exit code {code})"
        if not start <= index < stop:
            _log.warning("a worker was lost between pairs (%s)", what)
            middle = (start + stop) // 2  # in halves, so that what is wrong with one pair is found
            self._unlucky[start, stop] += 1
            if stop - start > 1 or self._unlucky[start, stop] < 3:
                work.back(start, middle)
                work.back(middle, stop)
                return None
            index = start
        _log.warning("pair %d counts as infinite: %s", index, what)
        work.back(start, index)
        work.back(index + 1, stop)
        return SpanResult(index, np.array([math.inf]), 0.0, cause=Cause(index, what))

    def _end(self, worker: _Worker) -> int | None:
        if worker in self._workers:
            self._workers.remove(worker)
        return worker.end()

    def close(self) -> None:
        """End all workers; the next run starts others."""
        for worker in list(self._workers):
            self._end(worker)


def _cause(facts: tuple[int, str, str]) -> Cause:
    return Cause(facts[0], facts[1], None, facts[2])


_LIKELY = {"SIGKILL": ": out of memory, or somebody did it", "SIGSEGV": ": a crash in compiled code"}


def _memory() -> int:
    """Return the machine's memory in bytes, or 0 where that is not told."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # pragma: no cover
        return 0


_pool: tuple[int, Pool] | None = None


def pool() -> Pool:
    """Return this process's pool; a forked child gets one of its own."""
    global _pool
    if _pool is None or _pool[0] != os.getpid():
        _pool = (os.getpid(), Pool())
        atexit.register(_close, os.getpid())
    return _pool[1]


def _leave() -> None:
    """Let go, in a forked child, of what would keep the parent's workers alive after it."""
    global _pool
    if _pool is None:
        return
    held, _pool = _pool[1], None
    ends = [held.processes.server._forkserver_alive_fd] if held.processes.server else []
    ends += [
        getattr(worker.process._popen, "parent_end", None) for worker in held._workers if not worker.ended
    ]
    for end in ends:
        if end is not None:
            with contextlib.suppress(OSError):
                os.close(end)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)


def _close(process: int) -> None:
    if _pool is not None and _pool[0] == process == os.getpid():
        _pool[1]._closed = True  # whoever waits for them is told
        _pool[1].close()
