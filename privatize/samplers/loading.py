"""Read a P from a file that `save` wrote. The code in it is parsed and never run."""

import ast
import json
import math
import operator
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from privatize.errors import SamplerError
from privatize.samplers.change import Change
from privatize.samplers.combined import blobs, labelled, mixture
from privatize.samplers.distribution import Distribution
from privatize.samplers.learned import Learned
from privatize.samplers.numbers import integers, normal, uniform
from privatize.samplers.people import people
from privatize.samplers.tables import table
from privatize.samplers.values import boolean, categorical, choice, dates, with_missing

_MAKERS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (uniform, integers, normal, boolean, categorical, choice, dates, with_missing)
}
_MAKERS |= {each.__name__: each for each in (table, labelled, mixture, blobs, people, Change)}
_METHODS = ("truncated", "clip", "fixed", "changed")


def load(path: str | os.PathLike[str]) -> Distribution:
    """Read a P that was written with ``P.save(path)``, learned or not.

    The file is data: only calls of this library's own samplers, with numbers and strings as arguments, are
    understood, and nothing else in it is run.

    Examples
    --------
    >>> import tempfile
    >>> from privatize import samplers
    >>> path = tempfile.mkdtemp() + "/P.json"
    >>> samplers.uniform(0, 100).save(path)
    >>> samplers.load(path)
    uniform(0, 100)
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        version = content["version"] if content["privatize"] == "P" else None
    except (ValueError, KeyError, TypeError):
        version = None
    if version != 1:
        later = " A later version of this library may have written it." if type(version) is int else ""
        raise SamplerError(f"""{os.fspath(path)!r} is not a file that P.save(path) has written, or it was
            changed.{later} Write it again.""")
    if "learned" in content:
        return Learned.of_facts(content["learned"], made_from(content.get("within")))
    return made_from(content.get("code"))


def made_from(code: Any) -> Distribution:
    """Return the sampler that some code makes, without running it.

    Examples
    --------
    >>> made_from("table(age=integers(0, 120))['age']")
    table(age=integers(0, 120))['age']
    >>> made_from("__import__('os').system('true')")
    Traceback (most recent call last):
        ...
    privatize.errors.SamplerError: This is not the code of a P that can be loaded: ...
    """
    try:
        found = _value(ast.parse(code, mode="eval").body)
    except (TypeError, ValueError, SyntaxError, KeyError, RecursionError, MemoryError):
        found = None
    if not isinstance(found, Distribution):
        shown = code if isinstance(code, str) and len(code) < 200 else f"a {type(code).__name__}"
        raise SamplerError(f"""This is not the code of a P that can be loaded: {shown}. Only calls of
            {", ".join(_MAKERS)} with numbers and strings are understood. Make P again, and save it.""")
    return found


def _value(node: ast.expr) -> Any:
    """Return what an expression stands for; raise ValueError if it is anything else than a sampler's code."""
    match node:
        case ast.Call():
            return _called(node)
        case ast.Subscript() if isinstance(parent := _value(node.value), Distribution):
            return parent[_value(node.slice)]
        case ast.List():
            return [_value(each) for each in node.elts]
        case ast.Tuple():
            return tuple(_value(each) for each in node.elts)
        case ast.Dict():
            pairs = zip(node.keys, node.values, strict=True)
            return {_value(key): _value(item) for key, item in pairs if key}
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand)
        case ast.Constant(value=str() | int() | float() | None):
            return node.value
        case ast.Name(id="inf"):
            return math.inf
    raise ValueError(ast.dump(node))


def _called(node: ast.Call) -> Any:
    """Return what one of our samplers, or a method of one, returns."""
    arguments = [_value(each) for each in node.args]
    named = {str(each.arg): _value(each.value) for each in node.keywords if each.arg is not None}
    if len(named) < len(node.keywords):
        raise ValueError("**")
    if isinstance(node.func, ast.Name):
        return _MAKERS[node.func.id](*arguments, **named)
    if isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS:
        inner = _value(node.func.value)
        if isinstance(inner, Distribution):
            return operator.methodcaller(node.func.attr, *arguments, **named)(inner)
    raise ValueError(ast.dump(node))
