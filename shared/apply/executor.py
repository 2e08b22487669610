"""Execution of decided actions, in order. A failed action is reported, and the others continue."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final, TypeAlias, assert_never

import msgspec

from shared.apply.follow_up_messages import send_follow_up
from shared.apply.instance_calls import tag_instance, terminate_instances
from shared.apply.kubernetes import node_registration, writes
from shared.apply.kubernetes.events import publish_event
from shared.apply.launch import launch_instances
from shared.errors import Conflict, EvictionRefused, Fault, NotFound
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.decisions.action import (
    Action,
    CreateNodeClaim,
    DeleteLaunchTemplate,
    DeleteObject,
    DeletePod,
    EvictPod,
    FollowUp,
    LaunchInstances,
    MarkUnavailable,
    NominatePod,
    PatchMetadata,
    PatchStatus,
    PublishEvent,
    RegisterNode,
    RestartDeployment,
    SetDeletionCost,
    TagInstance,
    TaintNode,
    TerminateInstances,
)
from shared.model.decisions.action_outcome import OUT_OF_TIME_MESSAGE, Outcome
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.store.lease import LeaseGuard
from shared.store.unavailable_offerings import record_unavailable_offerings

Batch: TypeAlias = tuple[Action, ...]
"""Actions that one call performs together: unavailable offerings, else a single action."""
LEASE_LOST_MESSAGE: Final = "the controller lost its lease"


def apply_actions(
    actions: Iterable[Action],
    world: World,
    fence: FencingToken | None = None,
    is_over: Callable[[], bool] | None = None,
) -> tuple[Outcome, ...]:
    """Perform *actions* and return the outcome of each.

    In mode `plan` every action is skipped. A conflict, or an object that does not exist any more, is no failure: the
    snapshot was out of date, and the next cycle sees the change. If *fence* is broken, all remaining actions are
    skipped; if it cannot be checked, the actions that it guards fail. Once *is_over* returns True, only follow-ups are
    sent.
    """
    with world.trace("apply"):
        return tuple(_iterate_outcomes(actions, world, fence, is_over))


def _iterate_outcomes(
    actions: Iterable[Action], world: World, fence: FencingToken | None, is_over: Callable[[], bool] | None
) -> Iterator[Outcome]:
    stop_reason = "mode is plan" if world.settings.mode == "plan" else ""
    guard = LeaseGuard(world, fence)
    for batch in _group_batches(actions):
        action = batch[0]
        skip_reason = stop_reason or (
            OUT_OF_TIME_MESSAGE if is_over and not isinstance(action, FollowUp) and is_over() else ""
        )
        outcome = (
            Outcome(action=action, result="skipped", message=skip_reason)
            if skip_reason
            else _try_batch(batch, world, guard)
        )
        stop_reason = LEASE_LOST_MESSAGE if outcome.message == LEASE_LOST_MESSAGE else stop_reason
        for batch_action in batch:
            yield msgspec.structs.replace(outcome, action=batch_action)


def _group_batches(actions: Iterable[Action]) -> Iterator[Batch]:
    """Yield *actions* in order, in batches that are performed together."""
    for is_unavailable_mark, group in groupby(actions, key=lambda action: isinstance(action, MarkUnavailable)):
        if is_unavailable_mark:
            yield tuple(group)
        else:
            yield from ((action,) for action in group)


def _try_batch(batch: Batch, world: World, guard: LeaseGuard) -> Outcome:
    action = batch[0]
    try:
        if not guard.can_perform(action):
            return Outcome(action=action, result="skipped", message=LEASE_LOST_MESSAGE)
        group = _perform_batch(batch, world, guard.fence)
    except (Conflict, NotFound, EvictionRefused) as fault:
        return Outcome(action=action, result="skipped", message=f"{type(fault).__name__}: {fault}")
    except Fault as fault:
        return Outcome(action=action, result="failed", message=f"{type(fault).__name__}: {fault}")
    return Outcome(action=action, result="done", group=group)


def _perform_batch(batch: Batch, world: World, fence: FencingToken | None) -> LaunchGroup | None:  # noqa: C901, PLR0912 - one case each
    match action := batch[0]:
        case CreateNodeClaim():
            writes.create_node_claim(action, world.kube, fence)
        case LaunchInstances():
            return launch_instances(action, world, fence)
        case TerminateInstances():
            terminate_instances(action, world)
        case TagInstance():
            tag_instance(action, world)
        case DeleteLaunchTemplate():
            world.ec2.delete_launch_template(action.name)
        case MarkUnavailable():
            record_unavailable_offerings((mark.offering for mark in batch if isinstance(mark, MarkUnavailable)), world)
        case PatchMetadata():
            writes.patch_metadata(action, world.kube)
        case PatchStatus():
            writes.patch_status(action, world.kube)
        case TaintNode():
            writes.taint_node(action, world.kube)
        case RegisterNode():
            node_registration.register_node(action, world.kube)
        case EvictPod():
            writes.evict_pod(action, world.kube)
        case NominatePod():
            node_registration.nominate_pod(action, world.kube)
        case SetDeletionCost():
            writes.set_deletion_cost(action, world.kube)
        case RestartDeployment():
            writes.restart_deployment(action, world.kube)
        case DeletePod():
            writes.delete_pod(action, world.kube)
        case DeleteObject():
            writes.delete_object(action, world.kube)
        case PublishEvent():
            publish_event(action, world)
        case FollowUp():
            send_follow_up(action, world)
        case _:
            assert_never(action)
    return None
