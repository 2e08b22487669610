"""Pods that became pending since this container last listed them: a list of a few pods, every few seconds."""

from collections.abc import Iterable
from typing import Final

from shared.model.core.metadata import Problem
from shared.model.kubernetes.pod import Pod
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.ports.world import World
from shared.take.kubernetes.reflector import Reflector
from shared.take.kubernetes.resource_kinds import PENDING_PODS

PENDING_PODS_CACHE_KEY: Final = "watch: pending pods"


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
    return tuple(sorted(name for uid, name in pod_name_by_uid.items() if uid not in previous_uids))


def _list_pending_pods(world: World) -> Iterable[Pod]:
    problems: list[Problem] = []  # the provision function reports these problems
    with world.trace("take"):
        pods: tuple[Pod, ...] = Reflector(world.kube, world.memory, world.clock()).list_until(
            PENDING_PODS, lambda _: False, problems
        )
    return pods
