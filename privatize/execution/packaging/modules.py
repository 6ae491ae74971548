"""The user's own modules in another process: what was sent of them, and nothing else."""

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from privatize.execution.job import Refused
from privatize.identity.origin import own_modules

_refusals: list[str] = []


def refuse(text: str) -> None:
    """Refuse, also if the function swallows the exception: see `refusing`."""
    _refusals.append(text)
    raise Refused(text)


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raise at the end what was refused meanwhile, whatever the function made of it."""
    _refusals.clear()  # those of an earlier job have been raised
    yield
    if _refusals:
        raise Refused(_refusals[0])


class SentModule(types.ModuleType):
    """A module of the user's, as far as it is used: the attributes that code plainly reads."""

    _left: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name in self._left:
            # Not an AttributeError, which hasattr() and getattr() with a default would swallow.
            refuse(
                f"{self.__name__}.{name} is read by a name that is made up at run time, so it was not sent"
            )
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # The module's own functions have globals of their own, and would not see it.
        refuse(f"the function sets {self.__name__}.{name}")

    def __delattr__(self, name: str) -> None:
        refuse(f"the function deletes {self.__name__}.{name}")


def sent_module(name: str) -> SentModule:
    """Return a module that `fill` has yet to fill."""
    # A class of its own, so that what was left out is not among the module's attributes.
    kind: Any = type("SentModule", (SentModule,), {"__module__": __name__})
    made: SentModule = kind(name)
    return made


def fill(module: SentModule, state: tuple[dict[str, Any], frozenset[str]]) -> None:
    """Give a module the attributes that were sent, and the names of those that were not."""
    vars(module).update(state[0])
    type.__setattr__(type(module), "_left", state[1])


class ImportGuard:
    """Looks after what functions import in this process: what was sent, and nothing else of the user's."""

    def __init__(self) -> None:
        self.brought: set[str] = set()
        self.refused: frozenset[str] = frozenset()

    def clear(self) -> None:
        """Take away what the last job brought."""
        for name, module in own_modules().items():
            file: Any = True  # a lazy module may raise anything when it is asked: it goes
            with contextlib.suppress(Exception):
                file = getattr(module, "__file__", None)
            if name in self.brought or file:
                del sys.modules[name]
        self.brought, self.refused = set(), frozenset()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def fill(self, named: dict[str, types.ModuleType]) -> None:
        """Put there what this job brings."""
        brought = {name: module for name, module in named.items() if name != "__main__"}
        sys.modules.update(brought)
        self.brought = set(brought)

    def watch(self, mine: list[str]) -> None:
        """Know what the sender has besides."""
        self.refused = frozenset(mine) - self.brought

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse what the sender has in a form that may not be the one that is found here."""
        del path, target
        if name in self.refused:
            refuse(f"the module {name} is imported in a way that could not be foreseen")


guard: Any = ImportGuard()
