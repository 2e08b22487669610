"""A view of one resource that follows the API server, with an index."""

from collections.abc import Callable, Iterable
from typing import Any

from sim.cluster.api import ApiServer

Obj = dict[str, Any]
Key = tuple[str, str]
Listener = Callable[[str, Obj | None, Obj], None]


def key_of(obj: Obj) -> Key:
    """Answer (namespace, name) of *obj*."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def controller_of(obj: Obj) -> Obj | None:
    """Answer the owner reference of *obj* that says `controller`."""
    for owner in obj["metadata"].get("ownerReferences") or []:
        if owner.get("controller"):
            return dict(owner)
    return None


def by_controller(obj: Obj) -> Iterable[str]:
    """Index by the uid of the controlling owner."""
    owner = controller_of(obj)
    return () if owner is None else (owner["uid"],)


def by_namespace(obj: Obj) -> Iterable[str]:
    """Index by namespace."""
    return (obj["metadata"].get("namespace", ""),)


def by_node(obj: Obj) -> Iterable[str]:
    """Index pods by the node they are bound to, "" for none."""
    return (obj["spec"].get("nodeName") or "",)


class Informer:
    """The objects of one resource as last seen; every list is sorted by namespace, name."""

    def __init__(self, api: ApiServer, resource: str, index: Callable[[Obj], Iterable[str]] | None = None) -> None:
        """Follow *resource* of *api*, grouped by *index*."""
        self._objects: dict[Key, Obj] = {}
        self._groups: dict[str, dict[Key, Obj]] = {}
        self._index = index
        self._listeners: list[Listener] = []
        for obj in api.list(resource):
            self._take("ADDED", None, obj)
        api.subscribe(resource, self._take)

    def on_change(self, listener: Listener) -> None:
        """Tell *listener* (type, old, new) after the view has changed; *new* is the last state of a deleted object."""
        self._listeners.append(listener)

    def get(self, name: str, namespace: str = "") -> Obj | None:
        """Answer one object; None if it is not there."""
        return self._objects.get((namespace, name))

    def all(self) -> list[Obj]:
        """Answer all."""
        return [self._objects[key] for key in sorted(self._objects)]

    def of(self, group: str) -> list[Obj]:
        """Answer the objects of *group*."""
        found = self._groups.get(group) or {}
        return [found[key] for key in sorted(found)]

    def _take(self, event: str, old: Obj | None, new: Obj | None) -> None:
        obj: Obj = new or old or {}
        key = key_of(obj)
        before = self._objects.pop(key, None)
        if before is not None:
            self._regroup(key, before, None)
        if event != "DELETED":
            self._objects[key] = obj
            self._regroup(key, obj, obj)
        for listener in self._listeners:
            listener(event, before if before is not None else old, obj)

    def _regroup(self, key: Key, obj: Obj, stored: Obj | None) -> None:
        for group in self._index(obj) if self._index is not None else ():
            members = self._groups.setdefault(group, {})
            if stored is None:
                members.pop(key, None)
                if not members:
                    del self._groups[group]
            else:
                members[key] = stored
