"""User actions and faults of the optional features, in the embedded world."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final, assert_never

import msgspec

from shared.model.cloud_provider.cluster_group import GroupEntry
from shared.model.karpenter.money_limit import convert_to_micro_usd
from shared.ports.messaging import BusEvent
from shared.store.limits.cluster_group import ROW_NAME, build_row_kind, decode_entries
from sim.cloud.seeded_random import draw_fraction
from sim.cluster.controller_runtime.object_conditions import is_true
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.features import feature_manifests
from sim.fault_simulation.features.feature_events import (
    BadRelease,
    DeviceJob,
    FeatureAction,
    FeatureFault,
    Gang,
    OtherCluster,
    PartialCapacity,
    RefusedEvents,
    Request,
)
from sim.fault_simulation.features.feature_setup import GROUP, OTHER_MEMBER, FeatureSetup
from sim.world.measurements import is_running

RESTART_INTERVAL: Final = timedelta(seconds=30)
"""How often the containers on a node with a defective image restart."""
PARTIAL_CAPACITY_TYPE: Final = "m5.xlarge"
CONSUMER_SECONDS: Final = 120
"""How long the pods run that use the capacity of a ProvisioningRequest."""


class FeatureSimulator:
    """The users of the optional features, and what fails with these features only."""

    def __init__(self, world: FaultWorld, features: FeatureSetup) -> None:
        """Act in *world*, which uses *features*."""
        self._world, self._features = world, features
        self._restarting_images: set[str] = set()
        self._put_count = 0

    def perform(self, event: FeatureAction | FeatureFault) -> Callable[[], None] | None:
        """Perform the action or start the fault; return the function that ends it, if any.

        Raises:
            Fault: the API server refuses an object.
        """
        end: Callable[[], None] | None = None
        match event:
            case Gang():
                self._world.apply([feature_manifests.build_gang(event)])
            case PartialCapacity():
                end = self._limit_capacity(event)
            case Request():
                self._world.apply(feature_manifests.build_request(event))
                end = partial(self._use_request, event)
            case DeviceJob():
                self._world.apply([feature_manifests.build_device_job(event)])
            case OtherCluster():
                self._use_group(event.share)
            case BadRelease():
                self._release_defective_images(event)
            case RefusedEvents():
                end = self._refuse_events(event)
            case _:
                assert_never(event)
        return end

    def join_group(self) -> None:
        """Write the entry of the other cluster, which uses nothing yet."""
        self._use_group(0.0)

    def _limit_capacity(self, event: PartialCapacity) -> Callable[[], None]:
        self._world.cloud.set_capacity(0)
        self._world.cloud.set_capacity(event.free, PARTIAL_CAPACITY_TYPE, event.zone, "on-demand")

        def end_shortage() -> None:
            self._world.cloud.set_capacity(None)

        return end_shortage

    def _use_request(self, event: Request) -> None:
        """Start the pods that use the capacity of the request, as Kueue does: once it is provisioned."""
        request = self._world.cluster.api.get(feature_manifests.REQUESTS, event.name, "default")
        if event.is_used_early or is_true(request, "Provisioned"):
            self._world.apply([feature_manifests.build_consumer(event, CONSUMER_SECONDS)])

    def _use_group(self, share: float) -> None:
        """Write the entry of the other cluster as Joiner does: conditional on the row, and within the limit.

        Raises:
            Conflict: the row changed in the meantime.
        """
        table, now = self._world.group_table, self._world.clock.get_time()
        limit = convert_to_micro_usd(self._features.group_limit_usd_per_hour)
        row = table.read(build_row_kind(GROUP), ROW_NAME)
        entries = dict(decode_entries(row))
        free = limit - sum(entry.used for member, entry in entries.items() if member != OTHER_MEMBER)
        before = entries.get(OTHER_MEMBER)
        entries[OTHER_MEMBER] = GroupEntry(
            used=max(0, min(int(share * limit), free)),
            limit=limit,
            prices="list",
            revision=1 if before is None else before.revision + 1,
            joined_at=now if before is None else before.joined_at,
            written_at=now,
        )
        body = msgspec.json.encode({"entries": entries}).decode()
        table.write(build_row_kind(GROUP), ROW_NAME, body, version=0 if row is None else row.version)

    def _release_defective_images(self, event: BadRelease) -> None:
        images = self._world.cloud.images
        known_images = set(images.parameters.values())
        self._world.cloud.release_amis()
        defective_images = set(images.parameters.values()) - known_images
        if event.defect == "dead":
            broken_images = self._world.broken_images
            broken_images |= defective_images
            self._world.instance_booter.is_image_broken = broken_images.__contains__
        else:
            self._restarting_images |= defective_images
            self._world.clock.call_after(RESTART_INTERVAL, self._restart_containers, "restart containers")

    def _restart_containers(self) -> None:
        """Restart the containers on nodes with a defective image, again and again."""
        nodes = {
            instance.private_dns_name
            for instance in self._world.list_living()
            if instance.image_id in self._restarting_images
        }
        for pod in self._world.cluster.list_pods():
            if is_running(pod) and pod["spec"].get("nodeName") in nodes:
                statuses = [
                    container | {"restartCount": container.get("restartCount", 0) + 1}
                    for container in pod["status"].get("containerStatuses") or []
                ]
                metadata, status = pod["metadata"], {"status": {"containerStatuses": statuses}}
                self._world.cluster.api.patch("pods", metadata["name"], status, metadata["namespace"], "status")
        self._world.clock.call_after(RESTART_INTERVAL, self._restart_containers, "restart containers")

    def _refuse_events(self, event: RefusedEvents) -> Callable[[], None]:
        def is_refused(bus_event: BusEvent) -> bool:
            self._put_count += 1
            return draw_fraction("refuse", self._world.cloud.seed, self._put_count, bus_event.event_id) < event.ratio

        bus = self._world.event_bus
        bus.is_refused = is_refused

        def accept_events() -> None:
            bus.is_refused = lambda _: False

        return accept_events
