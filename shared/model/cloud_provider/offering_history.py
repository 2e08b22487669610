"""The history of offerings: interruptions, rebalance recommendations and capacity errors, counted with decay.

A count loses half of its value in each half-life, so that old events are forgotten. An interruption counts as the share
of the offering's nodes that it ended. So the count, divided by the mean lifetime of an event, estimates how often each
node of the offering is interrupted, however many nodes there were.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from math import log
from typing import Final, Literal, TypeAlias

import msgspec

OfferingEventKind: TypeAlias = Literal["interruption", "rebalance-recommendation", "capacity-error"]
OfferingKey: TypeAlias = tuple[str, str, str]
"""Instance type, zone, capacity type."""

RISK_HALVING_PERIOD: Final = timedelta(hours=24)
"""Of interruptions, rebalance recommendations and their evictions."""
CAPACITY_ERROR_HALVING_PERIOD: Final = timedelta(hours=1)
RECOMMENDATION_WEIGHT: Final = 0.25
"""A rebalance recommendation counts as this part of an interruption: it announces a risk, and is often followed by the
interruption itself. AWS publishes no number.
"""
MIN_COUNT: Final = 0.01
"""A record is forgotten when all of its counts are lower."""
_DIGITS: Final = 9
_ONE_HOUR: Final = timedelta(hours=1)


class OfferingEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True, omit_defaults=True):
    """One event of an offering."""

    instance_type: str
    zone: str
    capacity_type: str
    kind: OfferingEventKind
    at: datetime
    share: float = 1.0
    """The node's share of the nodes of the offering; 1 for a capacity error."""
    evictions: int = 0
    """The pods that need another node."""
    evictions_usd: float = 0.0
    """Their eviction price."""

    @property
    def key(self) -> OfferingKey:
        """The offering."""
        return self.instance_type, self.zone, self.capacity_type


class OfferingRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False, order=True, omit_defaults=True):
    """The decayed counts of one offering, as of *at*."""

    instance_type: str
    zone: str
    capacity_type: str
    at: datetime
    interruptions: float = 0.0
    """Shares of the offering's nodes; rebalance recommendations count as a part of an interruption."""
    evictions_usd: float = 0.0
    """Eviction prices of their pods, multiplied by the same shares."""
    capacity_errors: float = 0.0

    @property
    def key(self) -> OfferingKey:
        """The offering."""
        return self.instance_type, self.zone, self.capacity_type

    def with_decay(self, now: datetime) -> "OfferingRecord":
        """Return the counts as of *now*; a time before *at* changes nothing."""
        elapsed = now - self.at
        if elapsed <= timedelta():
            return self
        risk_factor, error_factor = (
            0.5 ** (elapsed / RISK_HALVING_PERIOD),
            0.5 ** (elapsed / CAPACITY_ERROR_HALVING_PERIOD),
        )
        return msgspec.structs.replace(
            self,
            at=now,
            interruptions=self.interruptions * risk_factor,
            evictions_usd=self.evictions_usd * risk_factor,
            capacity_errors=self.capacity_errors * error_factor,
        )

    @property
    def interruptions_per_hour(self) -> float:
        """Expected interruptions of one node per hour at *at*."""
        return self.interruptions * log(2) * (_ONE_HOUR / RISK_HALVING_PERIOD)

    @property
    def evictions_usd_per_hour(self) -> float:
        """Expected price of the evictions from one node per hour at *at*."""
        return self.evictions_usd * log(2) * (_ONE_HOUR / RISK_HALVING_PERIOD)

    def add(self, event: OfferingEvent) -> "OfferingRecord":
        """Return the record with *event*; the order in which events are added does not matter."""
        newer = self.with_decay(event.at)
        added = _count_event(event).with_decay(newer.at)
        return msgspec.structs.replace(
            newer,
            interruptions=newer.interruptions + added.interruptions,
            evictions_usd=newer.evictions_usd + added.evictions_usd,
            capacity_errors=newer.capacity_errors + added.capacity_errors,
        )

    @property
    def size(self) -> float:
        """What the record is worth if not all records fit into the stored row."""
        return self.interruptions + self.evictions_usd + self.capacity_errors


class OfferingHistory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The records of all offerings with recent events, sorted."""

    records: tuple[OfferingRecord, ...] = ()
    dropped_count: int = 0
    """Number of records that did not fit into the stored row."""

    def find(self, instance_type: str, zone: str, capacity_type: str) -> OfferingRecord | None:
        """Return the record of an offering, None if it has no recent events."""
        key = (instance_type, zone, capacity_type)
        return next((record for record in self.records if record.key == key), None)


def add_events(history: OfferingHistory, events: Iterable[OfferingEvent], now: datetime) -> OfferingHistory:
    """Return *history* with *events*, without the records that are forgotten at *now*."""
    record_by_key = {record.key: record for record in history.records}
    for event in sorted(events):
        record = record_by_key.get(event.key)
        record_by_key[event.key] = _count_event(event) if record is None else record.add(event)
    records = (_round_counts(record) for record in record_by_key.values() if not _is_forgotten(record.with_decay(now)))
    return OfferingHistory(records=tuple(sorted(records)), dropped_count=history.dropped_count)


def _count_event(event: OfferingEvent) -> OfferingRecord:
    weight = {"interruption": 1.0, "rebalance-recommendation": RECOMMENDATION_WEIGHT}.get(event.kind, 0.0) * event.share
    return OfferingRecord(
        instance_type=event.instance_type,
        zone=event.zone,
        capacity_type=event.capacity_type,
        at=event.at,
        interruptions=weight,
        evictions_usd=weight * event.evictions_usd,
        capacity_errors=1.0 if event.kind == "capacity-error" else 0.0,
    )


def _is_forgotten(record: OfferingRecord) -> bool:
    return max(record.interruptions, record.evictions_usd, record.capacity_errors) < MIN_COUNT


def _round_counts(record: OfferingRecord) -> OfferingRecord:
    return msgspec.structs.replace(
        record,
        interruptions=round(record.interruptions, _DIGITS),
        evictions_usd=round(record.evictions_usd, _DIGITS),
        capacity_errors=round(record.capacity_errors, _DIGITS),
    )
