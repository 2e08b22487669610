"""How soon a pending pod gets a claim: by the minute, by watching and by the scheduler's log."""

import base64
import gzip
import json
from datetime import datetime, timedelta

from shared.errors import Unreachable
from sim.fault_tap import PortCall
from sim.lambda_runtime.stack_template.synthesis import ACTIVE_SETTINGS, synthesize_template
from sim.world.embedded_world import EmbeddedWorld
from tests.scenario.worlds import CLAIMS, make_deployment, make_node_class, make_node_pool

WARM_UP_TIME = timedelta(seconds=65)


def build_world(reaction: str) -> EmbeddedWorld:
    world = EmbeddedWorld(template=synthesize_template(settings={**ACTIVE_SETTINGS, "reaction": reaction}))
    world.apply([make_node_class(), make_node_pool(), make_deployment(0)])
    world.run(WARM_UP_TIME)
    return world


def measure_seconds_until_launch(world: EmbeddedWorld) -> float:
    began = world.clock.get_time()
    world.cluster.scale("Deployment", "default", "web", 3)
    assert world.run_until(lambda: bool(world.list_active_instances()), timedelta(seconds=90))
    return (world.clock.get_time() - began).total_seconds()


def count_invocations(world: EmbeddedWorld, function: str) -> int:
    return sum(invocation.function == function for invocation in world.runtime.invocations)


def test_scheduled_polling_launches_for_a_pending_pod_within_about_a_minute() -> None:
    world = build_world("tick")
    assert not [function for function in world.wiring.functions if function.name == "watch"]
    assert 10 < measure_seconds_until_launch(world) <= 70


def test_watch_function_launches_for_a_pending_pod_within_seconds() -> None:
    world = build_world("watch")
    before = count_invocations(world, "provision")
    assert measure_seconds_until_launch(world) <= 6
    assert count_invocations(world, "provision") > before
    looks = count_invocations(world, "watch")
    world.run(timedelta(seconds=60))
    assert count_invocations(world, "watch") - looks == 30
    assert len(world.cluster.api.list(CLAIMS)) == 1
    assert {invocation.outcome for invocation in world.runtime.invocations} == {"ok"}


def test_idle_cluster_is_checked_half_as_often() -> None:
    """A first pod still waits for four seconds at most; the next pods are found within two."""
    world = build_world("watch")
    world.run(timedelta(minutes=11))
    before = count_invocations(world, "watch")
    world.run(timedelta(minutes=1))
    assert count_invocations(world, "watch") - before == 15
    assert measure_seconds_until_launch(world) <= 5
    world.run(timedelta(minutes=1))
    before = count_invocations(world, "watch")
    world.run(timedelta(minutes=1))
    assert count_invocations(world, "watch") - before == 30


def test_watch_is_the_default_and_reacts_within_the_promised_times() -> None:
    """From the new pods to CreateFleet: half of the scale-ups within two seconds, all within five."""
    launched_at: list[datetime] = []

    def record_launch(call: PortCall) -> None:
        if call.method == "create_fleet" and call.phase == "before":
            launched_at.append(world.clock.get_time())

    world = EmbeddedWorld(template=synthesize_template(settings={"disruption": "active"}), tap=record_launch)
    world.apply([make_node_class(), make_node_pool(), make_deployment(0, cpu="3500m")])
    world.run(WARM_UP_TIME)
    waits: list[float] = []
    for replicas in range(3, 63, 3):
        began = world.clock.get_time()
        launched_at.clear()
        world.cluster.scale("Deployment", "default", "web", replicas)
        world.run(timedelta(seconds=61, milliseconds=370))
        waits.append((launched_at[0] - began).total_seconds())
    waits.sort()
    assert waits[len(waits) // 2] <= 2
    assert waits[-1] <= 5


def test_idle_watch_function_writes_no_journal_entries_or_log_lines() -> None:
    world = build_world("watch")
    journal, lines = len(world.bucket.list_keys("journal/")), len(world.log_lines)
    quiet = [invocation for invocation in world.runtime.invocations if invocation.function == "watch"]
    world.run(timedelta(seconds=30))
    assert (
        len([invocation for invocation in world.runtime.invocations if invocation.function == "watch"]) - len(quiet)
        >= 9
    )
    watch_keys = [key for key in world.bucket.list_keys("journal/") if "watch" in key]
    assert not watch_keys
    assert len(world.bucket.list_keys("journal/")) - journal <= 4
    assert not [line for line in world.log_lines[lines:] if '"watch"' in line]


def test_unschedulable_pod_does_not_trigger_provision_repeatedly() -> None:
    world = build_world("watch")
    world.apply([make_deployment(1, "huge", cpu="900")])
    world.run(timedelta(seconds=10))
    before = count_invocations(world, "provision")
    world.run(timedelta(seconds=40))
    assert count_invocations(world, "provision") - before <= 3


def test_failed_checks_are_reported_once_a_minute_and_never_repeated() -> None:
    world = build_world("watch")

    def fail_watch_reads(call: PortCall) -> None:
        if call.port == "kube" and call.world_name.startswith("watch"):
            raise Unreachable("kube")

    world.tap = fail_watch_reads
    world.run(timedelta(seconds=130))
    failed = [
        invocation
        for invocation in world.runtime.invocations
        if invocation.function == "watch" and invocation.outcome != "ok"
    ]
    assert {invocation.trigger.partition(":")[0] for invocation in failed} == {"schedule"}
    assert len(failed) <= 4
    assert not world.runtime.get_queue("demo-joiner-dead-letters").messages
    world.tap = lambda _: None
    world.run(timedelta(seconds=61))
    assert measure_seconds_until_launch(world) <= 6


def test_scheduler_log_line_triggers_provision_without_polling() -> None:
    world = build_world("logs")
    assert not count_invocations(world, "watch")
    assert measure_seconds_until_launch(world) <= 6
    watch_invocations = [invocation for invocation in world.runtime.invocations if invocation.function == "watch"]
    assert {invocation.trigger for invocation in watch_invocations} == {"log"}
    log_payload = json.loads(gzip.decompress(base64.b64decode(watch_invocations[0].event["awslogs"]["data"])))
    assert "Unable to schedule pod" in log_payload["logEvents"][0]["message"]
    world.run(timedelta(seconds=60))
    before = count_invocations(world, "watch")
    world.run(timedelta(seconds=60))
    assert count_invocations(world, "watch") == before


def test_first_pods_after_an_installation_wait_for_seconds_and_nothing_is_reported_as_an_error() -> None:
    """The catalog does not exist yet, and the EC2NodeClass was never resolved."""
    world = EmbeddedWorld(template=synthesize_template(settings={"disruption": "active"}))
    world.run(timedelta(seconds=90))
    lines = len(world.log_lines)
    world.apply([make_node_class(), make_node_pool(), make_deployment(2)])
    began = world.clock.get_time()
    assert world.run_until(lambda: bool(world.list_active_instances()), timedelta(seconds=90))
    assert world.clock.get_time() - began <= timedelta(seconds=12)
    records = [json.loads(line) for line in world.log_lines[lines:]]
    assert not [record for record in records if record.get("level") in {"WARNING", "ERROR"}]
