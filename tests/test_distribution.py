"""What is installed is ours: the package index has another project under the name of our package."""

import re
import tomllib
from pathlib import Path

from privatize.cli.doctor import _EXTRAS
from privatize.identity.library import DISTRIBUTION

ROOT = Path(__file__).parents[1]
FOLDERS = ("privatize", "tests", "docs", "examples", ".ci", ".github")
KINDS = {".py", ".md", ".toml", ".yml", ".yaml", ".ipynb", ".cff", ".css", ".js", ""}
# After `pip install` and its options and other packages, or with extras.
STRANGER = re.compile(
    r"""pip\S*\s+install\s[^\n&|;`]*?(?<![\w./-])privatize(?![\w/-])|["'\s]privatize\[(?!a-z)[a-z{,]"""
)


def _files():
    yield from (each for each in ROOT.iterdir() if each.is_file() and each.suffix in KINDS)
    for folder in FOLDERS:
        yield from (each for each in (ROOT / folder).rglob("*") if each.is_file() and each.suffix in KINDS)


def test_nobody_is_told_to_install_a_strangers_code():
    """`pip install 'privatize[plot]'` would run a stranger's code on the machine that has private data."""
    for wrong in (
        "pip install -q 'privatize[plot]'",
        "pip install --upgrade privatize",
        '["privatize[plot]"]',
    ):
        assert STRANGER.search(wrong)
    assert not STRANGER.search("pip install 'privatize-dp[plot]'")
    found_in = {}
    for file in _files():
        if file == Path(__file__) or "__pycache__" in file.parts:
            continue
        text = file.read_text(encoding="utf-8", errors="ignore")
        found_in[file.relative_to(ROOT).as_posix()] = [found[0] for found in STRANGER.finditer(text)]
    assert {name: found for name, found in found_in.items() if found} == {}


def test_the_name_of_the_distribution_and_its_extras():
    """A message would name an extra that cannot be installed."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION
    extras = project["optional-dependencies"]
    assert set(_EXTRAS) | {"test", "test-all", "docs", "dev", "all"} == set(extras)
    named = set()
    for file in _files():
        text = file.read_text(encoding="utf-8", errors="ignore")
        named |= {
            one for found in re.findall(r"privatize-dp\[([a-z,-]+)\]", text) for one in found.split(",")
        }
    assert named <= set(extras)
