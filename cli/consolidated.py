"""Consolidation as a document that other programs check, and as a page that a person reads."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import msgspec

from cli.planned import new_node_document
from cli.steps import Consolidated, Fleet, Taken
from cli.tables import Look
from cli.text import Palette, aligned, count, cut, folded, some
from shared.disruption.drafts import Draft
from shared.model.cluster import Cluster
from shared.model.taints import taint_object

HOURS_PER_MONTH = 730


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be told."""

    cluster: Cluster
    """As it was."""
    found: Consolidated
    notes: tuple[str, ...]
    decode_seconds: float
    decide_seconds: float


def document(report: Report) -> dict[str, Any]:
    """Answer the steps as they are written down: stable keys and order; USD per hour."""
    found = report.found
    taints = {pool.name: [taint_object(one) for one in pool.taints] for pool in report.cluster.node_pools}
    return {
        "steps": [_step(one.draft, taints) for one in found.steps],
        "before": _fleet(found.before),
        "after": _fleet(found.after),
        "ideal": {"price": round(found.ideal_usd_per_hour, 9)},
        "blocked": [{"node": one.node, "reason": one.reason, "message": one.message} for one in found.blocked],
        "kept": [{"node": one.node, "reason": one.reason, "message": one.message} for one in found.kept],
        "problems": [{"kind": one.kind, "name": one.name, "message": one.message} for one in report.cluster.problems],
        "notes": list(report.notes),
        "seconds": {"decode": round(report.decode_seconds, 3), "decide": round(report.decide_seconds, 3)},
    }


def _fleet(fleet: Fleet) -> dict[str, Any]:
    return {"nodes": fleet.nodes, "price": round(fleet.price_usd_per_hour, 9)}


def _step(draft: Draft, taints: dict[str, list[dict[str, str]]]) -> dict[str, Any]:
    made = {node.name for node in draft.new_nodes}
    moves = ((home, pod) for pod, home in draft.moves if home not in made)
    return {
        "reason": draft.reason,
        "method": draft.method,
        "delete": sorted(one.name for one in draft.targets),
        "replaceWith": [new_node_document(node, taints[node.node_pool]) for node in draft.new_nodes],
        "existingNodes": [
            {"node": home, "pods": [pod for _, pod in together]}
            for home, together in groupby(moves, key=lambda move: move[0])
        ],
        "savings": round(draft.savings_usd_per_hour, 9),
        "why": draft.why,
    }


def page(report: Report, palette: Palette, look: Look) -> str:
    """Answer the fleet before and after, the steps, and what stands in the way of more."""
    lines = [*_summary(report, palette, look), ""]
    for part in (
        _fleets(report.found, palette, look),
        _steps(report.found, palette, look),
        _staying(report.found, palette, look),
    ):
        some_lines = list(part)
        lines += [*some_lines, ""] if some_lines else []
    lines.append(
        palette.paint("dim", f"read in {report.decode_seconds:.2f} s, decided in {report.decide_seconds:.2f} s")
    )
    return "\n".join(lines) + "\n"


def _summary(report: Report, palette: Palette, look: Look) -> Iterator[str]:
    found = report.found
    old, new, ideal = (found.before.price_usd_per_hour, found.after.price_usd_per_hour, found.ideal_usd_per_hour)
    share = f" ({100 * (old - new) / old:.0f} %)" if old else ""
    first, *rest = folded(
        f"${old:.4f} -> ${new:.4f} per hour in {count(len(found.steps), 'step')}: "
        f"${HOURS_PER_MONTH * (old - new):,.2f} per month saved{share}",
        look.width,
        "",
    )
    yield from (palette.paint("bold", first), *rest)
    away = f", {100 * (new / ideal - 1):.1f} % above it" if ideal > 0 and new > ideal else ""
    yield from folded(f"all pods that may be moved, placed anew: ${ideal:.4f} per hour{away}", look.width, "")
    if not found.is_done:
        yield palette.paint("dim", "there may be more steps")
    for note in report.notes:
        yield from (palette.paint("dim", line) for line in folded(f"note: {note}", look.width, ""))


def _fleets(found: Consolidated, palette: Palette, look: Look) -> Iterator[str]:
    """Iterate over lines: what there was and what there would be, side by side."""
    old = {kind: (number, price) for kind, number, price in found.before.kinds}
    new = {kind: (number, price) for kind, number, price in found.after.kinds}
    kinds = sorted(
        old.keys() | new.keys(), key=lambda kind: (-max(old.get(kind, (0, 0.0))[1], new.get(kind, (0, 0.0))[1]), kind)
    )
    if not kinds:
        return
    shown = kinds[: look.most]
    rows = [("POOL", "TYPE", "CAPACITY", "BEFORE", "$/H", "AFTER", "$/H")]
    rows += [(*kind, *_cells(old.get(kind)), *_cells(new.get(kind))) for kind in shown]
    rest = kinds[len(shown) :]
    if rest:
        rows.append((f"… {count(len(rest), 'more kind')}", "", "", *_cells(_sum(rest, old)), *_cells(_sum(rest, new))))
    rows.append(("all", "", "", *_cells(_sum(kinds, old)), *_cells(_sum(kinds, new))))
    head, *lines = aligned(rows, left=3)
    yield palette.paint("bold", cut(head, look.width))
    yield from (cut(line, look.width) for line in lines)


def _cells(some: tuple[int, float] | None) -> tuple[str, str]:
    return (str(some[0]), f"{some[1]:.4f}") if some is not None and some[0] else ("-", "-")


def _sum(
    kinds: Iterable[tuple[str, str, str]], by_kind: dict[tuple[str, str, str], tuple[int, float]]
) -> tuple[int, float]:
    there = [by_kind[kind] for kind in kinds if kind in by_kind]
    return sum(number for number, _ in there), sum(price for _, price in there)


def _steps(found: Consolidated, palette: Palette, look: Look) -> Iterator[str]:
    if not found.steps:
        return
    yield palette.paint("bold", "STEPS")
    for number, one in enumerate(found.steps, start=1):
        yield from _told(number, one, look)


def _told(number: int, one: Taken, look: Look) -> Iterator[str]:
    draft = one.draft
    gone = some([target.name for target in draft.targets], look.named)
    head = f"{number:>3}. {draft.reason}: {count(len(draft.targets), 'node')} ({gone})"
    yield from folded(head, look.width, "", "     ")
    if draft.new_nodes:
        made = [
            f"{node.cheapest.instance_type} {node.cheapest.capacity_type} in {node.cheapest.zone} "
            f"${node.cheapest.price_usd_per_hour:.4f}"
            for node in draft.new_nodes
        ]
        yield from folded(f"replaced with {some(made, look.named)}", look.width, "     ")
    saved = f"saves ${draft.savings_usd_per_hour:.4f} per hour, leaves ${one.price_usd_per_hour:.4f}"
    yield from folded(f"{saved}: {draft.why}", look.width, "     ")


def _staying(found: Consolidated, palette: Palette, look: Look) -> Iterator[str]:
    """Iterate over lines: what no method may touch, then what is not worth it."""
    for head, verdicts in (("BLOCKED", found.blocked), ("KEPT", found.kept)):
        if not verdicts:
            continue
        yield palette.paint("bold", head)
        shown = verdicts[: look.most]
        for line in aligned([(f"  {one.node}", one.reason, one.message) for one in shown], left=3):
            yield cut(line, look.width)
        if len(verdicts) > len(shown):
            yield palette.paint("dim", f"  … and {count(len(verdicts) - len(shown), 'more node')} (--all shows them)")
