"""Settings for an entire program: configure(), and the policy in pyproject.toml."""

import contextlib
import contextvars
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from privatize.errors import PolicyError, SettingsError
from privatize.execution.choose import check_workers

_UNSET: Any = object()
_chosen: dict[str, Any] = {}


def configure(
    *,
    store: str | os.PathLike[str] | None = _UNSET,
    workers: Any = _UNSET,
    progress: bool | None = _UNSET,
    stress: bool = _UNSET,
) -> None:
    """Set once, for this process, what most private functions have in common.

    Parameters
    ----------
    store : str, Path or None
        Where estimates are remembered: a path or ``sqlite:///...``, ``postgresql://...``, or None for
        this process only. If it is not set here, the environment variable ``PRIVATIZE_STORE``
        decides, then the policy; by default it is a file in the user's cache folder.
    workers : int, "inline", "ray", Dask client, executor, or object with map
        Where sampled pairs are evaluated. None: in this process, or on all cores if that
        is much faster.
    progress : bool or None
        Whether calibration shows a bar. None: if it takes more than a second, in a terminal or a notebook.
    stress : bool
        Whether a calibration of 500 pairs or more ends with a stress test, which warns if the estimate hangs
        on an assumption of P. True by default; it evaluates an eighth more pairs.

    Examples
    --------
    >>> configure(store=None)
    """
    if store is not _UNSET and not isinstance(store, str | os.PathLike | None):
        raise SettingsError(f"store={store!r} is not a path, a URL, or None.")
    if progress is not _UNSET and not isinstance(progress, bool | None):
        raise SettingsError(f"progress={progress!r} is not True, False or None.")
    if stress is not _UNSET and not isinstance(stress, bool):
        raise SettingsError(f"stress={stress!r} is not True or False.")
    where = workers if workers is _UNSET else check_workers(workers)
    given = {"store": store, "workers": where, "progress": progress, "stress": stress}
    _chosen.update({name: value for name, value in given.items() if value is not _UNSET})


def configured(name: str, default: Any) -> Any:
    """Return what was configured, or the default."""
    return _chosen.get(name, default)


# --- the policy -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Policy:
    """The table ``[tool.privatize]`` of the nearest pyproject.toml.

    Attributes
    ----------
    max_epsilon, max_delta, max_gamma : float or None
        The most that one private function may have.
    require_budget, require_sealed, require_catalogue : bool
        Whether every release must have a budget, every dataset be sealed, and every sampled answer be of a
        catalogue.
    ledger, store : str or None
        Where budgets and estimates are stored.
    sizes : dict
        Numbers of records, by function, whose estimates ``privatize check`` wants remembered.
    file : Path or None
        Where it was read.
    """

    max_epsilon: float | None = None
    max_delta: float | None = None
    max_gamma: float | None = None
    require_budget: bool = False
    require_sealed: bool = False
    require_catalogue: bool = False
    ledger: str | None = None
    store: str | None = None
    sizes: dict[str, list[int]] = field(default_factory=dict)
    file: Path | None = None

    def problems(self, epsilon: float, delta: float, gamma: float, *, budget: bool) -> list[str]:
        """Return what a private function with this promise breaks."""
        found = []
        for symbol, value in (("epsilon", epsilon), ("delta", delta), ("gamma", gamma)):
            most = getattr(self, f"max_{symbol}")
            if most is not None and value > most:
                found.append(f"{symbol}={value:g} is more than max-{symbol}={most:g}")
        if self.require_budget and not budget:
            found.append("it has no budget, and require-budget is set")
        return found


@dataclass
class Lenient:
    """Active while `privatize check` imports modules: what breaks the policy is then listed, not raised."""

    # Set to False at the end, because threads and tasks that a module starts keep a copy of the context.
    active: bool


lenient: contextvars.ContextVar[Lenient] = contextvars.ContextVar("lenient", default=Lenient(False))  # noqa: B039

_importing: contextvars.ContextVar[list[str] | None] = contextvars.ContextVar("importing", default=None)


@contextlib.contextmanager
def answering_nothing(module: str) -> Iterator[None]:
    """Refuse every answer inside: a command imports a module, and must spend nothing by that."""
    modules = [module]
    token = _importing.set(modules)
    try:
        yield
    finally:
        modules.clear()  # threads and tasks that the module has started keep a copy of the context
        _importing.reset(token)


def check_answering(name: str) -> None:
    """Refuse an answer while a command imports the module that asks for it."""
    modules = _importing.get()
    if modules:
        raise SettingsError(f"""{name}() was asked while a command imported {modules[0]}. Nothing is answered
            then, and nothing was spent. Move the call under if __name__ == "__main__":.""")


_exempt: contextvars.ContextVar[bool] = contextvars.ContextVar("exempt", default=False)


@contextlib.contextmanager
def without_policy() -> Iterator[None]:
    """Read no policy inside, and obey none: only for people who are made up, as those of `privatize demo`."""
    token = _exempt.set(True)
    try:
        yield
    finally:
        _exempt.reset(token)


_read: dict[str, Policy] = {}


def policy() -> Policy:
    """Return the policy of the nearest pyproject.toml, read once for each working folder."""
    if _exempt.get():
        return Policy()
    try:
        here = os.getcwd()  # noqa: PTH109 - runs at every call, and a Path costs ten times as much
    except FileNotFoundError:  # the folder was deleted
        return Policy()
    found = _read.get(here)
    if found is None:
        found = _read[here] = _find(Path(here))
    return found


def _find(start: Path) -> Policy:
    for folder in (start, *start.parents):
        file = folder / "pyproject.toml"
        if not file.is_file():
            continue
        import tomllib  # only here: most programs have no policy to read

        try:
            tools = tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {})
            if not isinstance(tools, dict):
                raise ValueError("[tool] is not a table")
            table = tools.get("privatize")
        except (OSError, ValueError) as error:
            raise PolicyError(f"{file.name} cannot be read, so its policy is not known: {error}") from None
        if table is not None:
            return _checked(table, file)
    return Policy()


def _is_sizes(value: Any) -> bool:
    lists = isinstance(value, dict) and all(isinstance(each, list) for each in value.values())
    return lists and all(type(n) is int and n > 0 for each in value.values() for n in each)


_NUMBER = (lambda value: type(value) in (int, float) and value >= 0, "a number")
_FLAG = (lambda value: isinstance(value, bool), "true or false")
_PLACE = (lambda value: isinstance(value, str) and value != "", "a path or a URL")
_KNOWN: dict[str, tuple[Callable[[Any], bool], str]] = {
    **dict.fromkeys(("max-epsilon", "max-delta", "max-gamma"), _NUMBER),
    **dict.fromkeys(("require-budget", "require-sealed", "require-catalogue"), _FLAG),
    **dict.fromkeys(("ledger", "store"), _PLACE),
    "n": (_is_sizes, 'a table of lists: n = {"module:function" = [1000]}'),
}


def _checked(table: Any, file: Path) -> Policy:
    if not isinstance(table, dict):
        raise PolicyError("[tool.privatize] is not a table.")
    for name, value in table.items():
        if name not in _KNOWN:
            raise PolicyError(f"[tool.privatize] has {name!r}, which is not one of {', '.join(_KNOWN)}.")
        fine, rule = _KNOWN[name]
        if not fine(value):
            raise PolicyError(f"[tool.privatize] {name} = {value!r}: it must be {rule}.")
    rules = {"sizes" if name == "n" else name.replace("-", "_"): value for name, value in table.items()}
    for name in ("ledger", "store"):
        if name in rules:
            rules[name] = _placed(rules[name], file.parent)
    return Policy(**rules, file=file)


def _placed(place: str, folder: Path) -> str:
    """Return a path relative to the policy's file, so that it is the same wherever the program runs."""
    relative = place.removeprefix("sqlite:///")
    if "://" in relative or place == "memory":
        return place
    return str(folder / Path(relative).expanduser())
