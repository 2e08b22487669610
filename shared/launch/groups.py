"""Claims without instance -> one CreateFleet per group of equal claims.

A group is written down, with its whole request, before it is sent: whoever finds it unanswered sends the same bytes
with the same ClientToken, and EC2 answers with the same instances. So a claim is in one open group at most, and only
the claims that an answered group left without an instance may join another. Before that, the NodePool's ledger and the
breaker say how many of the claims may be launched at all.
"""

from collections.abc import Hashable
from typing import Final

import msgspec

from shared.launch.breaker import Breaker, Fuses, Trip
from shared.launch.digest import digest
from shared.launch.drafts import Drafted, Unlaunchable, Wishes, draft, refused
from shared.launch.ledger import Book, accounts, largest
from shared.launch.subnets import Addresses, addresses_each, left
from shared.model.action import LaunchInstances
from shared.model.cluster import Cluster, LaunchGroup
from shared.model.labels import LAUNCH_GROUP, MIN_VALUES_RELAXED, NODEPOOL
from shared.model.nodes import NodeClaim
from shared.model.resources import Resources

MAX_CLAIMS: Final = 500
"""Of one group: EC2 takes 1,000 instances per request."""


class Terms(msgspec.Struct, frozen=True, kw_only=True):
    """What launches are held to, besides what the cluster says."""

    addresses: Addresses | None = None
    books: tuple[Book, ...] = ()
    """The ledger's rows, read before the cluster's claims were."""
    fuses: Fuses = Fuses()
    steady: frozenset[str] = frozenset()
    """Claims that spot was refused to several times running: on-demand comes first for them."""
    uses_open_reservations: bool = False
    """Whether instances that are not reserved may fall into open reservations."""
    best_effort: bool = False
    """Whether claims are launched with fewer values than their minValues, where one request cannot name more."""


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to send, sorted by group name, and whom it does not help, sorted by claim."""

    launches: tuple[LaunchInstances, ...] = ()
    answered: tuple[LaunchGroup, ...] = ()
    """Groups whose answer was written down, but not told to every claim that it gave an instance."""
    unlaunchable: tuple[Unlaunchable, ...] = ()
    books: tuple[Book, ...] = ()
    """What to write into the ledger before anything of its pools is sent, sorted by pool."""
    trips: tuple[Trip, ...] = ()
    """Fuses that blew, sorted."""


def plan_launches(cluster: Cluster, terms: Terms | None = None) -> LaunchPlan:
    """Answer how every claim without an instance gets one."""
    waiting = {
        claim.name: claim for claim in cluster.node_claims if not claim.is_launched() and not claim.is_deleting()
    }
    repeated = [
        LaunchInstances(group=group, why="repeated: no answer was written down")
        for group in cluster.launch_groups
        if group.result is None and any(name in waiting and group.is_for(waiting[name]) for name in group.claims)
    ]
    answered = tuple(
        group
        for group in cluster.launch_groups
        if any(name in waiting and group.is_for(waiting[name]) for name in served(group))
    )
    asked = [(launch.group, launch.group.claims) for launch in repeated]
    asked += [(group, served(group)) for group in answered]
    settled = {name for group, names in asked for name in names if name in waiting and group.is_for(waiting[name])}
    planner = _Planner(cluster, terms if terms is not None else Terms())
    planner.plan([claim for name, claim in sorted(waiting.items()) if name not in settled])
    books = (account.written() for _, account in sorted(planner.accounts.items()))
    return LaunchPlan(
        launches=tuple(sorted((*repeated, *planner.launches), key=lambda launch: launch.group.name)),
        answered=answered,
        unlaunchable=tuple(sorted(planner.unlaunchable, key=lambda one: one.claim.name)),
        books=tuple(book for book in books if book is not None),
        trips=tuple(sorted(planner.breaker.trips.values())),
    )


def served(group: LaunchGroup) -> tuple[str, ...]:
    """Answer the claims that EC2 gave an instance: the first ones, one for each."""
    return group.claims[: len(group.result.instances)] if group.result is not None else ()


class _Planner:
    """Launches one after the other: each sees what those before it take of addresses, limits and fuses."""

    def __init__(self, cluster: Cluster, terms: Terms) -> None:
        self.launches: list[LaunchInstances] = []
        self.unlaunchable: list[Unlaunchable] = []
        self.accounts = accounts(cluster, terms.books)
        self.breaker = Breaker(cluster.launch_groups, cluster.taken_at, terms.fuses)
        self._cluster = cluster
        self._terms = terms
        self._counts = left(cluster, terms.addresses)

    def plan(self, claims: list[NodeClaim]) -> None:
        """Launch *claims*, equal ones together."""
        drafts: dict[Hashable, Drafted | Unlaunchable] = {}
        equal: dict[str, tuple[Drafted, list[NodeClaim]]] = {}
        for claim in claims:
            shape = _shape(claim, is_steady=claim.name in self._terms.steady)
            if shape not in drafts:
                drafts[shape] = self._draft(claim)
            drafted = drafts[shape]
            if isinstance(drafted, Unlaunchable):
                self.unlaunchable.append(msgspec.structs.replace(drafted, claim=claim))
            else:
                equal.setdefault(drafted.key(), (drafted, []))[1].append(claim)
        for drafted, some in equal.values():
            allowed = self._allowed(drafted, some)
            for start in range(0, len(allowed), MAX_CLAIMS):
                self._launch(allowed[start : start + MAX_CLAIMS])

    def _draft(self, claim: NodeClaim) -> Drafted | Unlaunchable:
        wishes = Wishes(
            steady=claim.name in self._terms.steady,
            uses_open_reservations=self._terms.uses_open_reservations,
            best_effort=self._terms.best_effort,
        )
        return draft(claim, self._cluster, self._counts, wishes)

    def _allowed(self, drafted: Drafted, claims: list[NodeClaim]) -> list[NodeClaim]:
        """Answer the first of *claims*, as many as limit and breaker let through; the others are told why not."""
        pool = claims[0].meta.label(NODEPOOL)
        account = self.accounts.get(pool)
        count = len(claims)
        if account is not None:
            count, short, may_wait = account.take(claims, _worst(drafted))
            message = f"NodePool {pool} would exceed its limit of {short}"
            self.unlaunchable.extend(
                refused(one, "LimitExceeded", message, final=not may_wait) for one in claims[count:]
            )
        through, why = self.breaker.take(pool, count, drafted.price())
        self.unlaunchable.extend(refused(one, "LaunchBreakerOpen", why, final=False) for one in claims[through:count])
        return claims[:through]

    def _launch(self, claims: list[NodeClaim]) -> None:
        drafted = self._draft(claims[0])  # anew: what was launched before it may have filled a subnet
        if isinstance(drafted, Unlaunchable):
            self.unlaunchable.extend(msgspec.structs.replace(drafted, claim=one) for one in claims)
            return
        launch = _launch(drafted, claims, self._cluster)
        self.launches.append(launch)
        each = addresses_each(drafted.request, self._cluster)
        for subnet_id in {one.subnet_id for config in drafted.request.configs for one in config.overrides}:
            if subnet_id in self._counts:
                self._counts[subnet_id] -= len(claims) * each
        account = self.accounts.get(claims[0].meta.label(NODEPOOL))
        if account is not None:
            account.hold(launch.group.name, launch.group.claims, _worst(drafted))


def _worst(drafted: Drafted) -> Resources:
    return largest(offer.instance_type.capacity for one in drafted.fitted for offer in one.offers)


def _shape(claim: NodeClaim, *, is_steady: bool) -> Hashable:
    """Answer what claims have in common that are drafted alike."""
    return (
        claim.node_class,
        claim.requirements,
        claim.requests,
        claim.taints,
        claim.startup_taints,
        claim.meta.labels,
        claim.meta.annotation(MIN_VALUES_RELAXED),
        is_steady,
    )


def _launch(drafted: Drafted, claims: list[NodeClaim], cluster: Cluster) -> LaunchInstances:
    names = tuple(sorted(claim.name for claim in claims))
    wanted = set(names)
    answered = [group.name for group in cluster.launch_groups if not wanted.isdisjoint(group.claims)]
    # EC2 remembers a token for ever: who was left without an instance must ask under another one.
    token = digest(sorted(claim.meta.uid for claim in claims), sorted(answered))
    tags = tuple(sorted((*drafted.request.tags, (LAUNCH_GROUP, token))))
    request = msgspec.structs.replace(drafted.request, client_token=token, capacity=len(claims), tags=tags)
    group = LaunchGroup(
        name=token,
        claims=names,
        uids=tuple(claim.meta.uid for claim in sorted(claims, key=lambda one: one.name)),
        request=request,
        templates=tuple(sorted((one.template for one in drafted.fitted), key=lambda template: template.name)),
        created_at=cluster.taken_at,
        node_class_hash=drafted.node_class_hash,
    )
    cheapest = min(
        (override for config in request.configs for override in config.overrides),
        key=lambda override: (override.priority or 0.0, override.instance_type, override.zone),
    )
    why = f"{len(names)} x {request.capacity_type}, from ${cheapest.priority:.4f}/h ({cheapest.instance_type})"
    return LaunchInstances(group=group, why=why)
