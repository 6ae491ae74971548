"""Check P on the people themselves, with plain differential privacy, and say by how much to widen."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from privatize import errors
from privatize.budgets.budget import Budget
from privatize.budgets.charges import Lesson
from privatize.budgets.partition import Part
from privatize.calibration.factor_scan import FACTORS, Cut, sizes
from privatize.calibration.fit import Fit, fit_of
from privatize.calibration.sensitivity import Sensitivity
from privatize.data import records
from privatize.errors import CalibrationError, SettingsError
from privatize.function.advice import BEYOND
from privatize.function.block_gaps import Gauge
from privatize.function.blocks import cut
from privatize.function.box import Box
from privatize.function.calibrator import refuse_reachable
from privatize.function.opening import Opened, Opening
from privatize.function.private_function import PrivateFunction
from privatize.function.question import Question
from privatize.function.recognizing import recognize, signature
from privatize.function.settings import Settings
from privatize.function.template import Template
from privatize.identity.fingerprint import identity_of

_NAME = "check_fit"
_COMMON = ("gamma", "sampler", "domain", "budget")
Private = PrivateFunction[..., Any]


def check_fit(
    functions: Private | Sequence[Private],
    people: Any,
    *,
    epsilon: float = 0.2,
    budget: Budget | Part | None = None,
) -> Fit:
    """Check on the people themselves whether P's estimates are large enough, with plain differential privacy.

    The people are cut into small blocks by a secret permutation. In each block one record is replaced by
    another real one, and the gap is compared with P's own estimate for datasets of that size. See "Check P
    on the people" in the docs for what is certain then, and what is assumed.

    Parameters
    ----------
    functions : PrivateFunction or list of these
        Sampled functions of the dataset alone. Several have P, gamma and budget in common, and one factor is
        found for all of them.
    people : dataset
        What the functions are asked about, sealed or not; a tuple if they take several datasets.
    epsilon : float
        What to spend. `fit_power` says what it takes.
    budget : Budget, optional
        What it is charged to, beside the budget of sealed data and those that were entered. By default the
        functions' own.

    Returns
    -------
    Fit
        Widen estimates with it: ``f.replace(fit=fit)``. If sealed data has a budget, the same is returned,
        without charge, when the same is asked again.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize import check_fit, privatize, samplers
    >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 100))(np.mean)
    >>> people = np.random.default_rng(0).uniform(0, 100, 4000)
    >>> fit = check_fit(mean, people, epsilon=1)
    >>> mean.replace(fit=fit).estimate(4000).value >= mean.estimate(4000).value
    True
    """
    box = Box()
    try:
        box.data, people = people, None
        box.args, functions = functions, ()  # by mistake it may be the data
        checked = _functions(box)
        own = checked[0].settings if budget is None else replace(checked[0].settings, budget=budget)
        asked, estimated = functools.partial(_asked, checked), functools.partial(_estimated, checked)
        return Check(tuple(each.__name__ for each in checked), own, asked, estimated).run(box, epsilon)
    finally:
        box.data = box.args = None


def _functions(box: Box) -> list[Private]:
    """Return the functions in the box, or refuse those that cannot be checked together."""
    found = list(box.args) if isinstance(box.args, list | tuple) else [box.args]
    box.args = None
    if not found or not all(isinstance(each, PrivateFunction) for each in found):
        del found
        raise SettingsError(f"""{_NAME}() takes a private function, or a list of them, made by
            privatize(...).""")
    first = found[0]
    for each in found:
        if each.settings.plan is None:
            raise SettingsError(f"""{each.__name__}() does not rest on sampled pairs: it is private for all
                neighbours, so there is nothing to check. Leave it out.""")
        unlike = [name for name in _COMMON if getattr(each.settings, name) != getattr(first.settings, name)]
        if unlike or each.definition.binding.aligned != first.definition.binding.aligned:
            raise SettingsError(f"""{first.__name__}() and {each.__name__}() cannot be checked together: they
                differ in {unlike[0] if unlike else "data"}=. Check each by itself, or give them the same
                {", ".join(_COMMON)} and data.""")
    return found


def _asked(checked: Sequence[Private], template: Template, schema: Any, size: int) -> tuple[Question, ...]:
    """Return the question for each function, without the fit that it may have already."""
    found = []
    for each in checked:
        settings = replace(each.settings, sampler=template.sampler, fit=None)
        definition = replace(each.definition, settings=settings)
        call = definition.binding.bind_public((), {})
        found.append(Question(definition, template, call, size, schema))
    return tuple(found)


def _estimated(checked: Sequence[Private], asked: Sequence[Question]) -> tuple[Sensitivity, ...]:
    """Return the estimate for each question by itself, since that is what an answer uses."""
    pairs = zip(checked, asked, strict=True)
    found: list[Any] = [each.calibrator.recall_quietly(question).sensitivity for each, question in pairs]
    return tuple(found)


# --- any check --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Check:
    """What is checked: questions about people, and how P's own estimates for them are made.

    Attributes
    ----------
    labels : tuple of str
        What the questions are called.
    settings : Settings
        What they have in common: P, or None for that of sealed data, gamma, domain and budget.
    ask : callable
        Returns the questions, given the template of P, the schema of the data, and a number of people.
    estimate : callable
        Returns P's estimate for each of the questions.
    name : str
        Its name in errors and in ledgers.
    again : str
        Why it must not be made and paid for now, if it is not remembered; empty if it may.
    """

    labels: tuple[str, ...]
    settings: Settings
    ask: Callable[[Template, Any, int], tuple[Question, ...]]
    estimate: Callable[[tuple[Question, ...]], tuple[Sensitivity, ...]]
    name: str = _NAME
    again: str = ""

    def run(self, box: Box, epsilon: float) -> Fit:
        """Check P on the people in the box, or raise from a frame that holds nothing private."""
        own = self.settings
        settings = Settings(epsilon=epsilon, sampler=own.sampler, domain=own.domain, budget=own.budget)
        opening = Opening(name=self.name, settings=settings, purpose="check")
        return opening.run(box, functools.partial(self._checked, settings.epsilon))

    def _checked(self, epsilon: float, found: Opened) -> Fit:
        gamma, template = self.settings.gamma or 0.0, found.template
        if found.positions is not None:
            raise SettingsError(f"""{template.sampler!r} uses a number of records of its own, and a check
                needs P for smaller datasets, too. Check with a P without size=.""")
        planned = sizes(found.n, gamma, epsilon)
        schema = template.match(records.describe(found.box.data))
        asked = self.ask(template, schema, planned.main.size)
        # By identity alone: an error that depends on values would be an answer that nobody has paid for.
        reached = [[each.call.function, each.call.others()] for each in asked]
        refuse_reachable(self.name, reached, found.box, copies=False)
        known = vars(planned) | {"n": found.n, "gamma": gamma, "epsilon": epsilon}
        known |= {"functions": self.labels, "about": tuple(each.identity() for each in asked)}

        def read(facts: dict[str, Any]) -> Fit:
            """Read what was found before, if the functions are still what was checked."""
            fit = Fit.of_facts(facts)
            for each, before in zip(asked, fit.signatures, strict=False):
                recognize(each, before, planned.main.size, "has checked it")
            return fit

        def prepare() -> Callable[[Box], Fit]:
            if self.again:
                raise SettingsError(self.again)
            main, second = self._gauge(template, schema, planned.main), planned.smaller
            smaller = None if second is None else self._gauge(template, schema, second)
            signatures = tuple(signature(each, planned.main.size) for each in asked)
            return functools.partial(_measured, main, smaller, known | {"signatures": signatures})

        return found.once(self._lesson(found, asked, epsilon), read, prepare)

    def _lesson(self, found: Opened, asked: tuple[Question, ...], epsilon: float) -> Lesson:
        """Return what the answer is remembered under; without settings if that cannot be known."""
        plans = [repr((each.settings.plan, each.settings.min_sensitivity)) for each in asked]
        facts = ["fit", epsilon, self.labels, plans]
        digests = [identity_of(each.facts(), version=each.settings.version) for each in asked]
        key = None if None in digests else identity_of([*facts, digests])
        within = " ".join(found.template.law()["declared"])
        return Lesson(dataset=found.subjects.dataset, n=found.n, within=within, settings=key or "")

    def _gauge(self, template: Template, schema: Any, cut: Cut) -> Gauge:
        """Return what gaps in blocks are compared with, calibrated now or remembered."""
        asked = self.ask(template, schema, cut.size)
        try:
            gauge = Gauge(asked, self.estimate(asked), cut)
        except CalibrationError as error:
            error.args = (f"In datasets of {cut.size} people from P, the size of a block: {error}",)
            raise
        gauge.check()
        return gauge


def _measured(main: Gauge, smaller: Gauge | None, known: dict[str, Any], box: Box) -> Fit:
    """Count the blocks that are beyond each factor, and return what noise leaves of that."""
    if smaller is None:
        counts, second = main.counts(box.value), None
    else:  # of different people, so that each of them is in one block
        (order,) = cut(known["n"], 1)
        first, other = np.split(order, [main.cut.number * main.cut.people])
        counts = main.counts(records.take(box.value, first))
        second = smaller.counts(records.take(box.value, other))
    found = fit_of(counts, second, **known)
    if found is None:
        raise errors.PrivateRunError(BEYOND.format(name=_NAME, factor=f"{FACTORS[-1]:g}"))
    return found
