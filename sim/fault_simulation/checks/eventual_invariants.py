"""Eventual invariants: what must hold some time after the last fault, and after scaling to zero."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

import msgspec

from shared.decide.launch.fleets.launch_template import plan_template_deletions
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.core.labels import DISRUPTED_TAINT, NODEPOOL
from shared.model.decisions.command import CommandState
from shared.store.table_rows import decode_body_text
from sim.fault_simulation.checks.feature_liveness import (
    compute_feature_timeout,
    delete_requests,
    find_waiting_requests,
    is_for_feature,
    is_group_full,
    is_remnant,
)
from sim.fault_simulation.checks.ground_truth import CLAIMS, is_daemon_pod
from sim.fault_simulation.checks.node_pool_limits import get_general_cpu_limits
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import Script
from sim.fault_simulation.events.script_events import DeadBoot
from sim.fault_simulation.events.script_manifests import INSTANCE_TYPES
from sim.fault_simulation.features.feature_events import BadRelease
from sim.fault_simulation.features.feature_manifests import list_blocked_workloads
from sim.world.measurements import is_finished, is_running

Json = dict[str, Any]
SETTLE_TIMEOUT: Final = timedelta(minutes=10)
"""After the last fault: a hidden message becomes visible after 5.5 minutes, a lease expires after one."""
LIVENESS_TIMEOUT: Final = timedelta(minutes=16)
"""How long a NodeClaim that never registers, and the pods nominated to it, wait."""
SCALABLE_RESOURCES: Final = {"Deployment": "deployments.apps", "StatefulSet": "statefulsets.apps"}
REMOVAL_TIMEOUT: Final = timedelta(minutes=25)
"""After scaling to zero: nodes are removed one after the other because of the disruption budgets."""
CLEANUP_TIMEOUT: Final = timedelta(minutes=13)
"""After everything is removed: garbage collection runs every ten minutes."""


def compute_settle_timeout(script: Script) -> timedelta:
    """Return how long it may take until all pods run."""
    has_dead_boot = any(isinstance(event, DeadBoot | BadRelease) for event in script.events)
    return SETTLE_TIMEOUT + (LIVENESS_TIMEOUT if has_dead_boot else timedelta()) + compute_feature_timeout(script.setup)


def find_unplaced_pods(world: FaultWorld, script: Script) -> list[str]:
    """Return the pods that do not run although an instance could be launched for them, sorted."""
    blocked_workloads = list_blocked_workloads(script.setup.features)
    pods = [
        pod
        for pod in world.cluster.list_pods("default")
        if not is_finished(pod)
        and not is_daemon_pod(pod)
        and pod["metadata"].get("labels", {}).get("app") not in blocked_workloads
        and not is_remnant(world, pod)
    ]
    waiting_pods = sorted((pod for pod in pods if not is_running(pod)), key=lambda pod: str(pod["metadata"]["name"]))
    feature_names = [pod["metadata"]["name"] for pod in waiting_pods if is_for_feature(pod)]
    general_names = [pod["metadata"]["name"] for pod in waiting_pods if not is_for_feature(pod)]
    wanted_count = sum(
        workload["spec"]["replicas"]
        for resource in SCALABLE_RESOURCES.values()
        for workload in world.cluster.api.list(resource, "default")
        if workload["metadata"]["name"] not in blocked_workloads
    )
    if len(pods) < wanted_count:
        general_names.append(f"{wanted_count - len(pods)} that were not made yet")
    if general_names and _is_full(world, script):
        general_names = []
    waiting_names = [*general_names, *feature_names, *find_waiting_requests(world, script.setup.features)]
    return [] if is_group_full(world, script.setup.features, len(waiting_names)) else waiting_names


def _is_full(world: FaultWorld, script: Script) -> bool:
    """Return whether every limit may refuse one more instance; a plan assumes the largest type it may become."""
    instances = world.list_living()
    if len(instances) < len(world.cluster.api.list(CLAIMS)):
        return False
    largest_vcpus = max(world.cloud.types[name].vcpus for name in INSTANCE_TYPES)
    used_vcpus: Counter[str] = Counter()
    for instance in instances:
        used_vcpus[instance.get_tag(NODEPOOL)] += world.cloud.types[instance.instance_type].vcpus
    return all(limit - used_vcpus[pool] < largest_vcpus for pool, limit in get_general_cpu_limits(script.setup).items())


def find_leftovers(world: FaultWorld) -> list[str]:
    """Return NodeClaims, Nodes and instances that still exist after scaling to zero, sorted."""
    leftovers = [f"claim {claim['metadata']['name']}" for claim in world.cluster.api.list(CLAIMS)]
    leftovers += [f"node {node['metadata']['name']}" for node in world.cluster.api.list("nodes")]
    leftovers += [
        f"instance {instance.instance_id}" for instance in world.list_launched() if instance.state != "terminated"
    ]
    return sorted(leftovers)


def find_uncleaned(world: FaultWorld) -> list[str]:
    """Return messages, commands and launch templates that garbage collection should have removed, sorted."""
    return sorted([*_find_queued_messages(world), *_find_open_commands(world), *_find_unused_templates(world)])


def _find_queued_messages(world: FaultWorld) -> Iterator[str]:
    for queue in world.wiring.queues:
        message_count = world.runtime.get_queue(queue.name).count_visible()
        if message_count and any(mapping.queue == queue.name for mapping in world.wiring.mappings):
            yield f"{message_count} messages in {queue.name}"


def _find_open_commands(world: FaultWorld) -> Iterator[str]:
    for row in world.table.list_rows("command"):
        if msgspec.json.decode(row.body, type=CommandState).is_open:
            yield f"command {row.name} has no end"


def _find_unused_templates(world: FaultWorld) -> Iterator[str]:
    launch_groups = [decode_body_text(row.body, LaunchGroup) for row in world.table.list_rows("launch-group")]
    created_before = world.clock.get_time() - CLEANUP_TIMEOUT / 2
    for template in plan_template_deletions(
        world.cloud.templates.list_by_tag("eks:eks-cluster-name", world.cluster_name),
        launch_groups,
        world.cluster_name,
        created_before,
    ):
        yield f"launch template {template.name}"


def find_tainted_nodes(world: FaultWorld) -> list[str]:
    """Return the nodes with the disrupted taint that are not being disrupted, sorted."""
    deleting_nodes = {
        (claim.get("status") or {}).get("nodeName")
        for claim in world.cluster.api.list(CLAIMS)
        if "deletionTimestamp" in claim["metadata"]
    }
    target_nodes = {
        target.node
        for row in world.table.list_rows("command")
        if (command_state := msgspec.json.decode(row.body, type=CommandState)).is_open
        for target in command_state.command.targets
    }
    return sorted(
        node["metadata"]["name"]
        for node in world.cluster.api.list("nodes")
        if any(taint["key"] == DISRUPTED_TAINT for taint in node["spec"].get("taints") or [])
        and node["metadata"]["name"] not in deleting_nodes | target_nodes
        and "deletionTimestamp" not in node["metadata"]
    )


def scale_to_zero(world: FaultWorld) -> None:
    """Scale all workloads and static NodePools to zero, and delete Jobs and ProvisioningRequests."""
    api = world.cluster.api
    for kind, resource in SCALABLE_RESOURCES.items():
        for item in api.list(resource, "default"):
            world.cluster.scale(kind, "default", item["metadata"]["name"], 0)
    for item in api.list("jobs.batch", "default"):
        api.delete("jobs.batch", item["metadata"]["name"], "default")
    for item in api.list("nodepools.karpenter.sh"):
        if item["spec"].get("replicas"):
            api.patch("nodepools.karpenter.sh", item["metadata"]["name"], {"spec": {"replicas": 0}})
    delete_requests(world)
