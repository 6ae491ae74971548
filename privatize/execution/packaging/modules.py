"""The user's own modules in another process: only what was sent of them can be used there."""

import contextlib
import sys
import types
from collections.abc import Iterator
from typing import Any

from privatize.execution.job import Refused
from privatize.identity.origin import own_modules

_refusals: list[str] = []


def refuse(text: str) -> None:
    """Raise `Refused`, and note it, because the function may catch it: see `refusing`."""
    _refusals.append(text)
    raise Refused(text)


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Raise `Refused` at the end if anything was refused meanwhile, even if the function caught that."""
    _refusals.clear()  # those of an earlier job have been raised
    yield
    if _refusals:
        raise Refused(_refusals[0])


class SentModule(types.ModuleType):
    """A module of the user, with only those attributes that the code reads by name."""

    _not_sent: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name in self._not_sent:
            # Not an AttributeError, which hasattr() and getattr() with a default would swallow.
            refuse(f"{self.__name__}.{name} is read by a name that is built at run time, so it was not sent")
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        # The module's functions have globals of their own, where the change would be missing.
        refuse(f"the function sets {self.__name__}.{name}")

    def __delattr__(self, name: str) -> None:
        refuse(f"the function deletes {self.__name__}.{name}")


def sent_module(name: str) -> SentModule:
    """Return an empty module, for `fill`."""
    # Each has its own class, for the names that were not sent: they must not be attributes of the module.
    kind: Any = type("SentModule", (SentModule,), {"__module__": __name__})
    made: SentModule = kind(name)
    return made


def fill(module: SentModule, state: tuple[dict[str, Any], frozenset[str]]) -> None:
    """Give a module the attributes that were sent, and the names of those that were not."""
    vars(module).update(state[0])
    type.__setattr__(type(module), "_not_sent", state[1])


class ImportGuard:
    """Lets functions in this process import only those modules of the user that were sent."""

    def __init__(self) -> None:
        self.sent: set[str] = set()
        self.refused: frozenset[str] = frozenset()

    def clear(self) -> None:
        """Remove the modules of the last job."""
        for name, module in own_modules().items():
            file: Any = True  # a lazy module may raise anything here: it is removed
            with contextlib.suppress(Exception):
                file = getattr(module, "__file__", None)
            if name in self.sent or file:
                del sys.modules[name]
        self.sent, self.refused = set(), frozenset()
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)

    def fill(self, named: dict[str, types.ModuleType]) -> None:
        """Make the modules that were sent with this job importable."""
        sent = {name: module for name, module in named.items() if name != "__main__"}
        sys.modules.update(sent)
        self.sent = set(sent)

    def refuse_others(self, own: list[str]) -> None:
        """Refuse imports of those modules of the sender that were not sent."""
        self.refused = frozenset(own) - self.sent

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Refuse a module that the sender has and did not send: one that is found here may differ."""
        del path, target
        if name in self.refused:
            refuse(f"the module {name} is imported in a way that could not be foreseen, so it was not sent")


guard: Any = ImportGuard()
