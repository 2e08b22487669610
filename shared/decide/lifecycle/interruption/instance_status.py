"""Instance statuses of EC2: failed status checks and scheduled events.

If an instance has failed a check for too long, draining is useless: its NodeClaim is deleted with an expired
termination grace period, so that its pods are deleted at once. Scheduled events are the scheduled changes that AWS
Health announces too, and are handled in the same way.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from shared.decide.common.events import build_claim_events
from shared.decide.common.requeue_delays import MIN_REQUEUE_DELAY
from shared.decide.lifecycle.interruption.interruption import decide_interruptions
from shared.decide.lifecycle.reconcile_context import LifecycleContext
from shared.model.core.labels import TERMINATION_TIMESTAMP
from shared.model.core.units import format_instant
from shared.model.decisions.action import Action, DeleteObject, FollowUp, PatchMetadata
from shared.model.decisions.interruption_message import InterruptionMessage
from shared.model.ec2.instance import FailedCheck, InstanceStatus
from shared.state.node_claim_state import NodeClaimState

IMPAIRED_TOLERATION_PERIOD: Final = timedelta(seconds=120)
"""The minimum duration of a failed check; shorter failures are transient."""


def handle_instance_statuses(claim_states: Iterable[NodeClaimState], context: LifecycleContext) -> Iterator[Action]:
    """Delete the NodeClaims of impaired instances and of instances with scheduled events; each once."""
    status_by_instance = {
        instance_status.instance_id: instance_status
        for instance_status in context.cluster_state.snapshot.statuses or ()
    }
    messages: list[InterruptionMessage] = []
    for claim_state in claim_states:
        status = status_by_instance.get(claim_state.claim.instance_id)
        if status is None:
            continue
        check = _find_overdue_check(status, context.now)
        if check is None:
            messages.extend(_build_scheduled_changes(status))
        elif not claim_state.claim.is_deleting():
            yield from _delete_impaired_claim(claim_state, check, context.now)
    if messages:
        yield from decide_interruptions(context.cluster_state, messages)


def _find_overdue_check(status: InstanceStatus, now: datetime) -> FailedCheck | None:
    return next(
        (failed_check for failed_check in status.failed if now - failed_check.since >= IMPAIRED_TOLERATION_PERIOD), None
    )


def _build_scheduled_changes(status: InstanceStatus) -> Iterator[InterruptionMessage]:
    for scheduled_event in status.events:
        ids = (status.instance_id,)
        yield InterruptionMessage(
            kind="scheduled_change",
            instance_ids=ids,
            begins_at=scheduled_event.begins_at,
            event=scheduled_event.event_id,
        )


def _delete_impaired_claim(claim_state: NodeClaimState, check: FailedCheck, now: datetime) -> Iterator[Action]:
    claim = claim_state.claim
    reason = f"{check.kind}_status"
    if not claim.meta.get_annotation(TERMINATION_TIMESTAMP):
        annotations = ((TERMINATION_TIMESTAMP, format_instant(now)),)
        yield PatchMetadata(kind="NodeClaim", name=claim.name, annotations=annotations, message=reason)
    yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, message=reason)
    words = f"The EC2 {check.kind} status check has failed since {format_instant(check.since)}"
    yield from build_claim_events(claim, claim_state.nodes, "InstanceUnhealthy", words, now, type_="Warning")
    termination_message = f"Deleting {claim.name}: {reason}"
    yield from build_claim_events(
        claim, claim_state.nodes, "TerminatingOnInterruption", termination_message, now, type_="Warning"
    )
    yield FollowUp(
        function="provision", after=timedelta(), message=f"the instance of {claim.name} fails its status check"
    )
    yield FollowUp(
        function="lifecycle", after=MIN_REQUEUE_DELAY, message=f"the instance of {claim.name} fails its status check"
    )
