"""Some pages of the docs are files of the project, so that they cannot drift apart."""

from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_PAGES = {
    "index.md": "README.md",
    "examples.md": "examples/README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
}
_LINKS = {'"docs/': '"', "](docs/": "](", "](../docs/": "]("} | {
    f"]({file})": f"]({page})" for page, file in _PAGES.items()
}


def on_files(files: Any, *, config: Any) -> Any:
    """Put the notebooks beside the page that links to them."""
    from mkdocs.structure.files import File  # the tests import this file where mkdocs is not installed

    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        files.append(File.generated(config, notebook.name, content=notebook.read_bytes()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Put a file, with its links seen from here, in place of a page."""
    source = _PAGES.get(page.file.src_uri)
    if source is None:
        return markdown
    text = (ROOT / source).read_text(encoding="utf-8")
    for there, here in _LINKS.items():
        text = text.replace(there, here)
    return text
