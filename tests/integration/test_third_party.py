"""Other people's functions, as docs/third_party.md and examples/third_party.py wrap them.

Each is calibrated for real and released with a huge epsilon: the answer must be the raw one on the clipped
data. Noise is never seeded: each test fails by chance with probability 1e-6.
"""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

from privatize import Bernstein, BernsteinPolynomial, privatize, samplers
from privatize.errors import DataError, InfiniteSensitivityError, OutputError
from privatize.outputs.describe import describe

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
pytest.importorskip("sklearn", reason="scikit-learn is not installed (extra test-all)")

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party.py"
FALSE_ALARM = 1e-6
HUGE = 1e5


def _loaded():
    spec = importlib.util.spec_from_file_location("third_party", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


example = _loaded()


def private(sampler, **more):
    """Decorate with few pairs, a fixed seed and no store."""
    settings = {"epsilon": HUGE, "gamma": 0.1, "samples": "least", "seed": 7, "store": None}
    return privatize(**(settings | {"sampler": sampler, "workers": "inline"} | more))


def clipped(frame):
    """Return the patients, clipped to the support of the narrow P."""
    made = frame.assign(bmi=frame["bmi"].clip(18, 40), bp=frame["bp"].clip(60, 130))
    assert not made.equals(frame)  # clipping makes a difference
    return made


def narrow():
    """Return a P whose support excludes some of the patients."""
    return samplers.table(
        age=samplers.uniform(18, 90),
        bmi=samplers.normal(27, 5).truncated(18, 40),
        bp=samplers.normal(95, 15).truncated(60, 130),
        target=samplers.dependent(example.progress, support=(0, 400)),
    )


def largest(scale):
    """Return the largest scale of an answer's numbers."""
    return float(describe(scale).flatten(scale).max())


def assert_close(got, wanted, scale):
    """Fail if numbers differ by more than Laplace noise of a scale, at the false-alarm rate."""
    got, wanted = np.asarray(got, dtype=float).ravel(), np.asarray(wanted, dtype=float).ravel()
    assert got.shape == wanted.shape
    allowed = largest(scale) * math.log(len(wanted) / FALSE_ALARM) + 1e-9 * np.abs(wanted).max()
    assert np.abs(got - wanted).max() <= allowed
    assert allowed < 0.1 * np.abs(wanted).max()  # the comparison means something


def asked(function, sampler, data, inside, **more):
    """Return the release with a huge epsilon and the raw answer; the estimate serves every epsilon."""
    f = private(sampler, **more)(function)
    release = f.release(data)
    usual = f.replace(epsilon=1).release(data)
    assert usual.sensitivity == release.sensitivity and type(usual.value) is type(release.value)
    return release, function(inside)


# --- numpy, scipy, pandas ---------------------------------------------------------------------


def test_a_histogram():
    """The counts of fixed bins come back as integers, and one record moves them by two at most."""
    bmi = example.diabetes()["bmi"]
    release, raw = asked(example.histogram, narrow()["bmi"], bmi, bmi.clip(18, 40))
    assert release.value.dtype == raw.dtype and raw.sum() == len(bmi)
    assert release.sensitivity == 2
    assert_close(release.value, raw, release.scale)


def test_edges_that_are_returned_get_noise():
    """Edges that are returned get noise like all other numbers, as docs/third_party.md says."""
    bmi = example.diabetes()["bmi"]
    both = private(narrow()["bmi"], epsilon=0.1)(lambda x: np.histogram(x, bins=example.EDGES))
    counts, edges = both(bmi)
    assert len(counts) == len(edges) - 1
    assert list(edges) != example.EDGES  # all six unmoved: probability 0.025^6


def test_a_line():
    """Slope and intercept come back under their names."""
    data = example.diabetes()
    release, raw = asked(example.line, narrow(), data, clipped(data))
    assert list(release.value) == ["slope", "intercept"]
    assert all(type(number) is float for number in release.value.values())
    assert_close(list(release.value.values()), list(raw.values()), release.scale)


@pytest.mark.parametrize("name", ["linregress", "pearsonr", "ttest_rel"])
def test_a_result_of_scipy_is_refused(name):
    """A result object has more in it than its fields: the error says to take the numbers."""
    function = getattr(example.scipy.stats, name)
    data = example.diabetes()
    with pytest.raises(OutputError, match="the numbers that you need"):
        private(narrow())(lambda d: function(d["bmi"], d["target"]))(data)


def test_centering_lowers_the_noise():
    """The intercept at a public center moves less than the one at zero, so both numbers need less noise."""
    data = example.diabetes()

    def uncentered(d):
        found = example.scipy.stats.linregress(d["bmi"] / 5, d["target"])
        return {"slope": float(found.slope), "intercept": float(found.intercept)}

    n, like = len(data), data.head(0)
    there = private(narrow())(example.line).estimate(n, like=like)
    assert 2 * there.value < private(narrow())(uncentered).estimate(n, like=like).value


def test_correlations():
    """The matrix comes back as the frame that pandas makes, with its labels."""
    data = example.diabetes()
    release, raw = asked(example.correlations, narrow(), data, clipped(data))
    assert release.value.index.equals(raw.index) and release.value.columns.equals(raw.columns)
    assert_close(release.value, raw, release.scale)


def test_each_correlation_once():
    """Releasing each number once needs half the noise, and makes a matrix that is one of correlations."""
    data = example.diabetes()
    release, raw = asked(example.correlations_once, narrow(), data, clipped(data))
    assert_close(release.value, raw, release.scale)
    full = private(narrow())(example.correlations).estimate(len(data), like=data.head(0))
    assert full.value == pytest.approx(2 * release.sensitivity)
    assert_close(example.as_correlations(release.value), clipped(data).corr(), 10 * release.scale)


@pytest.mark.parametrize("noise", [0.0, 0.5, 5.0])
def test_noisy_correlations_become_a_correlation_matrix(noise):
    """However large the noise: symmetric, positive semi-definite, ones on the diagonal, inside [-1, 1]."""
    raw = example.correlations_once(example.diabetes())
    made = example.as_correlations(raw + noise * np.random.default_rng(3).laplace(size=len(raw)))
    assert np.allclose(made, made.T) and np.allclose(np.diag(made), 1) and np.abs(made).max() <= 1
    assert np.linalg.eigvalsh(made).min() > -1e-9
    if not noise:
        assert np.allclose(made, example.diabetes().corr())


def test_a_constant_column_has_no_correlation():
    """A correlation that is NaN on sampled data is refused, and the error says how to avoid NaN."""
    P = samplers.table(smoker=samplers.choice([0.0, 1.0], p=[0.99, 0.01]), bmi=samplers.uniform(15, 50))
    data = pd.DataFrame({"smoker": [0.0, 1.0] * 10, "bmi": np.linspace(20, 40, 20)})
    with pytest.raises(InfiniteSensitivityError, match=r"not finite.*fillna"):
        private(P)(lambda d: d.corr())(data)
    answer = private(P, epsilon=1)(lambda d: d.corr().fillna(0.0))(data)
    assert list(answer.columns) == ["smoker", "bmi"] and np.isfinite(answer.to_numpy()).all()


# --- statsmodels ------------------------------------------------------------------------------


@pytest.fixture
def _statsmodels():
    pytest.importorskip("statsmodels", reason="statsmodels is not installed (extra test-all)")


@pytest.mark.usefixtures("_statsmodels")
def test_least_squares():
    """The parameters come back as the Series that statsmodels makes, under their names."""
    data = example.diabetes()
    release, raw = asked(example.least_squares, narrow(), data, clipped(data))
    assert list(release.value.index) == ["const", "bmi", "bp"]
    assert_close(release.value, raw, release.scale)


@pytest.mark.usefixtures("_statsmodels")
def test_a_result_of_statsmodels_is_refused():
    """A fitted model holds the data itself, so it is never released."""
    sm = example.sm
    data = example.diabetes()
    with pytest.raises(OutputError, match="Return"):
        private(narrow())(lambda d: sm.OLS(d["target"], d[["bmi"]]).fit())(data)


@pytest.mark.usefixtures("_statsmodels")
def test_a_level_that_is_not_always_there():
    """A dummy for a rare group comes and goes with the data: refused, and a categorical column is the fix."""
    formula = pytest.importorskip("statsmodels.formula.api").ols
    groups, target = ["a", "b", "c"], samplers.uniform(0, 1)
    data = pd.DataFrame({"group": ["a", "b", "c", "a", "b"] * 8, "target": np.linspace(0, 1, 40)})

    def means(d):
        return formula("target ~ C(group)", d).fit().params

    rare = samplers.table(group=samplers.choice(groups, p=[0.49, 0.49, 0.02]), target=target)
    with pytest.raises(InfiniteSensitivityError, match="different structure"):
        private(rare)(means)(data)
    fixed = samplers.table(group=samplers.categorical(groups), target=target)
    answer = private(fixed, epsilon=1)(means)(data)
    assert list(answer.index) == ["Intercept", "C(group)[T.b]", "C(group)[T.c]"]


@pytest.mark.usefixtures("_statsmodels")
def test_an_unstable_solver_is_seen_in_the_estimate():
    """With nearly collinear columns the estimate is uselessly large, rather than the noise too small."""
    sm, n, like = example.sm, 100, example.diabetes().head(0)

    def twins(d):
        x = example.scaled(d, ["bmi", "bp"])
        return (
            sm.OLS(d["target"], sm.add_constant(x.assign(twin=x["bmi"] + 1e-7 * x["bp"] ** 2))).fit().params
        )

    stable = private(narrow())(example.least_squares).estimate(n, like=like)
    unstable = private(narrow())(twins).estimate(n, like=like)
    assert unstable.value > 1e4 * stable.value


# --- torch ------------------------------------------------------------------------------------


@pytest.fixture
def _torch():
    pytest.importorskip("torch", reason="torch is not installed (extra test-all)")


@pytest.mark.usefixtures("_torch")
def test_a_network():
    """The private weights fit a fresh network. They are the raw ones, trained from the same public seed."""
    torch, data = example.torch, example.diabetes()
    f = private(narrow(), gamma=0.2)(example.trained)
    state = torch.random.get_rng_state()
    release = f.release(data)
    assert torch.equal(torch.random.get_rng_state(), state)
    with torch.random.fork_rng():
        torch.manual_seed(f.estimate(len(data), like=data.head(0)).coin_seed)
        raw = example.trained(clipped(data))
        fresh = example.network()
    assert list(release.value) == list(raw) and type(release.value) is type(raw)
    for name, weights in release.value.items():
        assert weights.dtype == torch.float32 and weights.shape == raw[name].shape
    got, wanted = (np.concatenate([w.numpy().ravel() for w in s.values()]) for s in (release.value, raw))
    rounding = 1e-4  # single precision, 20 steps
    assert (
        np.abs(got - wanted).max() <= largest(release.scale) * math.log(len(wanted) / FALSE_ALARM) + rounding
    )
    fresh.load_state_dict(release.value)
    x = torch.tensor(example.scaled(data, ["age", "bmi", "bp"]).to_numpy(), dtype=torch.float32)
    with torch.no_grad():
        guessed = fresh(x)[:, 0].numpy()
    assert np.corrcoef(guessed, data["target"])[0, 1] > 0.5


@pytest.mark.usefixtures("_torch")
@pytest.mark.parametrize("part", [lambda model: model, lambda model: [model]])
def test_a_network_itself_is_refused(part):
    """A model is code and state: only its numbers can have noise, so the error asks for these."""
    network = example.network
    with pytest.raises(OutputError, match="no noise can be added"):
        private(samplers.uniform(0, 1))(lambda x: part(network()))(np.linspace(0, 1, 20))


# --- networkx ---------------------------------------------------------------------------------


@pytest.fixture
def _networkx():
    pytest.importorskip("networkx", reason="networkx is not installed (extra test-all)")


@pytest.mark.usefixtures("_networkx")
def test_a_centrality():
    """All nodes keep their key, and a patient's five wards need more noise than one transfer."""
    stays = example.hospital(100)
    transfers = np.column_stack([stays[:, :-1].ravel(), stays[:, 1:].ravel()])
    found = []
    for function, data in ((example.importance, transfers), (example.importance_by_patient, stays)):
        P = samplers.integers(0, example.WARDS - 1, size=data.shape[1])
        release, raw = asked(function, P, data, data)
        assert list(release.value) == list(raw) == list(range(example.WARDS))
        assert_close(list(release.value.values()), list(raw.values()), release.scale)
        found.append(release.sensitivity)
    assert found[1] > 1.5 * found[0]


@pytest.mark.usefixtures("_networkx")
def test_nodes_that_come_and_go():
    """A node without edges is missing from a graph that is made of edges alone: refused, with its key."""
    nx = example.nx

    def degrees(edges):
        return nx.degree_centrality(nx.Graph(edges.tolist()))

    edges = np.random.default_rng(2).integers(0, 20, size=(40, 2))
    with pytest.raises(InfiniteSensitivityError, match=r"different structure.*give it away"):
        private(samplers.integers(0, 19, size=2))(degrees)(edges)


@pytest.mark.usefixtures("_networkx")
def test_a_graph_is_no_dataset():
    """Nobody can tell what a record of a graph is: a graph is refused, and its edges are accepted."""
    nx = example.nx
    club = nx.karate_club_graph()
    P = samplers.integers(0, 33, size=2)
    with pytest.raises(DataError, match="Graph"):
        private(P)(nx.density)(club)
    answer = private(P, epsilon=1)(lambda edges: nx.density(nx.Graph(edges.tolist())))(np.array(club.edges))
    assert isinstance(answer, float)


@pytest.mark.usefixtures("_networkx")
def test_a_solver_that_does_not_converge():
    """The error for a power iteration that gives up on sampled graphs names that failure."""
    nx = example.nx

    def eigenvector(edges):
        graph = nx.Graph([(node, node) for node in range(20)])
        graph.add_edges_from(edges.tolist())
        return nx.eigenvector_centrality(graph, max_iter=2)

    edges = np.random.default_rng(2).integers(0, 20, size=(40, 2))
    with pytest.raises(InfiniteSensitivityError, match="PowerIterationFailedConvergence"):
        private(samplers.integers(0, 19, size=2))(eigenvector)(edges)


# --- boosted trees ----------------------------------------------------------------------------


def test_predictions_on_public_points():
    """The polynomial goes through the trees' predictions on the lattice, and holds nothing else."""
    data, mechanism = example.diabetes(), Bernstein(lattice=5, order=3)
    release = private(narrow(), mechanism=mechanism, gamma=0.2)(example.boosted).release(data)
    curve = release.value
    wanted = mechanism.wrap(example.boosted(clipped(data), mechanism.points()))
    assert type(curve) is BernsteinPolynomial
    # a coefficient is a combination of noisy values with weights that add up to less than 2^order in size
    assert_close(curve.coefficients, wanted.coefficients, 2**mechanism.order * release.scale)
    anywhere = np.linspace(0, 1, 17)
    assert_close(curve(anywhere), wanted(anywhere), 2**mechanism.order * release.scale)


def test_a_boosted_model_is_refused():
    """Trees have splits at people's own values, so the model itself is never released."""
    boosting = example.ensemble.GradientBoostingRegressor(n_estimators=2)
    with pytest.raises(OutputError, match="GradientBoostingRegressor"):
        private(narrow())(lambda d: boosting.fit(d[["bmi"]].to_numpy(), d["target"]))(example.diabetes())


# --- the script -------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [(), ("nx", "sm", "torch"), ("pd", "datasets")])
def test_the_script_does_without_optional_libraries(missing, monkeypatch, capsys):
    """What is not installed is left out with a message, and the rest of the table is printed."""
    monkeypatch.setattr(example, "from_patients", _one_row)
    monkeypatch.setattr(example, "from_torch", _one_row)
    monkeypatch.setattr(example, "from_networkx", _one_row)
    for name in ("pd", "datasets", "torch", "nx"):
        monkeypatch.setattr(example, name, None if name in missing else example.np)
    example.main(quick=True)
    shown = capsys.readouterr().out
    left_out = {(): 0, ("nx", "sm", "torch"): 2, ("pd", "datasets"): 2}[missing]
    assert shown.count("not installed") == left_out and shown.count("a row") == 3 - left_out


def _one_row(private):
    release = private(samplers.uniform(0, 1))(lambda x: float(x.mean())).release(np.linspace(0, 1, 20))
    yield "a row", 0.5, release.value, release
