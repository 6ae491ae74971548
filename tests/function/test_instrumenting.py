"""Functions of other people's modules become private where they are, and raw again afterwards."""

import importlib
import inspect
import subprocess
import sys
import warnings

import numpy as np
import pytest

from privatize import PrivateFunction, instrument, privatize, samplers, seal
from privatize.errors import PolicyError, PrivatizeError, PrivatizeWarning, SettingsError

UNIT = samplers.uniform(0, 1)
PROMISE = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "store": None}
PEOPLE = np.linspace(0, 1, 50)

LIBRARY = '''
import numpy as np

CONSTANT = 3
nothing = None


def mean(x):
    """Return the mean."""
    return float(np.mean(x))


def spread(x, by=1.0):
    return float(np.std(x)) * by


def both(x):
    return mean(x) + spread(x)


class Base:
    k = 1

    def inherited(self, x):
        return self.k * float(np.mean(x))


class Report(Base):
    k = 2

    def method(self, x):
        return self.k * float(np.mean(x))

    @staticmethod
    def static(x):
        return float(np.mean(x))

    @classmethod
    def klass(cls, x):
        return cls.k * float(np.mean(x))

    class Inner:
        def deep(self, x):
            return float(np.mean(x))


class Longer(Report):
    k = 1000
'''


@pytest.fixture
def library(tmp_path, monkeypatch):
    """Return a fresh module that is somebody else's."""
    (tmp_path / "somebodys.py").write_text(LIBRARY)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "somebodys", raising=False)
    module = importlib.import_module("somebodys")
    yield module
    sys.modules.pop("somebodys", None)


def is_raw(module, *names):
    return not any(isinstance(getattr(module, name), PrivateFunction) for name in names)


def test_in_the_module(library):
    """Who reads module.function gets private answers from then on, until it is undone."""
    raw = library.mean
    made = instrument("somebodys:mean", **PROMISE)
    assert isinstance(library.mean, PrivateFunction) and library.mean.__wrapped__ is raw
    assert library.mean.__doc__ == "Return the mean."
    assert list(inspect.signature(library.mean).parameters) == ["x"]
    assert library.mean(PEOPLE) != library.mean(PEOPLE)
    assert repr(made) == "<instrumented somebodys:mean>"
    made.undo()
    assert library.mean is raw and repr(made) == "<instrumented nothing>"
    made.undo()  # a second time changes nothing
    assert library.mean is raw


def test_on_sealed_data(library):
    """An instrumented function opens sealed data, and the raw one does not."""
    people = seal(PEOPLE, name="people", sampler=UNIT)
    with instrument("somebodys:mean", epsilon=1, gamma=0.2, store=None):
        assert isinstance(library.mean(people), float)
    with pytest.raises(PrivatizeError):
        library.mean(people)


def test_with(library):
    """After a with block the functions are as before, also if it ends with an exception."""
    raw = library.mean, library.spread
    with instrument("somebodys:mean", "somebodys:spread", **PROMISE) as made:
        assert repr(made) == "<instrumented somebodys:mean, somebodys:spread>"
        assert not is_raw(library, "mean") and not is_raw(library, "spread")
    assert (library.mean, library.spread) == raw
    with pytest.raises(KeyboardInterrupt), instrument("somebodys:mean", **PROMISE):
        raise KeyboardInterrupt
    with pytest.raises(ZeroDivisionError, match="division"), instrument("somebodys:mean", **PROMISE):
        _ = 1 / 0
    assert library.mean is raw[0]


def test_nested_blocks(library):
    """Blocks inside each other undo their own functions only."""
    with instrument("somebodys:mean", **PROMISE):
        with instrument("somebodys:spread", **PROMISE):
            assert not is_raw(library, "spread")
        assert is_raw(library, "spread") and not is_raw(library, "mean")
    assert is_raw(library, "mean", "spread")


def test_twice(library):
    """A function is not made private twice; the first promise stays."""
    with instrument("somebodys:mean", **PROMISE):
        first = library.mean
        with pytest.raises(SettingsError, match="mean is private already"):
            instrument("somebodys:mean", **PROMISE)
        assert library.mean is first
    assert is_raw(library, "mean")
    with pytest.raises(SettingsError, match="private already"):
        instrument("somebodys:mean", "somebodys:mean", **PROMISE)
    assert is_raw(library, "mean")


@pytest.mark.parametrize(
    "wrong", ["somebodys:nope", "nowhere:f", "somebodys", "somebodys:CONSTANT", "builtins:list.sort"]
)
def test_all_or_none(library, wrong):
    """If one of several targets is wrong, none is instrumented."""
    raw = library.mean, library.spread
    with pytest.raises(PrivatizeError):
        instrument("somebodys:mean", "somebodys:spread", wrong, **PROMISE)
    assert (library.mean, library.spread) == raw


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("somebodys", 'is not "package.module:function"'),
        ("somebodys:", 'is not "package.module:function"'),
        (":mean", 'is not "package.module:function"'),
        ("", 'is not "package.module:function"'),
        (3, 'is not "package.module:function"'),
        (None, 'is not "package.module:function"'),
        (np.mean, 'is not "package.module:function"'),
        ("somebodys.mean", 'is not "package.module:function"'),
        ("somebodys:mean:x", "there is no function of that name"),
        ("somebodys:nope", "there is no function of that name"),
        ("somebodys:nothing", "there is no function of that name"),
        ("somebodys:CONSTANT", "there is no function of that name"),
        ("somebodys:Report.nope", "there is no function of that name"),
        ("somebodys:Nope.method", "there is no function of that name"),
        ("there_is_no_such_module:f", "the module cannot be imported: ModuleNotFoundError: No module named"),
        ("somebodys.sub:f", "the module cannot be imported"),
        (".somebodys:mean", "somebodys:mean"),
        ("builtins:list.sort", "list.sort"),
        ("numpy:ndarray.mean", "ndarray.mean"),
    ],
)
def test_wrong_targets(library, target, message):
    """The error for a wrong target names it, and says what it should look like."""
    with pytest.raises(SettingsError, match=message):
        instrument(target, **PROMISE)


def test_module_that_fails(tmp_path, monkeypatch):
    """A module that fails while it is imported is named."""
    (tmp_path / "fails_at_once.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SettingsError, match=r"fails_at_once:f.*division by zero"):
        instrument("fails_at_once:f", **PROMISE)


def test_wrong_settings(library):
    """Settings are checked before anything is touched."""
    with pytest.raises(SettingsError, match="needs targets"):
        instrument(**PROMISE)
    with pytest.raises(SettingsError, match="needs epsilon="):
        instrument("somebodys:mean", gamma=0.1)
    with pytest.raises(SettingsError, match="has no argument 'epsilom'"):
        instrument("somebodys:mean", epsilom=1, **PROMISE)
    assert is_raw(library, "mean")


@pytest.mark.filterwarnings("ignore::privatize.errors.PrivatizeWarning")  # statistics may have imported it
def test_builtins_without_signature():
    """A builtin without a signature is refused or answers privately, and is restored in both cases."""
    import math

    raw = math.hypot
    try:
        with instrument("math:hypot", **PROMISE):
            assert isinstance(math.hypot, PrivateFunction)
    except SettingsError:
        pass
    assert math.hypot is raw
    raw = math.fsum
    with instrument("math:fsum", **PROMISE):
        assert isinstance(math.fsum(list(PEOPLE)), float)
    assert math.fsum is raw


def test_methods(library):
    """A method is private in its class, for each instance with its own calibration, and raw afterwards."""
    before = dict(vars(library.Report))
    with instrument("somebodys:Report.method", "somebodys:Report.Inner.deep", **PROMISE):
        small = library.Report().method.release(PEOPLE)
        large = library.Longer().method.release(PEOPLE)
        assert large.sensitivity > 100 * small.sensitivity
        assert isinstance(library.Report.Inner().deep(PEOPLE), float)
    assert dict(vars(library.Report)) == before
    assert library.Report().method(PEOPLE) == 1.0


@pytest.mark.parametrize("name", ["static", "klass", "inherited"])
def test_kinds_of_methods(library, name):
    """Static, class and inherited methods answer privately, and are what they were afterwards."""
    before = dict(vars(library.Report))
    raw = getattr(library.Longer, name) if name == "klass" else None
    with instrument(f"somebodys:Report.{name}", **PROMISE):
        for owner in (library.Report(), library.Longer()):
            assert isinstance(getattr(owner, name)(PEOPLE), float)
        assert is_raw(library.Base, "inherited")
    assert dict(vars(library.Report)) == before
    if raw is not None:
        assert raw(PEOPLE) == getattr(library.Longer, name)(PEOPLE) == 500.0
    elif name == "static":
        assert library.Report.static(PEOPLE) == library.Report().static(PEOPLE) == 0.5


def test_class_methods_of_subclasses(library):
    """A private class method is calibrated for the class that it is called on."""
    with instrument("somebodys:Report.klass", **PROMISE):
        small, large = library.Report.klass.release(PEOPLE), library.Longer.klass.release(PEOPLE)
        assert large.sensitivity > 100 * small.sensitivity


def test_names_imported_before(library, tmp_path):
    """Who imported the function before keeps the raw one, and a warning says who."""
    (tmp_path / "imported_before.py").write_text("from somebodys import mean as theirs\nimport somebodys\n")
    other = importlib.import_module("imported_before")
    try:
        with (
            pytest.warns(
                PrivatizeWarning, match=r"names .* keep the raw function: imported_before.theirs"
            ) as seen,
            instrument("somebodys:mean", **PROMISE),
        ):
            assert other.theirs(PEOPLE) == 0.5
            assert isinstance(other.somebodys.mean, PrivateFunction)
        assert seen[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(PrivatizeWarning):
                instrument("somebodys:spread", "somebodys:mean", **PROMISE)
        assert is_raw(library, "mean", "spread")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with instrument("somebodys:spread", **PROMISE):
                pass
    finally:
        sys.modules.pop("imported_before", None)


def test_imported_inside_the_block(library):
    """Who imports the function while it is private has the private one, and keeps it."""
    with instrument("somebodys:mean", **PROMISE):
        from somebodys import mean
    assert isinstance(mean, PrivateFunction) and is_raw(library, "mean")


def test_called_by_its_own_module(library):
    """A function of the same module that calls the instrumented one gets private answers as well."""
    assert library.both(PEOPLE) == library.both(PEOPLE)
    with instrument("somebodys:mean", **PROMISE):
        assert library.both(PEOPLE) != library.both(PEOPLE)


def test_inside_another_private_function(library):
    """An instrumented function inside a private one is refused with the remedy, like any other."""
    with (
        instrument("somebodys:mean", **PROMISE),
        pytest.raises(PrivatizeError, match=r"Call mean.__wrapped__\(...\) there"),
    ):
        privatize(**PROMISE)(library.both)(PEOPLE)


def test_policy(library, tmp_path, monkeypatch):
    """What the policy forbids cannot be instrumented."""
    from privatize.config import policy

    monkeypatch.setattr(policy, "_read", {})
    (tmp_path / "pyproject.toml").write_text("[tool.privatize]\nmax-epsilon = 0.5\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PolicyError, match="max-epsilon"):
        instrument("somebodys:mean", **PROMISE)
    assert is_raw(library, "mean")


def test_in_a_program(library, tmp_path):
    """A program that instruments on its first lines runs without a warning."""
    program = (
        "from privatize import instrument, samplers\n"
        "instrument('somebodys:mean', epsilon=1, gamma=0.2, sampler=samplers.uniform(0, 1), store=None)\n"
        "from somebodys import mean\nimport numpy as np\nprint(mean(np.ones(50)) != mean(np.ones(50)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, cwd=tmp_path
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
