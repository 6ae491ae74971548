"""A member is asked like a function, tells what it needs, and can call itself."""

import pytest

from privatize import Release
from privatize.errors import ArgumentError
from tests.function.catalogued import catalogue, declared


def test_a_member_tells_its_error():
    """Nobody could choose an epsilon before spending it."""
    made = declared()
    found = made.share_above.estimate(limit=0.5)
    assert found.n == 200 and 0 < found.value <= 0.0051
    assert round(made.share_above.error_at(limit=0.5, epsilon=0.1) / found.value) == 30
    assert made.asked() == []


def test_a_member_shows_its_questions():
    """A notebook would show an address in memory."""
    made = declared()
    assert "share_above(limit=0.25)" in repr(made.share_above)
    assert made.share_above.questions == ("share_above(limit=0.25)", "share_above(limit=0.5)")
    assert "one gamma" in made.mean._repr_html_()
    assert made.mean.__doc__ == "Return the mean." and made.mean.sample(5).shape == (5,)


def test_arguments_have_names():
    """A number could be taken for the dataset."""
    made = declared()
    with pytest.raises(ArgumentError, match="by name"):
        made.share_above(0.5, 1)
    with pytest.raises(ArgumentError, match="epsilon="):
        made.mean()


def halved(x):
    """Return the mean of records, by halves."""
    return x.mean() if len(x) <= 50 else (halved(x[::2]) + halved(x[1::2])) / 2


def test_a_member_may_call_itself(monkeypatch):
    """The inner answers would have noise of their own, or would be refused."""
    made = catalogue()
    member = made.add(halved)
    monkeypatch.setitem(globals(), "halved", member)
    made.calibrate()
    found = member.release(epsilon=10)
    assert isinstance(found, Release) and abs(found.value - 0.5) < 0.1
