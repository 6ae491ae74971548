"""Families of P: several public distributions, under each of which a promise holds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field, replace
from typing import Any

from privatize.data import records
from privatize.data import support as domains
from privatize.display.cards import Card
from privatize.errors import SamplerError
from privatize.samplers.base import Kind, Sampler, Traits, kind, some, support_of, traits_of

_LONGEST = 60  # characters of a member's name that is made of its code


@kind("family")
class Family(Kind):
    """Several P, under each of which a promise holds: `privatize.samplers.any_of` makes it.

    A family has no `draw`: records are drawn from one member or another, never from a mixture of them.

    Attributes
    ----------
    members : tuple of Sampler
        The P, all different, which draw records of one kind.
    names : tuple of str
        What each is called in messages and tables.

    Examples
    --------
    >>> from privatize import samplers
    >>> family = samplers.any_of(samplers.uniform(0, 1), wide=samplers.uniform(-5, 5))
    >>> family
    any_of(uniform(0, 1), wide=uniform(-5, 5))
    >>> len(family), family.names, family.support
    (2, ('uniform(0, 1)', 'wide'), (-5.0, 5.0))
    >>> family.adding(samplers.uniform(0, 9)).without("wide")
    any_of(uniform(0, 1), uniform(0, 9))
    """

    members: tuple[Sampler, ...]
    names: tuple[str, ...] = field(compare=False)
    code: str = field(default="", compare=False)

    @classmethod
    def of(cls, members: Iterable[tuple[str, Any]], code: str = "") -> "Family":
        """Make a family of samplers with their names; an empty name becomes the sampler's code.

        `code` makes the same family, if there is shorter code than that of all members.
        """
        different: list[tuple[str, Any]] = []
        for name, member in members:
            if not any(_same(member, other) for _, other in different):
                different.append((_unused(name or _code(member), different), member))
        if not different:
            raise SamplerError("A family has at least one P: any_of(P1, P2, ...).")
        made = cls(tuple(member for _, member in different), tuple(name for name, _ in different), code)
        made._check()
        return made

    def _check(self) -> None:
        """Refuse members that draw different kinds of records, or use different numbers of them."""
        _ = self.support  # raises if two do not fit together
        drawn = list(map(some, self.members))
        # Two records of a list may have nothing but missing values: what lists draw is compared later.
        check_alike(self, drawn if not any(isinstance(each, list) for each in drawn) else drawn[:1])
        sizes = [traits_of(member).size for member in self.members]
        for at, size in enumerate(sizes):
            if size != sizes[0]:
                raise SamplerError(f"""{self._pair(at)} use different numbers of records: {sizes[0] or "all"}
                    and {size or "all"}. Call .fixed(size=...) on the family.""")

    def _pair(self, at: int) -> str:
        return f"The members {self.names[0]!r} and {self.names[at]!r} of a family"

    @property
    def support(self) -> Any:
        """What the records of all members lie in: between the outermost of their bounds."""
        found = support_of(self.members[0])
        for at, member in enumerate(self.members):
            try:
                found = domains.join([found, support_of(member)], strict=True)
            except ValueError as error:
                raise SamplerError(f"""{self._pair(at)} have supports that do not fit together: {error}. Only
                    bounds may differ. Give both the same columns and the same fixed values.""") from None
        return found

    def parts(self) -> Iterator[Any]:
        """Return the members."""
        yield from self.members

    def own_traits(self) -> Traits:
        """Return its traits, with the number of records that are used."""
        return replace(self.known, immutable=True, size=traits_of(self.members[0]).size)

    def positions(self, n: int) -> Any:
        """Return which of n records are used, if all members use a fixed number of them."""
        return self.members[0].positions(n)  # type: ignore[attr-defined] # only asked if they have it

    def each(self, change: Callable[[Any], Any], more: str = "") -> "Family":
        """Return the family of what a function makes of every member, under the same names.

        `more` is added to the code of the family.
        """
        members = zip(self.names, map(change, self.members), strict=True)
        return Family.of(members, self.code and more and f"{self.code}{more}")

    def __getitem__(self, columns: str | list[str]) -> "Family":
        """Return the family of one column, or of several."""
        return self.each(lambda member: member[columns], f"[{columns!r}]")

    def fixed(self, *, size: int) -> "Family":
        """Return the same family for data that grows, of which `size` records are used."""
        return self.each(lambda member: member.fixed(size=size), f".fixed(size={size})")

    def without(self, *names: str | int) -> "Family":
        """Return the family without some members, by name or by number, from 0."""
        left = dict(zip(self.names, self.members, strict=True))
        for name in names:
            known = self.names[name] if type(name) is int and 0 <= name < len(self) else name
            if known not in left:
                raise SamplerError(f"""The family has no member {name!r} to leave out. Its members are
                    {", ".join(map(repr, left))}.""")
            del left[str(known)]
        return Family.of(left.items())

    def adding(self, *members: Any, **named: Any) -> "Family":
        """Return the family with further members."""
        return Family.of([*self.items(), *flat(members, named)])

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return every member with its name."""
        return iter(zip(self.names, self.members, strict=True))

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[Sampler]:
        return iter(self.members)

    def card(self) -> Card:
        """Return what it contains, as a card."""
        rows = (name if hasattr(member, "change") else f"{name}: {member!r}" for name, member in self.items())
        return Card(f"a family of {len(self)} P", [(str(at), row) for at, row in enumerate(rows)])

    def __str__(self) -> str:
        rows = self.card().rows
        return "\n".join([self.card().title, *(f"  {at:2} {row}" for at, row in rows)])

    def _repr_html_(self) -> str:
        return self.card().html()

    def __repr__(self) -> str:
        if self.code:
            return self.code
        # Names that are no identifiers cannot be written as arguments.
        shown = (f"{n}={m!r}" if n.isidentifier() and n != _code(m) else repr(m) for n, m in self.items())
        return f"any_of({', '.join(shown)})"


def members_of(sampler: Any) -> tuple[Any, ...]:
    """Return every P that a promise is made under: the members of a family, or one P.

    Examples
    --------
    >>> from privatize import samplers
    >>> members_of(samplers.uniform(0, 1))
    (uniform(0, 1),)
    """
    return sampler.members if isinstance(sampler, Family) else (sampler,)


def flat(members: Iterable[Any], named: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Iterate over samplers with their names, if they have some; families are taken apart."""
    for name, member in [*(("", member) for member in members), *named.items()]:
        if not isinstance(member, Family) and not callable(getattr(member, "draw", None)):
            raise SamplerError(f"""A {type(member).__name__} has no draw(n, rng), so it is no sampler. To add
                functions and distributions of SciPy use any_of(family, P), which converts them.""")
        yield from member.items() if isinstance(member, Family) else [(name, member)]


def check_alike(family: Family, drawn: list[Any]) -> None:
    """Refuse members that draw different containers, columns, dtypes or categories."""
    first = records.describe(drawn[0]).to_json()
    for at, other in enumerate(drawn):
        found = records.describe(other).to_json()
        if not records.alike(drawn[0], other) or found != first:
            raise SamplerError(f"""{family._pair(at)} draw records of different kinds: {first} and {found}.
                Have them draw the same container, columns, dtypes and categories.""")


def _same(one: Any, other: Any) -> bool:
    """Tell whether two samplers are the same P; what a user's own class says about that is not asked."""
    return one is other or (isinstance(one, Kind) and type(one) is type(other) and bool(one == other))


def _code(member: Any) -> str:
    text = repr(member)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _unused(name: str, others: list[tuple[str, Any]]) -> str:
    """Return a name that no other member has."""
    known, number, found = {each for each, _ in others}, 2, name
    while found in known:
        found, number = f"{name} ({number})", number + 1
    return found
