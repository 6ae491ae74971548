"""The exponential mechanism, and posterior sampling."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from privatize.errors import OutputError, SettingsError
from privatize.mechanisms.base import BaseMechanism, Mask, Vector, inflate, labels, sup
from privatize.noise import grid


@dataclass(frozen=True)
class Exponential(BaseMechanism):
    """Choose one of fixed responses: the better its score, the likelier it is.

    The decorated function returns one score for each response, or takes the response as one
    more parameter that the call leaves open: ``score(data, response)``. Scores with labels (a dict, a
    pandas Series such as ``value_counts()``) are taken by label, and the labels must be the responses.
    Other scores are in the order of the responses. A response r is released with probability proportional to
    ``prior(r) * exp(ε score(r) / 2Δ)``.

    Parameters
    ----------
    responses : sequence
        The answers that can be given; public and fixed.
    prior : sequence of float, optional
        Public weights of the responses; equal by default. With log-likelihoods as scores this
        is posterior sampling (see ``examples/posterior.py``).
    norm : {"range", "sup"}
        How gaps of the scores are measured: half their range over the responses, which is
        enough (a shift common to all responses changes nothing) and never more than ``"sup"``,
        the paper's largest absolute gap.

    References
    ----------
    McSherry & Talwar, "Mechanism design via differential privacy", FOCS 2007; Rubinstein &
    Aldà, ICML 2017, Corollary 13.

    Examples
    --------
    >>> mechanism = Exponential(responses=["tea", "coffee"])
    >>> round(mechanism.norm(np.array([5.0, 3.0])), 9)
    1.0
    """

    tag: ClassVar[str] = "exponential"
    responses: Sequence[Any] = ()
    prior: Sequence[float] = ()
    norm_name: Literal["range", "sup"] = "range"

    def __init__(
        self,
        responses: Sequence[Any] = (),
        prior: Sequence[float] | None = None,
        norm: Literal["range", "sup"] = "range",
    ) -> None:
        answers = tuple(responses)
        if not answers:
            raise SettingsError("""mechanism='exponential' needs the answers that it may choose from: pass
                mechanism=Exponential(responses=[...]).""")
        weights = (1.0,) * len(answers) if prior is None else tuple(map(float, prior))
        if len(weights) != len(answers) or not all(0 < w < math.inf for w in weights):
            raise SettingsError(f"""prior does not fit: {len(answers)} responses need as many finite weights >
                0, and it has {len(weights)}. Leave out responses that may never be chosen.""")
        if norm not in ("range", "sup"):
            raise SettingsError(f"norm={norm!r} is not 'range' or 'sup'.")
        vars(self).update(responses=answers, prior=weights, norm_name=norm)  # it is frozen

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self.responses[:3])) + (", ..." if len(self.responses) > 3 else "")
        return f"Exponential(responses=[{shown}], norm={self.norm_name!r})"

    def norm(self, gap: Vector, /) -> float:
        """Return half the range of the score gaps, or their largest absolute value."""
        if self.norm_name == "sup":
            return sup(gap)
        # Halved before subtracting, so that it does not overflow. A large common shift cancels, but
        # the rounding of the gaps that it caused does not: that is added.
        return float(gap.max() / 2 - gap.min() / 2) + sup(gap) * 2.0**-52

    def scale(self, sensitivity: float, epsilon: float, delta: float = 0.0, /) -> float:
        """Return the temperature 2Δ/ε: a score higher by this is e times as likely."""
        return 2 * sensitivity / epsilon

    def error(self, sensitivity: float, epsilon: float, delta: float, confidence: float) -> float:
        """Return by how much the chosen response's score is below the best one at most.

        A response whose score is lower by t is chosen with at most exp(-εt/2Δ) times the best one's odds, so
        all of these together with probability at most exp(-εt/2Δ) over the best one's share of the prior.
        """
        least = min(self.prior) / math.fsum(self.prior)
        return self.scale(sensitivity, epsilon, delta) * math.log(1 / ((1 - confidence) * least))

    def evaluate(self, call: Callable[..., Any], opened: bool) -> Callable[..., Any]:
        """Return the function of the dataset whose output is one score per response."""

        def scores(data: Any, s0: int) -> Any:
            found = [call(data, s0, r) for r in self.responses] if opened else self._aligned(call(data, s0))
            array = np.asarray(found)
            if array.shape != (len(self.responses),) or array.dtype.kind not in "iuf":
                raise OutputError(f"""The exponential mechanism needs one score for each of its
                    {len(self.responses)} responses, but got values of shape {array.shape} and type
                    {array.dtype}.""")
            return array.astype(np.float64)

        return scores

    def _aligned(self, found: Any) -> Any:
        """Return scores in the order of the responses: labelled ones by label, all others as they are."""
        own = labels(found)
        if own is None and isinstance(found, tuple) and _same(getattr(found, "_fields", ()), self.responses):
            own = list(found._fields)  # type: ignore[attr-defined] # a named tuple
        if own is None:
            return found
        values = list(found.values()) if isinstance(found, dict) else found
        if len(np.shape(values)) != 1:  # a frame, say
            return values
        if not _same(own, self.responses):
            raise OutputError("""The labels of the scores are not the responses of the exponential mechanism:
                each response must be there once, with its own type (1 is not '1', 1.0 or True). Return a
                score for each response, also for those that no record has: scores.reindex(responses,
                fill_value=0) for a Series, {r: scores.get(r, 0) for r in responses} for a dict. Or return a
                list of scores in the order of the responses.""")
        scores = dict(zip(map(_label, own), np.asarray(values), strict=True))
        return np.array([scores[_label(response)] for response in self.responses])

    def release(
        self, vector: Vector, /, *, sensitivity: float, epsilon: float, delta: float = 0.0, whole: Mask
    ) -> Vector:
        """Return the index of the chosen response, as a vector of one."""
        # A gap of the scores is one rounded difference, or two of them halved.
        chosen = grid.choose(vector, inflate(sensitivity, 2), epsilon, self.prior)
        return np.array([chosen], dtype=np.float64)

    def wrap(self, vector: Vector) -> Any:
        """Return the response itself."""
        return self.responses[int(vector[0])]


def _same(own: Sequence[Any], responses: Sequence[Any]) -> bool:
    """Tell whether the labels are the responses, each of them once."""
    try:
        ours, theirs = {*map(_label, own)}, {*map(_label, responses)}
    except TypeError:  # a response that cannot be a label, such as a list
        return False
    return ours == theirs and len(ours) == len(own) == len(responses)


def _label(value: Any) -> tuple[type, Any]:
    """Return a label as something that equals no label of another type."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return tuple, tuple(map(_label, value))
    return type(value), value
