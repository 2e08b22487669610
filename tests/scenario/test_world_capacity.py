"""Many pods, few vCPUs, two planners, machines that go by the dozen: no limit is passed, no launch is doubled."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from shared.model.action import LaunchInstances
from sim.clock import Clock
from sim.faults import Call
from tests.scenario.worlds import CLAIMS, POOLS, Json, World, deployment, node_class, notice, pool, vcpus

SPOT = "EC2 Spot Instance Interruption Warning"


def test_a_limit_is_not_passed_by_ticks_and_follow_ups() -> None:
    world = World(node_class(), pool(limits={"cpu": "8"}), deployment(12))
    world.until(lambda: len(world.running()) == 8)
    world.seconds(300)
    assert (vcpus(world), len(world.launched), len(world.waiting())) == (8, 2, 4)
    for one in world.waiting():
        assert any("exceed its limit of cpu" in words for words in world.events(one["metadata"]["name"]))
    world.live.api.patch(POOLS, "default", {"spec": {"limits": {"cpu": "12"}}})
    world.settled(12, within=120)


def test_a_limit_is_not_passed_when_two_provisions_overlap() -> None:
    world = World(node_class(), pool(limits={"cpu": "8"}), deployment(12))
    nested: list[str] = []

    def tap(call: Call) -> None:
        """Let a second provision run to its end in the middle of the first, at each of its first calls."""
        telling = call.detail in ("lease", "launch-group") or call.method in ("create", "create_fleet", "list")
        fresh = call.when == "after" and call.who not in nested and len(nested) < 40
        if telling and fresh and call.who.startswith("provision"):
            nested.append(f"provision-{len(world.runtime.records):06d}")
            nested.append(call.who)
            world.runtime.invoke("provision", {})

    with world.tapped(tap):
        world.until(lambda: len(world.running()) == 8)
        world.seconds(120)
    assert nested
    assert (vcpus(world), len(world.launched)) == (8, 2)


def test_a_planner_that_outlives_its_lease_launches_nothing_more() -> None:
    world = World(node_class(), pool(limits={"cpu": "8"}), deployment(12))
    stolen: list[str] = []

    def tap(call: Call) -> None:
        """Steal the lease between the look and the first claim, and let somebody else plan meanwhile."""
        looked = (call.port, call.method, call.when) == ("kube", "list", "after") and "volumeattach" in call.detail
        if looked and call.who.startswith("provision") and not stolen and world.bucket.keys("catalogue/"):
            stolen.append(call.who)
            row = world.table.read("lease", "planner")
            assert row is not None
            world.table.write("lease", "planner", '{"owner":"","until":"2000-01-01T00:00:00Z"}', version=row.version)
            world.runtime.invoke("provision", {})

    with world.tapped(tap):
        world.until(lambda: len(world.running()) == 8)
        world.seconds(120)
    assert stolen
    assert (vcpus(world), len(world.launched)) == (8, 2)
    assert any(one.message == "the lease was lost" for entry in world.entries for one in entry.done)


@pytest.mark.parametrize("copies", [0, 2, 5])
def test_follow_ups_that_are_lost_or_doubled_change_nothing_in_the_end(copies: int) -> None:
    world = World(node_class(), pool(limits={"cpu": "16"}), deployment(9))
    world.runtime.copies = lambda _queue, _body: copies
    world.settled(9, within=600)
    assert len(world.launched) == 3
    world.scale(0)
    world.until(lambda: not world.living() and not world.claims(), within=900)


def test_messages_that_come_twice_late_and_in_any_order_are_one_interruption() -> None:
    world = World(node_class(), pool(capacity=("spot",)), deployment(4))
    world.settled(4)
    [old] = world.living()
    for _ in range(3):
        world.interrupt(notice("EC2 Instance State-change Notification", old.instance_id, state="running"))
        world.interrupt(notice("EC2 Instance Rebalance Recommendation", old.instance_id))
    world.seconds(60)
    assert len(world.claims()) == 1
    world.cloud.interrupt_spot(old.instance_id)
    for _ in range(3):
        world.interrupt(notice(SPOT, old.instance_id))
    world.until(lambda: old.instance_id not in {one.instance_id for one in world.living()})
    world.settled(4)
    world.interrupt(notice(SPOT, old.instance_id))
    world.interrupt(notice("EC2 Instance State-change Notification", old.instance_id, state="terminated"))
    world.seconds(60)
    assert (len(world.launched), len(world.claims()), world.errors()) == (2, 1, [])


def test_forty_interruptions_in_one_minute() -> None:
    world = World(node_class(), pool(capacity=("spot",)), deployment(40, cpu="2500m"))
    world.settled(40)
    for number, one in enumerate(world.living()):
        strike = partial(world.cloud.interrupt_spot, one.instance_id)
        world.clock.call_after(timedelta(seconds=number * 1.5), strike, "strike")
    world.seconds(200)
    world.settled(40, within=200)
    assert len(world.living()) == len(world.claims()) == 40
    assert len(world.launched) == 80
    assert world.errors() == []


def test_three_hundred_pods_are_few_launches() -> None:
    world = World(node_class(), pool(types=("m5.xlarge", "m5.2xlarge", "m5.4xlarge")), deployment(300, cpu="500m"))
    took = world.settled(300, within=240)
    assert took < 200
    assert len(world.done(LaunchInstances)) <= 3
    assert vcpus(world) <= 200


def test_pods_that_vanish_between_plan_and_launch_leave_no_machine() -> None:
    world = World(node_class(), pool(), deployment(4))

    def tap(call: Call) -> None:
        if (call.port, call.method, call.when) == ("ec2", "create_fleet", "before"):
            world.scale(0)

    with world.tapped(tap):
        world.until(lambda: world.launched)
        world.until(lambda: not world.living() and not world.claims(), within=400)


def test_a_zone_that_is_out_is_left_aside() -> None:
    world = World(node_class(), pool(), deployment(0))
    for zone in world.cloud.zones[:2]:
        world.cloud.drain_zone(zone)
    world.scale(4)
    world.settled(4, within=120)
    assert {one.zone for one in world.living()} == {world.cloud.zones[2]}


def test_nothing_to_be_had_anywhere_is_said_and_asked_for_again() -> None:
    world = World(node_class(), pool(), deployment(0))
    for zone in world.cloud.zones:
        world.cloud.drain_zone(zone)
    world.scale(4)
    world.seconds(400)
    assert (len(world.waiting()), world.living()) == (4, ())
    assert world.events(reason="InsufficientCapacityError")
    for zone in world.cloud.zones:
        world.cloud.refill_zone(zone)
    world.settled(4, within=400)


def test_the_heavier_pool_comes_first_and_the_lighter_one_when_it_is_full() -> None:
    heavy = pool("heavy", weight=50, limits={"cpu": "4"}, labels={"is": "heavy"})
    world = World(node_class(), heavy, pool("light", labels={"is": "light"}), deployment(8))
    world.settled(8)
    assert sorted(node["metadata"]["labels"]["is"] for node in world.nodes()) == ["heavy", "light"]


def test_a_tainted_pool_is_for_those_who_tolerate_it() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    world = World(node_class(), pool(template={"taints": [taint]}), deployment(2))
    world.apply([deployment(2, "bold", tolerations=[{"key": "gpu", "operator": "Exists"}])])
    world.until(lambda: len(world.running()) == 2)
    world.seconds(120)
    assert (len(world.launched), len(world.waiting())) == (1, 2)
    assert any("needs toleration gpu=yes:NoSchedule" in one for one in world.events(reason="FailedScheduling"))


def test_a_startup_taint_that_is_removed_late_starts_no_second_node() -> None:
    taint = {"key": "cni", "value": "wait", "effect": "NoSchedule"}
    world = World(node_class(), pool(template={"startupTaints": [taint]}), deployment(4))
    world.until(world.nodes)
    world.seconds(400)
    assert (len(world.launched), len(world.waiting())) == (1, 4)
    [node] = world.nodes()
    [claim] = world.claims()
    assert "startup taint" in world.condition(CLAIMS, claim["metadata"]["name"], "Initialized")[2]
    rest = [one for one in node["spec"]["taints"] if one["key"] != "cni"]
    world.live.api.patch("nodes", node["metadata"]["name"], {"spec": {"taints": rest}})
    world.settled(4, within=30)


def test_a_stateful_set_comes_back_in_the_zone_of_its_volume() -> None:
    world = World(node_class(), pool(), *volumes(), stateful(3))
    world.settled(3, within=400)
    before = {one["metadata"]["name"]: zone_of(world, one) for one in world.running()}
    assert len(set(before.values())) >= 1
    for claim in world.claims():
        world.live.api.delete(CLAIMS, claim["metadata"]["name"])
    world.seconds(30)
    world.settled(3, within=600)
    world.until(lambda: len(world.claims()) == len(world.living()), within=400)
    assert {one["metadata"]["name"]: zone_of(world, one) for one in world.running()} == before


def zone_of(world: World, one: Json) -> str:
    node = world.live.api.get("nodes", one["spec"]["nodeName"])
    return str(node["metadata"]["labels"]["topology.kubernetes.io/zone"])


def volumes() -> tuple[Json, ...]:
    driver = "ebs.csi.aws.com"
    return (
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "gp3"},
            "provisioner": driver,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )


def stateful(replicas: int) -> Json:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "gp3",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    one = deployment(replicas, "db", cpu="2500m")
    spec = one["spec"] | {"serviceName": "db", "volumeClaimTemplates": [claim], "podManagementPolicy": "Parallel"}
    spec["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return one | {"kind": "StatefulSet", "spec": spec}


def test_the_clock_at_the_end_of_a_year(monkeypatch: pytest.MonkeyPatch) -> None:
    eve = datetime(2026, 12, 31, 23, 55, tzinfo=UTC)
    monkeypatch.setattr("sim.embedded.Clock", lambda: Clock(eve))
    closed = {"nodes": "0", "schedule": "0 0 1 * *", "duration": "10m"}
    world = World(node_class(), pool(disruption={"budgets": [closed, {"nodes": "100%"}]}), deployment(4))
    world.settled(4)
    world.until(lambda: world.clock.now().hour == 0)
    world.scale(0)
    world.seconds(330)
    assert len(world.living()) == 1
    world.until(lambda: not world.living(), within=600)
    keys = world.bucket.keys("journal/lifecycle/2027/01/01/")
    assert json.loads(world.bucket.get(keys[0]))["function"] == "lifecycle"
