"""Event executor: applies the events of a script, and ends those that have a duration."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import assert_never

from shared.errors import Fault
from sim.cloud.seeded_random import draw_fraction
from sim.fault_simulation.events.account_faults import FaultInjector
from sim.fault_simulation.events.call_failures import fail_call
from sim.fault_simulation.events.call_sites import KillCoverage, get_call_site
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.feature_actions import FeatureSimulator
from sim.fault_simulation.events.script import Script
from sim.fault_simulation.events.script_events import (
    AnyEvent,
    CallFailure,
    FunctionFault,
    InfrastructureFault,
    Kill,
    Messages,
    Pause,
    Repeat,
    Skew,
    Stale,
    UserAction,
    format_event_kind,
)
from sim.fault_simulation.events.user_actions import UserSimulator
from sim.fault_simulation.features.feature_events import FeatureAction, FeatureFault
from sim.fault_tap import Killed, PortCall


class EventExecutor:
    """Executes the events of a script in a world."""

    def __init__(
        self, world: FaultWorld, script: Script, add_to_timeline: Callable[[str, str], None], coverage: KillCoverage
    ) -> None:
        """Schedule *script* on the clock of *world*, from now; *say* receives every event for the timeline."""
        self._world, self._script, self._add_to_timeline, self._coverage = world, script, add_to_timeline, coverage
        self._user_simulator, self._fault_injector = UserSimulator(world, script.setup), FaultInjector(world)
        self._feature_simulator = FeatureSimulator(world, script.setup.features)
        if script.setup.features.group_limit_usd_per_hour:
            self._feature_simulator.join_group()
        self.event_counts: Counter[str] = Counter()
        """Events that took effect, by `format_event_kind`."""
        self._started_at = world.clock.get_time()
        self._armed_events: list[tuple[Kill | Pause, list[int]]] = []
        self._active_call_failures: list[CallFailure] = []
        self._active_message_faults: list[Messages] = []
        self._is_paused = False
        self._call_count = self._sent_count = 0
        world.tap = self._handle_call
        world.runtime.count_copies, world.runtime.get_extra_delay = self._count_copies, self._draw_delay
        for event in script.events:
            world.clock.call_at(self.compute_instant(event.at), partial(self._execute, event), type(event).__name__)

    def compute_instant(self, seconds: int) -> datetime:
        """Return the instant *seconds* seconds into the script."""
        return self._started_at + timedelta(seconds=seconds)

    def disarm(self) -> None:
        """Remove all pending kills and pauses: no more faults.

        Call sites that are reached from now on are not covered.
        """
        self._armed_events.clear()
        self._coverage = KillCoverage()

    def _execute(self, event: AnyEvent) -> None:
        is_fault = event in self._script.list_faults()
        self._add_to_timeline("fault" if is_fault else "user", repr(event))
        try:
            end = self._apply_event(event)
        except (Fault, LookupError) as error:
            self._add_to_timeline("fault" if is_fault else "user", f"cannot: {type(error).__name__}: {error}")
            return
        if not isinstance(event, Kill | Pause):
            self.event_counts[format_event_kind(event)] += 1
        if end is not None:
            self._world.clock.call_at(self.compute_instant(event.until), end, "end of " + type(event).__name__)

    def _apply_event(self, event: AnyEvent) -> Callable[[], None] | None:
        if isinstance(event, UserAction):
            return self._user_simulator.perform(event)
        if isinstance(event, FeatureAction | FeatureFault):
            return self._feature_simulator.perform(event)
        if isinstance(event, InfrastructureFault):
            affected, end = self._fault_injector.inject(event)
            if affected:
                self._add_to_timeline("fault", f"{format_event_kind(event)}: {affected}")
            return end
        return self._apply_function_fault(event)

    def _apply_function_fault(self, event: FunctionFault) -> Callable[[], None] | None:
        end: Callable[[], None] | None = None
        match event:
            case Kill() | Pause():
                self._armed_events.append((event, [event.nth]))
            case Repeat():
                for _ in range(event.times):
                    self._world.runtime.invoke(event.function, {"source": "schedule"})
            case Messages():
                self._active_message_faults.append(event)
                end = partial(self._active_message_faults.remove, event)
            case CallFailure():
                self._active_call_failures.append(event)
                end = partial(self._active_call_failures.remove, event)
            case Stale():
                end = self._delay_lists(event)
            case Skew():
                end = self._skew_clock(event)
            case _:
                assert_never(event)
        return end

    def _delay_lists(self, event: Stale) -> Callable[[], None]:
        self._world.list_lag = timedelta(seconds=event.max_age_seconds)

        def restore_lists() -> None:
            self._world.list_lag = timedelta()

        return restore_lists

    def _skew_clock(self, event: Skew) -> Callable[[], None]:
        self._world.clock_skews[event.function] = timedelta(seconds=event.seconds)

        def restore_clock() -> None:
            self._world.clock_skews.pop(event.function, None)

        return restore_clock

    def _count_copies(self, queue: str, body: str) -> int:
        self._sent_count += 1
        for event in self._active_message_faults:
            random_value = draw_fraction(self._script.seed, "copies", self._sent_count, queue, body)
            if random_value < event.lost_ratio:
                return 0
            if random_value < event.lost_ratio + event.duplicated_ratio:
                return 2
        return 1

    def _draw_delay(self, queue: str, body: str) -> timedelta:
        max_delay = max((event.max_delay_seconds for event in self._active_message_faults), default=0)
        return timedelta(
            seconds=int(max_delay * draw_fraction(self._script.seed, "late", self._sent_count, queue, body))
        )

    def _handle_call(self, call: PortCall) -> None:
        site = get_call_site(call)
        self._coverage.reached.add((site, call.phase))
        self._apply_armed_events(call, site)
        self._call_count += 1
        for event in self._active_call_failures:
            if draw_fraction(self._script.seed, "trouble", self._call_count) < event.ratio:
                fail_call(event, call)

    def _apply_armed_events(self, call: PortCall, site: str) -> None:
        for armed_event in list(self._armed_events):
            event, remaining_calls = armed_event
            is_matching_call = call.world_name.startswith(event.function) and call.phase == event.when
            if not is_matching_call or event.site not in ("", site):
                continue
            if isinstance(event, Pause) and self._is_paused:
                continue
            remaining_calls[0] -= 1
            if remaining_calls[0] > 0:
                continue
            self._armed_events.remove(armed_event)
            if isinstance(event, Kill):
                self._coverage.killed.add((site, call.phase))
                self.event_counts[format_event_kind(event)] += 1
                self._add_to_timeline("fault", f"{call.world_name} is killed {call.phase} {site}")
                raise Killed(site)
            self._pause_call(event, call, site)

    def _pause_call(self, event: Pause, call: PortCall, site: str) -> None:
        """Pause *call* while the rest of the world continues."""
        self.event_counts[format_event_kind(event)] += 1
        self._add_to_timeline("fault", f"{call.world_name} pauses {call.phase} {site}")
        self._is_paused = True
        try:
            if event.overtaker and event.overtaker != "interrupt":
                self._world.runtime.invoke(event.overtaker, {"source": "schedule"})
            self._world.clock.advance(timedelta(seconds=event.lasts))
        finally:
            self._is_paused = False
        self._add_to_timeline("fault", f"{call.world_name} resumes")
