"""Consolidation as a document that other programs check, and as a page that a person reads."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final

import msgspec

from cli.fleets import Fleet, Kind
from cli.left_out import NAMED
from cli.planned import new_node_document
from cli.steps import Consolidated, Stop, Taken
from cli.tables import Look
from cli.text import Palette, aligned, count, cut, folded, some
from shared.disruption.candidates import Blocked
from shared.disruption.drafts import Draft
from shared.disruption.verdicts import Kept
from shared.model.cluster import Cluster
from shared.model.taints import taint_object

HOURS_PER_MONTH: Final = 730
STOPPED: Final[Mapping[Stop, str]] = MappingProxyType(
    {
        "steps": "there may be more steps: --max-steps is reached",
        "sweeps": "there may be more steps: --steps is reached",
        "price": "there may be more steps: --until is reached",
        "interrupted": "there may be more steps: interrupted",
    }
)


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
    return {
        "steps": step_documents(found.steps, report.cluster),
        "before": _fleet(found.before),
        "after": _fleet(found.after),
        "ideal": {"price": round(found.ideal_usd_per_hour, 9)},
        "stopped": found.stopped,
        "blocked": [_verdict(one) for one in found.blocked],
        "kept": [_verdict(one) for one in found.kept],
        "underway": [_verdict(one) for one in found.underway],
        "problems": [{"kind": one.kind, "name": one.name, "message": one.message} for one in report.cluster.problems],
        "notes": list(report.notes),
        "seconds": {"decode": round(report.decode_seconds, 3), "decide": round(report.decide_seconds, 3)},
    }


def step_documents(steps: Iterable[Taken], cluster: Cluster) -> list[dict[str, Any]]:
    """Answer *steps* in *cluster* as they are written down."""
    taints = {pool.name: [taint_object(one) for one in pool.taints] for pool in cluster.node_pools}
    return [_step(one.draft, taints) for one in steps]


def _fleet(fleet: Fleet) -> dict[str, Any]:
    return {"nodes": fleet.nodes, "price": round(fleet.price_usd_per_hour, 9)}


def _verdict(one: Blocked | Kept) -> dict[str, str]:
    return {"node": one.node, "reason": one.reason, "message": one.message}


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


def so_far(steps: int, price: float) -> str:
    """Answer in words how far it is while it goes on."""
    return f"{count(steps, 'step')}, ${price:.4f} per hour"


def doubts(cluster: Cluster, fleet: Fleet) -> Iterator[str]:
    """Iterate over what makes the answer less than it could be, and what to do."""
    known = {pool.name for pool in cluster.node_pools}
    for pool, number in sorted(Counter(one.kind[0] for one in fleet.machines if one.kind[0]).items()):
        if pool not in known:
            yield f"NodePool {pool} is not among what was read, {count(number, 'node')} of it stay: read it as well"
    for kind, names in sorted(fleet.unpriced().items()):
        what = f"{kind} in its zone" if kind else "a node without instance type"
        yield f"the catalogue has no price for {what}, it counts as $0: {some(names, NAMED)}"


def page(report: Report, palette: Palette, look: Look) -> str:
    """Answer the fleet before and after, the steps, and what stands in the way of more."""
    lines = [*_summary(report, palette, look), ""]
    for part in (
        _fleets(report.found, palette, look),
        step_lines(report.found.steps, palette, look),
        _staying("BLOCKED", report.found.blocked, report.found.after, palette, look),
        _staying("KEPT", report.found.kept, report.found.after, palette, look),
        _staying("UNDERWAY", report.found.underway, report.found.after, palette, look),
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
    first, *rest = folded(_headline(found, old, new), look.width, "")
    yield from (palette.paint("bold", first), *rest)
    if found.before.nodes:
        away = f", {100 * (new / ideal - 1):.1f} % above it" if ideal > 0 and new > ideal else ", no less than that"
        yield from folded(f"all pods that may be moved, placed anew: ${ideal:.4f} per hour{away}", look.width, "")
    if found.stopped is not None:
        yield from (palette.paint("yellow", line) for line in folded(STOPPED[found.stopped], look.width, ""))
    for note in report.notes:
        yield from (palette.paint("dim", line) for line in folded(f"note: {note}", look.width, ""))


def _headline(found: Consolidated, old: float, new: float) -> str:
    if not found.before.nodes:
        return "no node there belongs to a NodePool: there is nothing to consolidate"
    if not found.steps:
        return f"${old:.4f} per hour for {count(found.before.nodes, 'node')}: disruption would take no step"
    share = f" ({100 * (old - new) / old:.0f} %)" if old else ""
    saved = f"{'more' if new > old else 'saved'}{share}"
    return (
        f"${old:.4f} -> ${new:.4f} per hour in {count(len(found.steps), 'step')}: "
        f"${HOURS_PER_MONTH * abs(old - new):,.2f} per month {saved}"
    )


def _fleets(found: Consolidated, palette: Palette, look: Look) -> Iterator[str]:
    """Iterate over lines: what there was and what there would be, side by side."""
    old, new = found.before.kinds(), found.after.kinds()
    kinds = sorted(
        old.keys() | new.keys(), key=lambda kind: (-max(old.get(kind, (0, 0.0))[1], new.get(kind, (0, 0.0))[1]), kind)
    )
    if not kinds:
        return
    shown = kinds[: look.most]
    rows: list[tuple[str, ...]] = [("POOL", "TYPE", "CAPACITY", "BEFORE", "$/H", "AFTER", "$/H")]
    rows += [(*(part or "-" for part in kind), *_cells(old.get(kind)), *_cells(new.get(kind))) for kind in shown]
    rest = kinds[len(shown) :]
    if rest:
        rows.append((f"… {count(len(rest), 'more kind')}", "", "", *_cells(_sum(rest, old)), *_cells(_sum(rest, new))))
    rows.append(("all", "", "", *_cells(_sum(kinds, old)), *_cells(_sum(kinds, new))))
    head, *lines = aligned(rows, left=3)
    yield palette.paint("bold", cut(head, look.width))
    yield from (cut(line, look.width) for line in lines)


def _cells(some: tuple[int, float] | None) -> tuple[str, str]:
    return (str(some[0]), f"{some[1]:.4f}") if some is not None and some[0] else ("-", "-")


def _sum(kinds: Iterable[Kind], by_kind: Mapping[Kind, tuple[int, float]]) -> tuple[int, float]:
    there = [by_kind[kind] for kind in kinds if kind in by_kind]
    return sum(number for number, _ in there), sum(price for _, price in there)


def step_lines(steps: Sequence[Taken], palette: Palette, look: Look) -> Iterator[str]:
    """Iterate over what a person reads of *steps*; nothing if there are none."""
    if not steps:
        return
    yield palette.paint("bold", "STEPS")
    shown = steps[: look.most]
    for number, one in enumerate(shown, start=1):
        yield from _told(number, one, look)
    rest = steps[len(shown) :]
    if rest:
        saved = sum(one.draft.savings_usd_per_hour for one in rest)
        more = f"  … and {count(len(rest), 'more step')} that save ${saved:.4f} per hour (--all shows them)"
        yield palette.paint("dim", more)


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


def _staying(
    head: str, verdicts: Sequence[Blocked | Kept], fleet: Fleet, palette: Palette, look: Look
) -> Iterator[str]:
    """Iterate over lines: how many stay for what reasons, then which, those first that cost most."""
    if not verdicts:
        return
    prices = {one.name: one.price_usd_per_hour for one in fleet.machines}
    total = sum(prices.get(one.node, 0.0) for one in verdicts)
    reasons = sorted(Counter(one.reason for one in verdicts).items(), key=lambda pair: (-pair[1], pair[0]))
    why = ", ".join(f"{number} {reason}" for reason, number in reasons)
    first, *rest = folded(f"{head}  {count(len(verdicts), 'node')}, ${total:.4f} per hour: {why}", look.width, "")
    yield from (palette.paint("bold", first), *rest)
    ranked = sorted(verdicts, key=lambda one: (-prices.get(one.node, 0.0), one.node))
    shown = ranked[: look.most]
    rows = [(f"  {one.node}", f"${prices.get(one.node, 0.0):.4f}", one.reason, one.message) for one in shown]
    yield from (cut(line, look.width) for line in aligned(rows, left=4))
    if len(ranked) > len(shown):
        yield palette.paint("dim", f"  … and {count(len(ranked) - len(shown), 'more node')} (--all shows them)")
