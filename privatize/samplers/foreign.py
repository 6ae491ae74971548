"""What users hold: scipy's distributions, functions of their own, samplers of their own."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from privatize.data import records
from privatize.data import support as domains
from privatize.errors import SamplerError
from privatize.samplers.base import Distribution, Frozen, Rng, Sampler, box, inside, name_of

__all__ = ["as_sampler", "from_function"]


def from_function(
    draw: Callable[[int, Rng], Any], support: Any = None, *, independent: bool = False
) -> Distribution:
    """Draw records with a function of your own.

    Parameters
    ----------
    draw : callable
        ``draw(n, rng)`` returns n independent records, with no randomness but `rng`, a
        `numpy.random.Generator`.
    support : optional
        What every drawn record lies in: a pair (low, high) of bounds, a list of fixed values, or a dict of
        these by column. What the function draws outside is brought into it.
    independent : bool
        Whether you vouch for it that the records are independent of each other, of their place and of their
        number. Then sums over records (`privatize.additive`) are calibrated on two records a pair.

    Examples
    --------
    >>> def spenders(n, rng):
    ...     return rng.lognormal(3, 1, n)
    >>> from_function(spenders)
    from_function(spenders)
    """
    if not callable(draw):
        raise SamplerError(f"from_function({draw!r}): draw must be a callable (n, rng) -> n records.")
    if not isinstance(independent, bool):
        raise SamplerError(f"from_function(): independent={independent!r} is not True or False.")
    return _Function(draw, Support.of(support), independent)


@dataclass(frozen=True, repr=False)
class Support:
    """A support that a user gave, checked."""

    kind: str
    inside: tuple[Any, ...]

    @classmethod
    def of(cls, given: Any) -> Support | None:
        """Read what a user wrote; None is none."""
        if given is None or isinstance(given, Support):
            return given
        if isinstance(given, domains.Maybe):
            return cls("maybe", (cls.of(given.inner),))
        if isinstance(given, domains.OneOf):
            if given.unknown not in given.values:
                raise SamplerError(f"support={given!r}: unknown= must be one of the values.")
            return cls("values", (given, *map(_tag, (*given.values, given.unknown))))
        if isinstance(given, dict):
            return cls("columns", tuple((name, cls.of(inner)) for name, inner in given.items()))
        if isinstance(given, list):
            if not given or len(set(map(repr, given))) < len(given):
                what = "they must be different" if given else "there are no values"
                raise SamplerError(f"support={given!r}: {what}.")
            return cls.of(domains.OneOf(tuple(given), given[0]))
        try:
            low, high = given
        except (TypeError, ValueError):
            raise SamplerError(
                f"support={given!r} is not a pair (low, high), a list of values, or a dict of these."
            ) from None
        if all(
            end is None or isinstance(end, tuple | list | dict | domains.OneOf | domains.Maybe)
            for end in given
        ) and not (isinstance(low, list) and isinstance(high, list)):
            return cls("parts", (cls.of(low), cls.of(high)))
        if all(isinstance(end, np.datetime64) for end in given):
            if not low < high:
                raise SamplerError(
                    f"support: the lower bound {low!r} must be below the upper bound {high!r}."
                )
            return cls("moments", (low, high))
        return cls("bounds", tuple(map(Frozen, box("support", low, high, None))))

    @property
    def plain(self) -> Any:
        """It, as samplers have it."""
        if self.kind == "bounds":
            return tuple(end.end for end in self.inside)
        if self.kind == "columns":
            return {name: None if inner is None else inner.plain for name, inner in self.inside}
        if self.kind == "parts":
            return tuple(None if inner is None else inner.plain for inner in self.inside)
        if self.kind == "maybe":
            return domains.Maybe(None if self.inside[0] is None else self.inside[0].plain)
        return self.inside[0] if self.kind == "values" else self.inside

    def __repr__(self) -> str:
        if self.kind == "bounds":
            return f"({', '.join(_end(end) for end in self.inside)})"
        if self.kind == "columns":
            return f"{{{', '.join(f'{name!r}: {inner!r}' for name, inner in self.inside)}}}"
        if self.kind == "maybe":
            return f"Maybe({self.inside[0]!r})"
        if self.kind == "values":
            found = self.inside[0]
            return repr(list(found.values)) if found.unknown == found.values[0] else repr(found)
        return repr(self.inside)


def _tag(value: Any) -> str:
    return type(value).__name__  # 1 == True == 1.0, and they are not the same


def _end(end: Frozen) -> str:
    infinite = not end.shape and np.isinf(end.array)
    return repr(end) if not infinite else ("inf" if end.array > 0 else "-inf")


@dataclass(frozen=True, repr=False)
class _Function(Distribution):
    tag: ClassVar[str] = "function"
    by_itself: ClassVar[bool] = True
    function: Callable[[int, Rng], Any]
    given: Support | None = None
    vouched: bool = False

    def draw(self, n: int, rng: Rng) -> Any:
        return inside(self.function(n, rng), self.support)

    def parameters(self) -> dict[str, Any]:
        return {
            "function": self.function,
            "given": self.given,
        }  # independent=True does not change P

    @property
    def one_by_one(self) -> bool:
        return self.vouched and super().one_by_one

    @property
    def support(self) -> Any:
        return None if self.given is None else self.given.plain

    def __repr__(self) -> str:
        more = "" if self.given is None else f", support={self.given!r}"
        vouched = ", independent=True" if self.vouched else ""
        return f"from_function({name_of(self.function)}{more}{vouched})"


_PLAIN = ("scipy.stats._continuous_distns", "scipy.stats._discrete_distns")
_KNOWN = (*_PLAIN, "scipy.stats._multivariate", "scipy.stats._new_distributions")
_INFRASTRUCTURE = {
    ("scipy.stats._distn_infrastructure", name)
    for name in ("rv_continuous_frozen", "rv_discrete_frozen", "rv_sample")
}
_INSIDE = ("_hpdf", "_hbins", "xk", "pk")  # what a histogram or a table of values keeps
_NUMBER_BY_NUMBER = ("expon_gen", "norm_gen", "uniform_gen")


def of_scipy(distribution: Any) -> bool:
    """Tell whether a distribution is one of SciPy's own, and not of a class of the user's, or patched."""
    for part in (distribution, getattr(distribution, "dist", distribution)):
        kind: Any = type(part)
        names = _names_of(kind)
        if names is None or not names.isdisjoint(getattr(part, "__dict__", ())):
            return False
    return True


@functools.cache
def _names_of(kind: type) -> frozenset[str] | None:
    """Return the names that a class of SciPy's own defines, which none of its objects has of its own.

    None for other classes. One that SciPy made, perhaps of functions of the user's, is not found by its name.
    """
    known = kind.__module__ in _KNOWN or (kind.__module__, kind.__name__) in _INFRASTRUCTURE
    if not known or getattr(sys.modules[kind.__module__], kind.__name__, None) is not kind:
        return None
    return frozenset(dir(kind)) - {"__doc__"}


def as_sampler(value: Any) -> Sampler:
    """Coerce what users hold into a sampler.

    Parameters
    ----------
    value : Sampler, scipy.stats distribution, or callable
        A sampler, a frozen distribution of `scipy.stats`, or a function ``(n, rng)``.

    Examples
    --------
    >>> from scipy import stats
    >>> as_sampler(stats.expon(scale=2))
    scipy.stats.expon(scale=2)
    >>> as_sampler("normal")
    Traceback (most recent call last):
        ...
    privatize.errors.SamplerError: sampler='normal' is not a public distribution. ...
    """
    if is_maker(value):
        raise SamplerError(f"sampler={value.__name__} is not called: write samplers.{value.__name__}(...).")
    if not isinstance(value, type):
        if isinstance(value, Sampler):
            return value
        if callable(getattr(value, "rvs", None)):
            return _Scipy(_frozen(value))
        if callable(getattr(value, "sample", None)) and hasattr(value, "cdf"):
            return _ScipyNew(value)
        if callable(value):
            return from_function(value)
    shown = repr(value) if isinstance(value, str | int | float | type | None) else f"a {type(value).__name__}"
    other = (
        " For columns use samplers.table({...})."
        if isinstance(value, dict)
        else " For fixed values use choice([...])."
        if isinstance(value, list | tuple)
        else " For public records use bootstrap(...)."
        if hasattr(value, "columns") or isinstance(value, np.ndarray)
        else ""
    )
    raise SamplerError(
        f"sampler={shown} is not a public distribution. Use one of privatize.samplers, such as "
        f"samplers.uniform(0, 100), a frozen scipy.stats distribution, or a function "
        f"(n, rng) -> n records.{other}"
    )


def is_maker(value: Any) -> bool:
    """Tell whether a value is one of the functions that make samplers, and not a sampler."""
    module = str(getattr(value, "__module__", ""))
    named = str(getattr(value, "__qualname__", "")).isidentifier()
    return module.startswith("privatize.samplers.") and hasattr(value, "__code__") and named


def _frozen(distribution: Any) -> Any:
    """Freeze a scipy distribution that was passed as it is."""
    if hasattr(distribution, "dist"):
        given = (*distribution.args, *distribution.kwds.values())
        if any(np.ndim(value) for value in given):
            raise SamplerError(
                f"scipy.stats.{distribution.dist.name} with arrays for parameters draws no records that are "
                f"alike. Use scalars, or from_function() for records of several coordinates."
            )
        return distribution
    if not hasattr(distribution, "numargs"):
        return distribution
    if distribution.numargs:
        raise SamplerError(
            f"scipy.stats.{distribution.name} needs its shape parameters {distribution.shapes}: "
            f"pass the frozen distribution, scipy.stats.{distribution.name}(...)."
        )
    return distribution()


@dataclass(frozen=True, repr=False, eq=False)
class _Scipy(Distribution):
    tag: ClassVar[str] = "scipy"
    by_itself: ClassVar[bool] = True
    distribution: Any

    @property
    def one_by_one(self) -> bool:
        return of_scipy(self.distribution) and super().one_by_one

    def draw(self, n: int, rng: Rng) -> Any:
        quick = self._quick
        if quick is not None and self._untouched:
            return quick(n, rng)
        # Multivariate distributions squeeze a single record: draw two, and keep what is asked.
        return records.head(self.distribution.rvs(size=max(n, 2), random_state=rng), n)

    @functools.cached_property
    def _quick(self) -> Callable[[int, Rng], Any] | None:
        """Return the same without SciPy's checks of parameters, which take longer than drawing a thousand.

        None where that is not surely the same. The parameters were checked; if they change, it is not used.
        """
        frozen = self.distribution
        kind: Any = getattr(frozen, "dist", None)
        if not self.one_by_one or not hasattr(kind, "_rvs") or type(kind).__module__ not in _PLAIN:
            return None
        try:
            _, args, kwds = self._seen
            shapes, loc, scale = kind._parse_args(*args, **kwds)
            moved = (loc, scale) != (0, 1)

            def quick(n: int, rng: Rng) -> Any:
                drawn = kind._rvs(*shapes, size=(n,), random_state=rng)
                return drawn * scale + loc if moved else drawn

            for n in (2, 3, 1000):
                ours, its = np.random.default_rng(n), np.random.default_rng(n)
                one, other = frozen.rvs(size=n, random_state=its), quick(n, ours)
                same = type(other) is np.ndarray and one.dtype == other.dtype and np.array_equal(one, other)
                if not same or ours.random() != its.random():
                    return None
        except Exception:  # of another version of SciPy
            return None
        return quick

    @property
    def _untouched(self) -> bool:
        """Whether the distribution is what it was when its parameters were checked."""
        kind, args, kwds = self._seen
        frozen = self.distribution
        same: bool = frozen.dist is kind and frozen.args == args and frozen.kwds == kwds
        return same and self.one_by_one

    @functools.cached_property
    def _seen(self) -> tuple[Any, Any, Any]:
        return self.distribution.dist, self.distribution.args, dict(self.distribution.kwds)

    @property
    def seamless(self) -> bool:
        kind = getattr(self.distribution, "dist", None)
        quick = self._quick is not None and self._untouched
        return quick and type(kind).__name__ in _NUMBER_BY_NUMBER

    def __getstate__(self) -> dict[str, Any]:
        return {"distribution": self.distribution}  # what is quick cannot be pickled, and is made anew

    @property
    def support(self) -> Any:
        ends = getattr(self.distribution, "support", None)
        if ends is None:
            return None
        low, high = ends()
        return Frozen(low).end, Frozen(high).end

    def parameters(self) -> dict[str, Any]:
        frozen = self.distribution
        if not of_scipy(frozen):
            return {"distribution": frozen}
        if not hasattr(frozen, "dist"):
            name = type(frozen).__name__.removesuffix("_frozen")
            if name == "multivariate_normal":
                return {"name": name, "mean": Frozen(frozen.mean), "cov": Frozen(frozen.cov)}
            state = {k: v for k, v in vars(frozen).items() if not k.startswith("_") and k != "random_state"}
            return {"name": name, "state": state}
        given = [(name, Frozen(value)) for name, value in self._facts()[2]]
        inside = [vars(frozen.dist).get(name) for name in _INSIDE]
        kind = type(frozen.dist).__name__.removesuffix("_gen")
        bounds = Frozen(frozen.dist.a), Frozen(frozen.dist.b)
        return {"name": kind, "given": tuple(given), "inside": inside, "bounds": bounds}

    def _identity(self) -> Any:
        return self._facts()

    def _facts(self) -> tuple[Any, ...]:
        """Return what the distribution is: its name and its parameters with defaults filled in."""
        frozen = self.distribution
        if not hasattr(frozen, "dist"):  # a multivariate one keeps its parameters as attributes
            return (_content(frozen),)
        shapes = [s.strip() for s in frozen.dist.shapes.split(",")] if frozen.dist.shapes else []
        given = dict(zip([*shapes, "loc", "scale"], frozen.args, strict=False)) | frozen.kwds
        given = {"loc": 0, "scale": 1} | given
        values = {k: np.asarray(v, dtype=np.float64).tolist() for k, v in given.items()}
        # What a histogram or a table of values keeps beyond its parameters.
        kept = [_content(vars(frozen.dist).get(name)) for name in _INSIDE]
        return type(frozen.dist), frozen.dist.name, tuple(sorted(values.items())), tuple(kept)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Scipy) and self._facts() == other._facts()

    def __hash__(self) -> int:
        frozen = getattr(self.distribution, "dist", self.distribution)
        return hash((type(frozen), getattr(frozen, "name", None)))

    def __repr__(self) -> str:
        frozen = self.distribution
        if not hasattr(frozen, "dist"):
            return f"scipy.stats.{type(frozen).__name__.removesuffix('_frozen').removesuffix('_gen')}(...)"
        shown = [*map(repr, frozen.args), *(f"{k}={v!r}" for k, v in frozen.kwds.items())]
        return f"scipy.stats.{frozen.dist.name}({', '.join(shown)})"


def _content(value: Any) -> Any:
    """Return the parameters inside a multivariate distribution, without its generator."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if isinstance(value, list | tuple):
        return tuple(map(_content, value))
    if hasattr(value, "__dict__") and type(value).__module__.startswith("scipy.stats"):
        inside = {k: v for k, v in vars(value).items() if "random_state" not in k and k != "_dist"}
        return type(value), tuple((k, _content(v)) for k, v in sorted(inside.items()))
    return value


@dataclass(frozen=True, repr=False, eq=False)
class _ScipyNew(Distribution):
    """The distributions that `scipy.stats.make_distribution` and its kin give."""

    tag: ClassVar[str] = "scipy, newer"
    by_itself: ClassVar[bool] = True
    distribution: Any

    @property
    def one_by_one(self) -> bool:
        return of_scipy(self.distribution) and super().one_by_one

    def draw(self, n: int, rng: Rng) -> Any:
        return np.asarray(self.distribution.sample(n, rng=rng))

    @property
    def support(self) -> Any:
        low, high = self.distribution.support()
        return Frozen(low).end, Frozen(high).end

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ScipyNew) and bool(self._identity() == other._identity())

    def parameters(self) -> dict[str, Any]:
        known = getattr(self.distribution, "_original_parameters", None)
        if not of_scipy(self.distribution) or known is None:
            return {"distribution": self.distribution}
        given = {name: Frozen(value) for name, value in known.items()}
        return {"name": type(self.distribution).__name__, "given": given}

    def _identity(self) -> Any:
        with np.printoptions(precision=17, threshold=sys.maxsize, floatmode="unique"):
            return type(self.distribution), repr(self.distribution)

    def __hash__(self) -> int:
        return hash(type(self.distribution))

    def __repr__(self) -> str:
        return f"scipy.stats.{self.distribution!r}"
