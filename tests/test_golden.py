"""A change of what is drawn or measured needs a new version, because stored estimates are then stale."""

import importlib
import inspect
import json
import pkgutil

import numpy as np
import pytest
from scipy import stats

import privatize.samplers
from privatize import Laplace, mechanisms, samplers
from privatize.calibration import streams
from privatize.identity import fingerprint, functions
from privatize.identity import origin as origins
from privatize.samplers.base import KINDS, Kind, traits_of
from tests import golden
from tests.cases import for_each

KNOWN = json.loads(golden.FILE.read_text(encoding="utf-8"))
ROWS = list(golden.rows())
CASES = golden.sampler_cases()


def kinds():
    """Return all classes of samplers in the library."""
    found = set(KINDS)
    for module in pkgutil.iter_modules(privatize.samplers.__path__):
        inside = vars(importlib.import_module(f"privatize.samplers.{module.name}")).values()
        found |= {each for each in inside if isinstance(each, type) and issubclass(each, Kind)}
    return sorted((each for each in found - {Kind} if not inspect.isabstract(each)), key=str)


def parts_of(sampler):
    """Return a sampler and everything that it is made of."""
    yield sampler
    for part in sampler.parts() if hasattr(sampler, "parts") else ():
        yield from parts_of(part)


@for_each(("what", "name", "found"), ROWS, ids=[f"{what}-{name}"[:80] for what, name, _ in ROWS])
def test_what_is_drawn_and_measured_is_pinned(what, name, found):
    """A stored estimate would be used for pairs that this library no longer draws, with too little noise."""
    assert name in KNOWN.get(what, {}), "python -m tests.golden --write adds the rows of a new version."
    assert KNOWN[what][name] == found, (
        f"{name} draws or measures something else than version {what!r} did. If that is wanted, raise the "
        f"version (draw_version, gap_version or streams.SCHEME) and run python -m tests.golden --write."
    )


DRAWING = [kind for kind in kinds() if kind is not samplers.Family]  # which draws nothing itself


@for_each("kind", DRAWING, ids=lambda kind: kind.__name__)
def test_every_kind_of_sampler_is_pinned(kind):
    """The draws of a kind without pinned digests could change unnoticed."""
    assert isinstance(vars(kind).get("tag"), str), f"{kind} needs a tag of its own"
    assert kind.draw_version >= 1 and kind.law_version >= 1
    assert any(type(part) is kind for case in CASES.values() for part in parts_of(case))


def test_every_constructor_is_pinned():
    """A public function that makes samplers could come without any pinned draws."""
    made = " ".join(CASES)
    other = {"Distribution", "Sampler", "Maybe", "OneOf", "draw", "as_sampler", "any_of", "Family", "load"}
    for name in set(samplers.__all__) - other:
        assert f"{name}(" in made, name


def test_tags_are_different():
    """Two kinds with one tag would share stored estimates and be one P in a ledger."""
    tags = [kind.tag for kind in kinds()]
    tags += [kind.tag for kind in (mechanisms.Laplace, mechanisms.Gaussian, mechanisms.Exponential)]
    tags += [mechanisms.Bernstein.tag, mechanisms.Blocks.tag]
    assert len(set(tags)) == len(tags)


class TestVersionsAreInTheKey:
    """The pinned versions would be of no use if estimates were not stored under them."""

    @pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
    def test_of_samplers(self, kind, monkeypatch):
        """After a fix in a sampler, estimates from before the fix would still be used."""
        names = [name for name, case in CASES.items() if any(type(p) is kind for p in parts_of(case))]
        before, same = ({name: fingerprint.fingerprint(CASES[name]) for name in names} for _ in range(2))
        assert before == same
        monkeypatch.setattr(kind, "draw_version", kind.draw_version + 1)
        made = golden.sampler_cases()
        for name in names:
            assert fingerprint.fingerprint(made[name]) != before[name], name

    @pytest.mark.parametrize("name", ["Laplace", "Gaussian", "Exponential", "Bernstein"])
    def test_of_mechanisms(self, name, monkeypatch):
        """After a fix in how gaps are measured, estimates from before the fix would still be used."""
        kind = getattr(mechanisms, name)
        some = {"Exponential": {"responses": ["a", "b"]}}.get(name, {})
        before = fingerprint.fingerprint(kind(**some))
        monkeypatch.setattr(kind, "gap_version", kind.gap_version + 1)
        assert fingerprint.fingerprint(kind(**some)) != before

    def test_of_users_subclasses(self, monkeypatch):
        """A user's subclass draws with our code: after a fix in it, old estimates would still be used."""
        ours = type(samplers.uniform(0, 1))

        class Mine(ours):
            pass

        before = fingerprint.fingerprint(Mine)
        monkeypatch.setattr(ours, "draw_version", 2)
        assert fingerprint.fingerprint(Mine) != before

    def test_of_samplers_that_users_functions_make(self, monkeypatch):
        """A function that draws with our code would not be calibrated again after a fix in that code."""

        def through_a_module(n, rng):
            return samplers.uniform(0, 1).draw(n, rng)

        make = samplers.normal

        def through_a_function(n, rng):
            return make(0, 1).draw(n, rng)

        for function in (through_a_module, through_a_function):
            before = fingerprint.fingerprint(function)
            with monkeypatch.context() as patch:
                patch.setattr(functions, "sources", lambda: "other code")
                assert fingerprint.fingerprint(function) != before

    def test_modules_of_classes_are_not(self):
        """Moving a class to another module would throw away everything that was calibrated."""
        before = [fingerprint.fingerprint(make()) for make in (lambda: samplers.uniform(0, 1), Laplace)]
        kind = type(samplers.uniform(0, 1))
        place = kind.__module__, kind.__qualname__
        try:
            kind.__module__, kind.__qualname__ = "privatize.samplers.elsewhere", "Flat"
            after = [fingerprint.fingerprint(make()) for make in (lambda: samplers.uniform(0, 1), Laplace)]
        finally:
            kind.__module__, kind.__qualname__ = place
        assert after == before

    @pytest.mark.parametrize("library", ["scipy"])
    def test_of_libraries_whose_draws_are_not_pinned(self, library, monkeypatch):
        """Another version of SciPy may draw other records, and the old estimate would still be used."""
        P = samplers.as_sampler(stats.gamma(2))
        before = fingerprint.fingerprint(P)
        monkeypatch.setattr(origins, "_version", lambda top: "another version")
        origins.origin.cache_clear()
        after = fingerprint.fingerprint(P)
        monkeypatch.undo()
        origins.origin.cache_clear()
        assert after != before


@for_each("name", [name for name, case in CASES.items() if traits_of(case).streamable])
def test_draws_of_blocks_are_those_of_datasets(name):
    """The pairs that a worker draws at once would differ from those that are drawn one by one."""
    rngs = [streams.stream(19, streams.RECORDS, at) for at in (3, 3)]
    parts = [CASES[name].draw(n, rngs[0]) for n in golden.SIZES]
    block = CASES[name].draw(sum(golden.SIZES), rngs[1])
    assert np.concatenate(parts).tobytes() == block.tobytes()
    assert rngs[0].random() == rngs[1].random()


def test_the_pins_notice_a_change(monkeypatch):
    """Digests that never change would pin nothing."""
    name = "uniform(0, 1)"
    before = golden.draws(golden.sampler_cases()[name])
    kind = type(samplers.uniform(0, 1))
    monkeypatch.setattr(kind, "draw", lambda self, n, rng: rng.random(n) * (1 + 1e-8))
    assert golden.draws(samplers.uniform(0, 1)) != before
    drawn = np.random.default_rng(1).random(5)
    assert golden.canonical(drawn) == golden.canonical(np.nextafter(drawn, 1))  # but not the last bit
    assert golden.canonical(drawn) != golden.canonical(drawn.astype(np.float32))
    assert streams.SCHEME >= 1
