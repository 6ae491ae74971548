"""The health checks of a calibration: some pairs are evaluated again, and must give the same gaps."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import streams
from privatize.calibration.buffers import Pair
from privatize.calibration.evaluators.base import Evaluator
from privatize.calibration.evaluators.joint import JointEvaluator
from privatize.calibration.evaluators.summed import Steps, SummedEvaluator
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.norms import SLACK, Vector
from privatize.calibration.user_warnings import collected_warnings
from privatize.data import records
from privatize.errors import NotReproducibleError, PairError, PrivatizeError, SamplerError

CHECKED = 8  # how many pairs of a kind are evaluated again
_PIECE = 2**20  # gaps that are searched at once
DRIFTS = """The function gave another answer for identical data at the end of the calibration than before. It
        must not depend on earlier calls (caches, warm starts, counters), the time, the process it runs in
        (library settings, patches, the order of a set of strings), or globals that change, nor use randomness
        for some data only."""
# By how much the same gap may differ between two evaluations, relative to the sensitivity.
ROUNDING = 2.0**-20


# -- which pairs --


def largest(gaps: Vector, count: int, sign: float = 1.0) -> list[int]:
    """Return the indices of the largest finite gaps, the largest first; piece by piece, to save memory.

    Examples
    --------
    >>> largest(np.array([1.0, 5.0, np.inf, 3.0]), 2)
    [1, 3]
    """
    best = np.zeros(0, dtype=np.int64)
    for start in range(0, len(gaps), _PIECE):
        piece = gaps[start : start + _PIECE]
        places = np.concatenate([best, start + np.flatnonzero(np.isfinite(piece))])
        if len(places) > count:  # a selection, so that few are left to be sorted
            values = sign * gaps[places]
            places = places[values >= np.partition(values, -count)[-count]]
        best = places[np.argsort(sign * gaps[places], kind="stable")[-count:]]
    return list(best[::-1].tolist())


def smallest(gaps: Vector) -> list[int]:
    """Return the indices of the two smallest finite gaps."""
    return largest(gaps, 2, sign=-1.0)


def at_random(gaps: Vector, rng: np.random.Generator, most: int = CHECKED) -> list[int]:
    """Return the indices of some finite gaps, chosen without regard to their size."""
    finite = np.isfinite(gaps)
    if len(gaps) > _PIECE:  # a list of all places would take as much memory as the gaps
        places = np.unique(rng.integers(len(gaps), size=100 * most))
        places = rng.permutation(places[finite[places]])
    else:
        places = np.flatnonzero(finite)
    return list(rng.choice(places, min(most, len(places)), replace=False).tolist())


def of_all_blocks(gaps: Vector, block: int, rng: np.random.Generator, most: int) -> set[int]:
    """Return indices of random finite gaps, with two of the last block, which may be shorter than others.

    They are from all blocks, because an error may happen in some calls or some processes only.
    """
    start = (len(gaps) - 1) // block * block
    return {*at_random(gaps, rng, most), *(start + at for at in at_random(gaps[start:], rng, 2))}


# -- what is compared --


def check_drift(evaluator: Evaluator, gaps: Vector, *, exact: bool, elsewhere: bool) -> None:
    """Measure the first pair, the last one, and that with the largest gap again, to find drifting functions.

    They are measured in this process; wherever they were measured before, the gap must be the same. Other
    machines may round differently (not ``exact``). The last one, because a function that takes later data for
    earlier data, by an id that was used again, has right gaps at first, of which one may be the largest. If
    pairs were measured ``elsewhere``, a few more are measured again, at random and those with the smallest
    gaps: a function may behave differently there on some data only, and gaps that are too small would give
    too little noise.
    """
    worked = np.isfinite(gaps)
    if not worked.any():
        return
    chosen = {int(worked.argmax()), len(gaps) - 1 - int(worked[::-1].argmax()), *largest(gaps, 1)}
    if elsewhere:
        rng = streams.stream(evaluator.pairs.seed, streams.CHECK, 2)
        chosen |= {*at_random(gaps, rng), *smallest(gaps)}
    with rng_guard(evaluator.s0) as guard, collected_warnings(evaluator.warned):
        for index, a, b, gap in _again(evaluator, chosen, guard, lambda _: NotReproducibleError(DRIFTS)):
            before = float(gaps[index])
            differ = abs(gap - before)
            slack = evaluator.norm.slack(a, b)
            same = gap == before or differ <= slack
            if not same and (exact or not is_close(gap, before, slack)):
                raise NotReproducibleError(DRIFTS)
            evaluator.rounding_noise = max(evaluator.rounding_noise, differ)


def check_each(evaluator: JointEvaluator, *, exact: bool) -> None:
    """Measure the largest gap of each of many functions, and its last one, again.

    The joint gap shows but one of them.
    """
    largest = evaluator.checked()
    with rng_guard(evaluator.s0) as guard, collected_warnings(evaluator.warned):
        # In order, so that the pairs between two of them are drawn once.
        for left, index in zip(range(len(largest), 0, -1), sorted(largest), strict=True):
            evaluator.pairs.buffers.move(left)  # as below
            pair = evaluator.pairs.pair_at(index)
            for at in np.flatnonzero(~np.isnan(largest[index])).tolist():
                label = evaluator.function.labels[at]
                refusal = NotReproducibleError(f"{label}: {DRIFTS}", function=label)
                try:
                    a, b = evaluator.of(at, pair, guard)
                except KeyboardInterrupt:
                    raise
                except BaseException as error:  # sys.exit() as well
                    raise refusal from error
                gap, slack, weight = evaluator.norm.of(at, a, b)
                before = float(largest[index][at])
                if abs(gap - before) > slack and (exact or not is_close(gap, before, slack)):
                    raise refusal
                noise = abs(gap - before) / weight
                evaluator.rounding_noise = max(evaluator.rounding_noise, noise)


def _again(
    evaluator: Evaluator, chosen: set[int], guard: rng_guard, refusal: Callable[[int], PrivatizeError]
) -> Iterator[tuple[int, Any, Any, float]]:
    """Run the function on chosen pairs; yield indices, flat outputs and gaps, or refuse if it fails."""
    for left, index in zip(range(len(chosen), 0, -1), sorted(chosen), strict=True):
        evaluator.pairs.buffers.move(left)  # a function may recognize arrays by their ids or addresses
        pair = evaluator.pairs.pair_at(index)
        try:
            a, b = evaluator.both(pair, guard)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() as well
            raise refusal(index) from error
        yield index, a, b, evaluator.norm.gap(a, b)


def is_close(one: float, other: float, slack: float) -> bool:
    """Tell whether two gaps, computed in two ways, differ by no more than rounding, in gap and values."""
    return one == other or abs(one - other) <= 1e-6 * max(one, other) + slack < math.inf


def check_trusted(evaluator: Evaluator, gaps: Vector, value: float) -> None:
    """Compare `pair=` or `batch=` with plain evaluation, on random indices and on the largest gaps.

    They may differ by rounding, by little relative to the ``value`` that was read from the gaps.
    """
    which, rng = evaluator.trusted, streams.stream(evaluator.pairs.seed, streams.CHECK)
    # More pairs for batch=: that is cheap, and a batch may be wrong for some of its datasets only.
    some = of_all_blocks(gaps, evaluator.block, rng, 4 * CHECKED if evaluator.together else CHECKED)
    chosen = some | {*smallest(gaps), *largest(gaps, CHECKED)}

    def refusal(index: int) -> PairError:
        what = f"""{which} disagrees with plain evaluation: the function fails on sampled pair {index}, or
            returns an output of another structure."""
        return PairError(what, index=index)

    with rng_guard(evaluator.s0) as guard, collected_warnings(evaluator.warned):
        for index, a, b, plain in _again(evaluator, chosen, guard, refusal):
            claimed = float(gaps[index])
            # Gaps beyond the sensitivity may differ by as much, relative to themselves.
            differ = abs(plain - claimed) * min(1.0, value / max(plain, claimed, value))
            if not is_close(plain, claimed, evaluator.norm.slack(a, b)) or differ > ROUNDING * value:
                what = f"""{which} disagrees with plain evaluation: for sampled pair {index} it gives the gap
                    {claimed:.6g}, and running the function on both neighbours gives {plain:.6g}. The
                    difference of {abs(plain - claimed):.3g} is more than rounding may make for a sensitivity
                    of {value:.3g}. Fix it, or leave {which} out."""
                raise PairError(what, index=index, pair=claimed, evaluated=plain)
            evaluator.rounding_noise = max(evaluator.rounding_noise, differ)


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
                pair = Pair(pairs.both(pairs.records(index // block), index % block), 0)
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
        drawn, position = pair.records, pair.position
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
        drawn, position = pair.records, pair.position

        def both(data: Any) -> Any:
            return self.evaluator.both(Pair(data, position), self.guard)

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
