"""How much longer questions take together than drawing each pair once and running all of them on it."""

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from privatize import privatize, samplers
from privatize.function.asking import questions
from privatize.function.calibrator import Calibrator
from privatize.function.joint import JointQuestion, calibrated, joint, pilot

from .calibration import arrays, frames, loop
from .measuring import Result, compare, result

Asked = list[tuple[Callable[..., Any], dict[str, Any]]]
N, SEED = 1000, 7
TABLE = {
    "age": samplers.integers(18, 100),
    "income": samplers.uniform(0, 200_000),
    "sex": samplers.categorical(["F", "M"]),
    "height": samplers.normal(170, 10),
}


def share_above(x: Any, limit: float) -> Any:
    """Return a share."""
    return (x > limit).mean()


def share_of_incomes_above(d: Any, limit: float) -> Any:
    """Return a share."""
    return (d["income"] > limit).mean()


def mean_of(d: Any, column: str) -> Any:
    """Return a mean."""
    return d[column].mean()


def spread_of(d: Any, column: str) -> Any:
    """Return a standard deviation."""
    return d[column].std()


def cases() -> dict[str, tuple[Any, Asked]]:
    """Return P and sixty cheap questions, for arrays and for data frames."""
    plain: Asked = [(each, {}) for each in (np.mean, np.std, np.max, np.sum, np.var, np.median)] * 5
    shares: Asked = [(share_above, {"limit": 3.0 * at}) for at in range(1, 31)]
    columns = ("age", "income", "height")
    frames: Asked = [(mean_of, {"column": columns[at % 3]}) for at in range(15)]
    frames += [(spread_of, {"column": columns[at % 3]}) for at in range(15)]
    frames += [(share_of_incomes_above, {"limit": 6000.0 * at}) for at in range(1, 31)]
    return {
        "arrays": (samplers.uniform(0, 100), plain + shares),
        "data frames of pandas": (samplers.table(**TABLE), frames),
    }


def joined(sampler: Any, asked: Asked, gamma: float) -> JointQuestion:
    """Return the questions as one."""
    options = {"epsilon": 1, "gamma": gamma, "sampler": sampler, "store": None, "workers": "inline"}
    parts = []
    for function, arguments in asked:
        made = privatize(**options, min_sensitivity=1e-9)(function)
        parts += questions(made.definition, made.calibrator, "estimate", [(N,), dict(arguments)])[0]
    return joint("benchmark", parts[0].settings, parts, [str(at) for at in range(len(parts))])


def run(quick: bool) -> list[Result]:
    """Compare a joint calibration, with all its checks, with a loop that draws and runs all functions."""
    found = []
    for name, (sampler, every) in cases().items():
        for asked in (every[::3], every):
            question = joined(sampler, asked, 0.2 if quick else 0.05)
            weights, pairs = pilot(question, SEED).weights, question.settings.plan.m  # type: ignore[union-attr]
            split = frames if "frames" in name else arrays

            def bare(
                asked: Asked = asked, draw: Any = sampler.draw, m: int = pairs, split: Any = split
            ) -> None:
                def all_of_them(data: Any) -> None:
                    for function, arguments in asked:
                        function(data, **arguments)

                loop(all_of_them, m, draw, split, n=N)

            seeds = itertools.count()  # an estimate with the same seed would be remembered

            def together(question: Any = question, weights: Any = weights, seeds: Any = seeds) -> None:
                calibrated(Calibrator(), question, weights, next(seeds))

            with warnings.catch_warnings(action="ignore"):  # that some answers would be noise
                times = compare(together, bare, 3 if quick else 7)
            found.append(
                result("a catalogue", f"{len(asked)} questions, {name}", times.ours, "s",
                       against="drawing once, running all", theirs=times.theirs, ratio=times.ratio,
                       most=1.15 if len(asked) == 20 and "frames" in name else None,
                       note=f"n={N:,}, {pairs} pairs, inline; {times.spread}")
            )  # fmt: skip
    return found
