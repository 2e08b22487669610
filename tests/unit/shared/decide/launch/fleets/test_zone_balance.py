"""Launches of NodePools whose nodes are balanced across zones."""

from collections import Counter

import pytest
from msgspec.structs import replace

from shared.model.core import labels
from shared.model.core.metadata import ObjectMeta
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.model.decisions.action import LaunchInstances
from shared.model.karpenter.node_claim import NodeClaim
from tests.support.catalogues import make_node_pool
from tests.support.launch_cases import make_claim, make_cluster
from tests.support.snapshot_decisions import plan_launches

SPOT = ("spot",)
"""In the market, m5.large costs $0.03 in zone a and $0.04 in zone b (33 % more)."""


def plan(percent: str, *claims: NodeClaim, **fields: object) -> tuple[LaunchInstances, ...]:
    annotations = ((labels.ZONE_BALANCE, percent),) if percent else ()
    pool = make_node_pool(meta=ObjectMeta(name="default", annotations=annotations))
    plan_of_launches = plan_launches(make_cluster(*claims, node_pools=(pool,), **fields))
    assert not plan_of_launches.unlaunchable
    return plan_of_launches.launches


def count_zones(launches: tuple[LaunchInstances, ...]) -> dict[str, int]:
    """Return the number of claims by the zones that their requests allow."""
    counts: Counter[str] = Counter()
    for launch in launches:
        zones = {override.zone[-1] for config in launch.group.request.configs for override in config.overrides}
        counts["".join(sorted(zones))] += len(launch.group.claims)
    return dict(counts)


def make_node_in(zone: str, pool: str = "default") -> NodeClaim:
    claim = make_claim(f"node-{zone}-{pool}", provider_id=f"aws:///us-east-1{zone}/i-{zone}")
    node_labels = ((labels.NODEPOOL, pool), (labels.ZONE, f"us-east-1{zone}"))
    return replace(claim, meta=replace(claim.meta, labels=node_labels))


CLAIMS = tuple(make_claim(name, capacity_types=SPOT) for name in "pqrs")


@pytest.mark.parametrize(("percent", "zones"), [("34", {"a": 2, "b": 2}), ("32", {"a": 4}), ("0", {"a": 4})])
def test_claims_are_balanced_over_zones_that_cost_at_most_the_percentage_more(
    percent: str, zones: dict[str, int]
) -> None:
    assert count_zones(plan(percent, *CLAIMS)) == zones


@pytest.mark.parametrize("percent", ["", "34%"])
def test_requests_without_a_valid_annotation_are_unchanged(percent: str) -> None:
    launches = plan(percent, *CLAIMS)
    assert launches == plan_launches(make_cluster(*CLAIMS)).launches
    assert count_zones(launches) == {"ab": 4}


def test_existing_nodes_of_the_node_pool_count() -> None:
    assert count_zones(plan("34", CLAIMS[0], make_node_in("a"))) == {"b": 1}
    assert count_zones(plan("34", CLAIMS[0], make_node_in("a", "other"))) == {"a": 1}
    assert count_zones(plan("34", CLAIMS[0], make_node_in("a"), make_node_in("b"))) == {"a": 1}


def test_zones_that_a_claim_does_not_allow_are_not_chosen() -> None:
    zone = parse_requirement(labels.ZONE, "In", ("us-east-1a",))
    claims = [replace(claim, requirements=build_requirements((*claim.requirements, zone))) for claim in CLAIMS]
    assert count_zones(plan("34", *claims)) == {"a": 4}


def test_claims_with_min_values_are_not_balanced() -> None:
    minimum = parse_requirement(labels.INSTANCE_TYPE, "Exists", min_values=2)
    claim = replace(CLAIMS[0], requirements=build_requirements((*CLAIMS[0].requirements, minimum)))
    assert count_zones(plan("34", claim)) == {"ab": 1}


def test_launch_names_the_zone_that_balances_its_node_pool() -> None:
    assert sorted(launch.message.partition("; ")[2] for launch in plan("34", *CLAIMS)) == [
        "us-east-1a balances the zones of its NodePool",
        "us-east-1b balances the zones of its NodePool",
    ]
