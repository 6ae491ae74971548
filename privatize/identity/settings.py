"""Read the settings of the process and of libraries that change what code computes."""

import functools
import gc
import importlib
import locale
import os
import sys
from collections.abc import Callable, Set
from typing import Any

from privatize.identity.bytecode import EVALUATING, OF_PYTHON, words

# Names that read the process or thread that code runs in, which is another one each time.
PROCESS = words("getpid getppid get_ident get_native_id current_thread current_process parent_process")
_ENVIRONMENT = words("environ environb getenv expandvars putenv")


def _decimal() -> str:
    context = importlib.import_module("decimal").getcontext().copy()
    context.clear_flags()  # they change while a program runs
    return repr(context)


def _locale() -> str:
    return repr([locale.setlocale(each) for each in (locale.LC_NUMERIC, locale.LC_COLLATE, locale.LC_TIME)])


def _printing() -> str:
    options = sys.modules["numpy"].get_printoptions()
    return repr(sorted((name, repr(value)) for name, value in options.items()))


def _pandas(name: str) -> Any:
    return getattr(sys.modules.get("pandas._config.config"), name, None)


_SETTINGS: dict[str, Callable[[], object]] = {
    "decimal Decimal getcontext localcontext": _decimal,
    "locale strftime strptime atof localeconv strcoll strxfrm": _locale,
    "RecursionError getrecursionlimit": sys.getrecursionlimit,
    "getswitchinterval": sys.getswitchinterval,
    "get_int_max_str_digits": sys.get_int_max_str_digits,
    "getdefaulttimeout": lambda: importlib.import_module("socket").getdefaulttimeout(),
    "getcwd": os.getcwd,
    "isenabled get_threshold": lambda: (gc.isenabled(), gc.get_threshold()),
    "flags": lambda: (sys.flags.optimize, sys.flags.dev_mode, sys.flags.utf8_mode),
    "str repr array2string array_str array_repr get_printoptions": _printing,
    "get_option options": lambda: _pandas("_global_config"),
}
_READERS = [(frozenset(names.split()), read) for names, read in _SETTINGS.items()]

CONFIGURED: dict[str, Callable[[Any], str]] = {
    "sklearn": lambda sklearn: repr(sorted(sklearn.get_config().items())),
    "torch": lambda torch: f"{torch.get_default_dtype()} {torch.is_grad_enabled()}",
}
"""Libraries with settings that change what their functions return."""

NAMED = (EVALUATING | OF_PYTHON | PROCESS | _ENVIRONMENT | {"modules", "__subclasses__"}).union(
    *(names for names, _ in _READERS)
)
"""Names in code that can read more of the process than what a function refers to."""


def settings_for(names: Set[str], libraries: Set[str]) -> list[Any]:
    """Return the settings that code with these names, and of these libraries, can read."""
    found: list[Any] = [repr(read()) for readers, read in _READERS if readers & names]
    if _ENVIRONMENT & names:  # only variables whose names are in the code
        found.append({name: os.environ[name] for name in sorted(names) if name in os.environ})
    for library, read in CONFIGURED.items():
        if library in libraries and library in sys.modules:
            found.append([library, read(sys.modules[library])])
    return found


@functools.cache
def _defaults(group: str) -> dict[str, Any]:
    """Return the default values of the options of pandas in a group."""
    options = _pandas("_global_config").get(group, {})
    return {name: _pandas("_registered_options")[f"{group}.{name}"].defval for name in options}


def pandas_options() -> str:
    """Return the options of pandas that change what is computed and do not have their default values."""
    current, known = _pandas("_global_config"), _pandas("_registered_options")
    if not known:
        return ""
    changed = [
        f"{group}.{name}={value!r}"
        for group in ("mode", "compute", "future")
        if current.get(group) != _defaults(group)  # quicker; also if somebody has added an option
        for name, value in current.get(group, {}).items()
        if value != known[f"{group}.{name}"].defval
    ]
    return ", ".join(sorted(changed))
