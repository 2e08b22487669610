"""Tests of the lower bound on the price of pods, in cases that can be computed by hand."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, ZONE
from shared.model.core.requirements import Requirements
from shared.model.core.resources import build_resources
from shared.model.core.selectors import build_label_selector
from shared.model.decisions.placement import ExistingNodePlacement, Placement, SchedulingOptions
from shared.model.kubernetes.pod import AffinityTerm, Pod, SpreadConstraint
from sim.lower_bound import integer_program
from sim.lower_bound.integer_program import compute_lower_bound
from tests.support.catalogues import (
    make_cluster_snapshot,
    make_daemon_set,
    make_instance_type,
    make_node,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve

WEB = build_label_selector({"app": "web"})
SMALL = make_instance_type("small", 4, 16, price=0.2)
LARGE = make_instance_type("large", 64, 256, price=9.6)
BOTH = (SMALL, LARGE)


def make_web_pods(count: int, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> list[Pod]:
    return [make_pod(f"web-{number}", cpu, memory, labels={"app": "web"}, **spec) for number in range(count)]


def require_instance_type(name: str) -> Requirements:
    return make_requirements((INSTANCE_TYPE, "In", (name,)))


def compute_rounded_bound(cluster: ClusterSnapshot) -> float:
    return round(compute_lower_bound(cluster, solve(cluster), SchedulingOptions()), 4)


@pytest.mark.parametrize("columns", [0, 15_000])
@pytest.mark.parametrize(
    ("description", "cluster", "price"),
    [
        ("no pending pods", make_cluster_snapshot(types=BOTH), 0),
        ("full nodes", make_cluster_snapshot(*make_web_pods(60), types=BOTH), 3.0),
        (
            "whole pods per node",
            make_cluster_snapshot(*make_web_pods(20, "1600m"), types=BOTH),
            2.0,
        ),
        (
            "one pod per host",
            make_cluster_snapshot(
                *make_web_pods(10, pod_anti_affinity=(AffinityTerm(topology_key=HOSTNAME, selector=WEB),)), types=BOTH
            ),
            2.0,
        ),
        (
            "two pods per host",
            make_cluster_snapshot(
                *make_web_pods(10, spread=(SpreadConstraint(topology_key=HOSTNAME, max_skew=2, selector=WEB),)),
                types=BOTH,
            ),
            1.0,
        ),
        (
            "zone spread with one expensive zone",
            make_cluster_snapshot(
                *make_web_pods(60, spread=(SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB),)),
                types=(
                    make_instance_type("cheap", 4, 16, price=0.2, zones=("a", "b")),
                    make_instance_type("dear", 4, 16, price=0.8, zones=("c",)),
                ),
            ),
            5 * 0.2 + 5 * 0.2 + 5 * 0.8,
        ),
        (
            "one core per node for DaemonSets",
            make_cluster_snapshot(*make_web_pods(30), types=BOTH, daemon_sets=(make_daemon_set("a", "1"),)),
            2.0,
        ),
        (
            "existing nodes cost nothing",
            make_cluster_snapshot(*make_web_pods(60), types=BOTH, nodes=(make_node("here", cpu="20", memory="80Gi"),)),
            2.0,
        ),
        (
            "NodePool limit",
            make_cluster_snapshot(
                *make_web_pods(96),
                types=(SMALL, make_instance_type("large", 64, 256, price=1.6)),
                node_pools=(
                    make_node_pool(
                        "few", limits=build_resources({"cpu": 64_000}), requirements=require_instance_type("large")
                    ),
                    make_node_pool("other", requirements=require_instance_type("small")),
                ),
            ),
            1.6 + 32 / 4 * 0.2,
        ),
        (
            "unschedulable pod is not counted",
            make_cluster_snapshot(make_pod("one", node_selector=(("size", "large"),)), types=BOTH),
            0,
        ),
    ],
)
def test_lower_bound_matches_manual_calculation(
    description: str, cluster: ClusterSnapshot, price: float, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Check with all columns and whole nodes, and with columns that are generated on demand."""
    monkeypatch.setattr(integer_program, "MAX_INTEGER_COLUMNS", columns)
    assert compute_rounded_bound(cluster) == pytest.approx(price, rel=2e-3), description


def test_lower_bound_respects_remaining_reservation_capacity() -> None:
    reserved_offering = Offering(
        zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1", reservation_capacity=3
    )
    reserved = replace(SMALL, offerings=(reserved_offering, *SMALL.offerings))
    kinds = make_requirements(
        (CAPACITY_TYPE, "In", ("reserved", "on-demand")),
        (INSTANCE_TYPE, "In", ("small",)),
    )
    types = (replace(reserved, requirements=kinds),)
    assert compute_rounded_bound(make_cluster_snapshot(*make_web_pods(40), types=types)) == pytest.approx(
        7 * 0.2, rel=2e-3
    )


def test_lower_bound_of_a_placement_over_its_limit_is_rejected() -> None:
    cluster = make_cluster_snapshot(
        *make_web_pods(8), node_pools=(make_node_pool(limits=build_resources({"cpu": 4_000})),), types=(SMALL,)
    )
    placement = Placement(
        existing=(ExistingNodePlacement(node="nowhere", pods=tuple(pending_pod.name for pending_pod in cluster.pods)),)
    )
    with pytest.raises(ValueError, match="not all of these pods can be placed together"):
        compute_lower_bound(cluster, placement, SchedulingOptions())


def test_running_pods_in_the_spread_lower_the_bound() -> None:
    """A running pod in the expensive zone counts in the spread, so how many must start there is not known."""
    spread = (SpreadConstraint(topology_key=ZONE, max_skew=1, selector=WEB),)
    types = (
        make_instance_type("cheap", 4, 16, price=0.2, zones=("a", "b")),
        make_instance_type("dear", 4, 16, price=0.8, zones=("c",)),
    )
    running_pod = make_pod("there", labels={"app": "web"}, on="here")
    cluster = make_cluster_snapshot(
        *make_web_pods(59, spread=spread),
        running_pod,
        types=types,
        nodes=(make_node("here", labels={ZONE: "c"}, cpu="1"),),
    )
    assert compute_rounded_bound(cluster) < 4
