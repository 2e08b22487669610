"""Spot shares of workloads: pods that must not be planned on Spot nodes, as requirements of these pods.

The pods of one owner are counted: a ReplicaSet, not its Deployment. So during a rollout, the new pods satisfy the share
before the old ones are gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, SPOT, SPOT_SHARE
from shared.model.karpenter.spot_share import (
    NOT_SPOT,
    WORKLOAD_UNITS,
    ShareUsage,
    SpotShare,
    find_share_problem,
    has_share_annotations,
    parse_spot_share,
)
from shared.model.kubernetes.pod import Pod, PodSpec
from shared.state.nominations import build_nominations, compute_pod_digest
from shared.state.state_node import StateNode

OwnerKey: TypeAlias = tuple[str, str, str]
"""Namespace, kind and name."""


class RestrictedQueue(msgspec.Struct, frozen=True, kw_only=True):
    """The queue, in which pods that must not be on Spot nodes require that."""

    pods: list[Pod]
    note_by_pod: Mapping[str, str]
    """By restricted pod: the share of its workload, as text."""


class _Workload(msgspec.Struct, kw_only=True):
    """The pods of one owner."""

    shares: set[SpotShare] = msgspec.field(default_factory=set)
    """Several while pods with changed annotations replace others."""
    usage: ShareUsage = ShareUsage()
    movable_pods: list[tuple[int, int, str]] = msgspec.field(default_factory=list)
    """Pods of the queue that are not on a Spot node: rank, place from the end of the queue, and name.

    The first ones may be on Spot nodes, so the other pods are planned before them and fill the on-demand nodes.
    """


def restrict_to_shares(
    queue: Sequence[Pod], staying_nodes: Iterable[StateNode], cluster: ClusterSnapshot
) -> RestrictedQueue:
    """Return *queue* with the requirements that keep the shares of workloads; pods on *staying_nodes* count there."""
    if not any(pod.meta.annotations and has_share_annotations(pod.meta) for pod in queue):
        return RestrictedQueue(pods=list(queue), note_by_pod={})
    note_by_pod: dict[str, str] = {}
    for workload in _list_workloads(queue, list(staying_nodes), cluster):
        usage = workload.usage
        share = min(workload.shares, key=lambda share: (share.compute_max_spot(usage.total), share.percent, share.base))
        free_spot = max(0, share.compute_max_spot(usage.total) - usage.spot)
        note = f"its workload has a Spot share ({SPOT_SHARE}): {share.format_usage(usage)}"
        note_by_pod |= {name: note for _, _, name in sorted(workload.movable_pods)[free_spot:]}
    restricted_specs: dict[PodSpec, PodSpec] = {}
    pods = [
        replace(pod, spec=_exclude_spot(pod.spec, restricted_specs)) if pod.name in note_by_pod else pod
        for pod in queue
    ]
    return RestrictedQueue(pods=pods, note_by_pod=note_by_pod)


def find_workload_share(pod: Pod) -> SpotShare | None:
    """Return the share in the annotations of *pod*; None if there is none, or an invalid one."""
    if not has_share_annotations(pod.meta) or find_share_problem(pod.meta, WORKLOAD_UNITS):
        return None
    return parse_spot_share(pod.meta, WORKLOAD_UNITS)


def get_owner_key(pod: Pod) -> OwnerKey:
    """Return the owner of *pod*, or the pod itself."""
    owners = pod.meta.owners
    owner = next((reference for reference in owners if reference.controller), owners[0] if owners else None)
    if owner is None:
        return (pod.meta.namespace, "Pod", pod.meta.name)
    return (pod.meta.namespace, owner.kind, owner.name)


def _list_workloads(
    queue: Sequence[Pod], staying_nodes: Sequence[StateNode], cluster: ClusterSnapshot
) -> Iterable[_Workload]:
    workloads: dict[OwnerKey, _Workload] = {}
    for pod in queue:
        share = find_workload_share(pod)
        if share is not None:
            workloads.setdefault(get_owner_key(pod), _Workload()).shares.add(share)
    is_spot_by_pod = {
        pod.name: state.meta.get_label(CAPACITY_TYPE) == SPOT for state in staying_nodes for pod in state.pods
    }
    nominations = build_nominations(staying_nodes, cluster.taken_at, cluster.pods)
    queue_index_by_pod = {pod.name: index for index, pod in enumerate(queue)}
    all_pods = {pod.name: pod for pod in (*cluster.pods, *queue)}
    for name, pod in sorted(all_pods.items()):
        counted_workload = workloads.get(get_owner_key(pod))
        is_placed = name in is_spot_by_pod and pod.is_active()
        if counted_workload is None or not (is_placed or name in queue_index_by_pod):
            continue  # a pod that is neither placed nor planned may still be placed on a Spot node
        is_spot = is_spot_by_pod.get(name, False)
        counted_workload.usage += ShareUsage(spot=int(is_spot), total=1)
        if name in queue_index_by_pod and not is_spot:
            rank = _rank_nomination(nominations.get(compute_pod_digest(name)), is_bound=name in is_spot_by_pod)
            counted_workload.movable_pods.append((rank, -queue_index_by_pod[name], name))
    return workloads.values()


def _rank_nomination(expecting_node: StateNode | None, *, is_bound: bool) -> int:
    """Return the rank of a pod: first pods whose in-flight node may be Spot, last those whose node is not."""
    if expecting_node is None or is_bound:
        return 2 if is_bound else 1
    claim = expecting_node.claim
    if claim is not None and not claim.is_launched():
        return 0 if claim.requirements[CAPACITY_TYPE].has(SPOT) else 2
    return 0 if expecting_node.meta.get_label(CAPACITY_TYPE) == SPOT else 2


def _exclude_spot(spec: PodSpec, restricted_specs: dict[PodSpec, PodSpec]) -> PodSpec:
    if spec not in restricted_specs:
        terms = tuple(term & NOT_SPOT for term in spec.required_terms) or (NOT_SPOT,)
        restricted_specs[spec] = replace(spec, required_terms=terms)
    return restricted_specs[spec]
