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

from privatize import errors, samplers
from privatize.budgets.budget import Budget
from privatize.budgets.sealed import Sealed, private_source, seal
from privatize.calibration.sensitivity import Sensitivity, estimate_sensitivity
from privatize.config.policy import configure
from privatize.data.units import Unit
from privatize.function.counting import Changed
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

if TYPE_CHECKING:
    from privatize import sums
    from privatize.auditing.auditor import audit
    from privatize.auditing.findings import Audit
    from privatize.calibration.additive import additive
    from privatize.calibration.fit import Fit, fit_power
    from privatize.function.catalogue import Catalogue
    from privatize.function.fit import check_fit
    from privatize.function.instrumenting import instrument
    from privatize.function.learning import learn, learning_error
    from privatize.function.people import People
    from privatize.reports.page import Report, report

__version__ = "0.2.0"

__all__ = ["Changed", "PrivateFunction", "Release", "Settings", "instrument", "privatize"]
__all__ += ["Plan", "Sensitivity", "additive", "estimate_sensitivity", "plan", "sums", "transfer"]
__all__ += ["Bernstein", "BernsteinPolynomial", "Blocks", "Exponential", "Gaussian", "Laplace", "Mechanism"]
__all__ += ["Fit", "check_fit", "fit_power", "learn", "learning_error", "samplers"]
__all__ += ["Budget", "Catalogue", "People", "Sealed", "Unit", "configure", "private_source"]
__all__ += ["seal"]
__all__ += ["Audit", "Report", "audit", "errors", "report"]

# Modules that most programs never need: loaded when they are asked for.
_LAZY = {
    "Audit": "privatize.auditing.findings",
    "Catalogue": "privatize.function.catalogue",
    "People": "privatize.function.people",
    "Report": "privatize.reports.page",
    "additive": "privatize.calibration.additive",
    "audit": "privatize.auditing.auditor",
    "instrument": "privatize.function.instrumenting",
    "Fit": "privatize.calibration.fit",
    "check_fit": "privatize.function.fit",
    "fit_power": "privatize.calibration.fit",
    "learn": "privatize.function.learning",
    "learning_error": "privatize.function.learning",
    "report": "privatize.reports.page",
    "sums": "privatize.sums",
}


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(_LAZY[name])
    found = globals()[name] = module if name == "sums" else getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY})
