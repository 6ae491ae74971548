"""Transformations of OpenDP: a function and its proven bound at once.

What a transformation promises holds for members of its input domain only, and it does not check whether it
gets one: a sum of numbers from 0 to 10 adds up a million as it is. So every record becomes a member here.
"""

import functools
import math
import numbers
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.numeric import Array, as_real, unmixed
from privatize.calibration.proof import Answer, Proven
from privatize.data import frames, records
from privatize.data.persons import table_of
from privatize.data.units import Unit
from privatize.errors import DataError, SettingsError
from privatize.mechanisms.base import Mechanism
from privatize.mechanisms.laplace import Laplace
from privatize.outputs.describe import describe
from privatize.outputs.structure import Structure

Numbers = NDArray[np.float64]
# How far apart two datasets are that differ in one record, by input metric.
_DISTANCE = {"SymmetricDistance": 2, "InsertDeleteDistance": 2, "ChangeOneDistance": 1, "HammingDistance": 1}
# Integers beyond this are no exact floats. What is larger is cut off, which moves no two of them apart.
_LARGEST = 2**53


def is_transformation(value: Any) -> bool:
    """Tell whether something is a transformation of OpenDP, without importing OpenDP."""
    kind = type(value)
    return (kind.__module__, kind.__name__) == ("opendp.mod", "Transformation")


@dataclass(frozen=True, eq=False)
class Transformed(Proven):
    """A transformation of OpenDP whose output gets noise.

    Attributes
    ----------
    transformation : opendp.mod.Transformation
        From vectors of numbers or strings to a number, or a vector of numbers.
    """

    transformation: Any
    most: int | None = None  # rows of a person, at most; None if every row is a record

    words = "by the bound of an OpenDP transformation"
    broken = """The transformation failed, or returned something else than finite numbers, on data that is in
        its input domain. Its map says nothing then, so nothing was released."""

    def for_persons(self, unit: Unit) -> Proven:
        """Return the same for people with several rows, which are all out and others in."""
        metric, sized = str(self.transformation.input_metric.type), self.transformation.input_domain.size
        if unit.most is None or metric not in ("SymmetricDistance", "InsertDeleteDistance") or sized:
            raise SettingsError(f"""A transformation of people with several rows needs Unit({unit.name!r},
                most=...), the metric SymmetricDistance or InsertDeleteDistance, and no size: two persons may
                have different numbers of rows.""")
        return replace(self, most=unit.most)

    def check(self, mechanism: Mechanism, epsilon: float, delta: float) -> None:
        super().check(mechanism, epsilon, delta)
        norm = "L1Distance" if isinstance(mechanism, Laplace) else "L2Distance"
        metric = str(self.transformation.output_metric.type)
        if not metric.startswith((f"{norm}<", "AbsoluteDistance<")):
            raise SettingsError(f"""The output metric of the transformation is {metric}, and {mechanism!r}
                needs {norm} or AbsoluteDistance: the bound must be in the norm that the noise is calibrated
                to.""")
        _ = self._conversion, self.bound  # they raise if the transformation is not one that fits

    @functools.cached_property
    def bound(self) -> float:
        """How far apart the outputs are, by the transformation's own map, if one record is replaced."""
        metric = str(self.transformation.input_metric.type)
        if metric not in _DISTANCE:
            raise SettingsError(f"""The input metric of the transformation is {metric}, and it is not known
                how far apart datasets are in it that differ in one record. Use one of
                {", ".join(_DISTANCE)}.""")
        exact = self.transformation.map(_DISTANCE[metric] * (self.most or 1))
        found = float(exact)
        found = found if found >= exact else math.nextafter(found, math.inf)
        if not 0 < found < math.inf:
            raise SettingsError(f"""The map of the transformation gives {found:g} for datasets that differ in
                one record, and noise needs a bound that is finite and above 0.""")
        return found

    @functools.cached_property
    def _conversion(self) -> tuple[Callable[[Any], Any], Any]:
        """What gives a record the type and the bounds of the input domain, or raises; and a fill value."""
        domain = self.transformation.input_domain
        element: Any = getattr(domain, "element_domain", None)
        convert = _CONVERT.get(str(getattr(element, "carrier_type", "")))
        if not str(domain.type).startswith("VectorDomain<AtomDomain<") or convert is None:
            raise SettingsError(f"""The input domain of the transformation is {domain}, and records can be
                made members of vectors of f64, f32, i64, i32 and String only: use
                vector_domain(atom_domain(...)), and do what comes before that in Python.""")
        if convert is _string or (bounds := element.bounds) is None:
            return convert, "" if convert is _string else convert(0)
        return lambda value: _clipped(convert(value), *bounds), bounds[0]

    def _members(self, values: list[Any]) -> list[Any]:
        """Return the records as members of the input domain. What is none becomes low, 0 or ""."""
        domain, (convert, fill) = self.transformation.input_domain, self._conversion
        element = domain.element_domain

        def made(value: Any) -> Any:
            try:
                return convert(value)
            except Exception:  # an object may do anything if it is asked for its number
                return fill

        found = list(map(made, values))
        # Whether all are members is quick to ask.
        return found if domain.member(found) else [x if element.member(x) else fill for x in found]

    def fits(self, data: Any, /) -> None:
        data = table_of(data)
        size, n = self.transformation.input_domain.size, records.count(data)
        if size not in (None, n):
            raise DataError(f"""The transformation is for {size} records, and the dataset has {n}.""")
        form = frames.kind(data)
        table = isinstance(data, tuple | dict) or (form is not None and form[0] == "frame")
        if table or np.ndim(data[:0]) != 1:
            raise DataError("""A transformation of OpenDP takes one value for each record: a series, a list,
                an array of shape (n,).""")

    def bound_at(self, n: int, mechanism: Mechanism, /) -> float:
        return self.bound

    def structure(self, n: int) -> Structure:
        public = self.transformation(self._members([object()]) * n)
        if isinstance(public, list):
            return describe(np.array(public, dtype=np.int64 if _are_integers(public) else np.float64))
        return describe(public)

    def measure(self, data: Any, n: int) -> Numbers | None:
        entries, missing = unmixed(table_of(data))
        values = [None if gone else value for value, gone in zip(entries.tolist(), missing, strict=True)]
        structure = self.structure(n)
        with warnings.catch_warnings():  # OpenDP quotes what it does not like
            warnings.simplefilter("ignore")
            try:
                found = self.transformation(self._members(values))
            except Exception:  # OpenDP's own message could quote a record
                return None
        listed = found if isinstance(found, list) else [found]
        if _are_integers(listed):
            listed = [min(max(each, -_LARGEST), _LARGEST) for each in listed]
        made = np.array(listed, dtype=np.float64)
        return made if made.shape == (structure.size,) and np.isfinite(made).all() else None

    def release(self, measured: Array, n: int, mechanism: Mechanism, epsilon: float, delta: float) -> Answer:
        whole = self.structure(n).integers()
        made = mechanism.release(measured, sensitivity=self.bound, epsilon=epsilon, delta=delta, whole=whole)
        return Answer(made, mechanism.scale(self.bound, epsilon, delta), self.bound)


def _are_integers(values: list[Any]) -> bool:
    return bool(values) and all(type(value) is int for value in values)


def _clipped(value: Any, low: Any, high: Any) -> Any:
    return min(max(value, low), high) if value == value else value


def _integer(value: Any) -> int:
    if not isinstance(value, numbers.Integral) and not (isinstance(value, float) and value.is_integer()):
        raise TypeError
    return int(value)


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


_CONVERT: dict[str, Callable[[Any], Any]] = {"f64": as_real, "f32": as_real, "i64": _integer, "i32": _integer}
_CONVERT["String"] = _string
