"""Everyday analyses of real data, with real libraries: the private answer is the raw one with noise.

The data ships with scikit-learn. With a huge epsilon the noise is so small that the answer must be the raw
function's on the clipped data. Noise is never seeded: each test fails by chance with probability 1e-6.
"""

import math

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import InfiniteSensitivityError

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
pl = pytest.importorskip("polars", reason="polars is not installed (extra test)")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra test)")
datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed (extra test-all)")

FALSE_ALARM = 1e-6
HUGE = 1e5
BANDS = ["young", "middle", "old"]
COLUMNS = {
    "age": samplers.uniform(18, 75),
    "sex": samplers.categorical(["F", "M"]),
    "bmi": samplers.normal(26, 5).truncated(15, 40),
    "bp": samplers.normal(95, 14).truncated(60, 130),
    "band": samplers.choice(BANDS),
    "target": samplers.uniform(25, 350),
}
BOUNDS = {"age": (18, 75), "bmi": (15, 40), "bp": (60, 130)}  # some of the patients are outside
PATIENTS = samplers.table(COLUMNS)


def private(sampler, **more):
    """Decorate with few pairs, a fixed seed and no store."""
    settings = {"epsilon": HUGE, "gamma": 0.1, "samples": "least", "seed": 7, "store": None}
    return privatize(**(settings | {"sampler": sampler, "workers": "inline"} | more))


def patients():
    """Return the diabetes data as people store it: strings for categories, and an age band."""
    frame = datasets.load_diabetes(scaled=False, as_frame=True).frame
    band = np.select([frame["age"] < 40, frame["age"] < 60], BANDS[:2], BANDS[2])
    made = frame[["age", "sex", "bmi", "bp", "target"]].assign(
        sex=pd.Categorical(np.where(frame["sex"] == 1, "F", "M"), categories=["F", "M"])
    )
    made.insert(4, "band", band)
    return made


def clipped(frame):
    """Return the patients, clipped to P's support."""
    changed = {name: frame[name].clip(*ends) for name, ends in BOUNDS.items()}
    assert any(not changed[name].equals(frame[name]) for name in changed)  # clipping makes a difference
    return frame.assign(**changed)


def numbers(answer):
    """Return all numbers of an answer, in order."""
    if isinstance(answer, dict):
        return np.concatenate([numbers(part) for part in answer.values()])
    if isinstance(answer, list | tuple):
        return np.concatenate([numbers(part) for part in answer])
    if isinstance(answer, pl.DataFrame):
        return numbers([column for column in answer.get_columns() if column.dtype.is_numeric()])
    if isinstance(answer, pa.Table):
        return numbers(pl.from_arrow(answer))
    if isinstance(answer, pd.DataFrame):
        return answer.select_dtypes("number").to_numpy(dtype=float).ravel()
    return np.asarray(answer, dtype=float).ravel()


def assert_same_form(answer, raw):
    """Fail if anything but the numbers differs: types, labels, names, dtypes."""
    assert type(answer) is type(raw)
    if isinstance(raw, pd.DataFrame | pd.Series):
        assert answer.index.identical(raw.index) and answer.index.dtype == raw.index.dtype
        if isinstance(raw, pd.Series):
            assert answer.name == raw.name and answer.dtype == raw.dtype
        else:
            assert answer.columns.identical(raw.columns) and answer.dtypes.equals(raw.dtypes)
    elif isinstance(raw, pl.DataFrame):
        labels = [name for name, dtype in raw.schema.items() if not dtype.is_numeric()]
        assert answer.schema == raw.schema and answer.select(labels).equals(raw.select(labels))
    elif isinstance(raw, pa.Table):
        assert answer.schema.equals(raw.schema)
    elif isinstance(raw, np.ndarray):
        assert answer.dtype == raw.dtype and answer.shape == raw.shape
    elif isinstance(raw, dict):
        assert list(answer) == list(raw)
        for name in raw:
            assert_same_form(answer[name], raw[name])


def assert_answers(function, sampler, private_data, inside=None, **more):
    """Fail unless the private answer is the raw one on the clipped data, but for the noise."""
    f = private(sampler, **more)(function)
    given = private_data if isinstance(private_data, tuple) else (private_data,)
    release = f.release(*given)
    inside = private_data if inside is None else inside
    raw = function(*inside) if isinstance(inside, tuple) else function(inside)
    assert_same_form(release.value, raw)
    got, wanted = numbers(release.value), numbers(raw)
    scale = numbers(release.scale)
    allowed = scale * math.log(len(wanted) / FALSE_ALARM) + 1e-9 * np.abs(wanted).max()
    assert (np.abs(got - wanted) <= allowed).all()
    assert allowed.min() < 0.1 * max(1, np.abs(wanted).max())  # the comparison means something
    noisy = f.replace(epsilon=1).release(*given)
    assert_same_form(noisy.value, raw)
    assert noisy.sensitivity == release.sensitivity


# --- pandas -----------------------------------------------------------------------------------


def groupby_mean(d):
    return d.groupby("sex", observed=False)[["bmi", "bp"]].mean()


def groupby_several(d):
    return d.groupby(["sex", "band"], observed=False)["bmi"].agg(["mean", "median", "count"])


def pivot_table(d):
    return d.pivot_table(index="sex", columns="band", values="target", aggfunc="mean", observed=False)


def crosstab(d):
    return pd.crosstab(d["sex"], d["band"])


def quantiles(d):
    return d[["age", "bmi"]].quantile([0.25, 0.5, 0.75])


def correlations(d):
    return d[["age", "bmi", "bp", "target"]].corr()


def value_counts(d):
    return d["band"].value_counts().reindex(BANDS, fill_value=0)


def rolling(d):
    return d["bp"].rolling(40).agg(["mean", "std"]).iloc[39::80]


def means(d):
    return d[["age", "bmi", "bp"]].mean()


@pytest.mark.parametrize(
    "function",
    [
        groupby_mean,
        groupby_several,
        pivot_table,
        crosstab,
        quantiles,
        correlations,
        value_counts,
        rolling,
        means,
    ],
)
def test_pandas(function):
    """What people do with a data frame all day comes back as the same frame, with noise."""
    data = patients()
    before = data.copy()
    assert_answers(function, PATIENTS, data, clipped(data))
    pd.testing.assert_frame_equal(data, before)


def test_one_column():
    """A column of a table has its own distribution, the table's projection."""
    data = patients()
    assert_answers(lambda s: s.quantile([0.1, 0.9]), PATIENTS["bmi"], data["bmi"], clipped(data)["bmi"])


def test_workers_make_the_same_estimate():
    """Where the pairs are evaluated changes nothing, or a cluster would make another promise."""
    f = private(PATIENTS)(groupby_mean)
    here = f.estimate(60)
    assert f.forget(60) == 1
    there = f.replace(workers=2).estimate(60)
    assert there.value == here.value > 0 and there.structure == here.structure
    assert np.array_equal(there.gaps, here.gaps)


def test_a_remembered_estimate_knows_the_labels(tmp_path):
    """An estimate that is read from a file gives the same frame as the one that was just made."""
    data = patients()
    first = private(PATIENTS, store=tmp_path / "store.db", epsilon=1)(pivot_table)
    second = private(PATIENTS, store=tmp_path / "store.db", epsilon=1)(pivot_table)
    one, other = first.release(data), second.release(data)
    assert one.sensitivity == other.sensitivity
    assert_same_form(other.value, pivot_table(clipped(data)))


def test_ahead_of_time():
    """A frame without rows is enough to calibrate before the data is there."""
    data = patients()[["age", "bmi"]]
    f = private(samplers.uniform([18, 15], [75, 40]))(lambda d: d.mean())
    ahead = f.estimate(len(data), like=data.head(0))
    release = f.release(data)
    assert release.sensitivity == ahead.value
    assert_same_form(release.value, data.mean())


# --- statistics -------------------------------------------------------------------------------


def test_a_curve_fit():
    """The parameters of a fitted curve come back as the array that scipy returns."""
    optimize = pytest.importorskip("scipy.optimize")

    def growth(bmi, level, rate):
        return level * np.exp(rate * (bmi - 26))

    def fit(d):
        found, _ = optimize.curve_fit(growth, d["bmi"].to_numpy(), d["target"].to_numpy(), p0=(150.0, 0.0))
        return found

    data, names = patients(), ["bmi", "target"]
    assert_answers(fit, PATIENTS[names], data[names], clipped(data)[names])


def test_a_regression():
    """The parameters of a regression come back as the Series that statsmodels returns."""
    sm = pytest.importorskip("statsmodels.api", reason="statsmodels is not installed (extra test-all)")

    def ols(d):
        return sm.OLS(d["target"], sm.add_constant(d[["bmi", "bp"]])).fit().params

    data = patients()
    assert_answers(ols, PATIENTS, data, clipped(data))


def rounded_down(x):
    return np.floor(x).astype(np.int64)


def test_a_statistic_of_a_graph():
    """Edges are records: a graph's statistic is private with respect to one of them."""
    nx = pytest.importorskip("networkx", reason="networkx is not installed (extra test-all)")
    neighbors = pytest.importorskip("sklearn.neighbors")
    wines = datasets.load_wine().data
    nodes = len(wines)
    near = neighbors.kneighbors_graph(wines / wines.std(axis=0), 2)
    edges = np.column_stack(near.nonzero()).astype(np.int64)
    assert edges.shape == (2 * nodes, 2)

    def statistics(pairs):
        graph = nx.Graph()
        graph.add_nodes_from(range(nodes))
        graph.add_edges_from((a, b) for a, b in pairs.tolist() if a != b)
        largest = max(map(len, nx.connected_components(graph)))
        return {"clustering": nx.transitivity(graph), "largest": largest / nodes}

    P = samplers.uniform(0, nodes, size=2).map(rounded_down, support=(0, nodes - 1))
    assert_answers(statistics, P, edges)


# --- other containers -------------------------------------------------------------------------


def in_polars(frame):
    sex = pl.Series(frame["sex"].astype(str).to_list(), dtype=pl.Enum(["F", "M"]))
    return pl.DataFrame({name: sex if name == "sex" else frame[name].to_list() for name in frame})


def test_a_lazy_query():
    """A lazy polars query is private if it is sorted and collected inside the function."""

    def query(d):
        return (
            d.lazy()
            .group_by("sex", "band")
            .agg(pl.col("bmi").mean(), pl.col("target").median().alias("middle"), pl.len())
            .sort("sex", "band")
            .collect()
        )

    data = patients()
    assert_answers(query, samplers.table(COLUMNS, frame="polars"), in_polars(data), in_polars(clipped(data)))


def test_a_polars_series():
    """Numbers drawn by numpy become a polars Series if that is what the data is."""
    data = pl.Series("bmi", patients()["bmi"].to_list())
    assert_answers(lambda s: float(s.median()), samplers.uniform(15, 40), data, data.clip(15, 40))


def test_an_arrow_table():
    """An arrow table goes in, and an arrow table comes out."""
    pc = pytest.importorskip("pyarrow.compute")

    def summary(t):
        names = ["age", "bmi", "bp"]
        return pa.table(
            {
                "column": names,
                "mean": [pc.mean(t[name]).as_py() for name in names],
                "above": [pc.sum(pc.greater(t[name], 50)).as_py() for name in names],
            }
        )

    data = patients()
    P = samplers.table(COLUMNS, frame="pyarrow")
    arrow = pa.Table.from_pandas(data, preserve_index=False)
    assert_answers(summary, P, arrow, pa.Table.from_pandas(clipped(data), preserve_index=False))


def test_a_list_of_dicts():
    """Records as they come out of JSON are clipped like the rows of a frame."""

    def mean_by_sex(people):
        found = {}
        for sex in ("F", "M"):
            chosen = [one["bmi"] for one in people if one["sex"] == sex]
            found[sex] = sum(chosen) / max(1, len(chosen))
        return found

    data = patients()
    P = samplers.table(COLUMNS, frame="records")
    assert_answers(mean_by_sex, P, data.to_dict("records"), clipped(data).to_dict("records"))


def test_a_dict_of_arrays():
    """Aligned arrays under names are a table as well."""
    cancer = datasets.load_breast_cancer()
    names = ["mean radius", "mean texture", "mean smoothness"]
    columns = [cancer.data[:, list(cancer.feature_names).index(name)] for name in names]
    data = dict(zip(["radius", "texture", "smoothness"], columns, strict=True))
    bounds = {"radius": (6, 25), "texture": (10, 35), "smoothness": (0.05, 0.15)}
    P = samplers.table({name: samplers.uniform(*ends) for name, ends in bounds.items()}, frame="dict")
    inside = {name: np.clip(data[name], *ends) for name, ends in bounds.items()}
    assert any((inside[name] != data[name]).any() for name in data)
    assert_answers(lambda d: np.corrcoef(list(d.values())), P, data, inside)


def test_centroids():
    """X and y of a classifier are one dataset, drawn from clouds."""
    neighbors = pytest.importorskip("sklearn.neighbors")
    X, y = datasets.load_wine(return_X_y=True)
    X = X[:, [0, 6]]  # alcohol and flavanoids
    low, high = np.array([11.5, 0.5]), np.array([14.5, 3.5])
    P = samplers.blobs([[13.5, 3], [12.5, 2], [13, 1]], 0.5, low=low, high=high)

    def centroids(X, y):
        return neighbors.NearestCentroid().fit(X, y).centroids_

    assert (np.clip(X, low, high) != X).any()
    assert_answers(centroids, P, (X, y), (np.clip(X, low, high), y), data=("X", "y"))


def test_a_linear_model():
    """Coefficients of a model on a frame X and a series y come back as the array that they are."""
    linear = pytest.importorskip("sklearn.linear_model")

    def coefficients(X, y):
        model = linear.Ridge(1.0).fit(X, y)
        return {"coef": model.coef_, "intercept": float(model.intercept_)}

    data, names = patients(), ["age", "bmi", "bp"]
    P = samplers.labelled(PATIENTS[names], samplers.uniform(25, 350))
    inside = clipped(data)
    given = (data[names], data["target"])
    assert_answers(coefficients, P, given, (inside[names], inside["target"]), data=("X", "y"))


def test_principal_components_from_public_data():
    """Half of the digits is public and is bootstrapped; the other half is private."""
    decomposition = pytest.importorskip("sklearn.decomposition")
    pixels = datasets.load_digits().data[:800, 18:30]
    public, hidden = pixels[::2], pixels[1::2]

    def shares(X):
        return decomposition.PCA(3, svd_solver="full").fit(X).explained_variance_ratio_

    P = samplers.bootstrap(public)
    assert_answers(shares, P, hidden, domain="as-is")


def test_a_sparse_matrix():
    """Rows of a sparse matrix are records, and stay sparse."""
    sparse = pytest.importorskip("scipy.sparse")
    pixels = datasets.load_digits().data[:300]
    P = samplers.uniform(0, 13, size=64).map(rounded_down).map(sparse.csr_array, support=(0, 12))
    data, inside = sparse.csr_array(pixels), sparse.csr_array(np.minimum(pixels, 12).astype(np.int64))
    assert data.max() > 12

    def darkness(x):
        assert sparse.issparse(x) and x.format == "csr"
        return x.sum(axis=0) / x.shape[0]

    assert_answers(darkness, P, data, inside)


def test_a_tensor():
    """A tensor goes in, and a tensor of the same dtype comes out."""
    torch = pytest.importorskip("torch", reason="torch is not installed (extra test-all)")
    wines = torch.from_numpy(datasets.load_wine().data[:, :3].astype(np.float32))
    low, high = np.array([11, 0.5, 1.5]), np.array([14, 5, 3])
    f = private(samplers.uniform(low, high))(lambda x: x.mean(dim=0))
    answer = f(wines)
    inside = wines.double().clamp(torch.from_numpy(low), torch.from_numpy(high))
    assert isinstance(answer, torch.Tensor) and answer.dtype == torch.float32 and answer.shape == (3,)
    assert torch.allclose(answer.double(), inside.mean(dim=0), atol=1e-3)


# --- answers whose form depends on the data ---------------------------------------------------


def free_texts(n, rng):
    return pd.DataFrame({"name": [f"name {i}" for i in rng.integers(0, 10**6, n)], "x": rng.random(n)})


def named():
    return pd.DataFrame({"name": [f"patient {i}" for i in range(60)], "x": np.linspace(0, 1, 60)})


NUMBERS = samplers.table(x=samplers.integers(0, 500), g=samplers.categorical(["a", "b", "c"]))
GAPS = samplers.table(x=samplers.with_missing(samplers.uniform(0, 1), 0.2), g=samplers.choice(["a", "b"]))
MANY = samplers.table(
    x=samplers.uniform(0, 1), g=samplers.choice([f"g{i}" for i in range(12)]), frame="polars"
)


def numbered():
    rng = np.random.default_rng(3)
    return pd.DataFrame({"x": rng.integers(0, 500, 60), "g": rng.choice(["a", "b", "c"], 60)})


def with_gaps():
    rng = np.random.default_rng(3)
    return pd.DataFrame({"x": np.where(rng.random(60) < 0.2, np.nan, 0.5), "g": ["a", "b"] * 30})


def many():
    return pl.DataFrame({"x": np.linspace(0, 1, 240), "g": [f"g{i % 12}" for i in range(240)]})


@pytest.mark.parametrize(
    ("function", "fixed", "sampler", "data"),
    [
        (
            lambda d: d["x"].value_counts(),
            lambda d: d["x"].value_counts().reindex(range(501), fill_value=0),
            NUMBERS,
            numbered,
        ),
        (
            lambda d: d["g"].value_counts(),  # in the order of the counts
            lambda d: d["g"].value_counts().reindex(["a", "b", "c"], fill_value=0),
            NUMBERS,
            numbered,
        ),
        (
            lambda d: d.groupby("name")["x"].mean(),
            lambda d: d.groupby(d["name"].str[-1])["x"].sum().reindex(list("0123456789"), fill_value=0.0),
            samplers.from_function(free_texts),
            named,
        ),
        (
            lambda d: d["x"].dropna().to_numpy(),
            lambda d: d["x"].fillna(0.5).to_numpy(),
            GAPS,
            with_gaps,
        ),
        (
            lambda d: d.group_by("g").agg(pl.col("x").sum()),
            lambda d: d.group_by("g").agg(pl.col("x").sum()).sort("g"),
            MANY,
            many,
        ),
        (
            lambda d: {name: float(part["x"].sum()) for name, part in d.groupby("name")},
            lambda d: (
                {name: float(d["x"][d["name"] == name].sum()) for name in ("patient 1", "name 1")}
                | {"all": float(d["x"].sum())}
            ),
            samplers.from_function(free_texts),
            named,
        ),
    ],
    ids=[
        "value counts",
        "order of counts",
        "groupby free text",
        "dropna",
        "polars unsorted",
        "dict of strings",
    ],
)
def test_a_form_that_depends_on_the_data(function, fixed, sampler, data):
    """Labels and shapes are published as they are: the error says that they leak, and shows the fix."""
    with pytest.raises(InfiniteSensitivityError) as caught:
        private(sampler)(function)(data())
    message = str(caught.value)
    assert "give it away" in message and "different structure" in message
    assert "reindex" in message and "sort" in message
    assert_same_form(private(sampler, epsilon=1)(fixed)(data()), fixed(data()))
