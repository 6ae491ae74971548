"""Catalogue: questions that are declared together, and then asked in any order with one gamma for all."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Literal, NoReturn

from privatize.budgets.budget import Budget
from privatize.budgets.charges import check_text
from privatize.budgets.partition import Part
from privatize.calibration import streams
from privatize.calibration.fit import Fit
from privatize.data.units import UNDECLARED
from privatize.display.cards import Card, Shown
from privatize.display.figures import counted
from privatize.errors import ArgumentError, SettingsError
from privatize.function.box import Box
from privatize.function.budget_plan import BudgetPlan, planned
from privatize.function.catalogue_facts import asked_of, card_of, facts_of, phase_of
from privatize.function.catalogue_state import Phase, State
from privatize.function.inquiry import check_name, with_delta
from privatize.function.joint import Pilot
from privatize.function.members import Member
from privatize.function.people import Whom
from privatize.function.settings import TRIAL, did_you_mean
from privatize.mechanisms import DEFAULT, Mechanism
from privatize.planning.plan import Bound
from privatize.samplers import as_sampler


class Catalogue(Shown):
    """Questions about some people that are declared together, and then asked as one goes.

    Random differential privacy is about questions that were fixed beforehand. All questions of a catalogue
    are: `calibrate` declares them in the ledger and calibrates them together, so that one gamma holds for
    all of them, whatever is asked, in whatever order, and as often as the budget allows. The promise is
    about the caps of the budget.

    Parameters
    ----------
    name : str
        Its name in the ledger. What was declared under a name stays as it is.
    people : Sealed, tuple of Sealed, or People
        Whom it is about: sealed data, several that are aligned record by record, or its public facts. With
        the facts, the sealed data is passed first when a question is asked.
    gamma : float
        The promise may fail on this share of random neighbours, for all questions together.
    sampler : Sampler, optional
        P, or a family of P; by default that of the sealed data.
    epsilon, delta : float, optional
        Caps of the catalogue itself: a budget of its name, beside those of `budget` and of the data.
    unit : str, Unit or None, optional
        What identifies a person, as for `privatize.seal`; by default that of P or of the sealed data.
    budget : Budget, optional
        What every answer is charged to, beside the budget of the data. A catalogue needs a budget.
    mechanism, bound, samples, domain, timeout, workers, store, progress
        As for `privatize.privatize`, for all members; each may have a mechanism of its own.
    seed : int, optional
        Seed of the calibration, for reproducible estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize import Budget, Catalogue, samplers, seal
    >>> budget = Budget("of the survey", epsilon=2, gamma=0.1, ledger="memory")
    >>> incomes = np.random.default_rng(0).uniform(0, 90_000, 1000)
    >>> people = seal(incomes, name="people of 2026", sampler=samplers.uniform(0, 100_000), budget=budget)
    >>> survey = Catalogue("survey-2026", people, gamma=0.1)
    >>> mean = survey.add(np.mean)
    >>> @survey.add(limit=[20_000, 40_000])
    ... def share_above(incomes, limit):
    ...     return (incomes > limit).mean()
    >>> survey.questions
    ('mean', 'share_above(limit=20000)', 'share_above(limit=40000)')
    >>> survey.calibrate()
    >>> bool(abs(survey.mean(epsilon=0.5) - incomes.mean()) < 5000)
    True
    >>> bool(0 < survey.share_above(limit=40_000, epsilon=0.5) < 1)
    True
    """

    opaque: ClassVar[bool] = True  # fingerprints do not look inside

    def __init__(
        self,
        name: str,
        people: Any,
        *,
        gamma: float | None = None,
        sampler: Any = None,
        epsilon: float | None = None,
        delta: float = 0.0,
        budget: Budget | Part | None = None,
        unit: Any = UNDECLARED,
        mechanism: str | Mechanism = DEFAULT,
        bound: Bound = "tolerance",
        samples: int | Literal["least", "balanced"] = "balanced",
        domain: Literal["clip", "as-is"] | None = None,
        timeout: float | None = None,
        seed: int | None = None,
        workers: Any = None,
        store: str | os.PathLike[str] | None = "default",
        progress: bool | None = None,
    ) -> None:
        try:  # by mistake it may be data that is not sealed, which no frame of an error may hold
            box = Box()
            box.data = people
        finally:
            del people
        whom = Whom.of(box)
        if gamma is None:
            raise SettingsError("""Catalogue(...) needs gamma=: the promise may fail on this share of random
                neighbours, for all questions together, so it has no default. Pass gamma=0.05, say; if all of
                its questions have bounds for all pairs of neighbours, no gamma is charged.""")
        if delta and epsilon is None:
            raise SettingsError(f"""Catalogue(delta={delta!r}) is a cap, beside epsilon=, which is missing.
                Pass both, or leave the caps to the budget.""")
        law = whom.sampler if sampler is None else as_sampler(sampler)
        common = {"gamma": gamma, "sampler": law, "bound": bound, "samples": samples, "domain": domain}
        common |= {"timeout": timeout, "workers": workers, "store": store, "progress": progress}
        common |= {"unit": whom.unit if unit is UNDECLARED and law is None else unit}
        settings = with_delta(mechanism, common | {"budget": budget, "epsilon": TRIAL["epsilon"]})
        whom.check_unit(settings.record)
        caps = None if epsilon is None else (epsilon, delta)
        self.name = check_text("The name of a catalogue", name)
        self._state = State(self.name, whom, settings, streams.check_seed(seed), caps)

    # --- before it is declared --------------------------------------------------------------

    def add(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        mechanism: str | Mechanism | None = None,
        sensitivity: float | Callable[[int], float] | None = None,
        data: str | tuple[str, ...] | None = None,
        coins: tuple[str, ...] = (),
        min_sensitivity: float | None = None,
        version: str | None = None,
        constraints: Any = None,
        **grid: Any,
    ) -> Any:
        """Add a function: ``@catalogue.add``, ``@catalogue.add(limit=[...])``, ``catalogue.add(np.median)``.

        Parameters
        ----------
        function : callable
            A function of the dataset, and of other arguments.
        name : str, optional
            Its name in the catalogue; the function's by default.
        mechanism, sensitivity, data, coins, min_sensitivity, version, constraints
            As for `privatize.privatize`. Members with ``sensitivity=``, with ``mechanism=Blocks(...)`` or
            with bounds of their own (`privatize.sums`) are private for all pairs, and cost no gamma.
        **grid
            For each other parameter, a list of public values that it may be asked with: every combination is
            a question.

        Returns
        -------
        Member
            Called as ``member(epsilon=0.1, ...)``.
        """
        options: dict[str, Any] = {"mechanism": mechanism, "sensitivity": sensitivity, "data": data}
        options |= {"coins": coins or None, "min_sensitivity": min_sensitivity, "version": version}
        options |= {"constraints": constraints}
        if function is None:
            given = {key: value for key, value in options.items() if value is not None}
            return functools.partial(self.add, name=name, **given, **grid)
        with self._state.changing("added to"):
            reserved = {*dir(type(self)), *vars(self)}
            own = check_name(name, function, self._state.members, reserved)
            return self._state.add(function, own, options, grid)

    def drop(self, name: str) -> None:
        """Remove a member, on the pilot's evidence, say. After `check_fit` and `calibrate` none can be."""
        with self._state.changing("dropped from"):
            self[name]  # raises if there is none
            self._state.drop(name)

    def pilot(self) -> Pilot:
        """Try every question on people drawn from P, and tell which of them fail or never move.

        Sampled questions are tried on a few pairs of neighbours, all others as they are asked. It needs no
        private data and costs nothing. Run it as often as you like before `calibrate`: its pairs follow
        from the questions, and decide how these share the joint estimate.
        """
        return self._state.pilot()

    def check_fit(self, people: Any = None, /, *, epsilon: float) -> Fit:
        """Check P on the people themselves, for all sampled questions together (see `privatize.check_fit`).

        It costs one epsilon for all of them, and its factor widens every estimate. Afterwards questions can
        be neither added nor dropped, and it is part of what `calibrate` declares.

        Parameters
        ----------
        people : Sealed, or tuple of Sealed, optional
            The sealed data, if the catalogue has its public facts only.
        epsilon : float
            What to spend; `privatize.fit_power` says what it takes.
        """
        try:  # by mistake it may be data that is not sealed, which no frame of an error may hold
            box = Box()
            box.data = people
        finally:
            del people
        try:
            return self._state.check(box, epsilon)
        finally:
            box.data = None

    # --- declaring --------------------------------------------------------------------------

    def calibrate(self, *, late: bool = False) -> None:
        """Declare the questions, which charges gamma once, and calibrate them together.

        It runs the pilot if there was none, and refuses questions that it found problems with. If it was
        interrupted, it goes on; if another process has declared the same, that is used.

        Parameters
        ----------
        late : bool
            Declare it even though there were answers about these people. It is then recorded as "declared
            after answers: not in the total": its answers are charged like all others, but what the budget
            promises about all answers together does not cover them.
        """
        self._state.declare(late)

    # --- asking -----------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Member:
        """Return a member by its name."""
        if name not in self._state.members:
            known = ", ".join(self._state.members) or "none yet"
            hint = did_you_mean(str(name), self._state.members, 0.6)
            raise ArgumentError(f"The catalogue {self.name!r} has no member {name!r}.{hint} It has {known}.")
        return self._state.members[name]

    def __getattr__(self, name: str) -> Member:
        members: dict[str, Member] = vars(self)["_state"].members if "_state" in vars(self) else {}
        if name in members:
            return members[name]
        known = ", ".join(members) or "none yet"
        hint = "" if name.startswith("_") else did_you_mean(name, members, 0.6)
        raise AttributeError(
            f"A catalogue has no attribute {name!r}, and this one no such member.{hint} It has {known}."
        )

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._state.members]

    # --- what it has ------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """How far it is."""
        return self._state.phase

    @property
    def sampler(self) -> Any:
        """P, or None if there is none."""
        return self._state.settings.sampler

    @property
    def members(self) -> Mapping[str, Member]:
        """The members, by name."""
        return MappingProxyType(self._state.members)

    @property
    def questions(self) -> tuple[str, ...]:
        """The labels of all questions."""
        return tuple(label for member in self._state.members.values() for label in member.questions)

    def plan_budget(self, errors: Mapping[str, float], *, confidence: float = 0.95) -> BudgetPlan:
        """Return the epsilon that questions need for wished errors, and whether the budget carries them all.

        Parameters
        ----------
        errors : dict
            How far answers may be from the raw ones, by question, ``"share_above(limit=20000)"``, or by
            member, for all of its questions.
        confidence : float
            The probability, for each number of an answer by itself.
        """
        self._state.must_be_declared("plan_budget")
        left = [each.remaining for each in self._state.budgets]
        return planned(self.name, self._state.members, errors, left, confidence)

    def asked(self) -> list[dict[str, Any]]:
        """Return what was asked, the oldest first: question, epsilon, delta and time, from the ledger."""
        return asked_of(self._state)

    def facts(self) -> dict[str, Any]:
        """Return what it is and what was asked, as JSON, for reports."""
        return facts_of(self._state)

    def card(self) -> Card:
        """Return what a person sees of it: its people, promise and questions, what was asked and is left."""
        return card_of(self.facts())

    def __repr__(self) -> str:
        if "_state" not in vars(self):  # while it is being made, as debuggers see it
            return "<catalogue>"
        count = counted(len(self.questions), "question")
        whom = self._state.whom
        return f"<catalogue {self.name!r} about {whom.dataset}, n={whom.n}: {count}; {phase_of(self._state)}>"

    def __copy__(self, _: Any = None) -> Catalogue:
        return self  # with a copy, other questions could be declared under the same name

    __deepcopy__ = __copy__

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"""The catalogue {self.name!r} cannot be pickled: it has sealed data and budgets.
            Make it in a module, and import that where it is needed: what was declared is in the ledger.""")
