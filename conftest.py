"""The code blocks of the README and of the docs are tests."""

import os
import random
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE
from importlib.util import find_spec

import numpy as np
import pytest
from numpy.random import mtrand
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

os.environ["PRIVATIZE_STORE"] = ""  # tests remember nothing on disk unless they say so

# It cannot be imported without scikit-learn.
collect_ignore = ["privatize/sklearn.py"] if find_spec("sklearn") is None else []


@pytest.fixture(autouse=True)
def _fresh_memory():
    """Begin every test without remembered estimates."""
    from privatize.store import open_store

    open_store("memory").forget()


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
