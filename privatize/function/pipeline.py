"""The release pipeline: every step of a call from private arguments to a private answer.

The rule that everything here follows: private arguments are in one `Box`, which is emptied
before any error is raised. Errors are raised by frames that hold no arguments or values any
more, without cause, context or traceback of anything that has seen private data.
"""

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from privatize import errors
from privatize.budgets.budget import distinct
from privatize.budgets.charges import Charge
from privatize.budgets.entered import current
from privatize.budgets.sealed import carried, declared, hidden_in, is_sealed, opened, subject
from privatize.calibration.global_rng import level, rng_guard, unwind
from privatize.calibration.sensitivity import Sensitivity
from privatize.config.policy import Policy, policy
from privatize.data import records
from privatize.data.clipping import convert_floats
from privatize.function import silence
from privatize.function.advice import BOOTSTRAPPED, CHANGED, FAILED, INTERNAL, LEFT, UNFIT
from privatize.function.binding import Call
from privatize.function.box import Box
from privatize.function.calibrator import Calibrator, Estimate, refuse_reachable
from privatize.function.question import Definition, Question
from privatize.function.recursion import active_guards
from privatize.function.release import Release
from privatize.function.template import Template
from privatize.identity.declared import declare
from privatize.identity.reachable import is_private
from privatize.mechanisms.base import BaseMechanism, complete
from privatize.mechanisms.weighted import weighted
from privatize.samplers.tables import columns_of, values_of


class Defined(Protocol):
    """What the pipeline needs of a private function."""

    calibrator: Calibrator  # what makes its estimates

    @property
    def definition(self) -> Definition:
        """The raw function, its parameters and the promise."""


def released(function: Defined, box: Box, *, entire: bool) -> Any:
    """Return an entire release or its value, or raise from a frame that holds nothing private."""
    try:  # the first statement: an interrupt before it would leave the box full
        definition, calibrator = function.definition, function.calibrator
        inside, raw = active_guards(), definition.binding.function
        own = [guard for guard in inside if guard.root is definition.root]
        if not entire and any(guard.calls(raw) for guard in own):
            return raw(*box.args, **box.kwargs)  # it calls itself: the outer call adds noise
        nested = (None, _nested(definition, inside[-1].root)) if inside else None
        outcome, failure = nested or _attempted(definition, calibrator, box, entire)
    finally:  # also after an interrupt, wherever it came
        box.args = box.kwargs = box.data = box.value = None
    if failure is not None:
        raise failure
    return outcome


def _nested(definition: Definition, outer: Any) -> errors.SettingsError:
    """Return the error for a private function that is called while one is being evaluated."""
    name = definition.name
    if outer is definition.root:
        return errors.SettingsError(f"""{name}() was called while it was being evaluated, by something that
            its own code does not name, such as a signal handler, a callback or a finalizer. That caller would
            get an answer without noise. Call {name}() afterwards; if this is how it calls itself, call
            {name}.__wrapped__(...) there.""")
    return errors.SettingsError(f"""{name}() is private, and is called inside {outer.__name__}(), which is
        private too: noise would be added twice, and calibrated to noise. Call {name}.__wrapped__(...) there,
        or ask both separately.""")


def _attempted(
    definition: Definition, calibrator: Calibrator, box: Box, entire: bool
) -> tuple[Any, BaseException | None]:
    """Return a release or its value, and the error to raise. Never raises."""
    failure: BaseException
    try:
        return _run(definition, calibrator, box, entire), None
    except BaseException as error:  # whatever it is, only its stripped form is raised
        failure = error
    bare = _bare(failure, definition.advice.about(INTERNAL), box.started)
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


# --- the steps, in their order ----------------------------------------------------------------


def _run(definition: Definition, calibrator: Calibrator, box: Box, entire: bool) -> Any:
    rules = policy()
    definition.settings.obey(definition.name, rules)
    box.data, call = definition.binding.bind(box.args, box.kwargs)
    box.args = box.kwargs = None
    subjects = _unseal(definition, box, call, rules)
    if definition.settings.sampler is None and subjects.sampler is not None:
        definition = calibrator.under(definition, subjects.sampler)
    asked, positions = _compare(definition, calibrator.template(definition), call, box)
    charge = _charge(asked, subjects) if subjects.budgets else None
    if charge is not None:  # before calibrating, which is wasted if the budget is used up
        _check(subjects, charge)
    estimate = calibrator.recall(asked, box)
    sensitivity = estimate.sensitivity
    function = asked.function(sensitivity.coin_seed)
    _convert(asked, box, positions)
    if charge is not None:  # after the conversion: data that does not fit costs nothing. There is no refund.
        _reserve(subjects, _charge(asked, subjects), estimate)  # again: P may have changed meanwhile
    before = estimate.snapshot(asked)
    box.started = True  # from here on errors contain only fixed messages and names from the code
    left: list[str] = []
    try:
        returned = _evaluate(asked, box, function, sensitivity)
    finally:
        left = before.put_back()
    if not returned:
        raise errors.PrivateRunError(asked.definition.advice.about(FAILED))
    if left:
        raise errors.PrivateRunError(asked.definition.advice.about(LEFT, left))
    if not estimate.holds():  # the noise is for the function as it was
        raise errors.PrivateRunError(asked.definition.advice.about(CHANGED))
    if box.value is None:
        raise errors.PrivateRunError(asked.definition.advice.about(UNFIT))
    return _noised(asked, box, sensitivity, entire)


@dataclass(frozen=True, slots=True)
class _Subjects:
    """Whom the data is about, as it was declared, and which budgets pay for answers about them."""

    budgets: list[Any]
    dataset: str = ""
    people: tuple[str, ...] = ()
    sampler: Any = None  # the P that the data was sealed with


def _unseal(definition: Definition, box: Box, call: Call, rules: Policy) -> _Subjects:
    """Open sealed data in the box; return what was declared about it, and all budgets that apply."""
    name, settings, binding = definition.name, definition.settings, definition.binding
    if call.comparable() is None and hidden_in(call.others()):
        raise errors.SealedError(f"""{name}() was given sealed data as an argument that is not its dataset.
            Only the dataset is opened: pass it as {", ".join(binding.names)}.""")
    parts = box.data if binding.aligned else (box.data,)
    sealed = {is_sealed(part) for part in parts}
    if len(sealed) > 1:
        raise errors.SealedError(f"Only some of {', '.join(binding.names)} are sealed. Seal all or none.")
    if rules.require_sealed and sealed == {False}:
        raise errors.PolicyError(f"""{name}() was called with data that is not sealed, and the policy has
            require-sealed. Seal it: seal(data, name=...).""")
    found = _Subjects([settings.budget, *current()])
    if sealed == {True}:
        found = _declared(parts, found.budgets, settings.sampler is None)
        box.data = tuple(map(opened, parts)) if binding.aligned else opened(box.data)
    budgets = distinct(found.budgets)
    if rules.require_budget and not budgets:
        raise errors.PolicyError(f"""{name}() has no budget, and the policy has require-budget. Pass
            budget=Budget(...), call it in `with budget:`, or seal the data with one.""")
    return replace(found, budgets=budgets)


def _declared(parts: tuple[Any, ...], budgets: list[Any], needs_p: bool) -> _Subjects:
    """Return what was declared about the parts of sealed data. If P is needed, they must agree on it."""
    carry = [carried(part) for part in parts]
    known = [sampler for sampler, _ in carry if sampler is not None]
    if needs_p and any(other != known[0] for other in known):
        raise errors.SettingsError(f"""The parts of the dataset are sealed with different P: {known!r}. Pass
            one for all of them together, privatize(sampler=...).""")
    return _Subjects(
        [*budgets, *(budget for _, budget in carry)],
        " and ".join(dict.fromkeys(map(declared, parts))),
        tuple(dict.fromkeys(map(subject, parts))),
        known[0] if known else None,
    )


def _compare(definition: Definition, template: Template, call: Call, box: Box) -> tuple[Question, Any]:
    """Compare the data with P; return the question for its sensitivity, and which records are used."""
    n = records.count(box.data)
    if n == 0:
        raise errors.DataError("""The dataset is empty: there is nobody to answer about, and nothing to
            answer.""")
    if not template.fixed:  # P may be made of the data, and an error could show P
        refuse_reachable(definition.name, template.sampler, box)
    alike = records.is_same_kind(box.data, template.records())
    schema = None if alike else template.match(records.describe(box.data))
    if template.draws_public and is_private(template.sampler, box.data):
        raise errors.DataError(BOOTSTRAPPED)
    used, positions = template.used(n)
    return Question(definition, template, call, used, schema), positions


def _charge(asked: Question, subjects: _Subjects) -> Charge:
    """Return what a release costs, as far as that is known before the calibration."""
    s = asked.settings
    law = declare(s.sampler)
    # A class of the user's own, or one that is derived from ours, may claim any kind of composition.
    mechanism = complete(s.mechanism)
    trusted = type(mechanism) if s.own_mechanism else BaseMechanism
    return Charge(
        function=asked.definition.name,
        key="",
        dataset=subjects.dataset,
        people=subjects.people,
        n=asked.n,
        mechanism=type(s.mechanism).__name__,
        kind=trusted.composition_kind(mechanism, s.epsilon, s.delta),
        epsilon=s.epsilon,
        delta=s.delta,
        gamma=0.0 if subjects.dataset else s.gamma,
        declared=(law.digest,),
        described=law.description,
        lossless=law.lossless,
        columns=columns_of(s.sampler, asked.template.records()),
        values=values_of(s.sampler),
    )


def _reserve(subjects: _Subjects, charge: Charge, estimate: Estimate) -> None:
    """Charge a release to every budget, or refuse it."""
    found = estimate.sensitivity
    full = replace(
        charge,
        key=f"{estimate.key}:{found.seed}" if estimate.key else "",
        gamma=found.gamma,
        average_gamma=min(found.average_gamma, found.gamma),
        looks=found.certified(),
    )
    if len(subjects.budgets) > 1:
        _check(subjects, full)
    for budget in subjects.budgets:
        budget.reserve(full)


def _check(subjects: _Subjects, charge: Charge) -> None:
    """Refuse a release that one of the budgets cannot pay for."""
    for budget in subjects.budgets:
        budget.afford(charge)


def _convert(asked: Question, box: Box, positions: Any) -> None:
    """Convert the data to the form that P draws, as calibration converts its draws."""
    drawn, support = asked.template.records(), asked.template.support
    box.value = convert_floats(box.data, drawn, support) if positions is None else None
    if box.value is not None:
        box.data, box.value = box.value, None
        return
    with np.errstate(all="ignore"), silence.quiet():  # a warning could quote a private number
        if positions is not None:
            box.data = records.take(box.data, positions)
        box.data = records.convert(box.data, drawn, support)


def _evaluate(asked: Question, box: Box, function: Callable[[Any], Any], found: Sensitivity) -> bool:
    """Run the raw function once on the private data; tell whether it returned.

    What it returned is then in the box, as a flat vector; or None, if that is not finite or has another
    structure.
    """
    hush, entered = silence.quiet(), level()
    returned = interrupted = False
    try:  # not by `with`: an interrupt could come after entering and before what `with` protects
        hush.__enter__()
        try:
            with rng_guard(found.coin_seed) as rng, hush.everywhere():
                rng.reseed()
                box.value = asked.guard().run(function, box.data)
            returned = True
            flat = found.structure.flatten(box.value)
            finite = math.isfinite(flat[0]) if len(flat) == 1 else np.isfinite(flat).all()
            box.value = flat if finite else None
        finally:
            unwind(entered)
    except KeyboardInterrupt:
        interrupted = True
    except BaseException:  # sys.exit(data) would leak as well, and an output's own methods are user code
        box.value = None
    finally:
        hush.__exit__()
    if interrupted:
        raise KeyboardInterrupt
    return returned


def _noised(asked: Question, box: Box, found: Sensitivity, entire: bool) -> Any:
    """Add noise to the vector in the box, and return a release or its value."""
    settings, mechanism = asked.settings, asked.settings.mechanism
    used = weighted(mechanism, found.weights)
    # A mechanism of the user's own could quote the raw answer in a warning.
    with contextlib.nullcontext() if settings.own_mechanism else silence.quiet():
        noised = used.release(
            box.value,
            sensitivity=found.value,
            epsilon=settings.epsilon,
            delta=settings.delta,
            whole=found.whole,
        )
    box.data = box.value = None
    wrap = complete(mechanism).wrap
    value = wrap(noised) if wrap else found.structure.rebuild(noised)
    if not entire:
        return value
    return Release(
        value=value,
        epsilon=settings.epsilon,
        delta=settings.delta,
        gamma=found.gamma,
        average_gamma=found.average_gamma,
        sensitivity=found.value,
        scale=used.scale(found.value, settings.epsilon, settings.delta),
        mechanism=type(mechanism).__name__,
        noise=complete(mechanism).noise,
        n=asked.n,
        m=found.m,
        k=found.k,
        bound=found.bound,
    )
