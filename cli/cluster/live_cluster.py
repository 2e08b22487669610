"""The current state of a cluster, and its state with manifests applied."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from cli.cluster.fixes import suggest_connection_fix
from cli.terminal.errors import InputError
from cli.terminal.stderr import show_progress
from shared.errors import Fault, Forbidden
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Condition, Problem, find_condition
from shared.ports.kubernetes import Kube
from shared.state.schedules import apply_schedules
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.reflector import Reflector
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS, ResourceKind, get_sort_key
from shared.wire.paths import CRD_KIND

_REQUIRED_FIELDS: Final = frozenset(("nodes", "pods"))
"""Without these kinds, nothing can be planned."""
NOT_INSTALLED_TEXT: Final = " is not installed in "
"""The text between the name of a missing CRD and the name of the cluster."""
_MISSING_PERMISSION_TEXT: Final = "Joiner plans without them: you need the permission to list them"


def read_live_cluster(
    kube: Kube, now: datetime, cluster_name: str, listings: Iterable[ResourceKind] = RESOURCE_KINDS
) -> tuple[ClusterSnapshot, tuple[str, ...]]:
    """List the kinds in *listings*; return the cluster, and notes about CRDs that are not installed.

    Raises:
        InputError: nodes or pods cannot be listed, or the cluster does not respond.
    """
    problems: list[Problem] = []
    fields: dict[str, Any] = {}
    watching = Reflector(kube, None, now)
    with show_progress(f"listing {cluster_name}"):
        for listing in listings:
            fields |= _list_kind(watching, listing, cluster_name, problems)
    notes = tuple(
        f"{problem.name}{NOT_INSTALLED_TEXT}{cluster_name}" for problem in problems if problem.kind == CRD_KIND
    )
    other_problems = sorted({problem for problem in problems if problem.kind != CRD_KIND})
    return apply_schedules(ClusterSnapshot(taken_at=now, problems=tuple(other_problems), **fields)), notes


def _list_kind(
    watching: Reflector, listing: ResourceKind, cluster_name: str, problems: list[Problem]
) -> Mapping[str, Any]:
    try:
        return watching.read_lists([listing], problems)
    except Forbidden as fault:
        if listing.field in _REQUIRED_FIELDS:
            raise InputError(f"{cluster_name}: {fault}: cannot plan without {listing.plural}") from None
        problems.append(Problem(kind=listing.kind, name="*", message=f"{fault}: {_MISSING_PERMISSION_TEXT}"))
        return {listing.field: ()}
    except Fault as fault:
        raise InputError(f"{cluster_name}: {fault}: {suggest_connection_fix(fault)}") from None


def merge_clusters(live: ClusterSnapshot, applied: ClusterSnapshot) -> ClusterSnapshot:
    """Return *live* with the objects of *applied*; an object of *applied* replaces one of the same name."""
    fields: dict[str, Any] = {}
    for listing in (*RESOURCE_KINDS, *OPTIONAL_KINDS):
        objects = {get_sort_key(live_object): live_object for live_object in getattr(live, listing.field)}
        objects |= {get_sort_key(applied_object): applied_object for applied_object in getattr(applied, listing.field)}
        fields[listing.field] = tuple(objects[key] for key in sorted(objects))
    return replace(live, problems=tuple(sorted({*live.problems, *applied.problems})), **fields)


def mark_pods_unschedulable(live: ClusterSnapshot) -> ClusterSnapshot:
    """Return *live* with each pod that kube-scheduler has not tried yet marked as unschedulable."""
    unschedulable_condition = Condition(type="PodScheduled", status="False", reason="Unschedulable")
    pods = (
        pod
        if pod.node_name or find_condition(pod.conditions, "PodScheduled") is not None
        else replace(pod, conditions=(*pod.conditions, unschedulable_condition))
        for pod in live.pods
    )
    return replace(live, pods=tuple(pods))


def group_running_labels(live: ClusterSnapshot) -> dict[str, list[Mapping[str, str]]]:
    """Return the labels of the pods that run or will run, by namespace."""
    labels_by_namespace: dict[str, list[Mapping[str, str]]] = {}
    for pod in live.pods:
        if pod.is_active():
            labels_by_namespace.setdefault(pod.meta.namespace, []).append(dict(pod.meta.labels))
    return labels_by_namespace


def find_default_storage_class(live: ClusterSnapshot) -> str:
    """Return the name of the default StorageClass; "" if there is none."""
    return min(
        (storage_class.meta.name for storage_class in live.storage_classes if storage_class.is_default), default=""
    )
