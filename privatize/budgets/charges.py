"""Charges: what one release asks of a budget, and the rules by which they add up."""

import itertools
import math
import re
import unicodedata
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from privatize.errors import LedgerError, SettingsError
from privatize.planning.bounds import exact
from privatize.planning.composition import NOTHING, Cost
from privatize.storage.database import storable

STRENGTHS = ("plain", "sampled")
PURPOSES = ("answer", "declaration", "learning", "check", "catalogue")
NEIGHBOURS = ("replace", "add or remove")
COMPARABLE = "P1:"  # prefix of digests of P that are the same in every process and version
_LONGEST = 255


def check_text(what: str, text: Any) -> str:
    """Return a name that every database can store; refuse any other."""
    if not isinstance(text, str) or not 0 < len(text) <= _LONGEST or storable(text) != text:
        shown = ascii(text) if isinstance(text, str) else f"a {type(text).__name__}"
        raise SettingsError(f"""{what} {shown if len(shown) < 80 else shown[:70] + "..."} is not a name: names
            are strings of 1 to {_LONGEST} characters that can be written as UTF-8, without NUL. Choose
            another.""")
    return text


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What one release asks of a budget.

    Attributes
    ----------
    function : str
        Name of the function.
    key : str
        The estimate's fingerprint, or "" if it has none.
    dataset : str
        Name and version of declared (sealed) data, or "".
    people : tuple of str
        Names of the data without versions, which say who the charge is about.
    n : int
        Number of records.
    mechanism, kind : str
        The mechanism, and its parameters for tight composition.
    epsilon, delta, gamma : float
        The promise.
    average_gamma : float or None
        Bound on the share of failing pairs, on average over calibrations; None if it is not less than γ.
    looks : tuple
        For each plan that was read from the estimate's gaps, the γ that was asked for and the γ that holds
        now: reading a further plan makes the γ of earlier plans larger.
    strength : {"sampled", "plain"}
        Whether the promise holds for all pairs except a share γ of those under P, or for all pairs.
    declared : tuple of str
        Digests of every P that the promise holds under; the function's P is a projection of each. Empty
        for "plain".
    described : str
        P in words.
    lossless : bool
        Whether the words have all parameters of P.
    columns : tuple of str
        Names of P's columns.
    values : tuple of frozenset
        The values of each of P's columns that has fixed ones, as strings.
    neighbours, unit : str
        What neighbours are, and what a record is.
    purpose : {"answer", "declaration", "learning", "check", "catalogue"}
        What the charge is for. That of a catalogue has its γ alone: its answers cost ε and δ.
    partition, part : str
        The part that the charge is about, for parallel composition; empty if there is none.
    who : str
        User and host, if the budget records them.
    """

    function: str
    key: str
    dataset: str
    n: int
    mechanism: str
    kind: str
    epsilon: float
    delta: float
    gamma: float
    average_gamma: float | None = None
    looks: tuple[tuple[float, float], ...] = ()
    people: tuple[str, ...] = ()
    strength: str = "sampled"
    declared: tuple[str, ...] = ()
    described: str = ""
    lossless: bool = False
    columns: tuple[str, ...] = ()
    values: tuple[frozenset[str], ...] = ()
    neighbours: str = "replace"
    unit: str = "record"
    purpose: str = "answer"
    partition: str = ""
    part: str = ""
    who: str = ""

    def __post_init__(self) -> None:
        self._check_amounts()
        known = (self.strength in STRENGTHS, self.purpose in PURPOSES, self.neighbours in NEIGHBOURS)
        if not all(known) or not self.unit:
            raise SettingsError(f"""A charge with strength={self.strength!r}, purpose={self.purpose!r},
                neighbours={self.neighbours!r}, unit={self.unit!r} is not known.""")
        if self.strength == "plain" and (self.declared or self.gamma or self.looks):
            raise SettingsError("A 'plain' charge holds for all pairs: it has gamma=0, and no P.")
        if self.purpose == "catalogue" and (self.epsilon or self.delta or not self.dataset):
            raise SettingsError(f"""The catalogue {self.function!r} is charged epsilon={self.epsilon!r},
                delta={self.delta!r} about {self.dataset or "unsealed data"}: declaring one costs gamma alone,
                and is about sealed data.""")

    def _check_amounts(self) -> None:
        numbers = (self.epsilon, self.delta, self.gamma, *(x for look in self.looks for x in look))
        average = 0.0 if self.average_gamma is None else self.average_gamma
        if not all(0 <= x < math.inf for x in numbers) or not 0 <= average <= self.gamma or self.n < 0:
            raise SettingsError(f"""A charge of epsilon={self.epsilon!r}, delta={self.delta!r},
                gamma={self.gamma!r}, average_gamma={self.average_gamma!r}, n={self.n!r}: amounts are finite
                and not below zero, and the average is not above gamma.""")

    @property
    def composed(self) -> bool:
        """Whether its kind is counted: what costs nothing need not be, but a catalogue changes the rule."""
        return bool(self.epsilon or self.delta) or self.purpose == "catalogue"

    @property
    def subjects(self) -> tuple[str, ...]:
        """Who the charge is about; ("",) for data without a name."""
        return self.people or (self.dataset,)


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """What was learned for a charge, and what it is remembered under.

    Attributes
    ----------
    dataset : str
        Name and version of the sealed data.
    n : int
        Number of records.
    within : str
        The digest of the P that was learned within.
    settings : str
        A digest of what was asked.
    content : str
        What was learned, as JSON.
    """

    dataset: str
    n: int
    within: str
    settings: str
    content: str = ""

    @property
    def key(self) -> tuple[str, int, str, str]:
        """What it is remembered under."""
        return self.dataset, self.n, self.within, self.settings


@dataclass
class Totals:
    """What was spent in one part of one partition of a budget, or outside of all partitions: ("", "")."""

    cost: Cost = NOTHING
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def catalogues(self) -> dict[str, int]:
        """The kinds of catalogues among its counts: these are no answers, and change how answers add up."""
        return {kind: count for kind, count in self.counts.items() if kind.startswith("catalogue ")}


@dataclass(frozen=True)
class Person:
    """The part that people of one name are in, and the P that all sampled answers about them hold under.

    `declared` is None before the first sampled answer, and empty if there is no such P, or none is known.
    The name "" stands for all data without a name.
    """

    partition: str
    part: str
    declared: tuple[str, ...] | None = None
    described: str = ""

    @property
    def comparable(self) -> list[bool]:
        """For each P, whether its digest is the same in every process and version."""
        return [digest.startswith(COMPARABLE) for digest in self.declared or ()]


@dataclass
class Book:
    """What was charged to one budget, and the rules by which a charge is added. It uses no database.

    Parameters
    ----------
    name : str
        Name of the budget, for errors.
    totals : dict
        `Totals`, by partition and part.
    gammas : dict
        What was charged of γ and of its average, by dataset and estimate.
    people : dict
        `Person`, by name.
    """

    name: str
    totals: dict[tuple[str, str], Totals] = field(default_factory=dict)
    gammas: dict[tuple[str, str], Cost] = field(default_factory=dict)
    people: dict[str, Person] = field(default_factory=dict)

    def add(self, charge: Charge, written: Cost | None = None) -> Cost:
        """Add a charge and return what it costs; refuse one that does not add up with earlier charges.

        Parameters
        ----------
        charge : Charge
            What is asked for.
        written : Cost, optional
            For a charge that was made under earlier rules: its cost in the ledger, which counts if it is
            enough.
        """
        if charge.purpose == "declaration":
            return self._declare_again(charge)
        if written is None:
            self._check(charge)
        due = self._due(charge, written)
        self._place(charge, checked=written is None)
        where = (charge.partition, charge.part)
        before = self.totals.get(where, Totals())
        counts = before.counts
        if charge.composed or written is not None:
            counts = counts | {charge.kind: counts.get(charge.kind, 0) + 1}
        self.totals[where] = Totals(before.cost + due, counts)
        return due

    def _check(self, charge: Charge) -> None:
        if charge.strength == "sampled" and not charge.declared:
            raise SettingsError(f"{charge.function}() has no P, so its answer promises nothing.")
        if charge.partition and not charge.dataset:
            raise SettingsError(f"""The part {charge.part!r} of {charge.partition!r} needs data with a name:
                the parts of a partition are separate datasets, fixed beforehand, which a replaced record
                cannot leave (sites, years). Seal each: seal(data, name=...). To group by an attribute, use
                one function that returns all groups.""")

    def _due(self, charge: Charge, written: Cost | None) -> Cost:
        """Return what a charge costs: γ only once for the same estimate on the same declared dataset."""
        cost = Cost.of(charge.epsilon, charge.delta, charge.gamma)
        where = (charge.dataset, charge.key)
        known = self.gammas.get(where, NOTHING) if all(where) else NOTHING
        due = written
        if due is None:
            gamma, average = _gamma_now(charge, cost.gamma, known.gamma)
            gamma, average = max(gamma, known.gamma), max(average, known.average)
            due = Cost(cost.epsilon, cost.delta, gamma - known.gamma, average - known.average)
        elif known.gamma + due.gamma < cost.gamma or (due.epsilon, due.delta) != (cost.epsilon, cost.delta):
            raise LedgerError("it was charged less than it costs")
        if all(where) and (due.gamma or due.average):
            self.gammas[where] = Cost(gamma=known.gamma + due.gamma, average=known.average + due.average)
        return due

    def _place(self, charge: Charge, *, checked: bool) -> None:
        """Refuse a second P for the same people, and people in two parts of a partition."""
        where = (charge.partition, charge.part)
        if checked and charge.strength == "plain":
            self._check_new_partition(charge)
        for name in charge.subjects:  # all versions are about the same people
            known = self.people.get(name, Person(*where))
            if (known.partition, known.part) != where and checked:
                raise SettingsError(f"""The data {name} has been used in the budget {self.name!r}
                    {_where(known.partition, known.part)}, and now {_where(*where)}. A dataset is in one part
                    of a partition, fixed beforehand, or in none: then a replaced record cannot move to
                    another part, and the largest part counts. To group by an attribute, use one function that
                    returns all groups.""")
            if charge.strength == "sampled":
                known = self._under(name, known, charge, checked)
            self.people[name] = known
        if checked and charge.strength == "sampled":
            self._check_parts(charge)

    def _under(self, name: str, known: Person, charge: Charge, checked: bool) -> Person:
        """Return people with the P that all answers about them hold under."""
        if known.declared is None:
            return replace(known, declared=charge.declared, described=charge.described)
        common = tuple(digest for digest in known.declared if digest in charge.declared)
        if common or not name or not checked:  # unnamed data cannot be checked; the total says so
            return replace(known, declared=common, described=_in_common(known, charge, common))
        if not known.declared:
            raise SettingsError(f"""The budget {self.name!r} has answers about {name} under several P, or
                under a P that was not recorded ({known.described}); an earlier version allowed that. No P is
                known to hold for all of them, so nothing can be added. Open another budget for further
                answers.""")
        again = (
            ""
            if any(known.comparable)
            else f" The ledger has the first P under a name that cannot be compared (from an earlier version "
            f"of this library, from another Python, or for one object only). If the two are the same P, "
            f"declare that: budget.declare_again({name}, P)."
        )
        families = max(len(known.declared), len(charge.declared)) > 1
        member = (
            " Of families of P, some member must be in all of them, and here none is." if families else ""
        )
        same = " (another one with the same words)" if charge.described == known.described else ""
        raise SettingsError(f"""The budget {self.name!r} has answers about {name} under P={known.described},
            and this one has P={charge.described}{same}. Promises about the same people add up only with
            respect to one P, whatever the version of the data: use the first P, or its columns P[...]. A
            second budget for the same people would hide what they lose together.{member}{again}""")

    def _check_new_partition(self, charge: Charge) -> None:
        """Refuse plain answers about parts if P may have a column for them: a ledger has no columns of P."""
        people = self.people.values()
        known = charge.partition in {"", *(person.partition for person in people)}
        if not known and any(person.declared is not None for person in people):
            raise SettingsError(f"""The budget {self.name!r} has sampled answers, and {charge.function}() is
                the first one about a part of {charge.partition!r}. Under P a replaced record may change its
                part, within a part it may not, and the ledger does not know whether P has a column for the
                part. Open another budget for the parts, or, in a new budget, ask about a part before the
                first sampled answer: then the columns of P are checked.""")

    def _check_parts(self, charge: Charge) -> None:
        """Refuse answers about parts together with others, unless all are about one distribution of pairs."""
        sampled = [person for person in self.people.values() if person.declared is not None]
        places = {person.partition for person in sampled}
        # Each part of one partition may have its own P. Plain answers hold for all pairs within their parts,
        # so a record under P must not be able to leave those either.
        others = {person.partition for person in self.people.values()} - {""}
        others -= places if len(places) == 1 else set()
        if not others:
            return
        common = set.intersection(*(set(person.declared or ()) for person in sampled))
        partitions = sorted(places | others)
        shown = " and ".join(f"about the parts of {p!r}" if p else "outside of them" for p in partitions)
        remedy = "Open another budget for one of them: each promise then holds by itself."
        if len(places) > 1 and not common:
            raise SettingsError(f"""The budget {self.name!r} would have answers {shown}, and not all of them
                under one P (this one has P={charge.described}). They add up only if all of them are under the
                same P: a record that is replaced within a part must be distributed as one that is replaced in
                all of the data. {remedy}""")
        self._check_columns(charge, sorted(others), shown, remedy)

    def _check_columns(self, charge: Charge, partitions: list[str], shown: str, remedy: str) -> None:
        """Refuse a P under which a replaced record could move to another part."""
        both = f"The budget {self.name!r} would have answers {shown}"
        why = (
            f"Under P a replaced record may change its value there, within a part it may not. These are two "
            f"distributions of pairs, and their gammas do not add up. {remedy}"
        )
        for name in charge.columns:
            if any(_stem(name) == _stem(each) for each in partitions):
                raise SettingsError(f"{both}, and P has the column {name!r}. {why}")
        sampled = [person for person in self.people.values() if person.declared is not None]
        for partition, group in itertools.product(partitions, (sampled, self.people.values())):
            parts = {person.part for person in group if person.partition == partition}
            if parts and any(parts <= values for values in charge.values):
                raise SettingsError(f"""{both}, and P has a column with the values {", ".join(sorted(parts))},
                    which are parts of {partition!r}. {why} If that column is about something else, give the
                    parts other names there.""")

    def _declare_again(self, charge: Charge) -> Cost:
        """Record that the P of some people, which could not be compared, is this one."""
        for name in charge.people:
            known = self.people.get(name)
            if known is None or not known.declared or not charge.declared or charge.epsilon or charge.gamma:
                raise SettingsError(f"""The budget {self.name!r} has no P for {name} that could be declared
                    again. The first sampled answer about people declares their P.""")
            if any(known.comparable):
                raise SettingsError(f"""The budget {self.name!r} has P={known.described} for {name}, under a
                    name that can be compared, so there is nothing to declare again. Use this P, or open
                    another budget.""")
            self.people[name] = replace(known, declared=charge.declared, described=charge.described)
        return NOTHING

    def alike(self, name: str) -> tuple[str, ...]:
        """Return the names of all people whose P was recorded under the same digests as that of these."""
        declared = self.people[name].declared
        return tuple(sorted(each for each, person in self.people.items() if person.declared == declared))


def in_words(strength: str, after_sampled: bool) -> str:
    """Say what an answer promises by itself, given whether sampled answers came before it in its budget.

    A plain answer may have been chosen because of a sampled one. On a pair on which that one fails, the
    choice alone can tell a difference. So the plain answer is differentially private given the sampled ones.

    Examples
    --------
    >>> in_words("plain", after_sampled=True)
    'differentially private given the sampled answers before it'
    """
    if strength == "sampled":
        return "random differentially private"
    return "differentially private" + (" given the sampled answers before it" if after_sampled else "")


def _gamma_now(charge: Charge, gamma: Fraction, known: Fraction) -> tuple[Fraction, Fraction]:
    """Return the γ and the average γ that hold for a charge, given the γ that was charged before."""
    # Plans that may have been charged before count with the γ that holds for them now.
    once = charge.dataset and charge.key
    most = max([gamma, *(exact(now) for asked, now in charge.looks if once and exact(asked) <= known)])
    # A γ that was charged and is not that of a plan in this estimate's store comes from another store.
    plans = {exact(each) for look in charge.looks for each in look}
    other_store = bool(plans) and known > 0 and known not in plans
    in_full = charge.average_gamma is None or most > gamma or other_store
    return most, most if in_full else exact(charge.average_gamma or 0.0)


def _in_common(known: Person, charge: Charge, common: tuple[str, ...]) -> str:
    """Describe the P that are in the families of all answers so far."""
    if not common or common == known.declared:
        return known.described
    if set(common) == set(charge.declared):
        return charge.described
    return f"what is both in {known.described} and in {charge.described}"


def _where(partition: str, part: str) -> str:
    return f"in the part {part!r} of {partition!r}" if partition else "outside of every partition"


def _stem(name: str) -> str:
    """Return a name without case and punctuation, and without an ending such as "id", "name" or "s".

    Examples
    --------
    >>> {_stem(name) for name in ("site", " Site", "site_id", "SiteID", "Sites", "site name")}
    {'site'}
    """
    letters = re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name).casefold())
    return re.sub(r"(?<=.)(id|code|name|number|no|nr)?s?$", "", letters)
