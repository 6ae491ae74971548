"""Transformations of OpenDP are recognized without importing it. What they do is in tests/integration."""

import subprocess
import sys

from privatize.calibration.opendp import is_transformation
from privatize.calibration.proven import proven_of


def test_other_functions_are_no_transformations():
    """A user's function of the same name would be asked for a metric that it does not have."""

    class Transformation:
        """Not OpenDP's."""

        def __call__(self, data):
            return data

    for value in (Transformation(), sum, None):
        assert not is_transformation(value)
    assert proven_of(Transformation()) is None


def test_opendp_is_not_imported():
    """Everybody would wait for a library that they do not use."""
    code = "import sys, numpy, privatize; privatize.sums.means(bounds=(0, 1)); print('opendp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
