"""Tuples and dicts of containers that are aligned record by record, as in ``(X, y)``."""

# ruff: noqa: ARG002, D102 - the base class says what a method takes and does

from collections.abc import Iterable, Sequence
from typing import Any

from privatize.data.container import Container, convert, find, isolated, of
from privatize.data.schema import AlignedSchema, Schema
from privatize.data.support import split
from privatize.errors import DataError


def _of_each(name: str) -> Any:
    """Return the method that calls the one of this name for each part."""

    def act(self: "Tuples", data: Any, *rest: Any) -> Any:
        parts = (data[key] for key in self.keys(data))
        return self.put(data, [getattr(of(part), name)(part, *rest) for part in parts])

    return act


class Tuples(Container):
    """Tuples of aligned containers."""

    def keys(self, data: Any) -> Sequence[Any]:
        """Return the keys of the parts."""
        return range(len(data))

    def put(self, data: Any, parts: Iterable[Any]) -> Any:
        """Return other parts in a container like this one."""
        return tuple(parts)

    def check(self, data: Any) -> None:
        """Refuse what is not made of aligned containers."""
        if not data or not all(find(part) for part in data):
            raise DataError("""The dataset is a tuple, which stands for aligned containers such as (X, y), but
                not all of its parts are arrays or lists. Pass a list or an array of records.""")

    def count(self, data: Any) -> int:
        self.check(data)
        sizes = [of(data[key]).count(data[key]) for key in self.keys(data)]
        if len(set(sizes)) > 1:
            raise DataError(f"""The parts of the dataset have {sizes} records: aligned containers must have
                one entry per record each.""")
        return sizes[0]

    def describe(self, data: Any) -> Schema:
        self.check(data)
        keys = self.keys(data)
        parts = tuple(of(data[key]).describe(data[key]) for key in keys)
        return AlignedSchema(parts, keys if isinstance(keys, tuple) else None)

    head, take, record = _of_each("head"), _of_each("take"), _of_each("record")
    copy, fresh, neighbour = _of_each("copy"), _of_each("fresh"), _of_each("neighbour")

    def concat(self, parts: Sequence[Any]) -> Any:
        first = parts[0]
        together = ([part[key] for part in parts] for key in self.keys(first))
        return self.put(first, [of(each[0]).concat(each) for each in together])

    def isolated(self, data: Any) -> Any:
        return self.put(data, [isolated(data[key]) for key in self.keys(data)])

    def pair(self, drawn: Any, position: int, n: int) -> tuple[Any, Any]:
        parts = (drawn[key] for key in self.keys(drawn))
        both = [of(part).pair(part, position, n) for part in parts]
        one, other = (self.put(drawn, [each[at] for each in both]) for at in (0, 1))
        return one, other

    def alike(self, one: Any, other: Any) -> bool:
        if self.keys(one) != self.keys(other):
            return False
        parts = ((one[key], other[key]) for key in self.keys(one))
        return all(find(a) is find(b) and of(a).alike(a, b) for a, b in parts)

    def is_same_kind(self, data: Any, drawn: Any) -> bool:
        keys = self.keys(data)
        parts = ((data[key], drawn[key]) for key in keys) if keys == self.keys(drawn) else ()
        same = [type(a) is type(b) and of(a).is_same_kind(a, b) for a, b in parts]
        return bool(same) and all(same)

    def cast(self, drawn: Any, schema: Schema) -> Any:
        if not isinstance(schema, AlignedSchema) or self.keys(drawn) != schema.keys:
            return drawn
        parts = zip(self.keys(drawn), schema.parts, strict=True)
        return self.put(drawn, [of(drawn[key]).cast(drawn[key], part) for key, part in parts])

    def convert(self, data: Any, drawn: Any, support: Any) -> Any:
        keys = self.keys(data)
        ends = zip(keys, split(support, keys), strict=True)
        return self.put(data, [convert(data[key], drawn[key], end) for key, end in ends])


class Dicts(Tuples):
    """Dicts of aligned columns."""

    def keys(self, data: Any) -> Sequence[Any]:
        return tuple(data)

    def put(self, data: Any, parts: Iterable[Any]) -> Any:
        return dict(zip(data, parts, strict=True))

    def check(self, data: Any) -> None:
        if not data or not all(find(part) and type(part) is not dict for part in data.values()):
            raise DataError("""The dataset is a dict, which stands for aligned columns such as {'age': array},
                but not all of its values are arrays or lists. Pass a list of records.""")
        if not all(type(name) is str for name in data):
            raise DataError("""The dataset is a dict whose keys are not all strings, as names of columns are.
                Pass a list of records, or name the columns.""")
