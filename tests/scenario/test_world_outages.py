"""Somebody whom we ask does not answer, answers late, or not truly: nothing ends, and all goes on when it is over."""

from itertools import count

import pytest

from shared.errors import Conflict, Fault, Forbidden, Throttled, Unreachable
from shared.model.action import TerminateInstances
from sim.cloud.ports import CloudEc2
from sim.faults import Call
from tests.scenario.worlds import CLAIMS, CLASSES, World, deployment, node_class, pool

PORTS = ("kube", "ec2", "table", "bucket", "mailbox", "eks", "parameters", "prices")


def at_work() -> World:
    """Answer a world with two nodes, one of which has no pods any more and will go in a moment."""
    world = World(node_class(), pool(after="60s", capacity=("spot",)), deployment(6))
    world.settled(6)
    return world


@pytest.mark.parametrize("port", PORTS)
def test_who_does_not_answer_for_three_minutes_ends_nothing(port: str) -> None:
    world = at_work()
    living = {one.instance_id for one in world.living()}
    with world.down(port):
        world.scale(9)
        world.seconds(180)
        assert {one.instance_id for one in world.living()} >= living
        assert len(world.running()) >= 6
    world.settled(9, within=400)
    world.seconds(120)
    assert len(world.living()) == len(world.claims())
    world.scale(0)
    world.until(lambda: not world.living() and not world.claims(), within=400)


@pytest.mark.parametrize("function", ["provision", "lifecycle", "disrupt", "interrupt", "catalog"])
@pytest.mark.parametrize("fault", [Unreachable, Throttled, Forbidden], ids=lambda one: one.__name__)
def test_an_api_server_that_is_lost_in_the_middle_of_a_function(function: str, fault: type[Fault]) -> None:
    world = World(node_class(), pool(capacity=("spot",)), deployment(6))
    calls: dict[str, int] = {}
    hits: list[str] = []

    def tap(call: Call) -> None:
        if call.port == "kube" and call.when == "before" and call.who.startswith(function):
            calls[call.who] = calls.get(call.who, 0) + 1
            if len(calls) <= 8 and calls[call.who] == 2 * len(calls):
                hits.append(call.detail)
                raise fault(f"{call.method} {call.detail}: outage")

    with world.tapped(tap):
        world.settled(6, within=700)
        world.cloud.interrupt_spot(world.instance_of(world.nodes()[0]).instance_id)
        world.seconds(150)
        world.settled(6, within=400)
    world.scale(0)
    world.until(lambda: not world.living() and not world.claims(), within=600)
    assert hits


def test_an_api_server_that_is_down_is_told_in_the_log_and_in_the_journal() -> None:
    world = at_work()
    with world.down("kube"):
        world.seconds(70)
    assert "Unreachable: kube.list: outage" in world.log()
    assert any("Unreachable: kube.list: outage" in entry.error for entry in world.entries)


def test_a_write_that_somebody_else_overtook_is_decided_again() -> None:
    world = World(node_class(), pool(), deployment(6))
    met: dict[str, int] = {}

    def tap(call: Call) -> None:
        if (call.port, call.method, call.when) == ("kube", "patch", "before"):
            met[call.detail] = met.get(call.detail, 0) + 1
            if met[call.detail] <= 3:
                raise Conflict(call.detail)

    with world.tapped(tap):
        world.settled(6)
        names = [one["metadata"]["name"] for one in world.claims()]
        world.until(lambda: all(world.condition(CLAIMS, one, "Initialized")[0] == "True" for one in names))
        world.scale(0)
        world.until(lambda: not world.living() and not world.claims(), within=600)


def test_somebody_who_patches_every_object_all_the_time_stops_nobody() -> None:
    world = World(node_class(), pool(), deployment(4))
    writes = count(1)

    def tap(call: Call) -> None:
        """Let the kubelet, and everybody else, write between our read and our write."""
        if (call.port, call.method, call.when) != ("kube", "patch", "before"):
            return
        for resource in ("nodes", CLAIMS):
            for one in world.live.api.list(resource):
                number = next(writes)
                patch = {"metadata": {"annotations": {"somebody": str(number)}}}
                if number % 7 == 0:
                    world.live.api.patch(resource, one["metadata"]["name"], patch)

    with world.tapped(tap):
        world.settled(4, within=400)
        world.scale(0)
        world.until(lambda: not world.living() and not world.claims(), within=600)


@pytest.mark.parametrize("fault", [Unreachable, Throttled], ids=lambda one: one.__name__)
@pytest.mark.parametrize("times", [1, 3])
def test_a_launch_whose_answer_is_lost_is_the_same_launch(fault: type[Fault], times: int) -> None:
    world = World(node_class(), pool(), deployment(9))
    lost: list[str] = []

    def tap(call: Call) -> None:
        if (call.port, call.method, call.when) == ("ec2", "create_fleet", "after") and len(lost) < times:
            lost.append(call.who)
            raise fault("CreateFleet: timed out")

    with world.tapped(tap):
        world.settled(9)
    assert len(lost) == times
    assert len(world.launched) == len(world.claims())


def test_an_empty_answer_of_ec2_is_not_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    world = at_work()
    with monkeypatch.context() as patched:
        patched.setattr(CloudEc2, "describe_instances", lambda _self, _cluster: ())
        world.seconds(200)
    assert world.done(TerminateInstances) == []
    assert len(world.running()) == 6
    assert world.events(reason="InstancesNotSeen")


def test_throttling_by_ec2_does_not_make_a_resolved_node_class_unready() -> None:
    world = at_work()
    assert world.condition(CLASSES, "default", "Ready")[0] == "True"
    with world.down("ec2.subnets", "ec2.security_groups", "ec2.images", fault=Throttled):
        world.seconds(330)
        assert world.condition(CLASSES, "default", "Ready")[0] == "True"
    world.scale(12)
    world.settled(12, within=120)
    assert "Throttled" in world.log()
