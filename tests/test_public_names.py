"""The public names are these, and each is documented with an example that runs."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import privatize

NAMES = [
    "Audit",
    "Bernstein",
    "BernsteinPolynomial",
    "Budget",
    "Exponential",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "Plan",
    "PrivateFunction",
    "Release",
    "Report",
    "Sealed",
    "Sensitivity",
    "Settings",
    "additive",
    "audit",
    "configure",
    "errors",
    "estimate_sensitivity",
    "instrument",
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


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("errors", "samplers", "sums")])
def test_docstrings(name):
    """Every public name explains itself."""
    assert len(inspect.getdoc(getattr(privatize, name))) > 40


def test_modules_import_only_downwards():
    """The rooms keep to one way through them, so that none calls back up."""
    order = [
        "cli", "commands", "demonstration",
        "checking", "sklearn", "instrumenting", "testing", "reports", "auditing", "divergence",
        "distinguishing", "intervals", "decorator", "releases", "sealed", "budget", "ledger", "composition",
        "settings", "store", "database", "policy", "binding", "sensitivity", "execution", "clusters",
        "processes", "work", "shipping", "watching", "fingerprint", "pairs", "capacity",
        "stacks", "sums", "progress", "coins", "generators", "threads", "outputs", "estimators", "forms",
        "constraints", "samplers", "records", "frames",
        "domains", "mechanisms", "noise", "discrete", "planning", "views", "drawing", "errors",
    ]  # fmt: skip
    root = Path(privatize.__file__).parent
    for at, room in enumerate(order):
        single = root / f"{room}.py"
        files = [single] if single.exists() else sorted((root / room).glob("*.py"))
        for file in files:
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("privatize"):
                    part = node.module.split(".")[1:2] or [a.name for a in node.names if a.name in order]
                    for used in part:
                        assert used == room or order.index(used) > at, f"{file.name} imports {used}"


def test_import_is_light():
    """`import privatize` loads nothing heavy."""
    code = (
        "import sys, privatize\n"
        "heavy = ('scipy', 'pandas', 'sklearn', 'torch', 'dask', 'ray', 'matplotlib', 'multiprocess',\n"
        "  'narwhals', 'polars', 'pyarrow')\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in heavy], sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
