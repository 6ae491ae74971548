"""Answers with labels: no mechanism takes their numbers by position."""

import collections
import functools

import numpy as np
import pytest

from privatize import Bernstein, Exponential, privatize, samplers
from privatize.errors import InfiniteSensitivityError, OutputError, PrivateRunError
from tests.cases import for_each

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")

LETTERS = list("ABCDE")


def _counts(x, how):
    """Return how often each letter occurs, most frequent first, in one of many forms."""
    counts = pd.Series(pd.Categorical.from_codes(x.astype(int), LETTERS)).value_counts()
    counts.index = counts.index.astype(object)
    counts = counts.reindex(counts.index if how == "value_counts" else LETTERS[::-1])
    return {
        "value_counts": lambda: counts,
        "series": lambda: counts,
        "dict": lambda: counts.to_dict(),
        "counter": lambda: collections.Counter(counts.to_dict()),
        "floats": lambda: counts.astype(float),
        "named tuple": lambda: collections.namedtuple("Scores", LETTERS[::-1])(*counts),
        "list": lambda: counts.reindex(LETTERS).tolist(),
        "no labels": lambda: counts.reindex(LETTERS).reset_index(drop=True),
    }[how]()


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


class TestOtherLabels:
    """Other mechanisms never take labelled numbers by position, either."""

    @pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
    def test_value_counts_in_an_order_of_its_own_is_refused(self, mechanism):
        """A user's most frequent count would be published under the label that was most frequent under P."""
        private = privatize(
            mechanism=mechanism, epsilon=1, delta=1e-6 if mechanism == "gaussian" else 0, gamma=0.2,
            sampler=samplers.integers(0, 4), seed=1, store=None, workers="inline",
        )(functools.partial(_counts, how="value_counts"))  # fmt: skip
        with pytest.raises(InfiniteSensitivityError, match="reindex"):
            private.estimate(100)

    def test_an_order_that_calibration_never_saw_is_refused(self):
        """A user's counts would get the labels of another order, on the private data alone."""

        def largest_first(x):
            counts = pd.Series({"zeros": int((x == 0).sum()), "others": int((x != 0).sum())})
            return counts.sort_values(ascending=False)

        private = privatize(epsilon=1, gamma=0.2, sampler=samplers.integers(0, 4), seed=1, store=None)(
            largest_first
        )
        assert list(private(np.arange(200) % 5).index) == ["others", "zeros"]
        with pytest.raises(PrivateRunError):
            private(np.zeros(200, dtype=int))

    def test_a_dict_is_taken_by_key(self):
        """A user's numbers would be published under each other's keys."""

        def summary(x):
            pairs = [("zeros", float((x == 0).sum())), ("sum", float(x.sum()))]
            return dict(pairs if x[0] == 0 else pairs[::-1])

        private = privatize(epsilon=1e4, gamma=0.2, sampler=samplers.integers(0, 4), seed=1, store=None)(
            summary
        )
        for first in (0, 1):
            found = private(np.array([first, *[0] * 99]))
            assert abs(found["zeros"] - 99.5) < 5 and abs(found["sum"]) < 5

    def test_bernstein_refuses_labels_that_are_not_its_points(self):
        """A user's function of points would be drawn through its values in another order."""
        mechanism = Bernstein(lattice=2)
        values = pd.Series([1.0, 2.0, 3.0], index=[1.0, 0.5, 0.0])
        with pytest.raises(OutputError, match="lattice points in their order"):
            mechanism.evaluate(lambda d, s0: values, False)(None, 0)
        for fine in (values[::-1], values.reset_index(drop=True)):
            found = mechanism.evaluate(lambda d, s0, fine=fine: fine, False)(None, 0)
            assert found.tolist() == fine.tolist()
