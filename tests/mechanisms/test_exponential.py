"""The exponential mechanism chooses among its responses by their scores, in whatever order they come."""

import functools
import math

import numpy as np
import pytest

from privatize import Exponential, privatize, samplers
from privatize.errors import InfiniteSensitivityError, OutputError, PrivateRunError, SettingsError
from tests.cases import for_each
from tests.outputs.labelled import LETTERS, _counts, pd

UNIT = samplers.uniform(0, 1)


class TestExponential:
    def test_refusals(self):
        """Responses, prior and norm are checked where they are written."""
        with pytest.raises(SettingsError, match="responses"):
            Exponential()
        for prior in ([1], [1, -1], [1, 0], [1, math.inf], [1, math.nan]):
            with pytest.raises(SettingsError, match="prior"):
                Exponential(responses=["a", "b"], prior=prior)
        with pytest.raises(SettingsError, match="norm="):
            Exponential(responses=["a"], norm="l2")

    def test_scores_per_response_or_one_by_one(self):
        """A function that returns all scores must calibrate like one that is called for each response."""
        responses = [0.25, 0.5, 0.75]
        mechanism = Exponential(responses)

        def one(x, r):
            return -abs(float((x < r).mean()) - 0.5)

        def every(x):
            return [one(x, r) for r in responses]

        promise = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "mechanism": mechanism, "seed": 1}
        estimates = [privatize(**promise)(f).estimate(50) for f in (one, every)]
        assert np.array_equal(estimates[0].gaps, estimates[1].gaps)
        assert estimates[0].norm == "range"
        assert privatize(**promise)(one)(np.full(50, 0.4)) in responses

    def test_responses_can_be_anything(self):
        """Names, tuples or objects can be chosen, and the very object comes back."""
        names = ["red", ("green", 2), None]
        f = privatize(epsilon=5, gamma=0.2, sampler=UNIT, mechanism=Exponential(names))(
            lambda x: np.array([x.mean(), 2 * x.mean(), 0.1])
        )
        assert f(np.full(30, 0.5)) in names

    def test_wrong_number_of_scores(self):
        """A score too many is refused at once."""
        f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Exponential([1, 2]))(lambda x: x[:3])
        with pytest.raises(OutputError, match="one score for each of its 2 responses"):
            f.estimate(10)

    def test_infinite_scores_are_refused(self):
        """A log-likelihood of minus infinity has no finite sensitivity."""
        f = privatize(epsilon=1, gamma=0.2, sampler=UNIT, mechanism=Exponential([1, 2]))(
            lambda x: np.array([-np.inf, x.mean()])
        )
        with pytest.raises(InfiniteSensitivityError):
            f.estimate(10)


class TestLabelledScores:
    """Scores with labels are those of the responses with these labels, in whatever order they come."""

    def private(self, function, responses=LETTERS, **rest):
        facts = {"epsilon": 100, "gamma": 0.2, "sampler": samplers.integers(0, 4), "seed": 1, "store": None}
        return privatize(mechanism=Exponential(responses), workers="inline", **(facts | rest))(function)

    @for_each(
        "how", ["value_counts", "series", "dict", "counter", "floats", "named tuple", "list", "no labels"]
    )
    def test_the_most_frequent_wins(self, how):
        """A user's value_counts() gave the least frequent answer 20 times of 20."""
        private = self.private(functools.partial(_counts, how=how))
        data = np.repeat([0, 1, 2, 3, 4], [5, 10, 60, 15, 10])
        assert {private(data) for _ in range(5)} == {"C"}

    @for_each(
        ("labels", "responses"),
        [
            (["A", "B"], ["A", "B", "C"]),
            (["A", "B", "C", "D"], ["A", "B", "C"]),
            (["A", "B", "D"], ["A", "B", "C"]),
            (["A", "A", "B"], ["A", "B", "C"]),
            (["a", "b", "c"], ["A", "B", "C"]),
            ([1, 2, 3], ["1", "2", "3"]),
            ([1, 2, 3], [1.0, 2.0, 3.0]),
            ([0, 1, 2], [False, True, 2]),
            (["1", "2", "3"], [1, 2, 3]),
            ([("a", 1), ("b", 2)], [("a", 1.0), ("b", 2)]),
            ([1, 2], [[1], [2]]),
        ],
    )
    def test_other_labels_are_refused(self, labels, responses):
        """A user's scores would go to other responses than they are for."""
        for scores in (pd.Series(np.arange(len(labels)), index=labels), dict.fromkeys(labels, 1.0)):
            with pytest.raises(OutputError, match=r"reindex\(responses, fill_value=0\)"):
                Exponential(responses).evaluate(lambda d, s0, scores=scores: scores, False)(None, 0)
            private = self.private(lambda x, scores=scores: scores, responses)
            with pytest.raises((OutputError, InfiniteSensitivityError), match=r"reindex\(responses"):
                private(np.zeros(9, dtype=int))

    @pytest.mark.parametrize(
        ("labels", "responses"),
        [
            (np.array([2, 0, 1]), [0, 1, 2]),
            ([2.5, 0.5], [0.5, 2.5]),
            ([True, False], [False, True]),
            ([("b", 2), ("a", 1)], [("a", 1), ("b", 2)]),
            ([None, "a"], ["a", None]),
        ],
    )
    def test_labels_of_every_type(self, labels, responses):
        """A user whose responses are numbers, flags or pairs would be refused, or get another one."""
        labels = list(labels)
        expected = [float(labels.index(r)) for r in responses]
        index = pd.Index(labels, dtype=object, tupleize_cols=False) if None in labels else labels
        forms = [
            dict(zip(labels, range(len(labels)), strict=True)),
            pd.Series(range(len(labels)), index=index),
        ]
        for scores in forms:
            found = Exponential(responses).evaluate(lambda d, s0, scores=scores: scores, False)(None, 0)
            assert found.tolist() == expected

    def test_a_missing_label_on_private_data_is_not_shown(self):
        """The error of a user's private run would name the letter that no record has."""

        def present(x):
            return pd.Series(np.array(LETTERS)[x.astype(int)]).value_counts()

        private = self.private(present)
        private.estimate(200)  # every letter occurs among 200
        with pytest.raises(PrivateRunError) as caught:
            private(np.zeros(200, dtype=int))
        assert "'B'" not in str(caught.value) and caught.value.__cause__ is None

    def test_frames_are_not_scores(self):
        """A user's table of scores would be read in an order of its own."""
        for table in (pd.DataFrame({"n": [1, 2]}, index=["A", "B"]), pd.DataFrame({"A": [1], "B": [2]})):
            with pytest.raises(OutputError):
                Exponential(["A", "B"]).evaluate(lambda d, s0, table=table: table, False)(None, 0)
