"""Checks during a simulated week, based on events of the API server and EC2 and on independently written rules.

An evicted pod is checked against every PodDisruptionBudget that selects it, a NodeClaim that is selected for disruption
against the budgets of its NodePool, a terminated instance against the pods that are still on it. No decision of the
product is used, except which command a NodeClaim belongs to.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from datetime import datetime
from math import ceil
from typing import Final

import msgspec

from shared.model.ec2.instance import Instance
from sim.cluster.controller_runtime.object_conditions import find_condition, is_ready, is_true
from sim.soak.node_replacements import ReplacementLog
from sim.soak.worlds.soak_workloads import (
    DEPLOYMENT_RESOURCE,
    DO_NOT_DISRUPT,
    NAMESPACE,
    POD_BUDGET_RESOURCE,
    SoakNodePool,
)
from sim.world.embedded_world import EmbeddedWorld
from sim.world.manifests import Json
from sim.world.measurements import is_finished

NODEPOOL_LABEL: Final = "karpenter.sh/nodepool"
CLAIMS: Final = "nodeclaims.karpenter.sh"


class PodEviction(msgspec.Struct, frozen=True, kw_only=True):
    """A pod that was evicted."""

    at: datetime
    pod: str
    reason: str
    """Disruption reason of its node, as budgets spell it; "" if involuntary: EC2 takes the instance."""
    claim: str = ""
    """NodeClaim of its node."""


class SoakMonitor:
    """Observes all events from its creation on."""

    def __init__(self, world: EmbeddedWorld, node_pools: Iterable[SoakNodePool]) -> None:
        """Start to observe *world*, which has *node_pools*."""
        self.evictions: list[PodEviction] = []
        self.violations: list[str] = []
        """Descriptions of the violations, oldest first."""
        self.launch_count = self.interruption_count = 0
        self.external_changes: list[datetime] = []
        """When users or EC2 changed what is to run, in order."""
        self.replacement_log = ReplacementLog(world)
        self._world = world
        self._node_pools = {pool.name: pool for pool in node_pools}
        self._pods: dict[str, Json] = {}
        self._selected_claims: dict[str, tuple[str, str]] = {}
        """NodeClaims that are selected for disruption and still exist: their NodePool and the reason."""
        self._interrupted_instances: set[str] = set()
        for resource, event_handler in {
            "pods": self._handle_pod,
            CLAIMS: self._handle_claim,
            DEPLOYMENT_RESOURCE: self._handle_workload,
            "jobs.batch": self._handle_workload,
        }.items():
            world.cluster.api.subscribe(resource, event_handler)
        world.request_checks.log.on_rejection = lambda rejected: self.violations.append(rejected.describe())
        world.cloud.events.subscribe(self._handle_cloud_event)
        world.cloud.instances.halted_listeners.append(self._check_halted_instance)

    def has_no_changes_between(self, start: datetime, end: datetime) -> bool:
        """Return whether no external change happened after *start* and until *end*."""
        return bisect_right(self.external_changes, start) == bisect_right(self.external_changes, end)

    # Pods

    def _handle_pod(self, event: str, old: Json | None, new: Json | None) -> None:
        pod = new or old
        if pod is None or pod["metadata"]["namespace"] != NAMESPACE:
            return
        name = pod["metadata"]["name"]
        if event == "DELETED":
            self._pods.pop(name, None)
            return
        self._pods[name] = pod
        if old is not None and not is_finished(old) and pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
            self.external_changes.append(self._world.clock.get_time())
        if old is not None and _is_evicted(pod) and not _is_deleting(old) and _is_deleting(pod):
            self._check_eviction(old, pod)

    def _check_eviction(self, old_pod: Json, pod: Json) -> None:
        now, name = self._world.clock.get_time(), pod["metadata"]["name"]
        claim = self._find_claim(pod["spec"].get("nodeName", ""))
        reason = self._selected_claims.get(claim, ("", ""))[1]
        self.evictions.append(PodEviction(at=now, pod=name, reason=reason, claim=claim))
        if reason and dict(DO_NOT_DISRUPT).items() <= (pod["metadata"].get("annotations") or {}).items():
            self.violations.append(f"{now:%d %H:%M:%S} {name} was evicted ({reason}) past do-not-disrupt")
        if not is_ready(old_pod):
            return
        for budget in self._world.cluster.api.list(POD_BUDGET_RESOURCE, NAMESPACE):
            if _is_selected(budget, pod):
                healthy, desired = self._count_healthy(budget)
                if healthy < desired:
                    title = budget["metadata"]["name"]
                    text = f"{name} was evicted: {title} has {healthy} healthy pods of {desired}"
                    self.violations.append(f"{now:%d %H:%M:%S} {text}")

    def _count_healthy(self, budget: Json) -> tuple[int, int]:
        """Return how many pods are healthy, and how many must be."""
        spec, app = budget["spec"], budget["spec"]["selector"]["matchLabels"]["app"]
        replicas: int = self._world.cluster.api.get(DEPLOYMENT_RESOURCE, app, NAMESPACE)["spec"]["replicas"]
        if "maxUnavailable" in spec:
            # Kubernetes rounds both up: of 16 pods, 10 % may be unavailable, which is 2.
            desired = replicas - _resolve_percentage(spec["maxUnavailable"], replicas)
        else:
            desired = _resolve_percentage(spec["minAvailable"], replicas)
        selected_pods = (pod for pod in self._pods.values() if _is_selected(budget, pod))
        return sum(is_ready(pod) and not _is_deleting(pod) for pod in selected_pods), desired

    # Instances

    def _handle_claim(self, event: str, old: Json | None, new: Json | None) -> None:
        if event == "DELETED" and old is not None:
            self._selected_claims.pop(old["metadata"]["name"], None)
            return
        if new is None:
            return
        name, reason = new["metadata"]["name"], _parse_disruption_reason(new)
        if not reason:
            self._selected_claims.pop(name, None)
        elif name not in self._selected_claims:
            self._check_disruption(new, reason)
        if reason and _is_deleting(new) and not (old is not None and _is_deleting(old)):
            self.replacement_log.record_deletion(new, reason)

    def _check_disruption(self, claim: Json, reason: str) -> None:
        """Check the disruption of *claim* against the budgets of its NodePool."""
        now, pool = self._world.clock.get_time(), claim["metadata"]["labels"][NODEPOOL_LABEL]
        self._selected_claims[claim["metadata"]["name"]] = (pool, reason)
        counted_claims = {
            claim_candidate["metadata"]["name"]
            for claim_candidate in self._world.cluster.api.list(CLAIMS)
            if _is_counted_by_budgets(claim_candidate, pool)
        }
        disrupted_count = len(counted_claims & self._selected_claims.keys())
        allowed_disruptions = self._node_pools[pool].compute_allowed(reason, len(counted_claims), now)
        if disrupted_count > allowed_disruptions:
            self.violations.append(
                f"{now:%d %H:%M:%S} {disrupted_count} nodes of {pool} go ({reason}), allowed are {allowed_disruptions}"
            )

    def _check_halted_instance(self, instance: Instance) -> None:
        now, node = self._world.clock.get_time(), instance.private_dns_name
        remaining_pods = [pod["metadata"]["name"] for pod in self._list_pods_on(node) if not is_finished(pod)]
        if remaining_pods and instance.instance_id not in self._interrupted_instances:
            self.violations.append(f"{now:%d %H:%M:%S} {instance.instance_id} ended under {', '.join(remaining_pods)}")

    def _list_pods_on(self, node: str) -> Iterator[Json]:
        return (pod for pod in self._pods.values() if pod["spec"].get("nodeName") == node)

    def _find_claim(self, node: str) -> str:
        """Return the name of the NodeClaim of *node*, or ""."""
        for claim in self._world.cluster.api.list(CLAIMS):
            if claim.get("status", {}).get("nodeName") == node:
                return str(claim["metadata"]["name"])
        return ""

    # Other events

    def _handle_workload(self, event: str, old: Json | None, new: Json | None) -> None:
        if event != "MODIFIED" or old is None or new is None or old["spec"] != new["spec"]:
            self.external_changes.append(self._world.clock.get_time())

    def _handle_cloud_event(self, event: Json) -> None:
        self.launch_count += event["detail"].get("state") == "pending"
        if event["detail-type"] == "EC2 Spot Instance Interruption Warning":
            self.interruption_count += 1
            self._interrupted_instances.add(event["detail"]["instance-id"])
            self.external_changes.append(self._world.clock.get_time())


def _resolve_percentage(amount: int | str, total: int) -> int:
    return amount if isinstance(amount, int) else ceil(total * int(amount.removesuffix("%")) / 100)


def _is_selected(budget: Json, pod: Json) -> bool:
    match_labels: Json = budget["spec"]["selector"]["matchLabels"]
    return match_labels.items() <= (pod["metadata"].get("labels") or {}).items()


def _is_deleting(api_object: Json) -> bool:
    return "deletionTimestamp" in api_object["metadata"]


def _is_evicted(pod: Json) -> bool:
    return (find_condition(pod, "DisruptionTarget") or {}).get("reason") == "EvictionByEvictionAPI"


def _parse_disruption_reason(claim: Json) -> str:
    """Return why the claim was selected for disruption, or ""."""
    condition = find_condition(claim, "DisruptionReason")
    return condition["reason"] if condition is not None and condition["status"] == "True" else ""


def _is_counted_by_budgets(claim: Json, pool: str) -> bool:
    """Return whether budgets count the node: initialized, and its instance not terminating, as in Karpenter."""
    is_in_pool = claim["metadata"]["labels"][NODEPOOL_LABEL] == pool
    return is_in_pool and is_true(claim, "Initialized") and not is_true(claim, "InstanceTerminating")
