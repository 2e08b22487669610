"""Limit reservations: what launches that are not visible as instances yet reserve of their NodePool's limits.

One row per NodePool, and one for the cluster if it has a limit in USD per hour. They are written conditionally before
anything is launched, so that two functions that plan at the same time cannot both use the same remaining amount. The
rows must be read before the claims are listed: then a reservation that is gone from a row is an instance in the list.

A reservation holds the worst case of each of its claims. It needs no settlement: a claim with an instance counts with
that instance, a claim that EC2's response left without an instance counts nothing, and a deleted claim with an unknown
EC2 response counts until the reservation expires. Reservations that count nothing are dropped by the next write.
"""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

import msgspec

from shared.decide.launch.money.limit_prices import LimitPrices
from shared.model.cloud_provider.cluster_group import GroupAmount
from shared.model.cloud_provider.instance_type import InstanceType, Offering
from shared.model.cloud_provider.launch_group import LaunchGroup, get_node_pool_name
from shared.model.cloud_provider.limit_reservation import LimitReservation, LimitReservations
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import LIMIT_USD, NODECLASS, NODEPOOL
from shared.model.core.resources import NODES, USD_PER_HOUR, Resources, build_resources, format_amount, sum_resources
from shared.model.ec2.fleet import FleetRequest
from shared.model.karpenter.money_limit import (
    CLUSTER_SCOPE,
    GROUP_LIMIT_FIX,
    NO_CLUSTER_LIMIT,
    GroupShare,
    MoneyPolicy,
    format_scope,
    has_limits,
    list_limits,
)
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.cluster_state import ClusterState
from shared.state.state_node import compute_pool_usage

RESERVATION_TTL: Final = timedelta(minutes=5)
"""How long a deleted claim keeps its reservation while EC2's response is unknown."""

MAX_LIST_AGE: Final = timedelta(minutes=1)
"""A claim with an instance may be newer than the list that lacks it: no list is older than this."""


class LimitAccount:
    """What one NodePool, or the cluster, may still use of its limits while launches are planned."""

    def __init__(
        self,
        limits: Mapping[str, int],
        reservations: LimitReservations,
        cluster_state: ClusterState,
        limit_prices: LimitPrices | None = None,
    ) -> None:
        """Add up the current usage and the *reservations* of the scope that they name.

        *limit_prices* are needed for a limit in USD per hour.
        """
        self.pool = reservations.pool
        cluster, self._reservations = cluster_state.snapshot, reservations
        self._now = cluster.taken_at
        self._cluster, self._limit_prices = cluster, limit_prices
        self.limits = limits
        launched = [
            state_node for state_node in cluster_state.nodes if state_node.claim is None or state_node.claim.provider_id
        ]
        self._usage = compute_pool_usage(launched, self.pool)
        if limit_prices is not None:
            self._usage += limit_prices.compute_usage(launched, self.pool)
        self._claims = {claim.name: claim for claim in cluster.node_claims}
        self._groups = {group.name: group for group in cluster.launch_groups}
        self._new_reservations: list[LimitReservation] = []

    def count_within_limits(self, claims: Iterable[NodeClaim], max_capacity: Resources) -> tuple[int, str, bool]:
        """Return how many of *claims* fit within the limits if each becomes *max_capacity* in the worst case.

        Return also which resource ran out ("" if none did), and whether waiting may help the other claims: whether the
        resource is reserved for claims that are deleted.
        """
        names = [claim.name for claim in claims]
        count, resource_name = self._count_fitting(len(names), max_capacity, self._list_reserved(set(names)))
        if count == len(names):
            return count, "", False
        reserved_by_live_claim = {
            name: capacity for name, capacity in self._list_reserved(set(names)).items() if name in self._claims
        }
        return count, resource_name, self._count_fitting(len(names), max_capacity, reserved_by_live_claim)[0] > count

    def compute_remaining_usd(self) -> int:
        """Return what is neither used nor reserved of the limit in USD per hour, in millionths; at least 0."""
        reserved = sum(capacity[USD_PER_HOUR] for capacity in self._list_reserved(set()).values())
        return max(0, self.limits.get(USD_PER_HOUR, 0) - self._usage[USD_PER_HOUR] - reserved)

    def compute_committed_usd(self) -> int:
        """Return what is used or reserved, with new reservations, in millionths of a USD per hour."""
        reserved_by_claim = self._list_reserved(set())
        return self._usage[USD_PER_HOUR] + sum(capacity[USD_PER_HOUR] for capacity in reserved_by_claim.values())

    def add_reservation(self, group: str, claims: Iterable[str], max_capacity: Resources) -> None:
        """Record the reservation of one launch group."""
        until = self._now + RESERVATION_TTL
        self._new_reservations.append(
            LimitReservation(group=group, claims=tuple(claims), max_capacity_per_claim=max_capacity, until=until)
        )

    def build_updated_row(self) -> LimitReservations | None:
        """Return the row to write before anything is launched; None if nothing was reserved."""
        if not self._new_reservations:
            return None
        new = {hold.group: hold for hold in self._new_reservations}
        live_reservations = (
            hold for hold in self._reservations.holds if hold.group not in new and self._list_counting_claims(hold)
        )
        holds = tuple(sorted((*live_reservations, *new.values()), key=lambda hold: hold.group))
        return msgspec.structs.replace(self._reservations, holds=holds)

    def _count_fitting(
        self, claim_count: int, max_capacity: Resources, reserved_by_claim: Mapping[str, Resources]
    ) -> tuple[int, str]:
        used_amounts = sum_resources(
            (
                self._usage,
                *(build_resources(dict(capacity.amounts) | {NODES: 1}) for capacity in reserved_by_claim.values()),
            )
        )
        capacity_per_claim = dict(max_capacity.amounts) | {NODES: 1}
        count, resource_name = claim_count, ""
        for name, limit in sorted(self.limits.items()):
            amount = capacity_per_claim.get(name, 0)
            max_count = max(0, limit - used_amounts[name]) // amount if amount else claim_count
            if max_count < count:
                count, resource_name = max_count, name
        return count, resource_name

    def _list_reserved(self, excluded: set[str]) -> dict[str, Resources]:
        """Return the reserved capacity by claim, without the *excluded* claims, which are getting a new reservation."""
        reserved_by_claim: dict[str, Resources] = {}
        for reservation in (*self._reservations.holds, *self._list_unrecorded(), *self._new_reservations):
            for name in self._list_counting_claims(reservation):
                if name not in excluded:
                    reserved_by_claim[name] = reservation.max_capacity_per_claim
        return reserved_by_claim

    def _list_unrecorded(self) -> Iterable[LimitReservation]:
        """Yield reservations for launches of the NodePool without a recorded one, or without its price.

        Limits may be new, or a row broken.
        """
        needs_price = USD_PER_HOUR in self.limits
        recorded_groups = {
            hold.group
            for hold in self._reservations.holds
            if not needs_price or hold.max_capacity_per_claim[USD_PER_HOUR]
        }
        for group in self._groups.values():
            is_in_scope = self.pool in (get_node_pool_name(group.request), CLUSTER_SCOPE)
            if is_in_scope and group.name not in recorded_groups:
                yield LimitReservation(
                    group=group.name,
                    claims=group.claims,
                    max_capacity_per_claim=compute_request_maximum(group.request, self._cluster, self._limit_prices),
                    until=group.created_at + RESERVATION_TTL,
                )

    def _list_counting_claims(self, reservation: LimitReservation) -> tuple[str, ...]:
        group = self._groups.get(reservation.group)
        return tuple(name for name in reservation.claims if self._is_counting(name, reservation, group))

    def _is_counting(self, name: str, reservation: LimitReservation, group: LaunchGroup | None) -> bool:
        claim = self._claims.get(name)
        if claim is not None and claim.provider_id:
            return False
        if group is None or group.result is None:
            return claim is not None or self._now < reservation.until
        is_served = name in group.claims[: len(group.result.instances)]
        return is_served and (claim is not None or self._now < reservation.until - RESERVATION_TTL + MAX_LIST_AGE)


def build_limit_accounts(
    cluster_state: ClusterState,
    all_reservations: Iterable[LimitReservations],
    money: MoneyPolicy = NO_CLUSTER_LIMIT,
    limit_prices: LimitPrices | None = None,
) -> dict[str, LimitAccount]:
    """Return a limit account for each NodePool with limits, by name, and for the cluster if it has a limit."""
    reservations_by_scope = {book.pool: book for book in all_reservations}
    limits_by_scope: dict[str, Mapping[str, int]] = {
        pool.name: list_limits(pool) for pool in cluster_state.snapshot.node_pools if has_limits(pool)
    }
    if money.effective_limit is not None:
        limits_by_scope[CLUSTER_SCOPE] = {USD_PER_HOUR: money.effective_limit}
    return {
        scope: LimitAccount(
            limits, reservations_by_scope.get(scope, LimitReservations(pool=scope)), cluster_state, limit_prices
        )
        for scope, limits in limits_by_scope.items()
    }


def describe_exceeded_limit(
    account: LimitAccount, resource_name: str, max_capacity: Resources, group: GroupShare | None = None
) -> str:
    """Return why a launch that would exceed the limit of *resource_name* is refused, with the fix for USD.

    *group* is the group of the cluster, if it decides about the limit of the cluster.
    """
    scope = format_scope(account.pool)
    if resource_name != USD_PER_HOUR:
        return f"{scope} would exceed its limit of {resource_name}"
    is_group_limit = group is not None and account.pool == CLUSTER_SCOPE
    if group is not None and is_group_limit and group.waiting_reason:
        return group.waiting_reason
    limit, price, remaining = (
        format_amount(USD_PER_HOUR, amount)
        for amount in (
            group.limit if group is not None and is_group_limit else account.limits[USD_PER_HOUR],
            max_capacity[USD_PER_HOUR],
            account.compute_remaining_usd(),
        )
    )
    fix = "limit-usd-per-hour" if account.pool == CLUSTER_SCOPE else LIMIT_USD
    if group is not None and is_group_limit:
        scope, fix = f"group {group.group}", GROUP_LIMIT_FIX
    return (
        f"{scope} would exceed its limit of {limit}: a node costs up to {price}, {remaining} is left; "
        f"to fix: increase {fix}"
    )


def find_group_amount(cluster: ClusterSnapshot, accounts: Mapping[str, LimitAccount]) -> GroupAmount | None:
    """Return what the cluster uses and reserves of the limit of its group.

    Return None if that cannot be written, or is not known: without NodeClaims or prices, the last amount still counts.
    """
    usage, is_unknown = cluster.group_usage, cluster.catalog is None or cluster.is_unserved("nodeclaims.karpenter.sh")
    if usage is None or usage.read_error or is_unknown:
        return None
    entry = usage.get_entry()
    return GroupAmount(
        used=accounts[CLUSTER_SCOPE].compute_committed_usd(), revision=0 if entry is None else entry.revision
    )


def list_launch_scopes(node_pool: str) -> tuple[str, str]:
    """Return the names of the accounts that a launch of *node_pool* is charged to."""
    return node_pool, CLUSTER_SCOPE


def compute_request_maximum(
    request: FleetRequest, cluster: ClusterSnapshot, limit_prices: LimitPrices | None
) -> Resources:
    """Return the maximum of each resource over the instances that *request* may launch, with their price."""
    maximum = compute_maximum(list_capacities(request, cluster))
    if limit_prices is None:
        return maximum
    node_class = dict(request.tags).get(NODECLASS, "")
    types = {kind.name: kind for kind in _list_types(request, cluster)}
    prices = [
        limit_prices.get_price(
            types[override.instance_type],
            Offering(
                zone=override.zone, capacity_type=request.capacity_type, price_usd_per_hour=override.priority or 0.0
            ),
            node_class,
        )
        for config in request.configs
        for override in config.overrides
        if override.instance_type in types
    ]
    return maximum + build_resources({USD_PER_HOUR: max(prices, default=0)})


def _list_types(request: FleetRequest, cluster: ClusterSnapshot) -> tuple[InstanceType, ...]:
    tags, catalog = dict(request.tags), cluster.catalog
    return catalog.get_instance_types(tags.get(NODECLASS, ""), tags.get(NODEPOOL, "")) if catalog is not None else ()


def list_capacities(request: FleetRequest, cluster: ClusterSnapshot) -> list[Resources]:
    """Return the raw capacity of every instance type that *request* may launch."""
    names = {override.instance_type for config in request.configs for override in config.overrides}
    return [instance_type.capacity for instance_type in _list_types(request, cluster) if instance_type.name in names]


def compute_maximum(capacities: Iterable[Resources]) -> Resources:
    """Return the maximum amount of each resource over *capacities*."""
    amounts: dict[str, int] = {}
    for name, amount in (item for capacity in capacities for item in capacity.amounts):
        amounts[name] = max(amounts.get(name, 0), amount)
    return build_resources(amounts)
