"""Move a noisy answer to where it is valid. Post-processing is free: it costs no privacy."""

from privatize.outputs.constraints import (
    between,
    correlations,
    increasing,
    orthonormal,
    positive,
    probabilities,
    semidefinite,
    survival,
)

__all__ = ["between", "correlations", "increasing", "orthonormal", "positive", "probabilities"]
__all__ += ["semidefinite", "survival"]
