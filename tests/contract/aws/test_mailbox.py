"""The `MessageQueue` port on SQS as moto simulates it."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from moto import mock_aws

from shared.aws.clients import Clients
from shared.aws.sqs import SqsMessageQueue
from shared.errors import NotFound, Unreachable


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with mock_aws():
        clients = Clients("us-east-1")
        yield clients
        clients.close()


@pytest.fixture(scope="module")
def mailbox(clients: Clients) -> SqsMessageQueue:
    sqs = clients.get_retrying_client("sqs")
    urls = [sqs.create_queue(QueueName=f"joiner-{function}")["QueueUrl"] for function in ("provision", "disrupt")]
    return SqsMessageQueue(clients, urls[0].removesuffix("provision"))


def receive_bodies(clients: Clients, function: str) -> list[str]:
    sqs = clients.get_retrying_client("sqs")
    url = sqs.get_queue_url(QueueName=f"joiner-{function}")["QueueUrl"]
    return [message["Body"] for message in sqs.receive_message(QueueUrl=url).get("Messages", [])]


def test_message_is_sent_to_the_queue_of_its_function(clients: Clients, mailbox: SqsMessageQueue) -> None:
    mailbox.add("disrupt", '{"command":"a"}', timedelta())
    assert receive_bodies(clients, "disrupt") == ['{"command":"a"}']
    assert receive_bodies(clients, "provision") == []


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        (timedelta(), 0),
        (timedelta(seconds=-5), 0),
        (timedelta(milliseconds=1), 1),
        (timedelta(seconds=15), 15),
        (timedelta(seconds=14, milliseconds=200), 15),
        (timedelta(minutes=15), 900),
        (timedelta(hours=1), 900),
    ],
)
def test_message_delay_is_rounded_up_to_seconds_and_capped_at_fifteen_minutes(
    clients: Clients, mailbox: SqsMessageQueue, after: timedelta, seconds: int
) -> None:
    delays: list[int] = []
    events = clients.get_retrying_client("sqs").meta.events
    events.register(
        "provide-client-params.sqs.SendMessage", lambda params, **_: delays.append(params["DelaySeconds"]), 1
    )
    mailbox.add("provision", "x", after)
    events.unregister("provide-client-params.sqs.SendMessage", unique_id=1)
    assert delays == [seconds]


def test_sending_to_a_function_without_a_queue_raises_not_found(mailbox: SqsMessageQueue) -> None:
    with pytest.raises(NotFound):
        mailbox.add("nobody", "x", timedelta())


def test_batch_sends_a_message_for_each_delay_with_ten_per_request(clients: Clients, mailbox: SqsMessageQueue) -> None:
    delays: list[list[int]] = []
    events = clients.get_retrying_client("sqs").meta.events
    events.register(
        "provide-client-params.sqs.SendMessageBatch",
        lambda params, **_: delays.append([entry["DelaySeconds"] for entry in params["Entries"]]),
        1,
    )
    mailbox.add_batch("disrupt", "batch", [timedelta(seconds=second, milliseconds=-1) for second in range(12)])
    mailbox.add_batch("disrupt", "none", [])
    events.unregister("provide-client-params.sqs.SendMessageBatch", unique_id=1)
    assert delays == [[0, *range(1, 10)], [10, 11]]
    assert receive_bodies(clients, "disrupt") == ["batch"]


def test_messages_that_sqs_rejects_raise_an_error_after_the_others_are_sent(
    clients: Clients, mailbox: SqsMessageQueue
) -> None:
    client = clients.get_retrying_client("sqs")

    def reject_first(parsed: dict[str, object], **_: object) -> None:
        parsed["Failed"] = [{"Id": "0", "Code": "InternalError", "SenderFault": False}]

    client.meta.events.register("after-call.sqs.SendMessageBatch", reject_first, 2)
    with pytest.raises(Unreachable, match="2 of 11 rejected: InternalError"):
        mailbox.add_batch("provision", "x", [timedelta(seconds=1)] * 11)
    client.meta.events.unregister("after-call.sqs.SendMessageBatch", unique_id=2)


def test_batch_to_a_function_without_a_queue_raises_not_found(mailbox: SqsMessageQueue) -> None:
    with pytest.raises(NotFound):
        mailbox.add_batch("nobody", "x", [timedelta()])
