"""A worker evaluates exactly what this process would evaluate at that moment, or refuses.

A worker that runs an old version of a module, or one without a change made at run time, measures the
sensitivity of another function. That can mean too little noise, which nobody notices. A refusal costs time.
"""

import dataclasses
import decimal
import hashlib
import multiprocessing
import multiprocessing.pool
import os
import pickle
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

from privatize import Laplace, privatize
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.norms import NORMS
from privatize.errors import ExecutionError
from privatize.execution.job import Refused
from privatize.execution.packaging import package
from privatize.execution.packaging.package import Package, pack, unpack
from tests.cases import for_each
from tests.execution.evaluated import ROOT, Mapper, estimate, script
from tests.execution.packaging.packed import HELPERS, UNIT, USER, counted, gaps

DATA = np.linspace(0, 1, 50)
PRIVATE = {"epsilon": 1, "gamma": 0.2, "sampler": UNIT, "seed": 1, "store": None, "workers": 2}


def same(function, **rest):
    """Tell whether workers find what this process finds; a refusal is an error."""
    return gaps(function, "inline", **rest) == gaps(function, 2, **rest)


def job(function, **rest):
    return evaluator(function, n=50, sampler=UNIT, norm=NORMS["l1"], seed=1, **rest)


def digests(sent):
    """Return the fingerprints in a package."""
    return pickle.loads(sent.payload)[1]


def in_a_child(function):
    """Run a function in a forked process, since unpacking a job changes the settings of its process."""
    child = multiprocessing.get_context("fork").Process(target=function)
    child.start()
    child.join(120)
    assert child.exitcode == 0


CONFIG = """
    LIMIT_A = 5.0
    W_ONE, W_TWO = 2.0, 3.0
"""


# --- changes at run time --------------------------------------------------------------------------


def environment(x):
    return float(os.environ.get("PRIVATIZE_TEST_LIMIT", "1")) * x.mean()


def folder(x):
    return len(Path.cwd().name) * x.mean()


def third(x):
    return float(decimal.Decimal(1) / decimal.Decimal(3)) * x.mean()


def deep(x):
    def down(k):
        return 0 if k == 0 else 1 + down(k - 1)

    return down(3000) * x.mean()


@pytest.mark.parametrize("function", [environment, folder, third, deep])
def test_settings_that_changed(function, tmp_path, monkeypatch, unchecked):
    """Running workers would have an old environment, folder, decimal context or recursion limit."""
    assert same(np.mean)  # starts the workers
    limit = sys.getrecursionlimit()
    try:
        monkeypatch.setenv("PRIVATIZE_TEST_LIMIT", "7")
        monkeypatch.chdir(tmp_path)
        sys.setrecursionlimit(20_000)
        with decimal.localcontext() as context:
            context.prec = 4
            assert same(function)
    finally:
        sys.setrecursionlimit(limit)


def test_main_is_the_users_module(tmp_path):
    """A script that reads from its own module would read from the worker's main module instead."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import sys
            import numpy as np
            from privatize import estimate_sensitivity, plan, samplers
            from privatize.errors import PrivatizeError
            from privatize.calibration.run import Run
            Run.check_again = lambda *_, **__: None
            LIMIT = 3.0
            def gaps(f, w):
                return estimate_sensitivity(f, n=50, sampler=samplers.uniform(0, 1), norm="l1",
                    plan=plan(gamma=0.2), seed=1, workers=w).gaps.tolist()
            class Callable:
                def __call__(self, x):
                    return LIMIT * x.mean()
            def plain(x):
                return Callable()(x)
            def mine(x):
                return getattr(sys.modules["__main__"], "LIMIT", 1.0) * x.mean()
            def own(x):
                return getattr(sys.modules[__name__], "LIMIT", 1.0) * x.mean()
            def imported(x):
                import __main__
                return getattr(__main__, "LIMIT", 1.0) * x.mean()
            for f in (plain, Callable(), lambda x: LIMIT * x.mean()):
                assert gaps(f, 2) == gaps(f, "inline")
            for f in (mine, own, imported):
                try:
                    found = gaps(f, 2)
                except PrivatizeError:
                    continue
                print(f.__name__, "right" if found == gaps(f, "inline") else "wrong")
            """
        )
    )
    package = str(Path(sys.modules["privatize"].__file__).parents[1])
    for how in ([str(script)], ["-c", script.read_text()]):
        done = subprocess.run(
            [sys.executable, *how],
            env={"PYTHONPATH": package, "PATH": os.environ["PATH"]},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "wrong" not in done.stdout


# --- code of users --------------------------------------------------------------------------------


def test_imports_of_installed_modules_in_functions(project):
    """An import inside a function works, whether or not the module was imported before."""
    user = project(
        user="""
        def h(x):
            from xml.dom import pulldom
            import netrc
            return x.mean() * len(pulldom.START_ELEMENT)
        """
    )
    known = {name: sys.modules.pop(name) for name in ("xml.dom.pulldom", "netrc") if name in sys.modules}
    assert gaps(user.h, 2) == gaps(user.h, "inline") == gaps(user.h, 2)
    sys.modules.update(known)


def test_installed_files_without_a_version(project, tmp_path, monkeypatch):
    """A file among installed packages, without a version, counts as the user's own: changes are seen."""
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    loose = project("loose", **{"site-packages__loose": "K = 2.0\ndef f(x):\n    return K * x.mean()"})
    for value in (2.0, 5.0, 7.0):
        loose.K = value
        assert same(loose.f)


def test_objects_that_are_not_used(project):
    """A function would be refused for an open file or connection in its module that it does not use."""
    user = project(
        user="""
        import sqlite3, threading, shared
        BASE, STREAM, THREAD = sqlite3.connect(":memory:"), (i for i in range(3)), threading.Thread()
        def unused(x):
            return shared.triple(x)
        def used(x):
            return BASE.execute("select 2").fetchone()[0] * x.mean()
        def through(x):
            return shared.FILE.fileno() * x.mean()
        """,
        shared="FILE = open(__file__)\ndef triple(x):\n    return 3 * x.mean()",
    )
    try:
        assert same(user.unused)
        for function, what in ((user.used, "sqlite3.Connection"), (user.through, "TextIOWrapper")):
            with pytest.raises(ExecutionError, match=what):
                gaps(function, 2)
            assert gaps(function, None) == gaps(function, "inline")
    finally:
        user.shared.FILE.close()
        user.BASE.close()


# --- private functions ----------------------------------------------------------------------------


@dataclasses.dataclass
class Answer:
    mean: float
    ends: np.ndarray


@privatize(**PRIVATE)
def answer(x):
    return Answer(x.mean(), x[:2])


@privatize(**PRIVATE)
def recursive(x, depth=2):
    return x.mean() if depth == 0 else 2 * recursive(x, depth - 1)


@privatize(**PRIVATE)
def raw(x):
    return 3 * recursive.__wrapped__(x, 0)


@privatize(**PRIVATE | {"coins": ("rng",)})
def coined(x, rng):
    return x[rng.permutation(len(x))[:10]].mean()


class Double(Laplace):
    def norm(self, gap):
        return 2 * super().norm(gap)


class Holder:
    k = 2.0

    @privatize(**PRIVATE)
    def method(self, x, depth=1):
        return self.k * x.mean() if depth == 0 else self.method(x, depth - 1)

    @privatize(**PRIVATE)
    @classmethod
    def of_class(cls, x):
        return cls.k * x.mean()


@privatize(**PRIVATE)
def replaced(x, depth=2):
    return x.mean() if depth == 0 else 2 * other(x, depth - 1)


other = replaced.replace(epsilon=2)
RELEASED = {
    "recursive": recursive,
    "other settings": recursive.replace(epsilon=2),
    "raw": raw,
    "coins": coined,
    "own mechanism": privatize(**PRIVATE | {"mechanism": Double()})(np.mean),
    "method": Holder().method,
    "class method": Holder.of_class,
    "calls itself with other settings": replaced,
}


@for_each("what", RELEASED)
def test_private_functions(what):
    """Workers would measure other gaps for private functions, such as those that call private functions."""
    function = RELEASED[what]
    here = function.replace(workers="inline") if "method" not in what else None
    found = function.release(DATA).sensitivity
    if here is not None:
        function.forget()  # or it would be recalled
        assert found == here.release(DATA).sensitivity
    assert found > 0


def test_outputs_have_the_users_classes():
    """A release would have a copy of the user's class, from a worker."""
    released = answer(DATA)
    assert type(released) is Answer and released.ends.shape == (2,)


# --- packages -------------------------------------------------------------------------------------


def test_this_process_is_not_changed(project):
    """Orders that run in the user's own process would change its modules, classes or functions."""
    user, helpers = project(user=USER, helpers=HELPERS), sys.modules["helpers"]
    modules, method, attributes = dict(sys.modules), helpers.Child.go, dict(vars(helpers))
    members = dict(vars(helpers.Child))
    assert gaps(user.f, Mapper()) == gaps(user.f, "inline")
    assert {name: sys.modules[name] for name in modules} == modules
    assert vars(helpers) == attributes
    assert helpers.Child.go is method and dict(vars(helpers.Child)) == members
    before = user.f(DATA)
    helpers.SCALE = 7.0
    assert user.f(DATA) == 7 * before


def test_packages_can_be_packed_again(project):
    """A job that was unpacked and packed again would be another job."""
    user = project(user=USER, helpers=HELPERS)
    first = pack(job(user.f))
    assert digests(pack(job(user.f))) == digests(first)
    closed, mean = pack(job(counted())), pack(job(np.mean))

    def check():
        assert unpack(first).job.identity()["seed"] == job(np.mean).identity()["seed"]
        for known in (mean, closed):
            assert digests(pack(unpack(known).job)) == digests(known)

    in_a_child(check)


def test_other_packages_are_refused():
    """A package with the content of another, or a damaged one, would run."""
    one, two = pack(job(lambda x: x.mean())), pack(job(lambda x: x.max()))
    path, known, inner = pickle.loads(one.payload)
    damaged = pickle.dumps((path, known, inner[:-20]))
    mixed = pickle.dumps((path, known, pickle.loads(two.payload)[2]))

    def check():
        with pytest.raises(Refused, match="not what was sent"):
            unpack(dataclasses.replace(one, payload=two.payload))
        with pytest.raises(Refused, match="cannot be rebuilt there"):
            unpack(Package(hashlib.sha256(damaged).hexdigest(), damaged, one.module))
        with pytest.raises(Refused, match="its function is not the same there"):
            unpack(Package(hashlib.sha256(mixed).hexdigest(), mixed, one.module))

    in_a_child(check)


def test_folders_of_another_machine(monkeypatch):
    """Libraries in other folders on a cluster's machines could not be imported there."""
    here, there = pack(job(np.mean)), pack(job(np.mean), local=False)
    monkeypatch.setattr(package, "_OWN_PATH", ["only there", *sys.path])
    mine = list(sys.path)

    def check():
        unpack(there)
        assert sys.path == [*mine, "only there"]
        unpack(here)
        assert sys.path == mine

    in_a_child(check)


def test_packages_are_small_and_have_no_data(project):
    """Private data would be sent, or the entire program with a small function."""
    user = project(
        user="""
        import numpy as np
        RECORDS = np.full(10_000, 1234.5678)
        def f(x):
            return x.mean()
        """
    )
    package = pack(job(user.f))
    assert np.float64(1234.5678).tobytes() not in package.payload
    assert len(package.payload) < 30_000  # it has names of loaded modules; the records have 80,000 bytes


def test_attributes_of_data_send_no_data(project):
    """`x.values` is an attribute of the data: a table `values` in a module must not be sent for it."""
    user = project(
        user="import study\ndef f(x):\n    return study.clean(getattr(x, 'values', x)).mean()",
        study="import numpy as np\nvalues = np.full(9, 1234.5678)\ndef clean(x):\n    return x",
    )
    assert np.float64(1234.5678).tobytes() not in pack(job(user.f)).payload


def test_other_hash_seeds_agree(project, tmp_path):
    """The digest of a job would depend on the process that packs it, so all workers would refuse it."""
    user = project(user=USER + "    WORDS = {'a', 'b', 'c'}\n", helpers=HELPERS)
    here = digests(pack(job(user.f)))
    code = """
import user
import pickle
from privatize import samplers
from privatize.calibration.evaluators.choose import evaluator
from privatize.calibration.norms import NORMS
from privatize.execution.packaging.package import pack
made = pack(evaluator(user.f, n=50, sampler=samplers.uniform(0, 1), norm=NORMS["l1"], seed=1))
print(pickle.loads(made.payload)[1])
"""
    package = str(Path(sys.modules["privatize"].__file__).parents[1])
    for seed in ("1", "77"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": f"{tmp_path}:{package}", "PATH": "", "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == str(here)


def test_secrets_in_the_environment_stay_on_this_machine(monkeypatch):
    """Passwords in the environment would be sent to a cluster."""
    monkeypatch.setenv("PRIVATIZE_TEST_PASSWORD", "sesame-4711")
    assert b"sesame-4711" in pack(job(np.mean)).payload
    assert b"sesame-4711" not in pack(job(np.mean), local=False).payload


def test_a_refusal_does_not_affect_the_next_function(project):
    """In the user's own process, one function that was refused would make the next ones fail."""
    user = project(
        user="""
        import config
        def f(x):
            return getattr(config, "LIMIT_" + "abc"[0].upper()) * x.mean()
        """,
        config=CONFIG,
    )

    class Here:
        """Runs everything in this process."""

        map = staticmethod(lambda function, items: list(map(function, items)))

    with pytest.raises(ExecutionError, match="built at run time"):
        gaps(user.f, Here())
    assert gaps(np.mean, Here()) == gaps(np.mean, "inline")


def mean(x):
    return float(x.mean())


# --- the same everywhere --------------------------------------------------------------------------


class Odd(UserWarning):
    """A warning class of the user."""


class TestSurroundings:
    """What a function can read besides its data is the same in workers as in this process."""

    def test_warnings_that_are_errors(self):
        """A function that fails under the user's filters fails in workers too."""

        def warns(x):
            if x[0] > 0.96:
                warnings.warn("large", RuntimeWarning, stacklevel=1)
            return float(x.mean())

        found = estimate(warns, 2)
        assert np.array_equal(found.gaps, estimate(warns).gaps) and found.failed > 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = estimate(warns, 2)
            assert np.array_equal(found.gaps, estimate(mean).gaps) and found.failed == 0

    def test_filters_for_the_users_own_warnings(self):
        """A filter for the user's own warning class works in workers too."""

        def warns(x):
            if x[0] > 0.96:
                warnings.warn("large", Odd, stacklevel=1)
            return float(x.mean())

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", Odd)
            found = estimate(warns, 2)
            assert np.array_equal(found.gaps, estimate(warns).gaps) and found.failed > 0

    @pytest.mark.parametrize("mode", ["ignore", "raise"])
    def test_floating_point_errors(self, mode):
        """The user's np.seterr holds in workers."""

        def divides(x):
            y = np.array([1.0, 1.0]) / np.array([1.0, 0.0 if x[0] > 0.96 else 1.0])
            return float(x.mean() + 0 * y[0])

        with np.errstate(divide=mode):
            expected = estimate(divides)
            assert (expected.failed > 0) == (mode == "raise")
            assert np.array_equal(estimate(divides, 2).gaps, expected.gaps)

    def test_floating_point_callback(self):
        """The user's np.seterrcall does not make a function fail in workers that works here."""

        def divides(x):
            y = np.array([1.0, 1.0]) / np.array([1.0, 0.0])
            return float(x.mean() + 0 * y[0])

        before = np.seterrcall(lambda *_: None)
        try:
            with np.errstate(divide="call"):
                assert np.array_equal(estimate(divides, 2).gaps, estimate(divides).gaps)
        finally:
            np.seterrcall(before)

    def test_recursion_limit(self):
        """A recursive function for which the user raised the limit does not fail in workers."""

        def deep(x):
            def down(i):
                return 0.0 if i == 0 else down(i - 1)

            return float(x.mean() + down(2500))

        before = sys.getrecursionlimit()
        sys.setrecursionlimit(6000)
        try:
            assert np.array_equal(estimate(deep, 2).gaps, estimate(deep).gaps)
        finally:
            sys.setrecursionlimit(before)

    def test_decimal_precision(self):
        """The user's decimal context holds in workers."""

        def rounded(x):
            return float(decimal.Decimal(float(x.sum())) / 7)

        with decimal.localcontext() as context:
            context.prec = 4
            assert np.array_equal(estimate(rounded, 2).gaps, estimate(rounded).gaps)

    def test_environment(self, monkeypatch):
        """An environment variable that the program sets is seen by workers that already run."""

        def scaled(x):
            return float(x.mean() * float(os.environ.get("PRIVATIZE_TEST_FACTOR", "1")))

        estimate(mean, 2)
        monkeypatch.setenv("PRIVATIZE_TEST_FACTOR", "2")
        assert np.array_equal(estimate(scaled, 2).gaps, estimate(scaled).gaps)

    def test_working_folder(self, tmp_path, monkeypatch):
        """A relative path is the same file in workers, also after the program has changed its folder."""

        def scaled(x):
            return float(x.mean() * float(Path("factor.txt").read_text()))

        for name in ("1", "2"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "factor.txt").write_text(name)
            monkeypatch.chdir(tmp_path / name)
            assert np.array_equal(estimate(scaled, 2).gaps, estimate(scaled).gaps)

    def test_imports_inside_the_function(self):
        """A function that imports what it needs is accepted, whether or not that is loaded already."""
        code = """
        import logging, sys
        import numpy as np
        from privatize import estimate_sensitivity, plan, samplers
        if sys.argv[1] == "loaded":
            import colorsys
        def f(x):
            import colorsys
            return float(x.mean() + 0 * colorsys.ONE_THIRD)
        made = dict(n=20, sampler=samplers.uniform(0, 1), norm="l1", plan=plan(0.1), seed=1)
        print(estimate_sensitivity(f, workers=2, **made).value)
        """
        for state in ("fresh", "loaded"):
            done = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code), state],
                capture_output=True,
                text=True,
                timeout=300,
                env=os.environ | {"PYTHONPATH": ROOT, "PRIVATIZE_STORE": ""},
            )
            assert done.returncode == 0, (state, done.stderr)
            assert float(done.stdout) == estimate(mean).value

    def test_imports_inside_the_function_are_remembered(self, tmp_path):
        """A function that imports what it needs is calibrated once, not at every call with another seed."""
        done = script(
            f"""
            from privatize import privatize, samplers
            def f(x):
                import colorsys
                return float(x.mean() + 0 * colorsys.ONE_THIRD)
            unit = samplers.uniform(0, 1)
            made = dict(epsilon=1, gamma=0.1, sampler=unit, store={str(tmp_path / "a.db")!r})
            seeds = {{privatize(**made)(f).estimate(20).seed for _ in range(3)}}
            print(len(seeds))
            """
        )
        assert done.stdout.split() == ["1"] and done.stderr == ""

    @pytest.mark.parametrize("where", [2, "map", "executor"])
    def test_local_classes(self, where, spawned):
        """A function may use classes that are defined inside another function, as it is."""

        class Total:
            def __init__(self, x):
                self.value = float(x.mean())

        class TooLarge(ValueError):
            pass

        def f(x):
            if x[0] > 0.96:
                raise TooLarge
            return Total(x).value

        found = estimate(f, {"map": Mapper(), "executor": spawned}.get(where, where))
        assert np.array_equal(found.gaps, estimate(f).gaps) and found.failed > 0
