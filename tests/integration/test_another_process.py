"""What one process has measured is used by the next one, for every kind of function and dataset."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")
pytest.importorskip("polars", reason="polars is not installed (extra test-all)")

ESTIMATES = """
import sys
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from privatize import Budget, Catalogue, Exponential, Gaussian, People, privatize, samplers, sums
from privatize.sklearn import PrivateEstimator

folder = sys.argv[1]
unit, gamma = samplers.uniform(0, 1), {"gamma": 0.2, "store": f"{folder}/store.db"}
columns = {"x": unit, "y": samplers.normal(0, 1).truncated(-3, 3)}
frame = samplers.table(group=samplers.categorical(list("abc")), **columns)
visits = samplers.people(samplers.table(cost=unit), unit="id", rows=samplers.integers(1, 5))
classes = samplers.blobs([[0.0] * 4, [1.0] * 4])
wanted = {"a", "b", "d", "e"}

def mean(x):
    return x.mean()

def both(x, at, other):
    neighbour = x.copy()
    neighbour[at] = other
    return x.mean(), neighbour.mean()

def within(d):
    return float(d["group"].isin(wanted).mean() + d["x"].mean())

def by_group(d):
    return d.groupby("group", observed=False)["y"].mean()

def machine(d):
    fitted = SVC(kernel="linear").fit(*d)
    return np.append(fitted.coef_, fitted.intercept_)

def shares(x):
    return [float((x < at).mean()) for at in np.linspace(0, 1, 9)]

def near(x, response):
    return -abs(float(x.mean()) - response)

cases = [
    (mean, unit, {}),
    (sums.means(), unit, {}),
    (mean, unit, {"batch": lambda x: x.mean(axis=1)}),
    (mean, unit, {"pair": both}),
    (mean, unit, {"workers": 2}),
    (mean, [unit, samplers.uniform(0, 0.5)], {}),
    (lambda x: x.mean() + 1e-3 * np.random.random(), unit, {}),
    (lambda x: x.mean() if x[0] > 0.01 else [1.0][1], unit, {}),
    (within, frame, {}),
    (by_group, frame, {}),
    (lambda d: float(d["x"].mean() + d["y"].std()), samplers.table(frame="polars", **columns), {}),
    (lambda d: float(d["cost"].mean()), visits, {}),
    (shares, unit, {"mechanism": Gaussian(), "delta": 1e-6}),
    (near, unit, {"mechanism": Exponential(responses=[0.0, 0.5, 1.0])}),
    (machine, classes, {}),
]
for number, (function, sampler, more) in enumerate(cases):
    made = privatize(epsilon=1, sampler=sampler, version=f"case {number}", **gamma, **more)(function)
    found = made.estimate(150)
    print(number, found.seed, found.value)
model = PrivateEstimator(LogisticRegression(), epsilon=1, sampler=classes, **gamma)
print("model", model.estimate(150).value)
budget = Budget("another process", epsilon=5, gamma=0.5, ledger=f"{folder}/ledger.db")
questions = Catalogue("another process", People("survey", 150), sampler=frame, budget=budget, **gamma)
for each in (within, by_group):
    questions.add(each)
questions.calibrate()
print("catalogue", questions.within.estimate().value)
"""


def test_every_kind_of_estimate(tmp_path):
    """An estimate would be refused in the next program, although the function computes the same there."""
    found = []
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-W", "ignore", "-c", ESTIMATES, str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        found.append(done.stdout)
    assert found[0] == found[1] and found[0].count("\n") == 17
