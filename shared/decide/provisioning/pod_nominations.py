"""Nominations of pods for nodes: annotations that keep the capacity of a node for pods that are not bound yet."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import NOMINATED_PODS, NOMINATED_UNTIL
from shared.model.core.metadata import Pairs
from shared.model.core.units import format_instant, parse_instant
from shared.model.decisions.action import Action, Kind, PatchMetadata
from shared.model.decisions.placement import ExistingNodePlacement, Placement
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.nominations import (
    compute_pod_digest,
    format_nominated_pods,
    parse_nominated_pods,
)
from shared.state.state_node import StateNode

NOMINATION_TTL: Final = timedelta(minutes=2)
"""Twice the provisioning interval: by then a pod is bound, or it is scheduled again."""


def nominate_pods(
    state: StateNode, node_placement: ExistingNodePlacement, cluster: ClusterSnapshot, predecessors: Mapping[str, str]
) -> Iterator[Action]:
    """Yield patches that nominate the node for its pods and record the pods on its NodeClaim.

    A node that stays nominated for at least half of the TTL is not patched.
    """
    if state.claim is None:
        return
    nominated_pods = _build_nominated_pods(state, node_placement, predecessors)
    until = ((NOMINATED_UNTIL, format_instant(cluster.taken_at + NOMINATION_TTL)),)
    is_due = _parse_remaining_time(state.meta.get_annotation(NOMINATED_UNTIL), cluster) <= NOMINATION_TTL / 2
    if state.is_registered():
        if is_due:
            yield _build_annotation_patch("Node", state.name, until)
        if nominated_pods:
            yield _build_annotation_patch("NodeClaim", state.claim.name, nominated_pods)
    elif is_due or nominated_pods:
        yield _build_annotation_patch("NodeClaim", state.claim.name, (*nominated_pods, *until))


def remove_stale_nominations(
    placement: Placement,
    states: Mapping[str, StateNode],
    node_by_digest: Mapping[str, StateNode],
    predecessors: Mapping[str, str],
) -> Iterator[Action]:
    """Remove pods from the nominated pods of a NodeClaim that has no room for them if another node has."""
    moved_digests: dict[str, tuple[NodeClaim, set[str]]] = {}
    for node_placement in placement.existing:
        for digest in map(
            compute_pod_digest,
            node_placement.pods
            if _build_nominated_pods(states[node_placement.node], node_placement, predecessors)
            else (),
        ):
            nominated_node = node_by_digest.get(digest)
            if (
                nominated_node is not None
                and nominated_node.claim is not None
                and nominated_node.name != node_placement.node
            ):
                moved_digests.setdefault(nominated_node.name, (nominated_node.claim, set()))[1].add(
                    predecessors.get(digest, digest)
                )
    for _, (claim, digests) in sorted(moved_digests.items(), key=lambda item: item[0]):
        yield _build_annotation_patch(
            "NodeClaim", claim.name, ((NOMINATED_PODS, format_nominated_pods(parse_nominated_pods(claim) - digests)),)
        )


def _build_annotation_patch(kind: Kind, name: str, annotations: Pairs) -> PatchMetadata:
    return PatchMetadata(kind=kind, name=name, annotations=annotations, message="nominated pods are expected")


def _build_nominated_pods(
    state: StateNode, node_placement: ExistingNodePlacement, predecessors: Mapping[str, str]
) -> Pairs:
    """Return the annotation that nominates the node for its pods; () if nothing changes or the node is initialized.

    Digests of *predecessors* are replaced by the digests of their successor pods.
    """
    if state.claim is None or state.is_initialized():
        return ()
    current_digests = get_nominated_digests(state)
    new_digests = {compute_pod_digest(name) for name in node_placement.pods}
    digests = current_digests - {predecessors[mark] for mark in new_digests if mark in predecessors} | new_digests
    return ((NOMINATED_PODS, format_nominated_pods(digests)),) if digests != current_digests else ()


def _parse_remaining_time(text: str, cluster: ClusterSnapshot) -> timedelta:
    try:
        return parse_instant(text) - cluster.taken_at
    except ValueError:
        return timedelta()


def get_nominated_digests(state: StateNode) -> frozenset[str]:
    """Return the digests of the pods for which an uninitialized node is nominated."""
    return parse_nominated_pods(state.claim) if state.claim is not None and not state.is_initialized() else frozenset()
