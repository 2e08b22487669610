"""A pod's verdict as text."""

from collections.abc import Iterator
from typing import Final

from cli.plan.pod_verdict import PodVerdict, format_choice
from cli.planning.table import TableOptions
from cli.planning.unschedulable import format_pools
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, wrap_text
from shared.model.core.formatting import format_count, join_names

_CONSTRAINTS: Final = TableLayout(alignment="<~", is_folded=True, min_flexible_width=20, indent=2)
_INDENT: Final = " " * 12
_MAX_TYPES: Final = 5
_MAX_VALUES: Final = 6


def render_pod_verdict(verdict: PodVerdict, palette: Palette, layout: TableOptions) -> str:
    """Render *verdict* as text."""
    lines = [palette.colorize("bold", f"pod {verdict.pod}") + (f" ({verdict.workload})" if verdict.workload else "")]
    if verdict.requests:
        requests = ", ".join(f"{amount} {name}" for name, amount in verdict.requests.items())
        lines += _render_entry("requests", requests, layout)
    lines += _render_placement(verdict, palette, layout)
    if verdict.constraints:
        lines += ["constraints, and what sets them", *_render_constraints(verdict, layout)]
    if verdict.kind == "NewNode" and verdict.pool_messages:
        lines += ["other NodePools", *_render_pools(verdict, layout)]
    for constraint in verdict.undecided:
        lines += _render_entry("at launch", constraint, layout)
    return "\n".join(lines) + "\n"


def _render_entry(title: str, words: str, layout: TableOptions) -> list[str]:
    """Return *words* after *title*, with further lines indented below."""
    first, *more_lines = wrap_text(words, layout.width, _INDENT, "")
    return [f"{title:<12}{first.lstrip()}", *more_lines]


def _render_placement(verdict: PodVerdict, palette: Palette, layout: TableOptions) -> Iterator[str]:
    match verdict.kind:
        case "NewNode":
            node = (
                f"{verdict.node}, a new node of NodePool {verdict.node_pool}, {_describe_other_pods(verdict, layout)}"
            )
            yield from _render_entry("node", node, layout)
            if verdict.offering is not None:
                count = format_count(len(verdict.instance_types), "instance type")
                types = join_names(verdict.instance_types, None if layout.is_whole else _MAX_TYPES)
                rank = f"cheapest of {count} ({types})" if len(verdict.instance_types) > 1 else "the only instance type"
                yield from _render_entry("offering", f"{format_choice(verdict.offering)}: {rank}", layout)
            steps = " → ".join(f"{number:,} {step}" for step, number in verdict.type_funnel)
            yield from _render_entry("types", steps, layout)
        case "ExistingNode":
            node = f"{verdict.node}, an existing or in-flight node, {_describe_other_pods(verdict, layout)}"
            yield from _render_entry("node", node, layout)
            yield from _render_entry("cost", f"no additional cost{_describe_price(verdict)}", layout)
        case "NotPending":
            yield from _render_entry("not planned", verdict.reason, layout)
        case _:
            yield palette.colorize("yellow", f"unschedulable: {verdict.reason}")
            yield from _render_pools(verdict, layout)


def _describe_other_pods(verdict: PodVerdict, layout: TableOptions) -> str:
    parts = []
    if verdict.other_pods:
        count = format_count(len(verdict.other_pods), "other pending pod")
        parts.append(f"{count} ({join_names(verdict.other_pods, layout.max_names)})")
    if verdict.daemon_pods:
        parts.append(format_count(verdict.daemon_pods, "daemon pod"))
    return f"with {' and '.join(parts)}" if parts else "without other pending pods"


def _describe_price(verdict: PodVerdict) -> str:
    if verdict.offering is None:
        return ""
    has_price = verdict.offering.price_usd_per_hour > 0
    return f": the node is {format_choice(verdict.offering) if has_price else verdict.offering.instance_type}"


def _render_constraints(verdict: PodVerdict, layout: TableOptions) -> Iterator[str]:
    rows = []
    for constraint in verdict.constraints:
        requirement, text = constraint.requirement, ""
        if isinstance(values := requirement.get("values"), list):
            text = f" [{join_names(map(str, values), None if layout.is_whole else _MAX_VALUES)}]"
        sources = " and ".join(constraint.sources)
        rows.append((f"{requirement['key']} {requirement['operator']}{text}", sources))
    yield from render_table(_CONSTRAINTS, rows, Palette(enabled=False), layout.width)


def _render_pools(verdict: PodVerdict, layout: TableOptions) -> Iterator[str]:
    for pools, words in verdict.pool_messages:
        prefix = format_pools(pools.split(", "), layout.max_names) if pools else ""
        yield from wrap_text(prefix + words, layout.width, "  ")
