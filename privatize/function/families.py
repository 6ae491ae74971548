"""Calibrate a function under every member of a family of P, in one norm and with one coin seed."""

import logging
import textwrap
from collections.abc import Callable
from dataclasses import replace

from privatize.calibration import streams
from privatize.calibration.family_estimate import FamilySensitivity, naming
from privatize.calibration.pilot import Member, chosen, divides, pilot_size, pooled_pairs, warn_rare
from privatize.calibration.sensitivity import Sensitivity
from privatize.errors import CalibrationError
from privatize.function.question import Question
from privatize.identity.fingerprint import identity_of
from privatize.mechanisms.shapes import Shape
from privatize.samplers.families import Family

_log = logging.getLogger("privatize.families")


def is_family(asked: Question) -> bool:
    """Tell whether a question is about a sampled estimate for a family of P."""
    return isinstance(asked.settings.sampler, Family) and asked.settings.plan is not None


def shared_coins(asked: Question) -> int:
    """Return the coin seed of a question for every family of P, which is the same in every process.

    A release reseeds the generators with one seed, so all members must be calibrated with that one. It
    follows from the question without P: members that two families have in common need one calibration.
    """
    without, settings = asked.under(sampler=None), asked.settings
    digest = identity_of([*without.facts(), "family"], version=settings.version or "") or ""
    return streams.coin_seed(int(digest, 16) if settings.seed is None else settings.seed)


def pooled_shape(asked: Question, coins: int, seed: int) -> Shape | None:
    """Return how noise is divided, from a pilot of all members together; None if there is nothing to divide.

    With shapes of their own, the estimates of two members would be in two norms, and the larger number would
    not be the larger noise.
    """
    plan = asked.settings.plan
    if not divides(asked.settings.mechanism) or plan is None:
        return None
    found = []
    for each in members(asked, coins, None):
        seen = each.pilot(seed, coins, pilot_size(plan.m))
        if seen is None:  # one number; if there are several under another member the calibration will say so
            return Shape()
        found += [seen] if len(seen.steps) else []
    if len({each.steps.shape[1] for each in found}) > 1:
        raise CalibrationError("""The function returns different numbers of values under the members of the
            family. Return the same keys and shapes, whatever the data is.""")
    if asked.stress:
        warn_rare(asked.definition.name, found)
    return chosen(asked.settings.mechanism, pooled_pairs(found)) if found else Shape()


def members(asked: Question, coins: int, shape: Shape | None) -> list[Question]:
    """Return the question for each member, with what they have in common."""
    asked.template.records()  # raises if the members draw different kinds of records by now
    family, made = asked.settings.sampler, []
    for at, (name, sampler) in enumerate(family.items(), 1):
        # A learned P has a long name, which would push the percentage out of a progress bar.
        short = textwrap.shorten(name, 24, placeholder="…")
        label = f"{asked.definition.name}, {at} of {len(family)}: {short}"
        made.append(replace(asked.under(sampler=sampler), member=Member(coins, shape, label)))
    return made


def estimated(
    asked: Question, each: list[Question], measure: Callable[[Question], Sensitivity]
) -> Sensitivity:
    """Return the largest of the members' estimates, each of them measured by itself."""
    plan, names = asked.settings.plan, asked.settings.sampler.names
    pairs = 0 if plan is None else plan.m
    _log.info(
        "%s: a family of %d P, each with a calibration of %d pairs", asked.definition.name, len(each), pairs
    )
    found = []
    for name, question in zip(names, each, strict=True):
        with naming(name):
            found.append((name, measure(question)))
    return FamilySensitivity.of(found)
