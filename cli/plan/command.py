"""`joiner plan`: what Joiner would do for the pending pods."""

import argparse
import os
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from time import perf_counter
from typing import Final

from msgspec.structs import replace

from cli.facts.cluster_group import read_group
from cli.inputs.environment import read_environment_settings
from cli.plan.pod_page import render_pod_verdict
from cli.plan.pod_verdict import build_verdict_document, explain_pod
from cli.planning.arguments import (
    LIVE_CATALOG_HELP,
    add_planning_arguments,
    get_catalog_source,
    parse_time_argument,
)
from cli.planning.cluster_source import PlanningInput, default_to_current_context, read_input_with_catalog
from cli.planning.document import PlanResult, build_plan_document
from cli.planning.stored_state import with_stored_state
from cli.planning.table import choose_table_options, render_plan
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from cli.terminal.text import choose_palette
from shared.cycles.setup.options_from_settings import build_money_policy
from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.decide.provisioning.gang_planning import plan_pods
from shared.decide.provisioning.overlay_and_spread_defaults import apply_feature_gates
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.model.decisions.placement import SchedulingOptions, Unschedulable
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.settings import ChosenSettings
from shared.state.cluster_state import ClusterState
from shared.state.schedule_status import list_schedule_statuses

DESCRIPTION: Final = """Show where each pending pod would be scheduled: on an existing node or on a new node, and at
what price; or why no node fits. Read-only. The input is a live cluster (by default the current context), files (-f), or
both: then the files count as applied to the cluster."""
EXAMPLES: Final = f"""examples:
  joiner plan                                    pending pods of the current context's cluster
  joiner plan --context prod -f web.yaml         the same cluster, as if web.yaml were applied
  joiner plan --pod shop/cart                    where this pod (or pods of this Deployment) would run, or why not
  joiner plan --at 2026-11-23T06:00:00Z          with the schedules that apply at this time
  joiner plan --upgrade 1.35                     what an upgrade of the EKS control plane does to the nodes
  joiner plan -f examples/plan --instance-types examples/catalogue.json                      offline
  joiner plan -f manifests/ -f pools.yaml --instance-types catalog.json -o json | jq .totals
  kubectl get nodes,pods,ds,pv,pvc,sc,csinodes,pdb,ns,nodepools,ec2nodeclasses,nodeclaims -A -o json |
    joiner plan -f - --instance-types catalog.json

In files, a Deployment, StatefulSet, ReplicaSet or Job counts as the pods that its controller would still create.

$JOINER_LIMIT_USD_PER_HOUR limits the price of the nodes, like the setting limit-usd-per-hour.

$JOINER_GANGS=on and $JOINER_PROVISIONING_REQUESTS=on plan gangs and ProvisioningRequests, like the settings gangs and
provisioning-requests of the cluster. $JOINER_DYNAMIC_RESOURCE_ALLOCATION=on plans pods with ResourceClaims.

With --upgrade, $JOINER_DISRUPTION_BUDGETS, $JOINER_DISRUPTION_TIME_ZONE, $JOINER_DISRUPTION_PAUSED and
$JOINER_DRIFT_PAUSE_PERCENT limit the replacement of nodes, like the settings of the cluster.

For a live cluster, $JOINER_ZONAL_SHIFT=on (or drain) and $JOINER_SPOT_HISTORY=on plan with the zonal shifts and the
history of offerings in the DynamoDB table $JOINER_TABLE_NAME, like the settings zonal-shift and spot-history.

{LIVE_CATALOG_HELP}

exit codes: 0 done (also if pods are unschedulable), 1 some input could not be read (the message names it; the rest is
planned), 2 wrong usage, 130 interrupted
"""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_planning_arguments(parser)
    parser.add_argument(
        "--pod",
        metavar="NAME",
        help="explain the result for one pod: [NAMESPACE/]NAME of the pod, or of its Deployment, StatefulSet, Job or "
        "other owner, which selects one of its pods (an unschedulable pod if there is one)",
    )
    parser.add_argument(
        "--at",
        dest="now",
        type=parse_time_argument,
        metavar="TIME",
        help="another name of --now: plan for this time, with the schedules that apply then",
    )
    parser.add_argument(
        "--upgrade",
        type=_parse_version_argument,
        metavar="VERSION",
        help="instead of pending pods, show what an upgrade of the EKS control plane to this Kubernetes version does: "
        "images, nodes that drift, their order, budgets and windows, duration, cost and version skew",
    )
    parser.add_argument(
        "--images",
        metavar="SOURCE",
        type=_parse_image_source,
        help="with --upgrade, where to look up the new images: aws, aws:REGION, embedded (simulated) or none (default: "
        "aws for a live cluster, none for files)",
    )
    parser.set_defaults(run=run, usage=parser.error)


def run(args: argparse.Namespace) -> int:
    """Read, plan and print; return 1 if something could not be read."""
    if args.upgrade:
        if args.pod is not None:
            args.usage("--upgrade and --pod exclude each other")
        from cli.plan.upgrade.session import print_upgrade_plan  # noqa: PLC0415 - other plans need none of it

        return print_upgrade_plan(args)
    if args.images:
        args.usage("--images requires --upgrade VERSION")
    options = _parse_options(args)
    try:
        source = get_catalog_source(args, is_live=default_to_current_context(args, "plan"))
        planning_input, plan_result = _read_and_plan(args, source, options)
        output = _render_output(args, plan_result)
    except InputError as error:
        return print_errors("plan", [str(error)])
    sys.stdout.write(output)
    sys.stdout.flush()
    return print_errors("plan", planning_input.list_errors())


def _parse_version_argument(text: str) -> str:
    """Parse a Kubernetes version.

    Raises:
        ArgumentTypeError: *text* is not a version like 1.35.
    """
    from cli.plan.upgrade.versions import parse_target_version  # noqa: PLC0415 - --help needs none of it

    try:
        return parse_target_version(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parse_image_source(text: str) -> str:
    """Parse a source of images.

    Raises:
        ArgumentTypeError: *text* is not a source.
    """
    if text in ("embedded", "none") or text.partition(":")[0] == "aws":
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not aws, aws:REGION, embedded or none")


def _read_and_plan(
    args: argparse.Namespace, source: str, options: SchedulingOptions
) -> tuple[PlanningInput, PlanResult]:
    """Read the input and plan.

    Raises:
        InputError: there is no catalog, or a live cluster cannot be read.
    """
    started_at = perf_counter()
    planning_input = read_input_with_features(args, source)
    cluster = planning_input.cluster
    cluster_state = ClusterState(cluster)
    decoded_at = perf_counter()
    pending_count = sum(is_provisionable(pod) for pod in cluster.pods)
    with show_progress(f"planning for {format_count(pending_count, 'pod')}"), pause_garbage_collection():
        placement = plan_pods(cluster_state, options=options).placement
    plan_result = PlanResult(
        cluster_state=cluster_state,
        placement=placement,
        options=options,
        unreadable=tuple(list_unreadable_pods(cluster)),
        notes=(*planning_input.notes, *(f"schedule: {item.describe()}" for item in list_schedule_statuses(cluster))),
        decode_seconds=decoded_at - started_at,
        solve_seconds=perf_counter() - decoded_at,
    )
    return planning_input, plan_result


def read_input_with_features(args: argparse.Namespace, source: str) -> PlanningInput:
    """Read the input that *args* selects and the catalog from *source*, and apply the enabled features.

    Raises:
        InputError: there is no catalog, a live cluster cannot be read, or $FEATURE_GATES or $SCHEDULER_CONFIG cannot
            be parsed.
    """
    settings = read_environment_settings()
    planning_input = read_input_with_catalog(args, source, args.now or datetime.now(UTC))
    planning_input = with_stored_state(planning_input, args, settings)
    try:
        cluster = apply_feature_gates(planning_input.cluster, settings.feature_gates, settings.scheduler_config)
    except ValueError as error:
        raise InputError(f"$FEATURE_GATES or $SCHEDULER_CONFIG: {error}") from None
    requests = cluster.provisioning_requests if settings.provisioning_requests == "on" else ()
    cluster = replace(cluster, has_gangs=settings.gangs == "on", provisioning_requests=requests)
    if settings.group:
        cluster = replace(cluster, group_usage=read_group(settings, os.environ.get("JOINER_GROUP_MEMBER", "")))
    return replace(planning_input, cluster=cluster)


def _parse_options(args: argparse.Namespace) -> SchedulingOptions:
    try:
        return build_options(args, read_environment_settings())
    except ValueError as error:
        args.usage(str(error))
        raise AssertionError("argparse has left") from error


def build_options(args: argparse.Namespace, settings: ChosenSettings) -> SchedulingOptions:
    """Return the planning options: from *args*, else from *settings*, those of the environment."""
    volume_price = settings.volume_usd_per_gib_month if args.volume_price is None else args.volume_price
    return SchedulingOptions(
        preference_policy=args.preference_policy or settings.preference_policy,
        min_values_policy=args.min_values_policy or settings.min_values_policy,
        pod_nominations=args.pod_nominations or settings.pod_nominations,
        node_cost_usd_per_hour=settings.node_cost_usd_per_hour if args.node_cost is None else args.node_cost,
        volume_usd_per_gib_month=volume_price,
        money=replace(build_money_policy(settings), volume_usd_per_gib_month=volume_price),
        priority_under_limits=settings.priority_under_limits == "on",
        readiness="Assumed",
    )


def list_unreadable_pods(cluster: ClusterSnapshot) -> Iterable[Unschedulable]:
    """Yield a verdict for each pod without a node that could not be parsed."""
    for problem in cluster.problems:
        if problem.kind == "Pod" and not problem.node and problem.name != "*":
            yield Unschedulable(pod=problem.name, reason="InvalidPod", message=problem.message)


def _render_output(args: argparse.Namespace, plan_result: PlanResult) -> str:
    """Return the output.

    Raises:
        InputError: there is no such pod.
    """
    palette, layout = choose_palette(sys.stdout), choose_table_options(args)
    if args.pod is None:
        if args.output == "table":
            return render_plan(plan_result, palette, layout)
        return encode_output(build_plan_document(plan_result), args.output)
    verdict = explain_pod(plan_result, args.pod)
    if args.output == "table":
        return render_pod_verdict(verdict, palette, layout)
    return encode_output(build_verdict_document(verdict), args.output)
