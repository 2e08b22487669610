"""Builds the columns of a fleet document from recorded nodes and pods."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from cli.fleet.document.json_format import convert_to_milliseconds
from cli.fleet.document.node_columns import NO_NODE_POOL, NODE_STATES, FleetNodeColumns, NodeStateColumns
from cli.fleet.document.pod_columns import NO_NODE_ENDED, FleetPodColumns, PodPlaceColumns
from cli.fleet.recording.fleet_recorder import RecordedNode, RecordedPod

_STATE_NUMBERS = {state: number for number, state in enumerate(NODE_STATES)}


class StringTable:
    """Strings with their indexes."""

    def __init__(self) -> None:
        """Start with the empty string, which is unknown."""
        self._index_by_string: dict[str, int] = {"": 0}

    def intern(self, text: str) -> int:
        """Return the index of *text*."""
        return self._index_by_string.setdefault(text, len(self._index_by_string))

    def intern_optional(self, text: str) -> int | None:
        """Return the index of *text*, None if it is empty."""
        return self.intern(text) if text else None

    def list_strings(self) -> tuple[str, ...]:
        """Return the strings by index."""
        return tuple(self._index_by_string)


def build_node_columns(
    nodes: Sequence[RecordedNode],
    strings: StringTable,
    pool_indexes: Mapping[str, int],
    explanation_indexes: Sequence[int | None],
) -> FleetNodeColumns:
    """Return the columns of *nodes*; *pool_indexes* are those of NodePools, by name."""
    observed_nodes = [recorded_node.node for recorded_node in nodes]
    return FleetNodeColumns(
        name=tuple(strings.intern(node.name) for node in observed_nodes),
        claim=tuple(strings.intern_optional(node.claim) for node in observed_nodes),
        pool=tuple(pool_indexes.get(node.pool, NO_NODE_POOL) for node in observed_nodes),
        instance_type=tuple(strings.intern(node.instance_type) for node in observed_nodes),
        family=tuple(strings.intern(node.instance_type.partition(".")[0]) for node in observed_nodes),
        zone=tuple(strings.intern(node.zone) for node in observed_nodes),
        capacity_type=tuple(strings.intern(node.capacity_type) for node in observed_nodes),
        arch=tuple(strings.intern(node.arch) for node in observed_nodes),
        cpu_milli=tuple(node.cpu_milli for node in observed_nodes),
        memory_mib=tuple(node.memory_mib for node in observed_nodes),
        pod_capacity=tuple(node.pod_capacity for node in observed_nodes),
        price=tuple(node.price for node in observed_nodes),
        start=tuple(convert_to_milliseconds(recorded_node.started_at) for recorded_node in nodes),
        end=tuple(_convert_optional(recorded_node.ended_at) for recorded_node in nodes),
        explanation=tuple(explanation_indexes),
    )


def build_state_columns(nodes: Sequence[RecordedNode]) -> NodeStateColumns:
    """Return the state changes of *nodes*, oldest first."""
    changes = sorted(
        (convert_to_milliseconds(at), index, position, _STATE_NUMBERS[state])
        for index, recorded_node in enumerate(nodes)
        for position, (at, state) in enumerate(recorded_node.states)
    )
    return NodeStateColumns(
        t=tuple(change[0] for change in changes),
        node=tuple(change[1] for change in changes),
        state=tuple(change[3] for change in changes),
    )


def build_pod_columns(pods: Sequence[RecordedPod], strings: StringTable) -> FleetPodColumns:
    """Return the columns of *pods*."""
    return FleetPodColumns(
        namespace=tuple(strings.intern(recorded_pod.pod.namespace) for recorded_pod in pods),
        name=tuple(strings.intern(recorded_pod.pod.name) for recorded_pod in pods),
        workload=tuple(strings.intern(recorded_pod.pod.workload) for recorded_pod in pods),
        cpu_milli=tuple(recorded_pod.pod.cpu_milli for recorded_pod in pods),
        memory_mib=tuple(recorded_pod.pod.memory_mib for recorded_pod in pods),
        start=tuple(convert_to_milliseconds(recorded_pod.started_at) for recorded_pod in pods),
        end=tuple(_convert_optional(recorded_pod.ended_at) for recorded_pod in pods),
        priority=tuple(recorded_pod.pod.priority for recorded_pod in pods),
    )


def build_place_columns(
    pods: Sequence[RecordedPod], strings: StringTable, end_reasons: Mapping[int, str]
) -> PodPlaceColumns:
    """Return the changes of places, oldest first; *end_reasons* are those of ended pods, by index."""
    changes = sorted(
        (convert_to_milliseconds(at), index, position, place)
        for index, recorded_pod in enumerate(pods)
        for position, (at, place) in enumerate(recorded_pod.places)
    )
    reasons = [end_reasons.get(index, "") if place == NO_NODE_ENDED else "" for _, index, _, place in changes]
    return PodPlaceColumns(
        t=tuple(change[0] for change in changes),
        pod=tuple(change[1] for change in changes),
        node=tuple(change[3] for change in changes),
        reason=tuple(map(strings.intern_optional, reasons)),
    )


def _convert_optional(instant: datetime | None) -> int | None:
    return None if instant is None else convert_to_milliseconds(instant)
