"""Other people's functions, made private where they are used: the table of docs/third_party.md.

First the shortest case, one call of scipy as it is: start from that. Then numpy, scipy, pandas, statsmodels,
PyTorch, networkx and scikit-learn's boosted trees, each with the few lines around it that it needs. Raw
answers are shown beside the private ones only because the data is public: scikit-learn's 442 diabetes
patients, and a made-up hospital. What is not installed is left out.

    python examples/third_party.py            prints the table
    python examples/third_party.py --quick    the same with fewer pairs
"""

import argparse
import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.stats

from privatize import Bernstein, PrivateFunction, privatize, samplers


def optional(name: str) -> Any:
    """Return a module, or None if it is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


pd, sm, torch, nx = map(optional, ("pandas", "statsmodels.api", "torch", "networkx"))
datasets, ensemble = map(optional, ("sklearn.datasets", "sklearn.ensemble"))

# --- the shortest case: somebody else's function, as it is --------------------------------------------------


def shortest() -> None:
    """Make the range of the middle half of all waiting times private, and print it with an interval."""
    spread = privatize(
        epsilon=1,
        gamma=0.05,
        sampler=samplers.uniform(0, 120),  # P: up to two hours; whoever waited longer counts as two hours
        seed=1,
        store=None,  # an example leaves nothing behind
    )(scipy.stats.iqr)
    minutes = np.random.default_rng(4).gamma(3, 10, size=1000)  # private
    release = spread.release(minutes)
    low, high = release.interval(0.95)
    print(f"scipy.stats.iqr of {release.n:,} waiting times in minutes, private: {release.value:.1f}")
    print(f"the raw one is between {low:.1f} and {high:.1f} with 95% probability")
    print(f"(it is {scipy.stats.iqr(minutes):.1f}, shown only because they are made up)\n")


# --- P, the public distribution of one patient: what the form allows, and what is published -----------------

CENTER = {"age": 54, "bmi": 27, "bp": 95}
WIDTH = {"age": 20, "bmi": 5, "bp": 15}


def progress(columns: dict[str, Any], rng: np.random.Generator) -> Any:
    """Draw how far the disease has progressed: it rises with weight and blood pressure, and scatters."""
    return rng.normal(150 + 8 * (columns["bmi"] - 27) + 1.5 * (columns["bp"] - 95), 80)


def patients() -> Any:
    """Return P, one row of a data frame."""
    return samplers.table(
        age=samplers.integers(18, 90),
        bmi=samplers.normal(27, 5).truncated(15, 50),
        bp=samplers.normal(95, 15).truncated(50, 150),
        target=samplers.dependent(progress, support=(0, 400)),
    )


def scaled(d: Any, names: list[str]) -> Any:
    """Return columns in units of their spread, by public constants: slopes then move by similar amounts."""
    return (d[names] - [CENTER[name] for name in names]) / [WIDTH[name] for name in names]


# --- the questions, as one would write them anyway ----------------------------------------------------------

EDGES = [15, 20, 25, 30, 35, 50]


def histogram(bmi: Any) -> Any:
    """Count patients by BMI. The edges are public: only the counts are released."""
    return np.histogram(bmi, bins=EDGES)[0]


def line(d: Any) -> dict[str, float]:
    """Regress the progress on the BMI; of the result object only what is wanted."""
    found = scipy.stats.linregress(scaled(d, ["bmi"])["bmi"], d["target"])
    return {"slope": float(found.slope), "intercept": float(found.intercept)}


def correlations(d: Any) -> Any:
    """Correlate all columns."""
    return d.corr()


def correlations_once(d: Any) -> Any:
    """Correlate all columns, without the ones, and without every number twice."""
    return d.corr().to_numpy()[np.triu_indices(len(d.columns), 1)]


def as_correlations(noisy: Any) -> Any:
    """Return noisy correlations, without the ones, as a correlation matrix: post-processing, which is free.

    It is the nearest positive semi-definite matrix, scaled to ones on the diagonal, which puts all others
    into [-1, 1].
    """
    size = round((1 + (1 + 8 * len(noisy)) ** 0.5) / 2)
    matrix = np.eye(size)
    matrix[np.triu_indices(size, 1)] = noisy
    matrix = np.triu(matrix) + np.triu(matrix, 1).T
    values, vectors = np.linalg.eigh(matrix)
    matrix = (vectors * np.maximum(values, 1e-9)) @ vectors.T
    width = np.sqrt(np.diag(matrix))
    return np.clip(matrix / np.outer(width, width), -1, 1)


def least_squares(d: Any) -> Any:
    """Fit a linear model; its parameters have names."""
    return sm.OLS(d["target"], sm.add_constant(scaled(d, ["bmi", "bp"]))).fit().params


def network() -> Any:
    """Return an untrained network; its first weights are drawn from torch's default generator."""
    return torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))


def trained(d: Any) -> Any:
    """Train a tiny network; in calibration and on the private data it begins with the same weights."""
    x = torch.tensor(scaled(d, ["age", "bmi", "bp"]).to_numpy(), dtype=torch.float32)
    y = torch.tensor(((d["target"] - 150) / 80).to_numpy(), dtype=torch.float32)
    model = network()
    steps = torch.optim.SGD(model.parameters(), lr=0.3)
    for _ in range(20):
        steps.zero_grad()
        torch.nn.functional.mse_loss(model(x)[:, 0], y).backward()
        steps.step()
    return model.state_dict()


WARDS = 12


def importance(transfers: Any) -> dict[int, float]:
    """Rank wards by the transfers between them; a record is one transfer (from, to)."""
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(WARDS))  # also those without any transfer
    graph.add_edges_from(transfers.tolist())
    found: dict[int, float] = nx.pagerank(graph, tol=1e-10)
    return found


def importance_by_patient(stays: Any) -> dict[int, float]:
    """Rank wards likewise; a record is one patient: the five wards that he or she went through."""
    return importance(np.column_stack([stays[:, :-1].ravel(), stays[:, 1:].ravel()]))


def boosted(d: Any, points: Any) -> Any:
    """Fit boosted trees, and predict the progress on public points: BMIs from 15 to 50, as 0 to 1."""
    model = ensemble.HistGradientBoostingRegressor(
        max_iter=20, max_depth=2, min_samples_leaf=40, l2_regularization=100, early_stopping=False
    )
    model.fit(((d[["bmi"]] - 15) / 35).to_numpy(), d["target"].to_numpy())
    return model.predict(points[:, None])


# --- the data -----------------------------------------------------------------------------------------------


def diabetes() -> Any:
    """Return scikit-learn's diabetes patients."""
    return datasets.load_diabetes(as_frame=True, scaled=False).frame[["age", "bmi", "bp", "target"]]


def hospital(patients: int = 400) -> Any:
    """Return the five wards that each patient of a made-up hospital went through."""
    popular = np.arange(WARDS, 0, -1.0)
    return np.random.default_rng(1).choice(WARDS, size=(patients, 5), p=popular / popular.sum())


# --- the table ----------------------------------------------------------------------------------------------

Row = tuple[str, Any, Any, Any]


def from_patients(private: Callable[..., Any]) -> Iterator[Row]:
    """Yield what, raw and private answers and the release, for the questions about patients."""
    sampler, d = patients(), diabetes()

    def ask(function: Any, data: Any, p: Any = sampler) -> tuple[Any, Any]:
        return function(data), private(p)(function).release(data)

    raw, release = ask(histogram, d["bmi"], sampler["bmi"])
    yield "np.histogram: counts by BMI", raw, release.value, release
    raw, release = ask(line, d)
    yield "scipy linregress: slope, intercept", list(raw.values()), list(release.value.values()), release
    raw, release = ask(correlations, d)
    yield "DataFrame.corr: bmi-target", raw.loc["bmi", "target"], release.value.loc["bmi", "target"], release
    raw, release = ask(correlations_once, d)
    shown = as_correlations(raw)[1, 3], as_correlations(release.value)[1, 3]
    yield "  the same, each number once", *shown, release
    if sm is None:
        print("statsmodels is not installed: its row is left out")
    else:
        raw, release = ask(least_squares, d)
        yield "statsmodels OLS: const, bmi, bp", raw.to_numpy(), release.value.to_numpy(), release
    if ensemble is not None:
        curve: PrivateFunction[..., Any] = private(sampler, mechanism=Bernstein(lattice=5, order=3))(boosted)
        release = curve.release(d)
        at = np.array([0.2, 0.4, 0.6])  # BMIs of 22, 29 and 36
        yield "boosted trees at BMI 22, 29, 36", boosted(d, at), release.value(at), release


def from_torch(private: Callable[..., Any]) -> Iterator[Row]:
    """Yield how well networks with raw and with private weights fit."""
    sampler, d = patients(), diabetes()
    train = private(sampler)(trained)
    release = train.release(d)
    torch.manual_seed(train.estimate(len(d), like=d.head(0)).coin_seed)  # the public seed of every evaluation
    raw = trained(d)
    x = torch.tensor(scaled(d, ["age", "bmi", "bp"]).to_numpy(), dtype=torch.float32)
    y = (d["target"].to_numpy() - 150) / 80
    errors = []
    for weights in (raw, release.value):
        model = network()
        model.load_state_dict(weights)
        with torch.no_grad():
            errors.append(1 - ((model(x)[:, 0].numpy() - y) ** 2).mean() / y.var())
    yield "torch network: R² (11 weights)", *errors, release


def from_networkx(private: Callable[..., Any]) -> Iterator[Row]:
    """Yield the importance of the first wards, private for a transfer and for a patient."""
    stays = hospital()
    transfers = np.column_stack([stays[:, :-1].ravel(), stays[:, 1:].ravel()])
    for what, function, data in (
        ("networkx pagerank, a transfer", importance, transfers),
        ("networkx pagerank, a patient", importance_by_patient, stays),
    ):
        release = private(samplers.integers(0, WARDS - 1, size=data.shape[1]))(function).release(data)
        yield what, list(function(data).values())[:3], list(release.value.values())[:3], release


def largest(scale: Any) -> float:
    """Return the largest scale of an answer's numbers, whatever its form."""
    if isinstance(scale, dict):
        return max(map(largest, scale.values()))
    return float(np.max(np.asarray(scale)))


def text(value: Any) -> str:
    """Return numbers for a column of the table."""
    return " ".join(f"{number:.4g}" for number in np.atleast_1d(value))


def main(quick: bool) -> None:
    """Print the shortest case, and the table."""
    fewer: dict[str, Any] = {"samples": "least", "workers": "inline"} if quick else {}

    def private(sampler: Any, **more: Any) -> Any:
        gamma = 0.2 if quick else 0.05
        return privatize(epsilon=1, gamma=gamma, sampler=sampler, seed=1, store=None, **fewer, **more)

    shortest()
    print(f"{'what':36} {'raw':26} {'private (epsilon=1)':26} {'sensitivity':>11} {'noise scale':>11}")
    for rows, needed in (
        (from_patients, {"pandas": pd, "scikit-learn": datasets}),
        (from_torch, {"pandas": pd, "scikit-learn": datasets, "torch": torch}),
        (from_networkx, {"networkx": nx}),
    ):
        missing = [name for name, module in needed.items() if module is None]
        if missing:
            print(f"{' and '.join(missing)} not installed: {rows.__name__} is left out")
            continue
        for what, raw, answer, release in rows(private):
            noise = f"{release.sensitivity:11.4g} {largest(release.scale):11.4g}"
            print(f"{what:36} {text(raw):26} {text(answer):26} {noise}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    main(parser.parse_args().quick)
