"""Fitted scikit-learn estimators as answers: what they have learned, as numbers, and back.

An estimator is taken apart into its class, its parameters and its constants, which are published as
calibration saw them and must be the same for every dataset; and the learned numbers of an allow-list, to
which noise is added. Whatever else it has learned is left behind. scikit-learn is never imported here
before one of its objects turns up.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
import sys
import types
from dataclasses import dataclass
from typing import Any

import numpy as np

from privatize.errors import OutputError
from privatize.outputs.allowlist import FORMS, Form, above

__all__ = [
    "Fitted",
    "Parts",
    "Template",
    "form_of",
    "is_estimator",
    "is_fitted",
    "known",
    "rebuild",
    "take_apart",
]

_COMMON = ("classes_", "n_features_in_", "feature_names_in_", "_n_features_out")


class Unclear(Exception):  # noqa: N818 - a signal between rooms
    """A parameter or constant cannot be compared, so it cannot be published."""


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator, and what of it is to be released. Made by `privatize.sklearn.fitted`."""

    estimator: Any
    attributes: tuple[str, ...] | None = None
    constants: tuple[str, ...] = ()
    constrain: bool = True


def known() -> list[str]:
    """Return the names of the classes that are released as they are.

    Examples
    --------
    >>> "svm.LinearSVC" in known()
    True
    """
    return sorted(FORMS)


def _named(kind: type) -> str | None:
    """Return the public name of one of scikit-learn's own classes that is on the list."""
    package, _, rest = kind.__module__.partition(".")
    name = f"{rest.partition('.')[0]}.{kind.__name__}"
    if package != "sklearn" or name not in FORMS:
        return None
    module = sys.modules.get(f"sklearn.{name.partition('.')[0]}")
    return name if getattr(module, kind.__name__, None) is kind else None


def is_estimator(value: Any) -> bool:
    """Tell whether a value is an estimator."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(value, base.BaseEstimator) and not isinstance(value, type)


def is_fitted(value: Any) -> bool:
    """Tell whether a value is an estimator, or wrapped by `privatize.sklearn.fitted`."""
    return type(value) is Fitted or is_estimator(value)


def form_of(value: Any) -> tuple[Any, Form, bool]:
    """Return the estimator, what of it is released, and whether that is brought to where it is valid."""
    if type(value) is not Fitted:
        name = _named(type(value))
        if name is None:
            raise _unknown(value)
        return value, FORMS[name], True
    estimator = value.estimator
    name = _named(type(estimator))
    if value.attributes is None and name is None:
        raise _unknown(estimator)
    own = Form() if name is None else FORMS[name]
    if own.inside:
        raise OutputError(
            f"fitted() was given a {type(estimator).__name__}, which is made of other estimators. Wrap "
            f"those that need it, inside."
        )
    if absent := [name for name in value.constants if name not in vars(estimator)]:
        raise OutputError(
            f"fitted(): {type(estimator).__name__} has no attribute {absent[0]} that could be a constant."
        )
    attributes = own.attributes(estimator) if value.attributes is None else value.attributes
    constants = tuple(n for n in (*own.constants(estimator), *value.constants) if n not in attributes)
    form = Form(
        lambda _: attributes,
        lambda _: constants,
        own.carried,
        own.valid if value.constrain else {},
        own.arrange,
        derive=own.derive if set(own.attributes(estimator)) <= set(attributes) else None,
    )
    return estimator, form, value.constrain


def _unknown(estimator: Any) -> OutputError:
    kind = type(estimator).__name__
    if hasattr(estimator, "best_estimator_"):
        way = (
            "A search publishes which parameters won. Search on data drawn from P, or on public data, and "
            "return a model that is fitted with what was found."
        )
    elif kind in ("SVC", "SVR", "NuSVC", "NuSVR", "OneClassSVM"):
        way = (
            "It predicts from support vectors, which are people's records. Use LinearSVC or LinearSVR (after "
            "RBFSampler for a radial kernel), or return {'coef': model.coef_, 'intercept': model.intercept_} "
            "if the kernel is linear."
        )
    else:
        way = (
            "For trees, neighbours and kernels release predictions at public points: return "
            "model.predict_proba(POINTS), or use mechanism=Bernstein(...). If it predicts from numbers, "
            "return privatize.sklearn.fitted(model, attributes=[...]) with their names, or the numbers alone."
        )
    return OutputError(f"The function returns a {kind}, of which it is not known what may be released. {way}")


# -- taking apart --


@dataclass(frozen=True)
class Parts:
    """An estimator, taken apart.

    Attributes
    ----------
    estimator : object
        The estimator.
    form : Form
        What of it is released, and how.
    constrain : bool
        Whether that is brought to where it is valid.
    digest : str
        Digest of everything that must be the same for every dataset.
    names : list of str
        What is released of itself; then come the estimators inside it.
    values : list
        Their values; then the estimators inside.
    """

    estimator: Any
    form: Form
    constrain: bool
    digest: str
    names: list[str]
    values: list[Any]

    def seen(self) -> dict[str, Any]:
        """Return the values of what has a floor, on public data."""
        valid = self.form.valid
        return {
            name: np.asarray(value).tolist()
            for name, value in zip(self.names, self.values, strict=False)
            if valid.get(name) is above
        }


def take_apart(value: Any) -> Parts:
    """Return the parts of a fitted estimator, or refuse it."""
    estimator, form, constrain = form_of(value)
    kind = type(estimator)
    found: dict[str, Any] = {}
    for name in form.attributes(estimator):
        try:
            found[name] = getattr(estimator, name)
        except AttributeError:
            raise OutputError(
                f"The function returns a {kind.__name__} without {name}: is it fitted? Return what fit() "
                f"returns."
            ) from None
        if isinstance(getattr(kind, name, None), property) and name not in vars(estimator):
            raise OutputError(
                f"{name} of {kind.__name__} is computed from something else, so it cannot be set in a new "
                f"one. Return the numbers themselves."
            )
    if form.arrange is not None:
        found = form.arrange(found)
    inside = [step for step in map(_second, _inside(estimator, form)) if is_estimator(step)]
    facts = [_facts(estimator, form), list(found), constrain]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    return Parts(estimator, form, constrain, digest, list(found), [*found.values(), *inside])


def _inside(estimator: Any, form: Form) -> list[Any]:
    return list(getattr(estimator, form.inside)) if form.inside else []


def _second(step: Any) -> Any:
    return step[1] if isinstance(step, tuple) else step


def _layout(estimator: Any, form: Form) -> list[Any]:
    """Return the list of the estimators inside, with ... in their place."""
    return [
        (step[0], ... if is_estimator(step[1]) else step[1], *step[2:])
        if isinstance(step, tuple)
        else (... if is_estimator(step) else step)
        for step in _inside(estimator, form)
    ]


def _constants(estimator: Any, form: Form) -> dict[str, Any]:
    state = vars(estimator)
    return {name: state[name] for name in (*_COMMON, *form.constants(estimator)) if name in state}


def _parameters(estimator: Any, form: Form) -> dict[str, Any]:
    """Return the parameters but for the estimators that are taken apart on their own."""
    found = estimator.get_params(deep=False)
    return {name: value for name, value in found.items() if name != form.inside}


def _facts(estimator: Any, form: Form) -> list[Any]:
    """Return class, parameters and constants, encoded."""
    told = (_parameters(estimator, form), _constants(estimator, form))
    try:
        return [
            _kind(type(estimator)),
            *([[name, _encode(value)] for name, value in sorted(each.items())] for each in told),
            _encode(_layout(estimator, form)),
        ]
    except Unclear as error:
        raise OutputError(
            f"The function returns a {type(estimator).__name__} with {error} among its parameters or "
            f"constants, which cannot be compared, so it could carry data. Pass numbers, texts, and "
            f"functions that are defined at the top of a module; random_state=0 in place of a generator."
        ) from None


def show(value: Any) -> dict[str, str]:
    """Return parameters and constants of an estimator on public data, for messages."""
    estimator, form, _ = form_of(value)
    told = _parameters(estimator, form) | _constants(estimator, form)
    return {name: _short(told[name]) for name in sorted(told)}


def _short(value: Any) -> str:
    text = " ".join(str(value.tolist() if isinstance(value, np.ndarray) else value).split())
    return text if len(text) < 60 else text[:57] + "..."


def _kind(kind: type) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"


def _encode(value: Any) -> Any:
    """Return a value as plain JSON with its types; what cannot be compared raises."""
    kind = type(value)
    if value is ...:
        return ["..."]
    if value is None or kind in (bool, int, str):
        return [kind.__name__, value]
    if kind in (float, complex, bytes):
        return [kind.__name__, repr(value)]
    if isinstance(value, np.generic):
        return ["numpy", value.dtype.str, repr(value.item())]
    if isinstance(value, np.dtype):
        return ["dtype", value.str]
    if kind is np.ndarray:
        if value.dtype.hasobject:
            return ["objects", list(value.shape), [_encode(item) for item in value.ravel().tolist()]]
        data = np.ascontiguousarray(value).tobytes()
        return ["array", value.dtype.str, list(value.shape), hashlib.sha256(data).hexdigest()]
    if kind in (list, tuple):
        return [kind.__name__, [_encode(item) for item in value]]
    if isinstance(value, dict):
        return [_kind(kind), [[_encode(k), _encode(v)] for k, v in value.items()]]
    if kind in (set, frozenset):
        return [kind.__name__, sorted((_encode(item) for item in value), key=json.dumps)]
    if kind is slice:
        return ["slice", [_encode(end) for end in (value.start, value.stop, value.step)]]
    if isinstance(value, functools.partial):
        return ["partial", [_encode(part) for part in (value.func, value.args, value.keywords)]]
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType | np.ufunc):
        return ["named", _found(value)]
    if kind.__module__.startswith("pandas.") and hasattr(value, "to_numpy"):
        return [_kind(kind), _encode(value.to_numpy(dtype=object))]
    if kind.__module__.startswith("sklearn."):
        return [_kind(kind), _encode(dict(sorted(vars(value).items())))]
    if kind.__module__.startswith("numpy.random"):
        raise Unclear(f"a random generator ({kind.__name__})")
    raise Unclear(f"a {kind.__name__}")


def _found(value: Any) -> str:
    """Return the name under which a function or class can be found, or refuse it."""
    name = getattr(value, "__qualname__", value.__name__)
    module = getattr(value, "__module__", None) or "numpy"
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is not value:
        raise Unclear(f"a function that is not defined at the top of a module ({name})")
    return f"{module}:{name}"


# -- making anew --


@dataclass(frozen=True)
class Template:
    """An estimator as calibration saw it, without what it has learned."""

    kind: type
    estimator: Any  # a clone, not fitted
    constants: dict[str, Any]
    layout: list[Any]
    form: Form

    @classmethod
    def of(cls, parts: Parts) -> Template:
        """Return the template of an estimator that was fitted on data from P."""
        from sklearn.base import clone

        estimator, form = parts.estimator, parts.form
        state = vars(estimator)
        kept = _constants(estimator, form) | {name: state[name] for name in form.carried if name in state}
        layout = copy.deepcopy(_layout(estimator, form))
        return cls(type(estimator), clone(estimator), copy.deepcopy(kept), layout, form)


def rebuild(template: Template, names: list[str], items: list[Any], seen: dict[str, Any]) -> Any:
    """Return a new estimator of the template's class with what was released.

    Parameters
    ----------
    template : Template
        Its class, parameters and constants.
    names, items : list
        The released attributes, and their values, followed by the estimators inside.
    seen : dict
        What attributes that have a floor were on data from P.
    """
    from sklearn.base import clone

    form = template.form
    estimator = clone(template.estimator)
    for name, value in template.constants.items():
        setattr(estimator, name, copy.deepcopy(value))
    for name, value in zip(names, items, strict=False):
        valid = form.valid.get(name)
        setattr(estimator, name, value if valid is None else valid(value, seen.get(name)))
    if form.inside:
        fresh = iter(items[len(names) :])
        made = [
            (step[0], next(fresh) if step[1] is ... else step[1], *step[2:])
            if isinstance(step, tuple)
            else (next(fresh) if step is ... else step)
            for step in copy.deepcopy(template.layout)
        ]
        setattr(estimator, form.inside, made)
    if form.derive is not None:
        form.derive(estimator)
    return estimator
