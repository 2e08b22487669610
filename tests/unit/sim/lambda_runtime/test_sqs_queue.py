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


def test_a_follow_up_arrives_after_its_delay() -> None:
    stack = Stack(BASE, handle_successfully)
    stack.runtime.build_message_queue().add("worker", "claim-1", timedelta(seconds=6.1))
    stack.run(60)
    assert stack.list_message_bodies() == [(7, ["claim-1"])]
    assert stack.runtime.get_queue("worker").messages == ()


def test_a_handler_may_wake_itself() -> None:
    def send_follow_up(event: Event, world: World) -> HandlerResponse:
        world.mailbox.add("worker", "again", timedelta(seconds=10))
        return handle_successfully(event, world)

    stack = Stack(BASE, send_follow_up)
    stack.runtime.build_message_queue().add("worker", "first", timedelta(0))
    stack.run(25)
    assert stack.list_message_bodies() == [(0, ["first"]), (10, ["again"]), (20, ["again"])]


def test_the_queue_s_own_delay_holds_for_what_says_nothing() -> None:
    slow = {"Type": "AWS::SQS::Queue", "Properties": {**WORK, "DelaySeconds": 9}}
    stack = Stack({**BASE, "Work": slow}, handle_successfully)
    stack.runtime.add("worker", "plain")
    stack.runtime.add("worker", "at once", timedelta(0))
    stack.run(60)
    assert stack.list_message_bodies() == [(0, ["at once"]), (9, ["plain"])]


def test_a_follow_up_to_nobody_is_gone() -> None:
    with pytest.raises(NotFound, match="stranger"):
        Stack(BASE, handle_successfully).runtime.build_message_queue().add("stranger", "", timedelta(0))


def test_a_follow_up_waits_a_quarter_of_an_hour_at_most() -> None:
    stack = Stack(BASE, handle_successfully)
    stack.runtime.build_message_queue().add("worker", "late", timedelta(hours=1))
    stack.runtime.build_message_queue().add("worker", "past", timedelta(hours=-1))
    stack.run(1000)
    assert stack.list_message_bodies() == [(0, ["past"]), (900, ["late"])]


def test_a_batch_is_never_larger_than_the_mapping_says() -> None:
    stack = Stack(BASE, handle_successfully)
    for number in range(7):
        stack.runtime.add("worker", str(number))
    stack.run(1)
    assert [bodies for _, bodies in stack.list_message_bodies()] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


@pytest.mark.parametrize(("recursive_loop", "calls", "dead"), [("Terminate", 16, 1), ("Allow", 61, 0)])
def test_what_wakes_itself_for_ever_is_a_loop_to_lambda_unless_it_may(
    recursive_loop: str, calls: int, dead: int
) -> None:
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


def test_another_seed_shuffles_what_sqs_does_not_order_and_always_alike() -> None:
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
def test_a_failed_batch_comes_back_after_the_visibility_time_out_and_then_is_dead(
    misbehave: Behave, outcome: str
) -> None:
    stack = Stack(BASE, misbehave)
    stack.runtime.add("worker", "poison")
    stack.run(1000)
    assert stack.list_message_bodies() == [(0, ["poison"]), (60, ["poison"]), (120, ["poison"])]
    assert stack.list_outcomes() == [outcome] * 3
    assert [message.body for message in stack.runtime.get_queue("dead").messages] == ["poison"]
    assert stack.runtime.get_queue("worker").messages == ()


def test_a_message_is_dead_when_it_would_be_received_once_more() -> None:
    stack = Stack(BASE, raise_value_error)
    stack.runtime.add("worker", "poison")
    stack.run(179)
    assert stack.runtime.get_queue("dead").messages == ()
    stack.run(180)
    assert len(stack.runtime.get_queue("dead").messages) == 1


def test_without_dead_letters_a_message_comes_back_until_it_expires() -> None:
    endless = {"QueueName": "worker", "VisibilityTimeout": 60, "MessageRetentionPeriod": 600}
    stack = Stack({**BASE, "Work": {"Type": "AWS::SQS::Queue", "Properties": endless}}, raise_value_error)
    stack.runtime.add("worker", "poison")
    stack.run(6000)
    assert [at for at, _ in stack.list_message_bodies()] == list(range(0, 600, 60))
    assert [message.body for message in stack.runtime.get_queue("worker").expired] == ["poison"]


def test_only_the_failed_messages_of_a_batch_come_back() -> None:
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
def test_an_answer_that_lambda_does_not_understand_fails_the_batch(answer: HandlerResponse, attempts: int) -> None:
    stack = Stack(BASE, lambda _event, _world: answer)
    stack.runtime.add("worker", "one")
    stack.run(70)
    assert len(stack.received_events) == attempts


def test_without_partial_failures_the_answer_is_not_looked_at() -> None:
    response = {"batchItemFailures": [{"itemIdentifier": "message-000001"}]}
    stack = Stack(
        {**BASE, "Reads": make_event_source_mapping(FunctionResponseTypes=[])}, lambda _event, _world: response
    )
    stack.runtime.add("worker", "one")
    stack.run(70)
    assert len(stack.received_events) == 1
