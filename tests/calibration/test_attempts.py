"""Attempts are datasets inside the support, and neighbours differ in one record."""

import itertools

import numpy as np

from privatize import samplers
from privatize.calibration.attempts import PIECES, Attempt, AttemptSampler, first_attempts, mutated
from privatize.data.corners import places

TABLE = samplers.table(
    frame="records", age=samplers.integers(18, 99), sex=samplers.categorical(["F", "M"], p=[0.5, 0.5])
)


def sampler_of(sampler, n):
    drawn = sampler.draw(20, np.random.default_rng(0))
    return AttemptSampler(sampler, n, 1, None, sampler.support, places(drawn, sampler.support))


def both(pairs, attempt):
    pair = pairs.pair_of(attempt)
    return *pairs.neighbours(pair.records, pair.position), pair.position


def test_a_way_replaces_one_record_after_the_other():
    """The pairs on a way would not be neighbours, and a true bound would be refuted."""
    pairs = sampler_of(samplers.uniform(0, 1), 5)
    low, high = (0,), (1,)
    one, other, position = both(pairs, Attempt(0, low, high, None, 5, 1, 2, 0))
    assert (one.tolist(), other.tolist(), position) == ([1, 0, 0, 0, 0], [1, 1, 0, 0, 0], 1)
    one, other, position = both(pairs, Attempt(0, low, high, None, 5, 0, 1, 1))
    assert (one.tolist(), other.tolist(), position) == ([0] * 5, [0, 0, 0, 0, 1], 4)
    one, other, position = both(pairs, Attempt(0, low, high, None, 1, 0, 1, 2))
    assert (one[position], other[position]) == (0, 1)
    rest = np.delete(one, position)
    assert np.array_equal(rest, np.delete(other, position)) and len(set(rest.tolist())) == 4
    one, other, _ = both(pairs, Attempt(0, low, None, high, 3, 0, 3, 0))
    assert (
        one.tolist() == [0, 0, 0, 1, 1] and len(set(other[:3].tolist())) == 3 and other[3:].tolist() == [1, 1]
    )


def test_pieces_of_a_way_are_all_of_it():
    """The piece with the jump would be left out."""
    for n in (2, 7, 8, 100, 1001):
        pieces = Attempt(0, (0,), (1,), None, n, 0, n, 2).pieces()
        assert [pieces[0].start, *(piece.stop for piece in pieces)][-1] == n and pieces[0].start == 0
        assert all(one.stop == other.start for one, other in itertools.pairwise(pieces))
        assert len(pieces) == min(n, PIECES) and all(piece.steps >= 1 for piece in pieces)


def test_attempts_and_their_mutations_are_neighbours_inside_the_support():
    """Data that cannot occur, or that differs in two records, would refute a true bound."""
    for sampler in (samplers.uniform(0, [1, 5]), TABLE):
        for n in (1, 2, 9):
            pairs, rng = sampler_of(sampler, n), np.random.default_rng(1)
            made = first_attempts(pairs.places, n, rng)
            assert [attempt.number for attempt in made] == list(range(len(made)))
            made = made[190:] + [mutated(each, pairs.places, n, 999, rng) for each in made[150:]]
            for attempt in made:
                one, other, position = both(pairs, attempt)
                differ = [at for at in range(n) if str(one[at]) != str(other[at])]
                assert len(one) == len(other) == n and 0 <= position < n
                assert len(differ) <= attempt.steps and (attempt.steps > 1 or set(differ) <= {position})
                for data in (one, other):
                    if sampler is TABLE:
                        assert all(18 <= each["age"] <= 99 and each["sex"] in ("F", "M") for each in data)
                        assert len({id(each) for each in data}) == n
                    else:
                        assert (data >= 0).all() and (data <= [1, 5]).all()


def test_records_without_places_are_drawn():
    """Records of a kind whose corners are unknown could not be tried at all."""
    words = samplers.from_function(lambda n, rng: [f"w{k}" for k in rng.integers(100, size=n)])
    pairs = AttemptSampler(words, 4, 1, None, None, places(["w1"], None))
    for attempt in first_attempts(pairs.places, 4, np.random.default_rng(1)):
        one, other, _ = both(pairs, attempt)
        assert len(one) == len(other) == 4 and all(word.startswith("w") for word in one + other)
