"""The public names are these, and each is documented with an example that runs."""

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import privatize
from tests.cases import for_each

DOCS = Path(__file__).parents[1] / "docs"
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


def _members(module):
    """Return the names of a module that are in the reference."""
    found = []
    for page in (DOCS / "reference.md", *(DOCS / "reference").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        found += re.findall(rf"^::: {module}\.(\w+)$", text, re.MULTILINE)
        for names in re.findall(rf"::: {module}\n    options:\n      members: \[(.*)\]", text):
            found += names.split(", ")
    return found


def test_public_names():
    """A name that vanishes or appears by accident breaks somebody's import."""
    assert sorted(privatize.__all__) == NAMES
    assert all(hasattr(privatize, name) for name in NAMES)
    assert sorted({*_members("privatize")} - {"constraints", "sklearn", "testing"}) == NAMES


def test_names_for_scikit_learn():
    """A name that appears by accident, or is not in the reference, is hard to take back or to find."""
    pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")
    import privatize.sklearn as ours

    assert ours.__all__ == ["PrivateEstimator", "fitted", "known", "predictions"]
    assert _members("privatize.sklearn") == ours.__all__
    assert all(len(inspect.getdoc(getattr(ours, name))) > 40 for name in ours.__all__)


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
