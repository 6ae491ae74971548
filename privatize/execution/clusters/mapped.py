"""On anything that has a `map`."""

import os
from dataclasses import dataclass
from typing import Any

from privatize.execution.clusters.base import ClusterExecutor
from privatize.execution.clusters.orders import Order, fulfil
from privatize.execution.job import Reply


@dataclass(eq=False)
class _Waiting:
    """An order of the next wave, and then its reply."""

    order: Order
    reply: Reply | None = None


class Mapped(ClusterExecutor):
    """On anything that has a `map`, a wave of orders at a time."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return getattr(self._pool, "_processes", None) or os.cpu_count() or 1

    def submit(self, order: Order) -> Any:
        """Put an order into the next wave."""
        return _Waiting(order)

    def wait(self, handles: list[Any]) -> Any:
        """Have the wave fulfilled."""
        replies = list(self._pool.map(fulfil, [handle.order for handle in handles]))
        for handle, reply in zip(handles, replies, strict=True):
            handle.reply = reply
        return handles

    def reply(self, handle: Any) -> Any:
        """Return the reply."""
        return handle.reply
