"""The maintainer's guide is true: its picture, the files that it names, and the call that it describes."""

import re
import sys
from pathlib import Path

import numpy as np

from privatize import Budget, privatize, samplers, seal
from tests import packages

PAGES = [Path(__file__).parents[1] / name for name in ("docs/design.md", "CONTRIBUTING.md")]
GUIDE = PAGES[0].read_text(encoding="utf-8")


def test_the_picture_shows_the_imports():
    """A picture of packages that is out of date would mislead a new maintainer."""
    drawn = packages.PICTURE.read_text(encoding="utf-8")
    assert drawn == packages.drawn(), "draw it again: python -m tests.packages --write"


def test_the_files_that_are_named_exist():
    """A reader of the guide would look for files that have moved."""
    root = packages.ROOT.parent
    for page in PAGES:
        for named in re.findall(r"`([\w/.]+(?:\.py|\.json|\.md|\.svg|/))`", page.read_text(encoding="utf-8")):
            places = [root / named, packages.ROOT / named, root / "docs" / named]
            assert any(place.exists() for place in places) or list(packages.ROOT.rglob(named)), named


def test_the_names_that_are_used_exist():
    """A recipe that names a function which is gone cannot be followed."""
    files = [*packages.ROOT.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]
    source = set(re.findall(r"\w+", "\n".join(file.read_text(encoding="utf-8") for file in files)))
    for page in PAGES:
        for named in re.findall(r"`([A-Za-z_][\w.]*)(?:\(.*?\))?`", page.read_text(encoding="utf-8")):
            assert named.rpartition(".")[2] in source | {"py", "md", "svg", "json", "toml"}, named


def test_every_package_is_listed():
    """Nobody would know the job of a package that is missing in the table."""
    listed = re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)
    public = ["__main__", "testing", "sklearn", "sums", "constraints"]
    assert sorted(listed + public) == sorted(packages.LAYERS)


def test_the_call_that_is_walked_through(monkeypatch):
    """A reader who follows the guide through the code would not find each station, in that order."""
    walk = re.findall(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`", GUIDE, re.MULTILINE)
    assert len(walk) > 20
    stations, reached, root = list(walk), [], f"{packages.ROOT}/"
    monkeypatch.setenv("PRIVATIZE_STORE", "memory")
    budget = Budget("guide", epsilon=10, gamma=0.5, ledger="memory")

    @privatize(mechanism="laplace", epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100), budget=budget)
    def average_age(ages):
        return ages.mean()

    def note(frame, event, _):
        place = (frame.f_code.co_filename.removeprefix(root), frame.f_code.co_qualname)
        if event == "call" and stations and place == stations[0]:
            reached.append(stations.pop(0))

    people = seal(np.random.default_rng(0).integers(18, 90, size=1000), name="survey")
    earlier = sys.getprofile()
    sys.setprofile(note)
    try:
        average_age(people)
    finally:
        sys.setprofile(earlier)
    assert reached == walk
