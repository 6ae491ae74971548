"""The public names are these, and each is documented with an example that runs."""

import inspect
import subprocess
import sys

import privatize
from tests.cases import for_each

NAMES = [
    "Audit",
    "Bernstein",
    "BernsteinPolynomial",
    "Blocks",
    "Budget",
    "Catalogue",
    "Changed",
    "Exponential",
    "Fit",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "People",
    "Plan",
    "PrivateFunction",
    "Release",
    "Report",
    "Sealed",
    "Sensitivity",
    "Settings",
    "Unit",
    "additive",
    "audit",
    "check_fit",
    "configure",
    "errors",
    "estimate_sensitivity",
    "fit_power",
    "instrument",
    "learn",
    "learning_error",
    "plan",
    "private_source",
    "privatize",
    "report",
    "samplers",
    "seal",
    "sums",
    "transfer",
]


def test_public_names():
    """A name that vanishes or appears by accident breaks somebody's import."""
    assert sorted(privatize.__all__) == NAMES
    assert all(hasattr(privatize, name) for name in NAMES)


@for_each("name", [n for n in NAMES if n not in ("errors", "samplers", "sums")])
def test_docstrings(name):
    """Every public name explains itself."""
    assert len(inspect.getdoc(getattr(privatize, name))) > 40


def test_import_is_light():
    """`import privatize` loads nothing heavy."""
    code = (
        "import sys, privatize\n"
        "heavy = ('scipy', 'pandas', 'sklearn', 'torch', 'dask', 'ray', 'matplotlib', 'multiprocess',\n"
        "  'narwhals', 'polars', 'pyarrow')\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in heavy], sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
