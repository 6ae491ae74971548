"""The demonstration shows a private answer in the first minute, with any promise."""

from privatize.cli.parser import main


def test_demo(capsys):
    """The demo shows three private answers and what they cost."""
    assert main(["demo"]) == 0
    out = capsys.readouterr().out
    for title in ("the average age", "age group", "linear classifier"):
        assert title in out
    for fact in ("raw answer", "private answer", "k=544 of m=557", "global bound", "scale", "none known"):
        assert fact in out
    assert out.count("private answer") == 3


def test_demo_with_other_promises(capsys):
    """Another promise can be tried, and a wrong one gets one line."""
    assert main(["demo", "--epsilon", "0.1", "--gamma", "0.2"]) == 0
    assert "k=72 of m=79" in capsys.readouterr().out
    assert main(["demo", "--gamma", "2"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("privatize: gamma=2.0") and shown.err.count("\n") == 1


def test_demo_for_programs(facts):
    """A script that shows the demo elsewhere would have to parse text."""
    found = facts("demo", "--gamma", "0.2")
    assert [each["function"] for each in found["functions"]] == ["average_age", "age_groups", "train"]
    assert len(found["functions"][1]["private"]) == 5 and found["functions"][2]["global"] is None
    assert 0.5 < found["right"]["raw"] <= 1
