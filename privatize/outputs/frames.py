"""Frames and series in outputs: numbers are released, and all else is the same for every dataset."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from privatize.data import frames
from privatize.errors import OutputError
from privatize.outputs.structure import Describe, Learned, Reading, Structure, StructureChanged


@dataclass(eq=False)
class Frame(Learned):
    """A frame or a series: its columns of numbers, and a digest of names, labels, index and other columns."""

    tags = ("frame",)
    form: str
    library: str
    digest: str
    labels: list[list[str]]  # of columns, and of rows
    items: list[Structure]

    @classmethod
    def of(cls, value: Any, describe: Describe, /) -> Self | None:
        kind = frames.kind(value)
        if kind is None:
            return None
        kinds = frames.kinds(value)
        if kind[0] == "series" and kinds[0] not in ("int", "float"):
            raise OutputError(
                f"The function returns a Series of {frames.describe(value).columns[0].dtype}, to which no "
                f"noise can be added. Return numbers; to choose among fixed answers use "
                f"Exponential(responses=[...])."
            )
        for name, held in zip(frames.names(value), kinds, strict=True):
            if held in ("bool", "object", "other"):
                raise OutputError(
                    f"The function returns a frame whose column {name!r} is {held}, neither a number nor a "
                    f"label. Return numbers (astype(float)), and labels as strings, categories or dates."
                )
        columns = zip(frames.contents(value), kinds, strict=False)
        items = [describe(array) for array, held in columns if held in ("int", "float")]
        return cls(*kind, frames.digest(value), frames.labels(value), items)

    def parts(self, value: Any, how: Reading, /) -> Sequence[Any]:
        if how is Reading.STACK or frames.kind(value) != (self.form, self.library):
            raise StructureChanged
        if self.template is None and how is Reading.LEARN and frames.digest(value) == self.digest:
            self.template = frames.copy(value)
        elif self.template is None or not frames.alike(value, self.template):
            raise StructureChanged
        return frames.numbers(value)

    def assemble(self, items: list[Any], /) -> Any:
        return frames.with_numbers(self.template, items)

    def names(self) -> list[str]:
        columns, rows = ([label.strip("'") for label in each] for each in self.labels)
        heads = columns if len(columns) == len(self.items) else self.heads()
        if len(self.items) == 1:
            heads = [""]
        return [
            f"{head} {rows[i] if len(rows) == item.size else i}".strip()
            for head, item in zip(heads, self.items, strict=True)
            for i in range(item.size)
        ]

    def shown(self) -> dict[str, Any]:
        columns, rows = self.labels
        return {"library": self.library, "kind": self.form, "columns": columns, "rows": rows}
