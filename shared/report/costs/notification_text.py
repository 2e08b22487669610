"""Text of the daily cost notification: the output of `joiner cost` as an e-mail."""

from collections.abc import Iterator
from typing import Final

from shared.model.core.formatting import format_count, format_usd
from shared.report.costs.cost_breakdown import CostBreakdown, compute_breakdown
from shared.report.costs.daily_report import DailyReport, is_complete

MAX_LINES_PER_SECTION: Final = 10
"""Lines of each breakdown, most expensive first."""
MAX_LISTED_NODES: Final = 5
MAX_USD_WITH_CENTS: Final = 1_000
"""USD; larger amounts have no cents, because a subject is short."""
SECTION_TITLES: Final = {"pool": "By NodePool", "type": "By instance type", "capacity-type": "By capacity type"}


def format_subject(report: DailyReport) -> str:
    """Return the subject of the message, shorter than 100 characters for every cluster name."""
    amount = f"{report.usd:,.2f}" if report.usd < MAX_USD_WITH_CENTS else f"{report.usd:,.0f}"
    return f"Joiner: {report.cluster} cost ${amount} on {report.day}"


def format_message(report: DailyReport, previous: DailyReport | None) -> str:
    """Return the message about the day of *report*, and how it differs from *previous*, None if there is no report."""
    complete_previous = previous if previous is not None and is_complete(report) and is_complete(previous) else None
    titles = SECTION_TITLES | ({"label": f"By {report.label}"} if report.label else {})
    blocks = [
        _format_summary(report, previous),
        *(_format_breakdown(title, by, report, complete_previous) for by, title in titles.items()),
        _format_expensive_nodes(report),
    ]
    hint = f"For more, run: joiner cost --days 7 --by type. Data: costs/{report.day}.json in the bucket of the stack."
    return "\n\n".join("\n".join(lines) for block in blocks if (lines := list(block))) + f"\n\n{hint}\n"


def _format_summary(report: DailyReport, previous: DailyReport | None) -> Iterator[str]:
    yield (
        f"The nodes of {report.cluster} cost {format_usd(report.usd)} on {report.day} (UTC), "
        f"for {report.node_hours:,.0f} node hours."
    )
    yield _format_change(report, previous)
    yield f"Spot saved {format_usd(report.saved_by_spot_usd)}, compared with on-demand prices."
    commands = format_count(report.commands, "disruption command")
    yield f"{commands} saved {format_usd(report.saved_by_commands_usd)} until the end of the day."
    yield (
        f"{format_usd(report.idle_usd)}{_format_percent(report.idle_usd, report.usd)} was for "
        "capacity that no pod requested."
    )
    if unpriced := sum(share.unpriced_hours for share in report.shares):
        yield f"{unpriced:,.1f} node hours have no known price and are not included in the cost."


def _format_change(report: DailyReport, previous: DailyReport | None) -> str:
    if not is_complete(report):
        return f"The report covers only {report.since:%H:%M} to {report.until:%H:%M}."
    if previous is None:
        return "There is no report for the previous day."
    if not is_complete(previous):
        period = f"{previous.since:%H:%M} to {previous.until:%H:%M}"
        return f"The report of the previous day ({format_usd(previous.usd)}) covers only {period}."
    change = report.usd - previous.usd
    if not round(change, 2):
        return "The cost is the same as on the previous day."
    direction = "more" if change > 0 else "less"
    change_text = f"{format_usd(abs(change))}{_format_percent(abs(change), previous.usd)}"
    return f"That is {change_text} {direction} than on the previous day."


def _format_breakdown(title: str, grouping: str, report: DailyReport, previous: DailyReport | None) -> Iterator[str]:
    """Yield the costs of *report* by *grouping*, most expensive first, with the change to *previous*.

    Groups that had costs only in *previous* are listed too.
    """
    current_parts, previous_parts = (
        compute_breakdown((report,), grouping),
        compute_breakdown((previous,), grouping) if previous is not None else (),
    )
    earlier, names = {part.name: part for part in previous_parts}, {part.name for part in current_parts}
    removed = [part for part in previous_parts if part.name not in names]
    yield title
    for part in current_parts[:MAX_LINES_PER_SECTION]:
        change = "" if previous is None else f", {_format_usd_change(part.usd - _get_usd(earlier.get(part.name)))}"
        yield f"  {part.name or '(none)'}: {format_usd(part.usd)}{_format_percent(part.usd, report.usd)}{change}"
    if remaining := current_parts[MAX_LINES_PER_SECTION:]:
        yield f"  {len(remaining):,} more: {format_usd(sum(part.usd for part in remaining))}"
    for part in removed[:MAX_LINES_PER_SECTION]:
        yield f"  {part.name or '(none)'}: no cost, {_format_usd_change(-part.usd)}"
    if not current_parts and not removed:
        yield "  none"


def _format_expensive_nodes(report: DailyReport) -> Iterator[str]:
    if report.most_expensive_nodes:
        yield "Most expensive nodes"
    for node in report.most_expensive_nodes[:MAX_LISTED_NODES]:
        description = f"{node.instance_type} {node.capacity_type}, NodePool {node.pool}"
        yield f"  {node.claim}: {format_usd(node.usd)} in {node.hours:.1f} hours, {description}"


def _get_usd(part: CostBreakdown | None) -> float:
    return part.usd if part is not None else 0.0


def _format_usd_change(amount: float) -> str:
    """Return a change with its sign.

    >>> _format_usd_change(0.4), _format_usd_change(-1.25), _format_usd_change(-0.001)
    ('+$0.40', '-$1.25', 'unchanged')
    """
    return f"{'+' if amount > 0 else '-'}{format_usd(abs(amount))}" if round(amount, 2) else "unchanged"


def _format_percent(part: float, total: float) -> str:
    return f" ({100 * part / total:.0f}%)" if total else ""
