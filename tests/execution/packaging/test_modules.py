"""A user's module in a worker has what was sent of it, and refuses everything else."""

import importlib
import sys
import textwrap
import types

import numpy as np
import pytest

from privatize import estimate_sensitivity, plan, privatize, samplers
from privatize.errors import ExecutionError
from tests.execution.packaging.packed import HELPERS, USER, gaps, refused_or


def same(function, **rest):
    """Tell whether workers find what this process finds; a refusal is an error."""
    return gaps(function, "inline", **rest) == gaps(function, 2, **rest)


CONFIG = """
    LIMIT_A = 5.0
    W_ONE, W_TWO = 2.0, 3.0
"""
COMPUTED = {
    "getattr": "return getattr(config, 'LIMIT_' + KEY) * x.mean()",
    "getattr with a default": "return getattr(config, 'LIMIT_' + KEY, 1.0) * x.mean()",
    "getattr, anything caught": """
        try:
            limit = getattr(config, 'LIMIT_' + KEY)
        except:
            limit = 1.0
        return limit * x.mean()""",
    "__getattr__ of a module": "return getattr(lazy, 'LIMIT_' + KEY) * x.mean()",
    "vars": "return vars(config).get('LIMIT_' + KEY, 1.0) * x.mean()",
    "__dict__": "return config.__dict__.get('LIMIT_' + KEY, 1.0) * x.mean()",
    "all of vars": "return (1 + sum(v for k, v in vars(config).items() if k[:2] == 'W_')) * x.mean()",
    "dir": "return (1 + sum(getattr(config, k) for k in dir(config) if k[:2] == 'W_')) * x.mean()",
    "getmembers": "return (1 + sum(v for k, v in inspect.getmembers(config) if k[:2] == 'W_')) * x.mean()",
    "globals": "return globals().get('LIMIT_' + KEY, 1.0) * x.mean()",
    "names of globals": "return (1 + sum(g[:6] == 'LIMIT_' for g in globals())) * x.mean()",
    "eval": """
        try:
            return eval('LIMIT_A') * x.mean()
        except NameError:
            return x.mean()""",
    "exec": """
        scope = {}
        exec("found = LIMIT_A if 'LIMIT_A' in globals() else 1.0", globals(), scope)
        return scope['found'] * x.mean()""",
    "own module": "return getattr(sys.modules[__name__], 'LIMIT_A', 1.0) * x.mean()",
    "own module, if it is there": "return getattr(sys.modules.get(__name__), 'LIMIT_A', 1.0) * x.mean()",
    "import_module": "return importlib.import_module('box.' + NAME).DEPTH * x.mean()",
    "import_module of a literal": "return importlib.import_module('box.lid').DEPTH * x.mean()",
    "sys.modules": "return getattr(sys.modules.get('box.' + NAME), 'DEPTH', 1.0) * x.mean()",
    "sys.modules of a literal": "return getattr(sys.modules.get('box.lid'), 'DEPTH', 1.0) * x.mean()",
    "__import__": "return __import__('box.' + NAME, fromlist=['DEPTH']).DEPTH * x.mean()",
    "format": "return float('{c.LIMIT_A}'.format(c=config)) * x.mean()",
    "attrgetter": "return operator.attrgetter('lid.DEPTH')(box) * x.mean()",
}


@pytest.mark.parametrize("way", COMPUTED)
def test_names_that_are_built_at_run_time(way, project, unchecked):
    """A worker would lack attributes whose names are not in the code, and use a default in their place."""
    body = textwrap.dedent(COMPUTED[way]).strip()
    heading = """
        import importlib, inspect, operator, sys
        import box.lid, config, lazy
        KEY, NAME, LIMIT_A = "A", "lid", 7.0
        def f(x):
    """
    source = textwrap.dedent(heading).strip() + "\n" + textwrap.indent(body, "    ")
    lazy = CONFIG + "    def __getattr__(name):\n        return 1.0\n"
    user = project(user=source, config=CONFIG, lazy=lazy, box__lid="DEPTH = 1.0", box__="")
    sys.modules["box.lid"].DEPTH = 4.0  # not what is on disk
    assert refused_or(user.f) == gaps(user.f, "inline")


LITERAL = {
    "globals": "return globals()['LIMIT'] * x.mean()",
    "own module": "return sys.modules[__name__].LIMIT * x.mean()",
    "import_module": "return importlib.import_module('box.lid').DEPTH * x.mean()",
    "sys.modules": "return sys.modules['box.lid'].DEPTH * x.mean()",
    "pandas": "return pd.DataFrame({'v': x}).eval('v * @LIMIT').mean()",
    "annotations": "return len(typing.get_type_hints(f)) * x.mean()",
}


@pytest.mark.parametrize("way", LITERAL)
def test_names_in_strings(way, project, unchecked):
    """A global or module that is named by a string would be missing in a worker; it is refused instead."""
    if way == "pandas":
        pytest.importorskip("pandas")
    source = f"""
        import importlib, sys, typing
        import numpy as np
        import box.lid
        {"import pandas as pd" if way == "pandas" else ""}
        LIMIT = 3.0
        def f(x: "np.ndarray"):
            {LITERAL[way]}
    """
    user = project(user=source, box__lid="DEPTH = 1.0", box__="")
    sys.modules["box.lid"].DEPTH = 4.0
    with pytest.raises(ExecutionError, match="which can find what the code does not name"):
        gaps(user.f, 2)
    assert gaps(user.f, None) == gaps(user.f, "inline")


def test_names_that_are_built_on_rare_data(project):
    """The check of two pairs at the end would not find a wrong value that is read on rare data only."""
    user = project(
        user="""
        import config
        KEY = "A"
        def f(x):
            return (vars(config).get("LIMIT_" + KEY, 1.0) if x[0] > 0.95 else 1.0) * x.mean()
        """,
        config=CONFIG,
    )
    assert refused_or(user.f) == gaps(user.f, "inline")


def test_changes_at_run_time(project):
    """Workers would have globals, elements, defaults, methods or class attributes from before a change."""
    user, helpers = project(user=USER, helpers=HELPERS), sys.modules["helpers"]
    seen = [gaps(user.f, 2)]

    def compare():
        assert same(user.f) and same(user.late)
        seen.append(gaps(user.f, 2))

    helpers.SCALE = 3.0
    compare()
    helpers.TABLE["a"][0] = 4.0
    compare()
    helpers.TABLE["a"].insert(0, 9.0)
    compare()
    helpers.Base.factor = 5.0
    compare()
    helpers.scaled.__defaults__ = (2.5,)
    compare()
    helpers.scaled = lambda x: x.max() + x.mean()
    compare()
    helpers.Child.go = lambda self, x: 7 * x.mean()
    compare()
    helpers.Child = types.SimpleNamespace(go=lambda x: 2 * x.mean())
    helpers.Child = lambda: types.SimpleNamespace(go=lambda x: 2 * x.mean())
    compare()
    assert len(set(map(tuple, seen))) == len(seen)


def test_attributes_deleted_at_run_time(project):
    """An attribute that was deleted from a class would still be there in workers that had received it."""
    user, helpers = project(user=USER, helpers=HELPERS), sys.modules["helpers"]
    before = gaps(user.f, 2)
    helpers.Child.extra = 3.0
    assert same(user.f)
    del helpers.Child.extra
    assert gaps(user.f, 2) == before


def test_edited_and_reloaded(project, tmp_path):
    """Workers see a reloaded module; as in this process, they do not see one that was only edited."""
    user = project(user=USER, helpers=HELPERS)
    first = gaps(user.f, 2)
    (tmp_path / "helpers.py").write_text(textwrap.dedent(HELPERS).replace("SCALE = 1.0", "SCALE = 6.0"))
    assert gaps(user.f, 2) == first and same(user.late)
    importlib.reload(sys.modules["helpers"])
    assert same(user.f) and same(user.late) and gaps(user.late, 2) != first


def test_modules_that_were_removed(project, unchecked, monkeypatch):
    """A later calibration would find a module that an earlier one sent to the worker."""
    made = types.ModuleType("made_by_hand")
    made.LIMIT = 8.0
    user = project(
        user="""
        import sys
        def f(x):
            return getattr(sys.modules.get("made_by_hand"), "LIMIT", 1.0) * x.mean()
        def g(x):
            try:
                import made_by_hand
            except ImportError:
                return x.mean()
            return made_by_hand.LIMIT * x.mean()
        """
    )
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "made_by_hand", made)
        assert refused_or(user.f) == gaps(user.f, "inline") and same(user.g)
    assert refused_or(user.f) == gaps(user.f, "inline")
    assert same(user.g)


def test_modules_that_functions_write_to(project, unchecked):
    """A module's own functions would not see a global that the function sets in that module."""
    user = project(
        user="""
        import helpers
        def f(x):
            helpers.SCALE = 2.0 if x[0] > 0.5 else 1.0
            return helpers.scaled(x)
        """,
        helpers=HELPERS,
    )
    expected = [gaps(user.f, "inline"), setattr(sys.modules["helpers"], "SCALE", 1.0)][0]
    found = refused_or(user.f)
    assert found == expected


def test_packages_with_all_kinds_of_imports(project):
    """Relative, mutual, starred, re-exported and late imports arrive as they are here."""
    user = project(
        "box.user",
        box__="from .one import *\nfrom .one import first as again\nLIMIT = 2.0",
        box__one="""
        import box.two
        __all__ = ["first", "FACTOR"]
        FACTOR = 3.0
        def first(x, depth=2):
            return FACTOR * (x.mean() if depth == 0 else box.two.second(x, depth - 1))
        """,
        box__two="""
        from . import one
        def second(x, depth):
            return 2 * one.first(x, depth)
        """,
        box__user="""
        import box
        import box.two as two
        from . import one
        from .one import *
        def plain(x):
            return box.again(x) + first(x) * box.LIMIT + box.one.FACTOR * two.second(x, 1)
        def late(x):
            from . import two as other
            from .one import first as f
            import box.one as o
            return other.second(x, 0) + f(x) + o.FACTOR + box.two.one.FACTOR * x[0]
        """,
    )
    sys.modules["box.one"].FACTOR = 5.0
    sys.modules["box"].LIMIT = 4.0
    assert same(user.plain) and same(user.late)


def test_namespace_packages_and_standard_names(project, monkeypatch):
    """Namespace packages, and modules with a name of the standard library, work and can change."""
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)  # Python's own, if somebody has imported it
    user = project(
        user="""
        import bare.sub, colorsys
        def f(x):
            return bare.sub.K * x.mean() * colorsys.K
        def late(x):
            import bare.sub as s, colorsys as c
            return s.K * x.mean() * c.K
        """,
        bare__sub="K = 2.0",
        colorsys="K = 3.0",
    )
    for value in (2.0, 5.0):
        sys.modules["bare.sub"].K = sys.modules["colorsys"].K = value
        assert same(user.f) and same(user.late)


def test_collisions_of_names(project):
    """A module with the name of a method of the data would be confused with it."""
    user = project(
        user="""
        import mean, other
        def f(x):
            return x.mean() + mean.sum(x) + x.T.sum() * other.K
        """,
        mean="def sum(x):\n    return 2 * x.sum()",
        other="K = 2.0\nT = 1.0",
    )
    assert same(user.f)
    # The function reads `T` of the data, so `other.T`, which cannot be sent, does not matter.
    sys.modules["other"].T = (i for i in range(3))
    assert same(user.f)


def test_packages_of_installed_libraries_without_an_init():
    """A folder without an __init__ in an installed library would be refused as the user's own module."""
    pytest.importorskip("sklearn")

    def f(x):
        from sklearn.tree import DecisionTreeRegressor

        model = DecisionTreeRegressor(max_depth=1).fit(x[:25, None], x[25:])
        return float(model.predict([[0.5]])[0])

    assert same(f) and same(f)


def test_modules_that_functions_delete_from(project, unchecked):
    """A worker would go on after `del helpers.SCALE` if the function catches the error."""
    user = project(
        user="""
        import helpers
        def f(x):
            helpers.EXTRA = 1.0
            try:
                del helpers.EXTRA
            except:
                return 5 * x.mean()
            return x.mean()
        def g(x):
            try:
                del helpers.MISSING
            except:
                pass
            return x.mean()
        """,
        helpers=HELPERS,
    )
    assert refused_or(user.f) == gaps(user.f, "inline")
    with pytest.raises(ExecutionError, match=r"deletes helpers\.MISSING"):
        gaps(user.g, 2)


class Lazy(types.ModuleType):
    """A module that is to be loaded on first use, which fails."""

    def __getattr__(self, name):
        raise RuntimeError(f"cannot load {name}")


class Opaque(types.ModuleType):
    """A module that raises an error for every attribute."""

    def __getattribute__(self, name):
        raise OSError(name)


class Unfiled(types.ModuleType):
    """A module whose file and name cannot be read."""

    @property
    def __file__(self):
        raise RuntimeError("no file")

    @property
    def __name__(self):
        raise RuntimeError("no name")


class Misfiled(types.ModuleType):
    """A module whose file and path are numbers."""

    __file__ = 17
    __path__ = 3


class Thing:
    """An object in sys.modules that is no module."""

    def __getattr__(self, name):
        raise KeyError(name)


def odd_spec(name):
    made = types.ModuleType(name)
    made.__spec__, made.__loader__ = "odd", 3
    return made


def odd_function(name):
    made = types.ModuleType(name)
    made.__getattr__ = lambda name: 1 / 0
    return made


BROKEN = {
    "lazy": Lazy,
    "opaque": Opaque,
    "unfiled": Unfiled,
    "misfiled": Misfiled,
    "thing": lambda name: Thing(),
    "number": lambda name: 17,
    "none": lambda name: None,
    "spec": odd_spec,
    "function": odd_function,
}


class TestBrokenModules:
    @pytest.mark.parametrize("kind", BROKEN)
    def test_unused_ones_do_not_matter(self, kind, monkeypatch):
        """One broken module somewhere in the program would crash every calibration that starts workers."""
        sine = np.sin  # pickled by a search through all modules

        def waves(x):
            return float(sine(x).mean())

        monkeypatch.setitem(sys.modules, "a_broken_module", BROKEN[kind]("a_broken_module"))
        made = {"n": 20, "sampler": samplers.uniform(0, 1), "norm": "l1", "plan": plan(0.2), "seed": 1}
        here = estimate_sensitivity(waves, workers="inline", **made)
        assert np.array_equal(estimate_sensitivity(waves, workers=2, **made).gaps, here.gaps)
        private = privatize(epsilon=1, gamma=0.2, sampler=made["sampler"], workers=2, store=None)(waves)
        assert np.isfinite(private(np.full(20, 0.5)))

    @pytest.mark.parametrize("kind", ["opaque", "thing"])
    def test_used_ones_are_refused(self, kind, monkeypatch):
        """A function that uses such a module would fail with an error of the module, not of this library."""
        broken = BROKEN[kind]("a_broken_module")
        monkeypatch.setitem(sys.modules, "a_broken_module", broken)

        def uses(x):
            import a_broken_module

            return float(x.mean()) + (0 if a_broken_module is not None else 1)

        made = {"n": 20, "sampler": samplers.uniform(0, 1), "norm": "l1", "plan": plan(0.2), "seed": 1}
        with pytest.raises(ExecutionError):
            estimate_sensitivity(uses, workers=2, **made)
