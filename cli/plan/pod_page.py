"""A pod's verdict as text."""

from collections.abc import Iterator

from cli.plan.pod_verdict import PodVerdict, format_choice
from cli.planning.table import TableOptions
from cli.terminal.text import Palette, align_columns, wrap_text
from shared.model.core.formatting import format_count, join_names

_INDENT = " " * 12


def render_pod_verdict(verdict: PodVerdict, palette: Palette, table_options: TableOptions) -> str:
    """Render *verdict* as text."""
    lines = [palette.colorize("bold", f"pod {verdict.pod}") + (f", of {verdict.workload}" if verdict.workload else "")]
    if verdict.requests:
        lines += _render_entry(
            "asks for", ", ".join(f"{amount} {name}" for name, amount in verdict.requests.items()), table_options
        )
    lines += _render_placement(verdict, palette, table_options)
    if verdict.constraints:
        lines += ["constrained by", *_render_constraints(verdict, table_options)]
    if verdict.kind == "NewNode" and verdict.pool_messages:
        lines += ["other pools", *_render_pools(verdict, table_options)]
    for undecided_item in verdict.undecided:
        lines += _render_entry("open", undecided_item, table_options)
    return "\n".join(lines) + "\n"


def _render_entry(title: str, words: str, table_options: TableOptions) -> list[str]:
    """Return *words* after *title*, with further lines indented below."""
    first, *more_lines = wrap_text(words, table_options.width, _INDENT, "")
    return [f"{title:<12}{first.lstrip()}", *more_lines]


def _render_placement(verdict: PodVerdict, palette: Palette, table_options: TableOptions) -> Iterator[str]:
    match verdict.kind:
        case "NewNode":
            other_pods = _describe_other_pods(verdict, table_options)
            yield from _render_entry(
                "goes to", f"{verdict.node}, a new node of pool {verdict.node_pool}, {other_pods}", table_options
            )
            if verdict.offering is not None:
                types = join_names(verdict.instance_types, None if table_options.is_whole else 5)
                number = len(verdict.instance_types)
                rank = (
                    f"the cheapest of {format_count(number, 'type')} ({types})"
                    if number > 1
                    else "the only type that is left"
                )
                yield from _render_entry("bought as", f"{format_choice(verdict.offering)}: {rank}", table_options)
            steps = " → ".join(f"{number:,} {step}" for step, number in verdict.type_funnel)
            yield from _render_entry("types", steps, table_options)
        case "ExistingNode":
            yield from _render_entry(
                "goes to",
                f"{verdict.node}, a node that is there or on its way, {_describe_other_pods(verdict, table_options)}",
                table_options,
            )
            yield from _render_entry("costs", "nothing more" + _describe_price(verdict), table_options)
        case "NotWaiting":
            yield from _render_entry("no plan", verdict.reason, table_options)
        case _:
            yield palette.colorize("yellow", f"goes nowhere: {verdict.reason}")
            yield from _render_pools(verdict, table_options)


def _describe_other_pods(verdict: PodVerdict, table_options: TableOptions) -> str:
    other_pods = (
        format_count(len(verdict.other_pods), "other pod")
        + f" ({join_names(verdict.other_pods, table_options.max_names)})"
        if verdict.other_pods
        else ""
    )
    daemons = format_count(verdict.daemon_pods, "daemon pod") if verdict.daemon_pods else ""
    company = " and ".join(filter(None, (other_pods, daemons)))
    return f"with {company}" if company else "alone"


def _describe_price(verdict: PodVerdict) -> str:
    if verdict.offering is None:
        return ""
    price_usd_per_hour = verdict.offering.price_usd_per_hour
    priced = format_choice(verdict.offering) if price_usd_per_hour else verdict.offering.instance_type
    return f": the node ({priced}) is paid for"


def _render_constraints(verdict: PodVerdict, table_options: TableOptions) -> Iterator[str]:
    rows = []
    for constraint in verdict.constraints:
        values = constraint.requirement.get("values")
        listed = (
            f" [{join_names([str(value) for value in values], None if table_options.is_whole else 6)}]"
            if isinstance(values, list)
            else ""
        )
        rows.append(
            (
                f"  {constraint.requirement['key']} {constraint.requirement['operator']}{listed}",
                " and ".join(constraint.sources),
            )
        )
    for (requirement_text, sources), line in zip(rows, align_columns(rows, left_columns=2), strict=True):
        if table_options.width is None or len(line) <= table_options.width:
            yield line
        else:
            yield from wrap_text(requirement_text.strip(), table_options.width, "  ")
            yield from wrap_text(sources, table_options.width, " " * 6)


def _render_pools(verdict: PodVerdict, table_options: TableOptions) -> Iterator[str]:
    for pools, words in verdict.pool_messages:
        names = pools.split(", ") if pools else []
        prefix = (
            f"{'pool' if len(names) == 1 else 'pools'} {join_names(names, table_options.max_names)}: " if names else ""
        )
        yield from wrap_text(prefix + words, table_options.width, "  ")
