"""Pods that became pending since this container last listed them: a list of a few pods, every few seconds."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from shared.model.core.metadata import Problem
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.ports.world import World
from shared.take.kubernetes.reflector import Reflector
from shared.take.kubernetes.resource_kinds import PENDING_PODS

PENDING_PODS_CACHE_KEY: Final = "watch: pending pods"
LAST_NEW_POD_CACHE_KEY: Final = "watch: last new pending pod"
IDLE_AFTER: Final = timedelta(minutes=10)
"""Without a newly pending pod for this long, a cluster is idle."""


def find_newly_pending_pods(world: World) -> tuple[str, ...]:
    """Return the names of the provisionable pods that were not pending at the previous call, sorted.

    Without a memory there is no previous call, and all pending pods count as new; this wakes the function once too
    often.

    Raises:
        Fault: the list of pods could not be read.
    """
    pod_name_by_uid = {pod.meta.uid: pod.name for pod in _list_pending_pods(world) if is_provisionable(pod)}
    cached_uids = world.memory.get(PENDING_PODS_CACHE_KEY) if world.memory is not None else None
    if world.memory is not None:
        world.memory[PENDING_PODS_CACHE_KEY] = frozenset(pod_name_by_uid)
    previous_uids = cached_uids if isinstance(cached_uids, frozenset) else frozenset()
    new_pods = tuple(sorted(name for uid, name in pod_name_by_uid.items() if uid not in previous_uids))
    if new_pods and world.memory is not None:
        world.memory[LAST_NEW_POD_CACHE_KEY] = world.clock()
    return new_pods


def is_idle(world: World) -> bool:
    """Return whether this container has found no newly pending pod for `IDLE_AFTER`, and has looked for that long."""
    if world.memory is None:
        return False
    now = world.clock()
    found_at = world.memory.setdefault(LAST_NEW_POD_CACHE_KEY, now)
    return isinstance(found_at, datetime) and now - found_at >= IDLE_AFTER


def _list_pending_pods(world: World) -> Iterable[Pod]:
    problems: list[Problem] = []  # the provision function reports these problems
    with world.trace("take"):
        pods: tuple[Pod, ...] = Reflector(world.kube, world.memory, world.clock()).list_until(
            PENDING_PODS, lambda _: False, problems
        )
    return pods
