"""Whether an answer is worth reading is known, and said, before private data is touched."""

import logging
import warnings

import numpy as np
import pytest

from privatize import (
    Budget,
    Catalogue,
    Exponential,
    Gaussian,
    Laplace,
    additive,
    privatize,
    report,
    samplers,
    seal,
)
from privatize.errors import UninformativeWarning
from privatize.function.signal import in_words, noise_of, signal_of

P = samplers.uniform([0, 0], [1, 1000])
DATA = P.draw(200, np.random.default_rng(0))


def private(function, **more):
    """Decorate with a fixed seed."""
    options = {"epsilon": 1, "gamma": 0.1, "sampler": P, "seed": 3, "workers": "inline", "store": None}
    return privatize(**options | more)(function)


def means(data):
    """Return means in different units."""
    return {"share": float(data[:, 0].mean()), "income": float(data[:, 1].mean())}


def warned(act):
    """Return the texts of warnings about noise."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        act()
    return [str(each.message) for each in seen if each.category is UninformativeWarning]


def test_the_signal_is_spread_over_noise():
    """A user would take noise for an answer. The spread of 64 answers is off by more than half in 1e-6."""
    function = private(means)
    release = function.release(DATA)
    for name, width in (("share", 1.0), ("income", 1000.0)):
        spread = width / 12**0.5 / 200**0.5
        assert release.signal[name] == pytest.approx(spread / (2**0.5 * release.scale[name]), rel=0.5)
    found = function.estimate(200)
    np.testing.assert_allclose(signal_of(function.settings, found), list(release.signal.values()))
    gaussian = private(means, mechanism=Gaussian(), delta=1e-6)
    scale = list(gaussian.release(DATA).scale.values())
    np.testing.assert_allclose(noise_of(gaussian.settings, gaussian.estimate(200)), scale)


def test_a_warning_names_numbers_and_remedies():
    """Ages of -2040 would be published, and nothing would say that they are noise."""
    (text,) = warned(lambda: private(means, mechanism=Laplace(scaled="none")).estimate(200))
    assert "means(), n=200, epsilon=1" in text and "1 of 2 numbers (share)" in text
    assert "epsilon=" in text and "records" in text and "leave scaled='none' out" in text
    (text,) = warned(lambda: private(means, epsilon=0.01)(DATA))
    assert "all 2 numbers" in text and "It would take epsilon=" in text and "ask for fewer" in text
    wanted = float(text.split("It would take epsilon=")[1].split(",")[0])
    assert not warned(lambda: private(means, epsilon=1.1 * wanted).estimate(200))
    assert warned(lambda: private(means, epsilon=0.6 * wanted).estimate(200))
    (text,) = warned(lambda: private(np.mean, epsilon=0.001).estimate(200))
    assert "the noise of the answer is" in text and "additive()" in text
    (text,) = warned(lambda: private(lambda d: np.histogram(d[:, 0], 20)[0], epsilon=0.01).estimate(200))
    assert "mechanism='gaussian'" in text and ", ..." in text


def test_answers_that_say_something_do_not_warn():
    """Warnings that are always there are never read."""
    assert not warned(lambda: private(means).release(DATA))
    assert not warned(lambda: private(additive(lambda d: d)).release(DATA))
    # What is the same for all datasets is not known to be noise.
    assert not warned(lambda: private(lambda d: np.corrcoef(d.T), epsilon=20).release(DATA))


NOTES = logging.getLogger("tests.signal")  # a fingerprint does not look inside
NOTES.private = []


def noting(data):
    """Note whether the data is private."""
    logging.getLogger("tests.signal").private.append(bool((data[:, 0] == 0.123).all()))
    return float(data[:, 0].mean())


def test_it_comes_before_private_data_is_touched():
    """A warning that depends on the data would be an answer that nobody has paid for."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UninformativeWarning)
        with pytest.raises(UninformativeWarning):
            private(noting, epsilon=1e-4)(np.full((50, 2), 0.123))
    assert NOTES.private and not any(NOTES.private)


def test_labels_get_a_hint():
    """A user who releases predict() would get labels of -7, 12 and 3."""

    def predict(data):
        return (np.linspace(0, 1, 6) > data[:, 0].mean()).astype(int)

    function = private(predict, min_sensitivity=1.0)
    (text,) = warned(lambda: function.estimate(50))
    assert "predict_proba()" in text and "Exponential(responses=[...])" in text


def test_what_has_no_signal_is_silent():
    """A choice has no noise in its numbers, and a bound for all pairs no spread that was measured."""

    def score(data, response):
        return -abs(data[:, 0].mean() - response)

    choice = private(score, mechanism=Exponential(responses=[0.0, 1.0]), epsilon=1e-3)
    assert not warned(lambda: choice.estimate(50)) and in_words(choice.settings, choice.estimate(50)) == ""
    bound = privatize(epsilon=1e-3, sampler=samplers.uniform(0, 1), sensitivity=lambda n: 1 / n, store=None)
    assert not warned(lambda: bound(np.mean).estimate(50))


def test_members_of_a_catalogue_have_a_signal():
    """A team would ask questions whose answers are noise."""
    budget = Budget("of signals", epsilon=5, gamma=0.1, ledger="memory")
    people = seal(DATA, name="a test of signals", sampler=P, budget=budget)
    catalogue = Catalogue("facts", people, gamma=0.1)
    catalogue.add(means)
    assert not warned(catalogue.calibrate) and not warned(catalogue._repr_html_)  # no question was asked yet
    assert catalogue.means.release(epsilon=1).signal["income"] > 0
    assert warned(lambda: catalogue.means(epsilon=0.001))


def test_a_catalogue_warns_when_it_is_asked():
    """A user would be told that every catalogue is noise, at an epsilon that nobody has chosen."""
    budget = Budget("of warnings", epsilon=5, gamma=0.1, ledger="memory")
    people = seal(DATA, name="a test of warnings", sampler=P, budget=budget)
    catalogue = Catalogue("warnings", people, gamma=0.1)
    catalogue.add(means)
    assert warned(catalogue.calibrate) == [] and warned(catalogue.means.estimate) == []
    assert warned(lambda: catalogue.means(epsilon=2)) == []
    (text,) = warned(lambda: catalogue.means(epsilon=0.01))
    assert "epsilon=0.01" in text


def test_reports_and_cards(tmp_path):
    """Whoever reads a report would not see that the answers are noise."""
    noisy = private(means, epsilon=0.01)
    page = tmp_path / "page.html"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UninformativeWarning)
        report(noisy, 200).save(page)
        card = noisy.release(DATA).card()
    assert "times as large as what answers differ by" in page.read_text()
    assert "below 1 it says little more than P does" in dict(card.rows)["signal"]


@pytest.mark.parametrize("floor", [1e-300, 1e100, 1e250, 1e300])
def test_noise_of_any_size(floor):
    """A floor of 1e250 ended in a division by zero, and one of 1e170 in an endless loop."""
    texts = warned(lambda: private(means, min_sensitivity=floor).estimate(50))
    assert texts or floor < 1
