"""The embedded world of a script: few instance types, containers, clock skew, stale lists, and an observer."""

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Final, Protocol

import msgspec

from shared.model.core.labels import NODEPOOL
from shared.model.ec2.account import CapacityReservation
from shared.model.ec2.fleet import FleetRequest, FleetResult
from shared.model.ec2.instance import Instance
from shared.model.ec2.launch_template import LaunchTemplate
from shared.ports.aws import Ec2
from shared.ports.kubernetes import Kube, WatchEvents
from shared.ports.world import World
from sim.cloud.ec2.instance import LaunchSpec
from sim.cloud.in_process_aws import CloudEc2
from sim.cloud.open_answers import draw_open_answers
from sim.cluster.api_server.kube_port import InMemoryKube
from sim.cluster.api_server.pages import ListOptions
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_manifests import INSTANCE_TYPES, RESERVED_TYPE, build_manifests
from sim.fault_simulation.features.feature_manifests import DEVICE_TYPE, DEVICES
from sim.fault_simulation.features.feature_setup import FEATURE_SETTINGS, FeatureSetup
from sim.lambda_runtime.invocation import Invocation
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.embedded_world import EmbeddedWorld

MAX_REVISION_AGE: Final = timedelta(minutes=5)
"""Upper limit of the lag of an API server."""


class CallObserver(Protocol):
    """Observes the effects of functions at the moment of the call, independent of the faults that callers see."""

    def observe_fleet(self, caller: str, request: FleetRequest, result: FleetResult) -> None:
        """A fleet of instances was requested."""

    def observe_termination(self, caller: str, instance_ids: tuple[str, ...]) -> None:
        """Instances are about to be terminated."""

    def observe_deletion(self, caller: str, path: str, uid: str = "") -> None:
        """An object is about to be deleted."""

    def observe_eviction(self, caller: str, namespace: str, name: str, uid: str = "") -> None:
        """A pod is about to be evicted, if its budget allows it."""


class FaultWorld(EmbeddedWorld):
    """One account and one cluster for fault simulation."""

    observer: CallObserver

    def __init__(
        self,
        seed: int,
        reaction: str = "tick",
        *,
        has_surge_drain: bool = False,
        zonal_shift: str = "off",
        features: FeatureSetup = FeatureSetup(),  # noqa: B008 - frozen
    ) -> None:
        """Deploy the stack, which detects pending pods by *reaction*; no manifests are applied yet."""
        self._environment = features.build_environment()
        self.broken_images: set[str] = set()
        """Images whose nodes never register."""
        self.clock_skews: dict[str, timedelta] = {}
        """How far the clock of a function is ahead."""
        self.list_lag = timedelta()
        """How old lists may be at present."""
        self.list_cache: dict[tuple[str, ListOptions], list[tuple[datetime, bytes]]] = {}
        self._revision_history: list[tuple[datetime, int]] = []
        self._caller = ""
        self._busy_containers: list[tuple[str, int]] = []
        self._memory_by_container: dict[tuple[str, int], dict[str, object]] = {}
        self._world_count = 0
        self.impaired_instances: dict[str, tuple[datetime, datetime]] = {}
        """Instances with a failed status check: from when until when."""
        self.foreign_instances: tuple[str, ...] = ()
        """Instances of another cluster in the same account."""
        template = _synthesize_template(
            reaction, zonal_shift, has_surge_drain=has_surge_drain, has_features=features.is_any_used
        )
        super().__init__(seed, template=template)
        if zonal_shift != "off":
            self.cloud.zonal_shifts.enable()
        self.cloud.types = {name: self.cloud.types[name] for name in INSTANCE_TYPES}
        self.cloud.offerings = tuple((name, zone) for name, zone in self.cloud.offerings if name in INSTANCE_TYPES)
        self.on_call: Callable[[Invocation], None] = lambda _: None
        """Called after each invocation of a function."""
        self.runtime.on_invocation = self._handle_invocation

    def list_launched(self) -> tuple[Instance, ...]:
        """Return all instances of this cluster that EC2 knows, also the youngest, sorted by ID."""
        return tuple(
            instance
            for instance in self.cloud.instances.list_all()
            if instance.instance_id not in self.foreign_instances
        )

    def list_living(self) -> tuple[Instance, ...]:
        """Return the instances that are not terminating; unlike `living`, without the lag of Describe."""
        return tuple(instance for instance in self.list_launched() if instance.state in ("pending", "running"))

    def set_up(self, setup: ScriptSetup) -> None:
        """Create what *setup* requires in the account, and apply its manifests to the cluster."""
        if setup.has_open_answers:
            self.cloud.set_open_answers(draw_open_answers(self.cloud.seed))
        if setup.has_neighbor:
            self._launch_foreign_instance()
        if setup.reserved_count:
            reservation = CapacityReservation(
                reservation_id="",
                instance_type=RESERVED_TYPE,
                zone=self.cloud.zones[0],
                available_count=setup.reserved_count,
                total_count=setup.reserved_count,
            )
            self.cloud.reservations.add(reservation, (("purpose", "chaos"),))
        if setup.features.has_devices:
            self.cluster.device_driver.devices_by_type = {DEVICE_TYPE: list(DEVICES)}
        self.apply(build_manifests(setup))

    def _launch_foreign_instance(self) -> None:
        """Launch an instance of another cluster in the account, which must not be touched."""
        zone = self.cloud.zones[0]
        order = LaunchSpec(
            instance_type=INSTANCE_TYPES[0],
            vcpus=self.cloud.types[INSTANCE_TYPES[0]].vcpus,
            capacity_type="spot",
            image_id="ami-0neighbour",
            template=LaunchTemplate(name="neighbour", image_id="ami-0neighbour", user_data=""),
            tags=(("eks:eks-cluster-name", "neighbour"), (NODEPOOL, "main")),
        )
        subnet = next(
            subnet_candidate
            for _, subnet_candidate in sorted(self.cloud.network.subnets.items())
            if subnet_candidate.zone == zone
        )
        self.cloud.instances.boot_failures.fail_next_boot(INSTANCE_TYPES[0])
        instance = self.cloud.instances.start(order, subnet, self.cloud.pools.get_pool(INSTANCE_TYPES[0], zone, "spot"))
        self.foreign_instances = (*self.foreign_instances, instance.instance_id)

    def get_visible_revision(self) -> int:
        """Return the last resource version that a lagging server shows; at least the first recorded one."""
        now = self.clock.get_time()
        self._revision_history.append((now, self.cluster.api.revision))
        self._revision_history = [entry for entry in self._revision_history if now - entry[0] <= MAX_REVISION_AGE]
        return max(
            (entry[1] for entry in self._revision_history if now - entry[0] >= self.list_lag),
            default=self._revision_history[0][1],
        )

    def _build_world(self, function: str, environment: dict[str, str]) -> World:
        """Return the world of *function*: with its own clock, and the memory of an idle container."""
        self._world_count += 1
        self._caller = f"{function}-{self._world_count:06d}"
        world = super()._build_world(function, environment | self._environment)

        def read_clock() -> datetime:
            return self.clock.get_time() + self.clock_skews.get(function, timedelta())

        return msgspec.structs.replace(world, clock=read_clock)

    def _build_kube(self) -> Kube:
        return _ObservedKube(self, self._caller)

    def _build_ec2(self) -> Ec2:
        return _ObservedEc2(self, self._caller)

    def _get_container_cache(self, function: str) -> dict[str, object]:
        container_number = 0
        while (function, container_number) in self._busy_containers:
            container_number += 1
        self._busy_containers.append((function, container_number))
        return self._memory_by_container.setdefault((function, container_number), {})

    def _handle_invocation(self, invocation: Invocation) -> None:
        """Release the container; a killed one loses its memory."""
        container = next(
            busy_container
            for busy_container in reversed(self._busy_containers)
            if busy_container[0] == invocation.function
        )
        self._busy_containers.remove(container)
        if invocation.outcome == "killed":
            del self._memory_by_container[container]
        self.on_call(invocation)


@cache
def _synthesize_template(
    reaction: str, zonal_shift: str, *, has_surge_drain: bool, has_features: bool
) -> Mapping[str, Any]:
    surge_settings = {"surge-drain": "on", "outcome-check-minutes": "10"} if has_surge_drain else {}
    feature_settings = FEATURE_SETTINGS if has_features else {}
    return synthesize_template(
        settings=ACTIVE_SETTINGS
        | {"reaction": reaction, "zonal-shift": zonal_shift}
        | surge_settings
        | feature_settings
    )


class _ObservedKube(InMemoryKube):
    def __init__(self, world: FaultWorld, caller: str) -> None:
        super().__init__(world.cluster.api)
        self._world, self._caller = world, caller

    def list_with(self, path: str, options: ListOptions) -> bytes:
        """Return an earlier response while lists are stale."""
        now, list_lag, key = self._world.clock.get_time(), self._world.list_lag, (path, options)
        cached_lists = [entry for entry in self._world.list_cache.get(key, []) if now - entry[0] <= list_lag]
        if cached_lists and list_lag:
            self._world.list_cache[key] = cached_lists
            return cached_lists[0][1]
        response = super().list_with(path, options)
        self._world.list_cache[key] = [(now, response)]
        return response

    def watch(self, path: str, *, since: str, field_selector: str = "") -> Callable[[], WatchEvents]:
        """Return a watch that is as stale as a list: a lagging server does not have the latest changes."""
        fresh_watch = super().watch(path, since=since, field_selector=field_selector)
        visible_revision = self._world.get_visible_revision()
        if not self._world.list_lag:
            return fresh_watch
        changes = fresh_watch()
        visible_events = tuple(event for event in changes.events if _parse_revision(event) <= visible_revision)
        return lambda: WatchEvents(events=visible_events, version=str(max(int(since), visible_revision)))

    def create(self, path: str, body: bytes) -> bytes:
        """Create an object; an eviction is reported to the observer."""
        if path.endswith("/eviction"):
            *_, namespace, _, name, _ = path.split("/")
            self._world.observer.observe_eviction(self._caller, namespace, name, _parse_uid_precondition(body))
        return super().create(path, body)

    def delete(self, path: str, body: bytes = b"") -> None:
        """Delete an object; the observer is notified."""
        self._world.observer.observe_deletion(self._caller, path, _parse_uid_precondition(body))
        super().delete(path, body)


def _parse_uid_precondition(body: bytes) -> str:
    """Return the UID precondition of a deletion or an eviction, or ""."""
    options = msgspec.json.decode(body) if body else {}
    uid = options.get("deleteOptions", options).get("preconditions", {}).get("uid", "")
    return str(uid)


def _parse_revision(event: bytes) -> int:
    return int(msgspec.json.decode(event)["object"]["metadata"]["resourceVersion"])


class _ObservedEc2(CloudEc2):
    def __init__(self, world: FaultWorld, caller: str) -> None:
        super().__init__(world.cloud)
        self._world, self._caller = world, caller

    def create_fleet(self, request: FleetRequest) -> FleetResult:
        """Launch instances; the observer is notified."""
        result = super().create_fleet(request)
        self._world.observer.observe_fleet(self._caller, request, result)
        return result

    def terminate_instances(self, instance_ids: Iterable[str]) -> None:
        """Terminate instances; the observer is notified."""
        unique_ids = tuple(instance_ids)
        self._world.observer.observe_termination(self._caller, unique_ids)
        super().terminate_instances(unique_ids)
