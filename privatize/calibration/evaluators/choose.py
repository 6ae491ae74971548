"""Choose how pairs are evaluated: one by one, with `pair=`, in batches, or as a sum over records."""

from collections.abc import Sequence
from typing import Any

from privatize.calibration.additive import rows_of
from privatize.calibration.evaluators.base import Evaluator, Function, PairedEvaluator, PairFunction
from privatize.calibration.evaluators.batched import Batch, BatchedEvaluator
from privatize.calibration.evaluators.joint import Joint, JointEvaluator, JointNorm
from privatize.calibration.evaluators.summed import SummedEvaluator
from privatize.calibration.neighbours import NeighbourSampler, RecordSampler
from privatize.calibration.norms import Norm
from privatize.calibration.streams import coin_seed
from privatize.data.schema import Schema
from privatize.samplers import Sampler
from privatize.samplers.base import traits_of


def evaluator(
    function: Function,
    *,
    n: int,
    sampler: Sampler,
    norm: Any,
    seed: int,
    pair: PairFunction | None = None,
    batch: Batch = False,
    target: Schema | None = None,
    s0: int | None = None,
    entire: bool = False,
    turns: Sequence[Sampler] = (),
    **rest: Any,
) -> Evaluator:
    """Return the evaluator of a function's pairs; with ``entire``, always one for entire datasets.

    With ``turns`` each block is drawn from another one of several P.
    """
    rest |= {"function": function, "norm": Norm(norm), "s0": coin_seed(seed) if s0 is None else s0}
    if isinstance(function, Joint):
        rest |= {"pairs": NeighbourSampler(sampler, n, seed, target, turns), "norm": JointNorm(function)}
        return JointEvaluator(**rest)
    # For a sum over records two records make a pair, but only if P is known to draw them independently.
    rows = rows_of(function) if pair is None and not batch and not entire and traits_of(sampler).iid else None
    if rows is not None:
        return SummedEvaluator(pairs=RecordSampler(sampler, n, seed, target, turns), summand=rows, **rest)
    rest["pairs"] = NeighbourSampler(sampler, n, seed, target, turns)
    if pair is not None:
        return PairedEvaluator(pair=pair, **rest)
    return BatchedEvaluator(batch=batch, **rest) if batch else Evaluator(**rest)
