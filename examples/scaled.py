"""Noise where it hurts least: one scale for all numbers of an answer, or one for each.

Prints, for three answers, the scale of the Laplace noise of each number (or group of numbers) with
scaled="none", "total", "relative" and "auto".

    python examples/scaled.py           # the figures on how noise is divided
    python examples/scaled.py --quick   # fewer pairs
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import Laplace, privatize, samplers

N = 1000
PEOPLE = samplers.uniform([18, 0, 0], [90, 200_000, 1])
# Features in different units, and a label that depends on both.
LABELLED = samplers.labelled(
    samplers.uniform([0, 0], [1, 20]),
    lambda x, rng: (x[:, 0] + x[:, 1] / 20 + rng.normal(0, 0.3, len(x)) > 1).astype(int),
    support=[0, 1],
)
# Most of what varies is in one direction.
CLOUD = samplers.normal([10.0, 0.0, 0.0], [5.0, 1.0, 0.3]).truncated([-15, -5, -2], [35, 5, 2])


def column_means(data: Any) -> Any:
    """Return the means of columns in different units."""
    return data.mean(axis=0)


def classifier(X: Any, y: Any) -> Any:  # noqa: N803 - scikit-learn's name
    """Train a classifier; its coefficients and its intercept are released."""
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=1.0, max_iter=1000).fit(X, y)


def components(data: Any) -> Any:
    """Find two principal components."""
    from sklearn.decomposition import PCA

    return PCA(2).fit(data)


CASES: list[tuple[str, Callable[..., Any], Any, Any, dict[str, slice]]] = [
    (
        "means of columns in different units",
        column_means,
        PEOPLE,
        None,
        {"age": slice(0, 1), "income": slice(1, 2), "smokes": slice(2, 3)},
    ),
    (
        "LogisticRegression",
        classifier,
        LABELLED,
        ("X", "y"),
        {"coef_[0]": slice(0, 1), "coef_[1]": slice(1, 2), "intercept_": slice(2, 3)},
    ),
    (
        "PCA",
        components,
        CLOUD,
        None,
        {
            "components_": slice(0, 6),
            "mean_": slice(6, 9),
            "explained_variance_": slice(9, 11),
            "noise_variance_": slice(11, 12),
        },
    ),
]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    quick = parser.parse_args().quick
    for title, function, sampler, names, groups in CASES:
        print(
            f"\n{title}, n={N}, epsilon=1: the scale of the noise (the largest of a group), and their sum\n"
        )
        print("| scaled | " + " | ".join(groups) + " | sum |")
        print("|---|" + "---:|" * (len(groups) + 1))
        ways: tuple[Any, ...] = ("none", "total", "relative", "auto")
        for scaled in ways:
            private = privatize(
                mechanism=Laplace(scaled=scaled),
                epsilon=1,
                gamma=0.2 if quick else 0.05,
                samples="least" if quick else "balanced",
                sampler=sampler,
                data=names,
                seed=1,
                store=None,
            )(function)
            data = sampler.draw(N, np.random.default_rng(0))
            release = private.release(*(data if names else (data,)))
            own = release.scale  # in the form of the answer; of a model, by attribute
            scales = np.hstack(
                [np.ravel(each) for each in (own.values() if isinstance(own, dict) else [own])]
            )
            shown = " | ".join(f"{scales[group].max():.2g}" for group in groups.values())
            print(f"| {scaled} | {shown} | {scales.sum():.3g} |")


if __name__ == "__main__":
    main()
