"""The policy of a code base holds for all of it, and `privatize check` finds what breaks it."""

from pathlib import Path

import numpy as np
import pytest

from privatize import Budget, Catalogue, instrument, privatize, samplers, seal
from privatize.config import policy as policy_module
from privatize.config.policy import Policy, policy, without_policy
from privatize.errors import PolicyError, SettingsError

UNIT = samplers.uniform(0, 1)
PEOPLE = np.linspace(0, 1, 50)


def average(x):
    return float(np.mean(x))


# --- reading ----------------------------------------------------------------------------------


def test_nothing_is_required_without_a_file(rule, tmp_path):
    """A newcomer without a pyproject.toml is asked for nothing."""
    assert policy() == Policy()
    assert 0 < privatize(epsilon=1e4, gamma=0.2, sampler=UNIT)(average)(PEOPLE) < 1
    assert policy().problems(1e5, 0.5, 0.9, budget=False) == []


def test_every_key(rule):
    """Every key that a policy can have is read."""
    folder = rule(
        """
        max-epsilon = 2
        max-delta = 1e-6
        max-gamma = 0.1
        require-budget = true
        require-sealed = true
        require-catalogue = true
        ledger = "postgresql://host/ledger"
        store = "sqlite:///estimates.db"
        n = {"app:mean" = [100, 1000]}
        """
    )
    assert policy() == Policy(
        max_epsilon=2,
        max_delta=1e-6,
        max_gamma=0.1,
        require_budget=True,
        require_sealed=True,
        require_catalogue=True,
        ledger="postgresql://host/ledger",
        store=str(folder / "estimates.db"),
        sizes={"app:mean": [100, 1000]},
        file=folder / "pyproject.toml",
    )


def test_the_exemption_ends(rule):
    """After `privatize demo`, or an error in it, a program would go on without its policy."""
    rule("max-epsilon = 0.5")
    with without_policy():
        assert policy() == Policy()
    assert policy().max_epsilon == 0.5
    with pytest.raises(ZeroDivisionError), without_policy():
        raise ZeroDivisionError
    assert policy().max_epsilon == 0.5


def test_nearest_file(rule, monkeypatch):
    """The nearest policy from the working folder up holds; a file without a policy is ignored."""
    folder = rule("max-epsilon = 2")
    inner = folder / "a" / "b"
    inner.mkdir(parents=True)
    (folder / "a" / "pyproject.toml").write_text("[project]\nname = 'a'\n")
    monkeypatch.chdir(inner)
    assert policy().max_epsilon == 2
    (inner / "pyproject.toml").write_text("[tool.privatize]\nmax-epsilon = 1\n")
    assert policy().max_epsilon == 2  # read once
    policy_module._read.clear()
    assert policy().max_epsilon == 1
    monkeypatch.chdir(folder / "a")
    assert policy().max_epsilon == 2


def test_read_once(rule):
    """The file is read once for each folder, so that a call does not wait for the disk."""
    folder = rule("max-epsilon = 2")
    first = policy()
    (folder / "pyproject.toml").unlink()
    assert policy() is first


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("max-epsilom = 2", "'max-epsilom', which is not one of max-epsilon, max-delta"),
        ("max_epsilon = 2", "'max_epsilon', which is not one of"),
        ("[tool.privatize.max]\nepsilon = 2", "'max', which is not one of"),
        ('max-epsilon = "2"', "max-epsilon = '2': it must be a number"),
        ("max-epsilon = true", "max-epsilon = True: it must be a number"),
        ("max-epsilon = -1", "max-epsilon = -1: it must be a number"),
        ("max-epsilon = nan", "max-epsilon = nan: it must be a number"),
        ("max-delta = []", "max-delta = .*: it must be a number"),
        ("max-gamma = 2024-01-01", "max-gamma = .*: it must be a number"),
        ("require-budget = 1", "require-budget = 1: it must be true or false"),
        ('require-sealed = "yes"', "require-sealed = 'yes': it must be true or false"),
        ("ledger = 3", "ledger = 3: it must be a path or a URL"),
        ("store = true", "store = True: it must be a path or a URL"),
        ("n = 100", "it must be a table of lists"),
        ('n = {"a:b" = 100}', "it must be a table of lists"),
        ('n = {"a:b" = [0]}', "it must be a table of lists"),
        ('n = {"a:b" = [true]}', "it must be a table of lists"),
        ('n = {"a:b" = [1.5]}', "it must be a table of lists"),
        ("max-epsilon = ", "cannot be read, so its policy is not known"),
    ],
)
def test_mistakes(rule, text, message):
    """A mistake in the policy is an error: a rule that is not understood must not be ignored."""
    rule(text)
    for act in (policy, lambda: privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)):
        with pytest.raises(PolicyError, match=message):
            act()


@pytest.mark.parametrize(
    "content",
    [
        "tool = 3",
        "[tool]\nprivatize = 3",
        "[[tool.privatize]]\nmax-epsilon = 1",
        "tool = []",
        "\x00",
        "[tool",
    ],
)
def test_broken_files(rule, content):
    """A broken file is one clear error, whatever is broken about it."""
    rule(entire=content)
    with pytest.raises(PolicyError):
        policy()


def test_not_utf8(rule):
    """A file in another encoding is one clear error."""
    folder = rule()
    (folder / "pyproject.toml").write_bytes(b"[tool.privatize]\n# \xff\xfe\nmax-epsilon = 1\n")
    with pytest.raises(PolicyError, match="cannot be read"):
        policy()


def test_unreadable(rule, monkeypatch):
    """A file that cannot be read is an error, not the same as a missing file."""
    rule("max-epsilon = 1")

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(PolicyError, match=r"cannot be read, so its policy is not known: .*Permission"):
        policy()


def test_a_deleted_working_folder(rule, tmp_path, monkeypatch):
    """A private function still answers after the working folder was deleted."""
    private = privatize(epsilon=1e4, gamma=0.2, sampler=UNIT)(average)
    deleted = tmp_path / "deleted"
    deleted.mkdir()
    monkeypatch.chdir(deleted)
    deleted.rmdir()
    assert 0 < private(PEOPLE) < 1


# --- the promise ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        ("max-epsilon = 2", {"epsilon": 2.1}, "epsilon=2.1 is more than max-epsilon=2"),
        ("max-epsilon = 0", {}, "epsilon=1 is more than max-epsilon=0"),
        ("max-gamma = 0.1", {"gamma": 0.2}, "gamma=0.2 is more than max-gamma=0.1"),
        (
            "max-delta = 1e-6",
            {"mechanism": "gaussian", "delta": 1e-5},
            "delta=1e-05 is more than max-delta=1e-06",
        ),
        ("max-epsilon = 0.5\nmax-gamma = 0.1", {}, "epsilon=1 .*; gamma=0.2 is more"),
    ],
)
def test_limits(rule, text, settings, message):
    """A promise that is too weak is refused where it is made, in all ways of making one."""
    folder = rule(text)
    wrong = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT} | settings
    with pytest.raises(PolicyError, match=message) as caught:
        privatize(**wrong)(average)
    assert "average() breaks the policy in" in str(caught.value) and str(folder) in str(caught.value)
    with pytest.raises(PolicyError, match=message), instrument("statistics:fmean", **wrong):
        pass
    rule()
    private = privatize(epsilon=0.1, gamma=0.05, sampler=UNIT)(average)
    rule(text)
    with pytest.raises(PolicyError, match=message):
        private.replace(**wrong)


def test_limits_are_allowed(rule):
    """What is exactly at the limit is allowed."""
    rule("max-epsilon = 1\nmax-gamma = 0.2\nmax-delta = 0.0")
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    assert private.replace(epsilon=0.5).settings.epsilon == 0.5
    with pytest.raises(PolicyError):
        private.replace(epsilon=1.0000001)


def test_the_gamma_that_holds_is_within_the_limit(rule):
    """A second look at the same gaps would be charged more gamma than the policy allows."""
    rule("max-gamma = 0.2")
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1, store="memory")(average)
    private.replace(samples="least").estimate(50)
    with pytest.raises(PolicyError, match=r"max-gamma=0\.2\. Another seed="):
        private.replace(samples=100)(np.linspace(0, 1, 50))


def test_no_gamma_is_within_every_limit(rule):
    """A policy that allows no gamma would refuse answers that are differentially private for all pairs."""
    rule("max-epsilon = 1\nmax-gamma = 0")
    assert policy().problems(1, 0, 0.0, budget=True) == []
    with pytest.raises(PolicyError, match=r"gamma=0\.2 is more than max-gamma=0"):
        privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)


def test_limits_at_the_call(rule, tmp_path, monkeypatch):
    """A function that was decorated where no policy held is refused where one does."""
    private = privatize(epsilon=5, gamma=0.2, sampler=UNIT)(average)
    inner = tmp_path / "strict"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[tool.privatize]\nmax-epsilon = 1\n")
    monkeypatch.chdir(inner)
    with pytest.raises(PolicyError, match="max-epsilon"):
        private(PEOPLE)


def test_policy_errors_are_settings_errors():
    """Code that catches wrong settings also catches what the policy forbids."""
    assert issubclass(PolicyError, SettingsError)


def test_require_budget(rule):
    """Without a budget nothing is answered; each way of giving one is enough."""
    rule("require-budget = true")
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    for act in (lambda: private(PEOPLE), lambda: private.release(PEOPLE)):
        with pytest.raises(PolicyError, match=r"has no budget, and the policy has require-budget. Pass"):
            act()
    with pytest.raises(PolicyError, match="has no budget"):
        private(seal(PEOPLE, name="people"))
    budget = Budget("policy-required", epsilon=100, gamma=100, ledger="memory")
    private.replace(budget=budget)(PEOPLE)
    private(seal(PEOPLE, name="people", budget=budget))
    with budget:
        private(PEOPLE)
    assert budget.spent.epsilon == 3
    with pytest.raises(PolicyError, match="has no budget"):
        private(PEOPLE)
    private.estimate(50)  # it needs no data, and so no budget


def test_require_sealed(rule):
    """Data that is not sealed is refused."""
    rule("require-sealed = true")
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    for data in (PEOPLE, [1.0, 2.0]):
        with pytest.raises(
            PolicyError, match=r"not sealed, and the policy has require-sealed. Seal it: seal"
        ):
            private(data)
    assert isinstance(private(seal(PEOPLE, name="people")), float)
    both = privatize(
        epsilon=1, gamma=0.2, data=("x", "y"), sampler=lambda n, rng: (rng.random(n), rng.random(n))
    )(lambda x, y: float(np.mean(x * y)))
    with pytest.raises(PolicyError, match="not sealed"):
        both(PEOPLE, PEOPLE)
    with pytest.raises((PolicyError, TypeError), match="sealed"):
        both(PEOPLE, seal(PEOPLE, name="people"))
    private.estimate(50)


def test_require_catalogue(rule):
    """Questions could be made from answers where the policy wants all of them declared beforehand."""
    rule("require-catalogue = true")
    private = privatize(epsilon=1, gamma=0.2, sampler=UNIT)(average)
    with pytest.raises(PolicyError, match=r"average\(\) was asked outside of a catalogue.*require-catalogue"):
        private(PEOPLE)
    private.estimate(50)  # it is no answer
    proven = privatize(epsilon=1, sensitivity=1.0, sampler=UNIT)(average)
    assert isinstance(proven(PEOPLE), float)
    budget = Budget("policy-catalogue", epsilon=1, gamma=0.3, ledger="memory")
    people = seal(PEOPLE, name="people of the policy", budget=budget)
    catalogue = Catalogue("policy", people, gamma=0.2, sampler=UNIT)
    catalogue.add(average)
    catalogue.calibrate()
    assert isinstance(catalogue.average(epsilon=0.5), float)


def test_a_pickled_function_obeys_the_policy(rule):
    """A private function that comes out of a pickle obeys the policy where it is called."""
    import cloudpickle

    private = privatize(epsilon=5, gamma=0.2, sampler=UNIT)(lambda x: float(np.mean(x)))
    pickled = cloudpickle.dumps(private)
    rule("require-budget = true\nrequire-sealed = true")
    with pytest.raises(PolicyError):
        cloudpickle.loads(pickled)(PEOPLE)
