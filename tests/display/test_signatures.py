"""The parameters of a callable."""

import pytest

from privatize.display.signatures import signature_of


def test_annotations_for_type_checkers_alone():
    """A function could not be private if a type in its annotations is imported for a type checker only."""
    program = {}
    exec("from __future__ import annotations\ndef f(x: Missing, k: int = 1): pass", program)
    try:
        exec("def g(x: Missing, k: int = 1): pass", program)  # Python 3.14 takes this as well
    except NameError:
        program["g"] = program["f"]
    for name in "fg":
        assert list(signature_of(program[name]).parameters) == ["x", "k"]


def test_callables_without_a_signature():
    """A builtin without a signature must be refused as before, or called by position."""
    with pytest.raises(ValueError, match="no signature found"):
        signature_of(type)
