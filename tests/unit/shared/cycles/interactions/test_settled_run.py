"""When the result of an earlier run of disrupt is still valid."""

from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from shared.cycles.interactions.settled_run import SettledRun, find_settled_run, store_settled_run
from shared.model.cluster import ClusterSnapshot
from shared.model.core.metadata import Problem
from shared.report.journal.decision_record import DecisionInputs
from shared.report.journal.journal_entries import REPORT_INTERVAL, ReportedVerdicts

NOW = datetime(2026, 11, 28, 8, tzinfo=UTC)
CLUSTER = ClusterSnapshot(taken_at=NOW)
INPUTS = DecisionInputs(setting_texts={}, reported_verdicts=ReportedVerdicts(since=NOW))


def is_valid(
    after: timedelta = timedelta(minutes=1),
    *,
    trigger: str = "schedule",
    duration: timedelta = timedelta(seconds=20),
    inputs: DecisionInputs = INPUTS,
    cluster: ClusterSnapshot = CLUSTER,
) -> bool:
    memory: dict[str, object] = {}
    store_settled_run(memory, SettledRun(cluster=CLUSTER, inputs=INPUTS, counts={}, problems=(), duration=duration))
    return find_settled_run(memory, trigger, replace(cluster, taken_at=NOW + after), inputs) is not None


def test_scheduled_run_in_an_unchanged_cluster_uses_the_result() -> None:
    assert is_valid()


@pytest.mark.parametrize("trigger", ["message", "invocation"])
def test_requested_run_evaluates_again(trigger: str) -> None:
    assert not is_valid(trigger=trigger)


@pytest.mark.parametrize(
    ("seconds", "after", "expected"), [(7, 69, True), (7, 70, False), (60, 299, True), (60, 300, False), (0, 1, False)]
)
def test_result_is_valid_for_ten_times_the_duration_up_to_five_minutes(
    seconds: int, after: int, *, expected: bool
) -> None:
    assert is_valid(timedelta(seconds=after), duration=timedelta(seconds=seconds)) is expected


def test_result_of_a_later_time_is_not_used() -> None:
    assert not is_valid(timedelta(seconds=-1))


@pytest.mark.parametrize(
    "inputs",
    [replace(INPUTS, cursor="a"), replace(INPUTS, setting_texts={"mode": "plan"}), DecisionInputs(setting_texts={})],
)
def test_changed_inputs_are_evaluated(inputs: DecisionInputs) -> None:
    assert not is_valid(inputs=inputs)


def test_reported_verdicts_do_not_matter_until_all_are_reported_again() -> None:
    reported = ReportedVerdicts(since=NOW, verdicts={"node": ("kept", "")})
    assert is_valid(inputs=replace(INPUTS, reported_verdicts=reported))
    earlier = ReportedVerdicts(since=NOW + timedelta(minutes=1) - REPORT_INTERVAL)
    assert not is_valid(inputs=replace(INPUTS, reported_verdicts=earlier))


def test_changed_cluster_is_evaluated() -> None:
    problem = Problem(kind="NodePool", name="default", message="invalid")
    assert not is_valid(cluster=replace(CLUSTER, problems=(problem,)))


def test_run_that_left_work_forgets_the_earlier_result() -> None:
    memory: dict[str, object] = {}
    run = SettledRun(cluster=CLUSTER, inputs=INPUTS, counts={}, problems=(), duration=timedelta(seconds=20))
    store_settled_run(memory, run)
    store_settled_run(memory, None)
    assert find_settled_run(memory, "schedule", replace(CLUSTER, taken_at=NOW + timedelta(minutes=1)), INPUTS) is None
    store_settled_run(None, run)
    assert find_settled_run(None, "schedule", CLUSTER, INPUTS) is None
