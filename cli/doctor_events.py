"""What Joiner said of late, in events of NodePools: what it holds back by itself."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

import msgspec

from cli.checks.facts import Notice
from cli.listed import listed
from shared.actions.events import QUIET_AT_MOST, SOURCE
from shared.disruption.pauses import PAUSED, is_meant
from shared.launch.outcome import BREAKER_OPEN
from shared.ports import Kube

FRESH: Final = QUIET_AT_MOST + timedelta(minutes=2)
"""So long ago it was said last, if it still holds: it is said again, and a tick later it is written."""
_EVENTS: Final = "/api/v1/namespaces/default/events"
"""Where events are of what has no namespace."""
_CHOSEN: Final = "involvedObject.kind=NodePool,type=Warning"


class _Source(msgspec.Struct, frozen=True):
    component: str = ""


class _About(msgspec.Struct, frozen=True):
    name: str = ""


class _Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    involved_object: _About = _About()
    source: _Source = _Source()
    reason: str = ""
    message: str = ""
    last_timestamp: datetime | None = None


def notices(kube: Kube, now: datetime) -> Iterator[Notice]:
    """Iterate over what is held back at *now*, as far as it was said of late, and no person wants it.

    Raises:
        Fault: events are not shown.
    """
    for one in listed(kube, _EVENTS, _Event, _CHOSEN):
        at = one.last_timestamp
        if at is not None and now - at <= FRESH and _is_its_own(one):
            yield Notice(pool=one.involved_object.name, message=one.message, at=at)


def _is_its_own(one: _Event) -> bool:
    """Whether Joiner holds something back that nobody told it to."""
    if one.source.component != SOURCE:
        return False
    return one.reason == BREAKER_OPEN or (one.reason == PAUSED and not is_meant(one.message))
