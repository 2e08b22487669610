"""Rules for the deletion of objects: grace periods of pods, finalizers of all objects.

A deletion that cannot complete at once is a write: it sets `deletionTimestamp` (the end of the grace period) and
`deletionGracePeriodSeconds`. The object is removed with its last finalizer once no grace is left; only a second
deletion, as the kubelet sends it, shortens the grace period.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from shared.crds.definitions import Object
from shared.errors import Conflict
from sim.cluster.api_server.api_resources import PODS, ApiResource
from sim.cluster.api_server.metadata import format_time

DEFAULT_GRACE_SECONDS: Final = 30
TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})

_PROPAGATION_FINALIZERS: Final = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def check_preconditions(resource: ApiResource, obj: Object, uid: str, resource_version: str) -> None:
    """Reject a deletion that is meant for another object; empty preconditions hold.

    Raises:
        Conflict: a precondition does not hold.
    """
    for field, required_value in (("uid", uid), ("resourceVersion", resource_version)):
        actual_value = obj["metadata"][field]
        if required_value and required_value != actual_value:
            name = obj["metadata"]["name"]
            raise Conflict(f'{resource.name} "{name}": the precondition {field} {required_value} is not {actual_value}')


def begin_deletion(
    resource: ApiResource, obj: Object, now: datetime, grace_seconds: int | None, propagation: str
) -> Object | None:
    """Return *obj* after a deletion at *now*; None if it is removed at once.

    If nothing changes, the same *obj* is returned.
    """
    metadata = _with_propagation_finalizer(obj["metadata"], propagation)
    seconds = _compute_grace_seconds(resource, obj, grace_seconds)
    if "deletionTimestamp" in metadata:
        metadata = _shorten_grace(metadata, grace_seconds)
    elif seconds or metadata.get("finalizers"):
        deletion_time = format_time(now + timedelta(seconds=seconds))
        metadata = {**metadata, "deletionTimestamp": deletion_time, "deletionGracePeriodSeconds": seconds}
        if "generation" in metadata:
            metadata["generation"] += 1
    if not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds"):
        return None
    return obj if metadata == obj["metadata"] else {**obj, "metadata": metadata}


def begin_namespace_deletion(namespace: Object, now: datetime) -> Object:
    """Return *namespace* after its deletion.

    It is removed when a controller removes the last of `spec.finalizers`.
    """
    if "deletionTimestamp" in namespace["metadata"]:
        return namespace
    metadata = {**namespace["metadata"], "deletionTimestamp": format_time(now)}
    return {**namespace, "metadata": metadata, "status": {**namespace["status"], "phase": "Terminating"}}


def is_last_finalizer_removed(old: Object, new: Object) -> bool:
    """Return whether the update removes the last finalizer of an object whose grace period is over."""
    old_metadata = old["metadata"]
    has_grace = bool(old_metadata.get("deletionGracePeriodSeconds"))
    return "deletionTimestamp" in old_metadata and not has_grace and not new["metadata"].get("finalizers")


def _compute_grace_seconds(resource: ApiResource, obj: Object, grace_seconds: int | None) -> int:
    if resource.name != PODS or not obj["spec"].get("nodeName"):
        return 0
    if obj.get("status", {}).get("phase") in TERMINAL_PHASES:
        return 0
    seconds = (
        obj["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
        if grace_seconds is None
        else grace_seconds
    )
    return 1 if seconds < 0 else int(seconds)


def _shorten_grace(metadata: Object, grace_seconds: int | None) -> Object:
    """Move the end to *grace_seconds* after the first deletion; a longer one or None changes nothing."""
    old_grace = metadata.get("deletionGracePeriodSeconds", 0)
    if grace_seconds is None or grace_seconds >= old_grace:
        return metadata
    end = datetime.strptime(metadata["deletionTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    end -= timedelta(seconds=old_grace - grace_seconds)
    return {**metadata, "deletionTimestamp": format_time(end), "deletionGracePeriodSeconds": grace_seconds}


def _with_propagation_finalizer(metadata: Object, propagation: str) -> Object:
    """Return *metadata* with the finalizer of *propagation* for the garbage collector.

    Without other such finalizers.
    """
    propagation_finalizer = _PROPAGATION_FINALIZERS.get(propagation)
    old_finalizers = metadata.get("finalizers") or []
    new_finalizers = [
        finalizer
        for finalizer in old_finalizers
        if finalizer == propagation_finalizer or finalizer not in _PROPAGATION_FINALIZERS.values()
    ]
    if propagation_finalizer and propagation_finalizer not in new_finalizers:
        new_finalizers.append(propagation_finalizer)
    if new_finalizers == old_finalizers:
        return metadata
    other_fields = {key: value for key, value in metadata.items() if key != "finalizers"}
    return {**other_fields, "finalizers": new_finalizers} if new_finalizers else other_fields
