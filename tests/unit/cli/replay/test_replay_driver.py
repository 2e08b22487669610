"""Decisions against records: the same answers give the same decision, also answers of an earlier version."""

import gzip
import inspect
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cli.main import main
from cli.replay.cycle_lookup import RecordStore
from cli.replay.replay_driver import ReplayDriver
from cli.replay.rerun import build_cluster, start_decision
from shared.cycles.catalog import decide_node_class_statuses
from shared.cycles.disrupt import decide_disruption
from shared.cycles.interrupt import handle_interruptions
from shared.cycles.lifecycle import advance_lifecycle
from shared.cycles.provision import decide_provisioning
from shared.cycles.setup.decision_driver import run_decision
from shared.cycles.setup.run_cycle import CycleReport
from shared.decide.launch.fleets.launch_retries import LaunchObservation
from shared.model.cluster import ClusterSnapshot
from shared.model.decisions import decision_answers as answers
from shared.model.decisions import decision_requests as requests
from shared.model.decisions.action import LaunchInstances
from shared.model.decisions.decision_answers import RecordedAnswer
from shared.model.ec2.fleet import FleetResult
from shared.report.journal.decision_record import DecisionInputs, DecisionRecord, build_inputs, decode_record
from shared.report.journal.journal import JournalEntry, decode_entry
from shared.settings import Settings
from sim.time.virtual_clock import DEFAULT_START_TIME
from tests.support.launch_cases import make_claim, make_cluster
from tests.unit.cli.replay.test_replay import LARGE, make_launch

RECORDS = Path(__file__).parents[3] / "golden" / "records"
"""A journal of the version that recorded answers in one field for each function."""
FUNCTIONS = ("catalog", "disrupt", "interrupt", "lifecycle", "provision")
DECISIONS = (
    *(advance_lifecycle, decide_disruption, decide_node_class_statuses, decide_provisioning),
    handle_interruptions,
)
Exchange = tuple[requests.DecisionRequest, object]


def load_golden_record(function: str) -> tuple[JournalEntry, DecisionRecord, ClusterSnapshot]:
    [path] = (RECORDS / "journal" / function).rglob("*.json")
    entry, store = decode_entry(path.read_bytes()), RecordStore(str(RECORDS))
    record = store.load_record(entry.snapshot)
    catalog = store.load_catalog(record.catalog_key) if record.catalog_key else None
    return entry, record, build_cluster(record, catalog)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_decision_record_of_the_previous_format_gives_the_same_decision(
    function: str, capsys: pytest.CaptureFixture[str]
) -> None:
    [path] = (RECORDS / "journal" / function).rglob("*.json")
    assert main(["replay", str(path.relative_to(RECORDS)), "--journal", str(RECORDS), "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["same"], document["differences"]) == (True, [])
    assert document["recorded"]["actions"]
    assert not any("not decided again" in limit for limit in document["limits"])


def exchange_answers(function: str) -> tuple[CycleReport, list[Exchange]]:
    """Return the report of a recorded decision, and its requests with their answers."""
    entry, record, cluster = load_golden_record(function)
    driver, exchanges = ReplayDriver(entry, record.inputs, cluster, None), list[Exchange]()

    def perform_request(request: requests.DecisionRequest) -> object:
        exchanges.append((request, driver.perform_request(request)))
        return exchanges[-1][1]

    return run_decision(start_decision(function, cluster, record.inputs), perform_request), exchanges


@pytest.mark.parametrize("function", FUNCTIONS)
def test_same_recorded_answers_give_the_same_requests_and_report(function: str) -> None:
    report, exchanges = exchange_answers(function)
    _, record, cluster = load_golden_record(function)
    remaining: Iterator[Exchange] = iter(exchanges)

    def perform_request(request: requests.DecisionRequest) -> object:
        expected_request, answer = next(remaining)
        assert request == expected_request
        return answer

    assert run_decision(start_decision(function, cluster, record.inputs), perform_request) == report
    assert next(remaining, None) is None
    assert len(exchanges) > 1


@pytest.mark.parametrize("decision", DECISIONS, ids=lambda decision: decision.__name__)
def test_decision_functions_take_only_values(decision: Any) -> None:
    assert inspect.isgeneratorfunction(decision)
    assert set(inspect.signature(decision).parameters) <= {"cluster", "inputs", "deadline", "has_launches"}


@pytest.mark.parametrize("function", ["catalog", "provision"])
def test_missing_recorded_answers_change_the_decision(function: str) -> None:
    report, _ = exchange_answers(function)
    entry, record, cluster = load_golden_record(function)
    inputs = DecisionInputs(setting_texts=record.inputs.setting_texts, answers=())
    other_report = run_decision(
        start_decision(function, cluster, inputs), ReplayDriver(entry, inputs, cluster, None).perform_request
    )
    assert other_report.outcomes != report.outcomes


# Conversion


AT = DEFAULT_START_TIME.isoformat()
RESULT = {"fleet_id": "f", "instances": []}


def decode_old_record(**inputs: Any) -> DecisionInputs:
    document = {
        "given": {"settings": {"cluster_name": "demo", "region": "r"}} | inputs,
        "made": {"decided": 0},
        "cluster": {"taken_at": AT},
    }
    return decode_record(gzip.compress(json.dumps(document).encode())).inputs


def test_recorded_round_is_decoded_into_observation_conflicts_and_fleet_results() -> None:
    rounds = [
        {"at": AT, "gone": ["a"], "overtaken": ["g"], "answers": [["h", RESULT]], "unknown": 1},
        {"at": AT},
    ]
    empty_round = (answers.ObservedChanges(at=DEFAULT_START_TIME), answers.LimitConflicts(), answers.FleetResults())
    assert decode_old_record(rounds=rounds).answers == (
        answers.ObservedChanges(at=DEFAULT_START_TIME, removed_claims=("a",)),
        answers.LimitConflicts(launch_groups=("g",)),
        answers.FleetResults(fleet_results=(("h", FleetResult(fleet_id="f")),)),
        *empty_round,
    )
    assert decode_old_record(rounds=[]).answers == ()


def test_answers_in_the_previous_record_format_are_decoded() -> None:
    lookups = {"spared": ["i-1"], "templates": [], "is_tidying": True, "overlaid_at": AT, "catalogue": "c"}
    assert decode_old_record(kept=lookups).answers == (
        answers.SparedInstances(instance_ids=("i-1",)),
        answers.ExistingTemplates(templates=()),
        answers.CleanupDue(is_due=True),
        answers.AppliedOverlays(overlaid_at=DEFAULT_START_TIME, catalog_key="c"),
    )
    assert decode_old_record(resolved={"found": [], "profile": "p"}).answers == (
        answers.AccountAnswersRecord(profile="p"),
    )
    assert decode_old_record(resolved={}).answers == (answers.AccountAnswersRecord(),)
    assert decode_old_record().answers is None


def test_lifecycle_launch_groups_are_restored_into_the_cluster_snapshot() -> None:
    _, record, cluster = load_golden_record("lifecycle")
    assert cluster.launch_groups == record.inputs.launch_groups != ()


# Requests that were not made at the time


def make_driver(*recorded_answers: RecordedAnswer) -> ReplayDriver:
    entry = JournalEntry(function="provision", trigger="t", at=DEFAULT_START_TIME, cluster="")
    inputs = replace(build_inputs(Settings(cluster_name="c", region="r")), answers=recorded_answers)
    return ReplayDriver(entry, inputs, make_cluster(make_claim("a"), make_claim("b")), None)


def observe_claims(driver: ReplayDriver) -> list[str]:
    observation = driver.perform_request(requests.ObserveLaunches())
    assert isinstance(observation, LaunchObservation)
    return [claim.name for claim in observation.cluster.node_claims]


def test_unrecorded_request_gets_the_default_answer() -> None:
    driver = make_driver()
    for request, default in (
        (requests.FindSparedInstances(actions=()), answers.SparedInstances()),
        (requests.ListLaunchTemplates(), answers.ExistingTemplates()),
        (requests.CheckCleanupDue(), answers.CleanupDue()),
        (requests.ReserveLimits(limit_reservations=(), launches=()), answers.LimitConflicts()),
        (requests.QueryAccount(node_classes=()), answers.AccountAnswersRecord()),
        (requests.ApplyOverlays(), make_cluster(make_claim("a"), make_claim("b"))),
    ):
        assert driver.perform_request(request) == default
    assert observe_claims(driver) == []


def test_recorded_answers_are_used_in_their_own_round() -> None:
    later = DEFAULT_START_TIME + timedelta(seconds=1)
    driver = make_driver(
        answers.ObservedChanges(at=DEFAULT_START_TIME),
        answers.ObservedChanges(at=later, removed_claims=("a",)),
        answers.LimitConflicts(launch_groups=("g",)),
        answers.FleetResults(fleet_results=(("g", FleetResult(fleet_id="f")),)),
    )
    launch: LaunchInstances = make_launch(LARGE)
    reserve = requests.ReserveLimits(limit_reservations=(), launches=(launch,))
    perform = requests.PerformActions(actions=(launch,))
    assert observe_claims(driver) == ["a", "b"]
    assert driver.perform_request(reserve) == answers.LimitConflicts()
    [outcome] = _list_outcomes(driver.perform_request(perform))
    assert outcome.group is None
    assert observe_claims(driver) == ["b"]
    assert driver.perform_request(reserve) == answers.LimitConflicts(launch_groups=("g",))
    [outcome] = _list_outcomes(driver.perform_request(perform))
    assert outcome.group.result == FleetResult(fleet_id="f")
    assert observe_claims(driver) == []


def _list_outcomes(answer: Any) -> list[Any]:
    return list(answer)
