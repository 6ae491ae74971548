"""Signal: whether an answer says more than P does. It is public, and known before private data is touched."""

import math
import warnings
from typing import Any

import numpy as np

from privatize.calibration.sensitivity import Sensitivity
from privatize.calibration.spread import Spread
from privatize.display.figures import figure
from privatize.errors import SettingsError, UninformativeWarning
from privatize.function.accuracy import least_epsilon
from privatize.function.settings import TRIAL, Settings
from privatize.identity.library import outside
from privatize.mechanisms.base import Vector, complete
from privatize.mechanisms.weighted import weighted

_NAMED = 5  # numbers that a warning names
_LOW = 2 / 3  # signals below this are warned about; a spread of 64 answers is not known better than that


def noise_of(settings: Settings, found: Any) -> Vector:
    """Return the standard deviation of each number's noise."""
    mechanism = weighted(settings.mechanism, found.shape)
    scale = np.asarray(mechanism.scale(found.value, settings.epsilon, settings.delta))
    times = math.sqrt(2) if complete(settings.mechanism).noise == "laplace" else 1.0
    return np.broadcast_to(scale * times, found.structure.size)


def signal_of(settings: Settings, found: Any) -> Vector | None:
    """Return the spread of answers under P over the spread of the noise; None if one of them is not known.

    Parameters
    ----------
    settings : Settings
        Mechanism, epsilon and delta.
    found : Sensitivity or ProvenBound
        What the noise is calibrated to.
    """
    if not isinstance(found.spread, Spread) or not complete(settings.mechanism).noise:
        return None
    return found.spread.over(noise_of(settings, found))


def too_noisy(settings: Settings, found: Any) -> list[int]:
    """Return which numbers of an answer say no more than P does, the worst first.

    Numbers that were the same for all datasets from P are left out, unless they are labels: nothing is known
    about them.
    """
    signal = signal_of(settings, found)
    if signal is None:
        return []
    least = -1.0 if found.spread.labels else 0.0
    return [at for at in np.argsort(signal, kind="stable").tolist() if least < signal[at] < _LOW]


def in_words(settings: Settings, found: Any) -> str:
    """Say which numbers of an answer say no more than P does, and what would help; empty if none do."""
    at = too_noisy(settings, found)
    if not at:
        return ""
    size, names = found.structure.size, found.structure.names()
    some = ", ".join(_named(names[each]) for each in at[:_NAMED]) + (", ..." if len(at) > _NAMED else "")
    count = f"all {size} numbers" if len(at) == size else f"{len(at)} of {size} numbers"
    which = f"{count} ({some})" if size > 1 else "the answer"
    signal: Any = signal_of(settings, found)
    worst = float(signal[at].min(where=signal[at] > 0, initial=1.0))
    much = f"{'up to ' if len(at) > 1 else ''}{figure(min(1 / worst, 1e300), 2)} times as large as"
    moving = [each for each in at if signal[each] > 0]
    return f"""the noise of {which} is {much if worst < 1 else "larger than"} what answers differ by from one
        dataset of P to the next, so {"they say" if len(at) > 1 else "it says"} little more than P does.
        {_remedies(settings, found, moving, worst)}"""


def _named(name: str) -> str:
    """Return the name of a number, in brackets if it is a place in an array."""
    return f"[{name}]" if name.replace(",", "").isdigit() else name


def _remedies(settings: Settings, found: Any, at: list[int], worst: float) -> str:
    """Say what would help, the cheapest first."""
    helps = []
    epsilon = _epsilon_for(settings, found, at) if at else math.inf
    if epsilon < 1000:
        helps.append(f"epsilon={figure(epsilon, 2)}")
    many = found.n / worst / worst
    if at and many < 1e9:
        helps.append(f"about {figure(many, 2)} records, if it behaves as an average does")
    text = f"It would take {', or '.join(helps)}. " if helps else ""
    own = complete(settings.mechanism)
    if found.spread.labels:
        return f"""{text}If these are labels from predict(), return predict_proba(), or let
            Exponential(responses=[...]) choose one."""
    if found.structure.size == 1:
        return f"{text}A sum or mean may need less noise with additive() or sums."
    fewer = f"{'Or ask' if helps else 'Ask'} for fewer numbers"
    if own.noise == "laplace" and found.structure.size > 8:
        return f"""{text}{fewer}; if one record moves most of them, mechanism='gaussian' with delta=1e-6 needs
            less noise."""
    if own.scaled != "auto":
        return f"{text}{fewer}, or leave scaled={own.scaled!r} out."
    return f"{text}{fewer}."


def _epsilon_for(settings: Settings, found: Any, at: list[int]) -> float:
    """Return the least epsilon at which all these numbers say something; infinite if there is none."""
    mechanism, spread = weighted(settings.mechanism, found.shape), found.spread.deviations[at]
    times = math.sqrt(2) if complete(settings.mechanism).noise == "laplace" else 1.0

    def noise_over_spread(epsilon: float) -> float:
        scale = np.asarray(mechanism.scale(found.value, epsilon, settings.delta))
        return float(np.max(np.broadcast_to(scale * times, found.structure.size)[at] / spread))

    try:
        return least_epsilon(noise_over_spread, 1.0)
    except (SettingsError, OverflowError):
        return math.inf


def warn_uninformative(name: str, settings: Settings, found: Any) -> None:
    """Warn the caller if some numbers of an answer would say no more than P does.

    A catalogue is calibrated before it is known with which epsilon its questions will be asked: it is silent.
    """
    if not isinstance(found, Sensitivity) or settings.epsilon == TRIAL["epsilon"]:
        return
    words = " ".join(in_words(settings, found).split())
    if words:
        text = f"""{name}(), n={found.n}, epsilon={settings.epsilon:g}: {words} release.signal has the figure
            for each number."""
        warnings.warn(" ".join(text.split()), UninformativeWarning, stacklevel=outside())
