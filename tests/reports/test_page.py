"""Notebook views and pages are complete, well-formed and escaped, and have no private data."""

import dataclasses
import html
import html.parser
import importlib.metadata
import math
import platform
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import privatize as package
from privatize import (
    Bernstein,
    Blocks,
    Budget,
    Exponential,
    Gaussian,
    Laplace,
    PrivateFunction,
    Report,
    audit,
    learn,
    plan,
    privatize,
    report,
    samplers,
    seal,
    sums,
)
from privatize.errors import FragileEstimateWarning, NotRememberedWarning, PrivatizeError, SettingsError
from privatize.function import pipeline
from privatize.function.asking import questions
from tests.cases import for_each

UNIT = samplers.uniform(0, 1)
NASTY = "<b>&'\"</b><script>alert(1)</script>"
SENTINEL = 918273.25


@pytest.fixture(scope="module")
def found():
    mean = privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, store=None)(np.mean)
    return audit(mean, 20, pairs=200, releases=200, seed=2, under=[samplers.uniform(0, 2)])


class Text(html.parser.HTMLParser):
    """Collects what a browser would show, and which tags there are; refuses what is not closed."""

    def __init__(self, source):
        super().__init__()
        self.text, self.tags, self.open = "", [], []
        self.feed(source)
        self.close()
        assert not self.open

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "link", "br", "hr", "img", "input"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def private(function, **changes):
    chosen = {"epsilon": 1, "gamma": 0.1, "sampler": UNIT, "seed": 1, "store": None} | changes
    return privatize(**chosen)(function)


def well_formed(page):
    """Assert that a page is well-formed and needs nothing else; return what it shows."""
    assert page.startswith("<!doctype html>\n") and page.count("<html") == 1
    ET.fromstring(page.removeprefix("<!doctype html>"))
    isolated(page)
    return Text(page).text


def isolated(source):
    """Assert that HTML loads nothing from elsewhere and runs no code."""
    assert not re.search(
        r"https?:|//[a-z]|url\(|@import|<script|<img|<object|<embed|<base|<form", source, re.I
    )
    assert not re.search(r"\son[a-z]+=|javascript:", html_without_text(source), re.I)
    for link in re.findall(r"<link[^>]*>", source):
        assert link == "<link rel='icon' href='data:,'/>"  # without it a browser asks for favicon.ico
    assert not re.search(r"\b(src|href)=", source.replace("href='data:,'", ""))


def html_without_text(source):
    return "".join(re.findall(r"<[^>]*>", source))


def variants(found):
    """Return audits with extreme numbers in them."""
    losses = found.coverage.losses
    worst = dataclasses.replace(found.coverage, losses=np.full(200, math.inf), beyond=200, holds=False)
    zero = dataclasses.replace(found.coverage, losses=np.zeros(200), beyond=0)
    single = dataclasses.replace(found.coverage, losses=losses[-1:], pairs=1)
    return [
        found,
        dataclasses.replace(found, coverage=worst),
        dataclasses.replace(found, coverage=zero, told=(), under=()),
        dataclasses.replace(found, coverage=single),
        dataclasses.replace(found, gamma=1e-9, epsilon=1e-6),
        dataclasses.replace(found, gamma=0.99, epsilon=1e4),
    ]


# --- an audit ------------------------------------------------------------------------------------------


def test_text_has_every_number(found):
    """A user would have to look elsewhere for what was claimed or measured."""
    shown = str(found)
    assert shown.splitlines()[0] == "audit of mean, n=20: nothing that was measured contradicts the promise"
    for fact in (
        "epsilon=1 on all but gamma=0.1",
        f"{found.sensitivity:.4g}",
        f"{found.coverage.beyond} of 200 fresh pairs",
        f"[{found.coverage.low:.4g}, {found.coverage.high:.4g}]",
        "Laplace",
        "200 releases",
        "under uniform(0, 2)",
        "is certain there",
        "false alarms",
        f"rho={found.rho:.2g}",
    ):
        assert fact in shown
    assert all(len(line) < 200 and line == line.rstrip() for line in shown.splitlines())


def test_delta_is_shown_where_there_is_one():
    """A user of normal noise would not see the delta of the promise."""
    mean = private(np.mean, delta=1e-6, mechanism="gaussian")
    shown = str(audit(mean, 20, pairs=50, releases=400, seed=2))
    assert "epsilon=1, delta=1e-06" in shown and "Gaussian" in shown


def test_audit_html_is_well_formed(found):
    """A user's notebook would show a broken table."""
    for each in variants(found):
        ET.fromstring(each._repr_html_())  # raises if it is not
        well_formed(each.html())
        assert "nan" not in each.html().lower()


def test_html_says_what_the_text_says(found):
    """A user's page would lack what a terminal shows."""
    for shown in (Text(found._repr_html_()).text, Text(found.html()).text):
        for name, value in found.card().rows:
            assert name in shown and value in shown
        assert found.verdict in shown


def test_a_broken_promise_says_what_to_do(found):
    """A user whose audit fails would not see it at once, or not know what to do."""
    broken = variants(found)[1]
    for shown in (str(broken), Text(broken.html()).text):
        assert "the promise is broken" in shown and "forget()" in shown
    assert "#dc2626" in broken.card().lead and "#16a34a" in found.card().lead


def test_names_are_escaped(found):
    """A user's function or sampler with markup in its name would break the page, or run in it."""
    under = tuple(dataclasses.replace(other, sampler=NASTY) for other in found.under)
    page = dataclasses.replace(found, function=NASTY, mechanism=NASTY, under=under).html()
    parsed = Text(page)
    assert NASTY in parsed.text and "script" not in parsed.tags and parsed.tags.count("b") == 1


def test_a_lambda_is_escaped():
    """A user's lambda, whose name has angle brackets, would vanish from the page."""
    made = private(lambda x: x.mean())
    found = audit(made, 20, pairs=50, releases=0, seed=2)
    assert "audit of <lambda>" in Text(found.html()).text and "audit of <lambda>" in str(found)


def test_the_curve_is_the_share_of_pairs_with_more(found):
    """A user would read another share off the picture than was measured."""
    for each in variants(found):
        curve = each.card().chart.layers[0]
        x, y = curve.x, curve.y
        assert x[0] == 0 and x[-1] >= each.epsilon and len(x) == len(y)
        assert y == sorted(y, reverse=True)
        for at, share in zip(x, y, strict=True):
            assert share == pytest.approx(each.coverage.at(at))


def test_plot(found):
    """A user could not plot the profile, or not into axes of their own."""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    ax = found.plot()
    assert ax.get_xlabel() == "epsilon" and ax.get_yscale() == "log" and len(ax.lines) == 3
    assert found.plot(ax) is ax
    for each in variants(found):
        _, own = plt.subplots()
        assert each.plot(own) is own
        own.figure.canvas.draw()
    plt.close("all")


# --- notebook views --------------------------------------------------------------------------------------


def cards(found):
    """Return one of each thing that a notebook shows, and some unusual ones."""
    budget = Budget(NASTY, epsilon=2, gamma=0.9, delta=1e-5, ledger="memory")
    function = private(np.mean, budget=budget)
    data = np.linspace(0, 1, 20)
    return [
        plan(0.05),
        plan(0.05, bound="marginal"),
        function.estimate(20),
        function.release(data),
        private(lambda x: {NASTY: x.mean(), "n": int((x > 0.5).sum())}).release(data),
        private(lambda x: [x.sum(), (1 - x).sum()], mechanism=Exponential([NASTY, "b"])).release(data),
        private(lambda x, t: np.outer(t, x).mean(axis=1), mechanism=Bernstein(lattice=3)).release(data),
        budget,
        found,
        function,
        privatize(epsilon=1, gamma=0.1)(np.mean),  # P comes with sealed data
        report(function, 20),
    ]


def test_notebook_views_are_well_formed_and_need_nothing_else(found):
    """A user's notebook would show a broken view, use the network, or run something."""
    for each in cards(found):
        shown = each._repr_html_()
        tree = ET.fromstring(shown)
        tags = {element.tag for element in tree.iter()}
        assert "script" not in tags and ("b" in tags or "iframe" in tags)
        isolated(shown if not isinstance(each, Report) else html_without_text(shown.split("srcdoc")[0]) + ">")
        assert not re.search(r"\bnan\b", Text(shown).text)


def test_notebook_views_fit_any_theme(found):
    """A user of a dark notebook would see black on black."""
    for each in cards(found)[:-1]:
        shown = each._repr_html_()
        assert "color:inherit" in shown
        # Only lines and areas have colors of their own: text has the notebook's.
        styles = re.findall(r"style='([^']*)'", shown)
        assert not any(re.search(r"(?<![-a-z])color:(?!inherit)", style) for style in styles)
        assert "currentColor" in shown or "<svg viewBox" not in shown
        assert not re.search(r"fill='(black|white|#000|#fff)", shown)


def test_a_plan_is_described_in_words():
    """A user would not see how often their function runs."""
    shown = Text(plan(0.05)._repr_html_()).text
    for fact in ("1,114", "m=557", "k=544", "gamma=0.05", "rho=0.00256", "tolerance"):
        assert fact in shown
    assert "rho" not in Text(plan(0.05, bound="marginal")._repr_html_()).text


def test_an_estimate_is_described_in_words():
    """A user would not see what the noise was calibrated to."""
    estimate = private(np.mean, min_sensitivity=1e-9).estimate(20)
    shown = Text(estimate._repr_html_()).text
    for fact in (f"{estimate.value:.6g}", "l1", "n=20", f"k={estimate.k}", f"m={estimate.m}", "gamma=0.1"):
        assert fact in shown
    assert "min_sensitivity=1e-09" in shown and "failed" not in shown and "looks" not in shown
    estimate.at(0.3)
    assert "2 plans were read" in Text(estimate._repr_html_()).text


def test_a_release_is_described_in_words():
    """A user would not see the answer, or how far off it may be."""
    made = private(np.mean).release(np.linspace(0, 1, 20))
    shown = Text(made._repr_html_()).text
    assert str(float(made.value)) in shown and "np.float64" not in shown
    low, high = made.interval()
    assert f"± {(high - low) / 2:.4g} of the raw answer, with 95% probability" in shown
    for fact in ("epsilon=1 on all but gamma=0.1", "Laplace", f"{made.scale:.4g}", f"{made.sensitivity:.4g}"):
        assert fact in shown


def test_a_release_of_a_table_shows_the_table():
    """A user's table would be shown as text, or without its labels."""
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    columns = {"site": ["<a>", "b"], "mean": [1.5, 2.5]}
    for table in (pd.DataFrame(columns), pl.DataFrame(columns)):
        made = dataclasses.replace(private(np.mean).release(np.linspace(0, 1, 20)), value=table)
        parsed = Text(made._repr_html_())
        assert "<a>" in parsed.text and "2.5" in parsed.text and parsed.tags.count("table") >= 2
        assert "script" not in parsed.tags
    series = pd.Series([1.5, 2.5], index=["<a>", "b"])
    made = dataclasses.replace(made, value=series)
    assert "<a>" in Text(made._repr_html_()).text


def test_a_long_answer_is_cut():
    """A user's notebook would be filled with one answer."""
    made = private(np.mean).release(np.linspace(0, 1, 20))
    long = dataclasses.replace(made, value=list(map(float, range(10_000))))
    assert len(Text(long._repr_html_()).text) < 4000
    ET.fromstring(long._repr_html_())


def test_a_budget_is_described_in_words():
    """A user would not see what is left."""
    budget = Budget("survey of the views", epsilon=2, gamma=0.9, delta=1e-5, ledger="memory")
    mean = private(np.mean, epsilon=0.5, budget=budget)
    shown = Text(budget._repr_html_()).text
    assert "2 of 2 left" in shown and "0 answers so far" in shown
    mean(np.linspace(0, 1, 20))
    shown = Text(budget._repr_html_()).text
    for fact in (
        "budget survey",
        "1.5 of 2 left",
        "0.8 of 0.9 left",
        "1e-05 of 1e-05 left",
        "1 answer so far",
    ):
        assert fact in shown
    empty = Budget("nothing", epsilon=0, gamma=0, ledger="memory")
    ET.fromstring(empty._repr_html_())


def test_a_private_function_is_described_in_words():
    """A user would not see what is promised, and under which P."""
    budget = Budget("of a function", epsilon=2, gamma=0.9, ledger="memory")
    shown = Text(private(np.mean, budget=budget)._repr_html_()).text
    for fact in (
        "private mean",
        "epsilon=1 on all but gamma=0.1",
        "Laplace()",
        "uniform(0, 1)",
        "of a function",
    ):
        assert fact in shown
    assert "clipped to P's support" in shown
    assert "taken as they are" in Text(private(np.mean, sampler=samplers.normal(0, 1))._repr_html_()).text


# --- report() ------------------------------------------------------------------------------------------


def shares(x, cut=0.5, *, times=1):
    """Say which share is above a cut.

    And more that is not for the page.
    """
    return float((x > cut).mean() * times)


def rarely_fails(x):
    if x[0] > 0.995:
        raise ValueError(f"the first is {NASTY}")
    return x.mean()


def test_every_fact_is_on_the_page():
    """The readers of a user's report would have to ask for what it lacks."""
    budget = Budget("everything", epsilon=5, gamma=0.9, ledger="memory")
    made = private(shares, budget=budget, timeout=60.0, workers=1)
    staff = seal(np.linspace(0, 1, 50), name="staff", version="2026")
    made(staff, times=2)
    checked = audit(made, 50, times=2, pairs=300, releases=200, seed=4)
    page = report(made, 50, times=2, audit=checked, known=0.04)
    shown = well_formed(page.html)
    estimate = made.estimate(50, times=2)
    error = made.error_at(50, times=2)
    for fact in (
        "The promise of shares",
        "e1 = 2.718 times as likely",
        "on all but a share of 0.1 (gamma, γ) of random pairs",
        "charged its epsilon, ε = 1, again",
        "random differential privacy",
        "test_page.shares",
        "Say which share is above a cut.",
        "private datax",
        "times=2",
        "Laplace()",
        "uniform(0, 1)",
        "clipped into P's range",
        "60 s for a pair",
        f"With 95% probability, the answer is within ± {error:.4g} of the raw one.",
        f"{2 * estimate.m:,}",
        f"m={estimate.m}",
        f"k={estimate.k}",
        f"{estimate.value:.6g} (l1)",
        "known bound",
        f"rho={estimate.rho:.3g}",
        f"Laplace, scale {estimate.value:.4g}",
        checked.verdict,
        f"{checked.coverage.beyond} of 300 fresh pairs",
        "budget everything",
        "4 of 5 left",
        "staff",
        f"Python {platform.python_version()}",
        f"privatize-dp {package.__version__}",
        f"numpy {np.__version__}",
        f"scipy {importlib.metadata.version('scipy')}",
        f"{estimate.seed} for pairs, {estimate.coin_seed} for generators",
    ):
        assert fact in shown
    assert "not for the page" not in shown
    key = re.search(r"fingerprint, n=50([0-9a-f]+)", shown)[1]
    asked, _ = questions(made.definition, made.calibrator, "report", [(50,), {"times": 2}])
    assert key == made.calibrator.recall(asked[0]).key
    assert page.title == "shares, n=50" and "shares, n=50" in repr(page)


def test_the_error_at_other_epsilons_is_that_of_error_at():
    """A user would choose another epsilon by wrong numbers."""
    made = private(np.mean)
    tree = ET.fromstring(report(made, 50).html.removeprefix("<!doctype html>"))
    grids = [t for t in tree.iter("table") if t.get("class") == "grid"]
    (grid,) = (t for t in grids if next(t.iter("th")).text == "epsilon")
    rows = [["".join(cell.itertext()) for cell in row] for row in grid.iter("tr")]
    assert rows[0] == ["epsilon", "± with 50%", "± with 95%", "± with 99%"] and len(rows) == 6
    for first, *cells in rows[1:]:
        epsilon = float(first.removesuffix(" (this)"))
        for confidence, cell in zip((0.5, 0.95, 0.99), cells, strict=True):
            assert float(cell) == pytest.approx(
                made.error_at(50, epsilon=epsilon, confidence=confidence), rel=6e-3
            )
    assert [row[0] for row in rows].count("1 (this)") == 1


def lines(page):
    """Return the lines under "To reproduce it"."""
    part = page.html.split("To reproduce it")[1]
    return [html.unescape(code) for code in re.findall(r"<code>(.*?)</code>", part)]


class Holder:
    factor = 2

    @privatize(epsilon=1, gamma=0.1, sampler=UNIT, store=None)
    def method(self, x):
        return x.mean() * self.factor

    @privatize(epsilon=1, gamma=0.1, sampler=UNIT, store=None)
    @classmethod
    def of_class(cls, x):
        return x.mean() * cls.factor

    @privatize(epsilon=1, gamma=0.1, sampler=UNIT, store=None)
    @staticmethod
    def static(x):
        return x.mean()


@for_each(
    ("function", "rest", "keywords"),
    [
        (private(shares, seed=None), (), {}),
        (private(shares, seed=None), (0.25,), {"times": 3}),
        (private(shares, seed=7), (), {"cut": 0.1}),
        (private(lambda x: x.mean(), seed=None), (), {}),
        (private(several := (lambda x: [x.mean(), 100 * x.max()]), mechanism=Laplace("relative")), (), {}),
        (private(lambda x, rng: x.mean() + rng.random(), coins="rng", seed=None), (), {}),
        (Holder().method, (), {}),
        (Holder.of_class, (), {}),
        (Holder.static, (), {}),
        (private(np.median, mechanism="gaussian", delta=1e-6, seed=None), (), {}),
    ],
)
def test_the_lines_to_reproduce_it_do_so(function, rest, keywords):
    """A user could not check a report: the line on it fails, or gives another estimate."""
    made = report(function, [20, 30], *rest, **keywords)
    found = lines(made)
    assert len(found) == 2
    name = function.__name__ if function.__name__.isidentifier() else "f"
    for line, n in zip(found, (20, 30), strict=True):
        again = eval(line, {name: function, "__builtins__": {}})
        known = function.estimate(n, *rest, **keywords)
        assert again.value == known.value and (again.gaps == known.gaps).all()
        assert f"{again.value:.6g}" in made.html


def test_an_estimate_that_is_not_remembered_is_reproduced_too():
    """A function without a fingerprint would be reported with one estimate, and audited with another."""
    opened = (i for i in range(3))

    def unclear(x):
        return x.mean() if opened else 0.0

    with pytest.warns(NotRememberedWarning):
        function = private(unclear, seed=None, workers="inline")
        made = report(function, 20, audit=True)
        (line,) = lines(made)
        again = eval(line, {"unclear": function})
    shown = well_formed(made.html)
    assert "fingerprint, n=20none" in shown
    assert f"{again.value:.6g} (l1)" in shown and f"for a sensitivity of {again.value:.4g}" in shown


def test_several_numbers_of_records_and_other_arguments():
    """A user could not compare sample sizes on one page."""
    made = private(shares)
    page = report(made, [20, 3000], 0.25, times=2)
    shown = well_formed(page.html)
    assert page.title == "shares, n=20 and 3,000"
    for n in (20, 3000):
        assert f"With {n:,} records" in shown and f"seeds, n={n:,}" in shown
        assert f"± {made.error_at(n, 0.25, times=2):.4g} of the raw one" in shown
    assert "0.25, times=2" in shown and "audit(shares, 20, 0.25, times=2) makes it" in shown
    assert report(made, (20,)).title == report(made, np.int64(20)).title == "shares, n=20"
    with pytest.raises(PrivatizeError):
        report(made, 20, unknown=1)


@for_each(
    ("function", "changes", "fact"),
    [
        (lambda x: [x.mean(), x.max()], {}, "each number is within ± "),
        (lambda x: int((x > 0.5).sum()), {}, "the answer is within ± "),
        (lambda x: {"a": x.mean()}, {}, "each number is within ± "),
        (lambda x: [x.sum(), (1 - x).sum()], {"mechanism": Exponential(["a", "b"])}, "score is within "),
        (
            lambda x, t: np.outer(t, x).mean(axis=1),
            {"mechanism": Bernstein(lattice=3)},
            "each value on the lattice is within ± ",
        ),
        (np.mean, {"mechanism": "gaussian", "delta": 1e-6}, "(up to a probability of 1e-06)"),
        (np.mean, {"mechanism": Gaussian("classic"), "delta": 1e-6, "epsilon": 0.5}, "0.5 (this)"),
        (lambda x: [x.mean(), 100 * x.max()], {"mechanism": Laplace("relative")}, " to "),
        (np.mean, {"epsilon": 1e5}, "inf times as likely"),
        (np.mean, {"epsilon": 1e-9}, "With 95% probability"),
        (np.mean, {"bound": "marginal"}, "what holds on average over calibrations"),
        (np.mean, {"bound": "dkw"}, "what is certain at 1 - rho"),
    ],
)
def test_all_mechanisms_and_bounds_have_a_page(function, changes, fact):
    """A user of another mechanism would get no page, or one that says something that is not true of it."""
    made = private(function, **changes)
    shown = well_formed(report(made, 40).html)
    assert fact in shown and not re.search(r"\bnan\b", shown)


def test_the_page_shows_what_p_draws():
    """A user who reads a report could not compare P with what they know."""
    table = samplers.table(
        age=samplers.integers(18, 90), sex=samplers.categorical(["<F>", "M"]), w=samplers.normal(75, 15)
    )
    pytest.importorskip("pandas")
    shown = well_formed(report(private(lambda d: d["age"].mean(), sampler=table), 30).html)
    for fact in ("What P draws", "age", "[18, 90]", "<F>: ", "unbounded"):
        assert fact in shown


@pytest.mark.parametrize(
    "sampler",
    [
        samplers.from_function(lambda n, rng: [{"a": float(v), "t": "<x>"} for v in rng.random(n)]),
        samplers.from_function(lambda n, rng: [f"w{v:.1f}" for v in rng.random(n)]),
        samplers.from_function(lambda n, rng: rng.random((n, 3, 2))),
        samplers.from_function(lambda n, rng: (rng.random((n, 2)), rng.integers(0, 2, n))),
        samplers.from_function(lambda n, rng: [[1.0] * int(k) for k in rng.integers(1, 5, n)]),
    ],
    ids=["dicts", "strings", "images", "pair", "ragged"],
)
def test_there_is_a_page_for_every_kind_of_record(sampler):
    """A user's own P would make report() fail."""

    def size(x):
        parts = x if isinstance(x, tuple) else (x,)
        return float(sum(sum(map(ord, repr(part)[:10_000])) for part in parts))

    assert well_formed(report(private(size, sampler=sampler, workers="inline"), 5).html)


def test_failures_are_on_the_page_with_their_first_cause(tmp_path):
    """A user who reads a report would not see that the function fails now and then, or why."""
    store = tmp_path / "estimates.db"
    first = private(rarely_fails, store=store)
    failed = first.estimate(50).failed
    assert failed
    again = private(rarely_fails, store=store)  # another object, which has run nothing
    assert again.remembers(50)
    for function in (first, again):
        estimate = function.estimate(50)
        shown = well_formed(report(function, 50).html)
        assert f"{failed}, which count as infinite gaps" in shown
        assert "the first cause" in shown and "ValueError" in shown
        assert estimate.failed == failed and estimate.cause in shown
    assert "failed pairs" not in report(private(np.mean), 50).html


def test_names_on_a_page_are_escaped():
    """A user's names with markup would break the page, or run in it."""
    budget = Budget(f"{NASTY} of a page", epsilon=5, gamma=0.9, ledger="memory")

    class Nasty:
        support = (0.0, 1.0)

        def draw(self, n, rng):
            return rng.random(n)

        def __repr__(self):
            return NASTY

    def function(x, option=""):
        return x.mean()

    function.__name__ = function.__qualname__ = NASTY
    function.__doc__ = NASTY
    made = private(function, sampler=Nasty(), budget=budget, workers="inline")
    made(seal(np.linspace(0, 1, 20), name=NASTY), option=NASTY)
    page = report(made, 20, option=NASTY, audit=audit(made, 20, pairs=50, releases=0, option=NASTY))
    shown = well_formed(page.html)
    assert shown.count(NASTY) >= 8
    ET.fromstring(page._repr_html_())
    (frame,) = ET.fromstring(f"<div>{page._repr_html_()}</div>").iter("iframe")
    assert frame.get("srcdoc") == page.html.replace("\n", " ") or frame.get("srcdoc").strip()


def test_a_budget_of_many_charges_is_cut():
    """A user's page would be as long as the ledger."""
    budget = Budget("many", epsilon=100, gamma=100, ledger="memory")
    made = private(np.mean, budget=budget)
    for _ in range(25):
        made(np.linspace(0, 1, 20))
    shown = well_formed(report(made, 20).html)
    assert "The last 20 of 25." in shown and "not declared" in shown
    other = Budget("another", epsilon=1, gamma=1, ledger="memory")
    shown = well_formed(report(made, 20, budget=other).html)
    assert "budget another" in shown and "Nothing was spent yet" in shown and "budget many" not in shown
    part = budget.partition("site", ["a"])["a"]
    assert "budget many" in well_formed(report(private(np.mean, budget=part), 20).html)
    assert "What was spent" not in report(private(np.mean), 20).html


def test_a_report_spends_nothing_and_reads_no_further_plan():
    """A user's report would cost budget, or weaken the promise that it reports."""
    budget = Budget("unspent", epsilon=1, gamma=1, ledger="memory")
    made = private(np.mean, budget=budget)
    report(made, 20, audit=True)
    assert budget.spent == (0, 0, 0) and not budget.ledger.history("unspent")
    assert made.estimate(20).looks == 1


def test_the_gamma_that_holds_is_in_the_headline():
    """A user would read a smaller gamma than the one that holds after further looks at the gaps."""
    made = private(np.mean)
    made.estimate(20).at(0.4)
    estimate = made.estimate(20)
    assert estimate.gamma > made.settings.gamma
    assert f"a share of {estimate.gamma:g} (gamma, γ) of" in well_formed(report(made, 20).html)


def test_private_data_is_nowhere_on_the_page(monkeypatch):
    """A user's private numbers would be passed on with the report."""
    budget = Budget("private", epsilon=50, gamma=50, ledger="memory")
    made = private(np.mean, sampler=samplers.normal(0, 1), budget=budget)
    made.release(np.full(30, SENTINEL))
    with pytest.raises(PrivatizeError):
        made(np.array(["918273.25"] * 30))
    monkeypatch.setattr(pipeline, "_evaluate", None)  # nothing that is private is evaluated
    page = report(made, 30, audit=True)
    assert "918273" not in page.html and "918273" not in page._repr_html_()
    for each in (made, budget, made.estimate(30)):
        assert "918273" not in each._repr_html_()


def test_data_in_place_of_n_leaks_nothing():
    """A user who passed the data by mistake would find it in a log."""
    pd = pytest.importorskip("pandas")
    made = private(np.mean)
    for data in (
        np.array([SENTINEL]),
        [SENTINEL],
        [5, -918273],
        (5, SENTINEL),
        pd.Series([SENTINEL]),
        SENTINEL,
        str(SENTINEL),
    ):
        with pytest.raises(SettingsError, match=r"report\(\) takes the number of records n") as raised:
            report(made, data)
        assert "918273" not in repr(raised.value)


def test_where_ledgers_and_stores_are_is_not_shown(tmp_path):
    """A user's database, with the password in its URL, would be open to everybody who has the report."""
    budget = Budget("kept", epsilon=5, gamma=0.9, ledger=tmp_path / "hunter2.ledger")
    made = private(np.mean, budget=budget, store=f"sqlite:///{tmp_path / 'hunter2.store'}")
    made(np.linspace(0, 1, 20))
    for shown in (report(made, 20).html, budget._repr_html_(), made._repr_html_()):
        assert "hunter2" not in shown and "sqlite" not in shown and "kept" in shown


@for_each(
    ("given", "message"),
    [
        ({"known": 0}, "known=0"),
        ({"known": math.inf}, "known=inf"),
        ({"known": "0.1"}, "known='0.1'"),
        ({"known": True}, "known=True"),
        ({"budget": "survey"}, "takes a Budget, not a str"),
        ({"audit": "yes"}, "takes an Audit, True or False, not a str"),
        ({"audit": 1}, "takes an Audit, True or False, not a int"),
    ],
)
def test_wrong_arguments_are_refused(given, message):
    """A user's mistake would end in an obscure error, or in a page that is wrong."""
    with pytest.raises(SettingsError, match=re.escape(message)):
        report(private(np.mean), 20, **given)


def test_anything_but_a_private_function_is_refused_with_a_clear_message():
    """A user who forgot to privatize, or to name P, would see an obscure error."""
    for wrong in (np.mean, "mean", None, private(np.mean).estimate(20)):
        with pytest.raises(SettingsError, match="takes a private function"):
            report(wrong, 20)
    with pytest.raises(SettingsError, match=r"has no P: pass sampler= .*sealed data"):
        report(privatize(epsilon=1, gamma=0.1, store=None)(np.mean), 20)
    with pytest.raises(SettingsError, match="at least one number of records"):
        report(private(np.mean), [])
    for n in (0, -1, True, 2**60, 1.5):
        with pytest.raises(SettingsError, match="number of records"):
            report(private(np.mean), n)


def test_an_audit_of_something_else_is_refused(found):
    """A user would read that this function was checked, when it was another one."""
    mean = private(np.mean)
    report(mean, 20, audit=found)
    for function, n in (
        (private(np.median), 20),
        (mean, 30),
        (private(np.mean, epsilon=2), 20),
        (private(np.mean, seed=5), 20),
        (private(np.mean, mechanism="gaussian", delta=1e-6), 20),
    ):
        with pytest.raises(SettingsError, match="which this report is not about"):
            report(function, n, audit=found)


def test_a_broken_promise_is_on_the_page(found):
    """A user who reads a report would not see that its audit failed."""
    shown = well_formed(report(private(np.mean), 20, audit=variants(found)[1]).html)
    assert "the promise is broken" in shown and "what to do" in shown


def test_save(tmp_path):
    """A user could not pass the page on."""
    made = report(private(np.mean), 20)
    for file in (tmp_path / "a.html", str(tmp_path / "b.html")):
        path = made.save(file)
        assert path.read_text(encoding="utf-8") == made.html and str(path) == str(file)
    assert isinstance(made, Report) and isinstance(private(np.mean), PrivateFunction)
    assert "<iframe" in made._repr_html_()


def test_a_long_argument_is_not_quoted():
    """A dataset that is passed as another argument by mistake would be quoted on a public page."""
    made = privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1, store=None)(lambda x, y: float(x.mean()))
    for data in (np.full(500, 31415.25), [31415.25] * 500, "31415.25 " * 50):
        page = report(made, 20, data).html
        assert "31415" not in page and f"{type(data).__name__} of" in page


def test_every_strength_is_named_on_the_page():
    """A review board would read about random differential privacy where it is plain, or would get no page."""
    proven = privatize(epsilon=1, sensitivity=lambda n: 1 / n, sampler=UNIT, seed=1)(np.mean)
    made = report(proven, [50, 60]).html
    assert "by a bound that its author proved" in made and "random</i> differential" not in made
    assert "to refute the bound; none of them did" in made and "P, the distribution of one record" in made
    for function, words in (
        (privatize(epsilon=1, mechanism=Blocks(0.0, 1.0))(np.mean), "whatever the function does"),
        (privatize(epsilon=1)(sums.quantiles(0.5, 0, 120)), "from a public grid"),
    ):
        made = report(function, [50, 60]).html
        assert words in made and "for all pairs of such neighbouring datasets" in made
        assert "the distribution of one record" not in made and "With 60 records" in made
        with pytest.raises(SettingsError, match="no estimate to audit"):
            report(function, 50, audit=True)


GREEK = {"α": "alpha", "γ": "gamma", "δ": "delta", "Δ": "sensitivity", "ε": "epsilon", "ρ": "rho"}


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_greek_letters_have_a_word_beside_them(mechanism):
    """Whoever does not know the letters could not read the promise."""
    budget = Budget("greek", epsilon=5, gamma=0.9, delta=1e-3, ledger="memory")
    made = private(np.mean, mechanism=mechanism, delta=1e-6 if mechanism == "gaussian" else 0, budget=budget)
    made(seal(np.full(20, 0.5), name="staff"))
    shown = well_formed(report(made, 20, audit=audit(made, 20, pairs=200, releases=200, seed=4)).html)
    for sign in set(shown) & set("αβγδεζηθικλμνξοπρστυφχψωΔΓΣΦΩ"):
        first = shown.index(sign)
        assert GREEK[sign] in shown[max(0, first - 12) : first + 12], sign
    assert {"γ", "ε"} <= set(shown)


def test_charges_have_the_words_of_the_ledger():
    """The page and `privatize ledger` would seem to be about different amounts."""
    budget = Budget("charged", epsilon=5, gamma=0.9, ledger="memory")
    made = private(np.mean, budget=budget)
    made(seal(np.full(20, 0.5), name="staff"))
    shown = well_formed(report(made, 20).html)
    assert "epsilon chargeddelta chargedgamma charged" in shown and "What was spent" in shown
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\dmean", shown)  # a time that is easy to read


def test_whom_gamma_is_about():
    """Whoever decides about a promise must see what it is worth to a group of people."""
    made = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1))(np.mean)
    page = report(made, [100, 200]).html
    assert "The promise may fail for at most " in page
    assert "a group of at most 5% of P may bear all of it" in page
    for row in ("<td>50%</td><td>0.1000</td>", "<td>5%</td><td>1.0000</td>", "<td>1%</td><td>1.0000</td>"):
        assert row in page
    own = privatize(epsilon=1, sensitivity=0.01, sampler=samplers.uniform(0, 1))(np.mean)
    assert "The promise may fail for" not in report(own, 100).html


def test_a_learned_p_and_what_it_cost():
    """The page would have a promise that leaves out what learning P told about the same people."""
    law = learn(np.linspace(0, 1, 300), within=UNIT, epsilon=0.3)
    made = report(private(np.mean, sampler=law), 20).html
    assert "P was learned with epsilon=0.3, which is not in this number." in made
    assert "P was learned from private data. Gamma holds for people drawn from that P;" in made
    assert "P was learned" not in report(private(np.mean), 20).html


def test_printed_tables_are_not_cut():
    """On paper nobody can scroll."""
    made = report(private(np.mean), 20).html
    assert ".scroll{overflow:visible}" in made.partition("@media print{")[2]


def test_what_hangs_on_p_is_shown():
    """A reader of the report would not learn that the noise is too small if P is a little different."""

    def slope(data):
        return np.polyfit(data[:, 0], data[:, 1], 1)[0]

    made = private(slope, gamma=0.05, seed=4, sampler=samplers.uniform([0, 0], [6, 100]))
    assert "If P is a little different" not in str(report(made, 200).html)
    package.configure(stress=True)
    with pytest.warns(FragileEstimateWarning, match="half as spread out"):
        shown = report(made.replace(seed=5), 200).html
    text = Text(shown).text
    assert "If P is a little different" in text and "fragile: about" in text and "half as spread out" in text
