"""Gangs of pods in a simulated account."""

import re
from collections import Counter
from datetime import timedelta
from typing import Any, Final

from cli.replay.differences import compare_decisions
from cli.replay.rerun import build_cluster, build_recorded_decision, replay_decision
from shared.model.core.units import format_instant
from shared.model.ec2.account import CapacityReservation
from shared.report.journal.decision_record import decode_record
from shared.store.catalog_format import decode_catalog
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from tests.scenario.gang_manifests import REQUESTS, make_definition, make_request
from tests.scenario.worlds import POOLS, Json, World, make_deployment, make_node_class, make_node_pool

GANG_SIZE: Final = 4
GANG_ANNOTATIONS: Final = {"joiner.dev/gang": "train", "joiner.dev/gang-size": str(GANG_SIZE)}
NODE_PER_POD: Final = "3"
"""An m5.xlarge has room for one pod with this many CPUs."""


def make_gang(name: str = "train", count: int = GANG_SIZE, **spec: Any) -> Json:
    """Return a Deployment of *count* pods, whose gang needs four."""
    annotations = GANG_ANNOTATIONS | {"joiner.dev/gang": name}
    return make_deployment(count, name, cpu=NODE_PER_POD, annotations=annotations, **spec)


def make_world(*manifests: Json, gangs: str = "on", **pool: Any) -> World:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"gangs": gangs})
    return World(make_node_class(), make_node_pool(**pool), *manifests, template=template)


def test_gang_gets_no_node_until_the_limit_allows_all_its_nodes() -> None:
    world = make_world(make_gang(), limits={"cpu": "12"})
    world.advance_seconds(180)
    assert world.launched == []
    events = world.list_events(reason="FailedScheduling")
    assert any("gang default/train needs nodes for all its 4 pods or none: train-" in event for event in events)
    assert any("does not fit: NodePool default: " in event and "increase spec.limits" in event for event in events)
    world.store(POOLS, "default", {"spec": {"limits": {"cpu": "16"}}})
    world.wait_until_settled(GANG_SIZE)
    assert len(world.launched) == GANG_SIZE
    assert not world.list_errors()


def test_without_the_setting_a_part_of_the_gang_gets_nodes() -> None:
    world = make_world(make_gang(), gangs="off", limits={"cpu": "12"})
    world.advance_seconds(180)
    assert len(world.launched) == GANG_SIZE - 1


def test_incomplete_gang_waits_and_other_pods_do_not() -> None:
    world = make_world(make_gang(count=GANG_SIZE - 1), make_deployment(2, cpu=NODE_PER_POD))
    world.wait_until(lambda: len(world.list_running_pods()) == 2)
    world.advance_seconds(120)
    assert len(world.launched) == 2
    events = world.list_events(reason="FailedScheduling")
    assert any("3 of its 4 pods exist: waiting for the others" in event for event in events)
    world.scale(GANG_SIZE, "train")
    world.wait_until_settled(GANG_SIZE + 2)
    assert not world.list_errors()


def count_requests(annotations: dict[str, str], **settings: str) -> Counter[tuple[str, str, str]]:
    """Return how often each request is made for four pods, before and after it; names of new objects are left out."""
    options = {name.replace("_", "-"): value for name, value in settings.items()}
    world = World(make_node_class(), make_node_pool(), template=synthesize_template(settings=ACTIVE_SETTINGS | options))
    calls: list[PortCall] = []
    with world.use_tap(calls.append):
        world.apply([make_deployment(GANG_SIZE, cpu=NODE_PER_POD, annotations=annotations)])
        world.wait_until_settled(GANG_SIZE)
        world.advance_seconds(90)
    names = re.compile(r"(default|web)-[^/]*|snapshot/.*")
    return Counter((call.port, call.method, names.sub("", call.detail)) for call in calls)


def test_without_gangs_or_the_setting_requests_are_the_same() -> None:
    plain_requests = count_requests({}, gangs="off")
    assert count_requests(GANG_ANNOTATIONS, gangs="off") == plain_requests
    assert count_requests({}, gangs="on") == plain_requests


def test_gang_needs_one_request_more_for_each_node() -> None:
    further_requests = count_requests(GANG_ANNOTATIONS, gangs="on") - count_requests({}, gangs="off")
    assert further_requests == {("kube", "patch", "/apis/karpenter.sh/v1/nodeclaims/"): 2 * GANG_SIZE}


def test_gang_that_gets_a_part_of_its_nodes_returns_them_and_is_tried_again_later() -> None:
    world = make_world()
    zones = world.cloud.zones
    for number, zone in enumerate(zones):
        world.cloud.pools.set_limit("m5.xlarge", zone, "on-demand", 0 if number else GANG_SIZE - 1)
    world.apply([make_gang()])
    world.wait_until(lambda: len(world.list_running_pods()) == GANG_SIZE - 1)
    world.wait_until(lambda: not world.list_active_instances(), timeout=1200)
    [event, *_] = world.list_events(reason="GangReturned")
    assert "3 of the 4 pods of gang default/train had nodes" in event
    for zone in zones:
        world.cloud.pools.set_limit("m5.xlarge", zone, "on-demand", None)
    world.wait_until_settled(GANG_SIZE, timeout=600)
    world.advance_seconds(1200)
    assert len(world.list_running_pods()) == GANG_SIZE
    assert not world.list_errors()


def test_gang_waits_for_its_capacity_block_and_leaves_before_the_block_ends() -> None:
    world = make_world(capacity=("reserved",), after="Never")
    starts_at = world.clock.get_time() + timedelta(minutes=30)
    ends_at = starts_at + timedelta(minutes=90)
    block = CapacityReservation(
        reservation_id="cr-0aaaaaaaaaaaaaaaa",
        instance_type="m5.xlarge",
        zone="us-east-1a",
        reservation_type="capacity-block",
        available_count=GANG_SIZE,
        total_count=GANG_SIZE,
        starts_at=starts_at,
        ends_at=ends_at,
    )
    world.cloud.reservations.add(block)
    world.apply([make_node_class(capacityReservationSelectorTerms=[{"id": block.reservation_id}]), make_gang()])
    world.advance_seconds(25 * 60)
    assert world.launched == []
    messages = set(world.list_events(reason="FailedScheduling"))
    wait = "waits for Capacity Block cr-0aaaaaaaaaaaaaaaa (4 m5.xlarge instances in us-east-1a), which starts at "
    assert any(f"{wait}{format_instant(starts_at)}" in message for message in messages)
    world.wait_until_settled(GANG_SIZE, timeout=900)
    assert world.clock.get_time() > starts_at
    assert {instance.capacity_type for instance in world.list_active_instances()} == {"reserved"}
    world.advance_seconds((ends_at - timedelta(minutes=45) - world.clock.get_time()).total_seconds())
    assert len(world.list_running_pods()) == GANG_SIZE
    world.wait_until(lambda: not world.list_active_instances(), timeout=900)
    assert world.clock.get_time() < ends_at - timedelta(minutes=30)
    world.advance_seconds(300)
    assert len(world.launched) == GANG_SIZE
    assert not world.list_errors()


def get_request_condition(world: World, type_: str) -> tuple[str, str]:
    conditions = world.cluster.api.get(REQUESTS, "train", "default").get("status", {}).get("conditions", [])
    return next(((item["status"], item["reason"]) for item in conditions if item["type"] == type_), ("", ""))


def test_provisioning_request_gets_its_nodes_keeps_them_for_its_pods_and_releases_them() -> None:
    template = synthesize_template(settings=ACTIVE_SETTINGS | {"provisioning-requests": "on"})
    world = World(
        make_definition("autoscaling.x-k8s.io", "v1", "ProvisioningRequest"),
        make_node_class(),
        make_node_pool(limits={"cpu": "8"}, after="10s"),
        template=template,
    )
    world.apply(make_request(3))
    world.wait_until(lambda: get_request_condition(world, "Provisioned") == ("False", "CapacityIsNotFound"))
    assert not world.launched
    world.store(POOLS, "default", {"spec": {"limits": {"cpu": "12"}}})
    world.wait_until(lambda: get_request_condition(world, "Provisioned") == ("True", "CapacityIsProvisioned"))
    assert len(world.list_nodes()) == 3
    world.advance_seconds(480)
    assert len(world.list_nodes()) == 3
    consumed = {"autoscaling.x-k8s.io/consume-provisioning-request": "train"}
    world.apply([make_deployment(2, cpu=NODE_PER_POD, annotations=consumed)])
    world.wait_until_settled(2, timeout=30)
    world.wait_until(lambda: get_request_condition(world, "BookingExpired")[0] == "True")
    world.wait_until(lambda: len(world.list_nodes()) == 2, timeout=400)
    assert len(world.launched) == 3
    assert not world.list_errors()


def test_without_requests_only_their_list_is_read() -> None:
    further_requests = count_requests({}, provisioning_requests="on") - count_requests({})
    assert {detail.partition("?")[0] for _, _, detail in further_requests} == {
        "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
    }


def test_decisions_about_gangs_and_requests_are_replayed_from_their_records() -> None:
    settings = ACTIVE_SETTINGS | {"gangs": "on", "provisioning-requests": "on"}
    world = World(
        make_definition("autoscaling.x-k8s.io", "v1", "ProvisioningRequest"),
        make_node_class(),
        make_node_pool(limits={"cpu": "24"}),
        template=synthesize_template(settings=settings),
    )
    world.apply([make_gang(), make_gang("large", GANG_SIZE - 1), *make_request(2)])
    world.advance_seconds(240)
    assert len(world.launched) == GANG_SIZE + 2
    records = [
        (entry, decode_record(world.bucket.get(entry.snapshot)))
        for entry in world.entries
        if entry.function in ("provision", "disrupt", "lifecycle") and entry.snapshot
    ]
    assert any(record.cluster.provisioning_requests for _, record in records)
    for entry, record in records:
        catalog = decode_catalog(world.bucket.get(record.catalog_key)) if record.catalog_key else None
        decision = replay_decision(entry, record, build_cluster(record, catalog))
        assert compare_decisions(build_recorded_decision(entry, record), decision).is_same
