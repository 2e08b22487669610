"""User actions of a script, through `kubectl` and AWS."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final, assert_never

from shared.errors import Fault, NotFound
from sim.fault_simulation.events import script_manifests
from sim.fault_simulation.events.fault_world import FaultWorld
from sim.fault_simulation.events.script import ScriptSetup
from sim.fault_simulation.events.script_events import (
    Batch,
    Drift,
    Erase,
    Recreate,
    Release,
    Remove,
    Restaff,
    Retag,
    Scale,
    UserAction,
)

NODE_POOLS: Final = "nodepools.karpenter.sh"
NODE_CLASSES: Final = "ec2nodeclasses.karpenter.k8s.aws"
RESTORE_RETRY_INTERVAL: Final = timedelta(seconds=15)
"""Interval between attempts to apply objects that are still being deleted."""


class UserSimulator:
    """The users who may write to the cluster."""

    def __init__(self, world: FaultWorld, setup: ScriptSetup) -> None:
        """Act in *world*, which was set up from *setup*."""
        self._world, self._setup = world, setup

    def perform(self, action: UserAction) -> Callable[[], None] | None:
        """Perform the action; return the function that ends it, if any.

        Raises:
            NotFound: the object does not exist.
        """
        world = self._world
        match action:
            case Scale():
                kind = script_manifests.get_workload_kind(action.name)
                world.cluster.scale(kind, "default", action.name, action.replicas)
            case Recreate():
                self._recreate_pods(action.name)
            case Drift():
                world.apply([script_manifests.build_main_pool(self._setup, action.release, action.excluded_type)])
            case Retag():
                world.apply([script_manifests.build_node_class(self._setup, owner=action.owner)])
            case Release():
                world.cloud.release_amis()
            case Batch():
                world.apply([script_manifests.build_job(action.name, action.pods, action.seconds)])
            case Restaff():
                world.cluster.api.patch(
                    NODE_POOLS, script_manifests.STATIC_POOL, {"spec": {"replicas": action.replicas}}
                )
            case Remove():
                return self._remove_second_pool(with_node_class=action.with_node_class)
            case Erase():
                self._erase_object(action)
            case _:
                assert_never(action)
        return None

    def _recreate_pods(self, name: str) -> None:
        for pod in self._world.cluster.list_pods("default"):
            if pod["metadata"].get("labels", {}).get("app") == name:
                self._world.cluster.api.delete("pods", pod["metadata"]["name"], "default")

    def _remove_second_pool(self, *, with_node_class: bool) -> Callable[[], None]:
        self._world.cluster.api.delete(NODE_POOLS, script_manifests.SECOND_POOL)
        if with_node_class:
            self._world.cluster.api.delete(NODE_CLASSES, script_manifests.SECOND_POOL)
        return self._restore_second_pool

    def _restore_second_pool(self) -> None:
        """Apply the second NodePool again, once the old objects are deleted."""
        for resource in (NODE_CLASSES, NODE_POOLS):
            for item in self._world.cluster.api.list(resource):
                if item["metadata"]["name"] == script_manifests.SECOND_POOL and "deletionTimestamp" in item["metadata"]:
                    self._world.clock.call_after(RESTORE_RETRY_INTERVAL, self._restore_second_pool, "apply again")
                    return
        try:
            self._world.apply(script_manifests.build_second_pool(self._setup))
        except Fault:
            self._world.clock.call_after(RESTORE_RETRY_INTERVAL, partial(self._restore_second_pool), "apply again")

    def _erase_object(self, action: Erase) -> None:
        object_names = sorted(item["metadata"]["name"] for item in self._world.cluster.api.list(action.resource))
        if not object_names:
            raise NotFound(f"there are no {action.resource}")
        self._world.cluster.api.delete(action.resource, object_names[int(action.position * len(object_names))])
