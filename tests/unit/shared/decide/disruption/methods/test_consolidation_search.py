"""What the consolidation search covers: every candidate, cheap zones, and as many nodes as needed."""

import pytest
from msgspec.structs import replace

from shared.model.cloud_provider.instance_type import InstanceType
from shared.model.core.labels import INSTANCE_TYPE, ZONE
from tests.support.catalogues import ZONES, make_instance_type, make_requirements
from tests.support.disruption_fleet import (
    FREE,
    TYPES,
    decide_disruption,
    get_verdict,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)


def make_zonal_instance_type(name: str, cpu: int, **prices: float) -> InstanceType:
    """Return an instance type with its own price in each zone."""
    base_type = make_instance_type(name, cpu, zones=sorted(prices))
    offerings = tuple(replace(offering, price_usd_per_hour=prices[offering.zone]) for offering in base_type.offerings)
    return replace(base_type, offerings=offerings)


def test_consolidation_search_covers_candidates_beyond_the_first_150() -> None:
    """Before them come 150 nodes that cost more, have fewer pods, and are full."""
    full = [
        make_node_with_pods(f"full-{number:03d}", make_web_pod(f"full-{number:03d}", "3500m")) for number in range(150)
    ]
    pods = [[make_web_pod(f"late-{number}-{place}", "250m") for place in "abc"] for number in range(8)]
    late = [make_node_with_pods(f"late-{number}", *node_pods, cpu=2) for number, node_pods in enumerate(pods)]
    decision = decide_disruption(make_fleet(*full, *late))
    nodes = {node for command in decision.commands for node in command.list_node_names()}
    assert len(decision.verdicts) == 158
    assert {node[:4] for node in nodes} == {"late"}
    assert sum(command.savings_usd_per_hour for command in decision.commands) >= 4 * 0.1


def test_replacement_is_restricted_to_the_cheaper_zones() -> None:
    kind = make_zonal_instance_type("c.04", 4, a=0.1, b=0.15, c=0.3)
    decision = decide_disruption(make_fleet(make_node_with_pods("a", make_web_pod("1", "3")), types=(*TYPES, kind)))
    [replacement] = decision.commands[0].replacements
    assert replacement.claim.requirements[ZONE].values == {"a", "b"}
    assert replacement.claim.requirements[INSTANCE_TYPE].values == {"c.04"}
    assert decision.commands[0].savings_usd_per_hour == pytest.approx(0.1)


def test_replacement_is_not_restricted_to_zones_when_all_zones_are_cheaper() -> None:
    kind = make_zonal_instance_type("c.04", 4, a=0.1, b=0.15, c=0.18)
    decision = decide_disruption(make_fleet(make_node_with_pods("a", make_web_pod("1", "3")), types=(*TYPES, kind)))
    [replacement] = decision.commands[0].replacements
    assert ZONE not in replacement.claim.requirements or replacement.claim.requirements[ZONE].values >= set(ZONES)


def test_min_values_of_zones_prevent_the_restriction_to_cheaper_zones() -> None:
    kind = make_zonal_instance_type("c.04", 4, a=0.1, b=0.15, c=0.3)
    requirements = make_requirements((ZONE, "Exists", ()), minimum={ZONE: 3})
    decision = decide_disruption(
        make_fleet(
            make_node_with_pods("a", make_web_pod("1", "3")),
            pools=(replace(FREE, requirements=requirements),),
            types=(*TYPES, kind),
        )
    )
    assert summarize_commands(decision) == []
    assert get_verdict(decision, "a")[1] == "NoCheaperOffering"


def test_node_is_not_replaced_when_the_instance_type_is_cheaper_in_no_zone() -> None:
    kind = make_zonal_instance_type("c.04", 4, a=0.2, b=0.25, c=0.3)
    assert (
        summarize_commands(
            decide_disruption(make_fleet(make_node_with_pods("a", make_web_pod("1", "3")), types=(*TYPES, kind)))
        )
        == []
    )


def test_one_large_node_is_replaced_by_many_small_nodes() -> None:
    kind = make_instance_type("c.02", 2, price=0.06)
    pods = [make_web_pod(str(number), "1500m") for number in range(8)]
    decision = decide_disruption(make_fleet(make_node_with_pods("a", *pods, cpu=16), types=(*TYPES, kind)))
    assert summarize_commands(decision) == [("SingleNode", ["a"], ["c.02"] * 8)]
    assert decision.commands[0].savings_usd_per_hour == pytest.approx(0.8 - 8 * 0.06)


def test_few_candidates_are_tried_in_both_orders_and_the_larger_savings_are_chosen() -> None:
    """Most expensive first would remove only the node of $0.4/h; Karpenter's order removes nodes worth $0.5/h."""
    sizes = {"a": (2, "900m"), "b": (4, "500m"), "c": (4, "500m 1900m 500m"), "d": (8, "1900m 900m 500m")}
    nodes = [
        make_node_with_pods(
            name, *(make_web_pod(f"{name}-{place}", size) for place, size in enumerate(pods.split())), cpu=cpu
        )
        for name, (cpu, pods) in sizes.items()
    ]
    decision = decide_disruption(make_fleet(*nodes))
    assert sum(
        command.savings_usd_per_hour for command in decision.proposed_commands if not command.new_nodes
    ) == pytest.approx(0.5)
