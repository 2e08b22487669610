"""What is stored: every object under its key, one revision for all, and who wants to hear of changes."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable
from typing import Final

from sim.cluster.api_kinds import PODS, Key, Object
from sim.cluster.api_watch import History, Write

Callback = Callable[[str, Object | None, Object | None], None]

_AFTER_ALL_NAMES: Final = "\U0010ffff"


def key_of(obj: Object) -> Key:
    """Answer where *obj* is stored."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Store:
    """Objects by resource and key; keys are kept sorted, pods are also indexed by node."""

    def __init__(self) -> None:
        """Begin empty, at revision 1."""
        self.revision = 1
        self.history = History()
        self._objects: dict[str, dict[Key, Object]] = {}
        self._keys: dict[str, list[Key]] = {}
        self._pods_on: dict[str, dict[Key, Object]] = {}
        self._callbacks: dict[str, list[Callback]] = {}
        self._pending: deque[tuple[str, str, Object | None, Object | None]] = deque()
        self._telling = False

    def find(self, resource: str, key: Key) -> Object | None:
        """Answer the object, or None."""
        return self._objects.get(resource, {}).get(key)

    def objects(self, resource: str, namespace: str | None) -> list[Object]:
        """Answer all of *resource* (in *namespace*), by namespace, then name."""
        objects, keys = self._objects.get(resource, {}), self._keys.get(resource, [])
        if namespace is not None:
            start, end = bisect_left(keys, (namespace, "")), bisect_left(keys, (namespace, _AFTER_ALL_NAMES))
            keys = keys[start:end]
        return [objects[key] for key in keys]

    def pods_on(self, node: str) -> list[Object]:
        """Answer the pods bound to *node*, by namespace, then name."""
        pods = self._pods_on.get(node, {})
        return [pods[key] for key in sorted(pods)]

    def subscribe(self, resource: str, callback: Callback) -> None:
        """Tell *callback* of every change from now on."""
        self._callbacks.setdefault(resource, []).append(callback)

    def write(self, resource: str, old: Object | None, new: Object) -> Object:
        """Store *new* in place of *old* under the next revision; answer it as stored."""
        self.revision += 1
        stored = {**new, "metadata": {**new["metadata"], "resourceVersion": str(self.revision)}}
        key = key_of(stored)
        if old is None:
            insort(self._keys.setdefault(resource, []), key)
        self._objects.setdefault(resource, {})[key] = stored
        self._index(resource, key, old, stored)
        self.history.record(resource, Write(revision=self.revision, old=old, new=stored))
        self._tell(resource, "MODIFIED" if old else "ADDED", old, stored)
        return stored

    def remove(self, resource: str, old: Object) -> None:
        """Forget *old*, which takes a revision too."""
        self.revision += 1
        key = key_of(old)
        del self._objects[resource][key]
        keys = self._keys[resource]
        del keys[bisect_left(keys, key)]
        self._index(resource, key, old, None)
        self.history.record(resource, Write(revision=self.revision, old=old, new=None))
        self._tell(resource, "DELETED", old, None)

    def _index(self, resource: str, key: Key, old: Object | None, new: Object | None) -> None:
        if resource != PODS:
            return
        if old and (node := old["spec"].get("nodeName")):
            del self._pods_on[node][key]
        if new and (node := new["spec"].get("nodeName")):
            self._pods_on.setdefault(node, {})[key] = new

    def _tell(self, resource: str, event: str, old: Object | None, new: Object | None) -> None:
        self._pending.append((resource, event, old, new))
        if self._telling:
            return
        self._telling = True
        try:
            while self._pending:
                where, what, before, after = self._pending.popleft()
                for callback in tuple(self._callbacks.get(where, ())):
                    callback(what, before, after)
        finally:
            self._telling = False
