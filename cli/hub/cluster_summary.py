"""The summary of a cluster, from its newest journal entries, its newest decision record and its cost reports."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, get_args

import msgspec

from cli.facts.mode import describe_mode
from cli.journal.entry_versions import decode_readable_parts
from cli.replay.rerun import build_cluster
from cli.status.summary import FleetStatus, build_fleet_status
from cli.terminal.errors import InputError
from shared.errors import NotFound
from shared.model.core.metadata import is_condition_true
from shared.model.decisions.action import Function
from shared.model.decisions.month_costs import MonthCosts
from shared.ports.storage import Bucket
from shared.report.costs.month_costs import compute_month_costs
from shared.report.journal.decision_record import DecisionRecord, decode_record
from shared.report.journal.journal import JOURNAL_PREFIX, JournalEntry, decode_entry
from shared.settings import Settings
from shared.state.cluster_state import ClusterState
from shared.store.catalog_format import decode_catalog

DAYS_READ: Final = 2
"""Days whose journal is listed: today and yesterday."""
MAX_ENTRIES_READ: Final = 10
"""Newest entries of a function that are read until one has what is needed."""
PENDING_AGE: Final = timedelta(minutes=2)
"""`provision` runs each minute while pods are pending: an older entry means that no pods are pending."""
_RECORD_FUNCTIONS: Final = ("disrupt", "provision", "interrupt")
"""Functions whose decision records contain the whole cluster."""
_KEY_TIME_PATTERN: Final = re.compile(r"(\d{4}/\d\d/\d\d/\d{6})-[^/]*\.json$")


class HubPool(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a NodePool."""

    name: str
    nodes: int
    usd_per_hour: float


class ClusterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster stored last; None is unknown."""

    last_entry_at: datetime
    """The newest journal entry; a run that changes nothing writes none."""
    fleet_at: datetime | None = None
    """When the fleet was like this."""
    nodes: int | None = None
    usd_per_hour: float | None = None
    pools: tuple[HubPool, ...] | None = None
    drifted_nodes: int | None = None
    pauses: tuple[str, ...] | None = None
    """Pauses by people and by settings, in words."""
    pending_pods: int = 0
    kubernetes_version: str = ""
    code: str = ""
    """Digest of Joiner's code."""
    costs: MonthCosts | None = None
    messages: tuple[str, ...] = ()
    """Parts that could not be read."""


class _RecordedFleet(msgspec.Struct, frozen=True, kw_only=True):
    entry: JournalEntry
    record: DecisionRecord
    status: FleetStatus
    drifted_nodes: int


def read_cluster_summary(bucket: Bucket, now: datetime, *, is_copy: bool) -> ClusterSummary:
    """Read the summary; a copy may be old: its time is that of its last entry, not *now*.

    Raises:
        Fault: the bucket cannot be read.
        InputError: it has no journal entries.
    """
    messages: list[str] = []
    keys_by_function = {name: _list_newest_keys(bucket, name, now, is_copy=is_copy) for name in get_args(Function)}
    entries = {name: tuple(_read_entries(bucket, keys, messages)) for name, keys in keys_by_function.items()}
    newest = max((entry.at for function_entries in entries.values() for entry in function_entries), default=None)
    if newest is None:
        period = "" if is_copy else f" of the last {DAYS_READ} days"
        raise InputError(f"no journal entries{period}: check the name, and run `joiner doctor` for the cluster")
    at = newest if is_copy else now
    summary = ClusterSummary(
        last_entry_at=newest,
        pending_pods=_count_pending_pods(entries["provision"], at),
        costs=compute_month_costs(bucket, None, at),
    )
    summary = _with_fleet(summary, _read_recorded_fleet(bucket, entries, messages))
    return msgspec.structs.replace(_with_counts(summary, entries["disrupt"]), messages=tuple(messages))


def _list_newest_keys(bucket: Bucket, function: str, now: datetime, *, is_copy: bool) -> Sequence[str]:
    """Return the keys of the newest entries, newest first."""
    prefix = f"{JOURNAL_PREFIX}{function}/"
    days = [""] if is_copy else [f"{now - timedelta(days=number):%Y/%m/%d}/" for number in range(DAYS_READ)]
    keys: list[str] = []
    for day in days:
        matches = [
            (match[1], key) for key in bucket.list_keys(f"{prefix}{day}") if (match := _KEY_TIME_PATTERN.search(key))
        ]
        keys += [key for _, key in sorted(matches, reverse=True)]
        if keys:
            break
    return keys[: MAX_ENTRIES_READ if function in _RECORD_FUNCTIONS else 1]


def _read_entries(bucket: Bucket, keys: Sequence[str], messages: list[str]) -> Iterator[JournalEntry]:
    """Yield entries, newest first, until one has a decision record: older ones say nothing more."""
    for key in keys:
        try:
            body = bucket.get(key)
        except NotFound:
            continue  # it expired after it was listed
        try:
            entry = decode_entry(body)
        except msgspec.DecodeError as error:
            partial_entry, _ = decode_readable_parts(body)
            messages.append(f"{key}: written by another version of Joiner, or damaged: {error}")
            if partial_entry is None:
                continue
            entry = partial_entry
        yield entry
        if entry.snapshot:
            return


def _count_pending_pods(entries: Sequence[JournalEntry], at: datetime) -> int:
    """Return the pods that `provision` last planned for, without those that still run on draining nodes."""
    for entry in entries:
        if "PendingPods" in entry.counts and at - entry.at <= PENDING_AGE:
            return int(entry.counts["PendingPods"] - entry.counts.get("ReschedulablePods", 0.0))
    return 0


def _read_recorded_fleet(
    bucket: Bucket, entries: Mapping[str, Sequence[JournalEntry]], messages: list[str]
) -> _RecordedFleet | None:
    """Return the fleet of the newest decision record that can be read."""
    recorded_entries = [entry for name in _RECORD_FUNCTIONS for entry in entries[name] if entry.snapshot]
    for entry in sorted(recorded_entries, key=lambda entry: (entry.at, entry.function), reverse=True):
        try:
            record = decode_record(bucket.get(entry.snapshot))
            catalog = decode_catalog(bucket.get(record.catalog_key)) if record.catalog_key else None
        except (NotFound, ValueError) as error:
            messages.append(f"{entry.snapshot}: the decision record or its catalog could not be read: {error}")
            continue
        cluster = build_cluster(record, catalog)
        drifted_nodes = sum(is_condition_true(claim.conditions, "Drifted") for claim in cluster.node_claims)
        status = build_fleet_status(ClusterState(cluster))
        return _RecordedFleet(entry=entry, record=record, status=status, drifted_nodes=drifted_nodes)
    return None


def _with_fleet(summary: ClusterSummary, fleet: _RecordedFleet | None) -> ClusterSummary:
    if fleet is None:
        return summary
    pools = tuple(
        HubPool(
            name=pool.name, nodes=pool.ready + pool.in_flight + pool.deleting, usd_per_hour=round(pool.usd_per_hour, 6)
        )
        for pool in fleet.status.pools
    )
    facts = fleet.record.cluster.facts
    usd_per_hour = fleet.status.usd_per_hour
    return msgspec.structs.replace(
        summary,
        fleet_at=fleet.entry.at,
        nodes=sum(pool.nodes for pool in pools),
        usd_per_hour=None if usd_per_hour is None else round(usd_per_hour, 6),
        pools=pools,
        drifted_nodes=fleet.drifted_nodes,
        pauses=tuple(_describe_pauses(fleet)),
        kubernetes_version=facts.version if facts is not None else "",
        code=fleet.entry.code,
    )


def _describe_pauses(fleet: _RecordedFleet) -> Iterator[str]:
    texts = fleet.record.inputs.setting_texts
    mode_texts = {name: texts[name] for name in ("mode", "disruption", "disruption_paused") if texts.get(name)}
    mode = describe_mode(msgspec.convert(mode_texts | {"cluster_name": "", "region": ""}, Settings, strict=False))
    if mode.state != "active":
        yield mode.message
    for active in fleet.status.pauses:
        scope = f"NodePool {active.pool}: " if active.pool else ""
        yield f"{scope}{active.pause.describe() or active.key}"


def _with_counts(summary: ClusterSummary, disrupt_entries: Sequence[JournalEntry]) -> ClusterSummary:
    """Return *summary* with the counts of a newer run of `disrupt`, if there is one."""
    for entry in disrupt_entries:
        if "ManagedNodes" in entry.counts and (summary.fleet_at is None or entry.at > summary.fleet_at):
            return msgspec.structs.replace(
                summary,
                fleet_at=entry.at,
                nodes=int(entry.counts["ManagedNodes"]),
                usd_per_hour=entry.counts.get("FleetUsdPerHour"),
            )
    return summary
