"""Sums and means over records: quick to calibrate, or with bounds that are proven."""

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
from privatize.calibration.clamped import Ball, ball
from privatize.calibration.quantiles import Quantiles, quantiles

__all__ = ["Additive", "additive", "counts", "histogram", "kde", "matrix", "means", "second_moments"]
__all__ += ["Ball", "Quantiles", "ball", "quantiles"]
