"""Laws of what people hold back: what is written is read, what is added holds, what is taken back does not."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cli.pause.annotations import build_pause_change, build_resume_change
from shared.decide.disruption.disruption_controller import decide_node_disruption
from shared.decide.disruption.pauses import PauseSettings, find_pauses, list_paused_reasons
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DISRUPTION_PAUSED, LAUNCHES_PAUSED
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.pause import (
    CLUSTER_NAMESPACE,
    DISRUPTION_REASONS,
    LAUNCH_WORDS,
    Pause,
    format_pauses,
    normalize_text,
    parse_pauses,
)
from shared.model.kubernetes.workloads import Namespace
from shared.state.cluster_state import ClusterState
from tests.property.lifecycle.lifecycle_world import generate_cluster

NOW = datetime(2026, 11, 22, 8, tzinfo=UTC)
INSTANTS = st.integers(-7200, 7200).map(lambda seconds: NOW + timedelta(seconds=seconds))
REASONS = st.sets(st.sampled_from(DISRUPTION_REASONS), min_size=1).map(lambda some: tuple(sorted(some)))
WORDS = st.text("abc ;:,=\n\"'äuntil by since because", max_size=40).map(normalize_text)
HOLDS = st.builds(
    Pause,
    reasons=REASONS,
    pools=st.sampled_from(((), ("any", "batch"))),
    until=st.none() | INSTANTS,
    author=st.sampled_from(("", "anna", "arn:aws:sts::111122223333:assumed-role/Admin/anna")),
    since=st.none() | INSTANTS,
    because=WORDS,
)
STEPS = st.lists(st.tuples(st.booleans(), HOLDS), max_size=8)


def list_paused_at(text: str, now: datetime) -> set[str]:
    """Return the reasons for which disruption is paused at *now*."""
    namespace = Namespace(name=CLUSTER_NAMESPACE, annotations=((DISRUPTION_PAUSED, text),))
    pauses, problems = find_pauses(ClusterSnapshot(taken_at=now, namespaces=(namespace,)), (), (), PauseSettings())
    assert problems == ()
    return {reason for reason in DISRUPTION_REASONS if pauses.find_pause_message("any", reason)}


@given(st.lists(HOLDS, max_size=4))
def test_formatted_pauses_parse_back_to_the_same_pauses(holds: list[Pause]) -> None:
    assert parse_pauses(format_pauses(holds), DISRUPTION_REASONS) == tuple(holds)


@given(STEPS, st.integers(0, 7200))
def test_any_history_leaves_exactly_the_most_recently_paused_reasons_paused(
    steps: list[tuple[bool, Pause]], later: int
) -> None:
    text, until = "", dict[str, datetime | None]()
    for is_pause, hold in steps:
        text = (build_pause_change(hold, NOW) if is_pause else build_resume_change(hold.reasons, NOW))(
            DISRUPTION_PAUSED, text
        )
        for reason in hold.reasons:
            until.pop(reason, None)
            if is_pause:
                until[reason] = hold.until
    now = NOW + timedelta(seconds=later)
    assert list_paused_at(text, now) == {reason for reason, end in until.items() if end is None or now < end}


@given(STEPS)
def test_repeated_pauses_keep_one_active_pause_per_reason(steps: list[tuple[bool, Pause]]) -> None:
    text = ""
    for _, hold in steps:
        text = build_pause_change(hold, NOW)(DISRUPTION_PAUSED, text)
    active_reasons = [
        reason for pause in parse_pauses(text, DISRUPTION_REASONS) if pause.is_active(NOW) for reason in pause.reasons
    ]
    assert len(active_reasons) == len(set(active_reasons))


@given(st.text("DriftedEmpty,; untilbysincebecause0123456789-:TZ\t\n", max_size=60))
def test_unreadable_pause_annotation_pauses_every_reason(text: str) -> None:
    namespace = Namespace(name=CLUSTER_NAMESPACE, annotations=((DISRUPTION_PAUSED, text),))
    pauses, problems = find_pauses(ClusterSnapshot(taken_at=NOW, namespaces=(namespace,)), (), (), PauseSettings())
    if problems:
        assert {reason for reason in DISRUPTION_REASONS if pauses.find_pause_message("any", reason)} == set(
            DISRUPTION_REASONS
        )
        assert list_paused_reasons(pauses)


@given(HOLDS)
def test_launch_and_disruption_pauses_are_independent(hold: Pause) -> None:
    assert build_pause_change(hold, NOW)(LAUNCHES_PAUSED, "true by anna") == "true by anna"
    assert (
        build_resume_change(LAUNCH_WORDS, NOW)(DISRUPTION_PAUSED, text := format_pauses([Pause(reasons=hold.reasons)]))
        == text
    )


@given(generate_cluster(), REASONS, st.sampled_from(("NodePool", "Namespace")))
def test_no_command_is_decided_for_a_paused_reason(
    start: ClusterSnapshot, reasons: tuple[str, ...], scope: str
) -> None:
    text = format_pauses([Pause(reasons=reasons, until=start.taken_at + timedelta(seconds=1))])
    if scope == "NodePool":
        pools = tuple(
            replace(node_pool, meta=replace(node_pool.meta, annotations=((DISRUPTION_PAUSED, text),)))
            for node_pool in start.node_pools
        )
        paused = replace(start, node_pools=pools)
    else:
        paused = replace(
            start, namespaces=(Namespace(name=CLUSTER_NAMESPACE, annotations=((DISRUPTION_PAUSED, text),)),)
        )
    paused_reasons = list_paused_reasons(find_pauses(paused, (), (), PauseSettings())[0])
    assert not {
        command.reason
        for command in decide_node_disruption(
            ClusterState(paused), options=SchedulingOptions(), paused_reasons=paused_reasons
        ).commands
    } & set(reasons)
    over = replace(paused, taken_at=start.taken_at + timedelta(seconds=1))
    assert list_paused_reasons(find_pauses(over, (), (), PauseSettings())[0]) == frozenset()
