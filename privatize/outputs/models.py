"""Turn fitted scikit-learn estimators into the numbers that they have learned, and back.

The class, the parameters and the constants of an estimator are published as calibration saw them, and must be
the same for every dataset. Noise is added to the learned numbers that are on the allow-list. Whatever else an
estimator has learned is left out. scikit-learn is not imported here before one of its objects turns up.
"""

import copy
import hashlib
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from privatize.errors import OutputError
from privatize.outputs.allowlist import FLOORED, FORMS, Form
from privatize.outputs.constants import Unclear, encode, show
from privatize.outputs.names import find, name_of
from privatize.outputs.refusals import unknown_model
from privatize.outputs.structure import Describe, Learned, Reading, Scale, Structure, StructureChanged, Vector

_COMMON = ("classes_", "n_features_in_", "feature_names_in_", "_n_features_out")
_ATOMS = frozenset({type(None), bool, int, float, str})  # parameters of these types cannot change


@dataclass(frozen=True)
class Fitted:
    """A fitted estimator, and what of it is to be released. Made by `privatize.sklearn.fitted`."""

    estimator: Any
    attributes: tuple[str, ...] | None = None
    constants: tuple[str, ...] = ()
    constrain: bool = True


@dataclass(frozen=True, eq=False)
class Unfitted:
    """An estimator that is not trained, that only we have, and whose parameters cannot change.

    Only functions get it that train a copy.
    """

    estimator: Any


def unfitted(estimator: Any, known: Unfitted | None = None) -> Unfitted | None:
    """Return a copy of an estimator on the allow-list, without what it has learned: the known one if it fits.

    None if a parameter may change in place, or if the estimator has anything else that a copy may need.
    """
    made = known and known.estimator
    if type(made) is not type(estimator) and _listed(type(estimator)) is None:
        return None
    given = vars(estimator).copy()
    if type(made) is not type(estimator) or not _has_state_of(given, made):
        try:
            made, known = sys.modules["sklearn.base"].clone(estimator), None
            usual = made is not estimator and vars(made).keys() >= set(estimator._get_param_names())
        except Exception:  # calibration reports what is wrong with it
            return None
        if not usual or type(made) is not type(estimator) or not _has_state_of(given, made):
            return None
    return Unfitted(made) if known is None else known


def _has_state_of(given: dict[str, Any], made: Any) -> bool:
    """Tell whether attributes are the parameters of an estimator, and otherwise what was learned."""
    own = vars(made)
    same = all(given.get(name, given) is each and type(each) in _ATOMS for name, each in own.items())
    return same and all(name.endswith("_") and name[0] != "_" for name in given.keys() - own.keys())


def known() -> list[str]:
    """Return the names of the classes that are released as they are.

    Examples
    --------
    >>> "svm.LinearSVC" in known()
    True
    """
    return sorted(FORMS)


def _listed(kind: type) -> Form | None:
    """Return what the allow-list has about one of scikit-learn's own classes."""
    package, _, rest = kind.__module__.partition(".")
    module = rest.partition(".")[0]
    if package != "sklearn" or find(f"sklearn.{module}", kind.__name__) is not kind:
        return None
    return FORMS.get(f"{module}.{kind.__name__}")


def is_estimator(value: Any) -> bool:
    """Tell whether a value is an estimator."""
    base = sys.modules.get("sklearn.base")
    return base is not None and isinstance(value, base.BaseEstimator) and not isinstance(value, type)


def _form_of(value: Any) -> tuple[Any, Form, bool]:
    """Return the estimator, what of it is released, and whether that is moved to where it is valid."""
    request = value if type(value) is Fitted else Fitted(value)
    estimator = request.estimator
    own = _listed(type(estimator))
    if own is None:
        if request.attributes is None:
            raise unknown_model(estimator)
        own = Form()
    if own.inside and request is value:
        raise OutputError(f"""fitted() was given a {type(estimator).__name__}, which is made of other
            estimators. Use it on those of them that need it.""")
    if absent := [name for name in request.constants if name not in vars(estimator)]:
        raise OutputError(f"""fitted(): {type(estimator).__name__} has no attribute {absent[0]} that could be
            a constant.""")
    usual = own.attributes(estimator)
    attributes = usual if request.attributes is None else request.attributes
    constants = tuple(n for n in (*own.constants(estimator), *request.constants) if n not in attributes)
    form = replace(own, attributes=lambda _: attributes, constants=lambda _: constants)
    if not request.constrain:
        form = replace(form, valid={}, together=None)
    if not set(usual) <= set(attributes):
        form = replace(form, together=None, derive=None)
    return estimator, form, request.constrain


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
    digest : str
        Digest of everything that must be the same for every dataset.
    names : list of str
        The names of its own attributes that are released.
    values : list
        Their values, followed by the estimators inside.
    """

    estimator: Any
    form: Form
    digest: str
    names: list[str]
    values: list[Any]

    def shown(self) -> dict[str, str]:
        """Return parameters and constants, on public data, for messages."""
        found = _parameters(self.estimator, self.form) | _constants(self.estimator, self.form)
        return {name: show(found[name]) for name in sorted(found)}

    def seen(self) -> dict[str, Any]:
        """Return the values, on public data, of attributes that have a floor."""
        return {
            name: np.asarray(value).tolist()
            for name, value in zip(self.names, self.values, strict=False)
            if name in self.form.floors or self.form.valid.get(name) in FLOORED
        }


def take_apart(value: Any) -> Parts:
    """Return the parts of a fitted estimator, or refuse it."""
    estimator, form, constrain = _form_of(value)
    kind = type(estimator)
    found: dict[str, Any] = {}
    for name in form.attributes(estimator):
        try:
            found[name] = getattr(estimator, name)
        except AttributeError:
            raise OutputError(f"""The function returns a {kind.__name__} without {name}: is it fitted? Return
                what fit() returns.""") from None
        if isinstance(getattr(kind, name, None), property) and name not in vars(estimator):
            raise OutputError(f"""{name} of {kind.__name__} is computed from something else, so it cannot be
                set in a new estimator. Return the numbers themselves.""")
    if form.arrange is not None:
        found = form.arrange(found, estimator)
    inside: list[Any] = []
    layout = _with_each(_inside(estimator, form), lambda step: _set_aside(step, inside))
    facts = [_facts(estimator, form, layout), list(found), constrain]
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    return Parts(estimator, form, digest, list(found), [*found.values(), *inside])


def _inside(estimator: Any, form: Form) -> list[Any]:
    return list(getattr(estimator, form.inside)) if form.inside else []


def _with_each(steps: list[Any], change: Callable[[Any], Any]) -> list[Any]:
    """Change each estimator in a list of estimators, or of tuples of a name, an estimator and more."""
    return [(one[0], change(one[1]), *one[2:]) if isinstance(one, tuple) else change(one) for one in steps]


def _set_aside(step: Any, inside: list[Any]) -> Any:
    """Append an estimator to those that are taken apart on their own, and return an Ellipsis in its place."""
    if not is_estimator(step):
        return step
    inside.append(step)
    return ...


def _constants(estimator: Any, form: Form) -> dict[str, Any]:
    state = vars(estimator)
    return {name: state[name] for name in (*_COMMON, *form.constants(estimator)) if name in state}


def _parameters(estimator: Any, form: Form) -> dict[str, Any]:
    """Return the parameters, without the estimators that are taken apart on their own."""
    found = estimator.get_params(deep=False)
    return {name: value for name, value in found.items() if name != form.inside}


def _facts(estimator: Any, form: Form, layout: list[Any]) -> list[Any]:
    """Return class, parameters and constants, encoded."""
    compared = (_parameters(estimator, form), _constants(estimator, form))
    try:
        return [
            name_of(type(estimator)),
            *([[name, encode(value)] for name, value in sorted(each.items())] for each in compared),
            encode(layout),
        ]
    except Unclear as error:
        raise OutputError(f"""The function returns a {type(estimator).__name__} with {error} among its
            parameters or constants, which cannot be compared, so it could carry data. Pass numbers, strings,
            and functions that are defined at the top of a module; random_state=0 in place of a
            generator.""") from None


def refitted(structure: Structure, *data: Any) -> Any:
    """Return the estimator of an output, which must be known by now, fitted to data from P."""
    from sklearn.base import clone

    return clone(structure.template.estimator).fit(*data)  # type: ignore[attr-defined]


# -- making again --


def _prepared(parts: Parts) -> Parts:
    """Return an estimator that was fitted on data from P, without what it has learned."""
    from sklearn.base import clone

    estimator, form, made = parts.estimator, parts.form, clone(parts.estimator)
    state = vars(estimator)
    copied = _constants(estimator, form) | {name: state[name] for name in form.carried if name in state}
    if form.inside:
        copied[form.inside] = _with_each(_inside(estimator, form), lambda step: _set_aside(step, []))
    for name, value in copy.deepcopy(copied).items():
        setattr(made, name, value)
    return replace(parts, estimator=made, values=[])


def _rebuilt(prepared: Parts, items: list[Any], seen: dict[str, Any], noise: dict[str, Any]) -> Any:
    """Return a new estimator with what was released.

    Parameters
    ----------
    prepared : Parts
        What calibration saw.
    items : list
        The values of the released attributes, followed by the estimators inside.
    seen : dict
        The values, on data from P, of attributes that have a floor.
    noise : dict
        The scales of the noise in these attributes, where they are known.
    """
    estimator, form, names = copy.deepcopy(prepared.estimator), prepared.form, prepared.names
    for name, value in zip(names, items, strict=False):
        valid = form.valid.get(name)
        setattr(estimator, name, value if valid is None else valid(value, seen.get(name), noise.get(name)))
    if form.inside:
        fresh = iter(items[len(names) :])
        steps = _inside(estimator, form)
        setattr(estimator, form.inside, _with_each(steps, lambda s: next(fresh) if s is ... else s))
    if form.together is not None:
        form.together(estimator, seen, noise)
    if form.derive is not None:
        form.derive(estimator)
    return estimator


@dataclass(eq=False)
class Model(Learned):
    """A fitted estimator: its learned numbers, and a digest of everything else."""

    tags = ("model",)  # it was "estimator" before the allow-list had what it has now: those count as missing
    name: str
    digest: str
    released: list[str]
    # From data from P: "shown" is for messages, and "seen" has the values of attributes with a floor.
    public: dict[str, dict[str, Any]]
    items: list[Structure]

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        if not _is_fitted(value):
            return None
        parts = take_apart(value)
        public = {"shown": parts.shown(), "seen": parts.seen()}
        items = [describe(item) for item in parts.values]
        return cls(name_of(type(parts.estimator)), parts.digest, parts.names, public, items)

    def parts(self, value: Any, how: Reading, /) -> Sequence[Any]:
        if how is Reading.STACK or not _is_fitted(value):
            raise StructureChanged
        try:
            found = take_apart(value)
        except OutputError:
            raise StructureChanged from None
        if found.names != self.released or found.digest != self.digest:
            raise StructureChanged
        if self.template is None and how is Reading.LEARN:
            self.template = _prepared(found)
        if self.template is None or type(self.template.estimator) is not type(found.estimator):
            raise StructureChanged
        return found.values

    def build(self, vector: Vector, scale: Scale = None, /) -> Any:
        shares = list(self.shares(vector, scale))
        items, seen = [item.build(*part) for item, part in shares], self.public["seen"]
        noise = {
            name: np.broadcast_to(np.asarray(own, dtype=np.float64), numbers.shape).reshape(
                np.shape(seen[name])
            )
            for name, (_, (numbers, own)) in zip(self.released, shares, strict=False)
            if name in seen and own is not None
        }
        return self.assemble(items, noise)

    def assemble(self, items: list[Any], noise: dict[str, Any] | None = None, /) -> Any:
        return _rebuilt(self.template, items, self.public["seen"], noise or {})

    def arrange(self, vector: Any, /) -> dict[str, Any]:
        items = (item.arrange(part) for item, (part, _) in self.shares(vector, None))
        return dict(zip(self.heads(), items, strict=True))

    def heads(self) -> list[str]:
        return [*self.released, *super().heads()[len(self.released) :]]

    def shown(self) -> dict[str, Any]:
        return {"class": self.name.rpartition(":")[2], **self.public["shown"]}


def _is_fitted(value: Any) -> bool:
    return type(value) is Fitted or is_estimator(value)
