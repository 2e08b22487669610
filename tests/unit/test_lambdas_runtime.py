"""Functions in motion: what wakes whom, when, how often, and what it is handed."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from shared.ports import World
from sim.lambdas.invocation import Answer, Event, Invocation
from sim.lambdas.runtime import imported
from tests.unit.lambdas_stack import BASE, Behave, Stack, die, fail, function, reads, rule, succeed, ticks


def test_a_rate_rings_every_so_often_from_the_deployment_on() -> None:
    stack = Stack({**BASE, "Tick": ticks("Worker", "rate(1 minute)")}, succeed)
    stack.run(185)
    assert [at for at, _, _ in stack.seen] == [60, 120, 180]
    assert {invocation.trigger for invocation in stack.runtime.records} == {"schedule:Tick"}


def test_a_cron_rings_at_its_minutes() -> None:
    stack = Stack({**BASE, "Tick": ticks("Worker", "cron(0/20 * * * ? *)")}, succeed)
    stack.run(3600)
    assert [at for at, _, _ in stack.seen] == [1200, 2400, 3600]


def test_a_schedule_that_is_over_rings_no_more() -> None:
    stack = Stack({**BASE, "Tick": ticks("Worker", "cron(0 0 1 1 ? 2026)")}, succeed)
    stack.run(10**8)
    assert stack.seen == []


def test_a_tick_hands_over_the_input_of_the_template() -> None:
    tick = ticks("Worker", "rate(1 minute)")
    tick["Properties"]["Target"]["Input"] = '{"source":"schedule"}'
    stack = Stack({**BASE, "Tick": tick}, succeed)
    stack.run(60)
    assert [event for _, _, event in stack.seen] == [{"source": "schedule"}]


def test_a_tick_without_an_input_is_a_scheduled_event() -> None:
    stack = Stack({**BASE, "Tick": ticks("Worker", "rate(1 minute)")}, succeed)
    stack.run(60)
    [(_, _, event)] = stack.seen
    assert (event["source"], event["time"]) == ("aws.scheduler", "2026-11-21T08:01:00Z")


def test_a_schedule_may_fill_a_queue() -> None:
    stack = Stack({**BASE, "Tick": ticks("Work", "rate(1 minute)")}, succeed)
    stack.run(60)
    [(at, [body])] = stack.bodies()
    assert (at, json.loads(body)["detail-type"]) == (60, "Scheduled Event")


def test_a_stopped_stack_ticks_no_more_but_delivers_what_waits() -> None:
    stack = Stack({**BASE, "Tick": ticks("Worker", "rate(1 minute)")}, succeed)
    stack.runtime.send("worker", "late", timedelta(seconds=100))
    stack.run(60)
    stack.runtime.stop()
    stack.run(600)
    assert [at for at, _, _ in stack.seen] == [60, 100]


@pytest.mark.parametrize(
    ("retries", "attempts"), [(0, [60]), (1, [60, 120]), (2, [60, 120, 240]), (None, [60, 120, 240])]
)
@pytest.mark.parametrize("misbehave", [fail, die])
def test_a_failed_tick_is_repeated_as_often_as_the_template_says(
    retries: int | None, attempts: list[float], misbehave: Behave
) -> None:
    once = {"FunctionName": {"Ref": "Worker"}, "Qualifier": "$LATEST", "MaximumRetryAttempts": retries}
    invoke = {} if retries is None else {"Once": {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": once}}
    stack = Stack({**BASE, **invoke, "Tick": ticks("Worker", "cron(1 8 * * ? *)")}, misbehave)
    stack.run(3600)
    assert [at for at, _, _ in stack.seen] == attempts


def test_an_event_reaches_the_queue_of_the_rule_that_matches() -> None:
    heard = rule("Work", EventPattern={"source": ["aws.ec2"], "detail": {"state": [{"anything-but": "running"}]}})
    stack = Stack({**BASE, "Heard": heard}, succeed)
    for state in ("running", "stopped"):
        stack.runtime.put_event({"source": "aws.ec2", "detail-type": "change", "detail": {"state": state}})
    stack.runtime.put_event({"source": "aws.health"})
    stack.run(1)
    [(at, [body])] = stack.bodies()
    assert at == 0
    assert json.loads(body) == {
        "version": "0",
        "id": "event-000002",
        "account": "111122223333",
        "time": "2026-11-21T08:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail": {"state": "stopped"},
        "source": "aws.ec2",
        "detail-type": "change",
    }


def test_an_event_reaches_a_function_after_whoever_put_it_is_done() -> None:
    stack = Stack({**BASE, "Heard": rule("Worker", EventPattern={"source": ["a"]})}, succeed)
    stack.runtime.put_event({"source": "a", "time": "then"})
    assert stack.seen == []
    stack.run(0)
    assert [event["time"] for _, _, event in stack.seen] == ["then"]
    assert [invocation.trigger for invocation in stack.runtime.records] == ["event:Heard"]


def test_a_lost_message_never_arrives_and_a_doubled_one_arrives_twice() -> None:
    stack = Stack(BASE, succeed)
    stack.runtime.copies = lambda queue, body: {"lost": 0, "doubled": 2}.get(body, 1) if queue == "worker" else 1
    for body in ("lost", "doubled", "plain"):
        stack.runtime.send("worker", body)
    stack.run(1)
    assert stack.bodies() == [(0, ["doubled", "doubled", "plain"])]


def test_a_slow_call_ends_later_and_holds_its_messages_until_then() -> None:
    stack = Stack(BASE, succeed, duration=lambda _name, _event: timedelta(seconds=12))
    stack.runtime.send("worker", "one")
    stack.run(11)
    assert len(stack.runtime.queue("worker").messages) == 1
    stack.run(12)
    assert stack.runtime.queue("worker").messages == ()
    [invocation] = stack.runtime.records
    assert invocation.ended_at - invocation.at == timedelta(seconds=12)


def test_a_call_longer_than_the_time_out_has_failed_though_its_effects_stay() -> None:
    stack = Stack(BASE, succeed, duration=lambda _name, _event: timedelta(minutes=5))
    stack.runtime.send("worker", "one")
    stack.run(70)
    assert [at for at, _ in stack.bodies()] == [0, 60]
    assert [(i.outcome, (i.ended_at - i.at).seconds) for i in stack.runtime.records] == [("timed-out", 20)]


def test_a_mapping_calls_no_more_at_once_than_it_may() -> None:
    limited = reads(ScalingConfig={"MaximumConcurrency": 2}, BatchSize=1)
    stack = Stack({**BASE, "Reads": limited}, succeed, duration=lambda _name, _event: timedelta(seconds=5))
    for number in range(5):
        stack.runtime.send("worker", str(number))
    stack.run(60)
    assert [at for at, _ in stack.bodies()] == [0, 0, 5, 5, 10]


def test_a_mapping_gathers_messages_until_its_window_closes_or_the_batch_is_full() -> None:
    patient = reads(MaximumBatchingWindowInSeconds=4, BatchSize=3)
    stack = Stack({**BASE, "Reads": patient}, succeed)
    for second in (0, 2, 10, 11, 12, 13):
        stack.runtime.send("worker", str(second), timedelta(seconds=second))
    stack.run(60)
    assert stack.bodies() == [(4, ["0", "2"]), (12, ["10", "11", "12"]), (17, ["13"])]


def test_a_window_that_closed_while_all_were_at_work_is_not_waited_for_again() -> None:
    patient = reads(MaximumBatchingWindowInSeconds=4, BatchSize=3, ScalingConfig={"MaximumConcurrency": 1})
    stack = Stack({**BASE, "Reads": patient}, succeed, duration=lambda _name, _event: timedelta(seconds=10))
    for second in (0, 5):
        stack.runtime.send("worker", str(second), timedelta(seconds=second))
    stack.run(60)
    assert [at for at, _ in stack.bodies()] == [4, 18]


def test_a_function_gets_the_environment_of_the_template_and_a_name_of_its_own() -> None:
    stack = Stack(BASE, succeed)
    stack.runtime.invoke("worker", {})
    stack.runtime.invoke("worker", {})
    assert [world.settings.region for world in stack.worlds] == ["here", "here"]
    assert [world.name for world in stack.worlds] == ["worker-000001", "worker-000002"]
    assert stack.built == ["worker", "worker"]


def test_a_world_that_has_a_name_keeps_it() -> None:
    named = {**BASE["Worker"]["Properties"]["Environment"]["Variables"], "NAME": "lessee"}
    stack = Stack({**BASE, "Worker": function("worker", Environment={"Variables": named})}, succeed)
    stack.runtime.invoke("worker", {})
    assert [world.name for world in stack.worlds] == ["lessee"]


def test_an_event_is_nobody_s_to_change() -> None:
    def scribble(event: Event, world: World) -> Answer:
        event["scribbled"] = True
        return fail(event, world)

    stack = Stack(BASE, scribble)
    mine: Event = {"a": 1}
    assert stack.runtime.invoke("worker", mine).event == {"a": 1} == mine


def test_a_direct_call_answers_what_became_of_it_and_is_not_repeated() -> None:
    stack = Stack(BASE, fail, duration=lambda _name, _event: timedelta(seconds=2))
    invocation = stack.runtime.invoke("worker", {"a": 1})
    stack.run(1000)
    assert (invocation.trigger, invocation.outcome, invocation.error) == ("direct", "failed", "ValueError: broken")
    assert stack.runtime.records == [invocation]


def test_whoever_listens_hears_of_every_call() -> None:
    heard: list[Invocation] = []
    stack = Stack(BASE, succeed)
    stack.runtime.on_invocation = heard.append
    stack.runtime.invoke("worker", {})
    assert heard == stack.runtime.records


def test_a_record_looks_like_one_of_sqs() -> None:
    stack = Stack(BASE, fail)
    stack.runtime.send("worker", "hello", timedelta(seconds=1))
    stack.run(61)
    record = stack.seen[1][2]["Records"][0]
    assert record["messageId"] == "message-000001"
    assert record["eventSourceARN"] == "arn:aws:sqs:us-east-1:111122223333:worker"
    assert (record["awsRegion"], record["eventSource"]) == ("us-east-1", "aws:sqs")
    assert record["md5OfBody"] == "5d41402abc4b2a76b9719d911017c592"
    assert record["attributes"] == {
        "ApproximateReceiveCount": "2",
        "SentTimestamp": "1795248000000",
        "SenderId": "joiner",
        "ApproximateFirstReceiveTimestamp": "1795248001000",
    }


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "sample_handler.py").write_text("def handle(event, world):\n    return event\n")
    monkeypatch.syspath_prepend(tmp_path)
    return "sample_handler.handler"


def test_a_handler_s_handle_is_what_is_called(module: str) -> None:
    assert imported(module)({"a": 1}, cast("Any", None)) == {"a": 1}


def test_a_handler_that_does_not_exist_is_no_failed_call() -> None:
    with pytest.raises(ModuleNotFoundError):
        imported("functions.nobody.handler.handler")


def test_an_answer_that_is_no_json_is_a_failure() -> None:
    stack = Stack(BASE, lambda _event, _world: {"at": timedelta(0)})
    assert stack.runtime.invoke("worker", {}).error.startswith("TypeError")


def test_nobody_survives_what_is_no_failure_of_the_handler() -> None:
    def interrupt(event: Event, world: World) -> Answer:
        del event, world
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stack(BASE, interrupt).runtime.invoke("worker", {})
