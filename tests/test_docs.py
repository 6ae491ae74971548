"""The docs can be read: they are short, links lead somewhere, and pictures have words and two variants."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FILES = [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "examples/README.md"))]
# Pages that docs/include_readme.py fills.
FILLED = {"index.md", "examples.md", "changelog.md", "contributing.md", "security.md"}


def _prose(path):
    """Return a page without code, in which brackets are no links."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]+`", "code", text)


def _anchors(path):
    """Return the anchors of a page, as the site's builder makes them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = set(re.findall(r"""<a id="([^"]+)">""", text))
    for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE):
        explicit = re.search(r"\{#([\w-]+)\}", heading)
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).encode("ascii", "ignore").decode().lower()
        found.add(explicit[1] if explicit else re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", words).strip()))
    return found


def test_the_docs_are_short_enough_to_be_read():
    """Nobody reads a hundred thousand words."""
    words = sum(len(path.read_text(encoding="utf-8").split()) for path in PAGES)
    assert words < 35_000
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    """A reader would follow a link to a page or a heading that is gone, here or on the site."""
    for target in re.findall(r"\]\(([^)\s]+)\)", _prose(path)):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        place, _, anchor = target.partition("#")
        page = (path.parent / place).resolve() if place else path
        assert page.exists(), target
        if anchor and page.suffix == ".md":
            assert anchor in _anchors(page), target


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pictures_have_words_and_are_there(path):
    """Somebody who cannot see a picture would get nothing, and at night others a black one on black."""
    text = _prose(path)
    for words, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", text):
        name, _, variant = target.partition("#")
        assert len(words) > 20 and (path.parent / name).exists(), target
        if variant == "only-light":
            assert target.replace("light", "dark") in text, target
    assert all((ROOT / name).exists() for name in re.findall(r'(?:src|srcset)="([^"]+)"', text)), path


def test_every_page_is_in_the_navigation():
    """A page that no menu shows is read by nobody."""
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in PAGES[1:] if f": {page.relative_to(DOCS).as_posix()}" not in menu] == []
