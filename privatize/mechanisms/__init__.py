"""Mechanisms: a norm to measure gaps in, and a release calibrated to it.

Each is *sensitivity-induced* private in the sense of the paper (Definition 9): on a pair of
datasets whose outputs differ by at most Δ in the mechanism's norm, the release with parameter
Δ is (ε, δ)-differentially private.
"""

from privatize.mechanisms.base import Mechanism
from privatize.mechanisms.bernstein import Bernstein, BernsteinPolynomial
from privatize.mechanisms.exponential import Exponential
from privatize.mechanisms.gaussian import Gaussian
from privatize.mechanisms.laplace import Laplace
from privatize.mechanisms.named import as_mechanism

__all__ = ["Bernstein", "BernsteinPolynomial", "Exponential", "Gaussian", "Laplace"]
__all__ += ["Mechanism", "as_mechanism"]
