"""Fate: makes the events of a script happen, and what lasts end."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final, assert_never

from shared.errors import Fault, Gone
from shared.model.ec2 import CapacityType, Instance
from sim.chaos import manifests
from sim.chaos.script import (
    AnyEvent,
    DeadBoot,
    Doom,
    Drift,
    Flap,
    Kill,
    Lag,
    Messages,
    Pause,
    Recreate,
    Repeat,
    Scale,
    Script,
    Shortage,
    Skew,
    Stale,
    Trouble,
    ZoneDown,
)
from sim.chaos.sites import Coverage, place_of
from sim.chaos.troubles import strike
from sim.chaos.world import ChaosWorld
from sim.cloud.chance import share
from sim.faults import Call, Killed

BOTH: Final[tuple[CapacityType, ...]] = ("on-demand", "spot")


class Fate:
    """The hand that a world is under."""

    def __init__(self, world: ChaosWorld, script: Script, say: Callable[[str, str], None], coverage: Coverage) -> None:
        """Lay *script* out on the clock of *world*, from now; *say* hears of every event."""
        self._world, self._script, self._say, self._coverage = world, script, say, coverage
        self._began = world.clock.now()
        self._armed: list[tuple[Kill | Pause, list[int]]] = []
        self._troubles: list[Trouble] = []
        self._messages: list[Messages] = []
        self._is_paused = False
        self._calls = self._sent = 0
        world.tap = self._tap
        world.runtime.copies, world.runtime.lateness = self._copies, self._lateness
        for event in script.events:
            world.clock.call_at(self.at(event.at), partial(self._strike, event), type(event).__name__)

    def at(self, seconds: int) -> datetime:
        """Answer the instant so many seconds into the script."""
        return self._began + timedelta(seconds=seconds)

    def lift(self) -> None:
        """End all that may still be in wait: nothing goes wrong any more."""
        self._armed.clear()

    def _strike(self, event: AnyEvent) -> None:
        self._say("fate" if event in self._script.faults() else "people", repr(event))
        try:
            end = self._happens(event)
        except (Fault, LookupError) as error:
            self._say("fate", f"cannot: {type(error).__name__}: {error}")
            return
        if end is not None:
            self._world.clock.call_at(self.at(event.until), end, "end of " + type(event).__name__)

    def _happens(self, event: AnyEvent) -> Callable[[], None] | None:  # noqa: C901, PLR0911, PLR0912 - one case each
        world = self._world
        match event:
            case Scale():
                world.live.scale("Deployment", "default", event.name, event.replicas)
            case Recreate():
                self._recreate(event.name)
            case Drift():
                world.apply([manifests.pool(self._script.setting, event.release)])
            case Kill() | Pause():
                self._armed.append((event, [event.nth]))
            case Repeat():
                for _ in range(event.times):
                    world.runtime.invoke(event.function, {"source": "schedule"})
            case Messages():
                self._messages.append(event)
                return lambda: self._messages.remove(event)
            case Trouble():
                self._troubles.append(event)
                return lambda: self._troubles.remove(event)
            case Stale():
                return self._stale(event)
            case Shortage():
                return self._shortage(event.instance_type, event.zone, event.capacity_type)
            case Lag():
                return self._lag(event)
            case DeadBoot():
                world.cloud.boots_fail(event.instance_type)
                return lambda: world.cloud.boots_fail(event.instance_type, failing=False)
            case Doom():
                self._doom(event)
            case Flap():
                return self._flap(event)
            case ZoneDown():
                return self._zone_down(event.zone)
            case Skew():
                return self._skew(event)
            case _:
                assert_never(event)
        return None

    def _recreate(self, name: str) -> None:
        for pod in self._world.live.pods("default"):
            if pod["metadata"].get("labels", {}).get("app") == name:
                self._world.live.api.delete("pods", pod["metadata"]["name"], "default")

    def _stale(self, event: Stale) -> Callable[[], None]:
        self._world.behind = timedelta(seconds=event.behind)

        def end() -> None:
            self._world.behind = timedelta()

        return end

    def _skew(self, event: Skew) -> Callable[[], None]:
        self._world.skews[event.function] = timedelta(seconds=event.seconds)

        def end() -> None:
            self._world.skews.pop(event.function, None)

        return end

    def _lag(self, event: Lag) -> Callable[[], None]:
        machines = self._world.cloud.machines
        before, machines.describe_lag = machines.describe_lag, timedelta(seconds=event.seconds)

        def end() -> None:
            machines.describe_lag = before

        return end

    def _shortage(self, instance_type: str, zone: str, capacity_type: str) -> Callable[[], None]:
        struck = [
            (name, where, kind)
            for name, where in self._world.cloud.offerings
            if instance_type in ("", name) and zone in ("", where)
            for kind in BOTH
            if capacity_type in ("", kind)
        ]
        self._leave(struck, 0)
        return lambda: self._leave(struck, None)

    def _leave(self, offerings: list[tuple[str, str, CapacityType]], count: int | None) -> None:
        for name, zone, kind in offerings:
            self._world.cloud.set_capacity(name, zone, kind, count)

    def _one(self, which: float, some: list[Instance]) -> Instance:
        if not some:
            raise Gone("there is no such machine to strike")
        return some[int(which * len(some))]

    def _doom(self, event: Doom) -> None:
        cloud = self._world.cloud
        spot_only = event.how in ("spot", "rebalance")
        some = [one for one in self._world.living() if not spot_only or one.capacity_type == "spot"]
        instance_id = self._one(event.which, some).instance_id
        match event.how:
            case "die":
                cloud.kill(instance_id)
            case "stop":
                cloud.stop(instance_id)
            case "spot":
                cloud.interrupt_spot(instance_id)
            case "rebalance":
                cloud.recommend_rebalance(instance_id)
            case "maintenance":
                cloud.schedule_maintenance([instance_id])
        self._say("fate", f"{event.how} {instance_id}")

    def _flap(self, event: Flap) -> Callable[[], None]:
        running = [one for one in self._world.living() if self._world.live.kubelet.is_running(one.private_dns_name)]
        chosen = self._one(event.which, running)
        wake = self._world.live.kubelet.hang(chosen.private_dns_name)

        def end() -> None:
            if chosen.instance_id in {one.instance_id for one in self._world.living()}:
                wake()

        return end

    def _zone_down(self, zone: str) -> Callable[[], None]:
        self._world.cloud.drain_zone(zone)
        for one in self._world.living():
            if one.zone == zone:
                self._world.cloud.kill(one.instance_id)
        return lambda: self._world.cloud.refill_zone(zone)

    def _copies(self, queue: str, body: str) -> int:
        self._sent += 1
        for event in self._messages:
            drawn = share(self._script.seed, "copies", self._sent, queue, body)
            if drawn < event.lost:
                return 0
            if drawn < event.lost + event.doubled:
                return 2
        return 1

    def _lateness(self, queue: str, body: str) -> timedelta:
        late = max((event.late for event in self._messages), default=0)
        return timedelta(seconds=int(late * share(self._script.seed, "late", self._sent, queue, body)))

    def _tap(self, call: Call) -> None:
        place = place_of(call)
        self._coverage.met.add(place)
        self._ambush(call, place)
        self._calls += 1
        for event in self._troubles:
            if share(self._script.seed, "trouble", self._calls) < event.share:
                strike(event, call)

    def _ambush(self, call: Call, place: str) -> None:
        for armed in list(self._armed):
            event, left = armed
            is_there = call.who.startswith(event.function) and call.when == event.when
            if not is_there or event.site not in ("", place):
                continue
            if isinstance(event, Pause) and self._is_paused:
                continue
            left[0] -= 1
            if left[0] > 0:
                continue
            self._armed.remove(armed)
            if isinstance(event, Kill):
                self._coverage.struck.add((place, call.when))
                self._say("fate", f"{call.who} dies {call.when} {place}")
                raise Killed(place)
            self._hold(event, call, place)

    def _hold(self, event: Pause, call: Call, place: str) -> None:
        """Let *call* wait while the world goes on."""
        self._say("fate", f"{call.who} stands still {call.when} {place}")
        self._is_paused = True
        try:
            if event.overtaker and event.overtaker != "interrupt":
                self._world.runtime.invoke(event.overtaker, {"source": "schedule"})
            self._world.clock.advance(timedelta(seconds=event.lasts))
        finally:
            self._is_paused = False
        self._say("fate", f"{call.who} goes on")
