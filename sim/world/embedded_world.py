"""The embedded world: a cloud, a cluster and a deployed stack on one virtual clock.

The handlers are Joiner's own.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

import yaml

from shared.crds.definitions import read_crds
from shared.ports.kubernetes import Kube
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.cluster.cluster import SimulatedCluster
from sim.fault_tap import Tap
from sim.time.virtual_clock import Clock
from sim.world.deployed_stack import DeployedStack
from sim.world.instance_boot import InstanceBooter


class EmbeddedWorld(DeployedStack):
    """The simulated cloud, cluster and stack, connected."""

    def __init__(self, seed: int = 0, *, template: Mapping[str, Any] | None = None, tap: Tap | None = None) -> None:
        """Deploy the stack of *template* (None.

        The template that the CDK app synthesizes) into a new account and cluster.
        """
        self.clock = Clock()
        super().__init__(self.clock, seed, template, tap)
        self.cluster = SimulatedCluster(self.clock, seed)
        self.instance_booter = InstanceBooter(self.cloud, self.cluster, seed)
        self.instance_booter.can_assign_ipv6_addresses = self.access_control.can_assign_ipv6_addresses
        self._cache_by_function: dict[str, dict[str, object]] = {}
        self.start_functions(self.clock, seed)
        self.cluster.scheduler.log = self.runtime.write_log
        for crd in _load_crds():
            self.cluster.apply(crd)

    @property
    def cluster_name(self) -> str:
        """Name of the EKS cluster."""
        return self.cloud.facts.name

    def apply(self, manifests: Iterable[dict[str, Any]]) -> None:
        """Apply *manifests* in order, as `kubectl apply` does."""
        for manifest in manifests:
            self.cluster.apply(manifest)

    def run(self, duration: timedelta) -> None:
        """Advance the clock by *duration*."""
        self.clock.advance(duration)

    def run_until(self, condition: Callable[[], bool], limit: timedelta) -> bool:
        """Advance the clock until *condition* holds, at most by *limit*; return whether it holds."""
        deadline = self.clock.get_time() + limit
        while not condition():
            if self.clock.get_time() >= deadline:
                return False
            self.clock.run_until(min(deadline, self.clock.get_time() + timedelta(seconds=1)))
        return True

    def _build_kube(self) -> Kube:
        return InMemoryKube(self.cluster.api)

    def _get_container_cache(self, function: str) -> dict[str, object]:
        return self._cache_by_function.setdefault(function, {})


@cache
def _load_crds() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load(document) for document in read_crds())
