"""Many pods, few vCPUs, two planners, dozens of interruptions: no limit is exceeded, no launch is doubled."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from shared.model.decisions.action import LaunchInstances
from sim.fault_tap import PortCall
from sim.time.virtual_clock import Clock
from tests.scenario.worlds import (
    CLAIMS,
    POOLS,
    Json,
    World,
    count_vcpus,
    make_deployment,
    make_ec2_message,
    make_node_class,
    make_node_pool,
)

SPOT = "EC2 Spot Instance Interruption Warning"


def test_nodepool_limit_is_not_exceeded_by_scheduled_runs_and_follow_ups() -> None:
    world = World(make_node_class(), make_node_pool(limits={"cpu": "8"}), make_deployment(12))
    world.wait_until(lambda: len(world.list_running_pods()) == 8)
    world.advance_seconds(300)
    assert (count_vcpus(world), len(world.launched), len(world.list_unbound_pods())) == (8, 2, 4)
    for waiting_pod in world.list_unbound_pods():
        assert any("exceed its limit of cpu" in words for words in world.list_events(waiting_pod["metadata"]["name"]))
    world.cluster.api.patch(POOLS, "default", {"spec": {"limits": {"cpu": "12"}}})
    world.wait_until_settled(12, timeout=120)


def test_nodepool_limit_is_not_exceeded_by_overlapping_provision_runs() -> None:
    world = World(make_node_class(), make_node_pool(limits={"cpu": "8"}), make_deployment(12))
    nested: list[str] = []

    def run_nested_provision(call: PortCall) -> None:
        """Let a second provision run to its end in the middle of the first, at each of its first calls."""
        telling = call.detail in ("lease", "launch-group") or call.method in ("create", "create_fleet", "list")
        fresh = call.phase == "after" and call.world_name not in nested and len(nested) < 40
        if telling and fresh and call.world_name.startswith("provision"):
            nested.append(f"provision-{len(world.runtime.invocations):06d}")
            nested.append(call.world_name)
            world.runtime.invoke("provision", {})

    with world.use_tap(run_nested_provision):
        world.wait_until(lambda: len(world.list_running_pods()) == 8)
        world.advance_seconds(120)
    assert nested
    assert (count_vcpus(world), len(world.launched)) == (8, 2)


def test_provision_that_lost_its_lease_launches_no_extra_instance() -> None:
    world = World(make_node_class(), make_node_pool(limits={"cpu": "8"}), make_deployment(12))
    stolen: list[str] = []

    def steal_lease(call: PortCall) -> None:
        """Steal the lease between the list call and the first claim, and run another provision meanwhile."""
        is_list = (call.port, call.method, call.phase) == ("kube", "list", "after") and "volumeattach" in call.detail
        if is_list and call.world_name.startswith("provision") and not stolen and world.bucket.list_keys("catalogue/"):
            stolen.append(call.world_name)
            row = world.table.read("lease", "planner")
            assert row is not None
            world.table.write("lease", "planner", '{"owner":"","until":"2000-01-01T00:00:00Z"}', version=row.version)
            world.runtime.invoke("provision", {})

    with world.use_tap(steal_lease):
        world.wait_until(lambda: len(world.list_running_pods()) == 8)
        world.advance_seconds(120)
    assert stolen
    assert (count_vcpus(world), len(world.launched)) == (8, 2)
    assert any(result.message == "the controller lost its lease" for entry in world.entries for result in entry.results)


@pytest.mark.parametrize("copies", [0, 2, 5])
def test_lost_or_duplicated_follow_ups_do_not_change_the_final_state(copies: int) -> None:
    world = World(make_node_class(), make_node_pool(limits={"cpu": "16"}), make_deployment(9))
    world.runtime.count_copies = lambda _queue, _body: copies
    world.wait_until_settled(9, timeout=600)
    assert len(world.launched) == 3
    world.scale(0)
    world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=900)


def test_duplicate_and_reordered_messages_count_as_one_interruption() -> None:
    world = World(make_node_class(), make_node_pool(capacity=("spot",)), make_deployment(4))
    world.wait_until_settled(4)
    [old] = world.list_active_instances()
    for _ in range(3):
        world.interrupt(make_ec2_message("EC2 Instance State-change Notification", old.instance_id, state="running"))
        world.interrupt(make_ec2_message("EC2 Instance Rebalance Recommendation", old.instance_id))
    world.advance_seconds(60)
    assert len(world.list_claims()) == 1
    world.cloud.instances.interrupt(old.instance_id)
    for _ in range(3):
        world.interrupt(make_ec2_message(SPOT, old.instance_id))
    world.wait_until(lambda: old.instance_id not in {one.instance_id for one in world.list_active_instances()})
    world.wait_until_settled(4)
    world.interrupt(make_ec2_message(SPOT, old.instance_id))
    world.interrupt(make_ec2_message("EC2 Instance State-change Notification", old.instance_id, state="terminated"))
    world.advance_seconds(60)
    assert (len(world.launched), len(world.list_claims()), world.list_errors()) == (2, 1, [])


def test_forty_spot_interruptions_in_one_minute_are_replaced_one_for_one() -> None:
    world = World(make_node_class(), make_node_pool(capacity=("spot",)), make_deployment(40, cpu="2500m"))
    world.wait_until_settled(40)
    for number, instance in enumerate(world.list_active_instances()):
        strike = partial(world.cloud.instances.interrupt, instance.instance_id)
        world.clock.call_after(timedelta(seconds=number * 1.5), strike, "strike")
    world.advance_seconds(200)
    world.wait_until_settled(40, timeout=200)
    assert len(world.list_active_instances()) == len(world.list_claims()) == 40
    assert len(world.launched) == 80
    assert world.list_errors() == []


def test_three_hundred_pods_need_at_most_three_launches() -> None:
    world = World(
        make_node_class(),
        make_node_pool(types=("m5.xlarge", "m5.2xlarge", "m5.4xlarge")),
        make_deployment(300, cpu="500m"),
    )
    took = world.wait_until_settled(300, timeout=240)
    assert took < 200
    assert len(world.list_done_actions(LaunchInstances)) <= 3
    assert count_vcpus(world) <= 200


def test_pods_deleted_before_the_launch_leave_no_instance_behind() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(4))

    def scale_to_zero(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("ec2", "create_fleet", "before"):
            world.scale(0)

    with world.use_tap(scale_to_zero):
        world.wait_until(lambda: world.launched)
        world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=400)


def test_zone_without_capacity_is_avoided() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(0))
    for zone in world.cloud.zones[:2]:
        world.cloud.drain_zone(zone)
    world.scale(4)
    world.wait_until_settled(4, timeout=120)
    assert {instance.zone for instance in world.list_active_instances()} == {world.cloud.zones[2]}


def test_capacity_shortage_in_every_zone_is_reported_and_retried() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(0))
    for zone in world.cloud.zones:
        world.cloud.drain_zone(zone)
    world.scale(4)
    world.advance_seconds(400)
    assert (len(world.list_unbound_pods()), world.list_active_instances()) == (4, ())
    assert world.list_events(reason="InsufficientCapacityError")
    for zone in world.cloud.zones:
        world.cloud.restore_zone(zone)
    world.wait_until_settled(4, timeout=400)


def test_nodepool_with_higher_weight_is_used_before_the_lighter_nodepool() -> None:
    heavy = make_node_pool("heavy", weight=50, limits={"cpu": "4"}, labels={"is": "heavy"})
    world = World(make_node_class(), heavy, make_node_pool("light", labels={"is": "light"}), make_deployment(8))
    world.wait_until_settled(8)
    assert sorted(node["metadata"]["labels"]["is"] for node in world.list_nodes()) == ["heavy", "light"]


def test_tainted_nodepool_launches_nodes_only_for_tolerating_pods() -> None:
    taint = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    world = World(make_node_class(), make_node_pool(template={"taints": [taint]}), make_deployment(2))
    world.apply([make_deployment(2, "bold", tolerations=[{"key": "gpu", "operator": "Exists"}])])
    world.wait_until(lambda: len(world.list_running_pods()) == 2)
    world.advance_seconds(120)
    assert (len(world.launched), len(world.list_unbound_pods())) == (1, 2)
    assert any(
        "needs toleration gpu=yes:NoSchedule" in message for message in world.list_events(reason="FailedScheduling")
    )


def test_late_removal_of_a_startup_taint_launches_no_second_node() -> None:
    taint = {"key": "cni", "value": "wait", "effect": "NoSchedule"}
    world = World(make_node_class(), make_node_pool(template={"startupTaints": [taint]}), make_deployment(4))
    world.wait_until(world.list_nodes)
    world.advance_seconds(400)
    assert (len(world.launched), len(world.list_unbound_pods())) == (1, 4)
    [node] = world.list_nodes()
    [claim] = world.list_claims()
    assert "startup taint" in world.get_condition(CLAIMS, claim["metadata"]["name"], "Initialized")[2]
    remaining_taints = [node_taint for node_taint in node["spec"]["taints"] if node_taint["key"] != "cni"]
    world.cluster.api.patch("nodes", node["metadata"]["name"], {"spec": {"taints": remaining_taints}})
    world.wait_until_settled(4, timeout=30)


def test_statefulset_pods_return_to_the_zone_of_their_volume() -> None:
    world = World(make_node_class(), make_node_pool(), *make_storage_classes(), make_stateful_set(3))
    world.wait_until_settled(3, timeout=400)
    before = {pod["metadata"]["name"]: get_zone(world, pod) for pod in world.list_running_pods()}
    assert len(set(before.values())) >= 1
    for claim in world.list_claims():
        world.cluster.api.delete(CLAIMS, claim["metadata"]["name"])
    world.advance_seconds(30)
    world.wait_until_settled(3, timeout=600)
    world.wait_until(lambda: len(world.list_claims()) == len(world.list_active_instances()), timeout=400)
    assert {pod["metadata"]["name"]: get_zone(world, pod) for pod in world.list_running_pods()} == before


def get_zone(world: World, pod: Json) -> str:
    node = world.cluster.api.get("nodes", pod["spec"]["nodeName"])
    return str(node["metadata"]["labels"]["topology.kubernetes.io/zone"])


def make_storage_classes() -> tuple[Json, ...]:
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


def make_stateful_set(replicas: int) -> Json:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "storageClassName": "gp3",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    stateful_set = make_deployment(replicas, "db", cpu="2500m")
    spec = stateful_set["spec"] | {
        "serviceName": "db",
        "volumeClaimTemplates": [claim],
        "podManagementPolicy": "Parallel",
    }
    spec["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return stateful_set | {"kind": "StatefulSet", "spec": spec}


def test_budget_schedule_and_journal_paths_are_correct_across_new_year(monkeypatch: pytest.MonkeyPatch) -> None:
    eve = datetime(2026, 12, 31, 23, 55, tzinfo=UTC)
    monkeypatch.setattr("sim.world.embedded_world.Clock", lambda: Clock(eve))
    closed = {"nodes": "0", "schedule": "0 0 1 * *", "duration": "10m"}
    world = World(
        make_node_class(), make_node_pool(disruption={"budgets": [closed, {"nodes": "100%"}]}), make_deployment(4)
    )
    world.wait_until_settled(4)
    world.wait_until(lambda: world.clock.get_time().hour == 0)
    world.scale(0)
    world.advance_seconds(330)
    assert len(world.list_active_instances()) == 1
    world.wait_until(lambda: not world.list_active_instances(), timeout=600)
    keys = world.bucket.list_keys("journal/lifecycle/2027/01/01/")
    assert json.loads(world.bucket.get(keys[0]))["function"] == "lifecycle"
