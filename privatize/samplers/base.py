"""What a sampler is, what the library knows about it, and how records are drawn from it."""

import dataclasses
import functools
import inspect
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, dataclass_transform, runtime_checkable

import numpy as np

from privatize.data import records
from privatize.display.signatures import signature_of
from privatize.errors import DataError, SamplerError

Rng = np.random.Generator


@runtime_checkable
class Sampler(Protocol):
    """What a public distribution must be able to do.

    A sampler may also have a ``support`` that every record lies in, which `domain="clip"` converts
    private records to: a pair (low, high) of bounds, a `privatize.samplers.OneOf`, a dict of
    these by column, a tuple of these for aligned containers.
    """

    def draw(self, n: int, rng: np.random.Generator, /) -> Any:
        """Return a dataset of n independent records, using no randomness but `rng`."""
        ...


@dataclasses.dataclass(frozen=True)
class Traits:
    """What the library knows for sure about a sampler. About a user's own class it knows nothing.

    Attributes
    ----------
    immutable : bool
        Whether neither the sampler nor anything that it is made of can change.
    iid : bool
        Whether a draw of two records has the same distribution as two records of a larger draw. A user's
        function may not have this: it may sort, or depend on how many records it draws.
    streamable : bool
        Whether several draws, one after the other, give the same records as one draw of all of them.
    stable : bool
        Whether it always draws the same kind of records, because no function of the user is part of it.
    view : bool
        Whether a ledger counts it as the same P as the sampler that it is made of, as it does some columns.
    independent : bool
        Whether the records of a dataset are independent of each other, and not only exchangeable. What a
        user's class says about this is believed.
    size : int, optional
        How many records of a dataset are used, if that number is the same for datasets of every size.
    """

    immutable: bool = False
    iid: bool = False
    streamable: bool = False
    stable: bool = False
    view: bool = False
    independent: bool = True
    size: int | None = None


_SHARED = ("immutable", "iid", "streamable", "stable", "independent")  # true only if all parts have them


class Kind:
    """What every kind of sampler, and of table column, says about itself.

    Attributes
    ----------
    tag : str
        Its name in stored keys and in ledgers, which does not depend on where its class is defined.
    draw_version : int
        Must be raised when other records are drawn from the same generator: stored estimates are then stale.
    law_version : int
        Must be raised when the distribution itself changes: in a ledger it is then another P.
    """

    known: ClassVar[Traits] = Traits()
    tag: ClassVar[str]
    draw_version: ClassVar[int] = 1
    law_version: ClassVar[int] = 1
    immutable: ClassVar[bool] = False
    made_of: ClassVar[tuple[str, ...]] = ()

    def parameters(self) -> dict[str, Any]:
        """Return what determines the law of this kind, by name."""
        own = dataclasses.fields(self)  # type: ignore[arg-type]
        return {each.name: getattr(self, each.name) for each in own if each.compare}

    def parts(self) -> Iterator[Any]:
        """Return the samplers that it is made of."""
        return (getattr(self, name) for name in self.made_of)

    def own_traits(self) -> Traits:
        """Return the traits that it has if its parts have them too."""
        return self.known

    @property
    def independent(self) -> bool:
        """Whether the records of a dataset are independent of each other, and not only exchangeable."""
        return self.own_traits().independent and all(traits_of(part).independent for part in self.parts())

    def lossless(self) -> bool:
        """Tell whether its repr has all parameters in full, if these are neither functions nor data."""
        return True

    def content(self) -> dict[str, Any]:
        """Return what `save` writes: the code that makes it again."""
        return {"code": code_of(self)}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a JSON file, from which `privatize.samplers.load` makes it again, without running code.

        A P with functions or data of your own in it cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from privatize import samplers
        >>> path = tempfile.mkdtemp() + "/P.json"
        >>> samplers.table(age=samplers.integers(0, 120)).save(path)
        >>> samplers.load(path)
        table(age=integers(0, 120))
        """
        content = {"privatize": "P", "version": 1, **self.content()}
        Path(path).write_text(json.dumps(content) + "\n", encoding="utf-8")


KINDS: set[type[Kind]] = set()
"""The library's own kinds. Only these have traits, since a user's subclass may draw in another way."""

K = TypeVar("K", bound=Kind)


@dataclass_transform(frozen_default=True, field_specifiers=(dataclasses.field,))
def kind(tag: str, *made_of: str, **known: bool) -> Callable[[type[K]], type[K]]:
    """Make a class one of the library's own kinds, and a frozen dataclass.

    Parameters
    ----------
    tag : str
        Its name in stored keys and in ledgers.
    *made_of : str
        The names of the fields that are samplers.
    **known : bool
        Its traits, see `Traits`. Most hold only if its parts have them too. By default it is iid and stable.
    """

    def made(cls: type[K]) -> type[K]:
        cls = dataclasses.dataclass(frozen=True, repr=False)(cls)
        cls.known = Traits(**{"iid": True, "stable": True} | known)
        cls.tag, cls.immutable, cls.made_of = tag, cls.known.immutable, made_of
        # Fields that are not compared follow from the others, so fingerprints leave them out.
        if not all(each.compare for each in dataclasses.fields(cls)):  # type: ignore[arg-type]
            cls._identity = Kind.parameters  # type: ignore[attr-defined]
        KINDS.add(cls)
        return cls

    return made


def traits_of(sampler: Any) -> Traits:
    """Return what the library knows of a sampler, whatever a user's own class claims.

    Examples
    --------
    >>> from privatize import samplers
    >>> traits = traits_of(samplers.uniform(0, 1))
    >>> traits.iid, traits.streamable, traits.stable
    (True, True, True)
    """
    if not isinstance(sampler, Kind):
        return Traits()
    if type(sampler) not in KINDS:
        return Traits(independent=sampler.independent, size=sampler.own_traits().size)
    own, parts = sampler.own_traits(), [traits_of(part) for part in sampler.parts()]
    shared = {name: all(getattr(each, name) for each in (own, *parts)) for name in _SHARED}
    return dataclasses.replace(own, **shared)


# The kinds whose repr `privatize.samplers.load` understands.
_WRITTEN = {"uniform", "integers", "normal", "normal with covariance", "values", "dates", "with missing"}
_WRITTEN |= {"people", "table", "columns", "labelled", "labelled column", "mixture", "blobs"}
_WRITTEN |= {"truncated", "clipped", "perturbed", "change", "fixed size"}


def code_of(sampler: Any) -> str:
    """Return the code that makes a sampler, or refuse one that has functions or data in it."""
    parts = [sampler]
    while parts:
        part = parts.pop()
        if type(part) not in KINDS or part.tag not in _WRITTEN or not part.lossless():
            shown = repr(part) if isinstance(part, Kind) else f"a {type(part).__name__}"
            raise SamplerError(f"""P cannot be saved, because {shown} is a part of it: a file has no functions
                and no data of yours, no local times, and no P that is made of a learned one. Save a P that
                is made of uniform(), integers(), categorical() and the like, and a learned P itself.""")
        parts.extend(part.parts())
    return repr(sampler)


def origin_of(sampler: Any) -> Any:
    """Return the P that a sampler is a view of, or itself."""
    while type(sampler) in KINDS and sampler.known.view:
        (sampler,) = sampler.parts()
    return sampler


def support_of(sampler: Any) -> Any:
    """Return the support of a sampler, or None: a user's class need not have one."""
    return getattr(sampler, "support", None)


def draw(sampler: Sampler, n: int, rng: np.random.Generator) -> Any:
    """Draw n records; if that fails, the error names the sampler."""
    try:
        drawn = sampler.draw(n, rng)
    except (SamplerError, KeyboardInterrupt):
        raise
    except BaseException as error:  # sys.exit() in a sampler is a failure like any other
        raise SamplerError(f"""The sampler {sampler!r} raised {type(error).__name__} when asked for {n}
            records: {str(error) or "no message"}. It is called as draw(n, rng) and returns n
            records.""") from error
    try:
        found = len(drawn) if type(drawn) is np.ndarray and drawn.ndim else records.count(drawn)
    except DataError as error:
        raise SamplerError(f"The sampler {sampler!r} draws no dataset. {error}") from None
    if found != n:
        raise SamplerError(f"The sampler {sampler!r} was asked for {n} records and drew {found}.")
    return drawn


def skips(sampler: Any) -> bool:
    """Tell whether a sampler can pass over records without making them.

    Only our own samplers can: a derived class may draw something else.
    """
    return type(sampler) in KINDS and hasattr(sampler, "skip")


def skip(sampler: Any, n: int, rng: np.random.Generator) -> None:
    """Use a generator as a draw of n records would, to get to what is drawn next."""
    if skips(sampler):
        sampler.skip(n, rng)
    else:
        draw(sampler, n, rng)


def some(sampler: Sampler, n: int = 2) -> Any:
    """Draw a few records, always the same ones, or refuse the sampler."""
    return draw(sampler, n, np.random.default_rng(0))


def name_of(function: Any) -> str:
    """Return a readable name of a callable, the same in every run."""
    if isinstance(function, functools.partial):
        bound = [*map(repr, function.args), *(f"{k}={v!r}" for k, v in function.keywords.items())]
        return f"partial({', '.join([name_of(function.func), *bound])})"
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return str(name or f"{type(function).__qualname__}()").rpartition(".")[2]


def with_rng(function: Callable[..., Any], first: Any, rng: Rng) -> Any:
    """Call a function that takes (value) or (value, rng)."""
    return function(first, rng) if _takes_rng(function) else function(first)


@functools.lru_cache(maxsize=256)
def _takes_rng(function: Any) -> bool:
    try:
        known = signature_of(function).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [p for p in known if p.default is p.empty and p.kind in kinds]
    return len(needed) >= 2 or any(p.name == "rng" for p in known)
