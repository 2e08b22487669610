"""Tests of queues: delays, batches, visibility timeouts, failures and killed functions."""

from datetime import timedelta

import pytest

from shared.errors import NotFound
from shared.ports.world import World
from sim.lambda_runtime.invocation import Event, HandlerResponse
from tests.unit.sim.lambda_runtime.lambdas_stack import (
    BASE,
    WORK,
    Behave,
    Stack,
    handle_successfully,
    make_event_source_mapping,
    make_function,
    raise_killed,
    raise_value_error,
)


def test_follow_up_message_arrives_after_its_delay() -> None:
    stack = Stack(BASE, handle_successfully)
    stack.runtime.build_message_queue().add("worker", "claim-1", timedelta(seconds=6.1))
    stack.run(60)
    assert stack.list_message_bodies() == [(7, ["claim-1"])]
    assert stack.runtime.get_queue("worker").messages == ()


def test_handler_can_send_a_follow_up_to_its_own_queue() -> None:
    def send_follow_up(event: Event, world: World) -> HandlerResponse:
        world.mailbox.add("worker", "again", timedelta(seconds=10))
        return handle_successfully(event, world)

    stack = Stack(BASE, send_follow_up)
    stack.runtime.build_message_queue().add("worker", "first", timedelta(0))
    stack.run(25)
    assert stack.list_message_bodies() == [(0, ["first"]), (10, ["again"]), (20, ["again"])]


def test_queue_default_delay_applies_to_messages_without_a_delay() -> None:
    slow = {"Type": "AWS::SQS::Queue", "Properties": {**WORK, "DelaySeconds": 9}}
    stack = Stack({**BASE, "Work": slow}, handle_successfully)
    stack.runtime.add("worker", "plain")
    stack.runtime.add("worker", "at once", timedelta(0))
    stack.run(60)
    assert stack.list_message_bodies() == [(0, ["at once"]), (9, ["plain"])]


def test_follow_up_to_an_unknown_function_raises_not_found() -> None:
    with pytest.raises(NotFound, match="stranger"):
        Stack(BASE, handle_successfully).runtime.build_message_queue().add("stranger", "", timedelta(0))


def test_follow_up_delay_is_limited_to_15_minutes() -> None:
    stack = Stack(BASE, handle_successfully)
    stack.runtime.build_message_queue().add("worker", "late", timedelta(hours=1))
    stack.runtime.build_message_queue().add("worker", "past", timedelta(hours=-1))
    stack.run(1000)
    assert stack.list_message_bodies() == [(0, ["past"]), (900, ["late"])]


def test_batch_size_is_limited_by_the_mapping() -> None:
    stack = Stack(BASE, handle_successfully)
    for number in range(7):
        stack.runtime.add("worker", str(number))
    stack.run(1)
    assert [bodies for _, bodies in stack.list_message_bodies()] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


@pytest.mark.parametrize(("recursive_loop", "calls", "dead"), [("Terminate", 16, 1), ("Allow", 61, 0)])
def test_recursive_loop_is_stopped_unless_it_is_allowed(recursive_loop: str, calls: int, dead: int) -> None:
    def send_follow_up(event: Event, world: World) -> HandlerResponse:
        world.mailbox.add("worker", "again", timedelta(seconds=10))
        return handle_successfully(event, world)

    stack = Stack({**BASE, "Worker": make_function("worker", RecursiveLoop=recursive_loop)}, send_follow_up)
    stack.runtime.add("worker", "first")
    stack.run(600)
    assert len(stack.received_events) == calls
    assert len(stack.runtime.get_queue("dead").messages) == dead
    stack.runtime.add("worker", "of nobody")  # a new chain of invocations
    stack.run(601)
    assert stack.list_message_bodies()[-1] == (600, ["of nobody"])


def test_message_order_depends_only_on_the_seed() -> None:
    def list_bodies_in_order(seed: int) -> list[str]:
        stack = Stack(BASE, handle_successfully, seed=seed)
        for number in range(9):
            stack.runtime.add("worker", str(number))
        stack.run(1)
        return [body for _, bodies in stack.list_message_bodies() for body in bodies]

    assert list_bodies_in_order(0) == sorted(list_bodies_in_order(1)) == sorted(list_bodies_in_order(2))
    assert len({tuple(list_bodies_in_order(seed)) for seed in (0, 1, 2)}) == 3
    assert list_bodies_in_order(1) == list_bodies_in_order(1)


@pytest.mark.parametrize(("misbehave", "outcome"), [(raise_value_error, "failed"), (raise_killed, "killed")])
def test_failed_batch_is_retried_after_the_visibility_timeout_then_dead_lettered(
    misbehave: Behave, outcome: str
) -> None:
    stack = Stack(BASE, misbehave)
    stack.runtime.add("worker", "poison")
    stack.run(1000)
    assert stack.list_message_bodies() == [(0, ["poison"]), (60, ["poison"]), (120, ["poison"])]
    assert stack.list_outcomes() == [outcome] * 3
    assert [message.body for message in stack.runtime.get_queue("dead").messages] == ["poison"]
    assert stack.runtime.get_queue("worker").messages == ()


def test_message_is_dead_lettered_after_the_maximum_receive_count() -> None:
    stack = Stack(BASE, raise_value_error)
    stack.runtime.add("worker", "poison")
    stack.run(179)
    assert stack.runtime.get_queue("dead").messages == ()
    stack.run(180)
    assert len(stack.runtime.get_queue("dead").messages) == 1


def test_message_without_a_dead_letter_queue_is_retried_until_it_expires() -> None:
    endless = {"QueueName": "worker", "VisibilityTimeout": 60, "MessageRetentionPeriod": 600}
    stack = Stack({**BASE, "Work": {"Type": "AWS::SQS::Queue", "Properties": endless}}, raise_value_error)
    stack.runtime.add("worker", "poison")
    stack.run(6000)
    assert [at for at, _ in stack.list_message_bodies()] == list(range(0, 600, 60))
    assert [message.body for message in stack.runtime.get_queue("worker").expired] == ["poison"]


def test_only_failed_messages_of_a_batch_are_retried() -> None:
    def refuse_odd(event: Event, world: World) -> HandlerResponse:
        del world
        odd = [record for record in event["Records"] if int(record["body"]) % 2]
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in odd]}

    stack = Stack(BASE, refuse_odd)
    for number in range(3):
        stack.runtime.add("worker", str(number))
    stack.run(70)
    assert stack.list_message_bodies() == [(0, ["0", "1", "2"]), (60, ["1"])]


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        (None, 1),
        ({}, 1),
        ({"other": 1}, 1),
        ({"batchItemFailures": None}, 1),
        ({"batchItemFailures": []}, 1),
        ({"batchItemFailures": [{"itemIdentifier": "stranger"}]}, 2),
        ({"batchItemFailures": [{"itemIdentifier": ""}]}, 2),
        ({"batchItemFailures": [{"id": "message-000001"}]}, 2),
        ({"batchItemFailures": ["message-000001"]}, 2),
        ({"batchItemFailures": "message-000001"}, 2),
    ],
)
def test_invalid_batch_response_fails_the_batch(answer: HandlerResponse, attempts: int) -> None:
    stack = Stack(BASE, lambda _event, _world: answer)
    stack.runtime.add("worker", "one")
    stack.run(70)
    assert len(stack.received_events) == attempts


def test_batch_item_failures_are_ignored_without_partial_batch_responses() -> None:
    response = {"batchItemFailures": [{"itemIdentifier": "message-000001"}]}
    stack = Stack(
        {**BASE, "Reads": make_event_source_mapping(FunctionResponseTypes=[])}, lambda _event, _world: response
    )
    stack.runtime.add("worker", "one")
    stack.run(70)
    assert len(stack.received_events) == 1
