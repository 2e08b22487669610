"""A world of actions whose calls to Kubernetes take time, so that threads overlap."""

import time
from collections.abc import Callable
from threading import Lock
from typing import Any, cast

import msgspec

from shared.ports.aws import Ec2
from shared.ports.kubernetes import Kube
from shared.ports.world import World


class SlowPort:
    """A port in front of *port*, which performs one call at a time, after each caller has waited on its own."""

    def __init__(self, port: Kube | Ec2, seconds: float) -> None:
        """Let each call take *seconds* longer."""
        self._port, self._seconds, self._lock, self._count_lock = port, seconds, Lock(), Lock()
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
                    return getattr(self._port, name)(*arguments, **options)
            finally:
                with self._count_lock:
                    self.running_count -= 1

        return call


def make_parallel(world: World, max_parallel_calls: int = 16, seconds: float = 0.001) -> tuple[World, SlowPort]:
    """Return *world* with parallel calls, and its Kubernetes port; calls to it and to EC2 take *seconds* longer."""
    kube, ec2 = SlowPort(world.kube, seconds), SlowPort(world.ec2, seconds)
    parallel_world = msgspec.structs.replace(
        world, kube=cast("Kube", kube), ec2=cast("Ec2", ec2), max_parallel_calls=max_parallel_calls
    )
    return parallel_world, kube
