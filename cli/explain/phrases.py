"""Text about nodes and costs that several answers share."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from cli.explain.history import MAX_LISTED_NAMES, HistoryEntry
from cli.explain.kinds import ExplainKind
from cli.explain.node_records import NodeRecord
from cli.terminal.text import format_clock
from shared.model.core.formatting import format_count, join_names


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
    """Return the names of the node, its NodeClaim, instance and NodePool, and how it ended."""
    parts = (
        f"node {record.node}" if record.node else "a node that has not joined yet",
        f"NodeClaim {record.claim}",
        record.instance,
        f"of NodePool {record.pool}" if record.pool else "",
    )
    return ", ".join(part for part in parts if part) + describe_record_end(record)


def describe_record_end(record: NodeRecord) -> str:
    """Return since when the node is terminated or being deleted; "" if it is neither."""
    if record.terminated_at is not None:
        return f", gone since {format_instant(record.terminated_at)}"
    return f", leaving since {format_instant(record.deleted_at)}" if record.deleted_at is not None else ""


def describe_intended_pods(record: NodeRecord) -> str:
    """Return the pods that the node was created for."""
    return (
        f"{format_count(len(record.pods), 'pod')}: {join_names(record.pods, MAX_LISTED_NAMES)}" if record.pods else ""
    )


def describe_launched_offering(record: NodeRecord) -> str:
    """Return the launched instance type, its price, and the number of offerings that EC2 could choose from."""
    if not record.instance_type:
        return "nothing yet" if record.asked_at is not None else ""
    offering = f"{record.instance_type}, {record.capacity_type}, in {record.zone}"
    price = f", ${record.usd_per_hour:.4f} per hour" if record.usd_per_hour else ""
    choice = f": EC2's choice among {format_count(record.offerings, 'offering')}" if record.offerings else ""
    return f"{offering}{price}{choice}"


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
    return f"${cost.usd:.4f} for {format_clock(timedelta(hours=cost.hours))} of instance time, without volumes"


def format_instant(at: datetime) -> str:
    """Return *at* as text, in UTC.

    >>> from datetime import UTC
    >>> format_instant(datetime(2026, 11, 21, 8, 5, tzinfo=UTC))
    '2026-11-21 08:05:00'
    """
    return f"{at:%Y-%m-%d %H:%M:%S}"
