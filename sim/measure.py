"""What a play is judged by: counts of the present, tallies of an act, and how long pods waited."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from shared.model.labels import NODEPOOL
from shared.model.units import parse_instant
from sim.cloud.cloud import Cloud
from sim.embedded import Embedded

NAMESPACE: Final = "default"


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The world at one instant."""

    at: datetime
    running: int
    pending: int
    nodes: int
    managed: int
    vcpus: int
    """Of our nodes' instances."""
    cost_usd_per_hour: float
    """Synthetic."""


class Tally(msgspec.Struct, kw_only=True):
    """What happened since it was last set back."""

    launched: int = 0
    terminated: int = 0
    evicted: int = 0
    failed_calls: int = 0
    problems: set[str] = msgspec.field(default_factory=set)


class Waits:
    """How long pods were without a place: from their creation to a launch for them, and to their running."""

    def __init__(self, world: Embedded) -> None:
        """Watch all pods from now on."""
        self.to_launch: dict[str, float] = {}
        self.to_running: dict[str, float] = {}
        self._world = world
        self._unschedulable: set[str] = set()
        world.live.api.subscribe("pods", self._on_pod)

    def launched(self, pods: Iterable[str]) -> None:
        """Note that a launch for *pods*, as ``shop/cart``, was sent now; those that run somewhere still do not wait."""
        now = self._world.clock.now()
        for pod in self._world.live.pods():
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if name in pods and "nodeName" not in pod["spec"]:
                self.to_launch.setdefault(pod["metadata"]["uid"], _seconds(pod, now))

    def _on_pod(self, event: str, _old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        if new is None or event == "DELETED":
            return
        uid = new["metadata"]["uid"]
        if any(one.get("reason") == "Unschedulable" for one in new.get("status", {}).get("conditions", [])):
            self._unschedulable.add(uid)
        if uid in self._unschedulable and is_running(new):
            self.to_running.setdefault(uid, _seconds(new, self._world.clock.now()))


def sample(world: Embedded) -> Sample:
    """Answer what can be counted now."""
    return counted(world.live.pods(NAMESPACE), world.live.api.list("nodes"), world.cloud)


def counted(pods: Iterable[Mapping[str, Any]], nodes: Iterable[Mapping[str, Any]], cloud: Cloud) -> Sample:
    """Answer the counts of *pods* and *nodes*, and what *cloud* charges now."""
    some, every = list(pods), list(nodes)
    running = sum(is_running(pod) for pod in some)
    ours = [node for node in every if is_ours(node)]
    return Sample(
        at=cloud.clock.now(),
        running=running,
        pending=sum(not is_over(pod) for pod in some) - running,
        nodes=len(ours),
        managed=len(every) - len(ours),
        vcpus=sum(vcpus_of(node) for node in ours),
        cost_usd_per_hour=round(cloud.hourly_cost(), 4),
    )


def measured(world: Embedded, tally: Tally) -> dict[str, float]:
    """Answer every measure that a scenario may expect something of."""
    now = sample(world)
    nodes = world.live.api.list("nodes")
    foreign = {node["metadata"]["name"] for node in nodes if not is_ours(node)}
    sizes = [vcpus_of(node) for node in nodes if is_ours(node)] or [0]
    pods = world.live.pods(NAMESPACE)
    return {
        "running": now.running,
        "pending": now.pending,
        "nodes": now.nodes,
        "managedNodes": now.managed,
        "launched": tally.launched,
        "terminated": tally.terminated,
        "evicted": tally.evicted,
        "onManaged": sum(is_running(pod) and pod["spec"].get("nodeName") in foreign for pod in pods),
        "largestVcpus": max(sizes),
        "smallestVcpus": min(sizes),
        "costPerHour": now.cost_usd_per_hour,
        "claims": len(world.live.api.list("nodeclaims.karpenter.sh")),
        "problems": len(tally.problems),
        "failedCalls": tally.failed_calls,
    }


def is_running(pod: Mapping[str, Any]) -> bool:
    """Whether it runs, is ready and is not on its way out."""
    status = pod.get("status", {})
    ready = any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions", []))
    return status.get("phase") == "Running" and ready and "deletionTimestamp" not in pod["metadata"]


def is_over(pod: Mapping[str, Any]) -> bool:
    """Whether it ended, or is on its way out."""
    ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
    return ended or "deletionTimestamp" in pod["metadata"]


def is_ours(node: Mapping[str, Any]) -> bool:
    """Whether a NodePool made it."""
    return NODEPOOL in node["metadata"].get("labels", {})


def vcpus_of(node: Mapping[str, Any]) -> int:
    """Answer its vCPUs."""
    return int(node["status"]["capacity"]["cpu"])


def percentile(values: Iterable[float], share: float) -> float | None:
    """Answer the value below which *share* of *values* lie (nearest rank); None if there is none.

    >>> percentile([1, 2, 3, 4], 0.5), percentile([], 0.5)
    (2, None)
    """
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, -int(-len(ordered) * share // 1) - 1)]


def _seconds(pod: Mapping[str, Any], now: datetime) -> float:
    return (now - parse_instant(pod["metadata"]["creationTimestamp"])).total_seconds()
