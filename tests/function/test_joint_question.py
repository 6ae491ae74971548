"""Many questions are one question: with one key, one function, and the guards of all."""

import numpy as np
import pytest

from privatize import samplers
from privatize.errors import SettingsError
from privatize.function.joint_question import joint
from privatize.identity.fingerprint import identity_of
from tests.function.joined import part


def above(x, limit, *, strict=True):
    """Return a share."""
    return (x > limit if strict else x >= limit).mean()


def test_labels_must_differ_and_datasets_agree():
    """Two questions with one label could not be told apart, and one sample has one n."""
    parts = [part(np.mean), part(np.sum)]
    for labels in (["a", "a"], ["a"]):
        with pytest.raises(SettingsError, match="all different"):
            joint("test", parts[0].settings, parts, labels)
    with pytest.raises(SettingsError, match="same n"):
        joint("test", parts[0].settings, [parts[0], part(np.mean, 60)], ["a", "b"])


def test_the_key_has_all_that_the_joint_gaps_depend_on():
    """An estimate for other questions, weights or another name would be taken for this one."""
    mean, total, some = part(np.mean), part(np.sum), part(above, arguments={"limit": 20.0})
    settings, weights = mean.settings, ((0,), (0,))

    def key(parts, labels=("a", "b"), name="test", **changes):
        asked = joint(name, settings, parts, labels).under(**changes)
        return identity_of([asked.facts(), weights])

    keys = [
        key([mean, total]),
        key([total, mean]),
        key([mean, some]),
        key([mean, part(above, arguments={"limit": 21.0})]),
        key([mean, part(np.sum, mechanism="gaussian", delta=1e-6)]),
        key([mean, total], ("a", "c")),
        key([mean, total], name="other"),
        key([mean, total], seed=3),
        key([mean, total], sampler=samplers.uniform(0, 99)),
    ]
    assert len(set(keys)) == len(keys)
    assert key([mean, total]) == keys[0]


def test_arguments_are_filled_in_as_a_call_has_them():
    """Another argument would be calibrated than the one that is asked."""
    x = np.arange(50.0)
    parts = [
        part(above, arguments={"limit": 10.0}),
        part(above, arguments={"limit": 10.0, "strict": False}),
        part(np.quantile, arguments={"q": 0.5}),
        part(lambda x, rng: x.mean() + rng.normal(), coins=("rng",)),
    ]
    outputs = joint("test", parts[0].settings, parts, list("abcd")).function(5)(x)
    assert outputs == (0.78, 0.8, 24.5, 24.5 + np.random.default_rng(5).normal())
