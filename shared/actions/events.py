"""Kubernetes events, which `kubectl describe` shows. What stands is said again, ever more rarely.

What is said of an object in the same words with the same reason is one event. It is counted once more after two
minutes, later after four and eight, and at the latest every quarter of an hour: the API server forgets an event one
hour after it was written. A container remembers what it wrote, so that this is one call; a fresh one reads the event.
"""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

import msgspec

from shared.errors import Conflict, Gone
from shared.model.action import PublishEvent
from shared.model.units import instant_text, parse_instant
from shared.ports import World

QUIET_FOR: Final = timedelta(minutes=2)
"""After it was said for the first time; from then on twice as long each time."""
QUIET_AT_MOST: Final = timedelta(minutes=15)
SOURCE: Final = "joiner"
KEY: Final = "told events"
MOST: Final = 10_000
"""So many are remembered, then none."""
_LONGEST: Final = 1024
_GROUPS: Final = {
    "Pod": "v1",
    "Node": "v1",
    "NodePool": "karpenter.sh/v1",
    "NodeClaim": "karpenter.sh/v1",
    "EC2NodeClass": "karpenter.k8s.aws/v1",
}


class _Meta(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    resource_version: str = ""


class _Stored(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    metadata: _Meta = _Meta()
    count: int | None = 1
    last_timestamp: str | None = None


class _Said(msgspec.Struct, frozen=True, kw_only=True):
    """An event as it was seen last."""

    at: datetime
    count: int
    version: str

    def is_enough(self, now: datetime) -> bool:
        """Whether *now* is too soon for saying it once more."""
        return now - self.at < quiet_for(self.count)


def publish(action: PublishEvent, world: World) -> None:
    """Create the event, or count it once more; what this container said lately costs no call.

    Raises:
        Fault: the API server did not take it.
    """
    name, told = event_name(action), _told(world)
    known = told.get(name)
    if known is not None and action.at < known.at:
        known = None  # said by a clock that was ahead: the event itself is asked
    if known is None or not known.is_enough(action.at):
        told[name] = _written(action, name, known, world)


def quiet_for(count: int) -> timedelta:
    """Answer how long an event that was said *count* times is not said again.

    >>> [quiet_for(count).seconds // 60 for count in range(1, 6)]
    [2, 4, 8, 15, 15]
    """
    doubled = min(max(count, 1) - 1, 3)
    return min(QUIET_FOR * (1 << doubled), QUIET_AT_MOST)


def _told(world: World) -> dict[str, _Said]:
    """Answer what this container said of late, by the event's name."""
    if world.memory is None:
        return {}
    known = world.memory.get(KEY)
    told: dict[str, _Said] = known if isinstance(known, dict) else {}
    if len(told) >= MOST:
        told.clear()
    world.memory[KEY] = told
    return told


def _written(action: PublishEvent, name: str, known: _Said | None, world: World) -> _Said:
    """Answer the event as it is once it is written, or was already, lately, by somebody else."""
    namespace = action.namespace or "default"
    collection = f"/api/v1/namespaces/{namespace}/events"
    path = f"{collection}/{name}"
    if known is not None:
        try:
            return _counted(path, known, action.at, world)
        except (Conflict, Gone):
            pass  # somebody else said it, or it was forgotten
    try:
        made = world.kube.create(collection, msgspec.json.encode(event_object(action, name, namespace)))
    except Conflict:
        there = _said(world.kube.read(path), action.at - QUIET_AT_MOST)
        return there if there.is_enough(action.at) else _counted(path, there, action.at, world)
    return _said(made, action.at)


def _counted(path: str, known: _Said, at: datetime, world: World) -> _Said:
    """Count it once more, if it is still as it is *known*."""
    again = {
        "metadata": {"resourceVersion": known.version},
        "count": known.count + 1,
        "lastTimestamp": instant_text(at),
    }
    return _said(world.kube.patch(path, msgspec.json.encode(again)), at)


def _said(stored: bytes, unknown: datetime) -> _Said:
    """Read an event; *unknown*: when it was said last, if it does not say."""
    read = msgspec.json.decode(stored, type=_Stored)
    at = parse_instant(read.last_timestamp) if read.last_timestamp else unknown
    return _Said(at=at, count=read.count or 1, version=read.metadata.resource_version)


def event_name(action: PublishEvent) -> str:
    """Answer a name derived from what is said of whom."""
    said = f"{action.kind}\n{action.namespace}\n{action.name}\n{action.uid}\n{action.reason}\n{action.message}"
    return f"{action.name[:200].rstrip('.-')}.{sha256(said.encode()).hexdigest()[:16]}"


def event_object(action: PublishEvent, name: str, namespace: str) -> dict[str, object]:
    """Answer the v1 Event."""
    at = instant_text(action.at)
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": _GROUPS.get(action.kind, "v1"),
            "kind": action.kind,
            "name": action.name,
            "namespace": action.namespace,
            "uid": action.uid,
        },
        "type": action.type,
        "reason": action.reason,
        "message": action.message[:_LONGEST],
        "source": {"component": SOURCE},
        "reportingComponent": SOURCE,
        "reportingInstance": SOURCE,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
