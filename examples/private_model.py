"""A private model: a scikit-learn pipeline trained on patients, published, saved and loaded again.

scikit-learn's breast cancer patients, cut in two. One half plays the public, and decides all that may be
decided by looking: which columns are used, how they are scaled, and P. The other half is private: the model
is trained on two thirds of it, and tested on the rest. The table has raw accuracies on the private half only
because this data set is really public; the accuracy below it is private, as yours would be.

    python examples/private_model.py              prints accuracy against epsilon (a minute or two)
    python examples/private_model.py --quick      with fewer pairs
    python examples/private_model.py --save FILE  keeps the private model in a file, too

Needs scikit-learn and pandas. docs/learners.md says more.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SelectKBest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privatize import configure, privatize, samplers

EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
REPEATS = 20


def half(which: int) -> Any:
    """Return one half of the patients, and whether the tumor of each is benign."""
    patients, benign = load_breast_cancer(return_X_y=True, as_frame=True)
    rows = np.random.default_rng(0).permutation(len(patients))[which::2]
    return patients.iloc[rows].reset_index(drop=True), benign.iloc[rows].reset_index(drop=True)


# --- what the public half decides -------------------------------------------------------------

PUBLIC, BENIGN = half(0)
# Each coefficient gets noise, so a few good columns are better than all thirty.
COLUMNS = list(PUBLIC.columns[SelectKBest(k=5).fit(PUBLIC, BENIGN).get_support()])
# Centers and widths of the public half. They are published as they are, and cost nothing.
SCALER = StandardScaler().fit(PUBLIC[COLUMNS])
# P: one of the public patients, slightly moved.
P = samplers.bootstrap((PUBLIC[COLUMNS], BENIGN), smooth=0.1)

# --- the two questions about the private half -------------------------------------------------


@privatize(epsilon=1, gamma=0.05, data=("X", "y"), sampler=P, seed=1)
def train(X: Any, y: Any) -> Any:  # noqa: N803 - scikit-learn's name
    """Train the last step. A small C regularizes more, so each patient matters less."""
    return LogisticRegression(C=0.05).fit(SCALER.transform(X), y)


@privatize(epsilon=1, gamma=0.05, data=("X", "y"), sampler=P, seed=1)
def accuracy(X: Any, y: Any, model: Any) -> float:  # noqa: N803 - scikit-learn's name
    """Return the share of patients that a model gets right."""
    return float(model.score(X, y))


def pipeline(model: Any) -> Any:
    """Put the public scaling in front of a model, so that it takes patients as they are."""
    return make_pipeline(SCALER, model)


def largest(scale: Any) -> float:
    """Return the largest scale of a model's numbers."""
    return max(float(np.max(each)) for each in scale.values())


def main(quick: bool, save: str | None) -> None:
    """Print the table, then save a model, load it and measure it."""
    configure(store=None)  # an example leaves nothing behind; without it, estimates are kept for next time
    fewer: dict[str, Any] = {"gamma": 0.2, "samples": "least"} if quick else {}
    fit, measure = train.replace(**fewer), accuracy.replace(**fewer)
    patients, benign = half(1)
    cut = 2 * len(patients) // 3  # by position, whoever is there: nobody can change sides
    X, y = patients[COLUMNS][:cut], benign[:cut]  # noqa: N806 - scikit-learn's name
    unseen = patients[COLUMNS][cut:], benign[cut:]

    print(f"{len(PUBLIC)} public patients, {cut} private ones to train on, {len(unseen[1])} to test with")
    print(f"columns: {', '.join(COLUMNS)}")
    moves = fit.estimate(cut).value
    print(f"one patient moves coefficients and intercept by {moves:.3g} in all, under P")

    print(f"\naccuracy on unseen patients of {REPEATS} private models each, gamma={fit.settings.gamma:g}")
    print(f"{'epsilon':>8} {'noise':>7} {'worst':>7} {'median':>7}")
    for epsilon in EPSILONS:
        releases = [fit.replace(epsilon=epsilon).release(X, y) for _ in range(REPEATS)]
        scores = [pipeline(release.value).score(*unseen) for release in releases]
        print(f"{epsilon:8g} {largest(releases[0].scale):7.3f} {min(scores):7.2f} {np.median(scores):7.2f}")
    raw = pipeline(train.__wrapped__(X, y)).score(*unseen)
    print(f"without privacy {raw:.2f}; always saying benign {unseen[1].mean():.2f}")

    model = pipeline(fit(X, y))  # this one is published
    with tempfile.TemporaryDirectory() as folder:
        path = Path(save) if save else Path(folder, "model.joblib")
        joblib.dump(model, path)
        loaded = joblib.load(path)  # plain scikit-learn: it needs nothing of this library
    assert np.array_equal(loaded.predict(unseen[0]), model.predict(unseen[0]))
    learned = ", ".join(sorted(name for name in vars(loaded[-1]) if name.endswith("_")))
    print(f"\nsaved and loaded: {type(loaded[-1]).__name__} with {learned}, and nothing else")
    release = measure.release(*unseen, model=loaded)
    low, high = release.interval()
    print(f"its accuracy on unseen patients, private: {release.value:.2f}, between {low:.2f} and {high:.2f}")
    print("published are this model and this accuracy, at epsilon=1 each, about different people; the table")
    print("would not be: it has raw numbers, and a hundred more models")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    parser.add_argument("--save", metavar="FILE", help="where to keep the private model")
    given = parser.parse_args()
    main(given.quick, given.save)
