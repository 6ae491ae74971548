"""Load, once for all workers, our own modules and the libraries that a job names: `preload` does so.

Importing scikit-learn takes a second or more, and two workers that import it at the same time take longer.
What to import is in an environment variable, because the server gets nothing else from this program. If a
library starts threads, or ends the server, the server is started again without any: see `StartMethod`.
"""

import contextlib
import gc
import importlib
import json
import os
import secrets
import sys
import threading
from collections.abc import Set
from pathlib import Path

from privatize.identity.library import sources
from privatize.identity.origin import is_installed

VARIABLE = "PRIVATIZE_LIBRARIES"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")
"""Environment variables that limit the threads of libraries when they are loaded."""
_MOST = 1000  # modules: a variable has at most 128 KB, and others are loaded by workers themselves
_HASHES = "PYTHONHASHSEED"
_SEED = str(secrets.randbelow(2**32 - 1) + 1)  # of this program's servers, unless the user has set one
_SAFE_THREADS = {"jemalloc_bg_thd"}  # of an allocator, which prepares for forks


def variables(own: list[str], names: Set[str]) -> dict[str, str]:
    """Return what the server starts with: this process's folders, our modules, what it has of libraries.

    All servers of a program hash strings alike: what was tried in one may be evaluated in the next one, where
    a set of strings must have the same order. (Under ``python -E`` and ``-I`` they do not.)
    """
    files = {name: getattr(sys.modules[name], "__file__", None) for name in _loaded(names)}
    modules = [name for name, file in files.items() if isinstance(file, str) and is_installed(file)]
    outer_first = sorted(modules, key=lambda name: (name.count("."), name))
    hashes = {_HASHES: _SEED} if (os.environ.get(_HASHES) or "random") == "random" else {}
    return {VARIABLE: json.dumps([sys.path, own, outer_first[:_MOST], list(hashes)])} | hashes


def _loaded(names: Set[str]) -> list[str]:
    return [name for name in list(sys.modules) if name.partition(".")[0] in names]


def load(value: str) -> None:
    """Import what `variables` has named, from the same folders; end this process if that starts threads."""
    gc.disable()  # modules stay, so collections would take a sixth of the time and find next to nothing
    path, first, modules, ours = json.loads(value)
    for name in ours:  # not for functions, and what they start
        os.environ.pop(name, None)
    for name in first:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    sources()  # workers compare it
    own, sys.path[:] = list(sys.path), path
    os.environ.update(dict.fromkeys(THREADS, "1"))
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError:  # workers do without it, or report the error
            pass
        except BaseException:  # what was loaded by halves must not be in workers
            os._exit(1)
    sys.path[:] = own
    if has_threads():  # a process that has them must not fork
        os._exit(1)
    gc.freeze()  # so that collections in workers do not copy what they share with this process
    gc.enable()


def has_threads() -> bool:
    """Tell whether this process has threads, besides those that libraries have made safe to fork."""
    pid = os.fork()  # BLAS ends its threads before a fork
    if pid == 0:
        os._exit(0)
    with contextlib.suppress(ChildProcessError):  # this program ignores its children
        os.waitpid(pid, 0)
    if threading.active_count() > 1:
        return True
    names = [path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")]
    return len([name for name in names if name not in _SAFE_THREADS]) > 1
