"""Objects of real libraries are identified by class, version and content."""

import numpy as np
import pytest

from privatize.identity.fingerprint import fingerprint


def test_sklearn_estimators():
    """An estimator as an argument counts by its class and parameters."""
    linear = pytest.importorskip(
        "sklearn.linear_model", reason="scikit-learn is not installed (extra test-all)"
    )
    made = [linear.Ridge(1.0), linear.Ridge(2.0), linear.Lasso(1.0), linear.Ridge(1.0, fit_intercept=False)]
    found = [fingerprint(model) for model in made]
    assert len(set(found)) == 4
    assert fingerprint(linear.Ridge(1.0)) == found[0]


def test_pandas_objects():
    """A frame in a global counts by columns, dtypes, index and content."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test-all)")

    def frame(**changes):
        columns = {"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"]} | changes
        return pd.DataFrame(columns)

    made = [
        frame(),
        frame(a=[1.0, 2.0, 4.0]),
        frame(a=[1, 2, 3]),
        frame(b=["x", "y", "z"]),
        frame().rename(columns={"a": "c"}),
        frame().set_index("b"),
        frame().astype({"b": "category"}),
        frame()["a"],
    ]
    found = [fingerprint(value) for value in made]
    assert len(set(found)) == len(found)
    assert fingerprint(frame()) == found[0]


def test_a_function_of_pandas_code():
    """A pipeline is identified by its own code and the library's version."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test-all)")

    def pipeline(limit):
        def run(x):
            return pd.Series(x).clip(upper=limit).rolling(3).mean().dropna().sum()

        return run

    assert fingerprint(pipeline(1)) == fingerprint(pipeline(1)) != fingerprint(pipeline(2))


def test_torch_tensors():
    """A tensor counts by its content."""
    torch = pytest.importorskip("torch", reason="torch is not installed (extra test-all)")
    assert fingerprint(torch.zeros(3)) == fingerprint(torch.zeros(3)) != fingerprint(torch.ones(3))
    assert fingerprint(np.zeros(3)) != fingerprint(torch.zeros(3))
