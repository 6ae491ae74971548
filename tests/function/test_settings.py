"""Settings are checked at decoration, and what was promised has no default."""

import dataclasses
import inspect

import numpy as np
import pytest
from scipy import stats

from privatize import (
    privatize,
)
from privatize.errors import (
    PlanError,
    SettingsError,
)
from privatize.function.settings import Settings
from privatize.mechanisms import as_mechanism
from tests.cases import for_each
from tests.function.privatized import PROMISE


class TestSettings:
    def test_there_is_one_list_of_options(self):
        """An option of privatize() that Settings does not have, or with another default, would be ignored."""
        options = {each.name: each for each in dataclasses.fields(Settings) if each.init}
        given = dict(inspect.signature(privatize).parameters)
        del given["function"], given["unknown"]
        assert set(given) == set(options)
        defaults = {name: each.default for name, each in options.items()}
        defaults |= {"epsilon": inspect.Parameter.empty}
        assert {name: each.default for name, each in given.items()} == defaults
        assert options["mechanism"].default == as_mechanism("laplace")

    @pytest.mark.parametrize("missing", ["epsilon", "gamma"])
    def test_the_promise_has_no_default(self, missing):
        """Nobody gets an epsilon or gamma that they did not write."""
        given = {k: v for k, v in PROMISE.items() if k != missing}
        with pytest.raises(SettingsError, match=f"{missing}="):
            privatize(**given)(np.mean)

    def test_there_is_no_default_p(self):
        """Nobody gets a P that neither they nor the owner of the data wrote."""
        mean = privatize(epsilon=1, gamma=0.1)(np.mean)
        for use in (lambda: mean(np.ones(9)), lambda: mean.estimate(9), lambda: mean.sample(9)):
            with pytest.raises(SettingsError, match="has no P: pass sampler="):
                use()

    @for_each(
        ("change", "message"),
        [
            ({"epsilon": 0}, "epsilon=0"),
            ({"epsilon": -1}, "epsilon=-1"),
            ({"epsilon": float("nan")}, "epsilon=nan"),
            ({"epsilon": float("inf")}, "epsilon=inf"),
            ({"epsilon": "1"}, "epsilon='1'"),
            ({"epsilon": 1e6}, "between 1e-10 and 100000"),
            ({"epsilon": True}, "epsilon=True"),
            ({"gamma": 0}, "gamma=0"),
            ({"gamma": 1}, "gamma=1"),
            ({"gamma": 0.001, "samples": 100}, "gamma=0.001 with samples=100 is out of reach"),
            ({"delta": 1e-6}, "delta=1e-06 has no use"),
            ({"delta": -1}, "delta=-1"),
            ({"mechanism": "gaussian"}, "delta=0"),
            ({"mechanism": "gauss"}, "mechanism='gauss'"),
            ({"mechanism": "exponential"}, "responses"),
            ({"bound": "chernoff"}, "bound='chernoff'"),
            ({"samples": 0}, "m=0"),
            ({"samples": "many"}, "m='many'"),
            ({"sampler": [1, 2, 3]}, "sampler="),
            ({"seed": -1}, "seed=-1"),
            ({"seed": "x"}, "seed='x'"),
            ({"domain": "wild"}, "domain='wild'"),
            ({"domain": "clip", "sampler": stats.norm()}, "needs a bounded P"),
            ({"min_sensitivity": 0}, "min_sensitivity=0"),
            ({"pair": 3}, "pair=3"),
            ({"colour": "red"}, "no argument 'colour'"),
        ],
    )
    def test_wrong_values_are_refused_at_decoration(self, change, message):
        """A mistake shows where it is written, with its value."""
        with pytest.raises(SettingsError, match="(?s)" + message.replace("(", r"\(")):
            privatize(**(PROMISE | change))

    def test_what_is_not_a_budget_is_refused(self):
        """Users would believe that answers are charged to something that is not a budget."""
        with pytest.raises(SettingsError, match="budget=1 is not a Budget"):
            privatize(**PROMISE, budget=1)

    def test_infeasible_plans_carry_their_numbers(self):
        """The error for an impossible gamma says what is possible."""
        with pytest.raises(PlanError) as caught:
            privatize(**(PROMISE | {"gamma": 0.05, "samples": 100}))
        assert caught.value.least_m == 113 and 0.0549 < caught.value.least_gamma < 0.055

    def test_forgotten_parentheses(self):
        """The error for @privatize without settings says what to write."""
        with pytest.raises(SettingsError, match="@privatize"):

            @privatize
            def f(x):
                return x

    def test_data_and_coins_must_name_parameters(self):
        """A misspelt parameter is found at decoration."""
        for wrong in ({"data": "values"}, {"coins": ("rng",)}, {"data": ("x", "y")}, {"data": ()}):
            with pytest.raises(SettingsError):
                privatize(**PROMISE, **wrong)(lambda x: x)
