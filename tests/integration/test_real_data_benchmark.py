"""The benchmark on real data measures what it says; its page would be wrong otherwise.

The data is made up here, and so are the archives: nothing is downloaded.
"""

import json
import tarfile
import zipfile

import numpy as np
import pytest

from privatize.samplers import integers, table, uniform

pd = pytest.importorskip("pandas", reason="pandas is not installed (extra test)")
real_data = pytest.importorskip("tests.benchmarks.real_data")
real_questions = pytest.importorskip("tests.benchmarks.real_questions")

PAGE = "<!-- summary -->old<!-- end of summary -->\nAfter.\n"


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Make a wheel and a source archive with a small file each."""
    folder = tmp_path_factory.mktemp("archives")
    people = pd.DataFrame({"age": [20, 30, 200, None, 50] * 300, "flag": [0, 1, 0, 1, 0] * 300})
    people.to_csv(folder / "people.csv", index=False)
    with zipfile.ZipFile(folder / "some_people-1.0-py3-none-any.whl", "w") as wheel:
        wheel.write(folder / "people.csv", "some_people/data/people.csv")
    with tarfile.open(folder / "more-people-2.0.tar.gz", "w:gz") as source:
        source.add(folder / "people.csv", "more-people-2.0/data/people.csv")
    return folder


def test_records_are_read_from_wheels_and_source_archives(archives):
    """Fails if a set would be read from a wrong file, with missing values, or outside of its bounds."""
    for name in ("some-people", "more_people"):
        made = real_questions.Set(
            name, "people.csv", {"age": integers(0, 120), "flag": integers(0, 1)}, n=100
        )
        frame = real_data.read(made, archives)
        assert len(frame) == 100 and not frame.isna().any().any()
        columns = real_data.columns_of(frame, table(made.columns, frame="dict"))
        assert columns["age"].max() == 120 and columns["age"].dtype.kind == "i"


def test_gaps_of_real_neighbours_are_exact():
    """Fails if the truth that estimates are compared with were not that of replacing one record."""
    data = {"x": np.arange(100.0)}
    found = real_data.gaps(
        real_questions.mean("x"), data, {"x": np.full(5, 1000.0)}, 50, np.random.default_rng(0)
    )
    assert len(found) == 50
    whole = (1000 - np.arange(100.0)) / 100
    assert np.abs(found[:, None] - whole).min(axis=1).max() < 1e-9
    assert (data["x"] == np.arange(100.0)).all()


@pytest.mark.slow
def test_a_question_is_measured_saved_and_written_into_the_page(archives, tmp_path, monkeypatch):
    """Fails if the page's figures were not those of the ways to choose P, before and after a check."""
    people = {"age": uniform(0, 1000), "flag": integers(0, 1)}
    monkeypatch.setitem(real_data.SETS, "people", real_questions.Set("some-people", "people.csv", people))
    asked = [
        real_questions.Question("mean", "people", ("age",), real_questions.mean("age")),
        real_questions.Question(
            "shares by group", "people", ("flag", "age"), real_questions.by_group("age", "flag", [0, 1])
        ),
    ]
    saved, page = tmp_path / "rows.json", tmp_path / "page.md"
    rows = real_data.run(asked, archives, True, saved)
    assert json.loads(saved.read_text())["rows"] == rows
    assert real_data.run(asked, archives, True, saved) == rows  # nothing is measured twice
    ways = rows[0]["ways"]
    four = ["bounds", "family", "learned 0.3", "learned + family 0.3"]
    assert [way for way in ways if "repaired" not in way] == four
    few = {way for way, found in ways.items() if found.get("few")}  # 1,200 people
    assert few == {"bounds + repaired", "learned + family + repaired 0.3"}
    monkeypatch.setattr(real_data, "CHECKS", (0.1, 2.0))
    checked = real_data.run(asked[:1], archives, True, None)
    for way in few:
        found = checked[0]["ways"][way]
        assert found["check"]["epsilon"] == 2
        assert found["delta"] >= 0.99 * checked[0]["ways"][way.replace(" + repaired", "")]["delta"]
    assert "(× " in real_data.details(checked)[1][4]
    assert ways["bounds"]["over"] > 3 and ways["bounds"]["beyond"] == 0  # ages are far inside of 0 to 1000
    for before, after in (("bounds", "family"), ("learned 0.3", "learned + family 0.3")):
        assert ways[after]["delta"] >= ways[before]["delta"]
    page.write_text(PAGE)
    real_data.write(rows, page)
    text, figures = page.read_text(), (tmp_path / "page.csv").read_text()
    assert "old" not in text and "After." in text and "learned + family, ε₀=0.3" in text
    assert figures.count("mean: age (people)") == 1 and "too few people" in figures
    assert (tmp_path / "page.svg").read_text().count("<circle") == 8  # two questions, four ways to choose P
