"""Whom a catalogue is about: sealed data, or its public facts where the data is somewhere else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from privatize.budgets.charges import check_text
from privatize.budgets.sealed import Sealed, carried, declared, is_sealed, subject
from privatize.data.units import UNDECLARED
from privatize.errors import SealedError, SettingsError
from privatize.function.asking import miscounted, not_empty, schema_of
from privatize.function.box import Box
from privatize.function.opening import sealed_schema
from privatize.function.persons import refuse_aligned, unit_for
from privatize.function.template import Template


@dataclass(frozen=True, init=False)
class People:
    """The public facts of sealed data, for a catalogue that is calibrated where the data is not.

    Parameters
    ----------
    name : str
        The name that the data is sealed under.
    n : int
        The number of records.
    version : str, optional
        The version that the data is sealed under.
    like : dataset, optional
        A dataset without records whose container, columns and dtypes are those of the data, if P draws
        something else, such as arrays for a data frame.

    Examples
    --------
    >>> from privatize import People
    >>> People("survey", 2000, version="2026")
    People('survey', n=2000, version='2026')
    """

    name: str
    n: int
    version: str | None = None
    like: Any = None

    def __init__(self, name: str, n: int, version: str | None = None, like: Any = None) -> None:
        wrong = _wrong(name, n, version, like)
        if wrong is not None:  # by mistake one of them may be the data
            del name, n, version, like
            raise wrong
        for each, value in (("name", name), ("n", int(n)), ("version", version), ("like", like)):
            object.__setattr__(self, each, value)

    def __repr__(self) -> str:
        version = "" if self.version is None else f", version={self.version!r}"
        return f"People({self.name!r}, n={self.n}{version})"


@dataclass(frozen=True, eq=False)
class Whom:
    """The people of a catalogue: one part, or several that are aligned record by record.

    Attributes
    ----------
    parts : tuple of Sealed or People
        Sealed data, or the public facts of it.
    aligned : bool
        Whether the dataset is a tuple.
    """

    parts: tuple[Any, ...]
    aligned: bool

    @classmethod
    def of(cls, box: Box) -> Whom:
        """Read the argument of a catalogue, and empty the box; refuse data that is not sealed."""
        aligned = type(box.data) in (tuple, list)
        parts = tuple(box.data) if aligned else (box.data,)
        box.data = None
        kinds = {Sealed if is_sealed(part) else type(part) for part in parts}
        if kinds not in ({Sealed}, {People}):
            del parts  # no frame of an error may hold data that is not sealed
            shown = ", ".join(sorted(kind.__name__ for kind in kinds)) or "nothing"
            raise SealedError(f"""A catalogue is about sealed data, and was given {shown}. What is passed to a
                question is a choice, too, and could be made from an earlier answer, so it is fixed: seal the
                data, seal(data, name=...), and pass that; or its public facts, People(name, n).""")
        refuse_aligned("Catalogue", parts, aligned)
        if len({part.n for part in parts}) > 1:
            raise SettingsError(f"""The parts of the dataset have {" and ".join(str(p.n) for p in parts)}
                records. They are aligned record by record, so all have as many: seal what belongs
                together.""")
        if not parts[0].n:
            raise SettingsError(f"""The dataset {declared(parts[0])} is empty: there is nobody to answer
                about. Seal data with records.""")
        return cls(parts, aligned)

    @property
    def present(self) -> bool:
        """Whether the data is here, and not its facts only."""
        return all(map(is_sealed, self.parts))

    @property
    def n(self) -> int:
        """The number of records."""
        return int(self.parts[0].n)

    @property
    def dataset(self) -> str:
        """Name and version, as ledgers have them."""
        return " and ".join(dict.fromkeys(map(declared, self.parts)))

    @property
    def people(self) -> tuple[str, ...]:
        """The names without versions, which say who the answers are about."""
        return tuple(dict.fromkeys(map(subject, self.parts)))

    @property
    def sampler(self) -> Any:
        """The P that the data was sealed with, or None; of aligned parts, the one that all of them have."""
        known = [carried(part)[0] for part in self.parts] if self.present else []
        return known[0] if known and all(other == known[0] for other in known) else None

    @property
    def unit(self) -> Any:
        """What a record is, by sealed data: None if every row is another person."""
        return self.parts[0].unit if self.present and not self.aligned else UNDECLARED

    def check_unit(self, declared: Any) -> None:
        """Refuse a unit of a catalogue that is not that of the sealed data."""
        if self.present and not self.aligned:
            unit_for("Catalogue", declared, None, self.parts[0])

    def budgets(self) -> list[Any]:
        """Return the budgets that the data was sealed with."""
        return [carried(part)[1] for part in self.parts] if self.present else []

    def schema(self, template: Template) -> Any:
        """Return the schema that what P draws is cast to for this data; None if it fits."""
        if self.present:
            return sealed_schema(template, self.parts, self.aligned)
        like = [part.like for part in self.parts]
        if any(each is None for each in like):
            return None
        return template.match(schema_of(tuple(like) if self.aligned else like[0], template))

    def matched(self, name: str, box: Box) -> tuple[Any, ...]:
        """Return the sealed data that a question is asked about: what was declared, or what is in the box."""
        if box.data is None and self.present:
            return self.parts
        parts = tuple(box.data) if type(box.data) in (tuple, list) else (box.data,)
        shown, sealed = _words(self.parts), all(map(is_sealed, parts))
        if self.present and list(map(id, parts)) == list(map(id, self.parts)):
            return self.parts
        got = _words(parts) if sealed else "something that is not sealed"
        same = sealed and list(map(_facts, parts)) == list(map(_facts, self.parts))
        missing = box.data is None
        if not same or self.present:
            del parts  # no frame of an error may hold data that is not sealed
        if self.present:  # other data of the same name might have no budget
            raise SealedError(f"""{name} is about the people {shown}, and was given {got}. The catalogue has
                their data, so pass none. All other arguments have names:
                {name.partition("(")[0]}(epsilon=0.1, ...).""")
        if not sealed:
            raise SealedError(f"""{name} is about the people {shown}, and was
                {"asked without them" if missing else f"given {got}"}. The catalogue has their public facts
                only: pass the sealed data first, seal(data, name=...).""")
        if not same:
            raise SealedError(f"""{name} was declared for the people {shown}, and was asked about {got}. Other
                people, another version or number of records are another question. Ask about those that were
                declared, or declare a catalogue for these before the first answer about them.""")
        return parts


def _wrong(name: Any, n: Any, version: Any, like: Any) -> SettingsError | None:
    """Return what is wrong with the facts of people, in an error that holds none of them."""
    try:
        check_text("The name of sealed data", name)
        if version is not None:
            check_text("The version of sealed data", version)
    except SettingsError as error:
        return error.with_traceback(None)
    return miscounted("People", n, several=False) or not_empty(like)


def _facts(part: Any) -> tuple[str, str | None, int]:
    return part.name, part.version, part.n


def _words(parts: tuple[Any, ...]) -> str:
    return " and ".join(f"{declared(part)} with n={part.n}" for part in parts)
