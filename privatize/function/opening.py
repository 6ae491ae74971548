"""Open private data: whom it is about, which budgets pay, and how it is converted, for answers of every kind.

The rule that everything here follows: private data is in one `Box`, which is emptied before any error is
raised. Errors are raised by frames that hold no data any more, without cause, context or traceback of
anything that has seen it. An error that depends on values is raised only after it was paid for.
"""

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from privatize import errors
from privatize.budgets.budget import distinct
from privatize.budgets.charges import Charge, Lesson
from privatize.budgets.entered import current
from privatize.budgets.paying import Payer
from privatize.budgets.sealed import carried, declared, is_sealed, opened, subject, warn_identifiers
from privatize.budgets.units import person_by
from privatize.config.policy import Policy, policy
from privatize.data import records
from privatize.data.clipping import convert_floats
from privatize.data.grouping import group
from privatize.data.persons import Persons, names_of
from privatize.data.units import UNDECLARED
from privatize.function import silence
from privatize.function.advice import BOOTSTRAPPED, UNREADABLE, Advice
from privatize.function.box import Box
from privatize.function.calibrator import refuse_reachable
from privatize.function.persons import RECORD, columns_of, make_persons, refuse_aligned, unit_for
from privatize.function.recursion import active_guards
from privatize.function.settings import Settings
from privatize.function.template import Template
from privatize.identity.reachable import is_private
from privatize.mechanisms.base import BaseMechanism, complete
from privatize.samplers.tables import table_names

T = TypeVar("T")


# --- errors that hold nothing private ---------------------------------------------------------


def attempted(
    run: Callable[[], T], box: Box, advice: Advice, internal: str
) -> tuple[T | None, BaseException | None]:
    """Return what `run` returns, and the error to raise, which shows nothing private. Never raises."""
    failure: BaseException
    try:
        return run(), None
    except BaseException as error:  # whatever it is, only its stripped form is raised
        failure = error
    bare = _bare(failure, advice.about(internal), box.started)
    del failure  # its traceback leads to this frame
    return None, bare


def _bare(error: BaseException, internal: str, started: bool) -> BaseException:
    """Return an error that holds nothing of the frames it passed through."""
    if isinstance(error, KeyboardInterrupt):
        return KeyboardInterrupt()
    if not isinstance(error, errors.PrivatizeError | errors.PrivatizeWarning) or (
        started and type(error) is not errors.PrivateRunError
    ):
        return errors.PrivateRunError(internal)
    error.__traceback__ = None
    error.__context__ = None
    # A cause stays only where it arose on sampled, public data.
    if not isinstance(error, errors.CalibrationError | errors.SettingsError):
        error.__cause__ = None
    return error


# --- whom the data is about, and who pays -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Subjects:
    """Whom the data is about, as it was declared, and which budgets pay for answers about them."""

    budgets: list[Any]
    dataset: str = ""
    people: tuple[str, ...] = ()
    sampler: Any = None  # the P that the data was sealed with
    sealed: Any = None  # the sealed data, if it is one dataset
    unit: str = RECORD  # what a record is
    tag: str = ""  # which key persons are ordered by

    def charge(self, function: str, settings: Settings, n: int, **more: Any) -> Charge:
        """Return what an answer about them costs that is private for all pairs."""
        more |= {"dataset": self.dataset, "people": self.people, "n": n, "strength": "plain"}
        more |= {"unit": self.unit}
        epsilon, delta = settings.epsilon, settings.delta
        return Charge(function=function, key="", epsilon=epsilon, delta=delta, gamma=0.0, **more)


def unseal(
    name: str, settings: Settings, box: Box, rules: Policy, *, names: Sequence[str], aligned: bool
) -> Subjects:
    """Open sealed data in the box; return what was declared about it, and all budgets that apply.

    Parameters
    ----------
    name : str
        What opens the data, for errors.
    settings : Settings
        Its options: P, or None for that of the sealed data, and a budget.
    box : Box
        What holds the data.
    rules : Policy
        What the policy requires.
    names : sequence of str
        The parameters that the data was passed as, for errors.
    aligned : bool
        Whether the data is a tuple whose parts may be sealed each.
    """
    parts = box.data if aligned else (box.data,)
    sealed = {is_sealed(part) for part in parts}
    if len(sealed) > 1:
        raise errors.SealedError(f"Only some of {', '.join(names)} are sealed. Seal all or none.")
    if rules.require_sealed and sealed == {False}:
        raise errors.PolicyError(f"""{name}() was called with data that is not sealed, and the policy has
            require-sealed. Seal it: seal(data, name=...).""")
    budgets = [settings.budget, *current()]
    if sealed == {True}:
        refuse_aligned(name, parts, aligned)
        found = _declared(parts, budgets, settings.sampler is None, aligned)
        box.data = tuple(map(opened, parts)) if aligned else opened(box.data)
    else:
        found = Subjects(distinct(budgets))
    if rules.require_budget and not found.budgets:
        raise errors.PolicyError(f"""{name}() has no budget, and the policy has require-budget. Pass
            budget=Budget(...), call it in `with budget:`, or seal the data with one.""")
    return found


def _declared(parts: tuple[Any, ...], budgets: list[Any], needs_p: bool, aligned: bool) -> Subjects:
    """Return what was declared about the parts of sealed data. If P is needed, they must agree on it."""
    carry = [carried(part) for part in parts]
    known = [sampler for sampler, _ in carry if sampler is not None]
    if needs_p and any(other != known[0] for other in known):
        raise errors.SettingsError(f"""The parts of the dataset are sealed with different P: {known!r}. Pass
            one for all of them together, privatize(sampler=...).""")
    return Subjects(
        distinct([*budgets, *(budget for _, budget in carry)]),
        " and ".join(dict.fromkeys(map(declared, parts))),
        tuple(dict.fromkeys(map(subject, parts))),
        known[0] if known else None,
        None if aligned else parts[0],
    )


def persons(name: str, declared: Any, template: Template | None, box: Box, subjects: Subjects) -> Subjects:
    """Put persons in place of the rows in the box if that is what a record is; return whom it is about.

    Parameters
    ----------
    name : str
        What opens the data, for errors.
    declared : Unit, None or UNDECLARED
        What ``unit=`` says.
    template : Template or None
        What P draws, if there is a P.
    box : Box
        What holds the data.
    subjects : Subjects
        Whom it is about, and which budgets pay.
    """
    drawn = None if template is None else template.records()
    unit = unit_for(name, declared, drawn, subjects.sealed)
    if type(box.data) is Persons:
        raise errors.DataError(f"""{name}() was given persons as P draws them. Pass their rows, which have
            the column {box.data.unit.name!r}: data.frame.""")
    # If P draws a table, `privatize` has warned when the function was decorated.
    undeclared = unit is None and declared is UNDECLARED and subjects.sealed is None
    if undeclared and (template is None or not table_names(template.sampler)):
        warn_identifiers(names_of(box.data if template is None else drawn), name)
    tag = make_persons(name, box, unit, subjects.sealed, subjects.budgets, drawn)
    return replace(subjects, unit=person_by(unit.name), tag=tag) if unit and tag else subjects


def sealed_schema(template: Template, parts: tuple[Any, ...], aligned: bool) -> Any:
    """Return the schema that P's draws are cast to for sealed data, of which only the schema is read."""
    box = Box()
    try:
        box.data = tuple(map(opened, parts)) if aligned else opened(parts[0])

        def match() -> Any:
            unit = unit_for("Catalogue", UNDECLARED, template.records(), None if aligned else parts[0])
            if unit is not None:  # of nobody's rows: the schema is the same
                nobody, columns = np.zeros(0, dtype=np.intp), columns_of(template.records())
                box.data = group(records.take(box.data, nobody), unit, bytes(32), columns=columns)
            return template.match(records.describe(box.data))

        found, failure = attempted(match, box, Advice("Catalogue", ""), UNREADABLE)
    finally:
        box.data = box.raw = None
    if failure is not None:
        raise failure
    return found


def counted(box: Box) -> int:
    """Return the number of records in the box, which is public."""
    n = records.count(box.data)
    if n == 0:
        raise errors.DataError("""The dataset is empty: there is nobody to answer about, and nothing to
            answer.""")
    return n


def reserve(subjects: Subjects, charge: Charge, **recorded: Any) -> bool:
    """Charge a release to every budget, or refuse it. Tell whether sampled answers came before it.

    What is `recorded` is written to every ledger in the transaction of the charge.
    """
    if len(subjects.budgets) > 1:
        afford(subjects, charge)
    before = [budget.reserve(charge, **recorded) for budget in subjects.budgets]
    return any(before)


def afford(subjects: Subjects, charge: Charge) -> None:
    """Refuse a release that one of the budgets cannot pay for."""
    for budget in subjects.budgets:
        budget.afford(charge)


def convert(template: Template, box: Box, positions: Any) -> None:
    """Convert the data to the form that P draws, as calibration converts its draws."""
    drawn, support = template.records(), template.support
    box.raw = None
    box.value = convert_floats(box.data, drawn, support) if positions is None else None
    if box.value is not None:
        box.data, box.value = box.value, None
        return
    with np.errstate(all="ignore"), silence.quiet():  # a warning could quote a private number
        if positions is not None:
            box.data = records.take(box.data, positions)
        box.data = records.convert(box.data, drawn, support)


# --- answers that are private for all pairs and need no function of the user's ----------------


@dataclass(frozen=True, kw_only=True)
class Opening:
    """Something of ours that opens private data for a purpose, such as `learn`, and is charged as plain.

    Attributes
    ----------
    name : str
        Its name in errors and in ledgers.
    settings : Settings
        Its ε, its budget and P, which may be None for that of sealed data. Without gamma.
    purpose : str
        What it is for, in ledgers.
    """

    name: str
    settings: Settings
    purpose: str

    def run(self, box: Box, answer: Callable[["Opened"], T]) -> T:
        """Return what `answer` returns for the data in the box, or raise from a frame that holds nothing.

        `answer` gets the data as `Opened`, which nobody has paid for yet. It must not keep it.
        """
        try:  # the first statement: an interrupt before it would leave the box full
            run = functools.partial(self._answered, box, answer)
            outcome, failure = attempted(run, box, Advice(self.name, ""), UNREADABLE)
        finally:  # also after an interrupt, wherever it came
            box.args = box.kwargs = box.data = box.raw = box.value = None
        if failure is not None:
            raise failure
        return outcome  # type: ignore[return-value]

    def _answered(self, box: Box, answer: Callable[["Opened"], T]) -> T:
        if active_guards():
            raise errors.SettingsError(f"""{self.name}() was called while a private function was being
                evaluated. Call it before or afterwards.""")
        rules, settings = policy(), self.settings
        settings.obey(self.name, rules)
        aligned = type(box.data) is tuple and any(map(is_sealed, box.data))
        subjects = unseal(self.name, settings, box, rules, names=["the parts"], aligned=aligned)
        if settings.sampler is None and subjects.sampler is not None:
            settings = replace(settings, sampler=subjects.sampler)
        if settings.sampler is None:
            raise errors.SettingsError(f"""{self.name}() has no P, which says what records may be. Pass one,
                or seal the data with one: seal(data, name=..., sampler=...).""")
        template = Template(settings)
        # By identity alone: an error that depends on values would be an answer that nobody has paid for.
        refuse_reachable(self.name, template.sampler, box, copies=False)
        subjects = persons(self.name, settings.record, template, box, subjects)
        n = counted(box)
        template.match(records.describe(box.data))
        used, positions = template.used(n)
        kind = BaseMechanism.composition_kind(complete(settings.mechanism), settings.epsilon, settings.delta)
        charge = subjects.charge(
            self.name, settings, used, mechanism="Laplace", kind=kind, purpose=self.purpose
        )
        return answer(Opened(box, subjects, template, used, positions, charge))


@dataclass(frozen=True, eq=False, repr=False)
class Opened:
    """Private data in a box that fits P, whom it is about, and what an answer costs.

    Attributes
    ----------
    box : Box
        What holds the data.
    subjects : Subjects
        Whom it is about, and which budgets pay.
    template : Template
        What P draws, and its support.
    n : int
        Number of records that are used.
    positions : array or None
        Which ones, if P has a number of its own; None for all.
    charge : Charge
        What the answer costs.
    """

    box: Box
    subjects: Subjects
    template: Template
    n: int
    positions: Any
    charge: Charge

    def once(self, asked: Lesson, read: Callable[[Any], T], prepare: Callable[[], Callable[[Box], T]]) -> T:
        """Return what was made of the data before, if it is free now, or else make it, pay and record it.

        Only data with a name can be recognized. What was made is free where every budget has paid for it.
        """
        payers = [getattr(each, "budget", each) for each in self.subjects.budgets]
        named = bool(asked.dataset and asked.settings and payers)
        named = named and all(isinstance(each, Payer) for each in payers)
        stored = {each.ledger.learned(each.name, asked) for each in payers} if named else {None}
        content = stored.pop() if len(stored) == 1 else None
        if content is not None:
            return read(json.loads(content))

        def record(made: Any) -> Mapping[str, Any]:
            return {"learned": replace(asked, content=json.dumps(made.facts()))} if named else {}

        found: T = self.recorded(prepare(), record)[0]
        return found

    def paid(self, measure: Callable[[Box], T]) -> tuple[T, bool]:
        """Pay, then convert the data and return what `measure` makes of it; and what `reserve` tells.

        The box has the converted records as its value, and those that they were made of as its data.
        """
        given = reserve(self.subjects, self.charge)
        return self._measured(measure), given

    def recorded(
        self, measure: Callable[[Box], T], record: Callable[[T], Mapping[str, Any]]
    ) -> tuple[T, bool]:
        """Return the same, but pay afterwards, in the transaction that records what was made of the data.

        If that fails, it is paid for nevertheless, because a failure may depend on values.
        """
        afford(self.subjects, self.charge)
        try:
            found = self._measured(measure)
        except BaseException:
            reserve(self.subjects, self.charge)
            raise
        self.box.started = False  # a refusal of the budget depends on no value, and may be shown
        return found, reserve(self.subjects, self.charge, **record(found))

    def _measured(self, measure: Callable[[Box], T]) -> T:
        box = self.box
        box.started = True  # from here on errors contain only fixed messages
        with np.errstate(all="ignore"), silence.quiet():  # a warning could quote a private number
            if self.template.draws_public and is_private(self.template.sampler, box.passed):
                raise errors.PrivateRunError(BOOTSTRAPPED)
            if self.positions is not None:
                box.data = records.take(box.data, self.positions)
            box.value = records.convert(box.data, self.template.records(), self.template.support)
            found = measure(box)
        box.data = box.raw = box.value = None
        return found
