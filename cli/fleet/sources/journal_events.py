"""Changes of nodes and pods that the actions of a journal record, with their exact time."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeAlias

from cli.explain.node_records import NodeRecord
from cli.fleet.recording.observed_objects import ObservedNode
from cli.journal.journal import Cycle
from shared.model.core.labels import INITIALIZED, INSTANCE_TYPE
from shared.model.core.taints import DISRUPTED
from shared.model.decisions import action as actions

StateEvent: TypeAlias = tuple[datetime, str, str, str]
"""When, the kind of the object, its name, and the new state."""


def list_state_events(cycles: Iterable[Cycle]) -> Iterator[StateEvent]:
    """Yield the state changes of nodes, in the order of the cycles."""
    for cycle in cycles:
        for result in cycle.entry.results:
            event = _find_state(result.action) if result.result == "done" else None
            if event is not None:
                yield (cycle.entry.at, *event)


def _find_state(action: actions.Action) -> tuple[str, str, str] | None:  # noqa: PLR0911 - one case each
    match action:
        case actions.CreateNodeClaim():
            return "NodeClaim", action.claim.name, "requested"
        case actions.PatchMetadata(kind="NodeClaim") if any(key == INSTANCE_TYPE for key, _ in action.labels):
            return "NodeClaim", action.name, "launched"
        case actions.RegisterNode():
            return "Node", action.name, "registered"
        case actions.PatchMetadata(kind="Node") if (INITIALIZED, "true") in action.labels:
            return "Node", action.name, "ready"
        case actions.TaintNode() if any(taint.is_same(DISRUPTED) for taint in action.taints):
            return "Node", action.name, "cordoned"
        case actions.DeleteObject(kind="NodeClaim"):
            return "NodeClaim", action.name, "draining"
        case _:
            return None


def build_recorded_node(record: NodeRecord, state: str) -> ObservedNode:
    """Return the node of *record* in *state*."""
    return ObservedNode(
        key=record.claim,
        name=record.node or record.claim,
        claim=record.claim,
        pool=record.pool,
        instance_type=record.instance_type,
        zone=record.zone,
        capacity_type=record.capacity_type,
        price=record.usd_per_hour or None,
        created_at=record.asked_at,
        state=state,
    )
