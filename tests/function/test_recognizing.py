"""What one process found out about a function is used in another only if it computes the same there.

Another process, where a set of strings has another order, is made here by a variable that no fingerprint
knows, because its name is computed.
"""

import itertools
import pickle

import numpy as np
import pytest

from privatize import Budget, check_fit, estimate_sensitivity, plan, privatize, samplers, seal, sums
from privatize.calibration import factor_scan, run
from privatize.calibration.run import Memory
from privatize.errors import NotReproducibleError
from privatize.function import catalogue_state
from privatize.function.question import Question
from privatize.function.recognizing import mark_of, recognize, same, signature
from tests.cases import for_each
from tests.function.catalogued import catalogue
from tests.function.processes import by_process, is_second

UNIT = samplers.uniform(0, 1)
NUMBERS = itertools.count()
N = 300  # with gamma=0.2 and epsilon=1, 25 blocks of 12 people


def heavy(x):
    """Move far, and further for few people."""
    return float((x**40).mean()) * 1e3


def new_budget(path, name):
    return Budget(name, epsilon=20, gamma=0.9, ledger=f"{path}/ledger.db")


class TestFits:
    @pytest.fixture(autouse=True)
    def quiet(self, monkeypatch):
        """Leave the noise out, by which a test would fail now and then."""
        monkeypatch.setattr(factor_scan, "_noise", lambda _: 0)

    def checked(self, path, name):
        """Check a function on people that are known by their name, as each process does."""
        budget = new_budget(path, name)
        people = seal(np.linspace(0, 1, N), name=name, version="1", budget=budget)
        made = privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1, store=None)(by_process)
        return made, check_fit(made, people, epsilon=1), budget

    def test_a_check_of_another_process(self, process, tmp_path):
        """The factor of another function would be used, and there would be too little noise."""
        name = f"fits {next(NUMBERS)}"
        _, found, budget = self.checked(tmp_path, name)
        spent = budget.spent.epsilon
        process("third")  # where the function computes the same
        assert self.checked(tmp_path, name)[1] == found
        assert budget.spent.epsilon == spent
        process("second")
        with pytest.raises(NotReproducibleError, match=r"by_process\(\) gives other answers"):
            self.checked(tmp_path, name)
        assert budget.spent.epsilon == spent

    def test_a_pickled_check(self, process, tmp_path):
        """It would be brought from another process."""
        made, found, _ = self.checked(tmp_path, f"fits {next(NUMBERS)}")
        again = pickle.loads(pickle.dumps(found))
        assert made.replace(fit=again).estimate(N).value == made.replace(fit=found).estimate(N).value
        process("second")
        made = privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1, store=None)(by_process)
        with pytest.raises(NotReproducibleError, match="has checked it"):
            made.replace(fit=again).estimate(N)


class TestCatalogues:
    def declared(self, path, name, **more):
        """Declare the same questions, as each process does."""
        people = seal(
            np.linspace(0, 1, 200), name=name, version="1", sampler=UNIT, budget=new_budget(path, name)
        )
        made = catalogue(people, name, **{"store": f"{path}/store.db"} | more)
        for question in (heavy, by_process):
            made.add(question)
        made.calibrate()
        return made

    @for_each("more", [{}, {"store": "memory", "seed": 1}])
    def test_declared_in_another_process(self, process, tmp_path, more):
        """Its noise would be for another function, and γ would be charged for one function alone."""
        process("first")
        name = f"people {next(NUMBERS)}"
        value = self.declared(tmp_path, name, **more).by_process.estimate().value
        process("third")
        assert self.declared(tmp_path, name, **more).by_process.estimate().value == value
        process("second")
        with pytest.raises(NotReproducibleError, match=r"by_process\(\) gives other answers"):
            self.declared(tmp_path, name, **more)

    def test_the_largest_gap_of_each_question_is_measured_again(self, process, tmp_path, monkeypatch):
        """The joint gap is that of one question: all others could compute anything."""
        monkeypatch.setattr(catalogue_state, "recognize", lambda *_: None)  # as a ledger without signatures
        monkeypatch.setattr(run, "check_drift", lambda *_, **__: None)  # which has missed it
        name = f"people {next(NUMBERS)}"
        self.declared(tmp_path, name)
        process("third")
        self.declared(tmp_path, name)
        process("second")
        with pytest.raises(NotReproducibleError, match=r"by_process, n=200: .* another process"):
            self.declared(tmp_path, name)


class TestEstimates:
    def people(self, path):
        """Return sealed numbers, and their budget."""
        name = f"people {next(NUMBERS)}"
        budget = new_budget(path, name)
        return seal(np.linspace(0, 1, 50), name=name, version="1", budget=budget), budget

    def test_gamma_is_charged_for_each_function(self, process, tmp_path):
        """With one seed the pairs are the same, but not those on which two functions fail."""
        (people, budget), charged = self.people(tmp_path), []
        for kind in ("first", "third", "second", "second"):
            process(kind)
            privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1, store=None)(by_process)(people)
            charged.append(budget.spent.gamma)
        assert charged == pytest.approx([0.2, 0.2, 0.4, 0.4])

    def test_looking_again_is_not_another_function(self, tmp_path):
        """Every further look would be charged as if it had other pairs."""
        people, budget = self.people(tmp_path)
        for gamma in (0.05, 0.1, 0.02):
            privatize(epsilon=1, gamma=gamma, sampler=UNIT, store=tmp_path / "s.db")(by_process)(people)
        keys = {row["key"] for row in budget.history().to_dict("records")}
        assert len(keys) == 1

    def test_a_number_that_is_not_the_largest(self, process):
        """With the largest of several gaps, one pair shows but one number."""

        def two(x):
            return np.array([x.mean(), np.median(x) * (1.5 if is_second() else 0)])

        options = {"n": 50, "sampler": UNIT, "norm": "sup", "plan": plan(gamma=0.2), "seed": 1}
        found = estimate_sensitivity(two, **options)
        known = Memory(found.gaps, found.structure, [found.plan], checked=found.m, elsewhere=True)
        assert estimate_sensitivity(two, **options, memory=known).value == found.value
        process("second")
        with pytest.raises(NotReproducibleError, match="another process"):
            estimate_sensitivity(two, **options, memory=known)


def rare(x):
    """Move further in the second kind of process, but only for a tenth of the records."""
    return float((x < 0.5).mean() + (10 if is_second() else 0) * (x > 0.9).mean())


def test_a_function_that_differs_for_some_records_only(process, tmp_path):
    """The pair with the largest gap may have none of these records."""

    def estimate():
        return privatize(epsilon=1, gamma=0.05, sampler=UNIT, store=tmp_path / "s.db")(rare).estimate(100)

    before = estimate().value
    process("third")
    assert estimate().value == before
    process("second")
    with pytest.raises(NotReproducibleError, match="another process"):
        estimate()


def asked(function, sampler=UNIT, n=200, **more):
    made = privatize(epsilon=1, gamma=0.2, sampler=sampler, **more)(function)
    template, call = made.calibrator.template(made.definition), made.definition.binding.bind_public((), {})
    return Question(made.definition, template, call, n, None)


def of_array(x):
    """Return two numbers, which swap their places in the second kind of process."""
    found = [x.mean(), np.median(x) * 1000]
    return np.array(found[::-1] if is_second() else found)


def of_mixed_scales(x):
    """Return a large number, and a small one that is another in the second kind of process."""
    return {"income": x.mean() * 1e5, "share": float((x < (0.4 if is_second() else 0.5)).mean())}


def normalized(x):
    """Return numbers of which one is always 1."""
    found = np.array([1.0, x.mean() * (3 if is_second() else 1)])
    return found / found.max()


def of_many(x):
    """Return many numbers, of which one is another in the second kind of process."""
    found = np.sort(x)
    found[7] *= 1.01 if is_second() else 1
    return found


def of_few(x):
    """Fail for few people."""
    return by_process(x) if len(x) > 1500 else [1.0][1]


@for_each(
    ("function", "n"),
    [
        (by_process, 200),
        (of_array, 50),
        (of_mixed_scales, 50),
        (normalized, 50),
        (of_many, 200),
        (of_few, 2000),
    ],
)
def test_functions_that_are_told_apart(process, function, n):
    """Noise, or γ, would be for one function, and the answers from another."""
    process("first")
    known = signature(asked(function, n=n))
    process("third")
    again = signature(asked(function, n=n))
    assert known == again and mark_of(known) == mark_of(again)
    process("second")
    other = signature(asked(function, n=n))
    assert not same(known, other) and mark_of(known) != mark_of(other)


def test_keys_may_come_in_any_order():
    """A function that returns the same in another order would be refused."""
    runs = []

    def shares(x):
        runs.append(len(x))
        names = ["low", "high"] if len(runs) > 4 else ["high", "low"]
        return {name: float((x < {"low": 0.5, "high": 0.9}[name]).mean()) for name in names}

    assert signature(asked(shares)) == signature(asked(shares)) and runs == [200] * 8


def test_constants_are_not_shown():
    """A ledger would have a mean of the private data, which somebody subtracts."""
    secret = 0.8765

    def centered(x):
        return x.mean() - secret

    found = signature(asked(centered))
    assert found == pytest.approx(signature(asked(lambda x: x.mean())), abs=1e-12)
    assert len(found) == 3 and not any(abs(each) > 0.2 for each in found)


def test_functions_that_fail(process):
    """They would have the mark of another one, and γ would be charged once for all of them."""
    assert signature(asked(lambda x: [1.0][1])) == ()
    assert mark_of(()) != mark_of(())
    assert len(signature(asked(lambda x: x.mean() if x[0] > 0.3 else [1.0][1]))) == 3


def test_functions_that_may_not_end():
    """The program would wait for ever for a function that is evaluated with a time limit elsewhere."""
    runs = []

    def noted(x):
        runs.append(len(x))
        return x.mean()

    limited = asked(noted, timeout=1)
    assert signature(limited) == ()
    recognize(limited, (1.0, 2.0, 3.0), None, "has checked it")
    assert runs == []
    assert len(signature(asked(noted))) == 3 and runs == [200] * 4


def test_sums_about_very_many_people():
    """Their datasets would not fit into memory: sums are calibrated from two records of each pair."""
    assert len(signature(asked(sums.means(), n=10**15))) == 3


def test_p_with_a_size_of_its_own(tmp_path):
    """A P that uses more records than other public datasets have could not be used with a seed."""
    P = UNIT.fixed(size=1500)
    budget = new_budget(tmp_path, f"budget {next(NUMBERS)}")
    people = seal(np.linspace(0, 1, 2000), name=f"people {next(NUMBERS)}", version="1", budget=budget)
    made = privatize(epsilon=1, gamma=0.3, sampler=P, seed=1, store=None)(by_process)
    assert isinstance(made(people), float)


def test_checks_of_an_earlier_version():
    """What somebody has paid for could not be read."""
    made = privatize(epsilon=1, gamma=0.2, sampler=UNIT, seed=1, store=None)(by_process)
    found = check_fit(made, np.linspace(0, 1, N), epsilon=1)
    facts = found.facts()
    del facts["signatures"]
    old = type(found).of_facts(facts)
    assert made.replace(fit=old).estimate(N).value == made.replace(fit=found).estimate(N).value
