"""Compare the gaps of real neighbours, one pair in each block of people, with P's estimates at that size."""

import functools
import itertools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from privatize.calibration import streams
from privatize.calibration.factor_scan import FACTORS, Cut
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.neighbours import NeighbourSampler
from privatize.calibration.norms import Norm, Vector
from privatize.calibration.order_statistic import times
from privatize.calibration.sensitivity import Sensitivity
from privatize.calibration.user_warnings import collected_warnings
from privatize.data import records
from privatize.errors import NotReproducibleError
from privatize.function.advice import ELSEWHERE
from privatize.function.blocks import run_blocks, run_public_blocks
from privatize.function.joint_question import JointGuard
from privatize.function.question import Question
from privatize.mechanisms.weighted import weighted
from privatize.outputs.describe import describe
from privatize.outputs.structure import Array
from privatize.samplers.families import members_of

_OTHER = "gives other answers for identical public data"
TRIALS = 8
"""Public datasets on which functions are compared with themselves in the processes of blocks."""
_ORDER = "the order of a set of strings follows from the hashes of strings"


@dataclass(eq=False)
class Gauge:
    """The functions of a block, and what their gaps are compared with. All of it is public.

    Attributes
    ----------
    asked : tuple of Question
        The questions, for datasets of a block's size.
    found : tuple of Sensitivity
        P's estimate for each of them.
    cut : Cut
        How people are cut into blocks.
    """

    asked: tuple[Question, ...]
    found: tuple[Sensitivity, ...]
    cut: Cut
    _hash: float | None = field(default=None, init=False)  # of a string, in the processes that were tried

    def __post_init__(self) -> None:
        # Of each function, the places of its first and of its second output in a row.
        ends = np.cumsum([each.structure.size for each in self.found for _ in range(2)]).tolist()
        places = [slice(start, end) for start, end in itertools.pairwise([0, *ends])]
        self._places = list(zip(places[::2], places[1::2], strict=True))

    def _packed(self) -> tuple[Callable[[Any], Vector], Array]:
        """Return the function of a block, and the structure of what it returns."""
        pairs = list(zip(self.asked, self.found, strict=True))
        # Converted once more: a block is sent without categories that it has not, and P's are public.
        raw = tuple(each.converted(found.coin_seed) for each, found in pairs)
        outputs = tuple(found.structure.rebuild(np.zeros(found.structure.size)) for _, found in pairs)
        coins = tuple(found.coin_seed for _, found in pairs)
        size = sum(found.structure.size for _, found in pairs)
        return _Both(raw, outputs, coins, self.cut.size), Array("<f8", [2 * size + 1])

    def _options(self) -> dict[str, Any]:
        """Return how blocks are evaluated."""
        limits = [each.settings.timeout for each in self.asked if each.settings.timeout is not None]
        given = [each.settings.version for each in self.asked]
        return {
            "context": functools.partial(JointGuard, [each.worker_context() for each in self.asked]),
            "version": " ".join(each for each in given if each is not None) if any(given) else None,
            "seconds": 2 * sum(limits) if len(limits) == len(self.asked) else None,
        }

    def check(self) -> None:
        """Refuse functions that compute something else in the processes of blocks, before anybody pays.

        They are evaluated there and here, on a few public datasets. They may depend on the order of a set of
        strings, which is another one there, or on files and processes, which are out of reach there.
        """
        sampler, size = members_of(self.asked[0].settings.sampler)[0], self.cut.size
        seed = streams.derived_seed(self.found[0].seed, streams.CHECK, 0)
        pairs = NeighbourSampler(sampler, size, seed, self.asked[0].schema)
        datasets = [pairs.pair_at(at).records for at in range(TRIALS)]
        rows = run_public_blocks(*self._packed(), datasets, **self._options())
        worked: Any = np.isfinite(rows).all(axis=1)
        for asked, found, (at, _) in zip(self.asked, self.found, self._places, strict=True):
            norm = Norm(weighted(asked.settings.mechanism, found.shape).norm)
            for data, there in itertools.compress(zip(datasets, rows[:, at], strict=True), worked):
                # Only what has worked there is evaluated here: nothing that never ends, or that crashes.
                here = _first_output(asked, found, data, size)
                if here is None or norm.gap(here, there) > max(norm.slack(here, there), found.jitter):
                    raise NotReproducibleError(ELSEWHERE.format(asked.definition.name, _OTHER))
        if not worked.any():  # P's estimates are finite, so functions fail rarely
            names = ", ".join(dict.fromkeys(each.definition.name for each in self.asked))
            raise NotReproducibleError(ELSEWHERE.format(names, "fails"))
        self._hash = rows[worked, -1].tolist()[0]

    def counts(self, data: Any) -> list[int]:
        """Cut private data into blocks, and return how many of them are beyond each factor.

        A block is beyond a factor if the gap of any function is larger than so many times P's estimate. One
        that fails is beyond all of them.
        """
        # Each function has a public seed of its own.
        rows = run_blocks(*self._packed(), data, self.cut.number, coin_seed=None, **self._options())
        if self._hash is not None:  # processes with other orders of sets were not tried
            rows[rows[:, -1] != self._hash] = np.nan
        beyond = np.zeros((len(FACTORS), len(rows)), dtype=bool)
        for asked, found, (one, other) in zip(self.asked, self.found, self._places, strict=True):
            norm = Norm(weighted(asked.settings.mechanism, found.shape).norm)
            gaps = norm.gaps(rows[:, one] - rows[:, other])  # of failures: infinity
            beyond |= np.array([gaps > times(found.value, factor) for factor in FACTORS])
        return [int(each) for each in beyond.sum(axis=1)]


def _first_output(asked: Question, found: Sensitivity, data: Any, size: int) -> Vector | None:
    """Return the output on the first records, in this process; None if it fails."""
    function = asked.converted(found.coin_seed)
    with rng_guard(found.coin_seed) as rng, collected_warnings(set()):
        rng.reseed()
        try:
            value = asked.guard().run(function, records.pair(data, 0, size)[0])
            numbers = np.array(found.structure.flatten(value))
        except KeyboardInterrupt:
            raise
        except BaseException:  # sys.exit() as well
            return None
    return numbers if np.isfinite(numbers).all() else None


@dataclass(frozen=True, eq=False)
class _Both:
    """The functions of a block: each is evaluated on its first records, and on those with one replaced."""

    raw: Sequence[Callable[[Any], Any]]
    outputs: Sequence[Any]  # public ones: their structures have classes, and those alone would have none
    coins: Sequence[int]
    size: int

    def __post_init__(self) -> None:
        # Once for all blocks: it would be done again in the process of each.
        vars(self)["structures"] = tuple(map(describe, self.outputs))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "structures"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.__post_init__()

    def __call__(self, data: Any) -> Vector:
        position, rows = secrets.randbelow(self.size), []
        for function, structure, seed in zip(self.raw, vars(self)["structures"], self.coins, strict=True):
            rng = rng_guard(seed).take_over()
            for neighbour in records.pair(data, position, self.size):  # copies of their own for each
                rng.reseed()
                # Flattened at once: functions return buffers that they use again.
                rows.append(np.array(structure.flatten(function(neighbour))))
        return np.concatenate([*rows, [float(hash(_ORDER) >> 12)]])
