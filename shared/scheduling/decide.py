"""A placement -> what is done about it: claims, nominations, events."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec

from shared.model.action import Action, CreateNodeClaim, FollowUp, Kind, PatchMetadata, PublishEvent
from shared.model.cluster import Cluster
from shared.model.labels import NOMINATED_PODS, NOMINATED_UNTIL
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.objects import Pairs, condition
from shared.model.pods import Pod
from shared.model.state import StateNode, state_nodes
from shared.model.units import instant_text, parse_instant
from shared.scheduling.homes import heirs_of, homes_of, marks_of, marks_text, pod_mark
from shared.scheduling.placement import Fit, NewNode, Placement
from shared.scheduling.solve import claims

NOMINATED_FOR: Final = timedelta(minutes=2)
"""Twice the tick: a pod is bound by then, or planned anew."""
SETTLES: Final = timedelta(seconds=20)
"""So long after its node was opened a pod that finds no room there is not planned for again: places may be swapped."""
SETTLES_IN_A_BURST: Final = timedelta(seconds=60)
"""The same while other nodes have joined and are still closed."""
AGAIN: Final = timedelta(seconds=10)
SOON: Final = timedelta(seconds=5)
MOST_EVENTS: Final = 60
"""Per cycle: each is a call or three, and thousands of pods may wait for the same reason. The journal has them all."""


def decide(cluster: Cluster, placement: Placement) -> tuple[Action, ...]:
    """Answer the actions: claims first, then nominations and what pods are told, then when to look again."""
    pods = {pod.name: pod for pod in cluster.pods}
    states = {state.name: state for state in state_nodes(cluster)}
    made_for = homes_of(states.values(), cluster.taken_at)
    heirs = heirs_of(made_for, cluster.pods)
    homes = made_for | {mark: made_for[late] for mark, late in heirs.items()}
    patience = SETTLES_IN_A_BURST if any(map(_is_to_open, states.values())) else SETTLES
    last = cluster.taken_at - patience
    settling = frozenset(name for name, pod in pods.items() if _is_settling(pod, homes, last))
    placement, is_early = _without_early(placement, settling)
    created = claims(placement, cluster)
    nodes = {node.name: node for node in placement.new_nodes}
    actions: list[Action] = []
    for claim in created:
        node = nodes[claim.name]
        actions.append(CreateNodeClaim(claim=claim, pods=node.pods, why=_why(node)))
    for fit in placement.existing:
        actions.extend(_nominations(states[fit.node], fit, cluster, heirs))
    actions.extend(_farewells(placement, states, homes, heirs))
    actions.extend(islice(_events(cluster, placement, pods, states), MOST_EVENTS))
    actions.extend(_resolution(cluster))
    if placement.goes_on_at:
        why = f"time was up: planning goes on at {placement.goes_on_at}"
        actions.append(FollowUp(function="provision", after=timedelta(), why=why))
    if created or placement.existing or is_early:
        actions.append(FollowUp(function="provision", after=AGAIN, why="pods are on their way to their nodes"))
    if created:
        actions.append(FollowUp(function="lifecycle", after=SOON, why="nodes are on their way"))
    return tuple(actions)


def _is_settling(pod: Pod, homes: Mapping[str, StateNode], last: datetime) -> bool:
    """Whether *pod* waits, and its home was opened after *last*: not all may be where it will be."""
    home = homes.get(pod_mark(pod.name)) if not pod.node_name else None
    if home is None or home.claim is None or not home.is_registered():
        return False
    registered = condition(home.claim.conditions, "Registered")
    return registered is None or registered.since is None or registered.since > last


def _is_to_open(state: StateNode) -> bool:
    return state.node is not None and not state.is_registered() and not state.is_marked()


def _without_early(placement: Placement, settling: frozenset[str]) -> tuple[Placement, bool]:
    """Answer *placement* without nodes all of whose pods may still find their place, and whether there were some."""
    nodes = tuple(node for node in placement.new_nodes if not settling.issuperset(node.pods))
    return msgspec.structs.replace(placement, new_nodes=nodes), len(nodes) < len(placement.new_nodes)


def _resolution(cluster: Cluster) -> Iterator[Action]:
    """Wake the catalog function where something that a launch needs is not there yet."""
    unresolved = [one.name for one in cluster.node_classes if not one.is_current() and one.meta.deleted_at is None]
    if unresolved:
        yield FollowUp(function="catalog", after=timedelta(), why=f"not resolved yet: {', '.join(unresolved)}")
    elif cluster.catalogue is None and cluster.node_classes:
        yield FollowUp(function="catalog", after=timedelta(), why="there is no catalogue that can be read")


def _why(node: NewNode) -> str:
    choice = node.cheapest
    which = f"{choice.instance_type} {choice.capacity_type} in {choice.zone} ${choice.price_usd_per_hour:.4f}/h"
    pods, kinds = len(node.pods), len(node.instance_types)
    who, whom = ("1 pod fits", "it") if pods == 1 else (f"{pods} pods fit", "them")
    chosen = f"cheapest of {kinds} types that hold {whom}" if kinds > 1 else f"the only type that holds {whom}"
    return f"{who} no node; {chosen}: {which}"


def _nominations(state: StateNode, fit: Fit, cluster: Cluster, heirs: Mapping[str, str]) -> Iterator[Action]:
    """Protect the node, unless it is protected for another half of the time anyway; let its claim know its pods."""
    if state.claim is None:
        return
    marks = _new_marks(state, fit, heirs)
    until = ((NOMINATED_UNTIL, instant_text(cluster.taken_at + NOMINATED_FOR)),)
    is_due = _left(state.meta.annotation(NOMINATED_UNTIL), cluster) <= NOMINATED_FOR / 2
    if state.is_registered():
        if is_due:
            yield _annotated("Node", state.name, until)
        if marks:
            yield _annotated("NodeClaim", state.claim.name, marks)
    elif is_due or marks:
        yield _annotated("NodeClaim", state.claim.name, (*marks, *until))


def _farewells(
    placement: Placement, states: Mapping[str, StateNode], homes: Mapping[str, StateNode], heirs: Mapping[str, str]
) -> Iterator[Action]:
    """Let a claim that has no room for a pod of its own forget it, where another has."""
    left: dict[str, tuple[NodeClaim, set[str]]] = {}
    for fit in placement.existing:
        for mark in map(pod_mark, fit.pods if _new_marks(states[fit.node], fit, heirs) else ()):
            home = homes.get(mark)
            if home is not None and home.claim is not None and home.name != fit.node:
                left.setdefault(home.name, (home.claim, set()))[1].add(heirs.get(mark, mark))
    for _, (claim, marks) in sorted(left.items(), key=lambda item: item[0]):
        yield _annotated("NodeClaim", claim.name, ((NOMINATED_PODS, marks_text(marks_of(claim) - marks)),))


def _annotated(kind: Kind, name: str, annotations: Pairs) -> PatchMetadata:
    return PatchMetadata(kind=kind, name=name, annotations=annotations, why="pods are expected there")


def _new_marks(state: StateNode, fit: Fit, heirs: Mapping[str, str]) -> Pairs:
    """Answer the annotation that makes the node the home of its pods, () if it is, or if it is in use already.

    *heirs* stand there instead of those whose place they take.
    """
    if state.claim is None or state.is_initialized():
        return ()
    known = _known(state)
    new = {pod_mark(name) for name in fit.pods}
    marks = known - {heirs[mark] for mark in new if mark in heirs} | new
    return ((NOMINATED_PODS, marks_text(marks)),) if marks != known else ()


def _left(text: str, cluster: Cluster) -> timedelta:
    try:
        return parse_instant(text) - cluster.taken_at
    except ValueError:
        return timedelta()


def _events(
    cluster: Cluster, placement: Placement, pods: Mapping[str, Pod], states: Mapping[str, StateNode]
) -> Iterator[Action]:
    """Tell pods what was decided about them; those whose node is on its way were told when it was asked for.

    First, NodePools that nothing can be made from are told so.
    """
    pools = {pool.name: pool for pool in cluster.node_pools}
    for left in placement.without_types:
        if left.node_pool in pools:
            yield _pool_event(pools[left.node_pool], left.message, cluster)
    joined = frozenset(node.name for node in cluster.nodes)
    for verdict in placement.unschedulable:
        pod = pods.get(verdict.pod)
        if pod is not None and verdict.reason != "NotReached":
            message = f"Failed to schedule pod, {verdict.message}"
            yield _event(pod, "Warning", "FailedScheduling", message, cluster)
    for node in placement.new_nodes:
        yield from (_nominated(pods[name], f"nodeclaim/{node.name}", cluster) for name in node.pods if name in pods)
    for fit in placement.existing:
        place, known = _place(fit, joined), _known(states[fit.node])
        fresh = (name for name in fit.pods if name in pods and pod_mark(name) not in known)
        yield from (_nominated(pods[name], place, cluster) for name in fresh)


def _known(state: StateNode) -> frozenset[str]:
    """Answer the marks of the pods that a node on its way is known to be for."""
    return marks_of(state.claim) if state.claim is not None and not state.is_initialized() else frozenset()


def _place(fit: Fit, joined: frozenset[str]) -> str:
    return f"{'node' if fit.node in joined else 'nodeclaim'}/{fit.node}"


def _nominated(pod: Pod, place: str, cluster: Cluster) -> PublishEvent:
    return _event(pod, "Normal", "Nominated", f"Pod should schedule on: {place}", cluster)


def _pool_event(pool: NodePool, message: str, cluster: Cluster) -> PublishEvent:
    return PublishEvent(
        kind="NodePool",
        name=pool.name,
        uid=pool.meta.uid,
        type="Warning",
        reason="NoCompatibleInstanceTypes",
        message=message,
        at=cluster.taken_at,
    )


def _event(pod: Pod, kind: str, reason: str, message: str, cluster: Cluster) -> PublishEvent:
    return PublishEvent(
        kind="Pod",
        name=pod.meta.name,
        namespace=pod.meta.namespace,
        uid=pod.meta.uid,
        type="Warning" if kind == "Warning" else "Normal",
        reason=reason,
        message=message,
        at=cluster.taken_at,
    )
