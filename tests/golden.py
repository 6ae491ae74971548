"""Compute digests of what every kind of sampler draws and every mechanism measures; golden.json pins them.

A stored estimate is used as long as its key is the same. The key has nothing of our own classes in it but a
tag and a version. So whoever changes which records a kind draws must raise its `draw_version` (a mechanism's
`gap_version`, or `streams.SCHEME`), and add the new digests: ``python -m tests.golden`` prints what is
missing, and ``python -m tests.golden --write`` adds it. Rows of earlier versions stay as they are.

Floats are rounded to ten significant digits, because the last bits of exp and log differ between platforms.
SciPy's own draws are not pinned, as they may change with SciPy's version: that is in the key.

The declared identities of the same samplers are in declared.json. They never change: if a law changes, the
`law_version` of its kind is raised.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
from scipy import stats

from privatize import Bernstein, Exponential, Gaussian, Laplace, samplers, sums
from privatize.calibration import streams
from privatize.calibration.evaluators.choose import evaluator
from privatize.data import frames
from privatize.data.persons import Persons
from privatize.identity.declared import declare
from privatize.mechanisms.base import l1, l2
from privatize.mechanisms.choosing import PilotPairs, choose
from privatize.mechanisms.matrix import MatrixWeighted
from privatize.mechanisms.shapes import Shape
from privatize.mechanisms.weighted import Weighted

FILE = Path(__file__).parent / "golden.json"
DECLARED = Path(__file__).parent / "declared.json"
FIXTURES = Path(__file__).parent / "fixtures"
SIZES = (1, 2, 7, 100)


class Foreign:
    """Looks like one of SciPy's distributions of several coordinates, and does not change with SciPy."""

    def rvs(self, size, random_state):
        """Draw."""
        return random_state.random((size, 2))

    def __repr__(self):
        return "Foreign()"


class Newer:
    """Looks like one of SciPy's newer distributions."""

    def sample(self, n, rng):
        """Draw."""
        return rng.standard_normal(n)

    def cdf(self, x):
        """Return nothing of interest."""
        return x

    def support(self):
        """Return the bounds."""
        return -np.inf, np.inf

    def __repr__(self):
        return "Newer()"


class Around:
    """Looks like what SciPy makes of arrays of parameters."""

    def __init__(self, theta):
        self.theta = theta

    def mean(self):
        """Return the parameters."""
        return self.theta

    def rvs(self, size, random_state):
        """Draw."""
        return self.theta + random_state.random(size)


def tall(people, rng):
    """Make labels of a frame."""
    return (people["age"].to_numpy() + rng.random(len(people)) > 60).astype(np.int64)


def drawn(n, rng):
    """Draw as a user's function would."""
    return rng.random(n) * 10 - 5


def noisy(theta, rng):
    """Draw one record around each parameter."""
    return theta + rng.standard_normal(len(theta))


def summed(X, rng):
    """Make labels of features."""
    return (X.sum(axis=1) + rng.random(len(X)) > 1.5).astype(np.int64)


def total(X):
    """Make labels that leave their support."""
    return X.sum(axis=1)


def earned(columns, rng):
    """Make a column of another."""
    return columns["age"] * 100 + rng.random(len(columns["age"]))


def halved(x):
    """Return half."""
    return x / 2


def walked(person, rng):
    """Return the rows of a person."""
    return {"time": np.arange(3), "place": person["age"] + rng.random(3)}


def sampler_cases():
    """Return samplers of every kind and option, each by the code that makes it."""
    s = samplers
    people = {
        "age": s.integers(0, 120),
        "sex": s.categorical(["F", "M", "X"], p=[0.5, 0.4, 0.1]),
        "city": s.choice(["Rome", "Ulm"]),
        "ill": s.boolean(0.1),
        "income": s.with_missing(s.normal(30, 5, low=0), 0.2),
        "day": s.dates("2020-01-01", "2024-12-31"),
    }
    public = np.array([[1.0, 2.5], [3.0, 4.0], [-1.0, 0.0]])
    thinned = s.Change(thinned=[("y", [1], 0.3)])
    several = s.Change(
        spread=[("age", 0.5, 60, True), ("income", 2, 30, False), ("day", 0.5, "2022-07-01", True)],
        swapped=[("sex", ["F"], ["M", "X"], [0.8, 0.2]), ("city", ["Ulm"], ["Rome"], [1])],
        added=[("age", "zeros", 0.3), ("income", "missing", 0.3)],
    )
    cases = [
        s.uniform(0, 1),
        s.uniform(-3.5, 100),
        s.uniform(0, 1, size=3),
        s.uniform(2, 5, size=(2, 2)),
        s.uniform([0, -1], [1, 1]),
        s.integers(0, 1),
        s.integers(-5, 10),
        s.integers(-(2**53), 2**53),
        s.integers(0, 255, size=2),
        s.normal(0, 1),
        s.normal(5, 2),
        s.normal([0, 1], [1, 3]),
        s.normal(0, 1, low=-1, high=2),
        s.normal(0, 1, low=4, high=9),
        s.normal([0, 5], 2, low=[-1, 3]),
        s.normal([0, 1], cov=[[1, 0], [0, 4]]),
        s.normal([0, 1], cov=[[1, 0], [0, 4]], low=-1),
        s.choice(["red", "green", "blue"]),
        s.choice([1, 2, 3], p=[1, 2, 1]),
        s.choice([0.5, 1.5], unknown=1.5),
        s.choice([False, True]),
        s.categorical(["a", "b"], ordered=True),
        s.boolean(),
        s.boolean(0.3),
        s.dates("2020-01-01", "2020-02-01"),
        s.dates("2020-01-01", "2020-02-01", times=True),
        s.dates("2020-01-01", "2020-02-01", tz="Europe/Berlin"),
        s.with_missing(s.uniform(0, 1), 0.3),
        s.with_missing(s.integers(0, 9), 0.5),
        s.with_missing(s.choice(["a", "b"]), 0.5),
        s.with_missing(s.with_missing(s.uniform(0, 1), 0.3), 0.3),
        *(s.table(people, frame=frame) for frame in ("pandas", "polars", "pyarrow", "dict", "records")),
        s.table(age=s.integers(0, 9), income=s.dependent(earned, support=(0, 500)), frame="dict"),
        s.table(age=s.integers(0, 9), income=earned, frame="dict")["income"],
        s.table(people)["sex"],
        s.table(people)[["day", "age"]],
        s.table(people, frame="dict")["age"],
        s.labelled(s.table(people), "ill"),
        s.labelled(s.table(people, frame="pyarrow"), "age"),
        s.labelled(s.uniform(0, 1, size=2), summed, support=[0, 1]),
        s.labelled(s.uniform(0, 1, size=2), s.boolean(0.3)),
        *(s.load(FIXTURES / f"learned_{form}.json") for form in ("table", "array", "pair")),
        s.people(s.table(people), unit="id", rows=s.integers(0, 5), order="day"),
        s.people(
            s.table(cost=s.uniform(0, 9), frame="dict"), unit="id", rows=3, person=s.table(people), shared=0.5
        ),
        s.people(walked, unit="id", person=s.table(age=s.integers(0, 9)), most=2, frame="dict"),
        s.mixture([s.normal(0, 1), s.uniform(5, 6)]),
        s.mixture([s.integers(0, 9), s.integers(90, 99), s.integers(50, 51)], weights=[1, 2, 0]),
        s.mixture([s.table(people), s.table(people)], weights=[0.9, 0.1]),
        s.uniform(0, 1).map(halved),
        s.uniform(0, 1).map(np.exp, support=(1, 2)),
        s.integers(0, 100).truncated(18, 65),
        s.as_sampler(Foreign()).truncated(0.1, 0.9),
        s.uniform(0, 1).truncated(0.5),
        s.uniform(0, 1, size=2).changed(s.Change(spread=[("value", 2, [0.4, 0.5], False)])),
        s.labelled(s.uniform(0, 1, size=2), summed, support=[0, 1]).changed(thinned),
        *(s.table(people, frame=frame).changed(several) for frame in ("pandas", "dict")),
        s.normal(0, 1).clip(-1, 1),
        s.integers(0, 100).clip(high=50),
        s.uniform(0, 1, size=2).clip([0.1, 0.2], [0.8, 0.9]),
        s.uniform(0, 1).fixed(size=5),
        s.from_function(drawn),
        s.from_function(drawn, support=(-1, 1), independent=True),
        s.as_sampler(stats.norm(1, 2)),
        s.as_sampler(stats.expon()),
        s.as_sampler(stats.uniform(2, 3)),
        s.as_sampler(Foreign()),
        s.as_sampler(Newer()),
        s.blobs([[0, 0], [1, 2]]),
        s.blobs([[0, 0], [1, 2], [5, 5]], [1, 2, 3], labels=["a", "b", "c"], weights=[1, 2, 3]),
        s.blobs([[0, 0], [1, 2]], 0.5, labels=[-1, 1], low=-1, high=[1, 3]),
        s.marginal(s.normal(0, 1), noisy),
        s.marginal(s.normal(0, 1), noisy, per="dataset", support=(-2, 2)),
        s.uniform(1, 3),
        s.normal(1, 2),
        s.normal(2, 3, low=-1, high=4),
        s.labelled(s.uniform(0, 1, size=2), total, support=(0.5, 1.5)),
        s.normal([0, 1], cov=[[2, 1], [1, 2]]),
        s.normal([0, 1], cov=[[0, 0], [0, 0.25]]),
        s.integers(0, 1000).truncated(0, 20),
        s.categorical([3, 1, 2], unknown=1),
        s.marginal(s.normal(0, 1), Around),
        s.labelled(s.table(people), tall, support=[0, 1]),
        s.mixture(
            [
                s.labelled(s.uniform(0, 1, size=2), s.boolean()),
                s.blobs([[0, 0], [9, 9]], labels=[False, True]),
            ]
        ),
        *(
            s.table(
                a=s.with_missing(s.categorical(["u", "v"]), 0.4),
                b=s.with_missing(s.dates("1500-01-01", "2020-02-01"), 0.4),
                c=s.with_missing(s.boolean(0.2), 0.4),
                d=s.dates("2020-01-01", "2020-02-01", tz="Europe/Berlin"),
                e=s.with_missing(s.integers(0, 9), 0.4),
                f=s.dates("2020-01-01", "2020-02-01", times=True),
                frame=frame,
            )
            for frame in ("pandas", "polars", "pyarrow", "dict", "records")
        ),
    ]
    found = {repr(case): case for case in cases}
    columns = {"a": public[:, 0], "b": public[:, 1]}
    datasets = {
        "array": public,
        "tuple": (public, np.array(["a", "b", "a"])),
        "list": [1, 2, 3],
        "dict": columns,
        "records": [{"a": 1.5, "b": "x"}, {"a": 2.5, "b": "y"}],
    }
    for frame in ("pandas", "polars", "pyarrow"):
        datasets[frame] = s.table(people, frame=frame).draw(9, np.random.default_rng(1))
    for name, dataset in datasets.items():
        found[f"bootstrap({name})"] = s.bootstrap(dataset)
        found[f"bootstrap({name}, smooth=0.5)"] = s.bootstrap(dataset, smooth=0.5)
    return found | {"bootstrap(dict)['b']": found["bootstrap(dict)"]["b"]}


def canonical(data):
    """Return drawn records as JSON that is the same on all platforms: containers, names, kinds and values."""
    if isinstance(data, Persons):
        return ["persons", repr(data.unit), canonical(data.counts), canonical(data.rows)]
    if isinstance(data, tuple):
        return ["tuple", *map(canonical, data)]
    if isinstance(data, dict):
        return ["dict", [[name, canonical(part)] for name, part in data.items()]]
    if isinstance(data, list):
        return ["list", [canonical(each) if isinstance(each, dict) else value_of(each) for each in data]]
    form = frames.kind(data)
    if form is not None:
        kinds = [{"object": "text"}.get(kind, kind) for kind in frames.kinds(data)]
        parts = [[canonical(np.asarray(part))[-1] for part in frames.contents(data)]]
        return [*form, list(map(str, frames.names(data))), kinds, parts]
    data = np.asarray(data)
    kind = {"O": "text", "U": "text", "T": "text"}.get(data.dtype.kind, data.dtype.name)
    if data.dtype.kind in "mM":
        kind, data = data.dtype.kind, data.astype("M8[us]" if data.dtype.kind == "M" else "m8[us]")
    return ["array", kind, list(data.shape), [value_of(each) for each in data.ravel().tolist()]]


def value_of(value):
    """Return one value; floats with ten digits."""
    if isinstance(value, float):
        return f"{value + 0.0:.9e}"
    return f"{type(value).__name__} {value}"


def draws(sampler):
    """Return the digest of some datasets drawn one after the other, and of what the generator gives next."""
    rng = streams.stream(19, streams.RECORDS, 3)
    found = [canonical(without_signs(sampler, sampler.draw(n, rng))) for n in SIZES]
    if hasattr(sampler, "positions"):
        found.append(sampler.positions(50).tolist())
    return digest([found, value_of(rng.random())])


def without_signs(sampler, data):
    """Return correlated draws in the directions of their eigenvectors, whose signs depend on the platform."""
    if sampler.tag != "normal with covariance" or sampler.box is not None:
        return data
    return (data - sampler.mean.array) @ np.linalg.eigh(sampler.cov.array)[1]


def mechanism_cases():
    """Yield mechanisms of every kind, with what they measure."""
    gap = np.array([3.0, -4.0, 0.25, 1e-12])
    steps = np.array([[1.0, 0.0, 8.0], [3.0, 0.0, 2.0], [0.0, 0.0, 64.0], [2.0, 0.0, -32.0]])
    seen = PilotPairs(
        steps, np.array([[9.0, 4.0, 80.0], [5.0, 4.0, 10.0], [1.0, 5.0, 640.0], [7.0, 4.0, 3.0]])
    )
    shape = Shape("total", (0, -3, 1, 2))
    tables = {"x": np.array([0.5, 0.25]), "y": np.array([1.0, 0.0])}
    for made in (Laplace(), Laplace(scaled="none"), Laplace(scaled="total"), Laplace(scaled="relative")):
        yield made, [made.norm(gap), choose(made, seen).encoded, Weighted(made, shape).norm(gap)]
    for made in (Gaussian(scaled="total"), Gaussian(calibration="classic", scaled="relative")):
        yield made, [made.norm(gap), choose(made, seen).encoded, Weighted(made, shape).norm(gap)]
    for made in (Gaussian(), Gaussian(scaled="matrix", error=[[1.0, 0.0], [0.0, 2.0]])):
        yield made, [made.norm(gap), MatrixWeighted(made, Shape("matrix", (0, -1), (3, 1, 2))).norm(gap[:2])]
    for norm in ("range", "sup"):
        made = Exponential(["x", "y"], norm=norm)
        scores = made.evaluate(lambda data, s0, response: tables[response].sum() + data + s0, True)(2.0, 1)
        yield made, [made.norm(gap), scores.tolist()]
    for made in (Bernstein(), Bernstein(lattice=3, dimension=2, order=2, norm="sup")):
        values = made.evaluate(lambda data, s0, points: points.reshape(len(points), -1).sum(axis=1), True)
        yield made, [made.norm(gap), made.points().tolist(), np.asarray(values(None, 1)).tolist()]


def pair_cases():
    """Yield the gaps of pairs for every way to evaluate them."""
    ages = samplers.integers(0, 100)
    table = samplers.table(a=samplers.uniform(0, 1), b=samplers.boolean(), frame="dict")
    for name, function, sampler, norm, rest in (
        ("one by one", lambda x: float(x[0] + 2 * x[-1]), samplers.normal(0, 1), l1, {}),
        ("of integers", lambda x: np.array([x.sum(), x.max()]), ages, l2, {}),
        ("of a dict", lambda d: float(d["a"][d["b"]].max(initial=0)), table, l1, {}),
        ("in a batch", lambda x: x[..., 1] + x.min(axis=-1), samplers.uniform(0, 1), l1, {"batch": True}),
        ("of a sum", sums.means(), samplers.uniform([0, 0], [1, 2]), l1, {}),
    ):
        for n in (5, 2000):
            pairs = evaluator(function, n=n, sampler=sampler, norm=norm, seed=11, **rest)
            pairs.pairs.check()
            found = pairs.evaluate((0, 300), pairs.learned).gaps
            yield f"{name}, n={n}", found.tolist()


def digest(tree):
    """Return the digest of JSON, in which floats have ten digits."""
    rounded = json.dumps(rounding(tree), separators=(",", ":"))
    return hashlib.sha256(rounded.encode()).hexdigest()[:32]


def rounding(tree):
    """Return JSON with its floats as strings of ten digits."""
    if isinstance(tree, list):
        return [rounding(each) for each in tree]
    return value_of(tree) if isinstance(tree, float) else tree


def rows():
    """Yield what a row is about (a tag and its version), its name, and the digest of today's code."""
    for name, sampler in sampler_cases().items():
        yield f"{sampler.tag} {sampler.draw_version}", name, draws(sampler)
    for mechanism, found in mechanism_cases():
        yield f"{mechanism.tag} {mechanism.gap_version}", repr(mechanism), digest(found)
    for name, gaps in pair_cases():
        yield f"pairs {streams.SCHEME}", name, digest(gaps)


def declared_rows():
    """Yield the declared identities of all samplers, in the form of `rows`."""
    for name, sampler in sampler_cases().items():
        yield f"{sampler.tag} {sampler.law_version}", name, declare(sampler).digest


def main():
    """Print the rows that are missing; with ``--write``, add them to the files."""
    for file, found in ((FILE, rows()), (DECLARED, declared_rows())):
        known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        for what, name, row in found:
            if name not in known.setdefault(what, {}):
                print(f"{what}: {name}: {row}")
                known[what][name] = row
        if "--write" in sys.argv:
            file.write_text(json.dumps(known, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
