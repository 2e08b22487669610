"""What pods cost at least, where that is easily said."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.catalogue import Offering
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from shared.model.pods import AffinityTerm, Pod, SpreadConstraint
from shared.model.requirements import Requirements
from shared.model.resources import resources
from shared.model.selectors import selector
from shared.scheduling.placement import Fit, Options, Placement
from shared.scheduling.solve import solve
from sim.bound import program
from sim.bound.program import lower_bound
from tests.unit.catalogues import daemon, instance_type, needs, node, pod, pool, world

WEB = selector({"app": "web"})
SMALL = instance_type("small", 4, 16, price=0.2)
LARGE = instance_type("large", 64, 256, price=9.6)
BOTH = (SMALL, LARGE)


def many(count: int, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> list[Pod]:
    return [pod(f"web-{number}", cpu, memory, labels={"app": "web"}, **spec) for number in range(count)]


def only(name: str) -> Requirements:
    return needs((INSTANCE_TYPE, "In", (name,)))


def bound(cluster: Cluster) -> float:
    return round(lower_bound(cluster, solve(cluster), Options()), 4)


@pytest.mark.parametrize("columns", [0, 15_000])
@pytest.mark.parametrize(
    ("why", "cluster", "price"),
    [
        ("nobody waits", world(types=BOTH), 0),
        ("full nodes", world(*many(60), types=BOTH), 3.0),
        ("two of three cores fit, not two and a half", world(*many(20, "1600m"), types=BOTH), 2.0),
        (
            "one on each host",
            world(*many(10, pod_anti_affinity=(AffinityTerm(topology_key=HOSTNAME, selector=WEB),)), types=BOTH),
            2.0,
        ),
        (
            "two on each host",
            world(*many(10, spread=(SpreadConstraint(topology_key=HOSTNAME, max_skew=2, selector=WEB),)), types=BOTH),
            1.0,
        ),
        (
            "a third in each zone, of which one is dear",
            world(
                *many(60, spread=(SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB),)),
                types=(
                    instance_type("cheap", 4, 16, price=0.2, zones=("a", "b")),
                    instance_type("dear", 4, 16, price=0.8, zones=("c",)),
                ),
            ),
            5 * 0.2 + 5 * 0.2 + 5 * 0.8,
        ),
        ("a core of each node is the daemons'", world(*many(30), types=BOTH, daemon_sets=(daemon("a", "1"),)), 2.0),
        (
            "what stands costs nothing",
            world(*many(60), types=BOTH, nodes=(node("here", cpu="20", memory="80Gi"),)),
            2.0,
        ),
        (
            "no more large ones than the limit allows",
            world(
                *many(96),
                types=(SMALL, instance_type("large", 64, 256, price=1.6)),
                node_pools=(
                    pool("few", limits=resources({"cpu": 64_000}), requirements=only("large")),
                    pool("other", requirements=only("small")),
                ),
            ),
            1.6 + 32 / 4 * 0.2,
        ),
        (
            "a pod that no node is for is not counted",
            world(pod("one", node_selector=(("size", "large"),)), types=BOTH),
            0,
        ),
    ],
)
def test_the_bound_is_what_can_be_reckoned_by_hand(
    why: str, cluster: Cluster, price: float, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all columns and whole nodes, or with columns as they are asked for."""
    monkeypatch.setattr(program, "WHOLE", columns)
    assert bound(cluster) == pytest.approx(price, rel=2e-3), why


def test_of_a_reservation_there_is_no_more_than_is_left() -> None:
    held = Offering(
        zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1", reservation_capacity=3
    )
    reserved = replace(SMALL, offerings=(held, *SMALL.offerings))
    kinds = needs(
        (CAPACITY_TYPE, "In", ("reserved", "on-demand")),
        (INSTANCE_TYPE, "In", ("small",)),
    )
    types = (replace(reserved, requirements=kinds),)
    assert bound(world(*many(40), types=types)) == pytest.approx(7 * 0.2, rel=2e-3)


def test_what_breaks_a_limit_has_no_least_price() -> None:
    cluster = world(*many(8), node_pools=(pool(limits=resources({"cpu": 4_000})),), types=(SMALL,))
    everybody = Placement(existing=(Fit(node="nowhere", pods=tuple(one.name for one in cluster.pods)),))
    with pytest.raises(ValueError, match="not all of these pods can be placed together"):
        lower_bound(cluster, everybody, Options())


def test_others_that_are_counted_make_even_shares_uncertain() -> None:
    """A pod that runs in the dear zone is one of those that are spread: how many must come there is not known."""
    spread = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB),)
    types = (
        instance_type("cheap", 4, 16, price=0.2, zones=("a", "b")),
        instance_type("dear", 4, 16, price=0.8, zones=("c",)),
    )
    there = pod("there", labels={"app": "web"}, on="here")
    cluster = world(*many(59, spread=spread), there, types=types, nodes=(node("here", labels={ZONE: "c"}, cpu="1"),))
    assert bound(cluster) < 4
