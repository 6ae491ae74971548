"""Warnings of the user's function in calibration are shown once for each place in the code."""

import threading
import warnings

import numpy as np
import pytest

from privatize import estimate_sensitivity, plan, samplers
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.user_warnings import collected_warnings
from privatize.errors import CalibrationError

UNIT = samplers.uniform(0, 1)


class OwnWarning(UserWarning):
    """A warning class of the user."""


def warns(x):
    warnings.warn(f"the mean is {x.mean()}", RuntimeWarning, stacklevel=1)
    warnings.warn(f"the first is {x[0]}", OwnWarning, stacklevel=1)
    np.log(x - x)  # a warning of compiled code
    return float(x.mean())


def counts_its_warnings(x):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        warnings.warn("one", stacklevel=1)
        warnings.warn("two", stacklevel=1)
    return float(x.mean()) + len(found)


def estimate(function, workers="inline", **rest):
    asked = {"n": 20, "sampler": UNIT, "norm": "l1", "plan": plan(gamma=0.2), "seed": 1, **rest}
    return estimate_sensitivity(function, workers=workers, **asked)


@pytest.mark.parametrize("workers", ["inline", 2])
def test_every_place_warns_once(workers):
    """A thousand runs would show a thousand warnings, and hide the one that matters."""
    before = warnings.showwarning
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        estimate(warns, workers)
    assert warnings.showwarning is before
    assert sorted(each.category.__name__ for each in found) == ["OwnWarning"] + ["RuntimeWarning"] * 2
    assert OwnWarning in {each.category for each in found}
    assert {each.filename for each in found} == {__file__}


def test_warnings_that_are_errors_are_failures():
    """A filter that the user has set would be ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", OwnWarning)
        with pytest.raises(Exception, match="OwnWarning"):
            estimate(warns)


def caught(x):
    """Take another way after an error, which is none on private data."""
    try:
        np.log(np.zeros(1))
    except Exception:
        return float(x.mean()) / 1000
    return float(x.mean())


@pytest.mark.parametrize("action", ["error", "ignore"])
def test_a_function_that_catches_such_errors_is_not_calibrated_by_them(action):
    """Its noise would be for what it does after an error, and on private data there is none."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = estimate(lambda x: float(x.mean())).value
        before = list(warnings.filters)
        warnings.simplefilter(action, RuntimeWarning)
        if action == "ignore":
            assert estimate(caught).value == expected
            return
        with pytest.raises(CalibrationError, match="makes it an error"):
            estimate(caught)
        assert warnings.filters[1:] == before


def test_a_function_sees_its_own_warnings():
    """A function that counts its own warnings would return something else in calibration."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        here = estimate(lambda x: float(x.mean()) + 2)
        assert np.array_equal(estimate(counts_its_warnings).gaps, here.gaps)
    assert found == []


def test_other_threads_are_shown_at_once():
    """Warnings of another thread would be shown as those of the function."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with rng_guard(1), collected_warnings(set()) as found:
            thread = threading.Thread(target=warnings.warn, args=("elsewhere",))
            thread.start()
            thread.join()
            assert [str(each.message) for each in shown] == ["elsewhere"] and found == []


def test_an_interrupted_collection_swallows_nothing():
    """After an interrupt at the wrong moment the program's own warnings would never be seen again."""
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        left = collected_warnings(set())
        with rng_guard(1):
            left.__enter__()
        warnings.warn("afterwards", stacklevel=1)
        left.__exit__()
    assert [str(each.message) for each in shown] == ["afterwards"]
