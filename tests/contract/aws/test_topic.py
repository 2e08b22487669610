"""The `Topic` port on SNS as moto simulates it, and in memory."""

import json
from collections.abc import Callable, Iterator

import pytest
from moto import mock_aws

from shared.aws.clients import Clients
from shared.aws.sns import SnsTopic
from shared.errors import Invalid, NotFound
from shared.ports.messaging import Topic
from sim.world.memory_ports import MemoryTopic

ReceiveMessages = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def clients() -> Iterator[Clients]:
    with mock_aws():
        clients = Clients("us-east-1")
        yield clients
        clients.close()


def create_subscribed_topic(clients: Clients) -> tuple[SnsTopic, ReceiveMessages]:
    """Return a topic, and a function that receives what its subscriber got."""
    sns, sqs = clients.get_retrying_client("sns"), clients.get_retrying_client("sqs")
    arn = sns.create_topic(Name="costs")["TopicArn"]
    url = sqs.create_queue(QueueName="people")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue)

    def receive_messages() -> list[tuple[str, str]]:
        messages = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        bodies = [json.loads(message["Body"]) for message in messages]
        return [(body["Subject"], body["Message"]) for body in bodies]

    return SnsTopic(clients, arn), receive_messages


@pytest.fixture(params=["moto", "memory"])
def topic(request: pytest.FixtureRequest, clients: Clients) -> tuple[Topic, ReceiveMessages]:
    if request.param == "moto":
        return create_subscribed_topic(clients)
    memory_topic = MemoryTopic()
    return memory_topic, lambda: memory_topic.published_messages


def test_published_message_reaches_its_subscribers_unchanged(topic: tuple[Topic, ReceiveMessages]) -> None:
    publisher, receive = topic
    publisher.publish("Joiner: prod cost $1.00 on 2026-11-21", "By NodePool\n  web: $1.00\n")
    assert receive() == [("Joiner: prod cost $1.00 on 2026-11-21", "By NodePool\n  web: $1.00\n")]


@pytest.mark.parametrize(("subject", "text"), [("a" * 101, "x"), ("a", "x" * 262145)])
def test_oversized_subject_or_message_is_rejected(
    subject: str, text: str, topic: tuple[Topic, ReceiveMessages]
) -> None:
    publisher, receive = topic
    with pytest.raises(Invalid):
        publisher.publish(subject, text)
    assert receive() == []


def test_missing_topic_raises_not_found_without_a_retry(clients: Clients) -> None:
    topic = SnsTopic(clients, "arn:aws:sns:us-east-1:123456789012:nobody")
    with pytest.raises(NotFound):
        topic.publish("a", "b")
    assert clients.get_call_counts() == {"sns:Publish": 1}
