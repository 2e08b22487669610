"""The health of canary nodes: whether a new image or launch configuration harms the nodes and pods that use it.

All evidence is in the snapshot. Pods count against a canary only if pods of the same workload are healthy on other
nodes: a workload that fails everywhere says nothing about the image.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.model.core.metadata import find_condition, is_condition_true
from shared.model.karpenter.health.canary import CanaryTrial, build_claim_key, get_claim_name
from shared.model.karpenter.health.registration_history import parse_registration_history
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.model.kubernetes.pod import Pod

START_TIMEOUT: Final = timedelta(minutes=15)
"""How long after its launch a canary node may be without initialization."""
MAX_LOST_NODES: Final = 2
"""The canary fails with so many NodeClaims that were deleted before their nodes were initialized.

EC2 may interrupt one Spot instance without any fault of the image. A drift command deletes its replacement after ten
minutes.
"""
NOT_READY_TOLERANCE: Final = timedelta(minutes=1)
"""How long an initialized canary node may be not Ready before the canary fails."""
PENDING_TOLERANCE: Final = timedelta(minutes=5)
"""How long a pod on a canary node may be Pending, for example without network, before it counts."""
MIN_RESTARTS: Final = 3
"""Fewer container restarts of a pod on a canary node do not count."""
MAX_RESTART_RATIO: Final = 2
"""The most restarts per hour on canary nodes, as a multiple of those of the same workload on other nodes."""
SECONDS_PER_HOUR: Final = 3600


def advance_nodes(trial: CanaryTrial, claims: Iterable[NodeClaim], soak_time: timedelta, now: datetime) -> CanaryTrial:
    """Return *trial* with its nodes at *now*; *claims* are the NodeClaims that use its image or configuration."""
    live_claims = [claim for claim in claims if not claim.is_deleting()]
    initialized_by_key = {build_claim_key(claim): _find_initialized_time(claim) for claim in live_claims}
    passed = [key for key, at in initialized_by_key.items() if at is not None and at + soak_time <= now]
    deleted_keys = set(trial.starting) - initialized_by_key.keys()
    return msgspec.structs.replace(
        trial,
        starting=tuple(sorted(key for key, at in initialized_by_key.items() if at is None)),
        running=tuple(sorted(key for key, at in initialized_by_key.items() if at is not None)),
        passed=tuple(sorted({*trial.passed, *passed})),
        lost_claims=tuple(sorted({*trial.lost_claims, *deleted_keys})),
    )


def find_failure(trial: CanaryTrial, claims: Iterable[NodeClaim], cluster: ClusterSnapshot) -> str:
    """Return why *trial* failed, "" if it did not; *claims* are the NodeClaims that use its image or configuration."""
    live_claims = sorted((claim for claim in claims if not claim.is_deleting()), key=lambda claim: claim.name)
    failures = (
        *_list_start_failures(trial, live_claims, cluster),
        *_list_unready_nodes(live_claims, cluster),
        *_list_pod_failures(live_claims, cluster),
    )
    return failures[0] if failures else ""


def _find_initialized_time(claim: NodeClaim) -> datetime | None:
    condition = find_condition(claim.conditions, "Initialized")
    return condition.since if condition is not None and condition.status == "True" else None


def _list_start_failures(trial: CanaryTrial, claims: Iterable[NodeClaim], cluster: ClusterSnapshot) -> Iterator[str]:
    for pool in sorted(cluster.node_pools, key=lambda pool: pool.name):
        history = parse_registration_history(pool)
        for name in _list_unregistered_claims(trial, history.failed if history is not None else {}):
            yield f"the node of NodeClaim {name} did not register"
    for claim in claims:
        launched = find_condition(claim.conditions, "Launched")
        since = launched.since if launched is not None and launched.status == "True" else None
        if since is not None and not claim.is_initialized() and cluster.taken_at - since >= START_TIMEOUT:
            missing = "initialized" if claim.is_registered() else "registered"
            minutes = START_TIMEOUT // timedelta(minutes=1)
            yield f"the node of NodeClaim {claim.name} is not {missing} {minutes} minutes after its launch"
    if len(trial.lost_claims) >= MAX_LOST_NODES:
        names = ", ".join(get_claim_name(key) for key in trial.lost_claims)
        yield f"NodeClaims {names} were deleted before their nodes were initialized"


def _list_unregistered_claims(trial: CanaryTrial, failed: Mapping[str, datetime]) -> list[str]:
    """Return which lost NodeClaims of *trial* are in *failed*, the failures of a NodePool by name.

    A failure from before the trial started is of an earlier NodeClaim with the same name.
    """
    lost_names = sorted({get_claim_name(key) for key in trial.lost_claims})
    return [
        name
        for name in lost_names
        if name in failed and trial.started_at is not None and failed[name] >= trial.started_at
    ]


def _list_unready_nodes(claims: Iterable[NodeClaim], cluster: ClusterSnapshot) -> Iterator[str]:
    nodes = {node.provider_id: node for node in cluster.nodes if node.provider_id}
    for claim in claims:
        node = nodes.get(claim.provider_id)
        if node is None or not is_condition_true(claim.conditions, "Initialized") or _is_leaving(node):
            continue
        ready = find_condition(node.conditions, "Ready")
        since = ready.since if ready is not None else None
        if ready is not None and ready.status != "True" and since is not None:
            duration = cluster.taken_at - since
            if duration >= NOT_READY_TOLERANCE:
                yield f"node {node.name} is not Ready: {ready.reason or ready.status}"


def _is_leaving(node: Node) -> bool:
    return node.meta.deleted_at is not None or node.unschedulable


class _WorkloadPods(msgspec.Struct, kw_only=True):
    on_canary: list[Pod] = []
    elsewhere: list[Pod] = []


def _list_pod_failures(claims: Iterable[NodeClaim], cluster: ClusterSnapshot) -> Iterator[str]:
    node_names = frozenset(claim.node_name for claim in claims if claim.node_name)
    for workload, pods in _group_by_workload(node_names, cluster).items():
        name = f"{workload[1]} {workload[0]}/{workload[2]}"
        pending = [pod for pod in pods.on_canary if _is_stuck(pod, cluster.taken_at)]
        if pending and any(pod.phase == "Running" for pod in pods.elsewhere) and not _has_stuck_pod(pods, cluster):
            yield f"{format_count(len(pending), 'pod')} of {name} stay Pending on canary nodes, and run on other nodes"
        worst = max((pod.restarts for pod in pods.on_canary), default=0)
        if worst < MIN_RESTARTS or not pods.elsewhere:
            continue
        rates = [_compute_restart_rate(group, cluster.taken_at) for group in (pods.on_canary, pods.elsewhere)]
        if rates[0] > MAX_RESTART_RATIO * rates[1]:
            yield (
                f"containers of {name} restart {rates[0]:.1f} times per hour and pod on canary nodes, "
                f"{rates[1]:.1f} times on other nodes"
            )


def _group_by_workload(
    node_names: frozenset[str], cluster: ClusterSnapshot
) -> Mapping[tuple[str, str, str], _WorkloadPods]:
    """Return the pods of the workloads that have pods on canary nodes: by namespace, kind and name of the owner."""
    pods_by_workload: dict[tuple[str, str, str], _WorkloadPods] = {}
    for pod in cluster.pods:
        if pod.node_name in node_names and pod.is_active() and pod.meta.owners and not pod.is_mirror():
            pods_by_workload.setdefault(_find_workload(pod), _WorkloadPods()).on_canary.append(pod)
    if pods_by_workload:
        for pod in cluster.pods:
            if pod.node_name and pod.node_name not in node_names and pod.is_active() and pod.meta.owners:
                group = pods_by_workload.get(_find_workload(pod))
                if group is not None:
                    group.elsewhere.append(pod)
    return dict(sorted(pods_by_workload.items()))


def _find_workload(pod: Pod) -> tuple[str, str, str]:
    owner = pod.meta.owners[0]
    return pod.meta.namespace, owner.kind, owner.name


def _is_stuck(pod: Pod, now: datetime) -> bool:
    scheduled = find_condition(pod.conditions, "PodScheduled")
    bound_at = (scheduled.since if scheduled is not None else None) or pod.meta.created_at
    return pod.phase == "Pending" and bound_at is not None and now - bound_at >= PENDING_TOLERANCE


def _has_stuck_pod(pods: _WorkloadPods, cluster: ClusterSnapshot) -> bool:
    return any(_is_stuck(pod, cluster.taken_at) for pod in pods.elsewhere)


def _compute_restart_rate(pods: Iterable[Pod], now: datetime) -> float:
    """Return the restarts per hour and pod."""
    started_pods = [(pod.restarts, pod.started_at or pod.meta.created_at or now) for pod in pods]
    hours = sum((now - started_at).total_seconds() for _, started_at in started_pods) / SECONDS_PER_HOUR
    return sum(restarts for restarts, _ in started_pods) / hours if hours > 0 else 0.0
