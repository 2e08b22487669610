"""The input of a plan: files, a live cluster, or both."""

import argparse
import os
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from cli.facts.installation import Installation, InstallationReader
from cli.inputs.documents import iterate_objects, read_documents
from cli.inputs.files import ErrorReporter
from cli.inputs.manifests import Manifests, parse_manifests
from cli.planning.unschedulable import MAX_LISTED_PODS
from cli.terminal.errors import InputError
from cli.terminal.stderr import print_errors, show_progress
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import join_names
from shared.model.core.metadata import Problem
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.take.manifests.documents import DocumentSource
from shared.take.manifests.snapshot_from_manifests import build_snapshot_from_documents

CATALOG_REFRESH_INTERVAL: Final = timedelta(minutes=5)
"""When the cluster is read repeatedly, the catalog is read again after this time."""
_VOLUME_CLAIM_KIND: Final = "PersistentVolumeClaim"


class PlanningInput(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster to plan for, with messages about reading it."""

    cluster: ClusterSnapshot
    read_errors: tuple[str, ...]
    """Messages about input that could not be read."""
    notes: tuple[str, ...]
    region_hints: tuple[str, ...] = ()
    """Values that may contain the region: ARN and endpoint of a live cluster."""
    locations: Mapping[tuple[str, str], str] = {}
    """Location of each object in the files, by kind and name."""

    def describe_problem(self, problem: Problem) -> str:
        """Return *problem* as text, with the location of its object."""
        location = self.locations.get((problem.kind, problem.name))
        return f"{f'{location}: ' if location else ''}{problem.kind} {problem.name}: {problem.message}"


def read_planning_input(args: argparse.Namespace, now: datetime) -> PlanningInput:
    """Read the input that *args* selects, as of *now*.

    Raises:
        InputError: a live cluster cannot be read, or none of the files. Other errors in files are recorded.
    """
    read_errors: list[str] = []
    assumed = args.assume_unschedulable
    if args.context is None and args.kubeconfig is None:
        with show_progress(f"reading {join_names(args.filename, MAX_LISTED_PODS)}"):
            file_manifests = _read_manifests(args.filename, read_errors.append, {})
            if read_errors and not file_manifests.objects:
                raise InputError("; ".join(read_errors))
            cluster = build_snapshot_from_documents(
                file_manifests.objects, now, assume_unschedulable=assumed is not False
            )
        return PlanningInput(
            cluster=cluster,
            read_errors=tuple(read_errors),
            notes=file_manifests.notes,
            locations=file_manifests.locations,
        )
    return _read_live_input(args, now, read_errors)


def read_priced_input(
    args: argparse.Namespace, *, is_live: bool, now: datetime
) -> tuple[PlanningInput, ClusterSnapshot]:
    """Read the input that *args* selects, and the catalog; without a catalog nothing has a price.

    Raises:
        InputError: a catalog or a live cluster cannot be read.
    """
    from cli.planning.arguments import get_default_catalog_source  # noqa: PLC0415
    from cli.planning.catalog_source import (  # noqa: PLC0415 - the client library takes half a second
        ACCOUNT_SOURCE,
        load_catalog,
    )

    planning_input = read_planning_input(args, now)
    source = args.instance_types or get_default_catalog_source(is_live=is_live)
    if source in ("", ACCOUNT_SOURCE):
        return planning_input, planning_input.cluster
    catalog, problems = load_catalog(source, planning_input.cluster, planning_input.region_hints, now)
    all_problems = tuple(sorted({*planning_input.cluster.problems, *problems}))
    return planning_input, msgspec.structs.replace(planning_input.cluster, catalog=catalog, problems=all_problems)


class PlanningInputReader:
    """Reads the input repeatedly: the cluster each time, the catalog, which is updated hourly, less often."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Read the input that *args* selects."""
        self._args = args
        self._is_live = args.context is not None or args.kubeconfig is not None
        self._priced_cluster: ClusterSnapshot | None = None

    def __call__(self) -> tuple[PlanningInput, ClusterSnapshot]:
        """Return the current input.

        Raises:
            InputError: as `read_priced_input`.
        """
        now = datetime.now(UTC)
        if self._priced_cluster is None or now - self._priced_cluster.taken_at > CATALOG_REFRESH_INTERVAL:
            planning_input, self._priced_cluster = read_priced_input(self._args, is_live=self._is_live, now=now)
            return planning_input, self._priced_cluster
        planning_input = read_planning_input(self._args, now)
        return planning_input, msgspec.structs.replace(planning_input.cluster, catalog=self._priced_cluster.catalog)


def default_to_current_context(args: argparse.Namespace) -> bool:
    """Select the current context if *args* names neither files nor a cluster; return whether a cluster is read."""
    if not args.filename and args.context is None and args.kubeconfig is None:
        args.context = ""
    return args.context is not None or args.kubeconfig is not None


def announce_current_context(args: argparse.Namespace, command: str) -> bool:
    """Do the same as `default_to_current_context`; *command* first prints the name of the current context.

    Raises:
        InputError: *args* names nothing, and there is no kubeconfig.
    """
    if args.filename or args.context is not None or args.kubeconfig is not None:
        return default_to_current_context(args)
    from cli.cluster.contexts import get_current_context  # noqa: PLC0415 - the client library takes half a second

    try:
        name = get_current_context("")
    except InputError as error:
        raise InputError(f"{error}; or name files with -f") from None
    if name:
        print_errors(command, [f"of the current context, {name}: -f names files, --context another"])
    return default_to_current_context(args)


class StatusReader:
    """Reads a cluster and its installation repeatedly."""

    def __init__(self, args: argparse.Namespace) -> None:
        """Read the cluster and installation that *args* selects."""
        self._input_reader, self._installation_reader = PlanningInputReader(args), InstallationReader(args)

    def __call__(self) -> tuple[PlanningInput, ClusterSnapshot, Installation | None]:
        """Return the current state.

        Raises:
            InputError: as `PlanningInputReader`.
        """
        planning_input, cluster = self._input_reader()
        return planning_input, cluster, self._installation_reader(planning_input.region_hints, cluster.taken_at)


def _read_live_input(args: argparse.Namespace, now: datetime, read_errors: list[str]) -> PlanningInput:
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415 - the client library takes half a second
    from cli.cluster.live_cluster import (  # noqa: PLC0415 - as above
        find_default_storage_class,
        group_running_labels,
        mark_pods_unschedulable,
        merge_clusters,
        read_live_cluster,
    )

    connection = connect_to_cluster(args.kubeconfig or "", args.context or "")
    listings = (*OPTIONAL_KINDS, *RESOURCE_KINDS) if _has_enabled_features() else RESOURCE_KINDS
    cluster, notes = read_live_cluster(connection.kube, now, connection.context, listings)
    if args.assume_unschedulable:
        cluster = mark_pods_unschedulable(cluster)
    file_manifests = _read_manifests(args.filename, read_errors.append, group_running_labels(cluster))
    file_manifests = msgspec.structs.replace(
        file_manifests,
        objects=tuple(_set_default_storage_class(file_manifests.objects, find_default_storage_class(cluster))),
    )
    applied_cluster = build_snapshot_from_documents(
        file_manifests.objects, now, assume_unschedulable=args.assume_unschedulable is not False
    )
    return PlanningInput(
        cluster=merge_clusters(cluster, applied_cluster),
        read_errors=tuple(read_errors),
        notes=(*notes, *file_manifests.notes),
        region_hints=(connection.cluster, connection.server),
        locations=file_manifests.locations,
    )


def _read_manifests(
    sources: Iterable[str], report_error: ErrorReporter, running_labels: Mapping[str, list[Mapping[str, str]]]
) -> Manifests:
    return parse_manifests(
        iterate_objects(read_documents(sources, report_error), report_error),
        report_error,
        running_labels,
        are_features_on=_has_enabled_features(),
    )


def _has_enabled_features() -> bool:
    """Return whether kinds are needed that only optional features use."""
    return bool(os.environ.get("FEATURE_GATES") or os.environ.get("SCHEDULER_CONFIG"))


def _set_default_storage_class(objects: Iterable[DocumentSource], default_class: str) -> Iterator[DocumentSource]:
    """Yield *objects*; volume claims without a class get the live cluster's default."""
    for source_object in objects:
        spec = source_object.get("spec") if isinstance(source_object, dict) else None
        if (
            default_class
            and isinstance(source_object, dict)
            and source_object.get("kind") == _VOLUME_CLAIM_KIND
            and isinstance(spec, dict)
        ):
            yield source_object | {"spec": {"storageClassName": default_class} | spec}
        else:
            yield source_object
