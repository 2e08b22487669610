"""Termination of a NodeClaim: taint, drain, detach volumes, terminate, remove the finalizer.

Each run does what is possible now. Replacement comes first: with the taint, provisioning is requeued to plan for the
pods. No pod is evicted before the drain was announced (`Drained` Unknown) for the minimum drain period and, while there
is time for it, the pod's new node is initialized (`handover`). Completion is read from the cluster and EC2: an instance
is gone when EC2 does not list it.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.decide.common.events import build_claim_events, build_event
from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY, requeue_at, requeue_in_progress
from shared.decide.lifecycle.reconcile_context import LifecycleContext, LifecycleStep, StepResult, run_steps
from shared.decide.lifecycle.termination.drain_order import (
    DrainPlan,
    build_evictions,
    build_pod_deletions,
    find_next_forced_deletion,
    plan_drain,
)
from shared.decide.lifecycle.termination.finalizers import (
    FORCEFUL_TERMINATION,
    build_disrupted_taint,
    build_finalizer_removal,
    build_node_deletions,
    remove_finalizers,
)
from shared.decide.lifecycle.termination.replacement_wait import find_replacement_waits
from shared.decide.lifecycle.termination.unlaunched_claims import CLAIM_DELETED_MESSAGE, terminate_unlaunched_claim
from shared.model.cluster import ClusterSnapshot
from shared.model.core.conditions import with_condition
from shared.model.core.formatting import format_count
from shared.model.core.labels import TERMINATION_FINALIZER, TERMINATION_TIMESTAMP
from shared.model.core.metadata import find_condition
from shared.model.core.units import format_instant, parse_instant
from shared.model.decisions.action import Action, FollowUp, PatchMetadata, TerminateInstances
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_stuck
from shared.state.node_claim_state import NodeClaimState

MIN_DRAIN_PERIOD: Final = timedelta(seconds=5)


def terminate_claim(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Return the termination actions that are possible now for a deleting NodeClaim."""
    claim = claim_state.claim
    if TERMINATION_FINALIZER not in claim.meta.finalizers:
        return StepResult(claim=claim)
    if not claim.provider_id:
        if (unlaunched_result := terminate_unlaunched_claim(claim, context)) is not None:
            return unlaunched_result
        return StepResult(claim=claim, after=(build_finalizer_removal(claim, "it has no instance"),))
    is_instance_gone = context.is_gone(claim.instance_id, claim_state.get_launch_time(context.now))
    if is_instance_gone and not any(node.is_ready() for node in claim_state.list_held_nodes()):
        return remove_finalizers(claim_state)
    if not claim_state.nodes and context.is_node_possibly_unreadable(claim) and not is_instance_gone:
        return _wait_for_unreadable_node(claim, context.now)
    drain_steps: tuple[LifecycleStep, ...] = (
        (drain_nodes, wait_for_volume_detachment) if claim_state.list_held_nodes() else ()
    )
    result = run_steps((announce_termination, *drain_steps, terminate_instance), claim_state, context)
    follow_up = requeue_in_progress(
        _find_last_transition(result.claim, context.now), context.now, f"{claim.name} is terminating"
    )
    return msgspec.structs.replace(result, after=(*result.after, *follow_up))


def _wait_for_unreadable_node(claim: NodeClaim, now: datetime) -> StepResult:
    """Wait: there may be pods on a Node that cannot be read."""
    words = f"Node {claim.node_name} cannot be read: it is not drained and its instance is not terminated".replace(
        "  ", " "
    )
    return StepResult(
        claim=claim, after=(build_event("NodeClaim", claim.meta, "FailedDraining", words, now, type_="Warning"),)
    )


def announce_termination(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Record when the termination grace period ends, and delete the Nodes, which our finalizer holds."""
    claim = claim_state.claim
    deadline = find_termination_deadline(claim)
    after: tuple[Action, ...] = ()
    if deadline is not None and not claim.meta.get_annotation(TERMINATION_TIMESTAMP):
        text = format_instant(deadline)
        message = f"its termination grace period ends at {text}"
        note = ((TERMINATION_TIMESTAMP, text),)
        words = f"All pods will be deleted by {text}"
        events = build_claim_events(
            claim, claim_state.nodes, "TerminationGracePeriodExpiring", words, context.now, type_="Warning"
        )
        after = (PatchMetadata(kind="NodeClaim", name=claim.name, annotations=note, message=message), *events)
    return StepResult(claim=claim, after=(*after, *build_node_deletions(claim_state)))


def drain_nodes(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Taint the Nodes, announce the drain, and evict the pods once it was announced for the minimum drain period."""
    claim, now = claim_state.claim, context.now
    drained = find_condition(claim.conditions, "Drained")
    if drained is not None and drained.status == "True":
        return StepResult(claim=claim)
    deadline = find_termination_deadline(claim)
    since = drained.since if drained is not None else None
    replacement_waits = find_replacement_waits(claim_state, context, since, deadline)
    drain_plan = plan_drain(claim_state.pods, deadline, now, context.cluster_state.pdb_limits, replacement_waits)
    taints = tuple(
        taint
        for node in claim_state.list_held_nodes()
        for taint in build_disrupted_taint(node, f"{claim.name} is terminating")
    )
    is_announced = not taints and since is not None and now - since >= MIN_DRAIN_PERIOD
    unreadable_pods = context.list_unreadable_pods(claim_state.nodes) if deadline is None or now <= deadline else ()
    if is_announced and not drain_plan.waiting and not unreadable_pods:
        return StepResult(claim=_set_condition(claim, now, "Drained", "True"))
    forced_deletions = (
        build_pod_deletions(drain_plan.forced, deadline, now, find_disruption_reason(claim))
        if deadline is not None
        else ()
    )
    pod_events = tuple(
        build_event("Pod", pod.meta, "Disrupted", "Deleted: the termination grace period of its node ends", now)
        for pod in drain_plan.forced
    )
    return StepResult(
        claim=_set_condition(claim, now, "Drained", "Unknown", "Draining", drain_plan.describe()),
        before=(
            *taints,
            *forced_deletions,
            *(build_evictions(drain_plan.evicted, find_disruption_reason(claim)) if is_announced else ()),
        ),
        after=(
            *pod_events,
            *_report_replacement_waits(claim_state, replacement_waits, now),
            *_report_drain(claim_state, drain_plan, context, is_tainted=bool(taints), is_announced=is_announced),
        ),
        waits=True,
    )


def wait_for_volume_detachment(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Wait until the volumes of the pods that left are detached, but not past the deadline."""
    claim, now = claim_state.claim, context.now
    old_condition = find_condition(claim.conditions, "VolumesDetached")
    if old_condition is not None and old_condition.status != "Unknown":
        return StepResult(claim=claim)
    volume_names = list_attached_volumes(
        context.cluster_state.snapshot, (node.name for node in claim_state.nodes), claim_state.pods, now
    )
    deadline = find_termination_deadline(claim)
    if not volume_names:
        return StepResult(claim=_set_condition(claim, now, "VolumesDetached", "True"))
    if deadline is not None and now > deadline:
        return StepResult(claim=_set_condition(claim, now, "VolumesDetached", "False", "TerminationGracePeriodElapsed"))
    words = "Waiting for volumes to be detached: " + ", ".join(volume_names)
    events = tuple(build_event("Node", node.meta, "AwaitingVolumeDetachment", words, now) for node in claim_state.nodes)
    follow_up = requeue_at(deadline, now, f"{claim.name} stops waiting for volumes") if deadline is not None else ()
    waiting_claim = _set_condition(claim, now, "VolumesDetached", "Unknown", "AwaitingVolumeDetachment")
    return StepResult(claim=waiting_claim, after=(*events, *follow_up), waits=True)


def terminate_instance(claim_state: NodeClaimState, context: LifecycleContext) -> StepResult:
    """Terminate the instance, again while EC2 lists it (never a terminated one); then remove the finalizers."""
    claim = claim_state.claim
    if context.is_gone(claim.instance_id, claim_state.get_launch_time(context.now)):
        return remove_finalizers(claim_state)
    if context.instances is None:
        return StepResult(claim=claim, waits=True)
    end = TerminateInstances(instance_ids=(claim.instance_id,), message=CLAIM_DELETED_MESSAGE)
    is_requested = find_condition(claim.conditions, "InstanceTerminating") is not None
    is_done = is_requested and claim.instance_id not in context.instances
    before = () if is_done or context.is_ending(claim.instance_id) else (end,)
    claim = _set_condition(claim, context.now, "InstanceTerminating", "True")
    return StepResult(claim=claim, before=before, waits=True)


def find_termination_deadline(claim: NodeClaim) -> datetime | None:
    """Return when the termination grace period of a deleting NodeClaim ends; its annotation takes precedence."""
    try:
        return parse_instant(claim.meta.get_annotation(TERMINATION_TIMESTAMP))
    except ValueError:
        grace, deleted = claim.termination_grace_period, claim.meta.deleted_at
        return deleted + grace if grace is not None and deleted is not None else None


def find_disruption_reason(claim: NodeClaim) -> str:
    """Return the reason in its pods' evictions: the disruption reason, or FORCEFUL_TERMINATION without a decision."""
    disruption_condition = find_condition(claim.conditions, "DisruptionReason")
    return (
        disruption_condition.reason
        if disruption_condition is not None and disruption_condition.status == "True"
        else FORCEFUL_TERMINATION
    )


def _report_replacement_waits(
    claim_state: NodeClaimState, replacement_waits: Mapping[str, str], now: datetime
) -> tuple[Action, ...]:
    """Report that pods wait for their new nodes, and requeue soon."""
    if not replacement_waits:
        return ()
    words = (
        f"{format_count(len(replacement_waits), 'pod')} waiting for replacement nodes: "
        f"{replacement_waits[min(replacement_waits)]}"
    )
    follow_up = FollowUp(
        function="lifecycle",
        after=MIN_REQUEUE_DELAY,
        message=f"pods of {claim_state.claim.name} wait for replacement nodes",
    )
    return (
        *build_claim_events(claim_state.claim, claim_state.nodes, "DisruptionWaitingReadiness", words, now),
        follow_up,
    )


def _report_drain(
    claim_state: NodeClaimState,
    drain_plan: DrainPlan,
    context: LifecycleContext,
    *,
    is_tainted: bool,
    is_announced: bool,
) -> tuple[Action, ...]:
    claim, now = claim_state.claim, context.now
    actions: list[Action] = []
    if is_tainted:
        actions.append(FollowUp(function="provision", after=timedelta(), message=f"{claim.name} is terminating"))
    if is_announced:
        unreadable_pods = context.list_unreadable_pods(claim_state.nodes)
        words = drain_plan.describe() + (f"; cannot be read: {', '.join(unreadable_pods)}" if unreadable_pods else "")
        actions.extend(
            build_event("Node", node.meta, "FailedDraining", words, now, type_="Warning")
            for node in claim_state.list_held_nodes()
        )
    else:
        actions.append(FollowUp(function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"{claim.name} may be drained"))
    deadline = find_termination_deadline(claim)
    if deadline is not None:
        actions.extend(
            requeue_at(
                find_next_forced_deletion(drain_plan.waiting, deadline),
                now,
                (f"the termination grace period of {claim.name} ends"),
            )
        )
    return tuple(actions)


def _find_last_transition(claim: NodeClaim, now: datetime) -> datetime:
    progress_conditions = (
        find_condition(claim.conditions, name) for name in ("Drained", "InstanceTerminating", "VolumesDetached")
    )
    transition_times = [
        progress_condition.since
        for progress_condition in progress_conditions
        if progress_condition is not None and progress_condition.since is not None
    ]
    return max(transition_times, default=claim.meta.deleted_at or now)


def _set_condition(
    claim: NodeClaim, now: datetime, type_: str, status: str, reason: str = "", message: str = ""
) -> NodeClaim:
    conditions = with_condition(claim.conditions, type_, status, reason, message, now, claim.meta.generation)
    return msgspec.structs.replace(claim, conditions=conditions)


def list_attached_volumes(
    cluster: ClusterSnapshot, nodes: Iterable[str], pods: Iterable[Pod], now: datetime
) -> tuple[str, ...]:
    """Return the persistent volumes attached to *nodes*, sorted, except volumes of *pods* that are not drained."""
    names = frozenset(nodes)
    attached_volumes = {
        attachment.volume_name
        for attachment in cluster.volume_attachments
        if attachment.node_name in names and attachment.volume_name
    }
    return (
        tuple(sorted(attached_volumes - _list_volumes_of_staying_pods(cluster, pods, now))) if attached_volumes else ()
    )


def _list_volumes_of_staying_pods(cluster: ClusterSnapshot, pods: Iterable[Pod], now: datetime) -> set[str]:
    staying_volume_claims = {
        (pod.meta.namespace, claim)
        for pod in pods
        if pod.can_tolerate_disruption() or is_stuck(pod, now) or pod.is_mirror()
        for claim in pod.spec.volume_claims
    }
    return {
        volume_claim.volume_name
        for volume_claim in cluster.volume_claims
        if (volume_claim.meta.namespace, volume_claim.meta.name) in staying_volume_claims
    }
