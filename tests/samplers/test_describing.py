"""Every sampler describes what it draws, in words and in pictures."""

import math
import sys
from html.parser import HTMLParser
from importlib.util import find_spec

import numpy as np
import polars as pl
import pytest
from scipy import sparse

from privatize.samplers import (
    blobs,
    bootstrap,
    categorical,
    choice,
    dates,
    from_function,
    table,
    uniform,
    with_missing,
)
from tests.cases import for_each
from tests.samplers.combinations import CODES, FRAME, NAMES, pairs


def rng(seed=0):
    """Return a generator."""
    return np.random.default_rng(seed)


def make(code):
    """Make a sampler from its code."""
    return eval(code, dict(NAMES))


class Checker(HTMLParser):
    """Check that tags are closed in order, and keep what a reader would see."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.text = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


KNOWN = {"div", "b", "table", "tbody", "tr", "th", "td"}
KNOWN |= {"figure", "figcaption", "svg", "path", "text", "title"}
NASTY = "<script>alert('x')</script>\"&"


@for_each(
    "sampler",
    [
        *map(make, (code for code in CODES if "pairs" not in code)),
        table(
            {NASTY: categorical([NASTY, "b"]), "a b": uniform(0, 1), "": dates("2020-01-01", "2020-02-01")}
        ),
        with_missing(uniform(0, 1), 1 - 1e-12),
        with_missing(dates("2020-01-01", "2020-02-01"), 1 - 1e-12),
        with_missing(choice(["a"]), 1 - 1e-12),
        choice([5]),
        choice([math.inf, 1.0]),
        from_function(pairs),
        from_function(lambda n, generator: [[1], [1, 2]] * (n // 2)),
        uniform(0, 1, size=(2, 3)),
        uniform(0, 1, size=200),
        bootstrap(FRAME),
        bootstrap(pl.from_pandas(FRAME)),
        bootstrap(sparse.csr_array(np.eye(3))),
    ],
    ids=lambda sampler: repr(sampler)[:60],
)
def test_every_sampler_describes_itself(sampler):
    """Looking at P before using it would end in an error, or run a script that is hidden in a name."""
    found = sampler.describe(n=200)
    assert found.n == 200 and found.seed == 0
    text = str(found)
    assert repr(sampler) in text
    assert "200 records, seed 0" in text
    assert repr(found) == text
    page = Checker()
    page.feed(found._repr_html_())
    page.close()
    assert page.open == []
    assert page.seen <= KNOWN
    assert repr(sampler) in "".join(page.text)


def test_a_description_is_right():
    """A user would judge P by numbers that are not those of its records."""
    parts = {"c": categorical(["x", "y"], p=[1, 3]), "d": dates("2020-01-01", "2020-12-31")}
    sampler = table({"a": with_missing(uniform(0, 10), 0.25)} | parts)
    drawn = sampler.draw(5000, rng(3))
    found = {row.name: row for row in sampler.describe(n=5000, seed=3).rows}
    assert list(found) == ["a", "c", "d"]
    assert found["a"].missing == drawn["a"].isna().sum()
    assert float(found["a"].facts[0]) == pytest.approx(drawn["a"].mean(), rel=1e-3)
    assert float(found["a"].facts[1]) == pytest.approx(drawn["a"].std(), rel=1e-2)
    assert float(found["a"].facts[3]) == pytest.approx(drawn["a"].median(), rel=1e-3)
    assert found["a"].support == "[0, 10] or missing"
    assert found["c"].facts[1] == f"y: {(drawn['c'] == 'y').mean():.1%}"
    assert found["c"].support == "{x, y}"
    assert sum(found["a"].heights) + found["a"].missing == sum(found["c"].heights) == 5000
    assert found["d"].support == "[2020-01-01, 2020-12-31]"
    assert sampler.describe(n=5000, seed=3) == sampler.describe(n=5000, seed=3)
    assert str(sampler.describe(n=5000, seed=4)) != str(sampler.describe(n=5000, seed=3))


@pytest.mark.skipif(find_spec("matplotlib") is None, reason="matplotlib is not installed")
@pytest.mark.parametrize(
    "sampler",
    [
        uniform(0, 1),
        uniform(0, 1, size=3),
        table(
            {
                NASTY: categorical([NASTY, "b"]),
                "a$_{$b": uniform(0, 1),
                "d": dates("2020-01-01", "2020-02-01"),
            },
            frame="dict",
        ),
        blobs([[0, 0], [1, 1]]),
        with_missing(uniform(0, 1), 1 - 1e-12),
    ],
    ids=lambda sampler: repr(sampler)[:40],
)
def test_a_description_plots_itself(sampler, tmp_path):
    """The picture that the documentation promises would be missing, or its figure would stay open."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    found = sampler.describe(n=100)
    figure = found.plot()
    try:
        assert [axes.get_title() for axes in figure.axes] == [row.name for row in found.rows]
        figure.savefig(tmp_path / "picture.png", dpi=30)
    finally:
        plt.close(figure)


def test_a_plot_without_matplotlib(monkeypatch):
    """The error would not say what is missing."""
    from privatize.errors import SettingsError

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(SettingsError, match="needs matplotlib"):
        uniform(0, 1).describe(n=10).plot()
