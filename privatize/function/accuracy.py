"""How far off answers are, before they are asked for: half-widths, and the epsilon for a given one."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize.errors import SettingsError
from privatize.mechanisms.accuracy import check_confidence, half_widths
from privatize.mechanisms.base import BaseMechanism, Vector, complete
from privatize.mechanisms.weighted import weighted

_LEAST, _MOST = 1e-9, 1e100


def errors_of(settings: Any, estimate: Any, confidence: float) -> Vector:
    """Return how far each number of an answer is from the raw one at most.

    Parameters
    ----------
    settings : Settings
        Mechanism, epsilon and delta.
    estimate : Sensitivity
        What the noise is calibrated to.
    confidence : float
        The probability, for each number by itself.
    """
    mechanism, wanted = settings.mechanism, check_confidence(confidence)
    noise = complete(mechanism).noise
    if not noise:
        own: Any = complete(mechanism).error
        given = (estimate.value, settings.epsilon, settings.delta, wanted)
        return np.array([own(*given) if callable(own) else BaseMechanism.error(complete(mechanism), *given)])
    used = weighted(mechanism, estimate.shape)
    return half_widths(
        noise,
        used.scale(estimate.value, settings.epsilon, settings.delta),
        wanted,
        estimate.structure.integers(),
        rounded=estimate.shape.kind != "none",
    )


def error_of(settings: Any, estimate: Any, confidence: float) -> Any:
    """Return the same in the form of the answer; one number if the mechanism adds no noise to numbers."""
    found = errors_of(settings, estimate, confidence)
    return estimate.structure.arrange(found) if complete(settings.mechanism).noise else float(found[0])


def least_epsilon(error_at: Callable[[float], Any], error: float) -> float:
    """Return the least epsilon whose error is at most this, rounded up; the error falls as epsilon grows."""
    number = isinstance(error, int | float | np.integer | np.floating) and not isinstance(error, bool)
    if not number or not 0 < error < math.inf:
        raise SettingsError(f"error={error!r} is not a distance: it must be a finite number > 0.")

    def enough(epsilon: float) -> bool:
        try:
            return bool(np.max(error_at(epsilon)) <= error)
        except SettingsError:  # so large that the mechanism is not proven there: the classic Gaussian, say
            return True

    if np.max(error_at(_LEAST)) <= error:  # every mechanism allows it, so other mistakes are raised here
        return _LEAST
    low, high = _LEAST, 1.0
    while not enough(high):
        low, high = high, high * 2
        if high > _MOST:
            raise SettingsError(f"error={error!r} is out of reach: no epsilon below {_MOST:g} is enough.")
    while high > low * (1 + 1e-9):
        middle = math.sqrt(low) * math.sqrt(high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    try:
        error_at(high)
    except SettingsError as refused:
        raise SettingsError(f"error={error!r} is out of reach. {refused}") from None
    return high
