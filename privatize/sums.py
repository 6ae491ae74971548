"""Sums and means over records, whose gaps are known without evaluating both neighbours."""

from privatize.calibration.additive import (
    Additive,
    additive,
    counts,
    histogram,
    kde,
    matrix,
    means,
    second_moments,
)
from privatize.calibration.quantiles import Quantiles, quantiles

__all__ = ["Additive", "additive", "counts", "histogram", "kde", "matrix", "means", "second_moments"]
__all__ += ["Quantiles", "quantiles"]
