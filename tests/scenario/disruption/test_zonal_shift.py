"""Zonal shifts in a simulated account: launches, disruption and events, with the permissions of the functions."""

from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from cli.replay.differences import compare_decisions
from cli.replay.rerun import build_cluster, build_recorded_decision, replay_decision
from shared.model.decisions.action import PatchStatus
from shared.report.journal.decision_record import decode_record
from shared.store.catalog_format import decode_catalog
from shared.store.zonal_shifts import ROW_KIND
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool

ZONE = "us-east-1a"
HOUR = timedelta(hours=1)


@cache
def synthesize_stack(setting: str) -> dict[str, Any]:
    return synthesize_template(settings=ACTIVE_SETTINGS | {"zonal-shift": setting})


def build_world(setting: str = "on", replicas: int = 3) -> World:
    """Return a world with nodes in `ZONE` only, which other zones can replace."""
    world = World(
        make_node_class(),
        make_node_pool(capacity=("on-demand",), after="30s"),
        template=synthesize_stack(setting) if setting != "off" else None,
    )
    world.cloud.zonal_shifts.enable()
    for zone in world.cloud.zones:
        if zone != ZONE:
            world.cloud.set_capacity(0, zone=zone)
    world.apply([make_deployment(replicas)])
    world.wait_until_settled(replicas)
    assert list_zones(world) == {ZONE}
    for zone in world.cloud.zones:
        world.cloud.set_capacity(None, zone=zone)
    world.advance_seconds(240)
    return world


def list_zones(world: World) -> set[str]:
    return {instance.zone for instance in world.list_active_instances()}


def start_shift(world: World, duration: timedelta = HOUR) -> None:
    """Start a shift away from `ZONE`; EKS cordons the nodes of the zone."""
    world.cloud.zonal_shifts.start_shift(ZONE, world.clock.get_time(), duration)
    set_cordon(world, is_cordoned=True)


def set_cordon(world: World, *, is_cordoned: bool) -> None:
    for node in world.list_nodes():
        if node["metadata"]["labels"]["topology.kubernetes.io/zone"] == ZONE:
            world.store("nodes", node["metadata"]["name"], {"spec": {"unschedulable": is_cordoned}})


def test_new_nodes_avoid_the_zone_and_its_nodes_are_kept_until_the_shift_ends() -> None:
    world = build_world()
    [instance] = world.list_active_instances()
    start_shift(world)
    world.advance_seconds(90)
    world.apply([make_deployment(6, "later")])
    world.wait_until_settled(9)
    new_instances = [item for item in world.list_active_instances() if item.instance_id != instance.instance_id]
    assert new_instances
    assert ZONE not in {item.zone for item in new_instances}
    world.scale(0)
    world.advance_seconds(300)
    assert instance.instance_id in {item.instance_id for item in world.list_active_instances()}
    assert any("use1-az1" in text for text in world.list_events("default", "ZonalShiftActive"))
    world.cloud.zonal_shifts.cancel_shift()
    set_cordon(world, is_cordoned=False)
    world.advance_seconds(240)
    assert ZONE not in list_zones(world)
    assert any("has ended" in text for text in world.list_events("default", "ZonalShiftCleared"))
    assert not world.list_errors()


def test_drain_replaces_the_nodes_of_the_zone_before_it_evicts_their_pods() -> None:
    world = build_world("drain")
    start_shift(world)
    world.wait_until(lambda: list_zones(world) and ZONE not in list_zones(world), timeout=900)
    world.wait_until_settled(3)
    messages = [action.message for action in world.list_done_actions(PatchStatus)]
    assert "the node has drifted: ZonalShift" in messages
    assert not world.list_errors()


def test_shift_that_cannot_be_read_applies_until_it_expires() -> None:
    world = build_world()
    start_shift(world)
    world.advance_seconds(90)
    with world.fail_ports("zonal_shifts"):
        world.apply([make_deployment(3, "during")])
        world.wait_until_settled(6)
        first_instances = world.list_active_instances()
        assert len({item.zone for item in first_instances}) == 2
        assert any("apply until they expire" in problem for problem in world.list_problems())
        world.advance_time(HOUR)
        for zone in world.cloud.zones:
            if zone != ZONE:
                world.cloud.set_capacity(0, zone=zone)
        set_cordon(world, is_cordoned=False)
        world.apply([make_deployment(12, "after")])
        world.wait_until_settled(18)
    assert ZONE in {item.zone for item in world.list_active_instances() if item not in first_instances}


def test_pod_that_needs_the_zone_waits_and_its_event_names_the_shift() -> None:
    world = build_world()
    start_shift(world)
    world.advance_seconds(90)
    world.apply([make_deployment(1, "pinned", nodeSelector={"topology.kubernetes.io/zone": ZONE})])
    world.advance_seconds(120)
    events = " ".join(world.list_events(reason="FailedScheduling"))
    assert "zone us-east-1a (use1-az1) has a zonal shift until" in events
    world.cloud.zonal_shifts.cancel_shift()
    set_cordon(world, is_cordoned=False)
    world.wait_until_settled(4)


def test_cluster_without_zonal_shift_is_reported_with_the_fix() -> None:
    world = build_world()
    world.cloud.zonal_shifts.disable()
    world.advance_seconds(90)
    name = world.cloud.zonal_shifts.cluster_arn.rpartition("/")[2]
    assert any(f"--name {name} --zonal-shift-config enabled=true" in problem for problem in world.list_problems())


def test_decisions_during_a_shift_are_replayed_from_their_records() -> None:
    world = build_world("drain")
    start_shift(world)
    world.advance_seconds(90)
    world.apply([make_deployment(6, "later")])
    world.advance_seconds(300)
    records = [
        (entry, decode_record(world.bucket.get(entry.snapshot)))
        for entry in world.entries
        if entry.function in ("provision", "disrupt") and entry.snapshot
    ]
    assert any(record.cluster.zonal_shifts is not None and record.cluster.zonal_shifts.shifts for _, record in records)
    for entry, record in records:
        catalog = decode_catalog(world.bucket.get(record.catalog_key)) if record.catalog_key else None
        decision = replay_decision(entry, record, build_cluster(record, catalog))
        assert compare_decisions(build_recorded_decision(entry, record), decision).is_same


@pytest.mark.parametrize("setting", ["off", "on"])
def test_shifts_are_read_only_if_the_setting_is_on(setting: str) -> None:
    world = build_world(setting)
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        start_shift(world)
        world.advance_seconds(180)
    assert any(call.port == "zonal_shifts" for call in calls) == (setting == "on")
    assert any(call.port == "table" and call.detail == ROW_KIND for call in calls) == (setting == "on")


def test_arc_is_asked_at_most_twice_a_minute() -> None:
    world = build_world()
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        world.apply([make_deployment(6, "later")])
        world.advance_seconds(600)
    assert 10 <= sum(call.port == "zonal_shifts" and call.phase == "before" for call in calls) <= 20
