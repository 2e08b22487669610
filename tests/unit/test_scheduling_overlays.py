"""NodeOverlays: whose price and resources count, for which types, and which overlays are in each other's way."""

from typing import Any

import pytest
from msgspec.structs import replace

from shared.lifecycle.overlays import conditions_of, describe_overlays
from shared.model.catalogue import Catalogue, Offering
from shared.model.cluster import Cluster
from shared.model.labels import CAPACITY_TYPE, INSTANCE_TYPE, NODEPOOL, ZONE
from shared.model.overlays import NodeOverlay
from shared.scheduling.overlays import evaluate, overlaid
from shared.scheduling.solve import solve
from shared.snapshot.optional import OPTIONAL
from tests.unit.catalogues import NOW, SIZES, instance_type, node_class, placed, pod, pool, world

[LISTING] = (one for one in OPTIONAL if one.field == "node_overlays")
TYPES = (
    instance_type("m.02", 2, capacity_types=("on-demand", "spot")),
    instance_type("m.04", 4, capacity_types=("on-demand", "spot")),
)


def overlay(name: str, *requirements: tuple[str, str, list[str]], **spec: Any) -> NodeOverlay:
    """Read one as it is written."""
    asked = [{"key": key, "operator": operator, "values": values} for key, operator, values in requirements]
    body = {"metadata": {"name": name, "generation": 1}, "spec": {"requirements": asked} | spec}
    [found], _ = LISTING.objects([body])
    assert isinstance(found, NodeOverlay)
    return found


def seen(*overlays: NodeOverlay, **more: Any) -> Cluster:
    return world(types=TYPES, node_overlays=overlays, **more)


def offering(cluster: Cluster, name: str, zone: str = "a", kind: str = "on-demand", of: str = "default") -> Offering:
    catalogue = evaluate(cluster).catalogue
    assert catalogue is not None
    [one] = (one for one in catalogue.types_for("default", of) if one.name == name)
    return next(some for some in one.offerings if (some.zone, some.capacity_type) == (zone, kind))


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
def test_a_price_is_replaced_or_adjusted_and_never_below_zero(spec: dict[str, str], price: float) -> None:
    found = offering(seen(overlay("o", **spec)), "m.02")
    assert (found.price_usd_per_hour, found.is_overlaid) == (price, bool(spec))


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
def test_an_overlay_speaks_of_what_pool_and_type_define(
    requirement: tuple[str, str, list[str]], touched: set[tuple[str, str]]
) -> None:
    cluster = seen(overlay("o", requirement, price="9"), node_pools=(pool(labels=(("team", "x"),)),))
    found = {(name, zone) for name in ("m.02", "m.04") for zone in "ab" if offering(cluster, name, zone).is_overlaid}
    assert found == touched


def test_a_pool_that_an_overlay_does_not_speak_of_sees_the_catalogue_as_it_is() -> None:
    both = (pool(), pool("other"))
    cluster = seen(overlay("o", (NODEPOOL, "In", ["other"]), price="9"), node_pools=both)
    assert offering(cluster, "m.02", of="other").price_usd_per_hour == 9
    assert offering(cluster, "m.02", of="default").price_usd_per_hour == 0.1


def test_the_heaviest_comes_first_and_of_equal_weight_the_last_name() -> None:
    heavy = overlay("a", price="1", weight=7)
    light = overlay("z", price="2", capacity={"smarter.dev/fuse": 3})
    assert offering(seen(light, heavy), "m.02").price_usd_per_hour == 1
    here, there = overlay("a", (ZONE, "In", ["a"]), price="1"), overlay("z", price="2")
    verdicts = evaluate(seen(here, there)).verdicts
    assert verdicts["z"] == ("", "")
    assert verdicts["a"][0] == "Conflict"


def test_two_of_equal_weight_that_touch_the_same_price_are_named_both_and_the_later_is_dropped_everywhere() -> None:
    one = overlay("one", (INSTANCE_TYPE, "In", ["m.02"]), price="1", weight=3)
    all_ = overlay("all", price="1", weight=3)
    found = evaluate(seen(one, all_))
    assert found.verdicts["one"] == ("", "")
    reason, message = found.verdicts["all"]
    assert reason == "Conflict"
    assert "conflicts with NodeOverlay one: all has the same weight (3)" in message
    cluster = overlaid(seen(one, all_))
    assert offering(seen(one, all_), "m.04").price_usd_per_hour == 0.2
    assert [(bad.kind, bad.name) for bad in cluster.problems] == [("NodeOverlay", "all")]


def test_overlays_of_equal_weight_that_do_not_meet_are_no_conflict() -> None:
    some = (
        overlay("a", (ZONE, "In", ["a"]), price="1"),
        overlay("b", (ZONE, "In", ["b"]), price="2"),
        overlay("fuse", capacity={"smarter.dev/fuse": 2}),
    )
    assert {reason for reason, _ in evaluate(seen(*some)).verdicts.values()} == {""}


def test_one_that_was_dropped_is_in_nobodys_way() -> None:
    first = overlay("z", (ZONE, "In", ["a"]), price="1")
    dropped = overlay("y", (ZONE, "In", ["a", "b"]), price="2")
    last = overlay("x", (ZONE, "In", ["b"]), price="3")
    assert [evaluate(seen(first, dropped, last)).verdicts[name][0] for name in "zyx"] == ["", "Conflict", ""]


def test_a_resource_that_nobody_knew_of_is_there_for_pods() -> None:
    wants = pod(
        "x", requests=replace(pod("y").spec.requests, amounts=(("cpu", 100), ("pods", 1), ("smarter.dev/fuse", 2)))
    )
    assert placed(solve(world(wants, types=TYPES)))["x"] == "NoInstanceTypeFits"
    fused = overlay("o", (INSTANCE_TYPE, "In", ["m.04"]), capacity={"smarter.dev/fuse": "2"})
    [node] = solve(overlaid(world(wants, types=TYPES, node_overlays=(fused,)))).new_nodes
    assert node.instance_types == ("m.04",)


def test_huge_pages_are_taken_from_memory() -> None:
    huge = overlay("o", capacity={"hugepages-2Mi": "7Gi"})
    catalogue = evaluate(seen(huge)).catalogue
    assert catalogue is not None
    assert [one.allocatable["memory"] // 1024**3 for one in catalogue.types_for("default", "default")] == [1, 9]
    whole = overlay("o", capacity={"hugepages-2Mi": "70Gi"})
    assert overlaid(seen(whole)).catalogue.by_node_pool[0][1][0].allocatable["memory"] == 0  # type: ignore[union-attr] # it is there


def test_of_one_resource_the_heavier_overlay_decides_and_others_are_added() -> None:
    heavy = overlay("h", capacity={"a/x": 1}, weight=2)
    light = overlay("l", capacity={"a/x": 5, "a/y": 7}, weight=1)
    catalogue = evaluate(seen(heavy, light)).catalogue
    assert catalogue is not None
    one = catalogue.types_for("default", "default")[0]
    assert (one.capacity["a/x"], one.capacity["a/y"], one.is_overlaid) == (1, 7, True)


def test_the_cheapest_is_the_cheapest_by_the_overlaid_price() -> None:
    dear = overlay("o", (INSTANCE_TYPE, "In", ["m.02"]), price="5")
    [node] = solve(overlaid(world(pod("x"), types=TYPES, node_overlays=(dear,)))).new_nodes
    assert node.cheapest.instance_type == "m.04"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"price": "1", "priceAdjustment": "+1"}, "write one of them"),
        ({"price": "-1"}, "is no price"),
        ({"price": "1e3"}, "is no price"),
        ({"priceAdjustment": "10%"}, "is no change"),
        ({"priceAdjustment": "-101%"}, "is no change"),
        ({"capacity": {"cpu": "3"}}, "cpu is the instance type's own"),
        ({"capacity": {"a/x": "many"}}, "not a quantity"),
        ({"weight": 0}, "not between 1 and 10000"),
        ({"requirements": [{"key": "a", "operator": "Like"}]}, "unknown operator"),
        ({"requirements": [{"key": "a", "operator": "Gt", "values": ["-1"]}]}, "below zero"),
        ({"requirements": [{"key": "karpenter.sh/registered", "operator": "Exists"}]}, "restricted"),
    ],
)
def test_an_overlay_that_is_wrong_is_named_and_changes_nothing(spec: dict[str, Any], words: str) -> None:
    bad = overlay("bad", **({"price": "5"} if "requirements" in spec or "weight" in spec else {}), **spec)
    found = evaluate(seen(bad))
    assert found.verdicts["bad"][0] == "RuntimeValidation"
    assert words in found.verdicts["bad"][1]
    assert not offering(seen(bad), "m.02").is_overlaid


def test_without_overlays_or_a_catalogue_nothing_changes() -> None:
    assert overlaid(world()) == world()
    blind = seen(overlay("o", price="1"), overlay("bad", price="x"), catalogue=None)
    assert (evaluate(blind).catalogue, sorted(evaluate(blind).verdicts)) == (None, ["bad"])


def test_status_says_whether_it_is_used_and_is_written_once() -> None:
    some = overlay("o", price="1")
    [action] = describe_overlays((some,), {"o": ("Conflict", "with p")}, NOW)
    assert (action.kind, action.name) == ("NodeOverlay", "o")  # type: ignore[union-attr] # a PatchStatus
    told = replace(some, conditions=conditions_of(some, ("Conflict", "with p"), NOW))
    ready = {one.type: (one.status, one.reason, one.message) for one in told.conditions}
    assert ready["ValidationSucceeded"] == ("False", "Conflict", "with p")
    assert ready["Ready"][0] == "False"
    assert describe_overlays((told,), {"o": ("Conflict", "with p")}, NOW) == ()
    [again] = describe_overlays((told,), {"o": ("", "")}, NOW)
    assert '"status":"True"' in again.status  # type: ignore[union-attr] # a PatchStatus
    assert describe_overlays((some,), {}, NOW) == ()


def test_types_of_other_classes_are_overlaid_as_their_class_sees_them() -> None:
    own = (instance_type("m.02", 2, price=7.0),)
    catalogue = Catalogue(region="r", instance_types=SIZES, by_node_class=(("default", own),))
    cluster = seen(overlay("o", priceAdjustment="+1"), catalogue=catalogue, node_classes=(node_class(),))
    assert offering(cluster, "m.02").price_usd_per_hour == 8
