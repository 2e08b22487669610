"""The status of a fleet as text and as JSON."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from cli.facts.installation import Installation
from cli.facts.installation_page import build_installation_document, render_installation
from cli.pause.text import build_pause_documents, render_pauses
from cli.planning.spot_shares import build_share_documents, list_share_texts
from cli.planning.table import TableOptions
from cli.status.canaries import build_canary_document, render_canaries
from cli.status.fleet_bars import draw_fleet_bars
from cli.status.gangs import build_gang_document, render_gangs
from cli.status.schedules import build_schedule_document, render_schedules
from cli.status.summary import FleetStatus, PoolStatus
from cli.terminal.bars import choose_bar_columns, draw_percent
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, wrap_text
from shared.decide.launch.money.limit_prices import LimitUsage
from shared.model.core.formatting import format_count, format_usd_per_hour, format_usd_per_month, join_names
from shared.model.core.resources import CPU, MEMORY, USD_PER_HOUR, build_resources, format_amount, format_quantities
from shared.model.core.units import HOURS_PER_MONTH, format_instant

_POOLS: Final = TableLayout(
    headings=("NODEPOOL", "READY", "IN-FLIGHT", "DELETING", "CAPACITY", "CPU", "MEMORY", "$/H", "LIMIT"),
    alignment="~>>>>>>>>",
    droppable=("LIMIT", "MEMORY", "CPU", "CAPACITY"),
)
MAX_LISTED_NAMES: Final = 3


def build_status_document(status: FleetStatus, installation: Installation | None) -> dict[str, Any]:
    """Return the JSON document of a fleet's status and of its *installation*."""
    return {
        "at": format_instant(status.at),
        "installation": build_installation_document(installation),
        "usdPerHour": None if status.usd_per_hour is None else round(status.usd_per_hour, 9),
        "limitUsdPerHour": _build_limit_document(status.cluster_limit),
        "pods": {"running": status.running_pods, "pending": len(status.pending_pods)},
        "nodePools": [_build_pool_document(pool, priced=status.usd_per_hour is not None) for pool in status.pools],
        "unmanagedNodes": status.unmanaged_nodes,
        "pauses": build_pause_documents(status.pauses),
        "canaries": [build_canary_document(canary) for canary in status.canaries],
        "waitingGangs": [build_gang_document(gang) for gang in status.gangs],
        "schedules": [build_schedule_document(schedule) for schedule in status.schedules],
        "pendingPods": [{"pod": pod, "message": reason} for pod, reason in status.pending_pods],
        "problems": [
            {"kind": problem.kind, "name": problem.name, "summary": problem.summary, "message": problem.reason}
            for problem in status.problems
        ],
    } | ({"spotShares": build_share_documents(status.spot_shares)} if status.spot_shares else {})


def render_status(
    status: FleetStatus,
    installation: Installation | None,
    palette: Palette,
    table_options: TableOptions,
    *,
    has_bars: bool = False,
) -> str:
    """Render the status as text; with *has_bars*, for terminals, with bars of requested CPU and memory."""
    parts = (
        [*_render_summary(status, palette, table_options), *(_draw_bars(status, table_options) if has_bars else ())],
        render_installation(installation, status.at, palette, table_options.width),
        render_pauses(status.pauses, status.at, palette, table_options.width),
        _render_pools(status, palette, table_options, has_bars=has_bars),
        render_schedules(status.schedules, palette, table_options.width),
        render_canaries(status.canaries, palette, table_options.width),
        [line for text in list_share_texts(status.spot_shares) for line in wrap_text(text, table_options.width, "")],
        render_gangs(status.gangs, status.at, palette, table_options.width),
        _render_pending_pods(status, palette, table_options),
        _render_problems(status, palette, table_options),
    )
    blocks = [lines for part in parts if (lines := list(part))]
    return "\n\n".join("\n".join(lines) for lines in blocks) + "\n"


def _build_pool_document(pool: PoolStatus, *, priced: bool) -> dict[str, Any]:
    kinds = dict(pool.by_capacity)
    return {
        "name": pool.name,
        "ready": pool.is_ready,
        "nodes": {"ready": pool.ready, "inFlight": pool.in_flight, "deleting": pool.deleting},
        "onDemand": kinds.get("on-demand", 0),
        "reserved": kinds.get("reserved", 0),
        "spot": kinds.get("spot", 0),
        CPU: _build_quantities(pool, CPU),
        MEMORY: _build_quantities(pool, MEMORY),
        "usdPerHour": round(pool.usd_per_hour, 9) if priced else None,
        "limits": {
            name: {"used": format_amount(name, used), "limit": format_amount(name, limit)}
            for name, used, limit in pool.limits
        },
    }


def _build_limit_document(usage: LimitUsage | None) -> dict[str, str] | None:
    if usage is None:
        return None
    return {"used": format_amount(USD_PER_HOUR, usage.used), "limit": format_amount(USD_PER_HOUR, usage.limit)}


def _build_quantities(pool: PoolStatus, name: str) -> dict[str, str]:
    quantities = {"requested": pool.requested, "allocatable": pool.allocatable}
    return {
        key: format_quantities(build_resources({name: amounts[name]})).get(name, "0")
        for key, amounts in quantities.items()
    }


def _render_summary(status: FleetStatus, palette: Palette, table_options: TableOptions) -> Iterator[str]:
    nodes = sum(pool.ready + pool.in_flight + pool.deleting for pool in status.pools)
    price = ""
    if status.usd_per_hour is not None:
        month_text = format_usd_per_month(HOURS_PER_MONTH * status.usd_per_hour)
        price = f", {format_usd_per_hour(status.usd_per_hour)} ({month_text})"
    if status.cluster_limit is not None:
        used, limit = (
            format_amount(USD_PER_HOUR, amount) for amount in (status.cluster_limit.used, status.cluster_limit.limit)
        )
        price += f", {used} with volumes of the limit of {limit}"
    unmanaged_nodes = format_count(status.unmanaged_nodes, "node")
    unmanaged_text = f", and {unmanaged_nodes} without NodePool" if status.unmanaged_nodes else ""
    pods = f"{format_count(status.running_pods, 'pod')} on nodes, {len(status.pending_pods)} pending"
    summary = f"{format_count(nodes, 'node')}{price}{unmanaged_text}; {pods}"
    first, *more_lines = wrap_text(summary, table_options.width, "")
    yield from (palette.colorize("bold", first), *more_lines)


def _draw_bars(status: FleetStatus, table_options: TableOptions) -> list[str]:
    amounts = {
        name: [(pool.requested[name], pool.allocatable[name]) for pool in status.pools] for name in (CPU, MEMORY)
    }
    return draw_fleet_bars(amounts, table_options.width)


def _render_pools(
    status: FleetStatus, palette: Palette, table_options: TableOptions, *, has_bars: bool
) -> Iterator[str]:
    if not status.pools:
        return
    ranked = sorted(status.pools, key=lambda pool: (-pool.usd_per_hour, -pool.ready, pool.name))
    shown_pools = ranked[: table_options.max_rows]
    bar_columns = choose_bar_columns(table_options.width) if has_bars else 0
    rows = [_build_row(pool, bar_columns, priced=status.usd_per_hour is not None) for pool in shown_pools]
    colors = ["" if pool.is_ready else "yellow" for pool in shown_pools]
    yield from render_table(_POOLS, rows, palette, table_options.width, colors=colors)
    yield from _render_omitted_count(len(ranked) - len(shown_pools), "more NodePool", palette, "")


def _build_row(pool: PoolStatus, bar_columns: int, *, priced: bool) -> tuple[str, ...]:
    kinds = ", ".join(f"{number} {kind}" for kind, number in pool.by_capacity)
    by_usage = sorted(pool.limits, key=lambda limit: (limit[1] / limit[2] if limit[2] else 1.0, limit[0]))
    limit_texts = [
        f"{name} {format_amount(name, used)} of {format_amount(name, most)}" for name, used, most in by_usage
    ]
    return (
        pool.name,
        *(str(number or "-") for number in (pool.ready, pool.in_flight, pool.deleting)),
        kinds or "-",
        *(_format_share(pool, name, bar_columns) for name in (CPU, MEMORY)),
        f"{pool.usd_per_hour:.4f}" if priced else "-",
        limit_texts[-1] if limit_texts else "-",
    )


def _format_share(pool: PoolStatus, name: str, bar_columns: int) -> str:
    allocatable = pool.allocatable[name]
    if not allocatable:
        return "-"
    return f"{draw_percent(pool.requested[name] / allocatable, bar_columns)} of {format_amount(name, allocatable)}"


def _render_pending_pods(status: FleetStatus, palette: Palette, table_options: TableOptions) -> Iterator[str]:
    if not status.pending_pods:
        return
    yield palette.colorize("bold", "PENDING PODS")
    groups: list[tuple[tuple[str, ...], str]] = [((pod,), reason) for pod, reason in status.pending_pods]
    if table_options.max_rows is not None:
        groups = list(_group_by_reason(status.pending_pods))
    shown_groups = groups[: table_options.max_rows]
    for pods, reason in shown_groups:
        yield from wrap_text(_describe_group(pods, reason), table_options.width, "  ")
    omitted_count = len(status.pending_pods) - sum(len(pods) for pods, _ in shown_groups)
    yield from _render_omitted_count(omitted_count, "more pod", palette)


def _group_by_reason(pending_pods: Iterable[tuple[str, str]]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield pending pods grouped by reason, those of most pods first."""
    pods_by_reason: dict[str, list[str]] = {}
    for pod, reason in pending_pods:
        pods_by_reason.setdefault(reason, []).append(pod)
    for reason, pods in sorted(pods_by_reason.items(), key=lambda reason_pods: (-len(reason_pods[1]), reason_pods[0])):
        yield tuple(pods), reason


def _describe_group(pods: tuple[str, ...], reason: str) -> str:
    """Describe pods and the reason why they are pending; the reason precedes many names, because lines may be cut."""
    reason_suffix = f": {reason}" if reason else ""
    if len(pods) == 1:
        return f"{pods[0]}{reason_suffix}"
    return f"{format_count(len(pods), 'pod')}{reason_suffix} ({join_names(pods, MAX_LISTED_NAMES)})"


def _render_problems(status: FleetStatus, palette: Palette, table_options: TableOptions) -> Iterator[str]:
    if not status.problems:
        return
    yield palette.colorize("bold", "PROBLEMS")
    for problem in status.problems[: table_options.max_rows]:
        words = f"{problem.kind} {problem.name}: {problem.summary}{f': {problem.reason}' if problem.reason else ''}"
        yield from (palette.colorize("red", line) for line in wrap_text(words, table_options.width, "  "))
    omitted_count = len(status.problems) - len(status.problems[: table_options.max_rows])
    yield from _render_omitted_count(omitted_count, "more problem", palette)


def _render_omitted_count(count: int, noun: str, palette: Palette, indent: str = "  ") -> Iterator[str]:
    if count:
        yield palette.colorize("dim", f"{indent}… and {format_count(count, noun)} (--all shows them)")
