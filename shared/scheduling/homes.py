"""Homes: which node on its way was planned for which pod, and which pods already hold a hint to theirs.

A claim remembers its pods by marks. A hint is `status.nominatedNodeName`, as kube-scheduler knows it: a pod that has
one waits like any other, but its room is kept from pods of its own priority and below.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import NOMINATED_PODS
from shared.model.nodes import NodeClaim
from shared.model.pods import Pod
from shared.model.state import StateNode, state_nodes

NEVER: Final = datetime.min.replace(tzinfo=UTC)


def pod_mark(name: str) -> str:
    """Answer the few characters by which a claim remembers the pod *name* (``shop/cart``)."""
    return sha256(name.encode()).hexdigest()[:10]


def marks_of(claim: NodeClaim) -> frozenset[str]:
    """Answer the marks of the pods that *claim* was made for."""
    text = claim.meta.annotation(NOMINATED_PODS)
    return frozenset(text.split(",")) if text else frozenset()


def marks_text(marks: Iterable[str]) -> str:
    """Answer *marks* as the annotation has them."""
    return ",".join(sorted(marks))


def homes_of(states: Iterable[StateNode], now: datetime) -> Mapping[str, StateNode]:
    """Answer, by mark, the node that is expected to take the pod; the claim that was made last, if it has several.

    A node expects its pods until it is in use and has had time to be bound to.
    """
    found: dict[str, StateNode] = {}
    expecting = (state for state in states if not state.is_initialized() or state.is_nominated(now))
    for state in sorted(expecting, key=_age):
        if state.claim is not None and not state.is_marked():
            found |= dict.fromkeys(marks_of(state.claim), state)
    return found


def awaited(cluster: Cluster) -> Mapping[str, str]:
    """Answer, by pod (``shop/cart``) that runs on a node which is going, the claim whose node is on its way for it."""
    states = state_nodes(cluster)
    leaving = [pod for state in states if state.is_marked() for pod in state.pods if pod.is_active()]
    if not leaving:
        return {}
    coming = homes_of((state for state in states if not state.is_initialized()), cluster.taken_at)
    homes = ((pod.name, coming.get(pod_mark(pod.name))) for pod in leaving)
    return {name: home.claim.name for name, home in homes if home is not None and home.claim is not None}


def _age(state: StateNode) -> tuple[datetime, str]:
    claim = state.claim
    return ((claim.meta.created_at or NEVER) if claim is not None else NEVER, state.name)


class Hints(msgspec.Struct, frozen=True, kw_only=True):
    """The hints of the pods that wait, as they stand."""

    ours: Mapping[str, str]
    """By pod: the Node that it has a hint to, and whose claim has its mark."""
    stale: frozenset[str]
    """Pods with a hint to a Node that is gone, or going."""

    def has(self, pod: Pod) -> bool:
        """Whether *pod* waits for a node of ours in spite of its hint, or because of it."""
        return pod.name in self.ours or pod.name in self.stale


def hints_of(cluster: Cluster) -> Hints:
    """Answer which of the pods that wait have a hint; those of preemption are nobody's business."""
    hinted = [pod for pod in cluster.pods if is_hinted(pod)]
    if not hinted:
        return Hints(ours={}, stale=frozenset())
    names = {pod.nominated_node_name for pod in hinted}
    states = [state for state in state_nodes(cluster) if state.node is not None and not state.is_marked()]
    living = {state.node.name: state.claim for state in states if state.node is not None and state.node.name in names}
    marks = {name: marks_of(claim) for name, claim in living.items() if claim is not None}
    ours = {
        pod.name: pod.nominated_node_name
        for pod in hinted
        if pod_mark(pod.name) in marks.get(pod.nominated_node_name, ())
    }
    return Hints(ours=ours, stale=frozenset(pod.name for pod in hinted if pod.nominated_node_name not in living))


def is_hinted(pod: Pod) -> bool:
    """Whether *pod* would wait for a node that we may make, were it not for its hint."""
    return bool(pod.nominated_node_name) and msgspec.structs.replace(pod, nominated_node_name="").is_provisionable()
