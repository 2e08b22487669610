"""Sending the events of a cycle, after its journal entry is written.

Nothing here can fail or delay a cycle for long: each request is one attempt; after a failure no request is made for
`RETRY_DELAY`. Events that were not accepted are sent with a later cycle of the container: at least once while the
container lives, with the same id. A single event that EventBridge refuses does not hold up the others: it goes to the
end of the queue, and is dropped after `MAX_REFUSED_AGE`. The journal has all events, also those that were lost.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from shared.errors import Fault
from shared.ports.messaging import BusEvent, EventBus
from shared.ports.world import World
from shared.report.event_bus.derive_events import derive_events
from shared.report.event_bus.event_details import DETAIL_TYPE_NAMES, EventDetail
from shared.report.journal.journal import JournalEntry, build_entry_key
from shared.report.log import log

MAX_EVENTS_PER_REQUEST: Final = 10
MAX_REQUEST_BYTES: Final = 256 * 1024
"""Of all entries together: the limit of PutEvents."""
MAX_EVENTS_PER_CYCLE: Final = 200
"""More events wait for the next cycle."""
MAX_WAITING_EVENTS: Final = 2000
"""If more events wait, the oldest are dropped."""
MIN_TIME_LEFT: Final = timedelta(seconds=20)
"""Longer than the timeouts of one request: with less time left, the events wait for the next cycle."""
RETRY_DELAY: Final = timedelta(minutes=1)
MAX_REFUSED_AGE: Final = timedelta(hours=1)
"""An older event that EventBridge refuses, while it accepts requests, is dropped."""
SENT_ID_TTL: Final = timedelta(hours=1)
"""How long a container remembers which events it sent: what can be derived again after an hour has another id then."""
_TIME_BYTES: Final = 14
_MEMORY_KEY: Final = "event bus"


class EventMemory(msgspec.Struct, kw_only=True):
    """What a container remembers about its events."""

    waiting: list[BusEvent] = []
    """Events that are not sent yet, oldest first; after them those that EventBridge refused."""
    sent_at: dict[str, datetime] = {}
    """When events were sent, by id."""
    retry_at: datetime | None = None
    """After a failure: when the next request may be made."""


def send_entry_events(entry: JournalEntry | None, world: World) -> None:
    """Send the events of *entry*, and those that wait; nothing without an event bus, or if nothing may be changed.

    None: the bucket does not have the entry. Its events would name an entry that does not exist, and are not sent.
    """
    if world.event_bus is None or world.settings.mode == "plan":
        return
    memory = _get_memory(world)
    if entry is not None:
        _add_events(memory, entry, world)
    has_time = world.time_left is None or world.time_left() >= MIN_TIME_LEFT
    if memory.waiting and has_time and (memory.retry_at is None or world.clock() >= memory.retry_at):
        _send_waiting_events(memory, world.event_bus, world)


def split_events(events: Iterable[BusEvent]) -> Iterator[tuple[BusEvent, ...]]:
    """Yield *events* in their order, in batches that PutEvents accepts."""
    batch: list[BusEvent] = []
    batch_bytes = 0
    for event in events:
        event_bytes = count_entry_bytes(event)
        if batch and (len(batch) == MAX_EVENTS_PER_REQUEST or batch_bytes + event_bytes > MAX_REQUEST_BYTES):
            yield tuple(batch)
            batch, batch_bytes = [], 0
        batch.append(event)
        batch_bytes += event_bytes
    if batch:
        yield tuple(batch)


def count_entry_bytes(event: BusEvent) -> int:
    """Return the size of *event* as EventBridge counts it.

    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html
    """
    return _TIME_BYTES + sum(len(text.encode()) for text in (event.source, event.detail_type, event.detail))


def _get_memory(world: World) -> EventMemory:
    if world.memory is None:
        return EventMemory()
    memory = world.memory.setdefault(_MEMORY_KEY, EventMemory())
    assert isinstance(memory, EventMemory)  # noqa: S101 - the key is ours
    return memory


def _add_events(memory: EventMemory, entry: JournalEntry, world: World) -> None:
    """Let the events of *entry* wait, except those that this container sent already."""
    now = world.clock()
    memory.sent_at = {key: at for key, at in memory.sent_at.items() if now - at < SENT_ID_TTL}
    known_ids = {*memory.sent_at, *(event.event_id for event in memory.waiting)}
    details = derive_events(entry, cluster=world.settings.cluster_name, journal_key=build_entry_key(entry, world.name))
    memory.waiting += [_build_event(detail, entry.at) for detail in details if detail.id not in known_ids]
    dropped_count = len(memory.waiting) - MAX_WAITING_EVENTS
    if dropped_count > 0:
        del memory.waiting[:dropped_count]
        log("WARNING", "events dropped", world, {"events": dropped_count})


def _build_event(detail: EventDetail, at: datetime) -> BusEvent:
    return BusEvent(
        event_id=detail.id,
        detail_type=DETAIL_TYPE_NAMES[type(detail)],
        at=at,
        detail=msgspec.json.encode(detail, order="deterministic").decode(),
    )


def _send_waiting_events(memory: EventMemory, bus: EventBus, world: World) -> None:
    """Send what waits, until a request fails or all its events are refused."""
    now = world.clock()
    events, later_events = memory.waiting[:MAX_EVENTS_PER_CYCLE], memory.waiting[MAX_EVENTS_PER_CYCLE:]
    unsent: list[BusEvent] = []
    refused_events: list[BusEvent] = []
    first_error, is_stopped = "", False
    for batch in split_events(events):
        if is_stopped:
            unsent += batch
            continue
        try:
            refused, error = bus.put(batch)
        except Fault as fault:
            refused, error = (), f"{type(fault).__name__}: {fault}"
            unsent += batch
            is_stopped = True
        else:
            is_stopped = len(refused) == len(batch)
            refused_events += [batch[index] for index in refused]
            accepted_ids = (event.event_id for index, event in enumerate(batch) if index not in set(refused))
            memory.sent_at |= dict.fromkeys(accepted_ids, now)
        first_error = first_error or error
    repeated_events = [event for event in refused_events if now - event.at < MAX_REFUSED_AGE]
    memory.waiting = unsent + later_events + repeated_events
    memory.retry_at = now + RETRY_DELAY if first_error else None
    _log_failures(world, first_error, len(unsent) + len(repeated_events), len(refused_events) - len(repeated_events))


def _log_failures(world: World, error: str, unsent_count: int, dropped_count: int) -> None:
    if unsent_count:
        log("WARNING", "events not sent yet", world, {"events": unsent_count, "error": error})
    if dropped_count:
        log("WARNING", "events dropped", world, {"events": dropped_count, "error": error})
