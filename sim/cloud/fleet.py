"""CreateFleet of type `instant`: which offering is tried when, what is started, and what EC2 says of the rest.

The known difference: EC2 may spread a large request over several good pools; here the best one is used up first.
"""

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from shared.errors import Gone, Invalid
from shared.model.ec2 import (
    AllocationStrategy,
    CapacityType,
    FleetError,
    FleetInstance,
    FleetRequest,
    FleetResult,
    InstanceTypeInfo,
    LaunchTemplate,
    Override,
)
from sim.clock import Clock
from sim.cloud import chance, refusals
from sim.cloud.images import Shelf
from sim.cloud.instances import Machines, check_tags
from sim.cloud.machine import Machine, Order
from sim.cloud.network import Network
from sim.cloud.pools import Pool, Pools
from sim.cloud.prices import PriceList
from sim.cloud.refusals import Refused
from sim.cloud.reservations import Reservations, ReservedPool
from sim.cloud.selectors import sorted_tags
from sim.cloud.shapes import check_shape
from sim.cloud.templates import Templates

MAXIMUM_OVERRIDES: Final = 300
SPOT_STRATEGIES: Final = ("lowest-price", "price-capacity-optimized", "capacity-optimized-prioritized")
ON_DEMAND_STRATEGIES: Final = ("lowest-price", "prioritized")
NO_PRIORITY: Final = math.inf


class Stock(msgspec.Struct, frozen=True, kw_only=True):
    """All that a fleet draws from."""

    clock: Clock
    seed: int
    types: Mapping[str, InstanceTypeInfo]
    offered: Mapping[str, frozenset[str]]
    """Instance types by zone."""
    prices: PriceList
    pools: Pools
    network: Network
    images: Shelf
    templates: Templates
    machines: Machines
    reservations: Reservations


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One offering of a request, with all that may decide when it is tried."""

    override: Override
    template: LaunchTemplate
    price_usd_per_hour: float
    depth: float
    """Of the pool: in [0, 1)."""

    @property
    def image_id(self) -> str:
        """The override's, or else the template's."""
        return self.override.image_id or self.template.image_id


Key = Callable[[Candidate], tuple[float, ...]]


def ranked(candidates: list[Candidate], strategy: AllocationStrategy) -> list[Candidate]:
    """Answer *candidates* in the order in which they are tried; the last words are type, zone and subnet.

    `price-capacity-optimized` pays up to twice the price for depth, `capacity-optimized-prioritized` knows four depths
    and asks for the priority inside each.
    """
    keys: dict[AllocationStrategy, Key] = {
        "lowest-price": lambda c: (c.price_usd_per_hour,),
        "price-capacity-optimized": lambda c: (c.price_usd_per_hour * (2 - c.depth),),
        "capacity-optimized-prioritized": lambda c: (-math.floor(c.depth * 4), _priority(c)),
        "prioritized": lambda c: (_priority(c), c.price_usd_per_hour),
    }
    key = keys[strategy]
    return sorted(
        candidates, key=lambda c: (key(c), c.override.instance_type, c.override.zone, c.override.subnet_id, c.image_id)
    )


class Fleets:
    """Every answer that was given, by token."""

    def __init__(self, stock: Stock) -> None:
        """Begin with none."""
        self._stock = stock
        self._answers: dict[str, tuple[FleetRequest, FleetResult]] = {}
        self._count = 0

    def create(self, request: FleetRequest) -> FleetResult:
        """Start what can be started, or repeat what was answered to the same request with the same token.

        Raises:
            Invalid: the request is wrong, or its token was used for another one.
            Gone: a launch template does not exist.
        """
        known = self._answers.get(request.client_token)
        if known is not None and known[0] != request:
            text = "The request uses the same client token as a previous, but non-identical request."
            raise Invalid(text, code="IdempotentParameterMismatch")
        if known is not None:
            return known[1]
        _check(request)
        candidates = self._candidates(request)
        self._count += 1
        fleet_id = f"fleet-{chance.uuid(self._stock.seed, 'fleet', self._count)}"
        result = self._fulfill(request, fleet_id, ranked(candidates, request.allocation_strategy))
        if request.client_token:
            self._answers[request.client_token] = (request, result)
        return result

    def _candidates(self, request: FleetRequest) -> list[Candidate]:
        now = self._stock.clock.now()
        return [
            self._candidate(request, override, self._stock.templates.find(config.launch_template_name), now)
            for config in request.configs
            for override in config.overrides
        ]

    def _candidate(
        self, request: FleetRequest, override: Override, template: LaunchTemplate, now: datetime
    ) -> Candidate:
        stock, kind, zone = self._stock, override.instance_type, override.zone
        known = kind in stock.types
        price = stock.prices.on_demand[kind] if known else math.inf
        if known and request.capacity_type == "spot":
            price = stock.prices.spot(kind, zone, now)
        depth = stock.pools.depth(kind, zone, request.capacity_type)
        return Candidate(override=override, template=template, price_usd_per_hour=price, depth=depth)

    def _fulfill(self, request: FleetRequest, fleet_id: str, candidates: list[Candidate]) -> FleetResult:
        started: list[FleetInstance] = []
        refusals: list[tuple[Candidate, Refused]] = []
        for candidate in candidates:
            try:
                while len(started) < request.capacity:
                    started.append(self._start(request, fleet_id, candidate))
            except Refused as refused:
                refusals.append((candidate, refused))
        nothing = not started and request.capacity_type == "spot"
        errors = {_error(candidate, refused, nothing=nothing) for candidate, refused in refusals}
        return FleetResult(fleet_id=fleet_id, instances=tuple(sorted(started)), errors=tuple(sorted(errors)))

    def _start(self, request: FleetRequest, fleet_id: str, candidate: Candidate) -> FleetInstance:
        stock, override = self._stock, candidate.override
        self._check_configuration(request, candidate)
        pool = self._pool(request, candidate)
        self._check_room(request, override, pool)
        order = Order(
            instance_type=override.instance_type,
            vcpus=stock.types[override.instance_type].vcpus,
            capacity_type=request.capacity_type,
            image_id=candidate.image_id,
            template=candidate.template,
            tags=sorted_tags((*request.tags, *self._own_tags(fleet_id, candidate.template))),
        )
        return _started(stock.machines.start(order, stock.network.subnet(override.subnet_id), pool))

    def _own_tags(self, fleet_id: str, template: LaunchTemplate) -> tuple[tuple[str, str], ...]:
        return (
            ("aws:ec2:fleet-id", fleet_id),
            ("aws:ec2launchtemplate:id", self._stock.templates.template_id(template.name)),
            ("aws:ec2launchtemplate:version", "1"),
        )

    def _check_configuration(self, request: FleetRequest, candidate: Candidate) -> None:
        """Refuse what could not be started with all the capacity in the world."""
        override = candidate.override
        info = self._stock.types.get(override.instance_type)
        if info is None:
            raise refusals.no_such_type(override.instance_type)
        self._check_place(override)
        self._check_image(info, candidate.image_id)
        check_shape(candidate.template, info, self._stock.reservations)
        for group_id in candidate.template.security_group_ids:
            if not self._stock.network.has_security_group(group_id):
                raise refusals.no_such_group(group_id)
        if request.capacity_type == "spot":
            if "spot" not in info.usage_classes:
                raise refusals.not_as_spot(info.name)
        elif candidate.template.capacity_type == "spot" and candidate.template.tags:
            raise refusals.not_a_spot_request()

    def _check_place(self, override: Override) -> None:
        try:
            subnet = self._stock.network.subnet(override.subnet_id)
        except Gone as gone:
            raise refusals.missing(gone) from gone
        if override.zone != subnet.zone:
            raise refusals.other_zone(override.subnet_id, override.zone)
        if override.instance_type not in self._stock.offered[subnet.zone]:
            raise refusals.not_in_zone(override.instance_type, subnet.zone, self._zones_of(override.instance_type))

    def _check_image(self, info: InstanceTypeInfo, image_id: str) -> None:
        try:
            image = self._stock.images.find(image_id)
        except Gone as gone:
            raise refusals.missing(gone) from gone
        if image.architecture not in info.architectures:
            raise refusals.other_architecture(info.architectures, image.architecture)

    def _pool(self, request: FleetRequest, candidate: Candidate) -> Pool:
        """Answer what is drawn from: a reservation that the template names, if it is for such an offering."""
        override, named = candidate.override, candidate.template.reservation_id
        if not named:
            return self._stock.pools.pool(override.instance_type, override.zone, request.capacity_type)
        known = self._stock.reservations.find(named)
        if known is None or (known.instance_type, known.zone) != (override.instance_type, override.zone):
            raise refusals.other_reservation(named)
        return ReservedPool(self._stock.reservations, named)

    def _check_room(self, request: FleetRequest, override: Override, pool: Pool) -> None:
        """Refuse what there is no room for at the moment."""
        self._check_quota(override.instance_type, request.capacity_type)
        if self._stock.network.subnet(override.subnet_id).free <= 0:
            raise refusals.no_addresses(override.subnet_id)
        kind, zone = override.instance_type, override.zone
        if pool.free == 0:
            if request.capacity_type == "reserved":
                raise refusals.no_reservation()
            raise refusals.no_capacity(kind, zone, tuple(other for other in self._zones_of(kind) if other != zone))

    def _check_quota(self, instance_type: str, capacity_type: CapacityType) -> None:
        spot, quota = capacity_type == "spot", self._stock.pools.quota(capacity_type)
        if quota is None:
            return
        if self._stock.machines.vcpus(spot=spot) + self._stock.types[instance_type].vcpus > quota:
            raise refusals.spot_quota() if spot else refusals.on_demand_quota(quota)

    def _zones_of(self, instance_type: str) -> tuple[str, ...]:
        return tuple(zone for zone, types in self._stock.offered.items() if instance_type in types)


def _check(request: FleetRequest) -> None:
    overrides = [override for config in request.configs for override in config.overrides]
    pools = {(override.instance_type, override.subnet_id) for override in overrides}
    allowed = SPOT_STRATEGIES if request.capacity_type == "spot" else ON_DEMAND_STRATEGIES
    if request.capacity < 1:
        raise Invalid("TotalTargetCapacity must be at least 1", code="InvalidParameterValue")
    if request.allocation_strategy not in allowed:
        text = f"{request.allocation_strategy} is no strategy for {request.capacity_type}"
        raise Invalid(text, code="InvalidParameterValue")
    if not overrides:
        raise Invalid("The request must contain the parameter LaunchTemplateConfigs", code="MissingParameter")
    if len(overrides) > MAXIMUM_OVERRIDES:
        raise Invalid(f"More than {MAXIMUM_OVERRIDES} overrides specified", code="InvalidParameterValue")
    if len(pools) < len(overrides):
        raise Invalid("The fleet configuration contains duplicate instance pools", code="InvalidFleetConfig")
    check_tags(request.tags)


def _priority(candidate: Candidate) -> float:
    return NO_PRIORITY if candidate.override.priority is None else candidate.override.priority


def _error(candidate: Candidate, refused: Refused, *, nothing: bool) -> FleetError:
    """Spot has another word for an empty pool where *nothing* at all was started."""
    if nothing and refused.code == "InsufficientInstanceCapacity":
        refused = refusals.no_spot_anywhere()
    override = candidate.override
    return FleetError(
        code=refused.code,
        message=str(refused),
        instance_type=override.instance_type,
        zone=override.zone,
        subnet_id=override.subnet_id,
    )


def _started(machine: Machine) -> FleetInstance:
    return FleetInstance(
        instance_id=machine.instance_id,
        instance_type=machine.order.instance_type,
        zone=machine.subnet.zone,
        subnet_id=machine.subnet.subnet_id,
        image_id=machine.order.image_id,
        capacity_type=machine.order.capacity_type,
    )
