"""`joiner status`: nodes, cost, pending pods and problems on one page."""

import argparse
import sys
import time
from typing import TYPE_CHECKING, Final, Literal, get_args

from cli.terminal.stderr import print_errors

if TYPE_CHECKING:
    from cli.facts.installation import Installation
    from cli.planning.cluster_source import PlanningInput, StatusReader
    from cli.terminal.refresh import DrawnPage, Viewport
    from shared.model.cluster import ClusterSnapshot

DESCRIPTION: Final = """Say in one page how the fleet is: nodes of each NodePool by state, what their pods request, what
they cost, how near the limits are, what people have paused, which pods wait and why, and which NodePools, node classes
and NodeClaims are in trouble. Of an EKS cluster it says also whether its installation acts or only plans, when its
functions last succeeded, and where its dashboard is. Nothing is written: a cluster and an account are only asked, files
read as they are."""
EXAMPLES: Final = """examples:
  joiner status                                  your current cluster, and Joiner in its account
  joiner status --context prod --no-account      the cluster only
  joiner status --context prod --watch           the same, every five seconds, until q or Ctrl-C
  joiner status -f cluster.json --instance-types catalogue.json -o json | jq '.pools[] | {name, usdPerHour}'

A function is late if it did not succeed for five minutes, and three times as long as it is called otherwise: CloudWatch
counts that. What cannot be looked at of the account is said, and changes no exit code.

Without a catalogue (--instance-types, or $JOINER_BUCKET_NAME for a live cluster) nothing has a price.

-o json and yaml: at, installation (null: not asked; stack, status (ABSENT, UNSEEN or CloudFormation's), why, acting
(active, paused, disruption-planned, planned), disruptionPaused, functions (name, lastSuccess, late), dashboard),
usdPerHour (null without prices), pods {running, waiting}, pools (name, nodes {ready, coming, going}, spot, onDemand,
reserved, cpu {requested, allocatable}, memory, usdPerHour, limits {resource: [used, limit]}, ready), others (nodes
without NodePool), paused (by people: nodePool, what, by, since, until, because), waiting (pod, why), trouble (kind,
name, what, why), notes (of kinds that the cluster does not know, and objects that nothing depends on).

-o prometheus: gauges in Prometheus' text format, by Karpenter's names where it has the same; docs/guide/metrics.md.

exit codes: 0 answered, 1 something could not be read (it is named), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml", "prometheus"]
INSTALL_HINT: Final = ": `npx cdk deploy` makes it (docs/guide/getting-started.md)"
REFRESH_INTERVAL_SECONDS: Final = 5.0
"""Interval of --watch if there is no terminal; `cli.terminal.refresh` has its own interval for terminals."""


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.facts.installation import add_account_arguments  # noqa: PLC0415 - the list of commands needs none of it
    from cli.planning.arguments import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_account_arguments(parser)
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--watch", action="store_true", help=f"look again every {REFRESH_INTERVAL_SECONDS:.0f} seconds")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal")
    parser.add_argument("--all", action="store_true", dest="is_whole", help="print long lists whole")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Print the status, with --watch repeatedly; return 1 if a source could not be read."""
    from cli.planning.cluster_source import (  # noqa: PLC0415 - --help needs none of it
        StatusReader,
        default_to_current_context,
    )
    from cli.terminal.text import is_terminal  # noqa: PLC0415

    if args.watch and (args.output != "table" or not default_to_current_context(args)):
        args.usage("--watch shows a live cluster as a table")
    default_to_current_context(args)
    args.no_account = args.no_account or args.output == "prometheus"  # which has no word for it
    read_status = StatusReader(args)
    if args.watch and is_terminal():
        from cli.terminal.refresh import watch  # noqa: PLC0415 - it knows terminals, which not every system has

        return watch(read_status, lambda status_input, view: _draw_screen(status_input, view, args))
    status = _print_status(read_status, args)
    while args.watch:
        time.sleep(REFRESH_INTERVAL_SECONDS)
        status = _print_status(read_status, args)
    return status


def _print_status(read_status: "StatusReader", args: argparse.Namespace) -> int:
    from cli.terminal.errors import InputError  # noqa: PLC0415 - --help needs none of it

    try:
        observation, cluster, installation = read_status()
    except InputError as error:
        return print_errors("status", [str(error)])
    sys.stdout.write(_render_output(observation, cluster, installation, args))
    sys.stdout.flush()
    return print_errors("status", _list_read_errors(observation, cluster))


def _list_read_errors(observation: "PlanningInput", cluster: "ClusterSnapshot") -> list[str]:
    """Return the errors of sources and objects that could not be read."""
    return [*observation.read_errors, *(observation.describe_problem(problem) for problem in cluster.problems)]


def _draw_screen(
    observation: "tuple[PlanningInput, ClusterSnapshot, Installation | None]",
    view: "Viewport",
    args: argparse.Namespace,
) -> "DrawnPage":
    """Return the visible lines and the last possible first line; read errors come last."""
    from cli.terminal.text import truncate_text  # noqa: PLC0415 - --help needs none of it

    planning_input, cluster, installation = observation
    lines = [
        *_render_output(planning_input, cluster, installation, args).splitlines(),
        *_list_read_errors(planning_input, cluster),
    ]
    last = max(0, len(lines) - view.lines)
    cut_lines = [truncate_text(line, view.columns) if "\x1b" not in line else line for line in lines]
    return cut_lines[min(view.first, last) :], last


def _render_output(
    planning_input: "PlanningInput",
    cluster: "ClusterSnapshot",
    installation: "Installation | None",
    args: argparse.Namespace,
) -> str:
    from cli.cluster.live_cluster import NOT_INSTALLED_TEXT  # noqa: PLC0415
    from cli.planning.table import TableOptions  # noqa: PLC0415
    from cli.status.page import build_status_document, render_status  # noqa: PLC0415
    from cli.status.summary import build_fleet_status  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415
    from shared.state.cluster_state import ClusterState  # noqa: PLC0415

    cluster_state = ClusterState(cluster)
    if args.output == "prometheus":
        from cli.status.prometheus import render_metrics  # noqa: PLC0415

        return render_metrics(cluster_state)
    fleet_status = build_fleet_status(cluster_state)
    if args.output != "table":
        return encode_output(
            build_status_document(fleet_status, installation) | {"notes": list(planning_input.notes)}, args.output
        )
    table_options = TableOptions(width=None if args.wide else get_terminal_width(sys.stdout), is_whole=args.is_whole)
    notes = "".join(
        f"note: {note}{INSTALL_HINT if NOT_INSTALLED_TEXT in note else ''}\n" for note in planning_input.notes
    )
    return render_status(fleet_status, installation, choose_palette(sys.stdout), table_options) + (
        f"\n{notes}" if notes else ""
    )
