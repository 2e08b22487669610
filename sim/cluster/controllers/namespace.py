"""Namespaces that are being deleted: first what is in them goes, then they do."""

from datetime import timedelta
from typing import Final

from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.api_kinds import BUILT_IN
from sim.cluster.controllers.informer import Informer, Key, Obj, key_of
from sim.cluster.controllers.queue import Queue

_AGAIN: Final = timedelta(seconds=2)


class Namespaces:
    """The namespace controller: what is in a namespace that is being deleted is deleted, then the namespace."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        """Follow *api*."""
        self._api = api
        self._namespaces = Informer(api, "namespaces")
        self._queue: Queue[Key] = Queue(clock, self._sync, "namespace")
        self._namespaces.on_change(self._take)

    def _take(self, _event: str, _old: Obj | None, new: Obj) -> None:
        if new["metadata"].get("deletionTimestamp"):
            self._queue.add(key_of(new))

    def _sync(self, key: Key) -> None:
        left = 0
        for resource in BUILT_IN:
            for obj in self._api.list(resource.name, key[1]) if resource.namespaced else ():
                left += 1
                if not obj["metadata"].get("deletionTimestamp"):
                    self._api.delete(resource.name, obj["metadata"]["name"], key[1])
        if left:
            self._queue.add_after(key, _AGAIN)
        else:
            self._finalize(key[1])

    def _finalize(self, name: str) -> None:
        namespace = self._namespaces.get(name)
        if namespace is not None:
            self._api.update("namespaces", {**namespace, "spec": {"finalizers": []}}, "finalize")
