"""The embedded world: a cloud, a cluster and a deployed stack on one virtual clock.

The handlers are the product's own.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from functools import cache
from typing import Any

import yaml

from shared.kube.definitions import definitions
from shared.ports import Kube
from sim.clock import Clock
from sim.cluster.kube import InMemoryKube
from sim.cluster.live import LiveCluster
from sim.deployed import Deployed
from sim.faults import Tap
from sim.machines import Machines


class Embedded(Deployed):
    """Everything, wired."""

    def __init__(self, seed: int = 0, *, template: Mapping[str, Any] | None = None, tap: Tap | None = None) -> None:
        """Deploy the stack of *template* (what the app synthesises, unless given) into a new account and cluster."""
        self.clock = Clock()
        super().__init__(self.clock, seed, template, tap)
        self.live = LiveCluster(self.clock, seed)
        self.machines = Machines(self.cloud, self.live, seed)
        self._memories: dict[str, dict[str, object]] = {}
        self.switch_on(self.clock, seed)
        self.live.scheduler.log = self.runtime.write_log
        for definition in _definitions():
            self.live.apply(definition)

    @property
    def cluster_name(self) -> str:
        """The name of the EKS cluster."""
        return self.cloud.facts.name

    def apply(self, manifests: Iterable[dict[str, Any]]) -> None:
        """`kubectl apply` of *manifests*, in order."""
        for manifest in manifests:
            self.live.apply(manifest)

    def run(self, duration: timedelta) -> None:
        """Let *duration* pass."""
        self.clock.advance(duration)

    def run_until(self, holds: Callable[[], bool], limit: timedelta) -> bool:
        """Let time pass until *holds*, but no longer than *limit*; answer whether it holds."""
        end = self.clock.now() + limit
        while not holds():
            if self.clock.now() >= end:
                return False
            self.clock.run_until(min(end, self.clock.now() + timedelta(seconds=1)))
        return True

    def _kube(self) -> Kube:
        return InMemoryKube(self.live.api)

    def _memory(self, function: str) -> dict[str, object]:
        return self._memories.setdefault(function, {})


@cache
def _definitions() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load(document) for document in definitions())
