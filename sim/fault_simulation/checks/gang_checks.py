"""Invariants of gangs, ProvisioningRequests and devices: nodes for all pods or none, and no voluntary disruption."""

from collections import defaultdict, deque
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.labels import PLANNED_GANGS
from shared.model.core.units import parse_quantity
from shared.model.decisions.command import CommandState
from sim.cluster.controller_runtime.object_conditions import find_condition, is_true
from sim.fault_simulation.checks.feature_check import FeatureCheck, Json, ViolationHandler
from sim.fault_simulation.checks.ground_truth import CLAIMS, GroundTruth, get_node_pool, is_deleting
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.features.feature_manifests import (
    BLOCKED,
    BLOCKED_POOL,
    GANG_NAME,
    MEMBER_CPU_MILLI,
    REQUEST_POOL,
    REQUESTS,
)
from sim.world.measurements import is_finished, is_running

GANG_LAUNCH_TIMEOUT: Final = timedelta(minutes=15)
"""How long the nodes of a gang wait for the others: docs/guide/gangs.md."""
RETURN_TOLERANCE: Final = timedelta(minutes=4)
"""Time to return overdue nodes: two ticks, a lease that must expire, and a tick as reserve."""
OBSERVATION_TOLERANCE: Final = timedelta(minutes=3)
"""A decision can be older than its effects: stale lists, a pause, and a clock that is slow."""
CAPACITY_LOOKBACK: Final = timedelta(minutes=5)
AGENT_CPU_MILLI: Final = 150


class BlockedCheck(FeatureCheck):
    """What cannot get all its nodes, gets none: the NodePool `blocked` never has a NodeClaim."""

    def __init__(
        self, world: FaultWorld, setup: ScriptSetup, ground_truth: GroundTruth, on_violation: ViolationHandler
    ) -> None:
        """Watch the NodeClaims of *world*."""
        super().__init__(world, setup, ground_truth, on_violation)
        world.cluster.api.subscribe(CLAIMS, self._handle_claim)

    def _handle_claim(self, _event: str, old: Json | None, new: Json | None) -> None:
        if old is None and new is not None and get_node_pool(new) == BLOCKED_POOL:
            self.report("blocked", f"{new['metadata']['name']} was created for pods that cannot all get nodes")


class GangCheck(FeatureCheck):
    """A gang has all its nodes, or none after its deadline; and consolidation does not move its pods."""

    def __init__(
        self, world: FaultWorld, setup: ScriptSetup, ground_truth: GroundTruth, on_violation: ViolationHandler
    ) -> None:
        """Watch the NodeClaims of *world*."""
        super().__init__(world, setup, ground_truth, on_violation)
        self._sizes_by_claim: dict[str, dict[str, int]] = {}
        """Gangs that a NodeClaim was created for and that were never complete since then, with their sizes, by uid."""
        world.cluster.api.subscribe(CLAIMS, self._handle_claim)

    def check_state(self, claims: list[Json], last_fault: datetime) -> None:
        """Check that no gang has some, but not all nodes after its deadline."""
        pods_by_gang = self._group_pods()
        awaited_claims = self._list_awaited_claims(claims, pods_by_gang)
        now = self.world.clock.get_time()
        overdue_gangs = {
            gang
            for gang, created_times in awaited_claims.items()
            if now - max(min(created_times) + GANG_LAUNCH_TIMEOUT, last_fault) > RETURN_TOLERANCE
        }
        for claim in claims:
            gangs = self._sizes_by_claim.get(claim["metadata"]["uid"], {}).keys()
            if not gangs or is_deleting(claim) or not gangs <= overdue_gangs:
                continue
            members = {pod["metadata"]["name"] for gang in gangs for pod in pods_by_gang[gang]}
            node_name = (claim.get("status") or {}).get("nodeName", "")
            if not set(self.ground_truth.list_running_pods(node_name)) - members:
                names = ", ".join(sorted(gangs))
                self.report("gang-partial", f"{claim['metadata']['name']} still waits for the other nodes of {names}")

    def observe_disruption(self, caller: str, claim: str, command_state: CommandState) -> None:
        """Check that no pod of a gang runs on a node that is consolidated."""
        if command_state.command.reason == "Drifted":
            return
        nodes = {target.node for target in command_state.command.targets if target.claim == claim}
        chosen_before = command_state.proposed_at - OBSERVATION_TOLERANCE
        for gang, pods in sorted(self._group_pods().items()):
            for pod in pods:
                if pod["spec"].get("nodeName") in nodes and is_running(pod) and _get_start(pod) < chosen_before:
                    self.report(
                        "gang-moved", f"{caller} deletes {claim}, on which {pod['metadata']['name']} of {gang} runs"
                    )

    def _handle_claim(self, _event: str, old: Json | None, new: Json | None) -> None:
        text = "" if new is None else new["metadata"].get("annotations", {}).get(PLANNED_GANGS, "")
        if old is None and new is not None and text:
            self._sizes_by_claim[new["metadata"]["uid"]] = msgspec.json.decode(text, type=dict[str, int])

    def _list_awaited_claims(
        self, claims: list[Json], pods_by_gang: dict[str, list[Json]]
    ) -> dict[str, list[datetime]]:
        """Return when the NodeClaims of each incomplete gang were created; forget the gangs that are complete."""
        created_times: dict[str, list[datetime]] = defaultdict(list)
        for claim in claims:
            sizes = self._sizes_by_claim.get(claim["metadata"]["uid"], {})
            for gang, size in list(sizes.items()):
                pods = pods_by_gang.get(gang, [])
                if sum(bool(pod["spec"].get("nodeName")) for pod in pods) >= min(size, len(pods)):
                    del sizes[gang]
                elif not is_deleting(claim):
                    created_times[gang].append(datetime.fromisoformat(claim["metadata"]["creationTimestamp"]))
        return created_times

    def _group_pods(self) -> dict[str, list[Json]]:
        """Return the active pods of each gang."""
        pods_by_gang: dict[str, list[Json]] = defaultdict(list)
        for pod in self.world.cluster.list_pods("default"):
            gang = pod["metadata"].get("annotations", {}).get(GANG_NAME, "")
            if gang and not is_finished(pod) and "deletionTimestamp" not in pod["metadata"]:
                pods_by_gang[f"default/{gang}"].append(pod)
        return pods_by_gang


class RequestCheck(FeatureCheck):
    """A ProvisioningRequest is `Provisioned` only if initialized nodes have room for all its pods."""

    def __init__(
        self, world: FaultWorld, setup: ScriptSetup, ground_truth: GroundTruth, on_violation: ViolationHandler
    ) -> None:
        """Watch the NodeClaims of *world*."""
        super().__init__(world, setup, ground_truth, on_violation)
        self._recent_slots: deque[tuple[datetime, int]] = deque()
        """How many pods initialized nodes have room for, with those that run there."""
        self._provisioned: set[str] = set()

    def check_state(self, claims: list[Json], last_fault: datetime) -> None:
        """Check the requests that became `Provisioned`."""
        del last_fault
        now = self.world.clock.get_time()
        self._recent_slots.append((now, self._count_slots(claims)))
        while now - self._recent_slots[0][0] > CAPACITY_LOOKBACK:
            self._recent_slots.popleft()
        slots = max(count for _, count in self._recent_slots)
        for request in self.world.cluster.api.list(REQUESTS, "default"):
            name = request["metadata"]["name"]
            if name in self._provisioned or not is_true(request, "Provisioned"):
                continue
            self._provisioned.add(name)
            pods = sum(pod_set["count"] for pod_set in request["spec"]["podSets"])
            if name == BLOCKED or pods > slots:
                self.report("request-early", f"{name} is provisioned for {pods} pods, initialized nodes have {slots}")

    def _count_slots(self, claims: list[Json]) -> int:
        nodes = {
            (claim.get("status") or {}).get("nodeName", "")
            for claim in claims
            if get_node_pool(claim) == REQUEST_POOL and is_true(claim, "Initialized")
        }
        allocatable_cpus = (
            parse_quantity(node["status"]["allocatable"]["cpu"], per_unit=1000)
            for node in self.world.cluster.api.list("nodes")
            if node["metadata"]["name"] in nodes
        )
        return sum((cpu_milli - AGENT_CPU_MILLI) // MEMBER_CPU_MILLI for cpu_milli in allocatable_cpus)


def _get_start(pod: Json) -> datetime:
    """Return when kube-scheduler bound the pod."""
    condition = find_condition(pod, "PodScheduled") or {}
    since = condition.get("lastTransitionTime") or pod["metadata"]["creationTimestamp"]
    return datetime.fromisoformat(since)
