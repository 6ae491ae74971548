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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.user_warnings import set_filters
from privatize.data import columns, records
from privatize.identity.fingerprint import identity_of
from privatize.identity.graph import ATOMS

_LARGE = 2**16  # bytes of an array whose copy is compared; those of smaller ones are compared as bytes
_INNER = ("_pa_array", "_ndarray", "_data", "_mask")  # what arrays of pandas consist of, beside a dtype


class _State:
    """What is compared: the very same objects, equal values, and large arrays, of which copies are kept."""

    def __init__(self, data: Any) -> None:
        self.objects: list[Any] = []
        self.values: list[Any] = []
        self.arrays: list[NDArray[Any]] = []
        self._read(data)

    def same(self, other: _State) -> bool:
        return (
            len(self.objects) == len(other.objects)
            and all(map(operator.is_, self.objects, other.objects))
            and self.values == other.values
            and all(map(_equal, self.arrays, other.arrays))
        )

    def _read(self, data: Any) -> None:
        """Add the state of a dataset, or of a part of one: quickly for the usual ones."""
        kind = type(data)
        if kind is np.ndarray:
            self._read_array(data)
        elif kind is list:
            self._read_list(data)
        elif kind is tuple or kind is dict:
            self.values.append(tuple(data) if kind is dict else len(data))
            for part in data.values() if kind is dict else data:
                self._read(part)
        elif kind.__module__.partition(".")[0] == "pandas":
            self._read_pandas(data)
        else:
            self.values.append(identity_of(data))

    def _read_array(self, data: NDArray[Any]) -> None:
        """Add the state of an array, whose cells may be objects."""
        dtype, layout = data.dtype, (data.shape, data.strides, data.flags.num)
        if not dtype.hasobject:
            self.objects.append(dtype)
            self.values += (data.__array_interface__["data"][0], layout)
            if data.nbytes < _LARGE:
                self.values.append(data.tobytes())
            else:
                self.arrays.append(data)
        elif set(map(type, items := data.ravel().tolist())) <= ATOMS:
            self.objects += items
            self.values.append(layout)
        else:
            self.values.append(identity_of(data))

    def _read_list(self, data: list[Any]) -> None:
        """Add the state of a list of values, or of records."""
        kinds = set(map(type, data))
        inner = list(itertools.chain.from_iterable(map(dict.values, data))) if kinds == {dict} else []
        if kinds <= ATOMS or (kinds == {dict} and set(map(type, inner)) <= ATOMS):
            self.objects += (*data, *inner)
            self.values.append(tuple(map(tuple, data)) if kinds == {dict} else len(data))
        else:
            self.values.append(identity_of(data))

    def _read_pandas(self, data: Any) -> None:
        """Add the state of a frame, a series, or an array of one of its columns."""
        if hasattr(data, "attrs"):
            self._read_frame(data)
            return
        inner = [getattr(data, name) for name in _INNER if hasattr(data, name)]
        if not inner:
            self.values.append(identity_of(data))
            return
        self.objects.append(data.dtype)
        for part in inner:
            if type(part) is np.ndarray:
                self._read_array(part)
            else:  # arrays of Arrow cannot change: another one takes the place of the first
                self.objects.append(part)

    def _read_frame(self, data: Any) -> None:
        """Add the state of a frame or a series."""
        axes = [data.index] if data.ndim == 1 else [data.index, data.columns]
        self.objects += axes
        self.values += [tuple(axis.names) for axis in axes]
        labels = None if data.ndim == 1 else getattr(axes[1]._values, "_pa_array", None)
        if labels is None:
            self.values.append([data.name] if data.ndim == 1 else list(axes[1]))
        else:  # of Arrow, as above: faster than the labels themselves
            self.objects.append(labels)
        self.values += (data.flags.allows_duplicate_labels, tuple(vars(data)))
        self.values.append(identity_of(data.attrs) if data.attrs else ())
        # Block by block if possible, which is faster. What is written into a column may make a new block.
        blocks = getattr(getattr(data, "_mgr", None), "blocks", None)
        self.objects += blocks or ()
        for part in columns.arrays(data) if blocks is None else [block.values for block in blocks]:
            self._read(part)


class Unchanged:
    """A dataset as it was.

    Parameters
    ----------
    data : dataset
        The dataset.
    again : callable, optional
        Makes the same dataset once more. Without it a copy is kept; frames are slow to copy.

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

    def __init__(self, data: Any, again: Callable[[], Any] | None = None) -> None:
        self._data, self._state = data, _State(data)
        self._state.arrays = [each.copy() for each in self._state.arrays]
        self._again = again
        if again is None:
            whole = type(data) is np.ndarray and len(self._state.arrays) == 1
            self._kept = self._state.arrays[0] if whole else records.copy(data)
        self.comparable = None not in self._state.values  # otherwise it has what cannot be encoded

    def same(self) -> bool:
        """Tell whether it is unchanged; what cannot be compared counts as changed."""
        return self.comparable and self._state.same(_State(self._data))

    def copy(self) -> Any:
        """Return a copy of what it was, laid out as datasets of pairs are."""
        if self._again is not None:
            self._kept, self._again = self._again(), None
        return records.fresh(records.copy(self._kept))


def _equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Tell whether two arrays of the same dtype and shape have the same bits, whatever these mean."""
    bits = f"i{next(size for size in (8, 4, 2, 1) if one.itemsize % size == 0)}"
    a, b = (np.ascontiguousarray(each).reshape(-1).view(bits) for each in (one, other))
    return bool(np.array_equal(a, b))


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
