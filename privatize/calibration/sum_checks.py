"""Check sums over records against plain evaluation: on entire datasets, and record by record."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import streams
from privatize.calibration.checks import CHECKED, DRIFTS, at_random, largest, smallest
from privatize.calibration.evaluators.summed import Steps, SummedEvaluator
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import Pair
from privatize.calibration.norms import SLACK, Vector
from privatize.calibration.user_warnings import collected_warnings
from privatize.data import records
from privatize.errors import NotReproducibleError, PairError, SamplerError

# How many pairs of each kind are evaluated on entire datasets; of the others, only the two records are.
_ENTIRE = 2
# Gaps that are compared with those of records of entire datasets, and the probability of a false alarm.
_COMPARED, _ALARM = 500, 1e-9
_DATASETS = 2**40  # the streams of datasets begin here, beyond those of pairs
_DISAGREES = "additive(...) disagrees with plain evaluation"


def check_sums(evaluator: SummedEvaluator, gaps: Vector, *, exact: bool) -> None:
    """Compare gaps of a sum, random and the largest ones, with plain evaluation, and measure them again.

    Each number that is added up must follow from one record alone. If it depends on the other records,
    or on how many there are, two records do not show how far the sum moves.
    """
    pairs, block = evaluator.pairs, evaluator.block
    failed = len(gaps) - int(np.isfinite(gaps).sum())
    if failed:  # a dataset has n records, so a larger share of datasets fails
        what = f"""The function that is added up over records fails, or is not finite, on {failed} of
            {len(gaps)} pairs of sampled records, and the sum fails on every dataset of n={pairs.n} records
            that has such a record. Have it return a number for every record that the sampler can draw, or
            leave additive(...) out."""
        raise PairError(what, failed=failed)
    rng = streams.stream(pairs.seed, streams.CHECK, 2)
    top, some = largest(gaps, CHECKED), at_random(gaps, rng)
    entire = {*top[:_ENTIRE], *some[:_ENTIRE]}
    evaluator.forget_steps()
    with rng_guard(evaluator.s0) as guard, collected_warnings(evaluator.warned):
        check = _SumCheck(evaluator, guard, rng)
        for index in sorted({*top, *smallest(gaps), *some}):
            gap = float(gaps[index])
            made = evaluator.steps_of(index // block, guard)
            again = float(made.gaps[index % block])
            if again != gap and (exact or not abs(again - gap) <= 1e-6 * gap + made.slack):
                raise NotReproducibleError(DRIFTS)
            if index in entire:
                pair = pairs.pair_at(index)
                check.step(index, made, pair)
            else:
                pair = pairs.both(pairs.records(index // block), index % block), 0
            check.rows(index, made, pair)
        check.law(gaps, made.slack)


@dataclass(frozen=True)
class _SumCheck:
    """Checks of a sum over records: under a guard, on positions that a generator chooses."""

    evaluator: SummedEvaluator
    guard: rng_guard
    rng: np.random.Generator

    def rows(self, index: int, made: Steps, pair: Pair) -> None:
        """Refuse a sum whose rows depend on other records, on their places, or on their number."""
        drawn, position = pair
        last = records.count(drawn) - 1
        offset = 2 * (index % self.evaluator.block)
        some = self.rng.permutation(last)[: max(1, last // 2)]  # in another order
        found = []
        for places in (np.arange(last + 1), np.array([position]), np.array([last]), some):
            self.guard.reseed()
            rows = _checked(index, self.evaluator.rows, records.copy(records.take(drawn, places)))
            exact = rows.dtype.kind != "f"
            found.append(rows.astype(np.float64))
        entire, alone, replaced, half = found
        # A dataset may have larger records than a block, so that rounding adds more to its sum: note that.
        slack = self.evaluator.slack(entire, exact=exact)
        if slack > 2 * made.slack:
            self.evaluator.rounding_noise = max(self.evaluator.rounding_noise, slack)
        at = np.concatenate([[position, last, position, last], some])
        again = np.concatenate([made.rows[offset : offset + 2], alone, replaced, half])
        with np.errstate(all="ignore"):
            # By how much rounding may change a row, and a difference that is too small to matter.
            allowed = SLACK * np.abs(entire) + 1e-9 * np.abs(entire[position] - entire[last])
            same = (np.abs(entire[at] - again) <= allowed[at]).all()
        if not same:
            what = f"""{_DISAGREES}: for sampled pair {index} the function that is added up over records gives
                a record another number by itself than among others. It must follow from the record alone, and
                not from the other ones (their mean, ranks or number), its place or the global random
                generators. Fix it, or leave additive(...) out."""
            raise PairError(what, index=index)

    def step(self, index: int, made: Steps, pair: Pair) -> None:
        """Refuse a sum whose step for a pair is not that of the real function."""
        drawn, position = pair

        def both(data: Any) -> Any:
            return self.evaluator.both((data, position), self.guard)

        a, b = map(np.atleast_1d, _checked(index, both, records.copy(drawn)))
        # One record moves a mean of fewer records farther.
        times = self.evaluator.pairs.n / self.evaluator.pairs.size if self.evaluator.summand.average else 1.0
        claimed = float(made.gaps[index % self.evaluator.block]) * times
        plain = self.evaluator.norm.gap(a, b)
        off = self.evaluator.norm.gap(a - b, made.steps[index % self.evaluator.block] * times)
        if not off <= 1e-6 * claimed + made.slack:  # more than that disproves the slack for rounding
            what = f"""{_DISAGREES}: for sampled pair {index} two records give the gap {claimed:.6g}, and
                running the function on both neighbours gives {plain:.6g}. The function that is added up must
                follow from each record alone. Fix it, or leave additive(...) out."""
            raise PairError(what, index=index, pair=claimed, evaluated=plain)

    def law(self, gaps: Vector, slack: float) -> None:
        """Refuse a sampler whose records depend on how many are drawn, or on their order.

        The distributions of gaps are compared, by the bound of Dvoretzky, Kiefer and Wolfowitz for both.
        """
        pairs, count = self.evaluator.pairs, 0
        rows: list[NDArray[Any]] = []
        while count < 2 * _COMPARED:
            drawn = pairs.draw(streams.stream(pairs.seed, streams.CHECK, _DATASETS + len(rows)))
            self.guard.reseed()
            some = self.rng.permutation(pairs.size + 1)[: 2 * _COMPARED - count]
            rows.append(_checked(0, self.evaluator.rows, records.copy(drawn))[some])
            count += len(some)
        steps = self.evaluator.difference(np.concatenate(rows).astype(np.float64))
        ours, there = np.sort(gaps[:_COMPARED]), np.sort(self.evaluator.norm.gaps(steps))
        # Just above each gap, by more than rounding adds, because equal gaps must be counted together.
        at = np.concatenate([ours, there]) * (1 + 1e-6) + 8 * slack
        shares = [np.searchsorted(sample, at, side="right") / len(sample) for sample in (ours, there)]
        limit = sum(math.sqrt(math.log(4 / _ALARM) / (2 * len(sample))) for sample in (ours, there))
        distance = float(np.abs(shares[0] - shares[1]).max())
        if distance > limit:
            raise SamplerError(f"""{pairs.sampler!r} draws other records when it is asked for {pairs.size + 1}
                of them than for {2 * pairs.block}, or its records depend on their order: the distributions of
                their gaps differ by {distance:.3g}. Records must be independent of each other and of how many
                there are.""")


def _checked(index: int, evaluate: Callable[[Any], Any], data: Any) -> Any:
    try:
        return evaluate(data)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() as well
        what = f"""{_DISAGREES}: on a dataset with sampled pair {index} the function fails, or returns an
            output of another structure. Have it return one row of numbers for every record that the sampler
            can draw, or leave additive(...) out."""
        raise PairError(what, index=index) from error
