"""The audit flags broken cases with a stated power.

Each case is audited with SEEDS seeds. `power` in its row is what is claimed for the settings of that row:
the test fails if the audit flags so few that a case of that power would be flagged so seldom with probability
below FALSE_ALARM (exact binomial).

With 40 other seeds every case was flagged 40 times, but for "discrete noise too small by 20%" (38),
"one bin without noise" (31) and "half the noise, exponential" (18).

The default is a few seeds. PRIVATIZE_AUDIT_SEEDS=200 in the environment takes more, and then fails at
every case whose power is below the claim by more than chance allows.
"""

import pytest

from privatize import samplers
from tests.statistical.audited import (
    FUNCTIONS,
    SEEDS,
    Bare,
    Case,
    Classic,
    Geometric,
    HalfBernstein,
    HalfExponential,
    HalfGaussian,
    HalfLaplace,
    Narrow,
    Noisy,
    Normal,
    OneBare,
    Proportional,
    Seeded,
    Seldom,
    Unexponential,
    WrongNorm,
    above_half,
    as_finished,
    bins,
    counts,
    cumulative,
    groups,
    how_many,
    last_only,
    newest_first,
    optimistic,
    powers,
    records,
    stale,
)
from tests.statistical.thresholds import fewest_successes

pytestmark = pytest.mark.slow

BROKEN = {
    "Laplace noise too small by 10%": Case(mechanism=Narrow(0.9)),
    "L2 norm for Laplace noise": Case(function=powers, mechanism=WrongNorm()),
    "exponential mechanism without exp": Case(
        function=counts, mechanism=Unexponential([0, 1, 2]), n=3, epsilon=0.5
    ),
    "stale estimate": Case(forge=stale, pairs=None, releases=0),
    "gamma ten times too optimistic": Case(forge=optimistic, gamma=0.01, pairs=None, releases=0),
    "the same noise every time": Case(mechanism=Seeded()),
    "no noise": Case(mechanism=Bare()),
    "classic sigma at epsilon=20": Case(mechanism=Classic(), epsilon=20, delta=0.01),
    "floating-point noise on 0 and 1": Case(function=above_half, mechanism=Noisy(), n=3),
    "only the last record replaced": Case(function=newest_first, forge=last_only, pairs=None, releases=0),
    "pairs taken as they finish": Case(forge=as_finished, pairs=None, releases=0),
    "discrete noise too small by 20%": Case(
        function=how_many, mechanism=Geometric(0.8), power=0.9, releases=8000
    ),
    "normal noise too small by 15%": Case(mechanism=Normal(0.85), delta=1e-6),
    "normal noise too small by 15%, large delta": Case(mechanism=Normal(0.85), delta=1e-2),
    "noise left out one time in five": Case(mechanism=Seldom(0.2)),
    "noise left out one time in five, of a vector": Case(function=powers, mechanism=Seldom(0.2)),
    "one coordinate without noise": Case(function=powers, mechanism=OneBare()),
    # Half of the pairs do not change the bin without noise, and two pairs are tested.
    "one bin without noise": Case(function=bins, mechanism=OneBare(), power=0.6, releases=2000),
    "noise in proportion to the answer": Case(
        mechanism=Proportional(), sampler=samplers.normal(0, 1), n=10, power=0.95
    ),
}


for _kind in ("none", "total", "relative"):
    for _made, _delta in ((HalfLaplace(scaled=_kind), 0.0), (HalfGaussian(scaled=_kind), 1e-4)):
        for _function in (groups, *FUNCTIONS[3:]) if _kind != "total" else (groups,):
            BROKEN[f"half the noise, {_made!r}, {_function.__name__}"] = Case(
                mechanism=_made, function=_function, sampler=records, delta=_delta, power=0.95,
                gamma=0.2, pairs=50, releases=2000,
            )  # fmt: skip
BROKEN |= {
    "half the noise, Bernstein": Case(mechanism=HalfBernstein(4), function=cumulative),
    "half the noise, integers": Case(mechanism=HalfLaplace(), function=how_many),
    "half the noise, after a further look": Case(mechanism=HalfLaplace(), first=0.2),
}
if SEEDS >= 100:  # with fewer, no outcome would contradict the claim
    # This mechanism is not tight: with half its noise it loses hardly more than is claimed. Flagged by 33 of
    # 80 audits, so that the power is above 0.28 at a confidence of 0.99.
    BROKEN["half the noise, exponential"] = Case(
        mechanism=HalfExponential([0, 1, 2]), function=counts, power=0.28
    )


@pytest.mark.parametrize("name", BROKEN)
def test_broken_cases_are_flagged(name):
    """A user whose mechanism or estimate is broken in this way would be told that all is well."""
    case = BROKEN[name]
    flagged = sum(not case.audit(seed).holds for seed in range(SEEDS))
    assert flagged >= fewest_successes(SEEDS, case.power), f"{flagged} of {SEEDS}"
