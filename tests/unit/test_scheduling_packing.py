"""Resources, the queue, types and offerings."""

from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace

from shared.model.catalogue import InstanceType, Offering, UnavailableOffering
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE
from shared.model.pods import HostPort, Pod
from shared.model.resources import parse_resources, resources
from shared.scheduling.placement import Options
from shared.scheduling.shelf import RESERVATION_ID
from shared.scheduling.solve import claims, solve
from tests.unit.catalogues import (
    NOW,
    SIZES,
    daemon,
    instance_type,
    needs,
    node,
    node_class,
    placed,
    pod,
    pool,
    sizes,
    world,
)


def test_an_empty_cluster_needs_nothing() -> None:
    assert not placed(solve(world()))


def test_a_pod_that_kube_scheduler_has_not_given_up_is_left_alone() -> None:
    assert not placed(solve(world(replace(pod("young"), conditions=()))))


def test_pods_share_one_larger_node() -> None:
    pods = (pod(f"p{number}", "500m", "256Mi") for number in range(12))
    placement = solve(world(*pods, daemon_sets=(daemon("agent", "150m"),)))
    (made,) = placement.new_nodes
    assert (len(made.pods), made.cheapest.instance_type, made.daemon_pods) == (12, "m.08", 1)
    assert (made.requests["cpu"], made.requests["pods"]) == (6150, 13)


def test_a_full_node_is_followed_by_another() -> None:
    assert sizes(solve(world(*(pod(f"p{number}", "3") for number in range(7))))) == [2, 5]


def test_types_are_listed_cheapest_first() -> None:
    types = (
        instance_type("dear", 4, price=2.0),
        instance_type("cheap", 4, price=1.0),
        instance_type("even", 4, price=1.0),
    )
    (made,) = solve(world(pod("one"), types=types)).new_nodes
    assert made.instance_types == ("cheap", "even", "dear")
    assert solve(world(pod("one"), types=types)).price_usd_per_hour == 1.0


def test_the_list_of_types_is_cut_at_its_maximum() -> None:
    (made,) = solve(world(pod("one")), options=Options(max_instance_types=2)).new_nodes
    assert made.instance_types == ("m.02", "m.04")


def test_spot_is_chosen_only_for_its_price() -> None:
    types = (instance_type("both", 4, capacity_types=("spot", "on-demand")),)
    (made,) = solve(world(pod("one"), types=types)).new_nodes
    assert made.cheapest.capacity_type == "spot"
    assert made.requirements[CAPACITY_TYPE].values == {"spot", "on-demand"}


@pytest.mark.parametrize(
    ("refused", "where"),
    [
        ({"capacity_type": "on-demand", "instance_type": "only", "zone": "a"}, "b"),
        ({"capacity_type": "on-demand", "zone": "a"}, "b"),
        ({"capacity_type": "spot", "instance_type": "only", "zone": "a"}, "a"),
        ({"capacity_type": "on-demand", "instance_type": "other", "zone": "a"}, "a"),
        ({"capacity_type": "on-demand", "instance_type": "only"}, "NoNode"),
    ],
)
def test_what_ec2_refused_lately_is_not_tried(refused: dict[str, str], where: str) -> None:
    refusal = UnavailableOffering(until=NOW + timedelta(minutes=3), **refused)
    placement = solve(world(pod("one"), types=(instance_type("only", 4, zones=("a", "b")),), unavailable=(refusal,)))
    assert [made.cheapest.zone for made in placement.new_nodes] == ([where] if where != "NoNode" else [])


def test_a_refusal_that_is_over_counts_no_more() -> None:
    refusal = UnavailableOffering(until=NOW, capacity_type="on-demand")
    assert solve(world(pod("one"), unavailable=(refusal,))).new_nodes


def test_an_offering_that_is_not_available_is_not_bought() -> None:
    gone = Offering(zone="a", capacity_type="on-demand", price_usd_per_hour=0.1, available=False)
    types = (replace(instance_type("only", 4), offerings=(gone,)),)
    assert placed(solve(world(pod("one"), types=types))) == {"one": "RequirementsNotMet"}


def test_an_extended_resource_needs_a_type_that_has_it() -> None:
    types = (*SIZES, instance_type("gpu", 4, extra={"nvidia.com/gpu": "1"}, price=3.0))
    asked = parse_resources({"cpu": "1", "nvidia.com/gpu": "1", "pods": "1"})
    (made,) = solve(world(pod("one", requests=asked), types=types)).new_nodes
    assert made.instance_types == ("gpu",)


def test_overhead_is_not_for_pods() -> None:
    types = (instance_type("tight", 4, overhead={"cpu": "1"}),)
    assert placed(solve(world(pod("one", "3500m"), types=types))) == {"one": "NoInstanceTypeFits"}


def test_a_type_that_is_overdrawn_is_never_used() -> None:
    types = (instance_type("broken", 4, overhead={"memory": "17Gi"}),)
    assert not solve(world(pod("one", memory="0"), types=types)).new_nodes


def test_the_number_of_pods_is_a_resource() -> None:
    types = (instance_type("few", 8, pods=3),)
    assert sizes(solve(world(*(pod(f"p{number}", "1m") for number in range(7)), types=types))) == [1, 3, 3]


def _with_uid(name: str, uid: str) -> Pod:
    return replace(pod(name), meta=replace(pod(name).meta, uid=uid))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("big", "3"), pod("old", "2", age=99)),
        (pod("fat", memory="3Gi"), pod("old", age=99)),
        (pod("z-old", age=9), pod("a-young")),
        (_with_uid("z", "a"), _with_uid("y", "b")),
    ],
)
def test_the_queue_is_by_cpu_then_memory_then_age_then_uid(first: Pod, second: Pod) -> None:
    one = replace(node("here"), allocatable=parse_resources({"cpu": "4", "memory": "8Gi", "pods": "1"}))
    assert placed(solve(world(second, first, nodes=(one,))))[first.meta.name] == "here"


def test_a_host_port_is_taken_once_on_a_node() -> None:
    ports = (HostPort(port=80),)
    assert sizes(solve(world(*(pod(f"p{number}", host_ports=ports) for number in range(3))))) == [1, 1, 1]


def test_a_host_port_is_taken_by_pods_of_any_kind() -> None:
    assert sizes(solve(world(*(pod(f"p{cpu}", f"{cpu}", host_ports=(HostPort(port=80),)) for cpu in (1, 2))))) == [1, 1]


def test_different_host_ports_share_a_node() -> None:
    assert sizes(solve(world(*(pod(f"p{port}", host_ports=(HostPort(port=port),)) for port in (80, 81))))) == [2]


def test_daemons_take_their_host_ports_first() -> None:
    placement = solve(
        world(pod("web", host_ports=(HostPort(port=80),)), daemon_sets=(daemon("d", host_ports=(HostPort(port=80),)),))
    )
    assert placed(placement) == {"web": "NoInstanceTypeFits"}


def test_daemons_are_counted_on_the_types_where_they_run() -> None:
    large = daemon("large", "3", required_terms=(needs((INSTANCE_TYPE, "In", ("m.04",))),))
    (made,) = solve(world(pod("one", "1500m"), daemon_sets=(large,))).new_nodes
    assert made.instance_types == ("m.02", "m.08", "m.16")
    assert made.daemon_pods == 0


@pytest.mark.parametrize(
    ("fields", "fits"),
    [
        ({"node_selector": (("team", "a"),)}, True),
        ({"node_selector": ((ZONE, "a"),)}, False),
        ({"has_resource_claims": True}, True),
        ({"required_terms": (needs(("team", "In", ("a",))), needs((ZONE, "Exists", ())))}, False),
    ],
)
def test_only_daemons_that_would_run_there_are_counted(fields: dict[str, Any], *, fits: bool) -> None:
    placement = solve(world(pod("one", "15"), types=SIZES, daemon_sets=(daemon("d", "2", **fields),)))
    assert bool(placement.new_nodes) is fits


def test_a_node_may_be_selected_by_daemons_on_what_it_will_be() -> None:
    some = daemon("d", "2", node_selector=(("karpenter.sh/initialized", "true"),))
    assert placed(solve(world(pod("one", "15"), daemon_sets=(some,)))) == {"one": "NoInstanceTypeFits"}


def test_a_reservation_is_used_as_often_as_it_holds() -> None:
    reserved = Offering(
        zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1", reservation_capacity=2
    )
    some = instance_type("m", 2, labels={CAPACITY_TYPE: ("on-demand", "reserved")})
    types: tuple[InstanceType, ...] = (replace(some, offerings=(*some.offerings, reserved)),)
    placement = solve(world(*(pod(f"p{number}", "2") for number in range(3)), types=types))
    assert sorted(made.cheapest.capacity_type for made in placement.new_nodes) == ["on-demand", "reserved", "reserved"]
    held = [made for made in placement.new_nodes if made.cheapest.capacity_type == "reserved"]
    assert all(made.requirements[RESERVATION_ID].values == {"cr-1"} for made in held)
    only = pool(requirements=needs((CAPACITY_TYPE, "In", ("reserved",))))
    placement = solve(world(*(pod(f"p{number}", "2") for number in range(3)), types=types, node_pools=(only,)))
    assert [one.reason for one in placement.unschedulable] == ["NoOffering"]


def test_claims_that_wait_for_their_instance_hold_their_reservation() -> None:
    reserved = Offering(
        zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1", reservation_capacity=1
    )
    some = instance_type("m", 2, labels={CAPACITY_TYPE: ("on-demand", "reserved")})
    types = (replace(some, offerings=(*some.offerings, reserved)),)
    cluster = world(pod("one", "2"), types=types)
    first = solve(cluster)
    again = solve(replace(cluster, pods=(*cluster.pods, pod("two", "2")), node_claims=claims(first, cluster)))
    assert [new.cheapest.capacity_type for new in first.new_nodes] == ["reserved"]
    assert [new.cheapest.capacity_type for new in again.new_nodes] == ["on-demand"]
    started = tuple(replace(claim, provider_id="aws:///a/i-1") for claim in claims(first, cluster))
    later = solve(replace(cluster, pods=(*cluster.pods, pod("two", "2")), node_claims=started))
    assert [new.cheapest.capacity_type for new in later.new_nodes] == ["reserved"]


def test_an_empty_reservation_is_not_on_sale() -> None:
    empty = Offering(zone="a", capacity_type="reserved", price_usd_per_hour=0.0, reservation_id="cr-1")
    some = instance_type("m", 2, labels={CAPACITY_TYPE: ("on-demand", "reserved")})
    pools = (pool("held", weight=9, requirements=needs((CAPACITY_TYPE, "In", ("reserved",)))), pool())
    types = (replace(some, offerings=(*some.offerings, empty)),)
    assert placed(solve(world(pod("one"), types=types, node_pools=pools))) == {"one": "default"}


def test_a_type_that_is_silent_about_a_label_may_have_any() -> None:
    some = pool(requirements=needs(("rack", "In", ("r1",))))
    types = (instance_type("loud", 4, labels={"rack": ("r2",)}), instance_type("silent", 4))
    (made,) = solve(world(pod("one"), types=types, node_pools=(some,))).new_nodes
    assert made.instance_types == ("silent",)


def test_pools_of_classes_without_types_of_their_own_share_the_common_ones() -> None:
    other = pool("other", weight=1, node_class=replace(pool().node_class, name="other"), limits=resources({"nodes": 1}))
    cluster = world(pod("one", "16"), pod("two", "16"), node_pools=(pool(), other))
    cluster = replace(cluster, node_classes=(node_class(), node_class("other")))
    assert sorted(placed(solve(cluster)).values()) == ["default", "other"]


def test_pods_of_two_classes_of_types_are_packed_for_their_own() -> None:
    own = (instance_type("own.8", 8, price=0.01),)
    cluster = world(pod("one"), node_pools=(pool("p", node_class=replace(pool().node_class, name="own")),))
    assert cluster.catalogue is not None
    catalogue = replace(cluster.catalogue, by_node_class=(("own", own),))
    cluster = replace(cluster, catalogue=catalogue, node_classes=(node_class("own"),))
    assert solve(cluster).new_nodes[0].instance_types == ("own.8",)


def test_pods_may_be_given() -> None:
    idle = replace(pod("given"), conditions=())
    assert placed(solve(world(pod("waits")), pods=(idle,))) == {"given": "default"}
