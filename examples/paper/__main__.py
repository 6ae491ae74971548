"""Run the paper's experiments and write the page that compares them with the paper.

    python -m examples.paper                       all of them, into docs/paper.md and docs/paper/
    python -m examples.paper --quick               a smaller run, in seconds, into a temporary folder
    python -m examples.paper --only cube_mean      one of them; the page is written again with it
    python -m examples.paper --saved               run nothing: pictures and page from what is saved

The page is made of what is saved in the folder, so that one script can be run again without the others.
"""

from pathlib import Path

from .common import SCRIPTS, again, agreement, arguments, claims_of, find, make, section

INTRODUCTION = """\
# The paper, reproduced

This page shows which results of Rubinstein and Aldà, "Pain-Free Random Differential Privacy with
Sensitivity Sampling" (ICML 2017), you can reproduce with this library, and which you cannot. Of {judged}
claims that we checked, {agree} agree. `python -m examples.paper` repeats all experiments and writes this
page.

γ is the share of random neighbouring pairs on which the promise may fail, m the number of sampled pairs, n
the number of records, and Δ̂ the estimated sensitivity: the k-th smallest of m gaps. A calibration may be
unlucky with probability ρ. Figures and theorems are numbered as in the paper's full version.
"""


def page(folder: Path) -> str:
    """Return the page of everything that is saved in a folder."""
    agree, judged = agreement([claim for name in SCRIPTS for claim in claims_of(name, folder)])
    parts = [INTRODUCTION.format(agree=agree, judged=judged), *(section(name, folder) for name in SCRIPTS)]
    return "\n".join(part for part in parts if part)


def main() -> None:
    """Run the scripts and write the page."""
    given = arguments(__doc__.partition("\n")[0], None, several=True)
    folder = given.out / "paper"
    for name in [given.only] if given.only else [each for each in SCRIPTS if find(each) is not None]:
        if given.saved:
            again(name, folder, given.png)
        else:
            make(name, given.quick, folder, given.png)
    (given.out / "paper.md").write_text(page(folder), encoding="utf-8")
    print(f"Written to {given.out / 'paper.md'}")


if __name__ == "__main__":
    main()
