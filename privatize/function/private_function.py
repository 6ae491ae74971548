"""privatize() and PrivateFunction: what users call."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast

from privatize.budgets.budget import Budget
from privatize.budgets.partition import Part
from privatize.calibration.evaluators.base import PairFunction
from privatize.calibration.evaluators.batched import Batch
from privatize.calibration.fit import Fit
from privatize.config.policy import policy
from privatize.data import records
from privatize.data.units import UNDECLARED, Unit
from privatize.errors import SettingsError
from privatize.function.accuracy import error_of, errors_of, least_epsilon
from privatize.function.advice import Advice
from privatize.function.asking import estimated, miscounted, questions
from privatize.function.binding import Binding, label_of
from privatize.function.box import Box
from privatize.function.calibrator import Calibrator
from privatize.function.counting import Changed, changed
from privatize.function.pickling import Pickled
from privatize.function.pipeline import released
from privatize.function.question import Definition
from privatize.function.release import Release
from privatize.function.settings import REQUIRED, Settings, check_given
from privatize.function.strength import mechanism_name, proven_bound, words_of
from privatize.identity.library import Wrapper
from privatize.mechanisms import DEFAULT, Mechanism
from privatize.planning.plan import Bound, Plan

P = ParamSpec("P")
R = TypeVar("R")

# Attributes that a private function sets itself. The user has set all others.
_OWN = frozenset(
    {"_original", "_settings", "_root", "_target", "_advice", "calibrator", "definition", "__wrapped__"}
)


class PrivateFunction(Pickled, Wrapper, Generic[P, R]):
    """A function of a dataset that gives random differentially private answers.

    Made by `privatize`. Calling it returns a private answer; the first call for a number
    of records calibrates, later ones recall. The raw function is ``__wrapped__``.

    Examples
    --------
    >>> from privatize import privatize, samplers
    >>> @privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100))
    ... def average_age(ages):
    ...     return ages.mean()
    >>> average_age
    <private average_age(ages): Laplace, epsilon=1, gamma=0.05, P=uniform(0, 100)>
    """

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        settings: Settings,
        *,
        calibrator: Calibrator | None = None,
        advice: Advice | None = None,
        root: PrivateFunction[Any, Any] | None = None,
        unfinished: bool = False,
    ) -> None:
        original: Any = function
        raw = original.__func__ if isinstance(original, classmethod) else original
        _refuse_private(raw)
        self._original, self._settings, self._advice = original, settings, advice
        self._root: PrivateFunction[Any, Any] = self if root is None else root  # what it calls as itself
        self._target: Any = None  # the object or class that it is bound to, as a method
        self.calibrator = Calibrator() if calibrator is None else calibrator
        # Name, documentation and module, but not attributes: they could be anything, ours included.
        functools.update_wrapper(cast("Any", self), raw, updated=())
        self.__wrapped__ = cast("Callable[P, R]", raw)
        self.__name__: str = label_of(raw)
        if not unfinished:
            settings.obey(self.__name__, policy())
            _ = self.definition  # raises if the function cannot be made private

    @functools.cached_property
    def definition(self) -> Definition:
        """The raw function, its parameters and the promise."""
        binding = Binding.of(self.__wrapped__, self._settings.data, self._settings.coins)
        name = self.__name__ if self.__name__.isidentifier() else "f"
        star = "*" if binding.aligned else ""
        advice = self._advice or Advice(self.__name__, f"{name}.__wrapped__({star}{name}.sample(n))")
        label = f"{self.__module__}.{getattr(self, '__qualname__', self.__name__)}"
        proven = proven_bound(self.__wrapped__, self._settings, self.__name__)
        return Definition(self.__name__, label, advice, binding, self._settings, self._root, proven)

    @property
    def settings(self) -> Settings:
        """The options of `privatize`, checked."""
        return self._settings

    @property
    def plan(self) -> Plan:
        """How many pairs are sampled, and which order statistic is taken."""
        if self._settings.plan is None:
            raise SettingsError(f"""{self.__name__}() has no plan: its bound is proven, so it does not rest on
                sampled pairs.""")
        return self._settings.plan

    def _repr_html_(self) -> str:
        names = ", ".join(self.definition.binding.names)
        definition = self.definition
        words = words_of(self._settings, definition.proven)
        return self._settings.card(f"{self.__name__}({names})", words, definition.proven is None).html()

    def __repr__(self) -> str:
        s = self._settings
        delta = f", delta={s.delta:g}" if s.delta else ""
        names = ", ".join(self.definition.binding.names)
        words, name = words_of(s, self.definition.proven), mechanism_name(s, self.definition.proven)
        holds = f"differentially private {words}" if s.gamma is None else f"gamma={s.gamma:g}"
        law = f", P={'that of sealed data' if s.sampler is None else repr(s.sampler)}"
        return (
            f"<private {self.__name__}({names}): {name}, epsilon={s.epsilon:g}{delta}, "
            f"{holds}{law if self.definition.proven is None else ''}>"
        )

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return a private answer for the dataset among the arguments."""
        try:  # an interrupt in here must not leave the arguments in this frame
            box = Box()
            box.args, box.kwargs = args, kwargs
        finally:
            del args, kwargs
        return cast("R", released(self, box, entire=False))

    def release(self, /, *args: P.args, **kwargs: P.kwargs) -> Release:
        """Return a private answer together with what was promised about it."""
        try:  # an interrupt in here must not leave the arguments in this frame
            box = Box()
            box.args, box.kwargs = args, kwargs
        finally:
            del args, kwargs
        return cast("Release", released(self, box, entire=True))

    def estimate(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return the sensitivity for n records, calibrated now or remembered. Needs no private data.

        ``estimate(n, ...)`` takes the number of records first, or as ``n=``; a list of them gives a list
        of estimates. The function's other arguments, those that are not the dataset, follow. ``like=`` is a
        dataset without records whose container, column names and dtypes are the private data's, where P
        draws something that is converted to it (an array for a data frame, say).
        """
        given = [args, kwargs]
        del args, kwargs  # by mistake they may be the data, which no frame of an error may hold
        return estimated(self.definition, self.calibrator, "estimate", given, lambda found: found)

    def error_at(
        self, /, *args: Any, epsilon: float | None = None, confidence: float = 0.95, **kwargs: Any
    ) -> Any:
        """Return how far an answer is from the raw one at most, with a given probability.

        ``error_at(n, ...)`` takes what `estimate` takes, and calibrates if that has not been done.
        Needs no private data.

        Parameters
        ----------
        *args, **kwargs
            The number of records n, and the function's other arguments.
        epsilon : float, optional
            The privacy loss; the function's own by default.
        confidence : float
            The probability, for each number of the answer by itself.

        Returns
        -------
        object
            The half-width of the interval around each number, in the form of the answer. For the exponential
            mechanism, by how much the chosen response's score is below the best one at most; for the
            Bernstein mechanism, that of the values on the lattice.

        Examples
        --------
        >>> import numpy as np
        >>> from privatize import privatize, samplers
        >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 100), seed=1)(np.mean)
        >>> round(mean.error_at(1000), 3)  # within ± this, with 95% probability
        0.231
        >>> round(mean.error_at(1000, epsilon=0.1), 2)
        2.31
        """
        given = [args, kwargs]
        del args, kwargs
        settings = self._settings if epsilon is None else replace(self._settings, epsilon=epsilon)
        return estimated(
            self.definition,
            self.calibrator,
            "error_at",
            given,
            lambda found: error_of(settings, found, confidence),
        )

    def epsilon_for(self, /, *args: Any, error: float, confidence: float = 0.95, **kwargs: Any) -> Any:
        """Return the least epsilon at which an answer is that close to the raw one, with a probability.

        ``epsilon_for(n, ..., error=2)`` takes what `estimate` takes, and calibrates if that has not
        been done. Needs no private data.

        Parameters
        ----------
        *args, **kwargs
            The number of records n, and the function's other arguments.
        error : float
            The largest distance of any number of the answer from the raw one.
        confidence : float
            The probability, for each number of the answer by itself.

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from privatize import privatize, samplers
        >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 100), seed=1)(np.mean)
        >>> round(mean.epsilon_for(1000, error=2), 3)
        0.115
        """
        given = [args, kwargs]
        del args, kwargs

        def least(found: Any) -> float:
            at = functools.partial(replace, self._settings)
            return least_epsilon(lambda epsilon: errors_of(at(epsilon=epsilon), found, confidence), error)

        return estimated(self.definition, self.calibrator, "epsilon_for", given, least)

    def remembers(self, /, n: int, *args: Any, **kwargs: Any) -> bool:
        """Tell whether the estimate for n records is remembered, so that a call would not calibrate.

        Takes what `estimate` takes. Nothing is evaluated.
        """
        if self.definition.proven is not None:
            return True  # its bound is known, so there is nothing to calibrate
        given = [(n, *args), kwargs]
        del n, args, kwargs
        ((asked,), _) = questions(self.definition, self.calibrator, "remembers", given, several=False)
        return self.calibrator.remembers(asked)

    def forget(self, /, *args: Any, **kwargs: Any) -> int:
        """Forget estimates, so that the next call calibrates again. Return how many there were.

        ``forget(n, ...)`` takes what `estimate` takes. Without arguments, all estimates of functions of this
        name are forgotten.
        """
        given: list[Any] = [args, kwargs]
        del args, kwargs
        asked = None
        if any(given):
            ((asked,), _) = questions(self.definition, self.calibrator, "forget", given, several=False)
        return self.calibrator.forget(self.definition, asked)

    def sample(self, n: int, *, seed: int | None = None) -> Any:
        """Draw a public dataset of n records from P, or from a family's first P, as calibration does.

        Use it to reproduce a failure on private data with data that may be looked at.
        """
        wrong = miscounted("sample", n, several=False)
        if wrong is not None:
            del n
            raise wrong
        drawn = self.calibrator.template(self.definition).sample(operator.index(n), seed)
        return records.as_passed(drawn)

    def changed(self, /, *data: Any, epsilon: float) -> Changed:
        """Return how many records are clipped, filled or recoded before the function sees them, by column.

        The counts have noise and are differentially private for all neighbours; epsilon is charged to the
        budgets that an answer is charged to. Ask before any sampled question: what P does not draw silently
        becomes something else, "East " the first category, say.

        Parameters
        ----------
        *data
            The dataset, or all of them if the function has several; no other arguments.
        epsilon : float
            What to spend. Noise of scale 2d/epsilon for d columns is added to each count.

        Examples
        --------
        >>> import numpy as np
        >>> from privatize import privatize, samplers
        >>> mean = privatize(epsilon=1, gamma=0.1, sampler=samplers.uniform(0, 100))(np.mean)
        >>> mean.changed(np.full(500, 430.0), epsilon=1).found[0].kind
        'clipped'
        """
        try:  # an interrupt in here must not leave the data in this frame
            box = Box()
            box.args = data
        finally:
            del data
        return changed(self.definition, box, epsilon)

    def replace(self, **changes: Any) -> PrivateFunction[P, R]:
        """Return the same function with other settings.

        Examples
        --------
        >>> import numpy as np
        >>> from privatize import privatize, samplers
        >>> mean = privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 1))(np.mean)
        >>> mean.replace(epsilon=0.1)
        <private mean(a): Laplace, epsilon=0.1, gamma=0.05, P=uniform(0, 1)>
        """
        known = {f.name for f in fields(Settings) if f.init}
        if unknown := sorted(set(changes) - known):
            raise SettingsError(f"""{unknown[0]!r} is not a setting. The settings are
                {", ".join(sorted(known))}.""")
        if "sampler" in changes and "domain" not in changes:
            changes["domain"] = None
        chosen = replace(self._settings, **changes)
        return PrivateFunction(self._original, chosen, calibrator=self.calibrator, root=self._root)

    def __get__(self, instance: Any, owner: type | None = None) -> PrivateFunction[..., R]:
        """Bind as functions do: a method's instance is one more public argument."""
        if isinstance(self._original, classmethod):
            target = owner if owner is not None else type(instance)
        elif isinstance(self._original, staticmethod) or instance is None:
            return self
        else:
            target = instance
        getter = getattr(type(self.__wrapped__), "__get__", None)
        if getter is None:
            return self
        bound, method = object.__new__(type(self)), getter(self.__wrapped__, target, type(target))
        own = {"_original": method, "_target": target, "__wrapped__": method}
        vars(bound).update(vars(self) | own | {"definition": self.definition.bound(method)})
        return bound

    def _identity(self) -> Any:
        return self.__wrapped__, self._settings, self._attributes()

    def _attributes(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).copy().items() if name not in _OWN}

    def _runs(self) -> list[Any]:
        return [self.__wrapped__, self._settings.pair, self._settings.batch, *self._attributes().values()]


def _refuse_private(function: Any) -> None:
    """Refuse a function that is private already, under another promise."""
    inner, seen = function, 0
    while inner is not None and seen < 100:
        if isinstance(inner, PrivateFunction):
            raise SettingsError(f"""{inner.__name__} is private already. Use {inner.__name__}.replace(...) for
                other settings, or decorate {inner.__name__}.__wrapped__.""")
        follow = inner.func if isinstance(inner, functools.partial) else getattr(inner, "__wrapped__", None)
        inner, seen = follow, seen + 1


# --- the decorator ----------------------------------------------------------------------------


def privatize(
    function: None = None,
    /,
    *,
    epsilon: float = REQUIRED,
    gamma: float | None = None,
    sensitivity: float | Callable[[int], float] | None = None,
    sampler: Any = None,
    mechanism: str | Mechanism = DEFAULT,
    delta: float = 0.0,
    data: str | Sequence[str] | None = None,
    unit: str | Unit | None = UNDECLARED,
    bound: Bound = "tolerance",
    samples: int | Literal["least", "balanced"] = "balanced",
    pair: PairFunction | None = None,
    batch: Batch = False,
    coins: Sequence[str] = (),
    domain: Literal["clip", "as-is"] | None = None,
    min_sensitivity: float | None = None,
    fit: Fit | None = None,
    timeout: float | None = None,
    seed: int | None = None,
    version: str | None = None,
    workers: Any = None,
    store: str | os.PathLike[str] | None = "default",
    progress: bool | None = None,
    budget: Budget | Part | None = None,
    constraints: str | Callable[[Any], Any] | dict[Any, Any] | None = None,
    **unknown: Any,
) -> Callable[[Callable[P, R]], PrivateFunction[P, R]]:
    """Make a function of a dataset random differentially private.

    Parameters
    ----------
    epsilon : float
        The privacy loss: smaller is more private and noisier.
    gamma : float
        The promise may fail on this share of random neighbouring pairs of datasets: for gamma*n of n people
        in expectation. Leave it out where the bound is proven: with ``sensitivity=``, with functions that
        have bounds of their own (see `privatize.sums`), and with ``mechanism=Blocks(low, high)``.
    sensitivity : float or callable, optional
        A bound on how far one record moves the answer, in the mechanism's norm, that you have proved for all
        data within P's support; or a function of n that returns it. Nothing is estimated then, but sampled
        pairs try to refute it.
    sampler : Sampler, scipy.stats distribution, callable, or list of these
        The public distribution P of a record (see `privatize.samplers`). The promise is
        made with respect to it. By default that of the sealed data in a call. With a list, or
        ``P.family()``, the promise holds under each P of the family, which costs a calibration for each.
    mechanism : {"laplace", "gaussian", "exponential", "bernstein"} or Mechanism
        How the answer is released; Laplace noise by default.
    delta : float
        Needed by the Gaussian mechanism, 1e-6 say.
    data : str or sequence of str, optional
        The dataset's parameter, or several that are aligned record by record. By default the
        first parameter, after ``self``.
    unit : str, `privatize.Unit` or None, optional
        Without a P: the column that identifies a person, if people have several rows each; None if every
        row is another person. With a P, `privatize.samplers.people` says it.
    bound : {"tolerance", "dkw", "marginal"}
        How m and k follow from gamma (see `privatize.plan`).
    samples : int or {"balanced", "least"}
        m, the number of sampled pairs.
    pair : callable, optional
        ``pair(data, position, replacement) -> (value, neighbour_value)``: evaluates both
        neighbours at once where that is cheaper. Trusted, and checked on some pairs. It sees the
        dataset alone, so it fits functions whose other arguments do not change.
    batch : bool or callable
        Whether the function also accepts a stack of datasets, an array with one more axis in front
        (``x.mean(axis=-1)``), and returns a stack of answers; or another function that does, such as
        ``jax.vmap`` of it. Hundreds of pairs are then one call. Trusted, and checked on some pairs.
    coins : sequence of str
        Parameters that receive a seeded `numpy.random.Generator` at every evaluation.
    domain : {"clip", "as-is"}, optional
        Whether private records are clipped to P's support before the function sees them. By
        default they are if P is bounded.
    min_sensitivity : float, optional
        A floor for the estimate. Without one an estimate of zero is refused.
    fit : Fit, optional
        What `privatize.check_fit` found: estimates are widened by its factor.
    timeout : float, optional
        Seconds for one sampled pair, which counts as infinite if it takes longer; or, with
        `privatize.Blocks`, of CPU time for one block.
    seed : int, optional
        Seed of the calibration, for reproducible estimates. Noise is never seeded.
    version : str, optional
        Stands for what the function's fingerprint cannot see or encode (files, a connection):
        change it when that changes. Without it such an estimate is not remembered.
    workers : int, "inline", "ray", Dask client, executor, or object with map, optional
        Where the sampled pairs are evaluated: a number of processes, in this one, or a cluster. By
        default what `privatize.configure` sets, or else it is chosen automatically. The private data is only
        evaluated in this process, or by `privatize.Blocks` in short-lived children of it.
    store : str, Path or None
        Where estimates are remembered: a path or URL, or None for this process only. By default
        what `privatize.configure` sets.
    progress : bool, optional
        Whether calibration shows a bar. By default if it takes more than a second and runs in a
        terminal or a notebook.
    budget : Budget, optional
        What every answer is charged to, beside the budgets of ``with`` blocks and of sealed data.
    constraints : str, callable or dict, optional
        What makes an answer valid after its noise was added, which costs no privacy but is biased: a function
        of the answer; the name of one of `privatize.constraints`, "positive" say; or a dict of these by key,
        field, column or position. Nothing by default.

    Returns
    -------
    callable
        A decorator; it returns a `PrivateFunction`.

    Examples
    --------
    >>> import numpy as np
    >>> from privatize import privatize, samplers
    >>> @privatize(epsilon=1, gamma=0.05, sampler=samplers.uniform(0, 100))
    ... def average_age(ages):
    ...     return ages.mean()
    >>> ages = np.random.default_rng(0).integers(18, 90, size=1000)
    >>> answer = average_age(ages)
    >>> bool(abs(answer - ages.mean()) < 5)
    True
    """
    given = {name: value for name, value in locals().items() if name not in ("function", "unknown")}
    check_given(function, given, sorted(unknown))
    settings = Settings(**given)

    def decorate(function: Callable[P, R]) -> PrivateFunction[P, R]:
        return PrivateFunction(function, settings)

    return decorate
