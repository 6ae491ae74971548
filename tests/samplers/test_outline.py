"""The table of P has every column, its distribution and its range, whatever P is made of."""

import numpy as np
import pytest

from privatize import learn, samplers, seal
from privatize.samplers import as_sampler
from privatize.samplers.outline import outline

P = samplers.table(
    age=samplers.integers(18, 90),
    income=samplers.normal(40_000, 15_000).truncated(0, 200_000),
    sex=samplers.choice(["f", "m"]),
)
ROWS = [
    ("age", "integers(18, 90)", "[18, 90]"),
    ("income", "normal(40000, 15000, low=0, high=200000)", "[0, 200000]"),
    ("sex", "choice(['f', 'm'])", "{f, m}"),
]
SQUARE = samplers.uniform([0, 0], [1, 2])


@pytest.mark.parametrize(
    ("sampler", "rows"),
    [
        (P, ROWS),
        (P["age"], ROWS[:1]),
        (P[["age", "sex"]], [ROWS[0], ROWS[2]]),
        (P.fixed(size=10), ROWS),
        (samplers.labelled(P, "sex"), ROWS),
        (SQUARE, [("[0]", "uniform([0, 0], [1, 2])", "[0, 1]"), ("[1]", "the same", "[0, 2]")]),
        (
            samplers.labelled(SQUARE, samplers.choice([0, 1])),
            [
                ("X[0]", "uniform([0, 0], [1, 2])", "[0, 1]"),
                ("X[1]", "the same", "[0, 2]"),
                ("y", "choice([0, 1])", "{0, 1}"),
            ],
        ),
        (
            samplers.people(P, unit="id", rows=samplers.integers(1, 5)),
            [("rows of a person", "integers(1, 5)", "[1, 5]"), *ROWS],
        ),
        (samplers.normal(0, 1), [("value", "normal(0, 1)", "unbounded")]),
    ],
    ids=repr,
)
def test_columns_with_their_distributions(sampler, rows):
    """A reader would have to find a column's bounds in one long line of code."""
    assert outline(sampler) == rows


def test_a_changed_p():
    """Of a member of a family it could not be seen which columns are changed."""
    for member in P.family().members[1:]:
        laws = {name: law for name, law, _ in outline(member)}
        assert {name for name, law in laws.items() if law.endswith(", changed")} == member.change.columns


def test_a_learned_p():
    """Nobody could see what a learned P was learned within."""
    data = seal(P.draw(500, np.random.default_rng(1)), name="people")
    learned = learn(data, within=P, epsilon=0.5)
    assert [row[0] for row in outline(learned)] == ["age", "income", "sex"]
    assert outline(learned)[0][1:] == ("learned with epsilon=0.5, within integers(18, 90)", "[18, 90]")


def _people(n, rng):
    return [{"height": float(each), "name": "x"} for each in rng.random(n)]


def _labels(x, rng):
    return (x[:, 0] > rng.random(len(x))).astype(int)


def test_functions_have_their_names():
    """A P that is a function has no distributions to show."""
    rows = outline(as_sampler(_people))
    assert rows == [("height", "from_function(_people)", "unbounded"), ("name", "the same", "unbounded")]
    assert outline(samplers.labelled(SQUARE, _labels))[2][:2] == ("y", "computed by _labels")


class _Own:
    def draw(self, n, rng):
        return rng.random(n)

    def __repr__(self):
        return "own" * 100


class _Failing(_Own):
    support = (0.0, 1.0)

    def draw(self, n, rng):
        raise ValueError("not so many")


def test_samplers_of_the_users_own():
    """A report would fail because of a class that has only draw()."""
    ((name, law, inside),) = outline(_Own())
    assert (name, inside) == ("value", "unbounded") and len(law) == 120 and law.endswith("…")
    assert outline(_Failing())[0][2] == "[0, 1]"


def test_many_columns_are_cut():
    """The table would be longer than all of the page."""
    rows = outline(samplers.table({f"c{at}": samplers.uniform(0, 1) for at in range(50)}))
    assert len(rows) == 41 and rows[-1] == ("...", "and 10 more", "")
