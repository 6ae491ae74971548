"""OpenDP: its transformations as functions with a bound, and its samplers as a check of our noise.

Fixed seeds on our side; OpenDP draws from the operating system. False-alarm rate 1e-6 for each test.
"""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from privatize import Budget, Exponential, Gaussian, Laplace, privatize, seal
from privatize.calibration.proven import proven_of
from privatize.errors import DataError, SettingsError
from privatize.noise import exact

dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed (extra opendp)")

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


# --- transformations as functions with a proven bound ------------------------------------------------


def space(metric=None, **domain):
    """Return the input space of vectors of atoms."""
    size = domain.pop("size", None)
    return dp.vector_domain(dp.atom_domain(**domain), size=size), metric or dp.symmetric_distance()


def own(metric, output=None, function=None, distance=float, domain=None):
    """Return a transformation of our own, with any metric."""
    dp.enable_features("honest-but-curious")
    vector = domain or dp.vector_domain(dp.atom_domain(T=float))
    output = output or dp.absolute_distance(T=float)
    number = dp.atom_domain(T=float)
    return dp.t.make_user_transformation(
        vector, metric, number, output, function or (lambda x: float(len(x))), distance
    )


def clamped_sum():
    return (
        space(T=float) >> dp.t.then_impute_constant(0.0) >> dp.t.then_clamp((0.0, 10.0))
        >> dp.t.then_sum()
    )  # fmt: skip


def test_distance_of_neighbours_follows_from_the_input_metric():
    """At distance 1 the map of a mean of n records is nearly 0: the raw mean would be released."""
    bounded = space(bounds=(0.0, 10.0), nan=False, size=100)
    mean = dp.t.make_mean(*bounded)
    assert mean.map(1) < 1e-12
    assert proven_of(mean).bound == mean.map(2) == pytest.approx(0.1)
    for metric, distance in [
        (dp.symmetric_distance(), 2),
        (dp.insert_delete_distance(), 2),
        (dp.change_one_distance(), 1),
        (dp.hamming_distance(), 1),
    ]:
        assert proven_of(own(metric)).bound == distance
    for metric in (dp.discrete_distance(), dp.absolute_distance(T=float)):
        with pytest.raises(SettingsError, match="input metric"):
            proven_of(own(metric)).check(Laplace(), 1.0, 0.0)


def test_output_metric_must_be_the_norm_of_the_mechanism():
    """Noise for one norm would be added at a bound in another one."""
    metrics = {"l1": dp.L1Distance[int], "l2": dp.L2Distance[float]}
    counts = {
        name: proven_of(dp.t.make_count_by_categories(*space(T=str), categories=["a", "b"], MO=metric))
        for name, metric in metrics.items()
    }
    counts["l1"].check(Laplace(), 1.0, 0.0)
    counts["l2"].check(Gaussian(), 1.0, 1e-6)
    total = proven_of(clamped_sum())
    total.check(Laplace(), 1.0, 0.0)
    total.check(Gaussian(), 1.0, 1e-6)
    wrong = [(counts["l1"], Gaussian(), 1e-6), (counts["l2"], Laplace(), 0.0)]
    for proven, mechanism, delta in wrong:
        with pytest.raises(SettingsError, match="output metric"):
            proven.check(mechanism, 1.0, delta)
    for proven, mechanism, delta in [
        (proven_of(own(dp.change_one_distance(), dp.linf_distance(T=float))), Laplace(), 0.0),
        (proven_of(own(dp.change_one_distance(), distance=lambda d: math.inf)), Laplace(), 0.0),
        (proven_of(own(dp.change_one_distance(), distance=lambda d: math.nan)), Laplace(), 0.0),
        (proven_of(own(dp.change_one_distance(), distance=lambda d: 0.0)), Laplace(), 0.0),
        (total, Exponential([1, 2]), 0.0),
        (total, Laplace(scaled="total"), 0.0),
        (total, Laplace(), 1e-6),
    ]:
        with pytest.raises((SettingsError, dp.OpenDPException)):
            proven.check(mechanism, 1.0, delta)


def test_records_become_members_of_the_input_domain():
    """A transformation does not check its input: a sum of numbers up to 10 would add a million as it is."""
    bounded = dp.t.make_sum(*space(bounds=(2, 10), size=4))
    assert bounded([10**6] * 4) == 4 * 10**6  # that is why
    found = proven_of(bounded)
    junk = [None, math.nan, math.inf, -(2**80), "x", [1], 2.5, True, b"", object(), 3.0, 10**6, 7]
    for start in range(len(junk) - 3):
        assert 4 * 2 <= found.measure(junk[start : start + 4], 4)[0] <= 4 * 10
    assert found.measure([3.0, 10**6, 7, None], 4).tolist() == [3 + 10 + 7 + 2]
    floats = proven_of(dp.t.make_sum(*space(bounds=(0.0, 10.0), nan=False, size=3)))
    assert floats.measure(np.array([math.nan, 1e300, 5.0]), 3).tolist() == [15]
    assert proven_of(clamped_sum()).measure(pd.Series([1, None, 30.0]), 3).tolist() == [11]
    text = proven_of(
        dp.t.make_count_by_categories(*space(T=str), categories=["a", ""], MO=dp.L1Distance[int])
    )
    assert text.measure(["a", 3, None, "b"], 4).tolist() == [1, 2, 1]


def test_one_record_moves_the_output_by_at_most_the_bound():
    """The noise would be too small; a bound that is 30% too small is found. No chance is involved."""
    junk = [None, math.nan, math.inf, -math.inf, 1e308, -1e308, 5e-324, 0.0, 10.0, 3.0, "x", 2**70, True]
    for transformation in (
        clamped_sum(),
        dp.t.make_sum(*space(bounds=(0.0, 10.0), nan=False, size=3)),
        dp.t.make_mean(*space(bounds=(-5.0, 10.0), nan=False, size=3)),
        dp.t.make_sum(*space(bounds=(-3, 10), size=3)),
    ):
        found = proven_of(transformation)
        rest = [[1, 2], [None, 10.0]]
        outputs = [[found.measure([record, *others], 3)[0] for record in junk] for others in rest]
        largest = max(np.ptp(each) for each in outputs)
        # OpenDP counts a replaced record twice, as removed and added, if the number of records may vary.
        tight = found.bound / (1 if transformation.input_domain.size else 2)
        assert 0.7 * tight < largest <= found.bound


def test_structure_is_public():
    """The form of an answer would show something of the data."""
    counts = dp.t.make_count_by_categories(*space(T=str), categories=["a", "b"], MO=dp.L1Distance[int])
    for transformation, data, expected in [
        (clamped_sum(), [1.0, 2.0], float),
        (dp.t.make_count(*space(T=float)), [1.0, 2.0], int),
        (counts, ["a", "b"], np.ndarray),
    ]:
        found = proven_of(transformation)
        found.fits(data)
        answer = found.release(found.measure(data, 2), 2, Laplace(), 1e5, 0.0)
        value = found.structure(2).rebuild(answer.vector)
        assert type(value) is expected
        assert np.allclose(value, transformation(data), atol=0.1)
        assert answer.sensitivity == found.bound and answer.scale == found.bound / 1e5


def test_a_transformation_that_breaks_its_word_gives_no_answer():
    """Its error would quote the data."""
    metric = dp.change_one_distance()

    def fails(x):
        if x[0] == 13:
            raise ValueError(x)
        return 1.0

    for function in (fails, lambda x: math.nan if x[0] == 13 else 1.0):
        found = proven_of(own(metric, function=function))
        assert found.measure([13.0, 2.0], 2) is None
        assert found.measure([1.0, 2.0], 2).tolist() == [1.0]


def test_data_and_domains_that_do_not_fit_are_refused():
    """Records would be made members of a domain that they have nothing to do with."""
    sized = proven_of(dp.t.make_sum(*space(bounds=(0, 10), size=3)))
    for data in ([1, 2], np.ones((3, 2)), pd.DataFrame({"a": [1, 2, 3]}), (np.ones(3), np.ones(3))):
        with pytest.raises(DataError):
            sized.fits(data)
    for data in ([1, 2, 3], np.ones(3), pd.Series([1, 2, 3])):
        sized.fits(data)
    number = own(dp.absolute_distance(T=float), domain=dp.atom_domain(T=float))
    for transformation in (number, dp.t.make_count(*space(T=bool))):
        with pytest.raises(SettingsError, match="input domain"):
            proven_of(transformation).check(Laplace(), 1.0, 0.0)


def test_a_private_transformation():
    """OpenDP's transformations could not be used with our ledger."""
    budget = Budget("transformations", epsilon=3, gamma=0.1, ledger="memory")
    data = np.random.default_rng(5).uniform(0, 10, 500)
    private = privatize(epsilon=2, budget=budget)(clamped_sum())
    release = private.release(seal(data, name="numbers"))
    assert release.gamma == 0 and "OpenDP" in repr(release)
    assert abs(release.value - data.sum()) < 10 * 30  # more with probability e^-30
    assert budget.remaining.epsilon == 1
    with pytest.raises(SettingsError):
        privatize(epsilon=1, gamma=0.05)(clamped_sum())
    with pytest.raises(DataError):
        private(np.ones((5, 2)))
