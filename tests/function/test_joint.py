"""Many questions are calibrated together, with one sample of pairs and one promise."""

import functools
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from privatize import Bernstein, Exponential, Gaussian, Laplace, samplers
from privatize.calibration.evaluators.joint import weight_of
from privatize.errors import CalibrationError, InfiniteSensitivityError, SettingsError
from privatize.function.joint import pilot
from privatize.storage.estimates import Store, open_store
from tests.cases import for_each
from tests.function.joined import MEMBERS, found, part, spread, together, values

PROMISED, WIDE = samplers.uniform(0, 100), samplers.uniform(0, 300)


def rare(x, at):
    """Return a number, or fail on about one pair in a hundred."""
    if x[at] < 1:
        raise ValueError(at)
    return x[at : at + 5].mean()


def above(x, limit):
    """Return a share."""
    return (x > limit).mean()


class TestPilot:
    def test_weights_are_the_largest_gaps(self):
        """A weight that is not about a question's own gaps would give all others more noise."""
        seen = pilot(together(MEMBERS), 3)
        assert (seen.problems, seen.pairs, seen["spread"].numbers) == ({}, 256, 3)
        assert 1.8 < seen["mean"].weight < 2.1
        assert seen["total"].weight == pytest.approx(50 * seen["mean"].weight, rel=0.05)
        assert seen["mean"].seconds > 0
        assert "total" in repr(seen) and "The calibration will take about" in repr(seen)
        assert pilot(together(MEMBERS), 3).weights == seen.weights != pilot(together(MEMBERS), 4).weights

    def test_what_cannot_be_calibrated_is_reported_by_name(self):
        """Nobody could tell which of sixty members to drop."""
        functions = {
            "mean": np.mean,
            "constant": lambda x: 1.0 + 0 * len(x),
            "fails": lambda x: 1 / int(x[0] > 50),
            "keys": lambda x: {"a": 1.0} if x[0] > 50 else {"b": x[1]},
            "text": lambda x: str(x),
            "infinite": lambda x: np.inf * x[0],
            "floor": lambda x: 1.0 + 0 * len(x),
        }
        seen = pilot(together(functions, options={"floor": {"min_sensitivity": 2.0}}), 3)
        assert list(seen.problems) == ["constant", "fails", "keys", "text", "infinite"]
        assert "ZeroDivisionError" in seen["fails"].cause
        assert "min_sensitivity" in seen["constant"].problem
        assert "different structure" in seen["keys"].problem
        assert "not finite" in seen["infinite"].problem
        assert (seen["floor"].weight, seen["mean"].failed) == (2.0, 0)
        assert 0.2 < seen["fails"].failed < 0.8
        with pytest.raises(CalibrationError, match=r"fails: [0-9]+ of"):
            _ = seen.weights

    def test_answers_that_differ_for_identical_data_are_reported(self):
        """Its gaps would say nothing about its private run."""
        calls = iter(range(10**6))
        seen = pilot(together({"mean": np.mean, "counter": lambda x: x[0] + next(calls)}, version="1"), 3)
        assert list(seen.problems) == ["counter"]
        assert "two different answers" in seen["counter"].problem

    def test_a_list_that_is_cut_ends_with_its_dots(self):
        """A message would end in a comma and a full stop, as if something were missing."""
        many = {"many": lambda x: {str(each): x[1] for each in range(10 if x[0] > 50 else 1)}}
        seen = pilot(together(many), 3)["many"].problem
        assert ", ... The keys, labels" in seen and ", ." not in seen.replace(", ...", "")

    def test_a_few_failures_are_allowed(self):
        """A question that fails on one pair in a hundred has an estimate like any other."""
        seen = pilot(together({"mean": np.mean, "rare": lambda x: x[:2].mean() / (x[0] > 1)}), 3)
        assert seen.problems == {}
        assert 0 < seen["rare"].failed < 0.03
        assert "rare" in seen["rare"].cause

    def test_failures_that_are_too_many_together_are_reported(self):
        """The calibration would fail after it was declared and paid for."""
        functions = {f"rare {at}": functools.partial(rare, at=at) for at in range(8)} | {"mean": np.mean}
        seen = pilot(together(functions), 3)
        assert list(seen.problems) == [f"rare {at}" for at in range(8)]
        assert "together with others" in seen["rare 1"].problem

    def test_a_family_has_the_weights_of_its_widest_member(self):
        """With weights of the first P alone, all questions would get the noise of one of them."""
        one, wide = (pilot(together(MEMBERS, sampler=each), 3).weights for each in (PROMISED, WIDE))
        seen = pilot(together(MEMBERS, sampler=[PROMISED, WIDE]), 3)
        assert seen.pairs == 256
        for own, large, small in zip(seen.weights, wide, one, strict=True):
            assert abs(own[0] - large[0]) < 8 < 16 < own[0] - small[0]

    @pytest.mark.slow
    @for_each("broken", [lambda x: time.sleep(60), lambda x: os._exit(3)])
    def test_a_function_that_loses_every_worker_is_reported(self, broken):
        """The error would be about workers, and would not say which question has stopped them."""
        seen = pilot(together({"mean": np.mean, "broken": broken}, timeout=0.5, workers=2), 3)
        assert list(seen.problems) == ["broken"]
        assert "in a row were lost" in seen["broken"].problem

    @pytest.mark.slow
    def test_a_function_that_hangs_is_reported(self):
        """A catalogue with one such member would never be calibrated, without a word."""
        functions = {"mean": np.mean, "hangs": lambda x: time.sleep(60 * (x[0] > 50)) or x[0]}
        seen = pilot(together(functions, timeout=1.0, workers=2), 3)
        assert list(seen.problems) == ["hangs"]
        assert "timeout=1" in seen["hangs"].problem


class TestCalibrated:
    def test_all_questions_get_an_estimate_from_the_same_pairs(self):
        """Each would need its own pairs and its own gamma otherwise."""
        own = found(together(MEMBERS))
        assert {(each.seed, each.gamma, each.m) for each in own} == {(7, 0.1, 219)}
        assert {each.norm for each in own} == {"l1", "weighted l1"}  # of one number, and of several
        assert own[4].value == pytest.approx(50 * own[0].value, rel=0.05)
        assert own[1].structure.names() == ["mean", "quartiles 0", "quartiles 1"]
        assert "gamma=0.1" in repr(own[0])
        assert dict(own[0].card().rows)["calibrated"].startswith("with other questions")

    def test_a_joint_estimate_of_one_question_is_its_own(self):
        """The joint way would be another calibration, with another promise."""
        for function in MEMBERS.values():
            alone = part(function, seed=7, mechanism=Laplace(scaled="none"))
            gaps = alone.calibrate(7, None).gaps
            weight = weight_of(5)
            joint = found(together({"only": function}), weights=((5,),))[0].joint.gaps
            assert joint.tolist() == (gaps / weight).tolist()

    def test_it_is_the_same_in_other_processes(self):
        """Shares would depend on where they are computed."""
        more = {"options": {"above": {"arguments": {"limit": 50.0}}}}
        here, there = (together(MEMBERS | {"above": above}, workers=each, **more) for each in ("inline", 2))
        weights = pilot(here, 3).weights
        assert pilot(there, 3).weights == weights
        own = values(here, weights=weights)
        open_store("memory").forget()
        assert values(there, weights=weights) == own

    def test_other_weights_and_seeds_are_other_estimates(self):
        """Gaps that were seen with other weights, or in another declaration, would be used again."""
        asked = together({"mean": np.mean, "total": np.sum})
        first = values(asked, 7, ((0,), (90,)))
        assert values(asked, 7, [[0], [90]]) == first
        assert values(asked, 8, ((0,), (90,))) != first
        assert values(asked, 7, ((0,), (60,))) != first

    def test_every_mechanism(self):
        """A member would be measured in another norm than the one that its noise is for."""
        functions = {
            "density": lambda x, points: np.array([(x <= 100 * at).mean() for at in np.atleast_1d(points)]),
            "score": lambda x, response: -abs((x < response).sum() - 25.0),
            "scaled": spread,
            "gaussian": spread,
            "coins": lambda x, rng: x.mean() + rng.normal(),
        }
        options = {
            "density": {"mechanism": Bernstein(lattice=4)},
            "score": {"mechanism": Exponential(responses=[20, 50, 80])},
            "scaled": {"mechanism": Laplace(scaled="relative")},
            "gaussian": {"mechanism": Gaussian(scaled="total"), "delta": 1e-6},
            "coins": {"coins": ("rng",)},
        }
        own = found(together(functions, options=options))
        assert [each.norm for each in own] == ["l1", "range", "weighted l1", "weighted l2", "l1"]
        assert [len(each.shape.powers) for each in own] == [0, 0, 3, 3, 0]
        assert own[2].shape.powers[0] < 0 == max(own[2].shape.powers)
        for (name, function), share in zip(functions.items(), own, strict=True):
            alone = part(function, **options[name]).calibrate(9, None)
            assert 0.5 < share.value / alone.value < 4, (
                name
            )  # other pairs, and a little more for all together

    def test_a_family_has_the_largest_estimate(self):
        """The promise would hold under the first P only."""
        asked = together(MEMBERS, sampler=[PROMISED, WIDE])
        own = found(asked)
        for share in own:
            (_, small), (_, large) = share.members
            assert share.value == large.value > 2 * small.value
            assert (share.gamma, share.coin_seed) == (0.1, large.coin_seed)

    def test_weights_of_numbers_mean_the_same_under_every_member(self):
        """Under one P the weight of a number would be that of another one, and the norm another norm."""

        def turned(x):
            facts = {"mean": x.mean(), "total": x.sum()}
            return facts if x[0] < 150 else dict(reversed(facts.items()))

        far, options = samplers.uniform(200, 300), {"turned": {"mechanism": Laplace(scaled="relative")}}
        functions = {"turned": turned, "largest": np.max}
        assert found(together(functions, sampler=[PROMISED, far]))  # without weights keys may be in any order
        with pytest.raises(CalibrationError, match="in another order"):
            found(together(functions, options=options, sampler=[PROMISED, far]))

    def test_what_changes_while_functions_run_is_refused_by_name(self):
        """They would be measured in another state than the one in which they are asked."""
        notes = [50.0]

        def noting(x):
            notes[0] = x[0]
            return x.mean()

        functions = {"mean": np.mean, "noting": noting}
        with pytest.raises(CalibrationError, match=r"noting: .*notes"):
            values(together(functions), weights=((0,), (0,)))

    def test_a_version_attests_its_own_question_only(self, tmp_path):
        """What nobody attests could change without notice, if another member has a version."""
        with open(tmp_path / "file", "w") as file:  # noqa: PTH123
            functions = {"file": lambda x: x.mean() + 0 * len(file.name), "mean": np.mean}
            weights = ((0,), (0,))
            assert values(together(functions, options={"file": {"version": "1"}}), weights=weights)
            with pytest.raises(SettingsError, match=r"file depends on"):
                values(together(functions, options={"mean": {"version": "1"}}), weights=weights)

    def test_progress_is_shown(self, capsys):
        """Sixty questions take a while, and nobody could tell whether anything happens."""
        asked = together({"mean": np.mean, "total": np.sum}, progress=True)
        values(asked)
        shown = capsys.readouterr().err
        assert "test, 2 questions, pilot" in shown
        assert "test, 2 questions:" in shown
        laws = samplers.any_of(half=samplers.uniform(0, 50), **{"a name " + 9 * "and more ": PROMISED})
        values(together({"mean": np.mean}, sampler=laws, progress=True))
        shown = capsys.readouterr().err
        assert "test, 1 question, pilot, P 2 of 2:" in shown
        assert "test, 2 of 2: a name and more and…, 1 question:" in shown

    def test_a_failing_member_is_named(self):
        """Nobody could tell which of sixty members fails."""
        functions = {"mean": np.mean, "fails": lambda x: 1 / int(x[0] > 50)}
        with pytest.raises(InfiniteSensitivityError, match="fails: ZeroDivisionError"):
            values(together(functions), weights=((0,), (0,)))

    @pytest.mark.slow
    def test_a_killed_process_continues(self, tmp_path):
        """After kill -9 the declared seed and weights must give the estimates that they would have given."""
        path, command = tmp_path / "store.db", [sys.executable, "-m", "tests.function.joined"]
        child = subprocess.Popen([*command, str(path)])
        deadline = time.monotonic() + 120
        while pairs(path) < 100 and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        assert 100 <= pairs(path) < 557
        again, other = (
            subprocess.run([*command, str(each)], capture_output=True, check=True, timeout=300).stdout
            for each in (path, tmp_path / "other.db")
        )
        assert pairs(path) == 557
        assert again == other


def pairs(path):
    """Return how many pairs are in a store."""
    return sum(entry["pairs"] for entry in Store(path).entries()) if path.exists() else 0


@for_each("workers", [2, "inline"])
def test_a_member_that_hides_behind_another_must_not_drift(workers):
    """Its own gaps could be anything, as long as another member has larger ones."""
    calls = iter(range(10**6))

    def tired(x):
        return x.mean() * (1 if next(calls) < 100 else 0.5)

    functions = {"total": np.sum, "tired": tired}
    with pytest.raises(CalibrationError, match="tired: The function gave another answer"):
        values(together(functions, version="1", workers=workers), weights=((0,), (60,)))
