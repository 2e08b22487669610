"""All that the lifecycle does about a snapshot: every step that is possible now, for every machine."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from shared.lifecycle.classes import keep
from shared.lifecycle.consistency import check
from shared.lifecycle.events import about
from shared.lifecycle.farewell import leave_node
from shared.lifecycle.followups import SOONEST, look_again, soonest
from shared.lifecycle.garbage import collect
from shared.lifecycle.health import remember
from shared.lifecycle.held import hold
from shared.lifecycle.hydration import hydrate
from shared.lifecycle.liveness import depart
from shared.lifecycle.machines import Change, Machine, Step, View, follow, machines_of, view_of
from shared.lifecycle.podevents import consolidate, notice_pods
from shared.lifecycle.pools import describe
from shared.lifecycle.refused import refuse
from shared.lifecycle.registration import initialize, launch, register
from shared.lifecycle.reserved import follow_reservations
from shared.lifecycle.stamps import stamp
from shared.lifecycle.statuses import heed
from shared.lifecycle.tagging import tag
from shared.lifecycle.termination import leave
from shared.model.action import (
    Action,
    FollowUp,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    RegisterNode,
    TerminateInstances,
)
from shared.model.cluster import Cluster
from shared.model.conditions import (
    CLAIM_ROOTS,
    READY,
    conditions_json,
    restamped,
    rooted,
    same_conditions,
    transitions,
)
from shared.model.labels import COMMAND, NODEPOOL, TERMINATION_FINALIZER
from shared.model.nodes import NodeClaim
from shared.model.objects import condition, is_true
from shared.model.state import pods_by_node, state_nodes
from shared.model.units import instant_text

NO_HASHES: Final[Mapping[str, str]] = MappingProxyType({})
NO_PLACES: Final[Mapping[str, tuple[NominatePod, ...]]] = MappingProxyType({})
NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


def decide(
    cluster: Cluster,
    *,
    cluster_name: str = "",
    hashes: Mapping[str, str] = NO_HASHES,
    closed: frozenset[str] = frozenset(),
    places: Mapping[str, tuple[NominatePod, ...]] = NO_PLACES,
    awaited: Mapping[str, str] = NOBODY,
) -> tuple[Action, ...]:
    """Answer what is to be done now, in order; *hashes* are those of the NodePools' templates, by the pools' names.

    Of one object at most one action carries a resource version; what precedes it in the answer does not touch it. Nodes
    are opened first, with *places* kept for their pods; those that are *closed*, by name, in a later cycle. Pods that
    leave their node wait for the claim by which they are *awaited*.
    """
    view = view_of(cluster, cluster_name, closed, places, awaited)
    actions: list[Action] = []
    machines = tuple(machines_of(cluster))
    for machine in machines:
        actions.extend(advance(machine, view))
    actions.extend(follow_reservations(machines, view))
    actions.extend(heed(machines, view))
    actions.extend(_unclaimed(view))
    actions.extend(collect(view))
    states = state_nodes(cluster)
    claims = sorted(cluster.node_claims, key=lambda claim: claim.name)
    for _, pool in sorted(view.pools.items()):
        actions.extend((*describe(pool, states, view), *remember(pool, view)))
        own = [one for one in claims if one.meta.label(NODEPOOL) == pool.name]
        actions.extend(stamp("NodePool", pool.meta, hashes.get(pool.name, ""), own))
    for node_class in sorted(cluster.node_classes, key=lambda one: one.name):
        own = [one for one in claims if one.node_class.name == node_class.name]
        actions.extend(keep(node_class, own, view))
        # A claim gets the hash of its class with its instance.
        launched = [one for one in own if one.provider_id]
        actions.extend(stamp("EC2NodeClass", node_class.meta, node_class.hashed, launched))
    actions.extend(refuse(view))
    actions.sort(key=lambda action: not isinstance(action, RegisterNode))
    return soonest(_together(actions))


def advance(machine: Machine, view: View) -> tuple[Action, ...]:
    """Take every step of one machine that is possible now; its status is written once, between them."""
    claim = machine.claim
    if claim.is_deleting():
        steps: tuple[Step, ...] = (hold, leave)
    elif TERMINATION_FINALIZER not in claim.meta.finalizers:
        return _protect(claim)
    else:
        steps = LIVING
    change = follow(steps, machine, view)
    if claim.is_deleting() and claim.meta.annotation(COMMAND) and not _has_ended(claim):
        wake = FollowUp(function="disrupt", after=SOONEST, why=f"{claim.name} comes to nothing")
        change = msgspec.structs.replace(change, after=(*change.after, wake))
    released = any(isinstance(one, PatchMetadata) and one.finalizers is not None for one in change.after)
    status = () if released and claim.is_deleting() else write_status(claim, change.claim, view)
    return (*change.before, *status, *change.after)


def _has_ended(claim: NodeClaim) -> bool:
    """Whether it was fit for use, or its instance ends already."""
    return claim.is_initialized() or is_true(claim.conditions, "InstanceTerminating")


def write_status(old: NodeClaim, new: NodeClaim, view: View) -> tuple[Action, ...]:
    """Answer the patch from one status to the other, and an event for each condition of Ready that turned."""
    generation = new.meta.generation
    conditions = restamped(new.conditions, CLAIM_ROOTS, generation)
    conditions = rooted(conditions, CLAIM_ROOTS, view.now, generation, new.meta.created_at)
    status: dict[str, Any] = {}
    if not same_conditions(conditions, old.conditions):
        status["conditions"] = conditions_json(conditions)
    if new.last_pod_event_at is not None and new.last_pod_event_at != old.last_pod_event_at:
        status["lastPodEventTime"] = instant_text(new.last_pod_event_at)
    if new.node_name != old.node_name:
        status["nodeName"] = new.node_name
    if not status:
        return ()
    said = (
        about("NodeClaim", new.meta, one.type, f"{one.type} was {was} and is {one.status}: {one.reason}", view.now)
        for one, was in transitions(old.conditions, conditions)
        if one.type in (*CLAIM_ROOTS, READY)
    )
    body = msgspec.json.encode(status).decode()
    version = new.meta.resource_version
    return (PatchStatus(kind="NodeClaim", name=new.name, resource_version=version, status=body), *said)


def progress(machine: Machine, view: View) -> Change:
    """Wake whoever has the next step of a claim that is not fit for use yet."""
    claim = machine.claim
    if not claim.provider_id:
        wake = FollowUp(function="provision", after=SOONEST, why=f"{claim.name} is not launched")
        return Change(claim=claim, after=(wake,))
    if is_true(claim.conditions, "Initialized"):
        return Change(claim=claim)
    known = (condition(claim.conditions, name) for name in CLAIM_ROOTS)
    moved = [one.since for one in known if one is not None and one.since is not None]
    since = max(moved, default=claim.meta.created_at or view.now)
    return Change(claim=claim, after=look_again(since, view.now, f"{claim.name} is not initialized"))


LIVING: Final[tuple[Step, ...]] = (
    launch,
    register,
    initialize,
    check,
    notice_pods,
    consolidate,
    hydrate,
    tag,
    depart,
    progress,
)


def _protect(claim: NodeClaim) -> tuple[Action, ...]:
    protection = PatchMetadata(
        kind="NodeClaim",
        name=claim.name,
        resource_version=claim.meta.resource_version,
        finalizers=(*claim.meta.finalizers, TERMINATION_FINALIZER),
        why="it must not go before its instance",
    )
    return (protection, FollowUp(function="lifecycle", after=SOONEST, why=f"{claim.name} is new"))


def _unclaimed(view: View) -> tuple[Action, ...]:
    cluster = view.cluster
    claimed = {claim.provider_id for claim in cluster.node_claims} | {""}
    named = {claim.node_name for claim in cluster.node_claims}
    pods = pods_by_node(sorted(cluster.pods, key=lambda pod: (pod.name, pod.meta.uid)))
    return tuple(
        action
        for node in sorted(cluster.nodes, key=lambda node: node.name)
        if (node.provider_id not in claimed if node.provider_id else node.name not in named)
        for action in leave_node(node, pods.get(node.name, ()), view)
    )


def _together(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Terminate all instances that end for the same reason with one call, where the first of them stood."""
    some = tuple(actions)
    ids: dict[str, set[str]] = {}
    for action in some:
        if isinstance(action, TerminateInstances):
            ids.setdefault(action.why, set()).update(action.instance_ids)
    told: set[str] = set()
    merged: list[Action] = []
    for action in some:
        if not isinstance(action, TerminateInstances):
            merged.append(action)
        elif action.why not in told:
            told.add(action.why)
            merged.append(TerminateInstances(instance_ids=tuple(sorted(ids[action.why])), why=action.why))
    return tuple(merged)
