"""Decides all lifecycle actions for a snapshot: every step that is possible now, for every NodeClaim."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from shared.decide.common.events import build_event
from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY, keep_earliest_requeues, requeue_in_progress
from shared.decide.lifecycle.gang_nodes import decide_gang_nodes
from shared.decide.lifecycle.interruption.instance_status import handle_instance_statuses
from shared.decide.lifecycle.node_claim.capacity_reservations import reconcile_capacity_reservations
from shared.decide.lifecycle.node_claim.consistency import check_consistency
from shared.decide.lifecycle.node_claim.consolidatable_condition import record_pod_events, update_consolidatable
from shared.decide.lifecycle.node_claim.early_end import record_early_ends, report_early_end
from shared.decide.lifecycle.node_claim.garbage_collection import collect_garbage
from shared.decide.lifecycle.node_claim.hash_annotations import update_hash_annotations
from shared.decide.lifecycle.node_claim.hydration import add_node_class_label
from shared.decide.lifecycle.node_claim.liveness import delete_failed_claim
from shared.decide.lifecycle.node_claim.registration_and_initialization import (
    initialize_node,
    mark_launched,
    register_node,
)
from shared.decide.lifecycle.node_claim.tagging import tag_instance
from shared.decide.lifecycle.reconcile_context import (
    LifecycleContext,
    LifecycleStep,
    StepResult,
    build_lifecycle_context,
    run_steps,
)
from shared.decide.lifecycle.status.launch_failures import record_launch_failures
from shared.decide.lifecycle.status.node_pool import build_pool_status
from shared.decide.lifecycle.status.registration_health import record_registration_history
from shared.decide.lifecycle.status.unreadable_objects import report_unreadable_objects
from shared.decide.lifecycle.status.zonal_shift import describe_zonal_shifts
from shared.decide.lifecycle.termination.finalizers import terminate_unclaimed_node
from shared.decide.lifecycle.termination.missing_node_pools import wait_for_node_pools
from shared.decide.lifecycle.termination.node_class import reconcile_node_class_finalizer
from shared.decide.lifecycle.termination.termination import terminate_claim
from shared.model.core.conditions import (
    NODE_CLAIM_ROOTS,
    READY,
    encode_conditions,
    find_transitions,
    has_equal_conditions,
    with_current_root_conditions,
)
from shared.model.core.labels import COMMAND, NODEPOOL, TERMINATION_FINALIZER
from shared.model.core.metadata import find_condition, is_condition_true
from shared.model.core.units import format_instant
from shared.model.decisions.action import (
    Action,
    FollowUp,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    RegisterNode,
    TerminateInstances,
)
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.cluster_state import ClusterState
from shared.state.node_claim_state import NodeClaimState, sort_pods

NO_HASHES: Final[Mapping[str, str]] = MappingProxyType({})
NO_NOMINATIONS: Final[Mapping[str, tuple[NominatePod, ...]]] = MappingProxyType({})
NO_REPLACEMENTS: Final[Mapping[str, str]] = MappingProxyType({})


def decide_lifecycle(
    cluster_state: ClusterState,
    *,
    cluster_name: str = "",
    hashes: Mapping[str, str] = NO_HASHES,
    closed_nodes: frozenset[str] = frozenset(),
    nominations_by_node: Mapping[str, tuple[NominatePod, ...]] = NO_NOMINATIONS,
    replacement_claim_by_pod: Mapping[str, str] = NO_REPLACEMENTS,
) -> tuple[Action, ...]:
    """Return the lifecycle actions to execute now, in order.

    *hashes* are the hashes of the NodePools' templates, by NodePool name. At most one action per object carries a
    resource version; the actions before it do not touch the object. Nodes are registered first, with
    *nominations_by_node* for their pods; the nodes named *closed_nodes* are registered in a later cycle. Pods are not
    evicted before the replacement NodeClaim in *replacement_claim_by_pod* is initialized.
    """
    context = build_lifecycle_context(
        cluster_state, cluster_name, closed_nodes, nominations_by_node, replacement_claim_by_pod
    )
    actions: list[Action] = []
    cluster, claim_states = cluster_state.snapshot, cluster_state.claim_states
    for claim_state in claim_states:
        actions.extend(reconcile_node_claim(claim_state, context))
    actions.extend(reconcile_capacity_reservations(claim_states, context))
    actions.extend(handle_instance_statuses(claim_states, context))
    actions.extend(_terminate_unclaimed_nodes(context))
    actions.extend(collect_garbage(context))
    claims = sorted(cluster.node_claims, key=lambda claim: claim.name)
    for _, pool in sorted(context.cluster_state.node_pools.items()):
        actions.extend((*build_pool_status(pool, context), *record_registration_history(pool, context)))
        actions.extend(record_early_ends(pool, context))
        own_claims = [claim for claim in claims if claim.meta.get_label(NODEPOOL) == pool.name]
        actions.extend(update_hash_annotations("NodePool", pool.meta, hashes.get(pool.name, ""), own_claims))
    for node_class in sorted(cluster.node_classes, key=lambda node_class: node_class.name):
        own_claims = [claim for claim in claims if claim.node_class.name == node_class.name]
        actions.extend(reconcile_node_class_finalizer(node_class, own_claims, context))
        actions.extend(record_launch_failures(node_class, context))
        # A NodeClaim gets the hash of its node class when it is launched.
        launched = [claim for claim in own_claims if claim.provider_id]
        actions.extend(update_hash_annotations("EC2NodeClass", node_class.meta, node_class.spec_hash, launched))
    actions.extend(report_unreadable_objects(context))
    actions.extend(describe_zonal_shifts(cluster_state))
    actions.extend(decide_gang_nodes(cluster_state))
    actions.sort(key=lambda action: not isinstance(action, RegisterNode))
    return keep_earliest_requeues(_merge_terminations(actions))


def reconcile_node_claim(claim_state: NodeClaimState, context: LifecycleContext) -> tuple[Action, ...]:
    """Return the actions of all steps that are possible now for one NodeClaim.

    Its status is written once, in between.
    """
    claim = claim_state.claim
    if claim.is_deleting():
        steps: tuple[LifecycleStep, ...] = (report_early_end, wait_for_node_pools, terminate_claim)
    elif TERMINATION_FINALIZER not in claim.meta.finalizers:
        return _add_termination_finalizer(claim)
    else:
        steps = LIVING_CLAIM_STEPS
    result = run_steps(steps, claim_state, context)
    if claim.is_deleting() and claim.meta.get_annotation(COMMAND) and not _is_past_replacement(claim):
        follow_up = FollowUp(function="disrupt", after=MIN_REQUEUE_DELAY, message=f"{claim.name} will be deleted")
        result = msgspec.structs.replace(result, after=(*result.after, follow_up))
    removes_finalizers = any(
        isinstance(action, PatchMetadata) and action.finalizers is not None for action in result.after
    )
    status = () if removes_finalizers and claim.is_deleting() else build_status_actions(claim, result.claim, context)
    return (*result.before, *status, *result.after)


def _is_past_replacement(claim: NodeClaim) -> bool:
    """Return whether the NodeClaim was initialized, or its instance is terminating already."""
    return claim.is_initialized() or is_condition_true(claim.conditions, "InstanceTerminating")


def build_status_actions(old: NodeClaim, new: NodeClaim, context: LifecycleContext) -> tuple[Action, ...]:
    """Return the patch from the *old* status to the *new* one, and an event for each changed condition of Ready."""
    conditions = with_current_root_conditions(new.conditions, NODE_CLAIM_ROOTS, context.now, new.meta)
    status: dict[str, Any] = {}
    if not has_equal_conditions(conditions, old.conditions):
        status["conditions"] = encode_conditions(conditions)
    if new.last_pod_event_at is not None and new.last_pod_event_at != old.last_pod_event_at:
        status["lastPodEventTime"] = format_instant(new.last_pod_event_at)
    if new.node_name != old.node_name:
        status["nodeName"] = new.node_name
    if not status:
        return ()
    events = (
        build_event(
            "NodeClaim",
            new.meta,
            changed_condition.type,
            f"{changed_condition.type} was {old_status} and is {changed_condition.status}: {changed_condition.reason}",
            context.now,
        )
        for changed_condition, old_status in find_transitions(old.conditions, conditions)
        if changed_condition.type in (*NODE_CLAIM_ROOTS, READY)
    )
    body = msgspec.json.encode(status).decode()
    version = new.meta.resource_version
    return (PatchStatus(kind="NodeClaim", name=new.name, resource_version=version, status=body), *events)


def requeue_uninitialized(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Requeue the function that takes the next step of a NodeClaim that is not initialized."""
    claim = claim_state.claim
    if not claim.provider_id:
        follow_up = FollowUp(function="provision", after=MIN_REQUEUE_DELAY, message=f"{claim.name} is not launched")
        return StepResult(claim=claim, after=(follow_up,))
    if is_condition_true(claim.conditions, "Initialized"):
        return StepResult(claim=claim)
    root_conditions = (find_condition(claim.conditions, name) for name in NODE_CLAIM_ROOTS)
    transition_times = [
        root_condition.since
        for root_condition in root_conditions
        if root_condition is not None and root_condition.since is not None
    ]
    since = max(transition_times, default=claim.meta.created_at or context.now)
    return StepResult(claim=claim, after=requeue_in_progress(since, context.now, f"{claim.name} is not initialized"))


LIVING_CLAIM_STEPS: Final[tuple[LifecycleStep, ...]] = (
    mark_launched,
    register_node,
    initialize_node,
    check_consistency,
    record_pod_events,
    update_consolidatable,
    add_node_class_label,
    tag_instance,
    report_early_end,
    delete_failed_claim,
    requeue_uninitialized,
)


def _add_termination_finalizer(claim: NodeClaim) -> tuple[Action, ...]:
    protection = PatchMetadata(
        kind="NodeClaim",
        name=claim.name,
        resource_version=claim.meta.resource_version,
        finalizers=(*claim.meta.finalizers, TERMINATION_FINALIZER),
        message="it must exist until its instance is terminated",
    )
    return (protection, FollowUp(function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"{claim.name} was created"))


def _terminate_unclaimed_nodes(context: LifecycleContext) -> tuple[Action, ...]:
    cluster = context.cluster_state.snapshot
    claimed_provider_ids = {claim.provider_id for claim in cluster.node_claims} | {""}
    claimed_node_names = {claim.node_name for claim in cluster.node_claims}
    pods_by_node = context.cluster_state.pods_by_node
    return tuple(
        action
        for node in sorted(cluster.nodes, key=lambda node: node.name)
        if (node.provider_id not in claimed_provider_ids if node.provider_id else node.name not in claimed_node_names)
        for action in terminate_unclaimed_node(node, sort_pods(pods_by_node.get(node.name, ())), context)
    )


def _merge_terminations(actions: Iterable[Action]) -> tuple[Action, ...]:
    """Merge the TerminateInstances actions with the same message into one, at the place of the first of them."""
    all_actions = tuple(actions)
    instance_ids_by_message: dict[str, set[str]] = {}
    for action in all_actions:
        if isinstance(action, TerminateInstances):
            instance_ids_by_message.setdefault(action.message, set()).update(action.instance_ids)
    merged_messages: set[str] = set()
    merged_actions: list[Action] = []
    for action in all_actions:
        if not isinstance(action, TerminateInstances):
            merged_actions.append(action)
        elif action.message not in merged_messages:
            merged_messages.add(action.message)
            merged_actions.append(
                TerminateInstances(
                    instance_ids=tuple(sorted(instance_ids_by_message[action.message])), message=action.message
                )
            )
    return tuple(merged_actions)
