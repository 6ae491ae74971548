"""Estimates with few pairs."""

from privatize import estimate_sensitivity, plan, samplers

UNIT = samplers.uniform(0, 1)


def estimate(function, n=50, sampler=UNIT, norm="l1", gamma=0.2, seed=1, **rest):
    made = rest.pop("plan", None) or plan(gamma)
    return estimate_sensitivity(function, n=n, sampler=sampler, norm=norm, plan=made, seed=seed, **rest)
