"""The template process: it loads a function once, and forks a clean child for each block of private data.

It gets the function through a pipe, and then the ends of sockets, which it hands on to its children. A child
reads its block from the socket and writes its answer there. So the template itself never holds private data,
and a child holds one block. Whatever a child has started ends with it.
"""

import contextlib
import ctypes
import gc
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any, Protocol

from privatize.execution.job import Refused
from privatize.execution.packaging.modules import refusing
from privatize.execution.packaging.package import Package, Unpacked, unpack
from privatize.execution.processes.libraries import has_threads
from privatize.execution.processes.worker import settle

if sys.platform != "win32":
    import resource
READY, THREADED, REFUSED = b"r", b"t", b"x"  # what the template says first
DONE = b"\x01"  # the first byte of an answer
_LINK = 3  # a child's only descriptor, besides those of the null device
# What changes the file system without writing: the limit on the size of files does not prevent these.
_CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.chmod", "os.chown", "os.link", "os.mkdir", "os.remove", "os.removexattr", "os.rename"}
_CHANGES |= {"os.rmdir", "os.setxattr", "os.symlink", "os.truncate", "os.utime", "sqlite3.connect"}
# The options of Linux's prctl: a signal when the parent ends, core dumps, and who inherits orphans.
_PARENT_ENDED, _DUMPABLE, _SUBREAPER = 1, 4, 36

_entered = contextlib.ExitStack()
_prctl: Any = getattr(ctypes.CDLL(None), "prctl", None) if sys.platform == "linux" else None


class BlockJob(Protocol):
    """A function of a block of private data, as another process evaluates it."""

    def prepare(self) -> None:
        """Load what evaluations need, without any private data."""

    def answer(self, block: bytes) -> bytes:
        """Evaluate the function on a block, and return its numbers as bytes, or raise anything."""


@dataclass(frozen=True)
class Limits:
    """What each child may use; these must not depend on private data.

    Attributes
    ----------
    seconds : int
        CPU time, not time on the clock: a block that is slow because others are must not fail.
    memory : int
        Bytes of memory beyond what the template has.
    """

    seconds: int
    memory: int


def serve(pipe: Any, limits: Limits, late: bool, safe: bool) -> None:
    """Load the job that comes through a pipe, then fork a child for each socket, as long as the parent lives.

    With `late` the children load the job: if that starts threads, a process that has them must not fork.
    """
    _settle(safe)
    package = Package(*pipe.recv())
    loaded: Unpacked | None = None
    if not late:
        try:
            loaded = _load(package)
        except BaseException as error:  # loading runs anybody's code
            pipe.send_bytes(REFUSED + (str(error) if isinstance(error, Refused) else repr(error)).encode())
            os._exit(1)
        if has_threads():
            pipe.send_bytes(THREADED)
            os._exit(0)
    gc.collect()
    gc.freeze()  # so that collections in children do not copy what they share with this process
    pipe.send_bytes(READY)
    try:
        _fork_all(pipe, lambda: loaded or _load(package), limits)
    finally:
        _kill_orphans({})
        os._exit(0)


def _settle(safe: bool) -> None:
    """Detach this process from the terminal, from signals and from output, and let it inherit orphans."""
    os.setsid()
    settle(safe)
    null = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    os.close(null)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - the library's own would be closed in children
    _control(_SUBREAPER, 1)


def _control(option: int, value: int) -> None:
    """Set an option of this process, on Linux."""
    if _prctl is not None:
        _prctl(option, value, 0, 0, 0)


def _load(package: Package) -> Unpacked:
    loaded = unpack(package)
    # Polars makes its threads when they are first needed. More than one would add in an order that changes.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    sys.dont_write_bytecode = True
    _entered.enter_context(loaded.surroundings.entered())  # for good: blocks need nothing else
    with refusing():
        loaded.job.prepare()
    return loaded


def _fork_all(pipe: Any, load: Any, limits: Limits) -> None:
    """Fork a child for each socket that comes, and send the number of each that has ended."""
    control = socket.socket(fileno=os.dup(pipe.fileno()))
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}  # the number of its block, by the process's id
    count = 0
    while True:
        ends: list[Any] = [control, wake]
        ready = select.select(ends, [], [])[0]
        if wake in ready:
            os.read(wake, 4096)
            for number in _reap(running):
                pipe.send_bytes(number.to_bytes(8, "little"))
        if control in ready:
            links = socket.recv_fds(control, 1, 1)[1]
            if not links:  # the parent has ended, or needs no more
                return
            pid = os.fork()
            if pid == 0:
                _run_child(links[0], load, limits)
            os.close(links[0])
            running[pid] = count
            count += 1


def _reap(running: dict[int, int]) -> list[int]:
    """Return the numbers of the blocks that have ended, when all that they have started has ended too."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while (pid := os.waitpid(-1, os.WNOHANG)[0]) != 0:
            if pid in running:
                ended[pid] = running.pop(pid)
    for pid in ended:
        with contextlib.suppress(OSError):
            os.killpg(pid, signal.SIGKILL)
    if ended:
        _kill_orphans(running)
    return list(ended.values())


def _kill_orphans(running: dict[int, int]) -> None:
    """End all children but the blocks that are running: as their parents have ended, they became ours."""
    while orphans := _children() - running.keys():
        for pid in orphans:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for pid in orphans:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _content(path: str | int) -> bytes:
    """Return what is in a file. Not by pathlib: each child would copy the memory that this takes."""
    with open(path, "rb", buffering=0, closefd=isinstance(path, str)) as file:
        return file.read()


def _children() -> set[int]:
    me = os.getpid()
    try:
        return set(map(int, _content(f"/proc/self/task/{me}/children").split()))
    except OSError:  # pragma: no cover - not Linux: what has left its process group is not found
        return set()


# --- in a child ---------------------------------------------------------------------------------


def _run_child(end: int, load: Any, limits: Limits) -> None:
    """Evaluate one block, and end this process. Nothing is ever raised, or printed."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)  # so that what the function starts can be ended with it
        _control(_PARENT_ENDED, signal.SIGKILL)
        _control(_SUBREAPER, 1)  # orphans become the template's when this process ends, not before
        if end != _LINK:
            os.dup2(end, _LINK, inheritable=False)
        with contextlib.suppress(OSError):  # without memory the system ends this process, and no other
            os.write(os.open("/proc/self/oom_score_adj", os.O_WRONLY), b"1000")
        _close_others()
        loaded, me = load(), os.getpid()
        _limit(limits)
        sys.addaudithook(_refuse_changes)
        block = _content(_LINK)
        with refusing():
            answer = DONE + loaded.job.answer(block)
        if os.getpid() == me:  # not in a child that the function has forked, and that returned from it
            left = memoryview(answer)
            while left:
                left = left[os.write(_LINK, left) :]
    finally:
        os._exit(0)


def _close_others() -> None:
    """Close all descriptors of the template: what is open there would connect the blocks."""
    try:
        found = [int(name) for name in os.listdir("/dev/fd")]  # noqa: PTH208 - names only
    except OSError:  # pragma: no cover
        found = list(range(4096))
    for descriptor in found:
        if descriptor > _LINK:
            with contextlib.suppress(OSError):  # the one that listed them
                os.close(descriptor)


def _refuse_changes(event: str, args: tuple[Any, ...]) -> None:
    """Refuse to change any file: an emptied, renamed or removed one would be seen by other blocks."""
    if event == "open":
        path, _, flags = args
        allowed = not flags & _CHANGING or path == os.devnull or isinstance(path, int)
    else:
        allowed = event not in _CHANGES
    if not allowed:
        raise PermissionError("a block must not change files")


def _limit(limits: Limits) -> None:
    """Limit what this process can use, and what it can leave behind."""
    wanted = {resource.RLIMIT_CORE: 0, resource.RLIMIT_FSIZE: 0}
    wanted[resource.RLIMIT_CPU] = limits.seconds + int(time.process_time())
    with contextlib.suppress(OSError):  # elsewhere the system does not report what is used, or has no limit
        used = int(_content("/proc/self/statm").split()[5]) * resource.getpagesize()
        wanted |= {resource.RLIMIT_DATA: used + limits.memory, resource.RLIMIT_MSGQUEUE: 0}
    for kind, most in wanted.items():
        hard = resource.getrlimit(kind)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (most, most))
    _control(_DUMPABLE, 0)  # some systems hand core dumps to a program whatever their limit is
