"""A replay as text and as JSON: the recorded decision, the new decision, and their differences."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import msgspec

from cli.explain.journal import Cycle
from cli.replay.action_text import describe_action
from cli.replay.changes import ChangedCluster
from cli.replay.differences import MESSAGE_ACTIONS, DecisionComparison, Difference
from cli.replay.rerun import Decision
from cli.terminal.text import Palette, wrap_text
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, join_names
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.decisions.action import Action, CreateNodeClaim, LaunchInstances, MarkUnavailable
from shared.model.karpenter.node_claim import NodeClaim
from shared.report.journal.decision_record import DecisionRecord

MAX_LISTED_LINES: Final = 20
MAX_LISTED_NAMES: Final = 3
_INDENT: Final = "  "
_SIGNS: Final = {"then": ("-", "red"), "now": ("+", "green"), "changed": ("~", "yellow")}


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """A replayed cycle with its comparison."""

    cycle: Cycle
    record: DecisionRecord
    changes: ChangedCluster
    comparison: DecisionComparison
    code: str
    """The code version of this program."""
    notes: tuple[str, ...] = ()

    @property
    def is_other_code(self) -> bool:
        """Whether the recorded decision was made by other code."""
        return self.cycle.entry.code != self.code


def render_replay(result: ReplayResult, palette: Palette, width: int | None, *, is_whole: bool) -> str:
    """Render *result* as text."""
    comparison, max_lines = result.comparison, None if is_whole else MAX_LISTED_LINES
    lines = [*_render_header(result, palette, width), ""]
    lines += [*_render_decision("DECIDED THEN", comparison.old_decision, palette, width, max_lines), ""]
    if not comparison.is_same:
        lines += [*_render_decision("WOULD BE DECIDED NOW", comparison.new_decision, palette, width, max_lines), ""]
        lines += [*_render_differences(comparison, palette, width, max_lines), ""]
    lines += list(_render_verdict(result, palette, width))
    return "\n".join(lines) + "\n"


def _render_header(result: ReplayResult, palette: Palette, width: int | None) -> Iterator[str]:
    entry = result.cycle.entry
    yield palette.colorize("bold", f"{entry.function} {format_time(entry.at)} UTC")
    rows = [
        ("cycle", result.cycle.key),
        ("woken by", entry.trigger),
        ("decided from", _describe_cluster(result.changes.cluster, entry.function)),
        ("catalogue", result.record.catalog_key or "none"),
        (
            "code",
            f"{entry.code or 'unknown'} then, {result.code} now"
            if result.is_other_code
            else f"{result.code}, the same",
        ),
    ]
    rows += [("changed", change) for change in result.changes.changes]
    rows += [("note", note) for note in (*result.changes.notes, *result.notes)]
    rows += [("new nodes", words)] if (words := _describe_node_cost(result)) else []
    for title, words in rows:
        first, *more_lines = wrap_text(words, width, " " * 14, "")
        yield f"{title:<14}{first.lstrip()}"
        yield from more_lines


def _describe_cluster(cluster: ClusterSnapshot, function: str) -> str:
    if function == "catalog":
        return f"{format_count(len(cluster.node_classes), 'EC2NodeClass')}; as seen at {format_time(cluster.taken_at)}"
    waiting = sum(pod.is_provisionable() for pod in cluster.pods)
    counts = (
        f"{format_count(len(cluster.pods), 'pod')}, {waiting} without a node",
        format_count(len(cluster.nodes), "node"),
        format_count(len(cluster.node_pools), "NodePool"),
    )
    return f"{'; '.join(counts)}; as seen at {format_time(cluster.taken_at)}"


def _describe_node_cost(result: ReplayResult) -> str:
    """Describe the cost of the requested nodes, each at its cheapest offering."""
    old, new = (
        estimate_decision_cost(decision, result.changes.cluster)
        for decision in (result.comparison.old_decision, result.comparison.new_decision)
    )
    if old == new:
        return f"{old[0]} for ${old[1]:.4f} per hour" if old[0] else ""
    return f"{old[0]} for ${old[1]:.4f} per hour then, {new[0]} for ${new[1]:.4f} now"


def _render_decision(
    title: str, decision: Decision, palette: Palette, width: int | None, max_lines: int | None
) -> Iterator[str]:
    yield palette.colorize("bold", title)
    effects = [action for action in decision.actions if not isinstance(action, MESSAGE_ACTIONS)]
    message_count = len(decision.actions) - len(effects)
    lines = _describe_actions(effects)
    for subject, reason in lines[:max_lines]:
        yield from wrap_text(f"{subject}{f': {reason}' if reason else ''}", width, _INDENT)
    yield from _render_omitted_count(len(lines), max_lines, "action", palette)
    if not effects:
        yield f"{_INDENT}nothing is done"
    counts = f"{format_count(message_count, 'event')} or wake-ups, {format_count(len(decision.notes), 'verdict')}"
    yield palette.colorize("dim", f"{_INDENT}and {counts}")


def _describe_actions(effects: Iterable[Action]) -> list[tuple[str, str]]:
    """Describe actions; consecutive offerings that are marked unavailable for one reason share a line."""
    lines: list[tuple[str, str]] = []
    for (is_mark, reason), alike_actions in groupby(
        effects, key=lambda effect: (isinstance(effect, MarkUnavailable), describe_action(effect)[1])
    ):
        descriptions = [describe_action(action) for action in alike_actions]
        if is_mark and len(descriptions) > 1:
            names = [subject.removesuffix(" marked") for subject, _ in descriptions]
            lines.append(
                (f"{format_count(len(names), 'offering')} marked: {join_names(names, MAX_LISTED_NAMES)}", reason)
            )
        else:
            lines += descriptions
    return lines


def _render_differences(
    comparison: DecisionComparison, palette: Palette, width: int | None, max_lines: int | None
) -> Iterator[str]:
    yield palette.colorize("bold", "DIFFERENCES")
    if comparison.is_reordered:
        yield f"{_INDENT}the same actions and verdicts, in another order"
    shown_differences = [
        action_difference
        for action_difference in comparison.actions
        if max_lines is None or not action_difference.is_message
    ]
    left_out = len(comparison.actions) - len(shown_differences)
    lines = [
        (action_difference, (action_difference.subject,)) for action_difference in shown_differences
    ] + _group_differences(comparison.notes)
    for difference, names in lines[:max_lines]:
        yield from _render_difference(
            difference, names, palette, width, None if max_lines is None else MAX_LISTED_NAMES
        )
    yield from _render_omitted_count(len(lines), max_lines, "difference", palette)
    if left_out:
        yield palette.colorize(
            "dim", f"{_INDENT}and {format_count(left_out, 'other event')} or wake-ups (--all shows them)"
        )


def _group_differences(notes: Iterable[Difference]) -> list[tuple[Difference, tuple[str, ...]]]:
    """Group verdict differences that are equal apart from their subjects; each with its subjects."""
    groups: dict[tuple[str, str, str], list[Difference]] = {}
    for difference in notes:
        groups.setdefault((difference.kind, difference.old_text, difference.new_text), []).append(difference)
    return [(same[0], tuple(member.subject for member in same)) for same in groups.values()]


def _render_difference(
    difference: Difference, names: Sequence[str], palette: Palette, width: int | None, max_names: int | None
) -> Iterator[str]:
    sign, color = _SIGNS[difference.kind]
    text = f"{sign} {_join_subjects(names, max_names)}"
    if difference.kind != "changed":
        reason = difference.old_text or difference.new_text
        text = f"{text}{f': {reason}' if reason else ''}"
    yield from (palette.colorize(color, line) for line in wrap_text(text, width, _INDENT))
    if difference.kind == "changed":
        for line_color, line_text in (
            ("red", f"then: {difference.old_text}"),
            ("green", f"now: {difference.new_text}"),
        ):
            yield from (palette.colorize(line_color, line) for line in wrap_text(line_text, width, _INDENT * 3))


def _join_subjects(names: Sequence[str], max_names: int | None) -> str:
    """Join subjects of one kind, as ``3 Pods: a, b and 1 more``."""
    if len(names) == 1:
        return names[0]
    kind = names[0].partition(" ")[0]
    return f"{format_count(len(names), kind)}: {join_names([name.partition(' ')[2] for name in names], max_names)}"


def _render_omitted_count(number: int, limit: int | None, noun: str, palette: Palette) -> Iterator[str]:
    if limit is not None and number > limit:
        yield palette.colorize(
            "dim", f"{_INDENT}… and {format_count(number - limit, f'more {noun}')} (--all shows them)"
        )


def _render_verdict(result: ReplayResult, palette: Palette, width: int | None) -> Iterator[str]:
    comparison, cut_reason = result.comparison, result.record.summary.cut
    if comparison.is_same:
        decision = comparison.new_decision
        numbers = f"{format_count(len(decision.actions), 'action')}, {format_count(len(decision.notes), 'verdict')}"
        words, color = f"the same decision, byte for byte: {numbers}", "green"
    else:
        counts = (format_count(len(comparison.actions), "action"), format_count(len(comparison.notes), "verdict"))
        numbers = " and ".join(counts)
        words, color = f"another decision: {numbers} differ", "yellow"
    yield from (palette.colorize(color, line) for line in wrap_text(words, width, "", ""))
    if cut_reason and not comparison.is_same:
        yield from wrap_text(f"it need not come out the same: {cut_reason}", width, "", "")
    for words in _list_limitations(result):
        yield from wrap_text(words, width, "", "")


def _list_limitations(result: ReplayResult) -> Iterator[str]:
    """Describe the parts that were not decided again or not compared."""
    entry = result.cycle.entry
    launches = any(isinstance(action, LaunchInstances) for action in result.comparison.old_decision.actions)
    if result.comparison.has_different_launches:
        yield "EC2 would be asked for something else: what it would have said is not known, so that is not compared"
    if launches:
        yield "of launch templates all but user data is compared: that is not kept"
    if entry.function == "provision" and result.record.inputs.answers is None:
        yield "launches are not decided again: this snapshot is of a version that did not keep what they saw"
    if entry.function == "catalog" and any(note.kind == "Catalogue" for note in entry.notes):
        yield "the catalogue that was made is not made again: what EC2 sells, and for how much, is not kept besides it"


def build_replay_document(result: ReplayResult) -> dict[str, Any]:
    """Return the JSON document: stable keys, times in UTC."""
    entry, comparison = result.cycle.entry, result.comparison
    return {
        "cycle": result.cycle.key,
        "function": entry.function,
        "at": entry.at,
        "trigger": entry.trigger,
        "snapshot": entry.snapshot,
        "catalogue": result.record.catalog_key,
        "code": {"then": entry.code, "now": result.code},
        "changed": list(result.changes.changes),
        "notes": [*result.changes.notes, *result.notes],
        "limits": list(_list_limitations(result)),
        "same": comparison.is_same,
        "reordered": comparison.is_reordered,
        "cut": result.record.summary.cut,
        "then": _build_decision_document(comparison.old_decision, result.changes.cluster),
        "now": _build_decision_document(comparison.new_decision, result.changes.cluster),
        "differences": [
            *_build_difference_documents("action", comparison.actions),
            *_build_difference_documents("verdict", comparison.notes),
        ],
    }


def _build_decision_document(decision: Decision, cluster: ClusterSnapshot) -> dict[str, Any]:
    nodes, price = estimate_decision_cost(decision, cluster)
    return {
        "newNodes": nodes,
        "usdPerHour": round(price, 9),
        "actions": list(decision.actions),
        "verdicts": list(decision.notes),
    }


def _build_difference_documents(item_kind: str, differences: Iterable[Difference]) -> Iterator[dict[str, str]]:
    for difference in differences:
        yield {
            "of": item_kind,
            "how": difference.kind,
            "what": difference.subject,
            "then": difference.old_text,
            "now": difference.new_text,
        }


def format_time(at: datetime) -> str:
    """Format *at* in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def estimate_decision_cost(decision: Decision, cluster: ClusterSnapshot) -> tuple[int, float]:
    """Return the number of nodes that *decision* launches, and their cost per hour at their cheapest offerings.

    A node without an offering in the catalog costs nothing.
    """
    node_claims = [action.claim for action in decision.actions if isinstance(action, CreateNodeClaim)]
    catalog = cluster.catalog
    return len(node_claims), sum(
        _find_lowest_price(node_claim, catalog) for node_claim in node_claims
    ) if catalog is not None else 0.0


def _find_lowest_price(node_claim: NodeClaim, catalog: Catalog) -> float:
    type_requirement, zone_requirement, capacity_type_requirement = (
        node_claim.requirements[key] for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)
    )
    return min(
        (
            offering.price_usd_per_hour
            for kind in catalog.get_instance_types(node_claim.node_class.name, node_claim.meta.get_label(NODEPOOL))
            if type_requirement.has(kind.name)
            for offering in kind.offerings
            if offering.available
            and zone_requirement.has(offering.zone)
            and capacity_type_requirement.has(offering.capacity_type)
        ),
        default=0.0,
    )
