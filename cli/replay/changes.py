"""Changes to a recorded cluster before a replay: objects that are applied or removed."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, TypeAlias

import msgspec
from msgspec.structs import replace

from cli.cluster.live_cluster import group_running_labels, merge_clusters
from cli.inputs.documents import iterate_objects, read_documents
from cli.inputs.files import ErrorReporter
from cli.inputs.manifests import parse_manifests
from cli.replay.selectors import SELECTOR_FIELDS, RecordedSelections, resolve_selectors, with_node_class_offerings
from cli.terminal.errors import InputError
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import join_names
from shared.model.core.metadata import ObjectMeta, build_pairs
from shared.model.karpenter.node_class import EC2NodeClass
from shared.model.karpenter.node_pool import NodePool
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS, get_sort_key
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents

_STATUS_FIELDS: Final = (
    *(field.status_attribute for field in SELECTOR_FIELDS),
    "resolved_profile",
    "resolved_placement_group",
    "conditions",
)
"""Fields of an EC2NodeClass that the catalog function writes into its status."""
_ALL_KINDS: Final = (*RESOURCE_KINDS, *OPTIONAL_KINDS)
_MAX_LISTED_NAMES: Final = 5
ReadLists: TypeAlias = Collection[str] | None
"""The lists of a ClusterSnapshot that a function reads; None: all."""


class ChangedCluster(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster snapshot with changes applied."""

    cluster: ClusterSnapshot
    changes: tuple[str, ...] = ()
    """The changed objects, as ``NodePool default``, each with how it changed."""
    notes: tuple[str, ...] = ()
    """Notes for the reader of the replay."""
    changed_node_classes: tuple[str, ...] = ()
    """Names of the EC2NodeClasses that are new or changed."""


def apply_changes(
    cluster: ClusterSnapshot,
    selections: RecordedSelections,
    files: Sequence[str],
    removed_objects: Iterable[str],
    tell: ErrorReporter,
    reads: ReadLists = None,
) -> ChangedCluster:
    """Return *cluster* with the objects in *files* applied and the objects in *removed_objects* removed.

    Problems in files are passed to *tell*. An applied object keeps its metadata and its status; the selectors of an
    EC2NodeClass are resolved again as far as *selections* allow. If *reads* is given, objects of kinds that the cycle
    does not read change nothing.

    Raises:
        InputError: *removed_objects* names an object that does not exist.
    """
    changes: list[str] = []
    for object_reference in removed_objects:
        cluster, name = _without_object(cluster, object_reference)
        changes.append(f"without {name}")
    if not files:
        return ChangedCluster(cluster=cluster, changes=tuple(changes))
    applied_manifests = parse_manifests(
        iterate_objects(read_documents(files, tell), tell), tell, group_running_labels(cluster), are_features_on=True
    )
    applied = build_snapshot_from_documents(applied_manifests.objects, cluster.taken_at)
    for problem in applied.problems:
        location = applied_manifests.locations.get((problem.kind, problem.name), "")
        tell(f"{f'{location}: ' if location else ''}{problem.kind} {problem.name}: {problem.message}")
    notes = list(applied_manifests.notes)
    node_pools = tuple(merge_node_pool(node_pool, cluster) for node_pool in applied.node_pools)
    applied = replace(applied, problems=(), node_pools=node_pools)
    if reads is not None:
        applied = _drop_unread_kinds(applied, reads, notes)
    cluster, applied, changed_node_classes = _reselect_node_classes(cluster, applied, selections, notes)
    changes += _describe_changes(cluster, applied)
    return ChangedCluster(
        cluster=merge_clusters(cluster, applied),
        changes=tuple(changes),
        notes=tuple(notes),
        changed_node_classes=changed_node_classes,
    )


def _drop_unread_kinds(applied: ClusterSnapshot, reads: Collection[str], notes: list[str]) -> ClusterSnapshot:
    """Return *applied* without the kinds that the cycle did not read, and add a note for each such kind."""
    for listing in _ALL_KINDS:
        if listing.field not in reads and (objects := getattr(applied, listing.field)):
            names = ", ".join(map(_format_name, objects))
            notes.append(f"{listing.kind} {names}: no effect, because the function does not read this kind")
            applied = replace(applied, **{listing.field: ()})
    return applied


def _reselect_node_classes(
    cluster: ClusterSnapshot, applied: ClusterSnapshot, selections: RecordedSelections, notes: list[str]
) -> tuple[ClusterSnapshot, ClusterSnapshot, tuple[str, ...]]:
    """Return both snapshots with EC2NodeClass selectors resolved again, and the names of the classes that changed."""
    classes: list[EC2NodeClass] = []
    changed_names: list[str] = []
    previous_classes = {node_class.name: node_class for node_class in cluster.node_classes}
    for node_class in applied.node_classes:
        previous_class = previous_classes.get(node_class.name)
        reselected_class, class_notes = resolve_selectors(
            _with_existing_status(node_class, previous_class), previous_class, selections
        )
        classes.append(reselected_class)
        notes += class_notes
        if reselected_class != previous_class:
            changed_names.append(node_class.name)
        if cluster.catalog is not None:
            catalog, catalog_notes = with_node_class_offerings(cluster.catalog, reselected_class, previous_class)
            cluster = replace(cluster, catalog=catalog)
            notes += catalog_notes
    return cluster, replace(applied, node_classes=tuple(classes)), tuple(changed_names)


def _without_object(cluster: ClusterSnapshot, text: str) -> tuple[ClusterSnapshot, str]:
    kind, _, name = text.partition("/")
    listing = next((listing for listing in _ALL_KINDS if kind.lower() in (listing.kind.lower(), listing.plural)), None)
    if listing is None:
        kinds = ", ".join(sorted(listing.kind for listing in RESOURCE_KINDS))
        raise InputError(f"--without {text}: write KIND/NAME, for example nodepool/default; kinds: {kinds}")
    objects = getattr(cluster, listing.field)
    remaining = tuple(
        resource for resource in objects if name not in (_format_name(resource), get_sort_key(resource)[1])
    )
    if len(remaining) == len(objects):
        existing_names = join_names(map(_format_name, objects), _MAX_LISTED_NAMES)
        alternatives = f"existing: {existing_names}" if objects else f"the cluster had no {listing.kind}"
        raise InputError(f"--without {text}: not found; {alternatives}")
    return replace(cluster, **{listing.field: remaining}), f"{listing.kind} {name}"


def _format_name(resource: Any) -> str:  # noqa: ANN401 - of any kind
    return "/".join(filter(None, get_sort_key(resource)))


def merge_node_pool(node_pool: NodePool, cluster: ClusterSnapshot) -> NodePool:
    """Return *node_pool* with the metadata and status of the NodePool of the same name in *cluster*."""
    existing_pool = next((pool for pool in cluster.node_pools if pool.name == node_pool.name), None)
    if existing_pool is None:
        return node_pool
    meta = _merge_metadata(node_pool.meta, existing_pool.meta)
    return replace(node_pool, meta=meta, usage=existing_pool.usage, conditions=existing_pool.conditions)


def _with_existing_status(node_class: EC2NodeClass, existing_class: EC2NodeClass | None) -> EC2NodeClass:
    """Return *node_class* with the metadata and status of the existing class of the same name."""
    if existing_class is None:
        return node_class
    status = {name: getattr(existing_class, name) for name in _STATUS_FIELDS}
    status["resolved_profile"] = node_class.instance_profile or existing_class.resolved_profile
    return replace(node_class, meta=_merge_metadata(node_class.meta, existing_class.meta), **status)


def _merge_metadata(new_meta: ObjectMeta, existing_meta: ObjectMeta) -> ObjectMeta:
    """Return the metadata of an existing object after a manifest was applied to it."""
    return replace(
        existing_meta,
        labels=build_pairs(dict(existing_meta.labels) | dict(new_meta.labels)),
        annotations=build_pairs(dict(existing_meta.annotations) | dict(new_meta.annotations)),
    )


def _describe_changes(cluster: ClusterSnapshot, applied: ClusterSnapshot) -> Iterable[str]:
    for listing in _ALL_KINDS:
        previous_objects = {_format_name(resource): resource for resource in getattr(cluster, listing.field)}
        for applied_object in getattr(applied, listing.field):
            name = _format_name(applied_object)
            change = "unchanged" if previous_objects.get(name) == applied_object else "changed"
            yield f"{listing.kind} {name} ({change if name in previous_objects else 'new'})"
