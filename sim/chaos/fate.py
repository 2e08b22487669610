"""Fate: makes the events of a script happen, and what lasts end."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from shared.errors import Fault
from sim.chaos.blows import Blow, Blows
from sim.chaos.events import (
    AnyEvent,
    Kill,
    Messages,
    Pause,
    Repeat,
    Skew,
    Stale,
    Trouble,
    name_of,
)
from sim.chaos.script import Script
from sim.chaos.sites import Coverage, place_of
from sim.chaos.troubles import strike
from sim.chaos.wishes import People, Wish
from sim.chaos.world import ChaosWorld
from sim.cloud.chance import share
from sim.faults import Call, Killed


class Fate:
    """The hand that a world is under."""

    def __init__(self, world: ChaosWorld, script: Script, say: Callable[[str, str], None], coverage: Coverage) -> None:
        """Lay *script* out on the clock of *world*, from now; *say* hears of every event."""
        self._world, self._script, self._say, self._coverage = world, script, say, coverage
        self._people, self._blows = People(world, script.setting), Blows(world)
        self.happened: Counter[str] = Counter()
        """What really struck, by `name_of`."""
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
        """End all that may still be in wait: nothing goes wrong any more, so what is met from now on is not covered."""
        self._armed.clear()
        self._coverage = Coverage()

    def _strike(self, event: AnyEvent) -> None:
        is_fault = event in self._script.faults()
        self._say("fate" if is_fault else "people", repr(event))
        try:
            end = self._happens(event)
        except (Fault, LookupError) as error:
            self._say("fate" if is_fault else "people", f"cannot: {type(error).__name__}: {error}")
            return
        if not isinstance(event, Kill | Pause):
            self.happened[name_of(event)] += 1
        if end is not None:
            self._world.clock.call_at(self.at(event.until), end, "end of " + type(event).__name__)

    def _happens(self, event: AnyEvent) -> Callable[[], None] | None:
        if isinstance(event, Wish):
            return self._people.fulfil(event)
        if isinstance(event, Blow):
            struck, end = self._blows.strike(event)
            if struck:
                self._say("fate", f"{name_of(event)}: {struck}")
            return end
        return self._befalls(event)

    def _befalls(self, event: Kill | Messages | Pause | Repeat | Skew | Stale | Trouble) -> Callable[[], None] | None:
        end: Callable[[], None] | None = None
        match event:
            case Kill() | Pause():
                self._armed.append((event, [event.nth]))
            case Repeat():
                for _ in range(event.times):
                    self._world.runtime.invoke(event.function, {"source": "schedule"})
            case Messages():
                self._messages.append(event)
                end = partial(self._messages.remove, event)
            case Trouble():
                self._troubles.append(event)
                end = partial(self._troubles.remove, event)
            case Stale():
                end = self._stale(event)
            case Skew():
                end = self._skew(event)
            case _:
                assert_never(event)
        return end

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
        self._coverage.met.add((place, call.when))
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
                self.happened[name_of(event)] += 1
                self._say("fate", f"{call.who} dies {call.when} {place}")
                raise Killed(place)
            self._hold(event, call, place)

    def _hold(self, event: Pause, call: Call, place: str) -> None:
        """Let *call* wait while the world goes on."""
        self.happened[name_of(event)] += 1
        self._say("fate", f"{call.who} stands still {call.when} {place}")
        self._is_paused = True
        try:
            if event.overtaker and event.overtaker != "interrupt":
                self._world.runtime.invoke(event.overtaker, {"source": "schedule"})
            self._world.clock.advance(timedelta(seconds=event.lasts))
        finally:
            self._is_paused = False
        self._say("fate", f"{call.who} goes on")
