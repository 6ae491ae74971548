"""The peer's part of learners.py: diffprivlib's logistic regression on the same records and splits.

    python tests/benchmarks/learners_peer.py FOLDER JOBS

It is started by learners.py with the interpreter of an environment that has diffprivlib, which this project
does not need. Each task is an .npz file in FOLDER; the accuracies go to a .json file beside it.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import json
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import diffprivlib
import numpy as np
import sklearn
from diffprivlib.models import LogisticRegression


def accuracy(
    x: Any, y: Any, train: Any, test: Any, *, epsilon: float, c: float, norm: float, seed: int
) -> float:
    """Return the accuracy on the test records of a private model of the training records."""
    model = LogisticRegression(epsilon=epsilon, data_norm=norm, C=c, fit_intercept=False, random_state=seed)
    return float(model.fit(x[train], y[train]).score(x[test], y[test]))


def work(path: str) -> None:
    """Choose components and C on the public half, for each epsilon; then score on the private half."""
    warnings.simplefilter("ignore")  # that models do not converge, because of noise
    task = np.load(path)
    draws, trials = int(task["draws"]), int(task["trials"])
    facts: dict[str, Any] = {"norm": float(task["norm"])}
    seeds = iter(range(int(task["seed"]), 2**31))
    result: dict[str, Any] = {"accuracies": [], "chosen": []}
    for epsilon in task["epsilons"].tolist():
        scores = {}
        for k in task["components"].tolist():
            for c in task["cs"].tolist():
                scores[k, c] = np.mean(
                    [
                        accuracy(
                            task[f"public{k}"], task["public_y"], *split, epsilon=epsilon, c=c, **facts,
                            seed=next(seeds),
                        )
                        for split in zip(task["public_train"], task["public_test"], strict=True)
                        for _ in range(trials)
                    ]
                )  # fmt: skip
        k, c = max(scores, key=lambda each: scores[each])
        result["chosen"].append([k, c])
        result["accuracies"].append(
            [
                accuracy(
                    task[f"private{k}"], task["private_y"], *split, epsilon=epsilon, c=c, **facts,
                    seed=next(seeds),
                )
                for split in zip(task["private_train"], task["private_test"], strict=True)
                for _ in range(draws)
            ]
        )  # fmt: skip
    result["versions"] = {"diffprivlib": diffprivlib.__version__, "scikit-learn": sklearn.__version__}
    Path(path).with_suffix(".json").write_text(json.dumps(result))


if __name__ == "__main__":
    folder, jobs = sys.argv[1:]
    with ProcessPoolExecutor(int(jobs)) as pool:
        list(pool.map(work, sorted(map(str, Path(folder).glob("*.npz")))))
