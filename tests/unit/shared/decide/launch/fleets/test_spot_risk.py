"""With a history of offerings: the spot offerings of a request, and how long refused offerings are avoided."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from shared.decide.launch.fleets import spot_risk
from shared.decide.launch.fleets.fleet_result import plan_fleet_outcome
from shared.decide.launch.fleets.unavailable_offerings import (
    MAX_UNAVAILABLE_TTL,
    UNAVAILABLE_TTL,
    compute_unavailable_period,
)
from shared.decide.launch.money.interruption_costs import price_interruptions
from shared.model.cloud_provider.offering_history import OfferingHistory, OfferingRecord
from shared.model.cluster import ClusterSnapshot
from shared.model.core import labels
from shared.model.core.requirements import build_requirements, parse_requirement
from shared.model.decisions.action import MarkUnavailable, RecordOfferingEvents
from shared.model.ec2.fleet import FleetError, FleetResult
from shared.model.karpenter.node_claim import NodeClaim
from tests.support.launch_cases import NOW, make_claim, make_cluster
from tests.support.snapshot_decisions import plan_launches

Pools = list[tuple[str, str]]


def make_record(zone: str = "a", instance_type: str = "m5.large", **counts: float) -> OfferingRecord:
    return OfferingRecord(instance_type=instance_type, zone=f"us-east-1{zone}", capacity_type="spot", at=NOW, **counts)


def make_history(*records: OfferingRecord) -> OfferingHistory:
    return OfferingHistory(records=tuple(sorted(records)))


def list_pools(cluster: ClusterSnapshot) -> Pools:
    [launch] = plan_launches(price_interruptions(cluster)).launches
    overrides = [override for config in launch.group.request.configs for override in config.overrides]
    return sorted((override.instance_type, override.zone[-1]) for override in overrides)


def make_spot_node(name: str, zone: str, pool: str = "default") -> NodeClaim:
    claim = make_claim(name, provider_id=f"aws:///us-east-1{zone}/i-{name}")
    node_labels = {
        labels.INSTANCE_TYPE: "m5.large",
        labels.ZONE: f"us-east-1{zone}",
        labels.CAPACITY_TYPE: "spot",
        labels.NODEPOOL: pool,
    }
    return replace(claim, meta=replace(claim.meta, labels=tuple(sorted(node_labels.items()))))


def test_offering_with_expensive_interruptions_is_left_out_of_the_request() -> None:
    """m5.large costs $0.03 in zone a and $0.04 in zone b."""
    claim = make_claim("a", capacity_types=("spot",))
    all_pools = list_pools(make_cluster(claim))
    risky = make_cluster(claim, offering_history=make_history(make_record(interruptions=1.0, evictions_usd=1.0)))
    assert list_pools(risky) == [pool for pool in all_pools if pool != ("m5.large", "a")]
    harmless = make_cluster(claim, offering_history=make_history(make_record(interruptions=0.1, evictions_usd=0.1)))
    assert list_pools(harmless) == all_pools


def test_at_most_half_of_the_offerings_are_left_out_the_most_expensive_ones() -> None:
    claim = make_claim("a", capacity_types=("spot",))
    all_pools = list_pools(make_cluster(claim))
    assert len(all_pools) == 6
    safe_type, safe_zone = all_pools[0]
    records = [
        make_record(zone, instance_type, interruptions=1.0, evictions_usd=1.0)
        for instance_type, zone in all_pools
        if (instance_type, zone) != (safe_type, safe_zone)
    ]
    risky = list_pools(make_cluster(claim, offering_history=make_history(*records)))
    assert len(risky) == 3
    assert (safe_type, safe_zone) in risky
    assert ("m5.large", "a") in risky


def test_claims_with_min_values_and_on_demand_claims_keep_all_offerings() -> None:
    history = make_history(make_record(interruptions=1.0, evictions_usd=1.0))
    spot_claim = make_claim("a", capacity_types=("spot",))
    minimum = parse_requirement(labels.INSTANCE_TYPE, "Exists", min_values=2)
    with_minimum = replace(spot_claim, requirements=build_requirements((*spot_claim.requirements, minimum)))
    for claim in (with_minimum, make_claim("a", capacity_types=("on-demand",))):
        assert list_pools(make_cluster(claim, offering_history=history)) == list_pools(make_cluster(claim))


def test_of_equally_cheap_offerings_the_least_used_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spot_risk, "EQUAL_PRICE_RATIO", 1.4)
    claims = (make_claim("a", capacity_types=("spot",)), make_spot_node("b", "a"), make_spot_node("c", "b", "other"))
    all_pools = list_pools(make_cluster(*claims))
    assert {("m5.large", "a"), ("m5.large", "b")} <= set(all_pools)
    spread = list_pools(make_cluster(*claims, offering_history=OfferingHistory()))
    assert spread == [pool for pool in all_pools if pool != ("m5.large", "a")]


def test_node_pool_without_spot_nodes_keeps_all_offerings() -> None:
    claim = make_claim("a", capacity_types=("spot",))
    assert list_pools(make_cluster(claim, offering_history=OfferingHistory())) == list_pools(make_cluster(claim))


ERROR = FleetError(code="InsufficientInstanceCapacity", message="none", instance_type="m5.large", zone="us-east-1a")


def refuse(cluster: ClusterSnapshot) -> tuple[list[MarkUnavailable], list[RecordOfferingEvents]]:
    [launch] = plan_launches(cluster).launches
    group = replace(launch.group, result=FleetResult(fleet_id="fleet", instances=(), errors=(ERROR,)))
    actions = plan_fleet_outcome(group, cluster).actions
    return (
        [action for action in actions if isinstance(action, MarkUnavailable)],
        [action for action in actions if isinstance(action, RecordOfferingEvents)],
    )


def test_capacity_error_is_recorded_only_with_a_history() -> None:
    claim = make_claim("a")
    marks, records = refuse(make_cluster(claim))
    assert (len(marks), records) == (1, [])
    marks, [record] = refuse(make_cluster(claim, offering_history=OfferingHistory()))
    assert [(event.key, event.kind) for event in record.events] == [
        (("m5.large", "us-east-1a", "spot"), "capacity-error")
    ]
    assert marks[0].offering.until == NOW + UNAVAILABLE_TTL


@pytest.mark.parametrize(("errors", "minutes"), [(0.0, 3), (1.0, 6), (2.0, 12), (4.0, 48), (5.0, 60), (1000.0, 60)])
def test_each_recent_capacity_error_doubles_the_time_up_to_an_hour(errors: float, minutes: int) -> None:
    history = make_history(make_record(capacity_errors=errors))
    [mark], _ = refuse(make_cluster(make_claim("a"), offering_history=history))
    assert mark.offering.until == NOW + timedelta(minutes=minutes)


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.integers(0, 100_000))
def test_avoided_time_is_bounded_and_grows_with_errors_and_falls_with_time(
    errors: float, added: float, minutes: int
) -> None:
    def compute(count: float, age: timedelta) -> timedelta:
        record = replace(make_record(capacity_errors=count), at=NOW - age)
        cluster = make_cluster(offering_history=make_history(record))
        return compute_unavailable_period(cluster, "m5.large", "us-east-1a", "spot")

    period = compute(errors, timedelta())
    assert UNAVAILABLE_TTL <= period <= compute(errors + added, timedelta()) <= MAX_UNAVAILABLE_TTL
    assert UNAVAILABLE_TTL <= compute(errors, timedelta(minutes=minutes)) <= period
