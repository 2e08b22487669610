"""Nodes of gangs: they are returned if their gang is not complete in time.

A launch can give a gang fewer nodes than it was planned with, for lack of capacity. The nodes that came would wait, at
their full price. After `GANG_LAUNCH_TIMEOUT`, they are deleted, and the gang is planned again later. See docs/adr/0031.
"""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.decide.common.events import build_event
from shared.model.core.formatting import format_count, format_elapsed, join_names
from shared.model.core.labels import GANG_RETRIES, NODEPOOL, PLANNED_GANGS
from shared.model.core.units import format_instant
from shared.model.decisions.action import Action, DeleteObject, PatchMetadata
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.pod_classes import is_reschedulable
from shared.state.cluster_state import ClusterState
from shared.state.gangs.gang_claims import format_planned_gangs, parse_planned_gangs
from shared.state.gangs.gang_retries import (
    compute_next_retry,
    find_gang_retries,
    format_gang_retries,
    parse_gang_retries,
)
from shared.state.gangs.gangs import Gang, find_gangs

GANG_LAUNCH_TIMEOUT: Final = timedelta(minutes=15)
"""How long the nodes of a gang wait for the others: as long as a node may take to register."""
MAX_EVENTS_PER_GANG: Final = 20
RETURN_REASON: Final = "GangReturned"


class _LaunchedGang(msgspec.Struct, frozen=True, kw_only=True):
    """A gang with the NodeClaims that were created for it."""

    gang: Gang
    size: int
    claims: tuple[NodeClaim, ...]

    @property
    def bound_count(self) -> int:
        """Number of its pods that have a node."""
        return sum(bool(pod.node_name) for pod in self.gang.pods)

    def is_complete(self) -> bool:
        """Return whether all pods that it needs have a node; pods that do not exist have completed."""
        return self.bound_count >= min(self.size, len(self.gang.pods))

    def is_overdue(self, now: datetime) -> bool:
        """Return whether its oldest NodeClaim has waited for the others for too long."""
        created_times = [claim.meta.created_at for claim in self.claims if claim.meta.created_at is not None]
        return bool(created_times) and now - min(created_times) >= GANG_LAUNCH_TIMEOUT


def decide_gang_nodes(cluster_state: ClusterState) -> tuple[Action, ...]:
    """Return the actions that release the nodes of complete gangs, and return those of overdue gangs."""
    cluster = cluster_state.snapshot
    claims = [claim for claim in cluster.node_claims if not claim.is_deleting() and parse_planned_gangs(claim)]
    if not claims:
        return ()
    # While the setting is off, all nodes are released. Otherwise, they would be overdue when it is switched on again.
    incomplete_gangs = _find_incomplete_gangs(claims, find_gangs(cluster)) if cluster.has_gangs else {}
    overdue_names = {name for name, gang in incomplete_gangs.items() if gang.is_overdue(cluster.taken_at)}
    member_names = {pod.name for name in overdue_names for pod in incomplete_gangs[name].gang.pods}
    patches: list[PatchMetadata] = []
    returned_claims: list[tuple[NodeClaim, str]] = []
    for claim in sorted(claims, key=lambda claim: claim.name):
        planned_gangs = parse_planned_gangs(claim)
        awaited_gangs = {name: size for name, size in planned_gangs.items() if name in incomplete_gangs}
        is_overdue = bool(awaited_gangs) and awaited_gangs.keys() <= overdue_names
        if is_overdue and not _has_other_pods(claim, member_names, cluster_state):
            returned_claims.append((claim, join_names(sorted(awaited_gangs))))
            continue
        awaited_gangs = {name: size for name, size in awaited_gangs.items() if name not in overdue_names}
        if awaited_gangs != planned_gangs:
            annotations = ((PLANNED_GANGS, format_planned_gangs(awaited_gangs)),)
            message = "gangs are complete, gone or returned, or the setting gangs is off"
            patches.append(PatchMetadata(kind="NodeClaim", name=claim.name, annotations=annotations, message=message))
    overdue_gangs = [incomplete_gangs[name] for name in sorted(overdue_names)]
    return (*patches, *_return_nodes(overdue_gangs, returned_claims, cluster_state))


def _find_incomplete_gangs(claims: Iterable[NodeClaim], gangs: Mapping[str, Gang]) -> dict[str, _LaunchedGang]:
    """Return the gangs of *claims* that are not complete, by name."""
    claims_by_gang: dict[str, list[NodeClaim]] = {}
    size_by_gang: dict[str, int] = {}
    for claim in claims:
        for name, size in parse_planned_gangs(claim).items():
            claims_by_gang.setdefault(name, []).append(claim)
            size_by_gang[name] = max(size, size_by_gang.get(name, 0))
    launched_gangs = (
        _LaunchedGang(gang=gangs[name], size=size_by_gang[name], claims=tuple(gang_claims))
        for name, gang_claims in claims_by_gang.items()
        if name in gangs
    )
    return {launched.gang.name: launched for launched in launched_gangs if not launched.is_complete()}


def _has_other_pods(claim: NodeClaim, member_names: Container[str], cluster_state: ClusterState) -> bool:
    """Return whether the node of *claim* runs pods that are no members of an overdue gang."""
    state = cluster_state.node_by_claim.get(claim.name)
    pods = () if state is None else state.pods
    return any(is_reschedulable(pod) and pod.name not in member_names for pod in pods)


def _return_nodes(
    gangs: Sequence[_LaunchedGang], claims: Sequence[tuple[NodeClaim, str]], cluster_state: ClusterState
) -> Iterator[Action]:
    """Yield the retry of each gang, in the annotation of a NodePool, then the deletions, then the events.

    *claims* are the NodeClaims to delete, each with the names of its gangs.
    """
    cluster, now = cluster_state.snapshot, cluster_state.taken_at
    retries = find_gang_retries(cluster.node_pools)
    next_retries = {gang.gang.name: compute_next_retry(retries.get(gang.gang.name), now) for gang in gangs}
    pool_by_gang = {gang.gang.name: gang.claims[0].meta.get_label(NODEPOOL) for gang in gangs}
    for pool in sorted(cluster.node_pools, key=lambda pool: pool.name):
        own_retries = {name: retry for name, retry in next_retries.items() if pool_by_gang[name] == pool.name}
        if own_retries:
            text = format_gang_retries(parse_gang_retries(pool) | own_retries, now)
            message = "nodes of gangs are returned"
            yield PatchMetadata(kind="NodePool", name=pool.name, annotations=((GANG_RETRIES, text),), message=message)
    for claim, names in claims:
        message = f"gang {names} did not get all its nodes within {format_elapsed(GANG_LAUNCH_TIMEOUT)}"
        yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message=message)
    for gang in gangs:
        until = format_instant(next_retries[gang.gang.name].until)
        message = (
            f"{gang.bound_count} of the {format_count(gang.size, 'pod')} of gang {gang.gang.name} had nodes "
            f"{format_elapsed(GANG_LAUNCH_TIMEOUT)} after the launch: its nodes are deleted; next attempt at {until}"
        )
        for pod in gang.gang.pods[:MAX_EVENTS_PER_GANG]:
            yield build_event("Pod", pod.meta, RETURN_REASON, message, now, type_="Warning")
