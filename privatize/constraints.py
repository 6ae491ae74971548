"""Move a noisy answer to where it is valid. Post-processing is free: it costs no privacy."""

from privatize.outputs.constraints import correlations, orthonormal, positive, probabilities, semidefinite

__all__ = ["correlations", "orthonormal", "positive", "probabilities", "semidefinite"]
