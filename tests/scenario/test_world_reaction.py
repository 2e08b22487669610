"""How soon a pod that begins to wait has a claim: by the minute, by watching, by what the scheduler's log says."""

import base64
import gzip
import json
from datetime import timedelta

from shared.errors import Unreachable
from sim.embedded import Embedded
from sim.faults import Call
from sim.lambdas.template import ACTIVE, synthesised
from tests.scenario.worlds import CLAIMS, deployment, node_class, pool

WARM_UP = timedelta(seconds=65)


def deployed(reaction: str) -> Embedded:
    world = Embedded(template=synthesised(context={**ACTIVE, "joiner:reaction": reaction}))
    world.apply([node_class(), pool(), deployment(0)])
    world.run(WARM_UP)
    return world


def seconds_until_asked(world: Embedded) -> float:
    began = world.clock.now()
    world.live.scale("Deployment", "default", "web", 3)
    assert world.run_until(lambda: bool(world.living()), timedelta(seconds=90))
    return (world.clock.now() - began).total_seconds()


def invocations(world: Embedded, function: str) -> int:
    return sum(one.function == function for one in world.runtime.records)


def test_by_the_tick_a_pod_waits_up_to_a_minute() -> None:
    world = deployed("tick")
    assert not [one for one in world.wiring.functions if one.name == "watch"]
    assert 10 < seconds_until_asked(world) <= 70


def test_watching_a_pod_has_its_instance_asked_for_within_seconds() -> None:
    world = deployed("watch")
    before = invocations(world, "provision")
    assert seconds_until_asked(world) <= 6
    assert invocations(world, "provision") > before
    looks = invocations(world, "watch")
    world.run(timedelta(seconds=60))
    assert 15 <= invocations(world, "watch") - looks <= 25
    assert len(world.live.api.list(CLAIMS)) == 1
    assert {one.outcome for one in world.runtime.records} == {"ok"}


def test_a_quiet_watch_leaves_no_trace_and_wakes_nobody() -> None:
    world = deployed("watch")
    journal, lines = len(world.bucket.keys("journal/")), len(world.lines)
    quiet = [one for one in world.runtime.records if one.function == "watch"]
    world.run(timedelta(seconds=30))
    assert len([one for one in world.runtime.records if one.function == "watch"]) - len(quiet) >= 9
    written = [key for key in world.bucket.keys("journal/") if "watch" in key]
    assert not written
    assert len(world.bucket.keys("journal/")) - journal <= 4
    assert not [line for line in world.lines[lines:] if '"watch"' in line]


def test_a_pod_that_cannot_be_helped_wakes_provision_once() -> None:
    world = deployed("watch")
    world.apply([deployment(1, "huge", cpu="900")])
    world.run(timedelta(seconds=10))
    before = invocations(world, "provision")
    world.run(timedelta(seconds=40))
    assert invocations(world, "provision") - before <= 3


def test_a_watch_that_broke_off_begins_again_with_the_minute() -> None:
    world = deployed("watch")

    def tap(call: Call) -> None:
        if call.port == "kube" and call.who.startswith("watch"):
            raise Unreachable("kube")

    world.tap = tap
    world.run(timedelta(seconds=130))
    failed = [one for one in world.runtime.records if one.function == "watch" and one.outcome != "ok"]
    assert 1 <= len(failed) <= 8
    world.tap = lambda _: None
    world.run(timedelta(seconds=61))
    assert seconds_until_asked(world) <= 6


def test_a_line_of_the_schedulers_log_is_a_reason_to_look_and_nothing_polls() -> None:
    world = deployed("logs")
    assert not invocations(world, "watch")
    assert seconds_until_asked(world) <= 6
    asked = [one for one in world.runtime.records if one.function == "watch"]
    assert {one.trigger for one in asked} == {"log"}
    said = json.loads(gzip.decompress(base64.b64decode(asked[0].event["awslogs"]["data"])))
    assert "Unable to schedule pod" in said["logEvents"][0]["message"]
    world.run(timedelta(seconds=60))
    before = invocations(world, "watch")
    world.run(timedelta(seconds=60))
    assert invocations(world, "watch") == before
