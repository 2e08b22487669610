"""The daily cost report: what `joiner cost` reads, one document a day, ``costs/2026-11-22.json`` in the bucket."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.report.costs import HOUR, Ledger
from shared.report.lives import Life

DEAREST: Final = 20


class Share(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Machines that are alike in all that costs are told apart by, and what they cost; dollars of this day."""

    pool: str = ""
    capacity_type: str = ""
    instance_type: str = ""
    label: str = ""
    """The value of the label of `Day.label`."""
    nodes: int
    """How many there were, one after the other or at once."""
    node_hours: float
    usd: float
    on_demand_usd: float
    """What the same hours cost on demand."""
    idle_usd: float
    """Of *usd*: for what no pod requested."""
    unpriced_hours: float = 0.0
    """Of *node_hours*: those of machines without a known price, which count nothing."""


class Dear(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One machine."""

    claim: str
    instance: str = ""
    pool: str
    instance_type: str
    capacity_type: str
    hours: float
    usd: float
    idle_usd: float


class Day(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A day, or what there was of it."""

    day: str
    """``2026-11-22``, UTC."""
    cluster: str
    since: datetime
    until: datetime
    label: str = ""
    """By which label costs are told apart, besides the rest."""
    usd: float
    node_hours: float
    saved_by_spot_usd: float
    """What the same hours on demand had cost more: spot and reserved machines are cheaper."""
    commands: int = 0
    """Of disruption, that came to their end."""
    saved_per_hour_usd: float = 0.0
    """What these save from then on."""
    saved_by_commands_usd: float = 0.0
    """What they saved of this day: each from its end to the end of the day."""
    idle_usd: float
    shares: tuple[Share, ...] = ()
    """Sorted by NodePool, capacity type, type and label."""
    dearest: tuple[Dear, ...] = ()
    """The `DEAREST` machines that cost most, dearest first."""


def day(ledger: Ledger, cluster: str, label: str = "") -> Day:
    """Answer the report of *ledger*."""
    lives = [one for one in ledger.lives if one.hours]
    shares = _shares(lives)
    saved = [(one.usd_per_hour, (ledger.until - one.at) / HOUR) for one in ledger.savings]
    return Day(
        day=f"{ledger.day:%Y-%m-%d}",
        cluster=cluster,
        since=ledger.since,
        until=ledger.until,
        label=label,
        usd=_usd(sum(one.usd for one in shares)),
        node_hours=_usd(sum(one.node_hours for one in shares)),
        saved_by_spot_usd=_usd(sum(one.on_demand_usd - one.usd for one in shares)),
        commands=len(saved),
        saved_per_hour_usd=_usd(sum(rate for rate, _ in saved)),
        saved_by_commands_usd=_usd(sum(rate * hours for rate, hours in saved)),
        idle_usd=_usd(sum(one.idle_usd for one in shares)),
        shares=shares,
        dearest=_dearest(lives),
    )


def is_whole(one: Day) -> bool:
    """Whether nothing of the day is missing."""
    return one.until - one.since >= timedelta(days=1)


def _shares(lives: Iterable[Life]) -> tuple[Share, ...]:
    found: dict[tuple[str, str, str, str], list[Life]] = defaultdict(list)
    for one in lives:
        found[one.pool, one.capacity_type, one.instance_type, one.label].append(one)
    return tuple(_share(key, found[key]) for key in sorted(found))


def _share(key: tuple[str, str, str, str], some: list[Life]) -> Share:
    def total(amount: Callable[[Life], float]) -> float:
        return _usd(sum(map(amount, some)))

    pool, capacity_type, instance_type, label = key
    return Share(
        pool=pool,
        capacity_type=capacity_type,
        instance_type=instance_type,
        label=label,
        nodes=len(some),
        node_hours=total(lambda one: one.hours),
        usd=total(lambda one: one.usd),
        on_demand_usd=total(lambda one: one.on_demand_usd),
        idle_usd=total(lambda one: one.idle_usd),
        unpriced_hours=total(lambda one: 0.0 if one.usd_per_hour else one.hours),
    )


def _dearest(lives: Iterable[Life]) -> tuple[Dear, ...]:
    ranked = sorted(lives, key=lambda one: (-one.usd, one.claim, one.instance))
    return tuple(
        Dear(
            claim=one.claim,
            instance=one.instance,
            pool=one.pool,
            instance_type=one.instance_type,
            capacity_type=one.capacity_type,
            hours=_usd(one.hours),
            usd=_usd(one.usd),
            idle_usd=_usd(one.idle_usd),
        )
        for one in ranked[:DEAREST]
    )


def _usd(amount: float) -> float:
    """Answer *amount* to the millionth: sums in another order are the same bytes."""
    return round(amount, 6)
