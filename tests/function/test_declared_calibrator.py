"""Members find what was declared, and are refused when something has changed since."""

import numpy as np
import pytest

from privatize import Blocks
from privatize.errors import SettingsError
from tests.function.catalogued import ONES, budget, catalogue, declared, sealed
from tests.identity.sets import two_orders

FACTOR = 1.0


def scaled(x):
    """Return a multiple of the mean."""
    return x.mean() * FACTOR


def bounded(x):
    """Return a multiple of the mean, within bounds."""
    return min(x.mean() * FACTOR, 1.0)


def test_a_change_after_the_declaration_is_refused(monkeypatch):
    """The noise would be for another function, and the analyst would have chosen it after answers."""
    own = budget()
    made = catalogue(sealed(budget=own))
    for name, more in (
        ("scaled", {}),
        ("proven", {"sensitivity": 0.01}),
        ("strict", {"mechanism": Blocks(0, 1)}),
    ):
        made.add(scaled if name != "strict" else bounded, name=name, **more)
    made.calibrate()
    before = made.scaled(epsilon=0.1), made.proven(epsilon=0.1)
    assert all(isinstance(each, float) for each in before)
    spent = own.spent.epsilon
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    for name in ("scaled", "proven", "strict"):
        with pytest.raises(SettingsError, match="Put it back as it was"):
            made[name](epsilon=0.1)
    assert own.spent.epsilon == spent
    monkeypatch.setitem(globals(), "FACTOR", 1.0)
    made.scaled(epsilon=0.1)


NAMES = {"a", "b"}


def by_order(x):
    """Return a multiple of the mean that depends on the order of a set."""
    return x.mean() * len(next(iter(NAMES)))


def test_a_set_in_another_order_is_a_change(monkeypatch):
    """Equal sets have one fingerprint, and the function would compute something else with the same noise."""
    one, other = two_orders()
    monkeypatch.setitem(globals(), "NAMES", one)
    made = catalogue()
    made.add(by_order)
    made.calibrate()
    assert isinstance(made.by_order(epsilon=0.1), float)
    monkeypatch.setitem(globals(), "NAMES", other)
    with pytest.raises(SettingsError, match="Put it back as it was"):
        made.by_order(epsilon=0.1)


def test_a_warm_call_takes_no_fingerprint(monkeypatch):
    """Every answer would take as long as the first."""
    made = declared()
    for _ in range(3):
        made.mean(epsilon=0.1)
    monkeypatch.setattr("privatize.function.calibrator.token", None)
    assert np.isfinite(made.mean(epsilon=0.1))


def test_an_estimate_is_for_questions_of_the_catalogue_alone():
    """The function inside a member would answer about data that was made from answers, and charge nobody."""
    made = declared()
    inside = made.mean.inquiry.private
    for function in (inside, inside.replace(epsilon=1.0)):
        for _ in range(3):  # warm calls as well
            made.mean.estimate()
            for ask in (lambda f: f(ONES), lambda f: f(sealed(budget=None)), lambda f: f.estimate(len(ONES))):
                with pytest.raises(SettingsError, match="belongs to the catalogue"):
                    ask(function)
