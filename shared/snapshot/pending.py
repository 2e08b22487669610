"""Pods that began to wait for a node since a container last looked: a list of a few pods, every few seconds."""

from collections.abc import Iterable
from typing import Final

from shared.model.objects import Problem
from shared.model.pods import Pod
from shared.ports import World
from shared.snapshot.kinds import PENDING
from shared.snapshot.watching import Watching

KEY: Final = "watch: pods that wait"


def newly_waiting(world: World) -> tuple[str, ...]:
    """Answer the names of the pods that wait for one of our nodes and did not when this was last asked, sorted.

    A container without memory has never looked: then all that wait are new, which wakes somebody once too often.

    Raises:
        Fault: the list of pods could not be read.
    """
    waiting = {pod.meta.uid: pod.name for pod in _pending(world) if pod.is_provisionable()}
    known = world.memory.get(KEY) if world.memory is not None else None
    if world.memory is not None:
        world.memory[KEY] = frozenset(waiting)
    before = known if isinstance(known, frozenset) else frozenset()
    return tuple(sorted(name for uid, name in waiting.items() if uid not in before))


def _pending(world: World) -> Iterable[Pod]:
    problems: list[Problem] = []  # provision tells them
    pods: tuple[Pod, ...] = Watching(world.kube, world.memory, world.clock()).until(PENDING, lambda _: False, problems)
    return pods
