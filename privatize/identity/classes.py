"""Encode classes: installed ones by name and version, the user's own by content."""

import abc
import contextlib
import sys
import types
from typing import Any, cast

from privatize.display.signatures import signature_of
from privatize.identity.accessors import is_own
from privatize.identity.bytecode import words, words_in_annotations
from privatize.identity.compiled import binary
from privatize.identity.encoder import Encoder, Unencodable, encodes
from privatize.identity.graph import COMPUTED, annotations_of
from privatize.identity.library import LIBRARY, spelled
from privatize.identity.origin import attribute_of, is_compiled, is_named, is_static, module_of, owner_of
from privatize.identity.settings import NAMED
from privatize.identity.values import sequence, unordered

# Attributes that Python adds to a class, computes from others, or extends while a program runs.
SKIPPED = words("""__dict__ __weakref__ __firstlineno__ __static_attributes__ __slotnames__
    __annotations_cache__ __classdictcell__ _abc_impl _value2member_map_""")
_MAIN = frozenset({"__module__", "vars", "__dict__"})


def module_name(encoder: Encoder, module: Any) -> Any:
    """Return a module's name; for the main program of a child process too, that is "__main__"."""
    if module != "__mp_main__":
        return module
    encoder.met.later.add((_MAIN, lambda: "__mp_main__"))
    return "__main__"


@encodes(type)
def class_(encoder: Encoder, value: type) -> None:
    """Encode a class."""
    owner = owner_of(value)
    if value not in (object, type):  # which all classes have in common
        encoder.met.classes[id(value)] = value
    if owner is not None and (is_static(value) or is_named(value, module_of(value), value.__qualname__)):
        _installed(encoder, value, owner)
    elif not encoder.seen_before(value):
        _own(encoder, value)


def _installed(encoder: Encoder, value: type, owner: str) -> None:
    met = encoder.met
    met.use(owner)
    if not is_static(value):
        if owner not in (LIBRARY, "python"):
            met.installed[value] = None
        if encoder.narrow and owner != LIBRARY:
            methods = {name: each for name, each in vars(value).items() if type(each) is types.FunctionType}
            own = [f"{value.__qualname__}.{name}" for name, each in methods.items() if is_own(each)]
            met.lookups.update(f"{name} (which was patched)" for name in own)
    met.look_up(value.__name__, owner)
    met.attributes |= NAMED & {value.__name__}
    encoder.text(f"class {owner} {spelled(value, owner)}")
    registered(encoder, value)


def own_attributes(value: type) -> dict[str, Any]:
    """Return the attributes of a class, without those that Python adds."""
    inside = vars(value).copy()
    found = {k: v for k, v in inside.items() if k not in SKIPPED}
    if not inside.keys().isdisjoint(COMPUTED):
        with contextlib.suppress(Exception):  # a name in them may not be defined: then it is the code
            found |= {"__annotations__": value.__annotations__} if value.__annotations__ else {}
            found.pop("__annotate_func__", None)
    return found


def _own(encoder: Encoder, value: type) -> None:
    module = module_of(value) or ""
    encoder.met.owners.add(module)
    state = encoder.note_parts(value, type(value), own_attributes(value))
    encoder.text(f"class {value.__name__} {value.__qualname__}")
    if is_compiled(value):
        binary(encoder, module)
    encoder.encode(type(value))
    sequence(encoder, value.__bases__)
    registered(encoder, value)
    if "__module__" in state:
        state["__module__"] = module_name(encoder, state["__module__"])
    if "__dataclass_fields__" in state and _is_generated(value):
        del state["__doc__"]
    try:
        # Slots are in __slots__ as well; a class that was sent to a worker has attributes in their place.
        encoder.state({k: v for k, v in state.items() if type(v) is not types.MemberDescriptorType})
    except Unencodable as error:
        error.path[0] = f"{value.__qualname__}.{error.path[0]}"
        raise
    if not encoder.narrow:
        scope = attribute_of(sys.modules.get(module), "__dict__") or {}
        for name in sorted(words_in_annotations(annotations_of(value)) & scope.keys()):
            encoder.labelled(name, scope[name])


def registered(encoder: Encoder, value: type) -> None:
    """Encode the classes registered with an abstract class; if that is installed, only the user's own."""
    if "_abc_impl" not in vars(value):
        return
    registry = cast("Any", abc)._get_dump(value)[0]
    installed = owner_of(value) is not None
    kinds = [kind for each in registry if (kind := each()) is not None]
    found = [kind for kind in kinds if not installed or owner_of(kind) is None]
    if found:
        unordered(encoder, found)
        if installed:  # workers do not have the registration
            encoder.met.lookups.add(f"{value.__qualname__}.register")


def _is_generated(value: type) -> bool:
    """Tell whether a dataclass's docstring is the one that Python makes of its signature.

    It contains the reprs of defaults, which may have addresses in them, or sets in any order.
    """
    text = value.__doc__ or ""
    if not text.startswith(f"{value.__name__}("):
        return False
    with contextlib.suppress(Exception):
        return text == value.__name__ + str(signature_of(value)).replace(" -> None", "")
    return False
