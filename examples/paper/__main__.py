"""Run the paper's experiments and write the page that compares them with the paper.

    python -m examples.paper                       all of them, into docs/paper.md and docs/paper/
    python -m examples.paper --quick               a smaller run, in seconds, into a temporary folder
    python -m examples.paper --only cube_mean      one of them; the page is written anew with it

The page is made of what is saved in the folder, so that one script can be run again without the others.
"""

from pathlib import Path

from .common import SCRIPTS, arguments, find, make, section

INTRODUCTION = """\
# The paper, reproduced

Every experiment of Rubinstein and Aldà, "Pain-Free Random Differential Privacy with Sensitivity Sampling"
(ICML 2017), run with this library: what the paper says, what we measured, and whether the two agree.
`python -m examples.paper` runs them and writes this page; whether a claim agrees is computed from the
numbers, not typed. Calibrations are seeded and remembered, so a second run recalls them. Figures, sections
and theorems have the numbers of the paper's full version. Its Figure 8, Lambert's W, is left out.
"""


def page(folder: Path) -> str:
    """Return the page of everything that is saved in a folder."""
    parts = [INTRODUCTION, *(section(name, folder) for name in SCRIPTS)]
    return "\n".join(part for part in parts if part)


def main() -> None:
    """Run the scripts and write the page."""
    given = arguments(__doc__.partition("\n")[0], None, several=True)
    folder = given.out / "paper"
    for name in [given.only] if given.only else [each for each in SCRIPTS if find(each) is not None]:
        make(name, given.quick, folder, given.png)
    (given.out / "paper.md").write_text(page(folder), encoding="utf-8")
    print(f"Written to {given.out / 'paper.md'}")


if __name__ == "__main__":
    main()
