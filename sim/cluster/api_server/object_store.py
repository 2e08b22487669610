"""Storage of the API server: objects by key, one revision for all resources, and change callbacks."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import Final

from shared.crds.definitions import Object
from sim.cluster.api_server.api_resources import PODS, Key
from sim.cluster.api_server.watch import StoreWrite, WatchCache

Callback = Callable[[str, Object | None, Object | None], None]

_AFTER_LAST_NAME: Final = "\U0010ffff"


def get_object_key(obj: Object) -> Key:
    """Return the key of *obj* in the store."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class ObjectStore:
    """Objects by resource and key; keys are kept sorted, pods are also indexed by node."""

    def __init__(self) -> None:
        """Create an empty store at revision 1."""
        self.revision = 1
        self.history = WatchCache()
        self._objects: dict[str, dict[Key, Object]] = {}
        self._sorted_keys: dict[str, list[Key]] = {}
        self._pods_by_node: dict[str, dict[Key, Object]] = {}
        self._callbacks: dict[str, list[Callback]] = {}
        self._pending_notifications: deque[tuple[str, str, Object | None, Object | None]] = deque()
        self._is_notifying = False

    def find(self, resource: str, key: Key) -> Object | None:
        """Return the object, or None."""
        return self._objects.get(resource, {}).get(key)

    def list_objects(self, resource: str, namespace: str | None) -> list[Object]:
        """Return all objects of *resource* (in *namespace*), sorted by namespace, then name."""
        objects, keys = self._objects.get(resource, {}), self._sorted_keys.get(resource, [])
        if namespace is not None:
            start, end = bisect_left(keys, (namespace, "")), bisect_left(keys, (namespace, _AFTER_LAST_NAME))
            keys = keys[start:end]
        return [objects[key] for key in keys]

    def list_pods_on_node(self, node_name: str) -> list[Object]:
        """Return the pods that are bound to the node, sorted by namespace, then name."""
        pods = self._pods_by_node.get(node_name, {})
        return [pods[key] for key in sorted(pods)]

    def subscribe(self, resource: str, callback: Callback) -> None:
        """Call *callback* for every change from now on."""
        self._callbacks.setdefault(resource, []).append(callback)

    def write(self, resource: str, old: Object | None, new: Object) -> Object:
        """Store *new* in place of *old* with the next revision; return it as stored."""
        self.revision += 1
        stored = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.revision)}}
        key = get_object_key(stored)
        if old is None:
            insort(self._sorted_keys.setdefault(resource, []), key)
        self._objects.setdefault(resource, {})[key] = stored
        self._index(resource, key, old, stored)
        self.history.record(resource, StoreWrite(revision=self.revision, old=old, new=stored))
        self._notify(resource, "MODIFIED" if old else "ADDED", old, stored)
        return stored

    def remove(self, resource: str, old: Object) -> None:
        """Remove *old*, which also increments the revision."""
        self.revision += 1
        key = get_object_key(old)
        del self._objects[resource][key]
        keys = self._sorted_keys[resource]
        del keys[bisect_left(keys, key)]
        self._index(resource, key, old, None)
        self.history.record(resource, StoreWrite(revision=self.revision, old=old, new=None))
        self._notify(resource, "DELETED", old, None)

    def _index(self, resource: str, key: Key, old: Object | None, new: Object | None) -> None:
        if resource != PODS:
            return
        if old and (node := old["spec"].get("nodeName")):
            del self._pods_by_node[node][key]
        if new and (node := new["spec"].get("nodeName")):
            self._pods_by_node.setdefault(node, {})[key] = new

    def _notify(self, resource: str, event: str, old: Object | None, new: Object | None) -> None:
        self._pending_notifications.append((resource, event, old, new))
        if self._is_notifying:
            return
        self._is_notifying = True
        try:
            while self._pending_notifications:
                changed_resource, event_type, old_object, new_object = self._pending_notifications.popleft()
                for callback in tuple(self._callbacks.get(changed_resource, ())):
                    callback(event_type, old_object, new_object)
        finally:
            self._is_notifying = False
