"""Which pods of a leaving node stay for now: those whose new node is on its way, while there is time to wait for it.

A pod that is asked to leave before its new node is fit for use runs nowhere meanwhile. So it waits for that, but no
longer than the machine lasts: EC2 says when it takes one back, the termination grace period when the pods are deleted,
and before either the pods keep their own grace periods. A new node that does not come at all is waited for `PATIENCE`.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

from shared.lifecycle.machines import Machine, View
from shared.model.labels import ENDS_AT
from shared.model.nodes import Node
from shared.model.pods import Pod
from shared.model.units import parse_instant

PATIENCE: Final = timedelta(minutes=2)
"""So long after its drain was announced a node waits for its pods' new nodes, however long it lasts."""
PLANNED: Final = timedelta(seconds=15)
"""So long after that the pods of a node that EC2 takes back have a new place: whoever plans may have been at work."""
MARGIN: Final = timedelta(seconds=15)
"""What a drain needs besides its pods' grace periods: to be seen, three looks of the lifecycle."""
NOBODY: Final[Mapping[str, str]] = MappingProxyType({})


def ends_at(nodes: Iterable[Node]) -> datetime | None:
    """Answer when EC2 takes the machine of *nodes* back; None: nobody said so."""
    known = [at for node in nodes if (at := _instant(node.meta.annotation(ENDS_AT))) is not None]
    return min(known, default=None)


def held_back(machine: Machine, view: View, since: datetime | None, deadline: datetime | None) -> Mapping[str, str]:
    """Answer the pods that are not asked to leave yet, by name, and why; *since* is when the drain was announced."""
    now = view.now
    waiting = [pod for pod in machine.pods if pod.is_waiting_eviction(now)]
    if not waiting or now >= last_moment(machine, waiting, since or now, deadline):
        return NOBODY
    if not any(node.is_ready() for node in machine.nodes):
        return NOBODY  # nothing runs there that could be kept running
    unplanned = ends_at(machine.nodes) is not None and (since is None or now - since < PLANNED)
    held: dict[str, str] = {}
    for pod in waiting:
        if home := view.awaited.get(pod.name):
            held[pod.name] = f"pod {pod.name} waits until the node of {home} is fit for use"
        elif unplanned and pod.is_reschedulable():
            held[pod.name] = f"pod {pod.name} waits until its new place is planned"
    return held


def last_moment(machine: Machine, waiting: Iterable[Pod], since: datetime, deadline: datetime | None) -> datetime:
    """Answer when pods are to be asked at the latest, so that each has its grace period before the machine ends."""
    needed = MARGIN + _graces(waiting)
    ends = (ends_at(machine.nodes), deadline)
    return min([since + PATIENCE, *(end - needed for end in ends if end is not None)])


def _graces(waiting: Iterable[Pod]) -> timedelta:
    """Answer how long the pods take that leave one tier after the other; daemons end with their machine."""
    longest: dict[bool, timedelta] = {}
    for pod in waiting:
        if not pod.is_daemon():
            longest[pod.is_critical()] = max(longest.get(pod.is_critical(), timedelta()), pod.grace_period)
    return sum(longest.values(), timedelta())


def _instant(text: str) -> datetime | None:
    try:
        return parse_instant(text)
    except ValueError:
        return None
