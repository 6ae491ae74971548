"""Unit: which column says whose row it is, where people have several rows each."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from privatize.errors import SettingsError
from privatize.planning.numbers import as_integer

# Names that end with a word for an identifier: patient_id, PatientID, userid, customer number, id1.
_PEOPLE = (
    "person|patient|user|customer|client|respondent|participant|subject|household|employee|student|pupil"
)
_ALONE = f"id|ids|pid|uid|uuid|guid|ssn|mrn|identifier|email|{_PEOPLE}"
_NUMBERED = f"(?:{_PEOPLE}|case|member|account|nhs)[ _.-]?(?:id|no|nr|num|number|key|code)"
_IDENTIFIER = re.compile(rf"(?:^|[ _.-])(?:{_ALONE}|{_NUMBERED})\d*$")


class _Undeclared:
    """Nobody has said what a record is: a row, unless P draws persons."""

    immutable: ClassVar[bool] = True
    tag: ClassVar[str] = "undeclared"

    def __repr__(self) -> str:
        return "<that of P>"

    def __reduce__(self) -> str:
        return "UNDECLARED"


UNDECLARED: Any = _Undeclared()
"""The default of ``unit=``, since None says that every row is another person."""


@dataclass(frozen=True)
class Unit:
    """Whose row it is: people have several rows each, and a record is a person with all their rows.

    Parameters
    ----------
    name : str
        The column that identifies a person: integers, strings, bytes or UUIDs. Rows in which it is missing,
        or something else, are left out.
    most : int, optional
        How many rows of a person are used at most. Further ones are left out by a rule that looks at that
        person's rows alone.
    order : str, optional
        The column that a person's rows are ordered by: the first ones are used. Without it their order is
        random, and does not change.
    once : sequence of str
        Columns that a person has once, such as a year of birth: all rows get the value of the first one.
    empty : bool
        Whether a person may have no rows. Then all persons must be declared: ``seal(..., persons=...)``.

    Examples
    --------
    >>> from privatize import Unit
    >>> Unit("patient_id", most=12, order="day")
    Unit('patient_id', most=12, order='day')
    """

    name: str
    most: int | None = None
    order: str | None = None
    once: tuple[str, ...] = ()
    empty: bool = False
    immutable: ClassVar[bool] = True
    tag: ClassVar[str] = "unit"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise SettingsError(f"""unit={self.name!r} is not the name of a column. Name the one that
                identifies a person, unit="patient_id"; or pass unit=None, if every row is another person.""")
        most = None if self.most is None else as_integer(self.most)
        if most is not None and not 1 <= most < 2**31:
            raise SettingsError(f"""most={self.most!r} is not a number of rows: it must be an integer >= 1, or
                None for all rows.""")
        if self.order is not None and (not isinstance(self.order, str) or self.order == self.name):
            raise SettingsError(f"""order={self.order!r} is not the name of a column that a person's rows can
                be ordered by.""")
        given: Any = self.once
        once = (given,) if isinstance(given, str) else tuple(given)
        if not all(isinstance(each, str) for each in once) or self.name in once:
            raise SettingsError(f"once={self.once!r} are not names of columns beside {self.name!r}.")
        object.__setattr__(self, "most", most)
        object.__setattr__(self, "once", once)

    def __repr__(self) -> str:
        options = {each: getattr(self, each) for each in ("most", "order", "once", "empty")}
        given = [f"{name}={value!r}" for name, value in options.items() if value]
        return f"Unit({', '.join([repr(self.name), *given])})"


def as_unit(value: Any) -> Any:
    """Return what was given as ``unit=`` as a unit; None and the default stay what they are."""
    return value if value is None or value is UNDECLARED or isinstance(value, Unit) else Unit(value)


def identifiers(names: Iterable[Any]) -> list[str]:
    """Return the names of columns that look as if they identified people.

    Examples
    --------
    >>> identifiers(["patient_id", "PatientID", "user", "paid", "age", "customer number"])
    ['patient_id', 'PatientID', 'user', 'customer number']
    """
    found = []
    for name in names:
        if isinstance(name, str):
            spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            if _IDENTIFIER.search(spaced):
                found.append(name)
    return found
