"""EC2 interrupts instances: their pods move to another node before the instance ends."""

from datetime import datetime, timedelta

import pytest

from shared.errors import Throttled
from shared.model.core import labels
from shared.model.core.units import parse_instant
from shared.model.decisions.action import CreateNodeClaim, EvictPod, TaintNode
from sim.fault_tap import PortCall
from tests.benchmarks.bench_storm import run_storm
from tests.scenario.worlds import (
    CLAIMS,
    Json,
    World,
    make_deployment,
    make_ec2_message,
    make_node_class,
    make_node_pool,
)

SPOT = ("spot",)


def build_spot_world(replicas: int) -> World:
    """Build a settled world on spot instances."""
    world = World(make_node_class(), make_node_pool(capacity=SPOT, after="Never"), make_deployment(replicas))
    world.wait_until_settled(replicas)
    world.wait_until(lambda: all(is_fit(one) for one in world.list_claims()))
    world.advance_seconds(30)
    return world


def is_fit(claim: Json) -> bool:
    conditions = {condition["type"]: condition["status"] for condition in claim.get("status", {}).get("conditions", [])}
    return conditions.get("Initialized") == "True"


def find_first_time(world: World, kind: type, name: str = "") -> datetime:
    """Return the time of the first successful action of *kind*, on the object *name* if it is not empty."""
    return next(
        entry.at
        for entry in world.entries
        for action_result in entry.results
        if action_result.result == "done"
        and isinstance(action_result.action, kind)
        and name in ("", getattr(action_result.action, "name", ""))
    )


def test_pods_of_an_interrupted_node_are_evicted_after_the_replacement_is_ready() -> None:
    world = build_spot_world(3)
    (old,) = world.list_nodes()
    world.entries.clear()
    began = world.clock.get_time()
    world.cloud.instances.interrupt(world.find_instance(old).instance_id)
    world.wait_until(lambda: world.list_done_actions(EvictPod), timeout=120)
    fit = [claim for claim in world.list_claims() if is_fit(claim) and "deletionTimestamp" not in claim["metadata"]]
    assert len(fit) == 1
    assert find_first_time(world, TaintNode) - began <= timedelta(seconds=2)
    assert find_first_time(world, CreateNodeClaim) <= find_first_time(world, EvictPod)
    world.wait_until_settled(3)
    assert world.clock.get_time() - began < timedelta(seconds=110)
    assert old["metadata"]["name"] not in [pod["spec"]["nodeName"] for pod in world.list_running_pods()]
    assert (
        len([event for event in world.list_events(reason="Evicted") if event.startswith("Evicted: Evicted pod: ")]) == 3
    )


def test_pods_of_an_interrupted_node_are_evicted_in_time_even_if_no_replacement_launches() -> None:
    world = build_spot_world(3)
    (old,) = world.list_nodes()
    world.entries.clear()
    with world.fail_ports("ec2.create_fleet"):
        began = world.clock.get_time()
        world.cloud.instances.interrupt(world.find_instance(old).instance_id)
        world.wait_until(lambda: world.list_done_actions(EvictPod), timeout=120)
    waited = find_first_time(world, EvictPod) - began
    assert timedelta(seconds=60) < waited <= timedelta(seconds=90)
    events = world.list_events(old["metadata"]["name"], "DisruptionWaitingReadiness")
    assert any("to be ready" in event for event in events)


def test_interruption_sets_the_end_time_on_the_node_and_drained_condition_on_the_claim() -> None:
    world = build_spot_world(3)
    (old,) = world.list_nodes()
    (claim,) = world.list_claims()
    began = world.clock.get_time()
    world.cloud.instances.interrupt(world.find_instance(old).instance_id)
    world.advance_seconds(10)
    node = world.cluster.api.get("nodes", old["metadata"]["name"])
    assert abs(
        parse_instant(node["metadata"]["annotations"][labels.ENDS_AT]) - began - timedelta(minutes=2)
    ) < timedelta(seconds=3)
    status, reason, message = world.get_condition(CLAIMS, claim["metadata"]["name"], "Drained")
    assert (status, reason) == ("Unknown", "Draining")
    assert "draining: " in message


def test_interrupted_node_gets_its_end_time_annotation_despite_concurrent_patches() -> None:
    world = build_spot_world(3)
    (old,) = world.list_nodes()
    name = old["metadata"]["name"]

    def annotate_before_patch(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("kube", "patch", "before") and call.world_name.startswith(
            "interrupt"
        ):
            world.cluster.api.patch(
                "nodes", name, {"metadata": {"annotations": {"somebody": call.world_name + call.detail}}}
            )

    with world.use_tap(annotate_before_patch):
        world.cloud.instances.interrupt(world.find_instance(old).instance_id)
        world.advance_seconds(4)
    node = world.cluster.api.get("nodes", name)
    assert labels.ENDS_AT in node["metadata"]["annotations"]


@pytest.mark.parametrize("policy", ["ignore", "cordon", "replace", "drain"])
def test_rebalance_recommendation_follows_the_rebalance_policy_of_the_nodepool(policy: str) -> None:
    world = build_spot_world(3)
    world.cluster.api.patch(
        "nodepools.karpenter.sh", "default", {"metadata": {"annotations": {labels.REBALANCE_POLICY: policy}}}
    )
    (old,) = world.list_nodes()
    world.cloud.instances.send_rebalance_recommendation(world.find_instance(old).instance_id)
    world.advance_seconds(20)
    taints = {
        taint["key"] for taint in world.cluster.api.get("nodes", old["metadata"]["name"])["spec"].get("taints", [])
    }
    cordoned = {labels.AT_RISK}
    expected_taints = {"ignore": set(), "cordon": cordoned, "replace": cordoned, "drain": {labels.DISRUPTED_TAINT}}
    assert taints == expected_taints[policy]
    world.advance_seconds(340)
    names = [node["metadata"]["name"] for node in world.list_nodes()]
    assert (old["metadata"]["name"] in names) is (policy in ("ignore", "cordon"))
    assert len(world.list_running_pods()) == 3


def test_node_with_a_rebalance_recommendation_is_drained_after_its_replacement_is_ready_within_budgets() -> None:
    world = build_spot_world(3)
    annotations = {"metadata": {"annotations": {labels.REBALANCE_POLICY: "replace"}}}
    closed_budget = {"spec": {"disruption": {"budgets": [{"nodes": "0"}]}}}
    world.cluster.api.patch("nodepools.karpenter.sh", "default", annotations | closed_budget)
    (old,) = world.list_nodes()
    world.cloud.instances.send_rebalance_recommendation(world.find_instance(old).instance_id)
    world.advance_seconds(300)
    assert [node["metadata"]["name"] for node in world.list_nodes()] == [old["metadata"]["name"]]
    open_budget = {"spec": {"disruption": {"budgets": [{"nodes": "1"}]}}}
    world.cluster.api.patch("nodepools.karpenter.sh", "default", open_budget)
    world.wait_until(lambda: world.list_done_actions(EvictPod), timeout=300)
    fit = [claim for claim in world.list_claims() if is_fit(claim) and "deletionTimestamp" not in claim["metadata"]]
    assert len(fit) == 1
    world.wait_until_settled(3)
    assert old["metadata"]["name"] not in [pod["spec"]["nodeName"] for pod in world.list_running_pods()]


def test_scheduled_run_replaces_an_interrupted_node_when_the_queue_reader_fails() -> None:
    world = build_spot_world(3)
    (old,) = world.list_nodes()
    instance = world.find_instance(old).instance_id
    world.forfeit.add(instance)
    with world.fail_ports("kube", world_prefix="interrupt"):
        world.cloud.instances.interrupt(instance)
        world.advance_seconds(120)
        assert not world.list_done_actions(TaintNode)
        world.wait_until_settled(3, timeout=400)
        world.wait_until(lambda: len(world.list_claims()) == len(world.list_nodes()) == 1, timeout=300)


def test_only_the_failed_interruption_message_is_retried() -> None:
    world = build_spot_world(6)
    instances = [world.find_instance(node).instance_id for node in world.list_nodes()]
    assert len(instances) == 2
    first_claim = next(claim for claim in world.list_claims() if claim["status"]["providerID"].endswith(instances[0]))
    failed: list[str] = []

    def fail_first_delete(call: PortCall) -> None:
        is_interruption_delete = (call.port, call.method, call.phase) == (
            "kube",
            "delete",
            "before",
        ) and call.world_name.startswith("interrupt")
        if is_interruption_delete and call.detail.endswith(first_claim["metadata"]["name"]) and not failed:
            failed.append(call.detail)
            raise Throttled(call.detail)

    with world.use_tap(fail_first_delete):
        for instance_id in instances:
            world.cloud.instances.interrupt(instance_id)
        world.advance_seconds(20)
        assert len([claim for claim in world.list_claims() if "deletionTimestamp" in claim["metadata"]]) == 1
        world.advance_seconds(15)
        assert len([claim for claim in world.list_claims() if "deletionTimestamp" in claim["metadata"]]) == 2
    assert failed
    world.wait_until_settled(6)


def test_failed_provisioning_cycle_is_retried_within_seconds() -> None:
    world = build_spot_world(3)
    began = len(world.runtime.invocations)
    with world.fail_ports("kube", world_prefix="provision"):
        world.scale(6)
        world.advance_seconds(90)
    failed = [invocation.started_at for invocation in world.runtime.invocations[began:] if invocation.outcome != "ok"]
    assert failed[1] - failed[0] < timedelta(seconds=15)
    assert len(failed) >= 4
    world.wait_until(lambda: world.list_done_actions(CreateNodeClaim), timeout=15)


def test_duplicate_late_and_foreign_interruption_messages_are_ignored() -> None:
    world = build_spot_world(3)
    (old,) = world.list_nodes()
    instance = world.find_instance(old).instance_id
    warning = "EC2 Spot Instance Interruption Warning"
    for body in (
        make_ec2_message(warning, "i-0stranger"),
        make_ec2_message("EC2 Something Else", instance),
        "?",
        make_ec2_message(warning, instance),
    ):
        world.interrupt(body)
    world.advance_seconds(5)
    world.interrupt(make_ec2_message(warning, instance))
    world.interrupt(make_ec2_message("EC2 Instance Rebalance Recommendation", instance))
    world.wait_until_settled(3)
    world.wait_until(
        lambda: len(world.list_claims()) == len(world.list_nodes()) == len(world.list_active_instances()) == 1,
        timeout=300,
    )
    world.interrupt(make_ec2_message(warning, instance))
    world.advance_seconds(90)
    assert len(world.launched) == 2
    assert not world.list_errors()


def test_fifteen_spot_interruptions_within_a_minute_are_drained_in_time() -> None:
    storm_result = run_storm(15)
    assert storm_result.late_pods == ()
    assert storm_result.min_running_pods >= 10
