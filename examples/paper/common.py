"""What the scripts share: claims, one look for all figures, and where numbers and pages are written.

A script is a module of this package with four functions: ``run(quick)`` returns its numbers (plain JSON),
``draw(numbers, figure)`` draws them, ``claims(numbers)`` compares them with the paper, one by one, and
``summary(numbers)`` says the same in a short paragraph, for the page. The first line of its docstring is
its title, the next paragraph describes its figure. Optional libraries are imported within ``run``, so that
the page can be written from saved numbers without them.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import json
import platform
import tempfile
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import scipy
import scipy.stats

import privatize

DOCS = Path(__file__).parents[2] / "docs"
SEED = 2017

# In the order of the page, with what each picture shows, for those who cannot see it.
SCRIPTS = {
    "sampler": "True and empirical distribution of gaps, and the level above 1−γ",
    "operating_points": "The least m, and k/m, against γ for three bounds",
    "exponential_mean": "Estimates fall towards log(1/γ)/n as m grows",
    "cube_mean": "Estimates against the dimension, below the global sensitivity",
    "svm_sensitivity": "Estimates against the dimension, far below the global bounds",
    "svm_utility": "Error against ε, which falls sooner with sampling",
    "kde_utility": "Error against ε, and estimates relative to the global sensitivity",
    "corollaries": "Releases of five mechanisms, their distributions, and audited losses",
    "transfer": "Measured shares under Q, all below the allowed lines",
}

# Okabe and Ito's colors, which the colorblind can tell apart; markers tell them apart in gray. They are a
# little changed, and all text is gray, so that a picture without a background can be read on white and on
# black.
INK, ORANGE, SKY, GREEN = "#808080", "#CF8C00", "#4AA3D8", "#009E73"
YELLOW, BLUE, RED, PINK = "#B8A800", "#1F83C4", "#D55E00", "#CC6FA3"
COLORS = (BLUE, RED, GREEN, PINK, ORANGE, SKY, INK)
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
VERDICTS = {True: "yes", False: "no", None: "(not in the paper)"}
WHOLE: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}

STYLE: dict[str, Any] = {
    "figure.figsize": (6.4, 4.0),
    "figure.facecolor": "none",
    "figure.constrained_layout.use": True,
    "font.size": 10.5,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.labelsize": 11.5,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "grid.color": INK + "40",
    "grid.linewidth": 0.6,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "savefig.facecolor": "none",
    "svg.fonttype": "path",
    "svg.hashsalt": "paper",  # the same file at every run
}


@dataclass(frozen=True)
class Claim:
    """Something that the paper says, and what was measured.

    Attributes
    ----------
    text : str
        The claim, in the paper's words or close to them.
    where : str
        The figure, section, theorem or equation.
    measured : str
        What was found.
    agrees : bool or None
        Computed from the numbers; None where the paper claims nothing, as for the other bounds.
    why : str
        Why it differs, or what to know about it.
    """

    text: str
    where: str
    measured: str
    agrees: bool | None
    why: str = ""


class Script(Protocol):
    """A module of this package that makes one figure."""

    __name__: str
    __doc__: str | None

    def run(self, quick: bool) -> dict[str, Any]:
        """Return the numbers."""

    def draw(self, numbers: dict[str, Any], figure: Any) -> None:
        """Draw them."""

    def claims(self, numbers: dict[str, Any]) -> list[Claim]:
        """Compare them with the paper."""

    def summary(self, numbers: dict[str, Any]) -> str:
        """Say in a short paragraph what the paper claims and what was found."""


def at_most(count: int, trials: int, share: float) -> bool:
    """Tell whether a count is compatible with a share of at most this: false alarms are one in a million."""
    return bool(scipy.stats.binom.sf(count - 1, trials, share) > 1e-6)


def find(name: str) -> Script | None:
    """Import a script, or return None if there is none of that name."""
    full = f"{__package__}.{name}"
    if importlib.util.find_spec(full) is None:
        return None
    return cast("Script", importlib.import_module(full))


def words(script: Script) -> tuple[str, str]:
    """Return a script's title and what its figure shows: the start of its docstring."""
    title, _, rest = inspect.cleandoc(script.__doc__ or "").partition("\n\n")
    return title.rstrip("."), " ".join(rest.partition("\n\n")[0].split())


def make(name: str, quick: bool, folder: Path, png: bool = False) -> None:
    """Run a script, and save its numbers and its figure."""
    script = find(name)
    if script is None:
        print(f"{name}: not there", flush=True)
        return
    print(f"{name}: {words(script)[0]}", flush=True)
    start = time.perf_counter()
    try:
        numbers = json.loads(json.dumps(script.run(quick)))  # what is drawn is what is saved
    except ModuleNotFoundError as error:
        print(f"{name}: left out, since {error.name} is not installed", flush=True)
        return
    folder.mkdir(parents=True, exist_ok=True)
    versions = {"privatize": privatize.__version__, "numpy": np.__version__, "scipy": scipy.__version__}
    facts = {"quick": quick, "seed": SEED, "versions": versions | {"python": platform.python_version()}}
    write(script, {"script": name, **facts, "numbers": numbers}, folder / name, png)
    print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)


def again(name: str, folder: Path, png: bool = False) -> None:
    """Compare and draw the saved numbers of a script again, without running it."""
    script, path = find(name), folder / f"{name}.json"
    if script is not None and path.exists():
        write(script, json.loads(path.read_text(encoding="utf-8")), folder / name, png)


def write(script: Script, saved: dict[str, Any], path: Path, png: bool) -> None:
    """Save the numbers with what they say about the paper's claims, and the figure."""
    saved = {key: value for key, value in saved.items() if key != "numbers"} | {
        "claims": [vars(claim) for claim in script.claims(saved["numbers"])],
        "numbers": saved["numbers"],
    }
    text = json.dumps(saved, indent=1, ensure_ascii=False)
    path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
    save(script, saved["numbers"], path, png)


def save(script: Script, numbers: dict[str, Any], path: Path, png: bool) -> None:
    """Draw a figure and save it as SVG, and as PNG if wanted; without matplotlib, say so."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print(f"{path.name}: no figure, since matplotlib is not installed", flush=True)
        return
    with mpl.rc_context(cast("Any", STYLE)):
        figure: Any = Figure()
        script.draw(numbers, figure)
        figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
        if png:
            figure.savefig(path.with_suffix(".png"), dpi=150)


def arguments(description: str | None, argv: Sequence[str] | None, several: bool) -> argparse.Namespace:
    """Parse the command's arguments, and decide where it writes."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="seconds: fewer pairs, repeats and points")
    parser.add_argument("--png", action="store_true", help="save the figures as PNG too")
    parser.add_argument("--saved", action="store_true", help="run nothing: compare and draw what is saved")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where to write (default: docs/)")
    if several:
        parser.add_argument("--only", metavar="NAME", choices=SCRIPTS, help="one of: %(choices)s")
    given = parser.parse_args(argv)
    if given.quick and given.saved:
        parser.error("--saved runs nothing, so it cannot be quick.")
    if given.out is None:
        given.out = Path(tempfile.mkdtemp(prefix="paper-")) if given.quick else DOCS
    elif given.quick and given.out.resolve() == DOCS.resolve():
        parser.error("--quick does not write into docs/, which shows the full run: choose another --out.")
    return given


def main(name: str) -> None:
    """Run one script alone: ``python -m examples.paper.NAME [--quick]``; print its claims."""
    given = arguments(f"Run {name} alone.", None, several=False)
    folder = given.out / "paper"
    if given.saved:
        again(name, folder, given.png)
    else:
        make(name, given.quick, folder, given.png)
    for claim in claims_of(name, folder):
        print(f"\n{claim['text']} ({claim['where']})\n  measured: {claim['measured']}")
        print(f"  agrees: {VERDICTS[claim['agrees']]}")
        if claim["why"]:
            print(f"  note: {claim['why']}")
    print(f"\nWritten to {folder}")


def claims_of(name: str, folder: Path) -> list[dict[str, Any]]:
    """Return the saved claims of a script; none if it has not been run."""
    path = folder / f"{name}.json"
    return list(json.loads(path.read_text(encoding="utf-8"))["claims"]) if path.exists() else []


def agreement(claims: list[dict[str, Any]]) -> tuple[int, int]:
    """Return how many of the paper's claims agree, and how many there are."""
    judged = [claim["agrees"] for claim in claims if claim["agrees"] is not None]
    return sum(judged), len(judged)


def section(name: str, folder: Path) -> str:
    """Return a script's part of the page, from its saved numbers; empty if there are none."""
    script, path = find(name), folder / f"{name}.json"
    if script is None or not path.exists():
        return ""
    saved = json.loads(path.read_text(encoding="utf-8"))
    title, _ = words(script)
    lines = [f"## {title}", ""]
    if saved["quick"]:
        lines += ["*A quick run: smaller than the paper's.*", ""]
    if (folder / f"{name}.svg").exists():
        lines += [f"![{SCRIPTS[name]}](paper/{name}.svg)", ""]
    agree, judged = agreement(saved["claims"])
    verdict = f"**[{agree} of {judged} claims agree](paper/{name}.json).**"
    lines += [*textwrap.wrap(f"{script.summary(saved['numbers'])} {verdict}", 120, **WHOLE), ""]
    return "\n".join(lines)
