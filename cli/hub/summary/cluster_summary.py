"""The summary of a cluster, from its newest journal entries, its newest decision record and its cost reports."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final, get_args

import msgspec

from cli.hub.summary.cluster_costs import ClusterCosts, read_cluster_costs
from cli.hub.summary.newest_entries import DAYS_READ, RECORD_FUNCTIONS, NewestEntries, read_newest_entries
from cli.hub.summary.recorded_fleet import HubPool, RecordedFleet, read_recorded_fleet
from cli.terminal.errors import InputError
from shared.model.decisions.action import Function
from shared.ports.storage import Bucket

PENDING_AGE: Final = timedelta(minutes=2)
"""`provision` runs each minute while pods are pending: an older entry means that no pods are pending."""
SILENT_AFTER: Final = timedelta(hours=2)
"""`catalog` writes an entry each hour: without a newer one, Joiner does not run in the cluster."""


class ClusterSummary(msgspec.Struct, frozen=True, kw_only=True):
    """What a cluster stored last; None is unknown."""

    last_entry_at: datetime
    """The newest journal entry; a run that changes nothing writes none."""
    is_silent: bool = False
    """Whether Joiner has written no entry for so long that it does not run, or cannot write."""
    fleet_at: datetime | None = None
    """When the fleet was like this."""
    nodes: int | None = None
    usd_per_hour: float | None = None
    pools: tuple[HubPool, ...] | None = None
    drifted_nodes: int | None = None
    pauses: tuple[str, ...] | None = None
    """Pauses by people and by settings, in words."""
    pending_pods: int | None = None
    kubernetes_version: str = ""
    code: str = ""
    """Digest of Joiner's code."""
    costs: ClusterCosts = ClusterCosts()
    messages: tuple[str, ...] = ()
    """Parts that could not be read."""


def read_cluster_summary(bucket: Bucket, now: datetime, *, is_copy: bool) -> ClusterSummary:
    """Read the summary; a copy may be old: its time is that of its last entry, not *now*.

    Raises:
        Fault: the bucket cannot be read.
        InputError: it has no journal entries.
    """
    functions: tuple[Function, ...] = get_args(Function)
    entries = {name: read_newest_entries(bucket, name, now, is_copy=is_copy) for name in functions}
    messages = [message for function_entries in entries.values() for message in function_entries.messages]
    newest = _find_newest_time(entries)
    if newest is None:
        period = "" if is_copy else f" of the last {DAYS_READ} days"
        raise InputError(f"no journal entries{period}: check the name, and run `joiner doctor` for the cluster")
    at = newest if is_copy else now
    is_silent = now - newest > SILENT_AFTER
    recorded_entries = [entry for name in RECORD_FUNCTIONS for entry in entries[name].entries if entry.snapshot]
    summary = ClusterSummary(
        last_entry_at=newest,
        is_silent=is_silent,
        pending_pods=None if is_silent and not is_copy else _count_pending_pods(entries["provision"], at),
        costs=read_cluster_costs(bucket, at, messages),
    )
    summary = _with_fleet(summary, read_recorded_fleet(bucket, recorded_entries, messages))
    return msgspec.structs.replace(_with_counts(summary, entries["disrupt"]), messages=tuple(messages))


def _find_newest_time(entries: Mapping[Function, NewestEntries]) -> datetime | None:
    times = [entry.at for function_entries in entries.values() for entry in function_entries.entries]
    times += [function_entries.unreadable_at for function_entries in entries.values() if function_entries.unreadable_at]
    return max(times, default=None)


def _count_pending_pods(provision: NewestEntries, at: datetime) -> int | None:
    """Return the pods that `provision` last planned for, without those that still run on draining nodes."""
    for entry in provision.entries:
        if "PendingPods" in entry.counts and at - entry.at <= PENDING_AGE:
            return int(entry.counts["PendingPods"] - entry.counts.get("ReschedulablePods", 0.0))
    is_unreadable = provision.unreadable_at is not None and at - provision.unreadable_at <= PENDING_AGE
    return None if is_unreadable else 0


def _with_fleet(summary: ClusterSummary, fleet: RecordedFleet | None) -> ClusterSummary:
    if fleet is None:
        return summary
    return msgspec.structs.replace(
        summary,
        fleet_at=fleet.at,
        nodes=sum(pool.nodes for pool in fleet.pools),
        usd_per_hour=fleet.usd_per_hour,
        pools=fleet.pools,
        drifted_nodes=fleet.drifted_nodes,
        pauses=fleet.pauses,
        kubernetes_version=fleet.kubernetes_version,
        code=fleet.code,
    )


def _with_counts(summary: ClusterSummary, disrupt: NewestEntries) -> ClusterSummary:
    """Return *summary* with the counts of a newer run of `disrupt`, if there is one."""
    for entry in disrupt.entries:
        if "ManagedNodes" in entry.counts and (summary.fleet_at is None or entry.at > summary.fleet_at):
            return msgspec.structs.replace(
                summary,
                fleet_at=entry.at,
                nodes=int(entry.counts["ManagedNodes"]),
                usd_per_hour=entry.counts.get("FleetUsdPerHour"),
            )
    return summary
