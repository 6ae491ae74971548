"""What the user's own program adds to classes of libraries counts in the functions that use it."""

import contextlib
import importlib
import sys
import textwrap
import types
import warnings

import numpy as np
import pytest

from privatize import privatize, samplers
from privatize.errors import ExecutionError
from privatize.identity import accessors
from privatize.identity.change_guard import guard
from privatize.identity.fingerprint import fingerprint

pd = pytest.importorskip("pandas")
P = samplers.table(age=samplers.uniform(0, 100))
PROMISE = {"epsilon": 1, "gamma": 0.3, "store": None, "seed": 1}


@pytest.fixture
def program():
    """Return a function that runs source as a module of the user's; undo later what it registered."""
    for library in ("polars", "torch"):  # so that their classes are known before
        with contextlib.suppress(ImportError):
            importlib.import_module(library)
    name = "health_program"
    before = {kind: dict(scope) for kind, scope in accessors.scopes_of(None, [pd.Timestamp])}
    module = types.ModuleType(name)
    sys.modules[name] = module

    def run(source):
        with warnings.catch_warnings(action="ignore"):  # pandas warns if a name is registered again
            exec(textwrap.dedent(source), vars(module))
        return module

    yield run
    del sys.modules[name]
    for kind, scope in accessors.scopes_of(None, [pd.Timestamp]):
        for added in set(scope) - set(before[kind]):
            delattr(kind, added)
        for key, value in before[kind].items():
            if scope.get(key) is not value:
                setattr(kind, key, value)
    with contextlib.suppress(KeyError):
        pd.DataFrame._accessors.discard("health")


REGISTERED = {
    "a frame's accessor": """
        import pandas as pd
        @pd.api.extensions.register_dataframe_accessor("health")
        class Health:
            def __init__(self, frame):
                self.frame = frame
            def score(self):
                return FACTOR * self.frame["age"].mean()
        FACTOR = {factor}
        def f(d):
            return d.health.score()
        """,
    "a series' accessor": """
        import pandas as pd
        @pd.api.extensions.register_series_accessor("health")
        class Health:
            def __init__(self, series):
                self.series = series
            def score(self):
                return {factor} * self.series.mean()
        def f(d):
            return d["age"].health.score()
        """,
    "an index's accessor": """
        import pandas as pd
        @pd.api.extensions.register_index_accessor("health")
        class Health:
            def __init__(self, index):
                self.index = index
            def score(self):
                return {factor} * self.index.mean()
        def f(d):
            return d.index.health.score()
        """,
    "a method that was added": """
        import pandas as pd
        def health(frame):
            return {factor} * frame["age"].mean()
        pd.DataFrame.health = health
        def f(d):
            return d.health()
        """,
    "a method that was replaced": """
        import pandas as pd
        def mean(self, *args, **kwargs):
            return {factor} * self.sum() / len(self)
        pd.Series.mean = mean
        def f(d):
            return d["age"].mean()
        """,
    "a method of the base class": """
        from pandas.core.generic import NDFrame
        NDFrame.health = lambda self: {factor} * self.sum()
        def f(d):
            return d["age"].health()
        """,
    "a property": """
        import pandas as pd
        pd.DataFrame.health = property(lambda self: {factor} * self["age"].mean())
        def f(d):
            return d.health
        """,
    "a value": """
        import pandas as pd
        pd.DataFrame.health = {factor}
        def f(d):
            return d.health * d["age"].mean()
        """,
    "a method of groups": """
        from pandas.api.typing import DataFrameGroupBy
        DataFrameGroupBy.health = lambda self: {factor} * self.mean()["age"].sum()
        def f(d):
            return d.groupby(d["age"] > 50).health()
        """,
    "a class that is named": """
        import pandas as pd
        pd.Timestamp.health = lambda self: {factor}
        def f(d):
            return pd.Timestamp(2026, 1, 1).health() * d["age"].mean()
        """,
    "a name in a string": """
        import pandas as pd
        pd.DataFrame.health = lambda self: {factor} * self["age"].mean()
        def f(d):
            return getattr(d, "health")()
        """,
    "a value in a library's module": """
        import numpy as np
        np.health = {factor}
        def f(d):
            return d["age"].mean() * np.health
        """,
    "a polars namespace": """
        import polars as pl
        @pl.api.register_dataframe_namespace("health")
        class Health:
            def __init__(self, frame):
                self.frame = frame
            def score(self):
                return {factor} * self.frame["age"].mean()
        def f(d):
            return pl.from_pandas(d).health.score()
        """,
    "a polars expression": """
        import polars as pl
        @pl.api.register_expr_namespace("health")
        class Health:
            def __init__(self, expression):
                self.expression = expression
            def score(self):
                return {factor} * self.expression.mean()
        def f(d):
            return pl.from_pandas(d).select(pl.col("age").health.score()).item()
        """,
    "a lazy polars namespace": """
        import polars as pl
        @pl.api.register_lazyframe_namespace("health")
        class Health:
            def __init__(self, frame):
                self.frame = frame
            def score(self):
                return {factor} * self.frame.collect()["age"].mean()
        def f(d):
            return pl.from_pandas(d).lazy().health.score()
        """,
    "a polars series' namespace": """
        import polars as pl
        @pl.api.register_series_namespace("health")
        class Health:
            def __init__(self, series):
                self.series = series
            def score(self):
                return {factor} * self.series.mean()
        def f(d):
            return pl.Series(d["age"].to_numpy()).health.score()
        """,
    "a tensor's method": """
        import torch
        torch.Tensor.health = lambda self: {factor} * float(self.mean())
        def f(d):
            return torch.tensor(d["age"].to_numpy()).health()
        """,
}


@pytest.mark.parametrize("case", REGISTERED)
def test_registered_code_counts_by_content(case, program, monkeypatch):
    """An accessor that was edited computes something else, for which the old noise may be far too little."""
    source = REGISTERED[case]
    for library in ("polars", "torch"):
        if f"import {library}" in source:
            pytest.importorskip(library)
    monkeypatch.setattr(np, "health", None, raising=False)
    keys = []
    for factor in (1, 100, 1):
        f = program(source.format(factor=factor)).f
        keys.append(fingerprint(f))
    assert keys[0] == keys[2] != keys[1]
    if case not in ("a value", "a value in a library's module"):  # a guard compares these by identity
        assert guard(f, ["numpy", "pandas"]) is None


def test_a_changed_accessor_is_calibrated_again(program):
    """The noise would be that of the accessor before the change."""
    source = REGISTERED["a frame's accessor"]
    small = privatize(sampler=P, **PROMISE)(program(source.format(factor=1)).f).estimate(20).value
    large = privatize(sampler=P, **PROMISE)(program(source.format(factor=100)).f).estimate(20).value
    assert large == pytest.approx(100 * small)


def test_a_method_that_is_replaced_later_is_noticed(program):
    """A function that has a guard would get the old noise after a method that it calls was patched."""
    f = program('def f(d):\n    return d["age"].mean()').f
    private = privatize(sampler=P, **PROMISE)(f)
    data = pd.DataFrame({"age": np.linspace(0, 100, 20)})
    small = [private.release(data).sensitivity for _ in range(3)]
    guarded = guard(f, ["numpy", "pandas"])
    assert guarded is not None and guarded.same()
    program("""
        import pandas as pd
        known = pd.Series.mean
        pd.Series.mean = lambda self: 100 * known(self)
        """)
    assert not guarded.same()
    assert private.release(data).sensitivity == pytest.approx(100 * small[0])


def test_workers_do_not_have_what_this_process_registered(program):
    """Every pair would fail in a worker, and the estimate would be infinite without a visible reason."""
    private = privatize(sampler=P, **PROMISE)(program(REGISTERED["a frame's accessor"].format(factor=1)).f)
    assert private.estimate(20).failed == 0
    with pytest.raises(ExecutionError, match=r"DataFrame\.health .*workers='inline'"):
        private.replace(workers=2).estimate(21)


def test_attributes_of_libraries_are_not_the_users_own(monkeypatch):
    """Installed code has a version: if it counted by content too, keys would change without need."""
    monkeypatch.setattr(accessors, "origin", lambda module: None if module == "mine" else "known")
    for kind, scope in accessors.scopes_of(None, []):
        for name, value in scope.items():
            if not name.startswith("__") and not accessors.is_value(value):
                assert not accessors._is_own(value), (kind, name)
