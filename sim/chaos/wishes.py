"""What people do in a play, with `kubectl` and by way of AWS."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias, assert_never

from shared.errors import Fault, Gone
from sim.chaos import manifests
from sim.chaos.events import Batch, Drift, Erase, Recreate, Release, Remove, Restaff, Retag, Scale
from sim.chaos.script import Setting
from sim.chaos.world import ChaosWorld

Wish: TypeAlias = Batch | Drift | Erase | Recreate | Release | Remove | Restaff | Retag | Scale
POOLS: Final = "nodepools.karpenter.sh"
CLASSES: Final = "ec2nodeclasses.karpenter.k8s.aws"
AGAIN: Final = timedelta(seconds=15)
"""So long after it was in vain somebody tries again to apply what is still being deleted."""


class People:
    """Everybody who may write to the cluster."""

    def __init__(self, world: ChaosWorld, setting: Setting) -> None:
        """Work in *world*, which was set up as *setting* says."""
        self._world, self._setting = world, setting

    def fulfil(self, wish: Wish) -> Callable[[], None] | None:
        """Do it; answer what ends it, if it is something that ends.

        Raises:
            Gone: there is no such thing.
        """
        world = self._world
        match wish:
            case Scale():
                kind = manifests.workload(wish.name, 0)["kind"]
                world.live.scale(kind, "default", wish.name, wish.replicas)
            case Recreate():
                self._recreate(wish.name)
            case Drift():
                world.apply([manifests.pool(self._setting, wish.release, wish.without)])
            case Retag():
                world.apply([manifests.node_class(self._setting, owner=wish.owner)])
            case Release():
                world.cloud.release_amis()
            case Batch():
                world.apply([manifests.job(wish.name, wish.pods, wish.seconds)])
            case Restaff():
                world.live.api.patch(POOLS, manifests.STATIC, {"spec": {"replicas": wish.replicas}})
            case Remove():
                return self._remove(whole=wish.whole)
            case Erase():
                self._erase(wish)
            case _:
                assert_never(wish)
        return None

    def _recreate(self, name: str) -> None:
        for pod in self._world.live.pods("default"):
            if pod["metadata"].get("labels", {}).get("app") == name:
                self._world.live.api.delete("pods", pod["metadata"]["name"], "default")

    def _remove(self, *, whole: bool) -> Callable[[], None]:
        self._world.live.api.delete(POOLS, manifests.SECOND)
        if whole:
            self._world.live.api.delete(CLASSES, manifests.SECOND)
        return self._restore

    def _restore(self) -> None:
        """Apply it again, once nothing of it is there any more."""
        for resource in (CLASSES, POOLS):
            for one in self._world.live.api.list(resource):
                if one["metadata"]["name"] == manifests.SECOND and "deletionTimestamp" in one["metadata"]:
                    self._world.clock.call_after(AGAIN, self._restore, "apply again")
                    return
        try:
            self._world.apply(manifests.second(self._setting))
        except Fault:
            self._world.clock.call_after(AGAIN, partial(self._restore), "apply again")

    def _erase(self, wish: Erase) -> None:
        some = sorted(one["metadata"]["name"] for one in self._world.live.api.list(wish.what))
        if not some:
            raise Gone(f"there are no {wish.what}")
        self._world.live.api.delete(wish.what, some[int(wish.which * len(some))])
