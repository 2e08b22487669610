"""Zonal shifts: nodes of the zone are kept, are no destination, and drift only with `drain`."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from shared.decide.disruption.drift.drifted_condition import find_drifts, find_recovered_claims
from shared.decide.lifecycle.status.zonal_shift import describe_zonal_shifts
from shared.model.cloud_provider.zonal_shift import EndedShift, ZonalShift, ZonalShifts
from shared.model.cluster import ClusterSnapshot
from shared.model.core.labels import ZONE
from shared.model.core.metadata import Condition, build_pairs
from shared.model.ec2.account import Subnet
from shared.state.cluster_state import ClusterState
from shared.state.zones.zonal_shifts import close_shifted_zones
from tests.support.catalogues import NOW, make_node_class, make_node_pool, make_requirements
from tests.support.disruption_fleet import (
    Machine,
    decide_disruption,
    get_verdict,
    make_fleet,
    make_node_with_pods,
    make_web_pod,
    summarize_commands,
)

ZONE_IDS = {"a": "az1", "b": "az2"}
SHIFT = ZonalShift(zone_id="az1", started_at=NOW, expires_at=NOW + timedelta(hours=1))
NODE_CLASS = replace(
    make_node_class(),
    resolved_subnets=tuple(
        Subnet(subnet_id=zone, zone=zone, zone_id=zone_id, available_ip_count=9) for zone, zone_id in ZONE_IDS.items()
    ),
)


def place_in(machine: Machine, zone: str) -> Machine:
    node, claim, pods = machine
    node_labels, claim_labels = (build_pairs(dict(item.meta.labels) | {ZONE: zone}) for item in (node, claim))
    return (
        replace(node, meta=replace(node.meta, labels=node_labels)),
        replace(claim, meta=replace(claim.meta, labels=claim_labels)),
        pods,
    )


def build_cluster(*machines: Machine, shifts: ZonalShifts | None = None) -> ClusterSnapshot:
    cluster = replace(make_fleet(*machines, node_classes=(NODE_CLASS,)), zonal_shifts=shifts)
    return close_shifted_zones(cluster)


@pytest.mark.parametrize(
    ("shifts", "is_held"),
    [
        (None, False),
        (ZonalShifts(), False),
        (ZonalShifts(shifts=(SHIFT,)), True),
        (ZonalShifts(shifts=(SHIFT,), drains_zones=True), True),
        (ZonalShifts(shifts=(replace(SHIFT, expires_at=None),)), True),
        (ZonalShifts(shifts=(replace(SHIFT, expires_at=NOW),)), False),
        (ZonalShifts(shifts=(replace(SHIFT, zone_id="az2"),)), False),
        (ZonalShifts(shifts=(replace(SHIFT, zone_id="az9"),)), False),
    ],
)
def test_empty_node_is_kept_while_its_zone_is_shifted(shifts: ZonalShifts | None, *, is_held: bool) -> None:
    decision = decide_disruption(build_cluster(place_in(make_node_with_pods("a"), "a"), shifts=shifts))
    assert bool(summarize_commands(decision)) is not is_held
    if is_held:
        kind, reason, message = get_verdict(decision, "a")
        assert (kind, reason) == ("blocked", "ZonalShift")
        assert message.startswith("zone a (az1) has a zonal shift until")


def test_pods_are_not_moved_to_the_nodes_of_a_shifted_zone() -> None:
    full = place_in(make_node_with_pods("a", make_web_pod("1")), "a")
    neighbor = place_in(make_node_with_pods("b", make_web_pod("2")), "b")
    [(_, _, replacements)] = summarize_commands(decide_disruption(build_cluster(full, neighbor)))
    assert replacements == []  # the pods fit on the other node
    shifted = build_cluster(full, neighbor, shifts=ZonalShifts(shifts=(SHIFT,)))
    assert summarize_commands(decide_disruption(shifted)) == [("SingleNode", ["b"], ["m.02"])]


@pytest.mark.parametrize(("is_drain", "reason"), [(True, "ZonalShift"), (False, "")])
def test_nodes_of_a_shifted_zone_drift_only_with_drain(reason: str, *, is_drain: bool) -> None:
    machines = (place_in(make_node_with_pods("a"), "a"), place_in(make_node_with_pods("b"), "b"))
    shifts = ZonalShifts(shifts=(SHIFT,), drains_zones=is_drain)
    drifts = find_drifts(ClusterState(build_cluster(*machines, shifts=shifts)))
    assert [drift.reason or "" for drift in drifts] == [reason, ""]


@pytest.mark.parametrize("is_over", [True, False])
def test_drift_because_of_a_shift_ends_with_the_shift(*, is_over: bool) -> None:
    node, claim, pods = place_in(make_node_with_pods("a"), "a")
    drifted = Condition(type="Drifted", status="True", reason="ZonalShift", since=NOW)
    claim = replace(claim, conditions=(*claim.conditions, drifted))
    shifts = ZonalShifts(shifts=() if is_over else (SHIFT,), drains_zones=True)
    recovered = find_recovered_claims(ClusterState(build_cluster((node, claim, pods), shifts=shifts)))
    assert recovered == (frozenset({claim.name}) if is_over else frozenset())


def test_closed_zones_are_closed_once_and_a_snapshot_without_shifts_is_the_same_object() -> None:
    cluster = build_cluster(shifts=ZonalShifts(shifts=(SHIFT,)))
    assert [offering.zone for offering in cluster.unavailable] == ["a"]
    assert close_shifted_zones(cluster) is cluster
    plain = build_cluster()
    assert close_shifted_zones(plain) is plain


@pytest.mark.parametrize(("zones", "has_events"), [(("a", "b"), True), (("b",), False)])
def test_only_node_pools_that_allow_the_zone_get_events(zones: tuple[str, ...], *, has_events: bool) -> None:
    pool = make_node_pool(budgets=(), requirements=make_requirements((ZONE, "In", zones)))
    active = ZonalShifts(shifts=(SHIFT,))
    ended = ZonalShifts(ended=(EndedShift(shift=SHIFT, ended_at=NOW),))
    for shifts, reason, type_ in ((active, "ZonalShiftActive", "Warning"), (ended, "ZonalShiftCleared", "Normal")):
        cluster = replace(build_cluster(shifts=shifts), node_pools=(pool,))
        events = describe_zonal_shifts(ClusterState(cluster))
        assert [(event.reason, event.type) for event in events] == ([(reason, type_)] if has_events else [])
    assert describe_zonal_shifts(ClusterState(build_cluster())) == ()
