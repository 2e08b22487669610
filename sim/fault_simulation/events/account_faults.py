"""Injected faults of the account and its instances."""

import json
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeAlias, assert_never

from shared.errors import Invalid, NotFound
from shared.model.ec2.instance import Instance
from sim.cloud.resources.zonal_shifts import MIN_SHIFT_DURATION
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script_events import (
    DeadBoot,
    Doom,
    Flap,
    Impair,
    InfrastructureFault,
    Lag,
    Notice,
    Shortage,
    SlowDetach,
    ZonalShiftStart,
    ZoneDown,
)

FaultEnd: TypeAlias = Callable[[], None]
INTERRUPTION_QUEUE: Final = "joiner-interruption"
INTERRUPTION_WARNING: Final = "EC2 Spot Instance Interruption Warning"
UNREADABLE_MESSAGES: Final = ("", "?", "[]", "null", '{"version": 0}', '{"version": "0", "source": "aws.ec2", "detail"')
UNKNOWN_MESSAGES: Final = (
    {"source": "aws.ec2", "detail-type": "EC2 Instance Was Renamed", "detail": {"instance-id": "i-0"}},
    {"source": "aws.autoscaling", "detail-type": "EC2 Instance Launch Successful", "detail": {}},
    {"source": "aws.ec2", "detail-type": INTERRUPTION_WARNING, "detail": {"instance": "i-0"}},
    {"source": "aws.health", "detail-type": "AWS Health Event", "detail": {"service": "EC2", "affectedEntities": "?"}},
)


class FaultInjector:
    """Injects infrastructure faults into a world."""

    def __init__(self, world: FaultWorld) -> None:
        """Inject faults into *world*."""
        self._world = world
        self._sent_messages: list[str] = []
        """Messages of the interruption queue, oldest first."""
        world.cloud.events.subscribe(lambda event: self._sent_messages.append(json.dumps(event)))

    def inject(self, fault: InfrastructureFault) -> tuple[str, FaultEnd | None]:
        """Inject the fault; return what it affects, and the function that ends it.

        The first is an instance ID or the beginning of a message ("": none), the second is None if the fault has no
        end.

        Raises:
            NotFound: there is nothing that the fault could affect.
            Invalid: the fault cannot be injected.
        """
        affected, end = "", None
        match fault:
            case Shortage():
                end = self._inject_shortage(fault)
            case Lag():
                end = _set_delay(self._world.cloud.instances, "describe_lag", fault.seconds)
            case DeadBoot():
                end = self._fail_boots(fault.instance_type)
            case Doom():
                affected, end = self._disturb_instance(fault)
            case Flap():
                affected, end = self._hang_kubelet(fault)
            case Impair():
                affected, end = self._impair_instance(fault)
            case SlowDetach():
                end = _set_delay(self._world.cluster.volume_attacher, "detach_delay", fault.seconds)
            case ZonalShiftStart() | ZoneDown():
                end = self._close_zone(fault)
            case Notice():
                affected = self._send_notice(fault)
            case _:
                assert_never(fault)
        return affected, end

    def _fail_boots(self, instance_type: str) -> FaultEnd:
        self._world.cloud.instances.boot_failures.set_boot_failure(instance_type)
        return lambda: self._world.cloud.instances.boot_failures.set_boot_failure(instance_type, failing=False)

    def _inject_shortage(self, fault: Shortage) -> FaultEnd:
        pools, cloud = (fault.instance_type, fault.zone, fault.capacity_type), self._world.cloud
        cloud.set_capacity(0, *pools)

        def end_shortage() -> None:
            cloud.set_capacity(None, *pools)

        return end_shortage

    def _close_zone(self, fault: ZonalShiftStart | ZoneDown) -> FaultEnd:
        if isinstance(fault, ZoneDown):
            return self._fail_zone(fault.zone)
        shifts, now = self._world.cloud.zonal_shifts, self._world.clock.get_time()
        shifts.start_shift(fault.zone, now, timedelta(seconds=fault.lasts) + MIN_SHIFT_DURATION)
        return shifts.cancel_shift

    def _fail_zone(self, zone: str) -> FaultEnd:
        self._world.cloud.drain_zone(zone)
        for instance in self._world.list_living():
            if instance.zone == zone:
                self._world.cloud.instances.terminate_immediately(instance.instance_id)
        return lambda: self._world.cloud.restore_zone(zone)

    def _choose_instance(self, position: float, instances: list[Instance]) -> str:
        if not instances:
            raise NotFound("there is no such instance")
        return instances[int(position * len(instances))].instance_id

    def _list_living(self, capacity_type: str = "") -> list[Instance]:
        return [instance for instance in self._world.list_living() if capacity_type in ("", instance.capacity_type)]

    def _disturb_instance(self, fault: Doom) -> tuple[str, FaultEnd | None]:
        cloud, end = self._world.cloud, None
        capacity_type_by_cause = {"spot": "spot", "rebalance": "spot", "reservation": "reserved"}
        instance_id = self._choose_instance(
            fault.position, self._list_living(capacity_type_by_cause.get(fault.cause, ""))
        )
        match fault.cause:
            case "die":
                cloud.instances.terminate_immediately(instance_id)
            case "stop":
                cloud.instances.stop(instance_id)
            case "terminate":
                cloud.terminate_instances([instance_id])
            case "spot":
                cloud.instances.interrupt(instance_id)
            case "rebalance":
                cloud.instances.send_rebalance_recommendation(instance_id)
            case "reservation":
                cloud.instances.interrupt_reserved(instance_id)
            case "maintenance":
                cloud.schedule_maintenance([instance_id])
            case "called-off":
                cloud.schedule_maintenance([instance_id])

                def end() -> None:
                    cloud.cancel_maintenance([instance_id])

            case _:
                assert_never(fault.cause)
        return instance_id, end

    def _hang_kubelet(self, fault: Flap) -> tuple[str, FaultEnd]:
        kubelet = self._world.cluster.kubelet
        instance_id = self._choose_instance(
            fault.position,
            [instance for instance in self._list_living() if kubelet.is_running(instance.private_dns_name)],
        )
        resume_kubelet = kubelet.freeze(
            self._world.cloud.instances.find(instance_id).describe(self._world.cloud.region).private_dns_name
        )

        def resume() -> None:
            if instance_id in {instance.instance_id for instance in self._list_living()}:
                resume_kubelet()

        return instance_id, resume

    def _impair_instance(self, fault: Impair) -> tuple[str, FaultEnd]:
        instance_id = self._choose_instance(fault.position, self._list_living())
        now = self._world.clock.get_time()
        self._world.impaired_instances[instance_id] = (now, now + timedelta(seconds=fault.lasts))
        self._world.cloud.instances.set_status_check(instance_id, fault.status_check)
        return instance_id, lambda: self._recover(instance_id, fault)

    def _recover(self, instance_id: str, fault: Impair) -> None:
        if instance_id in {instance.instance_id for instance in self._world.list_launched()}:
            self._world.cloud.instances.set_status_check(instance_id, fault.status_check, failing=False)

    def _send_notice(self, fault: Notice) -> str:
        match fault.shape:
            case "unreadable":
                body = UNREADABLE_MESSAGES[int(fault.position * len(UNREADABLE_MESSAGES))]
            case "unknown":
                body = json.dumps(self._wrap_event(UNKNOWN_MESSAGES[int(fault.position * len(UNKNOWN_MESSAGES))]))
            case "foreign":
                foreign_instances = (*self._world.foreign_instances, "i-0ofanotheraccount")
                body = self._build_warning(
                    foreign_instances[int(fault.position * len(foreign_instances))], account="999999999999"
                )
            case "gone":
                terminated_instances = [
                    instance
                    for instance in self._world.list_launched()
                    if instance.state in ("shutting-down", "terminated")
                ]
                body = self._build_warning(self._choose_instance(fault.position, terminated_instances))
            case "again":
                if not self._sent_messages:
                    raise Invalid("nothing was said yet")
                body = self._sent_messages[int(fault.position * len(self._sent_messages))]
            case _:
                assert_never(fault.shape)
        self._world.runtime.add(f"{self._world.cluster_name}-{INTERRUPTION_QUEUE}", body)
        return body[:160]

    def _build_warning(self, instance_id: str, **overrides: str) -> str:
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        return json.dumps(
            self._wrap_event({"source": "aws.ec2", "detail-type": INTERRUPTION_WARNING, "detail": detail} | overrides)
        )

    def _wrap_event(self, event_fields: dict[str, Any]) -> dict[str, Any]:
        now = self._world.clock.get_time()
        return {
            "version": "0",
            "id": "again-and-again",
            "time": f"{now:%Y-%m-%dT%H:%M:%SZ}",
            "resources": [],
        } | event_fields


def _set_delay(target: object, attribute: str, seconds: int) -> FaultEnd:
    """Set the duration in *attribute* of *target*; the returned function restores it."""
    previous_delay = getattr(target, attribute)
    setattr(target, attribute, timedelta(seconds=seconds))
    return partial(setattr, target, attribute, previous_delay)
