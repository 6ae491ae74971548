"""Pickle private functions: by name if they can be found by it, otherwise by value."""

import sys
from typing import Any, Self

from privatize.execution.packaging.pickler import by_value
from privatize.function.settings import Settings


class Pickled:
    """A base of private functions, which are pickled and copied as functions are."""

    __name__: str
    _original: Any
    _settings: Settings
    _root: Any
    _target: Any

    def _attributes(self) -> dict[str, Any]:
        raise NotImplementedError

    def __deepcopy__(self, memo: Any = None) -> Self:
        return self  # when the function calls itself, it calls this object

    __copy__ = __deepcopy__

    def __reduce__(self) -> str | tuple[Any, ...]:
        if self._target is not None:
            return getattr, (self._target, self.__name__)
        module, name = self.__module__, getattr(self, "__qualname__", "")
        found: Any = sys.modules.get(module)
        for part in name.split("."):
            found = getattr(found, part, None)
        # cloudpickle sends functions of __main__ by value, because workers have another __main__.
        pickler = sys._getframe(1).f_globals.get("__name__", "")
        sent = module == "__main__" and pickler.startswith("cloudpickle")
        if found is self and not sent and not by_value(module):
            return str(name)
        root = None if self._root is self else self._root
        state = {"function": self._original, "settings": self._settings, "root": root}
        return object.__new__, (type(self),), {"made of": state, "attributes": self._attributes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A function that calls itself is still being unpickled at this moment, and has no defaults yet.
        type(self).__init__(self, **state["made of"], unfinished=True)  # type: ignore[call-arg]
        vars(self).update(state["attributes"])
