"""What EC2 says of machines when it is asked: status checks that fail, and events that lie ahead of them.

A machine that has failed a check for long enough is beyond drains: its claim goes with its time up, so that pods are
deleted at once. Events are the scheduled changes that AWS Health announces too, and are acted on in the same way.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from shared.lifecycle.events import about_machine
from shared.lifecycle.followups import SOONEST
from shared.lifecycle.interruption import Notice, decide_notices
from shared.lifecycle.machines import Machine, View
from shared.model.action import Action, DeleteObject, FollowUp, PatchMetadata
from shared.model.ec2 import FailedCheck, InstanceStatus
from shared.model.labels import TERMINATION_TIMESTAMP
from shared.model.units import instant_text

IMPAIRED_FOR: Final = timedelta(seconds=120)
"""So long a check has to fail: shorter failures pass."""


def heed(machines: Iterable[Machine], view: View) -> Iterator[Action]:
    """Delete the claims of machines that EC2 says are broken, or will be touched; each once."""
    said = {one.instance_id: one for one in view.cluster.statuses or ()}
    notices: list[Notice] = []
    for machine in machines:
        status = said.get(machine.claim.instance_id)
        if status is None:
            continue
        check = _overdue(status, view.now)
        if check is None:
            notices.extend(_notices(status))
        elif not machine.claim.is_deleting():
            yield from _end(machine, check, view.now)
    if notices:
        yield from decide_notices(view.cluster, notices)


def _overdue(status: InstanceStatus, now: datetime) -> FailedCheck | None:
    return next((one for one in status.failed if now - one.since >= IMPAIRED_FOR), None)


def _notices(status: InstanceStatus) -> Iterator[Notice]:
    for one in status.events:
        ids = (status.instance_id,)
        yield Notice(kind="scheduled_change", instance_ids=ids, begins_at=one.begins_at, event=one.event_id)


def _end(machine: Machine, check: FailedCheck, now: datetime) -> Iterator[Action]:
    claim = machine.claim
    why = f"{check.of}_status"
    if not claim.meta.annotation(TERMINATION_TIMESTAMP):
        note = ((TERMINATION_TIMESTAMP, instant_text(now)),)
        yield PatchMetadata(kind="NodeClaim", name=claim.name, annotations=note, why=why)
    yield DeleteObject(kind="NodeClaim", name=claim.name, uid=claim.meta.uid, why=why)
    words = f"The {check.of} status check of EC2 has failed since {instant_text(check.since)}"
    yield from about_machine(claim, machine.nodes, "InstanceUnhealthy", words, now, type_="Warning")
    ending = f"Deleting {claim.name}: {why}"
    yield from about_machine(claim, machine.nodes, "TerminatingOnInterruption", ending, now, type_="Warning")
    yield FollowUp(function="provision", after=timedelta(), why=f"{claim.name} is broken")
    yield FollowUp(function="lifecycle", after=SOONEST, why=f"{claim.name} is broken")
