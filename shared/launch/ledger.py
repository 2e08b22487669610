"""The ledger: what NodePools with limits have promised to launches that cannot be seen as machines yet.

One row per pool, written under a condition before anything is launched, so that two functions that plan at once cannot
both spend the same room. Read the row before the claims: then a hold that is gone from it is a machine in the list.

A hold says what each of its claims may become at worst. It needs no settling: a claim that has its instance counts with
that, one that EC2's answer left without counts nothing, and one that is gone while nobody knows EC2's answer counts
until the hold ends. Holds that count nothing are left out of the next writing.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.launch.breaker import pool_of
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.ec2 import FleetRequest
from shared.model.labels import NODECLASS, NODEPOOL
from shared.model.nodepools import NodePool
from shared.model.nodes import NodeClaim
from shared.model.resources import NODES, Resources, resources, total
from shared.model.state import pool_usage, state_nodes

HELD_FOR: Final = timedelta(minutes=5)
"""How long a claim that is gone keeps its room while EC2's answer is not known."""

UNSEEN_FOR: Final = timedelta(minutes=1)
"""A claim that has its instance may be younger than the list that misses it: no list is older than this."""


class Hold(msgspec.Struct, frozen=True, kw_only=True):
    """Room for one launch group."""

    group: str
    claims: tuple[str, ...]
    each: Resources
    """Raw capacity of the largest machine that one claim may become, by name."""
    until: datetime


class Book(msgspec.Struct, frozen=True, kw_only=True):
    """One NodePool's row: *version* is the one that was read, or 0 where there was none."""

    pool: str
    version: int = 0
    holds: tuple[Hold, ...] = ()
    """Sorted by group."""


class Account:
    """What one pool may still spend, while launches are planned."""

    def __init__(self, pool: NodePool, book: Book, cluster: Cluster) -> None:
        """Add up what is there and what is promised."""
        self.pool = pool.name
        self._book = book
        self._now = cluster.taken_at
        self._cluster = cluster
        self._limits = dict(pool.limits.amounts) if pool.limits is not None else {}
        launched = (one for one in state_nodes(cluster) if one.claim is None or one.claim.provider_id)
        self._used = pool_usage(launched, pool.name)
        self._claims = {claim.name: claim for claim in cluster.node_claims}
        self._groups = {group.name: group for group in cluster.launch_groups}
        self._new: list[Hold] = []

    def take(self, claims: Iterable[NodeClaim], each: Resources) -> tuple[int, str, bool]:
        """Promise room to the first of *claims*, each of which becomes *each* at worst.

        Answer how many have room, which resource ran out ("" if none did), and whether waiting may help the others:
        whether it is held for claims that are gone.
        """
        names = [claim.name for claim in claims]
        count, short = self._fitting(len(names), each, self._held(set(names)))
        if count == len(names):
            return count, "", False
        living = {name: one for name, one in self._held(set(names)).items() if name in self._claims}
        return count, short, self._fitting(len(names), each, living)[0] > count

    def hold(self, group: str, claims: Iterable[str], each: Resources) -> None:
        """Write down the promise to one launch group."""
        until = self._now + HELD_FOR
        self._new.append(Hold(group=group, claims=tuple(claims), each=each, until=until))

    def written(self) -> Book | None:
        """Answer the row as it must be written before anything is launched; None if nothing was promised."""
        if not self._new:
            return None
        new = {hold.group: hold for hold in self._new}
        kept = (hold for hold in self._book.holds if hold.group not in new and self._counting(hold))
        holds = tuple(sorted((*kept, *new.values()), key=lambda hold: hold.group))
        return msgspec.structs.replace(self._book, holds=holds)

    def _fitting(self, wanted: int, each: Resources, held: Mapping[str, Resources]) -> tuple[int, str]:
        spent = total((self._used, *(resources(dict(one.amounts) | {NODES: 1}) for one in held.values())))
        one_more = dict(each.amounts) | {NODES: 1}
        count, short = wanted, ""
        for name, limit in sorted(self._limits.items()):
            need = one_more.get(name, 0)
            room = max(0, limit - spent[name]) // need if need else wanted
            if room < count:
                count, short = room, name
        return count, short

    def _held(self, but: set[str]) -> dict[str, Resources]:
        """Answer what is promised by claim; to those in *but* a new promise is being made."""
        found: dict[str, Resources] = {}
        for hold in (*self._unwritten(), *self._book.holds, *self._new):
            for name in self._counting(hold):
                if name not in but:
                    found[name] = hold.each
        return found

    def _unwritten(self) -> Iterable[Hold]:
        """Answer what launches of the pool take that the book does not speak of: limits may be new, or a row broken."""
        written = {hold.group for hold in self._book.holds}
        for group in self._groups.values():
            if pool_of(group.request) == self.pool and group.name not in written:
                yield Hold(
                    group=group.name,
                    claims=group.claims,
                    each=largest(capacities_of(group.request, self._cluster)),
                    until=group.created_at + HELD_FOR,
                )

    def _counting(self, hold: Hold) -> tuple[str, ...]:
        group = self._groups.get(hold.group)
        return tuple(name for name in hold.claims if self._counts(name, hold, group))

    def _counts(self, name: str, hold: Hold, group: LaunchGroup | None) -> bool:
        claim = self._claims.get(name)
        if claim is not None and claim.provider_id:
            return False
        if group is None or group.result is None:
            return claim is not None or self._now < hold.until
        is_served = name in group.claims[: len(group.result.instances)]
        return is_served and (claim is not None or self._now < hold.until - HELD_FOR + UNSEEN_FOR)


def accounts(cluster: Cluster, books: Iterable[Book]) -> dict[str, Account]:
    """Answer an account for each NodePool with limits, by name."""
    known = {book.pool: book for book in books}
    return {
        pool.name: Account(pool, known.get(pool.name, Book(pool=pool.name)), cluster)
        for pool in cluster.node_pools
        if pool.limits is not None and pool.limits.amounts
    }


def capacities_of(request: FleetRequest, cluster: Cluster) -> list[Resources]:
    """Answer the raw capacity of every type that *request* may become."""
    tags = dict(request.tags)
    names = {override.instance_type for config in request.configs for override in config.overrides}
    catalogue = cluster.catalogue
    types = catalogue.types_for(tags.get(NODECLASS, ""), tags.get(NODEPOOL, "")) if catalogue is not None else ()
    return [one.capacity for one in types if one.name in names]


def largest(capacities: Iterable[Resources]) -> Resources:
    """Answer by name the most that any of *capacities* has."""
    found: dict[str, int] = {}
    for name, amount in (item for one in capacities for item in one.amounts):
        found[name] = max(found.get(name, 0), amount)
    return resources(found)
