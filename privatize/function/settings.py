"""Settings: everything that a private function was told, checked once."""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass, field
from typing import Any, Literal

from privatize.calibration.evaluators.batched import Batch, check_batch
from privatize.calibration.sensitivity import LARGEST, SMALLEST, PairFunction
from privatize.calibration.streams import check_seed
from privatize.data import support as domains
from privatize.errors import SettingsError
from privatize.execution.choose import check_timeout, check_workers, executor
from privatize.mechanisms import Mechanism, as_mechanism
from privatize.mechanisms.base import complete
from privatize.planning.plan import Bound, Plan, plan
from privatize.samplers import as_sampler

__all__ = ["Settings", "default_domain"]

_ENVIRONMENT = ("workers", "store", "progress", "budget", "reuse")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that `privatize` was told, checked once.

    See `privatize` for the meaning of each.

    Examples
    --------
    >>> from privatize import samplers
    >>> Settings(mechanism="laplace", epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1)).plan.m
    557
    """

    mechanism: Mechanism
    epsilon: float
    gamma: float
    sampler: Any = None  # a Sampler; None for that of sealed data
    delta: float = 0.0
    data: str | tuple[str, ...] | None = None
    bound: Bound = "tolerance"
    samples: int | Literal["least", "balanced"] = "balanced"
    pair: PairFunction | None = None
    batch: Batch = False
    coins: tuple[str, ...] = ()
    domain: Literal["clip", "as-is"] | None = "as-is"  # None if it is not known yet what P is
    min_sensitivity: float | None = None
    seed: int | None = None
    version: str | None = None
    timeout: float | None = None
    workers: Any = None
    store: str | os.PathLike[str] | None = "default"
    progress: bool | None = None
    budget: Any = None
    reuse: bool = False
    plan: Plan = field(init=False, repr=False)

    def __post_init__(self) -> None:
        put = functools.partial(object.__setattr__, self)
        put("mechanism", as_mechanism(self.mechanism))
        put("epsilon", _between("epsilon", self.epsilon, 1e-10, 1e5, "It is the privacy loss; 1 is common."))
        if self.sampler is not None:
            put("sampler", as_sampler(self.sampler))
            put("domain", default_domain(self.sampler) if self.domain is None else self.domain)
        put("seed", check_seed(self.seed))
        put("delta", self._checked_delta())
        if self.min_sensitivity is not None:
            floor = _between("min_sensitivity", self.min_sensitivity, SMALLEST, LARGEST, "It is a floor.")
            put("min_sensitivity", floor)
        if not isinstance(self.domain, str | None) or self.domain not in ("clip", "as-is", None):
            raise SettingsError(f"domain={_short(self.domain)} is not 'clip' or 'as-is'.")
        for name in ("data", "coins"):
            given = getattr(self, name)
            if not isinstance(given, str | tuple | list | None) or not all(
                isinstance(n, str) for n in given or ()
            ):
                raise SettingsError(f"{name}={_short(given)} is not the name of a parameter, or several.")
        if self.domain == "clip" and self.sampler is not None and self.support is None:
            raise SettingsError(
                f"domain='clip' needs a bounded P, and {self.sampler!r} has no finite bound that is known. "
                f"Use domain='as-is', or give the sampler a support."
            )
        if self.pair is not None and not callable(self.pair):
            raise SettingsError(
                f"pair={self.pair!r} is not a function "
                f"(data, position, replacement) -> (value, neighbour_value)."
            )
        check_batch(self.batch, pair=self.pair, coins=self.coins, timeout=self.timeout)
        if self.batch is True and complete(self.mechanism).evaluate:
            raise SettingsError(
                f"batch=True is for functions whose numbers get noise as they are, and "
                f"{type(self.mechanism).__name__} asks the function in its own way. Pass batch=function, "
                f"which returns all scores or lattice values for a stack of datasets."
            )
        if self.version is not None:
            put("version", str(self.version))
        if self.store is not None and not isinstance(self.store, str | os.PathLike):
            raise SettingsError(f"store={self.store!r} is not a path, a URL, 'default' or None.")
        if "\0" in str(self.store):
            raise SettingsError("store= has a NUL character in it, which no path may have.")
        put("timeout", check_timeout(self.timeout))
        put("workers", check_workers(self.workers))
        executor(self.workers, self.timeout)  # or refused
        if not isinstance(self.progress, bool | None):
            raise SettingsError(f"progress={_short(self.progress)} is not True, False or None.")
        if not isinstance(self.reuse, bool):
            raise SettingsError(f"reuse={_short(self.reuse)} is not True or False.")
        able = hasattr(self.budget, "reserve") and hasattr(self.budget, "afford")
        if self.budget is not None and (isinstance(self.budget, type) or not able):
            raise SettingsError(f"budget={_short(self.budget)} is not a Budget, or a part of one.")
        # Infeasible requests are refused here, at decoration.
        put("plan", plan(self.gamma, self.samples, bound=self.bound))
        put("gamma", self.plan.gamma)

    def _checked_delta(self) -> float:
        try:
            value = float(self.delta)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        if not 0 <= value < 1:
            raise SettingsError(f"delta={_short(self.delta)} is not in [0, 1).")
        complete(self.mechanism).check(self.epsilon, value)
        return value

    def _identity(self) -> list[Any]:
        """Return what an estimate depends on: not where it is made and kept, nor who watches."""
        return [value for name, value in vars(self).items() if name not in _ENVIRONMENT]

    def __getstate__(self) -> dict[str, Any]:
        # Executors and clients cannot be shipped, and are of no use in a worker.
        return vars(self) | {"workers": None}

    @functools.cached_property
    def support(self) -> Any:
        """P's support, if it bounds anything."""
        return _support(self.sampler)


def _short(value: Any) -> str:
    """Return a wrong value as a text that is not too long."""
    try:
        text = repr(value)
    except Exception:  # of anybody's class, or an integer of too many digits
        return f"a {type(value).__name__}"
    return text if len(text) < 100 else text[:97] + "..."


def _support(sampler: Any) -> Any:
    support = getattr(sampler, "support", None)
    return support if domains.bounded(support) else None


def _between(name: str, value: Any, low: float, high: float, hint: str) -> float:
    try:
        number = math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not low <= number <= high:
        raise SettingsError(f"{name}={value!r} is not a number between {low:g} and {high:g}. {hint}")
    return number


def default_domain(sampler: Any) -> Literal["clip", "as-is"]:
    """Return what is done to records outside P's support unless the user says otherwise."""
    return "as-is" if _support(as_sampler(sampler)) is None else "clip"
