"""A function given to `map` must make each record from one record alone: they must stay independent."""

import numpy as np
import pytest

from privatize.errors import SamplerError
from privatize.samplers import uniform
from privatize.samplers.alone import check_alone, number_by_number


def test_functions_of_one_record_are_accepted():
    """P could not be mapped at all."""
    check_alone(uniform(0, 1), np.exp)
    check_alone(uniform(0, 1), lambda x: x * 2)


def test_functions_of_several_records_are_refused():
    """The promise is about independent records, and would be made about others."""
    for function in (np.sort, np.cumsum, lambda x: x - x.mean(), lambda x: x[:5]):
        with pytest.raises(SamplerError, match="one record alone"):
            check_alone(uniform(0, 1), function)
    with pytest.raises(SamplerError, match="raised ZeroDivisionError"):
        check_alone(uniform(0, 1), lambda x: 1 / 0)


def test_only_ufuncs_of_numpy_and_scipy_are_known():
    """A function that sorts would count as one that treats each number by itself."""
    assert number_by_number(np.exp)
    assert not any(map(number_by_number, (np.sort, np.add, np.frompyfunc(abs, 1, 1), lambda x: x)))
