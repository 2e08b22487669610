"""DescribeInstanceStatus: what is asked of it, and what it answers."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from typing import Any, Final, Literal

from shared.model.ec2 import FailedCheck, InstanceStatus, ScheduledEvent

EVENT_CODES: Final = ["instance-reboot", "instance-retirement", "instance-stop", "system-maintenance", "system-reboot"]
QUERIES: Final = (
    ("instance-status.status", ["impaired"]),
    ("system-status.status", ["impaired"]),
    ("event.code", EVENT_CODES),
)
"""One filter a query: several in one would have to hold together."""
_OVER: Final = ("[Canceled]", "[Completed]")
"""How EC2 begins the description of an event that it goes on listing for a week."""


def statuses_from_wire(found: Iterable[Mapping[str, Any]]) -> tuple[InstanceStatus, ...]:
    """Answer one status an instance, sorted by id, of those that say that something is wrong."""
    statuses = {one.instance_id: one for one in map(_status, found) if one.failed or one.events}
    return tuple(statuses[name] for name in sorted(statuses))


def _status(wire: Mapping[str, Any]) -> InstanceStatus:
    failed = (*_failed("instance", wire.get("InstanceStatus")), *_failed("system", wire.get("SystemStatus")))
    events = sorted(_events(wire.get("Events", ())), key=lambda one: one.event_id)
    return InstanceStatus(instance_id=wire["InstanceId"], failed=failed, events=tuple(events))


def _failed(of: Literal["instance", "system"], summary: Mapping[str, Any] | None) -> Iterator[FailedCheck]:
    """Answer the check, since the first of its parts fails; one that does not say since when does not count."""
    details = (summary or {}).get("Details", ())
    known = [one["ImpairedSince"] for one in details if one.get("Status") == "failed" and one.get("ImpairedSince")]
    if known:
        yield FailedCheck(of=of, since=min(known).astimezone(UTC))


def _events(wire: Iterable[Mapping[str, Any]]) -> Iterator[ScheduledEvent]:
    for one in wire:
        if one.get("Code") in EVENT_CODES and not one.get("Description", "").startswith(_OVER):
            begins = one.get("NotBefore")
            yield ScheduledEvent(
                event_id=one.get("InstanceEventId", ""),
                code=one["Code"],
                begins_at=begins.astimezone(UTC) if begins is not None else None,
            )
