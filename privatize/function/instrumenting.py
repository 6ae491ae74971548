"""Make other people's functions private in their own modules, for a `with` block or for good."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import sys
import types
import warnings
from typing import Any

from privatize.errors import PrivatizeWarning, SettingsError
from privatize.function.private_function import PrivateFunction, privatize
from privatize.identity.library import outside


class Instrumented:
    """What was wrapped, and how to undo it. Made by `instrument`; also a context manager."""

    def __init__(self) -> None:
        self._done: list[tuple[Any, str, Any, bool, str]] = []

    def undo(self) -> None:
        """Put the raw functions back."""
        while self._done:
            owner, name, raw, own, _ = self._done.pop()
            if own:
                setattr(owner, name, raw)
            else:  # it was inherited
                delattr(owner, name)

    def __enter__(self) -> Instrumented:
        return self

    def __exit__(self, *error: object) -> None:
        self.undo()

    def __repr__(self) -> str:
        return f"<instrumented {', '.join(target for *_, target in self._done) or 'nothing'}>"


def instrument(*targets: str, **settings: Any) -> Instrumented:
    """Make functions private in their own modules, from now on, or inside a ``with`` block.

    Whoever reads ``module.function`` then gets the private one. Names that were imported before
    (``from module import function``) keep the raw one, and a warning lists them.

    Parameters
    ----------
    *targets : str
        ``"package.module:function"``.
    **settings
        As for `privatize`.

    Examples
    --------
    >>> import statistics
    >>> from privatize import instrument, samplers
    >>> with instrument("statistics:fmean", epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1)):
    ...     statistics.fmean
    <private fmean(data): Laplace, epsilon=1, gamma=0.1, P=uniform(0, 1)>
    >>> statistics.fmean([1, 2])
    1.5
    """
    if not targets:
        raise SettingsError('instrument() needs targets, such as "package.module:function".')
    decorate = privatize(**settings)
    made = Instrumented()
    try:
        for target in targets:
            owner, name, raw = _find(target)
            own = name in vars(owner)
            private: PrivateFunction[..., Any] = decorate(raw)
            try:
                setattr(owner, name, private)
            except (AttributeError, TypeError) as error:
                raise SettingsError(f"{target!r} cannot be replaced: {error}") from None
            made._done.append((owner, name, raw, own, target))
            _warn_of_others(target, getattr(raw, "__func__", raw), owner)
    except BaseException:
        made.undo()
        raise
    return made


def _find(target: str) -> tuple[Any, str, Any]:
    module, sign, path = target.partition(":") if isinstance(target, str) else ("", "", "")
    if not sign or not path or not module:
        raise SettingsError(f'{target!r} is not "package.module:function".')
    try:
        owner: Any = importlib.import_module(module)
    except Exception as error:  # importing a module may raise anything
        what = f"{type(error).__name__}: {error}"
        raise SettingsError(f"{target!r}: the module cannot be imported: {what}") from None
    *parents, name = path.split(".")
    for parent in parents:
        owner = getattr(owner, parent, None)
    if not callable(getattr(owner, name, None)):
        raise SettingsError(f"{target!r}: there is no function of that name.")
    # From a class without binding: a static method stays one, and a class method is not bound to this class.
    read = inspect.getattr_static if isinstance(owner, type) else getattr
    return owner, name, read(owner, name)


def _warn_of_others(target: str, raw: Any, owner: Any) -> None:
    """Warn of the modules that have imported the raw function before."""
    holders = []
    for name, module in list(sys.modules.items()):
        with contextlib.suppress(Exception):  # a lazy module may raise anything when it is looked at
            if isinstance(module, types.ModuleType) and module is not owner:
                holders += [f"{name}.{key}" for key, value in list(vars(module).items()) if value is raw]
    if holders:
        shown = ", ".join(sorted(holders)[:5])
        more = ", ..." if len(holders) > 5 else ""
        warnings.warn(
            f"{target} is private from now on, but names that were imported before keep the raw function: "
            f"{shown}{more}. Instrument before they are imported.",
            PrivatizeWarning,
            stacklevel=outside(),
        )
