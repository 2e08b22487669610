"""A cluster as it is now, and what it would be with manifests applied to it."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from cli.files import InputError
from cli.progress import progress
from cli.remedies import way_in
from shared.errors import Fault, Forbidden
from shared.model.cluster import Cluster
from shared.model.objects import Condition, Problem, condition
from shared.ports import Kube
from shared.snapshot.kinds import LISTINGS, Listing, order
from shared.snapshot.optional import OPTIONAL
from shared.snapshot.watching import Watching

_DEFINITION: Final = "CustomResourceDefinition"
_NEEDED: Final = frozenset(("nodes", "pods"))
"""Without these there is nothing to plan."""
UNDEFINED: Final = " is not installed in "
"""Between a kind's definition and the cluster that does not have it."""
_REQUEST: Final = "planned as if there were none: ask for the right to list them"


def live_cluster(
    kube: Kube, now: datetime, where: str, wanted: Iterable[Listing] = LISTINGS
) -> tuple[Cluster, tuple[str, ...]]:
    """List what is *wanted*; answer it, and notes on kinds that this cluster does not know.

    Raises:
        InputError: nodes or pods cannot be listed, or the cluster does not answer.
    """
    problems: list[Problem] = []
    parts: dict[str, Any] = {}
    watching = Watching(kube, None, now)
    with progress(f"listing {where}"):
        for listing in wanted:
            parts |= _listed(watching, listing, where, problems)
    notes = tuple(f"{one.name}{UNDEFINED}{where}" for one in problems if one.kind == _DEFINITION)
    kept = sorted({one for one in problems if one.kind != _DEFINITION})
    return Cluster(taken_at=now, problems=tuple(kept), **parts), notes


def _listed(watching: Watching, listing: Listing, where: str, problems: list[Problem]) -> Mapping[str, Any]:
    try:
        return watching.lists([listing], problems)
    except Forbidden as fault:
        if listing.field in _NEEDED:
            raise InputError(f"{where}: {fault}: nothing can be planned without {listing.plural}") from None
        problems.append(Problem(kind=listing.kind, name="*", message=f"{fault}: {_REQUEST}"))
        return {listing.field: ()}
    except Fault as fault:
        raise InputError(f"{where}: {fault}: {way_in(fault)}") from None


def joined(live: Cluster, applied: Cluster) -> Cluster:
    """Answer *live* with the objects of *applied* in it; where both have one of a name, *applied* counts."""
    parts: dict[str, Any] = {}
    for listing in (*LISTINGS, *OPTIONAL):
        objects = {order(one): one for one in getattr(live, listing.field)}
        objects |= {order(one): one for one in getattr(applied, listing.field)}
        parts[listing.field] = tuple(objects[key] for key in sorted(objects))
    return replace(live, problems=tuple(sorted({*live.problems, *applied.problems})), **parts)


def all_waiting(live: Cluster) -> Cluster:
    """Answer *live* as if kube-scheduler had given up on each pod without a node that it has not looked at yet."""
    gave_up = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    pods = (
        pod
        if pod.node_name or condition(pod.conditions, "PodScheduled") is not None
        else replace(pod, conditions=(*pod.conditions, gave_up))
        for pod in live.pods
    )
    return replace(live, pods=tuple(pods))


def running_labels(live: Cluster) -> dict[str, list[Mapping[str, str]]]:
    """Answer the labels of the pods that run or will run, by namespace."""
    found: dict[str, list[Mapping[str, str]]] = {}
    for pod in live.pods:
        if pod.is_active():
            found.setdefault(pod.meta.namespace, []).append(dict(pod.meta.labels))
    return found


def default_storage_class(live: Cluster) -> str:
    """Answer the name of the default StorageClass, "" if there is none."""
    return min((one.meta.name for one in live.storage_classes if one.is_default), default="")
