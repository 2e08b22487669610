"""What pauses disruption, who requested the pause, and until when."""

from datetime import timedelta

import pytest

from shared.decide.disruption.pauses import (
    LONG_PENDING_PERIOD,
    REMOVAL_EFFECT_PERIOD,
    PauseSettings,
    count_long_pending_pods,
    describe_pauses,
    find_pauses,
    list_paused_reasons,
    parse_pause_settings,
)
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DISRUPTION_PAUSED, DISRUPTION_RESUMED, LAUNCHES_PAUSED
from shared.model.core.metadata import Condition, build_pairs
from shared.model.core.units import format_instant
from shared.model.decisions.action import PublishEvent
from shared.model.decisions.command import CommandState, DisruptionPause, DisruptionPauses, Phase, format_pause
from shared.state.cluster_state import ClusterState
from tests.support.command_cases import make_command, make_command_state
from tests.support.lifecycle_cases import (
    NOW,
    POOL,
    STAGES,
    Case,
    filter_actions,
    get_time_before,
    make_claim,
    make_cluster,
    make_node,
    make_pod,
    make_true_conditions,
    replace_fields,
)

DEFAULT_SETTINGS = PauseSettings()
PENDING = (Condition(type="PodScheduled", status="False", reason="Unschedulable"),)
OTHER_POOL = replace_fields(POOL, meta=replace_fields(POOL.meta, name="other", uid="o"))


def make_annotated_pool(**annotations: str) -> Case:
    keys = {"paused": DISRUPTION_PAUSED, "resumed": DISRUPTION_RESUMED}
    return replace_fields(
        POOL,
        meta=replace_fields(
            POOL.meta, annotations=build_pairs({keys[name]: text for name, text in annotations.items()})
        ),
    )


def find_disruption_pauses(
    of_cluster: ClusterSnapshot, *standings: CommandState, settings: PauseSettings = DEFAULT_SETTINGS
) -> DisruptionPauses:
    return find_pauses(of_cluster, ClusterState(of_cluster).nodes, standings, settings)[0]


def collect_paused_reasons(pauses: DisruptionPauses, pool: str = "default") -> set[str]:
    return {
        reason
        for reason in ("Drifted", "Empty", "Unhealthy", "Underutilized")
        if pauses.find_pause_message(pool, reason)
    }


def build_failed_command(number: int, phase: Phase = "ROLLED_BACK", **fields: Case) -> CommandState:
    """Build a command that failed, or that entered *phase*, *number* minutes ago."""
    failed = (
        {"failures": (get_time_before(minutes=number),), "message": "replacement new was deleted"}
        if phase == "ROLLED_BACK"
        else {}
    )
    command = make_command(f"a{number}", replacements=("new",))
    return make_command_state(command, phase, since=get_time_before(minutes=number), **(failed | fields))


# People


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("", set()),
        ("false", set()),
        ("Drifted", {"Drifted"}),
        ("Drifted, Empty", {"Drifted", "Empty"}),
        ("true", {"Drifted", "Empty", "Unhealthy", "Underutilized"}),
    ],
)
def test_pause_setting_applies_to_the_cluster_and_pause_annotation_to_a_node_pool(text: str, reasons: set[str]) -> None:
    cluster = make_cluster(node_pools=(make_annotated_pool(paused=text), OTHER_POOL))
    assert collect_paused_reasons(find_disruption_pauses(cluster)) == reasons
    assert collect_paused_reasons(find_disruption_pauses(cluster), "other") == set()
    everywhere = find_disruption_pauses(
        make_cluster(node_pools=(POOL, OTHER_POOL)), settings=parse_pause_settings(text, 0)
    )
    assert collect_paused_reasons(everywhere) == collect_paused_reasons(everywhere, "other") == reasons
    assert all(pause.is_intentional for pause in (*find_disruption_pauses(cluster).items, *everywhere.items))


def test_invalid_pause_annotation_pauses_the_node_pool_and_is_reported() -> None:
    odd = make_cluster(node_pools=(make_annotated_pool(paused="Dirft"),))
    pauses, problems = find_pauses(odd, (), (), DEFAULT_SETTINGS)
    assert collect_paused_reasons(pauses) == {"Drifted", "Empty", "Unhealthy", "Underutilized"}
    assert not any(pause.is_intentional for pause in pauses.items)
    [problem] = problems
    assert (problem.kind, problem.name) == ("NodePool", "default")
    assert (
        "'Dirft' is not a reason: did you mean Drifted? write true, or one or more of Drifted, Empty" in problem.message
    )


def test_invalid_pause_setting_is_rejected() -> None:
    with pytest.raises(ValueError, match="'Dirft' is not a reason"):
        parse_pause_settings("Dirft", 0)


def test_requested_pause_also_stops_open_commands() -> None:
    command = make_command("a", replacements=("new",))
    by_people = find_disruption_pauses(make_cluster(node_pools=(make_annotated_pool(paused="Underutilized"),)))
    assert "to resume, run `joiner resume --nodepool default`" in by_people.find_command_pause_message(command)
    assert not find_disruption_pauses(
        make_cluster(node_pools=(make_annotated_pool(paused="Drifted"),))
    ).find_command_pause_message(command)
    failures = find_disruption_pauses(
        make_cluster(), build_failed_command(1), build_failed_command(2), build_failed_command(3)
    )
    assert failures.find_pause_message("default", "Underutilized")
    assert not failures.find_command_pause_message(command)


# Failed replacements


@pytest.mark.parametrize(
    ("history", "reasons"),
    [
        ((build_failed_command(1), build_failed_command(2)), set()),
        ((build_failed_command(1), build_failed_command(2), build_failed_command(3)), {"Drifted", "Underutilized"}),
        (
            (
                build_failed_command(1),
                build_failed_command(2, "DONE"),
                build_failed_command(3),
                build_failed_command(4),
            ),
            set(),
        ),
        (
            (
                build_failed_command(1),
                build_failed_command(2),
                build_failed_command(3),
                build_failed_command(4, "DONE"),
            ),
            {"Drifted", "Underutilized"},
        ),
        ((build_failed_command(1), build_failed_command(2), build_failed_command(3, failures=())), set()),
        (
            (
                build_failed_command(1),
                build_failed_command(2),
                build_failed_command(3, failures=()),
                build_failed_command(4),
            ),
            {"Drifted", "Underutilized"},
        ),
        (
            (
                build_failed_command(1),
                build_failed_command(2),
                make_command_state(make_command("x"), "DONE", since=get_time_before(seconds=1)),
                build_failed_command(3),
            ),
            {"Drifted", "Underutilized"},
        ),
        ((build_failed_command(1), build_failed_command(2), build_failed_command(3, "LAUNCHED")), set()),
        (
            (
                build_failed_command(
                    9, failures=(get_time_before(minutes=9), get_time_before(minutes=5), get_time_before(minutes=1))
                ),
            ),
            {"Drifted", "Underutilized"},
        ),
        (
            (
                build_failed_command(
                    1,
                    "LAUNCHED",
                    failures=(get_time_before(minutes=9), get_time_before(minutes=5), get_time_before(minutes=3)),
                ),
            ),
            {"Drifted", "Underutilized"},
        ),
        (
            (
                build_failed_command(
                    1,
                    "DONE",
                    failures=(get_time_before(minutes=9), get_time_before(minutes=5), get_time_before(minutes=3)),
                ),
            ),
            set(),
        ),
        (
            (
                build_failed_command(
                    9, failures=(get_time_before(minutes=61), get_time_before(minutes=5), get_time_before(minutes=1))
                ),
            ),
            set(),
        ),
    ],
)
def test_three_failed_replacements_in_a_row_pause_disruption_that_needs_replacements(
    history: Case, reasons: set[str]
) -> None:
    pauses = find_disruption_pauses(make_cluster(node_pools=(POOL, OTHER_POOL)), *history)
    assert collect_paused_reasons(pauses) == reasons
    assert collect_paused_reasons(pauses, "other") == set()


def test_failure_pause_message_explains_resuming_and_the_resume_annotation_ends_it() -> None:
    history = (build_failed_command(1), build_failed_command(2), build_failed_command(3))
    [pause, _] = find_disruption_pauses(make_cluster(), *history).items
    assert "replacement new was deleted" in pause.message
    assert f"kubectl annotate nodepool default --overwrite {DISRUPTION_RESUMED}=" in pause.message
    resumed = make_cluster(node_pools=(make_annotated_pool(resumed="2026-11-21T11:58:00Z"),))
    assert collect_paused_reasons(find_disruption_pauses(resumed, *history)) == set()
    long_ago = make_cluster(node_pools=(make_annotated_pool(resumed="2026-11-21T11:00:00Z"),))
    assert collect_paused_reasons(find_disruption_pauses(long_ago, *history)) == {"Drifted", "Underutilized"}


def test_invalid_resume_annotation_is_ignored_and_reported() -> None:
    odd = make_cluster(node_pools=(make_annotated_pool(resumed="now"),))
    pauses, problems = find_pauses(
        odd, (), (build_failed_command(1), build_failed_command(2), build_failed_command(3)), DEFAULT_SETTINGS
    )
    assert collect_paused_reasons(pauses) == {"Drifted", "Underutilized"}
    [problem] = problems
    assert "the annotation is ignored" in problem.message


# Pending pods


def make_pending_pods(count: int, since: timedelta = LONG_PENDING_PERIOD + timedelta(seconds=1)) -> tuple[Case, ...]:
    pods = (make_pod(f"w{number}", on="", phase="Pending", conditions=PENDING) for number in range(count))
    return tuple(
        replace_fields(pending_pod, meta=replace_fields(pending_pod.meta, created_at=NOW - since))
        for pending_pod in pods
    )


@pytest.mark.parametrize(
    ("count", "before", "since", "phase", "is_paused"),
    [
        (2, 1, timedelta(minutes=1), "DRAINING", True),
        (2, 1, timedelta(minutes=1), "DONE", True),
        (2, 1, timedelta(minutes=1), "INITIALIZED", True),
        (2, 2, timedelta(minutes=1), "DONE", False),
        (2, 1, REMOVAL_EFFECT_PERIOD + timedelta(seconds=1), "DONE", False),
        (2, 1, timedelta(minutes=1), "PROPOSED", False),
        (2, 1, timedelta(minutes=1), "ROLLED_BACK", False),
    ],
)
def test_increase_of_pending_pods_after_disruption_pauses_everything_except_repair(
    count: int,
    before: int,
    since: timedelta,
    phase: Phase,
    is_paused: bool,  # noqa: FBT001 - a table's column
) -> None:
    removal_command = make_command_state(make_command("a"), phase, since=NOW - since, waiting_pod_count=before)
    pauses = find_disruption_pauses(make_cluster(pods=make_pending_pods(count)), removal_command)
    assert collect_paused_reasons(pauses) == ({"Drifted", "Empty", "Underutilized"} if is_paused else set())
    assert bool(pauses.find_command_pause_message(make_command("b", replacements=("new",)))) == is_paused


def test_only_unbound_pods_pending_longer_than_the_threshold_count() -> None:
    assert count_long_pending_pods(make_cluster(pods=make_pending_pods(2))) == 2
    assert count_long_pending_pods(make_cluster(pods=make_pending_pods(2, LONG_PENDING_PERIOD))) == 0
    bound = replace_fields(make_pending_pods(1)[0], node_name="node-a")
    assert count_long_pending_pods(make_cluster(pods=(bound,))) == 0


# Drift


def build_drifted_cluster(count: int, total: int, **fields: Case) -> ClusterSnapshot:
    conditions_by_number = {
        number: make_true_conditions(*STAGES, *(("Drifted",) if number < count else ())) for number in range(total)
    }
    claims = tuple(
        make_claim(f"n{number}", conditions=conditions) for number, conditions in conditions_by_number.items()
    )
    nodes = tuple(make_node(f"n{number}") for number in conditions_by_number)
    return make_cluster(node_claims=claims, nodes=nodes, **fields)


@pytest.mark.parametrize(
    ("count", "percent", "is_paused"),
    [(5, 50, False), (6, 50, True), (10, 100, False), (10, 0, False), (1, 9, True)],
)
def test_drift_above_the_drift_limit_pauses_drift(count: int, percent: int, is_paused: bool) -> None:  # noqa: FBT001
    pauses = find_disruption_pauses(build_drifted_cluster(count, 10), settings=parse_pause_settings("", percent))
    assert (collect_paused_reasons(pauses) == {"Drifted"}) == is_paused


def test_resume_annotation_allows_drift_above_the_limit_for_one_day() -> None:
    settings = parse_pause_settings("", 50)
    resumed_cluster = build_drifted_cluster(10, 10, node_pools=(make_annotated_pool(resumed="2026-11-21T11:00:00Z"),))
    assert collect_paused_reasons(find_disruption_pauses(resumed_cluster, settings=settings)) == set()
    long_ago = build_drifted_cluster(10, 10, node_pools=(make_annotated_pool(resumed="2026-11-20T11:00:00Z"),))
    assert collect_paused_reasons(find_disruption_pauses(long_ago, settings=settings)) == {"Drifted"}


def test_uninitialized_and_deleting_nodes_do_not_count_for_the_drift_limit() -> None:
    drifted_cluster = build_drifted_cluster(1, 2)
    going = (make_claim("x", deleted=NOW), make_claim("y", conditions=make_true_conditions("Launched")))
    larger_cluster = replace_fields(drifted_cluster, node_claims=(*drifted_cluster.node_claims, *going))
    assert collect_paused_reasons(find_disruption_pauses(larger_cluster, settings=parse_pause_settings("", 49))) == {
        "Drifted"
    }


def test_expired_nodes_do_not_pause_drift() -> None:
    cluster = build_drifted_cluster(10, 10)
    claims = tuple(
        replace_fields(
            claim,
            conditions=tuple(
                replace_fields(condition, reason="Expired") if condition.type == "Drifted" else condition
                for condition in claim.conditions
            ),
        )
        for claim in cluster.node_claims
    )
    pauses = find_disruption_pauses(replace_fields(cluster, node_claims=claims), settings=parse_pause_settings("", 50))
    assert collect_paused_reasons(pauses) == set()


# Events


def test_paused_reasons_are_listed_with_their_node_pool() -> None:
    pauses = (
        DisruptionPause(reason="Empty", message=""),
        DisruptionPause(pool="a", reason="Drifted", message=""),
        DisruptionPause(pool="b", message=""),
    )
    pool_b_reasons = {f"b/{reason}" for reason in ("Drifted", "Empty", "Unhealthy", "Underutilized")}
    assert list_paused_reasons(DisruptionPauses(items=pauses)) == {"Empty", "a/Drifted", *pool_b_reasons}
    assert list_paused_reasons(DisruptionPauses(items=(DisruptionPause(message=""),))) == {"*"}


def test_paused_node_pools_get_an_event_for_each_pause() -> None:
    pauses = DisruptionPauses(
        items=(DisruptionPause(message="all of it"), DisruptionPause(pool="other", reason="Drifted", message="so many"))
    )
    events = filter_actions(PublishEvent, describe_pauses(pauses, make_cluster(node_pools=(OTHER_POOL, POOL))))
    assert [(event.name, event.type, event.reason, event.message) for event in events] == [
        ("default", "Warning", "DisruptionPaused", "All disruption is paused: all of it"),
        ("other", "Warning", "DisruptionPaused", "All disruption is paused: all of it"),
        ("other", "Warning", "DisruptionPaused", "Drifted disruption is paused: so many"),
    ]
    assert format_pause(pauses.items[1]) == "Drifted disruption is paused: so many"


def test_node_pool_with_paused_launches_gets_an_event() -> None:
    paused_pool = replace_fields(
        POOL, meta=replace_fields(POOL.meta, annotations=build_pairs({LAUNCHES_PAUSED: "true by anna"}))
    )
    [event] = describe_pauses(DisruptionPauses(), make_cluster(node_pools=(paused_pool, OTHER_POOL)))
    assert isinstance(event, PublishEvent)
    assert (event.name, event.reason) == ("default", "LaunchesPaused")
    assert "launches are paused: by anna" in event.message


@pytest.mark.parametrize(("minutes", "is_paused"), [(1, True), (0, False)])
def test_pause_setting_with_an_end_time_expires(minutes: int, is_paused: bool) -> None:  # noqa: FBT001
    until = format_instant(NOW + timedelta(minutes=minutes))
    pauses = find_disruption_pauses(
        make_cluster(), settings=parse_pause_settings(f"Empty until {until} because freeze", 0)
    )
    assert bool(pauses.find_pause_message("default", "Empty")) == is_paused
    assert not is_paused or "until" in pauses.find_pause_message("default", "Empty")
