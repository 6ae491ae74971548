"""Settings of libraries that change what code computes are part of the key."""

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.identity.change_guard import guard
from privatize.identity.fingerprint import fingerprint
from privatize.identity.settings import pandas_options

pd = pytest.importorskip("pandas")


def test_options_of_pandas_count():
    """With other options, pandas treats missing values and strings differently."""
    pytest.importorskip("pandas", minversion="2")

    def f(d):
        return d["age"].mean()

    key, guarded = fingerprint(f), guard(f, ["numpy", "pandas"])
    before = pd.get_option("mode.string_storage")
    try:
        pd.set_option("mode.string_storage", "pyarrow" if before == "python" else "python")
        assert fingerprint(f) != key
        assert guarded is None or not guarded.same()
    finally:
        pd.set_option("mode.string_storage", before)
    assert fingerprint(f) == key


def test_settings_of_numpy_count():
    """A function that catches errors returns something else if numpy does not raise them."""

    def f(x):
        try:
            return float((x / 0.0).max())
        except FloatingPointError:
            return float(x.sum())

    private = privatize(epsilon=1, gamma=0.2, sampler=samplers.uniform(1, 2), seed=1)(f)
    with np.errstate(all="raise"):
        private.estimate(20)
        assert private.remembers(20)
    with np.errstate(all="ignore"):
        assert not private.remembers(20)


def test_options_that_somebody_adds_count():
    """Defaults are read once, but an extension of pandas may add options of its own later."""
    config = pytest.importorskip("pandas._config.config")
    if not hasattr(config, "_registered_options"):
        pytest.skip("this version of pandas has its options elsewhere")
    before = pandas_options()
    config.register_option("mode.of_an_extension", 1)
    try:
        assert pandas_options() == before
        pd.set_option("mode.of_an_extension", 2)
        assert "mode.of_an_extension=2" in pandas_options()
    finally:
        del (
            config._global_config["mode"]["of_an_extension"],
            config._registered_options["mode.of_an_extension"],
        )
    assert pandas_options() == before
