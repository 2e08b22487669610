"""A ClusterSnapshot from files: the output of `kubectl get -o json`, or manifests that no API server has seen.

The conversion is the same as for a live cluster. Before it, a manifest gets the defaults that the API server and the
controllers would set: a namespace, the default StorageClass, the condition of an unschedulable pod, readiness.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import INITIALIZED, NODECLASS, NODEPOOL, REGISTERED
from shared.model.core.metadata import Condition, Problem, build_pairs
from shared.model.karpenter.node_claim import NodeClaim, NodeClassRef
from shared.model.karpenter.other_providers import SHARED_FIELDS, filter_own_objects, is_of_other_provider
from shared.model.kubernetes.node import Node
from shared.state.schedules import apply_schedules
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.page_decoding import format_missing_name
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS, ResourceKind, get_sort_key
from shared.take.manifests.decoding import ManifestDecoder, PodManifestDecoder
from shared.take.manifests.defaults import FillDefaults, build_default_fillers
from shared.take.manifests.documents import DocumentSource, ManifestDocument, iterate_documents

_VERSIONED_KINDS: Final = frozenset(
    ("Provisioner", "AWSNodeTemplate", "Machine", "NodePool", "NodeClaim", "EC2NodeClass")
)
LeftOutReporter = Callable[[str, tuple[str, ...]], None]
"""Receives the field of a snapshot, and the names of the objects that it does not contain."""


def _ignore_left_out(field: str, names: tuple[str, ...]) -> None:
    del field, names


def build_snapshot_from_documents(
    objects: Iterable[DocumentSource],
    now: datetime,
    *,
    assume_unschedulable: bool = True,
    report_left_out: LeftOutReporter = _ignore_left_out,
) -> ClusterSnapshot:
    """Build a snapshot from *objects*, which can contain Lists, in any order.

    If an object occurs twice, the last one wins. Bytes are one JSON document each; they are read several times as fast
    as decoded objects. Kinds that decisions do not read are skipped. With *assume_unschedulable*, a pod without a node
    and without a `PodScheduled` condition is treated as a pod that kube-scheduler found unschedulable. As in a live
    cluster, NodePools and NodeClaims of other providers are left out: *report_left_out* gets the field of the snapshot
    and their names, sorted.
    """
    problems: list[Problem] = []
    document_by_identity = {document.identity: document for document in iterate_documents(objects, problems)}
    problems += [problem for document in document_by_identity.values() for problem in _report_old_api_version(document)]
    by_kind: dict[tuple[str, str], list[ManifestDocument]] = {}
    for document in document_by_identity.values():
        by_kind.setdefault((document.api_version, document.kind), []).append(document)
    parts: dict[str, Any] = {}
    for resource_kind in sorted(
        (*RESOURCE_KINDS, *OPTIONAL_KINDS), key=lambda listing: (listing.field != "storage_classes", listing.field)
    ):
        default_fillers = build_default_fillers(
            parts.get("storage_classes", ()), assume_unschedulable=assume_unschedulable
        )
        decoder = _build_decoder(
            resource_kind,
            default_fillers.get(resource_kind.kind, _return_unchanged),
            assume_unschedulable=assume_unschedulable,
        )
        decoder.decode_documents(by_kind.get((resource_kind.api_version, resource_kind.kind), ()))
        parts[resource_kind.field] = tuple(sorted(decoder.values, key=get_sort_key))
        problems += decoder.problems
    unclaimed_nodes = {
        node.name: _add_joined_labels(node) for node in _find_unclaimed_nodes(parts["nodes"], parts["node_claims"])
    }
    parts["nodes"] = tuple(unclaimed_nodes.get(node.name, node) for node in parts["nodes"])
    claims = (*parts["node_claims"], *map(_build_node_claim, unclaimed_nodes.values()))
    parts["node_claims"] = tuple(sorted(claims, key=get_sort_key))
    for field in sorted(SHARED_FIELDS):
        all_names = {item.name for item in parts[field]}
        parts[field] = filter_own_objects(field, parts[field])
        left_out_names = all_names - {item.name for item in parts[field]}
        if left_out_names:
            report_left_out(field, tuple(sorted(left_out_names)))
    return apply_schedules(ClusterSnapshot(taken_at=now, problems=tuple(sorted(problems)), **parts))


def _build_decoder(
    resource_kind: ResourceKind, fill_defaults: FillDefaults, *, assume_unschedulable: bool
) -> ManifestDecoder:
    if resource_kind.field == "pods":
        return PodManifestDecoder(resource_kind, fill_defaults, assume_unschedulable=assume_unschedulable)
    return ManifestDecoder(resource_kind, fill_defaults)


def _return_unchanged(obj: object) -> object:
    return obj


def _report_old_api_version(document: ManifestDocument) -> Iterator[Problem]:
    group, _, version = document.api_version.partition("/")
    if "karpenter" in group and document.kind in _VERSIONED_KINDS and version != "v1":
        message = f"apiVersion: {document.api_version} is not supported; convert it to v1 with `joiner convert`"
        yield Problem(kind=document.kind, name=document.name or format_missing_name(), message=message)


def _find_unclaimed_nodes(nodes: Iterable[Node], claims: Iterable[NodeClaim]) -> Iterator[Node]:
    """Yield the nodes that belong to a NodePool and have no NodeClaim."""
    node_claims = tuple(claims)
    claimed_ids = {claim.provider_id for claim in node_claims} | {claim.node_name for claim in node_claims}
    for node in nodes:
        if (
            node.meta.get_label(NODEPOOL)
            and not is_of_other_provider(node.meta)
            and node.name not in claimed_ids
            and not (node.provider_id and node.provider_id in claimed_ids)
        ):
            yield node


def _add_joined_labels(node: Node) -> Node:
    """Return *node* with the labels of a registered and initialized node, unless it has one of these labels."""
    labels = dict(node.meta.labels)
    if REGISTERED in labels or INITIALIZED in labels:
        return node
    labels |= {REGISTERED: "true", INITIALIZED: "true"}
    return replace(node, meta=replace(node.meta, labels=build_pairs(labels)))


def _build_node_claim(node: Node) -> NodeClaim:
    states = ("Consolidatable", "Initialized", "Launched", "Ready", "Registered")
    return NodeClaim(
        meta=node.meta,
        node_class=NodeClassRef(name=node.meta.get_label(NODECLASS)),
        node_name=node.name,
        provider_id=node.provider_id,
        capacity=node.capacity,
        allocatable=node.allocatable,
        conditions=tuple(Condition(type=condition_type, status="True", reason="Assumed") for condition_type in states),
    )
