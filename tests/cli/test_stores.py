"""`privatize store` lists, copies and forgets estimates, and overwrites nothing."""

import json
import os

import numpy as np
import pytest

from privatize import plan, privatize, samplers
from privatize.errors import CalibrationError
from privatize.outputs.describe import describe
from privatize.storage.estimates import Store
from tests.cli.started import started


def test_store_list(store, run, facts):
    """Nobody would know what is remembered."""
    out, _ = run("store", "list")
    assert out.count("  ready\n") == 3 and out.count("  refused\n") == 1
    assert "3 estimates and 1 refused trial in" in out
    assert max(map(len, out.splitlines())) <= 110 + 60  # the names of functions may be long
    found = facts("store", "list")["estimates"]
    assert {entry["key"] for entry in found} == {entry["key"] for entry in store.entries()}
    assert sorted(entry["n"] for entry in found) == [20, 20, 21, 22]
    assert [entry["pairs"] for entry in found] == [79] * 4
    assert sorted(entry["state"] for entry in found) == ["ready", "ready", "ready", "refused"]


def test_store_show(store, run, facts, wrong):
    """What an estimate is about, and which plans were read from it, could not be seen."""
    keys = {entry["n"]: entry["key"] for entry in store.entries() if not entry["failure"]}
    out, _ = run("store", "show", keys[21])
    assert keys[21] in out and "uniform(0, 1)" in out and "gamma=0.2, m=79, k=72" in out
    found = facts("store", "show", keys[21][:12])
    gaps = np.sort(store.read(keys[21]).gaps)
    assert found["n"] == 21 and found["plans"][0]["gap"] == gaps[71]
    (refused,) = [entry["key"] for entry in store.entries() if entry["failure"]]
    assert "ZeroSensitivityError" in run("store", "show", refused)[0]
    assert "There is no estimate 'zz'" in wrong("store", "show", "zz")
    assert "There is no estimate ''" in wrong("store", "show", "")


def _raw_mean(x):
    return float(x.mean())


def _constant(x):
    return 1.0


def _rare(x):
    return float(x.max() > 0.97)


def test_refused_trials_are_called_that(app, run, facts):
    """A bound that was refuted, or a family that was refused, would look like work to be finished."""
    one, two = samplers.uniform(0, 1), samplers.uniform(0, 2)
    promise = {"epsilon": 1, "gamma": 0.2, "store": app / "estimates.db"}
    known = {"epsilon": 1, "sampler": one, "store": app / "estimates.db"}
    refused = [
        privatize(**known, sensitivity=0.01)(_raw_mean),
        privatize(**promise, sampler=[one, two])(_constant),
    ]
    for each in refused:
        for _ in range(2):
            with pytest.raises(CalibrationError) as caught:
                each.estimate(20)
        assert caught.value.args  # also the second time
    out, _ = run("store", "list")
    assert out.count("  refused\n") == 2 and "unfinished" not in out and "ready" not in out
    assert "  member of " in out and "2 refused trials and 2 members of families in" in out
    (bound,) = [each["key"] for each in facts("store", "list")["estimates"] if "raw_mean" in each["function"]]
    assert "BoundError: sensitivity=0.01 is not a bound" in " ".join(run("store", "show", bound)[0].split())
    # A correct bound is tried under the same key, and a family may be ready for another plan.
    privatize(**known, sensitivity=0.05)(_raw_mean).estimate(20)
    shown = " ".join(run("store", "show", bound)[0].split())
    assert "which do not refute the bound 0.05 state ready, 1 refused" in shown
    assert run("store", "forget", "--function", "_constant")[0].startswith(
        "forgot 1 refused trial and 2 members of families in"
    )


def test_ready_for_one_plan_and_refused_for_another(app, run):
    """An estimate that is in use would be called refused, because another gamma was."""
    f = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), store=app / "estimates.db", seed=1)(
        _rare
    )
    with pytest.raises(CalibrationError):
        f.estimate(30)
    assert "1 refused trial in" in run("store", "list")[0]
    f.replace(gamma=0.05).estimate(30)
    out, _ = run("store", "list")
    assert "ready, 1 refused" in out and "1 estimate in" in out


def test_a_family_is_counted_with_its_members(app, run, facts):
    """Three estimates would be listed where a user made one."""
    family = [samplers.uniform(0, 1), samplers.uniform(0, 2)]
    privatize(epsilon=1, gamma=0.2, sampler=family, store=app / "estimates.db")(_raw_mean).estimate(20)
    out, _ = run("store", "list")
    assert "1 estimate and 2 members of families in" in out
    key = next(each["key"] for each in facts("store", "list")["estimates"] if not each["looks"])
    assert out.count(f"member of {key[:10]}") == 2
    assert run("store", "forget", key)[0].startswith("forgot 1 estimate and 2 members of families in")


@pytest.mark.parametrize("name", ["shop/figures.py:average_age", "shop.figures:average_age"])
def test_forget_a_function_by_its_file(app, run, name):
    """The name that `estimate` takes would be unknown to `store forget`."""
    run("estimate", "shop.figures:average_age", "-n", "40")
    assert run("store", "forget", "--function", name)[0].startswith("forgot 1 estimate in")


def test_the_beginning_of_a_key_must_be_unique(tmp_path, run, wrong, facts):
    """The wrong estimate would be forgotten."""
    url = tmp_path / "a.db"
    made = Store(url)
    for key in ("abcdefghijklm1", "abcdefghijklm2", "abc"):
        made.open(key, seed=1, label="f", n=5, facts={"function": "m.f"})
    made.database.close()
    assert "the beginning of 2 keys (abcdefghijklm1, abcdefghijklm2)" in wrong(
        "store", "forget", "abcd", "--store", url
    )
    assert facts("store", "forget", "abc", "--store", url)["forgotten"] == ["abc"]
    assert "abcdefghijklm1" in run("store", "list", "--store", url)[0]


def test_store_forget(store, run, facts, wrong):
    """A wrong estimate could never be removed, or others would be removed with it."""
    keys = {entry["n"]: entry["key"] for entry in store.entries() if not entry["failure"]}
    assert "What to forget?" in wrong("store", "forget")
    assert "What to forget?" in wrong("store", "forget", keys[20], "--all")
    assert "no estimate 'zz'" in wrong("store", "forget", keys[20], "zz")
    assert len(store.entries()) == 4
    assert facts("store", "forget", keys[20][:12], keys[20])["forgotten"] == [keys[20]]
    assert "Nothing is remembered of 'nobody'" in wrong("store", "forget", "--function", "nobody")
    label = store.entries()[0]["facts"]["function"]
    assert len(facts("store", "forget", "--function", "mean")["forgotten"]) == 2
    assert "constant" in label or len(store.entries()) == 1
    assert run("store", "forget", "--all")[0].startswith("forgot 1 refused trial in")
    assert "nothing is remembered" in run("store", "forget", "--all")[0]


def test_export_and_import(store, app, run, facts, wrong):
    """Estimates could not be copied to a machine without a network."""
    run("store", "export", "exported.db")
    assert sorted(file.name for file in app.glob("exported*")) == ["exported.db"]
    assert not list(app.glob(".privatize*"))
    assert "not overwritten" in wrong("store", "export", "exported.db")
    assert "no folder" in wrong("store", "export", "no/such.db")
    assert "is not a file" in wrong("store", "export", "postgresql://me:hush@host/db")
    found = facts("store", "import", "exported.db", "--store", "other.db")
    assert (found["copied"], found["there"]) == (4, 0)
    again = facts("store", "import", "exported.db", "--store", "other.db")
    assert (again["copied"], again["there"]) == (0, 4)
    there = Store(app / "other.db")
    for entry in store.entries():
        mine, theirs = store.read(entry["key"]), there.read(entry["key"])
        assert np.array_equal(mine.gaps, theirs.gaps) and mine.looks == theirs.looks
        assert (mine.seed, mine.structure, mine.failure) == (theirs.seed, theirs.structure, theirs.failure)
        assert mine.checked == theirs.checked
    assert there.entries() == store.entries()
    there.database.close()
    keys = [entry["key"] for entry in store.entries()][:2]
    assert facts("store", "export", "two.db", keys[0][:10], keys[1])["copied"] == 2
    # The exported file is a store itself.
    assert len(facts("store", "list", "--store", "sqlite:///two.db")["estimates"]) == 2
    assert "no such file" in wrong("store", "import", "nothing.db")
    assert "cannot be written" in wrong("store", "import", "exported.db", "--store", app / "shop")


def test_an_exported_store_is_recalled_from(app, run, facts):
    """An exported estimate would be made again on the machine that needs it."""
    run("estimate", "shop.figures:average_age", "-n", "40")
    run("store", "export", "exported.db")
    environment = os.environ | {"PRIVATIZE_STORE": "exported.db"}
    done = started("estimate", "shop.figures:average_age", "-n", "40", "--json", env=environment)
    assert json.loads(done.stdout)["rows"][0]["remembered"] is True


def test_damaged_estimates_are_skipped_and_reported(store, app, run, facts):
    """Damaged estimates would be exported, or would keep sound ones from being exported."""
    keys = sorted(entry["key"] for entry in store.entries())
    with store.database.transaction() as execute:
        execute("UPDATE gaps SET checksum = 'x' WHERE key = ?", keys[0])
        execute("UPDATE estimates SET facts = '{' WHERE key = ?", keys[1])
    out, err = run("store", "list", code=1)
    assert out.count("  damaged\n") == 1 and len(out.splitlines()) == 6
    out, err = run("store", "show", keys[0], code=1)
    assert "checksum" in err and keys[0] in out
    assert "damaged" in facts("store", "show", keys[1], code=1)
    found = facts("store", "export", "sound.db", code=1)
    assert sorted(found["damaged"]) == keys[:2] and found["copied"] == 2
    assert {entry["key"] for entry in Store(app / "sound.db").entries()} == set(keys[2:])
    with store.database.transaction() as execute:
        execute("UPDATE estimates SET version = 99")
    found = facts("store", "export", "none.db", code=1)
    assert len(found["damaged"]) == 4 and not (app / "none.db").exists()
    assert not list(app.glob(".privatize*"))


class TestCopying:
    """Copying from one store to another never overwrites anything."""

    PLANS = (plan(0.2), plan(0.3), plan(0.1))

    def made(self, url, seed=7, gaps=None, looks=(), failure=None, **facts):
        found = Store(url)
        found.open("key", seed=seed, label="f", n=5, facts={"function": "m.f"} | facts)
        for start, piece in (gaps or {}).items():
            found.save("key", seed, start, np.array(piece, dtype=float), describe(0.0), facts.get("weights"))
        for look in looks:
            found.look("key", look)
        if failure:
            found.fail(
                "key", seed, failure, {"kind": "PairError", "message": "no", "numbers": {}, "notes": []}
            )
        return found

    def test_an_estimate_with_another_seed_is_not_overwritten(self, tmp_path):
        """The gaps of one seed would be read with the plans of another."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2]}, self.PLANS[:1])
        two = self.made(tmp_path / "b.db", 8, {0: [3, 4]}, self.PLANS[1:2])
        before = two.read("key")
        assert one.copy_to(two, "key") == "other"
        assert two.read("key").seed == 8 and two.read("key").looks == before.looks
        assert two.read("key").gaps.tolist() == [3, 4]

    def test_an_estimate_that_is_there_stays_as_it_is(self, tmp_path):
        """Copying an estimate would damage a sound store."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2, 3]}, self.PLANS[:1], "*", checked=3)
        for name, gaps, weights in (("b.db", {0: [1]}, {}), ("c.db", {0: [9]}, {"weights": [2]})):
            two = self.made(tmp_path / name, 7, gaps, self.PLANS[1:2], "plan", checked=1, **weights)
            before = two.entries()
            assert one.copy_to(two, "key") == "there" and two.entries() == before
            found = two.read("key")
            assert found.gaps.tolist() == gaps[0] and found.looks == [self.PLANS[1]]
            assert list(found.failure) == ["plan"] and found.checked == 1

    def test_everything_is_copied(self, tmp_path):
        """Without the plans that were read, gamma would be too small; a failure would be tried again."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2, 3], 8: [9]}, self.PLANS[:2], "*", weights=[1])
        two = Store(tmp_path / "b.db")
        assert one.copy_to(two, "key") == "copied" and two.entries() == one.entries()
        assert two.read("key").looks == [*self.PLANS[:2]] and list(two.read("key").failure) == ["*"]
        assert two.read("key").weights == [1]
        assert np.array_equal(two.read("key").gaps, one.read("key").gaps, equal_nan=True)

    def test_a_damaged_estimate_is_not_overwritten(self, tmp_path):
        """The damage in the other store would be hidden."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2]})
        two = self.made(tmp_path / "b.db", 7, {0: [1]})
        with two.database.transaction() as execute:
            execute("UPDATE gaps SET checksum = 'x'")
        with pytest.raises(ValueError, match="damaged there"):
            one.copy_to(two, "key")
        with pytest.raises(KeyError):
            one.copy_to(two, "other key")

    def test_a_copy_that_would_be_damaged_is_undone(self, tmp_path):
        """Half of an estimate would be left behind."""
        one = self.made(tmp_path / "a.db", 7, {0: [1, 2]})
        two = Store(tmp_path / "b.db")
        with two.database.transaction() as execute:  # left over from something else
            execute("INSERT INTO gaps VALUES ('key', 5, ?, 'x')", b"\0" * 8)
        with pytest.raises(ValueError, match="damaged there"):
            one.copy_to(two, "key")
        assert two.entries() == []
