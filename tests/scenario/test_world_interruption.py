"""EC2 takes machines back: their pods have another node before they leave, and all is over before the machine is."""

from datetime import datetime, timedelta

import pytest

from shared.errors import Throttled
from shared.model import labels
from shared.model.action import CreateNodeClaim, EvictPod, TaintNode
from shared.model.units import parse_instant
from sim.faults import Call
from tests.benchmarks.bench_storm import storm
from tests.scenario.worlds import CLAIMS, Json, World, deployment, node_class, notice, pool

SPOT = ("spot",)


def running(replicas: int) -> World:
    """Answer a world that has come to rest on spot instances."""
    world = World(node_class(), pool(capacity=SPOT, after="Never"), deployment(replicas))
    world.settled(replicas)
    world.until(lambda: all(is_fit(one) for one in world.claims()))
    world.seconds(30)
    return world


def is_fit(claim: Json) -> bool:
    conditions = {one["type"]: one["status"] for one in claim.get("status", {}).get("conditions", [])}
    return conditions.get("Initialized") == "True"


def first_at(world: World, kind: type, name: str = "") -> datetime:
    """Answer when the first action of *kind* was done, about *name*, if given."""
    return next(
        entry.at
        for entry in world.entries
        for one in entry.done
        if one.result == "done" and isinstance(one.action, kind) and name in ("", getattr(one.action, "name", ""))
    )


def test_a_pod_leaves_when_its_new_node_is_fit_for_use_and_before_its_old_one_is_gone() -> None:
    world = running(3)
    (old,) = world.nodes()
    world.entries.clear()
    began = world.clock.now()
    world.cloud.interrupt_spot(world.instance_of(old).instance_id)
    world.until(lambda: world.done(EvictPod), within=120)
    fit = [one for one in world.claims() if is_fit(one) and "deletionTimestamp" not in one["metadata"]]
    assert len(fit) == 1
    assert first_at(world, TaintNode) - began <= timedelta(seconds=2)
    assert first_at(world, CreateNodeClaim) <= first_at(world, EvictPod)
    world.settled(3)
    assert world.clock.now() - began < timedelta(seconds=110)
    assert old["metadata"]["name"] not in [one["spec"]["nodeName"] for one in world.running()]
    assert len([one for one in world.events(reason="Evicted") if one.startswith("Evicted: Evicted pod: ")]) == 3


def test_when_nothing_can_be_launched_pods_leave_in_time_for_their_grace_periods() -> None:
    world = running(3)
    (old,) = world.nodes()
    world.entries.clear()
    with world.down("ec2.create_fleet"):
        began = world.clock.now()
        world.cloud.interrupt_spot(world.instance_of(old).instance_id)
        world.until(lambda: world.done(EvictPod), within=120)
    waited = first_at(world, EvictPod) - began
    assert timedelta(seconds=60) < waited <= timedelta(seconds=90)
    events = world.events(old["metadata"]["name"], "DisruptionWaitingReadiness")
    assert any("is fit for use" in one for one in events)


def test_the_end_is_on_the_node_and_its_progress_in_the_conditions_of_the_claim() -> None:
    world = running(3)
    (old,) = world.nodes()
    (claim,) = world.claims()
    began = world.clock.now()
    world.cloud.interrupt_spot(world.instance_of(old).instance_id)
    world.seconds(10)
    node = world.live.api.get("nodes", old["metadata"]["name"])
    assert abs(
        parse_instant(node["metadata"]["annotations"][labels.ENDS_AT]) - began - timedelta(minutes=2)
    ) < timedelta(seconds=3)
    status, reason, message = world.condition(CLAIMS, claim["metadata"]["name"], "Drained")
    assert (status, reason) == ("Unknown", "Draining")
    assert "pods are waiting to leave" in message


def test_a_node_that_changed_meanwhile_hears_of_its_end_all_the_same() -> None:
    world = running(3)
    (old,) = world.nodes()
    name = old["metadata"]["name"]

    def tap(call: Call) -> None:
        if (call.port, call.method, call.when) == ("kube", "patch", "before") and call.who.startswith("interrupt"):
            world.live.api.patch("nodes", name, {"metadata": {"annotations": {"somebody": call.who + call.detail}}})

    with world.tapped(tap):
        world.cloud.interrupt_spot(world.instance_of(old).instance_id)
        world.seconds(4)
    node = world.live.api.get("nodes", name)
    assert labels.ENDS_AT in node["metadata"]["annotations"]


@pytest.mark.parametrize("policy", ["ignore", "cordon", "drain"])
def test_a_rebalance_recommendation_does_what_the_pool_wants(policy: str) -> None:
    world = running(3)
    world.live.api.patch(
        "nodepools.karpenter.sh", "default", {"metadata": {"annotations": {labels.REBALANCE_POLICY: policy}}}
    )
    (old,) = world.nodes()
    world.cloud.recommend_rebalance(world.instance_of(old).instance_id)
    world.seconds(20)
    taints = {one["key"] for one in world.live.api.get("nodes", old["metadata"]["name"])["spec"].get("taints", [])}
    assert taints == {"ignore": set(), "cordon": {labels.AT_RISK}, "drain": {labels.DISRUPTED_TAINT}}[policy]
    world.seconds(240)
    names = [one["metadata"]["name"] for one in world.nodes()]
    assert (old["metadata"]["name"] in names) is (policy != "drain")
    assert len(world.running()) == 3


def test_when_nobody_reads_the_queue_the_tick_heals_it() -> None:
    world = running(3)
    (old,) = world.nodes()
    instance = world.instance_of(old).instance_id
    world.forfeit.add(instance)
    with world.down("kube", who="interrupt"):
        world.cloud.interrupt_spot(instance)
        world.seconds(120)
        assert not world.done(TaintNode)
        world.settled(3, within=400)
        world.until(lambda: len(world.claims()) == len(world.nodes()) == 1, within=300)


def test_only_the_message_comes_back_that_is_not_done() -> None:
    world = running(6)
    instances = [world.instance_of(one).instance_id for one in world.nodes()]
    assert len(instances) == 2
    mine = next(one for one in world.claims() if one["status"]["providerID"].endswith(instances[0]))
    failed: list[str] = []

    def tap(call: Call) -> None:
        ours = (call.port, call.method, call.when) == ("kube", "delete", "before") and call.who.startswith("interrupt")
        if ours and call.detail.endswith(mine["metadata"]["name"]) and not failed:
            failed.append(call.detail)
            raise Throttled(call.detail)

    with world.tapped(tap):
        for one in instances:
            world.cloud.interrupt_spot(one)
        world.seconds(20)
        assert len([one for one in world.claims() if "deletionTimestamp" in one["metadata"]]) == 1
        world.seconds(15)
        assert len([one for one in world.claims() if "deletionTimestamp" in one["metadata"]]) == 2
    assert failed
    world.settled(6)


def test_a_cycle_that_failed_is_repeated_after_seconds_not_minutes() -> None:
    world = running(3)
    began = len(world.runtime.records)
    with world.down("kube", who="provision"):
        world.scale(6)
        world.seconds(90)
    failed = [one.at for one in world.runtime.records[began:] if one.outcome != "ok"]
    assert failed[1] - failed[0] < timedelta(seconds=15)
    assert len(failed) >= 4
    world.until(lambda: world.done(CreateNodeClaim), within=15)


def test_messages_twice_late_and_of_strangers_change_nothing() -> None:
    world = running(3)
    (old,) = world.nodes()
    instance = world.instance_of(old).instance_id
    warning = "EC2 Spot Instance Interruption Warning"
    for body in (
        notice(warning, "i-0stranger"),
        notice("EC2 Something Else", instance),
        "?",
        notice(warning, instance),
    ):
        world.interrupt(body)
    world.seconds(5)
    world.interrupt(notice(warning, instance))
    world.interrupt(notice("EC2 Instance Rebalance Recommendation", instance))
    world.settled(3)
    world.until(lambda: len(world.claims()) == len(world.nodes()) == len(world.living()) == 1, within=300)
    world.interrupt(notice(warning, instance))
    world.seconds(90)
    assert len(world.launched) == 2
    assert not world.errors()


def test_many_machines_taken_back_within_a_minute_are_drained_in_time() -> None:
    told = storm(15)
    assert told.late == ()
    assert told.running_at_least >= 10
