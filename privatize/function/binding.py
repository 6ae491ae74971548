"""Split the arguments of a call into the dataset and the rest.

The dataset is private. Every other argument is public, and part of the function that is calibrated.
"""

from __future__ import annotations

import copy
import functools
import inspect
import struct
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np

from privatize.calibration.additive import Additive, Rows
from privatize.data.persons import as_passed, table_of
from privatize.display.signatures import signature_of
from privatize.errors import ArgumentError, SettingsError
from privatize.outputs.models import Unfitted, is_estimator

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_UNKNOWN = inspect.signature(lambda first_argument, /, *args, **kwargs: (first_argument, args, kwargs))


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A place in a call that is filled at every evaluation."""

    kind: str  # "data", "coin" or "open"
    index: int = 0
    immutable: ClassVar[bool] = True
    tag: ClassVar[str] = "_Hole"  # in the keys of stored estimates


_FIXED = frozenset({Placeholder, Unfitted, type(None), bool, int, float, str})


def _bits(value: Any) -> Any:
    """Return a value to compare; a float as its bits, because 0.0 == -0.0 and NaN != NaN."""
    return struct.pack("<d", value) if type(value) is float else value


@dataclass(frozen=True, slots=True)
class Call:
    """A call with everything in it but the dataset: the function that is calibrated.

    Attributes
    ----------
    function : callable
        What is called.
    args, kwargs : tuple, dict
        Its arguments, with placeholders.
    open : str or None
        The one required parameter that was not passed, for mechanisms that fill it.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    open: str | None
    key: tuple[tuple[Any, ...], Mapping[str, Any]]  # the arguments with defaults filled in
    _comparable: Any = field(default=False, init=False, repr=False, compare=False)  # False: not computed yet

    def bare(self) -> bool:
        """Tell whether the dataset is the only argument."""
        one = not self.kwargs and len(self.args) == 1 and type(self.args[0]) is Placeholder
        return one and self.args[0] == Placeholder("data")

    def others(self) -> list[Any]:
        """Return the public arguments, for the estimate's key."""
        args, kwargs = self.key
        named = sorted((name, _plain(value)) for name, value in kwargs.items())
        return [list(map(_plain, args)), named]

    def models(self) -> list[Any]:
        """Return the estimators among the public arguments that cannot change."""
        return [each.estimator for each in (*self.args, *self.kwargs.values()) if type(each) is Unfitted]

    def comparable(self) -> tuple[Any, ...] | None:
        """Return the public arguments as a tuple to compare; None if one could change or be data."""
        if self._comparable is False:
            args, kwargs = self.key
            values = (*args, *kwargs.values())
            fixed = all(type(value) in _FIXED or (type(value) is tuple and not value) for value in values)
            found = (len(args), *kwargs, *((type(each), _bits(each)) for each in values)) if fixed else None
            object.__setattr__(self, "_comparable", found)
        return cast("tuple[Any, ...] | None", self._comparable)

    def shared(self) -> list[tuple[str, Any]]:
        """Return names and values of the arguments that the function could change: they are not copied."""
        if self.comparable() is not None:
            return []
        try:
            names = list(signature_of(self.function).parameters)
        except (TypeError, ValueError):  # builtins and some compiled functions have no signature
            names = []
        placed = zip([*names[: len(self.args)], *[""] * len(self.args)], self.args, strict=False)
        found = (*placed, *self.kwargs.items())
        return [each for each in found if type(each[1]) not in _FIXED and not _has_estimator(each[1])]

    def __privatize_rows__(self, rows_of: Callable[[Any], Any], /) -> Rows | None:
        """Return the rows that the function adds up with these arguments, if it is a sum over records."""
        inner: Rows | None = rows_of(self.function)
        return inner and inner._replace(of=replace(self, function=inner.of))

    def _passed(self, data: Any) -> Any:
        """Return a dataset as the function gets it; ready-made sums get rows without the unit's column."""
        ready = isinstance(self.function, Additive) and vars(self.function)["ready"]
        return table_of(data) if ready else as_passed(data)

    def __call__(self, data: Any, s0: int, point: Any = None) -> Any:
        """Evaluate the function on a dataset, with the public coin seed s0."""

        def fill(value: Any) -> Any:
            if type(value) is Unfitted:
                return value.estimator
            if type(value) is not Placeholder:
                # A copy: the function may fit it, and what it learned would stay in the caller's own.
                return copy.deepcopy(value) if _has_estimator(value) else value
            if value.kind == "data":
                return data[value.index - 1] if value.index else self._passed(data)
            return np.random.default_rng(s0) if value.kind == "coin" else point

        return self.function(
            *map(fill, self.args), **{name: fill(value) for name, value in self.kwargs.items()}
        )


def _plain(value: Any) -> Any:
    return value.estimator if type(value) is Unfitted else value


def _has_estimator(value: Any, depth: int = 20) -> bool:
    """Tell whether an argument is an estimator, or a container with one in it."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple | set | frozenset | deque):
        return depth > 0 and any(_has_estimator(item, depth - 1) for item in value)
    return is_estimator(value)


@dataclass(frozen=True)
class Binding:
    """The parameters of a function, sorted into dataset, coins and others.

    Examples
    --------
    >>> def share(ages, limit=65): ...
    >>> Binding.of(share).names
    ('ages',)
    """

    function: Callable[..., Any]
    signature: inspect.Signature
    names: tuple[str, ...]
    aligned: bool
    coins: tuple[str, ...]
    label: str

    @classmethod
    def of(
        cls, function: Callable[..., Any], data: str | Sequence[str] | None = None, coins: Sequence[str] = ()
    ) -> Binding:
        """Read a function's signature once, when it is decorated."""
        label = label_of(function)
        _refuse_lazy(function, label)
        coins = (coins,) if isinstance(coins, str) else tuple(coins)
        names = None if data is None else (data,) if isinstance(data, str) else tuple(data)
        aligned = data is not None and not isinstance(data, str)
        try:
            signature = signature_of(function)
        except (TypeError, ValueError):  # builtins and some compiled functions have no signature
            if names is not None or coins:
                raise SettingsError(f"""{label}() has no signature that Python can see, so data= and coins=
                    cannot name its parameters. Leave them out (the first argument is the dataset), or wrap it
                    in a lambda.""") from None
            signature = _UNKNOWN
        _refuse_unknown((*(names or ()), *coins), signature, label)
        if names is None:
            names = (_first(function, signature.parameters, label, coins),)
        if not names or len({*names, *coins}) < len(names) + len(set(coins)):
            raise SettingsError(f"data={data!r} and coins={coins!r} must name different parameters.")
        return cls(function, signature, names, aligned, coins, label)

    @functools.cached_property
    def _alone(self) -> Call | None:
        """The call whose only argument is the dataset, in first place; None if that cannot be called."""
        first = next(iter(self.signature.parameters.values()), None)
        if first is None or first.kind not in _POSITIONAL or self.names != (first.name,) or self.aligned:
            return None
        try:
            return self.bind_public((), {})
        except ArgumentError:
            return None

    def bound(self, method: Callable[..., Any]) -> Binding:
        """Return this binding for the same method of another object."""
        alone, made = self._alone, object.__new__(Binding)  # `replace` takes several times as long
        vars(made).update(vars(self), function=method)
        if alone is not None:
            vars(made)["_alone"] = Call(method, alone.args, alone.kwargs, alone.open, alone.key)
        return made

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Call]:
        """Split a call's arguments into the dataset and the rest."""
        if len(args) == 1 and not kwargs and self._alone is not None:
            return args[0], self._alone
        given = self._given(self.signature, args, kwargs)
        dataset = [self._taken(given, name) for name in self.names]
        return tuple(dataset) if self.aligned else dataset[0], self._call(given)

    def bind_public(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Bind the arguments other than the dataset, for calibrating without one."""
        known = self.signature.parameters.values()
        rest = [each for each in known if each.name not in self.names or each.kind in _VARIADIC]
        others = {name: value for name, value in kwargs.items() if name not in self.names}
        return self._call(self._given(self.signature.replace(parameters=rest), args, others))

    def _given(
        self, signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            return signature.bind_partial(*args, **kwargs).arguments
        except TypeError:
            # Python's own message would name what was passed; the signature says enough.
            raise ArgumentError(f"The arguments do not fit {self.label}{self.signature}.") from None

    def _taken(self, given: dict[str, Any], name: str) -> Any:
        """Remove a part of the dataset from the arguments: of a variadic parameter the first value."""
        signature = self.signature
        variadic = signature.parameters[name].kind in _VARIADIC
        if name not in given or (variadic and not given[name]):
            own = next(iter(signature.parameters), "")
            taken = own in ("self", "cls") and own not in self.names
            hint = f" Its {own!r} is taken for the object of a method: if it is the data, pass data={own!r}."
            raise ArgumentError(f"""{self.label}{signature} was called without its dataset {name!r}. Pass
                it.{hint * taken}""")
        value = given.pop(name)
        if variadic:
            given[name] = value[1:]
        return value[0] if variadic else value

    def _call(self, given: dict[str, Any]) -> Call:
        """Return the call with these public arguments, and placeholders for the others."""
        signature, parameters = self.signature, self.signature.parameters
        for index, name in enumerate(self.names):
            place = Placeholder("data", index + 1 if self.aligned else 0)
            variadic = parameters[name].kind in _VARIADIC
            given[name] = (place, *given.get(name, ())) if variadic else place
        for name in self.coins:
            if name in given:
                raise ArgumentError(f"""{self.label}{signature} gets a seeded generator as {name!r}, by
                    coins=. Leave it out.""")
            given[name] = Placeholder("coin")
        missing = [
            each.name
            for each in parameters.values()
            if each.name not in given and each.default is each.empty and each.kind not in _VARIADIC
        ]
        if len(missing) > 1:
            raise ArgumentError(f"""{self.label}{signature} was called without
                {", ".join(map(repr, missing))}.""")
        given |= dict.fromkeys(missing, Placeholder("open"))
        bound = inspect.BoundArguments(signature, given)
        # Defaults are left to the function: some, such as a ufunc's, cannot be passed all at once.
        args, kwargs = bound.args, bound.kwargs
        bound.apply_defaults()
        return Call(self.function, args, kwargs, missing[0] if missing else None, (bound.args, bound.kwargs))


def label_of(function: Callable[..., Any]) -> str:
    """Return a readable name for any callable."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _refuse_unknown(names: Sequence[str], signature: inspect.Signature, label: str) -> None:
    known = signature.parameters
    wrong = [name for name in names if name not in known or known[name].kind in _VARIADIC]
    if wrong:
        raise SettingsError(f"""{label}{signature} has no parameter {wrong[0]!r}. Its parameters are
            {", ".join(known) or "none"}.""")


def _first(function: Any, known: Mapping[str, inspect.Parameter], label: str, coins: Sequence[str]) -> str:
    """Return the first parameter that can be a dataset, after a method's self or cls."""
    taken = (*coins, *(function.keywords if isinstance(function, functools.partial) else ()))
    candidates = [p for p in known.values() if p.kind is not p.VAR_KEYWORD and p.name not in taken]
    if len(candidates) > 1 and candidates[0].name in ("self", "cls"):
        candidates = candidates[1:]
    if not candidates:
        raise SettingsError(f"{label}() takes no argument that could be a dataset.")
    return candidates[0].name


def _refuse_lazy(function: Any, label: str) -> None:
    if not callable(function):
        raise SettingsError(f"""privatize(...) was applied to a {type(function).__name__}, which cannot be
            called. Apply it to a function of a dataset.""")
    inner = function
    while isinstance(inner, functools.partial | staticmethod):
        inner = inner.func if isinstance(inner, functools.partial) else inner.__func__
    for candidate in (inner, getattr(type(inner), "__call__", None)):  # noqa: B004 - its kind matters
        if inspect.iscoroutinefunction(candidate) or inspect.isasyncgenfunction(candidate):
            raise SettingsError(f"""{label} is a coroutine: it returns before its answer exists. Decorate a
                plain function.""")
        if inspect.isgeneratorfunction(candidate):
            raise SettingsError(f"""{label} is a generator: it returns before its answers exist. Return a list
                instead.""")
