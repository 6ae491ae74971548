"""On a `concurrent.futures` executor."""

import concurrent.futures
import os
from typing import Any

from privatize.execution.clusters.base import ClusterExecutor
from privatize.execution.clusters.orders import Order, fulfil


class Futures(ClusterExecutor):
    """On a `concurrent.futures` executor."""

    def __init__(self, pool: Any) -> None:
        self._pool = pool

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return int(getattr(self._pool, "_max_workers", os.cpu_count() or 1))

    def submit(self, order: Order) -> Any:
        """Have an order fulfilled."""
        return self._pool.submit(fulfil, order)

    def wait(self, handles: list[Any]) -> Any:
        """Wait until something is done."""
        return concurrent.futures.wait(handles, return_when=concurrent.futures.FIRST_COMPLETED).done

    def reply(self, handle: Any) -> Any:
        """Return the reply; a broken pool raises."""
        return handle.result()

    def close(self, handles: list[Any]) -> None:
        """Cancel what nobody waits for."""
        for future in handles:
            future.cancel()
