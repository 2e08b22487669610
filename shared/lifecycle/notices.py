"""What AWS sends about instances, as EventBridge wraps it. What is not understood is a value, never an exception."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from shared.model.units import parse_instant

NoticeKind: TypeAlias = Literal[
    "spot_interrupted",
    "rebalance_recommendation",
    "instance_stopped",
    "instance_terminated",
    "scheduled_change",
    "scheduled_change_cancelled",
    "capacity_reservation_interrupted",
]


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """One notice; instance ids sorted."""

    kind: NoticeKind
    instance_ids: tuple[str, ...]
    at: datetime | None = None
    """When it was sent."""
    begins_at: datetime | None = None
    """Of a scheduled change: when the machine is touched."""
    event: str = ""
    """Of a scheduled change: which one."""


class Unknown(msgspec.Struct, frozen=True, kw_only=True):
    """A message that nobody has to act on, and why."""

    reason: str
    harmless: bool = False
    """It is well-formed and known: nothing is wrong with the sender."""


class _Envelope(msgspec.Struct, frozen=True, rename="kebab"):
    version: str = ""
    source: str = ""
    detail_type: str = ""
    time: str = ""
    detail: dict[str, Any] = {}


class _InstanceDetail(msgspec.Struct, frozen=True, rename="kebab"):
    instance_id: str
    state: str = ""


class _Entity(msgspec.Struct, frozen=True, rename="camel"):
    entity_value: str = ""


class _HealthDetail(msgspec.Struct, frozen=True, rename="camel"):
    service: str = ""
    event_type_category: str = ""
    event_arn: str = ""
    status_code: str = ""
    start_time: str = ""
    affected_entities: tuple[_Entity, ...] = ()


_KINDS: Final[dict[str, NoticeKind]] = {
    "EC2 Spot Instance Interruption Warning": "spot_interrupted",
    "EC2 Instance Rebalance Recommendation": "rebalance_recommendation",
    "EC2 Capacity Reservation Instance Interruption Warning": "capacity_reservation_interrupted",
}
_STATES: Final[dict[str, NoticeKind]] = {
    "stopping": "instance_stopped",
    "stopped": "instance_stopped",
    "shutting-down": "instance_terminated",
    "terminated": "instance_terminated",
}
_STATE_CHANGE: Final = "EC2 Instance State-change Notification"
_HEALTH: Final = ("aws.health", "AWS Health Event")


def parse_notice(body: str) -> Notice | Unknown:
    """Read one message's body."""
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
        return _read(envelope)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        return Unknown(reason=f"not a notice: {error}")


def _read(envelope: _Envelope) -> Notice | Unknown:
    known = (envelope.source, envelope.detail_type)
    if envelope.version == "0" and known == _HEALTH:
        return _health(envelope)
    if envelope.version == "0" and envelope.source == "aws.ec2":
        if envelope.detail_type in _KINDS:
            detail = msgspec.convert(envelope.detail, _InstanceDetail)
            return _notice(_KINDS[envelope.detail_type], (detail.instance_id,), envelope)
        if envelope.detail_type == _STATE_CHANGE:
            return _state_change(envelope)
    said = f"version {envelope.version!r}, source {envelope.source!r}, detail-type {envelope.detail_type!r}"
    return Unknown(reason=f"nothing is known of {said}")


def _state_change(envelope: _Envelope) -> Notice | Unknown:
    detail = msgspec.convert(envelope.detail, _InstanceDetail)
    kind = _STATES.get(detail.state.lower())
    if kind is None:
        return Unknown(reason=f"state {detail.state!r} asks for nothing", harmless=True)
    return _notice(kind, (detail.instance_id,), envelope)


def _health(envelope: _Envelope) -> Notice | Unknown:
    detail = msgspec.convert(envelope.detail, _HealthDetail)
    if detail.service != "EC2" or detail.event_type_category != "scheduledChange":
        said = f"{detail.service!r} {detail.event_type_category!r}"
        return Unknown(reason=f"{said} asks for nothing", harmless=True)
    is_over = detail.status_code.lower() == "closed"
    kind: NoticeKind = "scheduled_change_cancelled" if is_over else "scheduled_change"
    notice = _notice(kind, tuple(one.entity_value for one in detail.affected_entities), envelope)
    if isinstance(notice, Unknown):
        return notice
    return msgspec.structs.replace(notice, begins_at=_mail_date(detail.start_time), event=detail.event_arn)


def _mail_date(text: str) -> datetime | None:
    """Read a date as AWS Health writes it: ``Sat, 21 Nov 2026 08:00:00 GMT``."""
    try:
        return parsedate_to_datetime(text).astimezone(UTC)
    except ValueError:
        return None


def _notice(kind: NoticeKind, instance_ids: tuple[str, ...], envelope: _Envelope) -> Notice | Unknown:
    ids = tuple(sorted({one for one in instance_ids if one}))
    if not ids:
        return Unknown(reason=f"{kind} names no instance")
    try:
        at = parse_instant(envelope.time)
    except ValueError:
        at = None
    return Notice(kind=kind, instance_ids=ids, at=at)
