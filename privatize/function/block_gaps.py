"""Compare the gaps of real neighbours, one pair in each block of people, with P's estimates at that size."""

import functools
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.calibration.factor_scan import FACTORS, Cut
from privatize.calibration.global_rng import rng_guard
from privatize.calibration.norms import Norm, Vector
from privatize.calibration.order_statistic import times
from privatize.calibration.sensitivity import Sensitivity
from privatize.data import records
from privatize.function.blocks import check_blocks, run_blocks
from privatize.function.joint_question import JointGuard
from privatize.function.question import Question
from privatize.mechanisms.weighted import weighted
from privatize.outputs.describe import describe
from privatize.outputs.structure import Array


@dataclass(frozen=True, eq=False)
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

    def _packed(self) -> tuple[Callable[[Any], Vector], Array]:
        """Return the function of a block, and the structure of what it returns."""
        pairs = list(zip(self.asked, self.found, strict=True))
        # Converted once more: a block is sent without categories that it has not, and P's are public.
        raw = tuple(each.converted(found.coin_seed) for each, found in pairs)
        outputs = tuple(found.structure.rebuild(np.zeros(found.structure.size)) for _, found in pairs)
        coins = tuple(found.coin_seed for _, found in pairs)
        size = sum(found.structure.size for _, found in pairs)
        return _Both(raw, outputs, coins, self.cut.size), Array("<f8", [2 * size])

    @property
    def version(self) -> str | None:
        """What attests functions that cannot be compared between processes."""
        given = [each.settings.version for each in self.asked]
        return " ".join(each for each in given if each is not None) if any(given) else None

    def check(self, drawn: Any) -> None:
        """Refuse functions that cannot be sent to the processes of blocks, before anybody pays."""
        check_blocks(*self._packed(), drawn, version=self.version)

    def counts(self, data: Any) -> list[int]:
        """Cut private data into blocks, and return how many of them are beyond each factor.

        A block is beyond a factor if the gap of any function is larger than so many times P's estimate. One
        that fails is beyond all of them.
        """
        limits = [each.settings.timeout for each in self.asked if each.settings.timeout is not None]
        rows = run_blocks(
            *self._packed(),
            data,
            self.cut.number,
            coin_seed=None,  # each function has its own
            context=functools.partial(JointGuard, [each.worker_context() for each in self.asked]),
            version=self.version,
            seconds=2 * sum(limits) if len(limits) == len(self.asked) else None,
        )
        beyond, at = np.zeros((len(FACTORS), len(rows)), dtype=bool), 0
        for asked, found in zip(self.asked, self.found, strict=True):
            d, norm = found.structure.size, Norm(weighted(asked.settings.mechanism, found.shape).norm)
            gaps = norm.gaps(rows[:, at : at + d] - rows[:, at + d : at + 2 * d])  # of failures: infinity
            beyond |= np.array([gaps > times(found.value, factor) for factor in FACTORS])
            at += 2 * d
        return [int(each) for each in beyond.sum(axis=1)]


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
            with rng_guard(seed) as rng:
                for neighbour in records.pair(data, position, self.size):  # copies of their own for each
                    rng.reseed()
                    # Flattened at once: functions return buffers that they use again.
                    rows.append(np.array(structure.flatten(function(neighbour))))
        return np.concatenate(rows)
