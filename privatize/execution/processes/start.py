"""Start processes without running the user's ``__main__`` in them.

Workers come from a fork server of our own, which has no threads and never runs the user's script.
"""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from privatize.execution.processes.worker import SAFE_PATH


class StartMethod:
    """Makes processes: with a fork server of our own, or on Windows from nothing."""

    def __init__(self) -> None:
        import multiprocess

        forks = sys.platform != "win32"
        self.context: Any = multiprocess.get_context("forkserver" if forks else "spawn")
        self.server: Any = None
        self._kind = self._forking() if forks else self._spawning()

    def process(self, target: Any, args: tuple[Any, ...], preload: str) -> Any:
        """Return a process that has yet to be started; the first one decides what the server imports."""
        if self.server is not None:
            modules = ["numpy", target.__module__, preload, "cloudpickle", "threadpoolctl"]
            self.server.set_forkserver_preload(modules)
        return self._kind(target=target, args=args, daemon=True)

    def _forking(self) -> Any:
        """Return a kind of process that a fork server of our own makes."""
        from multiprocess import context, forkserver, popen_forkserver, util
        from multiprocess.context import reduction, set_spawning_popen

        server = self.server = forkserver.ForkServer()

        class Popen(popen_forkserver.Popen):  # type: ignore[misc]
            def _launch(self, process: Any) -> None:
                buffer = io.BytesIO()
                set_spawning_popen(self)
                try:
                    reduction.dump(_preparation(process), buffer)
                    reduction.dump(process, buffer)
                finally:
                    set_spawning_popen(None)
                with safe_path():
                    self.sentinel, data = server.connect_to_new_process(self._fds)
                # The other end is the parent's sentinel in the child.
                self.parent_end = os.dup(data)
                self.finalizer = util.Finalize(self, util.close_fds, (self.parent_end, self.sentinel))
                with open(data, "wb") as file:  # noqa: PTH123 - a descriptor
                    file.write(buffer.getbuffer())
                self.pid = forkserver.read_signed(self.sentinel)

        class Process(context.ForkServerProcess):  # type: ignore[misc]
            _Popen = staticmethod(Popen)

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
def safe_path() -> Iterator[None]:
    """Have the fork server import nothing from the working folder, which this program may not look into.

    It is started as ``python -c``, which looks there first. Workers get this program's own folders.
    """
    before = {SAFE_PATH: os.environ[SAFE_PATH]} if SAFE_PATH in os.environ else {}
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        del os.environ[SAFE_PATH]
        os.environ.update(before)


def _preparation(process: Any) -> dict[str, Any]:
    """Return what a worker begins with: the parent's folders, but not its script."""
    facts = {
        "name": process._name,
        "authkey": process.authkey,
        "sys_path": list(sys.path),
        "sys_argv": list(sys.argv),
    }
    with contextlib.suppress(OSError):  # the folder may have been deleted
        facts["dir"] = os.getcwd()  # noqa: PTH109 - a string
    return facts
