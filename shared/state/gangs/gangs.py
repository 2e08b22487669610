"""The gangs of a snapshot: which pods they have, and how many they need."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import GANG_SIZE, GANG_TOPOLOGY
from shared.model.kubernetes.gangs.gang import GangMembership, find_gang_membership, find_topology_problem
from shared.model.kubernetes.pod import Pod

COMPLETION_GRACE_PERIOD: Final = timedelta(minutes=5)
"""How long a pod of a gang runs until pods of the gang that do not exist count as completed, not as missing."""


class Gang(msgspec.Struct, frozen=True, kw_only=True):
    """The active pods of a gang."""

    name: str
    """Namespace and name: ``shop/train``."""
    size: int
    """Number of pods that it needs."""
    pods: tuple[Pod, ...]
    """Sorted by name."""
    problem: str = ""
    """The error in its size, with the annotation and the fix; such a gang gets no nodes."""
    is_in_one_zone: bool = False
    """Whether all its pods must be in one zone."""
    is_started: bool = False
    """Whether a pod of it has been running for a while, so that missing pods have completed."""

    @property
    def missing_count(self) -> int:
        """Number of pods that do not exist yet."""
        return 0 if self.is_started else max(0, self.size - len(self.pods))

    @property
    def needed_count(self) -> int:
        """Number of its pods that must have a node."""
        return min(self.size, len(self.pods)) if self.is_started else self.size

    @property
    def priority(self) -> int:
        """The highest priority of a pod."""
        return max(pod.priority for pod in self.pods)

    @property
    def created_at(self) -> datetime | None:
        """When its first pod was created."""
        return min((pod.meta.created_at for pod in self.pods if pod.meta.created_at is not None), default=None)


def find_gangs(cluster: ClusterSnapshot) -> dict[str, Gang]:
    """Return the gangs of the active pods of *cluster*, by name."""
    size_by_pod_group = {group.name: group.min_member for group in cluster.pod_groups}
    members: dict[str, list[tuple[Pod, GangMembership]]] = {}
    for pod in cluster.pods:
        membership = find_gang_membership(pod) if pod.is_active() else None
        if membership is not None:
            membership = _resolve_pod_group(membership, size_by_pod_group)
            members.setdefault(membership.name, []).append((pod, membership))
    return {name: _build_gang(name, gang_members, cluster) for name, gang_members in sorted(members.items())}


def needs_pod_groups(cluster: ClusterSnapshot) -> bool:
    """Return whether an active pod is in a gang whose size is in a PodGroup.

    Pods with a node count as well: if the node is drained, they are planned as a gang.
    """
    active_pods = (pod for pod in cluster.pods if pod.meta.labels and pod.is_active())
    return any(membership is not None and membership.pod_group for membership in map(find_gang_membership, active_pods))


def _resolve_pod_group(membership: GangMembership, size_by_pod_group: Mapping[str, int]) -> GangMembership:
    """Return *membership* with the size of its PodGroup, if that has the size."""
    if not membership.pod_group:
        return membership
    size = size_by_pod_group.get(membership.pod_group)
    if size is not None:
        return replace(membership, size=max(1, size))
    message = (
        f"PodGroup {membership.pod_group} does not exist: create it, or set the annotation {GANG_SIZE} on the pods"
    )
    return replace(membership, problem=message)


def map_gangs_to_pods(gangs: Iterable[Gang]) -> dict[str, Gang]:
    """Return the gang of each pod, by the name of the pod."""
    return {pod.name: gang for gang in gangs for pod in gang.pods}


def _build_gang(name: str, members: list[tuple[Pod, GangMembership]], cluster: ClusterSnapshot) -> Gang:
    pods = tuple(sorted((pod for pod, _ in members), key=lambda pod: pod.name))
    problems = sorted(
        {membership.problem for _, membership in members if membership.problem}
        | {problem for pod in pods if (problem := find_topology_problem(pod.meta))}
    )
    exact_sizes = [membership.size for _, membership in members if membership.size is not None and membership.is_exact]
    job_counts = [membership.size or 0 for _, membership in members if not membership.is_exact]
    size = max(exact_sizes) if exact_sizes else max(len(pods), *job_counts, 0)
    first_start = min((pod.started_at for pod in pods if pod.started_at is not None), default=None)
    return Gang(
        name=name,
        size=size,
        pods=pods,
        problem=problems[0] if problems else "",
        is_in_one_zone=any(pod.meta.get_annotation(GANG_TOPOLOGY) == "zone" for pod in pods),
        is_started=first_start is not None and cluster.taken_at - first_start >= COMPLETION_GRACE_PERIOD,
    )
