"""Plays are played, watched and judged; the handlers are the product's own."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from shared.errors import Throttled, Unreachable
from shared.report.journal import Entry
from sim.clock import START
from sim.embedded import Embedded
from sim.faults import Call, Killed
from sim.misfortune import Misfortune
from sim.play import WARM_UP, Moment, Played, Stage
from sim.scenario import Fault, ScenarioError
from tests.unit.plays import NODE_CLASS, deployment, narrow, pool, stage

APPLY = {"apply": deployment(2)}
RUNS = {"name": "two pods", "do": [APPLY], "within": "4m", "expect": {"running": 2, "pending": 0, "nodes": 1}}


def played(*acts: dict[str, Any], told: list[Moment] | None = None, **fields: Any) -> Played:
    return stage(*acts, told=told, **fields).play()


@pytest.fixture(scope="module")
def launched() -> tuple[Played, Stage, list[Moment]]:
    told: list[Moment] = []
    made = stage(RUNS, {"name": "none", "do": [{"scale": {"name": "web", "replicas": 0}}]}, told=told)
    return made.play(), made, told


def test_an_act_that_meets_its_expectation_passed(launched: tuple[Played, Stage, list[Moment]]) -> None:
    play, _, _ = launched
    act = play.acts[0]
    assert (act.passed, act.failures, act.name) == (True, (), "two pods")
    assert act.held_after == (act.ended - act.began).total_seconds()
    assert 20 < act.held_after < 120
    assert (act.measures["launched"], act.measures["nodes"], act.measures["failedCalls"]) == (1, 1, 0)
    assert act.measures["costPerHour"] > 0
    assert play.passed


def test_a_play_begins_once_the_world_is_warm(launched: tuple[Played, Stage, list[Moment]]) -> None:
    play, made, _ = launched
    assert play.began == START + WARM_UP
    assert made.world.bucket.keys("catalogue/")
    assert play.calls == len(made.world.runtime.records) > 5


def test_waits_are_counted_to_the_launch_and_to_running(launched: tuple[Played, Stage, list[Moment]]) -> None:
    play, _, _ = launched
    (launch, _), (running, tail) = play.to_launch, play.to_running
    assert launch is not None
    assert running is not None
    assert tail is not None
    assert 0 <= launch < running <= tail < 120


def test_the_timeline_says_who_did_what(launched: tuple[Played, Stage, list[Moment]]) -> None:
    play, _, told = launched
    assert list(play.moments) == told
    assert [one.at for one in told] == sorted(one.at for one in told)
    lines = [(one.who.partition(" ")[0], one.what) for one in told]
    assert lines[:2] == [("act", "two pods"), ("you", "apply deployment web")]
    assert ("act", "two pods: as expected") in lines
    assert ("you", "scale deployment web to 0") in lines
    for who, words in (
        ("provision", "creates nodeclaim default-"),
        ("provision", "CreateFleet for 1 nodeclaim"),
        ("EC2", "spot running"),
        ("cluster", "joins the cluster"),
    ):
        assert [line for line in lines if line[0] == who and words in line[1]], (who, words)
    assert all(one.state is not None for one in told)


def test_the_world_is_sampled_all_along(launched: tuple[Played, Stage, list[Moment]]) -> None:
    play, _, _ = launched
    instants = [one.at for one in play.samples]
    assert instants[0] == START
    assert {(later - sooner).total_seconds() for sooner, later in pairwise(instants)} <= {5, 6}


def test_an_act_that_does_not_meet_its_expectation_is_told_and_the_next_is_played() -> None:
    told: list[Moment] = []
    first = {"name": "hope", "within": "30s", "expect": {"running": 3, "nodes": "> 0", "pending": 0}}
    play = played(first, {"name": "next", "expect": {"running": 0}}, told=told)
    assert play.acts[0].failures == ("running is 0, expected 3", "nodes is 0, expected > 0")
    assert play.acts[0].held_after is None
    assert play.acts[0].ended - play.acts[0].began == timedelta(seconds=30)
    assert (play.acts[1].passed, play.passed) == (True, False)
    [said] = [one for one in told if one.what == "hope: NOT as expected"]
    assert said.why == "running is 0, expected 3; nodes is 0, expected > 0"
    assert play.to_launch == play.to_running == (None, None)


def test_what_holds_must_go_on_to_hold() -> None:
    do = [{"apply": deployment(1)}]
    play = played({"name": "brief", "do": do, "expect": {"running": 0, "pending": 1}, "hold": "4m"})
    [failure, *_] = play.acts[0].failures
    assert failure == "held after 1 s, but not for 4m: running is 1, expected 0"
    assert play.acts[0].held_after == 1
    assert not play.passed


def test_a_wait_passes_time_and_a_deletion_deletes() -> None:
    steps = [
        APPLY,
        {"wait": "2m"},
        {"delete": {"kind": "Deployment", "name": "web"}},
        {"delete": {"kind": "NodePool", "name": "spare"}},
    ]
    told: list[Moment] = []
    made = stage({"name": "all", "do": steps, "expect": {"running": 0}}, told=told)
    made.world.apply([NODE_CLASS, pool("spot", name="spare")])
    play = made.play()
    assert play.acts[0].ended - play.acts[0].began >= timedelta(minutes=2)
    assert [one.what for one in told if one.who == "you"][1:] == ["delete deployment web", "delete nodepool spare"]
    assert [one["metadata"]["name"] for one in made.world.live.api.list("nodepools.karpenter.sh")] == ["default"]
    assert made.world.live.api.list("deployments.apps") == []


def test_evictions_and_endings_are_counted_in_their_act() -> None:
    told: list[Moment] = []
    interrupt: dict[str, Any] = {"name": "interrupt", "do": [{"fault": {"kind": "interruptSpot"}}], "within": "4m"}
    interrupt["expect"] = {"terminated": 1, "evicted": 2, "running": 2, "launched": 1, "nodes": 1}
    play = played(RUNS, interrupt, told=told)
    assert play.passed, [act.failures for act in play.acts]
    whats = [one.what for one in told]
    assert any(what.startswith("interruptSpot ip-") for what in whats)
    assert "EC2 Spot Instance Interruption Warning" in whats
    assert any(what.endswith("shutting-down") for what in whats)
    assert any(what.endswith("is gone") for what in whats)


def test_problems_are_told_once_and_failed_calls_each_time() -> None:
    told: list[Moment] = []
    nonsense = {"fault": {"kind": "badMessage"}}
    down: dict[str, Any] = {"name": "down", "do": [{"fault": {"kind": "apiDown", "lasts": "2m"}}], "within": "3m"}
    down["expect"] = {"failedCalls": ">= 3"}
    steps = [nonsense, {"wait": "30s"}, nonsense]
    act = {"name": "nonsense", "do": steps, "expect": {"problems": 1}, "hold": "1m"}
    play = played(act, down, told=told)
    assert play.passed, [act.failures for act in play.acts]
    assert len([one for one in told if one.what == "problem"]) == 1
    failed = [one for one in told if one.what == "failed (failed)"]
    assert len(failed) == play.acts[1].measures["failedCalls"]
    assert "Unreachable" in failed[0].why


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"managed": {"instanceType": "m99.large"}}, "managed: instanceType: EC2 has no type 'm99.large'"),
        ({"setUp": [{"kind": "Wheel", "metadata": {"name": "w"}}]}, "setUp: manifest 1: no matches for kind 'Wheel'"),
    ],
)
def test_what_cannot_be_set_up_is_named(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        played({"name": "never"}, **fields)
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
def test_a_step_that_cannot_be_done_is_named(step: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        played({"name": "bad", "do": [{"wait": "1s"}, step]})
    assert str(refused.value).startswith("act 'bad': step 2: ")
    assert words in str(refused.value)


def test_the_same_seed_is_the_same_play_and_another_is_not() -> None:
    plays = [stage(RUNS, seed=seed).play() for seed in (1, 1, 2)]
    assert plays[0] == plays[1]
    assert plays[0].moments != plays[2].moments


def test_a_play_may_begin_with_a_node_that_is_not_ours() -> None:
    act = {"name": "one", "do": [{"apply": deployment(1)}], "expect": {"onManaged": 1, "managedNodes": 1, "nodes": 0}}
    assert played(act, managed={"instanceType": "m5.large"}).passed


# Misfortune


def running_world(capacity_type: str = "spot", pods: int = 2) -> Embedded:
    world = Embedded()
    narrow(world)
    world.apply([NODE_CLASS, pool(capacity_type), deployment(pods)])
    assert world.run_until(lambda: len(world.live.api.list("nodes")) == 1, timedelta(minutes=4))
    world.run(timedelta(seconds=20))
    return world


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("interruptSpot", "EC2 Spot Instance Interruption Warning"),
        ("rebalance", "EC2 Instance Rebalance Recommendation"),
        ("kill", "EC2 Instance State-change Notification"),
        ("maintenance", "AWS Health Event"),
    ],
)
def test_fate_strikes_the_instance_of_a_node(kind: Any, said: str) -> None:
    world = running_world()
    [instance] = world.living()
    heard: list[dict[str, Any]] = []
    world.cloud.subscribe_events(heard.append)
    words = Misfortune(world).strike(Fault(kind=kind))
    assert words == f"{kind} {instance.private_dns_name.partition('.')[0]} ({instance.instance_id[-6:]})"
    assert heard[0]["detail-type"] == said
    assert instance.instance_id in str(heard[0])


def test_the_node_is_found_by_name_load_or_age() -> None:
    world = running_world()
    world.apply([deployment(3, name="more", cpu="1800m")])
    assert world.run_until(lambda: len(world.live.api.list("nodes")) >= 2, timedelta(minutes=4))
    world.run(timedelta(seconds=30))
    nodes = sorted(world.live.api.list("nodes"), key=lambda node: node["metadata"]["creationTimestamp"])
    counts = {node["metadata"]["name"]: len(world.live.api.pods_on(node["metadata"]["name"])) for node in nodes}
    misfortune = Misfortune(world)
    oldest, newest = (node["metadata"]["name"] for node in (nodes[0], nodes[-1]))
    struck = {
        which: misfortune.strike(Fault(kind="rebalance", node=which))
        for which in ("oldest", "newest", "busiest", newest)
    }
    assert oldest.partition(".")[0] in struck["oldest"]
    assert newest.partition(".")[0] in struck["newest"]
    assert struck[newest] == struck["newest"]
    assert max(counts, key=lambda name: counts[name]).partition(".")[0] in struck["busiest"]
    with pytest.raises(ValueError, match="no node 'laziest'"):
        misfortune.strike(Fault(kind="kill", node="laziest"))


def test_an_on_demand_instance_cannot_be_interrupted() -> None:
    act = {"name": "interrupt", "do": [{"fault": {"kind": "interruptSpot"}}]}
    with pytest.raises(ScenarioError, match="act 'interrupt': step 1: "):
        played(RUNS, act, capacity_type="on-demand")


def test_capacity_goes_and_comes_back_where_it_is_said() -> None:
    world = Embedded()
    narrow(world)
    misfortune = Misfortune(world)
    words = misfortune.strike(Fault(kind="noCapacity", capacity_type="spot", instance_type="m5.large"))
    assert words == "EC2 has no capacity for spot m5.large"
    assert world.cloud.pools.depth("m5.large", "us-east-1a", "spot") == 0
    assert world.cloud.pools.depth("m5.large", "us-east-1a", "on-demand") > 0
    assert world.cloud.pools.depth("m5.xlarge", "us-east-1a", "spot") > 0
    assert misfortune.strike(Fault(kind="noCapacity")) == "EC2 has no capacity for anything"
    assert world.cloud.pools.depth("m5.xlarge", "us-east-1b", "on-demand") == 0
    words = misfortune.strike(Fault(kind="capacity", zone="us-east-1b"))
    assert words == "EC2 has enough capacity for us-east-1b"
    assert world.cloud.pools.depth("m5.xlarge", "us-east-1b", "on-demand") > 0
    assert world.cloud.pools.depth("m5.xlarge", "us-east-1a", "on-demand") == 0


@pytest.mark.parametrize(
    ("kind", "port", "fault", "words"),
    [
        ("apiDown", "kube", Unreachable, "the API server does not answer for 90s"),
        ("ec2Throttles", "ec2", Throttled, "EC2 answers RequestLimitExceeded for 90s"),
    ],
)
def test_an_outage_is_of_one_port_and_ends_by_itself(kind: Any, port: str, fault: type[Exception], words: str) -> None:
    world = Embedded()
    call = Call(port=port, method="list", detail="things", when="before")
    assert Misfortune(world).strike(Fault(kind=kind, lasts="90s")) == words
    with pytest.raises(fault, match=rf"{port}\.list things: outage"):
        world.tap(call)
    world.tap(msgspec.structs.replace(call, when="after"))
    world.tap(msgspec.structs.replace(call, port="table"))
    world.run(timedelta(seconds=89))
    with pytest.raises(fault):
        world.tap(call)
    world.run(timedelta(seconds=1))
    world.tap(call)


def test_an_outage_that_is_prolonged_ends_when_the_last_does() -> None:
    world = Embedded()
    misfortune = Misfortune(world)
    misfortune.strike(Fault(kind="apiDown", lasts="60s"))
    world.run(timedelta(seconds=40))
    misfortune.strike(Fault(kind="apiDown", lasts="60s"))
    world.run(timedelta(seconds=40))
    assert world.runtime.invoke("lifecycle", {}).error.startswith("Unreachable: kube.list")
    world.run(timedelta(seconds=30))
    assert world.runtime.invoke("lifecycle", {}).outcome == "ok"


def test_nonsense_arrives_in_the_interruption_queue() -> None:
    world = running_world()
    heard: list[Entry] = []
    world.on_journal = heard.append
    words = Misfortune(world).strike(Fault(kind="badMessage", text="not even JSON"))
    assert words == "somebody sends nonsense to the interruption queue"
    world.run(timedelta(seconds=30))
    assert [problem.kind for entry in heard for problem in entry.problems if entry.function == "interrupt"] == [
        "Message"
    ]


def test_the_newest_catalogue_is_halved() -> None:
    world = running_world()
    newest = world.bucket.keys("catalogue/")[-1]
    before = world.bucket.get(newest)
    assert Misfortune(world).strike(Fault(kind="halfCatalogue")) == "the newest catalogue loses its second half"
    assert world.bucket.get(newest) == before[: len(before) // 2]
    with pytest.raises(ValueError, match="no catalogue yet"):
        Misfortune(Embedded()).strike(Fault(kind="halfCatalogue"))


# The embedded world


def test_a_world_runs_until_something_holds_or_no_longer_than_it_may() -> None:
    world = Embedded()
    end = world.clock.now() + timedelta(seconds=3)
    assert world.run_until(lambda: world.clock.now() >= end, timedelta(minutes=1))
    assert world.clock.now() == end
    assert not world.run_until(lambda: False, timedelta(seconds=2.5))
    assert world.clock.now() == end + timedelta(seconds=2.5)


def test_whoever_ends_is_not_living() -> None:
    world = running_world()
    [instance] = world.living()
    world.cloud.terminate([instance.instance_id])
    assert world.living() == ()


def test_a_tap_sees_the_calls_of_every_handler_and_may_kill_it() -> None:
    seen: list[Call] = []

    def tap(call: Call) -> None:
        seen.append(call)
        if call.who.startswith("disrupt"):
            raise Killed(call.method)

    world = Embedded(tap=tap)
    narrow(world)
    world.run(timedelta(minutes=6))
    assert {call.who.rpartition("-")[0] for call in seen} >= {"catalog", "provision"}
    outcomes = {record.function: record.outcome for record in world.runtime.records}
    assert outcomes["disrupt"] == "killed"
    assert outcomes["catalog"] == "ok"
    assert world.lines
