"""Execution of decided actions. A failed action is reported, and the others continue.

Actions that depend on each other keep their order. The others are performed at the same time, if the World allows it.
"""

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Final, TypeAlias, assert_never

import msgspec

from shared.apply.follow_up_messages import send_follow_up
from shared.apply.independent_actions import NO_CLAIMS, ActionGroup, group_independent_actions
from shared.apply.instance_calls import tag_instance, terminate_instances
from shared.apply.kubernetes import node_registration, writes
from shared.apply.kubernetes.events import publish_event
from shared.apply.launch import launch_instances
from shared.apply.parallel_calls import run_in_threads
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
    RecordOfferingEvents,
    RegisterNode,
    RestartDeployment,
    ScaleWorkload,
    SetDeletionCost,
    TagInstance,
    TaintNode,
    TerminateInstances,
)
from shared.model.decisions.action_outcome import OUT_OF_TIME_MESSAGE, Outcome
from shared.ports.storage import FencingToken
from shared.ports.world import World
from shared.store.lease import LeaseGuard
from shared.store.offerings.offering_history import record_offering_events
from shared.store.offerings.unavailable_offerings import record_unavailable_offerings

Batch: TypeAlias = tuple[Action, ...]
"""Actions that one call performs together: unavailable offerings, else a single action."""
LEASE_LOST_MESSAGE: Final = "the controller lost its lease"
MIN_PARALLEL_GROUPS: Final = 4
"""With fewer independent groups, threads and their connections cost more than they save."""
MIN_PARALLEL_LAUNCHES: Final = 2
"""The same for CreateFleet, which responds only after a second or more."""


def apply_actions(
    actions: Iterable[Action],
    world: World,
    fence: FencingToken | None = None,
    is_over: Callable[[], bool] | None = None,
    claim_by_node: Mapping[str, str] = NO_CLAIMS,
) -> tuple[Outcome, ...]:
    """Perform *actions* and return the outcome of each, in their order.

    In mode `plan` every action is skipped. A conflict, or an object that does not exist any more, is no failure: the
    snapshot was out of date, and the next cycle sees the change. If *fence* is broken, all remaining actions are
    skipped; if it cannot be checked, the actions that it guards fail. Once *is_over* returns True, only follow-ups are
    sent.

    Up to `World.max_parallel_calls` actions that do not depend on each other are performed at once
    (`shared.apply.independent_actions`); *claim_by_node* has the NodeClaim of each Node, by name.
    """
    with world.trace("apply"):
        return _Execution(tuple(actions), world, fence, is_over).run(claim_by_node)


class _Execution:
    """The actions of one call and their outcomes; shared by all threads."""

    def __init__(
        self,
        actions: tuple[Action, ...],
        world: World,
        fence: FencingToken | None,
        is_over: Callable[[], bool] | None,
    ) -> None:
        self._actions, self._world, self._is_over = actions, world, is_over
        self._guard = LeaseGuard(world, fence)
        self._stop_reason = "mode is plan" if world.settings.mode == "plan" else ""
        self._outcomes: dict[int, Outcome] = {}

    def run(self, claim_by_node: Mapping[str, str]) -> tuple[Outcome, ...]:
        if self._world.max_parallel_calls > 1:
            for groups in group_independent_actions(self._actions, claim_by_node):
                self._perform_stage(groups)
        else:
            self._perform_in_order(range(len(self._actions)))
        return tuple(self._outcomes[position] for position in range(len(self._actions)))

    def _perform_stage(self, groups: tuple[ActionGroup, ...]) -> None:
        is_launch = isinstance(self._actions[groups[0][0]], LaunchInstances)
        if len(groups) < (MIN_PARALLEL_LAUNCHES if is_launch else MIN_PARALLEL_GROUPS):
            self._perform_in_order(sorted(position for group in groups for position in group))
            return
        thread_count = min(len(groups), self._world.max_parallel_calls)
        run_in_threads(groups, lambda position: self._perform((position,)), thread_count)

    def _perform_in_order(self, positions: Iterable[int]) -> None:
        """Perform the actions at *positions*, unavailable offerings that follow each other together."""
        for is_unavailable_mark, run in groupby(
            positions, key=lambda position: isinstance(self._actions[position], MarkUnavailable)
        ):
            for batch in (tuple(run),) if is_unavailable_mark else ((position,) for position in run):
                self._perform(batch)

    def _perform(self, positions: ActionGroup) -> None:
        """Perform the actions at *positions* with one call and record the outcome of each."""
        action = self._actions[positions[0]]
        skip_reason = self._stop_reason or (
            OUT_OF_TIME_MESSAGE if self._is_over and not isinstance(action, FollowUp) and self._is_over() else ""
        )
        outcome = (
            Outcome(action=action, result="skipped", message=skip_reason)
            if skip_reason
            else _try_batch(tuple(self._actions[position] for position in positions), self._world, self._guard)
        )
        if outcome.message == LEASE_LOST_MESSAGE:
            self._stop_reason = LEASE_LOST_MESSAGE
        for position in positions:
            self._outcomes[position] = msgspec.structs.replace(outcome, action=self._actions[position])


def _try_batch(batch: Batch, world: World, guard: LeaseGuard) -> Outcome:
    action = batch[0]
    try:
        if not guard.can_perform(action):
            return Outcome(action=action, result="skipped", message=LEASE_LOST_MESSAGE)
        group = _perform_batch(batch, world, guard)
    except (Conflict, NotFound, EvictionRefused) as fault:
        return Outcome(action=action, result="skipped", message=f"{type(fault).__name__}: {fault}")
    except Fault as fault:
        return Outcome(action=action, result="failed", message=f"{type(fault).__name__}: {fault}")
    return Outcome(action=action, result="done", group=group)


def _perform_batch(batch: Batch, world: World, guard: LeaseGuard) -> LaunchGroup | None:  # noqa: C901, PLR0912 - one case each
    match action := batch[0]:
        case CreateNodeClaim():
            writes.create_node_claim(action, world.kube, guard.fence)
        case LaunchInstances():
            return launch_instances(action, world, guard.fence, guard.write_lock)
        case TerminateInstances():
            terminate_instances(action, world)
        case TagInstance():
            tag_instance(action, world)
        case DeleteLaunchTemplate():
            world.ec2.delete_launch_template(action.name)
        case MarkUnavailable():
            record_unavailable_offerings((mark.offering for mark in batch if isinstance(mark, MarkUnavailable)), world)
        case RecordOfferingEvents():
            record_offering_events(action.events, world.table, world.clock())
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
        case ScaleWorkload():
            writes.scale_workload(action, world.kube)
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
