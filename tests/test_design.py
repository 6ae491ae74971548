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
    """A picture of packages that nobody draws again leads a new maintainer astray."""
    drawn = packages.PICTURE.read_text(encoding="utf-8")
    assert drawn == packages.drawn(), "draw it again: python -m tests.packages --write"


def test_the_files_that_are_named_exist():
    """A guide that names files which have moved is worse than none."""
    root = packages.ROOT.parent
    for page in PAGES:
        for named in re.findall(r"`([\w/.]+(?:\.py|\.json|\.md|\.svg|/))`", page.read_text(encoding="utf-8")):
            places = [root / named, packages.ROOT / named, root / "docs" / named]
            assert any(place.exists() for place in places) or list(packages.ROOT.rglob(named)), named


def test_every_package_is_listed():
    """A package that the table leaves out has no job that anybody knows."""
    listed = re.findall(r"^\| `(\w+)` \|", GUIDE, re.MULTILINE)
    public = ["__main__", "testing", "sklearn", "sums", "constraints"]
    assert sorted(listed + public) == sorted(packages.LAYERS)


def test_the_call_goes_the_way_that_is_described(monkeypatch):
    """Whoever follows the guide's walk through the code must meet each station, in that order."""
    walk = re.findall(r"^\d+\. `([\w/]+\.py)`, `([\w.]+)`", GUIDE, re.MULTILINE)
    assert len(walk) > 20
    stations, passed, root = list(walk), [], f"{packages.ROOT}/"
    monkeypatch.setenv("PRIVATIZE_STORE", "memory")
    budget = Budget("guide", epsilon=10, gamma=0.5, ledger="memory")

    @privatize(mechanism="laplace", epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100), budget=budget)
    def average_age(ages):
        return ages.mean()

    def note(frame, event, _):
        place = (frame.f_code.co_filename.removeprefix(root), frame.f_code.co_qualname)
        if event == "call" and stations and place == stations[0]:
            passed.append(stations.pop(0))

    people = seal(np.random.default_rng(0).integers(18, 90, size=1000), name="survey")
    earlier = sys.getprofile()
    sys.setprofile(note)
    try:
        average_age(people)
    finally:
        sys.setprofile(earlier)
    assert passed == walk
