"""Whether the pods that replace moved pods run as well as these did, and how long the answer pauses disruption."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.decide.disruption.pauses import PauseSettings, find_pauses
from shared.model.core.labels import DISRUPTION_RESUMED, SURGE_DRAIN_RESTART
from shared.model.core.metadata import Condition, build_pairs
from shared.model.core.units import format_instant
from shared.model.decisions.command import CommandState, MovedPods, MovedWorkload
from shared.model.kubernetes.pod import Pod
from shared.state.cluster_state import ClusterState
from shared.state.moved_pods import (
    MAX_WORKLOADS_PER_COMMAND,
    READY_PERIOD,
    RECOVERY_PERIOD,
    check_outcomes,
    is_failing,
    record_moved_pods,
    with_recorded_failures,
)
from tests.support.command_cases import make_command, make_command_state
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    Case,
    get_time_before,
    make_claim,
    make_cluster,
    make_node,
    make_pod,
    replace_fields,
)
from tests.support.surge_cases import make_surge_pod

WINDOW = timedelta(minutes=10)
READY = (Condition(type="Ready", status="True"),)
UNREADY = (Condition(type="Ready", status="False"),)
SETTINGS = PauseSettings(outcome_window=WINDOW)


def make_aged_pod(name: str = "web-abc-1", minutes: float = 2, **fields: Case) -> Pod:
    usual_fields: dict[str, Case] = {"conditions": READY}
    pod = make_surge_pod(name, **(usual_fields | fields))
    return replace_fields(pod, meta=replace_fields(pod.meta, created_at=get_time_before(minutes=minutes)))


def make_moved_state(
    count: int = 5, failing: int = 0, minutes: float = 5, failed_minutes: float | None = None, **workload: Case
) -> CommandState:
    fields = {"pool": "default", "namespace": "shop", "kind": "ReplicaSet", "name": "web-abc"} | workload
    moved = MovedPods(
        at=get_time_before(minutes=minutes),
        workloads=(MovedWorkload(count=count, failing=failing, **fields),),
        failed_at=None if failed_minutes is None else get_time_before(minutes=failed_minutes),
    )
    return make_command_state(make_command("a"), "DONE", get_time_before(minutes=4), moved=moved)


def make_failing_pods(count: int, **fields: Case) -> tuple[Pod, ...]:
    return tuple(make_aged_pod(f"web-abc-{number}", **({"restarts": 1} | fields)) for number in range(count))


def find_message(*states: CommandState, pods: tuple[Pod, ...], pool: Case = POOL, settings: Case = SETTINGS) -> str:
    cluster = make_cluster(pods=pods, node_pools=(pool,))
    pauses, _ = find_pauses(cluster, ClusterState(cluster).nodes, states, settings)
    assert not pauses.find_pause_message("default", "Unhealthy")
    [message] = {pauses.find_pause_message("default", reason) for reason in ("Drifted", "Empty", "Underutilized")}
    return message


@pytest.mark.parametrize(
    ("minutes", "fields", "fails"),
    [
        (2, {}, False),
        (2, {"restarts": 1}, True),
        (60, {"restarts": 5}, False),
        (60, {"restarts": 6}, True),
        (2, {"conditions": UNREADY}, False),
        (4, {"conditions": UNREADY}, True),
        (4, {"conditions": (), "on": "", "phase": "Pending"}, True),
        (2, {"phase": "Failed"}, True),
        (4, {"conditions": UNREADY, "deleted": NOW}, False),
        (4, {"conditions": UNREADY, "phase": "Succeeded"}, False),
    ],
)
def test_pod_fails_if_it_restarts_in_the_window_or_is_not_ready_in_time(
    minutes: float, fields: dict[str, Case], *, fails: bool
) -> None:
    assert is_failing(make_aged_pod(minutes=minutes, **fields), NOW, WINDOW) is fails
    assert timedelta(minutes=2) < READY_PERIOD < timedelta(minutes=4)


@pytest.mark.parametrize(
    ("moved", "failed", "is_paused"), [(5, 2, False), (5, 3, True), (14, 3, True), (15, 3, False), (15, 4, True)]
)
def test_at_least_three_and_over_20_percent_failing_pods_pause_the_node_pool(
    moved: int, failed: int, *, is_paused: bool
) -> None:
    message = find_message(make_moved_state(moved), pods=make_failing_pods(failed))
    assert bool(message) is is_paused
    if is_paused:
        assert message.startswith(f"{failed} of {moved} pods moved by disruption are restarting or not Ready")
        assert "joiner resume --nodepool default" in message


@pytest.mark.parametrize(
    ("state", "pods"),
    [
        (make_moved_state(failing=3), make_failing_pods(5)),
        (make_moved_state(minutes=1), make_failing_pods(5)),
        (make_moved_state(minutes=11), make_failing_pods(5)),
        (make_moved_state(name="other-abc"), make_failing_pods(5)),
        (make_moved_state(pool="other"), make_failing_pods(5)),
        (make_moved_state(count=2), make_failing_pods(5)),
        (replace_fields(make_moved_state(), moved=None), make_failing_pods(5)),
    ],
    ids=["failing-before", "created-before", "window-over", "other-owner", "other-pool", "few-moved", "not-recorded"],
)
def test_failures_that_the_disruption_did_not_cause_pause_nothing(state: CommandState, pods: tuple[Pod, ...]) -> None:
    assert find_message(state, pods=pods) == ""


def test_without_the_setting_nothing_is_recorded_checked_or_paused() -> None:
    off = PauseSettings()
    assert find_message(make_moved_state(), pods=make_failing_pods(5), settings=off) == ""
    state = make_command_state(make_command("a"), "INITIALIZED")
    cluster_state = ClusterState(
        make_cluster(node_claims=(make_claim(),), nodes=(make_node(),), pods=(make_aged_pod(),))
    )
    assert record_moved_pods(state, cluster_state, timedelta()) is state


def test_pods_are_recorded_once_by_controller_with_the_failing_ones() -> None:
    pods = (
        *make_failing_pods(2),
        make_aged_pod("web-abc-3", on="b", restarts=1),
        make_aged_pod("api-def-1", deployment="api", template_hash="def"),
        make_pod("daemon", daemon=True),
    )
    cluster_state = ClusterState(make_cluster(node_claims=(make_claim(),), nodes=(make_node(),), pods=pods))
    proposed = make_command_state(make_command("a"))
    assert record_moved_pods(proposed, cluster_state, WINDOW) is proposed
    state = record_moved_pods(replace_fields(proposed, phase="SURGING"), cluster_state, WINDOW)
    assert state.moved is not None
    assert state.moved.at == NOW
    assert [(one.name, one.count, one.failing) for one in state.moved.workloads] == [
        ("api-def", 1, 0),
        ("web-abc", 2, 3),
    ]
    later = replace_fields(state, phase="INITIALIZED")
    assert record_moved_pods(later, ClusterState(make_cluster()), WINDOW) is later


def test_record_of_a_command_is_bounded() -> None:
    pods = tuple(
        make_aged_pod(f"p{number}", deployment=f"web{number:03}") for number in range(MAX_WORKLOADS_PER_COMMAND + 5)
    )
    cluster_state = ClusterState(make_cluster(node_claims=(make_claim(),), nodes=(make_node(),), pods=pods))
    state = record_moved_pods(make_command_state(make_command("a"), "INITIALIZED"), cluster_state, WINDOW)
    assert state.moved is not None
    assert len(state.moved.workloads) == MAX_WORKLOADS_PER_COMMAND


def test_new_pods_of_a_surge_drain_count_although_their_replica_set_is_new() -> None:
    pods = make_failing_pods(3, template_hash="def", annotations={SURGE_DRAIN_RESTART: "me"})
    assert find_message(make_moved_state(), pods=pods)
    assert not find_message(make_moved_state(), pods=make_failing_pods(3, template_hash="def"))


def test_pause_outlasts_the_failure_by_the_recovery_period_and_then_ends() -> None:
    recent, old = RECOVERY_PERIOD / timedelta(minutes=1) - 1, RECOVERY_PERIOD / timedelta(minutes=1)
    assert "were failing until" in find_message(make_moved_state(minutes=30, failed_minutes=recent), pods=())
    assert find_message(make_moved_state(minutes=30, failed_minutes=old), pods=()) == ""


def test_failure_is_remembered_at_most_once_a_minute_and_observed_after_the_window() -> None:
    cluster = make_cluster(pods=make_failing_pods(3))
    [recorded] = with_recorded_failures(check_outcomes(cluster, (make_moved_state(),), WINDOW))
    assert recorded.moved is not None
    assert recorded.moved.failed_at == NOW
    assert with_recorded_failures(check_outcomes(cluster, (recorded,), WINDOW)) == ()
    long_ago = make_moved_state(minutes=20, failed_minutes=2)
    crashing = make_cluster(pods=make_failing_pods(3, minutes=15, restarts=5))
    [observed] = with_recorded_failures(check_outcomes(crashing, (long_ago,), WINDOW))
    assert observed.moved is not None
    assert observed.moved.failed_at == NOW


def test_resume_annotation_ends_the_pause_for_pods_that_were_moved_before() -> None:
    annotations = build_pairs({DISRUPTION_RESUMED: format_instant(get_time_before(minutes=4))})
    resumed_pool = replace_fields(POOL, meta=replace_fields(POOL.meta, annotations=annotations))
    pods = make_failing_pods(3)
    assert find_message(make_moved_state(failed_minutes=1), pods=pods, pool=resumed_pool) == ""
    assert find_message(make_moved_state(minutes=3), pods=pods, pool=resumed_pool)


@given(
    counts=st.lists(st.tuples(st.integers(1, 30), st.integers(0, 5), st.integers(0, 40)), min_size=1, max_size=4),
    order=st.randoms(use_true_random=False),
)
def test_outcome_never_exceeds_the_moved_pods_and_does_not_depend_on_the_order(
    counts: list[tuple[int, int, int]], order: Case
) -> None:
    states, pods = [], list[Pod]()
    for number, (count, failing, successors) in enumerate(counts):
        state = make_moved_state(count, failing, name=f"web{number}-abc")
        states.append(replace_fields(state, command=make_command(f"n{number}")))
        pods += (make_aged_pod(f"p{number}-{k}", deployment=f"web{number}", restarts=1) for k in range(successors))
    check = check_outcomes(make_cluster(pods=tuple(pods)), states, WINDOW)
    for outcome in check.failed_outcomes.values():
        assert outcome.failed <= outcome.moved == sum(count for count, _, _ in counts)
        assert outcome.failed <= sum(max(0, successors - failing) for _, failing, successors in counts)
    order.shuffle(states)
    order.shuffle(pods)
    assert check_outcomes(make_cluster(pods=tuple(pods)), states, WINDOW).failed_outcomes == check.failed_outcomes
