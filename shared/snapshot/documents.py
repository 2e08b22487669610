"""A Cluster from files: what `kubectl get -o json` printed, or manifests that no API server has seen.

The converters are those of a live cluster. Before them a manifest gets what an API server and its controllers would
have given it: a namespace, the default StorageClass, an unschedulable pod's condition, readiness.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from shared.model.cluster import Cluster
from shared.model.labels import INITIALIZED, NODECLASS, NODEPOOL, REGISTERED
from shared.model.nodes import Node, NodeClaim, NodeClassRef
from shared.model.objects import Condition, Problem, pairs
from shared.snapshot.assumed import Complete, completions
from shared.snapshot.flat import Document, Source, documents_in
from shared.snapshot.kinds import LISTINGS, Listing, order
from shared.snapshot.optional import OPTIONAL
from shared.snapshot.pages import nameless
from shared.snapshot.unread import Unread, UnreadPods

_OLDER: Final = frozenset(("Provisioner", "AWSNodeTemplate", "Machine", "NodePool", "NodeClaim", "EC2NodeClass"))


def cluster_from_documents(objects: Iterable[Source], now: datetime, *, assume_unschedulable: bool = True) -> Cluster:
    """Read *objects*, Lists among them, in any order; of an object that is there twice the last counts.

    Bytes are one JSON document each, and read several times as fast as what was decoded before. Kinds that decisions do
    not read are passed over. With *assume_unschedulable* a pod without node and without `PodScheduled` condition counts
    as one that kube-scheduler gave up on.
    """
    problems: list[Problem] = []
    some = {one.identity: one for one in documents_in(objects, problems)}
    problems += [problem for one in some.values() for problem in _older(one)]
    by_kind: dict[tuple[str, str], list[Document]] = {}
    for one in some.values():
        by_kind.setdefault((one.api, one.kind), []).append(one)
    parts: dict[str, Any] = {}
    for listing in sorted(
        (*LISTINGS, *OPTIONAL), key=lambda listing: (listing.field != "storage_classes", listing.field)
    ):
        complete = completions(parts.get("storage_classes", ()), assume_unschedulable=assume_unschedulable)
        unread = _unread(listing, complete.get(listing.kind, _same), assume_unschedulable=assume_unschedulable)
        unread.read(by_kind.get((listing.api, listing.kind), ()))
        parts[listing.field] = tuple(sorted(unread.found, key=order))
        problems += unread.problems
    owned = {node.name: _joined(node) for node in _owned(parts["nodes"], parts["node_claims"])}
    parts["nodes"] = tuple(owned.get(node.name, node) for node in parts["nodes"])
    parts["node_claims"] = tuple(sorted((*parts["node_claims"], *map(_claim_of, owned.values())), key=order))
    return Cluster(taken_at=now, problems=tuple(sorted(problems)), **parts)


def _unread(listing: Listing, complete: Complete, *, assume_unschedulable: bool) -> Unread:
    if listing.field == "pods":
        return UnreadPods(listing, complete, assume_unschedulable=assume_unschedulable)
    return Unread(listing, complete)


def _same(one: object) -> object:
    return one


def _older(one: Document) -> Iterator[Problem]:
    group, _, version = one.api.partition("/")
    if "karpenter" in group and one.kind in _OLDER and version != "v1":
        message = f"apiVersion: {one.api} is not read any more; convert it to v1 with `joiner convert`"
        yield Problem(kind=one.kind, name=one.name or nameless(), message=message)


def _owned(nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> Iterator[Node]:
    """Iterate over the nodes that a NodePool has and no claim names."""
    some = tuple(claims)
    known = {claim.provider_id for claim in some} | {claim.node_name for claim in some}
    for node in nodes:
        if (
            node.meta.label(NODEPOOL)
            and node.name not in known
            and not (node.provider_id and node.provider_id in known)
        ):
            yield node


def _joined(node: Node) -> Node:
    """Answer *node* with the labels of one that has joined, unless it says something about that itself."""
    labels = dict(node.meta.labels)
    if REGISTERED in labels or INITIALIZED in labels:
        return node
    labels |= {REGISTERED: "true", INITIALIZED: "true"}
    return replace(node, meta=replace(node.meta, labels=pairs(labels)))


def _claim_of(node: Node) -> NodeClaim:
    states = ("Consolidatable", "Initialized", "Launched", "Ready", "Registered")
    return NodeClaim(
        meta=node.meta,
        node_class=NodeClassRef(name=node.meta.label(NODECLASS)),
        node_name=node.name,
        provider_id=node.provider_id,
        capacity=node.capacity,
        allocatable=node.allocatable,
        conditions=tuple(Condition(type=one, status="True", reason="Assumed") for one in states),
    )
