"""Encode compiled code: installed code by name and version, the user's own by its file."""

import contextlib
import functools
import hashlib
import sys
import time
import types
from pathlib import Path
from typing import Any

from privatize.identity.encoder import Encoder, encodes
from privatize.identity.library import spelled
from privatize.identity.origin import attribute_of, extension_of, is_named, module_of, name_of, origin

_STARTED = time.time()
_COMPILED = (types.MethodDescriptorType, types.ClassMethodDescriptorType, types.WrapperDescriptorType)


def binary(encoder: Encoder, module: str) -> None:
    """Encode a compiled module of the user's own by its file, and by what can be read from it."""
    found, file = sys.modules.get(module), extension_of(module)
    if found is None or file is None:
        encoder.doubt(f"compiled code of {module!r}, whose file is not known")
        return
    library(encoder, file)
    if not encoder.narrow:
        encoder.met.attributes.add("an attribute by 'compiled code'")
        encoder.met.modules[id(found)] = found


def library(encoder: Encoder, file: str) -> None:
    """Encode a compiled library by its content."""
    about = None
    with contextlib.suppress(OSError):
        about = Path(file).stat()
    # The program may have loaded an earlier build than the file that is there now.
    if about is None or max(about.st_mtime, about.st_ctime) > _STARTED:
        name = Path(file).name
        encoder.doubt(f"the compiled library {name}, which is missing or built after this program started")
    else:
        digest = _digest(file, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
        encoder.text(f"file {digest}")


@functools.lru_cache(maxsize=1024)
def _digest(file: str, *state: int) -> str:
    del state  # it is there for the cache's key
    with Path(file).open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def compiled_function(encoder: Encoder, value: Any) -> bool:
    """Encode a function of a compiled module; tell whether it is one."""
    qualname, made = attribute_of(value, "__qualname__"), module_of(value)
    owner = origin(made)
    if not isinstance(qualname, str):
        return False
    if owner is not None and is_named(value, made, qualname):
        encoder.text(f"function {owner} {spelled(value, owner)}")
        return True
    if owner is None and made and extension_of(made):
        encoder.text(f"function {made}.{qualname}")
        binary(encoder, made)
        return True
    return False


@encodes(types.BuiltinFunctionType, types.MethodWrapperType)
def _builtin(encoder: Encoder, value: Any) -> None:
    owner, module = getattr(value, "__self__", None), module_of(value)
    if module is None and isinstance(owner, types.ModuleType):
        module = name_of(owner)
    source = origin(module or "builtins")
    encoder.met.look_up(value.__name__, source)
    encoder.text(f"builtin {module}.{value.__qualname__} {source}")
    encoder.met.use(source)
    if source is None:
        binary(encoder, module or "")
    if owner is not None and not isinstance(owner, types.ModuleType):
        encoder.encode(owner)


@encodes(*_COMPILED, types.GetSetDescriptorType, types.MemberDescriptorType)
def _descriptor(encoder: Encoder, value: Any) -> None:
    owner = value.__objclass__
    module = module_of(owner)
    encoder.text(f"descriptor {module}.{owner.__qualname__}.{value.__name__}")
    if origin(module) is None and type(value) in _COMPILED:
        binary(encoder, module or "")
