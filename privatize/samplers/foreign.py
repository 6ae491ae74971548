"""Make samplers of what users have: functions, samplers of their own, SciPy's distributions."""

import contextlib
import functools
import itertools
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeGuard

import numpy as np

from privatize.data import records
from privatize.errors import SamplerError
from privatize.samplers.base import Rng, Sampler, Traits, kind, name_of
from privatize.samplers.distribution import Distribution, Supported
from privatize.samplers.families import Family, flat
from privatize.samplers.given import Support, inside, show_support
from privatize.samplers.parameters import Frozen


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
        these by column. Values that the function draws outside are converted to it.
    independent : bool
        Whether you attest that the records are independent of each other, of their place and of their
        number. Then sums over records (`privatize.additive`) are calibrated with two records for each pair.

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


@kind("function", stable=False)
class _Function(Supported):
    function: Callable[[int, Rng], Any]
    given: Support | None = None
    vouched: bool = False  # this name is part of stored keys

    def draw(self, n: int, rng: Rng) -> Any:
        return inside(self.function(n, rng), self.given)

    def parameters(self) -> dict[str, Any]:
        return {"function": self.function, "given": self.given}  # independent=True does not change P

    def own_traits(self) -> Traits:
        return replace(self.known, iid=self.vouched)

    def __repr__(self) -> str:
        attested = ", independent=True" if self.vouched else ""
        return f"from_function({name_of(self.function)}{show_support(self.given)}{attested})"


def any_of(*members: Any, **named: Any) -> Family:
    """Make a family of P: a promise that is made for it holds under each of its members.

    Parameters
    ----------
    *members, **named : sampler
        The members, with names if you like. The same P twice counts once. All draw records of one kind: the
        same container, columns, dtypes and fixed values. Their bounds may differ.

    Examples
    --------
    >>> from privatize import samplers
    >>> any_of(samplers.uniform(0, 1), skewed=samplers.uniform(0, 1).map(np.square, support=(0, 1)))
    any_of(uniform(0, 1), skewed=uniform(0, 1).map(square, support=(0, 1)))
    """
    given = [as_sampler(each) for each in members], {name: as_sampler(each) for name, each in named.items()}
    return Family.of(flat(*given))


def as_sampler(value: Any) -> Any:
    """Convert what users have into a sampler, or into a family of them.

    Parameters
    ----------
    value : Sampler, scipy.stats distribution, callable, Family or list of these
        A sampler, a frozen distribution of `scipy.stats`, or a function ``(n, rng)``. A list of several, or
        what `any_of` returns, is a family of P. One that has a single member is that member.

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
        raise SamplerError(f"sampler={value.__name__} is not called: write {value.__name__}(...).")
    if isinstance(value, list) and any(map(_could_draw, value)):
        value = any_of(*value)
    if isinstance(value, Family):
        return value if len(value) > 1 else value.members[0]
    if not isinstance(value, type):
        if _is_sampler(value):
            return value
        if callable(getattr(value, "rvs", None)):
            return _Scipy(_frozen(value))
        if callable(getattr(value, "sample", None)) and hasattr(value, "cdf"):
            return _ScipyNew(value)
        if callable(value):
            return from_function(value)
    raise _refused(value)


def _refused(value: Any) -> SamplerError:
    """Return the error for what is no sampler, with what to use in its place."""
    shown = repr(value) if isinstance(value, str | int | float | type | None) else f"a {type(value).__name__}"
    hint = " For columns use samplers.table({...})." if isinstance(value, dict) else ""
    if isinstance(value, list | tuple):
        hint = " For fixed values use choice([...]), for a family of P a list of samplers."
    if hasattr(value, "columns") or isinstance(value, np.ndarray):
        hint = " For public records use bootstrap(...)."
    return SamplerError(f"""sampler={shown} is not a public distribution. Use one of privatize.samplers, such
        as samplers.uniform(0, 100), a frozen scipy.stats distribution, or a function (n, rng) -> n
        records.{hint}""")


def _could_draw(value: Any) -> bool:
    """Tell whether an element of a list is meant to be a sampler."""
    return isinstance(value, Family) or _is_sampler(value) or callable(value) or hasattr(value, "rvs")


def _is_sampler(value: Any) -> TypeGuard[Sampler]:
    """Tell whether a value can draw, and read the annotations of the same classes in all versions of Python.

    Before Python 3.14 the check reads them, whereupon a class has them, even if it has none; and the identity
    of P in ledgers contains what its classes have.
    """
    for base in itertools.takewhile(lambda base: "draw" not in vars(base), type(value).__mro__):
        with contextlib.suppress(Exception):  # a name in them may not be defined
            _ = base.__annotations__
    return isinstance(value, Sampler)


def is_function(value: Any) -> bool:
    """Tell whether a value is a function, and no sampler."""
    known = isinstance(value, type) or _is_sampler(value) or hasattr(value, "rvs") or hasattr(value, "sample")
    return callable(value) and not known


def is_maker(value: Any) -> bool:
    """Tell whether a value is a function that makes samplers, as ours do, and not one that draws records."""
    made: Any = None
    with contextlib.suppress(NameError):  # they are computed now, and a name in them may not be defined
        made = getattr(value, "__annotations__", {}).get("return")
    return not isinstance(value, type) and made in (Distribution, "Distribution", Family, "Family")


def _frozen(distribution: Any) -> Any:
    """Freeze a scipy distribution that was passed without parameters."""
    if hasattr(distribution, "dist"):
        given = (*distribution.args, *distribution.kwds.values())
        if any(np.ndim(value) for value in given):
            raise SamplerError(f"""scipy.stats.{distribution.dist.name} with arrays as parameters draws
                records of different distributions. Use scalars, or from_function() for records of several
                coordinates.""")
        return distribution
    if not hasattr(distribution, "numargs"):
        return distribution
    if distribution.numargs:
        raise SamplerError(f"""scipy.stats.{distribution.name} needs its shape parameters
            {distribution.shapes}: pass the frozen distribution, scipy.stats.{distribution.name}(...).""")
    return distribution()


# --- SciPy's distributions --------------------------------------------------------------------


def of_scipy(distribution: Any) -> bool:
    """Tell whether a distribution is SciPy's own: neither of a user's class nor patched."""
    if "scipy.stats" not in sys.modules:
        return False
    for part in (distribution, getattr(distribution, "dist", distribution)):
        kind: Any = type(part)
        names = _names_of(kind)
        if names is None or not names.isdisjoint(getattr(part, "__dict__", ())):
            return False
    return True


@functools.cache
def _names_of(kind: type) -> frozenset[str] | None:
    """Return the names that one of SciPy's own classes defines, or None for any other class.

    An object that has one of these names as its own attribute is patched. SciPy's own classes are found by
    name in a few modules; a class that SciPy makes at run time, perhaps from a user's functions, is not.
    """
    from scipy import stats

    usual = [stats.norm, stats.poisson, stats.multivariate_normal]  # continuous, discrete, of several numbers
    modules = {type(each).__module__ for each in usual}
    if hasattr(stats, "Normal"):  # from SciPy 1.15 on
        modules.add(stats.Normal.__module__)
    table = stats.rv_discrete(values=([0], [1]))
    others = {type(each) for each in (stats.norm(), stats.poisson(1), table, table())}
    known = kind.__module__ in modules and getattr(sys.modules[kind.__module__], kind.__name__, None) is kind
    return frozenset(dir(kind)) - {"__doc__"} if known or kind in others else None


# What a histogram or a table of values has beyond its parameters. Not all of it is public in SciPy.
_INSIDE = ("_hpdf", "_hbins", "xk", "pk")


@kind("scipy", stable=False)
class _Scipy(Distribution):
    draw_version = 2
    distribution: Any

    def own_traits(self) -> Traits:
        """Return its traits: three distributions draw number by number, whatever their parameters are."""
        if not of_scipy(self.distribution):
            return replace(self.known, iid=False)
        from scipy import stats

        numbers = (type(stats.norm), type(stats.expon), type(stats.uniform))
        return replace(self.known, streamable=type(getattr(self.distribution, "dist", None)) in numbers)

    def draw(self, n: int, rng: Rng) -> Any:
        if hasattr(self.distribution, "dist"):
            return self.distribution.rvs(size=n, random_state=rng)
        # Multivariate distributions drop the axis of a single record, so draw two and take the first n.
        return records.head(self.distribution.rvs(size=max(n, 2), random_state=rng), n)

    def _support(self) -> Any:
        ends = getattr(self.distribution, "support", None)
        return None if ends is None else tuple(Frozen(end).end for end in ends())

    def lossless(self) -> bool:
        return False

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
        return {
            "name": type(frozen.dist).__name__.removesuffix("_gen"),
            "given": tuple((name, Frozen(value)) for name, value in self._identity()[2]),
            "inside": [vars(frozen.dist).get(name) for name in _INSIDE],
            "bounds": (Frozen(frozen.dist.a), Frozen(frozen.dist.b)),
        }

    def _identity(self) -> tuple[Any, ...]:
        """Return what the distribution is: its name and its parameters with defaults filled in."""
        frozen = self.distribution
        if not hasattr(frozen, "dist"):  # a multivariate one has its parameters as attributes
            return (_content(frozen),)
        shapes = [s.strip() for s in frozen.dist.shapes.split(",")] if frozen.dist.shapes else []
        given = dict(zip([*shapes, "loc", "scale"], frozen.args, strict=False)) | frozen.kwds
        given = {"loc": 0, "scale": 1} | given
        values = {k: np.asarray(v, dtype=np.float64).tolist() for k, v in given.items()}
        inside = [_content(vars(frozen.dist).get(name)) for name in _INSIDE]
        return type(frozen.dist), frozen.dist.name, tuple(sorted(values.items())), tuple(inside)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Scipy) and self._identity() == other._identity()

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


@kind("scipy, newer", stable=False)
class _ScipyNew(Distribution):
    """A distribution from `scipy.stats.make_distribution`, or one of SciPy's newer classes."""

    distribution: Any

    def own_traits(self) -> Traits:
        return replace(self.known, iid=of_scipy(self.distribution))

    def draw(self, n: int, rng: Rng) -> Any:
        return np.asarray(self.distribution.sample(n, rng=rng))

    def _support(self) -> Any:
        return tuple(Frozen(end).end for end in self.distribution.support())

    def parameters(self) -> dict[str, Any]:
        if not of_scipy(self.distribution):
            return {"distribution": self.distribution}
        names = re.findall(r"(\w+)=", repr(self.distribution))  # every parameter is a property, too
        known = [name for name in names if hasattr(self.distribution, name)]
        given = {name: Frozen(getattr(self.distribution, name)) for name in known}
        return {"name": type(self.distribution).__name__, "given": given}

    def _identity(self) -> Any:
        with np.printoptions(precision=17, threshold=sys.maxsize, floatmode="unique"):
            return type(self.distribution), repr(self.distribution)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ScipyNew) and bool(self._identity() == other._identity())

    def __hash__(self) -> int:
        return hash(type(self.distribution))

    def __repr__(self) -> str:
        return f"scipy.stats.{self.distribution!r}"
