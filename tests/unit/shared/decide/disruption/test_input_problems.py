"""Unusable input of a disruption sweep: each problem names the object, the field and the fix."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.events import describe_verdicts
from shared.decide.disruption.input_problems import find_disruption_problems
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import BUDGET_TIME_ZONE, DO_NOT_DISRUPT
from shared.model.core.metadata import ObjectMeta, Problem
from shared.model.core.selectors import EVERYTHING
from shared.model.decisions.action import PublishEvent
from shared.model.decisions.disruption_verdict import DisruptedVerdict, KeptVerdict
from shared.model.karpenter.node_pool import DisruptionBudget
from shared.model.kubernetes.pod_disruption_budget import PodDisruptionBudget
from shared.state.cluster_state import ClusterState
from tests.support.catalogues import NOW, make_node_pool, make_pod
from tests.support.disruption_fleet import (
    FREE,
    make_conditions,
    make_fleet,
    make_node_with_pods,
    make_pod_disruption_budget,
    make_web_pod,
)


def find_problems(cluster: ClusterSnapshot) -> list[Problem]:
    return list(find_disruption_problems(ClusterState(cluster)))


def make_pdb_for_all_pods(allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        meta=ObjectMeta(name="all", namespace="shop"), selector=EVERYTHING, disruptions_allowed=allowed
    )


def test_valid_cluster_has_no_disruption_problems() -> None:
    assert (
        find_problems(
            make_fleet(
                make_node_with_pods("a", make_web_pod("1")),
                budgets=(make_pod_disruption_budget("web", {"app": "web"}, 0),),
            )
        )
        == []
    )


def test_invalid_node_pool_is_reported_although_it_has_no_nodes() -> None:
    bad = make_node_pool("bad", budgets=(DisruptionBudget(schedule="0 25 * * *", duration=timedelta(hours=1)),))
    odd = make_node_pool("odd", meta=ObjectMeta(name="odd", annotations=((BUDGET_TIME_ZONE, "Berlin"),)))
    cluster = make_fleet(pools=(FREE, bad, odd))
    problems = find_problems(cluster)
    assert [(problem.kind, problem.name) for problem in problems] == [("NodePool", "bad"), ("NodePool", "odd")]
    assert problems[0].message.startswith("spec.disruption.budgets[0]: hour '25' is not a range within 0-23")
    assert problems[1].message.startswith(f"{BUDGET_TIME_ZONE}: 'Berlin' is not a time zone")
    assert all(
        problem.message.endswith("; voluntary disruption of its nodes stops until the field is corrected")
        for problem in problems
    )
    events = [one for one in describe_verdicts((), (), ClusterState(cluster)) if isinstance(one, PublishEvent)]
    assert [(event.name, event.reason, event.type) for event in events] == [
        ("bad", "DisruptionBlocked", "Warning"),
        ("odd", "DisruptionBlocked", "Warning"),
    ]


@pytest.mark.parametrize(
    ("allowed", "extra_budget_names", "is_reported"), [(0, (), True), (1, (), False), (1, ("web",), True)]
)
def test_pdb_that_selects_all_pods_is_reported_when_it_blocks_a_pod(
    allowed: int, extra_budget_names: tuple[str, ...], *, is_reported: bool
) -> None:
    budgets = (
        make_pdb_for_all_pods(allowed),
        *(make_pod_disruption_budget(name, {"app": "web"}, 1) for name in extra_budget_names),
    )
    problems = find_problems(
        make_fleet(make_node_with_pods("a", make_web_pod("1"), make_web_pod("2")), budgets=budgets)
    )
    assert [(problem.kind, problem.name) for problem in problems] == (
        [("PodDisruptionBudget", "shop/all")] if is_reported else []
    )
    if is_reported:
        assert "spec.selector is empty, so it selects every pod of namespace shop: 2 pods" in problems[0].message
        assert problems[0].message.endswith("set matchLabels of one workload")


def test_nodes_without_a_price_are_reported_by_instance_type() -> None:
    nodes = (
        make_node_with_pods("a", kind="x.large"),
        make_node_with_pods("b", kind="x.large"),
        make_node_with_pods("c", zone="nowhere"),
        make_node_with_pods("d"),
    )
    problems = find_problems(make_fleet(*nodes))
    assert [(problem.kind, problem.name) for problem in problems] == [
        ("InstanceType", "m.04"),
        ("InstanceType", "x.large"),
    ]
    assert problems[0].message.startswith(
        "has no price as on-demand in nowhere: 1 node (c) can be deleted but not replaced"
    )
    assert "2 nodes (a, b) can be" in problems[1].message
    assert problems[1].message.endswith("to fix: correct the labels, or use the setting price-list")


def test_missing_prices_are_not_reported_without_a_catalog() -> None:
    assert find_problems(replace(make_fleet(make_node_with_pods("a")), catalog=None)) == []


@pytest.mark.parametrize(("ahead", "is_reported"), [(31, True), (30, False), (-3600, False)])
def test_node_claim_timestamp_in_the_future_is_reported(ahead: int, *, is_reported: bool) -> None:
    at = NOW + timedelta(seconds=ahead)
    problems = find_problems(make_fleet(make_node_with_pods("a", last_pod_event_at=at), make_node_with_pods("b")))
    assert [(problem.kind, problem.name) for problem in problems] == ([("NodeClaim", "claim-a")] if is_reported else [])
    if is_reported:
        assert "status.lastPodEventTime is 2026-11-21T12:00:31Z, 31 s ahead of our clock" in problems[0].message


def test_latest_future_timestamp_of_several_node_claims_is_reported() -> None:
    late = tuple(replace(condition, since=NOW + timedelta(minutes=3)) for condition in make_conditions("Initialized"))
    [problem] = find_problems(
        make_fleet(
            make_node_with_pods("a", last_pod_event_at=NOW + timedelta(minutes=1)),
            make_node_with_pods("b", conditions=late),
        )
    )
    assert problem.name == "claim-b"
    assert "status.conditions[Initialized].lastTransitionTime" in problem.message
    assert "in 2 NodeClaims" in problem.message


@pytest.mark.parametrize(
    ("value", "is_reported"),
    [("true", False), ("2h", False), ("", False), ("false", True), ("True", True), ("0s", True), ("-1h", True)],
)
def test_ineffective_do_not_disrupt_annotation_is_reported_on_its_pod(value: str, *, is_reported: bool) -> None:
    annotated_pod = make_web_pod("1")
    annotated_pod = replace(annotated_pod, meta=replace(annotated_pod.meta, annotations=((DO_NOT_DISRUPT, value),)))
    cluster = make_fleet(make_node_with_pods("a", annotated_pod))
    words = (
        f"metadata.annotations[karpenter.sh/do-not-disrupt]: {value!r} protects nothing: write 'true', or a duration"
    )
    assert [problem.message.startswith(words) for problem in find_problems(cluster) if problem.kind == "Pod"] == (
        [True] if is_reported else []
    )
    events = [one for one in describe_verdicts((), (), ClusterState(cluster)) if isinstance(one, PublishEvent)]
    assert [(event.kind, event.name, event.reason) for event in events] == (
        [("Pod", "1", "InvalidDoNotDisruptAnnotation")] if is_reported else []
    )


def test_pod_without_a_controller_gets_an_event_when_its_node_is_disrupted() -> None:
    scene = ClusterState(
        make_fleet(
            make_node_with_pods("a", make_pod("alone"), make_web_pod("1")), make_node_with_pods("b", make_pod("other"))
        )
    )
    disrupted_verdict = DisruptedVerdict(node="a", reason="Underutilized", message="m")
    stays = KeptVerdict(node="b", reason="Budget", message="m")
    [event] = [
        action
        for action in describe_verdicts((disrupted_verdict, stays), (), scene)
        if isinstance(action, PublishEvent)
    ]
    assert (event.kind, event.name, event.namespace, event.reason, event.type) == (
        "Pod", "alone", "shop", "WillNotComeBack", "Warning"
    )  # fmt: skip
    assert (
        "metadata.ownerReferences is empty); to keep the node, annotate the pod with karpenter.sh/do-not-disrupt"
        in (event.message)
    )
