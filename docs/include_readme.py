"""Two pages of the docs are READMEs of the project, so that they cannot drift apart."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_PAGES = {"index.md": "README.md", "examples.md": "examples/README.md"}


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put a README, with its links seen from here, in place of a page."""
    source = _PAGES.get(page.file.src_uri)
    if source is None:
        return markdown
    text = (ROOT / source).read_text(encoding="utf-8")
    for there, here in (("](docs/", "]("), ("](../docs/", "]("), ("](examples/README.md)", "](examples.md)")):
        text = text.replace(there, here)
    return text
