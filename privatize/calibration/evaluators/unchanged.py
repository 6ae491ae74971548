"""Tell whether functions have changed a dataset in place, or options of libraries, which others find then."""

from __future__ import annotations

import decimal
import itertools
import locale
import operator
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.user_warnings import set_filters
from privatize.data import columns, records
from privatize.identity.fingerprint import identity_of
from privatize.identity.graph import ATOMS

_LARGE = 2**16  # bytes of an array whose copy is compared; those of smaller ones are compared as bytes
_INNER = ("_pa_array", "_ndarray", "_data", "_mask")  # what arrays of pandas consist of, beside a dtype


class _State(NamedTuple):
    """What is compared: the very same objects, equal values, and large arrays, of which copies are kept."""

    objects: tuple[Any, ...] = ()
    values: tuple[Any, ...] = ()
    arrays: tuple[NDArray[Any], ...] = ()

    def same(self, other: _State) -> bool:
        return (
            len(self.objects) == len(other.objects)
            and all(map(operator.is_, self.objects, other.objects))
            and self.values == other.values
            and all(map(_equal, self.arrays, other.arrays))
        )


class Unchanged:
    """A dataset as it was.

    Examples
    --------
    >>> data = np.array([3.0, 1.0])
    >>> before = Unchanged(data)
    >>> before.same()
    True
    >>> data.sort()
    >>> before.same(), before.copy()
    (False, array([3., 1.]))
    """

    def __init__(self, data: Any) -> None:
        self._data, state = data, _read(data)
        self._state = state._replace(arrays=tuple(each.copy() for each in state.arrays))
        whole = type(data) is np.ndarray and len(state.arrays) == 1
        self._kept = self._state.arrays[0] if whole else records.copy(data)
        self.comparable = None not in state.values  # otherwise it has something that cannot be encoded

    def same(self) -> bool:
        """Tell whether it is unchanged; what cannot be compared counts as changed."""
        return self.comparable and self._state.same(_read(self._data))

    def copy(self) -> Any:
        """Return a copy of what it was, laid out as datasets of pairs are."""
        return records.fresh(records.copy(self._kept))


def _read(data: Any) -> _State:
    """Return the state of a dataset: quickly for the usual ones, else by its fingerprint."""
    kind = type(data)
    if kind is np.ndarray and not data.dtype.hasobject:
        own = (data.__array_interface__["data"][0], data.shape, data.strides, data.flags.num)
        if data.nbytes < _LARGE:
            return _State((data.dtype,), (*own, data.tobytes()))
        return _State((data.dtype,), own, (data,))
    if kind is list or kind is np.ndarray:
        items = data if kind is list else data.ravel().tolist()
        kinds = set(map(type, items))
        if kinds <= ATOMS:
            return _State(tuple(items), () if kind is list else (data.shape, data.strides, data.flags.num))
        if kind is list and kinds == {dict}:
            values = list(itertools.chain.from_iterable(map(dict.values, items)))
            if set(map(type, values)) <= ATOMS:
                return _State((*items, *values), tuple(map(tuple, items)))
    elif kind is tuple:
        return _joined([_State((), ((),)), *map(_read, data)])
    elif kind is dict:
        return _joined([_State((), (tuple(data),)), *map(_read, data.values())])
    elif kind.__module__.partition(".")[0] == "pandas":
        return _read_pandas(data)
    return _State((), (identity_of(data),))


def _joined(parts: list[_State]) -> _State:
    return _State(*(tuple(itertools.chain.from_iterable(each)) for each in zip(*parts, strict=True)))


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Tell whether two arrays of the same dtype and shape have the same bits, whatever these mean."""
    bits = f"i{next(size for size in (8, 4, 2, 1) if one.itemsize % size == 0)}"
    a, b = (np.ascontiguousarray(each).reshape(-1).view(bits) for each in (one, other))
    return bool(np.array_equal(a, b))


def _read_pandas(data: Any) -> _State:
    """Return the state of a frame, a series, or an array of one of its columns."""
    if not hasattr(data, "attrs"):
        inner = [getattr(data, name) for name in _INNER if hasattr(data, name)]
        if not inner:
            return _State((), (identity_of(data),))
        # Arrays of Arrow cannot change: another one takes the place of the first.
        parts = [_read(each) if type(each) is np.ndarray else _State((each,)) for each in inner]
        return _joined([_State((data.dtype,)), *parts])
    named = [data.index] if data.ndim == 1 else [data.index, data.columns]
    labels = [tuple(axis.names) for axis in named] + ([data.name] if data.ndim == 1 else list(data.columns))
    own = _State(tuple(named), (tuple(labels), data.flags.allows_duplicate_labels, tuple(vars(data))))
    extra = _State((), (identity_of(data.attrs),) if data.attrs else ())
    return _joined([own, extra, *map(_read, columns.arrays(data))])


class Options:
    """The options of libraries and of the process that change what functions compute, as they were.

    Examples
    --------
    >>> before = Options()
    >>> old = np.seterr(divide="raise")
    >>> before.put_back(), before.put_back()
    (True, False)
    """

    def __init__(self) -> None:
        self._state = {name: read() for name, (read, _) in _OPTIONS.items()}

    def put_back(self) -> bool:
        """Put back what was changed, and tell whether there was anything."""
        changed = False
        for name, (read, write) in _OPTIONS.items():
            was, now = self._state[name], read()
            other = name == "warnings" and was[0] is not now[0]  # a thread is in a context, or has left one
            if was is None or other:  # None if its library was loaded meanwhile
                self._state[name] = now
            elif was != now:
                write(was)
                changed = True
        return changed


def _of(library: str, read: Callable[[Any], Any]) -> Callable[[], Any]:
    """Return a function that reads options of a library; None if nobody has loaded it."""
    return lambda: read(sys.modules[library]) if library in sys.modules else None


def _decimal() -> dict[str, Any]:
    context = decimal.getcontext()
    traps = [signal for signal, trapped in context.traps.items() if trapped]
    return {name: getattr(context, name) for name in _DECIMAL} | {"traps": traps}


def _folder() -> str:
    try:
        return str(Path.cwd())
    except OSError:  # it was deleted
        return ""


def _set_environment(was: dict[str, str]) -> None:
    for name in os.environ.keys() - was.keys():
        del os.environ[name]
    os.environ.update(was)


def _set_pandas(was: dict[str, Any]) -> None:
    for name, value in was.items():
        sys.modules["pandas"].set_option(name, value)


def _set_torch(was: tuple[Any, bool]) -> None:
    torch = sys.modules["torch"]
    torch.set_default_dtype(was[0])
    torch.set_grad_enabled(was[1])


_DECIMAL = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")
_PANDAS = ("compute.use_bottleneck", "compute.use_numexpr")  # others are about display, or deprecated
# How each of them is read, and put back.
_OPTIONS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "numpy": (np.geterr, lambda was: np.seterr(**was)),
    "decimal": (_decimal, lambda was: decimal.setcontext(decimal.Context(**was))),
    "environment": (lambda: dict(os.environ), _set_environment),
    "pandas": (_of("pandas", lambda it: {name: it.get_option(name) for name in _PANDAS}), _set_pandas),
    "sklearn": (
        _of("sklearn", lambda it: it.get_config()),
        lambda was: sys.modules["sklearn"].set_config(**was),
    ),
    "torch": (_of("torch", lambda it: (it.get_default_dtype(), it.is_grad_enabled())), _set_torch),
    "warnings": (lambda: (warnings.filters, list(warnings.filters)), lambda was: set_filters(*was)),
    "printing": (np.get_printoptions, lambda was: np.set_printoptions(**was)),
    "buffers": (np.getbufsize, np.setbufsize),
    "folder": (_folder, lambda was: os.chdir(was) if was else None),
    "locale": (lambda: locale.setlocale(locale.LC_ALL), lambda was: locale.setlocale(locale.LC_ALL, was)),
    "recursion": (sys.getrecursionlimit, sys.setrecursionlimit),
}
