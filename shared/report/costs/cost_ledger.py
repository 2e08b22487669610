"""Daily node costs, from the journal, which records when nodes start and end, and from the fleet.

The ledger contains the nodes that exist or existed today, and the cost of each so far. It is billed hour by hour, at
the prices of the moment of billing, each node for the seconds of its existence: a node that started and ended within
the hour too, as the journal records it. What no journal entry records (a function was killed before it wrote) is
detected an hour later: a node that does not exist any more ends with the hour after which it was missed.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Catalog
from shared.report.costs.idle_cost import compute_idle_ratio
from shared.report.costs.node_lifetimes import NodeLifetime, NodeLifetimes
from shared.report.journal.journal import JournalEntry
from shared.state.cluster_state import ClusterState
from shared.state.state_node import StateNode

ONE_HOUR: Final = timedelta(hours=1)
SAVING_PHASE: Final = "INITIALIZED"
"""The phase of a command from which on it saves."""


class CommandSaving(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The saving of a command that ended today."""

    command: str
    at: datetime
    usd_per_hour: float


class CommitmentHour(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What commitments cover in an hour; amounts in USD."""

    hour: datetime
    """Its start, UTC."""
    committed_usd: float
    """Cost of the commitments, used or not."""
    unused_usd: float
    """The part of it that covers no known instance."""
    covered_usd: float
    """What the covered usage would cost on demand."""
    uncovered_usd: float
    """On-demand cost that no commitment covers."""
    paid_usd: float = 0.0
    """Cost of the covered usage at the rates of the commitments."""


class CostLedger(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One day, as far as it is billed."""

    since: datetime
    """Start of the day, or when the ledger was created."""
    until: datetime
    """Everything up to this full hour is billed."""
    lives: tuple[NodeLifetime, ...] = ()
    """Sorted by claim, then by launch: a claim's name can be used again."""
    savings: tuple[CommandSaving, ...] = ()
    """Sorted by command."""
    commitment_hours: tuple[CommitmentHour, ...] = ()
    """What commitments cover in each billed hour, in order; empty with the setting `commitments: off`."""

    @property
    def day(self) -> datetime:
        """Start of the day, in UTC."""
        return get_day_start(self.since)


def get_day_start(instant: datetime) -> datetime:
    """Return the start of the day of *instant*, in UTC."""
    return instant.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def get_hour_start(instant: datetime) -> datetime:
    """Return the start of the hour of *instant*, in UTC."""
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def bill_until(
    ledger: CostLedger, entries: Iterable[JournalEntry], fleet_state: ClusterState, label: str, until: datetime
) -> CostLedger:
    """Return *ledger* with the costs between its end and *until*.

    *entries* are the journal's of that period, *fleet_state* is the cluster now or soon after; costs are grouped by
    the node label *label*, "" for none.
    """
    sorted_entries = sorted(entries, key=lambda entry: (entry.at, entry.function))
    lifetimes = NodeLifetimes(ledger.lives, label)
    for entry in sorted_entries:
        for action_result in entry.results:
            if action_result.result == "done":
                lifetimes.add_action(action_result.action, entry.at)
        lifetimes.add_notes(entry.notes)
    fleet, states_by_claim = fleet_state.snapshot, fleet_state.node_by_claim
    unreadable_claims = frozenset(problem.name for problem in fleet.problems if problem.kind == "NodeClaim")
    lifetimes.add_fleet(states_by_claim, unreadable_claims, fleet_state.price_list, until)
    lifetimes.set_prices(_index_prices(fleet.catalog))
    billed_lifetimes = tuple(
        _with_hours(lifetime, ledger, until, states_by_claim.get(lifetime.claim))
        for lifetime in lifetimes.sort_lifetimes()
    )
    return replace(ledger, until=until, lives=billed_lifetimes, savings=_merge_savings(ledger.savings, sorted_entries))


def begin_next_day(ledger: CostLedger) -> CostLedger:
    """Return the ledger of the day that starts where *ledger* ends, with the nodes that still exist."""
    open_lifetimes = (lifetime for lifetime in ledger.lives if lifetime.ended is None)
    reset_lifetimes = tuple(
        replace(lifetime, hours=0.0, usd=0.0, on_demand_usd=0.0, idle_usd=0.0) for lifetime in open_lifetimes
    )
    return CostLedger(since=ledger.until, until=ledger.until, lives=reset_lifetimes)


def _index_prices(catalog: Catalog | None) -> dict[tuple[str, str, str], float]:
    """Return the prices of all offerings by instance type, zone and capacity type."""
    type_lists = (catalog.instance_types, *(types for _, types in catalog.by_node_class)) if catalog is not None else ()
    return {
        (kind.name, offering.zone, offering.capacity_type): offering.price_usd_per_hour
        for kinds in type_lists
        for kind in kinds
        for offering in kind.offerings
    }


def _with_hours(lifetime: NodeLifetime, ledger: CostLedger, until: datetime, state: StateNode | None) -> NodeLifetime:
    """Add the cost of *lifetime* from the end of *ledger* to *until*."""
    if lifetime.launched is None:
        return lifetime
    hours = max(min(lifetime.ended or until, until) - max(lifetime.launched, ledger.until), timedelta()) / ONE_HOUR
    idle_ratio = compute_idle_ratio(state.compute_allocatable(), state.sum_pod_requests()) if state is not None else 0.0
    return replace(
        lifetime,
        hours=lifetime.hours + hours,
        usd=lifetime.usd + hours * lifetime.usd_per_hour,
        on_demand_usd=lifetime.on_demand_usd + hours * lifetime.on_demand_usd_per_hour,
        idle_usd=lifetime.idle_usd + hours * lifetime.usd_per_hour * idle_ratio,
    )


def _merge_savings(
    earlier_savings: Iterable[CommandSaving], entries: Iterable[JournalEntry]
) -> tuple[CommandSaving, ...]:
    savings_by_command = {earlier_saving.command: earlier_saving for earlier_saving in earlier_savings}
    for saving in _find_savings(entries):
        savings_by_command.setdefault(saving.command, saving)
    return tuple(savings_by_command[name] for name in sorted(savings_by_command))


def _find_savings(entries: Iterable[JournalEntry]) -> Iterator[CommandSaving]:
    for entry in entries:
        for note in entry.notes:
            if (note.kind, note.verdict) == ("Command", SAVING_PHASE) and note.usd_per_hour:
                yield CommandSaving(command=note.name, at=entry.at, usd_per_hour=note.usd_per_hour)
