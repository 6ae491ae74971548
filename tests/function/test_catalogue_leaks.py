"""Nothing of private data leaves a catalogue: a sentinel in it appears in no error, repr, log or file."""

import logging

from privatize import Blocks, People
from privatize.errors import PrivateRunError, PrivatizeError
from tests.cases import for_each
from tests.function.catalogued import UNIT, budget, catalogue, fresh, sealed
from tests.function.sentinels import PRIVATE, TEXT, holds_sentinel, raises, text
from tests.function.test_leaks import assert_clean, infinite, other_structure


def leaky(function, people=None, **more):
    """Return a declared catalogue about data with a sentinel, or its facts."""
    about = sealed(PRIVATE) if people is None else people
    made = catalogue(about, sampler=UNIT, domain="as-is", budget=budget(), **more)
    made.add(function, name="asked_of_all")
    made.add(lambda x: min(max(float(x.mean()), 0.0), 1.0), name="strict", mechanism=Blocks(0.0, 1.0))
    made.calibrate()
    return made


def error_of(ask):
    """Return the error that a call ends in."""
    try:
        ask()
    except PrivatizeError as error:
        return error
    raise AssertionError("the call did not fail")


@for_each("function", [raises, text, infinite, other_structure])
def test_a_member_that_fails_shows_nothing(function):
    """An error on a dashboard would show a person's record."""
    made = leaky(function)
    for ask in (made.asked_of_all, made.asked_of_all.release):
        error = error_of(lambda ask=ask: ask(epsilon=1))
        assert isinstance(error, PrivateRunError)
        assert_clean(error)


def test_data_that_is_passed_by_mistake_is_in_no_error():
    """Data that is not sealed would be in the variables of a traceback."""
    mistakes = [
        lambda: catalogue(PRIVATE),
        lambda: catalogue((PRIVATE, PRIVATE)),
        lambda: People("a", 4, like=PRIVATE),
        lambda: People("a", PRIVATE),
        lambda: People(PRIVATE, 4),
    ]
    made = leaky(lambda x: x.mean(), People(fresh("people"), 4))
    here = leaky(lambda x: x.mean())
    for each in (made, here):
        mistakes += [
            lambda each=each: each.asked_of_all(PRIVATE, epsilon=1),
            lambda each=each: each.asked_of_all((PRIVATE, PRIVATE), epsilon=1),
            lambda each=each: each.asked_of_all(PRIVATE, PRIVATE, epsilon=1),
            lambda each=each: each.asked_of_all(PRIVATE),
            lambda each=each: each.asked_of_all(limit=PRIVATE, epsilon=1),
            lambda each=each: each.asked_of_all.release(epsilon=PRIVATE),
            lambda each=each: each.strict(epsilon=1, delta=PRIVATE),
            lambda each=each: each.asked_of_all.estimate(x=PRIVATE),
        ]
    for mistake in mistakes:
        assert_clean(error_of(mistake))


def test_what_it_shows_and_stores_has_nothing_of_the_data(tmp_path, caplog):
    """A ledger, a store, a log or a notebook would show a person's record."""
    caplog.set_level(logging.DEBUG)
    own = budget(ledger=tmp_path / "ledger.db")
    people = sealed(PRIVATE, name=fresh("people"), budget=own)
    made = leaky(lambda x: float((x > 0.5).mean()), people, store=tmp_path / "store.db")
    made.asked_of_all.release(epsilon=0.5)
    made.strict(epsilon=0.5)
    shown = [repr(made), made._repr_html_(), made.facts(), made.asked(), repr(made.strict), made.pilot]
    shown += [repr(made.members), made.strict._repr_html_(), repr(made.asked_of_all.estimate()), caplog.text]
    shown += [repr(made.plan_budget({"asked_of_all": 0.1})), own.history().to_dict(), own.statement]
    assert not any(map(holds_sentinel, shown))
    for file in tmp_path.iterdir():
        content = file.read_bytes()
        assert b"31415926" not in content and TEXT.encode() not in content
