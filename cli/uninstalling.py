"""From a cluster with nodes of ours to one without: what would go, its order, and the wait for it.

The same order as the stack's `joiner:on-destroy=purge` has: launches pause, NodePools go, so that no node is made anew,
then NodeClaims; the functions drain the nodes and end the instances. Each step asks for what is still there, so whoever
was interrupted begins again and goes on.
"""

import json
from collections.abc import Callable, Container, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from cli.files import InputError
from cli.live import live_cluster
from cli.pausing import added, taken_back, write
from cli.ranked import Row, rows_of
from cli.text import count, some
from shared.disruption.candidates import pods_in_the_way
from shared.errors import Fault, Gone
from shared.lifecycle.guards import guards_of
from shared.model.cluster import Cluster
from shared.model.holds import LAUNCHES, Hold
from shared.model.labels import NODEPOOL
from shared.model.objects import Meta
from shared.model.state import state_nodes
from shared.model.units import parse_instant
from shared.ports import Kube
from shared.snapshot.kinds import LISTINGS

POOLS: Final = "/apis/karpenter.sh/v1/nodepools"
CLAIMS: Final = "/apis/karpenter.sh/v1/nodeclaims"
FIELDS: Final = ("nodes", "node_claims", "pods", "node_pools", "budgets", "namespaces")
SEEN: Final = tuple(one for one in LISTINGS if one.field in FIELDS)
LEASES: Final = "/apis/coordination.k8s.io/v1/leases"
LEADER: Final = "karpenter-leader-election"
FRESH: Final = timedelta(minutes=2)
"""Since a lease was renewed, for its holder to be at work."""
LOOK: Final = 5.0
"""Seconds between two looks."""
PATIENCE: Final = timedelta(minutes=10)
"""So long without any change, and it is time to say what is in the way."""
NAMED: Final = 3
BECAUSE: Final = "joiner uninstall"


class Doomed(msgspec.Struct, frozen=True, kw_only=True):
    """What would go."""

    pools: tuple[Meta, ...]
    claims: tuple[Meta, ...]
    rows: tuple[Row, ...]
    """Nodes, by name."""
    others: tuple[str, ...]
    """NodePools of other kinds of node class: they are not ours, and stay."""
    held: tuple[str, ...]
    """Pods that keep nodes from being drained, each with the nodes that it keeps."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left."""
        return not self.pools and not self.claims and not self.rows

    @property
    def pods(self) -> int:
        """How many pods run there, daemons not counted."""
        return sum(one.pods for one in self.rows)

    def words(self) -> str:
        """Say what there is."""
        parts = (count(len(self.pools), "NodePool"), count(len(self.claims), "NodeClaim"))
        return f"{', '.join(parts)}, {count(len(self.rows), 'node')} with {count(self.pods, 'pod')}"


def look(kube: Kube, where: str) -> Cluster:
    """List what matters.

    Raises:
        InputError: some of it cannot be seen.
    """
    found, _ = live_cluster(kube, datetime.now(UTC), where, SEEN)
    hidden = [f"{one.kind} {one.name}: {one.message}" for one in found.problems if one.name == "*"]
    if hidden:
        raise InputError("; ".join(hidden))
    return found


def doomed(cluster: Cluster) -> Doomed:
    """Answer what of *cluster* would go; what is going already is part of it."""
    ours = {one.name for one in cluster.node_pools if one.node_class.is_supported()}
    others = sorted(one.name for one in cluster.node_pools if one.name not in ours)
    claims = [one for one in cluster.node_claims if one.node_class.is_supported()]
    rows = tuple(one for one in rows_of(cluster) if one.pool not in others)
    return Doomed(
        pools=tuple(one.meta for one in cluster.node_pools if one.name in ours),
        claims=tuple(one.meta for one in claims if one.meta.label(NODEPOOL) not in others),
        rows=rows,
        others=tuple(others),
        held=tuple(_held(cluster, {one.name for one in rows})),
    )


def _held(cluster: Cluster, nodes: Container[str]) -> Iterator[str]:
    guards, by = guards_of(cluster.budgets), dict[str, list[str]]()
    for state in state_nodes(cluster):
        objection = pods_in_the_way(state.pods, guards, cluster.taken_at)
        if objection is not None and state.node is not None and state.node.name in nodes:
            by.setdefault(objection[1], []).append(state.node.name)
    yield from (f"{some(names, NAMED)}: {why}" for why, names in sorted(by.items()))


def keeper(kube: Kube, now: datetime) -> str:
    """Answer who else works on these objects: the holder of Karpenter's lease, "" if nobody renews it.

    Raises:
        InputError: that cannot be seen.
    """
    try:
        page = json.loads(kube.list(LEASES, field_selector=f"metadata.name={LEADER}"))
    except Gone:
        return ""
    except Fault as fault:
        raise InputError(f"{fault}: whether a Karpenter is at work cannot be seen, so nothing is done") from None
    for one in page["items"]:
        spec = one.get("spec") or {}
        if spec.get("renewTime") and now - parse_instant(spec["renewTime"]) < FRESH:
            return f"{one['metadata']['namespace']}/{spec.get('holderIdentity', '')}"
    return ""


def pause_launches(kube: Kube, who: str, now: datetime) -> None:
    """Have no more nodes made.

    Raises:
        InputError: it cannot be written.
    """
    write(kube, "", added(Hold(what=LAUNCHES, by=who, since=now, because=BECAUSE), now))


def resume_launches(kube: Kube, now: datetime) -> None:
    """Leave no trace of the pause: there is nothing left that could launch.

    Raises:
        InputError: it cannot be written.
    """
    write(kube, "", taken_back(LAUNCHES, now))


def delete(kube: Kube, what: Doomed) -> list[str]:
    """Ask for the end of NodePools, then of NodeClaims, as far as they are not going; answer what was asked for.

    Raises:
        InputError: one of them cannot be deleted.
    """
    asked = []
    for kind, path, metas in (("NodePool", POOLS, what.pools), ("NodeClaim", CLAIMS, what.claims)):
        for one in metas:
            if one.deleted_at is not None:
                continue
            body = json.dumps({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": one.uid}})
            try:
                kube.delete(f"{path}/{one.name}", body.encode())
            except Gone:
                continue
            except Fault as fault:
                raise InputError(f"{kind} {one.name}: {fault}: ask for the right to delete it, and go on") from None
            asked.append(f"{kind} {one.name}")
    return asked


def wait(
    again: Callable[[], Doomed],
    tell: Callable[[str], None],
    sleep: Callable[[float], None],
    most: timedelta,
) -> Doomed:
    """Look *again* and again until nothing is left, or for *most* of the time; answer what was left at the end.

    *tell* hears what has changed, and what is in the way once nothing has for long.

    Raises:
        InputError: it cannot be seen any more.
    """
    passed = quiet = timedelta()
    said = ""
    while True:
        left = again()
        if left.is_empty or passed >= most:
            return left
        words = left.words()
        if words != said:
            tell(f"left: {words}")
            said, quiet = words, timedelta()
        elif quiet >= PATIENCE:
            tell(
                f"nothing has changed for {PATIENCE.seconds // 60} minutes: see `joiner doctor`, and what holds nodes:"
            )
            for one in left.held:
                tell(f"  {one}")
            quiet = timedelta()
        sleep(LOOK)
        passed, quiet = passed + timedelta(seconds=LOOK), quiet + timedelta(seconds=LOOK)
