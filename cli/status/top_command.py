"""`joiner top`: the nodes, most expensive first, refreshed."""

import argparse
from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from cli.facts.installation import Installation
    from cli.terminal.refresh import DrawnPage, Viewport
    from shared.model.cluster import ClusterSnapshot

DESCRIPTION: Final = """Show the nodes of NodePools, dearest first: what each costs, how much of it is requested, how it
is, and what keeps it from being removed; of an EKS cluster also that its installation only plans, or a function is
late. In a terminal it is refreshed until q or Ctrl-C; elsewhere, with --once or with files it is printed once. Nothing
is written: a cluster and an account are only asked."""
EXAMPLES: Final = """examples:
  joiner top                                     your current cluster; q leaves
  joiner top --context prod --nodepool batch --sort cpu --reverse        the emptiest nodes of one NodePool first
  joiner top --once --wide                       every column, whole, and leave
  joiner top -o json | jq '.nodes[] | select(.keptBy.reason == "PodBlocksEviction") | .node'
  joiner top -f cluster.json --instance-types catalogue.json

keys: $ price, c cpu, m memory, p pods, a age, n name, o NodePool, t type, s state, b what keeps it: sort by it, and
again: the other way round; arrows, j, k, page up and down, space: other rows; q: leave

Without a catalogue (--instance-types, or $JOINER_BUCKET_NAME for a live cluster) nothing has a price.

-o json and yaml: at, usdPerHour (null without prices), nodes: a list of node, nodePool, state (ready, coming, going,
not ready, drifted), instanceType, capacityType, zone, usdPerHour, cpu {requested, allocatable}, memory, pods (without
those of DaemonSets), ageSeconds, keptBy {reason, message} (null: nothing speaks against its removal).

exit codes: 0 answered, 1 something could not be read (it is named), 2 wrong usage, 130 interrupted
"""
Output = Literal["table", "json", "yaml"]
SORTS: Final = ("price", "cpu", "memory", "pods", "age", "name", "pool", "type", "state", "keeps")
SORT_BY_KEY: Final = dict(zip(("$", "c", "m", "p", "a", "n", "o", "t", "s", "b"), SORTS, strict=True))


def add_to(parser: argparse.ArgumentParser) -> None:
    """Add the command's description and arguments."""
    from cli.facts.installation import add_account_arguments  # noqa: PLC0415 - the list of commands needs none of it
    from cli.planning.arguments import add_sources  # noqa: PLC0415

    parser.description, parser.epilog = DESCRIPTION, EXAMPLES
    add_sources(parser)
    add_account_arguments(parser)
    parser.add_argument("--sort", choices=SORTS, default="price", help="what comes first (default: what costs most)")
    parser.add_argument("--reverse", action="store_true", help="the other way round")
    parser.add_argument(
        "--nodepool", action="append", default=[], metavar="NAME", help="only its nodes; may be given several times"
    )
    parser.add_argument("--once", action="store_true", help="print it and leave")
    parser.add_argument(
        "--every", type=_parse_seconds, default=5.0, metavar="SECONDS", help="between two looks (default: 5)"
    )
    parser.add_argument("-o", "--output", choices=get_args(Output), default="table", help="what is printed")
    parser.add_argument("--wide", action="store_true", help="cut nothing, however narrow the terminal; with --once")
    parser.set_defaults(run=run, usage=parser.error, assume_unschedulable=None)


def run(args: argparse.Namespace) -> int:
    """Show the nodes; return 1 if a source could not be read."""
    from cli.planning.cluster_source import (  # noqa: PLC0415 - --help needs none of it
        StatusReader,
        default_to_current_context,
    )
    from cli.terminal.text import is_terminal  # noqa: PLC0415

    default_to_current_context(args)
    once = args.once or args.wide or args.filename or args.output != "table"
    if once or not is_terminal():
        return _print_nodes(args)
    from cli.terminal.refresh import watch  # noqa: PLC0415 - it knows terminals, which not every system has

    read_status = StatusReader(args)
    return watch(
        lambda: read_status()[1:], lambda cluster_input, view: _draw_screen(*cluster_input, view, args), args.every
    )


def _print_nodes(args: argparse.Namespace) -> int:
    import sys  # noqa: PLC0415 - --help needs none of it

    from cli.planning.cluster_source import StatusReader  # noqa: PLC0415
    from cli.status.node_rows import build_node_rows, sort_node_rows  # noqa: PLC0415
    from cli.status.top_page import build_top_document, render_top  # noqa: PLC0415
    from cli.terminal.errors import InputError  # noqa: PLC0415
    from cli.terminal.output_format import encode_output  # noqa: PLC0415
    from cli.terminal.stderr import print_errors  # noqa: PLC0415
    from cli.terminal.text import choose_palette, get_terminal_width  # noqa: PLC0415
    from shared.state.cluster_state import ClusterState  # noqa: PLC0415

    try:
        planning_input, cluster, installation = StatusReader(args)()
    except InputError as error:
        return print_errors("top", [str(error)])
    rows = sort_node_rows(
        build_node_rows(ClusterState(cluster), args.nodepool, installation.settings if installation else None),
        args.sort,
        is_reversed=args.reverse,
    )
    if args.output == "table":
        width = None if args.wide else get_terminal_width(sys.stdout)
        sys.stdout.write("\n".join(render_top(cluster, installation, rows, choose_palette(sys.stdout), width)) + "\n")
    else:
        sys.stdout.write(encode_output(build_top_document(cluster, rows), args.output))
    unknown = sorted(set(args.nodepool) - {node_pool.name for node_pool in cluster.node_pools})
    errors = [f"NodePool {name}: there is none" for name in unknown]
    return print_errors(
        "top",
        [
            *errors,
            *planning_input.read_errors,
            *(planning_input.describe_problem(problem) for problem in cluster.problems),
        ],
    )


def _draw_screen(
    cluster: "ClusterSnapshot", installation: "Installation | None", view: "Viewport", args: argparse.Namespace
) -> "DrawnPage":
    """Return as many lines as fit: the heading, part of the rows, and the keys; and the last possible first row."""
    import sys  # noqa: PLC0415 - --help needs none of it

    from cli.status.node_rows import build_node_rows, sort_node_rows  # noqa: PLC0415
    from cli.status.top_page import render_top  # noqa: PLC0415
    from cli.terminal.text import choose_palette, truncate_text  # noqa: PLC0415
    from shared.state.cluster_state import ClusterState  # noqa: PLC0415

    sort, is_reversed = _compute_order(args, view.keys)
    rows = sort_node_rows(
        build_node_rows(ClusterState(cluster), args.nodepool, installation.settings if installation else None),
        sort,
        is_reversed=is_reversed,
    )
    palette = choose_palette(sys.stdout)
    all_lines = render_top(cluster, installation, rows, palette, view.columns)
    head, body = all_lines[: len(all_lines) - len(rows)], all_lines[len(all_lines) - len(rows) :]
    row_capacity = max(view.lines - len(head) - 1, 1)
    last = max(0, len(body) - row_capacity)
    first = min(view.first, last)
    shown_rows = body[first : first + row_capacity]
    position = f"{first + 1}-{first + len(shown_rows)} of {len(body)}" if body else "none"
    order = f"{sort}{' reversed' if is_reversed else ''}"
    footer = f"{position} by {order} · sort $ c m p a n o t s b · move ↑ ↓ space · q quits"
    return [
        *head,
        *shown_rows,
        *[""] * (row_capacity - len(shown_rows)),
        palette.colorize("dim", truncate_text(footer, view.columns)),
    ], last


def _compute_order(args: argparse.Namespace, keys: tuple[str, ...]) -> tuple[str, bool]:
    """Return the sort column, and whether the order is reversed, after *keys* were pressed."""
    sort, is_reversed = args.sort, args.reverse
    for key in keys:
        new_sort = SORT_BY_KEY.get(key, sort)
        is_reversed = not is_reversed if key in SORT_BY_KEY and new_sort == sort else is_reversed and new_sort == sort
        sort = new_sort
    return sort, is_reversed


def _parse_seconds(text: str) -> float:
    try:
        parsed_seconds = float(text)
    except ValueError:
        parsed_seconds = 0.0
    if not 1 <= parsed_seconds <= 3600:  # noqa: PLR2004 - a second, an hour
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to 3600")
    return parsed_seconds
