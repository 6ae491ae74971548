"""What runs in a worker process: it evaluates what comes through a pipe, for as long as its parent lives."""

import contextlib
import ctypes
import marshal
import os
import pickle
import signal
import sys
import threading
import time
from typing import Any

from privatize.execution.job import Learned, Reply, Span, SpanResult
from privatize.execution.packaging.package import THREADS, Package, Unpacked, unpack

Message = tuple[Package | None, Span, Learned]  # to a worker; the package if it is another one than before
IDLE = -1.0
SAFE_PATH = "PYTHONSAFEPATH"


def work(pipe: Any, slot: Any, safe: bool) -> None:
    """Evaluate what comes through a pipe, for as long as the parent lives."""
    if not safe:  # it was for the fork server: programs that a function starts must not inherit it
        os.environ.pop(SAFE_PATH, None)
    # The parent decides. Handlers, not SIG_IGN, which the programs that a function starts would inherit.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: None)
    if hasattr(os, "setpgid"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        os.setpgid(0, 0)  # so that what the function starts can be ended with it
    for name in THREADS:  # for libraries that are loaded later
        os.environ[name] = "1"
    _end_with_parent()
    me = os.getpid()

    def heartbeat(index: int) -> None:
        if os.getpid() != me:  # a child that the function forked, and that came back here
            os._exit(0)
        slot[1] = time.monotonic()
        slot[0] = index

    jobs: list[Unpacked] = []
    while True:
        try:
            message = pipe.recv_bytes()
        except EOFError:
            return
        if not message:  # the job is over
            jobs.clear()
            continue
        reply = _reply(jobs, message, heartbeat)
        if os.getpid() != me:
            os._exit(0)
        # Plain values: a function may have changed how anything else is pickled.
        answer = marshal.dumps((list(vars(reply).values()), _resident()))
        slot[0] = IDLE
        pipe.send_bytes(answer)


def _reply(jobs: list[Unpacked], message: bytes, heartbeat: Any) -> Reply:
    """Do what a message asks for, and return what to answer."""
    package, span, learned = pickle.loads(message)  # noqa: S301 - the parent's

    def evaluate() -> list[SpanResult]:
        if package is not None:
            jobs[:] = [unpack(package)]
        return [jobs[0].evaluate(span, learned, heartbeat)]

    return Reply.to(evaluate)


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
    """Return how many bytes this process has in memory, or 0 where the system does not tell."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - read after every task
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
