"""How objects end: grace for pods, finalizers for all.

A deletion that cannot happen at once is a write: it sets `deletionTimestamp` (when the grace is over) and
`deletionGracePeriodSeconds`. The object goes with the last finalizer once no grace is left; only a second deletion,
as the kubelet sends it, shortens the grace.
"""

from datetime import UTC, datetime, timedelta
from typing import Final

from shared.errors import Conflict
from sim.cluster.api_kinds import PODS, Object, Resource
from sim.cluster.api_meta import instant

DEFAULT_GRACE_SECONDS: Final = 30
TERMINAL_PHASES: Final = frozenset({"Succeeded", "Failed"})

_PROPAGATION_FINALIZERS: Final = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}


def check_preconditions(resource: Resource, obj: Object, uid: str, resource_version: str) -> None:
    """Refuse a deletion that is meant for another object; empty preconditions hold.

    Raises:
        Conflict: it is.
    """
    for field, wanted in (("uid", uid), ("resourceVersion", resource_version)):
        found = obj["metadata"][field]
        if wanted and wanted != found:
            name = obj["metadata"]["name"]
            raise Conflict(f'{resource.name} "{name}": the precondition {field} {wanted} is not {found}')


def doomed(resource: Resource, obj: Object, now: datetime, grace: int | None, propagation: str) -> Object | None:
    """Answer *obj* as a deletion at *now* leaves it; None if it goes at once. The same *obj*: nothing changes."""
    metadata = _with_finalizers(obj["metadata"], propagation)
    seconds = _grace_seconds(resource, obj, grace)
    if "deletionTimestamp" in metadata:
        metadata = _shortened(metadata, grace)
    elif seconds or metadata.get("finalizers"):
        when = instant(now + timedelta(seconds=seconds))
        metadata = {**metadata, "deletionTimestamp": when, "deletionGracePeriodSeconds": seconds}
        if "generation" in metadata:
            metadata["generation"] += 1
    if not metadata.get("finalizers") and not metadata.get("deletionGracePeriodSeconds"):
        return None
    return obj if metadata == obj["metadata"] else {**obj, "metadata": metadata}


def terminating_namespace(namespace: Object, now: datetime) -> Object:
    """Answer *namespace* as its deletion leaves it; it goes when a controller takes the last of `spec.finalizers`."""
    if "deletionTimestamp" in namespace["metadata"]:
        return namespace
    metadata = {**namespace["metadata"], "deletionTimestamp": instant(now)}
    return {**namespace, "metadata": metadata, "status": {**namespace["status"], "phase": "Terminating"}}


def ends_with_update(old: Object, new: Object) -> bool:
    """Answer whether the update from *old* to *new* takes the last finalizer of an object whose grace is over."""
    before = old["metadata"]
    waiting = bool(before.get("deletionGracePeriodSeconds"))
    return "deletionTimestamp" in before and not waiting and not new["metadata"].get("finalizers")


def _grace_seconds(resource: Resource, obj: Object, grace: int | None) -> int:
    if resource.name != PODS or not obj["spec"].get("nodeName"):
        return 0
    if obj.get("status", {}).get("phase") in TERMINAL_PHASES:
        return 0
    seconds = obj["spec"].get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS) if grace is None else grace
    return 1 if seconds < 0 else int(seconds)


def _shortened(metadata: Object, grace: int | None) -> Object:
    """Bring the end forward to *grace* seconds after the first deletion; a longer or unstated grace changes nothing."""
    before = metadata.get("deletionGracePeriodSeconds", 0)
    if grace is None or grace >= before:
        return metadata
    end = datetime.strptime(metadata["deletionTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    end -= timedelta(seconds=before - grace)
    return {**metadata, "deletionTimestamp": instant(end), "deletionGracePeriodSeconds": grace}


def _with_finalizers(metadata: Object, propagation: str) -> Object:
    """Answer *metadata* with the finalizer that *propagation* asks the garbage collector by, and without the others."""
    wanted = _PROPAGATION_FINALIZERS.get(propagation)
    present = metadata.get("finalizers") or []
    kept = [each for each in present if each == wanted or each not in _PROPAGATION_FINALIZERS.values()]
    if wanted and wanted not in kept:
        kept.append(wanted)
    if kept == present:
        return metadata
    rest = {key: value for key, value in metadata.items() if key != "finalizers"}
    return {**rest, "finalizers": kept} if kept else rest
