"""The picture of the gaps shows their distribution, and what is certain about it."""

import dataclasses
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from privatize import plan
from privatize.calibration.gaps_chart import certain
from privatize.calibration.stress import Tried
from tests.cases import for_each
from tests.display.drawn import GAPS, RNG, check, sensitivity


@for_each("known", [None, 1e-12, 1.0, 1e200, np.float64(0.5)], ids=repr)
@for_each("bound", ["tolerance", "dkw", "marginal"])
@for_each("case", GAPS)
def test_gaps(case, bound, known):
    """A user's picture of an estimate would be broken, or misleading, for unusual gaps."""
    given = GAPS[case]
    gaps, value = given if isinstance(given, tuple) else (given, None)
    found = sensitivity(gaps, bound, value)
    tree = check(found.card(known).chart)
    ET.fromstring(found._repr_html_())
    legend = "".join(tree.find("figcaption").itertext())
    assert f"sensitivity {found.value:.4g}" in legend and "1 - gamma" in legend
    assert ("known bound" in legend) == (known is not None)
    if np.isfinite(gaps).any():
        assert f"the {len(gaps):,} gaps that were seen" in legend


def test_the_curve_of_gaps_is_the_distribution():
    """A user would read another share of pairs off the picture than was measured."""
    gaps = RNG.exponential(size=1000)
    found = sensitivity(gaps)
    band, curve, level, upright = found.card().chart.layers
    for x, y, low in zip(curve.x, curve.y, band.y, strict=True):
        assert y == pytest.approx((gaps <= x).mean())
        assert 0 <= low <= y
    assert max(curve.x) == gaps.max() and min(curve.x) == gaps.min()
    assert level.y == [1 - found.gamma] and upright.x == [found.value]


def test_the_band_is_what_the_plan_promises():
    """A user would see a band that promises another share of pairs than the plan does."""
    for bound in ("tolerance", "dkw", "marginal"):
        chosen = plan(0.1, bound=bound)
        at = certain(np.array([chosen.k]), chosen)[0]
        # With probability 1 - rho it covers so much that both failures together are at most gamma.
        assert at >= 1 - chosen.gamma + (chosen.rho or 0) - 1e-9
        below = certain(np.array([chosen.k - 1]), chosen)[0]
        assert below < 1 - chosen.gamma + (chosen.rho or 0)


def test_gaps_of_a_changed_p_are_drawn_if_the_estimate_is_too_small_for_it():
    """A user would read of a fragile estimate, and see nothing of it in the picture."""
    found = sensitivity(RNG.exponential(size=557))
    plain = found.card().chart.layers
    for factor, more in ((0.1, 0), (2.0, 1)):
        worse = tuple([found.value * factor] * 40 + [math.inf])
        tried = Tried(("`x` is different",), ((1.0, 2.0),), 0, worse)
        layers = dataclasses.replace(found, stress=tried.judged(found.plan, found.value)).card().chart.layers
        assert len(layers) == len(plain) + more
    assert layers[-1].label == "if `x` is different"
    assert len(layers[-1].x) == 40
