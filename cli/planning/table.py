"""A plan as a table."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from cli.planning.document import PlanResult
from cli.planning.totals import has_fixed_zone, render_notes, render_totals
from cli.planning.unschedulable import MAX_LISTED_PODS, render_unschedulable_pods
from cli.terminal.text import Palette, align_columns, compute_aligned_width, truncate_text, wrap_text
from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.core.resources import CPU, MEMORY
from shared.model.decisions.placement import NewNodeClaim

MAX_ROWS: Final = 15
"""Rows of a list, unless all are requested."""
_HEAD: Final = (
    "POOL",
    "TYPE",
    "ZONE",
    "CAPACITY",
    "NODES",
    "PODS EACH",
    "CPU",
    "MEMORY",
    "OR ANY OF",
    "$/H EACH",
    "$/H",
)
_LEFT_ALIGNED_COLUMNS: Final = 4
_DROPPABLE_COLUMNS: Final = (
    ("OR ANY OF", ""),
    ("$/H EACH", ""),
    ("PODS EACH", "PODS"),
    ("MEMORY", ""),
    ("CPU", ""),
    ("PODS", ""),
)
"""What a narrow terminal omits, in this order: columns, or a part of their headings."""
_MIN_NAME_WIDTH: Final = 8


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


def render_plan(planned: PlanResult, palette: Palette, table_options: TableOptions) -> str:
    """Render *planned* as text."""
    parts = (
        _render_summary(planned, table_options),
        _render_new_nodes(planned, palette, table_options),
        _render_existing_nodes(planned, palette, table_options),
        _render_left_out(planned, palette, table_options),
        render_totals(planned, palette, table_options.width),
        render_notes(planned, palette, table_options.width),
    )
    sections = [lines for part in parts if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in sections) + "\n"


def _render_summary(planned: PlanResult, table_options: TableOptions) -> Iterator[str]:
    pending_pods = planned.pods_on_new_nodes + planned.pods_on_existing_nodes + len(planned.unschedulable_pods)
    if not pending_pods:
        yield "no pod waits for a node"
        return
    new, existing = len(planned.placement.new_nodes), len(planned.placement.existing)
    placement_text = ", ".join(
        words
        for number, words in (
            (planned.pods_on_new_nodes, f"{planned.pods_on_new_nodes:,} on {format_count(new, 'new node')}"),
            (
                planned.pods_on_existing_nodes,
                f"{planned.pods_on_existing_nodes:,} on {format_count(existing, 'existing node')}",
            ),
            (len(planned.unschedulable_pods), f"{len(planned.unschedulable_pods):,} left out"),
        )
        if number
    )
    yield from wrap_text(
        f"{format_count(pending_pods, 'pod')} without a node: {placement_text}", table_options.width, ""
    )


def _render_new_nodes(planned: PlanResult, palette: Palette, table_options: TableOptions) -> Iterator[str]:
    """Yield lines, one for each kind of new node, most expensive first."""
    kinds: dict[tuple[str, ...], list[NewNodeClaim]] = {}
    for node in planned.placement.new_nodes:
        kinds.setdefault(_build_node_kind(node), []).append(node)
    if not kinds:
        return
    ranked = sorted(kinds.items(), key=lambda pair: (-_sum_prices(pair[1]), pair[0]))
    shown_groups = [same for _, same in ranked[: table_options.max_rows]]
    types = map_cheapest_types(planned.cluster, (same[0] for same in shown_groups))
    rows = _fit_rows([_HEAD, *(_build_row(same, types) for same in shown_groups)], table_options.width)
    head, *lines = align_columns(rows, left_columns=_LEFT_ALIGNED_COLUMNS)
    yield palette.colorize("bold", head)
    yield from lines
    omitted_nodes = [node for _, same in ranked[len(shown_groups) :] for node in same]
    if omitted_nodes:
        kinds_text = format_count(len(ranked) - len(shown_groups), "more kind")
        remainder_text = (
            f"{kinds_text}, {format_count(len(omitted_nodes), 'node')}, ${_sum_prices(omitted_nodes):.4f} per hour"
        )
        yield palette.colorize("dim", f"… and {remainder_text} (--all shows them)")


def _fit_rows(rows: list[tuple[str, ...]], width: int | None) -> list[tuple[str, ...]]:
    """Return *rows* without the columns that exceed *width*; if that is not enough, cut names."""
    for head, short in _DROPPABLE_COLUMNS:
        if width is None or compute_aligned_width(rows) <= width:
            return rows
        place = rows[0].index(head)
        if short:
            rows = [(*rows[0][:place], short, *rows[0][place + 1 :]), *rows[1:]]
        else:
            rows = [(*row[:place], *row[place + 1 :]) for row in rows]
    over = compute_aligned_width(rows) - (width or 0)
    longest = max(len(row[0]) for row in rows)
    return [(truncate_text(row[0], max(longest - max(over, 0), _MIN_NAME_WIDTH)), *row[1:]) for row in rows]


def _build_node_kind(node: NewNodeClaim) -> tuple[str, ...]:
    choice = node.cheapest
    return (node.node_pool, choice.instance_type, choice.zone, choice.capacity_type)


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


def _render_existing_nodes(planned: PlanResult, palette: Palette, table_options: TableOptions) -> Iterator[str]:
    fits = sorted(planned.placement.existing, key=lambda fit: (-len(fit.pods), fit.node))
    if not fits:
        return
    yield palette.colorize("bold", "EXISTING NODES")
    shown_fits = fits[: table_options.max_rows]
    rows = [
        (fit.node, format_count(len(fit.pods), "pod"), join_names(fit.pods, table_options.max_names))
        for fit in shown_fits
    ]
    yield from (truncate_text(f"  {line}", table_options.width) for line in align_columns(rows, left_columns=3))
    omitted_fits = fits[len(shown_fits) :]
    if omitted_fits:
        pods = format_count(sum(len(fit.pods) for fit in omitted_fits), "pod")
        yield palette.colorize(
            "dim", f"  … and {pods} on {format_count(len(omitted_fits), 'more node')} (--all shows them)"
        )


def _render_left_out(planned: PlanResult, palette: Palette, table_options: TableOptions) -> Iterator[str]:
    if planned.unschedulable_pods:
        yield palette.colorize("bold", "LEFT OUT")
        yield from render_unschedulable_pods(
            planned.unschedulable_pods,
            planned.index_pods_by_name(),
            palette,
            width=table_options.width,
            max_groups=table_options.max_rows,
        )


def map_cheapest_types(cluster: ClusterSnapshot, nodes: Iterable[NewNodeClaim]) -> dict[tuple[str, str], InstanceType]:
    """Return the cheapest type of each node by NodePool and type name, as the pool's node class offers it."""
    type_keys = {(node.node_pool, node.cheapest.instance_type) for node in nodes}
    node_pools = () if cluster.catalog is None else cluster.node_pools
    return {
        (pool.name, instance_type.name): instance_type
        for pool in node_pools
        for instance_type in (
            cluster.catalog.get_instance_types(pool.node_class.name, pool.name) if cluster.catalog is not None else ()
        )
        if (pool.name, instance_type.name) in type_keys
    }


def _sum_prices(nodes: Iterable[NewNodeClaim]) -> float:
    return sum(node.cheapest.price_usd_per_hour for node in nodes)


def _format_range(numbers: Iterable[int]) -> str:
    ordered = sorted(set(numbers))
    return str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]}-{ordered[-1]}"


def _format_percent(part: int, total: int) -> str:
    return f"{100 * part / total:.0f}%" if total else "-"
