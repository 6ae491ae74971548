"""A P is written to a file and read again, and a file is never run."""

import json

import numpy as np
import pytest

from privatize import samplers
from privatize.data import records
from privatize.errors import SamplerError
from privatize.identity.declared import declare
from privatize.samplers import load
from privatize.samplers.loading import made_from
from tests.cases import for_each
from tests.samplers import columns as tables
from tests.samplers import combinations as combined
from tests.samplers.test_contract import NUMBERS, make
from tests.samplers.test_layouts import COLUMNS
from tests.samplers.test_learned import learned, table

CODES = [*NUMBERS, *combined.WITHOUT_FUNCTIONS, *tables.WITHOUT_FUNCTIONS]
FILE = "P.json"


def rng(seed=0):
    return np.random.default_rng(seed)


@for_each("code", CODES)
def test_a_p_that_is_loaded_is_the_p_that_was_saved(code, tmp_path):
    """A team would calibrate under different P, and a ledger would refuse to add their answers."""
    P = make(code)
    if any(word in code for word in ("scipy", "tz=", "load(", "family")):
        with pytest.raises(SamplerError, match="cannot be saved"):
            P.save(tmp_path / FILE)
        return
    P.save(tmp_path / FILE)
    back = load(tmp_path / FILE)
    assert back == P and declare(back).digest == declare(P).digest
    assert records.equal(back.draw(7, rng(1)), P.draw(7, rng(1)))


@for_each("frame", ["pandas", "dict"])
def test_a_learned_p_is_saved_with_all_that_was_learned(frame, tmp_path):
    """A team could not share what one of them has paid for."""
    within, data = table(frame="dict")
    dated = samplers.table(COLUMNS, frame=frame)
    for P in (
        learned(within, 4000, [("x", "y")], data),
        learned(dated),
        learned(samplers.uniform(0, 1, size=2)),
    ):
        P.save(str(tmp_path / FILE))
        back = load(str(tmp_path / FILE))
        assert back == P and (back.epsilon, back.n, back.noise) == (P.epsilon, P.n, P.noise)
        assert declare(back).digest == declare(P).digest
        assert records.equal(back.draw(50, rng(2)), P.draw(50, rng(2)))


def halved(values):
    return values / 2


@for_each(
    "sampler",
    [
        samplers.uniform(0, 1).map(halved),
        samplers.table(a=samplers.uniform(0, 1), b=lambda columns: columns["a"]),
        samplers.labelled(samplers.uniform(0, 1, size=2), lambda X: X[:, 0]),
        samplers.bootstrap(np.arange(9.0)),
        samplers.from_function(lambda n, rng: rng.random(n)),
        samplers.table(a=samplers.bootstrap(np.arange(9.0))),
        learned(samplers.table(a=samplers.uniform(0, 1)))["a"],
        learned(samplers.uniform(0, 1).map(halved, support=(0, 0.5))),
    ],
)
def test_a_p_with_functions_or_data_is_not_saved(sampler, tmp_path):
    """The file would make another P than the one that was saved."""
    with pytest.raises(SamplerError, match="cannot be saved"):
        sampler.save(tmp_path / FILE)
    assert not (tmp_path / FILE).exists()


@for_each(
    "code",
    [
        "__import__('os').system('touch ran')",
        "open('ran', 'w')",
        "uniform.__globals__['os']",
        "(lambda: uniform(0, 1))()",
        "[uniform(0, 1) for _ in (1,)]",
        "uniform(0, 1).map(print)",
        "uniform(0, 1).save('ran')",
        "uniform(0, 1).describe()",
        "bootstrap(1)",
        "from_function(print)",
        "uniform(*[0, 1])",
        "uniform(**{'low': 0})",
        "uniform(0, 1",
        "uniform",
        "1",
        "",
        None,
        7,
        "(" * 5000 + ")" * 5000,
    ],
)
def test_a_file_is_never_run(code, tmp_path, monkeypatch):
    """Whoever sends a colleague a file would run code on their machine."""
    monkeypatch.chdir(tmp_path)
    for content in ({"code": code}, {"within": code, "learned": {}}):
        (tmp_path / FILE).write_text(json.dumps({"privatize": "P", "version": 1} | content))
        with pytest.raises(SamplerError):
            load(FILE)
    assert [each.name for each in tmp_path.iterdir()] == [FILE]
    with pytest.raises(SamplerError):
        made_from(code)


def test_a_file_that_was_changed_is_refused(tmp_path):
    """A P that draws nothing sensible would be calibrated."""
    P = learned(samplers.table(a=samplers.uniform(0, 1), b=samplers.boolean()))
    P.save(tmp_path / FILE)
    good = json.loads((tmp_path / FILE).read_text())

    def changed(**more):
        return good | {"learned": good["learned"] | more}

    groups = good["learned"]["groups"]
    for wrong in (
        {},
        [],
        good | {"version": 2},
        good | {"privatize": "Q"},
        good | {"within": "uniform(0, 1)"},
        changed(columns=good["learned"]["columns"][:1]),
        changed(groups=groups[:1]),
        changed(groups=[[groups[0][0], groups[0][1][:-1]], groups[1]]),
        changed(groups=[[groups[0][0], [-5, *groups[0][1][1:]]], groups[1]]),
        changed(groups=[*groups, groups[0]]),
        changed(mixed="all"),
        {name: value for name, value in good.items() if name != "within"},
    ):
        (tmp_path / FILE).write_text(json.dumps(wrong))
        with pytest.raises(SamplerError):
            load(tmp_path / FILE)
    (tmp_path / FILE).write_text("nonsense")
    with pytest.raises(SamplerError, match="Write it again"):
        load(tmp_path / FILE)
