"""A cache of one resource that follows the API server, with an index."""

from collections.abc import Callable, Iterable
from typing import Any

from sim.cluster.api_server.api_server import ApiServer

Obj = dict[str, Any]
NamespacedName = tuple[str, str]
EventHandler = Callable[[str, Obj | None, Obj], None]


def get_object_key(obj: Obj) -> NamespacedName:
    """Return (namespace, name) of *obj*."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def find_controller_reference(obj: Obj) -> Obj | None:
    """Return the owner reference of *obj* with `controller: true`, None if there is none."""
    for owner in obj["metadata"].get("ownerReferences") or []:
        if owner.get("controller"):
            return dict(owner)
    return None


def index_by_controller(obj: Obj) -> Iterable[str]:
    """Return the index values of *obj*: the uid of its controller."""
    owner = find_controller_reference(obj)
    return () if owner is None else (owner["uid"],)


def index_by_namespace(obj: Obj) -> Iterable[str]:
    """Return the index values of *obj*: its namespace."""
    return (obj["metadata"].get("namespace", ""),)


def index_by_node(obj: Obj) -> Iterable[str]:
    """Return the index values of a pod: the node it is bound to, "" for none."""
    return (obj["spec"].get("nodeName") or "",)


class Informer:
    """The last known objects of one resource; every list is sorted by namespace, name."""

    def __init__(
        self, api: ApiServer, resource: str, index_function: Callable[[Obj], Iterable[str]] | None = None
    ) -> None:
        """Watch *resource* of *api*, indexed by the values that *index_function* returns."""
        self._objects: dict[NamespacedName, Obj] = {}
        self._objects_by_index: dict[str, dict[NamespacedName, Obj]] = {}
        self._index_function = index_function
        self._handlers: list[EventHandler] = []
        for obj in api.list(resource):
            self._apply_event("ADDED", None, obj)
        api.subscribe(resource, self._apply_event)

    def add_event_handler(self, handler: EventHandler) -> None:
        """Call *handler* (type, old, new) after the cache has changed; *new* is the last state of a deleted object."""
        self._handlers.append(handler)

    def enqueue_all(self, enqueue: Callable[[NamespacedName], None]) -> None:
        """Call *enqueue* with the key of every object: now, and whenever it changes."""
        self.add_event_handler(lambda _event, _old, new: enqueue(get_object_key(new)))
        for obj in self.list_all():
            enqueue(get_object_key(obj))

    def enqueue_controllers(self, kind: str, enqueue: Callable[[NamespacedName], None]) -> None:
        """Call *enqueue* with the key of the controller of every object that changes, if it is of *kind*."""

        def handle(_event: str, _old: Obj | None, new: Obj) -> None:
            owner = find_controller_reference(new)
            if owner is not None and owner["kind"] == kind:
                enqueue((new["metadata"]["namespace"], owner["name"]))

        self.add_event_handler(handle)

    def get(self, name: str, namespace: str = "") -> Obj | None:
        """Return one object; None if it does not exist."""
        return self._objects.get((namespace, name))

    def list_all(self) -> list[Obj]:
        """Return all objects."""
        return [self._objects[key] for key in sorted(self._objects)]

    def list_by_index(self, index_value: str) -> list[Obj]:
        """Return the objects with the index value *index_value*."""
        objects_by_key = self._objects_by_index.get(index_value) or {}
        return [objects_by_key[key] for key in sorted(objects_by_key)]

    def _apply_event(self, event: str, old: Obj | None, new: Obj | None) -> None:
        obj: Obj = new or old or {}
        key = get_object_key(obj)
        previous = self._objects.pop(key, None)
        if previous is not None:
            self._update_index(key, previous, None)
        if event != "DELETED":
            self._objects[key] = obj
            self._update_index(key, obj, obj)
        for handler in self._handlers:
            handler(event, previous if previous is not None else old, obj)

    def _update_index(self, key: NamespacedName, obj: Obj, stored: Obj | None) -> None:
        for index_value in self._index_function(obj) if self._index_function is not None else ():
            members = self._objects_by_index.setdefault(index_value, {})
            if stored is None:
                members.pop(key, None)
                if not members:
                    del self._objects_by_index[index_value]
            else:
                members[key] = stored
