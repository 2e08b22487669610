"""One region of one account with one EKS cluster: state and rules behind one name, for any face to speak to."""

import base64
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from typing import Final

import msgspec

from shared.errors import Gone
from shared.model.ec2 import (
    CapacityType,
    ClusterFacts,
    FleetRequest,
    FleetResult,
    Image,
    Instance,
    LaunchTemplate,
    ScheduledEvent,
    Tags,
)
from sim.clock import Clock
from sim.cloud import chance
from sim.cloud.dry_runs import DryRuns
from sim.cloud.events import Event, Events
from sim.cloud.fleet import Fleets, Stock
from sim.cloud.images import Shelf
from sim.cloud.instances import Machines
from sim.cloud.machine import Machine, StatusCheck
from sim.cloud.network import Network
from sim.cloud.pools import Pools
from sim.cloud.prices import PriceList
from sim.cloud.reservations import Reservations
from sim.cloud.templates import Templates
from sim.cloud.throttle import Throttle
from sim.cloud.types import instance_types, offered

LAG: Final = timedelta(seconds=2)
DISCOVERY_TAG: Final = "karpenter.sh/discovery"
SERVICE_CIDR: Final = "10.100.0.0/16"
RELEASED_BEFORE: Final = (timedelta(days=45), timedelta(days=10))
MAINTENANCE_IN: Final = timedelta(days=7)
MAINTENANCE_LASTS: Final = timedelta(hours=2)


class Cost(msgspec.Struct, frozen=True, kw_only=True):
    """What one living instance costs now, at synthetic prices."""

    instance: Instance
    usd_per_hour: float


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What there is, for people."""

    at: datetime
    costs: tuple[Cost, ...]
    """Of instances that have not begun to end, sorted by id."""
    usd_per_hour: float


class Cloud:
    """What EC2, SSM, Pricing and EKS know. Its parts are public: a face may ask them for more than is said here."""

    def __init__(
        self,
        clock: Clock,
        seed: int = 0,
        *,
        region: str = "us-east-1",
        zones: int = 3,
        cluster: str = "joiner",
        version: str = "1.34",
        describe_lag: timedelta = LAG,
    ) -> None:
        """Begin with a private subnet per zone and a security group, tagged for *cluster*, and two releases of images.

        Raises:
            ValueError: *region* has not so many zones.
        """
        self.clock = clock
        self.seed = seed
        self.region = region
        self.zones = tuple(offered(region))[:zones]
        if len(self.zones) < zones:
            raise ValueError(f"{region} has {len(self.zones)} zones")
        self.types = instance_types()
        self._offered = {zone: offered(region)[zone] for zone in self.zones}
        self.offerings = _offerings(region, self.zones)
        self.prices = PriceList(self.offerings, seed)
        self.pools = Pools(seed)
        self.network = Network(region, self.zones, seed)
        self.images = Shelf(seed)
        self.templates = Templates(seed)
        self.reservations = Reservations(seed)
        self.dry_runs = DryRuns(self.images, self.network, self.reservations)
        self.events = Events(clock, seed, region)
        self.machines = Machines(clock, self.events, seed, region, describe_lag)
        self.throttles = Throttle(clock)
        self.fleets = Fleets(self._stock())
        self.facts = _facts(cluster, region, version)
        self._furnish(cluster)

    # EC2

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """Start instances now.

        Raises:
            Invalid: the request is wrong, or its token was used for another one.
            Gone: a launch template does not exist.
        """
        return self.fleets.create(request)

    def terminate(self, instance_ids: Iterable[str]) -> None:
        """Begin the end of all of them, or of none.

        Raises:
            Gone: EC2 does not know one of them.
        """
        wanted = tuple(dict.fromkeys(instance_ids))
        for instance_id in wanted:
            self.machines.find(instance_id)
        for instance_id in wanted:
            self.machines.terminate(instance_id)

    def instances(self) -> tuple[Instance, ...]:
        """Answer all that Describe knows, `terminated` ones too, sorted by id."""
        return self.machines.described()

    def instance(self, instance_id: str) -> Instance:
        """Answer one.

        Raises:
            Gone: Describe does not know it.
        """
        return self.machines.describe(instance_id)

    def tag(self, instance_id: str, tags: Tags) -> None:
        """Add or overwrite tags of an instance.

        Raises:
            Gone: Describe does not know it.
            Invalid: a key is EC2's own, or there are too many.
        """
        self.machines.tag(instance_id, tags)

    def create_launch_template(self, template: LaunchTemplate) -> LaunchTemplate:
        """Keep *template* and answer it as it is read back.

        Raises:
            Conflict: the name is taken.
            Invalid: it is malformed, or the user data too long.
        """
        return self.templates.create(template, self.clock.now())

    def cluster(self, name: str) -> ClusterFacts:
        """Answer what the control plane is.

        Raises:
            Gone: there is no such cluster.
        """
        if name != self.facts.name:
            raise Gone(f"ResourceNotFoundException: No cluster found for name: {name}.")
        return self.facts

    # What the world does

    def set_capacity(self, instance_type: str, zone: str, capacity_type: CapacityType, count: int | None) -> None:
        """Leave room for *count* more instances there, whatever runs already; None is no limit."""
        self.pools.limit(instance_type, zone, capacity_type, count)

    def drain_zone(self, zone: str, capacity_types: Sequence[CapacityType] = ("on-demand", "spot")) -> None:
        """Have no capacity in *zone* any more; what runs goes on."""
        for capacity_type in capacity_types:
            self.pools.drain(zone, capacity_type)

    def refill_zone(self, zone: str, capacity_types: Sequence[CapacityType] = ("on-demand", "spot")) -> None:
        """Take `drain_zone` back."""
        for capacity_type in capacity_types:
            self.pools.refill(zone, capacity_type)

    def set_quota(self, capacity_type: CapacityType, vcpus: int | None) -> None:
        """Allow so many vCPUs at a time, on-demand or spot; None is any number."""
        self.pools.set_quota(capacity_type, vcpus)

    def set_free_ips(self, subnet_id: str, count: int) -> None:
        """Let others hold so many addresses that *count* are free.

        Raises:
            Gone: there is no such subnet.
            ValueError: it is not that large.
        """
        self.network.subnet(subnet_id).set_free(count)

    def add_subnet(self, zone: str, tags: Tags = (), cidr: str = "") -> str:
        """Make a subnet and answer its id; without *cidr* it is the next free /19 of the VPC.

        Raises:
            Invalid: there is no such zone, or *cidr* is not in the VPC or overlaps.
        """
        return self.network.add_subnet(zone, tags, cidr)

    def add_security_group(self, name: str, tags: Tags = ()) -> str:
        """Make a security group and answer its id."""
        return self.network.add_security_group(name, tags)

    def add_image(self, image: Image, owner: str = "self") -> str:
        """Put *image* up and answer its id, which is made where it is empty."""
        return self.images.add(image, owner)

    def release_amis(self, when: datetime | None = None) -> None:
        """Let EKS publish new images at *when*: now, unless it lies ahead."""
        at = when or self.clock.now()
        if at > self.clock.now():
            self.clock.call_at(at, lambda: self.images.release(at), "release images")
        else:
            self.images.release(at)

    def upgrade(self, version: str) -> None:
        """Let the control plane have *version*."""
        self.facts = msgspec.structs.replace(self.facts, version=version)

    def kill(self, instance_id: str) -> None:
        """Let an instance die now, without anybody asking.

        Raises:
            Gone: EC2 does not know it.
        """
        self.machines.kill(instance_id)

    def stop(self, instance_id: str) -> None:
        """Stop an instance.

        Raises:
            Gone: EC2 does not know it.
            Invalid: it is neither pending nor running.
        """
        self.machines.stop(instance_id)

    def interrupt_spot(self, instance_id: str) -> None:
        """Warn, and take the instance two minutes later.

        Raises:
            Gone: EC2 does not know it.
            Invalid: it is no spot instance, or it has ended.
        """
        self.machines.interrupt(instance_id)

    def recommend_rebalance(self, instance_id: str) -> None:
        """Say that a spot instance is in danger.

        Raises:
            Gone: EC2 does not know it.
            Invalid: it is no spot instance, or it has ended.
        """
        self.machines.recommend_rebalance(instance_id)

    def schedule_maintenance(self, instance_ids: Sequence[str]) -> None:
        """Let Health, and each status, say that the hardware below is retired in a week; nothing else comes of it.

        Raises:
            Gone: EC2 does not know one of them.
        """
        start = self.clock.now() + MAINTENANCE_IN
        for instance_id in instance_ids:
            event = chance.uuid(self.seed, "retirement", instance_id)
            retired = ScheduledEvent(event_id=f"instance-event-{event}", code="instance-retirement", begins_at=start)
            self.machines.find(instance_id).ahead = (retired,)
        self.events.scheduled_change(tuple(instance_ids), start, start + MAINTENANCE_LASTS)

    def call_off_maintenance(self, instance_ids: Sequence[str]) -> None:
        """Let Health say that what `schedule_maintenance` announced of *instance_ids* is not to be."""
        for instance_id in instance_ids:
            with suppress(Gone):
                self.machines.find(instance_id).ahead = ()
        start = self.clock.now() + MAINTENANCE_IN
        self.events.scheduled_change(tuple(instance_ids), start, start + MAINTENANCE_LASTS, is_over=True)

    def reclaim_reserved(self, instance_id: str) -> None:
        """Warn, and take the instance with its reserved capacity two minutes later.

        Raises:
            Gone: EC2 does not know it.
            Invalid: it is of no reservation, or it has ended.
        """
        self.machines.reclaim(instance_id)

    def impair(self, instance_id: str, check: StatusCheck, *, failing: bool = True) -> None:
        """Let a status check of an instance fail from now on, or no longer; nothing else comes of it.

        Raises:
            Gone: EC2 does not know it.
        """
        self.machines.impair(instance_id, check, failing=failing)

    def next_boot_fails(self, instance_type: str = "") -> None:
        """Let the next instance (of *instance_type*, if given) run without ever becoming a node."""
        self.machines.fail_next_boot(instance_type)

    def boots_fail(self, instance_type: str, *, failing: bool = True) -> None:
        """Let all instances of *instance_type* do so from now on, or no longer."""
        self.machines.fail_boots(instance_type, failing=failing)

    # The API's patience

    def throttle(self, *, on: bool) -> None:
        """Hold callers to EC2's rate limits, or no longer."""
        self.throttles.on = on

    def throttle_next(self, action: str, times: int = 1) -> None:
        """Refuse the next *times* calls of *action*, spelled as EC2 does: ``CreateFleet``."""
        self.throttles.refuse_next(action, times)

    def admit(self, action: str) -> None:
        """Let one API call pass: a face asks before it does anything else.

        Raises:
            Throttled: it may not; nothing was done.
        """
        self.throttles.admit(action)

    # Who wants to know

    def on_running(self, callback: Callable[[Instance, LaunchTemplate], None]) -> None:
        """Call when an instance runs, with the template it was started from; faulty ones are not heard of."""
        self.machines.on_running.append(callback)

    def on_halted(self, callback: Callable[[Instance], None]) -> None:
        """Call when one that was pending or running begins to stop or shut down: nothing on it works any more."""
        self.machines.on_halted.append(callback)

    def on_terminated(self, callback: Callable[[Instance], None]) -> None:
        """Call when an instance is terminated, after its address was given back."""
        self.machines.on_terminated.append(callback)

    def subscribe_events(self, callback: Callable[[Event], None]) -> None:
        """Call with every EventBridge event, as it happens."""
        self.events.subscribe(callback)

    def hourly_cost(self) -> float:
        """Answer synthetic USD per hour of all instances that have not begun to end; stopped ones cost nothing."""
        return self.snapshot().usd_per_hour

    def snapshot(self) -> Summary:
        """Answer what there is and what it costs, Describe's lag set aside."""
        machines = sorted(self.machines.alive(), key=lambda machine: machine.instance_id)
        costs = tuple(
            Cost(instance=machine.described(self.region), usd_per_hour=self._cost(machine)) for machine in machines
        )
        return Summary(at=self.clock.now(), costs=costs, usd_per_hour=sum(cost.usd_per_hour for cost in costs))

    def _cost(self, machine: Machine) -> float:
        if machine.state not in {"pending", "running"}:
            return 0.0
        if machine.order.capacity_type == "spot":
            return self.prices.spot(machine.order.instance_type, machine.subnet.zone, self.clock.now())
        return self.prices.on_demand[machine.order.instance_type]

    def _stock(self) -> Stock:
        return Stock(
            clock=self.clock,
            seed=self.seed,
            types=self.types,
            offered=self._offered,
            prices=self.prices,
            pools=self.pools,
            network=self.network,
            images=self.images,
            templates=self.templates,
            machines=self.machines,
            reservations=self.reservations,
        )

    def _furnish(self, cluster: str) -> None:
        tags = ((DISCOVERY_TAG, cluster),)
        for zone in self.zones:
            self.add_subnet(zone, (*tags, ("kubernetes.io/role/internal-elb", "1")))
        self.add_security_group(f"eks-cluster-sg-{cluster}", tags)
        for age in RELEASED_BEFORE:
            self.images.release(self.clock.now() - age)


@cache
def _offerings(region: str, zones: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((kind, zone) for zone in zones for kind in offered(region)[zone]))


def _facts(cluster: str, region: str, version: str) -> ClusterFacts:
    certificate = f"-----BEGIN CERTIFICATE-----\n{cluster}\n-----END CERTIFICATE-----\n"
    return ClusterFacts(
        name=cluster,
        endpoint=f"https://{cluster}.eks.{region}.example.com",
        certificate_authority=base64.b64encode(certificate.encode()).decode(),
        version=version,
        service_cidr=SERVICE_CIDR,
    )
