"""What the search of consolidation reaches: every candidate, zones where a node is cheap, as many nodes as it takes."""

import pytest
from msgspec.structs import replace

from shared.model.catalogue import InstanceType
from shared.model.labels import INSTANCE_TYPE, ZONE
from tests.unit.catalogues import ZONES, instance_type, needs
from tests.unit.disruption_fleet import FREE, TYPES, fleet, gone, machine, swept, verdict, web


def in_zones(name: str, cpu: int, **prices: float) -> InstanceType:
    """Answer a type with a price of its own in each zone."""
    one = instance_type(name, cpu, zones=sorted(prices))
    offerings = tuple(replace(some, price_usd_per_hour=prices[some.zone]) for some in one.offerings)
    return replace(one, offerings=offerings)


def test_savings_of_the_hundred_and_fiftieth_candidate_are_found() -> None:
    """Before them come 150 nodes that cost more, have fewer pods, and are full."""
    full = [machine(f"full-{number:03d}", web(f"full-{number:03d}", "3500m")) for number in range(150)]
    pods = [[web(f"late-{number}-{place}", "250m") for place in "abc"] for number in range(8)]
    late = [machine(f"late-{number}", *some, cpu=2) for number, some in enumerate(pods)]
    found = swept(fleet(*full, *late))
    nodes = {node for one in found.commands for node in one.nodes()}
    assert len(found.verdicts) == 158
    assert {node[:4] for node in nodes} == {"late"}
    assert sum(one.savings_usd_per_hour for one in found.commands) >= 4 * 0.1


def test_a_new_node_is_tied_to_the_zones_where_it_costs_less() -> None:
    kind = in_zones("c.04", 4, a=0.1, b=0.15, c=0.3)
    found = swept(fleet(machine("a", web("1", "3")), types=(*TYPES, kind)))
    [made] = found.commands[0].replacements
    assert made.claim.requirements[ZONE].values == {"a", "b"}
    assert made.claim.requirements[INSTANCE_TYPE].values == {"c.04"}
    assert found.commands[0].savings_usd_per_hour == pytest.approx(0.1)


def test_a_new_node_is_tied_to_no_zone_where_it_costs_less_in_all() -> None:
    kind = in_zones("c.04", 4, a=0.1, b=0.15, c=0.18)
    found = swept(fleet(machine("a", web("1", "3")), types=(*TYPES, kind)))
    [made] = found.commands[0].replacements
    assert ZONE not in made.claim.requirements or made.claim.requirements[ZONE].values >= set(ZONES)


def test_where_zones_are_counted_none_is_left_out() -> None:
    kind = in_zones("c.04", 4, a=0.1, b=0.15, c=0.3)
    wanted = needs((ZONE, "Exists", ()), minimum={ZONE: 3})
    found = swept(fleet(machine("a", web("1", "3")), pools=(replace(FREE, requirements=wanted),), types=(*TYPES, kind)))
    assert gone(found) == []
    assert verdict(found, "a")[1] == "NoCheaperOffering"


def test_what_is_cheap_nowhere_is_no_exchange() -> None:
    kind = in_zones("c.04", 4, a=0.2, b=0.25, c=0.3)
    assert gone(swept(fleet(machine("a", web("1", "3")), types=(*TYPES, kind)))) == []


def test_many_small_nodes_may_come_in_the_place_of_a_large_one() -> None:
    kind = instance_type("c.02", 2, price=0.06)
    pods = [web(str(number), "1500m") for number in range(8)]
    found = swept(fleet(machine("a", *pods, cpu=16), types=(*TYPES, kind)))
    assert gone(found) == [("SingleNode", ["a"], ["c.02"] * 8)]
    assert found.commands[0].savings_usd_per_hour == pytest.approx(0.8 - 8 * 0.06)


def test_few_candidates_are_tried_in_both_orders_and_the_one_that_saves_more_is_taken() -> None:
    """The dearest first, only the node that costs 0.4 would go; by Karpenter's order nodes that cost 0.5 do."""
    sizes = {"a": (2, "900m"), "b": (4, "500m"), "c": (4, "500m 1900m 500m"), "d": (8, "1900m 900m 500m")}
    some = [
        machine(name, *(web(f"{name}-{place}", size) for place, size in enumerate(pods.split())), cpu=cpu)
        for name, (cpu, pods) in sizes.items()
    ]
    found = swept(fleet(*some))
    assert sum(one.savings_usd_per_hour for one in found.drafts if not one.new_nodes) == pytest.approx(0.5)
