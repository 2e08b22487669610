"""What nodes cost, by the day: from the journal, which says when machines began and ended, and from the fleet.

The ledger has the machines that are or were there today, and what each has cost so far. It is billed an hour at a time,
at the prices of the moment at which that is done, a machine for the seconds that it was there: one that came and went
within the hour too, by what the journal says of it. What no entry of the journal tells (a function was ended before it
wrote) is seen an hour later: a machine that is not there any more ended with the hour after which it was missed.

Idle is what nobody requests of what pods may have: its share of the machine's price, a processor being worth 7.5 GiB,
as EC2 sells them.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from shared.disruption.prices import PriceList
from shared.model.catalogue import Catalogue
from shared.model.cluster import Cluster
from shared.model.resources import CPU, MEMORY, Resources
from shared.model.state import StateNode, state_nodes
from shared.report.journal import Entry
from shared.report.lives import Life, Lives

HOUR: Final = timedelta(hours=1)
GIB_PER_CPU: Final = 7.5
SAVED_AT: Final = "INITIALIZED"
"""The phase of a command from which on it saves."""


class Saving(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A command that came to its end today."""

    command: str
    at: datetime
    usd_per_hour: float


class Ledger(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A day as far as it is billed."""

    since: datetime
    """Its beginning, or when the ledger was begun."""
    until: datetime
    """Up to here everything is billed; a whole hour."""
    lives: tuple[Life, ...] = ()
    """Sorted by claim, then by launch: a claim's name may come again."""
    savings: tuple[Saving, ...] = ()
    """Sorted by command."""

    @property
    def day(self) -> datetime:
        """The day's beginning, in UTC."""
        return day_of(self.since)


def day_of(instant: datetime) -> datetime:
    """Answer when its day began, in UTC."""
    return instant.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def hour_of(instant: datetime) -> datetime:
    """Answer when its hour began."""
    return instant.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def billed(ledger: Ledger, entries: Iterable[Entry], fleet: Cluster, label: str, until: datetime) -> Ledger:
    """Answer the *ledger* with what was between its end and *until* in it.

    *entries* are those of the journal in that time, *fleet* what is there now or soon after; *label* is the one that
    costs are told apart by, "" for none.
    """
    told = sorted(entries, key=lambda one: (one.at, one.function))
    lives = Lives(ledger.lives, label)
    for entry in told:
        for done in entry.done:
            if done.result == "done":
                lives.hear(done.action, entry.at)
        lives.read(entry.notes)
    machines = {one.claim.name: one for one in state_nodes(fleet) if one.claim is not None}
    unread = frozenset(one.name for one in fleet.problems if one.kind == "NodeClaim")
    lives.look(machines, unread, PriceList(fleet.catalogue), until)
    lives.price(_sold(fleet.catalogue))
    kept = tuple(_with_hours(one, ledger, until, machines.get(one.claim)) for one in lives.sorted())
    return replace(ledger, until=until, lives=kept, savings=_savings(ledger.savings, told))


def next_day(ledger: Ledger) -> Ledger:
    """Answer the ledger of the day that begins where *ledger* ends: with the machines that are still there."""
    lives = (one for one in ledger.lives if one.ended is None)
    fresh = tuple(replace(one, hours=0.0, usd=0.0, on_demand_usd=0.0, idle_usd=0.0) for one in lives)
    return Ledger(since=ledger.until, until=ledger.until, lives=fresh)


def _sold(catalogue: Catalogue | None) -> dict[tuple[str, str, str], float]:
    """Answer what is sold for how much, by type, zone and capacity type."""
    every = (
        (catalogue.instance_types, *(types for _, types in catalogue.by_node_class)) if catalogue is not None else ()
    )
    return {
        (kind.name, one.zone, one.capacity_type): one.price_usd_per_hour
        for kinds in every
        for kind in kinds
        for one in kind.offerings
    }


def _with_hours(life: Life, ledger: Ledger, until: datetime, state: StateNode | None) -> Life:
    """Add what *life* costs from the end of *ledger* to *until*."""
    if life.launched is None:
        return life
    hours = max(min(life.ended or until, until) - max(life.launched, ledger.until), timedelta()) / HOUR
    idle = idle_share(state.allocatable(), state.used()) if state is not None else 0.0
    return replace(
        life,
        hours=life.hours + hours,
        usd=life.usd + hours * life.usd_per_hour,
        on_demand_usd=life.on_demand_usd + hours * life.on_demand_usd_per_hour,
        idle_usd=life.idle_usd + hours * life.usd_per_hour * idle,
    )


def idle_share(allocatable: Resources, used: Resources) -> float:
    """Answer which part of what pods may have nobody requests, by its worth: 0 to 1."""
    whole, left = _worth(allocatable), _worth(allocatable - used)
    return min(max(left / whole, 0.0), 1.0) if whole else 0.0


def _worth(some: Resources) -> float:
    return max(some[CPU], 0) / 1000 + max(some[MEMORY], 0) / 2**30 / GIB_PER_CPU


def _savings(known: Iterable[Saving], entries: Iterable[Entry]) -> tuple[Saving, ...]:
    found = {one.command: one for one in known}
    for one in _saved(entries):
        found.setdefault(one.command, one)
    return tuple(found[name] for name in sorted(found))


def _saved(entries: Iterable[Entry]) -> Iterator[Saving]:
    for entry in entries:
        for note in entry.notes:
            if (note.kind, note.verdict) == ("Command", SAVED_AT) and note.usd_per_hour:
                yield Saving(command=note.name, at=entry.at, usd_per_hour=note.usd_per_hour)
