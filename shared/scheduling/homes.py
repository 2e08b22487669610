"""Homes: which node on its way was planned for which pod, and which pods already hold a hint to theirs.

A claim remembers its pods by marks. A pod that is evicted comes back by another name; but a ReplicaSet and a Job call
all their pods by their own name and five random letters, so half of a mark says of what kin a pod is: whoever waits and
has no home of its own inherits that of one of its kin that is there no more.

A hint is `status.nominatedNodeName`, as kube-scheduler knows it: a pod that has one waits like any other, but its room
is kept from pods of its own priority and below.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha256
from typing import Final

import msgspec

from shared.model.cluster import Cluster
from shared.model.labels import NOMINATED_PODS
from shared.model.nodes import NodeClaim
from shared.model.objects import condition
from shared.model.pods import Pod
from shared.model.state import StateNode, state_nodes

NEVER: Final = datetime.min.replace(tzinfo=UTC)
OPENED: Final = timedelta(minutes=5)
"""So long after it was initialized a node expects those whose predecessors it was made for: drains take their time."""
HALF: Final = 8
GENERATED: Final = re.compile(r"-[bcdfghjklmnpqrstvwxz2456789]{5}$")
"""What Kubernetes appends to the name of whoever makes a pod."""


@lru_cache(maxsize=1 << 15)
def pod_mark(name: str) -> str:
    """Answer the few characters by which a claim remembers the pod *name* (``shop/cart``): half for its kin."""
    return _digest(GENERATED.sub("", name)) + _digest(name)


def kin_of(mark: str) -> str:
    """Answer the half of *mark* that all pods have which one ReplicaSet or Job made."""
    return mark[:HALF]


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:HALF]


def marks_of(claim: NodeClaim) -> frozenset[str]:
    """Answer the marks of the pods that *claim* was made for."""
    text = claim.meta.annotation(NOMINATED_PODS)
    return frozenset(text.split(",")) if text else frozenset()


def marks_text(marks: Iterable[str]) -> str:
    """Answer *marks* as the annotation has them."""
    return ",".join(sorted(marks))


def homes_of(states: Iterable[StateNode], now: datetime, pods: Iterable[Pod] = ()) -> dict[str, StateNode]:
    """Answer, by mark, the node that is expected to take the pod; the claim that was made last, if it has several.

    A node expects its pods until it is in use and has had time to be bound to; then heirs among *pods*, of which all
    that there are have to be named.
    """
    found: dict[str, StateNode] = {}
    for state in sorted((one for one in states if expects(one, now)), key=_age):
        if state.claim is not None and not state.is_marked():
            found |= dict.fromkeys(marks_of(state.claim), state)
    return found | {mark: found[late] for mark, late in heirs_of(found, pods).items()}


def expects(state: StateNode, now: datetime) -> bool:
    """Whether pods that *state* was made for may still come; a nomination is no reason, as it is what comes of this."""
    initialized = condition(state.claim.conditions, "Initialized") if state.claim is not None else None
    since = initialized.since if initialized is not None else None
    return not state.is_initialized() or (since is not None and now - since < OPENED)


def heirs_of(marks: Iterable[str], pods: Iterable[Pod]) -> Mapping[str, str]:
    """Answer, by the mark of a pod that waits and has none of *marks*, the one that it inherits: its pod is no more.

    Each is inherited once. What was made by hand has no kin, and what has a fixed name is its own heir.
    """
    left = frozenset(marks)
    if not left:
        return {}
    there = {pod_mark(pod.name): pod for pod in pods if pod.is_active()}
    vacant: dict[str, list[str]] = {}
    for mark in sorted(left - there.keys(), reverse=True):
        vacant.setdefault(kin_of(mark), []).append(mark)
    heirs = (mark for mark, pod in sorted(there.items(), key=lambda item: item[0]) if _may_inherit(pod))
    return {mark: vacant[kin_of(mark)].pop() for mark in heirs if mark not in left and vacant.get(kin_of(mark))}


def _may_inherit(pod: Pod) -> bool:
    return not pod.node_name and bool(pod.meta.owners)


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
    kins = {
        state.node.name: frozenset(map(kin_of, marks.get(state.node.name, ())))
        for state in states
        if state.node is not None and state.node.name in living and expects(state, cluster.taken_at)
    }
    ours = {
        pod.name: pod.nominated_node_name
        for pod in hinted
        if pod_mark(pod.name) in marks.get(pod.nominated_node_name, ())
        or kin_of(pod_mark(pod.name)) in kins.get(pod.nominated_node_name, ())
    }
    return Hints(ours=ours, stale=frozenset(pod.name for pod in hinted if pod.nominated_node_name not in living))


def is_hinted(pod: Pod) -> bool:
    """Whether *pod* would wait for a node that we may make, were it not for its hint."""
    return bool(pod.nominated_node_name) and msgspec.structs.replace(pod, nominated_node_name="").is_provisionable()
