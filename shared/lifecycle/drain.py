"""Which pods of a node that goes are asked to leave now.

Those whose time is up, because the termination grace period of the node ends, are deleted, past every budget. The
others leave in tiers, each after the one before it is empty: ordinary pods, daemons, critical pods, critical daemons.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final

import msgspec

from shared.lifecycle.guards import Guards
from shared.model.action import DeletePod, EvictPod
from shared.model.pods import Pod

_SHOWN: Final = 3


class Drain(msgspec.Struct, frozen=True, kw_only=True):
    """How far a drain is; pods sorted by name."""

    waiting: tuple[Pod, ...] = ()
    """All that have to leave yet."""
    forced: tuple[Pod, ...] = ()
    evicted: tuple[Pod, ...] = ()
    refused: tuple[str, ...] = ()
    """Why pods that are due are not asked."""

    def words(self) -> str:
        """Say what it waits for, in few words."""
        shown = ", ".join(pod.name for pod in self.waiting[:_SHOWN])
        more = ", …" if len(self.waiting) > _SHOWN else ""
        because = f"; {self.refused[0]}" if self.refused else ""
        return f"{len(self.waiting)} pods are waiting to leave: {shown}{more}{because}"


def drain(
    pods: Iterable[Pod],
    deadline: datetime | None,
    now: datetime,
    guards: Guards,
    held: Mapping[str, str] = MappingProxyType({}),
) -> Drain:
    """Look at the pods of one node; *deadline* is when its termination grace period ends, None: it has none.

    Those *held*, by name, are not asked to leave yet, and why.
    """
    waiting = tuple(sorted((pod for pod in pods if pod.is_waiting_eviction(now)), key=_identity))
    forced = tuple(pod for pod in waiting if deadline is not None and is_forced(pod, deadline, now))
    urgent = {_identity(pod) for pod in forced}
    orderly = [pod for pod in waiting if _identity(pod) not in urgent]
    first = min((_tier(pod) for pod in orderly), default=0)
    due = [pod for pod in orderly if _tier(pod) == first and pod.is_active()]
    refusals = {_identity(pod): _refusal(pod, now, guards) or held.get(pod.name, "") for pod in due}
    evicted = tuple(pod for pod in due if not refusals[_identity(pod)])
    refused = tuple(why for why in refusals.values() if why)
    return Drain(waiting=waiting, forced=forced, evicted=evicted, refused=refused)


def is_forced(pod: Pod, deadline: datetime, now: datetime) -> bool:
    """Whether the pod must begin to go now, or go faster, to be gone at *deadline*."""
    if pod.meta.deleted_at is not None:
        return pod.meta.deleted_at > deadline
    return now > deadline - pod.grace_period


def next_forced(waiting: Iterable[Pod], deadline: datetime) -> datetime:
    """Answer when the next of the *waiting* pods is forced, at the latest *deadline*."""
    return min((deadline - pod.grace_period for pod in waiting if pod.is_active()), default=deadline)


def evictions(pods: Iterable[Pod], why: str) -> tuple[EvictPod, ...]:
    """Ask the eviction API for each of *pods*."""
    return tuple(
        EvictPod(namespace=pod.meta.namespace, name=pod.meta.name, uid=pod.meta.uid, node=pod.node_name, why=why)
        for pod in pods
    )


def deletions(pods: Iterable[Pod], deadline: datetime, now: datetime, why: str) -> tuple[DeletePod, ...]:
    """Delete each of *pods* with the whole seconds that are left, at least one."""
    grace = max(int((deadline - now) / timedelta(seconds=1)), 1)
    return tuple(
        DeletePod(
            namespace=pod.meta.namespace,
            name=pod.meta.name,
            uid=pod.meta.uid,
            node=pod.node_name,
            grace_seconds=grace,
            why=why,
        )
        for pod in pods
    )


def _tier(pod: Pod) -> int:
    return 2 * pod.is_critical() + pod.is_daemon()


def _refusal(pod: Pod, now: datetime, guards: Guards) -> str:
    if not pod.is_evictable(now):
        return f"pod {pod.name} must not be disrupted"
    return guards.lasting_refusal(pod)


def _identity(pod: Pod) -> tuple[str, str]:
    return pod.name, pod.meta.uid
