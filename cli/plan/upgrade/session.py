"""A run of `joiner plan --upgrade`: reads the cluster and the images for the new version, and prints the plan."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from cli.inputs.documents import iterate_objects, read_documents
from cli.inputs.environment import read_environment_settings
from cli.plan.upgrade.drifting_nodes import find_drifting_nodes
from cli.plan.upgrade.image_changes import ImageAnswer, ImageChange, find_image_change, needs_images
from cli.plan.upgrade.page import UpgradePlan, build_budgets, build_upgrade_document, render_upgrade
from cli.plan.upgrade.timeline import UpgradeSettings
from cli.plan.upgrade.versions import check_next_version, compare_kubelets, get_minor
from cli.planning.arguments import ACCOUNT_SOURCE
from cli.planning.catalog_source import determine_region
from cli.planning.cluster_source import PlanningInput, default_to_current_context, read_priced_input
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from shared.decide.disruption.budgets.cluster_settings import parse_disruption_settings
from shared.errors import Fault
from shared.model.cluster import ClusterSnapshot
from shared.model.karpenter.pause import parse_disruption_pauses
from shared.state.cluster_state import ClusterState


class _Labeled(msgspec.Struct, frozen=True):
    name: str = ""


class _NodeInfo(msgspec.Struct, frozen=True, rename="camel"):
    kubelet_version: str = ""


class _NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    node_info: _NodeInfo = _NodeInfo()


class _NodeVersion(msgspec.Struct, frozen=True):
    """The part of a Node that has the version of its kubelet."""

    kind: str = ""
    metadata: _Labeled = _Labeled()
    status: _NodeStatus = _NodeStatus()


class _ServerVersion(msgspec.Struct, frozen=True):
    major: str = ""
    minor: str = ""


def print_upgrade_plan(args: argparse.Namespace) -> int:
    """Read, compute and print; return 1 if an input cannot be read, or the version is not the next one."""
    is_live = default_to_current_context(args, "plan")
    try:
        settings = _read_settings()
        planning_input, cluster = read_priced_input(args, is_live=is_live, now=args.now or datetime.now(UTC))
        current_version, kubelet_by_node = _read_versions(args, is_live=is_live)
        check_next_version(current_version, args.upgrade)
        changes = _find_changes(args, cluster, planning_input, is_live=is_live)
    except (InputError, Fault) as error:
        return print_errors("plan", [str(error)])
    upgraded_cluster = find_drifting_nodes(cluster, changes)
    plan = UpgradePlan(
        current_version=current_version,
        target_version=args.upgrade,
        changes=changes,
        upgraded_cluster=upgraded_cluster,
        budgets=build_budgets(ClusterState(cluster), upgraded_cluster, settings),
        kubelets=compare_kubelets(kubelet_by_node, [node.name for node in cluster.nodes], args.upgrade),
    )
    sys.stdout.write(
        render_upgrade(plan) if args.output == "table" else encode_output(build_upgrade_document(plan), args.output)
    )
    sys.stdout.flush()
    return print_errors("plan", planning_input.list_errors())


def _read_settings() -> UpgradeSettings:
    """Return the settings in the environment that limit drift.

    Raises:
        InputError: one of them is invalid.
    """
    try:
        environment = read_environment_settings()
        pauses = parse_disruption_pauses(environment.disruption_paused)
        disruption = parse_disruption_settings(environment.disruption_budgets, environment.disruption_time_zone)
    except ValueError as error:
        raise InputError(f"settings in the environment: {error}") from None
    if disruption.problem:
        raise InputError(f"settings in the environment: {disruption.problem}")
    return UpgradeSettings(disruption=disruption, pauses=pauses, drift_pause_percent=environment.drift_pause_percent)


def _read_versions(args: argparse.Namespace, *, is_live: bool) -> tuple[str, Mapping[str, str]]:
    """Return the version of the control plane, "" if it is unknown, and the kubelet version of each node."""
    if not is_live:
        sources = [source for source in args.filename if source != "-"]
        values = [document.source for document in iterate_objects(read_documents(sources, _ignore), _ignore)]
        nodes = [node for value in values if (node := _parse_node(value)) is not None]
        newest_minor = max((get_minor(node.status.node_info.kubelet_version) or 0 for node in nodes), default=0)
        return f"1.{newest_minor}" if newest_minor else "", _map_kubelets(nodes)
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415 - the client library takes half a second
    from cli.cluster.paging import list_objects  # noqa: PLC0415

    kube = connect_to_cluster(args.kubeconfig or "", args.context or "").kube
    server = msgspec.json.decode(kube.read("/version"), type=_ServerVersion)
    return f"{server.major}.{server.minor.rstrip('+')}", _map_kubelets(
        list_objects(kube, "/api/v1/nodes", _NodeVersion)
    )


def _parse_node(value: Any) -> _NodeVersion | None:  # noqa: ANN401 - any document
    try:
        node = (
            msgspec.json.decode(value, type=_NodeVersion)
            if isinstance(value, msgspec.Raw)
            else msgspec.convert(value, _NodeVersion)
        )
    except msgspec.ValidationError:
        return None
    return node if node.kind == "Node" else None


def _map_kubelets(nodes: Iterable[_NodeVersion]) -> dict[str, str]:
    return {node.metadata.name: node.status.node_info.kubelet_version for node in nodes}


def _ignore(line: str) -> None:
    """Drop *line*: the first reading of the files has reported it."""


def _find_changes(
    args: argparse.Namespace, cluster: ClusterSnapshot, planning_input: PlanningInput, *, is_live: bool
) -> tuple[ImageChange, ...]:
    source = args.images or (ACCOUNT_SOURCE if is_live else "none")
    answers: dict[str, ImageAnswer] = {}
    classes = [node_class for node_class in cluster.node_classes if needs_images(node_class, args.upgrade)]
    if source != "none" and classes:
        from cli.aws.session import open_apis  # noqa: PLC0415 - --help needs none of it
        from cli.node_class.resolution import build_account_world  # noqa: PLC0415
        from shared.cycles.interactions.account_lookup import list_images  # noqa: PLC0415
        from shared.settings import Settings  # noqa: PLC0415

        is_embedded = source == "embedded"
        region = source.partition(":")[2]
        if not region and not is_embedded:
            region = determine_region(cluster, planning_input.region_hints)
        with (
            show_progress(f"reading the images for Kubernetes {args.upgrade}"),
            open_apis(region, embedded=is_embedded) as apis,
        ):
            world = build_account_world(apis, Settings(cluster_name="", region=apis.region))
            answers = {item.name: list_images(item, args.upgrade, world) for item in classes}
    return tuple(
        find_image_change(node_class, args.upgrade, answers.get(node_class.name), cluster.taken_at)
        for node_class in cluster.node_classes
    )
