"""What a sweep was given and cannot use: named with object, field and remedy."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.disruption.complaints import complaints
from shared.disruption.events import describe_verdicts
from shared.disruption.scenes import scene_of
from shared.disruption.verdicts import Disrupted, Kept
from shared.model.action import PublishEvent
from shared.model.cluster import Cluster
from shared.model.labels import BUDGET_TIME_ZONE, DO_NOT_DISRUPT
from shared.model.nodepools import Budget
from shared.model.objects import Meta, Problem
from shared.model.pods import PodDisruptionBudget
from shared.model.selectors import EVERYTHING
from shared.model.state import state_nodes
from tests.unit.catalogues import NOW, pod, pool
from tests.unit.disruption_fleet import FREE, fleet, guard, machine, true, web


def of(cluster: Cluster) -> list[Problem]:
    return list(complaints(cluster, state_nodes(cluster)))


def over_everything(allowed: int) -> PodDisruptionBudget:
    return PodDisruptionBudget(
        meta=Meta(name="all", namespace="shop"), selector=EVERYTHING, disruptions_allowed=allowed
    )


def test_nothing_is_wrong_with_a_sound_cluster() -> None:
    assert of(fleet(machine("a", web("1")), budgets=(guard("web", {"app": "web"}, 0),))) == []


def test_a_nodepool_is_named_though_none_of_its_nodes_might_go() -> None:
    bad = pool("bad", budgets=(Budget(schedule="0 25 * * *", duration=timedelta(hours=1)),))
    odd = pool("odd", meta=Meta(name="odd", annotations=((BUDGET_TIME_ZONE, "Berlin"),)))
    there = fleet(pools=(FREE, bad, odd))
    found = of(there)
    assert [(one.kind, one.name) for one in found] == [("NodePool", "bad"), ("NodePool", "odd")]
    assert found[0].message.startswith("spec.disruption.budgets[0]: hour '25' is not a range within 0-23")
    assert found[1].message.startswith(f"{BUDGET_TIME_ZONE}: 'Berlin' is no time zone")
    assert all(one.message.endswith("; none of its nodes is disrupted by choice until it is mended") for one in found)
    told = [one for one in describe_verdicts((), (), scene_of(there)) if isinstance(one, PublishEvent)]
    assert [(one.name, one.reason, one.type) for one in told] == [
        ("bad", "DisruptionBlocked", "Warning"),
        ("odd", "DisruptionBlocked", "Warning"),
    ]


@pytest.mark.parametrize(("allowed", "others", "named"), [(0, (), True), (1, (), False), (1, ("web",), True)])
def test_a_budget_that_selects_everything_is_named_where_it_holds_somebody(
    allowed: int, others: tuple[str, ...], *, named: bool
) -> None:
    budgets = (over_everything(allowed), *(guard(name, {"app": "web"}, 1) for name in others))
    found = of(fleet(machine("a", web("1"), web("2")), budgets=budgets))
    assert [(one.kind, one.name) for one in found] == ([("PodDisruptionBudget", "shop/all")] if named else [])
    if named:
        assert "spec.selector is empty, so it selects every pod of namespace shop: 2 pods" in found[0].message
        assert found[0].message.endswith("write matchLabels of one workload")


def test_machines_without_a_price_are_named_by_what_they_are() -> None:
    some = (machine("a", kind="x.large"), machine("b", kind="x.large"), machine("c", zone="nowhere"), machine("d"))
    found = of(fleet(*some))
    assert [(one.kind, one.name) for one in found] == [("InstanceType", "m.04"), ("InstanceType", "x.large")]
    assert found[0].message.startswith("has no price as on-demand in nowhere: node c may be deleted and not replaced")
    assert "2 nodes (a among them) may be" in found[1].message
    assert found[1].message.endswith("mend the labels, or give prices by joiner:price-list")


def test_prices_are_not_missed_where_there_is_no_catalogue() -> None:
    assert of(replace(fleet(machine("a")), catalogue=None)) == []


@pytest.mark.parametrize(("ahead", "named"), [(31, True), (30, False), (-3600, False)])
def test_a_claim_from_the_future_is_named(ahead: int, *, named: bool) -> None:
    at = NOW + timedelta(seconds=ahead)
    found = of(fleet(machine("a", last_pod_event_at=at), machine("b")))
    assert [(one.kind, one.name) for one in found] == ([("NodeClaim", "claim-a")] if named else [])
    if named:
        assert "status.lastPodEventTime is 2026-11-21T12:00:31Z, 31 s ahead of our clock" in found[0].message


def test_of_several_from_the_future_the_furthest_is_named() -> None:
    late = tuple(replace(one, since=NOW + timedelta(minutes=3)) for one in true("Initialized"))
    [one] = of(fleet(machine("a", last_pod_event_at=NOW + timedelta(minutes=1)), machine("b", conditions=late)))
    assert one.name == "claim-b"
    assert "status.conditions[Initialized].lastTransitionTime" in one.message
    assert "as of 2 NodeClaims" in one.message


@pytest.mark.parametrize(
    ("value", "named"),
    [("true", False), ("2h", False), ("", False), ("false", True), ("True", True), ("0s", True), ("-1h", True)],
)
def test_an_annotation_that_protects_nothing_is_named_on_its_pod(value: str, *, named: bool) -> None:
    one = web("1")
    one = replace(one, meta=replace(one.meta, annotations=((DO_NOT_DISRUPT, value),)))
    there = fleet(machine("a", one))
    words = (
        f"metadata.annotations[karpenter.sh/do-not-disrupt]: {value!r} protects nothing: write 'true', or a duration"
    )
    assert [one.message.startswith(words) for one in of(there) if one.kind == "Pod"] == ([True] if named else [])
    told = [one for one in describe_verdicts((), (), scene_of(there)) if isinstance(one, PublishEvent)]
    assert [(one.kind, one.name, one.reason) for one in told] == (
        [("Pod", "1", "InvalidDoNotDisruptAnnotation")] if named else []
    )


def test_a_pod_that_nobody_makes_again_is_told_when_its_node_goes() -> None:
    scene = scene_of(fleet(machine("a", pod("alone"), web("1")), machine("b", pod("other"))))
    gone = Disrupted(node="a", reason="Underutilized", message="m")
    stays = Kept(node="b", reason="Budget", message="m")
    [told] = [one for one in describe_verdicts((gone, stays), (), scene) if isinstance(one, PublishEvent)]
    assert (told.kind, told.name, told.namespace, told.reason, told.type) == (
        "Pod", "alone", "shop", "WillNotComeBack", "Warning"
    )  # fmt: skip
    assert "metadata.ownerReferences is empty; give it an owner, or annotate it with karpenter.sh/do-not-disrupt" in (
        told.message
    )
