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
from collections.abc import Iterator, Mapping
from typing import Any

from privatize.execution.job import Learned, Reply, Span, SpanResult
from privatize.execution.packaging.package import Package, Unpacked, unpack
from privatize.execution.processes import libraries
from privatize.execution.processes.libraries import THREADS

Message = Package | tuple[Span, Learned]  # to a worker: a job to load, or a part of it to evaluate
IDLE = -1.0
SAFE_PATH = "PYTHONSAFEPATH"


class StartMethod:
    """Starts processes: from a fork server of our own, or on Windows by spawning."""

    def __init__(self) -> None:
        import multiprocess
        from multiprocess import spawn

        named = {"spawn": _with(spawn, get_preparation_data=_preparation)}
        self.server: Any = None
        self._libraries: set[str] | None = set()  # of the server; None if it cannot load any
        self._started: list[Any] = []  # processes of the server
        self._turn = threading.Lock()
        if sys.platform == "win32":  # pragma: no cover
            from multiprocess import popen_spawn_win32 as library

            self.context, launch = multiprocess.get_context("spawn"), "__init__"
        else:
            from multiprocess import forkserver
            from multiprocess import popen_forkserver as library

            self.context, launch = multiprocess.get_context("forkserver"), "_launch"
            self.server = forkserver.ForkServer()

            def connect(fds: list[int]) -> tuple[int, int]:
                found: tuple[int, int] = self.server.connect_to_new_process(fds)
                return found

            # The number of a process comes when the server has loaded all that it should: see `begun`.
            changed = {"connect_to_new_process": connect, "read_signed": lambda _: None}
            named["forkserver"] = _with(forkserver, **changed)
        # A copy of the library's function, whose globals have our preparation and our server.
        theirs = getattr(library.Popen, launch)
        ours = types.FunctionType(theirs.__code__, theirs.__globals__ | named)
        self._popen: Any = type("Popen", (library.Popen,), {launch: ours})

    def start(self, target: Any, args: tuple[Any, ...], package: Package) -> Any:
        """Start a process, which has begun when `begun` says so; its last argument is that of `settle`.

        The server has loaded the libraries of its first job. It is replaced when a job needs others, unless
        some of its processes are alive.
        """
        with self._turn:
            if self.server is not None:
                self._choose_libraries(set(package.libraries))
                self.server.set_forkserver_preload([f"{__package__}.preload"])
            modules = ["numpy", target.__module__, package.module, "cloudpickle", "threadpoolctl"]
            with safe_path(libraries.variables(modules, self._libraries or set())) as safe:
                process: Any = self.context.Process(target=target, args=(*args, safe), daemon=True)
                # Its start() is not called: it refuses in a daemonic process, and it adds the process to a
                # list. If the user's program forks a child, that would end all on the list at its exit.
                process._popen = self._popen(process)
            process._sentinel = process._popen.sentinel
            self._started.append(process)
        return process

    def _choose_libraries(self, wanted: set[str]) -> None:
        """Have the server load libraries when it starts; end one that lacks some, if nobody needs it."""
        self._started = [each for each in self._started if not each._closed]
        if self._started or self._libraries is None or wanted <= self._libraries:
            return
        self._libraries |= wanted
        if self.server._forkserver_pid is not None:
            with contextlib.suppress(OSError):  # it has ended already
                os.kill(self.server._forkserver_pid, signal.SIGKILL)
                self.server._stop()
            self.server = type(self.server)()

    def begun(self, process: Any, wait: bool = True) -> bool:
        """Tell whether a process has begun, and wait for that; raise OSError or EOFError if it cannot."""
        popen = process._popen
        if popen.pid is None:
            from multiprocess import connection, forkserver

            if not wait and not connection.wait([popen.sentinel], 0):
                return False
            popen.pid = forkserver.read_signed(popen.sentinel)
        return True

    def start_now(self, target: Any, args: tuple[Any, ...], package: Package) -> Any:
        """Start a process, and return it when it has begun."""
        while True:
            process = self.start(target, args, package)
            try:
                self.begun(process)
            except (OSError, EOFError):
                self.abandon(process)
                if not self.without_libraries():
                    raise
            else:
                return process

    def abandon(self, process: Any) -> None:
        """Give up a process that has not begun: it ends as soon as it begins, because nobody waits for it."""
        self._started.remove(process)
        process._popen.close()

    def without_libraries(self) -> bool:
        """Have the server load no libraries any more; tell whether it did before."""
        before, self._libraries = self._libraries, None
        self.server = self.server and type(self.server)()
        return bool(before)


def _with(module: types.ModuleType, **changed: Any) -> types.SimpleNamespace:
    """Return the contents of a module, with some names replaced."""
    return types.SimpleNamespace(**(vars(module) | changed))


_turn = threading.Lock()  # the environment is one per process
if hasattr(os, "register_at_fork"):  # a forked child needs a lock of its own
    os.register_at_fork(after_in_child=lambda: globals().update(_turn=threading.Lock()))


@contextlib.contextmanager
def safe_path(wanted: Mapping[str, str] | None = None) -> Iterator[bool]:
    """Keep the fork server from importing modules from the working folder, and set more variables for it.

    It is started as ``python -c``, which looks there first, even if this program does not. Workers get this
    program's own ``sys.path``. The context's value is whether the variable was set before.
    """
    given = {SAFE_PATH: "1", **(wanted or {})}
    with _turn:
        before = {name: os.environ.get(name) for name in given}
        os.environ.update(given)
        try:
            yield before[SAFE_PATH] is not None
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


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
    """Load the job of a message, or evaluate its span, and return the answer."""
    sent: Message = pickle.loads(message)  # noqa: S301 - from the parent

    def evaluate() -> list[SpanResult]:
        if isinstance(sent, Package):
            jobs[:] = [unpack(sent)]
            return []
        return [jobs[0].evaluate(*sent, heartbeat)]

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
