"""On a Ray cluster."""

import importlib
from typing import Any

from privatize.execution.clusters.base import ClusterExecutor
from privatize.execution.clusters.orders import Order, fulfil
from privatize.execution.packaging.package import Package


class Ray(ClusterExecutor):
    """On a Ray cluster."""

    def open(self, package: Package) -> bool:
        """Put the package's bytes into the cluster's store."""
        self._ray: Any = importlib.import_module("ray")
        if not self._ray.is_initialized():
            self._ray.init()
        self._payload = self._ray.put(package.payload)
        self._remote = self._ray.remote(max_retries=0)(fulfil)
        return False

    def cores(self) -> int:
        """Return how many orders are evaluated at the same time."""
        return int(self._ray.cluster_resources().get("CPU", 1))

    def submit(self, order: Order) -> Any:
        """Have an order fulfilled."""
        return self._remote.remote(order, self._payload)

    def wait(self, handles: list[Any]) -> Any:
        """Wait until something is done."""
        return self._ray.wait(handles)[0]

    def reply(self, handle: Any) -> Any:
        """Return the reply, or None if its process was lost."""
        try:
            return self._ray.get(handle)
        except self._ray.exceptions.RayTaskError:
            raise
        except self._ray.exceptions.RayError:
            return None

    def close(self, handles: list[Any]) -> None:
        """Cancel what nobody waits for."""
        for reference in handles:
            self._ray.cancel(reference, force=True)
