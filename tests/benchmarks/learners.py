"""How accurate private logistic regression is: ours, ours with the global bound, and diffprivlib's.

    python tests/benchmarks/learners.py --peer PYTHON --json docs/learners.json --plot docs/learners.svg
    python tests/benchmarks/learners.py --from docs/learners.json --plot docs/learners.svg   # draws it again

PYTHON is the interpreter of an environment with `diffprivlib==0.6.6` and `scikit-learn<1.8`; without it that
column is left out. All methods are run at once, on the same records and splits. It prints a markdown table.

Half of each dataset is public, which is where P comes from: records drawn from it with replacement, slightly
smoothed. The public half also gives means, scales and principal components, the same for all methods; and
each method chooses how many components it uses, and C, for each epsilon, on the public half alone. Of the
private half two thirds are trained on and one third is predicted.

What is the same for all (components, the norm, no intercept, the grids) and how P is smoothed were chosen on
other random halves of these datasets, by accuracies on their private records too. The halves here were drawn
afterwards, and their results are shown without any selection, but they share records with the others.

- ours: `@privatize` around the function that fits scikit-learn's LogisticRegression, Laplace noise on its
  coefficients, the estimated sensitivity, gamma = 0.05: random differential privacy with respect to P.
- ours, global bound: the same mechanism on the same coefficients with a sensitivity that holds for all data:
  differential privacy. scikit-learn minimizes |w|²/2 + C Σ loss(w; x, y), which is strongly convex with
  constant 1. Replacing a record changes its gradient by at most C (|g| + |g'|), where g = (p - onehot(y)) x
  is a record's own. With |x| <= 1 that is at most 1 for two classes (one row of coefficients) and √2 for
  more. So the coefficients move by at most 2C, or 2√2 C, in L2, and √d times that in L1 for d coefficients
  (as in Chaudhuri, Monteleoni & Sarwate, JMLR 2011, Corollary 8).
- diffprivlib: its LogisticRegression, objective perturbation with |x| <= 1: differential privacy. For three
  classes it fits one against the rest with a third of epsilon each.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
import platform
import re
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression

import privatize as package
from privatize import Laplace, estimate_sensitivity, plan, privatize, samplers

EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
CS = (0.01, 0.1, 1.0, 10.0, 100.0)
COMPONENTS = (4, 16)
GAMMA = 0.05
NORM = 1.0  # of every record
DRAWS = 4  # of noise, for each split of a private half
TUNING = 4  # splits of a public half
TRIALS = 12  # draws of noise for each of these
FIRST = 100  # seed of the first half; 0 to 5 were used to choose the design
PILOT = plan(GAMMA, m=59, bound="marginal")
METHODS = {
    "plain": "non-private",
    "ours": "ours, estimated Δ̂",
    "bound": "ours, global bound",
    "peer": "diffprivlib",
}


def digits() -> tuple[Any, Any]:
    """Return the threes and the eights."""
    x, y = load_digits(return_X_y=True)
    wanted = np.isin(y, (3, 8))
    return x[wanted], (y[wanted] == 8).astype(int)


DATASETS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "breast cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits (3 or 8)": digits,
    "wine": lambda: load_wine(return_X_y=True),
}


# -- what is trained --


def clipped(x: Any) -> Any:
    """Return records that are no longer than 1."""
    return x / np.maximum(1.0, np.linalg.norm(x, axis=1) / NORM)[:, None]


def train(X: Any, y: Any, C: float) -> Any:
    """Fit the classifier. There is no intercept: the records are centered midway between the classes."""
    return LogisticRegression(C=C, fit_intercept=False, solver="newton-cholesky").fit(clipped(X), y)


def bound(c: float, coef: Any) -> float:
    """Return the global sensitivity of the coefficients in L1 (see above)."""
    return 2 * c * NORM * (1.0 if len(coef) == 1 else math.sqrt(2)) * math.sqrt(coef.size)


def accuracy(coef: Any, x: Any, y: Any) -> float:
    """Return the share of records whose class, 0 or 1 or 0 to k-1, these coefficients predict."""
    scores = x @ coef.T
    predicted = scores[:, 0] > 0 if len(coef) == 1 else scores.argmax(axis=1)
    return float(np.mean(predicted == y))


# -- the same records and splits for all --


@dataclass
class Task:
    """One public half of one dataset, and splits of the other half."""

    name: str
    seed: int
    public: dict[int, Any]  # by the number of components
    private: dict[int, Any]
    public_y: Any
    private_y: Any
    public_splits: list[tuple[Any, Any]]
    private_splits: list[tuple[Any, Any]]


def prepare(name: str, seed: int, splits: int) -> Task:
    """Return the halves, scaled by what is known from the public one."""
    x, y = DATASETS[name]()
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(x))
    half = len(x) // 2
    public, private = order[:half], order[half:]
    center = np.mean([x[public][y[public] == c].mean(axis=0) for c in np.unique(y)], axis=0)
    deviation = x[public].std(axis=0)
    deviation[deviation == 0] = 1.0
    scaled = (x - center) / deviation
    _, _, axes = np.linalg.svd(scaled[public] - scaled[public].mean(axis=0), full_matrices=False)
    halves: tuple[dict[int, Any], dict[int, Any]] = ({}, {})
    for k in sorted({min(k, x.shape[1]) for k in COMPONENTS}):
        rotated = scaled @ axes[:k].T
        rotated = clipped(rotated * NORM / np.median(np.linalg.norm(rotated[public], axis=1)))
        for some, rows in zip(halves, (public, private), strict=True):
            some[k] = rotated[rows]
    n = 2 * half // 3

    def split(size: int, count: int) -> list[tuple[Any, Any]]:
        return [(p[:n], p[n:]) for p in (rng.permutation(size) for _ in range(count))]

    tuning, measured = split(half, TUNING), split(len(private), splits)
    return Task(name, seed, *halves, y[public], y[private], tuning, measured)


def save(task: Task, path: Path) -> None:
    """Write a task where the peer reads it."""
    arrays = {f"public{k}": x for k, x in task.public.items()}
    arrays |= {f"private{k}": x for k, x in task.private.items()}
    for name, splits in (("public", task.public_splits), ("private", task.private_splits)):
        arrays[f"{name}_train"] = np.array([s[0] for s in splits])
        arrays[f"{name}_test"] = np.array([s[1] for s in splits])
    np.savez(
        path, **arrays, public_y=task.public_y, private_y=task.private_y, components=list(task.public), cs=CS,
        epsilons=EPSILONS, draws=DRAWS, trials=TRIALS, norm=NORM, seed=1000 * task.seed,
    )  # fmt: skip


# -- ours --


def work(task: Task) -> dict[str, Any]:
    """Choose components and C on the public half, for each epsilon; then score on the private half."""
    start, rng = time.process_time(), np.random.default_rng([task.seed, 1])
    n = len(task.public_splits[0][0])
    known = {
        k: samplers.bootstrap((np.ascontiguousarray(x), task.public_y), smooth=0.3)
        for k, x in task.public.items()
    }
    # Choosing: simulated noise on public records, with a rough estimate that is used for nothing else.
    scores: dict[tuple[str, float], dict[tuple[int, float], float]] = {}
    for k, sampler in known.items():
        for c in CS:
            pilot = estimate_sensitivity(
                lambda data, c=c: train(*data, C=c).coef_, n=n, sampler=sampler, norm="l1", plan=PILOT,
                workers="inline",
            ).value  # fmt: skip
            for fitted, test in task.public_splits:
                coef = train(task.public[k][fitted], task.public_y[fitted], c).coef_
                x, y = task.public[k][test], task.public_y[test]
                for method, sensitivity in (("plain", 0.0), ("ours", pilot), ("bound", bound(c, coef))):
                    for epsilon in (math.inf,) if method == "plain" else EPSILONS:
                        found = scores.setdefault((method, epsilon), {})
                        for _ in range(TRIALS):
                            noise = rng.laplace(size=coef.shape) * sensitivity / epsilon
                            found[k, c] = found.get((k, c), 0.0) + accuracy(coef + noise, x, y)
    chosen = {which: max(found, key=lambda each: found[each]) for which, found in scores.items()}
    result: dict[str, Any] = {"name": task.name, "n": n, "methods": {}, "gaps": []}
    # Scoring: on the private half.
    private = {
        k: privatize(
            mechanism="laplace", epsilon=1, gamma=GAMMA, data=("X", "y"), sampler=sampler, store=None,
            workers="inline", progress=False,
        )(train)
        for k, sampler in known.items()
    }  # fmt: skip
    for method in ("plain", "ours", "bound"):
        rows = []
        for epsilon in EPSILONS:
            k, c = chosen[method, math.inf if method == "plain" else epsilon]
            row = []
            for fitted, test in task.private_splits:
                x, y = task.private[k], task.private_y
                if method == "ours":
                    learn = private[k].replace(epsilon=epsilon)
                    models = [learn(x[fitted], y[fitted], C=c) for _ in range(DRAWS)]
                    row += [float(model.score(x[test], y[test])) for model in models]
                    continue
                coef = train(x[fitted], y[fitted], c).coef_
                for _ in range(DRAWS):
                    released = coef
                    if method == "bound":
                        flat = Laplace().release(
                            coef.ravel(), sensitivity=bound(c, coef), epsilon=epsilon,
                            whole=np.zeros(coef.size, dtype=bool),
                        )  # fmt: skip
                        released = flat.reshape(coef.shape)
                    row.append(accuracy(released, x[test], y[test]))
            rows.append(row)
        result["methods"][method] = {
            "accuracies": rows,
            "chosen": [chosen[method, math.inf if method == "plain" else epsilon] for epsilon in EPSILONS],
        }
    # Only a benchmark may do this: real neighbours, made with a private record that was not trained on.
    for k, c in sorted({chosen["ours", epsilon] for epsilon in EPSILONS}):
        estimate = private[k].estimate(n, C=c).value
        beyond = []
        x, y = task.private[k], task.private_y
        for fitted, test in task.private_splits:
            coef = train(x[fitted], y[fitted], c).coef_
            for _ in range(20):
                neighbour = fitted.copy()
                neighbour[rng.integers(n)] = rng.choice(test)
                gap = np.abs(train(x[neighbour], y[neighbour], c).coef_ - coef).sum()
                beyond.append(bool(gap > estimate))
        result["gaps"].append(
            {
                "components": k, "C": c, "estimate": estimate, "bound": bound(c, coef),
                "real pairs": len(beyond), "beyond": sum(beyond),
            }
        )  # fmt: skip
    k, c = chosen["plain", math.inf]
    coef = train(task.public[k], task.public_y, c).coef_
    print(f"{task.name}, half {task.seed}: {time.process_time() - start:.0f} s", file=sys.stderr, flush=True)
    result["public"] = [
        accuracy(coef, task.private[k][test], task.private_y[test]) for _, test in task.private_splits
    ]
    return result


# -- the results --


def gather(results: list[dict[str, Any]]) -> dict[str, Any]:
    """Return medians and quartiles for each dataset."""
    found: dict[str, Any] = {}
    for name in DATASETS:
        mine = [each for each in results if each["name"] == name]
        if not mine:
            continue
        methods = {}
        for method in METHODS:
            if all(method in each["methods"] for each in mine):
                rows = [
                    np.concatenate([each["methods"][method]["accuracies"][i] for each in mine])
                    for i in range(len(EPSILONS))
                ]
                low, middle, high = (
                    [round(float(np.quantile(row, q)), 4) for row in rows] for q in (0.25, 0.5, 0.75)
                )
                methods[method] = {
                    "median": middle, "lower quartile": low, "upper quartile": high,
                    "mean": [round(float(row.mean()), 4) for row in rows],
                    "components and C": [each["methods"][method]["chosen"] for each in mine],
                }  # fmt: skip
        gaps = [gap for each in mine for gap in each["gaps"]]
        found[name] = {
            "n": mine[0]["n"],
            "methods": methods,
            "trained on the public half alone": round(
                float(np.median([a for e in mine for a in e["public"]])), 4
            ),
            "bound over estimate": [
                round(float(ratio([g["bound"] / g["estimate"] for g in gaps])), 2)
                for ratio in (np.min, np.median, np.max)
            ],
            "real pairs": sum(g["real pairs"] for g in gaps),
            "real pairs beyond the estimate": sum(g["beyond"] for g in gaps),
            "estimates": gaps,
        }
    return found


def table(found: dict[str, Any]) -> str:
    """Return the results in markdown."""
    methods = [m for m in METHODS if all(m in each["methods"] for each in found.values())]
    lines = [
        "| dataset | ε | " + " | ".join(METHODS[m] for m in methods) + " |",
        "|---|---|" + "---|" * len(methods),
    ]
    for name, each in found.items():
        for i, epsilon in enumerate(EPSILONS):
            private = {m: each["methods"][m]["median"][i] for m in methods if m != "plain"}
            cells = []
            for m in methods:
                of = each["methods"][m]
                low, middle, high = (of[q][i] for q in ("lower quartile", "median", "upper quartile"))
                text = f"{middle:.2f}"
                if m in private and middle == max(private.values()):
                    text = f"**{text}**"
                cells.append(f"{text} ({low:.2f} to {high:.2f})")
            first = f"{name}, n = {each['n']}" if i == 0 else ""
            lines.append(f"| {first} | {epsilon:g} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "The least of these ε at which the median is within 5% of the non-private one; how many times the",
        "estimate the global bound is; which share of real neighbours differs by more than the estimate; and",
        "how accurate a model of the public half alone is:",
        "",
    ]
    compared = [m for m in methods if m != "plain"]
    heads = ["dataset", *(METHODS[m] for m in compared), "bound / estimate", "beyond", "public half alone"]
    lines += ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, each in found.items():
        goal = 0.95 * each["methods"]["plain"]["median"][0]
        cells = [f"{name}, n = {each['n']}"]
        for m in compared:
            reached = [e for e, a in zip(EPSILONS, each["methods"][m]["median"], strict=True) if a >= goal]
            cells.append(f"{min(reached):g}" if reached else f"over {EPSILONS[-1]:g}")
        beyond = each["real pairs beyond the estimate"] / each["real pairs"]
        cells += [f"{each['bound over estimate'][1]:.1f}", f"{beyond:.1%}"]
        cells.append(f"{each['trained on the public half alone']:.2f}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def picture(found: dict[str, Any], path: str) -> None:
    """Draw accuracy against epsilon, one panel for each dataset.

    The background is transparent, and all colors can be seen on a white and on a dark page.
    """
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    gray = "#828282"
    plt.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": "learners", "font.size": 11.5}
    plt.rcParams |= {"text.color": gray, "xtick.color": gray, "ytick.color": gray, "grid.color": gray}
    plt.rcParams |= {"axes.edgecolor": gray, "axes.labelcolor": gray}
    styles = {  # near the colors of Okabe and Ito, which everybody can tell apart; with styles and markers
        "plain": (gray, "--", ""),
        "ours": ("#2E86C8", "-", "o"),
        "bound": ("#D55E00", "-", "s"),
        "peer": ("#009E73", "-", "^"),
    }
    figure, panels = plt.subplots(1, len(found), figsize=(3.6 * len(found), 3.6), sharey=True, squeeze=False)
    for panel, (name, each) in zip(panels[0], found.items(), strict=True):
        for method, of in each["methods"].items():
            color, line, marker = styles[method]
            panel.plot(EPSILONS, of["median"], line, marker=marker, color=color, label=METHODS[method], ms=5)
            if method != "plain":
                ends = (of["lower quartile"], of["upper quartile"])
                panel.fill_between(EPSILONS, *ends, color=color, alpha=0.15, lw=0)
        panel.set(xscale="log", title=f"{name}, n = {each['n']}", xlabel="ε", ylim=(0, 1.02))
        panel.set_xticks([0.01, 0.1, 1, 10], ["0.01", "0.1", "1", "10"])
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("accuracy on test records")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, transparent=True, metadata={"Date": None})


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", metavar="PYTHON", help="interpreter of an environment with diffprivlib")
    parser.add_argument("--json", metavar="FILE", help="where the results go")
    parser.add_argument("--plot", metavar="FILE", help="where the plot goes")
    parser.add_argument("--from", metavar="FILE", dest="old", help="show earlier results in place of a run")
    parser.add_argument("--halves", type=int, default=4, help="public halves of each dataset")
    parser.add_argument("--splits", type=int, default=6, help="splits of each private half")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    options = parser.parse_args()
    if options.old:
        found = json.loads(Path(options.old).read_text())["datasets"]
    else:
        warnings.simplefilter("error")
        start = time.perf_counter()
        tasks = [prepare(name, FIRST + i, options.splits) for name in DATASETS for i in range(options.halves)]
        with ProcessPoolExecutor(options.jobs) as pool:
            results = list(pool.map(work, tasks))
        versions = {
            "python": platform.python_version(), "privatize": package.__version__,
            "scikit-learn": sklearn.__version__, "numpy": np.__version__,
        }  # fmt: skip
        ours = time.perf_counter() - start
        if options.peer:
            with tempfile.TemporaryDirectory() as folder:
                for i, task in enumerate(tasks):
                    save(task, Path(folder, f"{i:03d}.npz"))
                script = Path(__file__).with_name("learners_peer.py")
                subprocess.run([options.peer, str(script), folder, str(options.jobs)], check=True)
                for i, result in enumerate(results):
                    peer = json.loads(Path(folder, f"{i:03d}.json").read_text())
                    versions["diffprivlib"] = peer["versions"]["diffprivlib"]
                    versions["scikit-learn of diffprivlib"] = peer["versions"]["scikit-learn"]
                    result["methods"]["peer"] = peer
        found = gather(results)
        if options.json:
            facts = {
                "versions": versions, "epsilons": EPSILONS, "gamma": GAMMA, "C": CS, "components": COMPONENTS,
                "public halves": options.halves, "splits of each": options.splits, "draws of noise": DRAWS,
                "tuning splits": TUNING, "tuning draws": TRIALS,
                "datasets": found,
            }  # fmt: skip
            text = json.dumps(facts, indent=1, ensure_ascii=False)
            text = re.sub(r"[\[{][^\[\]{}]*[\]}]", lambda found: " ".join(found[0].split()), text)  # one line
            Path(options.json).write_text(text + "\n")
        print(f"{ours:.0f} s ours, {time.perf_counter() - start - ours:.0f} s the peer", file=sys.stderr)
    if options.plot:
        picture(found, options.plot)
    print(table(found))


if __name__ == "__main__":
    main()
