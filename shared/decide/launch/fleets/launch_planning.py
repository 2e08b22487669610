"""Launch groups: NodeClaims without an instance -> one CreateFleet call per group of equal claims.

A group is recorded with its whole request before it is sent. A run that finds it without a result sends the same bytes
with the same ClientToken, and EC2 returns the same instances. So a claim is in at most one open group, and only the
claims that a finished group left without an instance may join another. Before that, the NodePool's limit reservations
and the circuit breaker decide how many of the claims may be launched at all.
"""

from collections.abc import Hashable
from typing import Final

import msgspec

from shared.decide.launch.canaries.canary_launches import CanaryLaunches
from shared.decide.launch.canaries.paused_launches import PAUSED_MESSAGE, PausedLaunches
from shared.decide.launch.fleets.circuit_breaker import CircuitBreaker, CircuitBreakerLimits, CircuitBreakerTrip
from shared.decide.launch.fleets.fleet_request import (
    FleetRequestDraft,
    LaunchRequirements,
    Unlaunchable,
    build_unlaunchable,
    draft_fleet_request,
)
from shared.decide.launch.fleets.launch_limits import (
    build_limit_accounts,
    compute_maximum,
    describe_exceeded_limit,
    find_group_amount,
    list_launch_scopes,
)
from shared.decide.launch.fleets.offerings import (
    LaunchOffering,
    SpotPriceTolerance,
    ZoneBalance,
    select_launch_offerings,
    select_preferred_capacity_type,
)
from shared.decide.launch.fleets.subnets import (
    build_exhausted_marks,
    count_free_addresses,
    list_exhausted_subnets,
    take_addresses,
)
from shared.decide.launch.money.limit_prices import apply_group, find_limit_prices
from shared.model.cloud_provider.cluster_group import GroupAmount
from shared.model.cloud_provider.launch_group import LaunchGroup
from shared.model.cloud_provider.limit_reservation import LimitReservations
from shared.model.cloud_provider.subnet_addresses import SubnetAddresses
from shared.model.cluster import ClusterSnapshot
from shared.model.core.digest import compute_digest
from shared.model.core.labels import LAUNCH_GROUP, MIN_VALUES_RELAXED, NODECLASS, NODEPOOL
from shared.model.core.resources import USD_PER_HOUR, Resources, build_resources
from shared.model.decisions.action import LaunchInstances
from shared.model.karpenter.health.launch_failures import LAUNCHES_PAUSED_REASON
from shared.model.karpenter.money_limit import CLUSTER_SCOPE, NO_CLUSTER_LIMIT, MoneyPolicy
from shared.model.karpenter.node_claim import NodeClaim
from shared.state.cluster_state import ClusterState

MAX_CLAIMS_PER_GROUP: Final = 500
"""Of one launch group: EC2 accepts 1,000 instances per request."""


class LaunchPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Settings and limits of launches, in addition to the cluster snapshot."""

    subnet_addresses: SubnetAddresses | None = None
    limit_reservations: tuple[LimitReservations, ...] = ()
    """Rows of the table, read before the cluster's claims were listed."""
    circuit_breaker_limits: CircuitBreakerLimits = CircuitBreakerLimits()
    money: MoneyPolicy = NO_CLUSTER_LIMIT
    on_demand_first_claims: frozenset[str] = frozenset()
    """Claims with several failed spot requests in a row: on-demand is tried first for them."""
    uses_open_reservations: bool = False
    """Whether instances that are not reserved may use open capacity reservations."""
    best_effort: bool = False
    """Whether claims are launched with fewer values than their minValues where one request cannot name more."""
    spot_price_tolerance: SpotPriceTolerance = SpotPriceTolerance()


class LaunchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The launches, sorted by group name, and the claims that cannot be launched, sorted by claim."""

    launches: tuple[LaunchInstances, ...] = ()
    answered_groups: tuple[LaunchGroup, ...] = ()
    """Groups with a recorded result that was not applied to every claim that got an instance."""
    unlaunchable: tuple[Unlaunchable, ...] = ()
    limit_reservations: tuple[LimitReservations, ...] = ()
    """The rows to write before any launch of their NodePools is sent, sorted by NodePool."""
    group_amount: GroupAmount | None = None
    """What the cluster uses with these launches; None: it has no group, or its entries could not be read."""
    trips: tuple[CircuitBreakerTrip, ...] = ()
    """Limits of the circuit breaker that were exceeded, sorted."""


def plan_launches(cluster_state: ClusterState, policy: LaunchPolicy | None = None) -> LaunchPlan:
    """Plan a launch for every claim without an instance."""
    cluster = cluster_state.snapshot
    pending_claims = {
        claim.name: claim for claim in cluster.node_claims if not claim.is_launched() and not claim.is_deleting()
    }
    repeated = [
        LaunchInstances(group=group, message="repeated: no result was recorded")
        for group in cluster.launch_groups
        if group.result is None
        and any(name in pending_claims and group.is_for(pending_claims[name]) for name in group.claims)
    ]
    answered_groups = tuple(
        group
        for group in cluster.launch_groups
        if any(name in pending_claims and group.is_for(pending_claims[name]) for name in group.list_served_claims())
    )
    claim_names_by_group = [(launch.group, launch.group.claims) for launch in repeated]
    claim_names_by_group += [(group, group.list_served_claims()) for group in answered_groups]
    handled_names = {
        name
        for group, names in claim_names_by_group
        for name in names
        if name in pending_claims and group.is_for(pending_claims[name])
    }
    paused_launches = PausedLaunches(cluster, handled_names)
    planner = _LaunchPlanner(cluster_state, policy if policy is not None else LaunchPolicy(), paused_launches)
    planner.plan([claim for name, claim in sorted(pending_claims.items()) if name not in handled_names])
    reservations = (account.build_updated_row() for _, account in sorted(planner.limit_accounts.items()))
    return LaunchPlan(
        launches=tuple(sorted((*repeated, *planner.launches), key=lambda launch: launch.group.name)),
        answered_groups=answered_groups,
        unlaunchable=tuple(sorted(planner.unlaunchable, key=lambda unlaunchable_claim: unlaunchable_claim.claim.name)),
        limit_reservations=tuple(book for book in reservations if book is not None),
        group_amount=find_group_amount(cluster, planner.limit_accounts),
        trips=tuple(sorted(planner.breaker.trips.values())),
    )


class _LaunchPlanner:
    """Plans launches one after the other: each sees what earlier ones take of addresses, limits and circuit breaker."""

    def __init__(self, cluster_state: ClusterState, policy: LaunchPolicy, paused_launches: PausedLaunches) -> None:
        cluster = cluster_state.snapshot
        self._paused_launches = paused_launches
        self.launches: list[LaunchInstances] = []
        self.unlaunchable: list[Unlaunchable] = []
        self._money = apply_group(policy.money, cluster)
        self._limit_prices = find_limit_prices(cluster_state, self._money)
        self.limit_accounts = build_limit_accounts(
            cluster_state, policy.limit_reservations, self._money, self._limit_prices
        )
        self.breaker = CircuitBreaker(
            cluster.launch_groups, cluster.taken_at, policy.circuit_breaker_limits, cluster.node_pools
        )
        self._cluster = cluster
        self._policy = policy
        self._canary_launches = CanaryLaunches(cluster)
        self._zone_balance = ZoneBalance(cluster)
        self._zone_by_claim: dict[str, str] = {}
        self._offerings_by_key: dict[Hashable, tuple[LaunchOffering, ...]] = {}
        self._free_addresses = count_free_addresses(cluster, policy.subnet_addresses)

    def plan(self, claims: list[NodeClaim]) -> None:
        """Plan the launches of *claims*, equal ones together."""
        draft_by_key: dict[Hashable, FleetRequestDraft | Unlaunchable] = {}
        claims_by_request: dict[str, tuple[FleetRequestDraft, list[NodeClaim]]] = {}
        for claim in claims:
            is_steady = claim.name in self._policy.on_demand_first_claims
            equivalence_key = _build_equivalence_key(claim, is_steady=is_steady)
            zone = self._zone_by_claim[claim.name] = self._choose_zone(claim, equivalence_key)
            key = (equivalence_key, zone, self._canary_launches.choose_images(claim))
            if key not in draft_by_key:
                draft_by_key[key] = self._draft_request(claim)
            request_draft = draft_by_key[key]
            if isinstance(request_draft, Unlaunchable):
                self.unlaunchable.append(msgspec.structs.replace(request_draft, claim=claim))
            else:
                self._canary_launches.count_launch(claim, request_draft.request)
                claims_by_request.setdefault(request_draft.compute_key(), (request_draft, []))[1].append(claim)
        for request_draft, equal_claims in claims_by_request.values():
            admitted = self._admit_claims(request_draft, equal_claims)
            for start in range(0, len(admitted), MAX_CLAIMS_PER_GROUP):
                self._add_launch(admitted[start : start + MAX_CLAIMS_PER_GROUP])

    def _choose_zone(self, claim: NodeClaim, equivalence_key: Hashable) -> str:
        """Return the zone that balances the NodePool of *claim*, "" without a balance."""
        if not self._zone_balance.is_balanced(claim):
            return ""
        if equivalence_key not in self._offerings_by_key:
            offerings = select_launch_offerings(claim, self._cluster, self._free_addresses)
            self._offerings_by_key[equivalence_key] = select_preferred_capacity_type(
                offerings, prefers_on_demand=claim.name in self._policy.on_demand_first_claims
            )
        return self._zone_balance.choose_zone(claim, self._offerings_by_key[equivalence_key])

    def _draft_request(self, claim: NodeClaim) -> FleetRequestDraft | Unlaunchable:
        requirements = LaunchRequirements(
            prefers_on_demand=claim.name in self._policy.on_demand_first_claims,
            uses_open_reservations=self._policy.uses_open_reservations,
            best_effort=self._policy.best_effort,
            spot_price_tolerance=self._policy.spot_price_tolerance,
            zone=self._zone_by_claim.get(claim.name, ""),
        )
        groups = [launch.group for launch in self.launches]
        exhausted_subnets = list_exhausted_subnets(self._cluster, self._policy.subnet_addresses, groups)
        marks = build_exhausted_marks(exhausted_subnets, self._cluster.taken_at)
        cluster = msgspec.structs.replace(self._cluster, unavailable=(*self._cluster.unavailable, *marks))
        tested_cluster = self._canary_launches.apply_images(claim, cluster)
        return draft_fleet_request(claim, tested_cluster, self._free_addresses, requirements)

    def _admit_claims(self, request_draft: FleetRequestDraft, claims: list[NodeClaim]) -> list[NodeClaim]:
        """Return the first of *claims* that limits and circuit breaker admit; record why the others must wait."""
        node_pool = claims[0].meta.get_label(NODEPOOL)
        count = self._paused_launches.count_allowed(claims)
        self._refuse(claims[count:], LAUNCHES_PAUSED_REASON, PAUSED_MESSAGE, is_final=True)
        for scope in list_launch_scopes(node_pool) if self.limit_accounts else ():
            account = self.limit_accounts.get(scope)
            if account is None:
                continue
            max_capacity = self._compute_worst_case(request_draft)
            allowed, resource_name, can_wait = account.count_within_limits(claims[:count], max_capacity)
            message = describe_exceeded_limit(account, resource_name, max_capacity, self._money.deciding_group)
            waits = self._money.is_waiting or self._is_static(node_pool)
            is_final = not can_wait and not (scope == CLUSTER_SCOPE and waits)
            self._refuse(claims[allowed:count], "LimitExceeded", message, is_final=is_final)
            count = allowed
        admitted_count, breaker_message = self.breaker.admit_launches(
            node_pool, count, request_draft.get_lowest_price()
        )
        self._refuse(claims[admitted_count:count], "LaunchBreakerOpen", breaker_message, is_final=False)
        return claims[:admitted_count]

    def _refuse(self, claims: list[NodeClaim], reason: str, message: str, *, is_final: bool) -> None:
        self.unlaunchable.extend(build_unlaunchable(claim, reason, message, final=is_final) for claim in claims)

    def _add_launch(self, claims: list[NodeClaim]) -> None:
        request_draft = self._draft_request(claims[0])  # drafted again: earlier launches may have filled a subnet
        if isinstance(request_draft, Unlaunchable):
            self.unlaunchable.extend(msgspec.structs.replace(request_draft, claim=claim) for claim in claims)
            return
        launch = _build_launch(request_draft, claims, self._cluster, self._zone_by_claim.get(claims[0].name, ""))
        self.launches.append(launch)
        self._paused_launches.count_launch(claims)
        take_addresses(self._free_addresses, request_draft.request, len(claims), self._cluster)
        for scope in list_launch_scopes(claims[0].meta.get_label(NODEPOOL)):
            account = self.limit_accounts.get(scope)
            if account is not None:
                account.add_reservation(launch.group.name, launch.group.claims, self._compute_worst_case(request_draft))

    def _is_static(self, node_pool: str) -> bool:
        """Return whether *node_pool* is static: its NodeClaims wait, because they would be created again."""
        return any(pool.name == node_pool and pool.replicas is not None for pool in self._cluster.node_pools)

    def _compute_worst_case(self, request_draft: FleetRequestDraft) -> Resources:
        offers = [offer for fitted in request_draft.fitted_templates for offer in fitted.launch_offerings]
        maximum = compute_maximum(offer.instance_type.capacity for offer in offers)
        if self._limit_prices is None:
            return maximum
        node_class = dict(request_draft.request.tags).get(NODECLASS, "")
        prices = [self._limit_prices.get_price(offer.instance_type, offer.offering, node_class) for offer in offers]
        return maximum + build_resources({USD_PER_HOUR: max(prices, default=0)})


def _build_equivalence_key(claim: NodeClaim, *, is_steady: bool) -> Hashable:
    """Return the properties that decide the fleet request: claims with equal keys get equal requests."""
    return (
        claim.node_class,
        claim.requirements,
        claim.requests,
        claim.taints,
        claim.startup_taints,
        claim.meta.labels,
        claim.meta.get_annotation(MIN_VALUES_RELAXED),
        is_steady,
    )


def _build_launch(
    request_draft: FleetRequestDraft, claims: list[NodeClaim], cluster: ClusterSnapshot, balanced_zone: str
) -> LaunchInstances:
    names = tuple(sorted(claim.name for claim in claims))
    claim_names = set(names)
    earlier_groups = [group.name for group in cluster.launch_groups if not claim_names.isdisjoint(group.claims)]
    # EC2 remembers a token forever: claims left without an instance need a new token.
    token = compute_digest(sorted(claim.meta.uid for claim in claims), sorted(earlier_groups))
    tags = tuple(sorted((*request_draft.request.tags, (LAUNCH_GROUP, token))))
    request = msgspec.structs.replace(request_draft.request, client_token=token, capacity=len(claims), tags=tags)
    group = LaunchGroup(
        name=token,
        claims=names,
        uids=tuple(claim.meta.uid for claim in sorted(claims, key=lambda claim: claim.name)),
        request=request,
        templates=tuple(
            sorted((fitted.template for fitted in request_draft.fitted_templates), key=lambda template: template.name)
        ),
        created_at=cluster.taken_at,
        node_class_hash=request_draft.node_class_hash,
    )
    cheapest = min(
        (override for config in request.configs for override in config.overrides),
        key=lambda override: (override.priority or 0.0, override.instance_type, override.zone),
    )
    message = f"{len(names)} x {request.capacity_type}, from ${cheapest.priority:.4f}/h ({cheapest.instance_type})"
    message += f"; {balanced_zone} balances the zones of its NodePool" if balanced_zone == cheapest.zone else ""
    return LaunchInstances(group=group, message=message)
