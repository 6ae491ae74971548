"""On a Dask cluster."""

import concurrent.futures
import importlib
import warnings
from typing import Any

from privatize.errors import ExecutionError
from privatize.execution.clusters.base import ClusterExecutor
from privatize.execution.clusters.orders import Order, fulfil
from privatize.execution.packaging.package import Package


class Dask(ClusterExecutor):
    """On a Dask cluster."""

    # Dask gives a task that killed its worker to another one, three times, and loses that as well.
    isolated = True

    def __init__(self, client: Any) -> None:
        self._client = client
        self._distributed: Any = importlib.import_module("distributed")
        self._payload: Any = None

    def open(self, package: Package) -> bool:
        """Put the package's bytes where the cluster needs them."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")  # once, and it is what must be sent
            # A result of the cluster's, which it keeps where it is needed, and makes again if it is lost.
            self._payload = self._client.submit(_same, package.payload, pure=False)
        return False

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return sum(self._client.ncores().values())

    def submit(self, order: Order) -> Any:
        """Have an order fulfilled."""
        return self._client.submit(fulfil, order, self._payload, pure=False)

    def wait(self, handles: list[Any]) -> Any:
        """Wait until something is done; not forever, if there is nobody left to do it."""
        alone = 0
        while True:
            try:
                return self._distributed.wait(handles, timeout=10, return_when="FIRST_COMPLETED").done
            except TimeoutError:
                alone = 0 if self._client.ncores() else alone + 1
                if alone > 6:
                    raise ExecutionError("The Dask cluster has had no workers for a minute.") from None

    def reply(self, handle: Any) -> Any:
        """Return the reply, or None if its process was lost."""
        if handle.status in ("cancelled", "lost"):
            return None
        try:
            # It is there; but if its worker is lost just now, the cluster may wait for it forever.
            return handle.result(timeout=30)
        except (self._distributed.KilledWorker, TimeoutError, concurrent.futures.CancelledError):
            return None

    def close(self, handles: list[Any]) -> None:
        """Cancel what nobody waits for, and the package."""
        self._client.cancel([*handles, self._payload])


def _same(payload: bytes) -> bytes:
    return payload
