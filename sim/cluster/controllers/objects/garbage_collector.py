"""Garbage collection by owner references.

Dependents are deleted when their last owner is gone, or when an owner is deleted in the foreground.
"""

from typing import Final

from shared.errors import NotFound
from sim.cluster.api_server.api_resources import BUILT_IN_RESOURCES, CUSTOM_RESOURCE_DEFINITIONS
from sim.cluster.api_server.api_server import ApiServer
from sim.cluster.controller_runtime.informer import Informer, Obj, get_object_key
from sim.cluster.controller_runtime.work_queue import WorkQueue
from sim.time.virtual_clock import Clock

_FOREGROUND_FINALIZER: Final = "foregroundDeletion"
_ORPHAN_FINALIZER: Final = "orphan"
_IGNORED_RESOURCES: Final = frozenset({"events", CUSTOM_RESOURCE_DEFINITIONS})

ObjectRef = tuple[str, str, str]


class GarbageCollector:
    """The garbage collector, over all served resources; owners may be cluster-scoped."""

    def __init__(self, clock: Clock, api: ApiServer) -> None:
        """Watch all resources of *api*, and every CRD that is added to it."""
        self._api = api
        self._ref_by_uid: dict[str, ObjectRef] = {}
        self._dependents_by_owner: dict[str, dict[ObjectRef, None]] = {}
        self._owners_by_ref: dict[ObjectRef, tuple[str, ...]] = {}
        self._watched_resources: set[str] = set()
        self._queue: WorkQueue[ObjectRef] = WorkQueue(clock, self._sync, "garbage collector")
        definitions = Informer(api, CUSTOM_RESOURCE_DEFINITIONS)
        for resource in BUILT_IN_RESOURCES:
            self._watch_resource(resource.name)
        for definition in definitions.list_all():
            self._watch_resource(definition["metadata"]["name"])
        definitions.add_event_handler(lambda _event, _old, new: self._watch_resource(new["metadata"]["name"]))

    def _watch_resource(self, resource: str) -> None:
        if resource in self._watched_resources or resource in _IGNORED_RESOURCES:
            return
        self._watched_resources.add(resource)
        for obj in self._api.list(resource):
            self._handle_event(resource, "ADDED", obj)
        self._api.subscribe(resource, lambda event, old, new: self._handle_event(resource, event, new or old or {}))

    def _handle_event(self, resource: str, event: str, obj: Obj) -> None:
        ref, uid = (resource, *get_object_key(obj)), obj["metadata"]["uid"]
        is_deleted = event == "DELETED"
        owners = () if is_deleted else tuple(o["uid"] for o in obj["metadata"].get("ownerReferences") or [])
        previous_owners = self._owners_by_ref.get(ref, ())
        if owners != previous_owners:
            self._update_owners(ref, previous_owners, owners)
        if is_deleted:
            self._ref_by_uid.pop(uid, None)
            for dependent in self._dependents_by_owner.get(uid, {}):
                self._queue.add(dependent)
            for owner in previous_owners:
                self._enqueue_owner(owner)
            return
        self._ref_by_uid[uid] = ref
        if owners != previous_owners or _has_propagation_finalizer(obj):
            self._queue.add(ref)

    def _update_owners(self, ref: ObjectRef, previous_owners: tuple[str, ...], owners: tuple[str, ...]) -> None:
        for uid in previous_owners:
            dependents = self._dependents_by_owner.get(uid, {})
            dependents.pop(ref, None)
            if not dependents:
                self._dependents_by_owner.pop(uid, None)
        for uid in owners:
            self._dependents_by_owner.setdefault(uid, {})[ref] = None
        if owners:
            self._owners_by_ref[ref] = owners
        else:
            self._owners_by_ref.pop(ref, None)

    def _enqueue_owner(self, uid: str) -> None:
        """Enqueue an owner that may be waiting for the last of its dependents to be deleted."""
        ref = self._ref_by_uid.get(uid)
        if ref is not None and uid not in self._dependents_by_owner:
            self._queue.add(ref)

    def _sync(self, ref: ObjectRef) -> None:
        resource, namespace, name = ref
        obj = self._find_object(ref)
        if obj is None:
            return
        metadata = obj["metadata"]
        if metadata.get("deletionTimestamp"):
            self._process_deletion(ref, obj)
        elif ref in self._owners_by_ref and not any(uid in self._ref_by_uid for uid in self._owners_by_ref[ref]):
            self._api.delete(resource, name, namespace, uid=metadata["uid"])

    def _find_object(self, ref: ObjectRef) -> Obj | None:
        resource, namespace, name = ref
        try:
            return self._api.get(resource, name, namespace)
        except NotFound:
            return None

    def _process_deletion(self, ref: ObjectRef, obj: Obj) -> None:
        """Do what the propagation finalizers of *obj*, which is being deleted, require; then remove them."""
        finalizers = obj["metadata"].get("finalizers") or []
        dependents = sorted(self._dependents_by_owner.get(obj["metadata"]["uid"], {}))
        if _ORPHAN_FINALIZER in finalizers:
            for dependent in dependents:
                self._remove_owner_reference(dependent, obj["metadata"]["uid"])
        elif _FOREGROUND_FINALIZER in finalizers and dependents:
            for dependent in dependents:
                self._delete_foreground(dependent)
            return
        remaining_finalizers = [
            finalizer for finalizer in finalizers if finalizer not in {_ORPHAN_FINALIZER, _FOREGROUND_FINALIZER}
        ]
        if remaining_finalizers != finalizers:
            resource, namespace, name = ref
            self._api.patch(resource, name, {"metadata": {"finalizers": remaining_finalizers}}, namespace)

    def _delete_foreground(self, dependent: ObjectRef) -> None:
        resource, namespace, name = dependent
        obj = self._find_object(dependent)
        if obj is not None and not obj["metadata"].get("deletionTimestamp"):
            self._api.delete(resource, name, namespace, propagation="Foreground")

    def _remove_owner_reference(self, dependent: ObjectRef, uid: str) -> None:
        resource, namespace, name = dependent
        obj = self._find_object(dependent)
        if obj is not None:
            remaining_owners = [owner for owner in obj["metadata"]["ownerReferences"] if owner["uid"] != uid]
            self._api.patch(resource, name, {"metadata": {"ownerReferences": remaining_owners}}, namespace)


def _has_propagation_finalizer(obj: Obj) -> bool:
    metadata = obj["metadata"]
    propagation_finalizers = {_FOREGROUND_FINALIZER, _ORPHAN_FINALIZER}
    return bool(metadata.get("deletionTimestamp")) and not propagation_finalizers.isdisjoint(
        metadata.get("finalizers") or ()
    )
