"""CreateFleet of type `instant`: the order in which offerings are tried, the instances launched, and the errors.

Known difference: EC2 may spread a large request over several good pools; here the best pool is used up first.
"""

import math
from collections.abc import Callable
from datetime import datetime
from typing import Final, Literal

import msgspec

from shared.errors import Invalid
from shared.model.ec2.fleet import FleetError, FleetInstance, FleetRequest, FleetResult, Override
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import AllocationStrategy
from sim.cloud import seeded_random
from sim.cloud.catalog.synthetic_prices import PriceList
from sim.cloud.ec2.instance import LaunchSpec, SimulatedInstance, check_tags
from sim.cloud.ec2.launch_checks import LaunchChecks
from sim.cloud.ec2.launch_refusal import Refused
from sim.cloud.ec2.launch_templates import LaunchTemplates, build_template_not_found
from sim.cloud.open_answers import OpenAnswers
from sim.cloud.resources.selector_terms import sort_tags
from sim.time.virtual_clock import Clock

MAX_OVERRIDES_PER_FLEET: Final = 300
ReplayAnswer = Literal["original", "empty", "rejected"]
REPLAY_ANSWERS: Final[tuple[ReplayAnswer, ...]] = ("original", "empty", "rejected")
"""The possible responses to a repeated client token. AWS does not document which of them an `instant` fleet gets.

Nothing is launched twice: https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
"""
SPOT_STRATEGIES: Final = ("lowest-price", "price-capacity-optimized", "capacity-optimized-prioritized")
ON_DEMAND_STRATEGIES: Final = ("lowest-price", "prioritized")
NO_PRIORITY: Final = math.inf


class LaunchContext(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that CreateFleet reads and changes."""

    clock: Clock
    seed: int
    prices: PriceList
    templates: LaunchTemplates
    checks: LaunchChecks


class FleetCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """One offering of a request, with everything that can determine when it is tried."""

    override: Override
    template: LaunchTemplate
    price_usd_per_hour: float
    pool_depth: float
    """Depth of the capacity pool, in [0, 1)."""

    @property
    def image_id(self) -> str:
        """The override's image id, or else the template's."""
        return self.override.image_id or self.template.image_id


SortKey = Callable[[FleetCandidate], tuple[float, ...]]


def rank_candidates(candidates: list[FleetCandidate], strategy: AllocationStrategy) -> list[FleetCandidate]:
    """Return *candidates* in the order in which they are tried; ties are broken by type, zone, subnet and image.

    `price-capacity-optimized` accepts up to twice the price for depth; `capacity-optimized-prioritized` distinguishes
    four depths and sorts by priority within each.
    """
    keys: dict[AllocationStrategy, SortKey] = {
        "lowest-price": lambda c: (c.price_usd_per_hour,),
        "price-capacity-optimized": lambda c: (c.price_usd_per_hour * (2 - c.pool_depth),),
        "capacity-optimized-prioritized": lambda c: (-math.floor(c.pool_depth * 4), _get_priority(c)),
        "prioritized": lambda c: (_get_priority(c), c.price_usd_per_hour),
    }
    key = keys[strategy]
    return sorted(
        candidates, key=lambda c: (key(c), c.override.instance_type, c.override.zone, c.override.subnet_id, c.image_id)
    )


class Fleets:
    """CreateFleet, and its past results by client token."""

    def __init__(self, context: LaunchContext) -> None:
        """Start without past results."""
        self.replay_answer: ReplayAnswer | None = None
        """The response to every repeated client token; None: the seed chooses for each token."""
        self._context = context
        self._calls_by_token: dict[str, tuple[FleetRequest, FleetResult]] = {}
        self._fleet_count = 0
        self.open_answers = OpenAnswers()

    def create(self, request: FleetRequest) -> FleetResult:
        """Launch what can be launched; for a token that was used before, launch nothing.

        Raises:
            Invalid: the request is wrong, or its token was used before.
            NotFound: a launch template does not exist.
        """
        previous_call = self._calls_by_token.get(request.client_token)
        if previous_call is not None:
            return self._replay(request, *previous_call)
        _check_request(request)
        candidates = self._build_candidates(request)
        self._fleet_count += 1
        fleet_id = f"fleet-{seeded_random.build_uuid(self._context.seed, 'fleet', self._fleet_count)}"
        result = self._launch_instances(request, fleet_id, rank_candidates(candidates, request.allocation_strategy))
        if request.client_token:
            self._calls_by_token[request.client_token] = (request, result)
        return result

    def _replay(self, request: FleetRequest, first_request: FleetRequest, result: FleetResult) -> FleetResult:
        draw = seeded_random.draw_fraction(self._context.seed, "replay", request.client_token)
        answer = self.replay_answer or REPLAY_ANSWERS[int(draw * len(REPLAY_ANSWERS))]
        if answer == "rejected":
            for config in request.configs:
                self._context.templates.find(config.launch_template_name)
        if answer == "rejected" or request != first_request:
            text = "The request uses the same client token as a previous, but non-identical request."
            raise Invalid(text, code="IdempotentParameterMismatch")
        return result if answer == "original" else FleetResult(fleet_id=result.fleet_id)

    def _build_candidates(self, request: FleetRequest) -> list[FleetCandidate]:
        now = self._context.clock.get_time()
        return [
            self._build_candidate(request, override, self._find_template(config.launch_template_name, now), now)
            for config in request.configs
            for override in config.overrides
        ]

    def _find_template(self, name: str, now: datetime) -> LaunchTemplate:
        template = self._context.templates.find(name)
        if template.created_at is not None and self.open_answers.is_late(now - template.created_at):
            raise build_template_not_found(name)
        return template

    def _build_candidate(
        self, request: FleetRequest, override: Override, template: LaunchTemplate, now: datetime
    ) -> FleetCandidate:
        context, instance_type, zone = self._context, override.instance_type, override.zone
        is_known_type = instance_type in context.checks.types
        price = context.prices.on_demand[instance_type] if is_known_type else math.inf
        if is_known_type and request.capacity_type == "spot":
            price = context.prices.get_spot_price(instance_type, zone, now)
        depth = context.checks.pools.compute_depth(instance_type, zone, request.capacity_type)
        return FleetCandidate(override=override, template=template, price_usd_per_hour=price, pool_depth=depth)

    def _launch_instances(self, request: FleetRequest, fleet_id: str, candidates: list[FleetCandidate]) -> FleetResult:
        launched_instances: list[FleetInstance] = []
        refused_candidates: list[tuple[FleetCandidate, Refused]] = []
        for candidate in candidates:
            try:
                while len(launched_instances) < request.capacity:
                    launched_instances.append(self._launch_instance(request, fleet_id, candidate))
            except Refused as error:
                refused_candidates.append((candidate, error))
        is_unfulfilled = not launched_instances and request.capacity_type == "spot"
        errors = {
            _build_fleet_error(candidate, refused, is_unfulfilled=is_unfulfilled)
            for candidate, refused in refused_candidates
        }
        return FleetResult(fleet_id=fleet_id, instances=tuple(sorted(launched_instances)), errors=tuple(sorted(errors)))

    def _launch_instance(self, request: FleetRequest, fleet_id: str, candidate: FleetCandidate) -> FleetInstance:
        context, override = self._context, candidate.override
        context.checks.check_configuration(request, override, candidate.template, candidate.image_id)
        pool = context.checks.get_capacity_pool(
            override, request.capacity_type, candidate.template.reservation_id, context.clock.get_time()
        )
        context.checks.check_capacity(override, request.capacity_type, pool)
        launch_spec = LaunchSpec(
            instance_type=override.instance_type,
            vcpus=context.checks.types[override.instance_type].vcpus,
            capacity_type=request.capacity_type,
            image_id=candidate.image_id,
            template=candidate.template,
            tags=sort_tags((*request.tags, *self._build_system_tags(fleet_id, candidate.template))),
        )
        subnet = context.checks.network.get_subnet(override.subnet_id)
        return _build_fleet_instance(context.checks.instances.start(launch_spec, subnet, pool))

    def _build_system_tags(self, fleet_id: str, template: LaunchTemplate) -> tuple[tuple[str, str], ...]:
        return (
            ("aws:ec2:fleet-id", fleet_id),
            ("aws:ec2launchtemplate:id", self._context.templates.build_template_id(template.name)),
            ("aws:ec2launchtemplate:version", "1"),
        )


def _check_request(request: FleetRequest) -> None:
    overrides = [override for config in request.configs for override in config.overrides]
    override_keys = {(override.instance_type, override.subnet_id) for override in overrides}
    allowed_strategies = SPOT_STRATEGIES if request.capacity_type == "spot" else ON_DEMAND_STRATEGIES
    if request.capacity < 1:
        raise Invalid("TotalTargetCapacity must be at least 1", code="InvalidParameterValue")
    if request.allocation_strategy not in allowed_strategies:
        text = f"{request.allocation_strategy} is no strategy for {request.capacity_type}"
        raise Invalid(text, code="InvalidParameterValue")
    if not overrides:
        raise Invalid("The request must contain the parameter LaunchTemplateConfigs", code="MissingParameter")
    if len(overrides) > MAX_OVERRIDES_PER_FLEET:
        raise Invalid(f"More than {MAX_OVERRIDES_PER_FLEET} overrides specified", code="InvalidParameterValue")
    if len(override_keys) < len(overrides):
        raise Invalid("The fleet configuration contains duplicate instance pools", code="InvalidFleetConfig")
    check_tags(request.tags)


def _get_priority(candidate: FleetCandidate) -> float:
    return NO_PRIORITY if candidate.override.priority is None else candidate.override.priority


def _build_fleet_error(candidate: FleetCandidate, error: Refused, *, is_unfulfilled: bool) -> FleetError:
    """Return the error of a refused candidate.

    For spot, an empty pool has another error code if nothing at all was launched (*is_unfulfilled*).
    """
    if is_unfulfilled and error.code == "InsufficientInstanceCapacity":
        text = "Unable to fulfill capacity due to your request configuration. Please adjust your request and try again."
        error = Refused("UnfulfillableCapacity", text)
    override = candidate.override
    return FleetError(
        code=error.code,
        message=str(error),
        instance_type=override.instance_type,
        zone=override.zone,
        subnet_id=override.subnet_id,
    )


def _build_fleet_instance(instance: SimulatedInstance) -> FleetInstance:
    return FleetInstance(
        instance_id=instance.instance_id,
        instance_type=instance.launch_spec.instance_type,
        zone=instance.subnet.zone,
        subnet_id=instance.subnet.subnet_id,
        image_id=instance.launch_spec.image_id,
        capacity_type=instance.launch_spec.capacity_type,
    )
