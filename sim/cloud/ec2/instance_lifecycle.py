"""The life cycle of instances over virtual time.

pending → running → stopping → stopped, and from each of them → shutting-down → terminated. An hour later EC2 forgets
the instance. Describe does not show an instance for a while after its launch; terminating it works immediately.
"""

from collections import deque
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from shared.errors import Invalid, NotFound
from shared.model.ec2.instance import Instance, InstanceStatus
from shared.model.ec2.launch_template import LaunchTemplate
from shared.model.ec2.types import CapacityType, InstanceState, Tags
from sim.cloud import seeded_random
from sim.cloud.ec2.boot_failures import BootFailures
from sim.cloud.ec2.capacity_pools import CapacityPool
from sim.cloud.ec2.instance import LaunchSpec, SimulatedInstance, StatusCheck, check_tags
from sim.cloud.ec2.volume_keys import VolumeKeys
from sim.cloud.eventbridge_events import INTERRUPTION_DELAY, EventBus
from sim.cloud.open_answers import OpenAnswers
from sim.cloud.resources.network import SubnetAddresses
from sim.time.virtual_clock import Clock

BOOT_DELAY_RANGE: Final = (timedelta(seconds=4), timedelta(seconds=10))
SHUT_DOWN_DELAY_RANGE: Final = (timedelta(seconds=20), timedelta(seconds=60))
STOP_DELAY_RANGE: Final = (timedelta(seconds=10), timedelta(seconds=30))
TERMINATED_TTL: Final = timedelta(hours=1)
MAX_TAGS_PER_INSTANCE: Final = 50
ALIVE_STATES: Final = frozenset({"pending", "running", "stopping", "stopped"})


class InstanceRegistry:
    """Every instance that EC2 still remembers, and its state transitions."""

    def __init__(self, clock: Clock, events: EventBus, seed: int, region: str, describe_lag: timedelta) -> None:
        """Start without instances."""
        self.open_answers, self.volume_keys, self.describe_lag = OpenAnswers(), VolumeKeys(), describe_lag
        self.boot_failures = BootFailures()
        self.speed_factor = 1.0
        """Speed of stopping and terminating, relative to real EC2; booting takes longer than the Describe delay."""
        self.running_listeners: list[Callable[[Instance, LaunchTemplate], None]] = []
        """Called when an instance is running, with its launch template; faulty instances are not reported."""
        self.halted_listeners: list[Callable[[Instance], None]] = []
        """Called when a pending or running instance begins to stop or shut down: nothing on it works any more."""
        self.terminated_listeners: list[Callable[[Instance], None]] = []
        """Called when an instance is terminated, after its address was released."""
        self._clock = clock
        self._events = events
        self._seed = seed
        self._region = region
        self._instances: dict[str, SimulatedInstance] = {}
        self._terminated_instances: deque[tuple[datetime, str]] = deque()
        self._launch_count = 0

    def find(self, instance_id: str) -> SimulatedInstance:
        """Return one instance, also if Describe does not show it yet.

        Raises:
            NotFound: EC2 never knew it, or has forgotten it.
        """
        self._forget_terminated()
        if instance_id not in self._instances:
            raise _build_not_found(instance_id)
        return self._instances[instance_id]

    def describe(self, instance_id: str) -> Instance:
        """Return one instance that Describe shows.

        Raises:
            NotFound: Describe does not show it yet, or no longer.
        """
        instance = self.find(instance_id)
        if not self._is_visible(instance):
            raise _build_not_found(instance_id)
        return instance.describe(self._region)

    def describe_all(self) -> tuple[Instance, ...]:
        """Return all instances that Describe shows, including `terminated` ones, sorted by id."""
        self._forget_terminated()
        instances = (instance for _, instance in sorted(self._instances.items()) if self._is_visible(instance))
        return tuple(instance.describe(self._region) for instance in instances)

    def list_all(self) -> tuple[Instance, ...]:
        """Return all instances that EC2 remembers, without the delay of Describe, sorted by id."""
        self._forget_terminated()
        return tuple(instance.describe(self._region) for _, instance in sorted(self._instances.items()))

    def list_alive(self) -> tuple[SimulatedInstance, ...]:
        """Return the instances that are not shutting down or terminated, in launch order."""
        return tuple(instance for instance in self._instances.values() if instance.state in ALIVE_STATES)

    def count_vcpus(self, *, is_spot: bool) -> int:
        """Return the vCPUs used of a quota: of spot instances, or of all others."""
        active_instances = (instance for instance in self.list_alive() if instance.state in {"pending", "running"})
        return sum(
            instance.launch_spec.vcpus
            for instance in active_instances
            if (instance.launch_spec.capacity_type == "spot") is is_spot
        )

    # State changes

    def start(self, launch_spec: LaunchSpec, subnet: SubnetAddresses, pool: CapacityPool) -> SimulatedInstance:
        """Launch an instance; it is pending now and running some seconds later."""
        self._launch_count += 1
        instance_id = seeded_random.build_resource_id("i", self._seed, self._region, self._launch_count)
        instance = SimulatedInstance(instance_id, launch_spec, subnet, pool, self._clock.get_time())
        instance.is_faulty = self.boot_failures.consume_boot_failure(launch_spec.instance_type)
        instance.launch_error = self.volume_keys.find_launch_error(launch_spec.template)
        self._instances[instance_id] = instance
        self._schedule_transition(instance, BOOT_DELAY_RANGE, "boot", lambda: self._run(instance))
        self._events.publish_state_change(instance_id, "pending")
        return instance

    def add_running(
        self, launch_spec: LaunchSpec, subnet: SubnetAddresses, pool: CapacityPool, age: timedelta
    ) -> Instance:
        """Add an instance that has been running for *age*, without events; return it as Describe shows it."""
        self._launch_count += 1
        instance_id = seeded_random.build_resource_id("i", self._seed, self._region, self._launch_count)
        instance = SimulatedInstance(instance_id, launch_spec, subnet, pool, self._clock.get_time() - age)
        instance.state = "running"
        self._instances[instance_id] = instance
        return instance.describe(self._region)

    def terminate(self, instance_id: str) -> None:
        """Begin to terminate an instance; if that has already begun, do nothing.

        Raises:
            NotFound: EC2 does not know it.
        """
        instance = self.find(instance_id)
        if instance.state in ALIVE_STATES:
            instance.state_reason = "Client.UserInitiatedShutdown: User initiated shutdown"
            self._begin_halt(instance, "shutting-down")
            self._schedule_transition(
                instance, SHUT_DOWN_DELAY_RANGE, "shut-down", lambda: self._finish_termination(instance)
            )

    def terminate_immediately(self, instance_id: str) -> None:
        """Terminate an instance at once, as a hardware failure does: without a request and without shutting down.

        Raises:
            NotFound: EC2 does not know it.
        """
        instance = self.find(instance_id)
        if instance.state in ALIVE_STATES:
            self._begin_halt(instance, "shutting-down")
        if instance.state != "terminated":
            self._finish_termination(instance)

    def stop(self, instance_id: str) -> None:
        """Stop an instance that is pending or running; it keeps its address.

        Raises:
            NotFound: EC2 does not know it.
            Invalid: it is in another state.
        """
        instance = self.find(instance_id)
        if instance.state not in {"pending", "running"}:
            raise Invalid(f"'{instance_id}' is not in a state from which it can be stopped.", "IncorrectInstanceState")
        self._begin_halt(instance, "stopping")
        self._schedule_transition(instance, STOP_DELAY_RANGE, "stop", lambda: self._set_state(instance, "stopped"))

    def interrupt(self, instance_id: str) -> None:
        """Send a spot interruption warning, and terminate the instance two minutes later.

        Raises:
            NotFound: EC2 does not know it.
            Invalid: it is not a spot instance, or it has ended.
        """
        instance = self._get_alive_instance(instance_id, "spot")
        instance.is_reclaimed = True
        self._events.publish_spot_interruption(instance_id, instance.subnet.zone)
        self._schedule_reclaim(instance_id)

    def interrupt_reserved(self, instance_id: str) -> None:
        """Send a reservation interruption warning, and terminate the instance two minutes later.

        Raises:
            NotFound: EC2 does not know it.
            Invalid: it is not in a reservation, or it has ended.
        """
        instance = self._get_alive_instance(instance_id, "reserved")
        self._events.publish_reservation_interruption(instance_id, instance.subnet.zone)
        self._schedule_reclaim(instance_id)

    def set_status_check(self, instance_id: str, check: StatusCheck, *, failing: bool = True) -> None:
        """Make a status check of an instance fail from now on, or pass again.

        Raises:
            NotFound: EC2 does not know it.
        """
        instance = self.find(instance_id)
        if failing:
            instance.failing_checks.setdefault(check, self._clock.get_time())
        else:
            instance.failing_checks.pop(check, None)

    def describe_statuses(self) -> tuple[InstanceStatus, ...]:
        """Return the statuses of running instances with a failed check or a scheduled event, sorted by id."""
        running_instances = (instance for _, instance in sorted(self._instances.items()) if instance.state == "running")
        affected = (instance for instance in running_instances if instance.failing_checks or instance.scheduled_events)
        return tuple(instance.describe_status() for instance in affected)

    def send_rebalance_recommendation(self, instance_id: str) -> None:
        """Send a rebalance recommendation for a spot instance; it has no other effect.

        Raises:
            NotFound: EC2 does not know it.
            Invalid: it is not a spot instance, or it has ended.
        """
        instance = self._get_alive_instance(instance_id, "spot")
        self._events.publish_rebalance_recommendation(instance_id, instance.subnet.zone)

    def tag(self, instance_id: str, tags: Tags) -> None:
        """Add or overwrite tags of an instance.

        Raises:
            NotFound: Describe does not show it.
            Invalid: a key is reserved for EC2, or there are too many.
        """
        self.describe(instance_id)
        instance = self.find(instance_id)
        check_tags(tags)
        merged_tags = instance.tags | dict(tags)
        if sum(not key.startswith("aws:") for key in merged_tags) > MAX_TAGS_PER_INSTANCE:
            raise Invalid(f"More than {MAX_TAGS_PER_INSTANCE} tags specified", code="TagLimitExceeded")
        instance.tags = merged_tags

    # Transitions

    def _run(self, instance: SimulatedInstance) -> None:
        if instance.launch_error:
            instance.state_reason = instance.launch_error
            return self.terminate_immediately(instance.instance_id)
        self._set_state(instance, "running")
        for callback in () if instance.is_faulty else self.running_listeners:
            callback(instance.describe(self._region), instance.launch_spec.template)
        return None

    def _begin_halt(self, instance: SimulatedInstance, state: InstanceState) -> None:
        instance.timer.cancel()
        was_active = instance.state in {"pending", "running"}
        self._set_state(instance, state)
        if was_active:
            for callback in self.halted_listeners:
                callback(instance.describe(self._region))

    def _finish_termination(self, instance: SimulatedInstance) -> None:
        instance.timer.cancel()
        instance.release()
        self._terminated_instances.append((self._clock.get_time(), instance.instance_id))
        self._set_state(instance, "terminated")
        for callback in self.terminated_listeners:
            callback(instance.describe(self._region))

    def _set_state(self, instance: SimulatedInstance, state: InstanceState) -> None:
        instance.state = state
        self._events.publish_state_change(instance.instance_id, state)

    def _schedule_transition(
        self,
        instance: SimulatedInstance,
        delay_range: tuple[timedelta, timedelta],
        transition: str,
        callback: Callable[[], None],
    ) -> None:
        delay = seeded_random.draw_duration(*delay_range, self._seed, transition, instance.instance_id)
        if delay_range != BOOT_DELAY_RANGE:
            delay /= self.speed_factor
        instance.timer = self._clock.call_after(delay, callback, f"{transition} {instance.instance_id}")

    def _schedule_reclaim(self, instance_id: str) -> None:
        self._clock.call_after(INTERRUPTION_DELAY, lambda: self.terminate(instance_id), f"reclaim {instance_id}")

    def _get_alive_instance(self, instance_id: str, capacity_type: CapacityType) -> SimulatedInstance:
        instance = self.find(instance_id)
        if instance.launch_spec.capacity_type != capacity_type or instance.state not in ALIVE_STATES:
            raise Invalid(f"{instance_id} is no living {capacity_type} instance", code="IncorrectInstanceState")
        return instance

    def _is_visible(self, instance: SimulatedInstance) -> bool:
        age = self._clock.get_time() - instance.launched_at
        return self.open_answers.is_visible(instance.instance_id, age, self.describe_lag)

    def _forget_terminated(self) -> None:
        expired_before = self._clock.get_time() - TERMINATED_TTL
        while self._terminated_instances and self._terminated_instances[0][0] <= expired_before:
            del self._instances[self._terminated_instances.popleft()[1]]


def _build_not_found(instance_id: str) -> NotFound:
    return NotFound(f"InvalidInstanceID.NotFound: The instance ID '{instance_id}' does not exist")
