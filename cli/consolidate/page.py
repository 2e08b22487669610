"""The output of `joiner consolidate`: JSON or YAML, or a page for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import msgspec

from cli.consolidate.steps import ConsolidationResult, ConsolidationStep
from cli.plan.pod_verdict import format_choice
from cli.planning.document import build_new_node_document, build_problem_documents
from cli.planning.fleet import Fleet, NodeKind
from cli.planning.table import TableOptions
from cli.planning.unschedulable import MAX_LISTED_PODS
from cli.terminal.table import TableLayout, render_table
from cli.terminal.text import Palette, wrap_text
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.decide.disruption.savings.command_value import CommandValue
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_usd_per_hour, format_usd_per_month, join_names
from shared.model.core.taints import encode_taint
from shared.model.core.units import HOURS_PER_MONTH
from shared.model.decisions.disruption_verdict import BlockedVerdict, KeptVerdict

_FLEETS: Final = TableLayout(
    headings=("NODEPOOL", "TYPE", "CAPACITY", "NODES NOW", "$/H", "NODES AFTER", "$/H"),
    alignment="~<<>>>>",
    droppable=("CAPACITY",),
)
_VERDICTS: Final = TableLayout(alignment="<<<~", is_folded=True, min_flexible_width=40, indent=2)
_STOP_CAUSES: Final = {"steps": "--max-steps", "runs": "--steps", "price": "--until", "interrupted": "an interrupt"}


class ConsolidationReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a consolidation, its input, and how long it took."""

    cluster: ClusterSnapshot
    """The state before the first step."""
    consolidation: ConsolidationResult
    notes: tuple[str, ...]
    decode_seconds: float
    decide_seconds: float


def build_consolidation_document(report: ConsolidationReport) -> dict[str, Any]:
    """Return the JSON and YAML output: stable keys and order; prices in USD per hour."""
    consolidation = report.consolidation
    return {
        "steps": build_step_documents(consolidation.steps, report.cluster),
        "before": _build_fleet_document(consolidation.before),
        "after": _build_fleet_document(consolidation.after),
        "lowestWithConstraints": {"usdPerHour": round(consolidation.ideal_usd_per_hour, 9)},
        "stopped": consolidation.stopped,
        "blocked": [_build_verdict_document(verdict) for verdict in consolidation.blocked],
        "kept": [_build_verdict_document(verdict) for verdict in consolidation.kept_verdicts],
        "inProgress": [_build_verdict_document(verdict) for verdict in consolidation.underway],
        "problems": build_problem_documents(report.cluster),
        "notes": list(report.notes),
        "seconds": {"decode": round(report.decode_seconds, 3), "decide": round(report.decide_seconds, 3)},
    }


def build_step_documents(steps: Iterable[ConsolidationStep], cluster: ClusterSnapshot) -> list[dict[str, Any]]:
    """Return *steps* in *cluster* as entries of the JSON and YAML output."""
    taints = {pool.name: [encode_taint(taint) for taint in pool.taints] for pool in cluster.node_pools}
    return [_build_step_document(step.proposed_command, taints) for step in steps]


def _build_fleet_document(fleet: Fleet) -> dict[str, Any]:
    price = round(fleet.price_usd_per_hour, 9)
    return {"nodes": fleet.node_count, "usdPerHour": price, "price": price}


def _build_verdict_document(verdict: BlockedVerdict | KeptVerdict) -> dict[str, str]:
    return {"node": verdict.node, "reason": verdict.reason, "message": verdict.message}


def _build_step_document(command: ProposedCommand, taints_by_pool: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    savings = round(command.savings_usd_per_hour, 9)
    new_names = {node.name for node in command.new_nodes}
    moves = ((node_name, pod) for pod, node_name in command.moves if node_name not in new_names)
    return {
        "reason": command.reason,
        "method": command.method,
        "delete": sorted(target.name for target in command.targets),
        "replaceWith": [build_new_node_document(node, taints_by_pool[node.node_pool]) for node in command.new_nodes],
        "existingNodes": [
            {"node": node_name, "pods": [pod for _, pod in node_moves]}
            for node_name, node_moves in groupby(moves, key=lambda move: move[0])
        ],
        "savingsUsdPerHour": savings,
        "savings": savings,
        **_build_value_fields(command.value),
        "message": command.explanation,
    }


def _build_value_fields(value: CommandValue | None) -> dict[str, Any]:
    """Return what a step costs and for how long it is expected to save; nothing if it costs nothing."""
    if value is None or value.cost.usd <= 0:
        return {}
    return {
        "expectedSavingsUsd": round(value.savings_usd, 9),
        "expectedSavingsSeconds": round(value.duration.expected.total_seconds()),
        "expectedSavingsBasis": value.duration.basis,
        "evictions": value.cost.evictions,
        "evictionsUsd": round(value.cost.evictions_usd, 9),
        "launchesUsd": round(value.cost.launches_usd, 9),
    }


def format_progress(steps: int, price: float) -> str:
    """Return the progress text that is shown during the computation."""
    return f"{format_count(steps, 'step')}, {format_usd_per_hour(price)}"


def list_caveats(cluster: ClusterSnapshot, fleet: Fleet) -> Iterator[str]:
    """Yield what makes the result incomplete or imprecise, and how to fix it."""
    pool_names = {pool.name for pool in cluster.node_pools}
    for pool, number in sorted(Counter(node.kind[0] for node in fleet.fleet_nodes if node.kind[0]).items()):
        if pool not in pool_names:
            yield f"NodePool {pool} is not in the input: {format_count(number, 'node')} of it cannot change; add it"
    for kind, names in sorted(fleet.group_unpriced_nodes().items()):
        subject = f"{kind} in its zone" if kind else "a node without instance type label"
        yield f"the catalog has no price for {subject}, counted as $0: {join_names(names, MAX_LISTED_PODS)}"


def render_notes(notes: Iterable[str], palette: Palette, layout: TableOptions) -> Iterator[str]:
    """Yield the lines of *notes*."""
    for note in notes:
        yield from (palette.colorize("dim", line) for line in wrap_text(f"note: {note}", layout.width, ""))


def render_consolidation_page(report: ConsolidationReport, palette: Palette, layout: TableOptions) -> str:
    """Return the page: the fleet before and after, the steps, and why the other nodes stay."""
    result = report.consolidation
    sections = [
        _render_summary(report, palette, layout),
        _render_fleets(result, palette, layout),
        render_steps(result.steps, palette, layout),
        _render_verdicts("BLOCKED", result.blocked, result.after, palette, layout),
        _render_verdicts("KEPT", result.kept_verdicts, result.after, palette, layout),
        _render_verdicts("IN PROGRESS", result.underway, result.after, palette, layout),
    ]
    lines = [line for section in sections if (rendered := list(section)) for line in (*rendered, "")]
    seconds = f"read in {report.decode_seconds:.2f} s, simulated in {report.decide_seconds:.2f} s"
    return "\n".join((*lines, palette.colorize("dim", seconds))) + "\n"


def _render_summary(report: ConsolidationReport, palette: Palette, layout: TableOptions) -> Iterator[str]:
    result = report.consolidation
    first_line, *lines = wrap_text(_format_headline(result), layout.width, "")
    yield from (palette.colorize("bold", first_line), *lines)
    if result.before.node_count:
        new, lowest = result.after.price_usd_per_hour, result.ideal_usd_per_hour
        distance = f"{new / lowest - 1:.1%} above" if new > lowest > 0 else "equal to"
        text = (
            f"the result is {distance} the lowest cost with all constraints ({format_usd_per_hour(lowest)}): "
            "that of rescheduling all movable pods at once"
        )
        yield from wrap_text(text, layout.width, "")
    if result.stopped is not None:
        text = f"stopped by {_STOP_CAUSES[result.stopped]}: there may be more steps"
        yield from (palette.colorize("yellow", line) for line in wrap_text(text, layout.width, ""))
    yield from render_notes(report.notes, palette, layout)


def _format_headline(result: ConsolidationResult) -> str:
    old, new = result.before.price_usd_per_hour, result.after.price_usd_per_hour
    if not result.before.node_count:
        return "no NodePool has a node: nothing to consolidate"
    if not result.steps:
        nodes_text = format_count(result.before.node_count, "node")
        return f"{format_usd_per_hour(old)} for {nodes_text}: disruption would change nothing"
    share = f" ({abs(old - new) / old:.0%})" if old else ""
    saved = f"{format_usd_per_month(HOURS_PER_MONTH * abs(old - new))}{share} {'more' if new > old else 'saved'}"
    steps_text = format_count(len(result.steps), "step")
    return f"{format_usd_per_hour(old)} -> {format_usd_per_hour(new)} in {steps_text}: {saved}"


def _render_fleets(result: ConsolidationResult, palette: Palette, layout: TableOptions) -> Iterator[str]:
    """Yield the table lines: the fleet before and after, side by side, by NodePool, type and capacity type."""
    old, new = result.before.sum_by_kind(), result.after.sum_by_kind()
    kinds = sorted(
        old.keys() | new.keys(),
        key=lambda kind: (-max(old.get(kind, (0, 0.0))[1], new.get(kind, (0, 0.0))[1]), kind),
    )
    if not kinds:
        return

    def build_row(title: Sequence[str], row_kinds: Sequence[NodeKind]) -> tuple[str, ...]:
        return (*title, *_format_sum(row_kinds, old), *_format_sum(row_kinds, new))

    shown_kinds = kinds[: layout.max_rows]
    rows = [build_row([part or "-" for part in kind], [kind]) for kind in shown_kinds]
    if other_kinds := kinds[len(shown_kinds) :]:
        rows.append(build_row((f"… {format_count(len(other_kinds), 'more row')}", "", ""), other_kinds))
    rows.append(build_row(("total", "", ""), kinds))
    yield from render_table(_FLEETS, rows, palette, layout.width)


def _format_sum(kinds: Iterable[NodeKind], by_kind: Mapping[NodeKind, tuple[int, float]]) -> tuple[str, str]:
    entries = [by_kind[kind] for kind in kinds if kind in by_kind]
    number, price = sum(number for number, _ in entries), sum(price for _, price in entries)
    return (str(number), f"{price:.4f}") if number else ("-", "-")


def render_steps(steps: Sequence[ConsolidationStep], palette: Palette, layout: TableOptions) -> Iterator[str]:
    """Yield the lines of *steps* for people; nothing if there are no steps."""
    if not steps:
        return
    yield palette.colorize("bold", "STEPS")
    shown_steps = steps[: layout.max_rows]
    for number, step in enumerate(shown_steps, start=1):
        yield from _render_step(number, step, layout)
    if other_steps := steps[len(shown_steps) :]:
        saved = format_usd_per_hour(sum(step.proposed_command.savings_usd_per_hour for step in other_steps))
        steps_text = format_count(len(other_steps), "more step")
        yield palette.colorize("dim", f"  … and {steps_text}, saving {saved} (--all shows them)")


def _render_step(number: int, step: ConsolidationStep, layout: TableOptions) -> Iterator[str]:
    command = step.proposed_command
    deleted_nodes = join_names([target.name for target in command.targets], layout.max_names)
    verb = "replace" if command.new_nodes else "delete"
    headline = f"{number:>3}. {command.reason}: {verb} {format_count(len(command.targets), 'node')} ({deleted_nodes})"
    yield from wrap_text(headline, layout.width, "", "     ")
    if command.new_nodes:
        counts = Counter(format_choice(node.cheapest) for node in command.new_nodes)
        new_nodes = [f"{number} x {text}" if number > 1 else text for text, number in counts.items()]
        yield from wrap_text(f"with {join_names(new_nodes, layout.max_names)}", layout.width, "     ")
    saved, price = format_usd_per_hour(command.savings_usd_per_hour), format_usd_per_hour(step.price_usd_per_hour)
    reason = command.explanation.removesuffix(f"; saves {saved}")
    yield from wrap_text(f"saves {saved}, remaining cost {price}: {reason}", layout.width, "     ")


def _render_verdicts(
    title: str, verdicts: Sequence[BlockedVerdict | KeptVerdict], fleet: Fleet, palette: Palette, layout: TableOptions
) -> Iterator[str]:
    """Yield the lines: how many nodes stay for which reason, then the nodes, most expensive first."""
    if not verdicts:
        return
    prices = {node.name: node.price_usd_per_hour for node in fleet.fleet_nodes}
    total = format_usd_per_hour(sum(prices.get(verdict.node, 0.0) for verdict in verdicts))
    reasons = sorted(Counter(verdict.reason for verdict in verdicts).items(), key=lambda pair: (-pair[1], pair[0]))
    reason_counts = ", ".join(f"{number} {reason}" for reason, number in reasons)
    headline = f"{title}  {format_count(len(verdicts), 'node')}, {total}: {reason_counts}"
    first_line, *lines = wrap_text(headline, layout.width, "")
    yield from (palette.colorize("bold", first_line), *lines)
    ranked = sorted(verdicts, key=lambda verdict: (-prices.get(verdict.node, 0.0), verdict.node))
    shown_verdicts = ranked[: layout.max_rows]
    rows = [
        (verdict.node, format_usd_per_hour(prices.get(verdict.node, 0.0)), verdict.reason, verdict.message)
        for verdict in shown_verdicts
    ]
    yield from render_table(_VERDICTS, rows, palette, layout.width)
    if hidden_count := len(ranked) - len(shown_verdicts):
        yield palette.colorize("dim", f"  … and {format_count(hidden_count, 'more node')} (--all shows them)")
