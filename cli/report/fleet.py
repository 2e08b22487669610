"""The instances of a report: which there are, what they cost, when they were launched and terminated."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.explain.evidence import Evidence
from cli.explain.node_records import NodeRecord
from shared.report.journal.journal import DecisionNote
from shared.state.cluster_state import ClusterState

PROVISION_INTERVAL: Final = timedelta(minutes=1)
MAX_BARS: Final = 60
_BAR_LENGTHS_SECONDS: Final = (60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 24 * 3600)
_ONE_HOUR: Final = timedelta(hours=1)


class FleetSample(msgspec.Struct, frozen=True, kw_only=True):
    """The size and cost of the fleet from a point in time on."""

    at: datetime
    nodes: float
    usd_per_hour: float


class FleetChange(msgspec.Struct, frozen=True, kw_only=True):
    """Launches and terminations within one bar that begins at *at*."""

    at: datetime
    launched: int
    terminated: int


class ReportedNode(msgspec.Struct, frozen=True, kw_only=True):
    """A node at the end of the covered time."""

    name: str
    claim: str = msgspec.field(name="node_claim")
    pool: str = msgspec.field(name="node_pool")
    instance_type: str
    capacity_type: str
    zone: str
    usd_per_hour: float
    launched_at: datetime | None
    verdict: str = msgspec.field(name="status")
    reason: str
    """Why it is kept or removed."""


class NodePoolRow(msgspec.Struct, frozen=True, kw_only=True):
    """The instances of one NodePool."""

    name: str
    nodes: int
    by_capacity: dict[str, int]
    usd_per_hour: float
    usd: float
    """Cost in the covered time."""
    launched: int
    terminated: int


class InstanceTypeRow(msgspec.Struct, frozen=True, kw_only=True):
    """Instances of one instance type and capacity type."""

    name: str
    nodes: int
    usd_per_hour: float


def complete_node_records(
    records: Iterable[NodeRecord], cluster_states: Iterable[ClusterState]
) -> tuple[NodeRecord, ...]:
    """Return the node records; for those older than the journal, age and price are taken from *cluster_states*."""
    created: dict[str, datetime] = {}
    prices: dict[str, float] = {}
    for cluster_state in cluster_states:
        for claim in cluster_state.snapshot.node_claims:
            price = cluster_state.price_list.get_price(claim.meta, claim.node_class.name)
            prices[claim.name] = price or prices.get(claim.name, 0.0)
            if claim.meta.created_at is not None and claim.is_launched():
                created[claim.name] = claim.meta.created_at
    return tuple(
        replace(
            record,
            launched_at=record.launched_at or (created.get(record.claim) if record.asked_at is None else None),
            usd_per_hour=record.usd_per_hour or prices.get(record.claim, 0.0),
        )
        for record in records
    )


def select_current_records(
    records: Iterable[NodeRecord], evidence: Evidence, *, is_live: bool
) -> tuple[NodeRecord, ...]:
    """Return the records of nodes that exist at the end of the covered time."""
    if is_live and evidence.live_cluster is not None:
        claims = {claim.name for claim in evidence.live_cluster.node_claims}
        return tuple(record for record in records if record.claim in claims and record.terminated_at is None)
    return tuple(record for record in records if record.terminated_at is None and record.launched_at is not None)


def compute_fleet_samples(
    evidence: Evidence, records: Iterable[NodeRecord], current_records: Sequence[NodeRecord]
) -> Iterator[FleetSample]:
    """Yield the fleet as counted by disrupt, or else as computed from *records*; the last sample is the current fleet.

    Without that sample, a chart would end before the totals of the page.
    """
    counted_entries = [cycle.entry for cycle in evidence.cycles if "ManagedNodes" in cycle.entry.counts]
    for entry in counted_entries:
        price = entry.counts.get("FleetUsdPerHour", 0.0)
        yield FleetSample(at=entry.at, nodes=entry.counts["ManagedNodes"], usd_per_hour=price)
    moves = [] if counted_entries else _sort_moves(records)
    nodes, price = 0, 0.0
    for at, sign, record in moves:
        nodes, price = nodes + sign, max(price + sign * record.usd_per_hour, 0.0)
        yield FleetSample(at=at, nodes=float(nodes), usd_per_hour=price)
    if counted_entries or moves:
        price = sum(record.usd_per_hour for record in current_records)
        yield FleetSample(at=evidence.journal.now, nodes=float(len(current_records)), usd_per_hour=price)


def _sort_moves(records: Iterable[NodeRecord]) -> list[tuple[datetime, int, NodeRecord]]:
    """Return launches (1) and terminations (-1), oldest first."""
    moves = [
        (at, sign, record)
        for record in records
        if record.launched_at is not None
        for at, sign in ((record.launched_at, 1), (record.terminated_at, -1))
        if at is not None
    ]
    return sorted(moves, key=lambda move: (move[0], move[1], move[2].claim))


def choose_bar_seconds(covered_time: timedelta) -> int:
    """Return the length of one bar in seconds, so that at most `MAX_BARS` cover *covered_time*."""
    min_seconds = covered_time.total_seconds() / MAX_BARS
    days = _BAR_LENGTHS_SECONDS[-1] * (1 + int(min_seconds) // _BAR_LENGTHS_SECONDS[-1])
    return next((length for length in _BAR_LENGTHS_SECONDS if length >= min_seconds), days)


def compute_changes(
    records: Iterable[NodeRecord], began: datetime, ended: datetime, length: int
) -> Iterator[FleetChange]:
    """Yield the bars: *length* seconds each, from *began* on."""
    launched: Counter[int] = Counter()
    terminated: Counter[int] = Counter()
    for record in records:
        if record.launched_at is not None and record.launched_at >= began:
            launched[_get_slot(record.launched_at, began, length)] += 1
        if record.terminated_at is not None:
            terminated[_get_slot(record.terminated_at, began, length)] += 1
    for slot in range(int((ended - began).total_seconds()) // length + 1):
        at = began + timedelta(seconds=slot * length)
        yield FleetChange(at=at, launched=launched[slot], terminated=terminated[slot])


def _get_slot(at: datetime, began: datetime, length: int) -> int:
    return int((at - began).total_seconds()) // length


def compute_cost_usd(records: Iterable[NodeRecord], began: datetime, ended: datetime) -> float:
    """Return the cost of *records* between two points in time; an instance without a known price costs nothing."""
    return sum(record.usd_per_hour * _compute_hours(record, began, ended) for record in records)


def _compute_hours(record: NodeRecord, began: datetime, ended: datetime) -> float:
    """Return the hours that *record* existed between two points in time."""
    if record.launched_at is None:
        return 0.0
    return max(min(record.terminated_at or ended, ended) - max(record.launched_at, began), timedelta()) / _ONE_HOUR


def build_pool_rows(
    records: Iterable[NodeRecord], current_records: Iterable[NodeRecord], began: datetime, ended: datetime
) -> tuple[NodePoolRow, ...]:
    """Return the NodePools, most expensive first."""
    records_by_pool: dict[str, list[NodeRecord]] = defaultdict(list)
    for record in records:
        records_by_pool[record.pool].append(record)
    current = frozenset(current_records)
    pool_rows = (_build_pool_row(name, pool, current, began, ended) for name, pool in records_by_pool.items())
    return tuple(sorted(pool_rows, key=lambda row: (-row.usd_per_hour, -row.usd, row.name)))


def _build_pool_row(
    name: str, records: Sequence[NodeRecord], current: frozenset[NodeRecord], began: datetime, ended: datetime
) -> NodePoolRow:
    current_records = [record for record in records if record in current]
    capacity_types = Counter(record.capacity_type for record in current_records if record.capacity_type)
    return NodePoolRow(
        name=name,
        nodes=len(current_records),
        by_capacity=dict(sorted(capacity_types.items())),
        usd_per_hour=sum(record.usd_per_hour for record in current_records),
        usd=compute_cost_usd(records, began, ended),
        launched=sum(record.launched_at is not None and record.launched_at >= began for record in records),
        terminated=sum(record.terminated_at is not None for record in records),
    )


def count_instance_types(current_records: Iterable[NodeRecord]) -> tuple[InstanceTypeRow, ...]:
    """Return the instance types with capacity type, most expensive first."""
    prices_by_type: dict[str, list[float]] = defaultdict(list)
    for record in current_records:
        name = f"{record.instance_type or 'unknown'} {record.capacity_type}".strip()
        prices_by_type[name].append(record.usd_per_hour)
    rows = (
        InstanceTypeRow(name=name, nodes=len(prices), usd_per_hour=sum(prices))
        for name, prices in prices_by_type.items()
    )
    return tuple(sorted(rows, key=lambda row: (-row.usd_per_hour, -row.nodes, row.name)))


def map_last_verdicts(evidence: Evidence) -> dict[str, DecisionNote]:
    """Return the last verdict of disrupt on each node."""
    return {note.name: note for _, note in evidence.iterate_notes("Node") if not note.links}


def build_node_rows(evidence: Evidence, current_records: Iterable[NodeRecord]) -> tuple[ReportedNode, ...]:
    """Return the nodes of *current_records*, by pool and name."""
    last = map_last_verdicts(evidence)
    node_rows = [_build_node_row(record, last.get(record.node)) for record in current_records]
    return tuple(sorted(node_rows, key=lambda row: (row.pool, row.name, row.claim)))


def _build_node_row(record: NodeRecord, note: DecisionNote | None) -> ReportedNode:
    verdict, reason = (note.verdict, note.reason) if note is not None else ("", "")
    if record.deleted_at is not None:
        verdict, reason = "deleting", record.deleted_why
    return ReportedNode(
        name=record.node,
        claim=record.claim,
        pool=record.pool,
        instance_type=record.instance_type,
        capacity_type=record.capacity_type,
        zone=record.zone,
        usd_per_hour=record.usd_per_hour,
        launched_at=record.launched_at,
        verdict=verdict,
        reason=reason,
    )
