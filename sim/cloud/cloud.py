"""One AWS region of one account with one EKS cluster.

The facade over state and rules that every API front end uses.
"""

import base64
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Final

import msgspec

from shared.errors import NotFound
from shared.model.ec2.account import ControlPlaneFacts
from shared.model.ec2.instance import Instance, ScheduledEvent
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import CapacityType
from sim.cloud import seeded_random
from sim.cloud.catalog.instance_types import load_instance_types, load_types_by_zone
from sim.cloud.catalog.synthetic_prices import PriceList
from sim.cloud.ec2.capacity_pools import CapacityPools
from sim.cloud.ec2.dry_run import DryRunValidator
from sim.cloud.ec2.fleet import Fleets, LaunchContext
from sim.cloud.ec2.instance import SimulatedInstance
from sim.cloud.ec2.instance_lifecycle import InstanceRegistry
from sim.cloud.ec2.launch_checks import LaunchChecks
from sim.cloud.ec2.launch_templates import LaunchTemplates
from sim.cloud.ec2.reservations import Reservations
from sim.cloud.eventbridge_events import ACCOUNT_ID, EventBus
from sim.cloud.open_answers import OpenAnswers
from sim.cloud.rate_limits import RateLimiter
from sim.cloud.resources.commitments import AccountCommitments
from sim.cloud.resources.images import ImageRegistry
from sim.cloud.resources.network import Network
from sim.cloud.resources.payer_role import PayerAccount
from sim.cloud.resources.zonal_shifts import ZonalShifts
from sim.time.virtual_clock import Clock

CAPACITY_TYPES: Final[tuple[CapacityType, ...]] = ("on-demand", "spot")
DESCRIBE_DELAY: Final = timedelta(seconds=2)
DISCOVERY_TAG: Final = "karpenter.sh/discovery"
SERVICE_CIDR: Final = "10.100.0.0/16"
AMI_RELEASE_AGES: Final = (timedelta(days=45), timedelta(days=10))
MAINTENANCE_DELAY: Final = timedelta(days=7)
MAINTENANCE_DURATION: Final = timedelta(hours=2)


class CloudInstanceCost(msgspec.Struct, frozen=True, kw_only=True):
    """The current cost of one instance that is not terminating, at synthetic prices."""

    instance: Instance
    usd_per_hour: float


class CloudSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The instances and their costs, for display."""

    at: datetime
    costs: tuple[CloudInstanceCost, ...]
    """Instances that are not shutting down or terminated, sorted by id."""
    usd_per_hour: float


class Cloud:
    """The state of EC2, SSM, Pricing and EKS. Its parts are public: a front end may use them directly."""

    def __init__(
        self,
        clock: Clock,
        seed: int = 0,
        *,
        region: str = "us-east-1",
        zones: int = 3,
        cluster: str = "joiner",
        version: str = "1.34",
        describe_lag: timedelta = DESCRIBE_DELAY,
        account: str = ACCOUNT_ID,
    ) -> None:
        """Create a private subnet per zone and a security group, tagged for *cluster*, and two AMI releases.

        Raises:
            ValueError: *region* has fewer zones than *zones*.
        """
        self.clock = clock
        self.seed = seed
        self.region = region
        self.zones = tuple(load_types_by_zone(region))[:zones]
        if len(self.zones) < zones:
            raise ValueError(f"{region} has {len(self.zones)} zones")
        self.types = load_instance_types()
        self._types_by_zone = {zone: load_types_by_zone(region)[zone] for zone in self.zones}
        self.offerings = _list_offerings(region, self.zones)
        self.prices = PriceList(self.offerings, seed)
        self.pools = CapacityPools(seed)
        self.network = Network(region, self.zones, seed)
        self.images = ImageRegistry(seed)
        self.templates = LaunchTemplates(seed)
        self.reservations = Reservations(seed)
        self.commitments = AccountCommitments(region, self.prices.on_demand, seed)
        self.payer = PayerAccount(AccountCommitments(region, self.prices.on_demand, seed + 1))
        self.dry_runs = DryRunValidator(self.images, self.network, self.reservations)
        self.events = EventBus(clock, seed, region)
        self.instances = InstanceRegistry(clock, self.events, seed, region, describe_lag)
        self.rate_limiter = RateLimiter(clock)
        self.fleets = Fleets(self._build_launch_context())
        self.facts = _build_control_plane_facts(cluster, region, version)
        self._create_default_resources(cluster)
        self.zonal_shifts = ZonalShifts(_format_cluster_arn(region, account, cluster), self.network.zone_ids, seed)

    def set_open_answers(self, open_answers: OpenAnswers) -> None:
        """Select the answers that AWS's documentation leaves open."""
        self.instances.open_answers = self.fleets.open_answers = open_answers

    # EC2 API calls

    def terminate_instances(self, instance_ids: Iterable[str]) -> None:
        """Begin to terminate all of *instance_ids*, or none of them.

        Raises:
            NotFound: EC2 does not know one of them.
        """
        unique_ids = tuple(dict.fromkeys(instance_ids))
        for instance_id in unique_ids:
            instance = self.instances.find(instance_id)
            is_unseen = self.clock.get_time() < instance.launched_at + self.instances.describe_lag
            if is_unseen and self.instances.open_answers.unseen_terminations:
                self.instances.describe(instance_id)
        for instance_id in unique_ids:
            self.instances.terminate(instance_id)

    def create_launch_template(self, template: LaunchTemplate) -> LaunchTemplate:
        """Store *template* and return it as Describe shows it.

        Raises:
            Conflict: the name is taken.
            Invalid: it is malformed, or the user data is too long.
        """
        return self.templates.create(template, self.clock.get_time())

    def describe_cluster(self, name: str) -> ControlPlaneFacts:
        """Return the facts about the control plane.

        Raises:
            NotFound: there is no such cluster.
        """
        if name != self.facts.name:
            raise NotFound(f"ResourceNotFoundException: No cluster found for name: {name}.")
        return self.facts

    # Scenario controls: what happens in the simulated world

    def set_capacity(self, free: int | None, instance_type: str = "", zone: str = "", capacity_type: str = "") -> bool:
        """Set the free slots of all matching spot and on-demand pools; None: unlimited. An empty name matches any.

        Return whether EC2 has a matching offering.
        """
        offerings = [offering for offering in self.offerings if instance_type in ("", offering[0])]
        offerings = [offering for offering in offerings if zone in ("", offering[1])]
        for offering in offerings:
            for pool_type in CAPACITY_TYPES:
                if capacity_type in ("", pool_type):
                    self.pools.set_limit(*offering, pool_type, free)
        return bool(offerings)

    def drain_zone(self, zone: str, capacity_types: Sequence[CapacityType] = CAPACITY_TYPES) -> None:
        """Leave no capacity in *zone* for new instances; running instances continue."""
        for capacity_type in capacity_types:
            self.pools.drain(zone, capacity_type)

    def restore_zone(self, zone: str, capacity_types: Sequence[CapacityType] = CAPACITY_TYPES) -> None:
        """Undo `drain_zone`."""
        for capacity_type in capacity_types:
            self.pools.restore(zone, capacity_type)

    def release_amis(self, when: datetime | None = None) -> None:
        """Publish new EKS AMIs at *when*: immediately, unless it is in the future."""
        published_at = when or self.clock.get_time()
        if published_at > self.clock.get_time():
            self.clock.call_at(published_at, lambda: self.images.publish_release(published_at), "release images")
        else:
            self.images.publish_release(published_at)

    def upgrade_cluster(self, version: str) -> None:
        """Set the Kubernetes version of the control plane."""
        self.facts = msgspec.structs.replace(self.facts, version=version)

    def schedule_maintenance(self, instance_ids: Sequence[str]) -> None:
        """Announce in AWS Health and in each instance status that the hardware is retired in a week.

        The retirement itself is not simulated.

        Raises:
            NotFound: EC2 does not know one of the instances.
        """
        starts_at = self.clock.get_time() + MAINTENANCE_DELAY
        for instance_id in instance_ids:
            event_uuid = seeded_random.build_uuid(self.seed, "retirement", instance_id)
            retirement = ScheduledEvent(
                event_id=f"instance-event-{event_uuid}", code="instance-retirement", begins_at=starts_at
            )
            self.instances.find(instance_id).scheduled_events = (retirement,)
        self.events.publish_scheduled_change(tuple(instance_ids), starts_at, starts_at + MAINTENANCE_DURATION)

    def cancel_maintenance(self, instance_ids: Sequence[str]) -> None:
        """Announce in AWS Health that the retirement from `schedule_maintenance` of *instance_ids* is canceled."""
        for instance_id in instance_ids:
            with suppress(NotFound):
                self.instances.find(instance_id).scheduled_events = ()
        starts_at = self.clock.get_time() + MAINTENANCE_DELAY
        self.events.publish_scheduled_change(
            tuple(instance_ids), starts_at, starts_at + MAINTENANCE_DURATION, is_over=True
        )

    def compute_hourly_cost(self) -> float:
        """Return the synthetic USD per hour of all instances that are not terminating; stopped ones cost nothing."""
        return self.build_summary().usd_per_hour

    def build_summary(self) -> CloudSummary:
        """Return the instances and their costs, without the delay of Describe."""
        instances = sorted(self.instances.list_alive(), key=lambda instance: instance.instance_id)
        costs = tuple(
            CloudInstanceCost(
                instance=instance.describe(self.region), usd_per_hour=self._compute_instance_cost(instance)
            )
            for instance in instances
        )
        return CloudSummary(
            at=self.clock.get_time(), costs=costs, usd_per_hour=sum(cost.usd_per_hour for cost in costs)
        )

    def _compute_instance_cost(self, instance: SimulatedInstance) -> float:
        if instance.state not in {"pending", "running"}:
            return 0.0
        if instance.launch_spec.capacity_type == "spot":
            return self.prices.get_spot_price(
                instance.launch_spec.instance_type, instance.subnet.zone, self.clock.get_time()
            )
        return self.prices.on_demand[instance.launch_spec.instance_type]

    def _build_launch_context(self) -> LaunchContext:
        checks = LaunchChecks(
            types=self.types,
            types_by_zone=self._types_by_zone,
            pools=self.pools,
            network=self.network,
            images=self.images,
            instances=self.instances,
            reservations=self.reservations,
        )
        return LaunchContext(
            clock=self.clock, seed=self.seed, prices=self.prices, templates=self.templates, checks=checks
        )

    def _create_default_resources(self, cluster: str) -> None:
        tags = ((DISCOVERY_TAG, cluster),)
        for zone in self.zones:
            self.network.add_subnet(zone, (*tags, ("kubernetes.io/role/internal-elb", "1")))
        self.network.add_security_group(f"eks-cluster-sg-{cluster}", tags)
        for age in AMI_RELEASE_AGES:
            self.images.publish_release(self.clock.get_time() - age)


@cache
def _list_offerings(region: str, zones: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((instance_type, zone) for zone in zones for instance_type in load_types_by_zone(region)[zone]))


def _format_cluster_arn(region: str, account: str, cluster: str) -> str:
    return f"arn:aws:eks:{region}:{account}:cluster/{cluster}"


def _build_control_plane_facts(cluster: str, region: str, version: str) -> ControlPlaneFacts:
    certificate = f"-----BEGIN CERTIFICATE-----\n{cluster}\n-----END CERTIFICATE-----\n"
    return ControlPlaneFacts(
        name=cluster,
        endpoint=f"https://{cluster}.eks.{region}.example.com",
        certificate_authority=base64.b64encode(certificate.encode()).decode(),
        version=version,
        service_cidr=SERVICE_CIDR,
    )
