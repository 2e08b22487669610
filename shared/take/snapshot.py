"""Reading of a snapshot: the requested lists and other data, as one frozen ClusterSnapshot.

If a Kubernetes list cannot be read, the snapshot fails, because a partial list is never used. If EC2, EKS or the
catalog cannot be read, the field is None and a Problem reports the error.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeVar

import msgspec

from shared.errors import Fault, NotFound
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cloud_provider.zonal_shift import ZonalShifts
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.ports.aws import ZonalShiftService
from shared.ports.storage import Bucket
from shared.ports.world import World
from shared.state.schedules import apply_schedules
from shared.state.zones.zonal_shifts import close_shifted_zones
from shared.store.catalog import CATALOG_PREFIX, iterate_newest_catalog_keys
from shared.store.catalog_format import decode_catalog
from shared.store.launch_groups import read_launch_groups
from shared.store.limits.cluster_group import read_group_usage
from shared.store.offerings.offering_history import read_offering_history
from shared.store.offerings.unavailable_offerings import read_unavailable_offerings
from shared.store.zonal_shifts import read_zonal_shifts
from shared.take.ended_instances import read_ended_instances
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.reflector import Reflector
from shared.take.kubernetes.resource_kinds import ALL_LIST_FIELDS, PENDING_PODS, RESOURCE_KINDS
from shared.take.kubernetes.shared_cache import StoredListReader
from shared.take.other_annotations import ANNOTATED_FIELDS, strip_objects

PartT = TypeVar("PartT")


class SnapshotRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The parts to read; the other fields of the ClusterSnapshot stay empty."""

    lists: tuple[str, ...] = ALL_LIST_FIELDS
    """Kubernetes lists, as names of ClusterSnapshot fields."""
    instances: bool = False
    statuses: bool = False
    catalog: bool = False
    facts: bool = False
    unavailable: bool = False
    launch_groups: bool = False
    offering_history: bool = False
    """Read only if the setting spot-history is on."""
    zonal_shifts: bool = False
    """Read only if the setting zonal-shift is not off; also read with *unavailable*."""
    group_usage: bool = False
    """Read only if the cluster has a group."""


PLANNING_REQUEST: Final = SnapshotRequest(
    catalog=True, facts=True, unavailable=True, launch_groups=True, offering_history=True, group_usage=True
)
"""For decisions about nodes: everything except the EC2 view of the instances."""
FULL_REQUEST: Final = msgspec.structs.replace(PLANNING_REQUEST, instances=True)
LAUNCH_REQUEST: Final = SnapshotRequest(lists=("node_claims",), unavailable=True, launch_groups=True)
"""The parts that a launch changes."""
TRIGGER_LISTS: Final = ("nodes", "node_claims", "node_classes")
"""The lists that can require a plan without a pending pod."""

NO_CATALOG_PROBLEM: Final = Problem(
    kind="Catalogue",
    name=CATALOG_PREFIX,
    message="the catalog is missing or cannot be read; to fix: invoke the function catalog",
)


def take_snapshot(world: World, request: SnapshotRequest = FULL_REQUEST) -> ClusterSnapshot:
    """Read the parts in *request*.

    EC2 is read first, so that every instance in the result already had its NodeClaim. Nodes are read before pods. The
    memory of *world* makes the reads cheaper, but does not change their results.

    Raises:
        Fault: a Kubernetes list or a kind of table rows could not be read.
    """
    now = world.clock()
    problems: list[Problem] = []
    with world.trace("take"):
        parts = _read_parts(world, request, now, problems)
    cluster = ClusterSnapshot(
        taken_at=now, problems=tuple(sorted(set(problems))), has_gangs=world.settings.gangs == "on", **parts
    )
    return close_shifted_zones(apply_schedules(cluster))


def take_trigger_snapshot(world: World, trigger_lists: tuple[str, ...] = TRIGGER_LISTS) -> ClusterSnapshot:
    """Read the pods without a node; if none of them is provisionable, read *trigger_lists* as well.

    Raises:
        Fault: see `take_snapshot`.
    """
    now = world.clock()
    problems: list[Problem] = []
    with world.trace("take"):
        parts = _read_trigger_parts(world, trigger_lists, now, problems)
    return apply_schedules(ClusterSnapshot(taken_at=now, problems=tuple(sorted(set(problems))), **parts))


def _read_trigger_parts(
    world: World, trigger_lists: tuple[str, ...], now: datetime, problems: list[Problem]
) -> dict[str, Any]:
    reflector = Reflector(world.kube, world.memory, now, _build_stored_list_reader(world, now))
    pods = reflector.list_until(PENDING_PODS, is_provisionable, problems)
    parts: dict[str, Any] = {"pods": pods}
    if not any(is_provisionable(pod) for pod in pods):
        parts |= reflector.read_lists(
            [
                resource_kind
                for resource_kind in (*OPTIONAL_KINDS, *RESOURCE_KINDS)
                if resource_kind.field in trigger_lists
            ],
            problems,
        )
    return parts


def refresh_snapshot(
    world: World, cluster: ClusterSnapshot, request: SnapshotRequest = LAUNCH_REQUEST
) -> ClusterSnapshot:
    """Return *cluster* with the parts in *request* read again; other parts and their problems stay.

    Raises:
        Fault: see `take_snapshot`.
    """
    now = world.clock()
    problems = list(cluster.problems)
    with world.trace("take"):
        parts = _read_parts(world, request, now, problems)
    refreshed_cluster = msgspec.structs.replace(cluster, taken_at=now, problems=tuple(sorted(set(problems))), **parts)
    return close_shifted_zones(apply_schedules(refreshed_cluster))


def _read_parts(world: World, request: SnapshotRequest, now: datetime, problems: list[Problem]) -> dict[str, Any]:
    parts = _read_aws_parts(world, request, problems)
    reflector = Reflector(world.kube, world.memory, now, _build_stored_list_reader(world, now))
    parts |= reflector.read_lists(
        [resource_kind for resource_kind in (*OPTIONAL_KINDS, *RESOURCE_KINDS) if resource_kind.field in request.lists],
        problems,
    )
    if world.settings.honor_cluster_autoscaler_annotations == "off":
        parts |= {field: strip_objects(parts[field]) for field in ANNOTATED_FIELDS if field in parts}
    if (
        NO_CATALOG_PROBLEM in problems
        and "node_classes" in parts
        and not any(node_class.is_ready() for node_class in parts["node_classes"])
    ):
        problems.remove(NO_CATALOG_PROBLEM)  # the first catalog is written when a node class becomes ready
    if "instances" in parts and any(problem.name == "nodeclaims.karpenter.sh" for problem in problems):
        parts["instances"] = None  # without NodeClaims, every instance would look orphaned
    if parts.get("instances") is not None and "node_claims" in parts:
        parts["ended_instances"] = read_ended_instances(world.ec2, parts["node_claims"], parts["instances"], now)
    return parts | _read_table_parts(world, request, now, problems)


def _build_stored_list_reader(world: World, now: datetime) -> StoredListReader | None:
    """Return the reader of the stored lists; None if the setting is off, or nothing is kept between two reads."""
    if world.settings.shared_cache == "off" or world.memory is None:
        return None
    return StoredListReader(world.kube, world.table, world.bucket, world.memory, now)


def read_newest_catalog(bucket: Bucket, problems: list[Problem]) -> Catalog | None:
    """Return the newest catalog that can be decoded, or None; catalogs that cannot be decoded add to *problems*.

    Raises:
        Fault: the bucket could not be read.
    """
    for key in iterate_newest_catalog_keys(bucket):
        try:
            return decode_catalog(bucket.get(key))
        except NotFound:
            continue
        except ValueError as error:
            message = f"{error}; an older catalog is used until the next one is written"
            problems.append(Problem(kind="Catalogue", name=key, message=message))
    problems.append(NO_CATALOG_PROBLEM)
    return None


def _read_aws_parts(world: World, request: SnapshotRequest, problems: list[Problem]) -> dict[str, Any]:
    cluster = world.settings.cluster_name

    def read_catalog() -> Catalog | None:
        return read_newest_catalog(world.bucket, problems)

    parts: dict[str, Any] = {}
    if request.instances:
        parts["instances"] = _query_or_none("EC2", cluster, lambda: world.ec2.describe_instances(cluster), problems)
    if request.statuses:
        parts["statuses"] = _query_or_none("EC2", "instance statuses", world.ec2.describe_instance_statuses, problems)
    if request.catalog:
        parts["catalog"] = _query_or_none("Catalogue", CATALOG_PREFIX, read_catalog, problems)
    if request.facts:
        parts["facts"] = _query_or_none("EKS", cluster, lambda: world.eks.describe_cluster(cluster), problems)
    return parts


def _query_or_none(kind: str, name: str, query: Callable[[], PartT], problems: list[Problem]) -> PartT | None:
    try:
        return query()
    except Fault as fault:
        message = f"could not be read: {type(fault).__name__}: {fault}; it is ignored in this run"
        problems.append(Problem(kind=kind, name=name, message=message))
        return None


def _read_table_parts(world: World, request: SnapshotRequest, now: datetime, problems: list[Problem]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    if request.unavailable:
        parts["unavailable"] = read_unavailable_offerings(world.table, now, problems)
    if request.launch_groups:
        parts["launch_groups"] = read_launch_groups(world.table, now, problems)
    if request.offering_history and world.settings.spot_history == "on":
        parts["offering_history"] = read_offering_history(world.table, problems)
    if (request.zonal_shifts or request.unavailable) and world.zonal_shifts is not None:
        parts["zonal_shifts"] = _read_zonal_shifts(world, world.zonal_shifts, now, problems)
    if request.group_usage and world.settings.group:
        parts["group_usage"] = read_group_usage(world)
    return parts


def _read_zonal_shifts(world: World, service: ZonalShiftService, now: datetime, problems: list[Problem]) -> ZonalShifts:
    settings = world.settings
    record = read_zonal_shifts(
        world.table, service, settings.cluster_arn, now, problems, can_write=settings.mode != "plan"
    )
    return ZonalShifts(shifts=record.shifts, ended=record.ended, drains_zones=settings.zonal_shift == "drain")
