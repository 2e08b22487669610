"""Resources, the scheduling queue, instance types and offerings."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.scheduling.templates.node_claim_builder import build_node_claims
from shared.model.cloud_provider.instance_type import InstanceType, Offering, UnavailableOffering
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, RESERVATION_ID, ZONE
from shared.model.core.resources import build_resources, parse_resources
from shared.model.decisions.placement import SchedulingOptions
from shared.model.kubernetes.host_ports import HostPort
from shared.model.kubernetes.pod import Pod
from tests.support.catalogues import (
    NOW,
    SIZES,
    count_pods_per_new_node,
    locate_pods,
    make_cluster_snapshot,
    make_daemon_set,
    make_instance_type,
    make_node,
    make_node_class,
    make_node_pool,
    make_pod,
    make_requirements,
)
from tests.support.snapshot_decisions import solve


def test_empty_cluster_needs_no_nodes() -> None:
    assert not locate_pods(solve(make_cluster_snapshot()))


def test_pod_that_kube_scheduler_has_not_marked_unschedulable_is_ignored() -> None:
    assert not locate_pods(solve(make_cluster_snapshot(replace(make_pod("young"), conditions=()))))


def test_pods_share_one_larger_node() -> None:
    pods = (make_pod(f"p{number}", "500m", "256Mi") for number in range(12))
    placement = solve(make_cluster_snapshot(*pods, daemon_sets=(make_daemon_set("agent", "150m"),)))
    (new_node,) = placement.new_nodes
    assert (len(new_node.pods), new_node.cheapest.instance_type, new_node.daemon_pods) == (12, "m.08", 1)
    assert (new_node.requests["cpu"], new_node.requests["pods"]) == (6150, 13)


def test_next_node_is_opened_when_a_node_is_full() -> None:
    assert count_pods_per_new_node(
        solve(make_cluster_snapshot(*(make_pod(f"p{number}", "3") for number in range(7))))
    ) == [2, 5]


def test_instance_types_are_sorted_by_price_then_by_name() -> None:
    types = (
        make_instance_type("dear", 4, price=2.0),
        make_instance_type("cheap", 4, price=1.0),
        make_instance_type("even", 4, price=1.0),
    )
    (new_node,) = solve(make_cluster_snapshot(make_pod("one"), types=types)).new_nodes
    assert new_node.instance_types == ("cheap", "even", "dear")
    assert solve(make_cluster_snapshot(make_pod("one"), types=types)).price_usd_per_hour == 1.0


def test_instance_type_list_is_cut_at_max_instance_types() -> None:
    (new_node,) = solve(
        make_cluster_snapshot(make_pod("one")), options=SchedulingOptions(max_instance_types=2)
    ).new_nodes
    assert new_node.instance_types == ("m.02", "m.04")


def test_cheaper_spot_is_preferred_while_on_demand_stays_allowed() -> None:
    types = (make_instance_type("both", 4, capacity_types=("spot", "on-demand")),)
    (new_node,) = solve(make_cluster_snapshot(make_pod("one"), types=types)).new_nodes
    assert new_node.cheapest.capacity_type == "spot"
    assert new_node.requirements[CAPACITY_TYPE].values == {"spot", "on-demand"}


@pytest.mark.parametrize(
    ("refused", "expected_zone"),
    [
        ({"capacity_type": "on-demand", "instance_type": "only", "zone": "a"}, "b"),
        ({"capacity_type": "on-demand", "zone": "a"}, "b"),
        ({"capacity_type": "spot", "instance_type": "only", "zone": "a"}, "a"),
        ({"capacity_type": "on-demand", "instance_type": "other", "zone": "a"}, "a"),
        ({"capacity_type": "on-demand", "instance_type": "only"}, "NoNode"),
    ],
)
def test_unavailable_offering_is_not_used(refused: dict[str, str], expected_zone: str) -> None:
    refusal = UnavailableOffering(until=NOW + timedelta(minutes=3), **refused)
    placement = solve(
        make_cluster_snapshot(
            make_pod("one"), types=(make_instance_type("only", 4, zones=("a", "b")),), unavailable=(refusal,)
        )
    )
    assert [new_node.cheapest.zone for new_node in placement.new_nodes] == (
        [expected_zone] if expected_zone != "NoNode" else []
    )


def test_expired_unavailable_offering_is_used_again() -> None:
    refusal = UnavailableOffering(until=NOW, capacity_type="on-demand")
    assert solve(make_cluster_snapshot(make_pod("one"), unavailable=(refusal,))).new_nodes


def test_offering_marked_unavailable_in_the_catalog_is_not_used() -> None:
    unavailable_offering = Offering(zone="a", capacity_type="on-demand", price_usd_per_hour=0.1, available=False)
    types = (replace(make_instance_type("only", 4), offerings=(unavailable_offering,)),)
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one"), types=types))) == {"one": "RequirementsNotMet"}


def test_extended_resource_requires_an_instance_type_that_provides_it() -> None:
    types = (*SIZES, make_instance_type("gpu", 4, extra={"nvidia.com/gpu": "1"}, price=3.0))
    requests = parse_resources({"cpu": "1", "nvidia.com/gpu": "1", "pods": "1"})
    (new_node,) = solve(make_cluster_snapshot(make_pod("one", requests=requests), types=types)).new_nodes
    assert new_node.instance_types == ("gpu",)


def test_overhead_is_subtracted_from_the_capacity_for_pods() -> None:
    types = (make_instance_type("tight", 4, overhead={"cpu": "1"}),)
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one", "3500m"), types=types))) == {
        "one": "NoInstanceTypeFits"
    }


def test_instance_type_with_overhead_above_its_capacity_is_never_used() -> None:
    types = (make_instance_type("broken", 4, overhead={"memory": "17Gi"}),)
    assert not solve(make_cluster_snapshot(make_pod("one", memory="0"), types=types)).new_nodes


def test_pod_count_is_limited_by_the_pods_resource() -> None:
    types = (make_instance_type("few", 8, pods=3),)
    assert count_pods_per_new_node(
        solve(make_cluster_snapshot(*(make_pod(f"p{number}", "1m") for number in range(7)), types=types))
    ) == [1, 3, 3]


def _make_pod_with_uid(name: str, uid: str) -> Pod:
    return replace(make_pod(name), meta=replace(make_pod(name).meta, uid=uid))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (make_pod("big", "3"), make_pod("old", "2", age=99)),
        (make_pod("fat", memory="3Gi"), make_pod("old", age=99)),
        (make_pod("z-old", age=9), make_pod("a-young")),
        (_make_pod_with_uid("z", "a"), _make_pod_with_uid("y", "b")),
    ],
)
def test_scheduling_queue_is_sorted_by_cpu_then_memory_then_age_then_uid(first: Pod, second: Pod) -> None:
    single_pod_node = replace(
        make_node("here"), allocatable=parse_resources({"cpu": "4", "memory": "8Gi", "pods": "1"})
    )
    assert locate_pods(solve(make_cluster_snapshot(second, first, nodes=(single_pod_node,))))[first.meta.name] == "here"


def test_host_port_is_used_once_per_node() -> None:
    ports = (HostPort(port=80),)
    assert count_pods_per_new_node(
        solve(make_cluster_snapshot(*(make_pod(f"p{number}", host_ports=ports) for number in range(3))))
    ) == [1, 1, 1]


def test_host_port_conflicts_between_different_pods_need_two_nodes() -> None:
    assert count_pods_per_new_node(
        solve(
            make_cluster_snapshot(*(make_pod(f"p{cpu}", f"{cpu}", host_ports=(HostPort(port=80),)) for cpu in (1, 2)))
        )
    ) == [1, 1]


def test_pods_with_different_host_ports_share_a_node() -> None:
    assert count_pods_per_new_node(
        solve(make_cluster_snapshot(*(make_pod(f"p{port}", host_ports=(HostPort(port=port),)) for port in (80, 81))))
    ) == [2]


def test_daemon_set_host_ports_are_occupied_on_new_nodes() -> None:
    placement = solve(
        make_cluster_snapshot(
            make_pod("web", host_ports=(HostPort(port=80),)),
            daemon_sets=(make_daemon_set("d", host_ports=(HostPort(port=80),)),),
        )
    )
    assert locate_pods(placement) == {"web": "NoInstanceTypeFits"}


def test_daemon_set_overhead_counts_only_on_instance_types_it_runs_on() -> None:
    large = make_daemon_set("large", "3", required_terms=(make_requirements((INSTANCE_TYPE, "In", ("m.04",))),))
    (new_node,) = solve(make_cluster_snapshot(make_pod("one", "1500m"), daemon_sets=(large,))).new_nodes
    assert new_node.instance_types == ("m.02", "m.08", "m.16")
    assert new_node.daemon_pods == 0


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"node_selector": (("team", "a"),)}, True),
        ({"node_selector": ((ZONE, "a"),)}, False),
        ({"has_resource_claims": True}, True),
        (
            {"required_terms": (make_requirements(("team", "In", ("a",))), make_requirements((ZONE, "Exists", ())))},
            False,
        ),
    ],
)
def test_only_daemon_sets_that_match_the_new_node_are_counted(fields: dict[str, Any], *, fits: bool) -> None:
    placement = solve(
        make_cluster_snapshot(make_pod("one", "15"), types=SIZES, daemon_sets=(make_daemon_set("d", "2", **fields),))
    )
    assert bool(placement.new_nodes) is fits


def test_daemon_set_that_selects_a_label_set_after_launch_is_counted() -> None:
    daemon_set = make_daemon_set("d", "2", node_selector=(("karpenter.sh/initialized", "true"),))
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one", "15"), daemon_sets=(daemon_set,)))) == {
        "one": "NoInstanceTypeFits"
    }


def test_capacity_reservation_is_used_up_to_its_instance_count() -> None:
    reserved = Offering(
        zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1", reservation_capacity=2
    )
    base_type = make_instance_type("m", 2, labels={CAPACITY_TYPE: ("on-demand", "reserved")})
    types: tuple[InstanceType, ...] = (replace(base_type, offerings=(*base_type.offerings, reserved)),)
    placement = solve(make_cluster_snapshot(*(make_pod(f"p{number}", "2") for number in range(3)), types=types))
    assert sorted(new_node.cheapest.capacity_type for new_node in placement.new_nodes) == [
        "on-demand",
        "reserved",
        "reserved",
    ]
    reserved_nodes = [new_node for new_node in placement.new_nodes if new_node.cheapest.capacity_type == "reserved"]
    assert all(new_node.requirements[RESERVATION_ID].values == {"cr-1"} for new_node in reserved_nodes)
    only = make_node_pool(requirements=make_requirements((CAPACITY_TYPE, "In", ("reserved",))))
    placement = solve(
        make_cluster_snapshot(*(make_pod(f"p{number}", "2") for number in range(3)), types=types, node_pools=(only,))
    )
    assert [failure.reason for failure in placement.unschedulable] == ["NoOffering"]


def test_unlaunched_node_claims_hold_their_capacity_reservation() -> None:
    reserved = Offering(
        zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1", reservation_capacity=1
    )
    base_type = make_instance_type("m", 2, labels={CAPACITY_TYPE: ("on-demand", "reserved")})
    types = (replace(base_type, offerings=(*base_type.offerings, reserved)),)
    cluster = make_cluster_snapshot(make_pod("one", "2"), types=types)
    first = solve(cluster)
    second_placement = solve(
        replace(cluster, pods=(*cluster.pods, make_pod("two", "2")), node_claims=build_node_claims(first, cluster))
    )
    assert [new.cheapest.capacity_type for new in first.new_nodes] == ["reserved"]
    assert [new.cheapest.capacity_type for new in second_placement.new_nodes] == ["on-demand"]
    started = tuple(replace(claim, provider_id="aws:///a/i-1") for claim in build_node_claims(first, cluster))
    later = solve(replace(cluster, pods=(*cluster.pods, make_pod("two", "2")), node_claims=started))
    assert [new.cheapest.capacity_type for new in later.new_nodes] == ["reserved"]


def test_capacity_reservation_without_free_instances_is_not_used() -> None:
    empty = Offering(zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1")
    base_type = make_instance_type("m", 2, labels={CAPACITY_TYPE: ("on-demand", "reserved")})
    pools = (
        make_node_pool("held", weight=9, requirements=make_requirements((CAPACITY_TYPE, "In", ("reserved",)))),
        make_node_pool(),
    )
    types = (replace(base_type, offerings=(*base_type.offerings, empty)),)
    assert locate_pods(solve(make_cluster_snapshot(make_pod("one"), types=types, node_pools=pools))) == {
        "one": "default"
    }


def test_instance_type_without_a_label_matches_any_value_of_it() -> None:
    node_pool = make_node_pool(requirements=make_requirements(("rack", "In", ("r1",))))
    types = (make_instance_type("loud", 4, labels={"rack": ("r2",)}), make_instance_type("silent", 4))
    (new_node,) = solve(make_cluster_snapshot(make_pod("one"), types=types, node_pools=(node_pool,))).new_nodes
    assert new_node.instance_types == ("silent",)


def test_node_classes_without_own_instance_types_share_the_catalog_instance_types() -> None:
    other_pool = make_node_pool(
        "other",
        weight=1,
        node_class=replace(make_node_pool().node_class, name="other"),
        limits=build_resources({"nodes": 1}),
    )
    cluster = make_cluster_snapshot(
        make_pod("one", "16"), make_pod("two", "16"), node_pools=(make_node_pool(), other_pool)
    )
    cluster = replace(cluster, node_classes=(make_node_class(), make_node_class("other")))
    assert sorted(locate_pods(solve(cluster)).values()) == ["default", "other"]


def test_pods_are_packed_on_the_instance_types_of_their_node_class() -> None:
    own_types = (make_instance_type("own.8", 8, price=0.01),)
    cluster = make_cluster_snapshot(
        make_pod("one"), node_pools=(make_node_pool("p", node_class=replace(make_node_pool().node_class, name="own")),)
    )
    assert cluster.catalog is not None
    catalogue = replace(cluster.catalog, by_node_class=(("own", own_types),))
    cluster = replace(cluster, catalog=catalogue, node_classes=(make_node_class("own"),))
    assert solve(cluster).new_nodes[0].instance_types == ("own.8",)


def test_solve_schedules_only_the_given_pods() -> None:
    idle = replace(make_pod("given"), conditions=())
    assert locate_pods(solve(make_cluster_snapshot(make_pod("waits")), pods=(idle,))) == {"given": "default"}
