"""The machines of a report: which there are, what they cost, when they came and went."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.explain_look import Look
from cli.explain_machines import Machine
from shared.disruption.prices import PriceList
from shared.model.cluster import Cluster
from shared.report.journal import Note

TICK: Final = timedelta(minutes=1)
BARS: Final = 60
_LENGTHS: Final = (60, 300, 600, 1800, 3600, 3 * 3600, 6 * 3600, 24 * 3600)
_HOUR: Final = timedelta(hours=1)


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet from an instant on."""

    at: datetime
    nodes: float
    usd_per_hour: float


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What happened within some time from *at* on."""

    at: datetime
    launched: int
    terminated: int


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A machine that is there at the end."""

    name: str
    claim: str
    pool: str
    instance_type: str
    capacity_type: str
    zone: str
    usd_per_hour: float
    launched_at: datetime | None
    verdict: str
    why: str
    """Why it stays, or why it goes."""


class Pool(msgspec.Struct, frozen=True, kw_only=True):
    """A NodePool's machines."""

    name: str
    nodes: int
    by_capacity: dict[str, int]
    usd_per_hour: float
    usd: float
    """In the time that is covered."""
    launched: int
    terminated: int


def completed(look: Look, first: Cluster | None) -> tuple[Machine, ...]:
    """Answer the machines, with the age and the price from snapshots of those that are older than the journal."""
    created: dict[str, datetime] = {}
    prices: dict[str, float] = {}
    for cluster in (first, look.live):
        if cluster is None:
            continue
        listed = PriceList(cluster.catalogue)
        for claim in cluster.node_claims:
            prices[claim.name] = listed.price(claim.meta, claim.node_class.name) or prices.get(claim.name, 0.0)
            if claim.meta.created_at is not None and claim.is_launched():
                created[claim.name] = claim.meta.created_at
    return tuple(
        replace(
            one,
            launched_at=one.launched_at or (created.get(one.claim) if one.asked_at is None else None),
            usd_per_hour=one.usd_per_hour or prices.get(one.claim, 0.0),
        )
        for one in look.machines
    )


def those_there(machines: Iterable[Machine], look: Look, *, is_live: bool) -> tuple[Machine, ...]:
    """Answer the machines that are there at the end."""
    if is_live and look.live is not None:
        claims = {claim.name for claim in look.live.node_claims}
        return tuple(one for one in machines if one.claim in claims and one.terminated_at is None)
    return tuple(one for one in machines if one.terminated_at is None and one.launched_at is not None)


def fleet(look: Look, machines: Iterable[Machine]) -> Iterator[Sample]:
    """Iterate over the fleet as disrupt counted it; where it did not, over what machines come to."""
    counted = [one.entry for one in look.cycles if "ManagedNodes" in one.entry.counts]
    for entry in counted:
        price = entry.counts.get("FleetUsdPerHour", 0.0)
        yield Sample(at=entry.at, nodes=entry.counts["ManagedNodes"], usd_per_hour=price)
    if counted:
        return
    nodes, price = 0, 0.0
    for at, sign, one in _moves(machines):
        nodes, price = nodes + sign, max(price + sign * one.usd_per_hour, 0.0)
        yield Sample(at=at, nodes=float(nodes), usd_per_hour=price)


def _moves(machines: Iterable[Machine]) -> list[tuple[datetime, int, Machine]]:
    """Answer who came and who went, oldest first."""
    some = [one for one in machines if one.launched_at is not None]
    moves = [(one.launched_at, 1, one) for one in some if one.launched_at is not None]
    moves += [(one.terminated_at, -1, one) for one in some if one.terminated_at is not None]
    return sorted(moves, key=lambda move: (move[0], move[1], move[2].claim))


def length_of(whole: timedelta) -> int:
    """Answer how many seconds one bar stands for."""
    wanted = whole.total_seconds() / BARS
    return next((one for one in _LENGTHS if one >= wanted), _LENGTHS[-1] * (1 + int(wanted) // _LENGTHS[-1]))


def changes(machines: Iterable[Machine], began: datetime, ended: datetime, length: int) -> Iterator[Change]:
    """Iterate over the bars: *length* seconds each, from *began* on."""
    launched: Counter[int] = Counter()
    ends: Counter[int] = Counter()
    for one in machines:
        if one.launched_at is not None and one.launched_at >= began:
            launched[_slot(one.launched_at, began, length)] += 1
        if one.terminated_at is not None:
            ends[_slot(one.terminated_at, began, length)] += 1
    for slot in range(int((ended - began).total_seconds()) // length + 1):
        at = began + timedelta(seconds=slot * length)
        yield Change(at=at, launched=launched[slot], terminated=ends[slot])


def _slot(at: datetime, began: datetime, length: int) -> int:
    return int((at - began).total_seconds()) // length


def usd_of(machines: Iterable[Machine], began: datetime, ended: datetime) -> float:
    """Answer what *machines* cost between two instants; one without a known price counts nothing."""
    return sum(one.usd_per_hour * _lived(one, began, ended) for one in machines)


def _lived(one: Machine, began: datetime, ended: datetime) -> float:
    """Answer the hours that it was there."""
    if one.launched_at is None:
        return 0.0
    return max(min(one.terminated_at or ended, ended) - max(one.launched_at, began), timedelta()) / _HOUR


def pools_of(
    machines: Iterable[Machine], there: Iterable[Machine], began: datetime, ended: datetime
) -> tuple[Pool, ...]:
    """Answer the NodePools, dearest first."""
    alive: dict[str, list[Machine]] = defaultdict(list)
    every: dict[str, list[Machine]] = defaultdict(list)
    for one in there:
        alive[one.pool].append(one)
    for one in machines:
        every[one.pool].append(one)
    found = [_pool(name, every[name], alive[name], began, ended) for name in every]
    return tuple(sorted(found, key=lambda one: (-one.usd_per_hour, -one.usd, one.name)))


def _pool(name: str, mine: Sequence[Machine], alive: Sequence[Machine], began: datetime, ended: datetime) -> Pool:
    return Pool(
        name=name,
        nodes=len(alive),
        by_capacity=dict(sorted(Counter(one.capacity_type for one in alive if one.capacity_type).items())),
        usd_per_hour=sum(one.usd_per_hour for one in alive),
        usd=usd_of(mine, began, ended),
        launched=sum(one.launched_at is not None and one.launched_at >= began for one in mine),
        terminated=sum(one.terminated_at is not None for one in mine),
    )


def types_of(there: Iterable[Machine]) -> list[tuple[str, int, float]]:
    """Answer instance types as they are sold: how many there are, and USD per hour; dearest first."""
    found: dict[str, list[float]] = defaultdict(list)
    for one in there:
        found[f"{one.instance_type or 'unknown'} {one.capacity_type}".strip()].append(one.usd_per_hour)
    return sorted(
        ((name, len(some), sum(some)) for name, some in found.items()), key=lambda row: (-row[2], -row[1], row[0])
    )


def last_verdicts(look: Look) -> dict[str, Note]:
    """Answer the last that a sweep said of each node."""
    return {note.name: note for _, note in look.notes("Node") if not note.links}


def nodes_of(look: Look, there: Iterable[Machine]) -> tuple[Node, ...]:
    """Answer the machines that are *there*, by pool and name."""
    last = last_verdicts(look)
    found = [_node(one, last.get(one.node)) for one in there]
    return tuple(sorted(found, key=lambda one: (one.pool, one.name, one.claim)))


def _node(one: Machine, said: Note | None) -> Node:
    verdict, why = (said.verdict, said.why) if said is not None else ("", "")
    if one.deleted_at is not None:
        verdict, why = "going", one.deleted_why
    return Node(
        name=one.node,
        claim=one.claim,
        pool=one.pool,
        instance_type=one.instance_type,
        capacity_type=one.capacity_type,
        zone=one.zone,
        usd_per_hour=one.usd_per_hour,
        launched_at=one.launched_at,
        verdict=verdict,
        why=why,
    )
