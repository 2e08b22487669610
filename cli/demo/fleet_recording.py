"""Records a simulation as a fleet document: every change of its nodes and pods, acts, and journal."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from cli.explain.evidence import Evidence
from cli.explain.node_records import build_node_records
from cli.fleet.document.fleet_decisions import DecisionKind, FleetDecision, FleetMarker
from cli.fleet.document.fleet_document import FleetDocument, FleetSource
from cli.fleet.document.json_format import convert_to_milliseconds
from cli.fleet.fleet_builder import FleetInputs, build_fleet_document
from cli.fleet.recording.fleet_recorder import FleetRecorder
from cli.fleet.recording.observed_objects import build_observed_node, build_observed_pod
from cli.journal.journal import Journal, decode_cycles
from shared.model.cluster import ClusterSnapshot
from shared.model.karpenter.node_claim import NodeClaim
from shared.model.kubernetes.node import Node
from shared.report.journal.journal import JOURNAL_PREFIX
from shared.state.cluster_state import ClusterState
from shared.state.node_prices import PriceList
from shared.take.kubernetes.resource_kinds import RESOURCE_KINDS
from shared.take.snapshot import read_newest_catalog
from sim.scenarios.runner import ScenarioResult, ScenarioRunner

_NO_PRICES: Final = PriceList(None)
_NODE_CLAIMS: Final = "nodeclaims.karpenter.sh"
_KINDS_BY_FIELD: Final = {resource_kind.field: resource_kind for resource_kind in RESOURCE_KINDS}
_DECISION_KIND_BY_SOURCE: Final[dict[str, DecisionKind]] = {"you": "deploy", "fault": "fault"}
"""Kinds of the decisions that the journal does not contain, by the source of their timeline entry."""
_FAULT_NAMES: Final = {
    "interruptSpot": "Spot interruption of",
    "rebalance": "Rebalance recommendation for",
    "kill": "Instance terminated outside of Joiner:",
    "maintenance": "EC2 maintenance of",
}


class SimulationRecorder:
    """Follows the API server of a simulation."""

    def __init__(self, runner: ScenarioRunner) -> None:
        """Subscribe to nodes, NodeClaims and pods of the world of *runner*, which has not started."""
        self._runner, self._recorder = runner, FleetRecorder()
        self._nodes: dict[str, Node] = {}
        self._claims: dict[str, NodeClaim] = {}
        api = runner.world.cluster.api
        api.subscribe("nodes", self._handle_node)
        api.subscribe(_NODE_CLAIMS, self._handle_claim)
        api.subscribe("pods", self._handle_pod)

    def _handle_node(self, _: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        _update_objects(self._nodes, "nodes", old, new)
        self._observe_nodes()

    def _handle_claim(self, _: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        _update_objects(self._claims, "node_claims", old, new)
        self._observe_nodes()

    def _observe_nodes(self) -> None:
        """Record all nodes: few enough in a simulation, and unchanged ones add nothing."""
        now = self._now
        cluster = ClusterSnapshot(
            taken_at=now, nodes=tuple(self._nodes.values()), node_claims=tuple(self._claims.values())
        )
        states = ClusterState(cluster).nodes
        self._recorder.observe_nodes(now, [build_observed_node(state, _NO_PRICES, "") for state in states])

    def _handle_pod(self, _: str, old: dict[str, Any] | None, new: dict[str, Any] | None) -> None:
        if new is None:
            self._recorder.remove_pod(self._now, (old or {})["metadata"]["uid"])
        else:
            self._recorder.observe_pod(self._now, build_observed_pod(_parse_object("pods", new)))

    @property
    def _now(self) -> datetime:
        return self._runner.world.clock.get_time()

    def build_document(self, played: ScenarioResult, replay_source: str, generated_at: datetime) -> FleetDocument:
        """Return the document of the simulation *played*; *replay_source* is the location of its journal."""
        world, now = self._runner.world, self._now
        keys = world.bucket.list_keys(JOURNAL_PREFIX)
        cycles, messages = decode_cycles((key, world.bucket.get(key)) for key in keys)
        journal = Journal(source="", cycles=tuple(cycles), messages=tuple(messages), now=now)
        evidence = Evidence(journal=journal, node_records=build_node_records(journal.cycles))
        cluster = ClusterSnapshot(taken_at=now, catalog=read_newest_catalog(world.bucket, []))
        node_pools = world.cluster.api.list("nodepools.karpenter.sh")
        return build_fleet_document(
            FleetInputs(
                source=FleetSource(
                    kind="demo",
                    cluster=world.cluster_name,
                    title=f"Joiner demo: {played.scenario.name}",
                    generated_at=convert_to_milliseconds(generated_at),
                    notes=(played.scenario.says, "Simulated cloud and cluster. Prices are synthetic."),
                ),
                start=played.started_at,
                end=now,
                nodes=self._recorder.nodes,
                pods=self._recorder.pods,
                node_pools=[_parse_object("node_pools", node_pool) for node_pool in node_pools],
                evidence=evidence,
                price_list=ClusterState(cluster).price_list,
                replay_source=replay_source,
                decisions=[*_list_events(played)],
                markers=[*_list_act_markers(played)],
            )
        )


def _parse_object(field: str, document: dict[str, Any]) -> Any:  # noqa: ANN401 - of the kind of *field*
    resource_kind = _KINDS_BY_FIELD[field]
    return resource_kind.convert(msgspec.convert(document, resource_kind.wire_type, strict=False))


def _update_objects(
    objects: dict[str, Any], field: str, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> None:
    name = (new or old or {})["metadata"]["name"]
    if new is None:
        objects.pop(name, None)
    else:
        objects[name] = _parse_object(field, new)


def _list_act_markers(played: ScenarioResult) -> Iterator[FleetMarker]:
    for number, act in enumerate(played.acts, 1):
        yield FleetMarker(
            t=convert_to_milliseconds(act.started_at),
            end=convert_to_milliseconds(act.ended_at),
            kind="act",
            title=f"{number}. {act.name}",
            text=act.description if act.passed else f"{act.description} Not as expected: {'; '.join(act.failures)}",
        )


def _list_events(played: ScenarioResult) -> Iterator[FleetDecision]:
    """Yield the steps of the scenario: what users and the cloud did."""
    for moment in played.timeline:
        if moment.source in _DECISION_KIND_BY_SOURCE:
            yield FleetDecision(
                t=convert_to_milliseconds(moment.at),
                id="",
                function=moment.source,
                kind=_DECISION_KIND_BY_SOURCE[moment.source],
                title=_describe_fault(moment.message) if moment.source == "fault" else moment.message,
                lines=(moment.reason,) if moment.reason else (),
            )


def _describe_fault(message: str) -> str:
    """Return *message* with the field's words for the kind of a fault of a scenario."""
    kind, _, object_name = message.partition(" ")
    return f"{_FAULT_NAMES[kind]} {object_name}" if kind in _FAULT_NAMES else message
