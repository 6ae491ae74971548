"""Classes count by what a user wrote in them, and not by what Python adds while they are used."""

import enum

from privatize import privatize, samplers
from privatize.identity.classes import SKIPPED
from privatize.identity.fingerprint import fingerprint
from privatize.identity.leftovers import Snapshot
from tests.function.sentinels import private
from tests.identity.left import PRIVATE, PROMISE
from tests.identity.projects import Louder, Shifted


def test_objects_of_users_subclasses_are_encoded_each_time():
    """A mechanism or P that changed would be answered with the noise of the old one."""
    ours = samplers.uniform(0, 1)
    for made, name, value in (
        (Louder(), "factor", 2.0),
        (Shifted(ours.low, ours.high), "by", 5.0),
    ):
        before = fingerprint(made)
        assert fingerprint(made) == before != fingerprint(ours)
        object.__setattr__(made, name, value)
        assert fingerprint(made) != before


def test_flags_are_the_same_after_they_were_used():
    """Python caches what it computes from flags, and a function with flags would be refused."""

    class Options(enum.Flag):
        A = 1
        B = 2

    def f(x):
        return x if ~Options.A and Options.A | Options.B else -x

    before = fingerprint(f)
    f(1)
    assert fingerprint(f) == before


class TestWhatPythonAdds:
    """What Python itself adds to classes while a program runs does not count as left behind."""

    def test_combinations_of_flags(self):
        """A function that combines flags would be refused, and charged, in every second process."""

        class Option(enum.IntFlag):
            A, B, C = 1, 2, 4

        class Plain(enum.Flag):
            A, B, C = 1, 2, 4

        def mean(x):
            if private(x):  # as if the estimate was remembered from another process
                assert Option.A | Option.B and Plain.A | Plain.C
            return float(x.mean())

        assert isinstance(privatize(**PROMISE)(mean)(PRIVATE), float)
        before = Snapshot(mean, [])
        assert ~Option.B and ~Plain.A and before.put_back() == []

    def test_all_that_the_fingerprint_skips(self):
        """Attributes that are no part of a function's fingerprint would count as left behind."""

        class Own:
            pass

        def uses():
            return Own

        before = Snapshot(uses, [])
        for name in SKIPPED - {"__dict__", "__weakref__"}:
            setattr(Own, name, {})
        assert before.put_back() == []
        Own.other = 1
        assert before.put_back() == ["an attribute of Own"] and not hasattr(Own, "other")
