"""Try questions that have a bound for all pairs on made-up people, before anything is spent on them."""

from __future__ import annotations

import contextlib
import functools
import warnings
from typing import Any

import numpy as np

from privatize.calibration import streams
from privatize.calibration.clamped import Clamped
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.proven import Proven
from privatize.data import records
from privatize.data.persons import Persons
from privatize.errors import CalibrationError, OutputError, PrivatizeError
from privatize.function.calibrator import Calibrator
from privatize.function.declaring import Draft, Entry
from privatize.function.joint import Tried
from privatize.function.recursion import RecursionGuard
from privatize.function.settings import TRIAL
from privatize.function.strength import Strict, bound_to
from privatize.function.template import Template
from privatize.identity.leftovers import Snapshot
from privatize.outputs.describe import describe, difference

_DATASETS = 8  # that a function is tried on, of as many people as it sees at a time


def tried(draft: Draft, epsilon: float, seed: int) -> tuple[Tried, ...]:
    """Try the questions that are not sampled, each as it will be asked, and return what was seen of each.

    The user's own bounds are attacked as in a first answer, which then finds it in the store. Other functions
    run on people that are drawn from the catalogue's P, if it has one.

    Parameters
    ----------
    draft : Draft
        All questions.
    epsilon : float
        The most that an answer may spend: blocks of people are largest then.
    seed : int
        The seed of the made-up people.
    """
    others = [entry for entry in draft.entries if not entry.inquiry.sampled]
    data, why = None, "the catalogue has no P to draw people from"
    if draft.settings.sampler is not None and any(entry.question is None for entry in others):
        try:
            template = Template(draft.settings)
            drawn = template.sample(template.used(draft.whom.n)[0], seed)
            data = records.cast(drawn, draft.whom.schema(template))
        except PrivatizeError as error:  # they need no P
            why = str(error)
    found = []
    for entry in others:
        how, problem = f"not tried: {why}", ""
        try:
            own, constraints = entry.inquiry.definition.proven, entry.inquiry.settings.constraints
            if own is not None and constraints is not None:
                constraints.check(own.structure(draft.whom.n), entry.inquiry.name)
            if entry.question is not None:
                bound: Any = Calibrator().recall(entry.question).sensitivity
                how = f"its bound held on {bound.tried} pairs"
            elif data is not None and own is not None:
                how = _run(entry, own, data, epsilon, streams.coin_seed(seed))
        except PrivatizeError as error:
            problem = str(error)
        found.append(Tried(entry.label, how, problem))
    return tuple(found)


def _run(entry: Entry, own: Proven, data: Any, epsilon: float, s0: int) -> str:
    """Run a function with a bound of its own on made-up people, and say how; raise if it does not work."""
    definition, n = entry.inquiry.definition, records.count(data)
    call = definition.binding.bind_public((), dict(entry.choice.arguments))
    context = functools.partial(RecursionGuard, definition.root, call.function)
    several = type(data) is Persons
    own = own.for_persons(data.unit) if several else own
    proven, size = bound_to(own, call, s0, context, persons=several), 1
    if isinstance(proven, Strict):
        size = max(1, n // proven.mechanism.number(n, max(epsilon, TRIAL["epsilon"])))
    before = Snapshot(call.function, call.shared())
    try:
        with rng_guard(s0) as rng, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as when it is asked
            rng.reseed()
            context().run(proven.fits, data)
            failures = []
            for at in range(min(_DATASETS, n // size)):
                if not isinstance(proven, Strict | Clamped):  # nothing of the user's own runs
                    break
                some = records.isolated(records.take(data, np.arange(at * size, (at + 1) * size)))
                rng.reseed()
                failures.append(context().run(_failure, proven, some, n))
            if failures and all(failures):
                raise CalibrationError(f"""It failed on all {len(failures)} made-up datasets from P, of {size}
                    each: {failures[0]}. Make it work on what P draws, or drop it.""")
            if not isinstance(proven, Strict) and context().run(proven.measure, data, n) is None:
                raise CalibrationError(proven.broken)
    finally:
        before.put_back()
    worked = f"{failures.count('')} of {len(failures)} made-up datasets of {size}"
    return f"worked on {worked}" if isinstance(proven, Strict) else f"worked on {n} made-up people"


def _failure(proven: Strict | Clamped, data: Any, n: int) -> str:
    """Return why a function does not work on some made-up people; empty if it does."""
    try:
        found = proven.function(data)
        if isinstance(proven, Clamped):
            proven.units(found, n)
            return ""
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}".rstrip(". ")
    if not np.isnan(proven.mechanism.row(found)).all():
        return ""
    with contextlib.suppress(OutputError):
        if describe(found) == proven.mechanism.structure:
            return "it returned no finite number"
    return f"it returned {difference(found, proven.mechanism.structure)}, unlike low and high"
