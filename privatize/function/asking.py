"""Read the arguments of methods such as estimate(), which need no private data but may get it by mistake."""

import operator
from collections.abc import Callable
from typing import Any

from privatize.calibration.proof import Proven
from privatize.calibration.refuting import known_bound
from privatize.data import records
from privatize.data.grouping import group
from privatize.data.persons import Persons, names_of
from privatize.errors import ArgumentError, PrivatizeError, SettingsError
from privatize.function.calibrator import Calibrator
from privatize.function.question import Definition, Question
from privatize.function.template import Template
from privatize.planning.numbers import as_integer
from privatize.samplers.base import traits_of


def questions(
    definition: Definition, calibrator: Calibrator, name: str, given: list[Any], *, several: bool = True
) -> tuple[list[Question], bool]:
    """Return the questions that a method's arguments ask, and whether n is a list.

    The arguments are the number of records n or a list of such numbers, the function's other arguments, and
    ``like=``, a dataset without records. They are removed from `given`: a user may have passed the private
    data by mistake, which no frame of an error may hold.
    """
    if definition.proven is not None:
        given.clear()
        raise SettingsError(f"""{definition.name}() has a bound for all pairs of its own: nothing is estimated
            by sampling, so {name}() has nothing to tell. Try the function on made-up data.""")
    sizes, many, args, kwargs, like = _read(definition, name, given, several=several)
    template = calibrator.template(definition)
    call = definition.binding.bind_public(args, kwargs)
    schema = None if like is None else template.match(schema_of(like, template))
    used = [template.used(each)[0] for each in sizes]
    return [Question(definition, template, call, each, schema) for each in used], many


def schema_of(like: Any, template: Template) -> Any:
    """Return the schema of a dataset without records, as persons if P draws persons."""
    drawn = template.records()
    if type(drawn) is not Persons:
        return records.describe(like)
    return records.describe(group(like, drawn.unit, bytes(32), columns=names_of(drawn.rows)))


def own_bounds(definition: Definition, proven: Proven, name: str, given: list[Any]) -> tuple[list[Any], bool]:
    """Return the bounds of a function that has its own, for the numbers of records that are given."""
    sizes, many, args, kwargs, _ = _read(definition, name, given, several=True)
    definition.binding.bind_public(args, kwargs)
    mechanism, constraints = definition.settings.mechanism, definition.settings.constraints
    if constraints is not None:
        for n in sizes:
            constraints.check(proven.structure(n), definition.name)
    return [known_bound(proven.bound_at(n, mechanism), n, proven.structure(n)) for n in sizes], many


def estimated(
    definition: Definition, calibrator: Calibrator, name: str, given: list[Any], read: Callable[[Any], Any]
) -> Any:
    """Return what `read` returns for the estimate that a method asks for; a list if it asks for several."""
    if definition.proven is not None:
        known, many = own_bounds(definition, definition.proven, name, given)
    else:
        asked, many = questions(definition, calibrator, name, given)
        known = [calibrator.recall(each).sensitivity for each in asked]
    found = [read(each) for each in known]
    return found if many else found[0]


def _read(
    definition: Definition, name: str, given: list[Any], *, several: bool
) -> tuple[list[int], bool, tuple[Any, ...], dict[str, Any], Any]:
    """Return the numbers of records, whether they were a list, the other arguments, and ``like=``."""
    args, kwargs = given
    given.clear()
    like = kwargs.pop("like", None)
    size = traits_of(definition.settings.sampler).size
    if args:
        n, *args = args
    elif "n" in kwargs:
        n = kwargs.pop("n")
    elif size is not None:
        n = size
    else:
        raise ArgumentError(f"{definition.name}.{name}(n, ...) needs the number of records n.")
    wrong = miscounted(name, n, several=several) or not_empty(like)
    if wrong is not None:
        del n, args, kwargs, like
        raise wrong
    many = isinstance(n, list | tuple)
    return [operator.index(each) for each in (n if many else [n])], many, tuple(args), kwargs, like


def miscounted(name: str, n: Any, *, several: bool = True) -> SettingsError | None:
    """Return the error for an n that is neither a number of records nor a list of them; None if it is.

    Unless n is an integer, the error shows only its type: a user may have passed the private data.
    """
    for each in n if several and isinstance(n, list | tuple) else [n]:
        if not 1 <= as_integer(each) < 2**53:
            shown = repr(n) if type(n) is int else f"a {type(n).__name__}"
            return SettingsError(f"""{name}() takes the number of records n, an integer from 1 to 2^53, not
                {shown}. It needs no private data.""")
    return None


def not_empty(like: Any) -> SettingsError | None:
    """Return the error for a `like=` that has records or is not a dataset; None if it is empty or absent."""
    try:
        size = 0 if like is None else records.count(like)
    except PrivatizeError:
        return SettingsError(f"like= takes a dataset without records, not a {type(like).__name__}.")
    if size:
        return SettingsError(f"""like= takes a dataset without records, such as data.head(0) or data[:0], and
            this one has {size}: it needs no private data.""")
    return None
