"""Blocks: the function runs on disjoint blocks of people, and a private median of its answers is released."""

import functools
import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Never

import numpy as np
from numpy.typing import NDArray

from privatize.errors import OutputError, SettingsError
from privatize.mechanisms.base import BaseMechanism, Vector
from privatize.noise.grid import laplace
from privatize.noise.quantile import Grid, fineness, quantile, shares
from privatize.outputs.containers import Dict
from privatize.outputs.describe import describe, difference
from privatize.outputs.structure import Branch, Leaf, Reading, Structure, StructureChanged
from privatize.planning.numbers import as_integer

_MOST = 2**20  # blocks
_WIDEST = 1e9  # how many times a weight may be another: every number needs a share of ε
_UNITS = 2**30  # of the range of a number, for the mean: totals of all blocks are exact floats


@dataclass(frozen=True)
class Blocks(BaseMechanism):
    """Run any function on b disjoint blocks of people, and release a private median of its b answers.

    Differentially private for every function and all data: there is no P, no gamma and no calibration. One
    person is in one block, so replacing them changes one of the b answers, whatever the function does. The
    price is that the function sees n/b people at a time: see "Blocks" in the docs.

    Parameters
    ----------
    low, high : number, array, list, dict, frame, ...
        Public bounds of every number of the answer. They have the structure and the dtype of the answer:
        ``Blocks(0.0, 1.0)`` releases a float, ``Blocks(0, 120)`` an integer. What the function returns is
        clamped to them. Never read them off the data.
    blocks : int or "auto"
        How many blocks, at most one for each person; by default as n and ε suggest.
    aggregate : {"median", "mean"}
        The mean gets Laplace noise of scale (high - low) / (b ε), so it wants narrow bounds. The median
        hardly depends on how far apart they are.
    weights : optional
        How ε is divided among the numbers of the answer: evenly by default. It has the structure of `low`,
        with one positive number for each number, or for each part of it, such as a key of a dict; a part
        divides its share evenly.

    References
    ----------
    Nissim, Raskhodnikova & Smith, "Smooth sensitivity and sampling in private data analysis", STOC 2007;
    Mohan, Thakurta, Shi, Song & Culler, "GUPT: privacy preserving data analysis made easy", SIGMOD 2012;
    Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011.

    Examples
    --------
    >>> blocks = Blocks({"mean": 0.0, "oldest": 0}, {"mean": 120.0, "oldest": 120})
    >>> blocks
    Blocks({'mean': 0.0, 'oldest': 0}, {'mean': 120.0, 'oldest': 120})
    >>> answers = np.column_stack([np.full(200, 41.5), np.full(200, 93.0)])  # of 200 blocks
    >>> blocks.structure.rebuild(blocks.release_blocks(answers, epsilon=2.0).round(1))
    {'mean': 41.5, 'oldest': 93}
    """

    structure: Structure = field(hash=False)
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    blocks: int | Literal["auto"]
    aggregate: Literal["median", "mean"]
    weights: tuple[float, ...]

    immutable: ClassVar[bool] = True
    tag: ClassVar[str] = "blocks"

    def __init__(
        self,
        low: Any,
        high: Any,
        *,
        blocks: int | Literal["auto"] = "auto",
        aggregate: Literal["median", "mean"] = "median",
        weights: Any = None,
    ) -> None:
        structure, lows, highs = _bounds(low, high)
        if not isinstance(aggregate, str) or aggregate not in ("median", "mean"):
            raise SettingsError(f"aggregate={aggregate!r} is not 'median' or 'mean'.")
        count: Any = blocks if isinstance(blocks, str) else as_integer(blocks)
        if count != "auto" and (isinstance(count, str) or not 1 <= count <= _MOST):
            raise SettingsError(f"""blocks={blocks!r} is out of range: it must be 'auto' or an integer from 1
                to {_MOST}. 50 to 400 are usual.""")
        given = tuple(_spread(structure, 1.0 if weights is None else weights))
        if not all(0 < each < math.inf for each in given) or max(given) / _WIDEST > min(given):
            raise SettingsError(f"""weights={weights!r} are out of range: each must be a number > 0 and
                finite, and none may be more than {_WIDEST:g} times another.""")
        given = given if len(set(given)) > 1 else (1.0,) * len(given)
        made = {"structure": structure, "lows": lows, "highs": highs, "weights": given}
        vars(self).update(made, blocks=count, aggregate=aggregate)  # it is frozen

    @property
    def low(self) -> Any:
        """The lower bounds."""
        return self.structure.rebuild(np.array(self.lows))

    @property
    def high(self) -> Any:
        """The upper bounds."""
        return self.structure.rebuild(np.array(self.highs))

    def _options(self) -> dict[str, Any]:
        """Return the arguments that are not as by default; weights with one number for each number."""
        options: dict[str, Any] = {"blocks": self.blocks, "aggregate": self.aggregate}
        if len(set(self.weights)) > 1:
            options["weights"] = list(self.weights)
        return {name: value for name, value in options.items() if value not in ("auto", "median")}

    def __repr__(self) -> str:
        parts = [repr(bound) for bound in (self.low, self.high)]
        if max(map(len, parts)) > 60 or "\n" in parts[0] + parts[1]:
            parts = [f"<{len(self.lows)} numbers>"] * 2
        return f"Blocks({', '.join([*parts, *(f'{k}={v!r}' for k, v in self._options().items())])})"

    def __reduce__(self) -> tuple[Any, ...]:
        # A structure forgets its classes when it is copied, so the bounds are copied instead.
        return functools.partial(Blocks, **self._options()), (self.low, self.high)

    def number(self, n: int, epsilon: float) -> int:
        """Return the number of blocks for n people, from n and ε alone.

        By default it is 80/ε, where ε is the smallest share of a number, but at least 20, and at most n/4:
        far from the median a point has exp(-εb/4) times its odds, which is then exp(-20).

        Examples
        --------
        >>> Blocks(0.0, 1.0).number(20_000, 1.0), Blocks([0.0] * 2, [1.0] * 2).number(20_000, 1.0)
        (80, 160)
        >>> Blocks(0.0, 1.0, blocks=50).number(20_000, 1.0)
        50
        """
        if self.blocks != "auto":
            return max(1, min(self.blocks, n))
        wanted = 80 / max(min(shares(epsilon, self.weights)), 80 / _MOST)
        return max(1, min(max(20, round(wanted)), n // 4))

    def row(self, output: Any) -> Vector:
        """Return the numbers of the function's answer on one block; NaN for an answer that does not fit.

        Floats are accepted where integers are expected, and are rounded when they are released.
        """
        found: list[tuple[Leaf, Any]] = []
        try:
            self.structure.match(output, Reading.KNOWN, found)
            parts = [_as_floats(leaf).numbers(part) for leaf, part in found]
            return np.asarray(np.hstack(parts), dtype=np.float64)
        except Exception:  # an answer may be anything, and may be private: it is never shown
            return np.full(len(self.lows), np.nan)

    def release_blocks(self, values: NDArray[np.float64], epsilon: float) -> Vector:
        """Return a private median, or mean, of the answers on blocks.

        Parameters
        ----------
        values : array of shape (b, d)
            One row for each block, made by `row`. NaN is a number that a block does not have: it does not
            count for the median, and counts as the middle of the bounds for the mean.
        epsilon : float
            The privacy loss of all numbers together.
        """
        draw = _median if self.aggregate == "median" else _mean
        integers, parts = self.structure.integers().tolist(), shares(epsilon, self.weights)
        columns = zip(values.T, self.lows, self.highs, integers, parts, strict=True)
        return np.array([draw(*column) for column in columns])

    def noise_scale(self, b: int, epsilon: float) -> Vector | float:
        """Return the scale of the noise of each number: of the mean; the median has none."""
        if self.aggregate == "median":
            return 0.0
        with np.errstate(over="ignore"):
            widths = np.array(self.highs) - np.array(self.lows)
        return np.asarray(widths / (b * np.array(shares(epsilon, self.weights))))

    def error(self, sensitivity: float, epsilon: float, delta: float, confidence: float) -> Never:
        """Refuse: it depends on how much the function's answers differ from block to block."""
        raise SettingsError("""It is not known how far off the answers of Blocks are: that depends on how much
            the function's answers differ from block to block. Try it on public data that is like yours.""")

    def norm(self, *_: Any, **__: Any) -> Never:
        """Refuse: no gaps are measured, there is no sensitivity, and one answer on all people is no block."""
        raise SettingsError("""Blocks has no sensitivity, and measures no gaps: it runs the function on
            blocks of people. Use it as privatize(mechanism=Blocks(low, high), epsilon=...); to measure a
            sensitivity use another mechanism, such as Laplace().""")

    scale = release = norm


def _as_floats(leaf: Any) -> Leaf:
    """Return the node of floats where this one may be of integers."""
    twin: Leaf = replace(leaf, dtype="<f8")
    return twin


def _bounds(low: Any, high: Any) -> tuple[Structure, tuple[float, ...], tuple[float, ...]]:
    """Return the structure of the answer and its bounds, or refuse them."""
    try:
        first, second = describe(low), describe(high)
    except OutputError as error:
        text = str(error).replace("The function returns", "It is").replace("The output", "It")
        raise SettingsError(f"""low={low!r} and high={high!r} are no bounds of an answer. {text}""") from None
    for structure in (second, first):  # integers fit where floats are expected, but not the reverse
        try:
            lows, highs = structure.flatten(low).tolist(), structure.flatten(high).tolist()
            break
        except StructureChanged:
            continue
    else:
        raise SettingsError(f"""low={low!r} and high={high!r} differ in structure: high is
            {difference(high, first)}. Both must have the structure of the answer.""")
    for name, bottom, top in zip(structure.names(), lows, highs, strict=True):
        if not -math.inf < bottom <= top < math.inf:
            raise SettingsError(f"""low={bottom!r} and high={top!r}{f" of {name!r}" if name else ""} are no
                bounds: both must be finite numbers, and low must not be above high. The answer is clamped to
                them, and they must be public.""")
    return structure, tuple(lows), tuple(highs)


def _spread(node: Structure, weights: Any) -> list[float]:
    """Return a weight for each number, from weights of numbers or of parts, which divide theirs evenly."""
    if _is_number(weights):
        return [float(weights) / node.size] * node.size
    if isinstance(weights, np.ndarray) and list(weights.shape) == getattr(node, "shape", None):
        weights = weights.ravel().tolist()
    if isinstance(weights, list | tuple) and len(weights) == node.size and all(map(_is_number, weights)):
        return [float(each) for each in weights]
    if isinstance(node, Branch):
        weights = _in_order(node, weights)
        if isinstance(weights, list | tuple) and len(weights) == len(node.items):
            pairs = zip(node.items, weights, strict=True)
            return [each for item, part in pairs for each in _spread(item, part)]
    raise SettingsError(f"""weights={weights!r} do not fit {node.size} numbers. Give one weight for each, in
        the structure of low, or one for a part of it, such as a key of a dict.""")


def _in_order(node: Branch, weights: Any) -> Any:
    """Return weights that have the keys of parts as a list."""
    keys = node.keys if isinstance(node, Dict) else node.heads()
    given = isinstance(weights, dict) and set(weights) == set(keys)
    return [weights[key] for key in keys] if given else weights


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number)


def _median(values: Vector, low: float, high: float, integer: bool, epsilon: float) -> float:
    bits = fineness(len(values), 0.5, epsilon)
    return quantile(values, Grid.of(low, high, integer=integer, bits=bits), 0.5, epsilon)


def _mean(values: Vector, low: float, high: float, _: bool, epsilon: float) -> float:
    """Return the mean of the clamped values with Laplace noise, in integer units of the range."""
    with np.errstate(all="ignore"):  # halves do not overflow
        parts = (np.clip(values, low, high) / 2 - low / 2) / (high / 2 - low / 2)
    parts = np.where(np.isnan(parts), 0.5, np.clip(parts, 0.0, 1.0))
    total = np.rint(parts * _UNITS).sum()  # exact: integers below 2^53
    noised = laplace(np.array([total]), float(_UNITS), epsilon, np.array([True])).item()
    share = min(max(noised / (_UNITS * len(values)), 0.0), 1.0)
    return min(max(low * (1 - share) + high * share, low), high)
