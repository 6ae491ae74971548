"""Cross-checks of the noise against OpenDP's samplers, two implementations of the same papers.

Fixed seeds on our side; OpenDP draws from the operating system. False-alarm rate 1e-6 for each test.
"""

import numpy as np
import pytest
from scipy import stats

from privatize.noise import exact

dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed (extra test-all)")

FALSE_ALARM = 1e-6
SIZE = 20_000


@pytest.fixture(autouse=True)
def _seeded():
    """Fix our half of the randomness."""
    dp.enable_features("contrib")
    mark = exact.source.set(np.random.Generator(np.random.PCG64(21)).bytes)
    yield
    exact.source.reset(mark)


def theirs(make, scale):
    """Draw from OpenDP's discrete samplers on the integers."""
    space = (
        dp.vector_domain(dp.atom_domain(T=int)),
        (dp.l1_distance(T=int) if make is dp.m.make_laplace else dp.l2_distance(T=float)),
    )
    return np.array(make(*space, scale=scale)([0] * SIZE))


@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0, 1000.0])
def test_laplace(scale):
    """Our discrete Laplace noise cannot be told from theirs."""
    shift = 30
    ours = np.array(exact.discrete_laplace(exact.coarse(int(scale * 2**shift)), shift, SIZE))
    assert same(ours, theirs(dp.m.make_laplace, scale)) > FALSE_ALARM
    assert same(ours, 2 * theirs(dp.m.make_laplace, scale)) < FALSE_ALARM  # it can be told from others


@pytest.mark.parametrize("sigma", [1, 3, 40, 1000])
def test_gaussian(sigma):
    """Our discrete Gaussian noise cannot be told from theirs."""
    ours = np.array(exact.discrete_gaussian(sigma, SIZE))
    assert same(ours, theirs(dp.m.make_gaussian, float(sigma))) > FALSE_ALARM
    assert same(ours, 2 * theirs(dp.m.make_gaussian, float(sigma))) < FALSE_ALARM


def same(a, b):
    """Return the p-value of a two-sample chi-square test on up to 40 cells of equal mass."""
    edges = np.unique(np.quantile(np.concatenate([a, b]), np.linspace(0, 1, 41)[1:-1])) + 0.5
    table = np.array([np.bincount(np.searchsorted(edges, x), minlength=len(edges) + 1) for x in (a, b)])
    return stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue
