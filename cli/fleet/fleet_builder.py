"""Builds a fleet document from recorded nodes and pods, and from the decisions of a journal."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import msgspec

from cli.explain.evidence import Evidence
from cli.explain.node_records import NodeRecord
from cli.fleet.decisions.decision_list import build_fleet_decisions, build_fleet_markers
from cli.fleet.decisions.fleet_costs import (
    COMPARED_WITH,
    build_comparison_series,
    build_wait_series,
    compute_cost_usd,
    compute_saved_usd,
    count_evictions,
    find_eviction_reasons,
    list_savings,
)
from cli.fleet.decisions.node_explanations import build_node_explanations
from cli.fleet.decisions.node_state_overlay import find_block_changes, find_interruptions, merge_states
from cli.fleet.decisions.object_index import ObjectIndex
from cli.fleet.document.fleet_decisions import FleetDecision, FleetMarker
from cli.fleet.document.fleet_document import FleetDocument, FleetSource, FleetTotals
from cli.fleet.document.json_format import convert_to_milliseconds
from cli.fleet.document.node_columns import FleetNodePool
from cli.fleet.recording.column_builder import (
    StringTable,
    build_node_columns,
    build_place_columns,
    build_pod_columns,
    build_state_columns,
)
from cli.fleet.recording.fleet_recorder import RecordedNode, RecordedPod
from cli.fleet.recording.node_pool_summary import build_node_pools
from shared.model.karpenter.node_pool import NodePool
from shared.state.node_prices import PriceList


class FleetInputs(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a fleet document is built from."""

    source: FleetSource
    start: datetime
    end: datetime
    nodes: Sequence[RecordedNode]
    pods: Sequence[RecordedPod]
    node_pools: Sequence[NodePool] = ()
    evidence: Evidence
    price_list: PriceList
    keep_reasons: Mapping[str, str] = {}
    """Why nodes are not disrupted now, by the Node's name."""
    replay_source: str = ""
    """The journal's location for `joiner replay`; "" if it cannot be replayed."""
    decisions: Sequence[FleetDecision] = ()
    """Decisions and events that are not in the journal."""
    markers: Sequence[FleetMarker] = ()
    """Markers that are not in the journal."""


def build_fleet_document(inputs: FleetInputs) -> FleetDocument:
    """Return the document."""
    evidence, strings = inputs.evidence, StringTable()
    nodes = [*_complete_nodes(inputs.nodes, evidence)]
    index = ObjectIndex(nodes, inputs.pods, evidence.node_records)
    decisions = sorted(
        [*build_fleet_decisions(evidence.cycles, index, inputs.replay_source), *inputs.decisions],
        key=lambda decision: decision.t,
    )
    markers = sorted(
        [*build_fleet_markers(evidence.cycles, evidence.node_records, decisions), *inputs.markers],
        key=lambda marker: (marker.t, marker.kind != "act"),
    )
    node_pools = build_node_pools(inputs.node_pools, (recorded_node.node.pool for recorded_node in nodes))
    explanations, explanation_indexes = build_node_explanations(nodes, evidence, inputs.price_list, inputs.keep_reasons)
    eviction_reasons = find_eviction_reasons(evidence, index)
    savings = list_savings(evidence)
    return FleetDocument(
        source=inputs.source,
        start=convert_to_milliseconds(inputs.start),
        end=convert_to_milliseconds(inputs.end),
        node_pools=node_pools,
        nodes=build_node_columns(nodes, strings, _index_pools(node_pools), explanation_indexes),
        node_states=build_state_columns(nodes),
        pods=build_pod_columns(inputs.pods, strings),
        pod_places=build_place_columns(inputs.pods, strings, eviction_reasons),
        decisions=tuple(decisions),
        markers=tuple(markers),
        explanations=explanations,
        series=(
            *build_comparison_series(nodes, savings, inputs.start, inputs.end),
            *build_wait_series(inputs.pods, inputs.start, inputs.end),
        ),
        totals=FleetTotals(
            cost_usd=round(compute_cost_usd(nodes, inputs.start, inputs.end), 6),
            saved_usd=round(compute_saved_usd(savings, inputs.end), 6) if evidence.cycles else None,
            compared_with=COMPARED_WITH if evidence.cycles else None,
            evictions_by_reason=count_evictions(eviction_reasons),
        ),
        strings=strings.list_strings(),
    )


def _index_pools(node_pools: Iterable[FleetNodePool]) -> dict[str, int]:
    return {node_pool.name: number for number, node_pool in enumerate(node_pools)}


def _complete_nodes(nodes: Iterable[RecordedNode], evidence: Evidence) -> Iterable[RecordedNode]:
    """Yield *nodes* with what only the journal knows: prices, interruptions, blocked disruption, terminations."""
    interruptions, block_changes = find_interruptions(evidence), find_block_changes(evidence)
    records_by_claim = {record.claim: record for record in evidence.node_records}
    for recorded_node in nodes:
        node = recorded_node.node
        record = records_by_claim.get(node.claim)
        started_at, ended_at = recorded_node.started_at, _find_end(recorded_node, record)
        interrupted_at = interruptions.get(node.claim) or interruptions.get(node.name)
        is_own_interruption = interrupted_at is not None and interrupted_at >= started_at
        changes = [change for change in block_changes.get(node.name, ()) if change[0] >= started_at]
        states = merge_states(recorded_node.states, interrupted_at if is_own_interruption else None, changes)
        if ended_at is not None:
            states = [*((at, state) for at, state in states if at < ended_at), (ended_at, "gone")]
        price = node.price or (record.usd_per_hour if record is not None else 0.0) or None
        yield RecordedNode(
            node=msgspec.structs.replace(node, price=price),
            started_at=started_at,
            ended_at=ended_at,
            last_seen_at=recorded_node.last_seen_at,
            states=states,
        )


def _find_end(recorded_node: RecordedNode, record: NodeRecord | None) -> datetime | None:
    """Return when the node ended: its instance is terminated before its Node is deleted."""
    terminated_at = record.terminated_at if record is not None else None
    if terminated_at is None or terminated_at < recorded_node.started_at:
        return recorded_node.ended_at
    return terminated_at if recorded_node.ended_at is None else min(terminated_at, recorded_node.ended_at)
