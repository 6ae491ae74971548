"""The library is known by its content and its tags, so a refactoring changes no key."""

import shutil
import sys
import types

from privatize import Exponential, Laplace, samplers
from privatize.function.members import Member
from privatize.identity import fingerprint as fingerprinting
from privatize.identity import library, objects
from privatize.identity.fingerprint import fingerprint


def test_keys_have_no_patch_versions_and_no_modules_of_ours(monkeypatch):
    """A patch release of Python, or moving a class of ours to another module, would make estimates stale."""
    before = fingerprint([Laplace(), samplers.uniform(0, 1)]), fingerprint(Exponential([1, 2]))
    monkeypatch.setattr(sys, "version_info", (*sys.version_info[:2], 99, "final", 0))
    fingerprinting._header.cache_clear()
    moved = types.ModuleType("privatize.elsewhere")
    monkeypatch.setitem(sys.modules, "privatize.elsewhere", moved)
    for kind in (Laplace, Exponential, type(samplers.uniform(0, 1))):
        setattr(moved, kind.__qualname__, kind)
        monkeypatch.setattr(kind, "__module__", "privatize.elsewhere")
    objects._encoded.clear()
    after = fingerprint([Laplace(), samplers.uniform(0, 1)]), fingerprint(Exponential([1, 2]))
    monkeypatch.undo()
    fingerprinting._header.cache_clear()
    objects._encoded.clear()
    assert before == after


class Renamed:
    tag = "a name that stays"


def test_our_classes_are_named_by_tags():
    """A class of ours that is renamed keeps its tag, and with it the estimates that were made."""
    assert library.tag_of(Renamed) == "a name that stays"
    assert library.tag_of(Laplace) == "laplace 2"
    names = {}
    for module in list(sys.modules.values()):
        for kind in vars(module).values() if module.__name__.startswith("privatize.") else ():
            if kind is Member:  # in workers its private function stands for it, so both have one tag
                continue
            if isinstance(kind, type) and (getattr(kind, "immutable", False) or hasattr(kind, "_identity")):
                assert names.setdefault(library.tag_of(kind), kind) is kind, kind


def test_the_librarys_code_is_known_by_its_content(tmp_path, monkeypatch):
    """Two processes with different code must not share work."""
    ours = library.sources()
    there = tmp_path / "privatize"
    shutil.copytree(library._ROOT, there, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(library, "_ROOT", there)
    read = library.sources.__wrapped__  # without the cache
    assert read() == ours
    changed = there / "mechanisms" / "base.py"
    changed.write_text(changed.read_text(encoding="utf-8") + "# another\n", encoding="utf-8")
    assert read() != ours
