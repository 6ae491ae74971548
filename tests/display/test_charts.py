"""Charts of any content are well-formed, complete and inside their frame, also with matplotlib."""

import dataclasses
import functools
import math
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy import integrate

from privatize import Budget, audit, plan, samplers, seal
from privatize.display.charts import COLORS, Chart, Layer, onto, thin
from privatize.errors import SettingsError
from tests.cases import for_each
from tests.display.drawn import GAPS, check, numbers, sensitivity
from tests.function.released import private, release

NASTY = "<b>&'\"</b><script>alert(1)</script> $x_1$ ${\\frac$"


def ticks(tree, anchor):
    return [float(t.text) for t in tree.iter("text") if t.get("text-anchor") in anchor and _number(t.text)]


def _number(text):
    try:
        float(text)
    except (TypeError, ValueError):
        return False
    return True


# --- charts of extreme cases ---------------------------------------------------------------------------


@for_each("gamma", [1e-6, 0.001, 0.05, 0.5, 0.89, 0.95])
@for_each("bound", ["tolerance", "dkw", "marginal"])
def test_plans(gamma, bound):
    """A user's picture of a plan would be broken for a small or a large gamma."""
    made = plan(gamma, bound=bound)
    tree = check(made._chart())
    ET.fromstring(made._repr_html_())
    legend = "".join(tree.find("figcaption").itertext())
    assert f"this plan: m={made.m:,}" in legend
    for name in ("dkw", "tolerance", "marginal"):
        assert f"{name}, the least m" in legend
    for layer in made._chart().layers:
        if layer.kind == "line" and bound in layer.label and min(layer.x) <= gamma <= max(layer.x):
            here = np.interp(math.log(gamma), np.log(layer.x), np.log(layer.y))
            assert made.m >= math.exp(here) * 0.8  # no plan is below the least m


ANSWERS = {
    "a float": (0.5, 0.1),
    "a float of numpy": (np.float64(0.5), 0.1),
    "an int": (17, 0.3),
    "an int, wide": (17, 1e6),
    "zero": (0.0, 1e-12),
    "tiny": (1e-300, 1e-300),
    "large": (1e299, 1e290),
    "the largest": (1.7e308, 1e305),
    "far from its noise": (1e18, 1e-6),
    "one in a list": ([2.0], 1.0),
    "one in an array": (np.array([[2.0]]), 1.0),
    "two": ((1.0, -5.0), 2.0),
    "10,000": (np.arange(10_000.0), 3.0),
    "10,000 integers": (np.arange(10_000), 0.2),
    "labels": ({NASTY: 1.0, "b" * 500: 2.0, "": 3.0, "\n": 4.0, "_under": 5.0}, 1.0),
    "scaled": ([1.0, 1e9], np.array([0.1, 1e7])),
    "all equal": (np.zeros(5), 1e-9),
    "infinite": (np.array([np.inf, 1.0], dtype=np.float32), 1.0),
    "infinite alone": (np.float16(-np.inf), 1.0),
}


@for_each("noise", ["laplace", "normal"])
@for_each("case", ANSWERS)
def test_answers(case, noise):
    """A user's picture of an answer would be broken for an unusual one."""
    value, scale = ANSWERS[case]
    made = release(value, noise, scale)
    chart = made._chart()
    tree = check(chart)
    assert "95%" in "".join(tree.find("figcaption").itertext())
    assert "script" not in {e.tag for e in ET.fromstring(made._repr_html_()).iter()}


def test_the_interval_in_the_picture_is_the_interval():
    """A user would see other ends in the picture than interval() gives."""
    made = release(3.0, "normal", 2.0)
    low, high = made.interval()
    band, line, upright = made._chart().layers
    assert f"{low:.6g} to {high:.6g}" in band.label
    assert low <= min(band.x) and max(band.x) <= high and upright.x == [3.0]
    assert integrate.trapezoid(line.y, line.x) == pytest.approx(1, abs=0.01)
    assert integrate.trapezoid(band.top, band.x) == pytest.approx(0.95, abs=0.02)
    made = release([3.0, 5], "laplace", 2.0)
    low, high = made.interval()
    bars, points = made._chart().layers
    assert list(bars.y) == pytest.approx(low) and list(bars.top) == pytest.approx(high)
    assert points.y == [3.0, 5.0] and made._chart().names == ("0", "1")


@pytest.fixture(scope="module")
def audited():
    return audit(private(np.mean), 20, pairs=200, releases=200, seed=2, under=[samplers.uniform(0, 2)])


def audits(found):
    losses, many = found.coverage.losses, np.full(200, math.inf)
    worst = dataclasses.replace(found.coverage, losses=many, beyond=200, holds=False)
    zero = dataclasses.replace(found.coverage, losses=np.zeros(200), beyond=0)
    single = dataclasses.replace(found.coverage, losses=losses[-1:], pairs=1)
    under = (dataclasses.replace(found.under[0], sampler=NASTY, losses=many),)
    return [
        found,
        dataclasses.replace(found, coverage=worst),
        dataclasses.replace(found, coverage=zero, told=(), under=()),
        dataclasses.replace(found, coverage=single),
        dataclasses.replace(found, gamma=1e-9, epsilon=1e-6),
        dataclasses.replace(found, gamma=0.99, epsilon=1e5),
        dataclasses.replace(found, function=NASTY, under=under),
    ]


def test_audits(audited):
    """A user's picture of an audit would be broken for a bad one."""
    for found in audits(audited):
        chart = found.card().chart
        legend = "".join(check(chart).find("figcaption").itertext())
        assert "claimed" in legend and f"{found.coverage.pairs:,} fresh pairs" in legend
        assert legend.count("under ") == len(found.under)


@functools.cache
def budgets():
    """Return budgets in all states."""
    empty = Budget("empty", epsilon=1, gamma=0.5, ledger="memory")
    nothing = Budget("nothing", epsilon=0, gamma=0, ledger="memory")
    used = Budget(NASTY, epsilon=2.5, gamma=0.9, delta=1e-5, ledger="memory")
    parted = Budget("parted", epsilon=2, gamma=0.9, ledger="memory")
    sites = parted.partition("site", ["Berlin", "Paris"])
    found = [empty, nothing, used, parted]
    data = np.linspace(0, 1, 20)
    for _ in range(3):
        private(np.mean, epsilon=0.5, budget=used)(data)
    private(np.mean, epsilon=0.5, budget=used, mechanism="gaussian", delta=1e-6)(data)
    for site in ("Berlin", "Paris", "Berlin"):
        private(np.mean, epsilon=0.5, budget=sites[site])(seal(data, name=site))
    return found


def test_budgets():
    """A user's picture of a budget would be broken for an empty, a zero or a used one."""
    for budget in budgets():
        tree = check(budget.chart())
        ET.fromstring(budget._repr_html_())
        legend = "".join(tree.find("figcaption").itertext())
        assert ("epsilon" in legend) == bool(budget.cap.epsilon) and "all of it" in legend
        for layer in budget.chart().layers[:-1]:
            assert layer.x[0] == 0 and layer.y[0] == 0
            cap = getattr(budget.cap, layer.label)
            assert layer.y[-1] == pytest.approx(float(getattr(budget.spent, layer.label) / float(cap)))
            assert list(layer.y) == sorted(layer.y)


def test_a_tight_budget():
    """A user of the tight composition would see it used up as if epsilons added up."""
    pytest.importorskip("dp_accounting", reason="dp-accounting is not installed (extra accounting)")
    budget = Budget("tight", epsilon=3, gamma=0.9, delta=1e-5, composition="tight", ledger="memory")
    mean = private(np.mean, epsilon=0.05, budget=budget, gamma=0.05, mechanism="gaussian", delta=1e-8)
    for _ in range(12):
        mean(np.linspace(0, 1, 20))
    chart = budget.chart()
    check(chart)
    assert chart.layers[0].y[-1] == pytest.approx(budget.spent.epsilon / 3)


# --- SVG -----------------------------------------------------------------------------------------------


@for_each("log", ["", "x", "y", "xy"])
@for_each(
    "ends",
    [(0.0, 1.0), (1e-300, 1e300), (-5.0, 5.0), (1e-9, 1e9), (3.0, 3.0), (0.97, 1.02), (1e-250, 3e-250)],
    ids=repr,
)
def test_ticks_are_round_few_and_inside(ends, log):
    """A user could not read the axes: no number on them, too many, or the same one twice."""
    if log and ends[0] < 0:
        return
    low, high = ends if not log else (max(ends[0], 1e-3), max(ends[1], 2e-3))
    tree = check(Chart("t", "x", "y", (Layer("line", [low, high], [low, high]),), log=log))
    for anchors in (("end",), ("middle", "end")):
        shown = ticks(tree, anchors)
        assert len(shown) >= 2 and len(shown) <= (8 if anchors == ("end",) else 20)
    up = [
        float(t.text) for t in tree.iter("text") if t.get("text-anchor") == "end" and float(t.get("x")) < 60
    ]
    assert len(set(up)) == len(up) >= 2 and up == sorted(up)
    if log == "":
        steps = np.diff(up)
        assert np.allclose(steps, steps[0], rtol=0.02)
        lead = f"{steps[0]:.1e}"[0]
        assert lead in "125" or ends == (0.97, 1.02)


def test_every_kind_of_layer_is_drawn():
    """A user would miss a part of a chart."""
    x, y = [0.0, 1.0, 2.0], [1.0, 3.0, 2.0]
    kinds = {
        "line": ("polyline", 1),
        "step": ("polyline", 1),
        "band": ("polygon", 1),
        "point": ("circle", 3),
        "upright": ("path", 3),
        "level": ("path", 3),
        "interval": ("path", 3),
    }
    for kind, (tag, count) in kinds.items():
        layer = Layer(kind, x, y, [4.0] * 3, label=kind, color="green", dashed=True)
        tree = check(Chart("t", "x", "y", (layer,)))
        own = [e for e in tree.iter(tag) if COLORS["green"] in (e.get("stroke"), e.get("fill"))]
        assert len(own) == count
        dashes = [e for e in own if e.get("stroke-dasharray")]
        assert len(dashes) == (count if kind in ("line", "step", "upright", "level") else 0)
    (line,) = check(Chart("t", "x", "y", (Layer("step", x, y),))).iter("polyline")
    found = numbers(line.get("points"))
    assert len(found) == 2 * 5  # it goes across, then up


def test_an_empty_chart_is_a_frame():
    """A user with nothing to show yet would see an error."""
    check(Chart("t", "x", "y", ()))
    check(Chart("t", "x", "y", (), log="xy"))
    check(Chart("t", "x", "y", (Layer("point", [math.inf], [math.inf], label="far"),), log="y"))


def test_names_are_escaped():
    """A user's names with markup would break the page, or run in it."""
    nasty = NASTY
    layer = Layer("line", [0.0, 1.0], [0.0, 1.0], label=nasty)
    tree = check(Chart(nasty, nasty, nasty, (layer,)))
    assert {e.tag for e in tree.iter()}.isdisjoint({"script", "b"})
    assert [t.text for t in tree.iter("text")].count(nasty) == 2
    tree = check(Chart(nasty, "", "", (layer,), names=(nasty, "<i>")))
    assert "<i>" in [t.text for t in tree.iter("text")]


def test_long_names_are_cut_and_thinned():
    """A user's many labels would be written over each other."""
    names = tuple(f"a rather long label {i}" for i in range(100))
    layer = Layer("point", list(range(100)), [0.0] * 100)
    shown = [t for t in check(Chart("t", "", "", (layer,), names=names)).iter("text") if t.text in ("", None)
             or t.text.startswith("a rather")]  # fmt: skip
    labels = [t for t in shown if t.text]
    assert 2 <= len(labels) <= 6 and all(len(t.text) <= 12 for t in labels)
    at = [float(t.get("x")) for t in labels]
    assert (np.diff(at) > 60).all()


def test_thin_keeps_both_ends():
    """A user's curve would end before its largest value."""
    for count in (1, 2, 5, 299, 300, 301, 10_000):
        found = thin(count)
        assert found[0] == 0 and found[-1] == count - 1 and len(found) <= 300
        assert found == sorted(set(found))
    assert thin(0) == []


# --- matplotlib ----------------------------------------------------------------------------------------


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra plot)")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def everything(audited):
    """Return everything that has a plot."""
    given = [(g if isinstance(g, tuple) else (g, None)) for g in GAPS.values()]
    # Matplotlib's axes cannot show the largest floats.
    answers = [answer for name, answer in ANSWERS.items() if name != "the largest"]
    return [
        *(plan(0.05, bound=bound) for bound in ("tolerance", "dkw", "marginal")),
        *(sensitivity(gaps, value=value) for gaps, value in given),
        *(release(value, noise, s) for value, s in answers for noise in ("laplace", "normal")),
        *audits(audited),
        *budgets(),
    ]


def test_everything_can_be_plotted(plt, audited):
    """A user's plot() would fail for an unusual object, or draw on axes that are not theirs."""
    figure, ax = plt.subplots()
    for each in everything(audited):
        ax.clear()
        before = plt.get_fignums()
        assert each.plot(ax=ax) is ax
        assert plt.get_fignums() == before  # no figure was opened
        figure.canvas.draw()
        assert ax.get_title() or ax.get_xlabel()


def test_new_axes_are_returned(plt):
    """A user could not continue to draw on the axes."""
    ax = plan(0.05).plot()
    assert len(plt.get_fignums()) == 1 and ax.figure.number == plt.get_fignums()[0]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    assert plan(0.05).plot().figure is not ax.figure


def test_the_same_layers_are_drawn(plt):
    """A user's plot would lack what the page shows."""
    x, y = [0.0, 1.0, 2.0], [1.0, 3.0, 2.0]
    kinds = ("line", "step", "band", "point", "upright", "level", "interval")
    layers = tuple(Layer(kind, x, y, [4.0] * 3, label=f"a {kind}") for kind in kinds)
    ax = onto(Chart("t", "x", "y", layers, names=("a", "b", "c"), limits=(0.0, 5.0)))
    assert [t.get_text() for t in ax.get_legend().get_texts()] == [f"a {kind}" for kind in kinds]
    assert len(ax.lines) == 3 + 3 + 3 and len(ax.collections) == 2
    assert [t.get_text() for t in ax.get_xticklabels()] == ["a", "b", "c"] and ax.get_ylim() == (0.0, 5.0)
    assert onto(Chart("t", "x", "y", (Layer("line", x, y),))).get_legend() is None


def test_dollars_in_names_are_dollars(plt):
    """A user's function or column with a dollar in its name would break the plot."""
    layer = Layer("line", [0.0, 1.0], [0.0, 1.0], label=NASTY)
    ax = onto(Chart(NASTY, NASTY, NASTY, (layer,), names=(NASTY, "$")))
    ax.figure.canvas.draw()
    assert ax.get_title() == NASTY and ax.get_legend().get_texts()[0].get_text() == NASTY


def test_without_matplotlib_the_error_has_a_remedy(monkeypatch, audited):
    """A user without matplotlib would see an obscure ImportError."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    things = [
        plan(0.05),
        sensitivity([0.1, 0.2]),
        release(1.0),
        audited,
        Budget("b", epsilon=1, gamma=1, ledger="memory"),
    ]
    for each in things:
        with pytest.raises(SettingsError, match=r"pip install 'privatize-dp\[plot\]'"):
            each.plot()
        assert each._repr_html_()  # it needs no matplotlib


def test_drawing_needs_no_matplotlib():
    """A user's import, or page, would load matplotlib, which takes a second."""
    import subprocess

    code = (
        "import sys, numpy as np, privatize\n"
        "P = privatize.samplers.uniform(0, 1)\n"
        "made = privatize.privatize(epsilon=1, gamma=.1, sampler=P, store=None)(np.mean)\n"
        "privatize.report(made, 20); made.release(np.ones(20))._repr_html_()\n"
        "sys.exit('matplotlib' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
