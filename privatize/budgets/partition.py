"""Partitions of a budget: the largest part counts, not the sum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from privatize.budgets.catalogues import Declaration
from privatize.budgets.charges import Charge, check_text
from privatize.budgets.entered import Chargeable, Entered
from privatize.errors import SettingsError


class Partition(Mapping[str, "Part"]):
    """The parts of a budget that a replaced record cannot leave. Made by `Budget.partition`."""

    opaque: ClassVar[bool] = True  # fingerprints do not look inside

    def __init__(self, budget: Chargeable, name: str, parts: Sequence[str]) -> None:
        listed = [parts] if isinstance(parts, str) else list(parts)
        strings = all(isinstance(part, str) and part for part in (name, *listed))
        if not strings or not listed or len(set(listed)) < len(listed):
            raise SettingsError(f"""partition({name!r}, parts={parts!r}): it needs a name, and a list of
                different parts.""")
        for text in (name, *listed):
            check_text("The name of a partition or part", text)
        self.budget, self.name = budget, name
        self._parts = {part: Part(budget, name, part) for part in listed}

    def __getitem__(self, part: str) -> Part:
        if part not in self._parts:
            raise SettingsError(f"""{part!r} is not a part of {self.name!r}: its parts are
                {", ".join(self._parts)}.""")
        return self._parts[part]

    def __contains__(self, part: object) -> bool:
        return part in self._parts

    def get(self, part: str, default: Any = None) -> Any:
        """Return a part, or the default if there is no such part."""
        return self._parts.get(part, default)

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)


class Part(Entered):
    """One part of a partition: used like the budget itself."""

    def __init__(self, budget: Chargeable, partition: str, part: str) -> None:
        self.budget: Any = budget  # the entire budget
        self.partition, self.part = partition, part

    def _placed(self, charge: Charge) -> Charge:
        return replace(charge, partition=self.partition, part=self.part)

    def reserve(self, charge: Charge, **learned: Any) -> bool | None:
        """Spend what a release asks for, or raise; tell whether sampled answers came before."""
        found: bool | None = self.budget.reserve(self._placed(charge), **learned)
        return found

    def declare(self, charge: Charge, declaration: Declaration, **options: Any) -> Declaration:
        """Declare a catalogue about this part, and charge its γ, or raise; return what is declared."""
        found: Declaration = self.budget.declare(self._placed(charge), declaration, **options)
        return found

    def afford(self, charge: Charge) -> None:
        """Raise if there is not enough left; spend nothing."""
        self.budget.afford(self._placed(charge))

    def __repr__(self) -> str:
        return f"<part {self.part!r} of {self.partition!r} in {self.budget!r}>"
