"""The metrics of a cycle."""

from collections.abc import Iterable
from typing import Final

from shared.errors import Throttled
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.decisions.action import (
    LAUNCH_REFUSED_PREFIX,
    NO_CLAIM_MESSAGE,
    DeleteObject,
    Function,
    LaunchInstances,
    PublishEvent,
    TerminateInstances,
)
from shared.model.decisions.placement import Placement
from shared.report.journal.journal import ActionResult
from shared.report.metrics.latency import compute_launch_waits, compute_start_times
from shared.state.cluster_state import ClusterState


def compute_catalog_ages(cluster: ClusterSnapshot) -> dict[str, float]:
    """Return the ages of the catalog and of its prices; empty if there are none."""
    catalog = cluster.catalog
    if catalog is None:
        return {}
    ages = {"CatalogAgeSeconds": catalog.built_at, "PriceAgeSeconds": catalog.priced_at}
    return {name: (cluster.taken_at - at).total_seconds() for name, at in ages.items() if at is not None}


def count_pending_pods(placement: Placement, buffer_pods: frozenset[str] = frozenset()) -> dict[str, float]:
    """Return the numbers of pending pods, of planned nodes, and of unschedulable pods."""
    placed = [node.pods for node in placement.new_nodes] + [fit.pods for fit in placement.existing]
    placed_count = sum(name not in buffer_pods for pods in placed for name in pods)
    return {
        "PendingPods": float(placed_count + len(placement.unschedulable)),
        "PlannedNodes": float(len(placement.new_nodes)),
        "UnschedulablePods": float(sum(pod_verdict.reason != "NotReached" for pod_verdict in placement.unschedulable)),
    }


def count_reschedulable_pods(placement: Placement, cluster: ClusterSnapshot) -> dict[str, float]:
    """Return the number of pods in *placement* that still run, on nodes that are being removed."""
    planned_pods = {pod_verdict.pod for pod_verdict in placement.unschedulable}
    planned_pods.update(*(node.pods for node in placement.new_nodes), *(fit.pods for fit in placement.existing))
    running_count = sum(bool(pod.node_name) and pod.name in planned_pods for pod in cluster.pods)
    return {"ReschedulablePods": float(running_count)} if running_count else {}


def compute_fleet_metrics(cluster_state: ClusterState) -> dict[str, float]:
    """Return the number of managed nodes and their price per hour; a node without a known price counts as 0."""
    costs = [
        cluster_state.price_list.get_billed_price(state.meta, state.claim.node_class.name)
        for state in cluster_state.nodes
        if state.claim is not None
    ]
    return {"ManagedNodes": float(len(costs)), "FleetUsdPerHour": sum(costs)}


def count_action_results(results: Iterable[ActionResult], problems: Iterable[Problem] = ()) -> dict[str, float]:
    """Return the numbers of actions, failures, launch failures, ended leaks and throttles, also from *problems*."""
    result_list = tuple(results)
    failed = [result for result in result_list if result.result == "failed"]
    messages = [*(result.message for result in failed), *(problem.message for problem in problems)]
    terminations = (
        result.action
        for result in result_list
        if result.result == "done" and isinstance(result.action, TerminateInstances)
    )
    return {
        "Actions": float(len(result_list)),
        "FailedActions": float(len(failed)),
        "LaunchFailures": float(max(sum(map(_is_launch, failed)), sum(map(_is_refusal_event, result_list)))),
        "OrphanedInstancesTerminated": float(
            sum(len(action.instance_ids) for action in terminations if action.message == NO_CLAIM_MESSAGE)
        ),
        "ThrottledCalls": float(sum(f"{Throttled.__name__}:" in text for text in messages)),
    }


def _is_launch(result: ActionResult) -> bool:
    return isinstance(result.action, LaunchInstances)


def _is_refusal_event(result: ActionResult) -> bool:
    """Return whether a NodePool event reports that EC2 refused: its call was made and answered."""
    return isinstance(result.action, PublishEvent) and result.action.message.startswith(LAUNCH_REFUSED_PREFIX)


def compute_cluster_metrics(
    function: Function, trigger: str, cluster: ClusterSnapshot | None, results: Iterable[ActionResult]
) -> dict[str, float]:
    """Return the metrics that a cycle of *function* reads from *cluster* besides its own: wait times and ages."""
    if cluster is None:
        return {}
    if function == "disrupt":
        return compute_catalog_ages(cluster) | (compute_start_times(cluster) if trigger == "schedule" else {})
    result_list = tuple(results)
    interrupted = (
        {"InterruptedNodes": float(sum(map(_is_claim_deletion, result_list)))} if function == "interrupt" else {}
    )
    return interrupted | compute_launch_waits(cluster, result_list)


def _is_claim_deletion(result: ActionResult) -> bool:
    return result.result == "done" and isinstance(result.action, DeleteObject) and result.action.kind == "NodeClaim"


REPORT_INTERVAL_MINUTES: Final = 5


def is_fleet_summary_due(function: str, trigger: str, cluster: ClusterSnapshot) -> bool:
    """Return whether this cycle, one in five minutes, writes the fleet summary."""
    return (function, trigger) == ("disrupt", "schedule") and cluster.taken_at.minute % REPORT_INTERVAL_MINUTES == 0
