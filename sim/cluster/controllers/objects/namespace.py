"""Namespace deletion: first the contents of the namespace are deleted, then the namespace."""

from datetime import timedelta
from typing import Final

from sim.cluster.api_server.api_resources import BUILT_IN_RESOURCES
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, NamespacedName, Obj, get_object_key
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

_RETRY_INTERVAL: Final = timedelta(seconds=2)


class NamespaceController:
    """The namespace controller: deletes the contents of a terminating namespace, then removes its finalizers."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        """Watch the namespaces of *api*."""
        self._api = api
        self._namespaces = Informer(api, "namespaces")
        self._queue: WorkQueue[NamespacedName] = WorkQueue(clock, self._sync, "namespace")
        self._namespaces.add_event_handler(self._handle_namespace)

    def _handle_namespace(self, _event: str, _old: Obj | None, new: Obj) -> None:
        if new["metadata"].get("deletionTimestamp"):
            self._queue.add(get_object_key(new))

    def _sync(self, key: NamespacedName) -> None:
        remaining_objects = 0
        for resource in BUILT_IN_RESOURCES:
            for obj in self._api.list(resource.name, key[1]) if resource.namespaced else ():
                remaining_objects += 1
                if not obj["metadata"].get("deletionTimestamp"):
                    self._api.delete(resource.name, obj["metadata"]["name"], key[1])
        if remaining_objects:
            self._queue.add_after(key, _RETRY_INTERVAL)
        else:
            self._remove_finalizers(key[1])

    def _remove_finalizers(self, name: str) -> None:
        namespace = self._namespaces.get(name)
        if namespace is not None:
            self._api.update("namespaces", {**namespace, "spec": {"finalizers": []}}, "finalize")
