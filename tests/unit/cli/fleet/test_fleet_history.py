"""The fleet document of a journal: the same nodes, pods and costs as in the simulation that wrote it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from cli.fleet.document.fleet_document import FleetDocument
from cli.fleet.document.json_format import convert_to_milliseconds
from cli.fleet.document.node_columns import NODE_STATES
from cli.fleet.sources.fleet_history import FleetHistory
from cli.fleet.sources.journal_recording import RecordedSnapshots
from cli.journal.journal import Journal, load_journal

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)
SOURCE = "examples/journal"


@pytest.fixture(scope="module")
def journal() -> Journal:
    return load_journal(SOURCE, NOW, None, is_now=False)


@pytest.fixture(scope="module")
def document(journal: Journal) -> FleetDocument:
    return FleetHistory(journal, kind="journal", title="example").build_document(journal.now)


def list_states(document: FleetDocument, node: int) -> list[str]:
    pairs = zip(document.node_states.node, document.node_states.state, strict=True)
    return [NODE_STATES[state] for number, state in pairs if number == node]


def test_nodes_have_exact_states_from_actions(document: FleetDocument) -> None:
    names = [document.strings[name or 0] for name in document.nodes.claim]
    interrupted = names.index("default-4a4d7897dd")
    assert list_states(document, interrupted) == ["launched", "registered", "ready", "interrupted", "gone"]
    assert list_states(document, names.index("default-8fdd2df090"))[-2:] == ["cordoned", "gone"]


def test_decisions_have_objects_reasons_and_replay_commands(document: FleetDocument) -> None:
    launch = next(decision for decision in document.decisions if decision.kind == "launch")
    assert launch.nodes == (0,)
    assert launch.pods
    assert launch.lines[0].endswith("/h)")
    assert launch.replay == f"joiner replay provision 2026-11-21T08:02:00 --journal {SOURCE}"
    kinds = {decision.kind for decision in document.decisions}
    assert kinds >= {"launch", "terminate", "interrupt", "consolidate"}
    command = next(decision for decision in document.decisions if decision.saves_usd_per_hour)
    assert command.title == "Emptiness: remove 1 empty node, saves $0.0597/h"
    assert any(line.startswith("command ") for line in command.lines)


def test_phases_of_a_disruption_command_are_one_decision(document: FleetDocument) -> None:
    titles = [decision.title for decision in document.decisions if decision.saves_usd_per_hour]
    assert len(titles) == len(set(titles))
    command = next(decision for decision in document.decisions if decision.saves_usd_per_hour)
    phases = [line.partition(" ")[2] for line in command.lines if line[2] == ":"]
    assert phases == [
        "proposed",
        "started: its NodeClaims are being deleted",
        "draining: its nodes are drained",
        "done: its nodes are terminated",
    ]


def test_markers_name_launches_terminations_and_interruptions(document: FleetDocument) -> None:
    titles = {marker.kind: marker.title for marker in document.markers}
    assert titles["launch"].endswith("spot launched")
    assert titles["terminate"].endswith("spot terminated")
    assert "interruption" in titles


def test_explanations_have_alternatives_and_the_reason_to_stay(document: FleetDocument) -> None:
    explanation = document.explanations[document.nodes.explanation[0] or 0]
    assert any(line.startswith("reason: ") for line in explanation.lines)
    prices = [alternative.price for alternative in explanation.alternatives]
    assert prices == sorted(prices)
    assert len({alternative.instance_type for alternative in explanation.alternatives}) == len(prices) == 3


def test_evictions_have_the_reason_of_their_node(document: FleetDocument) -> None:
    reasons = {document.strings[reason] for reason in document.pod_places.reason if reason is not None}
    assert reasons == {"Evicted: spot_interrupted", "Evicted: underutilized"}
    assert sum(document.totals.evictions_by_reason.values()) == 6


def test_savings_are_compared_with_the_fleet_without_commands(document: FleetDocument) -> None:
    assert document.totals.saved_usd is not None
    assert document.totals.saved_usd > 0
    [series] = [series for series in document.series if series.id == "usdPerHour.withoutCommands"]
    current_price = sum(
        price or 0 for price, end in zip(document.nodes.price, document.nodes.end, strict=True) if end is None
    )
    assert (series.v[-1] or 0) > current_price


def test_journal_without_snapshots_has_nodes_but_says_that_pods_are_missing(journal: Journal, tmp_path: Path) -> None:
    copied = Journal(source=str(tmp_path), cycles=journal.cycles, now=journal.now)
    document = FleetHistory(copied, kind="journal", title="x").build_document(journal.now)
    assert len(document.nodes.name) == 4
    assert document.pods.name == ()
    assert "expired or could not be read: pods of that time are missing" in document.source.notes[0]


def test_empty_journal_has_a_document() -> None:
    document = FleetHistory(Journal(source="", now=NOW), kind="journal", title="x").build_document(NOW)
    assert (document.start, document.end) == (convert_to_milliseconds(NOW), convert_to_milliseconds(NOW))
    assert document.totals.saved_usd is None


def test_number_of_snapshots_is_limited(journal: Journal) -> None:
    snapshots = [*RecordedSnapshots(SOURCE, journal.cycles, 3).iterate_snapshots()]
    all_snapshots = [*RecordedSnapshots(SOURCE, journal.cycles).iterate_snapshots()]
    assert len(snapshots) == 3 < len(all_snapshots)
    assert (snapshots[0], snapshots[-1]) == (all_snapshots[0], all_snapshots[-1])


def test_node_that_a_live_cluster_does_not_list_is_gone(journal: Journal) -> None:
    history = FleetHistory(journal, kind="cluster", title="x")
    cluster = history.cluster
    assert cluster is not None
    history.observe(cluster, journal.now + timedelta(minutes=1))
    before = history.build_document(journal.now + timedelta(minutes=1))
    assert None in before.nodes.end
    history.observe(msgspec.structs.replace(cluster, nodes=(), node_claims=()), journal.now + timedelta(minutes=2))
    later = history.build_document(journal.now + timedelta(minutes=2))
    assert None not in later.nodes.end
