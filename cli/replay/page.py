"""A replay as text and as JSON: the recorded decision, the replayed decision, and their differences."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, Final

import msgspec

from cli.journal.action_text import MARKED_SUFFIX, describe_action
from cli.journal.journal import Cycle
from cli.replay.changes import ChangedCluster
from cli.replay.differences import MESSAGE_ACTIONS, DecisionComparison, Difference
from cli.replay.rerun import Decision
from cli.terminal.text import Palette, wrap_text
from shared.model.cloud_provider.instance_type import Catalog
from shared.model.cluster import ClusterSnapshot
from shared.model.core.formatting import format_count, format_usd_per_hour, join_names
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.decisions.action import Action, CreateNodeClaim, LaunchInstances, MarkUnavailable
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.pod_classes import is_provisionable
from shared.report.journal.decision_record import DecisionRecord

MAX_LISTED_LINES: Final = 20
MAX_LISTED_NAMES: Final = 3
_INDENT: Final = "  "
_TITLE_WIDTH: Final = 14
_OUTPUT_NAMES: Final = {"verdict": "result", "why": "message"}
_SIGNS: Final = {"recorded": ("-", "red"), "replayed": ("+", "green"), "changed": ("~", "yellow")}


class ReplayResult(msgspec.Struct, frozen=True, kw_only=True):
    """A replayed cycle with its comparison."""

    cycle: Cycle
    record: DecisionRecord
    changes: ChangedCluster
    comparison: DecisionComparison
    code: str
    """The code version of this program."""
    notes: tuple[str, ...] = ()


class PageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a page is printed."""

    palette: Palette
    width: int | None
    """Columns of the terminal; None: no limit."""
    is_whole: bool
    """Whether long lists are printed completely."""

    def limit(self, maximum: int) -> int | None:
        """Return *maximum*, or None if long lists are printed completely."""
        return None if self.is_whole else maximum

    def wrap(self, text: str, indent: str = "", color: str = "", hang: str = "  ") -> Iterator[str]:
        """Yield the lines of *text* in *color*."""
        yield from (self.palette.colorize(color, line) for line in wrap_text(text, self.width, indent, hang))

    def render_omitted_count(self, count: int, noun: str) -> Iterator[str]:
        """Yield how many lines were omitted; nothing if none were."""
        if count > 0:
            yield self.palette.colorize("dim", f"{_INDENT}… and {format_count(count, noun)} (--all shows them)")


def render_replay(result: ReplayResult, options: PageOptions) -> str:
    """Render *result* as text."""
    comparison = result.comparison
    lines = [*_render_header(result, options), ""]
    lines += [*_render_decision("RECORDED DECISION", comparison.old_decision, options), ""]
    if not comparison.is_same:
        lines += [*_render_decision("REPLAYED DECISION", comparison.new_decision, options), ""]
        lines += [*_render_differences(comparison, options), ""]
    lines += _render_outcome(result, options)
    return "\n".join(lines) + "\n"


def _render_header(result: ReplayResult, options: PageOptions) -> Iterator[str]:
    entry, is_same_code = result.cycle.entry, result.cycle.entry.code == result.code
    codes = f"recorded with {entry.code or 'unknown'}, replayed with {result.code}"
    yield options.palette.colorize("bold", f"{entry.function} {format_time(entry.at)} UTC")
    rows = [
        ("cycle", result.cycle.key),
        ("trigger", entry.trigger),
        ("input", _describe_cluster(result.changes.cluster, entry.function)),
        ("catalog", result.record.catalog_key or "none"),
        ("code", f"{result.code} (unchanged)" if is_same_code else codes),
        *(("change", change) for change in result.changes.changes),
        *(("note", note) for note in (*result.changes.notes, *result.notes)),
        *(("new nodes", words) for words in _describe_node_cost(result)),
    ]
    for title, words in rows:
        first, *more_lines = wrap_text(words, options.width, " " * _TITLE_WIDTH, "")
        yield f"{title:<{_TITLE_WIDTH}}{first.lstrip()}"
        yield from more_lines


def _describe_cluster(cluster: ClusterSnapshot, function: str) -> str:
    pending_count = sum(is_provisionable(pod) for pod in cluster.pods)
    counts = [
        f"{format_count(len(cluster.pods), 'pod')} ({pending_count} pending)",
        format_count(len(cluster.nodes), "node"),
        format_count(len(cluster.node_pools), "NodePool"),
    ]
    if function == "catalog":
        counts = [format_count(len(cluster.node_classes), "EC2NodeClass")]
    return f"{', '.join(counts)}; snapshot of {format_time(cluster.taken_at)}"


def _describe_node_cost(result: ReplayResult) -> Iterator[str]:
    """Yield the cost of the requested nodes, each at its cheapest offering; nothing if there are none."""
    old, new = (
        estimate_decision_cost(decision, result.changes.cluster)
        for decision in (result.comparison.old_decision, result.comparison.new_decision)
    )
    old_text, new_text = (f"{format_count(count, 'node')}, {format_usd_per_hour(price)}" for count, price in (old, new))
    if old != new:
        yield f"recorded: {old_text}; replayed: {new_text}"
    elif old[0]:
        yield old_text


def _render_decision(title: str, decision: Decision, options: PageOptions) -> Iterator[str]:
    yield options.palette.colorize("bold", title)
    effects = [action for action in decision.actions if not isinstance(action, MESSAGE_ACTIONS)]
    lines = _describe_actions(effects)
    shown_lines = lines[: options.limit(MAX_LISTED_LINES)]
    for subject, reason in shown_lines:
        yield from options.wrap(f"{subject}{f': {reason}' if reason else ''}", _INDENT)
    yield from options.render_omitted_count(len(lines) - len(shown_lines), "more action")
    if not effects:
        yield f"{_INDENT}no changes in the cluster or in EC2"
    message_count = len(decision.actions) - len(effects)
    messages = f"{message_count:,} {'event or follow-up' if message_count == 1 else 'events and follow-ups'}"
    yield options.palette.colorize("dim", f"{_INDENT}and {messages}, {format_count(len(decision.notes), 'note')}")


def _describe_actions(effects: Iterable[Action]) -> list[tuple[str, str]]:
    """Describe actions; consecutive offerings that are marked unavailable for one reason share a line."""
    lines: list[tuple[str, str]] = []
    for (is_mark, reason), alike_actions in groupby(
        effects, key=lambda effect: (isinstance(effect, MarkUnavailable), describe_action(effect)[1])
    ):
        descriptions = [describe_action(action) for action in alike_actions]
        if is_mark and len(descriptions) > 1:
            names = join_names([subject.removesuffix(MARKED_SUFFIX) for subject, _ in descriptions], MAX_LISTED_NAMES)
            descriptions = [(f"{format_count(len(descriptions), 'offering')}{MARKED_SUFFIX}: {names}", reason)]
        lines += descriptions
    return lines


def _render_differences(comparison: DecisionComparison, options: PageOptions) -> Iterator[str]:
    yield options.palette.colorize("bold", "DIFFERENCES")
    if comparison.is_reordered:
        yield f"{_INDENT}the same actions and notes in a different order"
    effects = [difference for difference in comparison.actions if options.is_whole or not difference.is_message]
    lines = [(difference, (difference.subject,)) for difference in effects] + _group_differences(comparison.notes)
    shown_lines = lines[: options.limit(MAX_LISTED_LINES)]
    for difference, names in shown_lines:
        yield from _render_difference(difference, names, options)
    yield from options.render_omitted_count(len(lines) - len(shown_lines), "more difference")
    yield from options.render_omitted_count(len(comparison.actions) - len(effects), "event difference")


def _group_differences(notes: Iterable[Difference]) -> list[tuple[Difference, tuple[str, ...]]]:
    """Group differences of notes that are equal apart from their subjects; each with its subjects."""
    groups: dict[tuple[str, str, str], list[Difference]] = {}
    for difference in notes:
        groups.setdefault((difference.kind, difference.old_text, difference.new_text), []).append(difference)
    return [(same[0], tuple(member.subject for member in same)) for same in groups.values()]


def _render_difference(difference: Difference, names: Sequence[str], options: PageOptions) -> Iterator[str]:
    sign, color = _SIGNS[difference.kind]
    text = f"{sign} {_join_subjects(names, options.limit(MAX_LISTED_NAMES))}"
    if difference.kind == "changed":
        yield from options.wrap(text, _INDENT, color)
        yield from options.wrap(f"recorded: {difference.old_text}", _INDENT * 3, "red")
        yield from options.wrap(f"replayed: {difference.new_text}", _INDENT * 3, "green")
        return
    reason = difference.old_text or difference.new_text
    yield from options.wrap(f"{text}{f': {reason}' if reason else ''}", _INDENT, color)


def _join_subjects(names: Sequence[str], max_names: int | None) -> str:
    """Join subjects of one kind, as ``3 Pods: a, b and 1 more``."""
    if len(names) == 1:
        return names[0]
    kind = names[0].partition(" ")[0]
    return f"{format_count(len(names), kind)}: {join_names([name.partition(' ')[2] for name in names], max_names)}"


def _render_outcome(result: ReplayResult, options: PageOptions) -> Iterator[str]:
    comparison, cut_reason = result.comparison, result.record.summary.cut
    actions, notes = comparison.actions, comparison.notes
    outcome, color = "different decision", "yellow"
    if comparison.is_same:
        outcome, color = "same decision", "green"
        actions, notes = comparison.new_decision.actions, comparison.new_decision.notes  # type: ignore[assignment]
    counts = f"{format_count(len(actions), 'action')} and {format_count(len(notes), 'note')}"
    yield from options.wrap(
        f"{outcome}: {counts}{' are identical, byte for byte' if comparison.is_same else ' differ'}", "", color, ""
    )
    if cut_reason and not comparison.is_same:
        yield from options.wrap(
            f"the recorded cycle was incomplete, so differences are expected: {cut_reason}", hang=""
        )
    for words in _list_limitations(result):
        yield from options.wrap(words, hang="")


def _list_limitations(result: ReplayResult) -> Iterator[str]:
    """Describe the parts that were not replayed or not compared."""
    entry = result.cycle.entry
    if result.comparison.has_different_launches:
        yield "the replay sends different requests to EC2: EC2's answers to these are unknown and not compared"
    if any(isinstance(action, LaunchInstances) for action in result.comparison.old_decision.actions):
        yield "launch templates are compared without their user data, which is not stored"
    if entry.function == "provision" and result.record.inputs.answers is None:
        yield "launches are not replayed: the decision record is from a version that did not store their input"
    if entry.function == "catalog" and any(note.kind == "Catalogue" for note in entry.notes):
        yield "the catalog itself is not replayed: its sources (instance types and prices) are not stored"


def build_replay_document(result: ReplayResult) -> dict[str, Any]:
    """Return the JSON document: stable keys, times in UTC."""
    entry, comparison = result.cycle.entry, result.comparison
    return {
        "cycle": result.cycle.key,
        "function": entry.function,
        "at": entry.at,
        "trigger": entry.trigger,
        "snapshot": entry.snapshot,
        "catalog": result.record.catalog_key,
        "code": {"recorded": entry.code, "replayed": result.code},
        "changed": list(result.changes.changes),
        "notes": [*result.changes.notes, *result.notes],
        "limits": list(_list_limitations(result)),
        "same": comparison.is_same,
        "reordered": comparison.is_reordered,
        "incomplete": result.record.summary.cut,
        "recorded": _build_decision_document(comparison.old_decision, result.changes.cluster),
        "replayed": _build_decision_document(comparison.new_decision, result.changes.cluster),
        "differences": [
            *(_build_difference_document("action", difference) for difference in comparison.actions),
            *(_build_difference_document("note", difference) for difference in comparison.notes),
        ],
    }


def _build_decision_document(decision: Decision, cluster: ClusterSnapshot) -> dict[str, Any]:
    nodes, price = estimate_decision_cost(decision, cluster)
    actions, notes = map(_build_item_documents, (decision.actions, decision.notes))
    return {"newNodes": nodes, "usdPerHour": round(price, 9), "actions": actions, "notes": notes}


def _build_item_documents(items: Iterable[object]) -> list[dict[str, Any]]:
    documents = map(msgspec.to_builtins, items)
    return [{_OUTPUT_NAMES.get(name, name): value for name, value in document.items()} for document in documents]


def _build_difference_document(item_kind: str, difference: Difference) -> dict[str, str]:
    texts = {"recorded": difference.old_text, "replayed": difference.new_text}
    return {"kind": item_kind, "change": difference.kind, "subject": difference.subject} | texts


def format_time(at: datetime) -> str:
    """Format *at* in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def estimate_decision_cost(decision: Decision, cluster: ClusterSnapshot) -> tuple[int, float]:
    """Return the number of nodes that *decision* launches, and their cost per hour at their cheapest offerings.

    A node without an offering in the catalog costs nothing.
    """
    node_claims = [action.claim for action in decision.actions if isinstance(action, CreateNodeClaim)]
    if cluster.catalog is None:
        return len(node_claims), 0.0
    return len(node_claims), sum(_find_lowest_price(node_claim, cluster.catalog) for node_claim in node_claims)


def _find_lowest_price(node_claim: NodeClaim, catalog: Catalog) -> float:
    type_requirement, zone_requirement, capacity_type_requirement = (
        node_claim.requirements[key] for key in (INSTANCE_TYPE, ZONE, CAPACITY_TYPE)
    )
    prices = (
        offering.price_usd_per_hour
        for kind in catalog.get_instance_types(node_claim.node_class.name, node_claim.meta.get_label(NODEPOOL))
        if type_requirement.has(kind.name)
        for offering in kind.offerings
        if offering.available
        and zone_requirement.has(offering.zone)
        and capacity_type_requirement.has(offering.capacity_type)
    )
    return min(prices, default=0.0)
