"""Any output as one flat float64 vector and a public structure, and back.

The structure is plain JSON. It comes from calibration, never from the private output, so
nothing about the private answer shows in types, key order or shapes.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.data import frames
from privatize.errors import OutputError
from privatize.outputs import models as estimators

__all__ = [
    "StructureChanged",
    "describe",
    "difference",
    "flatten",
    "has_classes",
    "integers",
    "names",
    "number",
    "rebuild",
    "size",
    "unkey",
]

Tree = list[Any]
Vector = NDArray[np.float64]
SCALARS = ("float", "int", "numpy")
_DICTS: dict[str, type] = {"dict": dict, "OrderedDict": OrderedDict, "Counter": Counter}


class StructureChanged(Exception):  # noqa: N818 - a signal between rooms; users never see it
    """An output does not have the structure that calibration saw."""


def describe(value: Any) -> Tree:
    """Return the structure of an output, or refuse what cannot be released.

    Examples
    --------
    >>> describe({"mean": 1.5, "counts": np.array([1, 2])})
    ['dict', 'dict', [['str', 'mean'], ['str', 'counts']], [['float'], ['array', '<i8', [2]]]]
    """
    tree = _describe(value, ())
    if size(tree) == 0:
        raise OutputError("The output holds no numbers, so there is nothing to release.")
    return tree


def _describe(value: Any, seen: tuple[int, ...]) -> Tree:
    kind = type(value)
    if kind is float or kind is int:
        return [kind.__name__]
    if isinstance(value, np.generic):
        if value.dtype.kind not in "iuf":
            return _refuse(value)
        return ["numpy", value.dtype.str]
    if kind is np.ndarray:
        if value.dtype.kind not in "iuf":
            return _refuse(value)
        return ["array", value.dtype.str, list(value.shape)]
    form = frames.kind(value)
    if form is not None:
        return _describe_frame(value, *form)
    if _is_tensor(value):
        plain = _untorched(value)
        if plain.dtype.kind not in "iuf":
            return _refuse(plain)
        return ["tensor", plain.dtype.str, list(plain.shape), str(value.dtype).removeprefix("torch.")]
    if estimators.is_fitted(value):
        return _describe_estimator(value, seen)
    if id(value) in seen:
        raise OutputError("The output contains itself, so it has no end.")
    seen = (*seen, id(value))
    if kind is list:
        return ["list", [_describe(item, seen) for item in value]]
    if isinstance(value, tuple):
        if kind is tuple:
            return ["tuple", [_describe(item, seen) for item in value]]
        if hasattr(value, "_fields"):
            _check_again(kind, value)
            return [
                "namedtuple",
                _name(kind),
                list(value._fields),
                [_describe(item, seen) for item in value],
            ]
    if isinstance(value, dict) and kind.__name__ in (*_DICTS, "defaultdict"):
        name = kind.__name__ if kind.__name__ in _DICTS else "dict"
        return [
            "dict",
            name,
            [_key(k) for k in value],
            [_describe(v, seen) for v in value.values()],
        ]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value) if f.init]
        needed = [p.name for p in inspect.signature(kind).parameters.values() if p.default is p.empty]
        if not set(needed) <= set(fields):  # an InitVar, or an __init__ of its own
            raise OutputError(
                f"The function returns a {kind.__name__}, which needs more than its fields to be made again. "
                f"Return a dataclass without InitVar."
            )
        items = [_describe(getattr(value, name), seen) for name in fields]
        return ["dataclass", _name(kind), fields, items]
    return _refuse(value)


def _describe_frame(value: Any, form: str, library: str) -> Tree:
    """Return the structure of a frame or a series: its numbers, and a digest of everything else."""
    kinds = frames.kinds(value)
    if form == "series" and kinds[0] not in ("int", "float"):
        raise OutputError(
            f"The function returns a Series of {frames.describe(value).columns[0].dtype}, to which no noise "
            f"can be added. Return numbers; to choose among fixed answers use Exponential(responses=[...])."
        )
    for name, kind in zip(frames.names(value), kinds, strict=True):
        if kind in ("bool", "object", "other"):
            raise OutputError(
                f"The function returns a frame whose column {name!r} is {kind}, neither a number nor a "
                f"label. Return numbers (astype(float)), and labels as texts, categories or dates."
            )
    numbers = [
        ["array", values.dtype.str, [len(values)]]
        for values, kind in zip(frames.contents(value), kinds, strict=False)
        if kind in ("int", "float")
    ]
    return ["frame", form, library, frames.digest(value), frames.labels(value), numbers]


def _describe_estimator(value: Any, seen: tuple[int, ...]) -> Tree:
    """Return the structure of a fitted estimator: its learned numbers, and a digest of everything else."""
    parts = estimators.take_apart(value)
    told = {"shown": estimators.show(value), "seen": parts.seen()}
    branches = [_describe(item, seen) for item in parts.values]
    return ["estimator", _name(type(parts.estimator)), parts.digest, parts.names, told, branches]


def _is_tensor(value: Any) -> bool:
    kind = type(value)
    return (kind.__module__, kind.__name__) in (("torch", "Tensor"), ("torch.nn.parameter", "Parameter"))


def _untorched(value: Any) -> NDArray[Any]:
    own = value.detach().cpu()
    narrow = str(own.dtype) in ("torch.bfloat16", "torch.float16")
    found: NDArray[Any] = (own.float() if narrow else own).numpy()
    return found


def difference(value: Any, tree: Tree) -> str:
    """Say how an output on sampled data, which is public, differs from the structure seen before.

    Examples
    --------
    >>> difference({"a": 1.0}, describe({"a": 1.0, "b": 2.0}))
    "without 'b'"
    """
    try:
        found = _describe(value, ())
    except OutputError as error:
        return str(error)
    return _differs(found, tree) or "of another class"


def _differs(found: Tree, tree: Tree) -> str | None:
    if found[0] != tree[0] and not (found[0] in SCALARS and tree[0] in SCALARS):
        return f"a {found[0]} where there was a {tree[0]}"
    kind = tree[0]
    if kind in ("array", "tensor"):
        if found[2] != tree[2]:
            return f"of shape {tuple(found[2])} where it was {tuple(tree[2])}"
        return f"of {np.dtype(found[1]).name} where it was {np.dtype(tree[1]).name}"
    if kind in SCALARS:
        return f"a {found[-1]} where there was a {tree[-1]}" if found != tree else None
    if kind == "dict":
        ours, theirs = ([repr(unkey(key)) for key in t[2]] for t in (found, tree))
        return _uncommon(ours, theirs) or next(
            filter(None, (_differs(found[3][ours.index(k)], tree[3][theirs.index(k)]) for k in theirs)), None
        )
    if kind == "frame":
        for what, ours, theirs in zip(("columns", "rows"), found[4], tree[4], strict=True):
            if ours != theirs:
                return _uncommon(ours, theirs, what) or f"with {what} in another order"
        if found[3] != tree[3]:
            return "with other texts, categories or index"
    if kind == "estimator":
        name = tree[1].rpartition(":")[2]
        if found[1] != tree[1]:
            return f"a {found[1].rpartition(':')[2]} where there was a {name}"
        for key in sorted({*found[4]["shown"], *tree[4]["shown"]}):
            ours, theirs = (t[4]["shown"].get(key, "missing") for t in (found, tree))
            if ours != theirs:
                return f"a {name} with {key}={ours} where it was {theirs}"
    if len(found[-1]) != len(tree[-1]):
        return f"of {len(found[-1])} parts where there were {len(tree[-1])}"
    pairs = zip(found[-1], tree[-1], strict=True)
    return next(filter(None, (_differs(ours, theirs) for ours, theirs in pairs if ours != theirs)), None)


def _uncommon(ours: list[str], theirs: list[str], what: str = "") -> str | None:
    more = [name for name in ours if name not in theirs]
    less = [name for name in theirs if name not in ours]
    shown = []
    for word, names in (("with", more), ("without", less)):
        if names:
            more_than_five = ", ..." if len(names) > 5 else ""
            shown.append(f"{word}{what and f' {what}'} {', '.join(names[:5])}{more_than_five}")
    return " and ".join(shown) or None


def _check_again(kind: Any, value: Any) -> None:
    """Refuse a named tuple that cannot be made again from its fields, as some of SciPy's results."""
    try:
        made = kind(*value)
    except Exception:  # a constructor is anybody's code: whatever it raises, it does not work
        made = None
    if made is None or len(made) != len(value):
        raise OutputError(
            f"The function returns a {kind.__name__}, which cannot be made again from its fields. Return "
            f"tuple(...) of it, or the numbers that you need."
        )


def _name(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _key(key: Any) -> Tree:
    if isinstance(key, tuple):
        return ["tuple", [_key(part) for part in key]]
    kind = type(key)
    if kind in (str, int, bool):
        return [kind.__name__, key]
    if key is None:
        return ["None"]
    if kind is float:
        return ["float", repr(key)]
    if isinstance(key, np.generic) and key.dtype.kind in "iufbU":
        return ["numpy", key.dtype.str, key.item() if key.dtype.kind != "f" else repr(key.item())]
    raise OutputError(
        f"A dict in the output has a key of type {kind.__name__}: keys must be strings, numbers, "
        f"None, or tuples of these."
    )


def unkey(tree: Tree) -> Any:
    """Return the key of a dict that a tree describes."""
    kind = tree[0]
    if kind == "tuple":
        return tuple(map(unkey, tree[1]))
    if kind == "None":
        return None
    if kind == "float":
        return float(tree[1])
    if kind == "numpy":
        return np.dtype(tree[1]).type(tree[2])
    return tree[1]


def _refuse(value: Any) -> Tree:
    kind = type(value)
    array = isinstance(value, np.ndarray | np.generic)
    letter = value.dtype.kind if array else ""
    name = (
        f"{'an array' if isinstance(value, np.ndarray) else 'a value'} of {value.dtype}"
        if array
        else f"a {kind.__name__}"
    )
    if isinstance(value, bool) or letter == "b":
        fix = "Return int(...) for a count; to choose True or False use Exponential(responses=[...])."
    elif isinstance(value, str | bytes) or letter in ("U", "S"):
        fix = "To choose among fixed answers use mechanism=Exponential(responses=[...])."
    elif value is None:
        fix = "Return the answer."
    elif isinstance(value, complex) or letter == "c":
        fix = "Return its real and imaginary parts."
    elif inspect.isgenerator(value) or isinstance(value, Iterator):
        fix = "Return a list."
    elif inspect.isawaitable(value):
        fix = "Decorate a plain function."
    elif letter in ("M", "m"):
        fix = "Return a number of days or seconds."
    elif letter == "O":
        fix = "Convert it with astype(float)."
    elif isinstance(value, np.ndarray) and kind is not np.ndarray:
        name = f"a {kind.__name__}"
        fix = "Return a plain array: np.asarray(...), or filled(...) of a masked one."
    elif hasattr(value, "state_dict"):
        fix = "Return its state_dict()."
    elif callable(value):
        fix = "To release a function use the mechanism Bernstein(...)."
    elif "GroupBy" in kind.__name__:
        fix = "Aggregate it: .mean(), .size()."
    elif hasattr(value, "collect"):
        fix = "Call collect() on it."
    elif hasattr(value, "toarray"):
        fix = "Return its toarray()."
    elif kind.__name__ in ("Timestamp", "Timedelta", "datetime", "date", "timedelta"):
        fix = "Return a number: (value - pd.Timestamp('2000-01-01')).days, say."
    elif hasattr(value, "to_numpy"):
        fix = "Return its to_numpy(), or a dict of numbers."
    elif hasattr(value, "params"):
        fix = "Return its params."
    elif hasattr(value, "get_params"):
        fix = "Return its learned numbers, such as coef_ and intercept_."  # not scikit-learn's
    else:
        fix = "Return numbers, arrays, frames or series, or lists, tuples, dicts or dataclasses of these."
    raise OutputError(f"The function returns {name}, to which no noise can be added. {fix}")


def size(tree: Tree) -> int:
    """Return how many numbers an output of this structure holds.

    Examples
    --------
    >>> size(describe([1.0, np.zeros((2, 3))]))
    7
    """
    kind = tree[0]
    if kind in ("array", "tensor"):
        return math.prod(tree[2])
    if kind in SCALARS:
        return 1
    return sum(map(size, tree[-1]))


def has_classes(tree: Tree) -> bool:
    """Tell whether an output of this structure has named tuples, dataclasses or frames in it."""
    if not tree or tree[0] in ("array", "tensor", *SCALARS):
        return False
    return tree[0] in ("namedtuple", "dataclass", "frame", "estimator") or any(map(has_classes, tree[-1]))


def integers(tree: Tree) -> NDArray[np.bool_]:
    """Return which coordinates of the flat vector are integers.

    Examples
    --------
    >>> integers(describe({"n": 3, "mean": 1.5}))
    array([ True, False])
    """
    kind = tree[0]
    if kind in ("float", "int"):
        return np.array([kind == "int"])
    if kind in ("numpy", "array", "tensor"):
        return np.full(size(tree), np.dtype(tree[1]).kind in "iu")
    parts = [integers(item) for item in tree[-1]]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_)


def names(tree: Tree) -> list[str]:
    """Return what to call each coordinate of the flat vector: keys, labels, positions.

    Examples
    --------
    >>> names(describe({"n": 3, "mean": np.zeros(2)}))
    ['n', 'mean 0', 'mean 1']
    """
    kind = tree[0]
    if kind in SCALARS:
        return [""]
    if kind in ("array", "tensor"):
        return [",".join(map(str, at)) for at in np.ndindex(*tree[2])]
    if kind == "frame":
        columns, rows = tree[4]
        sizes = [size(branch) for branch in tree[-1]]
        heads = columns if len(columns) == len(sizes) else [str(i) for i in range(len(sizes))]
        if len(sizes) == 1:
            heads = [""]
        return [
            _named(head.strip("'"), rows[i].strip("'") if len(rows) == count else str(i))
            for head, count in zip(heads, sizes, strict=True)
            for i in range(count)
        ]
    heads = (
        [str(unkey(key)) for key in tree[2]]
        if kind == "dict"
        else list(map(str, tree[2]))
        if kind in ("namedtuple", "dataclass")
        else list(map(str, tree[3]))
        if kind == "estimator"
        else [str(i) for i in range(len(tree[-1]))]
    )
    return [
        _named(head, name) for head, branch in zip(heads, tree[-1], strict=True) for name in names(branch)
    ]


def _named(head: str, name: str) -> str:
    return f"{head} {name}".strip()


def flatten(value: Any, tree: Tree, classes: dict[str, Any] | None = None, known: bool = False) -> Vector:
    """Return an output as a flat vector, aligned by the structure.

    Dicts are aligned by key, whatever their order. `classes` collects the named tuples and
    dataclasses met on the way, which `rebuild` needs; with `known`, they must be those that
    it has.

    Raises
    ------
    StructureChanged
        If the output does not fit.

    Examples
    --------
    >>> tree = describe({"a": 1.0, "b": 2.0})
    >>> flatten({"b": 5.0, "a": 4.0}, tree)
    array([4., 5.])
    """
    if tree[0] == "array":  # the common cases, without the list
        return _array(value, tree)
    if tree[0] in SCALARS:
        return np.array([number(value, tree)])
    parts: list[Any] = []
    _collect(value, tree, parts, classes if classes is not None else {}, known)
    if len(parts) == 1 and type(parts[0]) is np.ndarray:
        only: Vector = parts[0]
        return only
    if all(type(part) is float for part in parts):
        return np.array(parts, dtype=np.float64)
    return np.concatenate([np.atleast_1d(part) for part in parts])


def _array(value: Any, tree: Tree) -> Vector:
    if type(value) is not np.ndarray or list(value.shape) != tree[2]:
        raise StructureChanged
    dtype = value.dtype
    if dtype.kind not in ("iu" if tree[1][1] in "iu" else "iuf"):
        raise StructureChanged
    if dtype.itemsize <= 8:
        return value.astype(np.float64).ravel()
    with np.errstate(over="ignore"):  # a long double may be beyond every float: infinite, without a warning
        return value.astype(np.float64).ravel()


def number(value: Any, tree: Tree) -> float:
    """Return a scalar output as a float. A float may come as an int, but not the reverse."""
    kind = type(value)
    if kind is np.float64 or kind is float:
        whole = False
    elif kind is int or isinstance(value, np.integer):
        whole = True
    elif isinstance(value, np.floating) or (
        kind is np.ndarray and value.shape == () and value.dtype.kind == "f"
    ):
        whole = False
    else:
        raise StructureChanged
    if not whole and (tree[0] == "int" or (tree[0] == "numpy" and tree[1][1] in "iu")):
        raise StructureChanged
    try:
        return float(value)
    except OverflowError:  # an int beyond every float
        return math.inf


def _collect(value: Any, tree: Tree, parts: list[Any], classes: dict[str, Any], known: bool) -> None:
    kind = tree[0]
    if kind in SCALARS:
        parts.append(number(value, tree))
        return
    if kind == "array":
        parts.append(_array(value, tree))
        return
    if kind == "tensor":
        if not _is_tensor(value):
            raise StructureChanged
        parts.append(_array(_untorched(value), tree))
        return
    if kind == "frame":
        _check_frame(value, tree, classes, known)
        columns = frames.numbers(value)
        if len(columns) != len(tree[-1]):
            raise StructureChanged
        parts.extend(_array(column, branch) for column, branch in zip(columns, tree[-1], strict=True))
        return
    items: Any
    if kind == "estimator":
        items = _learned(value, tree, classes, known)
    elif kind == "dict":
        keys = [key[1] if key[0] == "str" else unkey(key) for key in tree[2]]
        if not isinstance(value, dict) or len(value) != len(keys):
            raise StructureChanged
        try:
            items = [value[key] if key in value else _missing() for key in keys]
        except TypeError:
            raise StructureChanged from None
    elif kind in ("namedtuple", "dataclass"):
        if _name(type(value)) != tree[1]:
            raise StructureChanged
        if known and tree[1] not in classes:
            raise StructureChanged
        if classes.setdefault(tree[1], type(value)) is not type(value):  # defined anew at every call
            raise StructureChanged
        items = value if kind == "namedtuple" else [getattr(value, name) for name in tree[2]]
    else:
        if type(value) is not (list if kind == "list" else tuple):
            raise StructureChanged
        items = value
    if len(items) != len(tree[-1]):
        raise StructureChanged
    for item, branch in zip(items, tree[-1], strict=True):
        _collect(item, branch, parts, classes, known)


def _check_frame(value: Any, tree: Tree, classes: dict[str, Any], known: bool) -> None:
    """Refuse a frame whose labels, names or dtypes are not those that calibration saw."""
    if frames.kind(value) != (tree[1], tree[2]):
        raise StructureChanged
    seen = classes.get(tree[3])
    if seen is not None:
        if not frames.alike(value, seen):
            raise StructureChanged
    elif known or frames.digest(value) != tree[3]:
        raise StructureChanged
    else:
        classes[tree[3]] = frames.copy(value)


def _learned(value: Any, tree: Tree, classes: dict[str, Any], known: bool) -> list[Any]:
    """Return what an estimator has learned, if all else is as calibration saw it."""
    if not estimators.is_fitted(value):
        raise StructureChanged
    try:
        parts = estimators.take_apart(value)
    except OutputError:
        raise StructureChanged from None
    if parts.names != tree[3] or parts.digest != tree[2]:
        raise StructureChanged
    if tree[2] not in classes:
        if known:
            raise StructureChanged
        classes[tree[2]] = estimators.Template.of(parts)
    if classes[tree[2]].kind is not type(parts.estimator):  # defined anew at every call
        raise StructureChanged
    return parts.values


def _missing() -> Any:
    raise StructureChanged


def rebuild(vector: Vector, tree: Tree, classes: dict[str, Any] | None = None) -> Any:
    """Return a flat vector as an output of the structure.

    Examples
    --------
    >>> rebuild(np.array([3.0, 1.25]), describe({"n": 7, "mean": 9.0}))
    {'n': 3, 'mean': 1.25}
    """
    if len(vector) != size(tree):
        raise ValueError(f"{len(vector)} numbers do not fill a structure of {size(tree)}.")
    value, _ = _rebuild(vector, 0, tree, classes or {})
    return value


_FLOAT = np.dtype(np.float64).str


def _rebuild(vector: Vector, at: int, tree: Tree, classes: dict[str, Any]) -> tuple[Any, int]:
    kind = tree[0]
    if kind == "float":
        return float(vector[at]), at + 1
    if kind == "int":
        return round(float(vector[at])), at + 1
    if kind == "numpy" and tree[1] == _FLOAT:
        return vector[at], at + 1
    if kind == "numpy":
        return _cast(vector[at : at + 1], tree[1])[0], at + 1
    if kind == "array":
        end = at + size(tree)
        return _cast(vector[at:end], tree[1]).reshape(tree[2]), end
    if kind == "tensor":
        import torch

        end = at + size(tree)
        made: Any = torch.from_numpy(_cast(vector[at:end], tree[1]).reshape(tree[2]))
        return made.to(getattr(torch, tree[3])), end
    items = []
    for branch in tree[-1]:
        item, at = _rebuild(vector, at, branch, classes)
        items.append(item)
    if kind == "frame":
        return frames.with_numbers(classes[tree[3]], items), at
    if kind == "estimator":
        return estimators.rebuild(classes[tree[2]], tree[3], items, tree[4]["seen"]), at
    if kind == "list":
        return items, at
    if kind == "tuple":
        return tuple(items), at
    if kind == "namedtuple":
        return classes[tree[1]](*items), at
    if kind == "dataclass":
        return classes[tree[1]](**dict(zip(tree[2], items, strict=True))), at
    return _DICTS[tree[1]](dict(zip(map(unkey, tree[2]), items, strict=True))), at


def _cast(values: Vector, dtype: str) -> NDArray[Any]:
    """Return noised values in the output's own dtype; integers saturate, they never wrap."""
    kind = np.dtype(dtype)
    with np.errstate(over="ignore"):
        if kind.kind == "f":
            return values.astype(kind)
        ends = np.iinfo(kind)
        inside = np.rint(values)
        out = np.clip(inside, float(ends.min), float(ends.max))
        # 2^63 - 1 is no float64: what rounds up to 2^63 must not wrap around.
        top = inside >= float(ends.max)
        return np.where(top, ends.max, np.where(top, 0.0, out).astype(kind)).astype(kind)
