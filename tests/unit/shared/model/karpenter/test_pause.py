"""Pauses of disruption and launches: where they are set, what they apply to, and how long they last."""

import re
from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.pauses import PauseSettings, find_pauses, parse_pause_settings
from shared.decide.provisioning.static_capacity import is_node_pool_usable
from shared.decide.scheduling.templates.template_builder import find_refusal
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import DISRUPTION_PAUSED, LAUNCHES_PAUSED
from shared.model.core.metadata import Problem, build_pairs
from shared.model.core.units import format_instant
from shared.model.decisions.placement import SchedulingOptions
from shared.model.karpenter.pause import CLUSTER_NAMESPACE, DISRUPTION_REASONS, Pause, parse_pauses
from shared.model.kubernetes.workloads import Namespace
from shared.state.pauses import find_launch_pause_message, list_active_pauses
from shared.wire.decode.core import parse_namespace
from shared.wire.schema import core as wire
from tests.support.failing_launches import with_failed_launches
from tests.support.lifecycle_cases import NODE_CLASS, NOW, POOL, replace_fields

SOON = format_instant(NOW + timedelta(hours=1))
LATE = format_instant(NOW)


def make_cluster_namespace(**annotations: str) -> Namespace:
    return Namespace(name=CLUSTER_NAMESPACE, annotations=build_pairs(annotations))


def build_launch_paused_cluster(text: str) -> ClusterSnapshot:
    return ClusterSnapshot(
        taken_at=NOW, node_pools=(POOL,), namespaces=(make_cluster_namespace(**{LAUNCHES_PAUSED: text}),)
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dirfted", "'Dirfted' is not a reason: did you mean Drifted? write true, or one or more of Drifted, Empty"),
        ("empty,xyz", "'xyz' is not a reason: write true, or one or more of Drifted, Empty"),
        ("Drifted till 9", "'Drifted till 9' is not like REASON,… [in NODEPOOL,…] [until INSTANT]"),
        ("Drifted until tomorrow", "tomorrow"),
        ("Drifted until", "is not like"),
        ("true,Drifted", "'true' is not a reason"),
        ("Launches", "'Launches' is not a reason"),
    ],
)
def test_invalid_pause_text_is_rejected_with_a_specific_message(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse_pauses(text, DISRUPTION_REASONS)


def test_pause_reasons_are_case_insensitive() -> None:
    assert parse_pauses("empty, DRIFTED", DISRUPTION_REASONS)[0].reasons == ("Drifted", "Empty")


def test_namespace_annotation_and_setting_can_pause_specific_nodepools() -> None:
    text = "Drifted in web,batch until 2100-01-01T00:00:00Z by anna"
    cluster = ClusterSnapshot(
        taken_at=NOW, node_pools=(POOL,), namespaces=(make_cluster_namespace(**{DISRUPTION_PAUSED: text}),)
    )
    active_pauses, problems = list_active_pauses(cluster)
    assert (problems, [pause.pool for pause in active_pauses]) == ((), ["batch", "web"])
    assert {pause.get_resume_command() for pause in active_pauses} == {"`joiner resume`"}
    assert all("of Namespace kube-system is set by an operator" in pause.build_message() for pause in active_pauses)
    for pauses in (
        find_pauses(cluster, (), (), PauseSettings()),
        find_pauses(ClusterSnapshot(taken_at=NOW), (), (), parse_pause_settings(text, 0)),
    ):
        assert [bool(pauses[0].find_pause_message(pool, "Drifted")) for pool in ("batch", "web", "other")] == [
            True,
            True,
            False,
        ]
        assert not pauses[0].find_pause_message("batch", "Empty")


def test_namespace_annotation_can_pause_launches_of_one_nodepool() -> None:
    assert find_launch_pause_message(POOL, build_launch_paused_cluster(f"true in {POOL.name}"))
    assert not find_launch_pause_message(POOL, build_launch_paused_cluster("true in another"))


def test_nodepool_annotation_pauses_only_its_own_nodepool() -> None:
    pool = replace(POOL, meta=replace(POOL.meta, annotations=((DISRUPTION_PAUSED, "Empty in another"),)))
    [active_pause], [problem] = list_active_pauses(ClusterSnapshot(taken_at=NOW, node_pools=(pool,)))
    assert (active_pause.pool, active_pause.pause.reasons) == (POOL.name, DISRUPTION_REASONS)
    assert "'in another' is not allowed on a NodePool, which pauses only itself: remove it" in problem.message


@pytest.mark.parametrize(
    ("text", "is_held"),
    [("", False), ("false", False), ("true", True), (f"true until {SOON}", True), (f"true until {LATE}", False)],
)
def test_launch_pause_lasts_until_its_end_time(text: str, is_held: bool) -> None:  # noqa: FBT001
    cluster = build_launch_paused_cluster(text)
    assert bool(find_launch_pause_message(POOL, cluster)) == is_held
    refusal = find_refusal(POOL, cluster, SchedulingOptions(readiness="Assumed"))
    assert refusal is not None
    assert ("launches are paused" in refusal.message) == is_held


def test_static_nodepool_is_unusable_while_launches_are_paused() -> None:
    assert not is_node_pool_usable(POOL, build_launch_paused_cluster("true"))


def test_nodepool_launches_are_paused_by_nodepool_or_namespace_annotation() -> None:
    other_pool = replace_fields(
        POOL, meta=replace_fields(POOL.meta, name="other", annotations=build_pairs({LAUNCHES_PAUSED: "true by anna"}))
    )
    cluster = ClusterSnapshot(taken_at=NOW, node_pools=(POOL, other_pool))
    assert find_launch_pause_message(POOL, cluster) == ""
    assert find_launch_pause_message(other_pool, cluster) == (
        f"launches are paused: by anna; {LAUNCHES_PAUSED} of NodePool other is set by an operator: "
        "to resume, run `joiner resume --nodepool other`"
    )
    assert "Namespace kube-system is set by an operator: to resume, run `joiner resume`" in find_launch_pause_message(
        POOL, build_launch_paused_cluster("true")
    )


def test_pause_annotations_of_other_namespaces_are_ignored() -> None:
    elsewhere = Namespace(name="shop", annotations=build_pairs({DISRUPTION_PAUSED: "true"}))
    assert list_active_pauses(ClusterSnapshot(taken_at=NOW, namespaces=(elsewhere,))) == ((), ())


def test_unreadable_pause_annotation_pauses_everything_and_is_reported_once() -> None:
    cluster = ClusterSnapshot(
        taken_at=NOW, node_pools=(POOL,), namespaces=(make_cluster_namespace(**{DISRUPTION_PAUSED: "Dirfted"}),)
    )
    [active_pause], [problem] = list_active_pauses(cluster)
    assert active_pause.pause.reasons == DISRUPTION_REASONS
    assert (problem.kind, problem.name) == ("Namespace", CLUSTER_NAMESPACE)
    assert problem.message.endswith("nothing at all is disrupted")
    [_], [of_pool] = list_active_pauses(
        ClusterSnapshot(
            taken_at=NOW,
            node_pools=(
                replace_fields(
                    POOL, meta=replace_fields(POOL.meta, annotations=build_pairs({LAUNCHES_PAUSED: "perhaps"}))
                ),
            ),
        )
    )
    assert of_pool.message.endswith("nothing of it is launched")


def test_unreadable_cluster_namespace_pauses_everything() -> None:
    unread = Problem(kind="Namespace", name=CLUSTER_NAMESPACE, message="metadata: not an object")
    active_pauses, _ = list_active_pauses(ClusterSnapshot(taken_at=NOW, problems=(unread,)))
    assert {pause.key: set(pause.pause.reasons) for pause in active_pauses} == {
        DISRUPTION_PAUSED: set(DISRUPTION_REASONS),
        LAUNCHES_PAUSED: {"Launches"},
    }


def test_namespace_snapshot_keeps_only_joiner_annotations() -> None:
    meta = wire.ObjectMetaJson(name=CLUSTER_NAMESPACE, annotations={DISRUPTION_PAUSED: "true", "owner": "platform"})
    assert parse_namespace(wire.NamespaceJson(metadata=meta)).annotations == ((DISRUPTION_PAUSED, "true"),)


def test_pause_description_contains_author_times_and_reason() -> None:
    hold = Pause(reasons=("Empty",), until=NOW, author="anna", since=NOW, because="Black Friday")
    assert hold.describe() == f"by anna since {LATE} until {LATE}: Black Friday"
    assert Pause(reasons=("Empty",)).describe() == ""


def test_pause_after_failed_launches_names_the_class_and_how_to_resume() -> None:
    other_pool = replace(POOL, meta=replace(POOL.meta, name="other"), node_class=replace(POOL.node_class, name="other"))
    failing_class = with_failed_launches(NODE_CLASS, NOW - timedelta(minutes=10))
    cluster = ClusterSnapshot(taken_at=NOW, node_pools=(POOL, other_pool), node_classes=(failing_class,))
    [pause], problems = list_active_pauses(cluster)
    assert (pause.pool, pause.is_intentional, problems) == (POOL.name, False, ())
    assert pause.pause.because == pause.build_message()
    assert pause.get_resume_command() == "`kubectl annotate ec2nodeclass default joiner.dev/launch-failures-`"
    assert find_launch_pause_message(POOL, cluster) == f"launches are paused: {pause.build_message()}"
    assert find_launch_pause_message(other_pool, cluster) == ""


def test_pause_of_an_operator_counts_even_if_a_test_is_due() -> None:
    failing_class = with_failed_launches(NODE_CLASS, NOW - timedelta(minutes=30))
    cluster = ClusterSnapshot(taken_at=NOW, node_pools=(POOL,), node_classes=(failing_class,))
    assert find_launch_pause_message(POOL, cluster) == ""
    paused_pool = replace(POOL, meta=replace(POOL.meta, annotations=build_pairs({LAUNCHES_PAUSED: "true"})))
    message = find_launch_pause_message(paused_pool, replace(cluster, node_pools=(paused_pool,)))
    assert "is set by an operator" in message
