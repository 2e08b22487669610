"""`joiner uninstall`: remove all nodes of Joiner from a cluster before the stack is destroyed."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from cli.cluster.arguments import add_cluster_arguments, add_output_argument
from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from cli.cluster.kubeconfig import ClusterConnection
    from cli.cluster.writable_client import ReadWriteKube
    from cli.uninstall.steps import RemovalPlan

DESCRIPTION: Final = """Remove all nodes of Joiner from a cluster, in this order: pause launches, delete NodePools and
NodeClaims, drain the nodes (respecting PodDisruptionBudgets and do-not-disrupt), and wait until the instances are
terminated. uninstall lists everything and asks before it starts; if it is interrupted, run it again to continue.
EC2NodeClasses, CRDs and the stack stay: `npx cdk destroy` removes them as on-destroy says. uninstall refuses to
run while Karpenter is active, because the NodePools are Karpenter's then."""
EXAMPLES: Final = """examples:
  joiner uninstall --dry-run                     list what would be removed, and what blocks it
  joiner uninstall --context prod                ask, then remove
  joiner uninstall --context prod --yes --timeout 2h -o json

Evicted pods stay pending until other nodes have room for them. A PodDisruptionBudget or do-not-disrupt blocks the drain
of a node until its terminationGracePeriod expires; uninstall names the blocking pods.

docs/reference/output.md lists the fields of -o json and -o yaml.

exit codes: 0 nothing is left (or --dry-run), 1 something is left, or could not be read or deleted, 2 wrong usage, or no
terminal to ask for confirmation, 130 interrupted
"""
INTERRUPTED_MESSAGE: Final = (
    "nodes continue to drain and launches stay paused (`joiner resume --launches`); run uninstall again to continue"
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.planning.arguments import parse_duration_argument  # noqa: PLC0415 - the list of commands needs none of it

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_cluster_arguments(parser)
    parser.add_argument("--dry-run", action="store_true", help="list what would be removed, and remove nothing")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument(
        "--timeout",
        type=parse_duration_argument,
        default=timedelta(hours=1),
        metavar="1h",
        help="stop waiting after this time (default: 1h)",
    )
    add_output_argument(parser)
    parser.set_defaults(run=run, usage=parser.error)


def run(args: argparse.Namespace) -> int:
    """List the objects, ask for confirmation, remove them and wait; return 1 if an object is left."""
    from cli.cluster.kubeconfig import connect_to_cluster  # noqa: PLC0415
    from cli.cluster.writable_client import build_write_client  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415 - --help needs none of it

    try:
        reached = connect_to_cluster(args.kubeconfig, args.context)
        return _run(build_write_client(reached), reached, args)
    except InputError as error:
        return print_errors("uninstall", [str(error)])


def _run(kube: "ReadWriteKube", reached: "ClusterConnection", args: argparse.Namespace) -> int:
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.uninstall import steps  # noqa: PLC0415 - --help needs none of it

    is_page = args.output == "table"
    plan = steps.build_removal_plan(steps.read_cluster(kube, reached.context), steps.list_foreign_pools(kube))
    if is_page:
        sys.stdout.writelines(f"{line}\n" for line in _render_plan(plan, reached.context))
    if args.dry_run or plan.is_empty:
        return _print_result(plan, reached, args)
    lease_holder = steps.find_karpenter_lease_holder(kube, kube.answered_at or datetime.now(UTC))
    if lease_holder:
        raise InputError(f"Karpenter is active ({lease_holder}) and owns the NodePools: scale it to zero first")
    if not args.yes and not _confirm_removal(reached.context, args):
        return print_errors("uninstall", ["cancelled: nothing was removed"])
    report_progress = _print_progress if is_page else _print_progress_to_terminal
    try:
        remaining = _remove_all(kube, reached, report_progress, args.timeout)
    except KeyboardInterrupt:
        print_errors("uninstall", [INTERRUPTED_MESSAGE])
        raise
    return _print_result(remaining, reached, args)


def _remove_all(
    kube: "ReadWriteKube", reached: "ClusterConnection", report_progress: Callable[[str], None], timeout: timedelta
) -> "RemovalPlan":
    """Remove everything in order, and wait.

    Raises:
        InputError: a step failed.
    """
    from cli.cluster.writable_client import get_username  # noqa: PLC0415
    from cli.uninstall import steps  # noqa: PLC0415 - --help needs none of it

    steps.pause_launches(kube, get_username(kube), kube.answered_at or datetime.now(UTC))
    report_progress("launches are paused")

    def delete_remaining() -> "RemovalPlan":
        """Read the cluster again, and delete the objects that were created meanwhile."""
        remaining = steps.build_removal_plan(steps.read_cluster(kube, reached.context), steps.list_foreign_pools(kube))
        for deleted_object in steps.delete(kube, remaining):
            report_progress(f"deleted {deleted_object}")
        return remaining

    remaining = steps.wait(delete_remaining, report_progress, time.sleep, timeout)
    if remaining.is_empty:
        steps.resume_launches(kube, kube.answered_at or datetime.now(UTC))
    return remaining


def _print_result(remaining: "RemovalPlan", reached: "ClusterConnection", args: argparse.Namespace) -> int:
    from cli.terminal.output_format import encode_output  # noqa: PLC0415 - --help needs none of it

    commands = list(_list_next_commands(reached))
    if args.output != "table":
        sys.stdout.write(encode_output(build_uninstall_document(remaining, commands), args.output))
    elif remaining.is_empty:
        sys.stdout.write("no nodes of Joiner are left in the cluster; next steps:\n")
        sys.stdout.writelines(f"  {command}\n" for command in commands)
    if remaining.is_empty or args.dry_run:
        return 0
    blocker_lines = [f"blocked: {blocker}" for blocker in remaining.blockers]
    return print_errors(
        "uninstall", [f"timed out with {remaining.describe()} left: run it again to continue", *blocker_lines]
    )


def build_uninstall_document(remaining: "RemovalPlan", commands: list[str]) -> dict[str, Any]:
    """Return the JSON document."""
    return {
        "empty": remaining.is_empty,
        "nodePools": [node_pool.name for node_pool in remaining.pools],
        "nodeClaims": [node_claim.name for node_claim in remaining.claims],
        "nodes": [node_row.name for node_row in remaining.rows],
        "pods": remaining.pods,
        "blockers": list(remaining.blockers),
        "unmanagedNodePools": list(remaining.foreign_pools),
        "nextCommands": commands,
    }


def _render_plan(plan: "RemovalPlan", cluster_name: str) -> Iterator[str]:
    from shared.model.core.formatting import join_names  # noqa: PLC0415 - --help needs none of it

    if not plan.is_empty:
        yield f"to be removed from {cluster_name}: {plan.describe()}"
        yield from (
            f"  {kind}: {join_names([meta.name for meta in metas], 10)}" for kind, metas in _list_kinds(plan) if metas
        )
    yield from (f"  blocked: {blocker}" for blocker in plan.blockers)
    yield from (f"  kept: NodePool {name}, which is not Joiner's" for name in plan.foreign_pools)


def _list_kinds(plan: "RemovalPlan") -> tuple[tuple[str, Any], ...]:
    return ("NodePools", plan.pools), ("NodeClaims", plan.claims), ("nodes", plan.rows)


def _list_next_commands(reached: "ClusterConnection") -> Iterator[str]:
    from cli.cluster.eks_name import parse_eks_name  # noqa: PLC0415

    parsed_name = parse_eks_name(reached.cluster)
    cluster = parsed_name.name if parsed_name else "CLUSTER"
    yield f"npx cdk destroy -c cluster={cluster}"
    yield f"joiner audit --cluster {cluster}"


def _confirm_removal(cluster_name: str, args: argparse.Namespace) -> bool:
    """Ask for confirmation; without a terminal exit as after wrong usage."""
    if not sys.stdin.isatty():
        args.usage("no terminal to ask for confirmation: add --yes, or --dry-run to list what would be removed")
    sys.stderr.write(f"remove all of it from {cluster_name}? Type yes: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() == "yes"


def _print_progress(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _print_progress_to_terminal(line: str) -> None:
    """Write *line* to standard error if that is a terminal.

    Standard output is reserved for the JSON or YAML document.
    """
    if sys.stderr.isatty():
        sys.stderr.write(f"joiner uninstall: {line}\n")
