"""Fit: what a check of P on the real people has found; and what such a check can find, told beforehand."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from privatize.calibration.factor_scan import FACTORS, Counted, Cut, Scan, count, counting, scanning, sizes
from privatize.calibration.order_statistic import times
from privatize.calibration.sensitivity import Sensitivity
from privatize.display.cards import Card, Printed, Rows
from privatize.display.figures import round_up
from privatize.errors import SettingsError
from privatize.planning.numbers import as_float, as_integer
from privatize.planning.plan import check_gamma

_GROWS = 2.0  # times the factor of blocks of a quarter of the size
_LISTS = ("functions", "about")
_FEW = 0.1  # of gamma: a factor that leaves so few beyond is large enough


@dataclass(frozen=True, kw_only=True, repr=False)
class FitPower(Printed):
    """What `check_fit` can find out about P with n people. Made by `fit_power`.

    Attributes
    ----------
    n : int
        Number of people.
    gamma, epsilon : float
        The share that may be beyond, and what the check costs.
    main, smaller : Cut
        How many blocks of how many people; `smaller` is None if there are too few people for a second size.
    certified : float
        The share of real neighbours, in datasets of the main blocks' size, that is certified to be beyond at
        most, with 95% confidence, if the check finds that P holds as it is.
    excess : float
        By how much noise may make the factor too large: it is at most this many times one that leaves a
        tenth of gamma beyond, in 9 of 10 checks.

    Examples
    --------
    >>> power = fit_power(20_000, gamma=0.05, epsilon=0.5)
    >>> power.main.size, power.main.number
    (39, 448)
    >>> round(power.certified, 3)
    0.048
    """

    n: int
    gamma: float
    epsilon: float
    main: Cut
    smaller: Cut | None
    certified: float
    excess: float

    def card(self) -> Card:
        """Return it as a card."""
        rows = [
            *_cut(self.main, self.smaller),
            (
                "if P holds as it is",
                f"at most {round_up(self.certified)} beyond is certified, with 95% confidence",
            ),
            ("noise alone", f"makes the factor up to {self.excess:.3g} times too large, in 9 of 10 checks"),
        ]
        title = f"a check of P with {self.n:,} people, gamma={self.gamma:g}, epsilon={self.epsilon:g}"
        return Card(title, rows)


def fit_power(n: int, *, gamma: float, epsilon: float) -> FitPower:
    """Tell what `check_fit` can find out about P with n people, without any private data.

    Parameters
    ----------
    n : int
        Number of people.
    gamma : float
        The gamma of the functions that are checked.
    epsilon : float
        What the check costs.

    Examples
    --------
    >>> fit_power(4000, gamma=0.05, epsilon=0.5).certified < 0.09
    True
    >>> fit_power(1000, gamma=0.05, epsilon=0.2)
    Traceback (most recent call last):
        ...
    privatize.errors.SettingsError: n=1,000 people are too few to check P with gamma=0.05 and \
epsilon=0.2: it takes 500 blocks of 10 people, 5,000 in all. With these people it takes epsilon=1, or a \
larger gamma.
    """
    people, loss, share = as_integer(n), as_float(epsilon), check_gamma(gamma)
    if people < 1 or not 1e-10 <= loss <= 1e5:
        raise SettingsError(f"""fit_power(n={n!r}, epsilon={epsilon!r}): n is a number of people, an integer
            >= 1, and epsilon a number between 1e-10 and 100000.""")
    cut = sizes(people, share, loss)
    scan = Scan(cut.main.number, share, scanning(loss))
    certified, excess = scan.high(0), scan.excess(_FEW * share)
    return FitPower(n=people, gamma=share, epsilon=loss, **vars(cut), certified=certified, excess=excess)


@dataclass(frozen=True, kw_only=True, repr=False)
class Fit(FitPower):
    """What a check of P on the people themselves has found. Made by `check_fit`.

    Pass it on with ``f.replace(fit=fit)``: estimates are then `factor` times as large.

    Attributes
    ----------
    factor : float
        By how much P's estimates are widened, from 1.
    share : Counted
        The share of real neighbours beyond P's own estimate, with noise, and bounds on it.
    certified : float
        The share that is beyond the widened estimate at most, with 95% confidence.
    excess : float
        By how much noise may have made the factor too large (see `FitPower`).
    main, smaller : Cut
        How the people were cut into blocks; `smaller` is None if there were too few for a second size.
    smaller_factor : float or None
        The factor that the smaller blocks need.
    n : int
        Number of people.
    gamma, epsilon : float
        The gamma of the functions, and what the check cost: it is differentially private for all
        neighbours.
    functions : tuple of str
        The functions that were checked, all together.
    about : tuple of str
        Digests of the functions with their P: others cannot use it.
    signatures : tuple of tuple
        How each function's answers differ between public datasets, in the process that checked: where they
        differ otherwise it is another function. Empty in what an earlier version has found.
    """

    factor: float
    share: Counted
    smaller_factor: float | None
    functions: tuple[str, ...]
    about: tuple[str, ...]
    signatures: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        if not self.factor >= 1:
            raise SettingsError(f"""Fit(factor={self.factor!r}): a check widens estimates, so its factor is at
                least 1.""")

    @property
    def grows(self) -> bool:
        """Whether larger blocks need a much larger factor, so that all n people may need a larger one yet."""
        return self.smaller_factor is not None and self.factor >= _GROWS * self.smaller_factor

    @property
    def words(self) -> str:
        """The factor, in words for releases and reports."""
        widened = "not widened" if self.factor == 1 else f"widened {self.factor:.3g} times"
        return f"{widened} by a check of P on {self.n:,} people, epsilon={self.epsilon:g}"

    @property
    def _headline(self) -> str:
        """What was found and what may be: P holds only where no more than gamma can be beyond."""
        if self.factor > 1:
            return f"widened {self.factor:.3g} times"
        if self.certified <= self.gamma:
            return "P holds"
        return f"not widened, but up to {self.certified:.1%} may be beyond, and gamma is {self.gamma:.3g}"

    def card(self) -> Card:
        """Return it as a card: what was found, what is certain, and what is assumed."""
        share = self.share
        wider = "beyond it, by the scan" if self.factor == 1 else f"beyond {self.factor:.3g} times it"
        rows: Rows = [
            ("checked", f"{', '.join(self.functions)}; gamma={self.gamma:g}"),
            *_cut(self.main, self.smaller),
            ("beyond P's own estimate", f"{share.share:.1%} ({share.low:.1%} to {share.high:.1%})"),
            (wider, f"at most {self.certified:.1%}, with 95% confidence"),
        ]
        if self.factor > 1:
            rows.append(("noise alone", f"may have made the factor up to {self.excess:.3g} times too large"))
        if self.smaller is not None and self.smaller_factor is not None:
            grows = ": it grows with the size, and all people together may need more" if self.grows else ""
            blocks = f"in blocks of {self.smaller.size}"
            rows.append((blocks, f"the factor is {self.smaller_factor:.3g}{grows}"))
        note = (
            f"Differentially private with epsilon={self.epsilon:g}, for all neighbours. The bounds are exact "
            f"for datasets of {self.main.size} people from the people's own distribution, each with 95% "
            f"confidence, for a P that was not learned from the same people. That the same factor is enough "
            f"for all {self.n:,} is assumed."
        )
        return Card(f"P checked on {self.n:,} people: {self._headline}", rows, note=note)

    def widen(self, found: Sensitivity) -> Sensitivity:
        """Return an estimate, and that of every member of a family of P, so many times as large."""
        value = times(found.value, self.factor)
        return replace(
            found,
            value=value,
            fit=self,
            stress=found.stress and found.stress.tried.judged(found.plan, value),
            members=tuple((name, self.widen(each)) for name, each in found.members),
        )

    def facts(self) -> dict[str, Any]:
        """Return it as values for JSON."""
        lists = {name: list(getattr(self, name)) for name in _LISTS}
        return asdict(self) | lists | {"signatures": [list(each) for each in self.signatures]}

    @classmethod
    def of_facts(cls, facts: dict[str, Any]) -> Fit:
        """Make it of what `facts` returns."""
        made = {"share": Counted(**facts["share"]), "main": Cut(**facts["main"])}
        made["smaller"] = facts["smaller"] and Cut(**facts["smaller"])
        made |= {name: tuple(facts[name]) for name in _LISTS}
        made |= {"signatures": tuple(map(tuple, facts.get("signatures", ())))}
        return cls(**facts | made)


def fit_of(counts: list[int], second: list[int] | None, **facts: Any) -> Fit | None:
    """Return what noisy counts show; None if no factor is large enough.

    Parameters
    ----------
    counts, second : list of int
        How many blocks of each size are beyond each factor.
    **facts
        The attributes of a `Fit` that are known before.
    """
    gamma, epsilon = facts["gamma"], facts["epsilon"]
    scan = Scan(facts["main"].number, gamma, scanning(epsilon))
    share, found = count(counts[0], scan.b, counting(epsilon)), scan.first(counts)
    other = None
    if second is not None:  # of other people, so it costs nothing on top
        at = Scan(facts["smaller"].number, gamma, epsilon).first(second)
        other = FACTORS[-1] if at is None else FACTORS[at]
    if found is None:
        return None
    return Fit(
        factor=FACTORS[found],
        share=share,
        certified=scan.high(found),
        excess=scan.excess(_FEW * gamma),
        smaller_factor=other,
        **facts,
    )


def _cut(main: Cut, smaller: Cut | None) -> Rows:
    rows = [("blocks", f"{main.number:,} of {main.people} people, each a pair of {main.size} records")]
    return [*rows, *([("second size", f"{smaller.number:,} of {smaller.people}")] if smaller else [])]
