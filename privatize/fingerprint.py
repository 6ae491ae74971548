"""The identity of a function and its arguments, within this process.

A key is made of the content of everything that is calibrated, so an estimate is never shared by
two different functions, arguments or samplers. Functions and classes of the user's own modules
are keyed by value: code, defaults, closures, and the globals that they name, recursively;
installed ones by name. What cannot be encoded is not remembered: every doubt is a miss.
"""

from __future__ import annotations

import functools
import hashlib
import sys
import sysconfig
import types
import warnings
from collections.abc import Iterator
from typing import Any

from privatize.errors import NotRememberedWarning

__all__ = ["token"]


def token(value: Any, label: str) -> bytes | None:
    """Return a digest of the content of a value, or None where there is no telling.

    Examples
    --------
    >>> token([1, "a"], "f") == token([1, "a"], "f") != token([2, "a"], "f")
    True
    >>> def scaled(factor): return lambda x: factor * x
    >>> token(scaled(1), "f") == token(scaled(2), "f")
    False
    """
    digest = hashlib.sha256()
    try:
        for part in _parts(value, {}):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
    except Exception as error:
        warnings.warn(
            f"The estimate for {label}() will not be remembered, so every call calibrates again: "
            f"what it depends on cannot be encoded ({type(error).__name__}). Keep open files, locks, "
            f"generators and connections out of its arguments, closure and globals.",
            NotRememberedWarning,
            stacklevel=4,
        )
        return None
    return digest.digest()


def _parts(value: Any, seen: dict[int, Any]) -> Iterator[bytes]:
    if id(value) in seen:  # kept alive by `seen`, so the id is still its own
        yield b"again %d" % list(seen).index(id(value))
        return
    kind = type(value)
    if value is None or kind in (bool, int, float, complex, str, bytes):
        yield f"{kind.__name__} {value!r}".encode(errors="surrogatepass")
        return
    seen[id(value)] = value
    yield f"{kind.__module__}.{kind.__qualname__}".encode()
    if kind in (list, tuple):
        yield b"%d" % len(value)
        for item in value:
            yield from _parts(item, seen)
    elif kind is dict:
        yield b"%d" % len(value)
        for key, item in value.items():
            yield from _parts(key, seen)
            yield from _parts(item, seen)
    elif isinstance(value, types.FunctionType):
        yield from _function_parts(value, seen)
    elif isinstance(value, types.MethodType):
        yield from _parts([value.__func__, value.__self__], seen)
    elif isinstance(value, functools.partial):
        yield from _parts([value.func, list(value.args), value.keywords], seen)
    elif isinstance(value, types.CodeType):
        yield value.co_code
        yield repr((value.co_names, value.co_varnames, value.co_freevars, value.co_cellvars)).encode()
        yield repr((value.co_flags, value.co_argcount, value.co_exceptiontable)).encode()
        for constant in value.co_consts:
            yield from _parts(constant, seen)
    elif isinstance(value, frozenset | set):
        yield from sorted(b"".join(_parts(item, {})) for item in value)
    elif isinstance(value, types.ModuleType):
        yield value.__name__.encode()
    elif isinstance(value, type):
        yield f"{value.__module__}.{value.__qualname__}".encode()
        if is_own(value.__module__):
            yield from _parts(list(value.__mro__[1:]), seen)
            skipped = ("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__")
            yield from _parts({k: v for k, v in vars(value).items() if k not in skipped}, seen)
    elif isinstance(value, staticmethod | classmethod):
        yield from _parts(value.__func__, seen)
    elif isinstance(value, property):
        yield from _parts([value.fget, value.fset, value.fdel], seen)
    elif callable(getattr(value, "__wrapped__", None)) and hasattr(value, "settings"):
        yield from _parts([value.__wrapped__, vars(value.settings)], seen)
    elif is_own(kind.__module__) or kind.__module__.startswith("privatize."):
        yield from _parts(kind, seen)
        state = dict(getattr(value, "__dict__", {}))
        for base in kind.__mro__:
            slots = base.__dict__.get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name):
                    state[name] = getattr(value, name)
        if isinstance(value, list | tuple | dict | str | bytes | int | float) or not state:
            yield _pickled(value)
        yield from _parts(state, seen)
    else:
        yield _pickled(value)


def _pickled(value: Any) -> bytes:
    import cloudpickle  # here, since importing it takes longer than most calls need

    return bytes(cloudpickle.dumps(value))


def _function_parts(function: types.FunctionType, seen: dict[int, Any]) -> Iterator[bytes]:
    if not is_own(function.__module__):
        yield f"{function.__module__}.{function.__qualname__}".encode()
        if function.__closure__ is None and "<locals>" not in function.__qualname__:
            return
    yield from _parts(function.__code__, seen)
    yield from _parts([function.__defaults__, function.__kwdefaults__], seen)
    for cell in function.__closure__ or ():
        try:
            yield from _parts(cell.cell_contents, seen)
        except ValueError:  # not filled yet
            yield b"empty"
    names = sorted(set(_names(function.__code__)))
    for name in names:
        if name not in function.__globals__:
            continue
        found = function.__globals__[name]
        yield name.encode()
        yield from _parts(found, seen)
        if isinstance(found, types.ModuleType) and is_own(found.__name__):
            for attribute in names:
                if hasattr(found, attribute):
                    yield from _parts(getattr(found, attribute), seen)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


@functools.cache
def _installed() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")})


@functools.lru_cache(maxsize=4096)
def is_own(module: str | None) -> bool:
    """Tell whether a module is the user's own: neither installed nor part of Python."""
    if module is None or module == "__main__":
        return True
    if module.partition(".")[0] in (
        *sys.builtin_module_names,
        *sys.stdlib_module_names,
        "privatize",
    ):
        return False
    found = sys.modules.get(module)
    file = getattr(found, "__file__", None)
    return file is None or not str(file).startswith(_installed())
