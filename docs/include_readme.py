"""The first page of the docs is the README, so that they cannot drift apart."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put the README, with its links seen from here, in place of the first page."""
    if page.file.src_uri != "index.md":
        return markdown
    return (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
