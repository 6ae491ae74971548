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
from privatize.budget import Budget
from privatize.decorator import PrivateFunction, Release, privatize
from privatize.mechanisms import (
    Bernstein,
    BernsteinPolynomial,
    Exponential,
    Gaussian,
    Laplace,
    Mechanism,
)
from privatize.planning import Plan, plan, transfer
from privatize.policy import configure
from privatize.sealed import Sealed, private_source, seal
from privatize.sensitivity import Sensitivity, estimate_sensitivity
from privatize.settings import Settings

if TYPE_CHECKING:
    from privatize import sums
    from privatize.auditing import Audit, audit
    from privatize.instrumenting import instrument
    from privatize.reports import Report, report
    from privatize.sums import additive

__version__ = "0.1.0.dev0"

__all__ = [
    "Audit",
    "Bernstein",
    "BernsteinPolynomial",
    "Budget",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "Plan",
    "PrivateFunction",
    "Release",
    "Report",
    "Sealed",
    "Sensitivity",
    "Settings",
    "additive",
    "audit",
    "configure",
    "errors",
    "estimate_sensitivity",
    "instrument",
    "plan",
    "private_source",
    "privatize",
    "report",
    "samplers",
    "seal",
    "sums",
    "transfer",
]

# Rooms that most programs never enter: loaded when they are asked for.
_LATER = {
    "Audit": "auditing",
    "Report": "reports",
    "additive": "sums",
    "audit": "auditing",
    "instrument": "instrumenting",
    "report": "reports",
    "sums": "sums",
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    room = import_module(f"privatize.{_LATER[name]}")
    found = globals()[name] = room if name == _LATER[name] else getattr(room, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
