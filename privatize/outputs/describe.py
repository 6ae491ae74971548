"""Make the structure of an output, from the output itself or from stored JSON."""

from functools import partial
from typing import Any

from privatize.errors import OutputError
from privatize.outputs.containers import Dataclass, Dict, Frame, List, NamedTuple, Tuple
from privatize.outputs.models import Model
from privatize.outputs.refusals import refusal
from privatize.outputs.structure import Array, Branch, Number, Structure, Tensor

# An output is described by the first of these whose `of` accepts it.
_NODES: tuple[type[Structure], ...] = (Number, Array, Frame, Tensor, Model)
_NODES += (List, Tuple, NamedTuple, Dict, Dataclass)
_BY_TAG = {tag: node for node in _NODES for tag in node.tags}


def describe(value: Any) -> Structure:
    """Return the structure of a public output, or refuse what cannot be released.

    Examples
    --------
    >>> import numpy as np
    >>> found = describe({"mean": 1.5, "counts": np.array([1, 2])})
    >>> found.to_json()
    ['dict', 'dict', [['str', 'mean'], ['str', 'counts']], [['float'], ['array', '<i8', [2]]]]
    >>> found.names(), found.integers()
    (['mean', 'counts 0', 'counts 1'], array([False,  True,  True]))
    >>> vector = found.flatten({"counts": np.array([5, 6]), "mean": 4})
    >>> vector, found.rebuild(vector + 0.25)
    (array([4., 5., 6.]), {'mean': 4.25, 'counts': array([5, 6])})
    """
    found = _describe(value, ())
    if found.size == 0:
        raise OutputError("The output holds no numbers, so there is nothing to release.")
    found.flatten(value, learn=True)
    return found


def _describe(value: Any, above: tuple[int, ...]) -> Structure:
    if id(value) in above:
        raise OutputError("The output contains itself, so it cannot be flattened.")
    inner = partial(_describe, above=(*above, id(value)))
    for node in _NODES:
        found = node.of(value, inner)
        if found is not None:
            return found
    raise refusal(value)


def from_json(stored: list[Any]) -> Structure:
    """Return the structure whose `to_json` was stored.

    Examples
    --------
    >>> from_json(["list", [["float"], ["int"]]]).rebuild([2.5, 3.0])
    [2.5, 3]
    """
    tag, *facts = stored
    node = _BY_TAG[tag]
    if issubclass(node, Branch):
        facts[-1] = [from_json(item) for item in facts[-1]]
    return Number(stored[-1]) if node is Number else node(*facts)


def difference(value: Any, structure: Structure) -> str:
    """Say how an output on sampled data, which is public, differs from the structure seen before.

    Examples
    --------
    >>> difference({"a": 1.0}, describe({"a": 1.0, "b": 2.0}))
    "a dict without keys 'b'"
    """
    try:
        found = _describe(value, ())
    except OutputError as error:
        return str(error)
    return _mismatch(found, structure) or "of another class, or with other strings, categories or index"


def _mismatch(found: Structure, known: Structure) -> str | None:
    """Describe the first difference of two structures that their messages can show."""
    if found.tag != known.tag:
        return f"a {found.tag} where there was a {known.tag}"
    now, before = found.shown(), known.shown()
    names = [name for name in before | now if now.get(name) != before.get(name)]
    if names:
        changes = (_changed(name, now.get(name), before.get(name)) for name in names[:2])
        return f"a {now.get('class', found.tag)} {' and '.join(changes)}"
    theirs, ours = _items(found), _items(known)
    if len(theirs) != len(ours):
        return f"a {found.tag} of {len(theirs)} parts where there were {len(ours)}"
    inside = (_mismatch(theirs[name], ours[name]) for name in ours if name in theirs)
    return next(filter(None, inside), None)


def _items(node: Structure) -> dict[str, Structure]:
    """Return the nodes inside a node, by name."""
    return dict(zip(node.heads(), node.items, strict=True)) if isinstance(node, Branch) else {}


def _changed(what: str, now: Any, before: Any) -> str:
    """Say how a fact about a node changed. For a list of names, say which are new and which are missing."""
    if not isinstance(before, list) or not all(isinstance(name, str) for name in [*now, *before]):
        return f"with {what}={now} where it was {before}"
    others = {"with": [x for x in now if x not in before], "without": [x for x in before if x not in now]}
    changes = [
        f"{word} {what} {', '.join(names[:5])}{', ...' if len(names) > 5 else ''}"
        for word, names in others.items()
        if names
    ]
    return " and ".join(changes) or f"with {what} in another order"
