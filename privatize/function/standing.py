"""Where a catalogue stands: in the ledger and the store, before this process has called `calibrate`."""

from __future__ import annotations

from dataclasses import dataclass

from privatize.errors import PrivatizeError
from privatize.function.catalogue import Catalogue
from privatize.function.declaring import declared_before
from privatize.function.joint import remembered


@dataclass(frozen=True)
class Standing:
    """What a ledger and a store have of a catalogue.

    Attributes
    ----------
    declared : bool
        Whether it is declared in every budget that pays for it.
    late : bool
        Whether it was declared after answers.
    remembered : bool
        Whether it is declared, and its estimates are in the store.
    problem : str
        Why it cannot be declared as it is, or what is different from what was declared; empty if nothing.
    """

    declared: bool
    late: bool
    remembered: bool
    problem: str = ""


def standing_of(catalogue: Catalogue) -> Standing:
    """Look up where a catalogue stands. Nothing is declared, charged, calibrated or asked."""
    state = catalogue._state
    known = [each.declared(catalogue.name) for each in state.budgets]
    late = any(each.late for each in known if each is not None)
    try:
        draft = state.draft()
        found = declared_before(draft, draft.facts(), state.budgets)
        there = found is not None
        if found is not None and draft.sampled:
            there = remembered(state.together(draft), found.facts["weights"], found.facts["seed"])
    except PrivatizeError as error:
        return Standing(all(known), late, False, str(error))
    return Standing(all(known), late, there)
