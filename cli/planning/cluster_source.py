"""The input of a plan: files, a live cluster, or both."""

import argparse
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from msgspec.structs import replace

from cli.facts.installation import Installation, InstallationReader
from cli.inputs.documents import iterate_objects, read_documents
from cli.inputs.environment import are_devices_planned, keep_honored_annotations
from cli.inputs.files import ErrorReporter
from cli.inputs.manifests import Manifests, parse_manifests
from cli.planning.arguments import ACCOUNT_SOURCE, get_default_catalog_source
from cli.planning.unschedulable import MAX_LISTED_PODS
from cli.terminal.errors import InputError
from cli.terminal.stderr import print_errors, show_progress
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.core.metadata import Problem
from shared.take.kubernetes.optional_resources import DEVICE_LISTS, OPTIONAL_KINDS
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS, ResourceKind
from shared.take.manifests.documents import DocumentSource
from shared.take.manifests.snapshot_from_manifests import LeftOutReporter, build_snapshot_from_documents

CATALOG_REFRESH_INTERVAL: Final = timedelta(minutes=5)
"""When the cluster is read repeatedly, the catalog is read again after this time."""


class PlanningInput(msgspec.Struct, frozen=True, kw_only=True):
    """The cluster to plan for, with messages about reading it."""

    cluster: ClusterSnapshot
    read_errors: tuple[str, ...]
    """Messages about input that could not be read."""
    notes: tuple[str, ...]
    """Information about the input that needs no correction."""
    region_hints: tuple[str, ...] = ()
    """Values that may contain the region: ARN and endpoint of a live cluster."""
    locations: Mapping[tuple[str, str], str] = {}
    """Location of each object in the files, by kind and name."""
    workload_by_pod: Mapping[str, tuple[str, str]] = {}
    """Kind and name of the workload of each pod that was created from a workload's template."""

    def describe_problem(self, problem: Problem) -> str:
        """Return *problem* as text, with the location of its object; pods from a template are named by workload."""
        kind, name = problem.kind, problem.name
        message = problem.message
        if kind == "Pod" and name in self.workload_by_pod:
            (kind, name), message = self.workload_by_pod[name], f"spec.template.{message}"
        location = self.locations.get((kind, name))
        return f"{f'{location}: ' if location else ''}{kind} {name}: {message}"

    def list_errors(self) -> list[str]:
        """Return the messages about input that could not be read, and about problems of objects, each once."""
        return list(dict.fromkeys((*self.read_errors, *map(self.describe_problem, self.cluster.problems))))


def read_planning_input(args: argparse.Namespace, now: datetime) -> PlanningInput:
    """Read the input that *args* selects, as of *now*.

    Raises:
        InputError: a live cluster cannot be read, or none of the files. Other errors in files are recorded.
    """
    planning_input = _read_input(args, now)
    cluster = replace(keep_honored_annotations(planning_input.cluster), has_dynamic_resources=are_devices_planned())
    return replace(planning_input, cluster=cluster)


def _read_input(args: argparse.Namespace, now: datetime) -> PlanningInput:
    if args.context is not None or args.kubeconfig is not None:
        return _read_live_input(args, now)
    read_errors, left_out_notes = list[str](), list[str]()
    with show_progress(f"reading {join_names(args.filename, MAX_LISTED_PODS)}"):
        manifests = _read_manifests(args.filename, read_errors.append, {})
        if read_errors and not manifests.objects:
            raise InputError("; ".join(read_errors))
        cluster = build_snapshot_from_documents(
            manifests.objects,
            now,
            assume_unschedulable=args.assume_unschedulable is not False,
            report_left_out=_build_left_out_reporter(left_out_notes),
        )
    return PlanningInput(
        cluster=cluster,
        read_errors=tuple(read_errors),
        notes=(*manifests.notes, *left_out_notes),
        locations=manifests.locations,
        workload_by_pod=manifests.workload_by_pod,
    )


def read_priced_input(
    args: argparse.Namespace, *, is_live: bool, now: datetime
) -> tuple[PlanningInput, ClusterSnapshot]:
    """Read the input that *args* selects, and the catalog; without a catalog nothing has a price.

    Raises:
        InputError: a catalog or a live cluster cannot be read.
    """
    source = args.instance_types or get_default_catalog_source(is_live=is_live)
    if source in ("", ACCOUNT_SOURCE):
        planning_input = read_planning_input(args, now)
    else:
        planning_input = read_input_with_catalog(args, source, now)
    return planning_input, planning_input.cluster


def read_input_with_catalog(args: argparse.Namespace, source: str, now: datetime) -> PlanningInput:
    """Read the input that *args* selects, and the catalog from *source*.

    Raises:
        InputError: the catalog or a live cluster cannot be read.
    """
    from cli.planning.catalog_source import load_catalog  # noqa: PLC0415 - the client library takes half a second

    planning_input = read_planning_input(args, now)
    cluster = planning_input.cluster
    catalog, problems = load_catalog(source, cluster, planning_input.region_hints, now)
    all_problems = tuple(sorted({*cluster.problems, *problems}))
    return replace(planning_input, cluster=replace(cluster, catalog=catalog, problems=all_problems))


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
        return planning_input, replace(planning_input.cluster, catalog=self._priced_cluster.catalog)


def default_to_current_context(args: argparse.Namespace, command: str = "") -> bool:
    """Select the current context if *args* names neither files nor a cluster; return whether a cluster is read.

    With *command*, print the name of the current context.

    Raises:
        InputError: with *command*, *args* names nothing, and there is no kubeconfig.
    """
    if not args.filename and args.context is None and args.kubeconfig is None:
        args.context = ""
        if command:
            _announce_current_context(command)
    return args.context is not None or args.kubeconfig is not None


def _announce_current_context(command: str) -> None:
    from cli.cluster.contexts import get_current_context  # noqa: PLC0415 - the client library takes half a second

    try:
        name = get_current_context("")
    except InputError as error:
        raise InputError(f"{error}; or name files with -f") from None
    if name:
        print_errors(command, [f"reading the current context {name} (use --context for another, -f for files)"])


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


def _read_live_input(args: argparse.Namespace, now: datetime) -> PlanningInput:
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415 - the client library takes half a second
    from cli.cluster.live_cluster import (  # noqa: PLC0415 - as above
        find_default_storage_class,
        group_running_labels,
        mark_pods_unschedulable,
        merge_clusters,
        read_live_cluster,
    )

    connection = connect_to_cluster(args.kubeconfig or "", args.context or "")
    cluster, notes = read_live_cluster(connection.kube, now, connection.context, _list_read_kinds())
    if args.assume_unschedulable:
        cluster = mark_pods_unschedulable(cluster)
    read_errors, left_out_notes = list[str](), list[str]()
    manifests = _read_manifests(args.filename, read_errors.append, group_running_labels(cluster))
    default_class = find_default_storage_class(cluster)
    objects = tuple(_set_default_storage_class(item, default_class) for item in manifests.objects)
    applied_cluster = build_snapshot_from_documents(
        objects,
        now,
        assume_unschedulable=args.assume_unschedulable is not False,
        report_left_out=_build_left_out_reporter(left_out_notes),
    )
    return PlanningInput(
        cluster=merge_clusters(cluster, applied_cluster),
        read_errors=tuple(read_errors),
        notes=(*notes, *manifests.notes, *left_out_notes),
        region_hints=(connection.cluster, connection.server),
        locations=manifests.locations,
        workload_by_pod=manifests.workload_by_pod,
    )


def _read_manifests(
    sources: Iterable[str], report_error: ErrorReporter, running_labels: Mapping[str, list[Mapping[str, str]]]
) -> Manifests:
    return parse_manifests(
        iterate_objects(read_documents(sources, report_error), report_error),
        report_error,
        running_labels,
        are_features_on=_has_enabled_features(),
        are_devices_on=are_devices_planned(),
    )


def _build_left_out_reporter(notes: list[str]) -> LeftOutReporter:
    """Return a function that adds a note about objects of other providers to *notes*."""

    def report_left_out(field: str, names: tuple[str, ...]) -> None:
        kind = {"node_pools": "NodePool", "node_claims": "NodeClaim"}[field]
        listed_names = join_names(names, MAX_LISTED_PODS)
        notes.append(f"left out {format_count(len(names), kind)} of other providers: {listed_names}")

    return report_left_out


def _list_read_kinds() -> tuple[ResourceKind, ...]:
    """Return the kinds to read from a live cluster: optional kinds only for enabled features."""
    has_features, has_devices = _has_enabled_features(), are_devices_planned()
    optional_kinds = (kind for kind in OPTIONAL_KINDS if (has_devices if kind.field in DEVICE_LISTS else has_features))
    return (*optional_kinds, *RESOURCE_KINDS)


def _has_enabled_features() -> bool:
    """Return whether kinds are needed that only optional features use."""
    variables = ("JOINER_GANGS", "JOINER_PROVISIONING_REQUESTS")
    has_gangs = any(os.environ.get(variable) == "on" for variable in variables)
    return has_gangs or bool(os.environ.get("FEATURE_GATES") or os.environ.get("SCHEDULER_CONFIG"))


def _set_default_storage_class(item: DocumentSource, default_class: str) -> DocumentSource:
    """Return *item*; a volume claim without a class gets the live cluster's default."""
    if not default_class or not isinstance(item, dict) or item.get("kind") != "PersistentVolumeClaim":
        return item
    spec = item.get("spec")
    return item | {"spec": {"storageClassName": default_class} | spec} if isinstance(spec, dict) else item
