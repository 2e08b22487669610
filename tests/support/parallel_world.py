"""A world of actions whose calls to Kubernetes take time, so that threads overlap."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, cast

import msgspec

from shared.ports.kubernetes import Kube
from shared.ports.world import World


class SlowKube:
    """A port in front of *kube*, which performs one call at a time, after each caller has waited on its own."""

    def __init__(self, kube: Kube, seconds: float) -> None:
        """Let each call take *seconds* longer."""
        self._kube, self._seconds, self._lock, self._count_lock = kube, seconds, Lock(), Lock()
        self.running_count = self.max_running_count = 0

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the method *name* of the port."""

        def call(*arguments: object, **options: object) -> object:
            with self._count_lock:
                self.running_count += 1
                self.max_running_count = max(self.max_running_count, self.running_count)
            try:
                time.sleep(self._seconds)
                with self._lock:
                    return getattr(self._kube, name)(*arguments, **options)
            finally:
                with self._count_lock:
                    self.running_count -= 1

        return call


def make_parallel(world: World, max_parallel_calls: int = 16, seconds: float = 0.001) -> tuple[World, SlowKube]:
    """Return *world* with parallel calls, and its Kubernetes port, whose calls take *seconds* longer."""
    kube = SlowKube(world.kube, seconds)
    parallel_world = msgspec.structs.replace(world, kube=cast("Kube", kube), max_parallel_calls=max_parallel_calls)
    return parallel_world, kube
