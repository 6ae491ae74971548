"""Settings: the one list of options, what each may be, and what of them an estimate depends on."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from privatize.calibration import streams
from privatize.calibration.batching import Batch, check_batch
from privatize.calibration.sensitivity import LARGEST, SMALLEST, PairFunction
from privatize.config.policy import Policy, lenient
from privatize.data import support as domains
from privatize.errors import PolicyError, SettingsError
from privatize.execution.choose import check_timeout, check_workers, executor
from privatize.mechanisms import Laplace, Mechanism, as_mechanism
from privatize.planning.plan import Bound, Plan, plan
from privatize.samplers import as_sampler
from privatize.samplers.base import traits_of

__all__ = ["KeySettings", "Settings", "default_domain", "never_changes"]

_ENVIRONMENT = {"environment": True}  # where an estimate is made and kept, and who watches


@dataclass(frozen=True)
class KeySettings:
    """Settings that cannot change, as one value for the fingerprint, which encodes it once."""

    values: tuple[Any, ...]
    immutable: ClassVar[bool] = True
    tag: ClassVar[str] = "_Asked"  # in the keys of stored estimates


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that `privatize` was told, checked once: its fields are the options.

    See `privatize` for the meaning of each.

    Examples
    --------
    >>> from privatize import samplers
    >>> Settings(mechanism="laplace", epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1)).plan.m
    557
    """

    # The signatures of privatize() and PrivateEstimator repeat these, for editors; a test compares them.
    mechanism: Mechanism = field(default_factory=Laplace)  # or its name
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
    domain: Literal["clip", "as-is"] | None = None  # None if it is not known yet what P is
    min_sensitivity: float | None = None
    seed: int | None = None
    version: str | None = None
    timeout: float | None = None
    workers: Any = field(default=None, metadata=_ENVIRONMENT)
    store: str | os.PathLike[str] | None = field(default="default", metadata=_ENVIRONMENT)
    progress: bool | None = field(default=None, metadata=_ENVIRONMENT)
    budget: Any = field(default=None, metadata=_ENVIRONMENT)
    plan: Plan = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(getattr(self, name)))
        if self.sampler is not None and self.domain is None:
            object.__setattr__(self, "domain", default_domain(self.sampler))
        self._check_together()
        # Infeasible requests are refused here, at decoration.
        object.__setattr__(self, "plan", plan(self.gamma, self.samples, bound=self.bound))
        object.__setattr__(self, "gamma", self.plan.gamma)

    def _check_together(self) -> None:
        """Refuse options that do not go together."""
        check, named = getattr(self.mechanism, "check", None), type(self.mechanism).__name__
        if check is not None:
            check(self.epsilon, self.delta)
        elif self.delta:
            raise SettingsError(
                f"delta={self.delta!r} has no use here: {named} is private with delta=0. Leave it out, or "
                f"use mechanism='gaussian'."
            )
        if self.domain == "clip" and self.sampler is not None and self.support is None:
            raise SettingsError(
                f"domain='clip' needs a bounded P, and {self.sampler!r} has no finite bound that is known. "
                f"Use domain='as-is', or give the sampler a support."
            )
        check_batch(self.batch, pair=self.pair, coins=self.coins, timeout=self.timeout)
        if self.batch is True and hasattr(self.mechanism, "evaluate"):
            raise SettingsError(
                f"batch=True is for functions whose numbers get noise as they are, and {named} asks the "
                f"function in its own way. Pass batch=function, which returns all scores or lattice values "
                f"for a stack of datasets."
            )
        executor(self.workers, self.timeout)  # or refused

    def obey(self, name: str, rules: Policy) -> None:
        """Refuse what the policy does not allow a function of this name."""
        if rules.file is None:  # there is no policy
            return
        problems = rules.problems(self.epsilon, self.delta, self.gamma, budget=True)
        if problems and not lenient.get().active:
            raise PolicyError(f"{name}() breaks the policy in {rules.file}: {'; '.join(problems)}.")

    def _identity(self) -> list[Any]:
        """Return what an estimate depends on: not where it is made and kept, nor who watches."""
        named = [getattr(self, each.name) for each in fields(self) if each.init and not each.metadata]
        return [*named, *([] if self.support_to_clip is None else [self.support]), self.plan]

    def __getstate__(self) -> dict[str, Any]:
        # Executors and clients cannot be shipped, and are of no use in a worker.
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return own | {"workers": None}

    @functools.cached_property
    def support(self) -> Any:
        """P's support, if it bounds anything."""
        return _support(self.sampler)

    @property
    def support_to_clip(self) -> Any:
        """P's support where private records are clipped to it, or None."""
        return self.support if self.domain == "clip" and self.sampler is not None else None

    @functools.cached_property
    def key(self) -> KeySettings | list[Any]:
        """What the gaps depend on of the settings; one value if none of it can change."""
        own = (self.mechanism, self.sampler, self.pair, self.batch, self.coins, self.domain)
        found = (streams.SCHEME, *own, self.seed, self.timeout)
        fixed = never_changes(self.mechanism) and never_changes(self.sampler)
        return KeySettings(found) if fixed and self.pair is None and not callable(self.batch) else list(found)


def never_changes(value: Any) -> bool:
    """Tell whether a mechanism or sampler is one of ours that never change."""
    kind = type(value)
    ours = kind.__module__.startswith("privatize.") and bool(getattr(kind, "immutable", False))
    return ours or traits_of(value).immutable


def default_domain(sampler: Any) -> Literal["clip", "as-is"]:
    """Return what is done to records outside P's support unless the user says otherwise."""
    return "as-is" if _support(as_sampler(sampler)) is None else "clip"


def _support(sampler: Any) -> Any:
    support = getattr(sampler, "support", None)
    return support if domains.bounded(support) else None


# --- what each option may be ------------------------------------------------------------------


def _short(value: Any) -> str:
    """Return a wrong value as a text that is not too long."""
    try:
        text = repr(value)
    except Exception:  # of anybody's class, or an integer of too many digits
        return f"a {type(value).__name__}"
    return text if len(text) < 100 else text[:97] + "..."


def _number(value: Any) -> float:
    try:
        return math.nan if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def _epsilon(value: Any) -> float:
    number = _number(value)
    if not 1e-10 <= number <= 1e5:
        raise SettingsError(
            f"epsilon={value!r} is not a number between 1e-10 and 100000. It is the privacy loss; 1 is "
            f"common."
        )
    return number


def _delta(value: Any) -> float:
    number = _number(value)
    if not 0 <= number < 1:
        raise SettingsError(f"delta={_short(value)} is not in [0, 1).")
    return number


def _floor(value: Any) -> float | None:
    number = None if value is None else _number(value)
    if number is not None and not SMALLEST <= number <= LARGEST:
        raise SettingsError(
            f"min_sensitivity={value!r} is not a number between {SMALLEST:g} and {LARGEST:g}. It is a floor."
        )
    return number


def _names(option: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        several = isinstance(value, str | tuple | list | None)
        if not several or not all(isinstance(name, str) for name in value or ()):
            raise SettingsError(f"{option}={_short(value)} is not the name of a parameter, or several.")
        one = option == "coins" and isinstance(value, str)
        return (value,) if one else tuple(value) if isinstance(value, list) else value

    return check


def _allowed(option: str, rule: str, fits: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not fits(value):
            raise SettingsError(f"{option}={_short(value)} is not {rule}.")
        return value

    return check


def _store(value: Any) -> Any:
    if value is not None and not isinstance(value, str | os.PathLike):
        raise SettingsError(f"store={value!r} is not a path, a URL, 'default' or None.")
    if "\0" in str(value):
        raise SettingsError("store= has a NUL character in it, which no path may have.")
    return value


def _is_budget(value: Any) -> bool:
    able = hasattr(value, "reserve") and hasattr(value, "afford")
    return value is None or (able and not isinstance(value, type))


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "mechanism": as_mechanism,
    "epsilon": _epsilon,
    "sampler": lambda value: None if value is None else as_sampler(value),
    "seed": streams.check_seed,
    "delta": _delta,
    "min_sensitivity": _floor,
    "domain": _allowed(
        "domain",
        "'clip' or 'as-is'",
        lambda value: isinstance(value, str | None) and value in ("clip", "as-is", None),
    ),
    "data": _names("data"),
    "coins": _names("coins"),
    "pair": _allowed(
        "pair",
        "a function (data, position, replacement) -> (value, neighbour_value)",
        lambda value: value is None or callable(value),
    ),
    "version": lambda value: None if value is None else str(value),
    "store": _store,
    "timeout": check_timeout,
    "workers": check_workers,
    "progress": _allowed("progress", "True, False or None", lambda value: isinstance(value, bool | None)),
    "budget": _allowed("budget", "a Budget, or a part of one", _is_budget),
}
