"""How many pods can be in one zone only; and NodePools that nothing can be made from."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.action import PublishEvent
from shared.model.labels import INSTANCE_TYPE, ZONE
from shared.model.pods import Pod, SpreadConstraint
from shared.model.selectors import selector
from shared.scheduling.decide import decide
from shared.scheduling.placement import Placement, WithoutTypes
from shared.scheduling.solve import solve
from tests.unit.catalogues import needs, node, pod, pool, world
from tests.unit.test_scheduling_volumes import BOUND, IN_B, volume

WEB = {"app": "web"}
EVEN = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=selector(WEB)),)
B = ((ZONE, "b"),)


@pytest.mark.parametrize(
    ("fields", "zone"),
    [
        ({}, "flexible"),
        ({"node_selector": B}, "b"),
        ({"node_selector": B, "required_terms": (needs((ZONE, "In", ("a",))),)}, "none"),
        ({"required_terms": (needs((ZONE, "In", ("a", "b"))),)}, "flexible"),
        ({"required_terms": (needs((ZONE, "NotIn", ("a",))),)}, "flexible"),
        ({"spread": EVEN, "required_terms": (needs((ZONE, "In", ("a", "b"))),)}, "b"),
        ({"spread": EVEN}, "flexible"),
        ({"spread": EVEN, "node_selector": ((ZONE, "a"),)}, "a"),
        ({"volume_claims": ("data",)}, "b"),
        ({"volume_claims": ("data",), "node_selector": ((ZONE, "a"),)}, "none"),
    ],
)
def test_a_pod_counts_in_the_one_zone_that_it_can_be_in(fields: dict[str, Any], zone: str) -> None:
    running = pod("r", labels=WEB, on="here")
    cluster = world(running, pod("x", labels=WEB, **fields), nodes=(node("here", "0"),))
    cluster = replace(cluster, volume_claims=(BOUND,), volumes=(volume("pv", IN_B),))
    assert solve(cluster).by_zone == ((zone, 1),)


def test_zones_are_sorted_and_add_up() -> None:
    some: list[Pod] = [pod(f"p{number}", node_selector=((ZONE, zone),)) for number, zone in enumerate("cac")]
    assert solve(world(*some, pod("x"))).by_zone == (("a", 1), ("c", 2), ("flexible", 1))


def test_a_pool_that_nothing_can_be_made_from_is_told_so() -> None:
    various = needs((INSTANCE_TYPE, "Exists", ()), minimum={INSTANCE_TYPE: 9})
    nowhere = needs((ZONE, "In", ("q",)))
    pools = (pool(), pool("v", requirements=various), pool("q", requirements=nowhere), pool("s", replicas=1))
    cluster = world(pod("x"), node_pools=pools)
    placement = solve(cluster)
    assert [one.node_pool for one in placement.without_types] == ["q", "v"]
    events = [one for one in decide(cluster, placement) if isinstance(one, PublishEvent) and one.kind == "NodePool"]
    assert [(one.name, one.type, one.reason) for one in events] == [
        ("q", "Warning", "NoCompatibleInstanceTypes"),
        ("v", "Warning", "NoCompatibleInstanceTypes"),
    ]
    assert ["minValues" in one.message for one in events] == [False, True]


def test_a_pool_that_went_away_meanwhile_is_told_nothing() -> None:
    gone = Placement(without_types=(WithoutTypes(node_pool="gone", message="nothing"),))
    assert not [one for one in decide(world(), gone) if isinstance(one, PublishEvent)]
