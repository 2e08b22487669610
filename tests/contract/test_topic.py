"""SNS as moto has it, and its model in memory, behind the `Topic` port."""

import json
from collections.abc import Callable, Iterator

import pytest
from moto import mock_aws

from shared.aws.clients import Clients
from shared.aws.sns import SnsTopic
from shared.errors import Gone, Invalid
from shared.ports import Topic
from sim.memory import MemoryTopic

Heard = Callable[[], list[tuple[str, str]]]


@pytest.fixture
def clients() -> Iterator[Clients]:
    with mock_aws():
        clients = Clients("us-east-1")
        yield clients
        clients.close()


def subscribed(clients: Clients) -> tuple[SnsTopic, Heard]:
    """Answer a topic, and what its subscriber hears."""
    sns, sqs = clients.patient("sns"), clients.patient("sqs")
    arn = sns.create_topic(Name="costs")["TopicArn"]
    url = sqs.create_queue(QueueName="people")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue)

    def heard() -> list[tuple[str, str]]:
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        bodies = [json.loads(one["Body"]) for one in found]
        return [(one["Subject"], one["Message"]) for one in bodies]

    return SnsTopic(clients, arn), heard


@pytest.fixture(params=["moto", "memory"])
def topic(request: pytest.FixtureRequest, clients: Clients) -> tuple[Topic, Heard]:
    if request.param == "moto":
        return subscribed(clients)
    made = MemoryTopic()
    return made, lambda: made.said


def test_a_message_reaches_who_listens_as_it_was_said(topic: tuple[Topic, Heard]) -> None:
    tell, heard = topic
    tell.publish("Joiner: prod cost $1.00 on 2026-11-21", "By NodePool\n  web: $1.00\n")
    assert heard() == [("Joiner: prod cost $1.00 on 2026-11-21", "By NodePool\n  web: $1.00\n")]


@pytest.mark.parametrize(("subject", "text"), [("a" * 101, "x"), ("a", "x" * 262145)])
def test_what_sns_does_not_take_is_refused(subject: str, text: str, topic: tuple[Topic, Heard]) -> None:
    tell, heard = topic
    with pytest.raises(Invalid):
        tell.publish(subject, text)
    assert heard() == []


def test_a_topic_that_is_gone_is_an_error_and_asked_once(clients: Clients) -> None:
    topic = SnsTopic(clients, "arn:aws:sns:us-east-1:123456789012:nobody")
    with pytest.raises(Gone):
        topic.publish("a", "b")
    assert clients.calls() == {"sns:Publish": 1}
