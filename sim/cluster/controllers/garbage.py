"""Owners and what they own: when the last owner is gone, or wants to go after what it owns, dependents are deleted."""

from typing import Final

from shared.errors import Gone
from sim.clock import Clock
from sim.cluster.api import ApiServer
from sim.cluster.api_kinds import BUILT_IN, DEFINITIONS
from sim.cluster.controllers.informer import Informer, Obj, key_of
from sim.cluster.controllers.queue import Queue

_FOREGROUND: Final = "foregroundDeletion"
_ORPHAN: Final = "orphan"
_UNOWNED: Final = frozenset({"events", DEFINITIONS})

Place = tuple[str, str, str]


class GarbageCollector:
    """The garbage collector, over everything that is served; owners may be cluster-scoped."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        """Follow *api*, and every definition that is added to it."""
        self._api = api
        self._alive: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}
        self._owners: dict[Place, tuple[str, ...]] = {}
        self._followed: set[str] = set()
        self._queue: Queue[Place] = Queue(clock, self._sync, "garbage collector")
        definitions = Informer(api, DEFINITIONS)
        for resource in BUILT_IN:
            self._follow(resource.name)
        for definition in definitions.all():
            self._follow(definition["metadata"]["name"])
        definitions.on_change(lambda _event, _old, new: self._follow(new["metadata"]["name"]))

    def _follow(self, resource: str) -> None:
        if resource in self._followed or resource in _UNOWNED:
            return
        self._followed.add(resource)
        for obj in self._api.list(resource):
            self._take(resource, "ADDED", obj)
        self._api.subscribe(resource, lambda event, old, new: self._take(resource, event, new or old or {}))

    def _take(self, resource: str, event: str, obj: Obj) -> None:
        place, uid = (resource, *key_of(obj)), obj["metadata"]["uid"]
        gone = event == "DELETED"
        owners = () if gone else tuple(o["uid"] for o in obj["metadata"].get("ownerReferences") or [])
        before = self._owners.get(place, ())
        if owners != before:
            self._reown(place, before, owners)
        if gone:
            self._alive.pop(uid, None)
            for dependent in self._dependents.get(uid, {}):
                self._queue.add(dependent)
            for owner in before:
                self._touch(owner)
            return
        self._alive[uid] = place
        if owners != before or _wants_more(obj):
            self._queue.add(place)

    def _reown(self, place: Place, before: tuple[str, ...], owners: tuple[str, ...]) -> None:
        for uid in before:
            members = self._dependents.get(uid, {})
            members.pop(place, None)
            if not members:
                self._dependents.pop(uid, None)
        for uid in owners:
            self._dependents.setdefault(uid, {})[place] = None
        if owners:
            self._owners[place] = owners
        else:
            self._owners.pop(place, None)

    def _touch(self, uid: str) -> None:
        """Look again at an owner that may wait for the last of its dependents."""
        place = self._alive.get(uid)
        if place is not None and uid not in self._dependents:
            self._queue.add(place)

    def _sync(self, place: Place) -> None:
        resource, namespace, name = place
        obj = self._find(place)
        if obj is None:
            return
        metadata = obj["metadata"]
        if metadata.get("deletionTimestamp"):
            self._finish(place, obj)
        elif place in self._owners and not any(uid in self._alive for uid in self._owners[place]):
            self._api.delete(resource, name, namespace, uid=metadata["uid"])

    def _find(self, place: Place) -> Obj | None:
        resource, namespace, name = place
        try:
            return self._api.get(resource, name, namespace)
        except Gone:
            return None

    def _finish(self, place: Place, obj: Obj) -> None:
        """Do what the propagation finalizers of *obj*, which is being deleted, ask for; then take them off."""
        finalizers = obj["metadata"].get("finalizers") or []
        dependents = sorted(self._dependents.get(obj["metadata"]["uid"], {}))
        if _ORPHAN in finalizers:
            for dependent in dependents:
                self._disown(dependent, obj["metadata"]["uid"])
        elif _FOREGROUND in finalizers and dependents:
            for dependent in dependents:
                self._delete_foreground(dependent)
            return
        left = [each for each in finalizers if each not in {_ORPHAN, _FOREGROUND}]
        if left != finalizers:
            resource, namespace, name = place
            self._api.patch(resource, name, {"metadata": {"finalizers": left}}, namespace)

    def _delete_foreground(self, dependent: Place) -> None:
        resource, namespace, name = dependent
        obj = self._find(dependent)
        if obj is not None and not obj["metadata"].get("deletionTimestamp"):
            self._api.delete(resource, name, namespace, propagation="Foreground")

    def _disown(self, dependent: Place, uid: str) -> None:
        resource, namespace, name = dependent
        obj = self._find(dependent)
        if obj is not None:
            left = [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] != uid]
            self._api.patch(resource, name, {"metadata": {"ownerReferences": left}}, namespace)


def _wants_more(obj: Obj) -> bool:
    metadata = obj["metadata"]
    wanted = {_FOREGROUND, _ORPHAN}
    return bool(metadata.get("deletionTimestamp")) and not wanted.isdisjoint(metadata.get("finalizers") or ())
