"""`privatize plan` compares the bounds, and says so if one is out of reach."""

import math

from privatize import plan


def test_plan_shows_all_bounds_side_by_side(run, facts):
    """Whoever chooses a bound would have to run each of them by hand."""
    out, _ = run("plan", "--gamma", "0.05")
    assert out.splitlines()[2].split()[:4] == ["tolerance", "balanced", "557", "544"]
    assert max(map(len, out.splitlines())) <= 110
    found = facts("plan", "--gamma", "0.05", "--cost", "2s", "--workers", "4")
    assert len(found["rows"]) == 6
    for row in found["rows"]:
        made = plan(0.05, row["mode"], bound=row["bound"])
        assert (row["m"], row["k"], row["rho"], row["gamma"]) == (made.m, made.k, made.rho, 0.05)
        assert row["evaluations"] == 2 * made.m
        assert row["seconds"] == 2 * math.ceil(made.m / 4) * 2


def test_plan_for_a_number_of_pairs(facts, run):
    """Whoever has time for 1000 pairs would not learn which gamma they support."""
    found = facts("plan", "--m", "1000")
    gammas = {row["bound"]: row["gamma"] for row in found["rows"]}
    assert gammas == {bound: plan(m=1000, bound=bound).gamma for bound in ("tolerance", "dkw", "marginal")}
    assert "0.007884" in run("plan", "--m", "1000")[0]


def test_a_plan_out_of_reach_says_so_in_its_row(run, facts, wrong):
    """One bound that is out of reach would hide the two that are not."""
    out, err = run("plan", "--gamma", "0.05", "--m", "557")
    assert "out of reach" in out and "gamma >= 0.0738" in out and err == ""
    rows = facts("plan", "--gamma", "0.05", "--m", "557")["rows"]
    assert [("problem" in row) for row in rows] == [False, True, False] and rows[1]["least_m"] == 1305
    message = wrong("plan", "--gamma", "0.001", "--m", "100")
    assert "tolerance 10,229" in message and "marginal 999" in message
    assert "support gamma >= 0.0550" in wrong("plan", "--gamma", ".001", "--m", "100", "--bound", "tolerance")
    assert "gamma=2.0 is not a share" in wrong("plan", "--gamma", "2")


def test_a_plan_for_a_group(run, facts, wrong):
    """Whoever promises gamma to a minority would get the plan for everybody."""
    found = facts("plan", "--gamma", "0.05", "--share", "0.1", "--bound", "tolerance")
    assert [row["m"] for row in found["rows"]] == [plan(0.005, m).m for m in ("least", "balanced")]
    assert {row["gamma"] for row in found["rows"]} == {0.005} and found["share"] == 0.1
    out, _ = run("plan", "--gamma", "0.05", "--share", "0.1")
    assert "gamma=0.05 is for each group that is a share 0.1 of P" in out
    assert "share=3.0 is not the share" in wrong("plan", "--gamma", "0.05", "--share", "3")
    assert "pass gamma, too" in wrong("plan", "--m", "1000", "--share", "0.1")
