"""Garbage collection: NodeClaims whose instance is gone, and instances without a NodeClaim.

An instance that is not listed is not garbage.
"""

from collections.abc import Collection, Iterable, Iterator

import msgspec

from shared.decide.common.events import build_event
from shared.decide.lifecycle.reconcile_context import (
    EC2_LIST_SETTLE_PERIOD,
    LifecycleContext,
    is_instance_list_suspicious,
)
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import LAUNCH_GROUP
from shared.model.decisions.action import NO_CLAIM_MESSAGE, Action, DeleteObject, TerminateInstances
from shared.model.decisions.interruption_message import INTERRUPTION_KIND_BY_INSTANCE_STATE
from shared.model.ec2.instance import NODE_CLAIM_TAG, Instance
from shared.state.node_claim_state import NodeClaimState


def collect_garbage(context: LifecycleContext) -> tuple[Action, ...]:
    """Terminate orphaned instances, and delete their Nodes."""
    if is_instance_list_suspicious(context.cluster_state):
        return _report_suspicious_list(context)
    claimed_instance_ids = {claim.instance_id for claim in context.cluster_state.snapshot.node_claims}
    launching_groups = _find_launching_groups(context) | context.list_unreadable_names("launch-group")
    orphans = tuple(
        instance
        for instance in sorted((context.instances or {}).values(), key=lambda instance: instance.instance_id)
        if instance.instance_id not in claimed_instance_ids
        and _is_orphan(instance, launching_groups, context)
        and not is_possibly_claimed(instance, context)
    )
    if not orphans:
        return ()
    orphan_ids = {orphan.instance_id for orphan in orphans}
    nodes = (node for node in context.cluster_state.snapshot.nodes if node.provider_id.rpartition("/")[2] in orphan_ids)
    deletions = (
        DeleteObject(kind="Node", name=node.name, uid=node.meta.uid, message=NO_CLAIM_MESSAGE)
        for node in sorted(nodes, key=lambda node: node.name)
        if node.meta.deleted_at is None
    )
    return (*deletions, TerminateInstances(instance_ids=tuple(sorted(orphan_ids)), message=NO_CLAIM_MESSAGE))


def _is_orphan(instance: Instance, launching: frozenset[str], context: LifecycleContext) -> bool:
    is_settled = context.now - instance.launched_at > EC2_LIST_SETTLE_PERIOD
    return is_settled and not instance.is_terminating() and instance.get_tag(LAUNCH_GROUP) not in launching


def is_possibly_claimed(instance: Instance, context: LifecycleContext) -> bool:
    """Return whether a NodeClaim that cannot be read is, or may be, that of *instance*."""
    unreadable_claims = context.list_unreadable_names("NodeClaim")
    claim_name, group_name = instance.get_tag(NODE_CLAIM_TAG), instance.get_tag(LAUNCH_GROUP)
    if not unreadable_claims or claim_name:
        return claim_name in unreadable_claims
    group = next(
        (
            launch_group
            for launch_group in context.cluster_state.snapshot.launch_groups
            if launch_group.name == group_name
        ),
        None,
    )
    return group is None or bool(unreadable_claims & set(group.claims))


def _find_launching_groups(context: LifecycleContext) -> frozenset[str]:
    """Return the launch groups with a NodeClaim that has no instance assigned yet."""
    unlaunched = [claim for claim in context.cluster_state.snapshot.node_claims if not claim.provider_id]
    labeled_groups = {claim.meta.get_label(LAUNCH_GROUP) for claim in unlaunched} - {""}
    by_name = {claim.name: claim for claim in unlaunched}
    groups = context.cluster_state.snapshot.launch_groups
    requested_groups = {
        launch_group.name
        for launch_group in groups
        if any(launch_group.is_for(by_name[name]) for name in by_name.keys() & set(launch_group.claims))
    }
    return frozenset(labeled_groups | requested_groups)


def _report_suspicious_list(context: LifecycleContext) -> tuple[Action, ...]:
    ready = (claim for claim in context.cluster_state.snapshot.node_claims if claim.is_registered())
    claim = min(ready, key=lambda claim: claim.name, default=None)
    if claim is None:
        return ()
    words = "EC2 lists no instances of the cluster although nodes are Ready: garbage collection is skipped"
    return (build_event("NodeClaim", claim.meta, "InstancesNotSeen", words, context.now, type_="Warning"),)


def without_spared_instances(
    actions: tuple[Action, ...], cluster: ClusterSnapshot, spared_ids: Collection[str]
) -> tuple[Action, ...]:
    """Return *actions* without terminations of the instances *spared_ids* and deletions of their Nodes."""
    if not spared_ids:
        return actions
    spared_nodes = {node.name for node in cluster.nodes if node.provider_id.rpartition("/")[2] in spared_ids}
    return tuple(_filter_actions(actions, spared_ids, spared_nodes))


def _filter_actions(actions: Iterable[Action], spared_ids: Collection[str], spared_nodes: set[str]) -> Iterator[Action]:
    for action in actions:
        if isinstance(action, TerminateInstances) and action.message == NO_CLAIM_MESSAGE:
            remaining_ids = tuple(instance_id for instance_id in action.instance_ids if instance_id not in spared_ids)
            if remaining_ids:
                yield msgspec.structs.replace(action, instance_ids=remaining_ids)
        elif not (
            isinstance(action, DeleteObject)
            and action.kind == "Node"
            and action.message == NO_CLAIM_MESSAGE
            and action.name in spared_nodes
        ):
            yield action


def find_missing_instance(claim_state: NodeClaimState, context: LifecycleContext) -> str:
    """Return "garbage_collected" if EC2 does not have the instance of a registered NodeClaim any more, else "".

    In a zone with a zonal shift, the list of EC2 may be incomplete: an instance that it lacks is kept, as in Karpenter.
    """
    claim = claim_state.claim
    if context.cluster_state.find_zonal_shift(claim.meta) is not None:
        return ""
    is_instance_gone = context.is_gone(claim.instance_id, claim_state.get_launch_time(context.now)) and bool(
        claim.provider_id
    )
    return "garbage_collected" if is_instance_gone and claim.is_registered() and _is_lost(claim_state, context) else ""


def find_halted_instance(claim_state: NodeClaimState, context: LifecycleContext) -> str:
    """Return the reason if the instance is stopping, stopped or terminating although no message announced it.

    Else "".
    """
    instance = (context.instances or {}).get(claim_state.claim.instance_id)
    reason = INTERRUPTION_KIND_BY_INSTANCE_STATE.get(instance.state, "") if instance is not None else ""
    return reason if reason and _is_lost(claim_state, context) else ""


def _is_lost(claim_state: NodeClaimState, context: LifecycleContext) -> bool:
    """Return whether no Node of the NodeClaim is Ready, as far as its Nodes can be read."""
    return not any(node.is_ready() for node in claim_state.nodes) and not context.is_node_possibly_unreadable(
        claim_state.claim
    )
