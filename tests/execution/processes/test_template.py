"""The supervisor of processes for blocks: answers come back by number, and a failure is one block's."""

import os
import signal
import time
from dataclasses import dataclass

from privatize.execution.packaging.package import pack
from privatize.execution.processes.forking import Limits
from privatize.execution.processes.template import evaluate

LIMITS = Limits(60, 2**30)


@dataclass
class Upper:
    """A job that returns its block in capital letters."""

    version: str | None = None

    def identity(self):
        """Return nothing: there is nothing to compare."""
        return {}

    def prepare(self):
        """Do nothing."""

    def answer(self, block):
        """Return capital letters; or fail in the way that the block names."""
        if block == b"raise":
            raise ValueError("private")
        if block == b"exit":
            os._exit(3)
        if block == b"kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if block == b"template":
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
        return block.upper()


def answers(*blocks):
    """Evaluate blocks in two lanes, and return their answers in order."""
    numbered = list(enumerate(blocks))
    made = evaluate(pack(Upper()), iter(numbered), lambda number: blocks[number], 6, LIMITS, 2)
    return [answer for _, answer in sorted(made)]


def test_answers_come_back_by_number():
    """One person's block would be taken for another's."""
    assert answers(b"alpha", b"bravo", b"gamma") == [b"ALPHA", b"BRAVO", b"GAMMA"]


def test_an_answer_of_another_length_is_none():
    """A block could send back more than its numbers."""
    assert answers(b"toolong", b"bravo", b"") == [b"", b"BRAVO", b""]


def test_a_block_that_fails_fails_alone():
    """One person could make other blocks fail, and so move all of them."""
    found = answers(b"raise", b"bravo", b"exit", b"kill", b"template", b"gamma")
    assert found == [b"", b"BRAVO", b"", b"", b"", b"GAMMA"]
