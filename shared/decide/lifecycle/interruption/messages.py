"""Parses interruption messages from EventBridge; a message that is not understood is a value, never an exception."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import msgspec

from shared.model.core.units import parse_instant
from shared.model.decisions.interruption_message import (
    INTERRUPTION_KIND_BY_INSTANCE_STATE,
    InterruptionKind,
    InterruptionMessage,
    UnknownMessage,
)


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


_KIND_BY_DETAIL_TYPE: Final[dict[str, InterruptionKind]] = {
    "EC2 Spot Instance Interruption Warning": "spot_interrupted",
    "EC2 Instance Rebalance Recommendation": "rebalance_recommendation",
    "EC2 Capacity Reservation Instance Interruption Warning": "capacity_reservation_interrupted",
}
_STATE_CHANGE_DETAIL_TYPE: Final = "EC2 Instance State-change Notification"
_HEALTH_SOURCE_AND_DETAIL_TYPE: Final = ("aws.health", "AWS Health Event")


def parse_interruption_message(body: str) -> InterruptionMessage | UnknownMessage:
    """Parse the body of one message."""
    try:
        envelope = msgspec.json.decode(body, type=_Envelope)
        return _parse_envelope(envelope)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeEncodeError, RecursionError) as error:
        return UnknownMessage(reason=f"not an interruption message: {error}")


def _parse_envelope(envelope: _Envelope) -> InterruptionMessage | UnknownMessage:
    source_and_type = (envelope.source, envelope.detail_type)
    if envelope.version == "0" and source_and_type == _HEALTH_SOURCE_AND_DETAIL_TYPE:
        return _parse_health_event(envelope)
    if envelope.version == "0" and envelope.source == "aws.ec2":
        if envelope.detail_type in _KIND_BY_DETAIL_TYPE:
            detail = msgspec.convert(envelope.detail, _InstanceDetail)
            return _build_message(_KIND_BY_DETAIL_TYPE[envelope.detail_type], (detail.instance_id,), envelope)
        if envelope.detail_type == _STATE_CHANGE_DETAIL_TYPE:
            return _parse_state_change(envelope)
    description = f"version {envelope.version!r}, source {envelope.source!r}, detail-type {envelope.detail_type!r}"
    return UnknownMessage(reason=f"unknown message: {description}")


def _parse_state_change(envelope: _Envelope) -> InterruptionMessage | UnknownMessage:
    detail = msgspec.convert(envelope.detail, _InstanceDetail)
    kind = INTERRUPTION_KIND_BY_INSTANCE_STATE.get(detail.state.lower())
    if kind is None:
        return UnknownMessage(reason=f"state {detail.state!r} needs no action", harmless=True)
    return _build_message(kind, (detail.instance_id,), envelope)


def _parse_health_event(envelope: _Envelope) -> InterruptionMessage | UnknownMessage:
    detail = msgspec.convert(envelope.detail, _HealthDetail)
    if detail.service != "EC2" or detail.event_type_category != "scheduledChange":
        description = f"{detail.service!r} {detail.event_type_category!r}"
        return UnknownMessage(reason=f"{description} needs no action", harmless=True)
    is_closed = detail.status_code.lower() == "closed"
    kind: InterruptionKind = "scheduled_change_cancelled" if is_closed else "scheduled_change"
    message = _build_message(kind, tuple(entity.entity_value for entity in detail.affected_entities), envelope)
    if isinstance(message, UnknownMessage):
        return message
    return msgspec.structs.replace(message, begins_at=_parse_http_date(detail.start_time), event=detail.event_arn)


def _parse_http_date(text: str) -> datetime | None:
    """Parse a date in the format of AWS Health: ``Sat, 21 Nov 2026 08:00:00 GMT``."""
    try:
        return parsedate_to_datetime(text).astimezone(UTC)
    except ValueError:
        return None


def _build_message(
    kind: InterruptionKind, instance_ids: tuple[str, ...], envelope: _Envelope
) -> InterruptionMessage | UnknownMessage:
    ids = tuple(sorted({instance_id for instance_id in instance_ids if instance_id}))
    if not ids:
        return UnknownMessage(reason=f"{kind} does not name an instance")
    try:
        at = parse_instant(envelope.time)
    except ValueError:
        at = None
    return InterruptionMessage(kind=kind, instance_ids=ids, at=at)
