"""Draw how it works in one picture: neighbours, gaps, order statistic, noise. The picture of the README.

All numbers are those of the README's example, and come from the library: a mean of 1,000 ages.

    python examples/overview.py            prints the numbers
    python examples/overview.py --docs     draws docs/overview-*.svg, for light, dark, wide and narrow screens
"""

import argparse
from pathlib import Path

import numpy as np

from privatize import Sensitivity, privatize, samplers

DOCS = Path(__file__).parents[1] / "docs"
PANEL, GAP, HEIGHT = 216, 32, 262
COLORS = {
    "light": {"text": "#1f2328", "soft": "#59636e", "line": "#afb8c1", "blue": "#0969da", "red": "#cf222e"},
    "dark": {"text": "#e6edf3", "soft": "#9198a1", "line": "#484f58", "blue": "#58a6ff", "red": "#ff7b72"},
}
PANELS = (
    ("1  Draw neighbours", "made-up people from P,", "one record replaced"),
    ("2  Measure gaps", "run your function on both:", "how far apart are answers?"),
    ("3  Take a large gap", "as the sensitivity: at most a", "share γ of pairs is beyond it"),
    ("4  Add noise", "to the answer on your data,", "as wide as sensitivity / ε"),
)


@privatize(mechanism="laplace", epsilon=1.0, gamma=0.05, sampler=samplers.uniform(0, 100), seed=1, store=None)
def average_age(ages: np.ndarray) -> float:
    """Return the mean, as in the README."""
    return float(ages.mean())


def text(x: float, y: float, size: float, fill: str, words: str, more: str = "") -> str:
    """Write something into the picture."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}"{more}>{words}</text>'


def people(colors: dict[str, str]) -> list[str]:
    """Draw two rows of people that differ in one."""
    heights = np.random.default_rng(5).integers(14, 40, size=11)
    shapes = []
    for row, (name, base) in enumerate((("D", 118), ("D′", 182))):
        shapes.append(text(0, base - 4, 14, colors["text"], name))
        for place, height in enumerate(heights):
            changed = place == 7
            tall = 46 if changed and row else height
            fill = colors["red"] if changed else colors["line"]
            where = f'x="{28 + 17 * place}" y="{base - tall}" width="10" height="{tall}" rx="2"'
            shapes.append(f'<rect {where} fill="{fill}"/>')
    return shapes


def gaps(colors: dict[str, str], found: Sensitivity) -> list[str]:
    """Draw the gaps of all pairs, in the order in which they were drawn."""
    top = max(found.gaps)
    shapes = []
    for place, gap in enumerate(found.gaps):
        x, y = 4 + (PANEL - 8) * place / found.m, 184 - 108 * gap / top
        shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.3" fill="{colors["blue"]}"/>')
    shapes.append(f'<path d="M0 184H{PANEL}" stroke="{colors["line"]}"/>')
    return shapes


def order(colors: dict[str, str], found: Sensitivity) -> list[str]:
    """Draw the gaps in ascending order, with the one that is taken."""
    top = max(found.gaps)
    points = [
        (4 + (PANEL - 8) * place / found.m, 184 - 108 * gap / top)
        for place, gap in enumerate(sorted(found.gaps))
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points[::4])
    x, y = points[found.k - 1]
    return [
        f'<path d="M0 184H{PANEL}" stroke="{colors["line"]}"/>',
        f'<polyline points="{line}" fill="none" stroke="{colors["blue"]}" stroke-width="2"/>',
        f'<path d="M0 {y:.1f}H{PANEL}M{x:.1f} {y:.1f}V184" stroke="{colors["red"]}" stroke-dasharray="4 3"/>',
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colors["red"]}"/>',
        text(4, y - 7, 13, colors["red"], f"sensitivity {found.value:.3f}"),
        text(4, y + 18, 12, colors["soft"], f"gap {found.k} of {found.m}"),
    ]


def noise(colors: dict[str, str]) -> list[str]:
    """Draw the density of the noise around the raw answer, and one private answer."""
    places = np.linspace(-4, 4, 81)  # in units of the scale
    xs = PANEL / 2 + places * 24
    ys = 184 - 96 * np.exp(-np.abs(places))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    private, blue = PANEL / 2 + 1.6 * 24, colors["blue"]
    return [
        f'<path d="M0 184H{PANEL}" stroke="{colors["line"]}"/>',
        f'<polyline points="{line}" fill="{blue}" fill-opacity="0.15" stroke="{blue}" stroke-width="2"/>',
        f'<path d="M{PANEL / 2} 88V184" stroke="{colors["line"]}" stroke-dasharray="4 3"/>',
        text(PANEL / 2 - 8, 100, 12, colors["soft"], "raw answer,", ' text-anchor="end"'),
        text(PANEL / 2 - 8, 115, 12, colors["soft"], "never shown", ' text-anchor="end"'),
        f'<circle cx="{private:.1f}" cy="184" r="5" fill="{colors["red"]}"/>',
        text(private, 106, 13, colors["red"], "private"),
        text(private, 121, 13, colors["red"], "answer"),
        f'<path d="M{private:.1f} 127V177" stroke="{colors["red"]}"/>',
    ]


def picture(found: Sensitivity, theme: str, across: int) -> str:
    """Return the picture as SVG, on a transparent background, with so many panels side by side."""
    colors = COLORS[theme]
    shapes = []
    drawn = (people(colors), gaps(colors, found), order(colors, found), noise(colors))
    for place, ((title, first, second), panel) in enumerate(zip(PANELS, drawn, strict=True)):
        x, y = place % across * (PANEL + GAP), place // across * HEIGHT
        shapes += [f'<g transform="translate({x} {y})">', *panel]
        shapes.append(text(0, 28, 18, colors["text"], title, ' font-weight="600"'))
        for base, words in ((220, first), (240, second)):
            shapes.append(text(0, base, 14.5, colors["soft"], words))
        shapes.append("</g>")
    words = "Neighbours are drawn from P, gaps are measured, a large gap is the sensitivity, noise is added."
    width, height = across * (PANEL + GAP) - GAP, len(PANELS) // across * HEIGHT
    box = f'viewBox="0 0 {width} {height}" role="img" aria-label="{words}"'
    fonts = "system-ui, -apple-system, Segoe UI, Roboto, sans-serif"
    return "\n".join(
        [f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="{fonts}">', *shapes, "</svg>", ""]
    )


def main() -> None:
    """Draw the picture, or print what it shows."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--docs", action="store_true", help="draw the pictures of the README")
    parser.add_argument("--quick", action="store_true", help="it is quick in any case")
    arguments = parser.parse_args()
    found = average_age.estimate(n=1000)
    print(f"{found.m} pairs; the sensitivity, and the scale of noise, is gap {found.k}: {found.value:.4f}")
    if arguments.docs:
        for theme in COLORS:
            for name, across in (("overview", 4), ("overview-narrow", 2)):
                drawn = picture(found, theme, across)
                (DOCS / f"{name}-{theme}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
