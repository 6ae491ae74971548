"""The one place that holds private data during a call."""

from typing import Any


class Box:
    """Private arguments, the dataset among them, and what the raw function returned."""

    # Filled and emptied by plain stores, not by methods: an interrupt cannot come in between.
    __slots__ = ("args", "data", "kwargs", "started", "value")
    args: Any
    kwargs: Any
    data: Any
    value: Any
    started: bool  # whether the raw function has seen the data

    def __repr__(self) -> str:
        return "<private>"
