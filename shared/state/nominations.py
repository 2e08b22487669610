"""Nominations: the node that is expected to take a pod, and pods with a nominated node name in their status.

A NodeClaim stores digests of the pods that it was created for. An evicted pod is recreated under another name. A
ReplicaSet or a Job gives all its pods its own name and a random suffix of five characters, so half of the digest (the
owner digest) identifies the owner. A pending pod without a nomination takes over the nomination of a pod of the same
owner that no longer exists: it is the successor pod.

The nominated node name is `status.nominatedNodeName`, which kube-scheduler uses: a pod that has it is pending like any
other pod, but its resources are reserved against pods of the same or a lower priority.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from shared.model.core.labels import NOMINATED_PODS
from shared.model.core.metadata import find_condition
from shared.model.core.units import EARLIEST_INSTANT
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

SUCCESSOR_TIMEOUT: Final = timedelta(minutes=5)
"""Time after its initialization in which a node expects successors of its nominated pods; drains take some time."""
DIGEST_LENGTH: Final = 8
GENERATED_SUFFIX: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""The suffix that Kubernetes appends to the name of an owner to generate the name of a pod."""


@lru_cache(maxsize=1 << 15)
def compute_pod_digest(name: str) -> str:
    """Return the digest of the pod *name* (``shop/cart``) for the NodeClaim; the first half is the owner digest."""
    return _compute_digest(GENERATED_SUFFIX.sub("", name)) + _compute_digest(name)


def get_owner_digest(digest: str) -> str:
    """Return the half of *digest* that is equal for all pods of one ReplicaSet or Job."""
    return digest[:DIGEST_LENGTH]


def _compute_digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def parse_nominated_pods(claim: NodeClaim) -> frozenset[str]:
    """Return the digests of the pods that *claim* was created for."""
    text = claim.meta.get_annotation(NOMINATED_PODS)
    return frozenset(text.split(",")) if text else frozenset()


def format_nominated_pods(digests: Iterable[str]) -> str:
    """Return *digests* in the form of the annotation."""
    return ",".join(sorted(digests))


def build_nominations(states: Iterable[StateNode], now: datetime, pods: Iterable[Pod] = ()) -> dict[str, StateNode]:
    """Return the node that is expected to take each pod, by pod digest; the newest NodeClaim if a pod has several.

    A node expects its pods until it is initialized and kube-scheduler has had time to bind them. Successor pods among
    *pods* are included; *pods* must then contain all pods of the cluster.
    """
    node_by_digest: dict[str, StateNode] = {}
    for state in sorted((state_node for state_node in states if is_expecting_pods(state_node, now)), key=_get_age_key):
        if state.claim is not None and not state.is_marked_for_deletion():
            node_by_digest |= dict.fromkeys(parse_nominated_pods(state.claim), state)
    return node_by_digest | {
        mark: node_by_digest[late] for mark, late in match_successor_pods(node_by_digest, pods).items()
    }


def is_expecting_pods(state: StateNode, now: datetime) -> bool:
    """Return whether pods that *state* was created for can still arrive.

    The nomination annotation of the node does not matter, because it is a result of this function.
    """
    initialized = find_condition(state.claim.conditions, "Initialized") if state.claim is not None else None
    since = initialized.since if initialized is not None else None
    return not state.is_initialized() or (since is not None and now - since < SUCCESSOR_TIMEOUT)


def match_successor_pods(digests: Iterable[str], pods: Iterable[Pod]) -> Mapping[str, str]:
    """Return the digest of the predecessor, by the digest of a pending pod that has no nomination among *digests*.

    The predecessor is a pod that no longer exists. Each has one successor at most. A pod without an owner has no
    successor, and a pod with a fixed name succeeds itself.
    """
    nominated_digests = frozenset(digests)
    if not nominated_digests:
        return {}
    pod_by_digest = {compute_pod_digest(pod.name): pod for pod in pods if pod.is_active()}
    vacant_digests: dict[str, list[str]] = {}
    for digest in sorted(nominated_digests - pod_by_digest.keys(), reverse=True):
        vacant_digests.setdefault(get_owner_digest(digest), []).append(digest)
    successors = (mark for mark, pod in sorted(pod_by_digest.items(), key=lambda item: item[0]) if _can_inherit(pod))
    return {
        mark: vacant_digests[get_owner_digest(mark)].pop()
        for mark in successors
        if mark not in nominated_digests and vacant_digests.get(get_owner_digest(mark))
    }


def _can_inherit(pod: Pod) -> bool:
    return not pod.node_name and bool(pod.meta.owners)


def find_replacement_claims(cluster_state: ClusterState) -> Mapping[str, str]:
    """Return the in-flight NodeClaim of each pod (``shop/cart``) that runs on a node which is being removed."""
    states = cluster_state.nodes
    leaving_pods = [pod for state in states if state.is_marked_for_deletion() for pod in state.pods if pod.is_active()]
    if not leaving_pods:
        return {}
    node_by_digest = build_nominations(
        (state for state in states if not state.is_initialized()), cluster_state.taken_at
    )
    nominations = ((pod.name, node_by_digest.get(compute_pod_digest(pod.name))) for pod in leaving_pods)
    return {name: home.claim.name for name, home in nominations if home is not None and home.claim is not None}


def _get_age_key(state: StateNode) -> tuple[datetime, str]:
    claim = state.claim
    return ((claim.meta.created_at or EARLIEST_INSTANT) if claim is not None else EARLIEST_INSTANT, state.name)


class NominatedNodeNames(msgspec.Struct, frozen=True, kw_only=True):
    """The nominated node names of pending pods."""

    node_by_pod: Mapping[str, str]
    """The nominated Node by pod, where the NodeClaim of the Node has the digest of the pod."""
    stale_pods: frozenset[str]
    """Pods whose nominated Node is gone or is being removed."""

    def has_pod(self, pod: Pod) -> bool:
        """Return whether *pod* still needs provisioning although it has a nominated node name."""
        has_names = self.node_by_pod or self.stale_pods
        return bool(has_names) and (pod.name in self.node_by_pod or pod.name in self.stale_pods)


def find_nominated_node_names(cluster_state: ClusterState) -> NominatedNodeNames:
    """Return the nominated node names of pending pods, without those that preemption has set."""
    nominated_pods = [pod for pod in cluster_state.snapshot.pods if is_pending_with_nomination(pod)]
    if not nominated_pods:
        return NominatedNodeNames(node_by_pod={}, stale_pods=frozenset())
    node_names = {pod.nominated_node_name for pod in nominated_pods}
    states = [state for state in cluster_state.nodes if state.node is not None and not state.is_marked_for_deletion()]
    claim_by_node = {
        state.node.name: state.claim for state in states if state.node is not None and state.node.name in node_names
    }
    digests_by_node = {name: parse_nominated_pods(claim) for name, claim in claim_by_node.items() if claim is not None}
    owner_digests_by_node = {
        state.node.name: frozenset(map(get_owner_digest, digests_by_node.get(state.node.name, ())))
        for state in states
        if state.node is not None
        and state.node.name in claim_by_node
        and is_expecting_pods(state, cluster_state.taken_at)
    }
    node_by_pod = {
        pod.name: pod.nominated_node_name
        for pod in nominated_pods
        if compute_pod_digest(pod.name) in digests_by_node.get(pod.nominated_node_name, ())
        or get_owner_digest(compute_pod_digest(pod.name)) in owner_digests_by_node.get(pod.nominated_node_name, ())
    }
    return NominatedNodeNames(
        node_by_pod=node_by_pod,
        stale_pods=frozenset(pod.name for pod in nominated_pods if pod.nominated_node_name not in claim_by_node),
    )


def is_pending_with_nomination(pod: Pod) -> bool:
    """Return whether *pod* would be provisionable without its nominated node name."""
    return bool(pod.nominated_node_name) and is_provisionable(msgspec.structs.replace(pod, nominated_node_name=""))
