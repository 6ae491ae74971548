"""The paper's support vector machine, end to end: sampled sensitivity, and what the noise does to the error.

n = 1000 records of two normal classes around 0.2 and 0.8 in every coordinate, standard deviation 0.1, and a
linear SVM with C = 3 (section 7 of the paper). P is just that, within [0, 1]^d, where the paper's analysis
holds: it bounds the sensitivity of the weights and the bias by 2 + 2C√d + 4Cd/n. That is for a loss averaged
over the records; LIBSVM sums it, for which the same argument gives more still. The paper's is shown.

Two functions are made private as they are. One returns the weights and the bias of `SVC` on standardized
columns (as LIBSVM is run from R by default), in the units of the records. The other returns a fitted
`LinearSVC`, and what comes back is a `LinearSVC` with private numbers.

Without standardizing, `SVC` gives the very same answer for about 98% of neighbours, since most records are no
support vectors. The estimate would be zero, which is refused: zero noise is no privacy.

    python examples/svm.py            prints the tables (a few minutes)
    python examples/svm.py --quick    a smaller run
    python examples/svm.py --plot svm.svg       draws error against epsilon too (needs matplotlib)
"""

import argparse
import math
from typing import Any

import numpy as np
from sklearn.svm import SVC, LinearSVC

from privatize import Laplace, PrivateFunction, privatize, samplers

N = 1000
C = 3
EPSILONS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def weights(x: Any, y: Any) -> Any:
    """Return the weights and the bias of the paper's SVM: hinge loss, LIBSVM."""
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    fitted = SVC(kernel="linear", C=C).fit((x - mean) / deviation, y)
    normal = fitted.coef_[0] / deviation
    return normal, float(fitted.intercept_[0] - normal @ mean)


def model(x: Any, y: Any) -> Any:
    """Return a fitted model: squared hinge loss, LIBLINEAR."""
    return LinearSVC(C=C).fit(x, y)


def classes(d: int) -> samplers.Distribution:
    """Return the paper's two classes in d dimensions."""
    return samplers.blobs([[0.2] * d, [0.8] * d], 0.1, labels=[1, -1], low=0, high=1)


def private(function: Any, d: int, gamma: float, samples: Any = "balanced") -> PrivateFunction[..., Any]:
    """Make a function that trains private."""
    return privatize(
        mechanism=Laplace(scaled="none"),
        epsilon=1,
        gamma=gamma,
        data=("x", "y"),
        sampler=classes(d),
        samples=samples,
        store=None,
        workers="inline",
    )(function)


def bound(d: int) -> float:
    """Return the paper's global bound (its Proposition on the SVM)."""
    return 2 + 2 * C * math.sqrt(d) + 4 * C * d / N


def sensitivities(quick: bool) -> None:
    """Print the estimates beside the bound.

    Those for several gammas are read from the same pairs, to be shown. A release that could have been chosen
    among them has a larger gamma, which accounts for all the plans that were read.
    """
    dimensions = (8,) if quick else (8, 16, 32, 64)
    gammas = (0.2,) if quick else (0.2, 0.1, 0.05)
    samples = "balanced" if quick else 1500
    print(f"sensitivity of a linear SVM, n={N}, C={C}, in L1")
    print(f"{'d':>4} {'bound':>7} {'function':>9}" + "".join(f" {f'gamma={g:g}':>11}" for g in gammas))
    for d in dimensions:
        for function in (weights, model):
            values = [private(function, d, gamma, samples).estimate(N).value for gamma in gammas]
            row = "".join(f" {value:11.4f}" for value in values)
            print(f"{d:4d} {bound(d):7.2f} {function.__name__:>9}{row}")


def errors(quick: bool) -> dict[str, list[float]]:
    """Print the error on new records over epsilon, for d=2 and gamma=0.05, as means of repeats."""
    repeats, d = 5 if quick else 200, 2
    draws = np.random.default_rng(1)
    x, y = classes(d).draw(10_000, draws)
    trained = {each: private(each, d, 0.05) for each in (weights, model)}
    found: dict[str, list[float]] = {
        name: [0.0] * len(EPSILONS) for name in ("bound", "weights", "model", "none")
    }
    for _ in range(repeats):
        data = classes(d).draw(N, draws)  # the private records
        exact, bias = weights(*data)
        for i, epsilon in enumerate(EPSILONS):
            noisy = Laplace().release(
                np.append(exact, bias),
                sensitivity=bound(d),
                epsilon=epsilon,
                whole=np.zeros(d + 1, dtype=bool),
            )
            released = trained[weights].replace(epsilon=epsilon)(*data)
            machine = trained[model].replace(epsilon=epsilon)(*data)  # a LinearSVC with private numbers
            for name, normal, offset in (
                ("bound", noisy[:-1], noisy[-1]),
                ("weights", *released),
                ("none", exact, bias),
            ):
                found[name][i] += float(np.mean(np.sign(x @ normal + offset) != y)) / repeats
            found["model"][i] += float(1 - machine.score(x, y)) / repeats
    values = ", ".join(f"{each.__name__} {trained[each].estimate(N).value:.4f}" for each in trained)
    print(f"\nerror on new records, d={d}, gamma=0.05, mean of {repeats} (bound {bound(d):.2f}, {values})")
    print(f"{'epsilon':>8} {'bound':>8} {'weights':>8} {'model':>8} {'no noise':>9}")
    for i, epsilon in enumerate(EPSILONS):
        row = " ".join(f"{found[name][i]:8.4f}" for name in ("bound", "weights", "model"))
        print(f"{epsilon:8g} {row} {found['none'][i]:9.4f}")
    return found


def plot(found: dict[str, list[float]], path: str) -> None:
    """Draw error against epsilon."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    plt.rcParams["svg.fonttype"] = "none"
    figure, panel = plt.subplots(figsize=(6, 4))
    for name, text, color, line in (
        ("bound", "global bound", "#E69F00", "s-"),
        ("weights", "sampled, SVC", "#0072B2", "o-"),
        ("model", "sampled, LinearSVC", "#56B4E9", "^-"),
        ("none", "no noise", "#555555", "--"),
    ):
        panel.plot(EPSILONS, found[name], line, color=color, label=text)
    panel.set(xscale="log", xlabel="ε", ylabel="error on new records", ylim=(0, None))
    panel.legend(frameon=False, loc="center right")
    figure.tight_layout()
    figure.savefig(path)


def main(quick: bool, path: str | None) -> None:
    """Print both tables, and draw the second."""
    sensitivities(quick)
    found = errors(quick)
    if path is not None:
        plot(found, path)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer pairs, dimensions and repeats")
    parser.add_argument("--plot", metavar="FILE", help="where to draw error against epsilon")
    options = parser.parse_args()
    main(options.quick, options.plot)
