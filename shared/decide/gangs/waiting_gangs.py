"""The gangs that wait for nodes, for status pages: how many of their pods exist, since when, and why."""

from datetime import datetime
from typing import Final

import msgspec

from shared.decide.gangs.queued_gang import QueuedGang, queue_gang
from shared.decide.scheduling.pods.pending_pods import select_pods_to_schedule
from shared.model.core.formatting import format_count, format_elapsed
from shared.model.kubernetes.gangs.gang import find_gang_kind
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gang_claims import parse_planned_gangs
from shared.state.gangs.gang_retries import find_gang_retries
from shared.state.gangs.gangs import find_gangs

_NOTHING_EXCLUDED: Final[frozenset[str]] = frozenset()


class WaitingGang(msgspec.Struct, frozen=True, kw_only=True):
    """A gang with pods that have no node."""

    kind: str
    """`JobSet`, `PodGroup`, or how else its pods say that they are a gang."""
    name: str
    existing_count: int
    """Number of its pods that exist."""
    needed_count: int
    """Number of pods that must exist."""
    since: datetime | None
    """When its oldest pod without a node was created."""
    reason: str

    def describe(self, now: datetime) -> str:
        """Return the gang, its pods, since when it waits, and why."""
        since = f" for {format_elapsed(now - self.since)}" if self.since is not None else ""
        counts = f"{format_count(self.existing_count, 'pod')}, {self.needed_count} needed"
        return f"{self.kind} {self.name} ({counts}) waits{since}: {self.reason}"


def list_waiting_gangs(cluster_state: ClusterState) -> tuple[WaitingGang, ...]:
    """Return the gangs with pods that wait for a node, sorted by name; none if the setting is off."""
    cluster = cluster_state.snapshot
    if not cluster.has_gangs:
        return ()
    queued_pods = {pod.name: pod for pod in select_pods_to_schedule(cluster_state, _NOTHING_EXCLUDED)}
    retries = find_gang_retries(cluster.node_pools)
    waiting_gangs: list[WaitingGang] = []
    for gang in find_gangs(cluster).values():
        names = queued_pods.keys() & {pod.name for pod in gang.pods}
        if not names:
            continue
        queued = queue_gang(gang, frozenset(names), retries, cluster)
        created_times = [at for name in names if (at := queued_pods[name].meta.created_at) is not None]
        reason = queued.explain_wait(cluster.taken_at) or _explain_missing_nodes(queued, cluster_state)
        waiting_gangs.append(
            WaitingGang(
                kind=find_gang_kind(gang.pods[0]),
                name=gang.name,
                existing_count=len(gang.pods),
                needed_count=gang.needed_count,
                since=min(created_times, default=None),
                reason=reason,
            )
        )
    return tuple(waiting_gangs)


def _explain_missing_nodes(queued: QueuedGang, cluster_state: ClusterState) -> str:
    """Return why a gang whose pods can all be planned has pods without nodes."""
    count = sum(
        queued.gang.name in parse_planned_gangs(claim) and not claim.is_deleting()
        for claim in cluster_state.snapshot.node_claims
    )
    if count:
        return f"{format_count(count, 'node')} launched for it"
    return f"`joiner explain pod {min(queued.queued_names)}` shows why its pods do not fit"
