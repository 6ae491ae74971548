"""Mechanisms: a norm to measure gaps in, and a release calibrated to it.

Each is *sensitivity-induced* private in the sense of the paper (Definition 9): on a pair of
datasets whose outputs differ by at most Δ in the mechanism's norm, the release with parameter
Δ is (ε, δ)-differentially private.
"""

from collections.abc import Callable
from typing import Any

from privatize.errors import SettingsError
from privatize.mechanisms.base import Mechanism, complete
from privatize.mechanisms.bernstein import Bernstein, BernsteinPolynomial
from privatize.mechanisms.blocks import Blocks
from privatize.mechanisms.exponential import Exponential
from privatize.mechanisms.gaussian import Gaussian
from privatize.mechanisms.laplace import Laplace

__all__ = ["DEFAULT", "Bernstein", "BernsteinPolynomial", "Blocks", "Exponential", "Gaussian", "Laplace"]
__all__ += ["Mechanism", "as_mechanism"]

DEFAULT = Laplace()
"""The mechanism if nobody names one. Functions with a mechanism of their own accept no other object."""

_NAMED: dict[str, Callable[[], Mechanism]] = {"laplace": Laplace, "gaussian": Gaussian}
_NAMED |= {"exponential": Exponential, "bernstein": Bernstein}


def as_mechanism(value: Any) -> Mechanism:
    """Return the mechanism of this name, or the mechanism itself.

    Examples
    --------
    >>> as_mechanism("laplace")
    Laplace()
    >>> as_mechanism("cauchy")
    Traceback (most recent call last):
        ...
    privatize.errors.SettingsError: mechanism='cauchy' is not known. The mechanisms are laplace, \
gaussian, exponential and bernstein, or an instance such as Laplace() or Blocks(low, high).
    """
    if isinstance(value, str) and value in _NAMED:
        return _NAMED[value]()
    if isinstance(value, Mechanism) and not isinstance(value, type):
        scaled = complete(value).scaled
        if type(value) is not Gaussian and scaled not in ("auto", "none", "total", "relative"):
            raise SettingsError(f"""mechanism= is a {type(value).__name__} with scaled={scaled!r}, which is
                not 'none', 'total' or 'relative'.""")
        return value
    raise SettingsError(f"""mechanism={value!r} is not known. The mechanisms are laplace, gaussian,
        exponential and bernstein, or an instance such as Laplace() or Blocks(low, high).""")
