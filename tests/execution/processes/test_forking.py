"""The template process: children start from its clean state, within limits, and leave nothing behind."""

from dataclasses import dataclass, field
from pathlib import Path

from privatize.execution.packaging.package import pack
from privatize.execution.processes.forking import Limits
from privatize.execution.processes.template import evaluate


@dataclass
class Probe:
    """A job whose answers tell what a child finds."""

    folder: str
    version: str | None = None
    seen: list[bytes] = field(default_factory=list)

    def identity(self):
        """Return nothing: there is nothing to compare."""
        return {}

    def prepare(self):
        """Do nothing."""

    def answer(self, block):
        """Return one byte."""
        self.seen.append(block)
        if block == b"seen":
            return str(len(self.seen)).encode()
        if block == b"open":
            return str(len(list(Path("/dev/fd").iterdir())) - 1).encode()  # without the one that lists them
        if block == b"spin":
            while True:
                pass
        if block == b"hoard":
            return str(len(bytearray(2**31))).encode()[:1]
        with Path(self.folder, "left").open("wb") as file:
            file.write(block)
        return b"w"


def answers(folder, *blocks):
    """Evaluate blocks and return their answers in order."""
    numbered = list(enumerate(blocks))
    limits = Limits(1, 2**29)
    made = evaluate(pack(Probe(str(folder))), iter(numbered), lambda at: blocks[at], 2, limits, 2)
    return [answer for _, answer in sorted(made)]


def test_every_child_starts_from_the_same_state(tmp_path):
    """A running maximum would carry one person's record into other blocks."""
    assert answers(tmp_path, b"seen", b"seen", b"seen") == [b"1"] * 3


def test_children_have_no_descriptor_but_their_own_socket(tmp_path):
    """A block could read another block's records, or write an answer for it."""
    assert answers(tmp_path, b"open", b"open") == [b"4", b"4"]  # three of the null device, and the socket


def test_limits_end_the_block_that_exceeds_them(tmp_path):
    """A function that never ends, or takes all memory, would take everything with it."""
    assert answers(tmp_path, b"spin", b"hoard", b"seen") == [b"", b"", b"1"]


def test_no_content_is_written_to_files(tmp_path):
    """A block's records could be read from a file afterwards."""
    assert answers(tmp_path, b"secret", b"seen") == [b"", b"1"]
    assert all(not path.read_bytes() for path in tmp_path.iterdir())
