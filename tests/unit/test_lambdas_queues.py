"""Queues in motion: delays, batches, visibility, what fails, what dies."""

from datetime import timedelta

import pytest

from shared.errors import Gone
from shared.ports import World
from sim.lambdas.invocation import Answer, Event
from tests.unit.lambdas_stack import BASE, WORK, Behave, Stack, die, fail, function, reads, succeed


def test_a_follow_up_arrives_after_its_delay() -> None:
    stack = Stack(BASE, succeed)
    stack.runtime.mailbox().send("worker", "claim-1", timedelta(seconds=6.1))
    stack.run(60)
    assert stack.bodies() == [(7, ["claim-1"])]
    assert stack.runtime.queue("worker").messages == ()


def test_a_handler_may_wake_itself() -> None:
    def again(event: Event, world: World) -> Answer:
        world.mailbox.send("worker", "again", timedelta(seconds=10))
        return succeed(event, world)

    stack = Stack(BASE, again)
    stack.runtime.mailbox().send("worker", "first", timedelta(0))
    stack.run(25)
    assert stack.bodies() == [(0, ["first"]), (10, ["again"]), (20, ["again"])]


def test_the_queue_s_own_delay_holds_for_what_says_nothing() -> None:
    slow = {"Type": "AWS::SQS::Queue", "Properties": {**WORK, "DelaySeconds": 9}}
    stack = Stack({**BASE, "Work": slow}, succeed)
    stack.runtime.send("worker", "plain")
    stack.runtime.send("worker", "at once", timedelta(0))
    stack.run(60)
    assert stack.bodies() == [(0, ["at once"]), (9, ["plain"])]


def test_a_follow_up_to_nobody_is_gone() -> None:
    with pytest.raises(Gone, match="stranger"):
        Stack(BASE, succeed).runtime.mailbox().send("stranger", "", timedelta(0))


def test_a_follow_up_waits_a_quarter_of_an_hour_at_most() -> None:
    stack = Stack(BASE, succeed)
    stack.runtime.mailbox().send("worker", "late", timedelta(hours=1))
    stack.runtime.mailbox().send("worker", "past", timedelta(hours=-1))
    stack.run(1000)
    assert stack.bodies() == [(0, ["past"]), (900, ["late"])]


def test_a_batch_is_never_larger_than_the_mapping_says() -> None:
    stack = Stack(BASE, succeed)
    for number in range(7):
        stack.runtime.send("worker", str(number))
    stack.run(1)
    assert [bodies for _, bodies in stack.bodies()] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]


@pytest.mark.parametrize(("said", "calls", "dead"), [("Terminate", 16, 1), ("Allow", 61, 0)])
def test_what_wakes_itself_for_ever_is_a_loop_to_lambda_unless_it_may(said: str, calls: int, dead: int) -> None:
    def again(event: Event, world: World) -> Answer:
        world.mailbox.send("worker", "again", timedelta(seconds=10))
        return succeed(event, world)

    stack = Stack({**BASE, "Worker": function("worker", RecursiveLoop=said)}, again)
    stack.runtime.send("worker", "first")
    stack.run(600)
    assert len(stack.seen) == calls
    assert len(stack.runtime.queue("dead").messages) == dead
    stack.runtime.send("worker", "of nobody")  # a chain of its own
    stack.run(601)
    assert stack.bodies()[-1] == (600, ["of nobody"])


def test_another_seed_shuffles_what_sqs_does_not_order_and_always_alike() -> None:
    def order(seed: int) -> list[str]:
        stack = Stack(BASE, succeed, seed=seed)
        for number in range(9):
            stack.runtime.send("worker", str(number))
        stack.run(1)
        return [body for _, bodies in stack.bodies() for body in bodies]

    assert order(0) == sorted(order(1)) == sorted(order(2))
    assert len({tuple(order(seed)) for seed in (0, 1, 2)}) == 3
    assert order(1) == order(1)


@pytest.mark.parametrize(("misbehave", "outcome"), [(fail, "failed"), (die, "killed")])
def test_a_failed_batch_comes_back_after_the_visibility_time_out_and_then_is_dead(
    misbehave: Behave, outcome: str
) -> None:
    stack = Stack(BASE, misbehave)
    stack.runtime.send("worker", "poison")
    stack.run(1000)
    assert stack.bodies() == [(0, ["poison"]), (60, ["poison"]), (120, ["poison"])]
    assert stack.outcomes() == [outcome] * 3
    assert [message.body for message in stack.runtime.queue("dead").messages] == ["poison"]
    assert stack.runtime.queue("worker").messages == ()


def test_a_message_is_dead_when_it_would_be_received_once_more() -> None:
    stack = Stack(BASE, fail)
    stack.runtime.send("worker", "poison")
    stack.run(179)
    assert stack.runtime.queue("dead").messages == ()
    stack.run(180)
    assert len(stack.runtime.queue("dead").messages) == 1


def test_without_dead_letters_a_message_comes_back_until_it_expires() -> None:
    endless = {"QueueName": "worker", "VisibilityTimeout": 60, "MessageRetentionPeriod": 600}
    stack = Stack({**BASE, "Work": {"Type": "AWS::SQS::Queue", "Properties": endless}}, fail)
    stack.runtime.send("worker", "poison")
    stack.run(6000)
    assert [at for at, _ in stack.bodies()] == list(range(0, 600, 60))
    assert [message.body for message in stack.runtime.queue("worker").expired] == ["poison"]


def test_only_the_failed_messages_of_a_batch_come_back() -> None:
    def refuse_odd(event: Event, world: World) -> Answer:
        del world
        odd = [record for record in event["Records"] if int(record["body"]) % 2]
        return {"batchItemFailures": [{"itemIdentifier": record["messageId"]} for record in odd]}

    stack = Stack(BASE, refuse_odd)
    for number in range(3):
        stack.runtime.send("worker", str(number))
    stack.run(70)
    assert stack.bodies() == [(0, ["0", "1", "2"]), (60, ["1"])]


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
def test_an_answer_that_lambda_does_not_understand_fails_the_batch(answer: Answer, attempts: int) -> None:
    stack = Stack(BASE, lambda _event, _world: answer)
    stack.runtime.send("worker", "one")
    stack.run(70)
    assert len(stack.seen) == attempts


def test_without_partial_failures_the_answer_is_not_looked_at() -> None:
    everything = {"batchItemFailures": [{"itemIdentifier": "message-000001"}]}
    stack = Stack({**BASE, "Reads": reads(FunctionResponseTypes=[])}, lambda _event, _world: everything)
    stack.runtime.send("worker", "one")
    stack.run(70)
    assert len(stack.seen) == 1
