"""Settings: all options, what each may be, and which of them an estimate depends on."""

import functools
import inspect
import math
import numbers
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Literal

from privatize.budgets.sealed import warn_identifiers
from privatize.calibration import streams
from privatize.calibration.evaluators.base import LARGEST, PairFunction
from privatize.calibration.evaluators.batched import Batch, check_batch
from privatize.calibration.fit import Fit
from privatize.calibration.order_statistic import SMALLEST
from privatize.config.policy import Policy, lenient
from privatize.data import support as domains
from privatize.data.units import UNDECLARED, Unit, as_unit
from privatize.display.cards import Card
from privatize.display.figures import promise
from privatize.errors import PolicyError, SettingsError
from privatize.execution.choose import check_timeout, check_workers, executor
from privatize.execution.packaging.pickler import packing
from privatize.identity import library
from privatize.identity.origin import owner_of
from privatize.mechanisms import DEFAULT, Mechanism, as_mechanism
from privatize.mechanisms.base import complete
from privatize.outputs.validity import as_constraints
from privatize.planning.numbers import as_float
from privatize.planning.plan import Bound, Plan, plan
from privatize.samplers import as_sampler
from privatize.samplers.base import traits_of
from privatize.samplers.families import members_of
from privatize.samplers.people import declared_unit
from privatize.samplers.public import bootstraps
from privatize.samplers.tables import table_names

REQUIRED: Any = inspect.Parameter.empty  # the default of options that must be given
# A member of a catalogue is asked with an epsilon and a delta of its own each time; until then it has these.
TRIAL = {"epsilon": 1e-6, "delta": 1e-12}
_ENVIRONMENT = {"environment": True}  # marks options that do not change an estimate


@dataclass(frozen=True)
class KeySettings:
    """Settings that cannot change, as one value for the fingerprint, which encodes it once."""

    values: tuple[Any, ...]
    immutable: ClassVar[bool] = True
    tag: ClassVar[str] = "_Asked"  # in the keys of stored estimates


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options of `privatize`, one field for each, checked once.

    See `privatize` for the meaning of each.

    Examples
    --------
    >>> from privatize import samplers
    >>> Settings(mechanism="laplace", epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1)).plan.m
    557
    """

    # The signatures of privatize() and PrivateEstimator repeat these, for editors; a test compares them.
    mechanism: Mechanism = DEFAULT  # or its name
    epsilon: float
    gamma: float | None = None  # None for a bound that is proven
    sensitivity: float | Callable[[int], float] | None = None  # the user's bound, for all pairs
    sampler: Any = None  # a Sampler; None for that of sealed data
    delta: float = 0.0
    data: str | tuple[str, ...] | None = None
    unit: Any = field(default=UNDECLARED, metadata=_ENVIRONMENT)  # P has its own, which is in its identity
    bound: Bound = "tolerance"
    samples: int | Literal["least", "balanced"] = "balanced"
    pair: PairFunction | None = None
    batch: Batch = False
    coins: tuple[str, ...] = ()
    domain: Literal["clip", "as-is"] | None = None  # None if it is not known yet what P is
    min_sensitivity: float | None = None
    fit: Fit | None = None  # by how much a check of P widens the estimate
    seed: int | None = None
    version: str | None = None
    timeout: float | None = None
    workers: Any = field(default=None, metadata=_ENVIRONMENT)
    store: str | os.PathLike[str] | None = field(default="default", metadata=_ENVIRONMENT)
    progress: bool | None = field(default=None, metadata=_ENVIRONMENT)
    budget: Any = field(default=None, metadata=_ENVIRONMENT)
    constraints: Any = field(default=None, metadata=_ENVIRONMENT)  # a Constraints: noise comes before it
    plan: Plan | None = field(init=False, repr=False)  # None for a bound that is proven

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        own = self.record  # raises if P draws something else
        if own is UNDECLARED and self.sampler is not None:
            warn_identifiers(table_names(self.sampler), "privatize")
        if self.gamma is None:
            self._check_proven()
        if self.sampler is not None and self.domain is None:
            object.__setattr__(self, "domain", "as-is" if self.support is None else "clip")
        self._check_together()
        # Infeasible requests are refused here, at decoration.
        made = None if self.gamma is None else plan(self.gamma, self.samples, bound=self.bound)
        object.__setattr__(self, "plan", made)
        object.__setattr__(self, "gamma", made and made.gamma)

    def _check_proven(self) -> None:
        """Refuse options that are about sampled estimates, where there is a bound for all pairs."""
        unused = [name for name in _SAMPLED if getattr(self, name) != _DEFAULTS[name]]
        if unused:
            raise SettingsError(f"""{unused[0]}={_short(getattr(self, unused[0]))} is about a sensitivity that
                is estimated by sampling, and without gamma there is none. Leave it out, or pass gamma.""")
        if complete(self.mechanism).scaled not in ("auto", "none"):
            raise SettingsError(f"""{self.mechanism!r} learns how to scale each number from sampled pairs, and
                a proven bound is about the plain norm. Leave scaled= out.""")
        if self.sensitivity is not None and any(bootstraps(self.sampler)):
            raise SettingsError(f"""{self.sampler!r} draws from records, and with sensitivity= P only says
                what a record may be. Write its bounds down, as in samplers.uniform(low, high).""")
        if self.sensitivity is None or self.sampler is None or self.domain is not None:
            return
        if self.support is None:
            raise SettingsError(f"""sensitivity= is a bound for all data that is possible, and
                {self.sampler!r} has no finite bounds that say what is. Use a bounded P, to which private
                records are clipped; or domain='as-is', if your bound holds whatever the values are.""")

    def _check_together(self) -> None:
        """Refuse options that do not go together."""
        if self.gamma is not None and self.sensitivity is not None:
            raise SettingsError(f"""gamma={_short(self.gamma)} is for a sensitivity that is estimated by
                sampling, and sensitivity={_short(self.sensitivity)} is a bound for all pairs. Pass one of
                them.""")
        mechanism = complete(self.mechanism)
        mechanism.check(self.epsilon, self.delta)
        several = [name for name in ("pair", "batch") if getattr(self, name)]
        several += ["data"] if isinstance(self.data, tuple) else []
        unit = self.record
        if several and isinstance(unit, Unit):
            raise SettingsError(f"""{several[0]}= has no use where people have several rows each, by
                {unit.name!r}: the function gets one flat frame. Leave it out.""")
        if self.domain == "clip" and self.sampler is not None and self.support is None:
            raise SettingsError(f"""domain='clip' needs a bounded P, and {self.sampler!r} has no finite bound
                that is known. Use domain='as-is', or give the sampler a support.""")
        if self.constraints is not None and mechanism.wrap:
            raise SettingsError(f"""constraints= is for mechanisms that add noise to the numbers of an answer,
                and {mechanism.name} releases something else. Leave it out, and change the answer afterwards,
                which costs nothing.""")
        check_batch(self.batch, pair=self.pair, coins=self.coins, timeout=self.timeout)
        if self.batch is True and mechanism.evaluate:
            raise SettingsError(f"""batch=True is for mechanisms that add noise to the function's own numbers,
                and {mechanism.name} does not. Pass batch=function, which returns all scores or lattice values
                for a stack of datasets.""")
        executor(self.workers, self.timeout)  # raises if they do not go together

    def obey(self, name: str, rules: Policy) -> None:
        """Refuse settings that break the policy, for a function of this name."""
        if rules.file is None:  # there is no policy
            return
        problems = rules.problems(self.epsilon, self.delta, self.gamma or 0.0, budget=True)
        if problems and not lenient.get().active:
            raise PolicyError(f"{name}() breaks the policy in {rules.file}: {'; '.join(problems)}.")

    def card(self, signature: str, words: str, needs_p: bool) -> Card:
        """Return the promise of a private function, as a card; `words` say why it holds for all pairs."""
        clipped = "are clipped to P's support" if self.domain == "clip" else "are taken as they are"
        law = "that of sealed data" if self.sampler is None else repr(self.sampler)
        rows = [
            ("promise", promise(self.epsilon, self.delta, self.gamma or 0.0, words)),
            *([("a record is", self.in_words)] if self.in_words else []),
            ("mechanism", repr(self.mechanism)),
            *([("P", law), ("private records", clipped)] if needs_p else []),
            *([] if self.plan is None else self._cost(self.plan)),
            *([] if self.fit is None else [("estimates are", self.fit.words)]),
            *(
                []
                if self.constraints is None
                else [("answers are", f"made valid by {self.constraints.words}")]
            ),
        ]
        if self.budget is not None:
            rows.append(("budget", repr(self.budget)))
        return Card(f"private {signature}", rows)

    def _cost(self, plan: Plan) -> list[tuple[str, str]]:
        """Return what a calibration takes: of a family, as many calibrations as it has members."""
        many = len(members_of(self.sampler))
        family = f"{many} calibrations of m={plan.m:,} pairs, one for each member: {many * plan.m:,} pairs"
        return [*plan.rows()[:2], *([("the family takes", family)] if many > 1 else [])]

    def _identity(self) -> list[Any]:
        """Return what an estimate depends on: not where it is made or stored, progress, or budget."""
        # A bound and a fit come last: without them the list is what it was before there could be any.
        options = (each.name for each in fields(self) if each.init and not each.metadata)
        named = [getattr(self, name) for name in options if name not in ("sensitivity", "fit")]
        extra = [each for each in (self.support_to_clip, self.sensitivity, self.fit) if each is not None]
        return [*named, *extra, self.plan]

    def __getstate__(self) -> dict[str, Any]:
        # Executors and clients cannot be pickled, and are of no use in a worker, where no answer is noised.
        own = {"workers": None, "mechanism": None if self.default else self.mechanism}
        state = vars(self) | own | ({"constraints": None} if packing() else {})
        state.pop("short", None)  # it has ids, which are those of other objects elsewhere
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"mechanism": state["mechanism"] or DEFAULT})

    @property
    def record(self) -> Any:
        """What a record is: a person by a `Unit`, a row (None), or UNDECLARED."""
        return declared_unit(self.unit, self.sampler, "privatize")

    @property
    def in_words(self) -> str:
        """What a record is, in words, if people have several rows; empty if it is a row."""
        unit = self.record
        return f"a person with all their rows, by {unit.name!r}" if isinstance(unit, Unit) else ""

    @property
    def default(self) -> bool:
        """Whether the mechanism is the default, which nobody has asked for by name."""
        return self.mechanism is DEFAULT

    @property
    def support(self) -> Any:
        """P's support, if it bounds anything."""
        support = getattr(self.sampler, "support", None)
        return support if domains.bounded(support) else None

    @property
    def support_to_clip(self) -> Any:
        """P's support where private records are clipped to it, or None."""
        return self.support if self.domain == "clip" and self.sampler is not None else None

    @functools.cached_property
    def key(self) -> KeySettings | list[Any]:
        """The settings that the gaps depend on; one value if none of them can change."""
        own = (self.mechanism, self.sampler, self.pair, self.batch, self.coins, self.domain)
        found = (streams.SCHEME, *own, self.seed, self.timeout, *(() if self.plan else ("proven",)))
        mechanism = self.own_mechanism and getattr(type(self.mechanism), "immutable", False)
        fixed = mechanism and traits_of(self.sampler).immutable
        return KeySettings(found) if fixed and self.pair is None and not callable(self.batch) else list(found)

    @functools.cached_property
    def short(self) -> tuple[Any, ...] | None:
        """A quick key of all that decides an estimate, with ids of objects in here; None if some can change.

        What `replace` returns has the same one, unless something changed that estimates depend on.
        """
        if type(self.key) is not KeySettings:
            return None
        own = (*self.key.values, self.sensitivity, self.version, self.min_sensitivity, self.store)
        return self.plan, *map(id, own)

    @functools.cached_property
    def own_mechanism(self) -> bool:
        """Whether the mechanism is of one of our own classes."""
        return owner_of(type(self.mechanism)) == library.LIBRARY


# --- what each option may be ------------------------------------------------------------------

_Check = Callable[[str, Any], Any]


def _short(value: Any) -> str:
    """Return a wrong value as a string that is not too long."""
    try:
        text = repr(value)
    except Exception:  # an object of any class, or an integer of too many digits
        return f"a {type(value).__name__}"
    return text if len(text) < 100 else text[:97] + "..."


def _one_of(rule: str, fits: Callable[[Any], bool]) -> _Check:
    def check(name: str, value: Any) -> Any:
        if not fits(value):
            raise SettingsError(f"{name}={_short(value)} is not {rule}.")
        return value

    return check


def _number(rule: str, low: float, high: float) -> _Check:
    def check(name: str, value: Any) -> float:
        number = as_float(value)
        if not low <= number <= high:
            raise SettingsError(f"{name}={_short(value)} is not {rule}.")
        return number

    return check


def _optional(check: _Check) -> _Check:
    return lambda name, value: None if value is None else check(name, value)


def _by(check: Callable[[Any], Any]) -> _Check:
    return lambda _, value: check(value)


def _names(name: str, value: Any) -> Any:
    several = isinstance(value, str | tuple | list | None)
    if not several or not all(isinstance(each, str) for each in value or ()):
        raise SettingsError(f"{name}={_short(value)} is not the name of a parameter, or a list of names.")
    if name == "coins" and isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _is_budget(value: Any) -> bool:
    return hasattr(value, "reserve") and hasattr(value, "afford") and not isinstance(value, type)


def _is_place(value: Any) -> bool:
    return isinstance(value, str | os.PathLike) and "\0" not in str(value)


def _is_bound(value: Any) -> bool:
    return callable(value) or (isinstance(value, numbers.Real) and 0 < as_float(value) < math.inf)


# Options that are about a sampled estimate, and what they are if nobody sets them.
_SAMPLED = ("bound", "samples", "pair", "batch", "min_sensitivity", "fit")
_DEFAULTS = {each.name: each.default for each in fields(Settings)}
_DOMAINS = ("clip", "as-is")
_BOUND = "a finite number > 0, or a function of n. It bounds how far one record can move the answer"
_PAIR = "a function (data, position, replacement) -> (value, neighbour_value)"
_CHECKS: dict[str, _Check] = {
    "mechanism": _by(as_mechanism),
    "epsilon": _number("a number between 1e-10 and 100000. It is the privacy loss; 1 is common", 1e-10, 1e5),
    "sensitivity": _optional(_one_of(_BOUND, _is_bound)),
    "sampler": _optional(_by(as_sampler)),
    "seed": _by(streams.check_seed),
    "delta": _number("in [0, 1)", 0.0, math.nextafter(1, 0)),
    "min_sensitivity": _optional(
        _number(f"a number between {SMALLEST:g} and {LARGEST:g}. It is a floor", SMALLEST, LARGEST)
    ),
    "fit": _optional(_one_of("a Fit, made by check_fit()", lambda value: isinstance(value, Fit))),
    "domain": _optional(
        _one_of("'clip' or 'as-is'", lambda value: isinstance(value, str) and value in _DOMAINS)
    ),
    "data": _names,
    "unit": _by(as_unit),
    "coins": _names,
    "pair": _optional(_one_of(_PAIR, callable)),
    "version": _optional(_by(str)),
    "store": _optional(_one_of("a path without NUL characters, a URL, 'default' or None", _is_place)),
    "timeout": _by(check_timeout),
    "workers": _by(check_workers),
    "progress": _optional(_one_of("True, False or None", lambda value: isinstance(value, bool))),
    "budget": _optional(_one_of("a Budget, or a part of one", _is_budget)),
    "constraints": _optional(_by(as_constraints)),
}


def did_you_mean(name: str, known: Iterable[str], alike: float = 0.3) -> str:
    """Return the question whether a name that is not known is a misspelled one, or nothing.

    Examples
    --------
    >>> did_you_mean("eps", ["delta", "epsilon"]), did_you_mean("xyz", ["delta"])
    (" Did you mean 'epsilon'?", '')
    """
    import difflib  # only here: it takes 2 ms

    close = difflib.get_close_matches(name, sorted(known), 1, alike)
    return f" Did you mean {close[0]!r}?" if close else ""


def check_given(function: None, given: dict[str, Any], unknown: list[str]) -> None:
    """Refuse options that do not exist, and a decorator without options."""
    if unknown:
        hint = did_you_mean(unknown[0], given)
        known = ", ".join(sorted(given))
        raise SettingsError(f"privatize() has no argument {unknown[0]!r}.{hint} It has {known}.")
    if function is not None:
        raise SettingsError("""privatize() takes its settings by keyword, and the function afterwards: write
            @privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100)) above it.""")
    if given["epsilon"] is REQUIRED:
        raise SettingsError("""privatize() needs epsilon=: epsilon, gamma and the sampler are the promise, so
            they have no default. For example privatize(epsilon=1, gamma=0.05,
            sampler=samplers.uniform(0, 100)).""")
