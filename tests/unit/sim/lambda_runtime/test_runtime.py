"""Tests of function invocations: their triggers, times, repetitions and events."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from shared.ports.world import World
from sim.lambda_runtime.invocation import Event, HandlerResponse, Invocation
from sim.lambda_runtime.runtime import import_handle
from tests.unit.sim.lambda_runtime.lambdas_stack import (
    BASE,
    Behave,
    Stack,
    handle_successfully,
    make_event_source_mapping,
    make_function,
    make_rule,
    make_schedule,
    raise_killed,
    raise_value_error,
)


def test_a_rate_rings_every_so_often_from_the_deployment_on() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "rate(1 minute)")}, handle_successfully)
    stack.run(185)
    assert [at for at, _, _ in stack.received_events] == [60, 120, 180]
    assert {invocation.trigger for invocation in stack.runtime.invocations} == {"schedule:Tick"}


def test_a_cron_rings_at_its_minutes() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "cron(0/20 * * * ? *)")}, handle_successfully)
    stack.run(3600)
    assert [at for at, _, _ in stack.received_events] == [1200, 2400, 3600]


def test_a_schedule_that_is_over_rings_no_more() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "cron(0 0 1 1 ? 2026)")}, handle_successfully)
    stack.run(10**8)
    assert stack.received_events == []


def test_a_tick_hands_over_the_input_of_the_template() -> None:
    tick = make_schedule("Worker", "rate(1 minute)")
    tick["Properties"]["Target"]["Input"] = '{"source":"schedule"}'
    stack = Stack({**BASE, "Tick": tick}, handle_successfully)
    stack.run(60)
    assert [event for _, _, event in stack.received_events] == [{"source": "schedule"}]


def test_a_tick_without_an_input_is_a_scheduled_event() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "rate(1 minute)")}, handle_successfully)
    stack.run(60)
    [(_, _, event)] = stack.received_events
    assert (event["source"], event["time"]) == ("aws.scheduler", "2026-11-21T08:01:00Z")


def test_a_schedule_may_fill_a_queue() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Work", "rate(1 minute)")}, handle_successfully)
    stack.run(60)
    [(at, [body])] = stack.list_message_bodies()
    assert (at, json.loads(body)["detail-type"]) == (60, "Scheduled Event")


def test_a_stopped_stack_ticks_no_more_but_delivers_what_waits() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "rate(1 minute)")}, handle_successfully)
    stack.runtime.add("worker", "late", timedelta(seconds=100))
    stack.run(60)
    stack.runtime.stop()
    stack.run(600)
    assert [at for at, _, _ in stack.received_events] == [60, 100]


@pytest.mark.parametrize(
    ("retries", "attempts"), [(0, [60]), (1, [60, 120]), (2, [60, 120, 240]), (None, [60, 120, 240])]
)
@pytest.mark.parametrize("misbehave", [raise_value_error, raise_killed])
def test_a_failed_tick_is_repeated_as_often_as_the_template_says(
    retries: int | None, attempts: list[float], misbehave: Behave
) -> None:
    once = {"FunctionName": {"Ref": "Worker"}, "Qualifier": "$LATEST", "MaximumRetryAttempts": retries}
    invoke = {} if retries is None else {"Once": {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": once}}
    stack = Stack({**BASE, **invoke, "Tick": make_schedule("Worker", "cron(1 8 * * ? *)")}, misbehave)
    stack.run(3600)
    assert [at for at, _, _ in stack.received_events] == attempts


def test_an_event_reaches_the_queue_of_the_rule_that_matches() -> None:
    rule = make_rule("Work", EventPattern={"source": ["aws.ec2"], "detail": {"state": [{"anything-but": "running"}]}})
    stack = Stack({**BASE, "Heard": rule}, handle_successfully)
    for state in ("running", "stopped"):
        stack.runtime.put_event({"source": "aws.ec2", "detail-type": "change", "detail": {"state": state}})
    stack.runtime.put_event({"source": "aws.health"})
    stack.run(1)
    [(at, [body])] = stack.list_message_bodies()
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
    stack = Stack({**BASE, "Heard": make_rule("Worker", EventPattern={"source": ["a"]})}, handle_successfully)
    stack.runtime.put_event({"source": "a", "time": "then"})
    assert stack.received_events == []
    stack.run(0)
    assert [event["time"] for _, _, event in stack.received_events] == ["then"]
    assert [invocation.trigger for invocation in stack.runtime.invocations] == ["event:Heard"]


def test_a_lost_message_never_arrives_and_a_doubled_one_arrives_twice() -> None:
    stack = Stack(BASE, handle_successfully)
    stack.runtime.count_copies = lambda queue, body: {"lost": 0, "doubled": 2}.get(body, 1) if queue == "worker" else 1
    for body in ("lost", "doubled", "plain"):
        stack.runtime.add("worker", body)
    stack.run(1)
    assert stack.list_message_bodies() == [(0, ["doubled", "doubled", "plain"])]


def test_a_slow_call_ends_later_and_holds_its_messages_until_then() -> None:
    stack = Stack(BASE, handle_successfully, get_duration=lambda _name, _event: timedelta(seconds=12))
    stack.runtime.add("worker", "one")
    stack.run(11)
    assert len(stack.runtime.get_queue("worker").messages) == 1
    stack.run(12)
    assert stack.runtime.get_queue("worker").messages == ()
    [invocation] = stack.runtime.invocations
    assert invocation.ended_at - invocation.started_at == timedelta(seconds=12)


def test_a_call_longer_than_the_time_out_has_failed_though_its_effects_stay() -> None:
    stack = Stack(BASE, handle_successfully, get_duration=lambda _name, _event: timedelta(minutes=5))
    stack.runtime.add("worker", "one")
    stack.run(70)
    assert [at for at, _ in stack.list_message_bodies()] == [0, 60]
    assert [(i.outcome, (i.ended_at - i.started_at).seconds) for i in stack.runtime.invocations] == [("timed-out", 20)]


def test_a_mapping_calls_no_more_at_once_than_it_may() -> None:
    limited = make_event_source_mapping(ScalingConfig={"MaximumConcurrency": 2}, BatchSize=1)
    stack = Stack(
        {**BASE, "Reads": limited}, handle_successfully, get_duration=lambda _name, _event: timedelta(seconds=5)
    )
    for number in range(5):
        stack.runtime.add("worker", str(number))
    stack.run(60)
    assert [at for at, _ in stack.list_message_bodies()] == [0, 0, 5, 5, 10]


def test_a_mapping_gathers_messages_until_its_window_closes_or_the_batch_is_full() -> None:
    patient = make_event_source_mapping(MaximumBatchingWindowInSeconds=4, BatchSize=3)
    stack = Stack({**BASE, "Reads": patient}, handle_successfully)
    for second in (0, 2, 10, 11, 12, 13):
        stack.runtime.add("worker", str(second), timedelta(seconds=second))
    stack.run(60)
    assert stack.list_message_bodies() == [(4, ["0", "2"]), (12, ["10", "11", "12"]), (17, ["13"])]


def test_a_window_that_closed_while_all_were_at_work_is_not_waited_for_again() -> None:
    patient = make_event_source_mapping(
        MaximumBatchingWindowInSeconds=4, BatchSize=3, ScalingConfig={"MaximumConcurrency": 1}
    )
    stack = Stack(
        {**BASE, "Reads": patient}, handle_successfully, get_duration=lambda _name, _event: timedelta(seconds=10)
    )
    for second in (0, 5):
        stack.runtime.add("worker", str(second), timedelta(seconds=second))
    stack.run(60)
    assert [at for at, _ in stack.list_message_bodies()] == [4, 18]


def test_a_function_gets_the_environment_of_the_template_and_a_name_of_its_own() -> None:
    stack = Stack(BASE, handle_successfully)
    stack.runtime.invoke("worker", {})
    stack.runtime.invoke("worker", {})
    assert [world.settings.region for world in stack.worlds] == ["here", "here"]
    assert [world.name for world in stack.worlds] == ["worker-000001", "worker-000002"]
    assert stack.built_function_names == ["worker", "worker"]


def test_a_world_that_has_a_name_keeps_it() -> None:
    variables = {**BASE["Worker"]["Properties"]["Environment"]["Variables"], "NAME": "lessee"}
    stack = Stack(
        {**BASE, "Worker": make_function("worker", Environment={"Variables": variables})}, handle_successfully
    )
    stack.runtime.invoke("worker", {})
    assert [world.name for world in stack.worlds] == ["lessee"]


def test_an_event_is_nobody_s_to_change() -> None:
    def change_event(event: Event, world: World) -> HandlerResponse:
        event["scribbled"] = True
        return raise_value_error(event, world)

    stack = Stack(BASE, change_event)
    original_event: Event = {"a": 1}
    assert stack.runtime.invoke("worker", original_event).event == {"a": 1} == original_event


def test_a_direct_call_answers_what_became_of_it_and_is_not_repeated() -> None:
    stack = Stack(BASE, raise_value_error, get_duration=lambda _name, _event: timedelta(seconds=2))
    invocation = stack.runtime.invoke("worker", {"a": 1})
    stack.run(1000)
    assert (invocation.trigger, invocation.outcome, invocation.error) == ("direct", "failed", "ValueError: broken")
    assert stack.runtime.invocations == [invocation]


def test_whoever_listens_hears_of_every_call() -> None:
    invocations: list[Invocation] = []
    stack = Stack(BASE, handle_successfully)
    stack.runtime.on_invocation = invocations.append
    stack.runtime.invoke("worker", {})
    assert invocations == stack.runtime.invocations


def test_a_record_looks_like_one_of_sqs() -> None:
    stack = Stack(BASE, raise_value_error)
    stack.runtime.add("worker", "hello", timedelta(seconds=1))
    stack.run(61)
    record = stack.received_events[1][2]["Records"][0]
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
    assert import_handle(module)({"a": 1}, cast("Any", None)) == {"a": 1}


def test_a_handler_that_does_not_exist_is_no_failed_call() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_handle("functions.nobody.handler.handler")


def test_an_answer_that_is_no_json_is_a_failure() -> None:
    stack = Stack(BASE, lambda _event, _world: {"at": timedelta(0)})
    assert stack.runtime.invoke("worker", {}).error.startswith("TypeError")


def test_nobody_survives_what_is_no_failure_of_the_handler() -> None:
    def interrupt(event: Event, world: World) -> HandlerResponse:
        del event, world
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stack(BASE, interrupt).runtime.invoke("worker", {})
