"""The state of a catalogue: its people, members and budgets, and what was declared of them."""

from __future__ import annotations

import contextlib
import enum
import functools
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from privatize.budgets.budget import Budget, distinct
from privatize.budgets.catalogues import Declaration
from privatize.budgets.paying import declare_in_all, whole
from privatize.budgets.sealed import carried
from privatize.calibration import streams
from privatize.calibration.fit import Fit
from privatize.calibration.refuting import known_bound
from privatize.calibration.sensitivity import Sensitivity
from privatize.data.units import Unit
from privatize.errors import CalibrationError, SettingsError
from privatize.function import joint
from privatize.function.advice import INTERNAL
from privatize.function.box import Box
from privatize.function.calibrator import Calibrator
from privatize.function.declared_calibrator import DeclaredCalibrator, Known
from privatize.function.declaring import Draft, Entry, checked_before, declared_before, difference
from privatize.function.fit import Check
from privatize.function.grid import Choice, Grid
from privatize.function.inquiry import Inquiry, check_choices, check_options, check_parameters, settings_of
from privatize.function.members import Member
from privatize.function.opening import attempted
from privatize.function.people import Whom
from privatize.function.persons import ledger_tag
from privatize.function.pipeline import released
from privatize.function.private_function import PrivateFunction
from privatize.function.question import Definition, Question
from privatize.function.recognizing import recognize, signature
from privatize.function.settings import Settings
from privatize.function.trying import tried
from privatize.mechanisms import Gaussian


class Phase(enum.Enum):
    """How far a catalogue is."""

    ADDING = "questions can be added"
    CHECKED = "P was checked on the people, so the questions are fixed"
    DECLARED = "declared: questions can be asked"


@dataclass
class _Asking:
    """A question that is asked now, as the pipeline wants it."""

    definition: Definition
    calibrator: Calibrator


class State:
    """What a catalogue has, before and after it is declared. It is the host of its members.

    Parameters
    ----------
    name : str
        The catalogue's name.
    whom : Whom
        Its people.
    settings : Settings
        What all members have in common.
    seed : int or None
        The seed of the calibration, or None for a fresh one.
    caps : tuple of float, optional
        Epsilon and delta of the catalogue's own budget.
    """

    def __init__(
        self, name: str, whom: Whom, settings: Settings, seed: int | None, caps: tuple[Any, Any] | None
    ) -> None:
        self.name, self.whom, self.settings, self.seed = name, whom, settings, seed
        given = [settings.budget, *whom.budgets()]
        self.own = None if caps is None else _opened(name, settings, caps, distinct(given))
        self.payers = distinct([self.own, *given])
        self.budgets: list[Budget] = list(map(whole, self.payers))
        if not self.payers:
            raise SettingsError(f"""The catalogue {name!r} has no budget, and its promise is about caps: what
                may be spent in all. Pass epsilon=, the cap of the catalogue itself, or budget=Budget(...), or
                seal the data with one: seal(data, name=..., budget=...).""")
        self.members: dict[str, Member] = {}
        self.phase, self.lock = Phase.ADDING, threading.RLock()
        self.seen: joint.Pilot | None = None  # the last pilot
        self.fit: Fit | None = None
        self.declared: Declaration | None = None
        self._templates: dict[Any, Any] = {}
        self._checked: dict[str, Any] | None = None  # what P was checked for

    def add(self, function: Any, name: str, options: dict[str, Any], grid: dict[str, Any]) -> Member:
        """Add a member under a name that is free."""
        if isinstance(function, Member):
            raise SettingsError(f"""{function.name} is a member of the catalogue
                {function.inquiry.catalogue!r} already. Add its raw function: {function.name}.__wrapped__.""")
        calibrator = DeclaredCalibrator(self.name, self._templates)
        settings = settings_of(function, self.settings, options)
        private = PrivateFunction(function, settings, calibrator=calibrator)
        check_parameters(name, private.definition, self.whom)
        check_options(name, grid, private.definition)
        choices = Grid.of(name, grid, private.definition.binding)
        inquiry = Inquiry(self.name, name, private, choices)
        check_choices(choices, inquiry.definition)
        if inquiry.definition.proven is None and inquiry.settings.sampler is None:
            raise SettingsError(f"""{name}() has no P: pass sampler= to the catalogue, or seal the data with
                one, seal(data, name=..., sampler=...).""")
        self.members[name], self.seen = Member(self, inquiry), None
        return self.members[name]

    def drop(self, name: str) -> None:
        """Remove a member."""
        del self.members[name]
        self.seen = None

    @contextlib.contextmanager
    def changing(self, what: str) -> Iterator[None]:
        """Refuse a change after the questions are fixed; hold the lock during it."""
        with self.lock:
            if self.phase is not Phase.ADDING:
                why = "P was checked on the people for these questions"
                declared = "it is declared, and answers may have been seen"
                raise SettingsError(f"""No question can be {what} the catalogue {self.name!r} any more:
                    {why if self.phase is Phase.CHECKED else declared}. Use it as it is; or declare another
                    one under another name, before any answer about these people.""")
            yield

    def pilot(self) -> joint.Pilot:
        """Try every question: sampled ones on a few pairs from P, all others as they are asked."""
        with self.lock:
            if self.phase is Phase.DECLARED:
                raise SettingsError(f"""The catalogue {self.name!r} is declared: what its pilot decided is in
                    the ledger. Ask its questions, or declare another catalogue.""")
            draft = self.draft()
            # It follows from the questions alone: else weights could be chosen because of what a check told.
            seed = streams.derived_seed(draft.seed(0), streams.PILOT, 0)
            nothing = joint.Pilot(self.name, seed, 0, ())
            found = joint.pilot(self.together(draft), seed) if draft.sampled else nothing
            most = min(float(each.cap.epsilon) for each in self.budgets)
            self.seen = replace(found, others=tried(draft, most, seed))
            return self.seen

    def check(self, box: Box, epsilon: float) -> Fit:
        """Check P on the people, for all sampled questions together; it is then part of the declaration."""
        with self.lock, contextlib.ExitStack() as paying:
            if self.phase is not Phase.ADDING:
                done = "was checked already" if self.phase is Phase.CHECKED else "is declared already"
                raise SettingsError(f"""The catalogue {self.name!r} {done}: a check comes once, before
                    calibrate(). Use it as it is.""")
            draft, parts = self.draft(), self.whom.matched("check_fit()", box)
            self._check_paid(parts)
            labels, facts = self.together(draft).labels, draft.facts()
            found = declared_before(draft, facts, self.budgets)
            if found is None:
                self._try(draft, late=True)  # before anything is spent
                _ = (self.seen or self.pilot()).weights  # raises if a question does not work
                box.data = parts if self.whom.aligned else parts[0]
                paying.enter_context(self.own or contextlib.nullcontext())
                made = Check(
                    labels,
                    self.settings,
                    lambda *at: self.together(draft, at[2]).parts,
                    self._estimated,
                    name=f"{self.name}.check_fit",
                    again=checked_before(
                        self.name, self.whom.dataset, self.budgets, "with other questions, code, P or epsilon"
                    ),
                )
                self.fit = made.run(box, epsilon)
            else:
                self.fit = self._declared_fit(found)
            self._checked, self.phase = facts, Phase.CHECKED
            return self.fit

    def _try(self, draft: Draft, *, late: bool) -> None:
        """Refuse now what would be refused when it is declared."""
        tight = [each.name for each in self.budgets if each.composition == "tight"]
        others = [e.label for e in draft.entries if not isinstance(e.inquiry.settings.mechanism, Gaussian)]
        if tight and others:
            raise SettingsError(f"""The budget {tight[0]!r} has composition='tight', in which the answers of a
                catalogue add up only if they have Gaussian noise, and {others[0]} has none. Give it
                mechanism="gaussian", drop it, or use a budget with composition="sum".""")
        for entry in draft.sampled:
            entry.refuse_readers()
        trial = draft.declaration(draft.facts(), {"seed": -1}, late)
        for budget in self.payers:
            budget.declare(draft.charge(), trial, write=False)

    def _estimated(self, asked: tuple[Question, ...]) -> tuple[Sensitivity, ...]:
        """Return P's joint estimate for questions about a block."""
        together = self.together(self.draft(), asked[0].n)
        seed = streams.derived_seed(streams.seed_or_fresh(self.seed), streams.CHECK, asked[0].n)
        return joint.calibrated(Calibrator(), together, joint.pilot(together, seed).weights, seed)

    def _declared_fit(self, found: Declaration) -> Fit:
        """Return the check that was declared, or refuse to check what was declared without one."""
        facts = found.facts["fit"]
        if facts is None:
            raise SettingsError(f"""The catalogue {self.name!r} was declared without a check of P, and what
                was declared stays as it is. Leave check_fit() out; or declare a catalogue under another name,
                before any answer about these people.""")
        return Fit.of_facts(facts)

    def declare(self, late: bool) -> None:
        """Declare the questions, and calibrate what was declared."""
        with self.lock:
            if self.phase is not Phase.DECLARED:
                self._declare(late)

    def _declare(self, late: bool) -> None:
        draft = self.draft()
        facts = draft.facts()
        found = declared_before(draft, facts, self.budgets)
        if self._checked not in (None, facts):
            raise SettingsError(f"""P was checked on the people for the questions of {self.name!r} as they
                were, and {difference(facts, self._checked or {})}. Put it back as it was, or make another
                catalogue.""")
        if found is None:  # before the pilot, which may take long
            if self.fit is None and (
                why := checked_before(
                    self.name, self.whom.dataset, self.budgets, "and what was found is not here"
                )
            ):
                raise SettingsError(why)
            self._try(draft, late=late)
        wanted = replace(found, late=late) if found else draft.declaration(facts, self._decided(draft), late)
        found = declare_in_all(self.payers, draft.charge(), wanted)
        self._take(draft, found)  # what was declared first, which may be another process's
        self.declared, self.phase = found, Phase.DECLARED

    def draft(self) -> Draft:
        """Return what would be declared now."""
        if not self.members:
            raise SettingsError(f"""The catalogue {self.name!r} has no questions. Add some first:
                @{self.name if self.name.isidentifier() else "catalogue"}.add above a function of the
                dataset.""")
        made = [
            Entry(each, choice, None if each.definition.proven else each.question(choice, self.whom))
            for each in (member.inquiry for member in self.members.values())
            for choice in each.choices
        ]
        caps = None if self.own is None else (float(self.own.cap.epsilon), float(self.own.cap.delta))
        unit = self.settings.record
        tag = ledger_tag(self.payers, self.whom.people, unit if isinstance(unit, Unit) else None)
        return Draft(self.name, self.whom, self.settings, tuple(made), caps, tag)

    def together(self, draft: Draft, n: int | None = None) -> joint.JointQuestion:
        """Return all sampled questions as one, about n records."""
        parts = draft.questions
        if not parts:
            raise SettingsError(f"""The catalogue {self.name!r} has no sampled question, so there is nothing
                to try: all of its questions have bounds for all pairs of neighbours. Declare it:
                calibrate().""")
        asked = parts if n is None else [replace(part, n=part.template.used(n)[0]) for part in parts]
        return joint.joint(self.name, self.settings, asked, [entry.label for entry in draft.sampled])

    def _decided(self, draft: Draft) -> dict[str, Any]:
        """Return what a first declaration decides: seed, weights, fit, and signatures of the questions."""
        # Another declaration has other pairs, also with the user's seed: gaps that were seen are not reused.
        seed = streams.fresh_seed() if self.seed is None else draft.seed(self.seed)
        weights = [list(each) for each in (self.seen or self.pilot()).weights]
        fit = None if self.fit is None else self.fit.facts()
        signatures = [list(signature(each)) for each in draft.questions]
        return {"seed": seed, "weights": weights, "fit": fit, "signatures": signatures}

    def _take(self, draft: Draft, found: Declaration) -> None:
        """Calibrate what was declared, and give each member its estimates."""
        decided, shares = found.facts, {}
        if draft.sampled:
            seed, weights = decided["seed"], decided["weights"]
            # γ was charged for the questions as they are answered there. Earlier versions did not write it.
            for asked, before in zip(draft.questions, decided.get("signatures", ()), strict=False):
                recognize(asked, before, None, f"declared {self.name!r}")
            made = joint.calibrated(Calibrator(), self.together(draft), weights, seed)
            if self.fit is not None or decided["fit"] is not None:
                self.fit = self._declared_fit(found)
                made = tuple(map(self.fit.widen, made))
            shares = {entry.label: share for entry, share in zip(draft.sampled, made, strict=True)}
        keys = {each["label"]: each["digest"] for each in decided["members"]}
        charged = found.key.partition(":")[0]
        now = {entry.label: entry.identified() for entry in draft.entries}
        if keys != {label: key for label, (key, _) in now.items()}:
            raise CalibrationError(f"""What the questions of {self.name!r} depend on changed while they were
                calibrated. Call calibrate() again, and change nothing meanwhile.""")
        schema = next((entry.question.schema for entry in draft.entries if entry.question), None)
        for member in self.members.values():
            inquiry = member.inquiry
            known = {
                keys[label]: Known(label, shares.get(label), now[label][1])
                for label in (each.label for each in inquiry.choices)
            }
            inquiry.calibrator.declare(known, charged, schema)

    def answer(self, inquiry: Inquiry, box: Box, *, entire: bool) -> Any:
        """Return a release or its value, for the arguments of a member's call in the box."""
        try:  # by mistake there may be private data in it, which no frame of an error may hold
            read = functools.partial(self._asked, inquiry, box)
            definition, failure = attempted(read, box, inquiry.definition.advice, INTERNAL)
            if definition is not None:
                with self.own or contextlib.nullcontext():
                    return released(_Asking(definition, inquiry.calibrator), box, entire=entire)
        finally:
            box.args = box.kwargs = box.data = None
        raise failure or TypeError

    def _asked(self, inquiry: Inquiry, box: Box) -> Definition:
        """Return the question that the arguments in the box ask; the box then has its arguments."""
        self.must_be_declared(inquiry.name)
        choice, epsilon, delta = inquiry.read(box)
        parts = self.whom.matched(choice.label, box)
        self._check_paid(parts)
        definition = inquiry.asked(choice, epsilon, delta)
        if definition.proven is not None:
            inquiry.calibrator.check_same(choice.label, definition, inquiry.facts(choice))
        box.data, (box.args, box.kwargs) = None, inquiry.passed(parts, choice)
        return definition

    def sensitivity_of(self, inquiry: Inquiry, choice: Choice) -> Any:
        """Return the declared estimate of a question, or its proven bound."""
        self.must_be_declared(inquiry.name)
        proven, n = inquiry.definition.proven, self.whom.n
        if proven is not None:
            return known_bound(proven.bound_at(n, inquiry.settings.mechanism), n, proven.structure(n))
        return inquiry.calibrator.recall(inquiry.question(choice, self.whom)).sensitivity

    def must_be_declared(self, name: str) -> None:
        """Refuse what is for declared catalogues only."""
        if self.phase is Phase.DECLARED:
            return
        if any(each.declared(self.name) for each in self.budgets):
            raise SettingsError(f"""{name}() cannot be asked yet: the ledger has a declared catalogue
                {self.name!r}, but calibrate() has not found the same questions in this process so far. Call
                it: it charges nothing for what was declared, and says what is different now, if anything.""")
        raise SettingsError(f"""{name}() cannot be asked yet: the catalogue {self.name!r} is not declared, and
            an answer may be seen only after all questions are fixed. Call calibrate() on it first.""")

    def _check_paid(self, parts: tuple[Any, ...]) -> None:
        """Refuse sealed data with a budget in which the catalogue is not declared."""
        known = {each.where for each in self.budgets}
        for each in map(whole, distinct([carried(part)[1] for part in parts])):
            if each.where not in known:
                raise SettingsError(f"""The data has the budget {each.name!r}, in which the catalogue
                    {self.name!r} is not declared. Pass it when the catalogue is made: Catalogue(...,
                    budget=...).""")


def _opened(name: str, settings: Settings, caps: tuple[Any, Any], others: list[Any]) -> Budget:
    """Return the budget of a catalogue itself, in the ledger of the others."""
    epsilon, delta = caps
    ledger = whole(others[0]).ledger.database.url if others else None
    return Budget(name, epsilon=epsilon, delta=delta, gamma=settings.gamma or 0.0, ledger=ledger)
