"""A chart of the noise around a private answer: where the raw one may be."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.display.charts import Chart, Layer, thin

Vector = NDArray[np.float64]


def noise_chart(
    mechanism: str, noise: str, scale: Any, vector: Vector, widths: Vector, names: Sequence[str]
) -> Chart:
    """Return a density around one number, or intervals around several."""
    if len(vector) == 1:
        return _density(mechanism, noise, float(np.max(scale)), float(vector[0]), float(widths[0]))
    at = thin(len(vector), 100)
    x, low, high = list(map(float, range(len(at)))), (vector - widths)[at], (vector + widths)[at]
    return Chart(
        "where the raw numbers may be",
        "" if len(at) == len(vector) else f"{len(at)} of {len(vector):,} numbers",
        "answer",
        (
            Layer("interval", x, low.tolist(), high.tolist(), "95% for each number by itself"),
            Layer("point", x, vector[at].tolist(), (), "private answer", "red"),
        ),
        names=tuple(names[i] for i in at),
    )


def _density(mechanism: str, noise: str, scale: float, center: float, width: float) -> Chart:
    t = np.linspace(-5, 5, 201) * (1.4 if noise == "laplace" else 1.0)
    height = (np.exp(-np.abs(t)) / 2 if noise == "laplace" else np.exp(-(t**2) / 2) / 2.5066) / scale
    x, inside = center + t * scale, np.abs(t * scale) <= width
    covered = f"95%: {center - width:.6g} to {center + width:.6g}"
    layers = (
        Layer("band", x[inside].tolist(), [0.0] * int(inside.sum()), height[inside].tolist(), covered),
        Layer("line", x.tolist(), height.tolist(), (), f"{mechanism} noise"),
        Layer("upright", [center], (), (), f"private answer {center:.6g}", "red"),
    )
    return Chart("where the raw answer may be", "answer", "density", layers)
