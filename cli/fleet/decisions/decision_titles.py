"""Titles of decisions: one line that says what happens to which node or pods, as in a subtitle of a film."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

from cli.explain.node_records import NodeRecord
from cli.journal.journal_decisions import JournalDecision
from shared.model.core.formatting import format_count, format_usd_per_hour

_MAX_REASON_IN_TITLE: Final = 60
"""Length of a reason that still fits in the title."""
_COMMAND_NAMES: Final = {"empty": "Emptiness", "drift": "Drift", "consolidate": "Consolidation"}
_PHASES: Final = {
    "PROPOSED": "proposed",
    "VALIDATED": "validated",
    "LAUNCHED": "replacement launched",
    "SURGING": "waiting for the replacement",
    "INITIALIZED": "started",
    "DRAINING": "draining",
    "DONE": "done",
    "ROLLED_BACK": "rolled back",
}
_PHASES_WITH_SAVINGS: Final = ("", "PROPOSED", "DONE")
""""" is all phases together."""
_REASON_TEXTS: Final = {
    "spot_interrupted": "Spot interruption",
    "empty": "it is empty",
    "underutilized": "underutilized",
    "drifted": "drifted",
    "unhealthy": "unhealthy",
}

RecordsByName = Mapping[tuple[str, str], NodeRecord]


def build_decision_title(decision: JournalDecision, records_by_name: RecordsByName) -> str:
    """Return the title of *decision*; *records_by_name* has the node records by kind and name."""
    names = [(kind, name) for kind, name in decision.objects if kind in ("Node", "NodeClaim", "Instance")]
    record = records_by_name.get(names[0]) if names else None
    if decision.objects and decision.objects[0][0] == "Command":
        return _build_command_title(decision, records_by_name)
    if names:
        node = record.claim if record is not None else names[0][1]
        title = _build_node_title(decision, record, node, len(names))
        if title:
            return title
    return f"{decision.summary}: {decision.reason}" if _is_short(decision.reason) else decision.summary


def build_offering_text(record: NodeRecord | None) -> str:
    """Return instance type and capacity type, such as "m5.large spot"; "" if both are unknown."""
    return "" if record is None else " ".join(filter(None, (record.instance_type, record.capacity_type)))


def _build_node_title(decision: JournalDecision, record: NodeRecord | None, node: str, node_count: int) -> str:
    """Return the title of a decision about *node*, "" if it is of another kind."""
    pod_count = sum(kind == "Pod" for kind, _ in decision.objects)
    deleted_why = record.deleted_why if record is not None else ""
    match decision.step:
        case "created":
            purpose = f"for {format_count(pod_count, 'pending pod')}" if pod_count else "as a replacement"
            title, detail = f"New node {node} requested {purpose}", ""
        case "launched":
            title, detail = f"Node {node} launched", _describe_launch(record) or decision.reason
        case "deleted":
            title, detail = f"Node {node} will be drained and terminated", _describe_reason(decision.reason)
        case "terminated" if node_count > 1:
            title, detail = f"{format_count(node_count, 'instance')} terminated", ""
        case "terminated":
            title, detail = f"Node {node} terminated", build_offering_text(record)
        case "evicted":
            title = f"{format_count(pod_count, 'pod')} evicted from {node}"
            detail = _describe_reason(deleted_why or decision.reason)
        case _:
            title, detail = "", ""
    return f"{title}: {detail}" if detail else title


def _describe_launch(record: NodeRecord | None) -> str:
    """Return the offering with zone and price."""
    if record is None or not record.instance_type:
        return ""
    zone = f" in {record.zone}" if record.zone else ""
    price = f", {format_usd_per_hour(record.usd_per_hour)}" if record.usd_per_hour else ""
    return f"{build_offering_text(record)}{zone}{price}"


def _describe_reason(reason: str) -> str:
    text = _REASON_TEXTS.get(reason, reason)
    return text if _is_short(text) else ""


def _is_short(reason: str) -> bool:
    return 0 < len(reason) <= _MAX_REASON_IN_TITLE


def _build_command_title(decision: JournalDecision, records_by_name: RecordsByName) -> str:
    """Return the title of a disruption command or a phase of it, such as "Consolidation: replace 2 nodes ..."."""
    name = _COMMAND_NAMES.get(decision.kind, "Disruption")
    phase = f" {describe_phase(decision.step)}" if decision.step else ""
    node_names = [name for kind, name in decision.objects if kind == "Node"]
    claims = [name for kind, name in decision.objects if kind == "NodeClaim"]
    nodes_text = format_count(len(node_names), "node")
    if decision.kind == "empty":
        nodes_text = format_count(len(node_names), "empty node")
    if claims:
        effect = f"replace {nodes_text} by {_describe_replacements(claims, records_by_name)}"
    else:
        effect = f"remove {nodes_text}"
    savings = decision.saves_usd_per_hour
    if savings and decision.step in _PHASES_WITH_SAVINGS:
        effect += f", saves {format_usd_per_hour(savings)}"
    return f"{name}{phase}: {effect}"


def describe_phase(step: str) -> str:
    """Return the phase *step* of a disruption command as a word or two."""
    return _PHASES.get(step, step.lower())


def _describe_replacements(claims: list[str], records_by_name: RecordsByName) -> str:
    """Return the instance types of *claims* with their numbers, such as "1 m6a.large"."""
    records = (records_by_name.get(("NodeClaim", claim)) for claim in claims)
    counts = Counter(record.instance_type if record is not None else "" for record in records)
    if counts[""]:
        return format_count(len(claims), "node")
    return " and ".join(f"{count} {instance_type}" for instance_type, count in sorted(counts.items()))
