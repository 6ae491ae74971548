"""The one place that holds private data during a call."""

from typing import Any


class Box:
    """Private arguments, the dataset among them, and what the raw function returned."""

    # Attributes are set directly, not by methods, so that no interrupt comes in between.
    __slots__ = ("args", "data", "kwargs", "raw", "started", "structure", "value")

    def __init__(self) -> None:
        self.args: Any = None
        self.kwargs: Any = None
        self.data: Any = None
        self.raw: Any = None  # the rows that persons in `data` were made of
        self.value: Any = None
        self.structure: Any = None  # that of answers, which is public
        self.started = False  # whether the raw function has seen the data

    @property
    def passed(self) -> Any:
        """The dataset as the caller passed it."""
        return self.data if self.raw is None else self.raw

    def __repr__(self) -> str:
        return "<private>"
