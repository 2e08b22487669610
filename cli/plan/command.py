"""`joiner plan`: what Joiner would do for the pending pods."""

import argparse
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from time import perf_counter
from typing import Final, Literal, get_args

from msgspec.structs import replace

from cli.inputs.environment import read_environment_settings
from cli.plan.pod_page import render_pod_verdict
from cli.plan.pod_verdict import build_verdict_document, explain_pod
from cli.planning.arguments import add_money, add_sources, get_catalog_source, parse_time_argument
from cli.planning.catalog_source import CATALOG_HELP, load_catalog
from cli.planning.cluster_source import PlanningInput, announce_current_context, read_planning_input
from cli.planning.document import PlanResult, build_plan_document
from cli.planning.table import TableOptions, render_plan
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors, show_progress
from cli.terminal.text import choose_palette, get_terminal_width
from shared.cycles.setup.python_gc import pause_garbage_collection
from shared.decide.provisioning.capacity_buffers import plan_with_buffers
from shared.decide.provisioning.overlay_and_spread_defaults import apply_feature_gates
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count
from shared.model.decisions.placement import SchedulingOptions, Unschedulable
from shared.settings import ChosenSettings, MinValuesPolicy, PreferencePolicy
from shared.state.cluster_state import ClusterState

DESCRIPTION: Final = """Say where each pod that waits would go: on a node that is there, or on which new ones, for how
much; or why it can go nowhere. Nothing is changed. Files are planned with as they are; with --context or --kubeconfig
a cluster is asked for its objects (it is only listed, never written to), and files are what would be applied to it.
Without any of these it is the current context's cluster."""
EXAMPLES: Final = f"""examples:
  joiner plan -f examples/plan --instance-types examples/catalogue.json
  joiner plan -f manifests/ -f pools.yaml --instance-types catalogue.json -o json | jq .totals
  kubectl get nodes,pods,ds,pv,pvc,sc,csinodes,pdb,ns,nodepools,ec2nodeclasses,nodeclaims -A -o json |
    joiner plan -f - --instance-types catalogue.json
  joiner plan                                    what your current cluster would get now
  joiner plan --context prod -f web.yaml         and what it would get if web.yaml were applied
  joiner plan -f pods.yaml --instance-types catalogue.json --pod shop/cart-0      why there, or why nowhere

Deployments, StatefulSets, ReplicaSets and Jobs count as the pods that they would still make.

{CATALOG_HELP}
  Without it a live cluster's is $JOINER_BUCKET_NAME if that is set, else aws.

exit codes: 0 done (a pod without a place is an answer), 1 something could not be read (it is named; the rest is
planned), 2 wrong usage, 130 interrupted
"""
OutputFormat = Literal["table", "json", "yaml"]


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    _add_output_arguments(parser)
    parser.add_argument(
        "--preference-policy",
        choices=get_args(PreferencePolicy),
        help="whether preferences of pods are tried first (default: $PREFERENCE_POLICY, else Respect)",
    )
    parser.add_argument(
        "--min-values-policy",
        choices=get_args(MinValuesPolicy),
        help="whether minValues may be given up (default: $MIN_VALUES_POLICY, else Strict)",
    )
    add_money(parser)
    parser.add_argument(
        "--assume-unschedulable",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="take a pod without node and without PodScheduled condition for one that waits (default: in files yes, in "
        "a live cluster no)",
    )
    parser.add_argument(
        "--now", type=parse_time_argument, metavar="TIME", help="the time of the snapshot, like 2026-11-21T08:00:00Z"
    )
    parser.set_defaults(run=run, usage=parser.error)


def _add_output_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-o", "--output", choices=get_args(OutputFormat), default="table", help="what is printed")
    parser.add_argument("--pod", metavar="NAME", help="print the verdict on one pod in full, as [NAMESPACE/]NAME")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole, with every name")


def run(args: argparse.Namespace) -> int:
    """Read, plan and print; return 1 if something could not be read."""
    options = _parse_options(args)
    now = args.now or datetime.now(UTC)
    try:
        is_live = announce_current_context(args, "plan")
        source = get_catalog_source(args, is_live=is_live)
        planning_input, plan_result = _read_and_plan(args, source, options, now)
        output = _render_output(args, plan_result)
    except InputError as error:
        print_errors("plan", [str(error)])
        return 1
    sys.stdout.write(output)
    sys.stdout.flush()
    messages = [
        *planning_input.read_errors,
        *(planning_input.describe_problem(problem) for problem in plan_result.cluster.problems),
    ]
    print_errors("plan", messages)
    return 1 if messages else 0


def _read_and_plan(
    args: argparse.Namespace, source: str, options: SchedulingOptions, now: datetime
) -> tuple[PlanningInput, PlanResult]:
    """Read the input and plan.

    Raises:
        InputError: there is no catalog, or a live cluster cannot be read.
    """
    began = perf_counter()
    planning_input = read_planning_input(args, now)
    catalog, problems = load_catalog(source, planning_input.cluster, planning_input.region_hints, now)
    cluster = replace(
        planning_input.cluster, catalog=catalog, problems=tuple(sorted({*planning_input.cluster.problems, *problems}))
    )
    cluster = with_features(cluster)
    cluster_state = ClusterState(cluster)
    decoded = perf_counter()
    pending_count = sum(pod.is_provisionable() for pod in cluster.pods)
    with show_progress(f"planning for {format_count(pending_count, 'pod')}"), pause_garbage_collection():
        placement = plan_with_buffers(cluster_state, options=options).placement
    plan_result = PlanResult(
        cluster_state=cluster_state,
        placement=placement,
        options=options,
        unreadable=tuple(list_unreadable_pods(cluster)),
        notes=planning_input.notes,
        decode_seconds=decoded - began,
        solve_seconds=perf_counter() - decoded,
    )
    return planning_input, plan_result


def with_features(cluster: ClusterSnapshot) -> ClusterSnapshot:
    """Return *cluster* with the changes of the enabled features.

    Raises:
        InputError: $FEATURE_GATES or $SCHEDULER_CONFIG cannot be parsed.
    """
    settings = read_environment_settings()
    try:
        return apply_feature_gates(cluster, settings.feature_gates, settings.scheduler_config)
    except ValueError as error:
        raise InputError(f"$FEATURE_GATES or $SCHEDULER_CONFIG: {error}") from None


def _parse_options(args: argparse.Namespace) -> SchedulingOptions:
    try:
        return build_options(args, read_environment_settings())
    except ValueError as error:
        args.usage(str(error))
        raise AssertionError("argparse has left") from error


def build_options(args: argparse.Namespace, settings: ChosenSettings) -> SchedulingOptions:
    """Return the planning options: from *args*, else from *settings*, those of the environment."""
    return SchedulingOptions(
        preference_policy=args.preference_policy or settings.preference_policy,
        min_values_policy=args.min_values_policy or settings.min_values_policy,
        hints=args.hints or settings.hints,
        node_cost_usd_per_hour=settings.node_cost_usd_per_hour if args.node_cost is None else args.node_cost,
        volume_usd_per_gib_month=settings.volume_usd_per_gib_month if args.volume_price is None else args.volume_price,
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
    palette = choose_palette(sys.stdout)
    layout = TableOptions(width=None if args.wide else get_terminal_width(sys.stdout), is_whole=args.is_whole)
    if args.pod is not None:
        verdict = explain_pod(plan_result, args.pod)
        return (
            render_pod_verdict(verdict, palette, layout)
            if args.output == "table"
            else encode_output(build_verdict_document(verdict), args.output)
        )
    return (
        render_plan(plan_result, palette, layout)
        if args.output == "table"
        else encode_output(build_plan_document(plan_result), args.output, has_api_version=False)
    )
