"""Invariants of new images, of the limit of a group of clusters, and of the event bus."""

import json
from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.model.core.labels import CANARY_STATE, LAUNCH_GROUP, NODEPOOL
from shared.model.core.units import parse_duration
from shared.model.ec2.fleet import FleetResult
from shared.model.ec2.instance import Instance
from shared.model.karpenter.health.canary import CanaryState
from shared.store.limits.cluster_group import ROW_NAME, build_row_kind, decode_entries
from sim.cloud.catalog.synthetic_prices import compute_on_demand_prices
from sim.fault_simulation.checks.feature_check import FeatureCheck, Json, ViolationHandler
from sim.fault_simulation.checks.ground_truth import GroundTruth, get_instance_id, is_deleting
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_manifests import MAIN_POOL, SECOND_POOL
from sim.fault_simulation.features.feature_setup import GROUP, OTHER_MEMBER
from sim.lambda_runtime.invocation import Invocation

NODE_CLASSES: Final = "ec2nodeclasses.karpenter.k8s.aws"
MAX_CLOCK_SKEW: Final = timedelta(minutes=1)
REJECTION_TOLERANCE: Final = timedelta(minutes=4)
"""A launch can be decided before a rejection and recorded after it: stale lists, a pause, and a clock that is fast."""
VOLUME_USD_PER_HOUR: Final = 20 * 0.08 / 730
"""20 GiB of gp3."""
MICRO_USD: Final = 1_000_000
ROUNDING_MICRO_USD: Final = 100


class ImageCheck(FeatureCheck):
    """A new image has its minimum age, is used by canary nodes only until it is proven, and by none once rejected."""

    def __init__(
        self, world: FaultWorld, setup: ScriptSetup, ground_truth: GroundTruth, on_violation: ViolationHandler
    ) -> None:
        """Watch the EC2NodeClasses of *world*."""
        super().__init__(world, setup, ground_truth, on_violation)
        self._good_images: set[tuple[str, str]] = set()
        """EC2NodeClasses and the images that were ever in their `status.amis`."""
        self._first_images: dict[str, frozenset[str]] = {}
        """The first images of each EC2NodeClass, which are used at once, by uid."""
        self._rejected_at: dict[tuple[str, str], datetime] = {}
        """By EC2NodeClass and image."""
        canary = dict(word.split("=") for word in self.features.canary.split())
        self._canary_nodes = int(canary.get("nodes", "1")) if canary else 0
        self._minimum_age = parse_duration(self.features.image_minimum_age or "0s")
        world.cluster.api.subscribe(NODE_CLASSES, self._handle_class)

    def check_state(self, claims: list[Json], last_fault: datetime) -> None:
        """Check how many nodes use an image that is not proven."""
        del last_fault
        image_by_instance = {instance.instance_id: instance.image_id for instance in self.world.list_living()}
        users: dict[tuple[str, str], list[str]] = defaultdict(list)
        for claim in claims:
            image_id = image_by_instance.get(get_instance_id(claim), "")
            key = (claim["spec"]["nodeClassRef"]["name"], image_id)
            if image_id and key not in self._good_images and not is_deleting(claim):
                users[key].append(claim["metadata"]["name"])
        for (node_class, image_id), names in sorted(users.items()):
            if len(names) > self._canary_nodes:
                text = f"{image_id} is not proven for {node_class}, {self._canary_nodes} nodes may use it"
                self.report("canary-nodes", f"{text}: {', '.join(sorted(names))} do")

    def observe_fleet(self, caller: str, result: FleetResult) -> None:
        """Check the images of new instances."""
        launched_ids = {instance.instance_id for instance in result.instances}
        for instance in self.world.list_launched():
            if instance.instance_id in launched_ids:
                self._check_image(caller, instance)

    def _check_image(self, caller: str, instance: Instance) -> None:
        now, image_id = self.world.clock.get_time(), instance.image_id
        group = self.ground_truth.get_launch_group(instance.get_tag(LAUNCH_GROUP))
        decided_at = now if group is None else group.created_at
        node_class = SECOND_POOL if instance.get_tag(NODEPOOL) == SECOND_POOL else MAIN_POOL
        rejected_at = self._rejected_at.get((node_class, image_id))
        if rejected_at is not None and decided_at > rejected_at + REJECTION_TOLERANCE:
            self.report("rejected-image", f"{caller} launches {instance.instance_id} with {image_id}, rejected before")
        age = now - self.world.cloud.images.find(image_id).created_at
        is_first = any(image_id in images for images in self._first_images.values())
        if age + MAX_CLOCK_SKEW < self._minimum_age and not is_first:
            self.report("young-image", f"{caller} launches {instance.instance_id} with {image_id}, which is {age} old")

    def _handle_class(self, _event: str, _old: Json | None, new: Json | None) -> None:
        if new is None:
            return
        node_class = new["metadata"]["name"]
        images = frozenset(image["id"] for image in (new.get("status") or {}).get("amis") or [])
        self._good_images |= {(node_class, image_id) for image_id in images}
        if images:
            self._first_images.setdefault(new["metadata"]["uid"], images)
        text = new["metadata"].get("annotations", {}).get(CANARY_STATE, "")
        state = msgspec.json.decode(text, type=CanaryState) if text else CanaryState()
        for identity, verdict in state.verdicts.items():
            if verdict.is_rejected:
                self._rejected_at.setdefault((node_class, identity), self.world.clock.get_time())


class GroupCheck(FeatureCheck):
    """The nodes of both clusters of a group never cost more than its limit, at list prices."""

    def check_state(self, claims: list[Json], last_fault: datetime) -> None:
        """Check the sum of both clusters."""
        del claims, last_fault
        self._check_limit("the cluster")

    def observe_fleet(self, caller: str, result: FleetResult) -> None:
        """Check the sum of both clusters after a launch."""
        del result
        self._check_limit(caller)

    def _check_limit(self, caller: str) -> None:
        used, limit = compute_group_usage(self.world, self.ground_truth), self.features.group_limit_usd_per_hour
        if used > limit * MICRO_USD + ROUNDING_MICRO_USD:
            self.report(
                "group-limit", f"{caller} exceeds the limit of ${limit}/h of the group: ${used / MICRO_USD:.4f}/h"
            )


class EventBusCheck(FeatureCheck):
    """An event bus that refuses events stops no cycle, and each event has its journal entry."""

    def __init__(
        self, world: FaultWorld, setup: ScriptSetup, ground_truth: GroundTruth, on_violation: ViolationHandler
    ) -> None:
        """Watch the event bus of *world*."""
        super().__init__(world, setup, ground_truth, on_violation)
        self._checked_count = 0

    def check_state(self, claims: list[Json], last_fault: datetime) -> None:
        """Check that the journal entries of new events exist."""
        del claims, last_fault
        events = self.world.event_bus.events
        for event in events[self._checked_count :]:
            key = json.loads(event.detail)["journalKey"]
            if not self.world.bucket.list_keys(key):
                self.report(
                    "event-unrecorded", f"{event.detail_type} {event.event_id} names {key}, which does not exist"
                )
        self._checked_count = len(events)

    def observe_invocation(self, invocation: Invocation) -> None:
        """Check that the event bus did not end the invocation."""
        if invocation.outcome == "failed" and "event_bus." in invocation.error:
            self.report("event-stopped", f"{invocation.function} ended at {invocation.error}")


def compute_group_usage(world: FaultWorld, ground_truth: GroundTruth) -> int:
    """Return what both clusters of the group use, in millionths of a USD per hour.

    Instances whose NodeClaim is being deleted do not count, nor does reserved capacity.
    """
    prices = compute_on_demand_prices()
    row = world.group_table.read(build_row_kind(GROUP), ROW_NAME)
    other_entry = dict(decode_entries(row)).get(OTHER_MEMBER)
    own_usd = sum(
        prices[instance.instance_type] + VOLUME_USD_PER_HOUR
        for instance in ground_truth.list_staying_instances()
        if instance.capacity_type != "reserved"
    )
    return int(own_usd * MICRO_USD) + (other_entry.used if other_entry is not None else 0)
