"""How many pairs each bound needs, beside the paper's: arithmetic, not time."""

from privatize import plan

from .measuring import Result, result

# The paper's Table, as its authors' R package diffpriv 0.4.2.9000 computes it.
PAPER = {0.5: 8, 0.2: 61, 0.1: 285, 0.05: 1305, 0.01: 41_971, 0.001: 5_486_187}


def run(quick: bool) -> list[Result]:
    """Count pairs, two evaluations each."""
    found = []
    for gamma, paper in PAPER.items():
        for name, m, bound in (
            ("tolerance, balanced (the default)", "balanced", "tolerance"),
            ("tolerance, least", "least", "tolerance"),
            ("marginal, least", "least", "marginal"),
            ("dkw, least", "least", "dkw"),
        ):
            found.append(
                result("evaluations", f"γ={gamma}: {name}", plan(gamma, m, bound=bound).m, "pairs",
                       against="the paper's Table", theirs=paper, faster=True, series=name, x=gamma)
            )  # fmt: skip
    return found
