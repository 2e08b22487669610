"""A placement -> what is done about it: claims, nominations, events."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import islice
from typing import Final

from shared.model.action import Action, CreateNodeClaim, FollowUp, Kind, PatchMetadata, PublishEvent
from shared.model.cluster import Cluster
from shared.model.labels import NOMINATED_UNTIL
from shared.model.pods import Pod
from shared.model.state import StateNode, state_nodes
from shared.model.units import instant_text, parse_instant
from shared.scheduling.placement import Fit, NewNode, Placement
from shared.scheduling.solve import claims

NOMINATED_FOR: Final = timedelta(minutes=2)
"""Twice the tick: a pod is bound by then, or planned anew."""
AGAIN: Final = timedelta(seconds=10)
SOON: Final = timedelta(seconds=5)
MOST_EVENTS: Final = 60
"""Per cycle: each is a call or three, and thousands of pods may wait for the same reason. The journal has them all."""


def decide(cluster: Cluster, placement: Placement) -> tuple[Action, ...]:
    """Answer the actions: claims first, then nominations and what pods are told, then when to look again."""
    pods = {pod.name: pod for pod in cluster.pods}
    created = claims(placement, cluster)
    nodes = {node.name: node for node in placement.new_nodes}
    actions: list[Action] = []
    for claim in created:
        node = nodes[claim.name]
        actions.append(CreateNodeClaim(claim=claim, pods=node.pods, why=_why(node)))
    states = {state.name: state for state in state_nodes(cluster)}
    for fit in placement.existing:
        actions.extend(_nominations(states[fit.node], cluster))
    actions.extend(islice(_events(cluster, placement, pods), MOST_EVENTS))
    actions.extend(_resolution(cluster))
    if created or placement.existing:
        actions.append(FollowUp(function="provision", after=AGAIN, why="pods are on their way to their nodes"))
    if created:
        actions.append(FollowUp(function="lifecycle", after=SOON, why="nodes are on their way"))
    return tuple(actions)


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
    return f"{len(node.pods)} pods fit no node; cheapest of {len(node.instance_types)} types that hold them: {which}"


def _nominations(state: StateNode, cluster: Cluster) -> Iterator[Action]:
    """Protect the node, unless it is protected for another half of the time anyway."""
    meta = state.meta
    text = meta.annotation(NOMINATED_UNTIL)
    until = cluster.taken_at + NOMINATED_FOR
    if state.claim is None or (text and _left(text, cluster) > NOMINATED_FOR / 2):
        return
    kind: Kind = "Node" if state.is_registered() else "NodeClaim"
    annotations = ((NOMINATED_UNTIL, instant_text(until)),)
    yield PatchMetadata(kind=kind, name=meta.name, annotations=annotations, why="pods are expected there")


def _left(text: str, cluster: Cluster) -> timedelta:
    try:
        return parse_instant(text) - cluster.taken_at
    except ValueError:
        return timedelta()


def _events(cluster: Cluster, placement: Placement, pods: dict[str, Pod]) -> Iterator[Action]:
    joined = frozenset(node.name for node in cluster.nodes)
    for verdict in placement.unschedulable:
        pod = pods.get(verdict.pod)
        if pod is not None:
            message = f"Failed to schedule pod, {verdict.message}"
            yield _event(pod, "Warning", "FailedScheduling", message, cluster)
    for node in placement.new_nodes:
        yield from (_nominated(pods[name], f"nodeclaim/{node.name}", cluster) for name in node.pods if name in pods)
    for fit in placement.existing:
        place = _place(fit, joined)
        yield from (_nominated(pods[name], place, cluster) for name in fit.pods if name in pods)


def _place(fit: Fit, joined: frozenset[str]) -> str:
    return f"{'node' if fit.node in joined else 'nodeclaim'}/{fit.node}"


def _nominated(pod: Pod, place: str, cluster: Cluster) -> PublishEvent:
    return _event(pod, "Normal", "Nominated", f"Pod should schedule on: {place}", cluster)


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
