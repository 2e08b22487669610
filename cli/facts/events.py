"""Joiner's recent events of NodePools: what Joiner holds back automatically."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from cli.cluster.paging import list_objects
from cli.facts.model import NodePoolEvent
from shared.apply.kubernetes.events import EVENT_SOURCE, MAX_REPEAT_INTERVAL
from shared.decide.disruption.pauses import PAUSED_REASON, is_intentional_pause
from shared.decide.launch.fleets.fleet_result import BREAKER_OPEN_REASON
from shared.ports.kubernetes import Kube

MAX_EVENT_AGE: Final = MAX_REPEAT_INTERVAL + timedelta(minutes=2)
"""Age limit of an event that still applies: Joiner repeats it, and writes it one tick later."""
_EVENTS_PATH: Final = "/api/v1/namespaces/default/events"
"""Kubernetes stores events of cluster-scoped objects in this namespace."""
_FIELD_SELECTOR: Final = "involvedObject.kind=NodePool,type=Warning"


class _Source(msgspec.Struct, frozen=True):
    component: str = ""


class _InvolvedObject(msgspec.Struct, frozen=True):
    name: str = ""


class _Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    involved_object: _InvolvedObject = _InvolvedObject()
    source: _Source = _Source()
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None


def list_pause_events(kube: Kube, now: datetime) -> Iterator[NodePoolEvent]:
    """Yield what is held back at *now* according to recent events, unless a person requested it.

    Raises:
        Fault: The events cannot be read.
    """
    for event in list_objects(kube, _EVENTS_PATH, _Event, _FIELD_SELECTOR):
        at = event.last_timestamp
        if at is not None and now - at <= MAX_EVENT_AGE and _is_automatic_hold(event):
            yield NodePoolEvent(pool=event.involved_object.name, message=event.message, at=at)


def _is_automatic_hold(event: _Event) -> bool:
    """Return whether the event is about a hold that Joiner started automatically."""
    is_automatic_pause = event.reason == PAUSED_REASON and not is_intentional_pause(event.message)
    return event.source.component == EVENT_SOURCE and (event.reason == BREAKER_OPEN_REASON or is_automatic_pause)
