"""Kubernetes events, which `kubectl describe` shows. The same event within two minutes is one event."""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

import msgspec

from shared.errors import Conflict
from shared.model.action import PublishEvent
from shared.model.units import instant_text, parse_instant
from shared.ports import World

QUIET_FOR: Final = timedelta(minutes=2)
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


class _Known(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    count: int = 1
    last_timestamp: str = ""


def publish(action: PublishEvent, world: World) -> None:
    """Create the event, or count it once more; what this container said lately costs no call."""
    name, told = event_name(action), _told(world)
    if name not in told or not timedelta() <= action.at - told[name] < QUIET_FOR:
        _write(action, name, world)
        told[name] = action.at


def _told(world: World) -> dict[str, datetime]:
    """Answer when this container said what, of late."""
    if world.memory is None:
        return {}
    known = world.memory.get(KEY)
    told: dict[str, datetime] = known if isinstance(known, dict) else {}
    if len(told) >= MOST:
        told.clear()
    world.memory[KEY] = told
    return told


def _write(action: PublishEvent, name: str, world: World) -> None:
    namespace = action.namespace or "default"
    collection = f"/api/v1/namespaces/{namespace}/events"
    try:
        world.kube.create(collection, msgspec.json.encode(event_object(action, name, namespace)))
    except Conflict:
        known = msgspec.json.decode(world.kube.read(f"{collection}/{name}"), type=_Known)
        if known.last_timestamp and action.at - parse_instant(known.last_timestamp) < QUIET_FOR:
            return
        again = {"count": known.count + 1, "lastTimestamp": instant_text(action.at)}
        world.kube.patch(f"{collection}/{name}", msgspec.json.encode(again))


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
