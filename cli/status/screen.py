"""The status and the node table: printed once, or refreshed on the terminal."""

import argparse
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from cli.cluster.live_cluster import NOT_INSTALLED_TEXT
from cli.facts.installation import Installation
from cli.inputs.environment import read_environment_settings
from cli.planning.cluster_source import PlanningInput, StatusReader, default_to_current_context
from cli.planning.table import TableOptions
from cli.status.node_rows import NodeRow, build_node_rows, filter_node_rows, sort_node_rows
from cli.status.order import SORT_BY_KEY
from cli.status.page import build_status_document, render_status
from cli.status.prometheus.text_format import render_metrics
from cli.status.summary import build_fleet_status
from cli.status.top_page import build_top_document, render_top
from cli.terminal.errors import InputError
from cli.terminal.output_format import encode_output
from cli.terminal.stderr import print_errors
from cli.terminal.text import choose_palette, get_terminal_width, is_terminal
from shared.cycles.setup.options_from_settings import build_money_policy
from shared.model.cluster import ClusterSnapshot
from shared.model.karpenter.money_limit import MoneyPolicy
from shared.state.cluster_state import ClusterState

if TYPE_CHECKING:
    from cli.terminal.refresh import DrawnPage, Viewport

Observation: TypeAlias = tuple[PlanningInput, ClusterSnapshot, Installation | None]
INSTALL_HINT: Final = ": `npx cdk deploy` installs it (docs/guide/getting-started.md)"
_MIN_LINES_WITH_FLEET_BARS: Final = 12
"""In a smaller terminal, the nodes need the lines."""
REFRESH_INTERVAL_SECONDS: Final = 5.0
"""Interval of `status --watch` if there is no terminal; `cli.terminal.refresh` has its own interval for terminals."""


def show_status(args: argparse.Namespace) -> int:
    """Print the status, with --watch repeatedly; return 1 if a source could not be read."""
    if args.watch and (args.output != "table" or not default_to_current_context(args)):
        args.usage("--watch requires a live cluster and -o table")
    default_to_current_context(args)
    args.no_account = args.no_account or args.output == "prometheus"  # there are no metrics of the installation
    read_status = StatusReader(args)
    if args.watch and is_terminal():
        from cli.terminal.refresh import watch  # noqa: PLC0415 - it knows terminals, which not every system has

        return watch(read_status, partial(draw_status, args))
    status = _print_observation(read_status, args)
    while args.watch:
        time.sleep(REFRESH_INTERVAL_SECONDS)
        status = _print_observation(read_status, args)
    return status


def show_nodes(args: argparse.Namespace) -> int:
    """Show the nodes of NodePools; return 1 if a source could not be read."""
    default_to_current_context(args)
    read_status = StatusReader(args)
    is_printed_once = args.once or args.wide or args.filename or args.output != "table"
    if is_printed_once or not is_terminal():
        return _print_observation(read_status, args)
    from cli.terminal.refresh import watch  # noqa: PLC0415 - it knows terminals, which not every system has

    return watch(read_status, partial(draw_nodes, args), args.every)


def _print_observation(read_status: StatusReader, args: argparse.Namespace) -> int:
    try:
        observation = read_status()
    except InputError as error:
        return print_errors(args.command, [str(error)])
    errors = _list_read_errors(observation)
    if args.command == "top":
        sys.stdout.write(_render_nodes(observation, args))
        pools = {node_pool.name for node_pool in observation[1].node_pools}
        errors = [*(f"NodePool {name} not found" for name in sorted(set(args.nodepool) - pools)), *errors]
    else:
        sys.stdout.write(_render_status(observation, args))
    sys.stdout.flush()
    return print_errors(args.command, errors)


def _list_read_errors(observation: Observation) -> list[str]:
    """Return the errors of sources and objects that could not be read."""
    planning_input, cluster, _ = observation
    return [*planning_input.read_errors, *map(planning_input.describe_problem, cluster.problems)]


def _render_status(observation: Observation, args: argparse.Namespace, *, has_bars: bool = False) -> str:
    planning_input, cluster, installation = observation
    cluster_state = ClusterState(cluster)
    money = _read_money_policy(args, installation)
    if args.output == "prometheus":
        return render_metrics(cluster_state, money, "nodes")
    fleet_status = build_fleet_status(cluster_state, money)
    if args.output != "table":
        document = build_status_document(fleet_status, installation) | {"notes": list(planning_input.notes)}
        return encode_output(document, args.output)
    table_options = TableOptions(width=None if args.wide else get_terminal_width(sys.stdout), is_whole=args.is_whole)
    notes = [f"note: {note}{INSTALL_HINT if NOT_INSTALLED_TEXT in note else ''}\n" for note in planning_input.notes]
    page = render_status(fleet_status, installation, choose_palette(sys.stdout), table_options, has_bars=has_bars)
    return "".join([page, *(["\n"] if notes else []), *notes])


def _read_money_policy(args: argparse.Namespace, installation: Installation | None) -> MoneyPolicy:
    """Return the limit of the cluster in USD per hour: of the installation, else from the environment."""
    if installation is not None and installation.settings is not None:
        return build_money_policy(installation.settings)
    try:
        return build_money_policy(read_environment_settings())
    except ValueError as error:
        args.usage(str(error))
        raise AssertionError("argparse has left") from error


def draw_status(args: argparse.Namespace, observation: Observation, view: "Viewport") -> "DrawnPage":
    """Return the visible lines and the last possible first line; read errors come last."""
    lines = [*_render_status(observation, args, has_bars=True).splitlines(), *_list_read_errors(observation)]
    last = max(0, len(lines) - view.lines)
    return lines[min(view.first, last) :], last


def _render_nodes(observation: Observation, args: argparse.Namespace) -> str:
    _, cluster, installation = observation
    rows = _build_rows(observation, args, args.sort, is_reversed=args.reverse, filter_text=args.filter)
    if args.output != "table":
        return encode_output(build_top_document(cluster, rows), args.output)
    width = None if args.wide else get_terminal_width(sys.stdout)
    palette, has_bars = choose_palette(sys.stdout), sys.stdout.isatty() and width is not None
    return (
        "\n".join(render_top(cluster, installation, rows, palette, width, has_bars=has_bars, has_fleet_bars=has_bars))
        + "\n"
    )


def _build_rows(
    observation: Observation, args: argparse.Namespace, sort: str, *, is_reversed: bool, filter_text: str
) -> list[NodeRow]:
    _, cluster, installation = observation
    rows = build_node_rows(ClusterState(cluster), args.nodepool, installation.settings if installation else None)
    return sort_node_rows(filter_node_rows(rows, filter_text), sort, is_reversed=is_reversed)


def draw_nodes(args: argparse.Namespace, observation: Observation, view: "Viewport") -> "DrawnPage":
    """Return as many lines as fit: the heading, part of the rows, and the keys; and the last possible first row."""
    _, cluster, installation = observation
    sort, is_reversed = compute_order(args, view.keys)
    filter_text = args.filter if view.filter_text is None else view.filter_text
    rows = _build_rows(observation, args, sort, is_reversed=is_reversed, filter_text=filter_text)
    palette = choose_palette(sys.stdout)
    render = partial(
        render_top,
        *(cluster, installation, rows, palette, view.columns),
        has_bars=True,
        has_fleet_bars=view.lines >= _MIN_LINES_WITH_FLEET_BARS,
    )
    head = render(shown_rows=slice(0))
    row_capacity = max(view.lines - len(head) - 1, 1)
    last = max(0, len(rows) - row_capacity)
    first = min(view.first, last)
    shown_rows = slice(first, first + row_capacity)
    lines = render(shown_rows=shown_rows)
    shown_count = len(rows[shown_rows])
    position = f"{first + 1}-{first + shown_count} of {len(rows)}" if rows else "none"
    order = f"{sort}{' reversed' if is_reversed else ''}"
    footer = f"{position} by {order} · sort $ c m p a n o t s b · filter / · move ↑ ↓ · quit q"
    if view.is_typing:
        footer = f"filter: {filter_text}_  (Enter keeps it, Esc clears it)"
    elif filter_text:
        footer = f"{position} by {order}, filter: {filter_text} · change / · clear Esc · quit q"
    padding = [""] * (row_capacity - shown_count)
    return [*lines, *padding, palette.colorize("dim", footer)], last


def compute_order(args: argparse.Namespace, keys: tuple[str, ...]) -> tuple[str, bool]:
    """Return the sort column, and whether the order is reversed, after *keys* were pressed."""
    sort, is_reversed = args.sort, args.reverse
    for key in keys:
        new_sort = SORT_BY_KEY.get(key, sort)
        is_reversed = not is_reversed if key in SORT_BY_KEY and new_sort == sort else is_reversed and new_sort == sort
        sort = new_sort
    return sort, is_reversed
