"""What a check has found is told in words, stored as JSON, and widens estimates."""

import json
import math

import numpy as np
import pytest

from privatize import estimate_sensitivity, fit_power, plan, samplers
from privatize.calibration.factor_scan import FACTORS, Counted, Cut
from privatize.calibration.fit import Fit, fit_of
from privatize.calibration.stress import Stress
from privatize.errors import PlanError, SettingsError
from privatize.testing import insecure_noise
from tests.cases import for_each

pytestmark = pytest.mark.filterwarnings("ignore::privatize.errors.InsecureNoiseWarning")
FACTS = {
    "main": Cut(448, 40),
    "smaller": Cut(200, 10),
    "n": 20_000,
    "gamma": 0.05,
    "epsilon": 0.5,
    "functions": ("slope",),
    "about": ("digest",),
    "signatures": ((1.0, 2.0, 3.0),),
}


def made(factor=2.0, smaller_factor=1.0, **more):
    found = {"share": Counted(0.2, 0.1, 0.3), "certified": 0.06, "excess": 4.0}
    return Fit(**FACTS | found | {"factor": factor, "smaller_factor": smaller_factor} | more)


class TestFitPower:
    def test_it_says_what_a_check_can_find(self):
        """Nobody would know beforehand whether a check is worth its epsilon."""
        found = fit_power(100_000, gamma=0.05, epsilon=0.2)
        assert (found.main.number, found.main.size, found.smaller.size) == (1582, 57, 13)
        assert 0.045 < found.certified <= 0.05
        assert found.excess <= 1.5
        for word in ("1,582 of 58 people", "500 of 14", "gamma=0.05", "certified"):
            assert word in repr(found)
        assert "certified" in found._repr_html_()

    @for_each(
        ("change", "error"),
        [
            *[({"n": n}, SettingsError) for n in (0, "many", 100)],
            *[({"epsilon": epsilon}, SettingsError) for epsilon in (0, "x")],
            ({"gamma": 1.5}, PlanError),
        ],
    )
    def test_numbers_that_make_no_sense_are_refused(self, change, error):
        """A wrong number would look like an answer."""
        given = {"n": 4000, "gamma": 0.05, "epsilon": 0.5} | change
        with pytest.raises(error):
            fit_power(given["n"], gamma=given["gamma"], epsilon=given["epsilon"])


class TestFit:
    def test_it_is_the_same_after_json(self):
        """What is found in the ledger again would be another fit."""
        for fit in (made(), made(smaller=None, smaller_factor=None)):
            assert Fit.of_facts(json.loads(json.dumps(fit.facts()))) == fit

    def test_it_says_what_is_certain_and_what_is_assumed(self):
        """A reader would take a certificate for blocks for one about all people."""
        text = repr(made())
        for word in ("widened 2 times", "20.0% (10.0% to 30.0%)", "at most 6.0%", "39 people", "assumed"):
            assert word in text
        assert "it grows with the size" in text
        assert "it grows" not in repr(made(smaller_factor=1.5))
        alone = {"factor": 1.0, "smaller": None, "smaller_factor": None}
        assert "P holds" in repr(made(**alone, certified=0.04))
        unsure = made(**alone, certified=0.06)
        assert "P holds" not in repr(unsure) and "up to 6.0% may be beyond, and gamma is 0.05" in repr(unsure)
        assert unsure.words.startswith("not widened by") and "1 times" not in repr(unsure)
        assert "noise alone" not in repr(unsure) and "up to 4 times too large" in repr(made())
        assert "20,000 people" in made().words
        assert "assumed" in made()._repr_html_()

    def test_it_widens_every_estimate_that_is_read(self):
        """A second look at the gaps would be without the factor, so with too little noise."""
        found = estimate_sensitivity(
            np.mean, n=50, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(gamma=0.1), seed=1
        )
        wider = made(factor=FACTORS[3]).widen(found)
        assert wider.value == math.nextafter(found.value * FACTORS[3], math.inf)
        assert wider.fit.factor == FACTORS[3]
        assert wider.at(0.2, bound="dkw").value == math.nextafter(
            found.at(0.2, bound="dkw").value * FACTORS[3], math.inf
        )
        assert "2.83 times" in wider.card().text()
        assert made(factor=1.0).widen(found).value == found.value
        assert not isinstance(wider.stress, Stress)


class TestFitOf:
    def test_many_beyond_every_factor_are_no_fit(self):
        """A P that does not hold at all would get the largest factor, as if that were enough."""
        with insecure_noise(1):
            assert fit_of([448] * len(FACTORS), [0] * len(FACTORS), **FACTS) is None

    def test_counts_become_the_factor_that_leaves_few(self):
        """Estimates would be widened too little or much too far. Fixed noise."""
        counts = [200, 160, 120, 60] + [2] * (len(FACTORS) - 4)
        with insecure_noise(1):
            found = [fit_of(counts, counts, **FACTS) for _ in range(50)]
        assert all(each.factor >= FACTORS[4] for each in found)
        assert np.median([each.factor for each in found]) <= FACTORS[5]
        assert all(each.share.low < 200 / 448 < each.share.high for each in found[:10])
        assert all(each.certified < 0.1 for each in found)
        assert all(each.smaller_factor is not None for each in found)
        assert fit_of(counts, None, **FACTS | {"smaller": None}).smaller_factor is None

    def test_a_factor_below_one_does_not_exist(self):
        """A check would make noise smaller."""
        for factor in (0.5, math.nan, -1.0):
            with pytest.raises(SettingsError, match="at least 1"):
                made(factor=factor)
