"""NodeOverlays: which price and resources apply, to which instance types, and which overlays conflict."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.decide.lifecycle.status.node_overlay import build_overlay_conditions, describe_node_overlays
from shared.decide.scheduling.templates.node_overlays import apply_overlays, evaluate_overlays
from shared.model.cloud_provider.instance_type import Catalog, Offering
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.karpenter.node_overlay import NodeOverlay
from shared.take.kubernetes.optional_resources import OPTIONAL_KINDS
from tests.support.catalogues import (
    NOW,
    SIZES,
    locate_pods,
    make_cluster_snapshot,
    make_instance_type,
    make_node_class,
    make_node_pool,
    make_pod,
)
from tests.support.snapshot_decisions import solve

[LISTING] = (one for one in OPTIONAL_KINDS if one.field == "node_overlays")
TYPES = (
    make_instance_type("m.02", 2, capacity_types=("on-demand", "spot")),
    make_instance_type("m.04", 4, capacity_types=("on-demand", "spot")),
)


def make_overlay(name: str, *requirements: tuple[str, str, list[str]], **spec: Any) -> NodeOverlay:
    """Return a NodeOverlay, parsed from its Kubernetes object."""
    requirement_specs = [{"key": key, "operator": operator, "values": values} for key, operator, values in requirements]
    body = {"metadata": {"name": name, "generation": 1}, "spec": {"requirements": requirement_specs} | spec}
    [node_overlay], _ = LISTING.convert_objects([body])
    assert isinstance(node_overlay, NodeOverlay)
    return node_overlay


def build_overlay_cluster(*overlays: NodeOverlay, **fields: Any) -> ClusterSnapshot:
    return make_cluster_snapshot(types=TYPES, node_overlays=overlays, **fields)


def find_offering(
    cluster: ClusterSnapshot, name: str, zone: str = "a", kind: str = "on-demand", node_class: str = "default"
) -> Offering:
    catalogue = evaluate_overlays(cluster).catalog
    assert catalogue is not None
    [instance_type] = (
        candidate for candidate in catalogue.get_instance_types("default", node_class) if candidate.name == name
    )
    return next(
        candidate_offering
        for candidate_offering in instance_type.offerings
        if (candidate_offering.zone, candidate_offering.capacity_type) == (zone, kind)
    )


@pytest.mark.parametrize(
    ("spec", "price"),
    [
        ({"price": "0.7"}, 0.7),
        ({"price": "0"}, 0.0),
        ({"priceAdjustment": "+0.5"}, 0.6),
        ({"priceAdjustment": "-0.05"}, 0.05),
        ({"priceAdjustment": "-9"}, 0.0),
        ({"priceAdjustment": "+10%"}, 0.11),
        ({"priceAdjustment": "-15%"}, 0.085),
        ({"priceAdjustment": "-100%"}, 0.0),
        ({}, 0.1),
    ],
)
def test_overlay_price_is_replaced_or_adjusted_and_never_negative(spec: dict[str, str], price: float) -> None:
    offering = find_offering(build_overlay_cluster(make_overlay("o", **spec)), "m.02")
    assert (offering.price_usd_per_hour, offering.is_overlaid) == (price, bool(spec))


@pytest.mark.parametrize(
    ("requirement", "touched"),
    [
        ((ZONE, "In", ["a"]), {("m.02", "a"), ("m.04", "a")}),
        ((CAPACITY_TYPE, "In", ["spot"]), set()),
        ((INSTANCE_TYPE, "NotIn", ["m.04"]), {("m.02", "a"), ("m.02", "b")}),
        ((NODEPOOL, "In", ["default"]), {("m.02", "a"), ("m.02", "b"), ("m.04", "a"), ("m.04", "b")}),
        ((NODEPOOL, "In", ["other"]), set()),
        (("team", "In", ["x"]), {("m.02", "a"), ("m.02", "b"), ("m.04", "a"), ("m.04", "b")}),
        (("team", "In", ["y"]), set()),
        (("karpenter.k8s.aws/instance-cpu", "Gt", ["1"]), set()),
    ],
)
def test_overlay_applies_to_offerings_matching_its_requirements(
    requirement: tuple[str, str, list[str]], touched: set[tuple[str, str]]
) -> None:
    cluster = build_overlay_cluster(
        make_overlay("o", requirement, price="9"), node_pools=(make_node_pool(labels=(("team", "x"),)),)
    )
    overlaid = {
        (name, zone) for name in ("m.02", "m.04") for zone in "ab" if find_offering(cluster, name, zone).is_overlaid
    }
    assert overlaid == touched


def test_node_pool_without_a_matching_overlay_sees_unchanged_prices() -> None:
    node_pools = (make_node_pool(), make_node_pool("other"))
    cluster = build_overlay_cluster(make_overlay("o", (NODEPOOL, "In", ["other"]), price="9"), node_pools=node_pools)
    assert find_offering(cluster, "m.02", node_class="other").price_usd_per_hour == 9
    assert find_offering(cluster, "m.02", node_class="default").price_usd_per_hour == 0.1


def test_overlay_with_the_highest_weight_applies_then_the_last_name() -> None:
    heavy = make_overlay("a", price="1", weight=7)
    light = make_overlay("z", price="2", capacity={"smarter.dev/fuse": 3})
    assert find_offering(build_overlay_cluster(light, heavy), "m.02").price_usd_per_hour == 1
    zone_overlay, wide_overlay = make_overlay("a", (ZONE, "In", ["a"]), price="1"), make_overlay("z", price="2")
    verdicts = evaluate_overlays(build_overlay_cluster(zone_overlay, wide_overlay)).verdicts
    assert verdicts["z"] == ("", "")
    assert verdicts["a"][0] == "Conflict"


def test_overlays_of_equal_weight_on_the_same_price_conflict_and_the_later_one_is_dropped() -> None:
    narrow_overlay = make_overlay("one", (INSTANCE_TYPE, "In", ["m.02"]), price="1", weight=3)
    wide_overlay = make_overlay("all", price="1", weight=3)
    evaluation = evaluate_overlays(build_overlay_cluster(narrow_overlay, wide_overlay))
    assert evaluation.verdicts["one"] == ("", "")
    reason, message = evaluation.verdicts["all"]
    assert reason == "Conflict"
    assert "conflicts with NodeOverlay one: all has the same weight (3)" in message
    cluster = apply_overlays(build_overlay_cluster(narrow_overlay, wide_overlay))
    assert find_offering(build_overlay_cluster(narrow_overlay, wide_overlay), "m.04").price_usd_per_hour == 0.2
    assert [(bad.kind, bad.name) for bad in cluster.problems] == [("NodeOverlay", "all")]


def test_overlays_of_equal_weight_on_different_offerings_do_not_conflict() -> None:
    overlays = (
        make_overlay("a", (ZONE, "In", ["a"]), price="1"),
        make_overlay("b", (ZONE, "In", ["b"]), price="2"),
        make_overlay("fuse", capacity={"smarter.dev/fuse": 2}),
    )
    assert {reason for reason, _ in evaluate_overlays(build_overlay_cluster(*overlays)).verdicts.values()} == {""}


def test_dropped_overlay_does_not_conflict_with_later_overlays() -> None:
    first = make_overlay("z", (ZONE, "In", ["a"]), price="1")
    dropped = make_overlay("y", (ZONE, "In", ["a", "b"]), price="2")
    last = make_overlay("x", (ZONE, "In", ["b"]), price="3")
    assert [evaluate_overlays(build_overlay_cluster(first, dropped, last)).verdicts[name][0] for name in "zyx"] == [
        "",
        "Conflict",
        "",
    ]


def test_overlay_capacity_adds_an_extended_resource_for_pods() -> None:
    wants = make_pod(
        "x", requests=replace(make_pod("y").spec.requests, amounts=(("cpu", 100), ("pods", 1), ("smarter.dev/fuse", 2)))
    )
    assert locate_pods(solve(make_cluster_snapshot(wants, types=TYPES)))["x"] == "NoInstanceTypeFits"
    fused = make_overlay("o", (INSTANCE_TYPE, "In", ["m.04"]), capacity={"smarter.dev/fuse": "2"})
    [node] = solve(apply_overlays(make_cluster_snapshot(wants, types=TYPES, node_overlays=(fused,)))).new_nodes
    assert node.instance_types == ("m.04",)


def test_huge_pages_of_an_overlay_are_subtracted_from_memory() -> None:
    huge = make_overlay("o", capacity={"hugepages-2Mi": "7Gi"})
    catalogue = evaluate_overlays(build_overlay_cluster(huge)).catalog
    assert catalogue is not None
    assert [
        instance_type.allocatable["memory"] // 1024**3
        for instance_type in catalogue.get_instance_types("default", "default")
    ] == [
        1,
        9,
    ]
    oversized = make_overlay("o", capacity={"hugepages-2Mi": "70Gi"})
    assert apply_overlays(build_overlay_cluster(oversized)).catalog.by_node_pool[0][1][0].allocatable["memory"] == 0  # type: ignore[union-attr] # it is there


def test_overlay_capacities_are_merged_and_the_heavier_overlay_wins_per_resource() -> None:
    heavy = make_overlay("h", capacity={"a/x": 1}, weight=2)
    light = make_overlay("l", capacity={"a/x": 5, "a/y": 7}, weight=1)
    catalogue = evaluate_overlays(build_overlay_cluster(heavy, light)).catalog
    assert catalogue is not None
    instance_type = catalogue.get_instance_types("default", "default")[0]
    assert (instance_type.capacity["a/x"], instance_type.capacity["a/y"], instance_type.is_overlaid) == (1, 7, True)


def test_cheapest_instance_type_is_chosen_by_overlaid_price() -> None:
    dear = make_overlay("o", (INSTANCE_TYPE, "In", ["m.02"]), price="5")
    [node] = solve(apply_overlays(make_cluster_snapshot(make_pod("x"), types=TYPES, node_overlays=(dear,)))).new_nodes
    assert node.cheapest.instance_type == "m.04"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"price": "1", "priceAdjustment": "+1"}, "remove one of them"),
        ({"price": "-1"}, "is not a price"),
        ({"price": "1e3"}, "is not a price"),
        ({"priceAdjustment": "10%"}, "is not a price adjustment"),
        ({"priceAdjustment": "-101%"}, "is not a price adjustment"),
        ({"capacity": {"cpu": "3"}}, "cpu comes from the instance type"),
        ({"capacity": {"a/x": "many"}}, "not a quantity"),
        ({"weight": 0}, "must be between 1 and 10000"),
        ({"requirements": [{"key": "a", "operator": "Like"}]}, "unknown operator"),
        ({"requirements": [{"key": "a", "operator": "Gt", "values": ["-1"]}]}, "below zero"),
        ({"requirements": [{"key": "karpenter.sh/registered", "operator": "Exists"}]}, "restricted"),
    ],
)
def test_invalid_overlay_is_reported_and_not_applied(spec: dict[str, Any], words: str) -> None:
    bad = make_overlay("bad", **({"price": "5"} if "requirements" in spec or "weight" in spec else {}), **spec)
    evaluation = evaluate_overlays(build_overlay_cluster(bad))
    assert evaluation.verdicts["bad"][0] == "RuntimeValidation"
    assert words in evaluation.verdicts["bad"][1]
    assert not find_offering(build_overlay_cluster(bad), "m.02").is_overlaid


def test_snapshot_is_unchanged_without_overlays_or_catalog() -> None:
    assert apply_overlays(make_cluster_snapshot()) == make_cluster_snapshot()
    blind = build_overlay_cluster(make_overlay("o", price="1"), make_overlay("bad", price="x"), catalog=None)
    assert (evaluate_overlays(blind).catalog, sorted(evaluate_overlays(blind).verdicts)) == (None, ["bad"])


def test_overlay_status_is_written_only_when_it_changes() -> None:
    node_overlay = make_overlay("o", price="1")
    [action] = describe_node_overlays((node_overlay,), {"o": ("Conflict", "with p")}, NOW)
    assert (action.kind, action.name) == ("NodeOverlay", "o")  # type: ignore[union-attr] # a PatchStatus
    reported_overlay = replace(
        node_overlay, conditions=build_overlay_conditions(node_overlay, ("Conflict", "with p"), NOW)
    )
    ready = {
        condition.type: (condition.status, condition.reason, condition.message)
        for condition in reported_overlay.conditions
    }
    assert ready["ValidationSucceeded"] == ("False", "Conflict", "with p")
    assert ready["Ready"][0] == "False"
    assert describe_node_overlays((reported_overlay,), {"o": ("Conflict", "with p")}, NOW) == ()
    [status_patch] = describe_node_overlays((reported_overlay,), {"o": ("", "")}, NOW)
    assert '"status":"True"' in status_patch.status  # type: ignore[union-attr] # a PatchStatus
    assert describe_node_overlays((node_overlay,), {}, NOW) == ()


def test_overlay_applies_to_the_instance_types_of_the_node_class() -> None:
    own_types = (make_instance_type("m.02", 2, price=7.0),)
    catalogue = Catalog(region="r", instance_types=SIZES, by_node_class=(("default", own_types),))
    cluster = build_overlay_cluster(
        make_overlay("o", priceAdjustment="+1"), catalog=catalogue, node_classes=(make_node_class(),)
    )
    assert find_offering(cluster, "m.02").price_usd_per_hour == 8
