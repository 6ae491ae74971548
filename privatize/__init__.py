"""One decorator makes any function of a dataset random differentially private.

Examples
--------
>>> import numpy as np
>>> from privatize import privatize, samplers
>>> @privatize(mechanism="laplace", epsilon=1.0, gamma=0.05, sampler=samplers.uniform(0, 100))
... def average_age(ages):
...     return ages.mean()
>>> ages = np.random.default_rng(0).integers(18, 90, size=1000)
>>> answer = average_age(ages)        # a private float; the first call calibrates
>>> average_age.estimate(n=1000).m    # how many pairs of neighbours that took
557
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privatize import errors, samplers, sums
    from privatize.auditing.auditor import audit
    from privatize.auditing.findings import Audit
    from privatize.budgets.budget import Budget
    from privatize.budgets.sealed import Sealed, private_source, seal
    from privatize.calibration.additive import additive
    from privatize.calibration.fit import Fit, fit_power
    from privatize.calibration.sensitivity import Sensitivity, estimate_sensitivity
    from privatize.config.policy import configure
    from privatize.data.units import Unit
    from privatize.function.catalogue import Catalogue
    from privatize.function.counting import Changed
    from privatize.function.fit import check_fit
    from privatize.function.instrumenting import instrument
    from privatize.function.learning import learn, learning_error
    from privatize.function.people import People
    from privatize.function.private_function import PrivateFunction, privatize
    from privatize.function.release import Release
    from privatize.function.settings import Settings
    from privatize.mechanisms import (
        Bernstein,
        BernsteinPolynomial,
        Blocks,
        Exponential,
        Gaussian,
        Laplace,
        Mechanism,
    )
    from privatize.planning.divergence import transfer
    from privatize.planning.plan import Plan, plan
    from privatize.reports.page import Report, report

__version__ = "0.2.0"

__all__ = ["Changed", "PrivateFunction", "Release", "Settings", "instrument", "privatize"]
__all__ += ["Plan", "Sensitivity", "additive", "estimate_sensitivity", "plan", "sums", "transfer"]
__all__ += ["Bernstein", "BernsteinPolynomial", "Blocks", "Exponential", "Gaussian", "Laplace", "Mechanism"]
__all__ += ["Fit", "check_fit", "fit_power", "learn", "learning_error", "samplers"]
__all__ += ["Budget", "Catalogue", "People", "Sealed", "Unit", "configure", "private_source"]
__all__ += ["seal"]
__all__ += ["Audit", "Report", "audit", "errors", "report"]

# Modules, with the public names in them that are loaded when somebody asks for them.
_LAZY = {
    "privatize.auditing.auditor": ["audit"],
    "privatize.auditing.findings": ["Audit"],
    "privatize.budgets.budget": ["Budget"],
    "privatize.budgets.sealed": ["Sealed", "private_source", "seal"],
    "privatize.calibration.additive": ["additive"],
    "privatize.calibration.fit": ["Fit", "fit_power"],
    "privatize.calibration.sensitivity": ["Sensitivity", "estimate_sensitivity"],
    "privatize.config.policy": ["configure"],
    "privatize.data.units": ["Unit"],
    "privatize.function.catalogue": ["Catalogue"],
    "privatize.function.counting": ["Changed"],
    "privatize.function.fit": ["check_fit"],
    "privatize.function.instrumenting": ["instrument"],
    "privatize.function.learning": ["learn", "learning_error"],
    "privatize.function.people": ["People"],
    "privatize.function.private_function": ["PrivateFunction", "privatize"],
    "privatize.function.release": ["Release"],
    "privatize.function.settings": ["Settings"],
    "privatize.mechanisms": [
        *("Bernstein", "BernsteinPolynomial", "Blocks", "Exponential", "Gaussian", "Laplace", "Mechanism"),
    ],
    "privatize.planning.divergence": ["transfer"],
    "privatize.planning.plan": ["Plan", "plan"],
    "privatize.reports.page": ["Report", "report"],
}
_MODULES = {name: module for module, names in _LAZY.items() for name in names}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("errors", "samplers", "sums"):
        return import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
