"""Kubernetes events, shown by `kubectl describe`. Repeated events are counted, at growing intervals.

One event stands for one object, reason and message. It is counted again after two minutes, then after four and eight,
and then every 15 minutes: the API server deletes an event one hour after it was written. A container remembers what it
wrote, so that a repetition is one call; a new container reads the event first.
"""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

import msgspec

from shared.errors import Conflict, NotFound
from shared.model.core.units import format_instant, parse_instant
from shared.model.decisions.action import PublishEvent
from shared.model.karpenter.node_claim import KARPENTER_API_VERSION, NODE_CLASS_GROUP
from shared.ports.world import World

FIRST_REPEAT_INTERVAL: Final = timedelta(minutes=2)
"""After the first publication; the interval then doubles each time."""
MAX_REPEAT_INTERVAL: Final = timedelta(minutes=15)
EVENT_SOURCE: Final = "joiner"
MEMORY_KEY: Final = "published events"
MAX_REMEMBERED_EVENTS: Final = 10_000
"""If more events are remembered, all of them are forgotten."""
_MAX_MESSAGE_CHARS: Final = 1024
_API_VERSIONS: Final = {
    "Pod": "v1",
    "Node": "v1",
    "Deployment": "apps/v1",
    "StatefulSet": "apps/v1",
    "NodePool": KARPENTER_API_VERSION,
    "NodeClaim": KARPENTER_API_VERSION,
    "EC2NodeClass": f"{NODE_CLASS_GROUP}/v1",
}


class _StoredMeta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_version: str = ""


class _StoredEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    metadata: _StoredMeta = _StoredMeta()
    count: int | None = 1
    last_timestamp: str | None = None


class _PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event at its last publication."""

    at: datetime
    count: int
    version: str

    def is_too_soon(self, now: datetime) -> bool:
        """Return whether *now* is too soon to publish the event again."""
        return now - self.at < compute_repeat_interval(self.count)


def publish_event(action: PublishEvent, world: World) -> None:
    """Create the event or count it again; an event that this container published recently costs no call.

    Raises:
        Fault: the API server did not accept the event.
    """
    name, published_events = build_event_name(action), _get_published_events(world)
    last_event = published_events.get(name)
    if last_event is not None and action.at < last_event.at:
        last_event = None  # published by a clock that was ahead: the stored event is read
    if last_event is None or not last_event.is_too_soon(action.at):
        published_events[name] = _write_event(action, name, last_event, world)


def compute_repeat_interval(count: int) -> timedelta:
    """Return how long an event that was published *count* times is not published again.

    >>> [compute_repeat_interval(count).seconds // 60 for count in range(1, 6)]
    [2, 4, 8, 15, 15]
    """
    doublings = min(max(count, 1) - 1, 3)
    return min(FIRST_REPEAT_INTERVAL * (1 << doublings), MAX_REPEAT_INTERVAL)


def _get_published_events(world: World) -> dict[str, _PublishedEvent]:
    """Return the events that this container published recently, by event name."""
    if world.memory is None:
        return {}
    remembered = world.memory.get(MEMORY_KEY)
    published_events: dict[str, _PublishedEvent] = remembered if isinstance(remembered, dict) else {}
    if len(published_events) >= MAX_REMEMBERED_EVENTS:
        published_events.clear()
    world.memory[MEMORY_KEY] = published_events
    return published_events


def _write_event(action: PublishEvent, name: str, last_event: _PublishedEvent | None, world: World) -> _PublishedEvent:
    """Create the event or count it again; return it as stored, unchanged if another process published it recently."""
    namespace = action.namespace or "default"
    collection = f"/api/v1/namespaces/{namespace}/events"
    path = f"{collection}/{name}"
    if last_event is not None:
        try:
            return _count_again(path, last_event, action.at, world)
        except (Conflict, NotFound):
            pass  # another process published it, or it was deleted
    try:
        created = world.kube.create(collection, msgspec.json.encode(build_event_object(action, name, namespace)))
    except Conflict:
        stored_event = _decode_event(world.kube.read(path), action.at - MAX_REPEAT_INTERVAL)
        return (
            stored_event if stored_event.is_too_soon(action.at) else _count_again(path, stored_event, action.at, world)
        )
    return _decode_event(created, action.at)


def _count_again(path: str, last_event: _PublishedEvent, at: datetime, world: World) -> _PublishedEvent:
    """Increase the event's count if it is unchanged since *last_event*."""
    patch = {
        "metadata": {"resourceVersion": last_event.version},
        "count": last_event.count + 1,
        "lastTimestamp": format_instant(at),
    }
    return _decode_event(world.kube.patch(path, msgspec.json.encode(patch)), at)


def _decode_event(stored: bytes, default_time: datetime) -> _PublishedEvent:
    """Decode a stored event; *default_time* is used if it has no time of publication."""
    event = msgspec.json.decode(stored, type=_StoredEvent)
    at = parse_instant(event.last_timestamp) if event.last_timestamp else default_time
    return _PublishedEvent(at=at, count=event.count or 1, version=event.metadata.resource_version)


def build_event_name(action: PublishEvent) -> str:
    """Return a name derived from object, reason and message."""
    identity = f"{action.kind}\n{action.namespace}\n{action.name}\n{action.uid}\n{action.reason}\n{action.message}"
    return f"{action.name[:200].rstrip('.-')}.{sha256(identity.encode()).hexdigest()[:16]}"


def build_event_object(action: PublishEvent, name: str, namespace: str) -> dict[str, object]:
    """Return the v1 Event."""
    at = format_instant(action.at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": _API_VERSIONS.get(action.kind, "v1"),
            "kind": action.kind,
            "name": action.name,
            "namespace": action.namespace,
            "uid": action.uid,
        },
        "type": action.type,
        "reason": action.reason,
        "message": action.message[:_MAX_MESSAGE_CHARS],
        "source": {"component": EVENT_SOURCE},
        "reportingComponent": EVENT_SOURCE,
        "reportingInstance": EVENT_SOURCE,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
