"""Formulas between dollar signs become MathML, which browsers show without a script or a font of ours.

So does Δ̂, which many fonts show badly.
"""

import re
from typing import Any

# Code and the words of pictures come first, so that they are left alone.
_PARTS = re.compile(
    r"^```.*?^```|`[^`\n]+`|<!--.*?-->|!\[[^\]]*\]\([^)]*\)|"
    r"(?<![\\$])\$\$(?P<block>[^$]+)\$\$|(?<![\\\w$])\$(?=\S)(?P<inline>[^$\n]+?)(?<=\S)\$(?![\w$])|(?P<hat>Δ\u0302)",
    re.DOTALL | re.MULTILINE,
)
_formulas: list[str] = []


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put a placeholder in the place of each formula, since Markdown would read its underscores and stars."""
    # Not above: the tests import this file where the extra "docs" is not installed.
    import latex2mathml.converter

    _formulas.clear()

    def placeholder(found: re.Match[str]) -> str:
        block, inline = found["block"], r"\hat\Delta" if found["hat"] else found["inline"]
        if block is None and inline is None:
            return found[0]
        display = "inline" if block is None else "block"
        _formulas.append(latex2mathml.converter.convert((block or inline).strip(), display=display))
        return f"FORMULA{len(_formulas) - 1}FORMULA"

    return _PARTS.sub(placeholder, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Put the formulas into the page."""
    return re.sub(r"FORMULA(\d+)FORMULA", lambda found: _formulas[int(found[1])], html)
