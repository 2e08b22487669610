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


def test_rate_schedule_fires_at_intervals_after_deployment() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "rate(1 minute)")}, handle_successfully)
    stack.run(185)
    assert [at for at, _, _ in stack.received_events] == [60, 120, 180]
    assert {invocation.trigger for invocation in stack.runtime.invocations} == {"schedule:Tick"}


def test_cron_schedule_fires_at_its_minutes() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "cron(0/20 * * * ? *)")}, handle_successfully)
    stack.run(3600)
    assert [at for at, _, _ in stack.received_events] == [1200, 2400, 3600]


def test_expired_cron_schedule_never_fires() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "cron(0 0 1 1 ? 2026)")}, handle_successfully)
    stack.run(10**8)
    assert stack.received_events == []


def test_scheduled_invocation_gets_the_template_input() -> None:
    tick = make_schedule("Worker", "rate(1 minute)")
    tick["Properties"]["Target"]["Input"] = '{"source":"schedule"}'
    stack = Stack({**BASE, "Tick": tick}, handle_successfully)
    stack.run(60)
    assert [event for _, _, event in stack.received_events] == [{"source": "schedule"}]


def test_scheduled_invocation_without_input_gets_a_scheduled_event() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Worker", "rate(1 minute)")}, handle_successfully)
    stack.run(60)
    [(_, _, event)] = stack.received_events
    assert (event["source"], event["time"]) == ("aws.scheduler", "2026-11-21T08:01:00Z")


def test_schedule_can_send_to_a_queue() -> None:
    stack = Stack({**BASE, "Tick": make_schedule("Work", "rate(1 minute)")}, handle_successfully)
    stack.run(60)
    [(at, [body])] = stack.list_message_bodies()
    assert (at, json.loads(body)["detail-type"]) == (60, "Scheduled Event")


def test_stopped_stack_fires_no_schedules_but_delivers_queued_messages() -> None:
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
def test_failed_scheduled_invocation_is_retried_as_configured(
    retries: int | None, attempts: list[float], misbehave: Behave
) -> None:
    once = {"FunctionName": {"Ref": "Worker"}, "Qualifier": "$LATEST", "MaximumRetryAttempts": retries}
    invoke = {} if retries is None else {"Once": {"Type": "AWS::Lambda::EventInvokeConfig", "Properties": once}}
    stack = Stack({**BASE, **invoke, "Tick": make_schedule("Worker", "cron(1 8 * * ? *)")}, misbehave)
    stack.run(3600)
    assert [at for at, _, _ in stack.received_events] == attempts


def test_event_is_sent_to_the_queue_of_the_matching_rule() -> None:
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


def test_event_invokes_the_function_after_put_event_returns() -> None:
    stack = Stack({**BASE, "Heard": make_rule("Worker", EventPattern={"source": ["a"]})}, handle_successfully)
    stack.runtime.put_event({"source": "a", "time": "then"})
    assert stack.received_events == []
    stack.run(0)
    assert [event["time"] for _, _, event in stack.received_events] == ["then"]
    assert [invocation.trigger for invocation in stack.runtime.invocations] == ["event:Heard"]


def test_lost_message_never_arrives_and_duplicated_message_arrives_twice() -> None:
    stack = Stack(BASE, handle_successfully)
    stack.runtime.count_copies = lambda queue, body: {"lost": 0, "doubled": 2}.get(body, 1) if queue == "worker" else 1
    for body in ("lost", "doubled", "plain"):
        stack.runtime.add("worker", body)
    stack.run(1)
    assert stack.list_message_bodies() == [(0, ["doubled", "doubled", "plain"])]


def test_slow_invocation_holds_its_messages_until_it_ends() -> None:
    stack = Stack(BASE, handle_successfully, get_duration=lambda _name, _event: timedelta(seconds=12))
    stack.runtime.add("worker", "one")
    stack.run(11)
    assert len(stack.runtime.get_queue("worker").messages) == 1
    stack.run(12)
    assert stack.runtime.get_queue("worker").messages == ()
    [invocation] = stack.runtime.invocations
    assert invocation.ended_at - invocation.started_at == timedelta(seconds=12)


def test_timed_out_invocation_fails_but_keeps_its_side_effects() -> None:
    stack = Stack(BASE, handle_successfully, get_duration=lambda _name, _event: timedelta(minutes=5))
    stack.runtime.add("worker", "one")
    stack.run(70)
    assert [at for at, _ in stack.list_message_bodies()] == [0, 60]
    assert [(i.outcome, (i.ended_at - i.started_at).seconds) for i in stack.runtime.invocations] == [("timed-out", 20)]


def test_event_source_mapping_respects_maximum_concurrency() -> None:
    limited = make_event_source_mapping(ScalingConfig={"MaximumConcurrency": 2}, BatchSize=1)
    stack = Stack(
        {**BASE, "Reads": limited}, handle_successfully, get_duration=lambda _name, _event: timedelta(seconds=5)
    )
    for number in range(5):
        stack.runtime.add("worker", str(number))
    stack.run(60)
    assert [at for at, _ in stack.list_message_bodies()] == [0, 0, 5, 5, 10]


def test_event_source_mapping_batches_until_its_window_ends_or_the_batch_is_full() -> None:
    patient = make_event_source_mapping(MaximumBatchingWindowInSeconds=4, BatchSize=3)
    stack = Stack({**BASE, "Reads": patient}, handle_successfully)
    for second in (0, 2, 10, 11, 12, 13):
        stack.runtime.add("worker", str(second), timedelta(seconds=second))
    stack.run(60)
    assert stack.list_message_bodies() == [(4, ["0", "2"]), (12, ["10", "11", "12"]), (17, ["13"])]


def test_batching_window_that_ended_during_an_invocation_is_not_restarted() -> None:
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


def test_function_gets_its_template_environment_and_a_unique_name() -> None:
    stack = Stack(BASE, handle_successfully)
    stack.runtime.invoke("worker", {})
    stack.runtime.invoke("worker", {})
    assert [world.settings.region for world in stack.worlds] == ["here", "here"]
    assert [world.name for world in stack.worlds] == ["worker-000001", "worker-000002"]
    assert stack.built_function_names == ["worker", "worker"]


def test_world_with_a_name_keeps_it() -> None:
    variables = {**BASE["Worker"]["Properties"]["Environment"]["Variables"], "NAME": "lessee"}
    stack = Stack(
        {**BASE, "Worker": make_function("worker", Environment={"Variables": variables})}, handle_successfully
    )
    stack.runtime.invoke("worker", {})
    assert [world.name for world in stack.worlds] == ["lessee"]


def test_recorded_event_is_not_changed_by_the_handler() -> None:
    def change_event(event: Event, world: World) -> HandlerResponse:
        event["scribbled"] = True
        return raise_value_error(event, world)

    stack = Stack(BASE, change_event)
    original_event: Event = {"a": 1}
    assert stack.runtime.invoke("worker", original_event).event == {"a": 1} == original_event


def test_direct_invocation_returns_its_outcome_and_is_not_retried() -> None:
    stack = Stack(BASE, raise_value_error, get_duration=lambda _name, _event: timedelta(seconds=2))
    invocation = stack.runtime.invoke("worker", {"a": 1})
    stack.run(1000)
    assert (invocation.trigger, invocation.outcome, invocation.error) == ("direct", "failed", "ValueError: broken")
    assert stack.runtime.invocations == [invocation]


def test_invocation_listener_is_called_for_every_invocation() -> None:
    invocations: list[Invocation] = []
    stack = Stack(BASE, handle_successfully)
    stack.runtime.on_invocation = invocations.append
    stack.runtime.invoke("worker", {})
    assert invocations == stack.runtime.invocations


def test_sqs_record_has_the_real_format() -> None:
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


def test_imported_handler_calls_the_handle_function(module: str) -> None:
    assert import_handle(module)({"a": 1}, cast("Any", None)) == {"a": 1}


def test_missing_handler_module_raises_module_not_found() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_handle("functions.nobody.handler.handler")


def test_non_json_response_fails_the_invocation() -> None:
    stack = Stack(BASE, lambda _event, _world: {"at": timedelta(0)})
    assert stack.runtime.invoke("worker", {}).error.startswith("TypeError")


def test_base_exceptions_of_the_handler_propagate() -> None:
    def interrupt(event: Event, world: World) -> HandlerResponse:
        del event, world
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Stack(BASE, interrupt).runtime.invoke("worker", {})
