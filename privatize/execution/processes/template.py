"""Evaluate blocks of private data in short-lived processes on this machine, as their supervisor sees it."""

import contextlib
import os
import select
import socket
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from privatize.errors import ExecutionError
from privatize.execution.packaging.package import Package
from privatize.execution.processes.forking import DONE, READY, THREADED, Limits, serve
from privatize.execution.processes.pool import _uninterrupted, pool
from privatize.execution.processes.worker import StartMethod

Block = tuple[int, bytes]  # the number of a block, with its content or its answer
Again = Callable[[int], bytes]


class _LostError(Exception):
    """The template has ended while blocks were running."""


@dataclass(eq=False)
class _Block:
    """A block that is being evaluated, and what its process has written."""

    number: int
    link: socket.socket
    answer: bytearray = field(default_factory=bytearray)
    open: bool = True

    def read(self, most: int) -> None:
        """Read what has come. What is longer than an answer is no answer, and nobody reads on."""
        found = b""
        with contextlib.suppress(OSError):  # nobody can write any more
            found = self.link.recv(2**16)
        self.answer += found
        if not found or len(self.answer) > most:
            self.open = False
            self.link.close()


class Template:
    """A process that has loaded a function, and forks one child for each block."""

    def __init__(self) -> None:
        self.process: Any = None
        self.pipe: Any = None
        self.control: Any = None
        self.running: dict[int, _Block] = {}  # by the order in which they were sent
        self._sent = 0

    def start(self, package: Package, limits: Limits, late: bool) -> bool:
        """Start the process; tell whether it can fork."""
        try:
            with _uninterrupted():
                self._launch(pool().method, package, limits, late)
            self.pipe.send((package.name, package.payload, package.module, package.local))
            said: bytes = self.pipe.recv_bytes()
        except (OSError, EOFError):
            raise ExecutionError("""The process that loads the function could not be started, or it ended
                before it was ready. Does importing what the function needs end the process?""") from None
        if said[:1] not in (READY, THREADED):
            raise ExecutionError(f"""The function cannot be evaluated in other processes, as each block must
                be: {said[1:].decode()}. Keep that out of its arguments, closure and globals.""")
        return said[:1] == READY

    def _launch(self, method: StartMethod, package: Package, limits: Limits, late: bool) -> None:
        _open.append(self)
        self.pipe, end = method.context.Pipe()
        with end:
            self.process = method.start_now(serve, (end, limits, late), package)
        self.control = socket.socket(fileno=os.dup(self.pipe.fileno()))

    def run(self, blocks: Iterator[Block], size: int, lanes: int) -> Iterator[Block]:
        """Evaluate blocks, and yield the number of each with its answer, or with nothing if it failed."""
        while True:
            while len(self.running) < lanes and (block := next(blocks, None)) is not None:
                self._send(*block)
            if not self.running:
                return
            links = {block.link.fileno(): block for block in self.running.values() if block.open}
            poll = select.poll()
            for end in (self.pipe.fileno(), *links):
                poll.register(end, select.POLLIN)
            for ready, _ in poll.poll():
                if ready in links:
                    links[ready].read(size)
                else:
                    yield self._finish(size)

    def _send(self, number: int, content: bytes) -> None:
        link, other = socket.socketpair()
        self.running[self._sent] = _Block(number, link)
        self._sent += 1
        with other:
            try:
                socket.send_fds(self.control, [b"b"], [other.fileno()])
            except OSError:
                raise _LostError from None
        with contextlib.suppress(OSError):  # then the process has ended, which the template reports
            link.sendall(content)
            link.shutdown(socket.SHUT_WR)
        link.setblocking(False)

    def _finish(self, size: int) -> tuple[int, bytes]:
        """Return the answer of a block whose process has ended, with all that it had started."""
        try:
            block = self.running.pop(int.from_bytes(self.pipe.recv_bytes(), "little"))
        except (OSError, EOFError):
            raise _LostError from None
        while block.open:
            block.read(size)
        entire = len(block.answer) == size and block.answer[:1] == DONE
        return block.number, bytes(block.answer[1:]) if entire else b""

    def close(self) -> None:
        """End the process, and all that it has started."""
        with _uninterrupted():
            if self.control is not None:
                with contextlib.suppress(OSError):
                    self.control.shutdown(socket.SHUT_RDWR)  # then it ends its children, and itself
            if self.process is not None:
                self.process.join(30)
                self.process.kill()
                self.process.join()
                self.process.close()
            self._drop()
            self.process = self.pipe = self.control = None
            if self in _open:
                _open.remove(self)

    def _drop(self) -> None:
        """Close this process's ends of everything."""
        for end in [self.pipe, self.control, *(block.link for block in self.running.values())]:
            if end is not None:
                end.close()


_open: list[Template] = []


def _leave() -> None:
    """Close, in a forked child, what would keep the parent's templates alive after the parent."""
    for template in _open:
        template._drop()
    _open.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave)


def evaluate(
    package: Package, blocks: Iterable[Block], again: Again, size: int, limits: Limits, lanes: int
) -> Generator[Block, None, None]:
    """Evaluate blocks, each in a process of its own, and yield the number of each with its answer.

    Parameters
    ----------
    package : Package
        A `BlockJob`.
    blocks : iterable
        The numbers of the blocks, with their contents.
    again : callable
        Returns the content of a block, given its number.
    size : int
        How many bytes an answer has, with its first byte. Everything else has failed: it is yielded as b"".
    limits : Limits
        What each process may use.
    lanes : int
        How many blocks are evaluated at a time.
    """
    waiting, suspects = iter(blocks), [-1]
    while suspects:
        suspects = yield from _attempt(package, waiting, size, limits, lanes)
        # One of the blocks that were running may have ended the template. Each of them runs alone, so that
        # none fails because of another. One that ends its template again has failed.
        for number in suspects:
            if (yield from _attempt(package, iter([(number, again(number))]), size, limits, 1)):
                yield number, b""


def _attempt(
    package: Package, blocks: Iterator[Block], size: int, limits: Limits, lanes: int
) -> Generator[Block, None, list[int]]:
    """Evaluate blocks with one template; return those that were running if the template is lost."""
    template = Template()
    try:
        if not template.start(package, limits, late=False):
            template.close()
            template.start(package, limits, late=True)
        yield from template.run(blocks, size, lanes)
    except _LostError:
        pass
    finally:
        template.close()
    return [block.number for block in template.running.values()]
