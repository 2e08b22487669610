"""Tests of scenario runs with the product's own handlers: they are played, sampled and checked."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from shared.errors import Throttled, Unreachable
from shared.report.journal.journal import JournalEntry
from sim.fault_tap import Killed, PortCall
from sim.scenarios.runner import WARM_UP_DURATION, ScenarioResult, ScenarioRunner, TimelineEntry
from sim.scenarios.scenario import FaultStep, ScenarioError
from sim.scenarios.scenario_faults import ScenarioFaultInjector
from sim.time.virtual_clock import DEFAULT_START_TIME
from sim.world.embedded_world import EmbeddedWorld
from tests.support.plays import NODE_CLASS, make_deployment, make_node_pool, make_runner, narrow

APPLY = {"apply": make_deployment(2)}
RUNS = {"name": "two pods", "do": [APPLY], "within": "4m", "expect": {"running": 2, "pending": 0, "nodes": 1}}


def play_acts(*acts: dict[str, Any], timeline: list[TimelineEntry] | None = None, **fields: Any) -> ScenarioResult:
    return make_runner(*acts, timeline=timeline, **fields).run_scenario()


@pytest.fixture(scope="module")
def launched() -> tuple[ScenarioResult, ScenarioRunner, list[TimelineEntry]]:
    timeline: list[TimelineEntry] = []
    runner = make_runner(RUNS, {"name": "none", "do": [{"scale": {"name": "web", "replicas": 0}}]}, timeline=timeline)
    return runner.run_scenario(), runner, timeline


def test_act_that_meets_its_expectation_passes(
    launched: tuple[ScenarioResult, ScenarioRunner, list[TimelineEntry]],
) -> None:
    play, _, _ = launched
    act = play.acts[0]
    assert (act.passed, act.failures, act.name) == (True, (), "two pods")
    assert act.met_after_seconds == (act.ended_at - act.started_at).total_seconds()
    assert 20 < act.met_after_seconds < 120
    assert (act.measures["launched"], act.measures["nodes"], act.measures["failedCalls"]) == (1, 1, 0)
    assert act.measures["usdPerHour"] > 0
    assert play.passed


def test_scenario_starts_after_the_warm_up(
    launched: tuple[ScenarioResult, ScenarioRunner, list[TimelineEntry]],
) -> None:
    play, runner, _ = launched
    assert play.started_at == DEFAULT_START_TIME + WARM_UP_DURATION
    assert runner.world.bucket.list_keys("catalogue/")
    assert play.invocation_count == len(runner.world.runtime.invocations) > 5


def test_wait_times_are_measured_to_launch_and_to_running(
    launched: tuple[ScenarioResult, ScenarioRunner, list[TimelineEntry]],
) -> None:
    play, _, _ = launched
    (launch, _), (running, tail) = play.seconds_to_launch, play.seconds_to_running
    assert launch is not None
    assert running is not None
    assert tail is not None
    assert 0 <= launch < running <= tail < 120


def test_timeline_contains_the_source_of_each_entry(
    launched: tuple[ScenarioResult, ScenarioRunner, list[TimelineEntry]],
) -> None:
    play, _, timeline = launched
    assert list(play.timeline) == timeline
    assert [entry.at for entry in timeline] == sorted(entry.at for entry in timeline)
    lines = [(entry.source.partition(" ")[0], entry.message) for entry in timeline]
    assert lines[:2] == [("act", "two pods"), ("you", "apply deployment web")]
    assert ("act", "two pods: as expected") in lines
    assert ("you", "scale deployment web to 0") in lines
    for source, words in (
        ("provision", "creates nodeclaim default-"),
        ("provision", "CreateFleet for 1 nodeclaim"),
        ("EC2", "spot running"),
        ("cluster", "joins the cluster"),
    ):
        assert [line for line in lines if line[0] == source and words in line[1]], (source, words)
    assert all(entry.sample is not None for entry in timeline)


def test_world_is_sampled_during_the_whole_scenario(
    launched: tuple[ScenarioResult, ScenarioRunner, list[TimelineEntry]],
) -> None:
    play, _, _ = launched
    instants = [sample.sampled_at for sample in play.samples]
    assert instants[0] == DEFAULT_START_TIME
    assert {(later - sooner).total_seconds() for sooner, later in pairwise(instants)} <= {5, 6}


def test_failed_act_is_reported_and_the_next_act_runs() -> None:
    timeline: list[TimelineEntry] = []
    first = {"name": "hope", "within": "30s", "expect": {"running": 3, "nodes": "> 0", "pending": 0}}
    play = play_acts(first, {"name": "next", "expect": {"running": 0}}, timeline=timeline)
    assert play.acts[0].failures == ("running is 0, expected 3", "nodes is 0, expected > 0")
    assert play.acts[0].met_after_seconds is None
    assert play.acts[0].ended_at - play.acts[0].started_at == timedelta(seconds=30)
    assert (play.acts[1].passed, play.passed) == (True, False)
    [failure_entry] = [entry for entry in timeline if entry.message == "hope: NOT as expected"]
    assert failure_entry.reason == "running is 0, expected 3; nodes is 0, expected > 0"
    assert play.seconds_to_launch == play.seconds_to_running == (None, None)


def test_expectation_must_hold_for_the_hold_duration() -> None:
    do = [{"apply": make_deployment(1)}]
    play = play_acts({"name": "brief", "do": do, "expect": {"running": 0, "pending": 1}, "hold": "4m"})
    [failure, *_] = play.acts[0].failures
    assert failure == "held after 1 s, but not for 4m: running is 1, expected 0"
    assert play.acts[0].met_after_seconds == 1
    assert not play.passed


def test_wait_step_advances_time_and_delete_step_deletes_objects() -> None:
    steps = [
        APPLY,
        {"wait": "2m"},
        {"delete": {"kind": "Deployment", "name": "web"}},
        {"delete": {"kind": "NodePool", "name": "spare"}},
    ]
    timeline: list[TimelineEntry] = []
    runner = make_runner({"name": "all", "do": steps, "expect": {"running": 0}}, timeline=timeline)
    runner.world.apply([NODE_CLASS, make_node_pool("spot", name="spare")])
    play = runner.run_scenario()
    assert play.acts[0].ended_at - play.acts[0].started_at >= timedelta(minutes=2)
    assert [entry.message for entry in timeline if entry.source == "you"][1:] == [
        "delete deployment web",
        "delete nodepool spare",
    ]
    assert [node_pool["metadata"]["name"] for node_pool in runner.world.cluster.api.list("nodepools.karpenter.sh")] == [
        "default"
    ]
    assert runner.world.cluster.api.list("deployments.apps") == []


def test_evictions_and_terminations_are_counted_in_their_act() -> None:
    timeline: list[TimelineEntry] = []
    interrupt: dict[str, Any] = {"name": "interrupt", "do": [{"fault": {"kind": "interruptSpot"}}], "within": "4m"}
    interrupt["expect"] = {"terminated": 1, "evicted": 2, "running": 2, "launched": 1, "nodes": 1}
    play = play_acts(RUNS, interrupt, timeline=timeline)
    assert play.passed, [act.failures for act in play.acts]
    messages = [entry.message for entry in timeline]
    assert any(message.startswith("interruptSpot ip-") for message in messages)
    assert "EC2 Spot Instance Interruption Warning" in messages
    assert any(message.endswith("shutting-down") for message in messages)
    assert any(message.endswith("is gone") for message in messages)


def test_problems_are_reported_once_and_failed_invocations_each_time() -> None:
    timeline: list[TimelineEntry] = []
    nonsense = {"fault": {"kind": "badMessage"}}
    down: dict[str, Any] = {"name": "down", "do": [{"fault": {"kind": "apiDown", "lasts": "2m"}}], "within": "3m"}
    down["expect"] = {"failedCalls": ">= 3"}
    steps = [nonsense, {"wait": "30s"}, nonsense]
    act = {"name": "nonsense", "do": steps, "expect": {"problems": 1}, "hold": "1m"}
    play = play_acts(act, down, timeline=timeline)
    assert play.passed, [act.failures for act in play.acts]
    assert len([entry for entry in timeline if entry.message == "problem"]) == 1
    failed = [entry for entry in timeline if entry.message == "failed (failed)"]
    assert len(failed) == play.acts[1].measures["failedCalls"]
    assert "Unreachable" in failed[0].reason


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"managed": {"instanceType": "m99.large"}}, "managed: instanceType: EC2 has no type 'm99.large'"),
        ({"setUp": [{"kind": "Wheel", "metadata": {"name": "w"}}]}, "setUp: manifest 1: no matches for kind 'Wheel'"),
    ],
)
def test_invalid_set_up_is_rejected_by_field(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        play_acts({"name": "never"}, **fields)
    assert str(refused.value).startswith(words)


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"scale": {"name": "nobody", "replicas": 1}}, 'deployments.apps "nobody" not found'),
        ({"scale": {"kind": "Wheel", "name": "web", "replicas": 1}}, "no matches for kind 'Wheel'"),
        ({"delete": {"kind": "NodePool", "name": "nobody"}}, '"nobody" not found'),
        ({"apply": {"kind": "Wheel", "metadata": {"name": "w"}}}, "no matches for kind 'Wheel'"),
        ({"fault": {"kind": "kill"}}, "there is no node 'busiest' to strike"),
        ({"fault": {"kind": "noCapacity", "instanceType": "m99.large"}}, "EC2 does not offer m99.large in any zone"),
        ({"fault": {"kind": "capacity", "zone": "moon-1a"}}, "EC2 does not offer anything in moon-1a"),
    ],
)
def test_impossible_step_is_rejected_with_its_act_and_number(step: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        play_acts({"name": "bad", "do": [{"wait": "1s"}, step]})
    assert str(refused.value).startswith("act 'bad': step 2: ")
    assert words in str(refused.value)


def test_scenario_result_depends_only_on_the_seed() -> None:
    plays = [make_runner(RUNS, seed=seed).run_scenario() for seed in (1, 1, 2)]
    assert plays[0] == plays[1]
    assert plays[0].timeline != plays[2].timeline


def test_scenario_can_start_with_a_managed_node() -> None:
    act = {
        "name": "one",
        "do": [{"apply": make_deployment(1)}],
        "expect": {"onManaged": 1, "managedNodes": 1, "nodes": 0},
    }
    assert play_acts(act, managed={"instanceType": "m5.large"}).passed


# Injected faults


def start_world_with_pods(capacity_type: str = "spot", pods: int = 2) -> EmbeddedWorld:
    world = EmbeddedWorld()
    narrow(world)
    world.apply([NODE_CLASS, make_node_pool(capacity_type), make_deployment(pods)])
    assert world.run_until(lambda: len(world.cluster.api.list("nodes")) == 1, timedelta(minutes=4))
    world.run(timedelta(seconds=20))
    return world


@pytest.mark.parametrize(
    ("kind", "expected_detail_type"),
    [
        ("interruptSpot", "EC2 Spot Instance Interruption Warning"),
        ("rebalance", "EC2 Instance Rebalance Recommendation"),
        ("kill", "EC2 Instance State-change Notification"),
        ("maintenance", "AWS Health Event"),
    ],
)
def test_fault_step_affects_the_instance_of_the_node(kind: Any, expected_detail_type: str) -> None:
    world = start_world_with_pods()
    [instance] = world.list_active_instances()
    events: list[dict[str, Any]] = []
    world.cloud.events.subscribe(events.append)
    words = ScenarioFaultInjector(world).inject(FaultStep(kind=kind))
    assert words == f"{kind} {instance.private_dns_name.partition('.')[0]} ({instance.instance_id[-6:]})"
    assert events[0]["detail-type"] == expected_detail_type
    assert instance.instance_id in str(events[0])


def test_fault_node_is_selected_by_name_load_or_age() -> None:
    world = start_world_with_pods()
    world.apply([make_deployment(3, name="more", cpu="1800m")])
    assert world.run_until(lambda: len(world.cluster.api.list("nodes")) >= 2, timedelta(minutes=4))
    world.run(timedelta(seconds=30))
    nodes = sorted(world.cluster.api.list("nodes"), key=lambda node: node["metadata"]["creationTimestamp"])
    counts = {
        node["metadata"]["name"]: len(world.cluster.api.list_pods_on_node(node["metadata"]["name"])) for node in nodes
    }
    injector = ScenarioFaultInjector(world)
    oldest, newest = (node["metadata"]["name"] for node in (nodes[0], nodes[-1]))
    struck = {
        which: injector.inject(FaultStep(kind="rebalance", node=which))
        for which in ("oldest", "newest", "busiest", newest)
    }
    assert oldest.partition(".")[0] in struck["oldest"]
    assert newest.partition(".")[0] in struck["newest"]
    assert struck[newest] == struck["newest"]
    assert max(counts, key=lambda name: counts[name]).partition(".")[0] in struck["busiest"]
    with pytest.raises(ValueError, match="no node 'laziest'"):
        injector.inject(FaultStep(kind="kill", node="laziest"))


def test_on_demand_instance_cannot_be_interrupted() -> None:
    act = {"name": "interrupt", "do": [{"fault": {"kind": "interruptSpot"}}]}
    with pytest.raises(ScenarioError, match="act 'interrupt': step 1: "):
        play_acts(RUNS, act, capacity_type="on-demand")


def test_capacity_is_removed_and_restored_for_the_selected_offerings() -> None:
    world = EmbeddedWorld()
    narrow(world)
    injector = ScenarioFaultInjector(world)
    words = injector.inject(FaultStep(kind="noCapacity", capacity_type="spot", instance_type="m5.large"))
    assert words == "EC2 has no capacity for spot m5.large"
    assert world.cloud.pools.compute_depth("m5.large", "us-east-1a", "spot") == 0
    assert world.cloud.pools.compute_depth("m5.large", "us-east-1a", "on-demand") > 0
    assert world.cloud.pools.compute_depth("m5.xlarge", "us-east-1a", "spot") > 0
    assert injector.inject(FaultStep(kind="noCapacity")) == "EC2 has no capacity for anything"
    assert world.cloud.pools.compute_depth("m5.xlarge", "us-east-1b", "on-demand") == 0
    words = injector.inject(FaultStep(kind="capacity", zone="us-east-1b"))
    assert words == "EC2 has enough capacity for us-east-1b"
    assert world.cloud.pools.compute_depth("m5.xlarge", "us-east-1b", "on-demand") > 0
    assert world.cloud.pools.compute_depth("m5.xlarge", "us-east-1a", "on-demand") == 0


@pytest.mark.parametrize(
    ("kind", "port", "fault", "words"),
    [
        ("apiDown", "kube", Unreachable, "the API server does not answer for 90s"),
        ("ec2Throttles", "ec2", Throttled, "EC2 answers RequestLimitExceeded for 90s"),
    ],
)
def test_outage_affects_one_port_and_ends_after_its_duration(
    kind: Any, port: str, fault: type[Exception], words: str
) -> None:
    world = EmbeddedWorld()
    call = PortCall(port=port, method="list", detail="things", phase="before")
    assert ScenarioFaultInjector(world).inject(FaultStep(kind=kind, lasts="90s")) == words
    with pytest.raises(fault, match=rf"{port}\.list things: outage"):
        world.tap(call)
    world.tap(msgspec.structs.replace(call, phase="after"))
    world.tap(msgspec.structs.replace(call, port="table"))
    world.run(timedelta(seconds=89))
    with pytest.raises(fault):
        world.tap(call)
    world.run(timedelta(seconds=1))
    world.tap(call)


def test_overlapping_outages_end_with_the_last_one() -> None:
    world = EmbeddedWorld()
    injector = ScenarioFaultInjector(world)
    injector.inject(FaultStep(kind="apiDown", lasts="60s"))
    world.run(timedelta(seconds=40))
    injector.inject(FaultStep(kind="apiDown", lasts="60s"))
    world.run(timedelta(seconds=40))
    assert world.runtime.invoke("lifecycle", {}).error.startswith("Unreachable: kube.list")
    world.run(timedelta(seconds=30))
    assert world.runtime.invoke("lifecycle", {}).outcome == "ok"


def test_invalid_message_is_sent_to_the_interruption_queue() -> None:
    world = start_world_with_pods()
    entries: list[JournalEntry] = []
    world.on_journal_entry = entries.append
    words = ScenarioFaultInjector(world).inject(FaultStep(kind="badMessage", text="not even JSON"))
    assert words == "the interruption queue receives an invalid message"
    world.run(timedelta(seconds=30))
    assert [problem.kind for entry in entries for problem in entry.problems if entry.function == "interrupt"] == [
        "Message"
    ]


def test_newest_catalog_is_truncated() -> None:
    world = start_world_with_pods()
    newest = world.bucket.list_keys("catalogue/")[-1]
    before = world.bucket.get(newest)
    assert (
        ScenarioFaultInjector(world).inject(FaultStep(kind="halfCatalogue"))
        == "the newest catalogue loses its second half"
    )
    assert world.bucket.get(newest) == before[: len(before) // 2]
    with pytest.raises(ValueError, match="no catalogue yet"):
        ScenarioFaultInjector(EmbeddedWorld()).inject(FaultStep(kind="halfCatalogue"))


# The embedded world


def test_embedded_world_runs_until_a_condition_holds_or_time_is_over() -> None:
    world = EmbeddedWorld()
    end = world.clock.get_time() + timedelta(seconds=3)
    assert world.run_until(lambda: world.clock.get_time() >= end, timedelta(minutes=1))
    assert world.clock.get_time() == end
    assert not world.run_until(lambda: False, timedelta(seconds=2.5))
    assert world.clock.get_time() == end + timedelta(seconds=2.5)


def test_terminating_instance_is_not_active() -> None:
    world = start_world_with_pods()
    [instance] = world.list_active_instances()
    world.cloud.terminate_instances([instance.instance_id])
    assert world.list_active_instances() == ()


def test_tap_is_called_for_all_handlers_and_can_kill_them() -> None:
    calls: list[PortCall] = []

    def record_and_kill(call: PortCall) -> None:
        calls.append(call)
        if call.world_name.startswith("disrupt"):
            raise Killed(call.method)

    world = EmbeddedWorld(tap=record_and_kill)
    narrow(world)
    world.run(timedelta(minutes=6))
    assert {call.world_name.rpartition("-")[0] for call in calls} >= {"catalog", "provision"}
    outcomes = {record.function: record.outcome for record in world.runtime.invocations}
    assert outcomes["disrupt"] == "killed"
    assert outcomes["catalog"] == "ok"
    assert world.log_lines
