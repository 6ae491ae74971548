"""Start processes without running the user's ``__main__`` in them.

Workers come from a fork server of our own, which has no threads and never runs the user's script.
"""

import contextlib
import os
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

from privatize.execution.processes.worker import SAFE_PATH


class StartMethod:
    """Starts processes: with a fork server of our own, or on Windows from nothing."""

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
        # The library's own function, which finds our preparation and our server where it names its own.
        theirs = getattr(library.Popen, launch)
        ours = types.FunctionType(theirs.__code__, theirs.__globals__ | named)
        self._popen: Any = type("Popen", (library.Popen,), {launch: ours})

    def start(self, target: Any, args: tuple[Any, ...], preload: str) -> Any:
        """Start a process; its last argument is what `safe_path` says.

        The first one decides what the server imports.
        """
        if self.server is not None:
            modules = ["numpy", target.__module__, preload, "cloudpickle", "threadpoolctl"]
            self.server.set_forkserver_preload(modules)
        with safe_path() as safe:
            process: Any = self.context.Process(target=target, args=(*args, safe), daemon=True)
            # Not by its start(), which refuses to start any in a daemonic process, and adds it to a list of
            # processes that a child which the user's program forks would end at its exit.
            process._popen = self._popen(process)
        process._sentinel = process._popen.sentinel
        return process


def _with(module: types.ModuleType, **changed: Any) -> types.SimpleNamespace:
    """Return the contents of a module, some of them changed."""
    return types.SimpleNamespace(**(vars(module) | changed))


_turn = threading.Lock()  # the environment is one per process
if hasattr(os, "register_at_fork"):  # a forked child needs a lock of its own
    os.register_at_fork(after_in_child=lambda: globals().update(_turn=threading.Lock()))


@contextlib.contextmanager
def safe_path() -> Iterator[bool]:
    """Have the fork server import nothing from the working folder, which this program may not look into.

    It is started as ``python -c``, which looks there first. Workers get this program's own folders. The
    context's value is whether this program has it so itself.
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

    facts = {
        "name": name,
        "authkey": process.current_process().authkey,
        "sys_path": list(sys.path),
        "sys_argv": list(sys.argv),
    }
    with contextlib.suppress(OSError):  # the folder may have been deleted
        facts["dir"] = os.getcwd()  # noqa: PTH109 - a string
    return facts
