"""Attacks on ourselves: the table and the picture of docs/attacks.md.

Each attack is a game. There are 1,000 users with balances from 1 to 10,000, and the target, whose balance is
50,000 in one world and 1 in the other. A fair coin chooses the world, the library answers about it, and the
attacker guesses the world. An attacker who knows nothing is right half of the time, and (ε, δ)-differential
privacy allows at most (e^ε + δ) / (1 + e^ε). Users are made up and the same in every run; noise is not.

    python examples/attacks.py            plays all games (about eight minutes)
    python examples/attacks.py --quick    fewer games
    python examples/attacks.py --docs     writes the table and the picture into docs/
"""

import argparse
import itertools
import math
import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

from privatize import Blocks, Budget, Catalogue, People, additive, check_fit, learn, privatize, samplers, seal
from privatize.errors import BudgetExceeded

DOCS = Path(__file__).parents[1] / "docs"
PAGE, PICTURE = DOCS / "attacks.md", DOCS / "attacks.svg"
N, HIGH, OUTLIER, GAMMA = 1000, 10_000, 50_000, 0.05
P = samplers.uniform(0, HIGH)
Game = Callable[[int], int]  # plays in a world, and returns the attacker's guess
Worlds = tuple[Any, Any]
Questions = tuple[Callable[[], Any], Callable[[int], Any]]  # two of them, about the same people
_number = itertools.count()


def bound(epsilon: float, delta: float = 0.0) -> float:
    """Return how often any attacker can be right at most."""
    return (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))


def private(function: Callable[..., Any], epsilon: float = 1.0, **settings: Any) -> Any:
    """Make a function private, with one calibration for all games."""
    known: dict[str, Any] = {"gamma": GAMMA, "sampler": P, "seed": 1, "store": None}
    return privatize(epsilon=epsilon, **known | settings)(function)


def users(value: float) -> Any:
    """Return the balances of all users; the target's comes first."""
    found = np.random.default_rng(2026).integers(1, HIGH + 1, N).astype(float)
    found[0] = value
    return found


WORLDS: Worlds = (users(1), users(OUTLIER))


def clipped(world: Any) -> Any:
    """Return a world as the function sees it with `domain="clip"`."""
    if isinstance(world, dict):
        return {name: clipped(column) for name, column in world.items()}
    return world if world.dtype == bool else np.clip(world, 0, HIGH)


def raw(function: Callable[..., Any], worlds: Worlds, *arguments: Any) -> Worlds:
    """Return what the function returns in each world: the attacker knows everybody else."""
    return function(clipped(worlds[0]), *arguments), function(clipped(worlds[1]), *arguments)


def evidence(release: Any, answers: Worlds) -> float:
    """Return the logarithm of how much likelier an answer with Laplace noise is in world 1."""
    away = [np.abs(release.value - answer) / release.scale for answer in answers]
    return float(np.sum(away[0] - away[1]))


def guess(found: float) -> int:
    """Return the likelier world, or 0 if the answers say nothing."""
    return int(found > 0)


def one_answer(function: Callable[..., Any], worlds: Worlds = WORLDS, **settings: Any) -> Game:
    """Return the game in which the attacker sees one answer."""
    asked = private(function, **settings)
    expected = raw(function, worlds)
    if settings.get("domain") == "as-is":
        expected = function(worlds[0]), function(worlds[1])
    return lambda world: guess(evidence(asked.release(worlds[world]), expected))


# --- 1: an outlier ----------------------------------------------------------------------------


def mean(x: Any) -> float:
    """Return the mean balance."""
    return float(x.mean())


def not_clipped() -> Game:
    """Return the game under a P without bounds, so that nothing is clipped."""
    return one_answer(mean, sampler=samplers.normal(5_000, 2_900), domain="as-is")


# --- 2: a small group -------------------------------------------------------------------------


def with_group(value: float) -> dict[str, Any]:
    """Return the users, of whom the first ten are in a group."""
    return {"balance": users(value), "group": np.arange(N) < 10}


GROUPED: Worlds = (with_group(1), with_group(OUTLIER))


def of_group(d: Any, inside: bool = True) -> float:
    """Return the mean balance of a group, or what is in the middle if it is empty."""
    chosen = d["balance"][d["group"] == inside]
    return float(chosen.mean()) if len(chosen) else HIGH / 2


def by_group(d: Any) -> Any:
    """Return the mean balance of those outside and inside the group."""
    return np.array([of_group(d, False), of_group(d, True)])


HALF, RARE = (samplers.table(balance=P, group=samplers.boolean(share), frame="dict") for share in (0.5, 0.01))


def for_the_group() -> Game:
    """Return the game with γ for a group that is a hundredth of the users."""
    return one_answer(by_group, GROUPED, sampler=RARE, gamma=GAMMA / 100)


# --- 3: the same question again ---------------------------------------------------------------


def repeated(times: int, cap: float | None = None) -> Game:
    """Return the game in which the same question is asked many times, until a budget says no."""
    asked, expected = private(mean, epsilon=0.25), raw(mean, WORLDS)

    def play(world: int) -> int:
        data, found = WORLDS[world], 0.0
        if cap is not None:
            budget = Budget(f"repeated {next(_number)}", epsilon=cap, gamma=GAMMA, ledger="memory")
            data = seal(data, name=budget.name, sampler=P, budget=budget)
        try:
            for _ in range(times):
                found += evidence(asked.release(data), expected)
        except BudgetExceeded:
            pass
        return guess(found)

    return play


# --- 4: a question that is chosen after an answer ---------------------------------------------

MANY, CELLS = 10_000, 100  # users, and cells of the means that P's datasets have
SPREAD = HIGH / math.sqrt(12 * MANY)
GRID = HIGH / 2 + SPREAD * np.linspace(-2, 2, CELLS + 1)


def near(x: Any, cell: int) -> float:
    """Return something harmless, unless the mean is in a cell: then what every single record moves a lot."""
    if GRID[cell] <= x.mean() < GRID[cell + 1]:
        return float(x.sum() % (2 * HIGH))
    return float(np.square(x).mean() / HIGH)


def adaptive(ask: Callable[[Any], Questions]) -> Game:
    """Return the game in which the answer to the first question decides the argument of the second."""
    rng = np.random.default_rng(4)

    def play(world: int) -> int:
        others = rng.uniform(1, HIGH, MANY - 1)
        worlds = np.append(1.0, others), np.append(float(OUTLIER), others)
        first_question, second_question = ask(worlds[world])
        first = first_question()
        cell = int(np.clip((first.value - GRID[0]) // (GRID[1] - GRID[0]), 0, CELLS - 1))
        found = evidence(first, raw(mean, worlds))
        return guess(found + evidence(second_question(cell), raw(near, worlds, cell)))

    return play


def outside() -> Game:
    """Return the game with two private functions, each of which keeps its own promise."""
    first, second = private(mean, epsilon=0.9), private(near, epsilon=0.1)
    return adaptive(lambda x: (lambda: first.release(x), lambda cell: second.release(x, cell=cell)))


def catalogue() -> Game:
    """Return the game with the same questions, declared together. Each game stands for other people."""
    budget = Budget(f"adaptive {next(_number)}", epsilon=1e9, gamma=GAMMA, ledger="memory")
    listed = Catalogue("adaptive", People(budget.name, MANY), gamma=GAMMA, sampler=P, budget=budget)
    first, second = listed.add(mean), listed.add(near, cell=list(range(CELLS)))
    listed.calibrate()

    def ask(x: Any) -> Questions:
        people = seal(x, name=budget.name)
        return (
            lambda: first.release(people, epsilon=0.9),
            lambda cell: second.release(people, cell=cell, epsilon=0.1),
        )

    return adaptive(ask)


# --- 5: a wrong P -----------------------------------------------------------------------------

NARROW = samplers.normal(5_000, 500).truncated(0, HIGH)
INDEPENDENT = samplers.table(balance=P, limit=P, spending=P, frame="dict")


def spending(value: float) -> dict[str, Any]:
    """Return users whose limits are near their balances; the target's are not."""
    rng, balance = np.random.default_rng(5), users(value)
    limit = np.clip(balance + rng.normal(0, 500, N), 0, HIGH)
    spent = np.clip(balance / 2 + rng.normal(0, 1_500, N), 0, HIGH)
    limit[0], spent[0] = 5_000, HIGH
    return {"balance": balance, "limit": limit, "spending": spent}


SPENDING: Worlds = (spending(1), spending(OUTLIER))


def coefficient(d: Any) -> float:
    """Return the balance's coefficient in a regression of spending on balance and limit."""
    x = np.column_stack([d["balance"], d["limit"]])
    x, y = x - x.mean(axis=0), d["spending"] - d["spending"].mean()
    return float(np.linalg.solve(x.T @ x + np.eye(2), x.T @ y)[0])


@additive(bounds=([0.0] * 8, [1.0] * 8))
def moments(d: Any) -> Any:
    """Return what the regression needs of each user, in units of 10,000."""
    x, y, z = (d[name] / HIGH for name in ("balance", "limit", "spending"))
    return np.column_stack([x, y, z, x * x, x * y, y * y, x * z, y * z])


def proven() -> Game:
    """Return the game about the moments, whose bounds hold for all pairs."""
    asked, expected = privatize(epsilon=1.0)(moments), raw(moments, SPENDING)
    return lambda world: guess(evidence(asked.release(clipped(SPENDING[world])), expected))


def learned(function: Callable[..., Any], worlds: Worlds, within: Any, epsilon: float, **how: Any) -> Game:
    """Return the game in which P is learned anew from the people of every game."""
    expected = raw(function, worlds)

    def play(world: int) -> int:
        budget = Budget(f"learned {next(_number)}", epsilon=epsilon + 1, gamma=GAMMA, ledger="memory")
        people = seal(worlds[world], name=budget.name, budget=budget)
        near_them = learn(people, within=within, epsilon=epsilon, **how)
        asked = private(function, sampler=near_them.family(), seed=None)
        return guess(evidence(asked.release(people), expected))

    return play


def learned_together() -> Game:
    """Return the game in which P knows how balance and limit go together."""
    return learned(coefficient, SPENDING, INDEPENDENT, 1.0, together=[("balance", "limit")])


def checked(function: Callable[..., Any], worlds: Worlds, sampler: Any) -> Game:
    """Return the game in which P is checked on the people of every game, and estimates are widened."""
    expected = raw(function, worlds)

    def play(world: int) -> int:
        budget = Budget(f"checked {next(_number)}", epsilon=2, gamma=GAMMA, ledger="memory")
        people = seal(worlds[world], name=budget.name, sampler=sampler, budget=budget)
        asked = private(function, sampler=sampler)
        fit = check_fit(asked, people, epsilon=1.0)
        return guess(evidence(asked.replace(fit=fit).release(people), expected))

    return play


# --- 6: differencing --------------------------------------------------------------------------


def total(x: Any) -> float:
    """Return the total of all balances."""
    return float(x.sum())


def total_without(x: Any) -> float:
    """Return the total without the target."""
    return float(x[1:].sum())


def differencing() -> Game:
    """Return the game in which the attacker, who knows nobody's balance, subtracts two totals."""
    everybody, others = private(total, epsilon=0.5), private(total_without, epsilon=0.5)
    return lambda world: int(everybody(WORLDS[world]) - others(WORLDS[world]) > HIGH / 2)


def singled_out(x: Any) -> float:
    """Return the mean balance plus the target's own."""
    return float(x.mean() + x[0])


def blocks() -> Game:
    """Return the game about the same function with `Blocks`."""
    asked = privatize(mechanism=Blocks(0.0, 2.0 * HIGH), epsilon=1.0)(singled_out)
    return lambda world: int(asked(clipped(WORLDS[world])) > HIGH)


# --- all of them ------------------------------------------------------------------------------


class Attack(NamedTuple):
    """An attack, what the promise says about it, and how many games are played.

    There are as many games as it takes for the interval to be on one side of the bound.
    """

    title: str
    epsilon: float  # of everything that the attacker sees
    prepare: Callable[[], Game]
    games: int = 2_000
    quick: int = 60


ATTACKS = (
    Attack("1 outlier, clipped", 1, lambda: one_answer(mean), 200_000),
    Attack("1 outlier, not clipped", 1, not_clipped),
    Attack("2 group of 10, P says 500", 1, lambda: one_answer(of_group, GROUPED, sampler=HALF)),
    Attack("2 all groups, P right", 1, lambda: one_answer(by_group, GROUPED, sampler=RARE)),
    Attack("2 all groups, γ = 0.0005", 1, for_the_group, 100_000, 0),
    Attack("3 asked once", 0.25, lambda: repeated(1), 100_000),
    Attack("3 asked 4 times", 1, lambda: repeated(4), 10_000),
    Attack("3 asked 16 times", 4, lambda: repeated(16), quick=15),
    Attack("3 with a budget", 1, lambda: repeated(16, cap=1.0), quick=30),
    Attack("4 adaptive", 1, outside, quick=10),
    Attack("4 adaptive, catalogue", 1, catalogue),
    Attack("5 scale", 1, lambda: one_answer(mean, sampler=NARROW)),
    Attack("5 scale, `family()`", 1, lambda: one_answer(mean, sampler=NARROW.family()), 5_000),
    Attack("5 scale, `learn`", 1.3, lambda: learned(mean, WORLDS, P, 0.3), 300, 5),
    Attack("5 scale, `check_fit`", 2, lambda: checked(mean, WORLDS, NARROW), 60, 1),
    Attack("5 dependence", 1, lambda: one_answer(coefficient, SPENDING, sampler=INDEPENDENT)),
    Attack("5 dependence, `learn`", 2, learned_together, 40, 1),
    Attack("5 dependence, `check_fit`", 2, lambda: checked(coefficient, SPENDING, INDEPENDENT), 40, 1),
    Attack("5 dependence, proven sums", 1, proven, 5_000),
    Attack("6 two totals", 1, differencing, 5_000),
    Attack("6 one question", 1, lambda: one_answer(singled_out)),
    Attack("6 one question, `Blocks`", 1, blocks, 60, 2),
)


class Outcome(NamedTuple):
    """How often an attacker was right."""

    attack: Attack
    right: int
    games: int
    warned: bool

    @property
    def share(self) -> float:
        """The measured accuracy."""
        return self.right / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """The accuracy's exact 95% interval."""
        low, high = stats.binomtest(self.right, self.games).proportion_ci(0.95)
        return float(low), float(high)

    @property
    def verdict(self) -> str:
        """Whether the bound was broken."""
        low, high = self.interval
        limit = bound(self.attack.epsilon)
        word = "**broke**" if low > limit else "held" if high <= limit else "open"
        return f"{word}, warned" if self.warned else word


def played(attack: Attack, games: int) -> Outcome:
    """Play an attack's games."""
    worlds = np.random.default_rng(1).integers(0, 2, games).tolist()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        play = attack.prepare()
        right = sum(play(world) == world for world in worlds)
    return Outcome(attack, right, games, any("Fragile" in each.category.__name__ for each in seen))


BEGIN, END = "<!-- attacks -->", "<!-- end of attacks -->"
_BETWEEN = re.compile(f"{BEGIN}\n\n(.*?)\n\n{END}", re.DOTALL)
HEAD = ["attack", "right", "95% interval", "bound", "verdict"]


def cells(outcome: Outcome) -> list[str]:
    """Return a row of the table."""
    low, high = outcome.interval
    figures = [f"{outcome.share:.3f}", f"{low:.3f}–{high:.3f}", f"{bound(outcome.attack.epsilon):.3f}"]
    return [outcome.attack.title, *figures, outcome.verdict]


def markdown(outcomes: list[Outcome]) -> str:
    """Return the table."""
    rows = [HEAD, ["---"] * len(HEAD), *map(cells, outcomes)]
    return "\n".join(f"|{'|'.join(row)}|" for row in rows)


def in_page(page: str) -> Iterator[str]:
    """Return the table that a page has between its marks."""
    yield from _BETWEEN.findall(page)


def rows_of(table: str) -> list[list[str]]:
    """Return the cells of a table in Markdown, without its head."""
    return [line.strip("|").split("|") for line in table.splitlines()[2:]]


def picture(table: str) -> str:
    """Return the table as a drawing that is readable on light and on dark pages."""
    left, width, step, grey = 190, 400, 22, "#7f7f7f"
    rows = rows_of(table)
    height = step * len(rows) + 60
    looks = (
        f'viewBox="0 0 {left + width + 20} {height}" font-family="sans-serif" font-size="12" fill="{grey}"'
    )

    def x(share: float) -> float:
        return left + width * (share - 0.3) / 0.7

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {looks}>',
        "<title>How often the attacker was right (dots, with 95% intervals), and the bound (bars)</title>",
    ]
    for share in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        parts += [
            f'<path d="M{x(share):.1f},10 V{height - 42}" stroke="{grey}" stroke-opacity=".3"/>',
            f'<text x="{x(share):.1f}" y="{height - 27}" text-anchor="middle">{share:g}</text>',
        ]
    for place, (title, right, interval, limit, verdict) in enumerate(rows):
        y, (low, high) = 20 + step * place, map(float, interval.split("–"))
        color = "#d9485f" if "broke" in verdict else "#2f8fd0"
        parts += [
            f'<text x="{left - 12}" y="{y + 4}" text-anchor="end">{title.replace("`", "")}</text>',
            f'<path d="M{x(float(limit)):.1f},{y - 8} v16" stroke="{grey}" stroke-width="3"/>',
            f'<path d="M{x(low):.1f},{y} H{x(high):.1f}" stroke="{color}" stroke-width="2"/>',
            f'<circle cx="{x(float(right)):.1f}" cy="{y}" r="4.5" fill="{color}"/>',
        ]
    words = "how often the attacker is right (dot), and the bound (bar)"
    parts.append(f'<text x="{left + width / 2}" y="{height - 6}" text-anchor="middle">{words}</text></svg>')
    return "\n".join(parts) + "\n"


def main() -> None:
    """Play all games."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer games")
    parser.add_argument("--docs", action="store_true", help=f"write the table into {PAGE.name}, and draw it")
    options = parser.parse_args()
    if options.quick and options.docs:
        parser.error("--docs needs all games: leave --quick out")
    outcomes = []
    print(f"{HEAD[0]:28s} {HEAD[1]:>6} {HEAD[2]:>14} {HEAD[3]:>6}  {HEAD[4]}")
    for attack in ATTACKS:
        if games := attack.quick if options.quick else attack.games:
            outcomes.append(played(attack, games))
            title, right, interval, limit, verdict = cells(outcomes[-1])
            print(f"{title:28s} {right:>6} {interval:>14} {limit:>6}  {verdict.replace('*', '')}", flush=True)
    if options.docs:
        page, table = PAGE.read_text(encoding="utf-8"), markdown(outcomes)
        PAGE.write_text(_BETWEEN.sub(lambda _: f"{BEGIN}\n\n{table}\n\n{END}", page), encoding="utf-8")
        PICTURE.write_text(picture(table), encoding="utf-8")


if __name__ == "__main__":
    main()
