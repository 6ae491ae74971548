"""What a correct picture is, and estimates to draw."""

import math
import re
import xml.etree.ElementTree as ET

import numpy as np

from privatize.calibration.sensitivity import Sensitivity
from privatize.display.charts import COLORS, svg
from privatize.outputs.describe import describe
from privatize.planning.plan import Plan


def numbers(text):
    return [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", text)]


def check(chart):
    """Assert that a chart's SVG is well-formed, inside its frame, and complete; return its tree."""
    drawn = svg(chart)
    tree = ET.fromstring(drawn)
    assert not re.search(r"\b(nan|inf|None)\b", re.sub(r"<(title|text|span).*?</\1>", "", drawn))
    (picture,) = tree.iter("svg")
    _, _, wide, high = numbers(picture.get("viewBox"))
    for element in picture.iter():
        places = []
        if element.tag in ("polyline", "polygon"):
            found = numbers(element.get("points"))
            assert found
            places = list(zip(found[::2], found[1::2], strict=True))
        elif element.tag == "circle":
            places = [(float(element.get("cx")), float(element.get("cy")))]
        elif element.tag == "text":
            places = [(float(element.get("x")), float(element.get("y")))]
            assert element.text is None or len(element.text) < 100
        elif element.tag == "path":
            x, y = numbers(element.get("d"))[:2]
            places = [(x, y)]
            for letter, value in re.findall(r"([HVv])(-?[\d.]+)", element.get("d")):
                at = {"H": (float(value), y), "V": (x, float(value)), "v": (x, y + float(value))}[letter]
                places.append(at)
        for x, y in places:
            assert 0 <= x <= wide and 0 <= y <= high
    legend = "".join(tree.find("figcaption").itertext())
    for layer in chart.layers:
        assert layer.label in legend
        assert not layer.label or COLORS[layer.color] in drawn
    assert next(picture.iter("title")).text == chart.title
    return tree


def sensitivity(gaps, bound="tolerance", value=None, **changes):
    """Return an estimate with these gaps."""
    gaps = np.asarray(gaps, dtype=np.float64)
    chosen = Plan.__new__(Plan)  # a real one would need more gaps
    rho = None if bound == "marginal" else 0.01
    for name, given in {"gamma": 0.1, "m": len(gaps), "k": len(gaps), "rho": rho, "bound": bound}.items():
        object.__setattr__(chosen, name, given)
    finite = gaps[np.isfinite(gaps)]
    found = float(finite.max()) if value is None else value
    chosen = changes.setdefault("plan", chosen)
    facts = {"n": 10, "plan": chosen, "norm": "l1", "seed": 1, "coin_seed": 2, "structure": describe(0.0)}
    return Sensitivity(
        value=found,
        failed=int(np.isinf(gaps).sum()),
        gaps=gaps,
        schema=[],
        _looks=[chosen],
        **facts | changes,
    )


RNG = np.random.default_rng(4)
GAPS = {
    "one": [0.25],
    "one of zero": ([0.0], 1e-300),
    "equal": np.full(50, 0.125),
    "zeros": (np.zeros(50), 0.5),
    "tiny": np.full(7, 1e-300),
    "subnormal": (np.array([0.0, 5e-324, 1e-310]), 1e-300),
    "large": np.array([1.0, 2.0, 9e299]),
    "300 orders of magnitude": 10.0 ** np.linspace(-299, 0, 100),
    "600 orders of magnitude": 10.0 ** np.linspace(-299, 299, 100),
    "close to each other": 1e6 + np.arange(10) * 1e-9,
    "some infinite": np.array([0.1, 0.2, math.inf, 0.3, math.inf]),
    "all infinite": (np.full(5, math.inf), 0.7),
    "many": RNG.exponential(size=10_000),
    "far": (np.linspace(0, 1e-6, 50), 3.0),
}
