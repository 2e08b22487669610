"""A plan as a table."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from cli.planning.document import PlanResult
from cli.planning.totals import has_fixed_zone, render_notes, render_totals
from cli.planning.unschedulable import MAX_LISTED_PODS, render_unschedulable_pods
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, get_terminal_width, wrap_text
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_usd_per_hour, join_names
from shared.model.core.resources import CPU, MEMORY
from shared.model.decisions.placement import NewNodeClaim

MAX_ROWS: Final = 15
"""Rows of a list, unless all are requested."""
_NEW_NODES: Final = TableLayout(
    headings=(
        *("NODEPOOL", "TYPE", "ZONE", "CAPACITY"),
        *("NODES", "PODS/NODE", "CPU", "MEMORY", "MATCHING TYPES", "$/H/NODE", "$/H"),
    ),
    alignment="~<<<>>>>>>>",
    min_flexible_width=40,
    droppable=("MATCHING TYPES", "$/H/NODE", "MEMORY", "CPU", "PODS/NODE"),
)
_EXISTING_NODES: Final = TableLayout(alignment="<<~", is_folded=True, min_flexible_width=40, indent=2)


class TableOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The width of the output, and how many rows and names to print."""

    width: int | None = None
    """Columns of the terminal; None: no limit, nothing is cut."""
    is_whole: bool = False
    """Whether to print every row and every name."""

    @property
    def max_rows(self) -> int | None:
        """The maximum number of rows of a list; None: no limit."""
        return None if self.is_whole else MAX_ROWS

    @property
    def max_names(self) -> int | None:
        """The maximum number of names in a row; None: no limit."""
        return None if self.is_whole else MAX_LISTED_PODS


def choose_table_options(args: argparse.Namespace) -> TableOptions:
    """Return the layout for standard output that --wide and --all select."""
    return TableOptions(width=None if args.wide else get_terminal_width(sys.stdout), is_whole=args.is_whole)


def render_plan(plan: PlanResult, palette: Palette, layout: TableOptions) -> str:
    """Render *plan* as text."""
    parts = (
        _render_summary(plan, layout),
        _render_new_nodes(plan, palette, layout),
        _render_existing_nodes(plan, palette, layout),
        _render_unschedulable(plan, palette, layout),
        render_totals(plan, palette, layout.width),
        render_notes(plan, palette, layout.width),
    )
    sections = [lines for part in parts if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _render_summary(plan: PlanResult, layout: TableOptions) -> Iterator[str]:
    pending_pods = plan.pods_on_new_nodes + plan.pods_on_existing_nodes + len(plan.unschedulable_pods)
    if not pending_pods:
        yield "no pending pods"
        return
    counts = (
        (plan.pods_on_new_nodes, f"on {format_count(len(plan.placement.new_nodes), 'new node')}"),
        (plan.pods_on_existing_nodes, f"on {format_count(len(plan.placement.existing), 'existing node')}"),
        (len(plan.unschedulable_pods), "unschedulable"),
    )
    parts = ", ".join(f"{number:,} {words}" for number, words in counts if number)
    yield from wrap_text(f"{format_count(pending_pods, 'pending pod')}: {parts}", layout.width, "")


def _render_new_nodes(plan: PlanResult, palette: Palette, layout: TableOptions) -> Iterator[str]:
    """Yield lines, one for each kind of new node, most expensive first."""
    if not plan.placement.new_nodes:
        return
    kinds: dict[tuple[str, ...], list[NewNodeClaim]] = {}
    for node in plan.placement.new_nodes:
        offering = node.cheapest
        kind = (node.node_pool, offering.instance_type, offering.zone, offering.capacity_type)
        kinds.setdefault(kind, []).append(node)
    ranked = sorted(kinds.items(), key=lambda pair: (-_sum_prices(pair[1]), pair[0]))
    shown_groups = [same for _, same in ranked[: layout.max_rows]]
    types = map_cheapest_types(plan.cluster, (same[0] for same in shown_groups))
    rows = [_build_row(same, types) for same in shown_groups]
    yield from render_table(_NEW_NODES, rows, palette, layout.width)
    if omitted_nodes := [node for _, same in ranked[len(shown_groups) :] for node in same]:
        rows_text = format_count(len(ranked) - len(shown_groups), "more row")
        total_text = f"{format_count(len(omitted_nodes), 'node')}, {format_usd_per_hour(_sum_prices(omitted_nodes))}"
        yield palette.colorize("dim", f"… and {rows_text}: {total_text} (--all shows them)")


def _build_row(equal_nodes: list[NewNodeClaim], types: Mapping[tuple[str, str], InstanceType]) -> tuple[str, ...]:
    choice = equal_nodes[0].cheapest
    allocatable = types[equal_nodes[0].node_pool, choice.instance_type].allocatable
    # The zone is certain only if the node can be in no other zone.
    zone = choice.zone if all(has_fixed_zone(node) for node in equal_nodes) else f"{choice.zone}*"
    return (
        equal_nodes[0].node_pool,
        choice.instance_type,
        zone,
        choice.capacity_type,
        str(len(equal_nodes)),
        _format_range(len(node.pods) for node in equal_nodes),
        *(
            _format_percent(sum(node.requests[name] for node in equal_nodes), allocatable[name] * len(equal_nodes))
            for name in (CPU, MEMORY)
        ),
        _format_range(len(node.instance_types) for node in equal_nodes),
        f"{choice.price_usd_per_hour:.4f}",
        f"{_sum_prices(equal_nodes):.4f}",
    )


def _render_existing_nodes(plan: PlanResult, palette: Palette, layout: TableOptions) -> Iterator[str]:
    fits = sorted(plan.placement.existing, key=lambda fit: (-len(fit.pods), fit.node))
    if not fits:
        return
    yield palette.colorize("bold", "EXISTING NODES")
    shown_fits = fits[: layout.max_rows]
    rows = [
        (fit.node, format_count(len(fit.pods), "pod"), join_names(fit.pods, layout.max_names)) for fit in shown_fits
    ]
    yield from render_table(_EXISTING_NODES, rows, palette, layout.width)
    if omitted_fits := fits[len(shown_fits) :]:
        pods_text = format_count(sum(len(fit.pods) for fit in omitted_fits), "pod")
        nodes_text = format_count(len(omitted_fits), "more node")
        yield palette.colorize("dim", f"  … and {pods_text} on {nodes_text} (--all shows them)")


def _render_unschedulable(plan: PlanResult, palette: Palette, layout: TableOptions) -> Iterator[str]:
    if plan.unschedulable_pods:
        yield palette.colorize("bold", "UNSCHEDULABLE")
        yield from render_unschedulable_pods(
            plan.unschedulable_pods,
            plan.index_pods_by_name(),
            palette,
            width=layout.width,
            max_groups=layout.max_rows,
        )


def map_cheapest_types(cluster: ClusterSnapshot, nodes: Iterable[NewNodeClaim]) -> dict[tuple[str, str], InstanceType]:
    """Return the cheapest type of each node by NodePool and type name, as the pool's node class offers it."""
    if cluster.catalog is None:
        return {}
    type_keys = {(node.node_pool, node.cheapest.instance_type) for node in nodes}
    return {
        (pool.name, instance_type.name): instance_type
        for pool in cluster.node_pools
        for instance_type in cluster.catalog.get_instance_types(pool.node_class.name, pool.name)
        if (pool.name, instance_type.name) in type_keys
    }


def _sum_prices(nodes: Iterable[NewNodeClaim]) -> float:
    return sum(node.cheapest.price_usd_per_hour for node in nodes)


def _format_range(numbers: Iterable[int]) -> str:
    ordered = sorted(set(numbers))
    return str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]}-{ordered[-1]}"


def _format_percent(part: int, total: int) -> str:
    return f"{100 * part / total:.0f}%" if total else "-"
