"""Estimates are recalled only for what is the same question."""

import numpy as np
import pytest

from privatize import configure, privatize, samplers
from privatize.data import records
from privatize.errors import FragileEstimateWarning, SettingsError
from privatize.function import question
from privatize.function.question import Question
from privatize.identity.fingerprint import token
from privatize.storage.estimates import open_store
from tests.cases import for_each
from tests.data.drawn_frames import EMPTY, PAIRS, pa, pd, pl, private


def mean(data):
    return float(np.asarray(data).mean())


def key(f, data):
    """Return an estimate's key for data of a kind."""
    made = f.definition
    call, template = made.binding.bind_public((), {}), f.calibrator.template(made)
    return token(Question(made, template, call, 9, template.match(records.describe(data))).facts(), "f")


@for_each("name", EMPTY)
def test_an_empty_dataset_has_the_key_of_the_full_one(name):
    """What was calibrated ahead of time must be what the call finds."""
    sampler, data = EMPTY[name]
    f = private(sampler, mean)
    empty = data[:0] if isinstance(data, list | np.ndarray) else records.head(data, 0)
    assert key(f, data) == key(f, empty)


@pytest.mark.parametrize("name", ["Series", "polars DataFrame", "list", "two levels of names"])
def test_a_call_uses_what_was_calibrated_ahead(name):
    """Calibrating twice would cost twice, and give two estimates."""
    sampler, data = EMPTY[name]
    f = private(sampler, mean)
    empty = data[:0] if isinstance(data, list) else records.head(data, 0)
    ahead = f.estimate(records.count(data), like=empty)
    assert f.release(data).sensitivity == ahead.value
    assert f.forget(records.count(data), like=empty) == 1


def test_other_dtypes_have_the_same_key():
    """The private data is cast to what P draws, so integers need no estimate of their own."""
    f = private(PAIRS, mean)
    keys = {
        key(f, pd.DataFrame({"a": pd.array([1], dtype=dtype), "b": [2.0]}))
        for dtype in ("int64", "float64", "Int64", "Float32", "bool")
    }
    assert len(keys) == 1


def test_other_names_and_containers_have_other_keys():
    """A function may depend on the names of the columns, and on the library."""
    f = private(PAIRS, mean)
    row = np.zeros((1, 2))
    kinds = [
        pd.DataFrame(row, columns=["a", "b"]),
        pd.DataFrame(row, columns=["b", "a"]),
        pd.DataFrame(row, columns=["a", "c"]),
        pd.DataFrame(row),
        pd.DataFrame(row, columns=["0", "1"]),
        pl.DataFrame(row, schema=["a", "b"]),
        pa.table({"a": [0.0], "b": [0.0]}),
        row,
        row.tolist(),
    ]
    assert len({key(f, data) for data in kinds}) == len(kinds)


@pytest.mark.parametrize("library", ["numpy", "pandas"])
def test_another_version_of_what_the_function_gets_is_a_miss(library, monkeypatch):
    """A function that only calls a frame's methods would keep its estimate after an update of the library."""
    pytest.importorskip(library)
    P = samplers.table(a=samplers.uniform(0, 1))
    first = privatize(epsilon=1, gamma=0.3, sampler=P, seed=1)(lambda d: float(d.sum().iloc[0]))
    first.estimate(10)
    assert first.remembers(10)
    real = question.origin
    monkeypatch.setattr(question, "origin", lambda name: "another" if name == library else real(name))
    assert not first.remembers(10)


def slope(data):
    x, y = data.T
    return float(np.polyfit(x, y, 1)[0])


def fragile(**options):
    """Return a private slope, whose estimate is fragile."""
    square = samplers.uniform([0, 0], [6, 100])
    return privatize(epsilon=1, gamma=0.05, sampler=options.pop("sampler", square), seed=4, **options)(slope)


class TestStress:
    def test_a_fragile_estimate_warns_once_in_a_process_and_again_in_the_next(self, tmp_path):
        """Nobody would learn that the noise hangs on P, or hear of it at every call."""
        configure(stress=True)
        store = str(tmp_path / "estimates.sqlite")
        f = fragile(store=store)
        with pytest.warns(
            FragileEstimateWarning, match=r"slope\(\), n=200: .* if `value\[0\]` is half"
        ) as caught:
            first = f.estimate(200)
        assert caught[0].filename == __file__
        assert f.estimate(200) is first  # warnings are errors in tests
        f(np.ones((200, 2)) * np.arange(200)[:, None] / 50)
        with pytest.warns(FragileEstimateWarning):
            again = fragile(store=store).estimate(200)  # as another process would find it
        assert again.stress.tried == first.stress.tried
        assert again.stress.rows == first.stress.rows
        configure(stress=False)
        assert fragile(store=store).estimate(200).stress.rows == first.stress.rows

    def test_what_was_calibrated_without_a_stress_test_is_not_evaluated_again(self, tmp_path):
        """A remembered estimate would cost time."""
        store = str(tmp_path / "estimates.sqlite")
        without = fragile(store=store).estimate(200)
        configure(stress=True)
        found = fragile(store=store).estimate(200)
        assert found.stress is None
        assert found.value == without.value

    def test_no_private_data_is_used(self):
        """The warning, which anybody may see, would depend on private data."""
        configure(stress=True)
        seen = []
        for data in (np.random.default_rng(1).random((200, 2)), np.zeros((200, 2)) + [[1, 2]] * 200):
            data[0] = 5.0, 90.0
            f = fragile()
            with pytest.warns(FragileEstimateWarning) as caught:
                f(data)
            seen.append(str(caught[0].message))
            open_store("memory").forget()
        assert seen[0] == seen[1]

    def test_families_have_none(self):
        """Each member would be changed again, at the cost of many calibrations."""
        configure(stress=True)
        square = samplers.uniform([0, 0], [6, 100])
        found = fragile(sampler=[square, samplers.uniform([2, 0], [4, 100])]).estimate(200)
        assert found.stress is None

    def test_configure_takes_a_flag(self):
        """A typing error would switch the test on or off."""
        with pytest.raises(SettingsError, match="stress='no' is not True or False"):
            configure(stress="no")
