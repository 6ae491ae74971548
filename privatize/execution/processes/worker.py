"""A worker process: how it is started, and what runs in it.

Workers come from a fork server of our own, which has no threads and never runs the user's ``__main__``. They
evaluate what comes through a pipe, for as long as their parent lives.
"""

import contextlib
import ctypes
import marshal
import os
import pickle
import signal
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

from privatize.execution.job import Learned, Reply, Span, SpanResult
from privatize.execution.packaging.package import THREADS, Package, Unpacked, unpack

Message = tuple[Package | None, Span, Learned]  # to a worker; the package only if it is a new one
IDLE = -1.0
SAFE_PATH = "PYTHONSAFEPATH"


class StartMethod:
    """Starts processes: from a fork server of our own, or on Windows by spawning."""

    def __init__(self) -> None:
        import multiprocess
        from multiprocess import spawn

        named = {"spawn": _with(spawn, get_preparation_data=_preparation)}
        self.server: Any = None
        if sys.platform == "win32":  # pragma: no cover
            from multiprocess import popen_spawn_win32 as library

            self.context, launch = multiprocess.get_context("spawn"), "__init__"
        else:
            from multiprocess import forkserver
            from multiprocess import popen_forkserver as library

            self.context, launch = multiprocess.get_context("forkserver"), "_launch"
            self.server = forkserver.ForkServer()
            connect = self.server.connect_to_new_process
            named["forkserver"] = _with(forkserver, connect_to_new_process=connect)
        # A copy of the library's function, whose globals have our preparation and our server.
        theirs = getattr(library.Popen, launch)
        ours = types.FunctionType(theirs.__code__, theirs.__globals__ | named)
        self._popen: Any = type("Popen", (library.Popen,), {launch: ours})

    def start(self, target: Any, args: tuple[Any, ...], preload: str) -> Any:
        """Start a process; its last argument is the value of `safe_path`.

        The first start decides what the server imports.
        """
        if self.server is not None:
            modules = ["numpy", target.__module__, preload, "cloudpickle", "threadpoolctl"]
            self.server.set_forkserver_preload(modules)
        with safe_path() as safe:
            process: Any = self.context.Process(target=target, args=(*args, safe), daemon=True)
            # Its start() is not called: it refuses in a daemonic process, and it adds the process to a list.
            # If the user's program forks a child, that child would end all processes on the list at its exit.
            process._popen = self._popen(process)
        process._sentinel = process._popen.sentinel
        return process


def _with(module: types.ModuleType, **changed: Any) -> types.SimpleNamespace:
    """Return the contents of a module, with some names replaced."""
    return types.SimpleNamespace(**(vars(module) | changed))


_turn = threading.Lock()  # the environment is one per process
if hasattr(os, "register_at_fork"):  # a forked child needs a lock of its own
    os.register_at_fork(after_in_child=lambda: globals().update(_turn=threading.Lock()))


@contextlib.contextmanager
def safe_path() -> Iterator[bool]:
    """Keep the fork server from importing modules from the working folder.

    It is started as ``python -c``, which looks there first, even if this program does not. Workers get this
    program's own ``sys.path``. The context's value is whether the variable was set before.
    """
    with _turn:
        before = os.environ.get(SAFE_PATH)
        os.environ[SAFE_PATH] = "1"
        try:
            yield before is not None
        finally:
            if before is None:
                del os.environ[SAFE_PATH]
            else:
                os.environ[SAFE_PATH] = before


def _preparation(name: str) -> dict[str, Any]:
    """Return what a worker begins with: the parent's folders, but not its script."""
    from multiprocess import process

    facts = {"name": name, "authkey": process.current_process().authkey}
    facts |= {"sys_path": list(sys.path), "sys_argv": list(sys.argv)}
    with contextlib.suppress(OSError):  # the folder may have been deleted
        facts["dir"] = os.getcwd()  # noqa: PTH109 - a string
    return facts


def settle(safe: bool) -> None:
    """Let this process ignore the terminal's signals, and its libraries use one thread each."""
    if not safe:  # for the fork server only: programs that a function starts must not inherit it
        os.environ.pop(SAFE_PATH, None)
    # The parent decides when to end. Not SIG_IGN, which programs that a function starts would inherit.
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: None)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for name in THREADS:  # for libraries that are loaded later
        os.environ[name] = "1"


def work(pipe: Any, slot: Any, safe: bool) -> None:
    """Evaluate what comes through a pipe, for as long as the parent lives."""
    settle(safe)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # so that what the function starts can be ended with it
    _end_with_parent()
    me = os.getpid()

    def heartbeat(index: int) -> None:
        if os.getpid() != me:  # a child that the function forked, and that returned from it
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
        # Not pickled: a function may have changed how that works.
        answer = marshal.dumps((list(vars(reply).values()), _resident()))
        slot[0] = IDLE
        pipe.send_bytes(answer)


def _reply(jobs: list[Unpacked], message: bytes, heartbeat: Any) -> Reply:
    """Evaluate the span of a message, and return the answer."""
    package, span, learned = pickle.loads(message)  # noqa: S301 - from the parent

    def evaluate() -> list[SpanResult]:
        if package is not None:
            jobs[:] = [unpack(package)]
        return [jobs[0].evaluate(span, learned, heartbeat)]

    return Reply.to(evaluate)


def _end_with_parent() -> None:
    """Make this process end when its parent ends, in whatever way."""
    from multiprocess import connection, process

    if sys.platform == "linux":  # in C code too: the fork server ends with the parent
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    parent = process.parent_process()

    def end_after_parent() -> None:
        connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=end_after_parent, daemon=True, name="privatize: end with the parent").start()


def _resident() -> int:
    """Return how many bytes this process has in memory, or 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - read after every task
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return 0
