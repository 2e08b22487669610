"""If the pods of a node are expected to end before moving them pays, the node waits for their end."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.budgets.cluster_settings import DisruptionSettings
from shared.decide.disruption.savings.disruption_cost import NODE_OVERLAP_PERIOD
from shared.decide.disruption.savings.remaining_run_time import (
    ExpectedEnd,
    estimate_remaining_time,
    merge_remaining_times,
    summarize_end,
)
from shared.decide.disruption.savings.run_time_history import find_finite_family
from shared.model.core.labels import DO_NOT_DISRUPT
from shared.model.core.metadata import OwnerReference
from shared.model.decisions.pod_run_time import RunTimeRecord, find_interval
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import NOW, make_pod
from tests.support.disruption_fleet import (
    decide_disruption,
    get_verdict,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

MINUTE = timedelta(minutes=1)
ROOMY = make_node_with_pods("b", make_web_pod("2", "1"), annotations={DO_NOT_DISRUPT: "true"})
JOB = OwnerReference(api_version="batch/v1", kind="Job", name="report-29401230", uid="j", controller=True)


def make_job_pod(minutes: float, name: str = "r", deadline_minutes: float | None = None) -> Pod:
    """Return a pod of the CronJob `report` that started *minutes* ago."""
    deadline = None if deadline_minutes is None else deadline_minutes * MINUTE
    pod = make_pod(name, "200m", owners=(JOB,))
    return replace(pod, started_at=NOW - minutes * MINUTE, restart_policy="Never", active_deadline=deadline)


def make_record(*minutes: float, family: str = "CronJob shop/report") -> RunTimeRecord:
    """Return a record with a run of each of *minutes*."""
    counts: dict[int, int] = {}
    for run_minutes in minutes:
        interval = find_interval(run_minutes * MINUTE)
        counts[interval] = counts.get(interval, 0) + 1
    return RunTimeRecord(family=family, run_counts=tuple(sorted(counts.items())), last_seen_at=NOW)


def estimate(record: RunTimeRecord, pod: Pod) -> ExpectedEnd | None:
    remaining_time = estimate_remaining_time(record, pod, NOW)
    return None if remaining_time is None else summarize_end(remaining_time)


def decide(
    pods: tuple[Pod, ...], record: RunTimeRecord | None, *, price: float = 0.02, quiet_minutes: float = 30
) -> tuple[list[object], str]:
    """Return the commands and the message about a node at $0.2/h, whose pods fit on another node."""
    node, claim, bound_pods = make_node_with_pods("a", *pods)
    past = tuple(replace(condition, since=NOW - timedelta(days=9)) for condition in claim.conditions)
    machine = (node, replace(claim, conditions=past, last_pod_event_at=NOW - quiet_minutes * MINUTE), bound_pods)
    settings = DisruptionSettings(
        eviction_price_usd=price, overlap=NODE_OVERLAP_PERIOD, run_times=() if record is None else (record,)
    )
    decision = decide_disruption(make_fleet(machine, ROOMY), settings)
    return list(summarize_commands(decision)), get_verdict(decision, "a")[-1]


TWENTY_MINUTES = make_record(*(20,) * 40)
LONG = make_record(*(300,) * 40)
REMOVED: list[object] = [("SingleNode", ["a"], [])]


def test_node_waits_if_its_pods_end_before_their_evictions_pay() -> None:
    commands, message = decide((make_job_pod(15), make_job_pod(15, "s")), TWENTY_MINUTES)
    assert commands == []
    assert message == (
        "its 2 pods of CronJob shop/report are expected to end in 6m27s ± 56s, by 40 earlier runs: "
        "waiting costs $0.02, moving costs 2 evictions = $0.04 and work of Jobs that starts again = $0.0063"
    )


def test_node_is_removed_if_its_pods_run_for_longer_than_moving_them_costs() -> None:
    commands, message = decide((make_job_pod(15), make_job_pod(15, "s")), LONG)
    assert (commands, "expected to end" in message) == (REMOVED, False)


def test_savings_end_when_the_pods_end() -> None:
    """The node has been quiet for ten hours, but its pods end in five."""
    commands, message = decide((make_job_pod(1),), LONG, quiet_minutes=600)
    assert commands == REMOVED
    assert message == (
        "its pods fit on other nodes; saves $0.93 over an expected 4h39m (±17m57s: its pods are expected to end by "
        "then, by 40 earlier runs), costs 1 eviction = $0.02 and work of Jobs that starts again = $0.0002"
    )


def test_without_a_record_nothing_changes() -> None:
    for record in (None, make_record(*(20,) * 40, family="Job shop/other")):
        assert decide((make_job_pod(15),), record) == decide((make_job_pod(15),), None)
    assert decide((make_job_pod(15),), None)[0] == REMOVED


def test_one_pod_without_an_end_keeps_the_rule_of_savings() -> None:
    pods = (make_job_pod(15), make_web_pod("1", "200m"))
    assert decide(pods, TWENTY_MINUTES) == decide(pods, None)


def test_without_an_eviction_price_a_deletion_does_not_wait() -> None:
    assert decide((make_job_pod(15),), TWENTY_MINUTES, price=0)[0] == REMOVED


def test_node_of_a_pod_that_runs_longer_than_all_earlier_runs_is_removed() -> None:
    assert decide((make_job_pod(30),), TWENTY_MINUTES)[0] == REMOVED


def test_pods_that_end_soon_are_not_moved_even_after_a_quiet_day() -> None:
    record = make_record(*(1500,) * 40)
    assert decide((make_job_pod(1500),), record, quiet_minutes=1500, price=0.5)[0] == []


@pytest.mark.parametrize("runs", [2, 3])
def test_three_earlier_runs_are_needed(runs: int) -> None:
    end = estimate(make_record(*(20,) * runs), make_job_pod(5))
    assert (end is not None) == (runs == 3)


def test_expected_end_depends_on_the_age_of_the_pod() -> None:
    """Half of the runs last 5m, half an hour: a pod of 10m is one of the long ones."""
    record = make_record(*(5,) * 20, *(60,) * 20)
    young, old = estimate(record, make_job_pod(0)), estimate(record, make_job_pod(10))
    assert young is not None
    assert old is not None
    assert 30 * MINUTE < young.expected < 36 * MINUTE
    assert 48 * MINUTE < old.expected < 58 * MINUTE
    assert young.error > 5 * old.error
    assert (young.run_count, old.run_count) == (40, 20)


def test_pod_that_has_not_started_has_its_whole_run_time_left() -> None:
    assert estimate(TWENTY_MINUTES, replace(make_job_pod(0), started_at=None)) == estimate(
        TWENTY_MINUTES, make_job_pod(0)
    )


def test_active_deadline_bounds_the_end() -> None:
    end = estimate(LONG, make_job_pod(10, deadline_minutes=17))
    assert end is not None
    assert end.expected <= 7 * MINUTE
    late = estimate(LONG, make_job_pod(10, deadline_minutes=5))
    assert late is not None
    assert (late.expected, late.error) == (timedelta(), timedelta())
    unbounded = estimate(LONG, make_job_pod(10, deadline_minutes=6000))
    assert unbounded == estimate(LONG, make_job_pod(10))


def test_deadline_of_one_pod_does_not_bound_another_pod() -> None:
    pods = (make_job_pod(10, deadline_minutes=17), make_job_pod(10, "s"))
    remaining_times = [estimate_remaining_time(LONG, pod, NOW) for pod in pods]
    merged = summarize_end(merge_remaining_times([item for item in remaining_times if item is not None]))
    alone = estimate(LONG, pods[1])
    assert alone is not None
    assert merged.expected >= alone.expected > 260 * MINUTE


def test_last_of_many_pods_ends_later_than_one_pod() -> None:
    record = make_record(*range(10, 60))
    pod_end = estimate_remaining_time(record, make_job_pod(0), NOW)
    assert pod_end is not None
    single, last = summarize_end(pod_end), summarize_end(merge_remaining_times([pod_end] * 10))
    assert last.expected > single.expected + 15 * MINUTE
    assert last.pod_count == 10
    assert last.families == (find_finite_family(make_job_pod(0)),)


def test_many_families_are_listed_briefly() -> None:
    families = ("CronJob shop/a", "CronJob shop/b", "Job shop/c")
    end = ExpectedEnd(expected=5 * MINUTE, error=MINUTE, run_count=1, families=families, pod_count=1)
    assert end.format() == (
        "1 pod of CronJob shop/a, CronJob shop/b and 1 more is expected to end in 5m ± 1m, by 1 earlier run"
    )
