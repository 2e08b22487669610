"""The result of `joiner consolidate` as a document for programs, and as a page for people."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cli.consolidate.steps import ConsolidationResult, ConsolidationStep, StopReason
from cli.planning.document import build_new_node_document
from cli.planning.fleet import Fleet, NodeKind
from cli.planning.table import TableOptions
from cli.planning.unschedulable import MAX_LISTED_PODS
from cli.terminal.text import Palette, align_columns, truncate_text, wrap_text
from shared.decide.disruption.methods.proposed_command import ProposedCommand
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.core.taints import encode_taint
from shared.model.decisions.disruption_verdict import BlockedVerdict, KeptVerdict

HOURS_PER_MONTH: Final = 730
STOP_MESSAGES: Final[Mapping[StopReason, str]] = MappingProxyType(
    {
        "steps": "there may be more steps: --max-steps is reached",
        "sweeps": "there may be more steps: --steps is reached",
        "price": "there may be more steps: --until is reached",
        "interrupted": "there may be more steps: interrupted",
    }
)


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
        "ideal": {"price": round(consolidation.ideal_usd_per_hour, 9)},
        "stopped": consolidation.stopped,
        "blocked": [_build_verdict_document(verdict) for verdict in consolidation.blocked],
        "kept": [_build_verdict_document(verdict) for verdict in consolidation.kept_verdicts],
        "underway": [_build_verdict_document(verdict) for verdict in consolidation.underway],
        "problems": [
            {"kind": problem.kind, "name": problem.name, "message": problem.message}
            for problem in report.cluster.problems
        ],
        "notes": list(report.notes),
        "seconds": {"decode": round(report.decode_seconds, 3), "decide": round(report.decide_seconds, 3)},
    }


def build_step_documents(steps: Iterable[ConsolidationStep], cluster: ClusterSnapshot) -> list[dict[str, Any]]:
    """Return *steps* in *cluster* as entries of the JSON and YAML output."""
    taints = {pool.name: [encode_taint(taint) for taint in pool.taints] for pool in cluster.node_pools}
    return [_build_step_document(step.proposed_command, taints) for step in steps]


def _build_fleet_document(fleet: Fleet) -> dict[str, Any]:
    return {"nodes": fleet.node_count, "price": round(fleet.price_usd_per_hour, 9)}


def _build_verdict_document(verdict: BlockedVerdict | KeptVerdict) -> dict[str, str]:
    return {"node": verdict.node, "reason": verdict.reason, "message": verdict.message}


def _build_step_document(command: ProposedCommand, taints_by_pool: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
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
        "savings": round(command.savings_usd_per_hour, 9),
        "why": command.message,
    }


def format_progress(steps: int, price: float) -> str:
    """Return the progress text that is shown during the computation."""
    return f"{format_count(steps, 'step')}, ${price:.4f} per hour"


def list_caveats(cluster: ClusterSnapshot, fleet: Fleet) -> Iterator[str]:
    """Yield what makes the result incomplete or imprecise, and how to fix it."""
    pool_names = {pool.name for pool in cluster.node_pools}
    for pool, number in sorted(Counter(node.kind[0] for node in fleet.fleet_nodes if node.kind[0]).items()):
        if pool not in pool_names:
            yield (
                f"NodePool {pool} is not among what was read, {format_count(number, 'node')}"
                " of it stay: read it as well"
            )
    for kind, names in sorted(fleet.group_unpriced_nodes().items()):
        subject = f"{kind} in its zone" if kind else "a node without instance type"
        yield f"the catalogue has no price for {subject}, it counts as $0: {join_names(names, MAX_LISTED_PODS)}"


def render_consolidation_page(report: ConsolidationReport, palette: Palette, display: TableOptions) -> str:
    """Return the page: the fleet before and after, the steps, and why the other nodes stay."""
    lines = [*_render_summary(report, palette, display), ""]
    for section in (
        _render_fleets(report.consolidation, palette, display),
        render_steps(report.consolidation.steps, palette, display),
        _render_verdicts("BLOCKED", report.consolidation.blocked, report.consolidation.after, palette, display),
        _render_verdicts("KEPT", report.consolidation.kept_verdicts, report.consolidation.after, palette, display),
        _render_verdicts("UNDERWAY", report.consolidation.underway, report.consolidation.after, palette, display),
    ):
        section_lines = list(section)
        lines += [*section_lines, ""] if section_lines else []
    lines.append(
        palette.colorize("dim", f"read in {report.decode_seconds:.2f} s, decided in {report.decide_seconds:.2f} s")
    )
    return "\n".join(lines) + "\n"


def _render_summary(report: ConsolidationReport, palette: Palette, display: TableOptions) -> Iterator[str]:
    consolidation = report.consolidation
    old, new, ideal = (
        consolidation.before.price_usd_per_hour,
        consolidation.after.price_usd_per_hour,
        consolidation.ideal_usd_per_hour,
    )
    first_line, *other_lines = wrap_text(_format_headline(consolidation, old, new), display.width, "")
    yield from (palette.colorize("bold", first_line), *other_lines)
    if consolidation.before.node_count:
        difference = (
            f", {100 * (new / ideal - 1):.1f} % above it" if ideal > 0 and new > ideal else ", no less than that"
        )
        yield from wrap_text(
            f"all pods that may be moved, placed anew: ${ideal:.4f} per hour{difference}", display.width, ""
        )
    if consolidation.stopped is not None:
        yield from (
            palette.colorize("yellow", line)
            for line in wrap_text(STOP_MESSAGES[consolidation.stopped], display.width, "")
        )
    for note in report.notes:
        yield from (palette.colorize("dim", line) for line in wrap_text(f"note: {note}", display.width, ""))


def _format_headline(consolidation: ConsolidationResult, old: float, new: float) -> str:
    if not consolidation.before.node_count:
        return "no node there belongs to a NodePool: there is nothing to consolidate"
    if not consolidation.steps:
        nodes_text = format_count(consolidation.before.node_count, "node")
        return f"${old:.4f} per hour for {nodes_text}: disruption would take no step"
    share = f" ({100 * (old - new) / old:.0f} %)" if old else ""
    saved = f"{'more' if new > old else 'saved'}{share}"
    return (
        f"${old:.4f} -> ${new:.4f} per hour in {format_count(len(consolidation.steps), 'step')}: "
        f"${HOURS_PER_MONTH * abs(old - new):,.2f} per month {saved}"
    )


def _render_fleets(consolidation: ConsolidationResult, palette: Palette, display: TableOptions) -> Iterator[str]:
    """Yield the table lines: the fleet before and after, side by side, by NodePool, type and capacity type."""
    old_kinds, new_kinds = consolidation.before.sum_by_kind(), consolidation.after.sum_by_kind()
    kinds = sorted(
        old_kinds.keys() | new_kinds.keys(),
        key=lambda kind: (-max(old_kinds.get(kind, (0, 0.0))[1], new_kinds.get(kind, (0, 0.0))[1]), kind),
    )
    if not kinds:
        return
    listed_kinds = kinds[: display.max_rows]
    rows: list[tuple[str, ...]] = [("POOL", "TYPE", "CAPACITY", "BEFORE", "$/H", "AFTER", "$/H")]
    rows += [
        (*(part or "-" for part in kind), *_format_cells(old_kinds.get(kind)), *_format_cells(new_kinds.get(kind)))
        for kind in listed_kinds
    ]
    other_kinds = kinds[len(listed_kinds) :]
    if other_kinds:
        rows.append(
            (
                f"… {format_count(len(other_kinds), 'more kind')}",
                "",
                "",
                *_format_cells(_sum_kinds(other_kinds, old_kinds)),
                *_format_cells(_sum_kinds(other_kinds, new_kinds)),
            )
        )
    rows.append(
        ("all", "", "", *_format_cells(_sum_kinds(kinds, old_kinds)), *_format_cells(_sum_kinds(kinds, new_kinds)))
    )
    header, *lines = align_columns(rows, left_columns=3)
    yield palette.colorize("bold", truncate_text(header, display.width))
    yield from (truncate_text(line, display.width) for line in lines)


def _format_cells(count_and_price: tuple[int, float] | None) -> tuple[str, str]:
    return (
        (str(count_and_price[0]), f"{count_and_price[1]:.4f}")
        if count_and_price is not None and count_and_price[0]
        else ("-", "-")
    )


def _sum_kinds(kinds: Iterable[NodeKind], by_kind: Mapping[NodeKind, tuple[int, float]]) -> tuple[int, float]:
    entries = [by_kind[kind] for kind in kinds if kind in by_kind]
    return sum(number for number, _ in entries), sum(price for _, price in entries)


def render_steps(steps: Sequence[ConsolidationStep], palette: Palette, display: TableOptions) -> Iterator[str]:
    """Yield the lines of *steps* for people; nothing if there are no steps."""
    if not steps:
        return
    yield palette.colorize("bold", "STEPS")
    listed_steps = steps[: display.max_rows]
    for number, step in enumerate(listed_steps, start=1):
        yield from _render_step(number, step, display)
    other_steps = steps[len(listed_steps) :]
    if other_steps:
        saved = sum(step.proposed_command.savings_usd_per_hour for step in other_steps)
        remainder_text = (
            f"  … and {format_count(len(other_steps), 'more step')} that save ${saved:.4f} per hour (--all shows them)"
        )
        yield palette.colorize("dim", remainder_text)


def _render_step(number: int, step: ConsolidationStep, display: TableOptions) -> Iterator[str]:
    command = step.proposed_command
    deleted_nodes = join_names([target.name for target in command.targets], display.max_names)
    headline = f"{number:>3}. {command.reason}: {format_count(len(command.targets), 'node')} ({deleted_nodes})"
    yield from wrap_text(headline, display.width, "", "     ")
    if command.new_nodes:
        new_nodes = [
            f"{node.cheapest.instance_type} {node.cheapest.capacity_type} in {node.cheapest.zone} "
            f"${node.cheapest.price_usd_per_hour:.4f}"
            for node in command.new_nodes
        ]
        yield from wrap_text(f"replaced with {join_names(new_nodes, display.max_names)}", display.width, "     ")
    saved = f"saves ${command.savings_usd_per_hour:.4f} per hour, leaves ${step.price_usd_per_hour:.4f}"
    yield from wrap_text(f"{saved}: {command.message}", display.width, "     ")


def _render_verdicts(
    title: str, verdicts: Sequence[BlockedVerdict | KeptVerdict], fleet: Fleet, palette: Palette, display: TableOptions
) -> Iterator[str]:
    """Yield the lines: how many nodes stay for which reason, then the nodes, most expensive first."""
    if not verdicts:
        return
    prices = {node.name: node.price_usd_per_hour for node in fleet.fleet_nodes}
    total = sum(prices.get(verdict.node, 0.0) for verdict in verdicts)
    reasons = sorted(Counter(verdict.reason for verdict in verdicts).items(), key=lambda pair: (-pair[1], pair[0]))
    reason_counts = ", ".join(f"{number} {reason}" for reason, number in reasons)
    first_line, *other_lines = wrap_text(
        f"{title}  {format_count(len(verdicts), 'node')}, ${total:.4f} per hour: {reason_counts}", display.width, ""
    )
    yield from (palette.colorize("bold", first_line), *other_lines)
    ranked = sorted(verdicts, key=lambda verdict: (-prices.get(verdict.node, 0.0), verdict.node))
    listed_verdicts = ranked[: display.max_rows]
    rows = [
        (f"  {verdict.node}", f"${prices.get(verdict.node, 0.0):.4f}", verdict.reason, verdict.message)
        for verdict in listed_verdicts
    ]
    yield from (truncate_text(line, display.width) for line in align_columns(rows, left_columns=4))
    if len(ranked) > len(listed_verdicts):
        yield palette.colorize(
            "dim", f"  … and {format_count(len(ranked) - len(listed_verdicts), 'more node')} (--all shows them)"
        )
