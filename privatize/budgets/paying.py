"""Charge a budget, for answers and for catalogues; declare a catalogue in every budget that pays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from privatize.budgets.catalogues import Declaration
from privatize.budgets.charges import Charge, Lesson
from privatize.budgets.entered import Entered
from privatize.budgets.ledger import Ledger
from privatize.budgets.terms import Terms
from privatize.errors import SettingsError


class Payer(Entered):
    """The part of a budget that is charged, for answers and for catalogues."""

    terms: Terms
    ledger: Ledger
    who: bool

    @property
    def where(self) -> tuple[str, str]:
        """Ledger and name: budgets that have both in common are one."""
        return self.ledger.database.url, self.terms.name

    def reserve(self, charge: Charge, learned: Lesson | None = None) -> bool:
        """Spend what a release asks for, or raise; tell whether the budget had sampled answers before."""
        return self.ledger.reserve(self.terms, replace(charge, who=self.signature()), learned)

    def afford(self, charge: Charge) -> None:
        """Raise if there is not enough left; spend nothing."""
        self.ledger.check(self.terms, charge)

    def declare(self, charge: Charge, declaration: Declaration, *, write: bool = True) -> Declaration:
        """Declare a catalogue and charge its γ, or raise; return what is declared.

        The first who declares a catalogue decides its seeds and weights. Everybody else who declares the same
        gets these, and pays nothing.

        Parameters
        ----------
        charge : Charge
            Its γ, about whom it is and under which P; its purpose is "catalogue".
        declaration : Declaration
            What is to be declared; `late` allows to do so after answers.
        write : bool
            Whether to declare it. If not, what would be refused now is refused, and nothing is charged.
        """
        signed = replace(charge, who=self.signature())
        return self.ledger.declare(self.terms, signed, declaration, write=write)

    def catalogues(self) -> list[Declaration]:
        """Return the catalogues that were declared in this budget, the oldest first."""
        return self.ledger.catalogues(self.terms.name)

    def declared(self, name: str) -> Declaration | None:
        """Return what was declared of a catalogue, or None."""
        return next((each for each in self.catalogues() if each.name == name), None)

    def signature(self) -> str:
        """Return user and host if the budget records them, or an empty string."""
        if not self.who:
            return ""
        import getpass
        import socket

        try:
            return f"{getpass.getuser()}@{socket.gethostname()}"
        except (OSError, KeyError):
            return f"?@{socket.gethostname()}"


def declare_in_all(budgets: Sequence[Any], charge: Charge, wanted: Declaration) -> Declaration:
    """Declare a catalogue in every budget, or in none that refuses; return what is declared in all of them.

    If it is interrupted, the next call goes on: what the first budget has decides. All processes begin with
    the same budget, so that two of them at once agree.

    Parameters
    ----------
    budgets : sequence of Budget or Part
        What its answers are charged to.
    charge : Charge
        Its γ, about whom it is and under which P.
    wanted : Declaration
        What is to be declared; `late` allows to do so after answers.
    """
    ordered = sorted(budgets, key=lambda each: whole(each).where)
    before = [each.declare(charge, wanted, write=False) for each in ordered]  # refused by one: by all
    chosen = next((each for each in before if each.fixed != wanted.fixed), wanted)
    late = False
    for at, each in enumerate(ordered):
        found = each.declare(charge, replace(chosen, late=wanted.late))
        chosen, late = found if not at else chosen, late or found.late
        if found.fixed != chosen.fixed:
            raise SettingsError(f"""The catalogue {wanted.name!r} has other seeds or weights in the budget
                {whole(each).terms.name!r} than in {whole(ordered[0]).terms.name!r}: it was declared in
                each of them alone. Declare a catalogue with another name, in all of them.""")
    return replace(chosen, late=late)


def whole(budget: Any) -> Any:
    """Return the entire budget of a part, or the budget itself; refuse what has no ledger."""
    found = getattr(budget, "budget", budget)
    if not isinstance(found, Payer):
        raise SettingsError(f"""A catalogue cannot be declared in a {type(found).__name__}, which has no
            ledger. Use a privatize.Budget, or a part of one.""")
    return found
