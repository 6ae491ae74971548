"""Release: a private answer, what was promised about it, and how far off it may be."""

import contextlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration.fit import Fit
from privatize.display.cards import Card, Rows, Shown, preview
from privatize.display.charts import Chart, Layer, onto, thin
from privatize.display.figures import amount, promise, round_up
from privatize.errors import OutputError, SettingsError
from privatize.mechanisms.accuracy import check_confidence, half_widths, mean_error
from privatize.outputs.describe import describe
from privatize.outputs.models import Model
from privatize.outputs.structure import Structure
from privatize.planning.groups import for_whom, gamma_for


@dataclass(frozen=True, kw_only=True)
class Release(Shown):
    """A private answer, and what was promised about it. Holds nothing else.

    Attributes
    ----------
    value : object
        The private answer, of the type that the function returns.
    epsilon, delta, gamma : float
        The promise: (ε, δ)-differential privacy on all but a share gamma of random neighbours. With gamma=0
        it holds for all neighbours.
    average_gamma : float
        The same share on average over calibrations, 1 - k/(m+1) (see `Sensitivity.average_gamma`).
    sensitivity : float
        Δ̂, the estimate that the noise was calibrated to.
    scale : object
        Scale of each number's noise, in the form of the answer: a number, an array, a frame, a dict. For a
        model it is a dict, with an item for each attribute.
    scaled : {"none", "total", "relative", "matrix"}
        How noise was divided among the numbers of the answer.
    signal : object or None
        How far each number is spread over datasets from P, over the spread of its noise, in the form of the
        answer. Where it is below 1 the number says little more than P does. None where it is not known, as
        without a P.
    mechanism : str
        Name of the mechanism.
    n, m, k : int
        Records, sampled pairs, and the order statistic.
    bound : str
        The bound that ties gamma, m and k together.
    noise : {"laplace", "normal", ""}
        The noise that was added to every number; none if the mechanism does something else.
    fit : Fit or None
        The check of P that has widened the estimate.
    proven : str
        Why the promise holds for all neighbours, in words; empty if it rests on sampled pairs.
    catalogue : str
        The `privatize.Catalogue` that the question is in; its gamma is for all of them together.
    constraints : str
        What made the answer valid after its noise was added, in words; empty if nothing did.
    unconstrained : object
        The answer as it was before that; None if nothing made it valid. Intervals are around its numbers.

    Examples
    --------
    >>> from privatize import privatize, samplers
    >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 1), seed=1)(np.mean)
    >>> release = mean.release(np.full(100, 0.5))
    >>> low, high = release.interval(0.95)
    >>> bool(low < release.value < high), round(float(high - low), 4)
    (True, 0.0467)
    >>> round(release.expected_error, 4)
    0.0078
    """

    value: Any
    epsilon: float
    delta: float
    gamma: float
    average_gamma: float
    sensitivity: float
    scale: Any
    mechanism: str
    n: int
    m: int
    k: int
    bound: str
    scaled: str = "none"
    signal: Any = field(default=None, repr=False)
    noise: Any = field(default="", repr=False)
    proven: str = ""
    catalogue: str = ""
    constraints: str = ""
    unconstrained: Any = field(default=None, repr=False)
    fit: Fit | None = field(default=None, repr=False)

    def interval(self, confidence: float = 0.95) -> tuple[Any, Any]:
        """Return the ends of an interval that contains the raw answer, in the form of the answer itself.

        The probability is over the noise, for each number by itself. The raw answer is the function's on
        the data as P allows it: records outside P's support are clipped to it first. The interval is
        computed from the answer and the public scale of the noise, so it tells no more than the answer.
        If the answer was made valid, the interval is around `unconstrained`, and its ends may be invalid.

        Parameters
        ----------
        confidence : float
            The probability, strictly between 0 and 1.

        Returns
        -------
        tuple
            The lower and the upper end, of the type of `value`.
        """
        vector, structure = self._parts()
        widths = self._widths(structure, confidence)
        widths = widths + _rounding(structure, np.abs(vector)) + _rounding(structure, widths)
        with np.errstate(over="ignore"):
            low, high = (structure.rebuild(vector + side) for side in (-widths, widths))
        return low, high

    @property
    def expected_error(self) -> Any:
        """The mean distance of each number from the raw one, in the form of the answer."""
        _, structure = self._parts(model=True)
        error = mean_error(self.noise, self._scales, structure.integers(), rounded=self.scaled != "none")
        return structure.arrange(error)

    def gamma_for(self, share: float) -> float:
        """Return a bound on the share of neighbours on which the promise fails for somebody of a group.

        It is gamma/share, and 1 at most: a small group may bear all of gamma. See "Whom gamma is about" in
        the documentation of the promise.

        Parameters
        ----------
        share : float
            The probability under P that a person belongs to the group.

        Examples
        --------
        >>> from privatize import privatize, samplers
        >>> mean = privatize(epsilon=1, gamma=0.01, sampler=samplers.uniform(0, 1), seed=1)(np.mean)
        >>> mean.release(np.full(100, 0.5)).gamma_for(share=0.1)
        0.1
        """
        return gamma_for(self.gamma, share)

    def plot(self, ax: Any = None) -> Any:
        """Plot the noise around the answer: where the raw one may be.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default. Needs matplotlib (the extra ``plot``).

        Returns
        -------
        matplotlib axes
        """
        return onto(self._chart(), ax)

    @property
    def _scales(self) -> NDArray[np.float64]:
        """The scale of each number's noise; one number if it is that of something else."""
        scale = self.scale
        if isinstance(scale, int | float | np.generic):
            return np.array([float(scale)])
        return scale.ravel() if type(scale) is np.ndarray else describe(scale).flatten(scale)

    @property
    def _noised(self) -> Any:
        """The answer with its noise, before anything made it valid."""
        return self.unconstrained if self.constraints else self.value

    def _parts(self, model: bool = False) -> tuple[NDArray[np.float64], Structure]:
        """Return the answer's numbers and its structure; refuse an answer whose numbers have no noise."""
        if not self.noise:
            ask = "Try the private function on made-up data, to see how far off its answers are."
            if not self.proven:
                ask = "Ask the private function: error_at(n) says how far off its answers are."
            raise SettingsError(f"""{self.mechanism} does not add noise to the numbers of an answer, so there
                is no interval around them. {ask}""")
        try:
            structure = describe(self._noised)
        except OutputError:  # the value was changed after the release
            raise SettingsError(f"""The answer is now a {type(self.value).__name__}, which has no numbers to
                put an interval around.""") from None
        if not model and any(isinstance(node, Model) for node in structure.nodes()):
            raise SettingsError(f"""The answer is a {type(self.value).__name__}: a model has no interval. The
                scale of the noise on each number that it has learned is in `scale`.""")
        vector = structure.flatten(self._noised)
        if np.isinf(vector).any():  # a number that is too large for a narrow type, such as float16
            most = _of_types(structure, _MOST, _LARGEST)
            vector = np.clip(vector, -most, most)
        return vector, structure

    def _widths(self, structure: Structure, confidence: float) -> NDArray[np.float64]:
        """Return how far each number is from the raw one at most, with this probability."""
        given = self._scales, check_confidence(confidence), structure.integers()
        return half_widths(self.noise, *given, rounded=self.scaled != "none")

    def _chart(self) -> Chart:
        """Return a density around one number, or intervals around several."""
        vector, structure = self._parts()
        widths, names = self._widths(structure, 0.95), structure.names()
        if len(vector) == 1:
            return _density(self, float(self._scales[0]), float(vector[0]), float(widths[0]))
        at = thin(len(vector), 100)
        x, low, high = list(map(float, range(len(at)))), (vector - widths)[at], (vector + widths)[at]
        return Chart(
            "where the raw numbers may be",
            "" if len(at) == len(vector) else f"{len(at)} of {len(vector):,} numbers",
            "answer",
            (
                Layer("interval", x, low.tolist(), high.tolist(), "95% for each number by itself"),
                Layer("point", x, vector[at].tolist(), (), "private answer", "red"),
            ),
            names=tuple(names[i] for i in at),
        )

    def card(self) -> Card:
        """Return the release as a card, its value first."""
        scaled = f", scale {amount(self._scales)}" if self.noise or not self.proven else ""
        sampled = f" (gap k={self.k:,} of m={self.m:,}, {self.bound})"
        average = ("on average over calibrations", f"gamma={round_up(self.average_gamma)}")
        rows: Rows = [
            ("promise", promise(self.epsilon, self.delta, self.gamma, self.proven)),
            *([] if self.proven else [average, ("it may fail for", for_whom(self.gamma, self.n))]),
            *([("sensitivity is", self.fit.words)] if self.fit else []),
            ("noise" if scaled else "mechanism", f"{self.mechanism}{scaled}"),
            *([("sensitivity", f"{self.sensitivity:.4g}{'' if self.proven else sampled}")] if scaled else []),
            ("records", f"n={self.n:,}"),
            *([("made valid by", f"{self.constraints}, after the noise")] if self.constraints else []),
            *(
                [("catalogue", f"{self.catalogue}, one gamma for all its questions")]
                if self.catalogue
                else []
            ),
        ]
        if self.signal is not None:
            signal = describe(self.signal).flatten(self.signal)
            low = "; below 1 it says little more than P does" if (signal < 1).any() else ""
            rows.append(("signal", f"{amount(signal, 2)} (spread under P over spread of the noise){low}"))
        if self.scaled != "none":
            rows.append(("noise is divided", f"scaled={self.scaled!r}"))
        chart = None
        with contextlib.suppress(SettingsError):  # this answer has no interval
            chart = self._chart()
            within = amount(self._widths(self._parts()[1], 0.95))
            rows.insert(0, ("within", f"± {within} of the raw answer, with 95% probability"))
        return Card("private answer", rows, chart, lead=preview(self.value))

    def __repr__(self) -> str:
        delta = f", delta={self.delta:g}" if self.delta else ""
        value = repr(self.value.item() if isinstance(self.value, np.generic) else self.value)
        gammas = f"gamma={self.gamma:.4g}, average_gamma={round_up(self.average_gamma)}"
        scale = f" scale={amount(self._scales)}, sensitivity={self.sensitivity:.4g}"
        scale = scale if self.noise or not self.proven else ""
        facts = (
            f"epsilon={self.epsilon:g}{delta}, "
            f"{f'differentially private {self.proven}' if self.proven else gammas}, "
            f"{self.mechanism}{scale}, n={self.n}{f', of {self.catalogue!r}' if self.catalogue else ''}"
            f"{f', {self.fit.words}' if self.fit else ''}"
            f"{f', made valid by {self.constraints}' if self.constraints else ''}"
        )
        return f"Release({value}, {facts})" if "\n" not in value else f"Release({facts}, value=\n{value})"


def _density(release: Release, scale: float, center: float, width: float) -> Chart:
    """Return the density of the noise around one number."""
    laplace, t = release.noise == "laplace", np.linspace(-5, 5, 201)
    t = t * 1.4 if laplace else t
    height = (np.exp(-np.abs(t)) / 2 if laplace else np.exp(-(t**2) / 2) / 2.5066) / scale
    x, inside = center + t * scale, np.abs(t * scale) <= width
    covered = f"95%: {center - width:.6g} to {center + width:.6g}"
    layers = (
        Layer("band", x[inside].tolist(), [0.0] * int(inside.sum()), height[inside].tolist(), covered),
        Layer("line", x.tolist(), height.tolist(), (), f"{release.mechanism} noise"),
        Layer("upright", [center], (), (), f"private answer {center:.6g}", "red"),
    )
    return Chart("where the raw answer may be", "answer", "density", layers)


_LARGEST = float(np.finfo(np.float64).max)
_MOST = {"float16": 65504.0, "bfloat16": 3.3e38, "float32": 3.4e38}
_DIGITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23}


def _rounding(structure: Structure, sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far rounding to its own type may move each number of at most these sizes.

    It is rounded once when it is released, and once as the end of an interval: the two may add up to one
    step. An integer beyond 2^53 is also rounded before that.
    """
    steps = _of_types(structure, _DIGITS, 2.0**-52)
    steps = np.where(structure.integers(), np.where(sizes < 2.0**52, 0.0, 2.0**-51), steps)
    return np.asarray(sizes * steps)


def _of_types(structure: Structure, known: dict[str, float], other: float) -> NDArray[np.float64]:
    """Return a property of the type of each number of an answer."""
    leaves = structure.leaves()
    return np.repeat([known.get(leaf.dtype_name, other) for leaf in leaves], [leaf.size for leaf in leaves])
