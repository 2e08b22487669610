"""Removal of all nodes of Joiner from a cluster: what is removed, in which order, and the wait for completion.

The order is that of the stack's `on-destroy: purge`: launches pause, NodePools are deleted so that no new nodes
are created, then NodeClaims; the functions drain the nodes and terminate the instances. Each step deletes only what
still exists, so an interrupted removal can be started again and continues.
"""

import json
from collections.abc import Callable, Container, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from cli.cluster.live_cluster import read_live_cluster
from cli.cluster.paging import list_objects
from cli.inputs.environment import keep_honored_annotations
from cli.pause.annotations import build_pause_change, build_resume_change, write_pauses
from cli.status.node_rows import NodeRow, build_node_rows
from cli.terminal.errors import InputError
from shared.decide.disruption.candidates import find_blocking_pod
from shared.errors import Fault, NotFound
from shared.installer.installer import KARPENTER_LEASE_NAME, LEASES_PATH
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_elapsed, join_names
from shared.model.core.metadata import ObjectMeta
from shared.model.core.units import parse_instant
from shared.model.karpenter.other_providers import has_own_node_class
from shared.model.karpenter.pause import LAUNCH_WORDS, Pause
from shared.ports.kubernetes import Kube
from shared.state.cluster_state import ClusterState
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.wire.paths import COLLECTION_PATHS

SNAPSHOT_FIELDS: Final = ("nodes", "node_claims", "pods", "node_pools", "budgets", "namespaces")
LISTED_KINDS: Final = tuple(kind for kind in RESOURCE_KINDS if kind.field in SNAPSHOT_FIELDS)
MAX_LEASE_AGE: Final = timedelta(minutes=2)
"""Maximum age of the last renewal of a lease with an active holder."""
POLL_INTERVAL_SECONDS: Final = 5.0
"""Interval between two reads of the cluster."""
STALL_TIMEOUT: Final = timedelta(minutes=10)
"""Time without any change after which the blockers are printed."""
MAX_LISTED_NAMES: Final = 3
PAUSE_REASON: Final = "joiner uninstall"


class RemovalPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The objects to remove."""

    pools: tuple[ObjectMeta, ...]
    claims: tuple[ObjectMeta, ...]
    rows: tuple[NodeRow, ...]
    """Nodes, sorted by name."""
    foreign_pools: tuple[str, ...]
    """NodePools with other kinds of node class: they do not belong to Joiner, and are kept."""
    blockers: tuple[str, ...]
    """Pods that prevent nodes from being drained, each with the nodes that it blocks."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return not self.pools and not self.claims and not self.rows

    @property
    def pods(self) -> int:
        """The number of pods on these nodes, without those of DaemonSets."""
        return sum(row.pods for row in self.rows)

    def describe(self) -> str:
        """Describe the objects by their numbers."""
        parts = (format_count(len(self.pools), "NodePool"), format_count(len(self.claims), "NodeClaim"))
        return f"{', '.join(parts)}, {format_count(len(self.rows), 'node')} with {format_count(self.pods, 'pod')}"


def read_cluster(kube: Kube, source: str) -> ClusterSnapshot:
    """List the kinds that matter.

    Raises:
        InputError: a kind cannot be listed.
    """
    cluster, _ = read_live_cluster(kube, datetime.now(UTC), source, LISTED_KINDS)
    hidden = [
        f"{problem.kind} {problem.name}: {problem.message}" for problem in cluster.problems if problem.name == "*"
    ]
    if hidden:
        raise InputError("; ".join(hidden))
    return keep_honored_annotations(cluster)


def list_foreign_pools(kube: Kube) -> tuple[str, ...]:
    """Return the names of the NodePools of other providers, as EKS Auto Mode, sorted.

    Raises:
        InputError: NodePools cannot be listed.
    """
    try:
        node_pools = list(list_objects(kube, COLLECTION_PATHS["NodePool"], dict))
    except NotFound:
        return ()
    except Fault as fault:
        raise InputError(f"{fault}: cannot tell whose NodePools they are, so nothing is removed") from None
    return tuple(sorted(pool["metadata"]["name"] for pool in node_pools if not has_own_node_class(pool)))


def build_removal_plan(cluster: ClusterSnapshot, foreign_pools: tuple[str, ...] = ()) -> RemovalPlan:
    """Return the objects of *cluster* to remove, including objects that are already being deleted.

    Nodes of *foreign_pools* and of other providers are kept.
    """
    cluster_state = ClusterState(cluster)
    rows = tuple(row for row in build_node_rows(cluster_state) if row.pool not in foreign_pools)
    return RemovalPlan(
        pools=tuple(node_pool.meta for node_pool in cluster.node_pools if node_pool.node_class.is_supported()),
        claims=tuple(claim.meta for claim in cluster.node_claims if claim.node_class.is_supported()),
        rows=rows,
        foreign_pools=foreign_pools,
        blockers=tuple(_find_blockers(cluster_state, {row.name for row in rows})),
    )


def _find_blockers(cluster_state: ClusterState, nodes: Container[str]) -> Iterator[str]:
    nodes_by_reason: dict[str, list[str]] = {}
    for state in cluster_state.nodes:
        objection = find_blocking_pod(state.pods, cluster_state.pdb_limits, cluster_state.taken_at)
        if objection is not None and state.node is not None and state.node.name in nodes:
            nodes_by_reason.setdefault(objection[1], []).append(state.node.name)
    yield from (f"{join_names(names, MAX_LISTED_NAMES)}: {reason}" for reason, names in sorted(nodes_by_reason.items()))


def find_karpenter_lease_holder(kube: Kube, now: datetime) -> str:
    """Return the active holder of Karpenter's lease, "" if the lease is not renewed.

    Raises:
        InputError: the lease cannot be read.
    """
    try:
        page = json.loads(kube.list(LEASES_PATH, field_selector=f"metadata.name={KARPENTER_LEASE_NAME}"))
    except NotFound:
        return ""
    except Fault as fault:
        raise InputError(f"{fault}: cannot tell whether Karpenter is active, so nothing is removed") from None
    for lease in page["items"]:
        spec = lease.get("spec") or {}
        if spec.get("renewTime") and now - parse_instant(spec["renewTime"]) < MAX_LEASE_AGE:
            return f"{lease['metadata']['namespace']}/{spec.get('holderIdentity', '')}"
    return ""


def pause_launches(kube: Kube, username: str, now: datetime) -> None:
    """Pause launches.

    Raises:
        InputError: the pause cannot be written.
    """
    write_pauses(
        kube, "", build_pause_change(Pause(reasons=LAUNCH_WORDS, author=username, since=now, because=PAUSE_REASON), now)
    )


def resume_launches(kube: Kube, now: datetime) -> None:
    """Remove the pause: nothing is left that could launch nodes.

    Raises:
        InputError: it cannot be written.
    """
    write_pauses(kube, "", build_resume_change(LAUNCH_WORDS, now))


def delete(kube: Kube, removal_plan: RemovalPlan) -> list[str]:
    """Delete NodePools, then NodeClaims, unless they are already being deleted; return the deleted objects.

    Raises:
        InputError: an object cannot be deleted.
    """
    deleted_objects = []
    for kind, path, metas in (
        ("NodePool", COLLECTION_PATHS["NodePool"], removal_plan.pools),
        ("NodeClaim", COLLECTION_PATHS["NodeClaim"], removal_plan.claims),
    ):
        for meta in metas:
            if meta.deleted_at is not None:
                continue
            body = json.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": meta.uid}})
            try:
                kube.delete(f"{path}/{meta.name}", body.encode())
            except NotFound:
                continue
            except Fault as fault:
                raise InputError(
                    f"{kind} {meta.name}: {fault}: get the permission to delete it, then run uninstall again"
                ) from None
            deleted_objects.append(f"{kind} {meta.name}")
    return deleted_objects


def wait(
    refresh: Callable[[], RemovalPlan],
    report_progress: Callable[[str], None],
    sleep: Callable[[float], None],
    timeout: timedelta,
) -> RemovalPlan:
    """Call *refresh* repeatedly until nothing is left, or for at most *timeout*; return what is left.

    *report_progress* gets each change, and the blockers if nothing has changed for `STALL_TIMEOUT`.

    Raises:
        InputError: the cluster cannot be read.
    """
    passed = unchanged_time = timedelta()
    last_description = ""
    while True:
        remaining = refresh()
        if remaining.is_empty or passed >= timeout:
            return remaining
        description = remaining.describe()
        if description != last_description:
            report_progress(f"left: {description}")
            last_description, unchanged_time = description, timedelta()
        elif unchanged_time >= STALL_TIMEOUT:
            report_progress(f"no change for {format_elapsed(STALL_TIMEOUT)}: run `joiner doctor`; blocked nodes:")
            for blocker in remaining.blockers:
                report_progress(f"  {blocker}")
            unchanged_time = timedelta()
        sleep(POLL_INTERVAL_SECONDS)
        passed, unchanged_time = (
            passed + timedelta(seconds=POLL_INTERVAL_SECONDS),
            unchanged_time + timedelta(seconds=POLL_INTERVAL_SECONDS),
        )
