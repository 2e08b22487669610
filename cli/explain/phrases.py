"""Text about nodes and costs that several answers share."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from cli.explain.history import MAX_LISTED_NAMES, HistoryEntry
from cli.explain.kinds import ExplainKind
from cli.explain.node_records import NodeRecord
from shared.model.core.formatting import format_count, format_elapsed, format_usd, format_usd_per_hour, join_names


class InstanceCost(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of instances in the period that is covered."""

    usd: float
    usd_per_hour: float
    """Of the instances that still exist at the end of the period."""
    hours: float


class ExplanationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A question with the sentences that answer it."""

    question: str
    sentences: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known about one object."""

    kind: ExplainKind
    name: str
    answers: tuple[ExplanationAnswer, ...]
    cost: InstanceCost | None = None
    history: tuple[HistoryEntry, ...] = ()


def build_answer(question: str, *texts: str) -> Iterator[ExplanationAnswer]:
    """Yield the answer to *question*; nothing if all *texts* are empty."""
    sentences = tuple(text for text in texts if text)
    if sentences:
        yield ExplanationAnswer(question=question, sentences=sentences)


def describe_node_record(record: NodeRecord) -> str:
    """Return the names of the Node, its NodeClaim, instance and NodePool, and since when it is deleted."""
    parts = (
        f"node {record.node}" if record.node else "no Node yet",
        f"NodeClaim {record.claim}",
        f"instance {record.instance}" if record.instance else "",
        f"NodePool {record.pool}" if record.pool else "",
    )
    return ", ".join(filter(None, parts)) + describe_record_end(record)


def describe_record_end(record: NodeRecord) -> str:
    """Return when the instance was terminated, or since when its NodeClaim is being deleted; "" if neither."""
    if record.terminated_at is not None:
        return f"; terminated at {format_instant(record.terminated_at)}"
    return f"; deleting since {format_instant(record.deleted_at)}" if record.deleted_at is not None else ""


def describe_intended_pods(record: NodeRecord) -> str:
    """Return the pods that the node was created for."""
    return (
        f"{format_count(len(record.pods), 'pod')}: {join_names(record.pods, MAX_LISTED_NAMES)}" if record.pods else ""
    )


def format_offering(record: NodeRecord) -> str:
    """Return the instance type, capacity type and zone."""
    return f"{record.instance_type}, {record.capacity_type}, in {record.zone}"


def describe_launched_offering(record: NodeRecord) -> str:
    """Return the launched instance type, its price, and the number of offerings that EC2 could choose from."""
    if not record.instance_type:
        return "not launched yet" if record.asked_at is not None else ""
    price = f", {format_usd_per_hour(record.usd_per_hour)}" if record.usd_per_hour else ""
    choice = f"; EC2 chose from {format_count(record.offerings, 'offering')}" if record.offerings else ""
    return f"{format_offering(record)}{price}{choice}"


def compute_cost(records: Iterable[NodeRecord], now: datetime) -> InstanceCost | None:
    """Return the cost of the instances until *now*; None if no price is known."""
    priced_records = [record for record in records if record.usd_per_hour and record.launched_at is not None]
    if not priced_records:
        return None
    lifetimes = [_compute_hours(record, now) for record in priced_records]
    return InstanceCost(
        usd=sum(record.usd_per_hour * hours for record, hours in zip(priced_records, lifetimes, strict=True)),
        usd_per_hour=sum(record.usd_per_hour for record in priced_records if record.terminated_at is None),
        hours=sum(lifetimes),
    )


def _compute_hours(record: NodeRecord, now: datetime) -> float:
    launched_at = record.launched_at or now
    return max((record.terminated_at or now) - launched_at, timedelta()) / timedelta(hours=1)


def format_cost(cost: InstanceCost | None) -> str:
    """Return *cost* as text; "" if no price is known."""
    if cost is None:
        return ""
    lifetime = format_elapsed(timedelta(hours=cost.hours))
    return f"{format_usd(cost.usd, 4)} for {lifetime} of instance time, without volumes"


def format_instant(at: datetime) -> str:
    """Return *at* as text, in UTC.

    >>> from datetime import UTC
    >>> format_instant(datetime(2026, 11, 21, 8, 5, tzinfo=UTC))
    '2026-11-21 08:05:00'
    """
    return f"{at:%Y-%m-%d %H:%M:%S}"
