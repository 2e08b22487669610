"""The history of offerings in a simulated account: recorded, priced, shown, and replayed."""

from datetime import timedelta
from functools import cache
from typing import Any

import pytest

from cli.replay.differences import compare_decisions
from cli.replay.rerun import build_cluster, build_recorded_decision, replay_decision
from shared.model.cloud_provider.offering_history import OfferingHistory
from shared.report.journal.decision_record import decode_record
from shared.store.catalog_format import decode_catalog
from shared.store.offerings.offering_history import ROW_KIND, read_offering_history
from sim.cloud.ec2.instance import SimulatedInstance
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.worlds import World, make_deployment, make_node_class, make_node_pool


@cache
def synthesize_stack(eviction_price_usd: str = "0.5") -> dict[str, Any]:
    settings = {"spot-history": "on", "eviction-price-usd": eviction_price_usd}
    return synthesize_template(settings=ACTIVE_SETTINGS | settings)


def build_spot_world(template: dict[str, Any] | None = None) -> World:
    pool = make_node_pool(capacity=("spot",), after="Never")
    world = World(make_node_class(), pool, make_deployment(3), template=template)
    world.wait_until_settled(3)
    world.advance_seconds(30)
    return world


def interrupt_node(world: World) -> str:
    """Interrupt the only instance, wait for its replacement, and return its instance type and zone."""
    [instance] = world.list_active_instances()
    world.cloud.instances.interrupt(instance.instance_id)
    world.advance_seconds(150)
    world.wait_until_settled(3)
    return f"{instance.instance_type} {instance.zone}"


def read_history(world: World) -> OfferingHistory:
    return read_offering_history(world.table, [])


def test_interruption_is_recorded_once_and_raises_the_price_of_its_offering() -> None:
    world = build_spot_world(synthesize_stack())
    offering = interrupt_node(world)
    [record] = read_history(world).records
    assert f"{record.instance_type} {record.zone}" == offering
    assert record.interruptions == pytest.approx(1.0)
    assert record.evictions_usd == pytest.approx(3 * 0.5)
    world.advance_seconds(240)
    world.scale(24)
    world.wait_until_settled(24, timeout=300)
    new_offerings = {f"{one.instance_type} {one.zone}" for one in world.list_active_instances()}
    assert offering not in new_offerings
    assert not world.list_errors()


def test_decisions_with_surcharges_are_replayed_from_their_records() -> None:
    world = build_spot_world(synthesize_stack())
    interrupt_node(world)
    world.scale(12)
    world.wait_until_settled(12, timeout=300)
    records = [
        (entry, decode_record(world.bucket.get(entry.snapshot)))
        for entry in world.entries
        if entry.function in ("provision", "interrupt") and entry.snapshot
    ]
    priced = [
        (entry, record)
        for entry, record in records
        if record.cluster.offering_history is not None and record.cluster.offering_history.records
    ]
    assert priced
    for entry, record in records:
        catalog = decode_catalog(world.bucket.get(record.catalog_key)) if record.catalog_key else None
        decision = replay_decision(entry, record, build_cluster(record, catalog))
        assert compare_decisions(build_recorded_decision(entry, record), decision).is_same


@pytest.mark.parametrize("setting", ["off", "on"])
def test_history_is_read_and_written_only_if_the_setting_is_on(setting: str) -> None:
    world = build_spot_world(synthesize_stack() if setting == "on" else None)
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        interrupt_node(world)
    kinds = {call.detail for call in calls if call.port == "table"}
    assert "unavailable" in kinds
    assert (ROW_KIND in kinds) == (setting == "on")
    assert bool(read_history(world).records) == (setting == "on")


@pytest.mark.parametrize("setting", ["off", "on"])
def test_instance_that_ec2_ends_for_lack_of_capacity_counts_as_a_capacity_error(setting: str) -> None:
    world = World(
        make_node_class(),
        make_node_pool(capacity=("spot",), after="Never"),
        template=synthesize_stack() if setting == "on" else None,
    )
    ended_offerings: list[tuple[str, str]] = []

    def end_instance(instance: SimulatedInstance) -> None:
        instance.state_reason = "Server.InsufficientInstanceCapacity: Insufficient capacity"
        world.cloud.instances.terminate_immediately(instance.instance_id)

    def end_first_instance(event: dict[str, Any]) -> None:
        if event["detail"].get("state") == "pending" and not ended_offerings:
            instance = world.cloud.instances.find(event["detail"]["instance-id"])
            ended_offerings.append((instance.launch_spec.instance_type, instance.subnet.zone))
            world.clock.call_after(timedelta(seconds=3), lambda: end_instance(instance))

    world.cloud.events.subscribe(end_first_instance)
    world.apply([make_deployment(3)])
    world.wait_until_settled(3, timeout=400)
    world.advance_seconds(90)
    records = read_history(world).records
    assert [(record.instance_type, record.zone) for record in records] == (ended_offerings if setting == "on" else [])
    assert all(record.capacity_errors > 0.9 for record in records)
