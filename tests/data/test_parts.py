"""Data is split into columns that can be compared, whatever its container and types."""

import numpy as np
import pytest
from scipy import sparse

from privatize import samplers
from privatize.errors import DataError
from privatize.identity.reachable import is_private
from tests.cases import for_each
from tests.data.conversions import TEXT, Loud, private

RNG = np.random.default_rng(7)
PUBLIC = RNG.normal(size=(40, 2))


@for_each(
    ("public", "data"),
    [
        (PUBLIC, PUBLIC),
        (PUBLIC, PUBLIC.copy()),
        (PUBLIC, PUBLIC.tolist()),
        (PUBLIC, PUBLIC[::-1]),
        (PUBLIC, PUBLIC[:39]),
        (PUBLIC, RNG.permutation(PUBLIC)),
        (PUBLIC, {"a": PUBLIC[:, 0], "b": PUBLIC[:, 1]}),
        (PUBLIC, (PUBLIC[:, 0], PUBLIC[:, 1].tolist())),
        (PUBLIC, np.column_stack([PUBLIC, np.ones(40)])),
        (PUBLIC[:, 0], PUBLIC),
        (PUBLIC, sparse.csr_array(PUBLIC)),
        (PUBLIC.astype("f4"), PUBLIC.astype("f4").astype("f8")),
        (np.arange(40), np.arange(40.0)),
        (PUBLIC, PUBLIC * 1.1),
    ],
)
def test_bootstrapping_the_private_data_is_refused(public, data):
    """P would be made of the very records that the answer is to hide."""
    assert is_private(samplers.bootstrap(public), data)


def test_bootstrapping_a_rounded_copy_is_refused():
    """The same records in single precision are the same records."""
    assert is_private(samplers.bootstrap(PUBLIC[:, 0]), PUBLIC[:, 0].astype("f4"))


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.bootstrap(PUBLIC).fixed(size=5),
        samplers.bootstrap(PUBLIC).map(np.abs),
        samplers.bootstrap(PUBLIC, smooth=0.1),
        samplers.bootstrap(PUBLIC).clip(-1, 1),
    ],
)
def test_a_bootstrap_inside_another_sampler_is_found(sampler):
    """Private records stay private, whatever a sampler does to them afterwards."""
    with pytest.raises(DataError, match="bootstraps"):
        private(sampler)(PUBLIC.copy())


@pytest.mark.parametrize(
    ("public", "data"),
    [
        (RNG.integers(0, 2, 50), RNG.integers(0, 2, 50)),
        (np.repeat([0, 1], 25), RNG.permutation(np.repeat([0, 1], 25))),
        (PUBLIC, RNG.normal(size=(40, 2))),
        (np.array(["a", "b"] * 20), RNG.permutation(["a", "b"] * 20)),
    ],
)
def test_other_data_is_not_refused(public, data):
    """Data with few different values resembles public data of the same kind by accident."""
    assert not is_private(samplers.bootstrap(public), data)


def test_a_constant_column_is_no_evidence():
    """A constant column, such as an intercept, is in many datasets: none of them may be refused for it."""
    data = np.column_stack([np.ones(40), RNG.normal(size=40)])
    assert not is_private(samplers.bootstrap(np.ones(40)), data)


@pytest.mark.parametrize("data", [[10**400, 1.5, 2], [[1], [2, 3], 4], [None, TEXT, 1.0], [Loud(), 1.0, 2.0]])
def test_odd_private_lists_are_compared_without_an_error(data):
    """The comparison must not fail on a private record."""
    assert not is_private(samplers.bootstrap([1.0, 2.0, 3.0]), data)
