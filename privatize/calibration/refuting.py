"""Try to refute a bound that the user has proven: look for neighbours whose outputs are further apart."""

import contextlib
import functools
import math
import numbers
import reprlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privatize.calibration import capacity, streams
from privatize.calibration.attempts import PIECES, AttemptSampler, first_attempts, mutated
from privatize.calibration.checks import ROUNDING, check_drift
from privatize.calibration.evaluators.base import Context, Evaluator
from privatize.calibration.global_rng import level, unwind
from privatize.calibration.norms import NORMS, Norm, Vector
from privatize.calibration.order_statistic import SMALLEST, widened
from privatize.calibration.run import REMEDIES, Collector
from privatize.calibration.sensitivity import Sensitivity
from privatize.calibration.user_warnings import show
from privatize.data import records
from privatize.data.corners import Place, places
from privatize.data.parts import as_array, columns_of, parts_of
from privatize.data.persons import Persons
from privatize.data.schema import Schema
from privatize.display.cards import Card, Shown
from privatize.display.figures import ended
from privatize.errors import BoundError, ExecutionError, SettingsError
from privatize.execution.choose import check_timeout
from privatize.execution.job import Cause, SpanResult
from privatize.mechanisms.shapes import Shape
from privatize.outputs.structure import Structure
from privatize.planning.numbers import as_integer
from privatize.samplers import Sampler, draw

_ROUNDS = 8  # of mutations, at least
_WAYS, _MUTATED = 2, 5  # ways that are cut, and attempts that are mutated twice, in each round
_FEW = 64  # records that are drawn to see what P draws
_UNITS = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
_SLACK = 2.0**-44  # the bound itself and the norm are rounded, too
_SHOWN = 8  # columns of a record in a message
_brief = reprlib.Repr()
_brief.maxlist = _brief.maxtuple = _SHOWN
_brief.maxstring = _brief.maxother = 50


@dataclass(frozen=True, eq=False)
class ProvenBound(Shown):
    """A bound on how far one record can move a function's output, for all pairs of neighbours.

    It stands where a `Sensitivity` stands.

    Attributes
    ----------
    value : float
        The bound at n, enlarged for rounding.
    given : float
        The bound that the user has proven.
    n : int
        Number of records.
    norm : str
        Name of the norm that the bound is in.
    seed, coin_seed : int
        The public seeds of the pairs that were tried, and of the random generators that the function used.
    structure : Structure
        The structure of the output.
    schema : Schema
        The schema of the datasets.
    tried : int
        How many pairs were tried, and none was beyond the bound.
    largest : float
        The largest gap of two neighbours among them.
    jitter : float
        The largest difference by rounding that was seen between two runs of the function.
    """

    value: float
    given: float
    n: int
    norm: str
    seed: int
    coin_seed: int
    structure: Structure
    schema: Schema | None
    tried: int
    largest: float
    jitter: float = 0.0

    bound: ClassVar[str] = "proven"
    gamma: ClassVar[float] = 0.0
    average_gamma: ClassVar[float] = 0.0
    unlucky: ClassVar[float] = 0.0
    shape: ClassVar[Shape] = Shape()
    spread: ClassVar[None] = None

    @functools.cached_property
    def whole(self) -> NDArray[np.bool_]:
        """Which numbers of the output are integers. Read-only."""
        found = self.structure.integers()
        found.flags.writeable = False
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "whole"}

    @property
    def m(self) -> int:
        """Number of pairs that were tried. None of them was beyond the bound, so it is `k`, too."""
        return self.tried

    k = m

    def card(self, known: float | None = None) -> Card:
        """Return what a person sees of the bound: names and values, beside another known bound."""
        rows = {
            "sensitivity": f"{self.value:.6g} ({self.norm})" if self.norm else f"{self.value:.6g}",
            "from": "a bound that its author proved" if self.tried else "bounds of the function's own",
            "enlarged for rounding": f"from {self.given:.6g}" if self.value > self.given else "",
            "known bound": known and f"{known:.6g}",
            "records": f"n={self.n:,}",
            "holds for": "all pairs of neighbours (gamma=0)",
            "tried": self.tried and f"{self.tried:,} pairs; the largest gap is {self.largest:.6g}",
            "seed": self.tried and str(self.seed),
        }
        return Card("proven bound", [(name, str(text)) for name, text in rows.items() if text])

    def __repr__(self) -> str:
        norm = f", norm={self.norm}" if self.norm else ""
        tried = f", tried={self.tried}, largest={self.largest:.6g}, seed={self.seed}" if self.tried else ""
        return f"ProvenBound({self.value:.6g}{norm}, n={self.n}, gamma=0{tried})"


AnyBound = Sensitivity | ProvenBound


def known_bound(value: float, n: int, structure: Structure) -> ProvenBound:
    """Return a bound that a function brings, which nobody needs to try."""
    return ProvenBound(value, value, n, "", 0, 0, structure, None, 0, 0.0)


# -- the bound --


def check_bound(sensitivity: Any, n: int) -> float:
    """Return a bound at n, a number or a function of n, as a float that is not below it, or refuse it.

    A function of n is also called with 2n and 10n: one that is not positive there, because it falls in the
    wrong way, bounds nothing at n either.

    Examples
    --------
    >>> check_bound(lambda n: 120 / n, 1000), check_bound(1, 50)
    (0.12, 1.0)
    """
    if not callable(sensitivity):
        return _positive(sensitivity, f"sensitivity={_brief.repr(sensitivity)}")
    found = []
    for at in (n, 2 * n, 10 * n):
        try:
            value = sensitivity(at)
        except Exception as error:
            if at > n:  # it may be known for some n only
                continue
            raise SettingsError(f"""sensitivity={_brief.repr(sensitivity)} raised {type(error).__name__} for
                n={n}: {error}. Pass a number, or a function of the number of records n alone.""") from error
        found.append(_positive(value, f"sensitivity(n), which is {_brief.repr(value)} at n={at},"))
    return found[0]


def _positive(value: Any, what: str) -> float:
    try:
        found = math.nan if type(value) is bool or not isinstance(value, numbers.Real) else float(value)
        found = found if found >= value else math.nextafter(found, math.inf)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if SMALLEST <= found < math.inf:
        return found
    constant = " A constant needs no noise: publish it." if found == 0 else ""
    raise SettingsError(f"""{what} is not a bound on how far one record can move the answer: it must be a
        finite number of at least {SMALLEST:g}, or a function of n that returns one, as in sensitivity=lambda
        n: 120 / n for the mean of numbers between 0 and 120.{constant}""")


def enlarged(bound: float, n: int, known: list[Place], dtypes: set[str]) -> float:
    """Return a bound that holds for the function in floats, too, if the given one holds for exact numbers.

    Adding n numbers of at most c, in any order, has an error of up to n²·u·c, and neighbours have two.

    Examples
    --------
    >>> enlarged(1.0, 1000, [], {"float64"}), enlarged(1.0, 1000, [], {"float32"})
    (1.0000000002220448, 1.1192092895507815)
    """
    ratio, unit = 1.0, max([2.0**-53, *(_UNITS.get(name, 0.0) for name in dtypes)])
    sizes: list[tuple[float, float]] = []  # the largest number in a column, and how far apart they are
    for place in known:
        values = np.array([value for value in place.values if value is not None])
        if len(values) and values.dtype.kind in "biufmM":
            low, high = (float(end.astype(float)) for end in (values.min(), values.max()))
            sizes.append((max(abs(low), abs(high)), high - low))
    # A constant column moves nothing, but what is added to it is rounded: it counts with the narrowest other.
    narrowest = min((width for _, width in sizes if width > 0), default=math.inf)
    for size, width in sizes:
        ratio = max(ratio, size / (width or narrowest))
    return math.nextafter(bound * (1 + max(2.0 * n * n * unit * ratio, _SLACK)), math.inf)


def rows_of_record(drawn: Any) -> int:
    """Return how many rows a record has at most: one, or those of a person."""
    if type(drawn) is not Persons:
        return 1
    if drawn.unit.most is None:
        raise SettingsError("""sensitivity= is a bound for all data that is possible, and P does not say how
            many rows a person may have. Pass most= to samplers.people().""")
    return drawn.unit.most


# -- the pairs --


def refute(
    function: Callable[[Any], Any],
    *,
    n: int,
    sampler: Sampler,
    norm: Literal["l1", "l2", "sup"] | Callable[[Vector], float],
    sensitivity: float | Callable[[int], float],
    support: Any = None,
    domain: Literal["clip", "as-is"] = "clip",
    seed: int | None = None,
    timeout: float | None = None,
    workers: Any = None,
    progress: bool | None = None,
    version: str | None = None,
    like: Schema | None = None,
    label: str | None = None,
    around: Context = contextlib.nullcontext,
) -> ProvenBound:
    """Try to refute a bound on a function's sensitivity, and return it if that fails.

    Pairs are drawn from P, and made of records at the corners of its support; the worst of them are mutated.
    There are at most a few hundred, and the same ones for the same seed. A function that fails on one of them
    has no bound.

    Parameters
    ----------
    function, n, sampler, norm, seed, timeout, workers, progress, version, like, label, around
        As for `estimate_sensitivity`.
    sensitivity : float or callable
        The bound, or a function of n that returns it.
    support : object
        P's support.
    domain : {"clip", "as-is"}
        Whether private records are clipped to the support. If they are not, numbers may be anything, and the
        bound is taken as it is given, without an allowance for rounding.

    Raises
    ------
    BoundError
        If a pair is beyond the bound; it shows the pair.
    NotReproducibleError, ExecutionError
        As for `estimate_sensitivity`.

    Examples
    --------
    >>> from privatize import samplers
    >>> refute(np.mean, n=100, sampler=samplers.uniform(0, 1), norm="l1", sensitivity=0.01, support=(0, 1),
    ...        seed=1)
    ProvenBound(0.01, norm=l1, n=100, gamma=0, tried=415, largest=0.01, seed=1)
    """
    if as_integer(n) < 1:
        raise SettingsError(f"n={_brief.repr(n)} is not a number of records: it must be an integer >= 1.")
    n, given, own = int(n), check_bound(sensitivity, int(n)), streams.seed_or_fresh(seed)
    clip, drawn = domain == "clip", draw(sampler, _FEW, streams.stream(own, streams.PILOT, 3))
    corners = places(drawn, support, beyond=not clip)
    pairs = AttemptSampler(sampler, n, own, like, support if clip else None, corners)
    evaluator = Evaluator(
        function=function,
        pairs=pairs,
        norm=Norm(NORMS[norm] if isinstance(norm, str) else norm),
        s0=streams.coin_seed(own),
        worker_context=around,
        version=version,
        timeout=check_timeout(timeout),
    )
    name = label or str(getattr(function, "__name__", type(function).__name__))
    collector, data = Collector(workers, progress, f"{name}, its bound"), (drawn, records.cast(drawn, like))
    dtypes = {str(column.dtype) for each in data for column in columns_of(each)}
    attack = _Attack(evaluator, pairs, collector, name, given, corners if clip else [], dtypes)
    attack.rows = rows_of_record(drawn)
    opened = level()
    try:
        attack.search()
        if not evaluator.known_structure.complete:  # it was evaluated elsewhere
            evaluator.outputs(0)
    finally:
        unwind(opened)
    return attack.survived(attack.limit() if clip else given)


@dataclass(eq=False)
class _Attack:
    """Pairs that are tried, and their gaps."""

    evaluator: Evaluator
    pairs: AttemptSampler
    collector: Collector
    name: str
    given: float
    known: list[Place]  # whose bounds limit the rounding
    dtypes: set[str]
    gaps: Vector = field(default_factory=lambda: np.zeros(0))
    cause: Cause | None = None
    exact: bool = True
    elsewhere: bool = False
    shown: set[tuple[str, str, int]] = field(default_factory=set)  # places in the code that have warned
    rows: int = 1  # of a record, at most

    def search(self) -> None:
        """Try pairs from P and at corners of its support, then mutations and pieces of the worst."""
        pairs, cut = self.pairs, set[int]()
        attempts, known, n = pairs.attempts, pairs.places, pairs.n
        rng = streams.stream(pairs.seed, streams.PILOT, 4)
        pairs.check()
        pairs.bytes *= 2  # datasets are taken from twice as many records
        capacity.check("An attack on a bound makes datasets of", n, pairs.bytes)
        new = first_attempts(known, n, rng)
        for _ in range(1 + max(_ROUNDS, math.ceil(math.log(n, PIECES)) + 1)):
            attempts += new
            self._run(len(new))
            self._refuse()
            ranked = np.argsort(-self.gaps / [each.steps for each in attempts], kind="stable").tolist()
            ways = [at for at in ranked if attempts[at].steps > 1 and at not in cut][:_WAYS]
            worst = [at for at in ranked if attempts[at].steps == 1][:_MUTATED]
            cut.update(ways)
            new = [piece for at in ways for piece in attempts[at].pieces()]
            new += [mutated(attempts[at], known, n, len(attempts) + i, rng) for i in (0, 1) for at in worst]
        check_drift(self.evaluator, self.gaps, exact=self.exact, elsewhere=self.elsewhere)

    def _run(self, count: int) -> None:
        start = len(self.gaps)
        self.gaps = np.append(self.gaps, np.full(count, np.nan))
        span = start, start + count
        exact, elsewhere = self.collector.collect(self.evaluator, [span], count, self._take)
        self.exact, self.elsewhere = self.exact and exact, self.elsewhere or elsewhere
        if missing := int(np.isnan(self.gaps).sum()):
            raise ExecutionError(f"{missing} of {count} pairs were not evaluated.")

    def _take(self, found: SpanResult) -> None:
        self.gaps[found.start : found.start + len(found.gaps)] = found.gaps
        self.evaluator.learn(found.structure, found.rounding_noise)
        show(found.warned, self.shown)
        if found.cause is not None and (self.cause is None or found.cause.index < self.cause.index):
            self.cause = found.cause

    def survived(self, value: float) -> ProvenBound:
        """Return the bound, with what was found about the function."""
        evaluator, noise = self.evaluator, self.noise
        return ProvenBound(
            value=widened(value, noise),
            given=self.given,
            n=self.pairs.n,
            norm=evaluator.norm.label,
            seed=self.pairs.seed,
            coin_seed=evaluator.s0,
            structure=evaluator.known_structure,
            schema=self.pairs.schema,
            tried=len(self.gaps),
            largest=float(self.neighbours().max()),
            jitter=noise,
        )

    def neighbours(self) -> Vector:
        """Return the gaps, with 0 for pairs that are no neighbours."""
        return np.where([attempt.steps == 1 for attempt in self.pairs.attempts], self.gaps, 0.0)

    def limit(self) -> float:
        """Return the bound, enlarged for rounding in the data's dtypes, and in those of the answer."""
        answers = {leaf.dtype_name for leaf in self.evaluator.known_structure.leaves()}
        return enlarged(self.given, self.pairs.n * self.rows, self.known, self.dtypes | answers)

    @property
    def noise(self) -> float:
        """The largest difference by rounding between two runs; never 0 for polars, which sums in parallel."""
        schema = self.pairs.schema
        least = SMALLEST if schema is not None and "polars" in schema.libraries else 0.0
        return max(self.evaluator.rounding_noise, least)

    def _refuse(self) -> None:
        """Refuse the bound if the function failed on a pair, or if two neighbours are beyond it."""
        cause = self.cause
        if cause is not None:
            remedy = REMEDIES.get(cause.kind, "Make it work on all data that P's support allows.")
            what = "it must hold for all data, and the function failed"
            advice = f"The cause: {ended(cause.text)} {remedy}"
            raise self._error(cause.index, what, advice) from cause.exception()
        # Other runs may be rounded differently, and the bound will be widened for that.
        gaps, allowed = self.neighbours(), self.limit() * (1 + 16 * ROUNDING if self.noise else 1)
        if gaps.max() > allowed:
            # If it drifts, that is what is wrong.
            check_drift(self.evaluator, self.gaps, exact=self.exact, elsewhere=self.elsewhere)
            what = f"two answers are {gaps.max():.6g} apart ({self.evaluator.norm.label})"
            advice = """A bound must hold whichever record is replaced by any other that P's support allows,
                in the norm of the mechanism. Correct it, narrow the support, or leave sensitivity= out and
                set gamma= to have the sensitivity estimated."""
            raise self._error(int(gaps.argmax()), what, advice)

    def _error(self, index: int, what: str, advice: str) -> BoundError:
        attempt, n = self.pairs.attempts[index], self.pairs.n
        pool, first, second, order = self.pairs.described(attempt)
        position = int(order[attempt.start])
        replaced, replacement = (_shown(pool, int(rows[position])) for rows in (first, second))
        rest = np.minimum(np.delete(first, order[attempt.start : attempt.stop]), 3)
        counts = enumerate(np.bincount(rest).tolist())
        listed = [f"{count} × {_shown(pool, at) if at < 3 else 'a draw'}" for at, count in counts if count]
        others = f"; the others are {' and '.join(listed)}" if listed else ""
        which = f"the one at position {position}" if attempt.steps == 1 else f"{attempt.steps}"
        return BoundError(
            f"""sensitivity={self.given:.6g} is not a bound for {self.name}(): {what}. On made-up records
            from P: of n={n} records {which}, {replaced}, {"was" if attempt.steps == 1 else "were"}
            replaced by {replacement}{others}. {advice}""",
            gap=float(self.gaps[index]),
            bound=self.given,
            n=n,
            position=position,
            replaced=replaced,
            replacement=replacement,
        )


def _shown(data: Any, at: int) -> str:
    """Return one public record in brief."""
    one = records.take(data, np.array([at]))
    named = parts_of(one)
    if named is None:
        return _brief.repr(_first(one))
    shown = [f"{key}={_brief.repr(_first(part))}" for key, part in named[:_SHOWN]]
    return f"({', '.join(shown)}{', ...' if len(named) > _SHOWN else ''})"


def _first(values: Any) -> Any:
    if isinstance(values, tuple | dict):
        return _shown(values, 0)
    first = values[0] if isinstance(values, list) else as_array(values)[0]
    if isinstance(first, np.datetime64 | np.timedelta64):
        return str(first)
    return first.tolist() if isinstance(first, np.ndarray | np.generic) else first
