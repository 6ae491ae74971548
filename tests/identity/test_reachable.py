"""Private data that a function can reach besides its argument is refused, in whatever form."""

import collections
import copy

import numpy as np
import pytest

from privatize import privatize, samplers, seal
from privatize.errors import DataError
from privatize.identity.reachable import is_private
from privatize.mechanisms import Exponential
from tests.cases import for_each
from tests.identity.private_data import (
    AGES,
    COPIES,
    COUNTS,
    FRAME,
    OTHERS,
    PEOPLE,
    RNG,
    SHARED,
    N,
    _loaded,
    found,
    pd,
)

_loaded()


@pytest.mark.filterwarnings("ignore::privatize.errors.NotRememberedWarning")
class TestReachable:
    """A function that can reach its private data could use it during calibration."""

    @for_each("case", SHARED)
    def test_what_shares_memory_or_objects_is_refused(self, case):
        """The private numbers would count as public ones, and be released without noise."""
        assert found(*SHARED[case])

    @for_each("case", COPIES)
    def test_copies_are_refused(self, case):
        """A copy reveals as much as the data itself."""
        assert found(*COPIES[case])

    @for_each("case", OTHERS)
    def test_public_values_are_not_refused(self, case):
        """A function that uses public numbers would be refused as if it used the data."""
        assert not found(*OTHERS[case])


PROMISE = {"epsilon": 1, "gamma": 0.3, "workers": "inline", "store": None, "seed": 1}
P = samplers.uniform(0, 100)


class TestCalls:
    """Nothing is evaluated before it is known that the data cannot be reached."""

    def test_a_column_of_a_global_frame_is_refused_before_calibration(self):
        """The frame's other columns, and an error about them, would be released without noise."""
        frame, calls = FRAME.reset_index(), collections.Counter()

        @privatize(sampler=P, **PROMISE)
        def mean(ages):
            calls["now"] += 1
            raise ValueError(frame["income"].max())

        with pytest.raises(DataError, match="can be reached from mean") as caught:
            mean(frame["age"])
        assert not calls
        assert str(frame["income"].max()) not in str(caught.value)
        assert caught.value.__cause__ is caught.value.__context__ is None

    def test_what_is_remembered_is_refused_too(self):
        """A function whose estimate is known may be called with a dataset that it can reach."""
        own = RNG.uniform(0, 100, N)

        @privatize(sampler=P, **PROMISE)
        def shifted(ages):
            return ages.mean() - own[0]

        for _ in range(3):
            shifted(RNG.uniform(0, 100, N))
        for data in (own, own.copy(), own.tolist()):
            with pytest.raises(DataError, match="can be reached"):
                shifted(data)

    def test_values_that_never_change_are_compared_too(self):
        """A tuple cannot change, so it would not be compared with the dataset of a later call."""
        own = tuple(RNG.uniform(0, 100, 30).tolist())

        @privatize(sampler=P, **PROMISE)
        def shifted(ages):
            return np.mean(ages) - own[0]

        for _ in range(3):
            shifted(RNG.uniform(0, 100, 30))
        with pytest.raises(DataError, match="can be reached"):
            shifted(np.array(own))

    def test_values_that_were_put_into_installed_modules_are_compared_too(self, monkeypatch):
        """Private data that somebody put into a library's module would count as the library's."""
        monkeypatch.setattr(np, "kept_here", own := RNG.uniform(0, 100, 30), raising=False)

        @privatize(sampler=P, **PROMISE)
        def shifted(ages):
            return ages.mean() - np.kept_here[0]

        for _ in range(3):
            shifted(RNG.uniform(0, 100, 30))
        with pytest.raises(DataError, match="can be reached"):
            shifted(own)

    @for_each("place", ["argument", "default", "instance", "pair", "batch", "sampler", "mechanism"])
    def test_every_part_of_a_call_is_compared(self, place):
        """Whatever takes part in the calibration could use the private data there."""
        own = RNG.uniform(0, 100, N)
        part = own[:50]

        class Service:
            part = None

            @privatize(sampler=P, **PROMISE)
            def mean(self, ages):
                return ages.mean() + (0 if self.part is None else self.part[0])

        def mean(ages, other=None):
            return ages.mean()

        def defaulted(ages, other=part):
            return ages.mean()

        def draw(n, rng):
            return rng.choice(part, n)

        def pair(data, position, replacement):
            return mean(data), mean(data) + part[0] / 1e9

        def stack(data):
            return data.mean(axis=-1) + 0 * part[0]

        def score(ages, answer):
            return -abs(ages.mean() - answer)

        service = Service()
        service.part = part
        private = privatize(sampler=P, **PROMISE)(mean)
        act = {
            "argument": lambda: private(own, {"a": [part]}),
            "default": lambda: privatize(sampler=P, **PROMISE)(defaulted)(own),
            "instance": lambda: service.mean(own),
            "pair": lambda: private.replace(pair=pair)(own),
            "batch": lambda: private.replace(batch=stack)(own),
            "sampler": lambda: private.replace(sampler=draw)(own),
            "mechanism": lambda: privatize(
                sampler=P, mechanism=Exponential(responses=tuple(own.tolist())), **PROMISE
            )(score)(own),
        }[place]
        with pytest.raises(DataError, match="can be reached"):
            act()

    def test_nothing_is_drawn_from_p_before(self):
        """An error of a P that was made from the private data would reveal it."""
        own = RNG.uniform(0, 100, N)

        def draw(n, rng):
            raise ValueError(own.max())

        with pytest.raises(DataError, match="can be reached") as caught:
            privatize(sampler=draw, **PROMISE)(np.mean)(own)
        assert str(own.max()) not in str(caught.value)

    def test_sealed_data_that_is_also_a_global_is_refused(self):
        """A seal is of no use while the data itself is a global."""
        frame = FRAME.copy()

        @privatize(sampler=lambda n, rng: {"age": rng.uniform(0, 100, n)}, **PROMISE)
        def mean(data):
            return data["age"].mean() - frame["age"].mean()

        with pytest.raises(DataError, match="can be reached"):
            mean(seal({"age": frame["age"].to_numpy()}, name="staff"))

    @for_each(
        ("public", "data"),
        [
            (PEOPLE[:50], PEOPLE),
            (copy.deepcopy(PEOPLE[:50]), PEOPLE),
            (PEOPLE, PEOPLE[10:60]),
            (FRAME, FRAME["age"]),
            (FRAME[:60].copy(), FRAME),
            (FRAME[FRAME["age"] > 60], FRAME),
            (FRAME["income"], FRAME[["age", "income"]]),
            (AGES[:60], AGES),
            (AGES, AGES[:60].tolist()),
            (COUNTS[:60].copy(), COUNTS),
        ],
    )
    def test_bootstrapping_some_of_the_people_is_refused(self, public, data):
        """P would be made from the very people whom the noise must protect, or from some of them."""
        made = samplers.bootstrap(public)
        nested = [made, samplers.mixture([made, made], [0.5, 0.5]), made.fixed(size=5)]
        assert all(is_private(each, data) for each in nested)
        if not isinstance(public, list | pd.DataFrame):
            assert is_private(samplers.table(a=made, b=samplers.uniform(0, 1)), data)
