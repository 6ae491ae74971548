"""Estimates with and without stacks."""

from privatize import estimate_sensitivity, plan, samplers

UNIT = samplers.uniform(0, 1)


def estimate(function, batch=False, n=40, sampler=UNIT, norm="l1", gamma=0.1, seed=1, **rest):
    made = rest.pop("plan", None) or plan(gamma)
    rest = {"workers": "inline", "min_sensitivity": 1e-12} | rest
    return estimate_sensitivity(
        function, n=n, sampler=sampler, norm=norm, plan=made, seed=seed, batch=batch, **rest
    )
