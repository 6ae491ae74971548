"""The release pipeline: every step of a call from private arguments to a private answer.

The rule that everything here follows: private arguments are in one `Box`, which is emptied
before any error is raised. Errors are raised by frames that hold no arguments or values any
more, without cause, context or traceback of anything that has seen private data.
"""

import contextlib
import functools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from privatize import errors
from privatize.budgets.charges import Charge
from privatize.budgets.sealed import hidden_in
from privatize.calibration import streams
from privatize.calibration.global_rng import level, rng_guard, unwind
from privatize.calibration.proven import Proven
from privatize.calibration.refuting import ProvenBound
from privatize.calibration.sensitivity import Sensitivity
from privatize.config.policy import Policy, check_answering, policy
from privatize.data import records
from privatize.data.persons import Persons
from privatize.function import silence
from privatize.function.advice import BOOTSTRAPPED, CHANGED, FAILED, INTERNAL, LEFT, UNFIT, Advice
from privatize.function.binding import Call
from privatize.function.box import Box
from privatize.function.calibrator import Calibrator, Estimate, refuse_reachable
from privatize.function.constraining import made_valid
from privatize.function.opening import (
    Subjects,
    afford,
    attempted,
    convert,
    counted,
    persons,
    reserve,
    unseal,
)
from privatize.function.question import Definition, Question
from privatize.function.recursion import RecursionGuard, active_guards
from privatize.function.release import Release
from privatize.function.signal import signal_of
from privatize.function.strength import GIVEN, bound_to, mechanism_name, words_of
from privatize.function.template import Template
from privatize.identity.change_guard import ChangeGuard
from privatize.identity.leftovers import Snapshot
from privatize.identity.reachable import is_private
from privatize.mechanisms.base import BaseMechanism, complete
from privatize.mechanisms.weighted import weighted
from privatize.outputs.structure import Structure


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
        run = functools.partial(_run, definition, calibrator, box, entire)
        outcome, failure = nested or attempted(run, box, definition.advice, INTERNAL)
    finally:  # also after an interrupt, wherever it came
        box.args = box.kwargs = box.data = box.raw = box.value = None
    if failure is not None:
        raise failure
    if definition.settings.constraints is not None:  # here nothing is left that is private
        return made_valid(definition.name, definition.settings.constraints, box.structure, outcome)
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


def _obey_gamma(name: str, found: Any, rules: Policy) -> None:
    """Refuse an estimate whose gamma has grown beyond the policy's, because it was read with other plans."""
    if isinstance(found, Sensitivity) and rules.max_gamma is not None and found.gamma > rules.max_gamma:
        raise errors.PolicyError(f"""{name}() breaks the policy in {rules.file}: the estimate was also read
            with another gamma, bound or samples, so that gamma={found.gamma:.4g} is what holds, and
            max-gamma={rules.max_gamma:g}. Another seed= gives it an estimate of its own.""")


# --- the steps, in their order ----------------------------------------------------------------


def _run(definition: Definition, calibrator: Calibrator, box: Box, entire: bool) -> Any:
    check_answering(definition.name)
    rules = policy()
    definition.settings.obey(definition.name, rules)
    if rules.require_catalogue and definition.settings.gamma is not None and not definition.catalogue:
        raise errors.PolicyError(f"""{definition.name}() was asked outside of a catalogue, and the policy has
            require-catalogue: a sampled question must be declared before the first answer. Add it to one
            before that is declared: catalogue.add({definition.name}).""")
    box.data, call = definition.binding.bind(box.args, box.kwargs)
    box.args = box.kwargs = None
    subjects = _unseal(definition, box, call, rules)
    if definition.settings.constraints is not None:  # what it returns must depend on the answer alone
        sampled, functions = definition.settings.plan is not None, definition.settings.constraints.functions()
        refuse_reachable(definition.name, functions, box, copies=sampled)
    if definition.proven is not None:
        return _run_proven(definition, definition.proven, call, box, subjects, entire)
    if definition.settings.sampler is None and subjects.sampler is not None:
        definition = calibrator.under(definition, subjects.sampler)
    template = calibrator.template(definition)
    if not template.fixed:  # P may be made of the data, and an error could show P
        sampled = definition.settings.plan is not None
        refuse_reachable(definition.name, template.sampler, box, copies=sampled)
    subjects = persons(definition.name, definition.settings.record, template, box, subjects)
    asked, positions = _compare(definition, template, call, box)
    charge = _charge(asked, subjects) if subjects.budgets else None
    if charge is not None:  # before calibrating, which is wasted if the budget is used up
        afford(subjects, charge)
    estimate = calibrator.recall(asked, box)
    sensitivity = estimate.sensitivity
    _obey_gamma(definition.name, sensitivity, rules)
    box.structure = sensitivity.structure
    function = asked.function(sensitivity.coin_seed)
    convert(asked.template, box, positions)
    if charge is not None:  # after the conversion: data that does not fit costs nothing. There is no refund.
        # Again: P may have changed meanwhile.
        mark = calibrator.mark(asked, sensitivity)
        full = _certified(_charge(asked, subjects), estimate, mark, subjects.tag)
        given = reserve(subjects, full)
    else:
        given = False
    before = estimate.snapshot(asked)
    _evaluate(definition.advice, box, before, asked.guard(), function, sensitivity)
    # The noise is for the function as it was. A guard that had nothing to put back has just compared it.
    if before is not estimate.guard and not estimate.holds():
        raise errors.PrivateRunError(asked.definition.advice.about(CHANGED))
    if box.value is None:
        raise errors.PrivateRunError(asked.definition.advice.about(UNFIT))
    words = words_of(asked.settings, None)
    return _noised(asked, box, sensitivity, _in_words(words, given), entire)


def _in_words(words: str, given: bool) -> str:
    return f"{words}, {GIVEN}" if words and given else words


def _run_proven(
    definition: Definition, own: Proven, call: Call, box: Box, subjects: Subjects, entire: bool
) -> Any:
    """Return a release, or its value, of a function that has a bound of its own. It needs no P."""
    s = definition.settings
    subjects = persons(definition.name, s.record, None, box, subjects)
    own, n = own if type(box.data) is not Persons else own.for_persons(box.data.unit), counted(box)
    if call.open is not None:
        raise errors.ArgumentError(f"{definition.name}() was called without {call.open!r}.")
    # A bound is about the argument: what the function reads elsewhere it reads for every record and block.
    # By identity alone: an error that depends on values would be an answer that nobody has paid for.
    refuse_reachable(definition.name, [call.function, call.others()], box, copies=False)
    s0 = streams.coin_seed(streams.seed_or_fresh(s.seed))
    context = functools.partial(RecursionGuard, definition.root, call.function)
    proven = bound_to(own, call, s0, context, persons=type(box.data) is Persons)
    with silence.quiet():
        context().run(proven.fits, box.data)
    structure = box.structure = own.structure(n)
    if s.constraints is not None:
        s.constraints.check(structure, definition.name)
    given = reserve(subjects, _plain(definition, subjects, n))
    before = Snapshot(call.function, call.shared())
    _evaluate(definition.advice, box, before, context(), lambda data: proven.measure(data, n), s0)
    if box.value is None:
        raise errors.PrivateRunError(proven.broken)
    answer = proven.release(box.value, n, s.mechanism, s.epsilon, s.delta)
    box.data = box.raw = box.value = None
    value = structure.rebuild(answer.vector)
    if not entire:
        return value
    return Release(
        value=value,
        epsilon=s.epsilon,
        delta=s.delta,
        gamma=0.0,
        average_gamma=0.0,
        sensitivity=answer.sensitivity,
        scale=_arranged(structure, answer.scale) if proven.noise_of(s.mechanism) else answer.scale,
        mechanism=mechanism_name(s, proven),
        noise=proven.noise_of(s.mechanism),
        n=n,
        m=0,
        k=0,
        bound="proven",
        proven=_in_words(proven.words, given),
        catalogue=definition.catalogue,
    )


def _unseal(definition: Definition, box: Box, call: Call, rules: Policy) -> Subjects:
    """Open sealed data in the box, and refuse it in other places; return whom it is about."""
    name, settings, binding = definition.name, definition.settings, definition.binding
    if call.comparable() is None and hidden_in(call.others()):
        raise errors.SealedError(f"""{name}() was given sealed data as an argument that is not its dataset.
            Only the dataset is opened: pass it as {", ".join(binding.names)}.""")
    return unseal(name, settings, box, rules, names=binding.names, aligned=binding.aligned)


def _compare(definition: Definition, template: Template, call: Call, box: Box) -> tuple[Question, Any]:
    """Compare the data with P; return the question for its sensitivity, and which records are used."""
    n = counted(box)
    # A promise for all pairs allows no error that depends on values, before anybody has paid.
    sampled = definition.settings.plan is not None
    alike = records.is_same_kind(box.data, template.records())
    schema = None if alike else template.match(records.describe(box.data))
    if sampled and template.draws_public and is_private(template.sampler, box.passed):
        raise errors.DataError(BOOTSTRAPPED)
    used, positions = template.used(n)
    return Question(definition, template, call, used, schema), positions


def _charge(asked: Question, subjects: Subjects) -> Charge:
    """Return what a release costs, as far as that is known before the calibration."""
    s, plain = asked.settings, _plain(asked.definition, subjects, asked.n)
    if s.gamma is None:
        return plain
    gamma = 0.0 if subjects.dataset else s.gamma
    return replace(plain, strength="sampled", gamma=gamma, **asked.template.law())


def _plain(definition: Definition, subjects: Subjects, n: int) -> Charge:
    """Return what a release costs that is private for all pairs."""
    s, mechanism = definition.settings, complete(definition.settings.mechanism)
    # A class of the user's own, or one that is derived from ours, may claim any kind of composition.
    noise = definition.proven is None or definition.proven.noise_of(s.mechanism)
    trusted = type(mechanism) if s.own_mechanism and noise else BaseMechanism
    kind, name = trusted.composition_kind(mechanism, s.epsilon, s.delta), mechanism_name(s, definition.proven)
    return subjects.charge(definition.charged or definition.name, s, n, mechanism=name, kind=kind)


def _certified(charge: Charge, estimate: Estimate, mark: str, tag: str) -> Charge:
    """Return a charge with what is known after the calibration.

    Persons in another order fail on other pairs, so their γ is charged again: the key names the order. So is
    that of a function that computes something else in another process: a mark of the key tells them apart.
    """
    found = estimate.sensitivity
    key = ":".join(filter(None, [estimate.key, str(found.seed), mark, tag])) if estimate.key else ""
    if isinstance(found, ProvenBound):
        return replace(charge, key=key)
    average = min(found.average_gamma, found.gamma)
    return replace(charge, key=key, gamma=found.gamma, average_gamma=average, looks=found.certified())


def _evaluate(
    advice: Advice,
    box: Box,
    before: Snapshot | ChangeGuard,
    guard: RecursionGuard,
    function: Callable[[Any], Any],
    found: Sensitivity | ProvenBound | int,
) -> None:
    """Run a function once on the private data, or raise if it fails or leaves something behind.

    What it returned is then in the box, as a flat vector; or None, if that is not finite or has another
    structure than the estimate has. If there is only a seed, what it returned is in the box as it is.
    """
    box.started = True  # from here on errors contain only fixed messages and names from the code
    left: list[str] = []
    try:
        returned = _returned(box, guard, function, found)
    finally:
        left = before.put_back()
    if not returned:
        raise errors.PrivateRunError(advice.about(FAILED))
    if left:
        raise errors.PrivateRunError(advice.about(LEFT, left))


def _returned(
    box: Box,
    guard: RecursionGuard,
    function: Callable[[Any], Any],
    found: Sensitivity | ProvenBound | int,
) -> bool:
    """Run a function in silence, with its value into the box; tell whether it returned."""
    seed = found if isinstance(found, int) else found.coin_seed
    hush, entered = silence.quiet(), level()
    returned = interrupted = False
    try:  # not by `with`: an interrupt could come after entering and before what `with` protects
        hush.__enter__()
        try:
            with rng_guard(seed) as rng, hush.everywhere():
                rng.reseed()
                box.value = guard.run(function, box.data)
            returned = True
            if not isinstance(found, int):
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


def _noised(asked: Question, box: Box, found: Sensitivity | ProvenBound, words: str, entire: bool) -> Any:
    """Add noise to the vector in the box, and return a release or its value."""
    settings, mechanism = asked.settings, asked.settings.mechanism
    used = weighted(mechanism, found.shape)
    # A mechanism of the user's own could quote the raw answer in a warning.
    with contextlib.nullcontext() if settings.own_mechanism else silence.quiet():
        noised = used.release(
            box.value,
            sensitivity=found.value,
            epsilon=settings.epsilon,
            delta=settings.delta,
            whole=found.whole,
        )
    box.data = box.raw = box.value = None
    wrap = complete(mechanism).wrap
    scale = used.scale(found.value, settings.epsilon, settings.delta)
    value = wrap(noised) if wrap else found.structure.rebuild(noised, scale)
    if not entire:
        return value
    signal = signal_of(settings, found)
    return Release(
        value=value,
        epsilon=settings.epsilon,
        delta=settings.delta,
        gamma=found.gamma,
        average_gamma=found.average_gamma,
        sensitivity=found.value,
        scale=_arranged(found.structure, scale) if complete(mechanism).noise else scale,
        scaled=found.shape.kind,
        signal=None if signal is None else found.structure.arrange(signal),
        mechanism=type(mechanism).__name__,
        noise=complete(mechanism).noise,
        n=asked.n,
        m=found.m,
        k=found.k,
        bound=found.bound,
        proven=words,
        catalogue=asked.definition.catalogue,
        fit=found.fit if isinstance(found, Sensitivity) else None,
    )


def _arranged(structure: Structure, scale: Any) -> Any:
    """Return the scale of each number's noise in the form of the answer."""
    return structure.arrange(np.broadcast_to(np.asarray(scale, dtype=np.float64), structure.size))
