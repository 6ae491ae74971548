"""What functions that bring a proven bound and their own evaluation have in common.

They need no P, no gamma and no calibration. Their answers are (ε, δ)-differentially private in the plain
sense: the bound holds for all pairs of neighbours.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from privatize.calibration.numeric import Array
from privatize.data.units import Unit
from privatize.errors import SettingsError
from privatize.mechanisms.base import BaseMechanism, Mechanism, Noise, Vector, complete
from privatize.mechanisms.gaussian import Gaussian
from privatize.mechanisms.laplace import Laplace
from privatize.outputs.structure import Structure


class Answer(NamedTuple):
    """What a proven release gives.

    Attributes
    ----------
    vector : array
        The numbers of the private answer, in the order of the structure.
    scale : float or array
        The scale of the noise in units of the answer; 0.0 if there is no noise of its own.
    sensitivity : float
        The proven bound in units of the answer; 1.0 for scores.
    """

    vector: Vector
    scale: Any
    sensitivity: float


class Proven(ABC):
    """An evaluation on private data with a bound that is proven for all pairs of neighbours.

    Subclasses are frozen dataclasses. The defaults of `check` and `noise_of` are for noise that is added to
    numbers by `Laplace` or `Gaussian`.

    Attributes
    ----------
    words : str
        The end of the sentence "differentially private, ...".
    broken : str
        The message of the error if `measure` returns None.
    samplable : bool
        Whether the function may also be calibrated under a P, if a gamma is given.
    """

    words: ClassVar[str]
    broken: ClassVar[str] = "The function is not what it was said to be, so its bound does not hold."
    samplable: bool = False

    def noise_of(self, mechanism: Mechanism) -> Noise:
        """Return the noise that is added to every number, or "" if there is none."""
        return complete(mechanism).noise

    def check(self, mechanism: Mechanism, epsilon: float, delta: float) -> None:
        """Refuse a mechanism, or an (ε, δ), that does not fit."""
        if type(mechanism) not in (Laplace, Gaussian):
            raise SettingsError(f"""mechanism={mechanism!r} does not fit a function with bounds of its own:
                noise is added to its numbers. Use Laplace(), which is the default, or Gaussian() with a
                delta.""")
        own: BaseMechanism = complete(mechanism)
        if own.scaled not in ("auto", "none"):
            raise SettingsError(f"""scaled={own.scaled!r} has no use here: weights come from pairs that are
                drawn from P, and a function with bounds of its own needs no P. Leave it out.""")
        own.check(epsilon, delta)

    def wrapped(self, wrap: Callable[[Callable[..., Any]], Callable[..., Any]], /) -> "Proven":
        """Return the same for a function that is called through another one, which passes the dataset on.

        What runs a function of the user applies `wrap` to it. Others take nothing but a dataset.
        """
        return self

    def for_persons(self, unit: Unit) -> "Proven":
        """Return the same for people with several rows; refuse if no bound is known for them."""
        raise SettingsError(f"""No bound is known for persons with several rows, by {unit.name!r}, only for
            rows. Use mechanism=Blocks(low, high), or prove one yourself: sensitivity=.""")

    def fits(self, data: Any, /) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse data whose form does not fit, before it is paid for. Only its schema may be read."""

    def bound_at(self, n: int, mechanism: Mechanism, /) -> float:
        """Return the bound for n records, in units of the answer and in the norm of the mechanism.

        The default is for answers that are drawn, and get no noise.
        """
        raise SettingsError(f"""No noise is added to the function's own numbers here, so there is no
            sensitivity, and no interval around an answer, for n={n} records. Try it on made-up data.""")

    @abstractmethod
    def structure(self, n: int) -> Structure:
        """Return the structure of the answer on n records. It never depends on data."""

    @abstractmethod
    def measure(self, data: Any, n: int) -> Array | None:
        """Return what noise is added to: an array whose shape and dtype are public.

        It never raises because of the values of the data. It returns None if the function turned out not to
        be what the user said it is; the error must then be `broken`.
        """

    @abstractmethod
    def release(self, measured: Array, n: int, mechanism: Mechanism, epsilon: float, delta: float) -> Answer:
        """Return the private answer."""
