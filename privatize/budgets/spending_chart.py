"""A chart of how a budget was used up, charge by charge."""

from typing import Any

from privatize.budgets.charges import Totals
from privatize.budgets.terms import Terms
from privatize.display.charts import Chart, Color, Layer, thin
from privatize.planning.composition import Cost

COLORS: dict[str, Color] = {"epsilon": "blue", "delta": "green", "gamma": "orange"}


def spending(terms: Terms, history: list[dict[str, Any]]) -> Chart:
    """Return the shares of a budget that were used up after each of its charges."""
    shown = set(thin(len(history), 40 if terms.composition == "tight" else 300))
    totals: dict[tuple[str, str], Totals] = {}
    shares = {symbol: [(0.0, 0.0)] for symbol in COLORS if getattr(terms.cap, symbol)}
    for at, row in enumerate(history):
        total = totals.setdefault((row["partition"], row["part"]), Totals())
        total.cost += Cost.of(row["epsilon"], row["delta"], row["charged"])
        if row["epsilon"] or row["delta"]:
            total.counts = total.counts | {row["kind"]: total.counts.get(row["kind"], 0) + 1}
        if at in shown:
            cost = terms.least(totals)
            for symbol, line in shares.items():
                line.append((at + 1.0, float(getattr(cost, symbol) / getattr(terms.cap, symbol))))
    layers = []
    for symbol, line in shares.items():
        x, y = map(list, zip(*line, strict=True))
        layers.append(Layer("step", x, y, label=symbol, color=COLORS[symbol], dashed=symbol == "gamma"))
    everything = Layer("level", y=[1.0], color="red", dashed=True, label="all of it")
    title = f"what was spent of {terms.name}"
    return Chart(title, "answers", "share of the budget", (*layers, everything), limits=(0.0, 1.05))
