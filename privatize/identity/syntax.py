"""Return the source of a function as JSON: its syntax tree, and the names in it."""

import ast
import functools
import json
import linecache
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from privatize.identity.bytecode import LOOKUPS, code_of, instructions_of, words


def text_of(function: types.FunctionType) -> str:
    """Return the text of the file, or notebook cell, that a function gives as its source."""
    file = function.__code__.co_filename
    linecache.checkcache(file)
    return "".join(linecache.getlines(file, function.__globals__))


@functools.lru_cache(maxsize=32)
def _compiled(file: str, text: str) -> tuple[list[ast.AST], list[types.CodeType]] | None:
    """Return the functions in a source, as nodes of its syntax tree and as compiled code."""
    try:
        module = ast.parse(text)
        code = compile(module, file, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError):
        return None
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    return [node for node in ast.walk(module) if isinstance(node, kinds)], list(_codes(code))


@functools.lru_cache(maxsize=256)
def tree_of(code: types.CodeType, text: str) -> Any:
    """Return the tree of the very function or lambda that code was compiled from, or its bytecode.

    The source is compiled again and compared, because a file may have been edited since it was imported.
    """
    found = _compiled(code.co_filename, text)
    if found is not None and code in found[1]:
        nodes = [node for node in found[0] if _made_by(node, code)]
        if len(nodes) == 1:
            return _syntax(nodes[0])
    return _bytecode(code)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


def _made_by(node: ast.AST, code: types.CodeType) -> bool:
    """Tell whether code was compiled from a node: by its name, its line, and for lambdas its columns."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        return node.name == code.co_name and first == code.co_firstlineno
    if not isinstance(node, ast.Lambda) or code.co_name != "<lambda>":
        return False
    body = node.body
    place = (body.lineno, body.end_lineno, body.col_offset, body.end_col_offset)
    return node.lineno == code.co_firstlineno and place in set(code.co_positions())


def _syntax(node: Any) -> Any:
    """Return a syntax tree as JSON without positions, the same on every version of Python."""
    if isinstance(node, ast.Constant):
        return ["Constant", literal(node.value)]
    if isinstance(node, ast.AST):
        fields = [
            [name, _syntax(value)]
            for name, value in ast.iter_fields(node)
            if value is not None and value != [] and name not in ("ctx", "kind", "type_comment")
        ]
        return [type(node).__name__, *fields]
    return [_syntax(each) for each in node] if isinstance(node, list) else literal(node)


def _bytecode(code: types.CodeType) -> list[Any]:
    """Return code as JSON, with the version of Python that its bytecode is for."""
    inner = [_bytecode(one) if isinstance(one, types.CodeType) else literal(one) for one in code.co_consts]
    shape = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags]
    named = [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars]
    raw = [code.co_code.hex(), code.co_exceptiontable.hex()]
    version = [sys.implementation.name, *sys.version_info[:2]]
    return ["bytecode", version, code.co_name, raw, inner, shape, [list(each) for each in named]]


def literal(value: Any) -> Any:
    """Return a constant as JSON with its type, or raise TypeError."""
    if value is None or value is ... or type(value) is bool:
        return ["constant", repr(value)]
    if type(value) not in _LITERALS:
        raise TypeError(f"a {type(value).__name__} is not a constant")
    return [type(value).__name__, *_LITERALS[type(value)](value)]


_LITERALS: dict[type, Callable[[Any], Iterable[Any]]] = {
    int: lambda x: [str(x) if x.bit_length() < 4096 else hex(x)],
    float: lambda x: [x.hex()],
    complex: lambda x: [x.real.hex(), x.imag.hex()],
    str: lambda x: [x],
    bytes: lambda x: [x.hex()],
    tuple: lambda x: map(literal, x),
    frozenset: lambda x: sorted(map(literal, x), key=json.dumps),
}


_NAME = re.compile(r"[^\W\d]\w*")
# Code that names these can find objects that it does not name.
_LOOKUPS = LOOKUPS | words("locals __builtins__ currentframe _getframe f_globals f_locals f_back")


@functools.lru_cache(maxsize=256)
def named_in(code: types.CodeType) -> tuple[set[str], set[str], list[tuple[str, int]]] | None:
    """Return the globals, attributes and imports that code names; None if it can find more than these."""
    found, every = code_of(code), (code, *_codes(code))
    if any(_LOOKUPS.intersection(each.co_names) for each in every):
        return None
    attributes = names_in(tuple(each.co_consts for each in every)).union(found.attributes)
    steps = [(each.opname, each.argval) for part in every for each in instructions_of(part)]
    reads = steps.count(("LOAD_NAME", "__name__")) + steps.count(("LOAD_GLOBAL", "__name__"))
    noted = steps.count(("STORE_NAME", "__module__"))  # by classes inside the function, which read that name
    names = set(found.names) - ({"__name__"} if reads <= noted else set())
    imported = sorted({(name, level) for name, level, _ in found.imports})
    return names, attributes, imported


def names_in(value: Any) -> set[str]:
    """Return the names in a string, by which ``getattr`` or ``"{0.name}".format`` may look something up."""
    if isinstance(value, tuple | frozenset):
        return set().union(*map(names_in, value))
    return set(_NAME.findall(value)) if isinstance(value, str) and len(value) < 200 else set()
