"""What befalls the account and the machines in it."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, TypeAlias, assert_never

from shared.errors import Gone, Invalid
from shared.model.ec2 import CapacityType, Instance
from sim.chaos.events import DeadBoot, Doom, Flap, Impair, Lag, Notice, Shortage, SlowDetach, ZoneDown
from sim.chaos.world import ChaosWorld

Blow: TypeAlias = DeadBoot | Doom | Flap | Impair | Lag | Notice | Shortage | SlowDetach | ZoneDown
End: TypeAlias = Callable[[], None]
BOTH: Final[tuple[CapacityType, ...]] = ("on-demand", "spot")
QUEUE: Final = "joiner-interruption"
WARNING: Final = "EC2 Spot Instance Interruption Warning"
UNREADABLE: Final = ("", "?", "[]", "null", '{"version": 0}', '{"version": "0", "source": "aws.ec2", "detail"')
UNKNOWN: Final = (
    {"source": "aws.ec2", "detail-type": "EC2 Instance Was Renamed", "detail": {"instance-id": "i-0"}},
    {"source": "aws.autoscaling", "detail-type": "EC2 Instance Launch Successful", "detail": {}},
    {"source": "aws.ec2", "detail-type": WARNING, "detail": {"instance": "i-0"}},
    {"source": "aws.health", "detail-type": "AWS Health Event", "detail": {"service": "EC2", "affectedEntities": "?"}},
)


class Blows:
    """The hand that strikes."""

    def __init__(self, world: ChaosWorld) -> None:
        """Strike *world*."""
        self._world = world
        self._heard: list[str] = []
        """Messages of the interruption queue, oldest first."""
        world.cloud.subscribe_events(lambda event: self._heard.append(json.dumps(event)))

    def strike(self, blow: Blow) -> tuple[str, End | None]:
        """Do it; answer whom it hit, if somebody, and what ends it, if it ends.

        Raises:
            Gone: there is nothing to be struck.
            Invalid: it cannot be struck so.
        """
        whom, end = "", None
        match blow:
            case Shortage():
                end = self._shortage(blow)
            case Lag():
                end = self._lag(blow)
            case DeadBoot():
                end = self._dead_boot(blow.instance_type)
            case Doom():
                whom, end = self._doom(blow)
            case Flap():
                whom, end = self._flap(blow)
            case Impair():
                whom, end = self._impair(blow)
            case SlowDetach():
                end = self._slow_detach(blow)
            case ZoneDown():
                end = self._zone_down(blow.zone)
            case Notice():
                whom = self._notice(blow)
            case _:
                assert_never(blow)
        return whom, end

    def _dead_boot(self, instance_type: str) -> End:
        self._world.cloud.boots_fail(instance_type)
        return lambda: self._world.cloud.boots_fail(instance_type, failing=False)

    def _lag(self, blow: Lag) -> End:
        machines = self._world.cloud.machines
        before, machines.describe_lag = machines.describe_lag, timedelta(seconds=blow.seconds)

        def end() -> None:
            machines.describe_lag = before

        return end

    def _slow_detach(self, blow: SlowDetach) -> End:
        attacher = self._world.live.attacher
        before, attacher.detaching = attacher.detaching, timedelta(seconds=blow.seconds)

        def end() -> None:
            attacher.detaching = before

        return end

    def _shortage(self, blow: Shortage) -> End:
        struck = [
            (name, where, kind)
            for name, where in self._world.cloud.offerings
            if blow.instance_type in ("", name) and blow.zone in ("", where)
            for kind in BOTH
            if blow.capacity_type in ("", kind)
        ]
        self._leave(struck, 0)
        return lambda: self._leave(struck, None)

    def _leave(self, offerings: list[tuple[str, str, CapacityType]], count: int | None) -> None:
        for name, zone, kind in offerings:
            self._world.cloud.set_capacity(name, zone, kind, count)

    def _zone_down(self, zone: str) -> End:
        self._world.cloud.drain_zone(zone)
        for one in self._world.living_machines():
            if one.zone == zone:
                self._world.cloud.kill(one.instance_id)
        return lambda: self._world.cloud.refill_zone(zone)

    def _one(self, which: float, some: list[Instance]) -> str:
        if not some:
            raise Gone("there is no such machine to strike")
        return some[int(which * len(some))].instance_id

    def _living(self, capacity_type: str = "") -> list[Instance]:
        return [one for one in self._world.living_machines() if capacity_type in ("", one.capacity_type)]

    def _doom(self, blow: Doom) -> tuple[str, End | None]:
        cloud, end = self._world.cloud, None
        kinds = {"spot": "spot", "rebalance": "spot", "reservation": "reserved"}
        instance_id = self._one(blow.which, self._living(kinds.get(blow.how, "")))
        match blow.how:
            case "die":
                cloud.kill(instance_id)
            case "stop":
                cloud.stop(instance_id)
            case "terminate":
                cloud.terminate([instance_id])
            case "spot":
                cloud.interrupt_spot(instance_id)
            case "rebalance":
                cloud.recommend_rebalance(instance_id)
            case "reservation":
                cloud.reclaim_reserved(instance_id)
            case "maintenance":
                cloud.schedule_maintenance([instance_id])
            case "called-off":
                cloud.schedule_maintenance([instance_id])

                def end() -> None:
                    cloud.call_off_maintenance([instance_id])

            case _:
                assert_never(blow.how)
        return instance_id, end

    def _flap(self, blow: Flap) -> tuple[str, End]:
        kubelet = self._world.live.kubelet
        chosen = self._one(blow.which, [one for one in self._living() if kubelet.is_running(one.private_dns_name)])
        wake = kubelet.hang(
            self._world.cloud.machines.find(chosen).described(self._world.cloud.region).private_dns_name
        )

        def end() -> None:
            if chosen in {one.instance_id for one in self._living()}:
                wake()

        return chosen, end

    def _impair(self, blow: Impair) -> tuple[str, End]:
        chosen = self._one(blow.which, self._living())
        now = self._world.clock.now()
        self._world.impaired[chosen] = (now, now + timedelta(seconds=blow.lasts))
        self._world.cloud.impair(chosen, blow.of)
        return chosen, lambda: self._recover(chosen, blow)

    def _recover(self, chosen: str, blow: Impair) -> None:
        if chosen in {one.instance_id for one in self._world.started()}:
            self._world.cloud.impair(chosen, blow.of, failing=False)

    def _notice(self, blow: Notice) -> str:
        match blow.shape:
            case "unreadable":
                body = UNREADABLE[int(blow.which * len(UNREADABLE))]
            case "unknown":
                body = json.dumps(self._envelope(UNKNOWN[int(blow.which * len(UNKNOWN))]))
            case "foreign":
                strangers = (*self._world.strangers, "i-0ofanotheraccount")
                body = self._warning(strangers[int(blow.which * len(strangers))], account="999999999999")
            case "gone":
                over = [one for one in self._world.started() if one.state in ("shutting-down", "terminated")]
                body = self._warning(self._one(blow.which, over))
            case "again":
                if not self._heard:
                    raise Invalid("nothing was said yet")
                body = self._heard[int(blow.which * len(self._heard))]
            case _:
                assert_never(blow.shape)
        self._world.runtime.send(f"{self._world.cluster_name}-{QUEUE}", body)
        return body[:160]

    def _warning(self, instance_id: str, **more: str) -> str:
        detail = {"instance-id": instance_id, "instance-action": "terminate"}
        return json.dumps(self._envelope({"source": "aws.ec2", "detail-type": WARNING, "detail": detail} | more))

    def _envelope(self, said: dict[str, Any]) -> dict[str, Any]:
        now = self._world.clock.now()
        return {"version": "0", "id": "again-and-again", "time": f"{now:%Y-%m-%dT%H:%M:%SZ}", "resources": []} | said
