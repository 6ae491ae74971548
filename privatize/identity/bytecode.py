"""Find the names that code reads and writes, and whether it can look up names at run time."""

import dis
import functools
import re
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

Instructions = list[dis.Instruction]


class Code(NamedTuple):
    """What a code object, and the code objects inside it, name.

    Attributes
    ----------
    names : tuple of str
        The globals.
    attributes : tuple of str
        The attributes, the names in literals, and what can be looked up ("anything by 'eval'").
    imports : tuple of (str, int, tuple of str)
        The modules that are imported: name, level, and what is imported from them.
    chains : tuple of (str, tuple of str)
        Names with the attributes that are read from them one after the other: a.b.c. The name is "" where
        the root is a local variable that an import made.
    stores : frozenset of str
        The names and attributes that are assigned to, or could be by a string, as in ``setattr``.
    sets_attributes : bool
        Whether attributes of any object are assigned to.
    """

    names: tuple[str, ...]
    attributes: tuple[str, ...]
    imports: tuple[tuple[str, int, tuple[str, ...]], ...]
    chains: tuple[tuple[str, tuple[str, ...]], ...]
    stores: frozenset[str]
    sets_attributes: bool


def words(text: str) -> frozenset[str]:
    """Split a string of names at its spaces."""
    return frozenset(text.split())


# Code that names these can find objects that it does not name.
LOOKUPS = words("""globals vars dir eval exec __import__ import_module modules __dict__ __globals__
    getmembers getmembers_static get_type_hints reload get_annotations __subclasses__ __type_params__""")
# Ways of looking something up by a name that need not be in the code. If it may be an attribute, all
# attributes of the user's modules are encoded. If it may be anything, the code cannot be encoded. First the
# functions that are called with a name, which may be a literal.
_CALLED = dict.fromkeys(words("getattr hasattr format"), "an attribute")
_CALLED |= dict.fromkeys(words("eval exec globals __import__ import_module modules"), "anything")
_ATTRIBUTE = words("""vars dir __dict__ __getattribute__ getmembers getmembers_static getattr_static
    attrgetter methodcaller Formatter format_map vformat""")
_ANYTHING = words("""__globals__ __builtins__ builtins f_globals f_locals f_back getclosurevars get_objects
    get_referrers spec_from_file_location""")
# The encoding of code leaves out its position in the file, so code must not read that.
_ANYTHING |= words("""co_firstlineno co_filename co_lines co_positions co_consts co_linetable co_lnotab
    f_lineno tb_lineno __firstlineno__ getsource getsourcelines getcomments getframeinfo extract_stack
    extract_tb walk_stack walk_tb""")
_WAYS = dict.fromkeys(_ATTRIBUTE, "an attribute") | dict.fromkeys(_ANYTHING, "anything")
# The same for names that count only if they come from one of the modules below: np.stack is something else.
OF_PYTHON = words("locate resolve_name run_module run_path reload stack trace")
SEARCHING = words("pydoc pkgutil runpy importlib inspect sys")
EVALUATING = words("globals eval exec query sql")  # these read globals that are named in a string
IMPORTERS = ("import_module", "__import__")
CONSTANTS = frozenset(dis.hasconst)

_IDLE = ("CACHE", "PRECALL", "PUSH_NULL", "EXTENDED_ARG", "NOP", "KW_NAMES")
_LOADS = tuple(words("LOAD_FAST LOAD_GLOBAL LOAD_NAME LOAD_DEREF LOAD_CONST LOAD_SMALL_INT LOAD_CLASSDEREF"))
_READS = ("LOAD_ATTR", "LOAD_METHOD")
_STORES = ("STORE_GLOBAL", "STORE_NAME", "STORE_ATTR", "DELETE_GLOBAL", "DELETE_NAME", "DELETE_ATTR")
_STORES_BY_NAME = words("setattr delattr globals vars __dict__ exec eval __setattr__ __builtins__")


def way_by(name: str) -> str:
    """Return what a function of Python's own with this name can look up, or ""."""
    return _CALLED.get(name) or _WAYS.get(name) or ("anything" if name in OF_PYTHON else "")


def instructions_of(code: types.CodeType) -> Instructions:
    """Return the instructions, without the one that stores a class's line number (from Python 3.13 on)."""
    found = list(dis.get_instructions(code))
    after = [*(each.argval for each in found[1:]), None]
    pairs = zip(found, after, strict=True)
    return [each for each, name in pairs if each.opcode not in CONSTANTS or name != "__firstlineno__"]


@functools.lru_cache(maxsize=4096)
def code_of(code: types.CodeType) -> Code:
    """Return what a code object names."""
    found = instructions_of(code)
    constants = [each.argval for each in found if each.opcode in CONSTANTS]
    inner = [code_of(each) for each in constants if isinstance(each, types.CodeType)]
    evaluates = not EVALUATING.isdisjoint(code.co_names)
    # getattr(module, "name"), "{0.name}".format(module) and globals()["name"] name what they read as well.
    literals = _words_in(tuple(constants), everywhere=evaluates)
    evaluated = {f"@{word}" for word in literals} if evaluates else set()
    own = {*code.co_names, *literals, *evaluated, *_looked_up(found, literals)}
    attributes = _merged(own, inner, "attributes")
    by_name = not _STORES_BY_NAME.isdisjoint(code.co_names)
    stores = {each.argval for each in found if each.opname in _STORES} | set(attributes if by_name else ())
    sets = by_name or any("_ATTR" in each.opname and "LOAD" not in each.opname for each in found)
    return Code(
        _merged(_globals(found), inner, "names"),
        attributes,
        _merged(set(_imports(found)), inner, "imports"),
        _merged(set(_chains(found)), inner, "chains"),
        frozenset(_merged(stores, inner, "stores")),
        sets or any(each.sets_attributes for each in inner),
    )


def _merged(own: set[Any], inner: list[Code], field: str) -> tuple[Any, ...]:
    return tuple(sorted(own.union(*(getattr(each, field) for each in inner))))


_WORDS = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_FIELDS = re.compile(r"\{[^{}]*\}|%\([^)]*\)")  # in templates
AT = re.compile(r"@[^\W\d]\w*")  # globals in strings that pandas evaluates


def _words_in(value: Any, *, everywhere: bool = False) -> set[str]:
    """Return the names in a literal such as ``"package.module"`` or ``"{0.limit}"``, or a tuple of them.

    Other strings have no names, unless `everywhere` is true.
    """
    if isinstance(value, tuple | frozenset):
        return set().union(*(_words_in(item, everywhere=everywhere) for item in value))
    if not isinstance(value, str):
        return set()
    found = set(AT.findall(value))
    strings = [value] if everywhere or _WORDS.fullmatch(value) else _FIELDS.findall(value)
    for text in [word for each in strings for word in _WORDS.findall(each)]:
        parts = text.split(".")
        found.update(parts, (".".join(parts[: end + 1]) for end in range(len(parts))))
    return found


def words_in_annotations(annotations: dict[str, Any]) -> set[str]:
    """Return the names in annotations that are strings."""
    strings = [each for each in annotations.values() if isinstance(each, str)]
    return set().union(*(_words_in(each, everywhere=True) for each in strings))


def _globals(found: Instructions) -> set[str]:
    named = ("LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS")
    return {each.argval for each in found if "GLOBAL" in each.opname or each.opname in named}


def _imports(found: Instructions) -> Iterator[tuple[str, int, tuple[str, ...]]]:
    for at, each in enumerate(found):
        if each.opname == "IMPORT_NAME":
            level, wanted = (found[at - 2].argval, found[at - 1].argval) if at >= 2 else (0, ())
            names = wanted if isinstance(wanted, tuple) else ()
            yield each.argval, level if isinstance(level, int) else 0, names
        after = _effective(found[at + 1 :])[:1] if each.argval in IMPORTERS else []
        if after and after[0].opname == "LOAD_CONST" and isinstance(after[0].argval, str):
            yield after[0].argval, 0, ()


def _effective(found: Instructions) -> Instructions:
    return [each for each in found if each.opname not in _IDLE]


def _looked_up(found: Instructions, literals: set[str]) -> Iterator[str]:
    """Yield what can be looked up by a computed name, and how: "anything by 'eval'"."""
    yield from (f"{_WAYS[word]} by {word!r}" for word in literals & _WAYS.keys() if "_" in word)
    for at, each in enumerate(found):
        if way := _way(found, at):
            yield f"{way} by {each.argval!r}"


def _way(found: Instructions, at: int) -> str:
    """Return what an instruction can look up by a computed name, or ""."""
    this, before = found[at], found[at - 1]
    read, name = this.opname in _READS, this.argval
    if not read and this.opname not in ("LOAD_GLOBAL", "LOAD_NAME", "IMPORT_FROM", "IMPORT_NAME"):
        return ""
    if name not in _CALLED:
        return _WAYS.get(name, "")
    if name in ("eval", "exec") and read:  # a method, such as a data frame's: see EVALUATING
        return ""
    if name == "format":  # the method of strings; the function format() reads no attribute
        return _CALLED[name] if read and before.opname != "LOAD_CONST" else ""
    if name == "modules" and read and before.argval != "sys":  # a method, such as a neural network's
        return ""
    return "" if _with_literal(name, _effective(found[at + 1 :])) else _CALLED[name]


def _with_literal(name: str, following: Instructions) -> bool:
    """Tell whether a function is called with a literal; if that is not certain, the name is computed."""
    loads: Instructions = []
    first = following[0]
    if name == "globals" and not first.opname.startswith("CALL"):  # globals()["name"]
        return False
    for each in following[name == "globals" or (name == "modules" and first.argval == "get") :]:
        if each.is_jump_target:  # another branch may give another value
            return False
        if each.opname.startswith(_LOADS):
            loads.append(each)
        elif loads and each.opname in _READS:
            loads[-1] = each
        elif _takes(each, name, len(loads)):
            wanted = loads[name in ("getattr", "hasattr") :]
            return bool(wanted) and _is_literal(name, wanted[0])
        else:
            break
    return False


def _takes(instruction: dis.Instruction, name: str, given: int) -> bool:
    """Tell whether an instruction calls a function with the loaded values, or looks them up in a mapping."""
    if instruction.opname.startswith("CALL"):
        return instruction.arg == given
    subscript = instruction.opname == "BINARY_SUBSCR" or instruction.argrepr == "[]"
    return subscript and given == 1 and name in ("globals", "modules")


def _is_literal(name: str, load: dis.Instruction) -> bool:
    own = (name, load.opname, load.argval) == ("modules", "LOAD_GLOBAL", "__name__")
    return own or load.opname == "LOAD_CONST"


def _chains(found: Instructions) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the names with the attributes that are read from them: see `Code`."""
    imported: set[str] = set()
    root, chain, importing = None, [], False
    for each in found:
        name = each.opname
        if name in _READS:
            chain.append(each.argval)
            continue
        if name == "LOAD_CONST" and root is not None and not chain and isinstance(each.argval, str):
            chain = each.argval.split(".")[:1]  # getattr(module, "name")
        if root is not None and chain:
            yield root, tuple(chain)
        root, chain = _root(each, imported), []
        if name == "IMPORT_FROM":
            yield "", (each.argval,)
        if importing and name.startswith("STORE_"):
            imported.add(each.argval)
        importing = name.startswith("IMPORT_") or (importing and not name.startswith("STORE_"))


def _root(instruction: dis.Instruction, imported: set[str]) -> str | None:
    """Return the name that is loaded: "" for a local variable that an import made, None for others."""
    name = instruction.argval
    if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_CLASSDEREF"):
        return "" if name in imported else str(name)
    local = instruction.opname.startswith("LOAD_FAST") and isinstance(name, str)
    return "" if local and name in imported else None
