"""What is counted, and how ε is divided, is public and exact."""

from fractions import Fraction

import numpy as np
import pytest

from privatize import samplers as s
from privatize.errors import SamplerError
from privatize.samplers.designs import design
from tests.cases import for_each

P0 = s.table(a=s.uniform(0, 1), b=s.integers(0, 900), c=s.categorical(["x", "y"]), d=s.boolean())


@for_each("epsilon", [0.1, 0.3, 1, 1 / 3, 1e-9, 7.77, 1e5])
def test_the_parts_of_epsilon_never_sum_to_more(epsilon):
    """More would be spent than is charged."""
    made = design(P0, 10**15, float(epsilon), [("a", "c")], {})
    spent = sum(Fraction(group.epsilon) for group in made.groups)
    assert spent <= min(Fraction(float(epsilon)), Fraction(repr(float(epsilon))))
    assert float(spent) == pytest.approx(epsilon, rel=1e-12)


@for_each("together", [(), [("a", "b")], [("a", "b"), ("b", "c")]])
def test_replacing_a_record_moves_two_counts_of_a_group_by_one(together):
    """The noise would be too little for the promise."""
    made = design(P0, 1000, 5.0, together, {"a": [0.25]})
    rng = np.random.default_rng(0)
    names = {name for group in made.groups for name in group.names}
    assert names == {"a", "b", "c", "d"}
    for _ in range(50):
        values = [rng.choice([0, 0.25, 1, 0.3, 0.7], 20), rng.integers(0, 901, 20)]
        values += [rng.choice(["x", "y"], 20), rng.random(20) < 0.5]
        other = [np.concatenate([own[1:], own[:1][::-1]]) for own in values]
        other = [own.copy() for own in values]
        for own in other:
            own[7] = rng.choice(own)
        for group, one, two in zip(made.groups, made.counts(values), made.counts(other), strict=True):
            assert len(one) == group.cells
            assert one.sum() == two.sum() == 20
            assert np.abs(one - two).sum() in (0, 2)
            assert np.abs(one - two).max() <= 1


def test_the_key_changes_with_whatever_changes_the_counts():
    """A stored P would be returned for another question."""
    asked = [
        design(P0, 1000, 1.0, (), {}),
        design(P0, 1000, 2.0, (), {}),
        design(P0, 1000, 1.0, [("a", "b")], {}),
        design(P0, 1000, 1.0, [("b", "a")], {}),
        design(P0, 1000, 1.0, (), {"a": [0.5]}),
        design(
            s.table(a=s.uniform(0, 2), b=s.integers(0, 9), c=s.boolean(), d=s.boolean()), 1000, 1.0, (), {}
        ),
    ]
    assert len({each.key for each in asked}) == len(asked)
    assert design(P0, 1000, 1.0, (), {}).key == asked[0].key


@for_each(
    "within, n, epsilon, together, atoms, words",
    [
        (s.normal(0, 1), 1000, 1.0, (), {}, "it is unbounded"),
        (s.table(a=s.uniform(0, 1), b=s.normal(0, 1, low=0)), 1000, 1.0, (), {}, "the column 'b' of it is"),
        (P0, 20, 0.1, (), {}, r"It takes epsilon=[\d.]+, or [\d,]+ records"),
        (P0, 1000, 1.0, ["ab"], {}, "not a pair of columns"),
        (P0, 1000, 1.0, [("a", "a")], {}, "not a pair of columns"),
        (P0, 1000, 1.0, [("a", "z")], {}, "not a pair of columns"),
        (P0, 1000, 1.0, [("a", "b", "c")], {}, "not a pair of columns"),
        (P0, 1000, 1.0, [("a", "b"), ("b", "a")], {}, "circle"),
        (P0, 1000, 1.0, (), {"z": [0]}, "the columns are"),
        (s.choice(list(range(20_000))), 10**9, 1.0, (), {}, "at most"),
    ],
)
def test_what_cannot_be_learned_is_refused_with_a_remedy(within, n, epsilon, together, atoms, words):
    """Somebody would pay for a P that is noise, or not know what to change."""
    with pytest.raises(SamplerError, match=words):
        design(within, n, epsilon, together, atoms)


def test_the_epsilon_and_the_number_that_an_error_names_are_enough():
    """A user who does what the error says would be refused again."""
    with pytest.raises(SamplerError) as caught:
        design(P0, 50, 0.1, (), {})
    words = str(caught.value).split("It takes epsilon=")[1]
    epsilon, n = float(words.split(",")[0]), int(words.split("or ")[1].split(" ")[0].replace(",", ""))
    assert design(P0, 50, epsilon, (), {}).groups
    assert design(P0, n, 0.1, (), {}).groups
