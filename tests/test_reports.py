"""What a person reads of an audit is complete, well-formed and escaped."""

import dataclasses
import html.parser
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from privatize import audit, privatize, reports, samplers

UNIT = samplers.uniform(0, 1)


@pytest.fixture(scope="module")
def found():
    mean = privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, store=None)(np.mean)
    return audit(mean, 20, pairs=200, releases=200, seed=2, under=[samplers.uniform(0, 2)])


class Text(html.parser.HTMLParser):
    """Collects what a browser would show, and which tags there are."""

    def __init__(self, source):
        super().__init__()
        self.text, self.tags = "", []
        self.feed(source)
        self.close()

    def handle_data(self, data):
        self.text += data

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)


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
        "Proposition 8",
        "false alarms",
        f"rho={found.rho:.2g}",
    ):
        assert fact in shown
    assert all(len(line) < 200 and line == line.rstrip() for line in shown.splitlines())


def test_delta_is_shown_where_there_is_one():
    """A user of normal noise would not see the delta of the promise."""
    mean = privatize(
        epsilon=1, gamma=0.1, delta=1e-6, mechanism="gaussian", sampler=UNIT, seed=1, store=None
    )(np.mean)
    shown = str(audit(mean, 20, pairs=50, releases=400, seed=2))
    assert "epsilon=1, delta=1e-06" in shown and "Gaussian" in shown


def test_html_is_well_formed(found):
    """A user's notebook would show a broken table."""
    for each in variants(found):
        ET.fromstring(each._repr_html_())  # raises if it is not
        page = each.html()
        assert page.startswith("<!doctype html>") and page.count("<html") == 1
        ET.fromstring(page.removeprefix("<!doctype html>").replace("'utf-8'>", "'utf-8'/>"))
        assert "nan" not in page.lower().replace("nanmean", "")


def test_html_says_what_the_text_says(found):
    """A user's page would lack what a terminal shows."""
    shown = Text(found._repr_html_()).text
    for name, value in reports._rows(found):
        assert name in shown and value in shown
    assert found.verdict in shown


def test_html_needs_nothing_else(found):
    """A user's page would call home, or look different without a network."""
    page = found.html()
    assert "http" not in page and "<script" not in page and "<link" not in page and "url(" not in page


def test_names_are_escaped(found):
    """A user's function or sampler with markup in its name would break the page, or run in it."""
    name = "<b>&'\"</b><script>alert(1)</script>"
    under = tuple(dataclasses.replace(other, sampler=name) for other in found.under)
    page = dataclasses.replace(found, function=name, mechanism=name, under=under).html()
    parsed = Text(page)
    assert name in parsed.text and "script" not in parsed.tags and parsed.tags.count("b") == 1


def test_a_lambda_is_escaped():
    """A user's lambda, whose name has angle brackets, would vanish from the page."""
    made = privatize(epsilon=1, gamma=0.1, sampler=UNIT, seed=1, store=None)(lambda x: x.mean())
    found = audit(made, 20, pairs=50, releases=0, seed=2)
    assert "audit of <lambda>" in Text(found.html()).text and "audit of <lambda>" in str(found)


def test_the_drawing_stays_in_its_frame(found):
    """A user would see a curve that leaves the picture, or none."""
    for each in variants(found):
        tree = ET.fromstring(each._repr_html_())
        (line,) = tree.iter("polyline")
        points = np.array([[float(c) for c in point.split(",")] for point in line.get("points").split()])
        assert np.isfinite(points).all()
        assert (points >= 0).all() and (points[:, 0] <= 520).all() and (points[:, 1] <= 240).all()
        assert (np.diff(points[:, 0]) >= 0).all() and (np.diff(points[:, 1]) >= 0).all()
        (circle,) = tree.iter("circle")
        assert 0 <= float(circle.get("cx")) <= 520 and 0 <= float(circle.get("cy")) <= 240


def test_the_curve_is_the_share_of_pairs_with_more(found):
    """A user would read another share off the picture than was measured."""
    x, y = reports._curve(found)
    assert x[0] == 0 and x[-1] >= found.epsilon and len(x) == len(y)
    for at, share in zip(x, y, strict=True):
        assert share == pytest.approx(found.coverage.at(at))


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
