"""Read from the source which module of ours imports which: for tests, and for a picture in the docs.

``python -m tests.packages --write`` draws docs/packages.svg again; `tests/test_design.py` fails if it is
out of date.
"""

import ast
import functools
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

import privatize

ROOT = Path(privatize.__file__).parent
PICTURE = Path(__file__).parents[1] / "docs" / "packages.svg"
# A package imports only packages further down. The lazy table of `privatize/__init__.py` is exempt.
LAYERS = [
    "__main__", "cli", "testing", "sklearn", "sums", "constraints", "reports", "auditing", "function",
    "budgets", "storage", "config", "calibration", "execution", "identity", "samplers", "mechanisms",
    "outputs", "data", "noise", "planning", "display", "errors",
]  # fmt: skip


# Public modules that only re-export are not in the picture.
_LEFT_OUT = {"__main__", "testing", "sklearn", "sums", "constraints"}
# How far to the right a package is drawn, so that arrows avoid boxes; the others are on the left.
_RIGHT = {
    "calibration": 0.5,
    "outputs": 0.5,
    "mechanisms": 0.8,
    "noise": 0.8,
    "planning": 0.8,
    "display": 0.65,
}


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT.parent).with_suffix("").parts)


OURS = {_name(path): path for path in ROOT.rglob("*.py")}
MODULES = {name.removesuffix(".__init__"): path for name, path in OURS.items() if name.count(".") > 1}
MODULES |= {name: path for name, path in OURS.items() if name.count(".") == 1 and "__init__" not in name}


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return the syntax tree of a file, as the nodes in it: the first one is the module."""
    return tuple(ast.walk(ast.parse(path.read_text())))


@functools.cache
def imports(path: Path) -> tuple[tuple[str, list[str]], ...]:
    """Return the modules of ours that a file imports, late imports included, and the names that it takes."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[tuple[str, list[str]]]:
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names if alias.name.split(".")[0] == "privatize")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "privatize":
            assert node.level == 0, f"{path} imports relatively"
            for alias in node.names:
                module = f"{node.module}.{alias.name}"
                yield (module, []) if module in MODULES else (str(node.module), [alias.name])


def package(module: str) -> str:
    """Return the package, or the module of the top level, that a module belongs to."""
    return module.split(".")[1] if "." in module else module


def package_imports() -> dict[str, set[str]]:
    """Return the packages that each package imports."""
    found: dict[str, set[str]] = {name: set() for name in LAYERS}
    for name, path in MODULES.items():
        used = {package(module) for module, _ in imports(path) if module != "privatize"}
        found[package(name)] |= used - {package(name)}
    return found


def _below(name: str, graph: dict[str, set[str]]) -> set[str]:
    """Return everything that a package imports, directly or through others."""
    return set().union(*({used} | _below(used, graph) for used in graph[name]))


def _level(name: str, graph: dict[str, set[str]]) -> int:
    return 1 + max((_level(used, graph) for used in graph[name]), default=-1)


def drawn() -> str:
    """Return the picture: each package above all that it imports."""
    graph = {name: used - _LEFT_OUT for name, used in package_imports().items() if name not in _LEFT_OUT}
    direct = {
        name: {one for one in used if not any(one in _below(other, graph) for other in used - {one})}
        for name, used in graph.items()
    }
    levels = {name: _level(name, graph) for name in graph}
    top, width, height = max(levels.values()), 640, 62
    places = {name: (width * _RIGHT.get(name, 0.2), 30 + height * (top - levels[name])) for name in graph}
    tip = '<path d="M0,0 L8,4 L0,8 z" fill="#808080"/>'
    shape = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
    size = f'viewBox="0 0 {width} {height * (top + 1)}"'
    # There is no background, so that the picture fits light and dark pages.
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="15">',
        f'<marker id="tip" {shape}>{tip}</marker>',
    ]
    # An arrow is left out if other arrows lead the same way.
    for name, used in direct.items():
        for other in sorted(used):
            (x, y), (u, v) = places[name], places[other]
            curve = f"M{x:.0f},{y + 15:.0f} C{x:.0f},{y + 45:.0f} {u:.0f},{v - 45:.0f} {u:.0f},{v - 16:.0f}"
            lines.append(f'<path d="{curve}" fill="none" stroke="#808080" marker-end="url(#tip)"/>')
    for name, (x, y) in places.items():
        box = f'x="{x - 56:.0f}" y="{y - 15:.0f}" width="112" height="30" rx="5"'
        lines.append(f'<rect {box} fill="#eef3fb" stroke="#808080"/>')
        text = f'x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle" fill="#112"'
        lines.append(f"<text {text}>{escape(name)}</text>")
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__" and "--write" in sys.argv:
    PICTURE.write_text(drawn(), encoding="utf-8")
