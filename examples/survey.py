"""A survey's cross table: how people of each age answered, as private counts, and what follows from them.

One table is released. Totals and shares are computed from the released numbers, which costs nothing more.
The raw table is shown beside it only because these people are made up.

    python examples/survey.py            prints the tables
    python examples/survey.py --quick    with fewer pairs

Needs pandas.
"""

import argparse
from typing import Any

import numpy as np
import pandas as pd

from privatize import configure, privatize, samplers

N = 1_200
AGES = ["16-29", "30-49", "50-69", "70+"]
ANSWERS = ["agree", "neither", "disagree", "no answer"]

# P: what the form allows, every box alike. Rows and columns of the table come from here, and never from what
# people happened to tick.
P = samplers.table(
    age=samplers.categorical(AGES),
    answer=samplers.categorical(ANSWERS, unknown="no answer"),
)


@privatize(epsilon=0.5, gamma=0.05, sampler=P, seed=1)
def cross_table(people: pd.DataFrame) -> pd.DataFrame:
    """Count people by age and answer; `dropna=False` keeps the boxes that nobody has ticked."""
    return pd.crosstab(people["age"], people["answer"], dropna=False)


def survey() -> pd.DataFrame:
    """Make up people who are not from P: older ones agree more often, and few leave the answer out."""
    rng = np.random.default_rng(5)
    age = rng.choice(len(AGES), N, p=[0.2, 0.35, 0.3, 0.15])
    agree, drawn = np.array([0.25, 0.4, 0.55, 0.7])[age], rng.random(N)
    answer = np.select([drawn < agree, drawn < agree + 0.15, drawn < 0.99], ANSWERS[:3], ANSWERS[3])
    return pd.DataFrame({"age": np.array(AGES)[age], "answer": answer})


def plan(ask: Any) -> None:
    """Print what a table would cost. This needs no data, only the number of people."""
    moves = ask.estimate(N).value
    print(f"{N:,} people, {len(AGES)} x {len(ANSWERS)} boxes. A replaced person leaves one box and enters")
    print(f"another, so the table moves by {moves:g}: under P, and for any other people, too.\n")
    print("epsilon   each count is within, 19 times out of 20")
    for epsilon in (0.1, 0.25, 0.5, 1.0, 2.0):
        print(f"{epsilon:7g}   ± {np.asarray(ask.error_at(N, epsilon=epsilon)).max():g}")
    print(f"What would ± 5 take? epsilon={ask.epsilon_for(N, error=5):.3g}.")


def with_totals(boxes: Any) -> pd.DataFrame:
    """Return a table of counts with the totals of rows, of columns and of all."""
    wide = pd.DataFrame(boxes, index=AGES, columns=ANSWERS)
    wide["all"] = wide.sum(axis=1)
    wide.loc["all"] = wide.sum()
    return wide


def published(counts: pd.DataFrame) -> pd.DataFrame:
    """Make a table that adds up to everybody, without negative counts.

    How many people there are is public, so what the boxes have too much or too little is taken off all of
    them alike, and the rest off the largest. Totals come before cutting off at 0, which would make them too
    large on average. All that is computed from what was released, so it costs nothing.
    """
    boxes = counts.to_numpy().ravel()
    each, rest = divmod(int(boxes.sum()) - N, boxes.size)
    boxes = boxes - each
    boxes[np.argsort(boxes)[boxes.size - rest :]] -= 1
    return with_totals(boxes.reshape(counts.shape)).clip(lower=0)


def agreeing(table: pd.DataFrame) -> pd.Series:
    """Return the share of those who agree among those who answered, in percent."""
    return (100 * table["agree"] / (table["all"] - table["no answer"])).round(1)


def main(quick: bool) -> None:
    """Plan, ask once, and compute the rest from the answer."""
    configure(store=None)  # an example leaves nothing behind
    ask = cross_table.replace(gamma=0.2, samples="least") if quick else cross_table
    plan(ask)
    people = survey()
    release = ask.release(people)
    low, high = release.interval()
    error = float((high - low).to_numpy().max() / 2)

    private, raw = published(release.value), with_totals(ask.__wrapped__(people))
    print(f"\nprivate, epsilon={release.epsilon:g}: boxes ± {error:g}, totals of four about twice that")
    print("(a box that came out below 0 is shown as 0)")
    print(private.to_string())
    print("\nraw, which would not be published")
    print(raw.to_string())
    print("\nwho agrees, in percent of those who answered: computed from the tables")
    print(pd.DataFrame({"private": agreeing(private), "raw": agreeing(raw)}).T.to_string())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer pairs")
    main(parser.parse_args().quick)
