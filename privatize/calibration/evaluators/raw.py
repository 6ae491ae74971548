"""Evaluate pairs one after the other: the function on one neighbour, then on the other."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.calibration.checks import check_repeats
from privatize.calibration.evaluators.base import LARGEST, NOT_FINITE, Evaluator
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import Pair
from privatize.data import records
from privatize.errors import OutputError, PairError

PairFunction = Callable[[Any, int, Any], tuple[Any, Any]]
# Blocks with fewer pairs are reseeded before every evaluation: checking for use would cost as much.
_FEW = 16


class _SharedOutput(Exception):  # noqa: N818 - a signal; users see a `PairError`
    """`pair=` returned one object twice."""


class RawEvaluator(Evaluator):
    """Runs the function twice for each pair.

    Examples
    --------
    >>> from privatize import samplers
    >>> from privatize.calibration.neighbours import NeighbourSampler
    >>> from privatize.calibration.norms import NORMS, Norm
    >>> pairs = NeighbourSampler(samplers.uniform(0, 1), n=100, seed=1)
    >>> evaluator = RawEvaluator(function=np.mean, pairs=pairs, norm=Norm(NORMS["l1"]), s0=5)
    >>> evaluator.evaluate((0, 3), evaluator.learned).gaps.round(4).tolist()
    [0.0024, 0.0044, 0.0018]
    """

    def evaluate_block(self, start: int, stop: int, rng: rng_guard) -> Any:
        """Return the gaps of some pairs of one block.

        Every evaluation must find the public seed unused. Reseeding each time costs more than
        evaluating a cheap function, so as long as the function has not been seen to use the
        generators, one check at the end of the block tells whether any evaluation did. If so, the
        block is evaluated again, and from then on generators are reseeded each time.
        """
        before = self.cause
        while True:
            always = True
            pairs = self.pairs.span(start, stop, self.heartbeat)
            found: list[float] = []
            rng.reseed()
            for index in range(start, stop):
                reseed = self.uses_global_rng or self.structure is None or stop - start < _FEW
                always = always and reseed
                # A call of its own, so that the records are freed before the next are drawn.
                found.append(self._gap(index, next(pairs), rng, reseed))
            if always or not rng.may_be_used():
                next(pairs, None)  # so that it notes where it stopped
                return found
            self.uses_global_rng = True
            self.cause = before

    def _gap(self, index: int, pair: Pair, rng: rng_guard, reseed: bool) -> float:
        """Return the gap of one pair: a finite number, or infinity if anything went wrong."""
        first = self.structure is None
        if first:
            again = records.fresh(records.copy(records.head(pair[0], self.pairs.size)))
        try:
            a, b = self.measured(pair, rng, reseed)
            gap = self.norm.gap(a, b)
        except _SharedOutput:
            raise PairError("""pair= returned one and the same object as both values, so one of them was
                overwritten. Return two.""") from None
        except BaseException as error:
            described = self.structure is not None
            if first:  # only a pair that worked decides it
                self.structure = None
            if not isinstance(error, OutputError):
                return self.failed(index, error)
            if not described:
                raise
            return self.note(index, "output", "the function returned something that cannot be released")
        if self.coordinate_gaps is not None:
            with np.errstate(all="ignore"):
                self.coordinate_gaps[index] = np.atleast_1d(np.abs(a - b))
        if first:
            self.uses_global_rng = self.uses_global_rng or rng.may_be_used()
            if self.heartbeat is not None:  # the check below does not count as the pair's time
                self.heartbeat(index)
            if self.trusted != "pair=":  # its gaps are compared with plain evaluation afterwards
                check_repeats(self, a, again, rng)
        return gap if gap <= LARGEST else self.note(index, "not_finite", NOT_FINITE)

    measured = Evaluator.both  # the flat outputs whose difference counts


@dataclass(kw_only=True, eq=False)
class PairedEvaluator(RawEvaluator):
    """Gets both outputs of a pair from the user's `pair=`."""

    trusted = "pair="
    pair: PairFunction

    def identity(self) -> dict[str, Any]:
        """Return what must be the same wherever the pairs are evaluated, by name."""
        return super().identity() | {"pair=": self.pair}

    def measured(self, pair: Pair, rng: rng_guard, reseed: bool = True) -> tuple[Any, Any]:
        """Return the flat outputs of `pair=`."""
        drawn, position = pair
        n = self.pairs.n
        if reseed:
            rng.reseed()
        one, other = self.pair(records.fresh(records.head(drawn, n)), position, records.record(drawn, n))
        found = self.flat(one), self.flat(other)
        if one is other and not isinstance(one, int | float | np.generic):
            raise _SharedOutput
        return found
