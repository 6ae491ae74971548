"""The code blocks of the README and of the docs are tests."""

import os
from doctest import ELLIPSIS, NORMALIZE_WHITESPACE

import pytest
from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

os.environ["PRIVATIZE_STORE"] = ""  # tests remember nothing on disk unless they say so


@pytest.fixture(autouse=True)
def _fresh_memory():
    """Begin every test without remembered estimates."""
    from privatize.store import open_store

    open_store("memory").forget()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(doctest_optionflags=ELLIPSIS | NORMALIZE_WHITESPACE), SkipParser()],
    patterns=["README.md", "docs/*.md"],
).pytest()
