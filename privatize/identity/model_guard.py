"""Check quickly that our own functions train the same estimator as when their fingerprint was taken.

Such a function is known by its name and by a digest of this library; the estimator's class by its name and by
the version of scikit-learn. So the fingerprint depends on these names, on parameters, which cannot change in
place, on what `pickle` stores of the estimator, and on settings of scikit-learn, pandas and numpy.
"""

import abc
import copyreg
import operator
import sys
from typing import Any

import numpy as np

from privatize.identity.change_guard import ChangeGuard
from privatize.identity.encoder import Read
from privatize.identity.graph import ATOMS
from privatize.identity.library import LIBRARY
from privatize.identity.origin import is_named, owner_of
from privatize.identity.settings import pandas_options

_PICKLING = ("__reduce_ex__", "__reduce__", "__getstate__")


class ModelGuard(ChangeGuard):
    """One of our own functions, and estimators that only we have; made by `model_guard`."""

    def __init__(self, function: Any, models: list[Any]) -> None:
        self._function, self._models = function, models
        self._seen, self._before = self._objects(), _settings()
        self.simple = True  # a run trains copies of the estimators

    def same(self) -> bool:
        """Tell whether everything is the same as before."""
        now = self._objects()
        unchanged = len(now) == len(self._seen) and all(map(operator.is_, now, self._seen))
        return unchanged and _settings() == self._before

    def saw(self, read: Read) -> bool:
        """Tell whether a fingerprint read the same objects: nobody else could have changed them meanwhile."""
        del read
        return True

    def put_back(self) -> list[str]:
        """Return what changed during a private run; it cannot be restored."""
        return [] if self.same() else ["something that it refers to"]

    def _objects(self) -> list[Any]:
        config = sys.modules["sklearn"].get_config()
        found = [*config, *config.values(), *_name_of(self._function)]
        for model in self._models:
            kind, state = type(model), vars(model)
            found += _name_of(kind)
            found += [copyreg.dispatch_table.get(kind), *(getattr(kind, name, None) for name in _PICKLING)]
            found += [*state, *state.values()]
        return found


def _name_of(thing: Any) -> list[Any]:
    """Return a function or class, its names, and whether it is found under them."""
    module, name = thing.__module__, thing.__qualname__
    return [thing, module, name, is_named(thing, module, name)]


def _settings() -> tuple[Any, ...]:
    # A class that is registered with any abstract class changes the token.
    return pandas_options(), np.geterr(), abc.get_cache_token()


def model_guard(function: Any, models: list[Any]) -> ModelGuard | None:
    """Return a guard over one of our own functions that trains estimators, or None if it has none.

    Parameters
    ----------
    function : callable
        Any callable.
    models : list of estimators
        They are scikit-learn's own, nobody else has them, and the function trains copies.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from privatize.sklearn import fitted
    >>> model = Ridge(alpha=2.0)
    >>> guarded = model_guard(fitted, [model])
    >>> guarded.same()
    True
    >>> model.alpha = 3.0
    >>> guarded.same()
    False
    >>> model_guard(lambda X, y, model: model.fit(X, y), [model]) is None
    True
    """
    own = owner_of(function) == LIBRARY and is_named(function, function.__module__, function.__qualname__)
    for model in models:
        kind = type(model)
        named = is_named(kind, kind.__module__, kind.__qualname__)
        versioned = (owner_of(kind) or "").startswith("sklearn ")
        own = own and named and versioned and {*map(type, vars(model).values())} <= ATOMS
    return ModelGuard(function, models) if own else None
