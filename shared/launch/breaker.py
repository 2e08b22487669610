"""The launch breaker: a wrong pod spec, or a fault of ours, must not empty the account within minutes.

Launch groups are written down before they are sent and kept for a day: they are all that has to be counted. Nodes are
counted over a minute, money over an hour: USD per hour of all that was started within the last hour, at the price of
the offering that EC2 chose, or of the cheapest one until it has answered. The breaker closes by itself as launches
leave the window.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.cluster import LaunchGroup
from shared.model.ec2 import FleetRequest, Override
from shared.model.labels import NODEPOOL

NODES_WINDOW: Final = timedelta(minutes=1)
MONEY_WINDOW: Final = timedelta(hours=1)


class Fuses(msgspec.Struct, frozen=True, kw_only=True):
    """What one minute or hour may start; 0 is any number."""

    nodes_per_minute: int = 2000
    usd_per_hour: float = 2000.0
    pool_nodes_per_minute: int = 1000
    pool_usd_per_hour: float = 1000.0


class Trip(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A fuse that blew, and for which pool."""

    pool: str
    fuse: str
    """The setting's name."""
    message: str


class Breaker:
    """Counts what was started lately, and what is being planned."""

    def __init__(self, groups: Iterable[LaunchGroup], now: datetime, fuses: Fuses) -> None:
        """Count *groups*."""
        self._fuses = fuses
        self._nodes: dict[str, int] = {}
        self._usd: dict[str, float] = {}
        self.trips: dict[tuple[str, str], Trip] = {}
        for group in groups:
            age = now - group.created_at
            nodes, usd = started(group)
            self._add(pool_of(group.request), nodes if age < NODES_WINDOW else 0, usd if age < MONEY_WINDOW else 0.0)

    def take(self, pool: str, count: int, usd_each: float) -> tuple[int, str]:
        """Let the first of *count* machines through; answer how many, and which fuse stops the others, "" if none."""
        allowed, why = count, ""
        for fuse, room in self._rooms(pool, usd_each):
            if room < allowed:
                allowed = room
                trip = self._trip(pool, fuse)
                self.trips[pool, fuse] = trip
                why = trip.message
        self._add(pool, allowed, allowed * usd_each)
        return allowed, why

    def _rooms(self, pool: str, usd_each: float) -> Iterable[tuple[str, int]]:
        fuses = self._fuses
        for fuse, most, spent in (
            ("nodes_per_minute", fuses.nodes_per_minute, self._nodes.get("", 0)),
            ("pool_nodes_per_minute", fuses.pool_nodes_per_minute, self._nodes.get(f"/{pool}", 0)),
        ):
            if most:
                yield fuse, max(0, most - spent)
        for fuse, limit, dollars in (
            ("usd_per_hour", fuses.usd_per_hour, self._usd.get("", 0.0)),
            ("pool_usd_per_hour", fuses.pool_usd_per_hour, self._usd.get(f"/{pool}", 0.0)),
        ):
            if limit and usd_each > 0:
                yield fuse, max(0, int((limit - dollars) / usd_each + 1e-9))

    def _trip(self, pool: str, fuse: str) -> Trip:
        most = getattr(self._fuses, fuse)
        whose = f"NodePool {pool}" if fuse.startswith("pool") else "the cluster"
        what = f"{most} nodes per minute" if "nodes" in fuse else f"{most:g} USD per hour started within an hour"
        message = (
            f"launch breaker: {whose} has started {what}, the others wait and go on by themselves; if that is meant, "
            f"raise joiner:launch-{fuse.replace('_', '-')}, if not, look at the pods that ask for it"
        )
        return Trip(pool=pool, fuse=fuse, message=message)

    def _add(self, pool: str, nodes: int, usd: float) -> None:
        for key in ("", f"/{pool}"):
            self._nodes[key] = self._nodes.get(key, 0) + nodes
            self._usd[key] = self._usd.get(key, 0.0) + usd


def pool_of(request: FleetRequest) -> str:
    """Answer the NodePool that *request* is for: its tag."""
    return dict(request.tags).get(NODEPOOL, "")


def started(group: LaunchGroup) -> tuple[int, float]:
    """Answer how many machines *group* started, or may have, and their USD per hour."""
    prices = {(one.instance_type, one.zone): one.priority or 0.0 for one in _overrides(group)}
    if group.result is None:
        return group.request.capacity, group.request.capacity * min(prices.values(), default=0.0)
    chosen = [prices.get((one.instance_type, one.zone), 0.0) for one in group.result.instances]
    return len(chosen), sum(chosen)


def _overrides(group: LaunchGroup) -> list[Override]:
    return [override for config in group.request.configs for override in config.overrides]
