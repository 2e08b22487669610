"""Pods counted by the only zone they can run in, and NodePools without usable instance types."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.core.labels import INSTANCE_TYPE, ZONE
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.action import PublishEvent
from shared.model.decisions.placement import Placement, PoolWithoutTypes
from shared.model.kubernetes.pod import Pod, SpreadConstraint
from tests.support.catalogues import make_cluster_snapshot, make_node, make_node_pool, make_pod, make_requirements
from tests.support.snapshot_decisions import build_placement_actions, solve
from tests.unit.shared.decide.scheduling.constraints.test_volume_topology import BOUND, IN_B, make_volume

WEB = {"app": "web"}
EVEN = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=build_label_selector(WEB)),)
B = ((ZONE, "b"),)


@pytest.mark.parametrize(
    ("fields", "zone"),
    [
        ({}, "flexible"),
        ({"node_selector": B}, "b"),
        ({"node_selector": B, "required_terms": (make_requirements((ZONE, "In", ("a",))),)}, "none"),
        ({"required_terms": (make_requirements((ZONE, "In", ("a", "b"))),)}, "flexible"),
        ({"required_terms": (make_requirements((ZONE, "NotIn", ("a",))),)}, "flexible"),
        ({"spread": EVEN, "required_terms": (make_requirements((ZONE, "In", ("a", "b"))),)}, "b"),
        ({"spread": EVEN}, "flexible"),
        ({"spread": EVEN, "node_selector": ((ZONE, "a"),)}, "a"),
        ({"volume_claims": ("data",)}, "b"),
        ({"volume_claims": ("data",), "node_selector": ((ZONE, "a"),)}, "none"),
    ],
)
def test_pod_is_counted_in_the_only_zone_it_can_run_in(fields: dict[str, Any], zone: str) -> None:
    running = make_pod("r", labels=WEB, on="here")
    cluster = make_cluster_snapshot(running, make_pod("x", labels=WEB, **fields), nodes=(make_node("here", "0"),))
    cluster = replace(cluster, volume_claims=(BOUND,), volumes=(make_volume("pv", IN_B),))
    assert solve(cluster).by_zone == ((zone, 1),)


def test_pod_counts_by_zone_are_sorted_and_sum_up() -> None:
    pods: list[Pod] = [make_pod(f"p{number}", node_selector=((ZONE, zone),)) for number, zone in enumerate("cac")]
    assert solve(make_cluster_snapshot(*pods, make_pod("x"))).by_zone == (("a", 1), ("c", 2), ("flexible", 1))


def test_node_pool_without_compatible_instance_types_gets_a_warning_event() -> None:
    various = make_requirements((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 9})
    nowhere = make_requirements((ZONE, "In", ("q",)))
    pools = (
        make_node_pool(),
        make_node_pool("v", requirements=various),
        make_node_pool("q", requirements=nowhere),
        make_node_pool("s", replicas=1),
    )
    cluster = make_cluster_snapshot(make_pod("x"), node_pools=pools)
    placement = solve(cluster)
    assert [unusable_pool.node_pool for unusable_pool in placement.without_types] == ["q", "v"]
    events = [
        action
        for action in build_placement_actions(cluster, placement)
        if isinstance(action, PublishEvent) and action.kind == "NodePool"
    ]
    assert [(event.name, event.type, event.reason) for event in events] == [
        ("q", "Warning", "NoCompatibleInstanceTypes"),
        ("v", "Warning", "NoCompatibleInstanceTypes"),
    ]
    assert ["minValues" in event.message for event in events] == [False, True]


def test_deleted_node_pool_gets_no_event() -> None:
    outdated_placement = Placement(without_types=(PoolWithoutTypes(node_pool="gone", message="nothing"),))
    assert not [
        one
        for one in build_placement_actions(make_cluster_snapshot(), outdated_placement)
        if isinstance(one, PublishEvent)
    ]
