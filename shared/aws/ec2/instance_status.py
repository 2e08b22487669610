"""DescribeInstanceStatus: its filters, and the parser of its response."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC
from typing import Any, Final, Literal

from shared.model.ec2.instance import FailedCheck, InstanceStatus, ScheduledEvent

EVENT_CODES: Final = ["instance-reboot", "instance-retirement", "instance-stop", "system-maintenance", "system-reboot"]
STATUS_QUERIES: Final = (
    ("instance-status.status", ["impaired"]),
    ("system-status.status", ["impaired"]),
    ("event.code", EVENT_CODES),
)
"""One filter per query: several filters in one query would all have to match."""
_FINISHED_EVENT_PREFIXES: Final = ("[Canceled]", "[Completed]")
"""Prefixes of the description of a finished event, which EC2 keeps listing for a week."""


def parse_instance_statuses(wire_statuses: Iterable[Mapping[str, Any]]) -> tuple[InstanceStatus, ...]:
    """Return one status for each instance with a failed check or a scheduled event, sorted by id."""
    statuses = {
        status.instance_id: status for status in map(_parse_status, wire_statuses) if status.failed or status.events
    }
    return tuple(statuses[name] for name in sorted(statuses))


def _parse_status(wire: Mapping[str, Any]) -> InstanceStatus:
    failed = (
        *_parse_failed_check("instance", wire.get("InstanceStatus")),
        *_parse_failed_check("system", wire.get("SystemStatus")),
    )
    events = sorted(_parse_events(wire.get("Events", ())), key=lambda event: event.event_id)
    return InstanceStatus(instance_id=wire["InstanceId"], failed=failed, events=tuple(events))


def _parse_failed_check(
    kind: Literal["instance", "system"], summary: Mapping[str, Any] | None
) -> Iterator[FailedCheck]:
    """Yield the failed check, with the time of its first failed part; a part without that time does not count."""
    details = (summary or {}).get("Details", ())
    impaired_times = [
        detail["ImpairedSince"]
        for detail in details
        if detail.get("Status") == "failed" and detail.get("ImpairedSince")
    ]
    if impaired_times:
        yield FailedCheck(kind=kind, since=min(impaired_times).astimezone(UTC))


def _parse_events(wire: Iterable[Mapping[str, Any]]) -> Iterator[ScheduledEvent]:
    for event in wire:
        if event.get("Code") in EVENT_CODES and not event.get("Description", "").startswith(_FINISHED_EVENT_PREFIXES):
            begins = event.get("NotBefore")
            yield ScheduledEvent(
                event_id=event.get("InstanceEventId", ""),
                code=event["Code"],
                begins_at=begins.astimezone(UTC) if begins is not None else None,
            )
