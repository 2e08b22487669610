"""A service fails, answers late, or answers wrongly: no instance ends, and work resumes after the outage."""

from itertools import count

import pytest

from shared.errors import Conflict, Fault, Forbidden, Throttled, Unreachable
from shared.model.decisions.action import TerminateInstances
from sim.cloud.in_process_aws import CloudEc2
from sim.fault_tap import PortCall
from tests.scenario.worlds import CLAIMS, CLASSES, World, make_deployment, make_node_class, make_node_pool

PORTS = ("kube", "ec2", "table", "bucket", "mailbox", "eks", "parameters", "prices")


def build_two_node_world() -> World:
    """Build a world with two nodes; Joiner will soon remove the node without pods."""
    world = World(make_node_class(), make_node_pool(after="60s", capacity=("spot",)), make_deployment(6))
    world.wait_until_settled(6)
    return world


@pytest.mark.parametrize("port", PORTS)
def test_three_minute_outage_terminates_no_instance(port: str) -> None:
    world = build_two_node_world()
    living = {instance.instance_id for instance in world.list_active_instances()}
    with world.fail_ports(port):
        world.scale(9)
        world.advance_seconds(180)
        assert {instance.instance_id for instance in world.list_active_instances()} >= living
        assert len(world.list_running_pods()) >= 6
    world.wait_until_settled(9, timeout=400)
    world.advance_seconds(120)
    assert len(world.list_active_instances()) == len(world.list_claims())
    world.scale(0)
    world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=400)


@pytest.mark.parametrize("function", ["provision", "lifecycle", "disrupt", "interrupt", "catalog"])
@pytest.mark.parametrize("fault", [Unreachable, Throttled, Forbidden], ids=lambda one: one.__name__)
def test_api_server_failure_in_the_middle_of_a_function_is_recovered_from(function: str, fault: type[Fault]) -> None:
    world = World(make_node_class(), make_node_pool(capacity=("spot",)), make_deployment(6))
    calls: dict[str, int] = {}
    hits: list[str] = []

    def fail_later_calls(call: PortCall) -> None:
        if call.port == "kube" and call.phase == "before" and call.world_name.startswith(function):
            calls[call.world_name] = calls.get(call.world_name, 0) + 1
            if len(calls) <= 8 and calls[call.world_name] == 2 * len(calls):
                hits.append(call.detail)
                raise fault(f"{call.method} {call.detail}: outage")

    with world.use_tap(fail_later_calls):
        world.wait_until_settled(6, timeout=700)
        world.cloud.instances.interrupt(world.find_instance(world.list_nodes()[0]).instance_id)
        world.advance_seconds(150)
        world.wait_until_settled(6, timeout=400)
    world.scale(0)
    world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=600)
    assert hits


def test_api_server_outage_is_reported_in_the_log_and_the_journal() -> None:
    world = build_two_node_world()
    with world.fail_ports("kube"):
        world.advance_seconds(70)
    assert "Unreachable: kube.list: outage" in world.log()
    assert any("Unreachable: kube.list: outage" in entry.error for entry in world.entries)


def test_write_conflict_is_retried_with_a_new_decision() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(6))
    met: dict[str, int] = {}

    def raise_conflict(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("kube", "patch", "before"):
            met[call.detail] = met.get(call.detail, 0) + 1
            if met[call.detail] <= 3:
                raise Conflict(call.detail)

    with world.use_tap(raise_conflict):
        world.wait_until_settled(6)
        names = [claim["metadata"]["name"] for claim in world.list_claims()]
        world.wait_until(lambda: all(world.get_condition(CLAIMS, one, "Initialized")[0] == "True" for one in names))
        world.scale(0)
        world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=600)


def test_constant_concurrent_patches_do_not_block_progress() -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(4))
    writes = count(1)

    def patch_every_object(call: PortCall) -> None:
        """Let the kubelet and other clients write between a read and a write of Joiner."""
        if (call.port, call.method, call.phase) != ("kube", "patch", "before"):
            return
        for resource in ("nodes", CLAIMS):
            for listed_object in world.cluster.api.list(resource):
                number = next(writes)
                patch = {"metadata": {"annotations": {"somebody": str(number)}}}
                if number % 7 == 0:
                    world.cluster.api.patch(resource, listed_object["metadata"]["name"], patch)

    with world.use_tap(patch_every_object):
        world.wait_until_settled(4, timeout=400)
        world.scale(0)
        world.wait_until(lambda: not world.list_active_instances() and not world.list_claims(), timeout=600)


@pytest.mark.parametrize("fault", [Unreachable, Throttled], ids=lambda one: one.__name__)
@pytest.mark.parametrize("times", [1, 3])
def test_launch_with_a_lost_response_is_retried_without_a_duplicate_instance(fault: type[Fault], times: int) -> None:
    world = World(make_node_class(), make_node_pool(), make_deployment(9))
    lost_answers: list[str] = []

    def lose_answer(call: PortCall) -> None:
        if (call.port, call.method, call.phase) == ("ec2", "create_fleet", "after") and len(lost_answers) < times:
            lost_answers.append(call.world_name)
            raise fault("CreateFleet: timed out")

    with world.use_tap(lose_answer):
        world.wait_until_settled(9)
    assert len(lost_answers) == times
    assert len(world.launched) == len(world.list_claims())


def test_empty_describe_instances_response_does_not_terminate_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = build_two_node_world()
    with monkeypatch.context() as patched:
        patched.setattr(CloudEc2, "describe_instances", lambda _self, _cluster: ())
        world.advance_seconds(200)
    assert world.list_done_actions(TerminateInstances) == []
    assert len(world.list_running_pods()) == 6
    assert world.list_events(reason="InstancesNotSeen")


def test_throttling_by_ec2_does_not_make_a_resolved_node_class_unready() -> None:
    world = build_two_node_world()
    assert world.get_condition(CLASSES, "default", "Ready")[0] == "True"
    with world.fail_ports(
        "ec2.describe_subnets", "ec2.describe_security_groups", "ec2.describe_images", fault=Throttled
    ):
        world.advance_seconds(330)
        assert world.get_condition(CLASSES, "default", "Ready")[0] == "True"
    world.scale(12)
    world.wait_until_settled(12, timeout=120)
    assert "Throttled" in world.log()
