"""Budget: a limit on what may be spent in all, shared by everybody who names it."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, NoReturn

from privatize.budgets.charges import Charge, Totals, check_text
from privatize.budgets.entered import Entered
from privatize.budgets.ledger import Ledger, open_ledger
from privatize.budgets.partition import Part, Partition
from privatize.budgets.paying import Payer
from privatize.budgets.statement import doubts, sentence, spent
from privatize.budgets.terms import Terms, summed, tally
from privatize.display.cards import Card, Shown
from privatize.display.charts import Chart, Color, Layer, onto, thin
from privatize.display.figures import counted
from privatize.errors import LedgerError, SettingsError, UnsharedBudgetWarning
from privatize.execution.packaging.pickler import packing
from privatize.identity.declared import declare
from privatize.identity.library import outside
from privatize.planning.composition import Cost, tight
from privatize.samplers import as_sampler
from privatize.storage.places import ledger_place

_COLORS: dict[str, Color] = {"epsilon": "blue", "delta": "green", "gamma": "orange"}


class _Numbers(NamedTuple):
    epsilon: float
    delta: float
    gamma: float


class Amount(_Numbers):
    """An amount of ε, δ and γ; `note` says in words what could not be checked about a total."""

    note: str = ""

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"Amount({numbers}{f'; {self.note}' if self.note else ''})"


class Budget(Shown, Payer):
    """What may be spent in all on answers about some people.

    A release reserves its ε, δ and γ before the function sees any data, in one transaction, and what was
    reserved is never given back. A refused release spends nothing. All who name the same budget in the
    same ledger share it.

    Parameters
    ----------
    name : str
        Name of the budget.
    epsilon, delta, gamma : float
        What may be spent in all. Without a gamma the budget is for answers that are differentially private
        for all pairs of neighbours.
    ledger : str or Path, optional
        Where the budget is stored: a path, ``sqlite:///...`` or ``postgresql://...``, or ``"memory"`` for
        this process only. By default the place that the environment variable ``PRIVATIZE_LEDGER`` or the
        policy names; if neither does, the memory of this process, with a warning.
    composition : {"sum", "tight"}
        Whether ε is added up, or is the smallest of this sum and tighter bounds that hold at the budget's δ
        (needs dp-accounting). Once a catalogue is declared in a tight budget, only answers with Gaussian
        noise are accepted, and one bound is used that holds for questions asked as you go.
    who : bool
        Whether the ledger records user and host.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize import Budget, privatize, samplers
    >>> budget = Budget("example", epsilon=1, gamma=0.2, ledger="memory")
    >>> mean = privatize(epsilon=0.4, gamma=0.05, sampler=samplers.uniform(0, 1), budget=budget)(np.mean)
    >>> answers = [mean(np.full(100, 0.5)), mean(np.full(100, 0.5))]
    >>> budget
    Budget('example', epsilon=1, gamma=0.2: left epsilon=0.2, gamma=0.1; spent epsilon=0.8 for all pairs of \
neighbours but a share 0.1 of those under P (on average 0.0502), if these questions were fixed beforehand)
    >>> mean(np.full(100, 0.5))
    Traceback (most recent call last):
        ...
    privatize.errors.BudgetExceeded: The budget 'example' has not enough left for mean(), which asks for \
epsilon=0.4 of 0.2 left (cap 1); ...
    """

    def __init__(
        self,
        name: str,
        *,
        epsilon: float,
        gamma: float = 0.0,
        delta: float = 0.0,
        ledger: str | os.PathLike[str] | None = None,
        composition: Literal["sum", "tight"] = "sum",
        who: bool = False,
    ) -> None:
        check_text("The name of a budget", name)
        for symbol, value, most in (("epsilon", epsilon, 1e9), ("delta", delta, 1.0), ("gamma", gamma, 1e9)):
            number = not isinstance(value, bool | str) and isinstance(value, int | float)
            if not number or not 0 <= value <= most:
                raise SettingsError(f"Budget({symbol}={value!r}): {symbol} is a number from 0 to {most:g}.")
        if composition not in ("sum", "tight"):
            raise SettingsError(f"Budget(composition={composition!r}): composition is 'sum' or 'tight'.")
        if composition == "tight":
            if not delta:
                raise SettingsError("composition='tight' needs a delta: with delta=0, epsilons add up.")
            tight({"dp 1.0 0.0": 1}, float(delta))  # raises if dp-accounting is missing
        where = ledger_place(ledger)
        if where is None:
            warnings.warn(
                f"The budget {name!r} exists only in the memory of this process: every other process that "
                f"names it can spend all of it again, and what was spent is forgotten when this one ends. "
                f'To share it, pass ledger=, set PRIVATIZE_LEDGER, or put ledger = "..." into '
                f'[tool.privatize]. If one process is what you want, pass ledger="memory".',
                UnsharedBudgetWarning,
                stacklevel=outside(),
            )
        cap = Cost.of(float(epsilon), float(delta), float(gamma))
        self._set(Terms(name, cap, composition), open_ledger(where or "memory"), bool(who))
        self.ledger.open_budget(self.terms)

    def _set(self, terms: Terms, ledger: Ledger, who: bool) -> None:
        self.terms, self.ledger, self.who = terms, ledger, who
        self.name, self.cap, self.composition = terms.name, terms.cap, terms.composition

    @classmethod
    def begun(cls, name: str, ledger: str | os.PathLike[str] | Ledger | None = None) -> Budget:
        """Return a budget that exists, with the caps that it was opened with; create none.

        Parameters
        ----------
        name : str
            Name of the budget.
        ledger : str, Path or Ledger, optional
            Where the budget is stored; the default is that of `Budget`.

        Raises
        ------
        LedgerError
            If there is no such budget.

        Examples
        --------
        >>> _ = Budget("as begun", epsilon=1, gamma=0.2, ledger="memory")
        >>> Budget.begun("as begun", ledger="memory")
        Budget('as begun', epsilon=1, gamma=0.2: left epsilon=1, gamma=0.2)
        """
        opened = ledger if isinstance(ledger, Ledger) else open_ledger(ledger_place(ledger) or "memory")
        known = {each.name: each for each in opened.budgets()}
        if name not in known:
            names = ", ".join(sorted(map(repr, known))) or "none"
            raise LedgerError(f"There is no budget {name!r} in {opened.url}. There are: {names}.")
        found = cls.__new__(cls)
        if known[name].composition not in ("sum", "tight"):
            raise LedgerError(f"The ledger is damaged: the budget {name!r} has {known[name].caps()}.")
        found._set(known[name], opened, who=False)
        return found

    @property
    def spent(self) -> Amount:
        """What was spent."""
        return _amount(self.terms.least(self.ledger.totals(self.name)), _caveat(self))

    @property
    def remaining(self) -> Amount:
        """What is left."""
        return _amount(self.cap - self.terms.least(self.ledger.totals(self.name)))

    @property
    def plain(self) -> Amount:
        """What was spent on answers that are differentially private for all pairs."""
        return _amount(spent(self.ledger, self.terms).plain)

    @property
    def average_gamma(self) -> float:
        """The share of pairs under P that is not covered, on average over calibrations."""
        return float(summed(self.ledger.totals(self.name)).average)

    @property
    def statement(self) -> str:
        """What was spent, in words.

        If an amount was chosen because of an earlier answer, the caps of the budget hold instead of the sum.

        Examples
        --------
        >>> Budget("nothing yet", epsilon=1, gamma=0.2, ledger="memory").statement
        'epsilon=0 for all pairs of neighbours'
        """
        words = sentence(self.terms, spent(self.ledger, self.terms))
        note, _ = doubts(self.ledger, self.name)
        return f"{words}. {note}" if note else words

    def history(self) -> Any:
        """Return every charge, the oldest first: a DataFrame if pandas is installed, else a list of dicts."""
        rows = self.ledger.history(self.name)
        try:
            import pandas as pd
        except ImportError:
            return rows
        return pd.DataFrame(rows)

    def verify(self) -> Amount:
        """Compute from the history what was spent, and return it; raise if the ledger disagrees.

        All charges are added up again by the rules of `reserve`, and compared with the rest of the ledger.

        Raises
        ------
        LedgerError
            If the totals, the history, the people and the caps do not agree.
        """
        stored, computed = self.ledger.recomputed(self.terms)
        if stored != computed:
            raise LedgerError(f"The ledger's totals for {self.name!r} are not what its charges add up to.")
        spent = self.terms.cost(computed.totals)
        if not spent.fits(self.cap):
            raise LedgerError(f"More was spent from {self.name!r} than there was: {spent} of {self.cap}.")
        return _amount(spent, _caveat(self))

    def declare_again(self, people: str, sampler: Any) -> None:
        """Declare that this is the P of some people, if the ledger's name for their P cannot be compared.

        Earlier versions of this library recorded P under names that another version of Python or of this
        library does not recognize. If the description of P has all of its parameters, P is recognized
        without help. Any other P must be declared again, once, by somebody who knows that it is the same.
        The history shows the declaration as a charge of zero.

        Parameters
        ----------
        people : str
            The name of the sealed data, without a version.
        sampler : Sampler
            P.

        Raises
        ------
        SettingsError
            If these people have no P, or one that can be compared.
        """
        name = check_text("The name of the data", people)
        found, who = declare(as_sampler(sampler)), self.signature()
        self.ledger.declare_again(self.terms, repr(name), found.digest, found.description, who)

    def partition(self, name: str, parts: Sequence[str]) -> Partition:
        """Divide the people into parts, such as sites or years, that a replaced record cannot leave.

        A release about one part costs the others nothing: the largest part counts, not the sum (parallel
        composition). Each part is a dataset of its own, sealed under its own name, and fixed beforehand.

        Examples
        --------
        >>> budget = Budget("trial", epsilon=1, gamma=0.2, ledger="memory")
        >>> budget.partition("site", parts=["Berlin", "Paris"])["Paris"]
        <part 'Paris' of 'site' in Budget('trial', epsilon=1, gamma=0.2: left epsilon=1, gamma=0.2)>
        """
        return Partition(self, name, parts)

    def __repr__(self) -> str:
        found = spent(self.ledger, self.terms)
        left = _amount(self.cap - found.total)
        shown = [s for s in _COLORS if s == "epsilon" or getattr(self.cap, s)]
        caps = ", ".join(f"{s}={float(getattr(self.cap, s)):g}" for s in shown)
        rest = ", ".join(f"{s}={getattr(left, s):.4g}" for s in shown)
        word = "promised" if found.sampled and found.catalogues else "spent"
        used = f"; {word} {sentence(self.terms, found)}" if found.sampled or found.promises else ""
        caveat = _caveat(self)
        return f"Budget({self.name!r}, {caps}: left {rest}{used}{f'; {caveat}' if caveat else ''})"

    def card(self) -> Card:
        """Return a summary for display: how much of ε, δ and γ is left."""
        totals = self.ledger.totals(self.name).values()
        left, (declared, _) = self.remaining, self.ledger.asked(self.name)
        charges = sum(sum(total.counts.values()) for total in totals) - len(declared)
        caps = {symbol: float(getattr(self.cap, symbol)) for symbol in _COLORS if getattr(self.cap, symbol)}
        rows = [(symbol, f"{getattr(left, symbol):.4g} of {cap:g} left") for symbol, cap in caps.items()]
        shares = (min(max(getattr(left, symbol) / cap, 0.0), 1.0) for symbol, cap in caps.items())
        of = "".join(f" ({count} of {each.in_words})" for each, count in declared)
        note = f"{counted(charges, 'answer')} so far{of}, composition {self.composition!r}"
        note += f"; in all {self.statement}" if charges or declared else ""
        return Card(f"budget {self.name}", rows, note=note, shares=tuple(shares))

    def plot(self, ax: Any = None) -> Any:
        """Plot what was spent, answer by answer.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; a new figure by default. Needs matplotlib (the extra ``plot``).

        Returns
        -------
        matplotlib axes
        """
        return onto(self.chart(), ax)

    def chart(self) -> Chart:
        """Return a chart of what was spent, charge by charge."""
        return _spending(self.terms, self.ledger.history(self.name))

    def __reduce__(self) -> tuple[Any, ...]:
        # Sampled pairs cost nothing: no worker needs the ledger, nor the password in its URL.
        if self.ledger.database.url == "memory" or packing():
            return RemoteBudget, (self.name,)
        options: dict[str, Any] = {name: float(getattr(self.cap, name)) for name in _COLORS}
        options |= {"ledger": self.ledger.database.url, "composition": self.composition, "who": self.who}
        return functools.partial(Budget, **options), (self.name,)


def distinct(budgets: Sequence[Any]) -> list[Any]:
    """Return the budgets to charge, each once; a part of a budget replaces the budget itself.

    Two parts of one partition are refused: a record is in one part only.
    """
    found: dict[tuple[str, str], Any] = {}
    for each in budgets:
        if each is None:
            continue
        budget = each.budget if isinstance(each, Part) else each
        if not isinstance(budget, Budget):  # an object of the user's own that can be charged
            found.setdefault(("", str(id(each))), each)
            continue
        where = budget.where
        known = found.get(where)
        if isinstance(known, Part) and isinstance(each, Part):
            if (known.partition, known.part) != (each.partition, each.part):
                raise SettingsError(f"""{known.part!r} and {each.part!r} are parts of one budget. Use one of
                    them.""")
        elif known is None or isinstance(each, Part):
            found[where] = each
    return list(found.values())


def _amount(cost: Cost, note: str = "") -> Amount:
    found = Amount(*(max(float(part), 0.0) for part in (cost.epsilon, cost.delta, cost.gamma)))
    if note:
        found.note = note
    return found


def _spending(terms: Terms, history: list[dict[str, Any]]) -> Chart:
    """Return the shares of a budget that were spent after each of its charges."""
    shown = set(thin(len(history), 40 if terms.composition == "tight" else 300))
    totals: dict[tuple[str, str], Totals] = {}
    shares = {symbol: [(0.0, 0.0)] for symbol in _COLORS if getattr(terms.cap, symbol)}
    for at, row in enumerate(history):
        tally(totals, row)
        if at in shown:
            cost = terms.least(totals)
            for symbol, line in shares.items():
                line.append((at + 1.0, float(getattr(cost, symbol) / getattr(terms.cap, symbol))))
    layers = []
    for symbol, line in shares.items():
        x, y = map(list, zip(*line, strict=True))
        layers.append(Layer("step", x, y, label=symbol, color=_COLORS[symbol], dashed=symbol == "gamma"))
    everything = Layer("level", y=[1.0], color="red", dashed=True, label="all of it")
    title = f"what was spent of {terms.name}"
    return Chart(title, "answers", "share of the budget", (*layers, everything), limits=(0.0, 1.05))


def _caveat(budget: Budget) -> str:
    """Return in words what could not be checked about a total, or an empty string."""
    note, doubtful = doubts(budget.ledger, budget.name)
    return note if doubtful else ""


class RemoteBudget(Entered):
    """A budget that is in the memory of another process: nothing can be spent from it here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def reserve(self, charge: Charge) -> NoReturn:
        """Raise: the ledger is in another process."""
        raise LedgerError(f"""The budget {self.name!r}, which {charge.function}() is charged to, is in the
            memory of another process. Give it a ledger= to share it.""")

    afford = reserve
