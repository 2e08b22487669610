"""Sending events: batches, failures, repetitions, and time limits."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.errors import Unreachable
from shared.ports.messaging import BusEvent
from shared.ports.world import World
from shared.report.event_bus.send_events import (
    MAX_EVENTS_PER_CYCLE,
    MAX_EVENTS_PER_REQUEST,
    MAX_REFUSED_AGE,
    MAX_REQUEST_BYTES,
    MAX_WAITING_EVENTS,
    MIN_TIME_LEFT,
    RETRY_DELAY,
    EventMemory,
    count_entry_bytes,
    send_entry_events,
    split_events,
)
from shared.report.journal.journal import DecisionNote, JournalEntry
from sim.world.memory_ports import MemoryEventBus
from tests.support.actions_world import Outside

NOW = datetime(2026, 11, 22, 8, 30, tzinfo=UTC)


class UnreliableBus(MemoryEventBus):
    """A bus that refuses the first event of each request, or does not respond."""

    def __init__(self) -> None:
        """Start with a bus that accepts everything."""
        super().__init__()
        self.is_down = self.refuses_first = False
        self.requests = 0

    def put(self, events: Sequence[BusEvent]) -> tuple[tuple[int, ...], str]:
        """Count the request."""
        self.requests += 1
        if self.is_down:
            raise Unreachable("events:PutEvents")
        if not self.refuses_first:
            return super().put(events)
        if len(events) > 1:
            super().put(events[1:])
        return (0,), "InternalFailure: try again"


def build_world(bus: MemoryEventBus, **fields: object) -> tuple[World, list[datetime]]:
    """Return a world with *bus* and a memory, and its clock as a list of one instant."""
    outside, clock = Outside(), [NOW]
    world = replace(outside.build_world(), event_bus=bus, memory={}, clock=lambda: clock[0], **fields)
    return world, clock


def make_entry(*namespaces: str) -> JournalEntry:
    notes = tuple(
        DecisionNote(kind="Pod", name=f"{namespace}/a", verdict="NoInstanceTypeFits", reason="")
        for namespace in namespaces
    )
    return JournalEntry(function="provision", trigger="schedule", at=NOW, cluster="", notes=notes)


def test_entry_that_was_not_written_has_no_events_and_those_that_wait_are_sent() -> None:
    bus = UnreliableBus()
    world, clock = build_world(bus)
    bus.is_down = True
    send_entry_events(make_entry("a"), world)
    bus.is_down = False
    clock[0] += RETRY_DELAY
    send_entry_events(None, world)
    send_entry_events(None, world)
    assert [event.detail_type for event in bus.events] == ["Pods Blocked"]


def test_nothing_is_sent_without_a_bus_or_in_mode_plan() -> None:
    bus = MemoryEventBus()
    world, _ = build_world(bus)
    send_entry_events(make_entry("a"), replace(world, event_bus=None))
    send_entry_events(make_entry("a"), replace(world, settings=replace(world.settings, mode="plan")))
    assert (bus.events, world.memory) == ([], {})


def test_container_sends_each_event_once() -> None:
    bus = MemoryEventBus()
    world, _ = build_world(bus)
    for _ in range(3):
        send_entry_events(make_entry("a"), world)
    send_entry_events(make_entry("a", "b"), world)
    assert len(bus.events) == 2
    assert [event.detail_type for event in bus.events] == ["Pods Blocked"] * 2


def test_refused_events_are_sent_again_after_a_delay_with_the_same_id() -> None:
    bus = UnreliableBus()
    world, clock = build_world(bus)
    bus.refuses_first = True
    send_entry_events(make_entry("a", "b", "c"), world)
    assert len(bus.events) == 2
    bus.refuses_first = False
    send_entry_events(make_entry("a"), world)
    assert (len(bus.events), bus.requests) == (2, 1)
    clock[0] += RETRY_DELAY
    send_entry_events(make_entry(), world)
    assert (len(bus.events), len({event.event_id for event in bus.events})) == (3, 3)


class PickyBus(MemoryEventBus):
    """A bus that always refuses events of some namespaces."""

    def __init__(self, *refused_namespaces: str) -> None:
        """Start without events."""
        super().__init__()
        self.refused_namespaces = refused_namespaces

    def put(self, events: Sequence[BusEvent]) -> tuple[tuple[int, ...], str]:
        """Accept the other events."""
        refused = tuple(number for number, event in enumerate(events) if self._is_refused(event))
        accepted = [event for event in events if not self._is_refused(event)]
        if accepted:
            super().put(accepted)
        return refused, "MalformedDetail: no" if refused else ""

    def _is_refused(self, event: BusEvent) -> bool:
        return any(f'"namespace":"{namespace}"' in event.detail for namespace in self.refused_namespaces)


def test_event_that_is_always_refused_does_not_hold_up_others_and_is_dropped_after_an_hour() -> None:
    bus = PickyBus("n00")
    world, clock = build_world(bus)
    send_entry_events(make_entry(*(f"n{number:02}" for number in range(25))), world)
    assert len(bus.events) == 24
    clock[0] += MAX_REFUSED_AGE - timedelta(minutes=1)
    send_entry_events(make_entry(), world)
    memory = (world.memory or {})["event bus"]
    assert isinstance(memory, EventMemory)
    assert len(memory.waiting) == 1
    clock[0] += RETRY_DELAY
    send_entry_events(make_entry(), world)
    assert (memory.waiting, len(bus.events)) == ([], 24)


def test_refused_events_go_behind_the_others() -> None:
    bus = PickyBus(*(f"n{number:02}" for number in range(MAX_EVENTS_PER_REQUEST)))
    world, clock = build_world(bus)
    send_entry_events(make_entry(*(f"n{number:02}" for number in range(15))), world)
    assert bus.events == []
    clock[0] += RETRY_DELAY
    send_entry_events(make_entry(), world)
    assert len(bus.events) == 5


def test_no_event_is_dropped_while_the_bus_does_not_respond() -> None:
    bus = UnreliableBus()
    world, clock = build_world(bus)
    bus.is_down = True
    send_entry_events(make_entry("a"), world)
    clock[0] += 2 * MAX_REFUSED_AGE
    send_entry_events(make_entry(), world)
    bus.is_down = False
    clock[0] += RETRY_DELAY
    send_entry_events(make_entry(), world)
    assert len(bus.events) == 1


def test_bus_that_does_not_respond_gets_one_request_per_minute_and_the_cycle_continues() -> None:
    bus = UnreliableBus()
    world, clock = build_world(bus)
    bus.is_down = True
    send_entry_events(make_entry(*(f"n{number}" for number in range(35))), world)
    send_entry_events(make_entry("more"), world)
    assert bus.requests == 1
    bus.is_down = False
    clock[0] += RETRY_DELAY
    send_entry_events(make_entry(), world)
    assert len({event.event_id for event in bus.events}) == 36


def test_events_wait_if_little_time_is_left() -> None:
    bus = MemoryEventBus()
    world, _ = build_world(bus, time_left=lambda: MIN_TIME_LEFT - timedelta(seconds=1))
    send_entry_events(make_entry("a"), world)
    assert bus.events == []
    send_entry_events(make_entry(), replace(world, time_left=lambda: MIN_TIME_LEFT))
    assert len(bus.events) == 1


def test_cycle_sends_a_limited_number_and_the_oldest_events_are_dropped() -> None:
    bus = UnreliableBus()
    world, clock = build_world(bus)
    bus.is_down = True
    send_entry_events(make_entry(*(f"n{number:05}" for number in range(MAX_WAITING_EVENTS + 5))), world)
    bus.is_down = False
    clock[0] += RETRY_DELAY
    send_entry_events(make_entry(), world)
    assert len(bus.events) == MAX_EVENTS_PER_CYCLE
    for _ in range(MAX_WAITING_EVENTS // MAX_EVENTS_PER_CYCLE):
        send_entry_events(make_entry(), world)
    assert len(bus.events) == MAX_WAITING_EVENTS
    assert '"namespace":"n00005"' in bus.events[0].detail


def make_event(number: int, size: int) -> BusEvent:
    return BusEvent(event_id=str(number), detail_type="Node Launched", at=NOW, detail="x" * size)


@given(st.lists(st.integers(min_value=0, max_value=200_000), max_size=40))
def test_batches_have_all_events_in_order_within_the_limits_of_put_events(sizes: list[int]) -> None:
    events = [make_event(number, size) for number, size in enumerate(sizes)]
    batches = list(split_events(events))
    assert [event for batch in batches for event in batch] == events
    for batch in batches:
        assert 1 <= len(batch) <= MAX_EVENTS_PER_REQUEST
        assert sum(map(count_entry_bytes, batch)) <= MAX_REQUEST_BYTES
