"""Questions about several numbers of records are answered, and private data in their place is not shown."""

import numpy as np
import pytest

from privatize.errors import PrivatizeError
from tests.function.released import private


def test_several_numbers_of_records():
    """A user could not compare sample sizes in one call."""
    mean = private(np.mean)
    assert mean.error_at([50, 100]) == [mean.error_at(50), mean.error_at(100)]
    found = mean.epsilon_for([50, 100], error=0.1)
    assert found == [mean.epsilon_for(n, error=0.1) for n in (50, 100)] and found[0] > found[1]
    assert mean.error_at(n=50) == mean.error_at(50)


def test_data_in_place_of_n_leaks_nothing():
    """A user who passed the data by mistake would find it in a log."""
    pd = pytest.importorskip("pandas")
    mean = private(np.mean)
    sentinel = 918273.25
    for data in (
        np.array([sentinel, 1.0]),
        [sentinel],
        [5, -918273],
        (sentinel,),
        {"a": sentinel},
        pd.DataFrame({"a": [sentinel]}),
        sentinel,
        str(sentinel),
    ):
        for ask in (mean.error_at, lambda d: mean.epsilon_for(d, error=1.0)):
            with pytest.raises(PrivatizeError) as raised:
                ask(data)
            shown = f"{raised.value!r} {raised.value.__cause__!r} {raised.value.__context__!r}"
            assert "918273" not in shown
