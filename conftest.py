"""The code blocks of the README and of the docs are tests."""

import math
import os
import random
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.random import mtrand
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

from tests.left_out import IN_A_WORKER, left_out

os.environ["PRIVATIZE_STORE"] = ""  # tests remember nothing on disk unless they say so

# They, or their examples, need scikit-learn.
_NEED_SKLEARN = ["privatize/sklearn.py", "privatize/function/private_estimator.py"]
_NEED_SKLEARN += ["privatize/function/predictions.py", "privatize/identity/model_guard.py"]
collect_ignore = _NEED_SKLEARN if find_spec("sklearn") is None else []
left_out(*collect_ignore)


def pytest_runtest_logreport(report):
    """Name the tests that were skipped in the list of those that were left out."""
    if report.skipped and not IN_A_WORKER:
        left_out(report.nodeid)


def pytest_collectreport(report):
    """Name the modules that were skipped, too."""
    if report.skipped and not IN_A_WORKER:
        left_out(report.nodeid)


def _forget():
    """Begin every test, and the fixtures of every module, without remembered estimates."""
    from privatize.storage.estimates import open_store

    open_store("memory").forget()


_of_test = pytest.fixture(autouse=True, name="_of_test")(_forget)
_of_module = pytest.fixture(autouse=True, scope="module", name="_of_module")(_forget)


# Pages whose examples take long: each runs functions on the pairs of every P of a family.
_SLOW_PAGES = {"people.md", "quickstart.md", "survey.md"}


def pytest_collection_modifyitems(items):
    """Mark the examples of some pages as slow."""
    for item in items:
        if item.path.name in _SLOW_PAGES:
            item.add_marker("slow")


_last = None  # the file that the last test was in


def pytest_runtest_setup(item):
    """Forget what another test, or an example in the docs, which has no fixtures, has set by configure().

    Stress tests are switched off: those of their own tests switch them on. Every file begins with an empty
    ledger in memory: a catalogue is refused after answers about people of the same name.
    """
    global _last
    from privatize.budgets.ledger import open_ledger
    from privatize.config import policy

    if item.path != _last:
        open_ledger.cache_clear()
        _last = item.path

    policy._chosen.clear()
    policy._chosen["stress"] = False


@pytest.fixture(autouse=True)
def _no_clock(monkeypatch):
    """Keep the clock from deciding where pairs are evaluated, and how many at a time.

    Without a number of workers they stay in this process, and tasks are as large as they may be, however busy
    the machine is. Tests of what the clock decides say what it shows.
    """
    from privatize.execution import choose as execution
    from privatize.execution import span_queue as work

    for module, name in ((execution, "_START"), (execution, "_WARM"), (work, "_INLINE"), (work, "_TASK")):
        monkeypatch.setattr(module, name, math.inf)


def _missing(module):
    """Tell whether a page must do without a module."""
    return find_spec(module) is None


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    setup=lambda namespace: namespace.update(missing=_missing),
    patterns=["README.md", "docs/*.md"],
).pytest()


@pytest.fixture
def own_generators():
    """Keep a test's use of the global generators to itself."""
    mine, bits = random.getstate(), mtrand.get_bit_generator()
    legacy = np.random.get_state(legacy=False)  # noqa: NPY002 - the global generator is what is tested
    yield
    random.setstate(mine)
    mtrand.set_bit_generator(bits)
    np.random.set_state(legacy)  # noqa: NPY002
